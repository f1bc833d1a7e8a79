"""``nbext fetch`` as a command: what it is asked for, in words that the magic has too, and what SIGTERM does to it.

It is read without the libraries that a fetch needs: those are loaded once one begins.
"""

from __future__ import annotations

import _thread
import argparse
import gc
import importlib.util
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nbext.core.uint256 import ungrouped, whole_of
from nbext.core.untrusted_text import quoted
from nbext.errors import ConfigError, QueryCancelled
from nbext.fetch import Output, Request
from nbext.settings import (
    Secret,
    Settings,
    ask_keyring,
    could_be_url,
    data_folder,
    default_data_dir,
)

URL_VARIABLE = "NBEXT_RPC_URL"
_EXAMPLES = f"""\
examples:
  {URL_VARIABLE}=https://... nbext fetch --contract UNI
  nbext fetch --contract UNI --contract 0x... --from-block 19000000 --to-block finalized
  nbext fetch --contract UNI --follow

A provider's URL holds its key: set {URL_VARIABLE}, or store it in the system's keyring with
`keyring set nbext {URL_VARIABLE}`. On the command line other users of the machine can read it. Several URLs of one
chain have a space between, and are asked in turn."""


def add_arguments(parser: argparse.ArgumentParser, *, on_a_terminal: bool = True) -> None:
    """Declare the command's arguments; in a notebook those that need no terminal, and no URL."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    if on_a_terminal:
        parser.epilog = _EXAMPLES
        parser.add_argument(
            "--rpc",
            action="append",
            default=[],
            metavar="URL",
            help=f"the URL of a node of your own (one that holds a key: set {URL_VARIABLE}); repeat "
            "the option for several of one chain",
        )
        parser.add_argument("--quiet", action="store_true", help="show no progress bar")

    def option(name: str, read: Callable[[str], Any] = str, **more: Any) -> None:
        default = getattr(Request, name[2:].replace("-", "_"), None)
        parser.add_argument(name, type=_no_url(read), default=default, **more)

    option(
        "--contract",
        action="append",
        required=True,
        metavar="SYMBOL|0x...",
        help="a token or collection: its address, or a symbol that nbext knows or has fetched; repeat "
        "the option for several",
    )
    option(
        "--chain",
        metavar="CHAIN",
        help="the chain's name or id, which the node's must be (default: %(default)s)",
    )
    option(
        "--from-block",
        _block("deployment"),
        metavar="N|deployment",
        help="the first block (default: deployment, which is looked up)",
    )
    option(
        "--to-block",
        _block("latest", "finalized", "auto"),
        metavar="N|latest|finalized|auto",
        help="the last block (default: auto, which is the finalized one where the node knows it, else "
        "12 before the latest)",
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="then read each new block, and replace those that a reorganisation orphans, until SIGTERM "
        "or Ctrl-C",
    )
    option("--confirmations", _whole, metavar="N", help="read to N blocks before the latest one")
    option(
        "--every",
        _above_zero,
        metavar="S",
        help="with --follow: ask for new blocks every S seconds (default: %(default)g)",
    )
    parser.add_argument(
        "--deposits",
        action="store_true",
        help="also read Deposit and Withdrawal, which are the mints and burns of wrapped ether",
    )
    option(
        "--check",
        _whole,
        metavar="N",
        help="after a fetch from deployment compare the balances of N holders with the contract's own "
        "(default: %(default)s; 0: of none)",
    )
    option(
        "--rps",
        _above_zero,
        metavar="N",
        help="send at most N calls a second (default: as many as the node takes)",
    )
    option(
        "--in-flight",
        partial(_whole, least=1),
        metavar="N",
        help="send up to N requests at once (default: %(default)s)",
    )
    option(
        "--memory",
        metavar="SIZE",
        help="the memory that ingest may use at most, such as 512MB; the rest goes to the disk "
        "(default: %(default)s)",
    )
    option(
        "--data",
        data_folder,
        metavar="DIR",
        help="the data folder (default: NBEXT_DATA_DIR, else your user data folder)",
    )


def _no_url(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return the type of an argument that takes no URL: what is wrong with a word is said by repeating it."""

    def checked(text: str) -> Any:
        if could_be_url(text):
            raise argparse.ArgumentTypeError(
                f"a URL was given, which is not shown: it may hold a key. Set {URL_VARIABLE} to a node's URL. Write ./ "
                "before the name of a folder that looks like a URL."
            )
        return read(text)

    return checked


def _block(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        block = whole_of(ungrouped(text))
        if text in words:
            return text
        if block is not None and block < 10**15:
            return str(block)
        raise argparse.ArgumentTypeError(
            f"{quoted(text, 40)} is not a block. Write a number, or {' or '.join(words)}."
        )

    return read


def _whole(text: str, least: int = 0) -> int:
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < least:
        raise argparse.ArgumentTypeError(f"{quoted(text, 40)} is not a whole number from {least}.")
    return int(text)


def _above_zero(text: str) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text) or not float(text):
        raise argparse.ArgumentTypeError(f"{quoted(text, 40)} is not a number above 0.")
    return float(text)


def request_of(args: argparse.Namespace) -> tuple[Request, Path | None]:
    """Return what parsed arguments ask for, and the data folder that they name."""
    names = Request.__dataclass_fields__.keys() - {"contracts"}
    return Request(tuple(args.contract), **{name: getattr(args, name) for name in names}), args.data


def urls_of(given: Sequence[str] = ()) -> list[Secret]:
    """Return the URLs of nodes: those given, else NBEXT_RPC_URL, else the keyring's.

    Raises
    ------
    ConfigError
        There is none.
    """
    texts, trouble = " ".join(given) or os.environ.get(URL_VARIABLE, ""), ""
    if not texts.strip() and not importlib.util.find_spec("keyring"):
        trouble = ' That needs `pip install "nbext[node]"`.'
    elif not texts.strip():
        value, wrong = ask_keyring(lambda keyring: keyring.get_password("nbext", URL_VARIABLE))
        texts, trouble = value or "", f" The keyring cannot be read ({wrong})." if wrong else ""
    found = [Secret(url) for url in re.split(r"[\s,]+", texts) if url]
    if not found:
        raise ConfigError(
            f"No node is set. Set {URL_VARIABLE} to its URL, or store it in the system's keyring: "
            f"`keyring set nbext {URL_VARIABLE}`.{trouble}"
        )
    return found


def check_installed() -> None:
    """Raise a `ConfigError` where a library of the extra ``node`` is missing."""
    if not importlib.util.find_spec("duckdb"):
        raise ConfigError(
            "A fetch ingests what it reads, and the libraries for that are not installed: pip install "
            '"nbext[node]"'
        )


def run(args: argparse.Namespace) -> int:
    """Fetch, until the end or SIGTERM."""
    check_installed()
    import pyarrow as pa

    from nbext.engine.ingest.command import bar
    from nbext.fetch.run import fetch

    # Arrow's own holds on to what the reading needed while ingest needs as much.
    pa.set_memory_pool(pa.system_memory_pool())
    # A million logs are some ten million objects without a circle: looking for one took a fifth of a fetch's time.
    gc.set_threshold(100_000)
    urls = urls_of(args.rpc)
    ending = threading.Event()

    def end(*_: object) -> None:
        # Not SIG_IGN: of a signal that came meanwhile Python would print that it is ignored.
        signal.signal(signal.SIGTERM, lambda *_: None)
        # In another thread: this one may be in the midst of a call of the event's, whose lock it would wait for. Nor
        # may it take the lock that `threading` has while it starts one.
        _thread.start_new_thread(ending.set, ())

    former = signal.signal(signal.SIGTERM, end)
    request, folder = request_of(args)
    try:
        with bar(quiet=args.quiet) as progress:
            output = Output(
                lambda line: print(line, flush=True), progress or (lambda text, share: None)
            )
            fetch(urls, request, folder or default_data_dir(Settings()), output, ending=ending)
    except QueryCancelled as cancelled:
        print(cancelled, file=sys.stderr)
        return (
            143 if ending.is_set() else 130
        )  # as a shell has it: 128 and the number of SIGTERM, or of SIGINT
    finally:
        signal.signal(signal.SIGTERM, former)
    return 0
