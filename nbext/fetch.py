"""``nbext fetch``: from a node's logs to data that is served. It joins the room that reads nodes with ingest.

Each step is an append: ranges are read and stored, their files ingested, and then they count as covered. A step that
was killed is made again from what was stored. After a reorganisation the next step replaces what it orphaned.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import re
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from nbext.core.addresses import ZERO_ADDRESS, checksummed, looks_like_address, normalised
from nbext.core.chains import Chain, chain_of
from nbext.core.untrusted_text import quoted, visible
from nbext.errors import ConfigError, IngestError, NodeError, QueryCancelled, ValidationError, did_you_mean
from nbext.settings import Secret, Settings, could_be_url, data_folder, default_data_dir

if TYPE_CHECKING:
    from nbext.engine.dataset import Compared, Dataset
    from nbext.node.contracts import Card
    from nbext.node.coverage import Coverage
    from nbext.node.reader import Reader
    from nbext.node.rpc import Node

T = TypeVar("T")
URL_VARIABLE = "NBEXT_RPC_URL"
CHECKED, EVERY, IN_FLIGHT = 20, 30.0, 4
# That of ingest's DuckDB: what is read from a node is held in pieces.
MEMORY = "4GB"
# Holders of which as many are drawn as are compared.
_DRAWN_FROM = 100_000
# Why balances differ from the chain's, by `nbext.node.comparison.Cause`.
_MOVES = "it rebases, takes a fee on transfer, or wraps ether (--deposits reads those logs)"
_DIFFERS = {
    "unlogged": f"It moves balances without a Transfer, first in block {{first}}: {_MOVES}. Answers about it are "
                "approximate.",
    "left out": "The node left logs out: block {first} has transfers that it did not answer with. The next fetch reads "
                "all blocks of the contract again: set another node.",
    "unknown": f"It moves balances without a Transfer: {_MOVES}. Or the node left logs out: it does not have the old "
               "states that would show which. Answers about it are approximate.",
}
# Holders of those whose balances differ, of which the first block is sought at which they do.
_LOOKED_INTO = 3
# Times that a node is asked for its latest block where it is behind what another one had.
_TRIES = 5

_EXAMPLES = f"""\
examples:
  {URL_VARIABLE}=https://... nbext fetch --contract UNI
  nbext fetch --contract UNI --contract 0x... --from-block 19000000 --to-block finalized
  nbext fetch --contract UNI --follow

A provider's URL holds its key: set {URL_VARIABLE}, or store it in the system's keyring with
`keyring set nbext {URL_VARIABLE}`. On the command line other users of the machine can read it. Several URLs of one
chain have a space between, and are asked in turn."""


@dataclass(frozen=True)
class Request:
    """What to fetch. Blocks are numbers or words, as on the command line; ``check`` is how many balances to compare."""

    contracts: tuple[str, ...]
    chain: str = "ethereum"
    from_block: str = "deployment"
    to_block: str = "auto"
    follow: bool = False
    confirmations: int | None = None
    deposits: bool = False
    check: int = CHECKED
    rps: float | None = None
    in_flight: int = IN_FLIGHT
    every: float = EVERY
    memory: str = MEMORY


@dataclass
class Output:
    """Where a fetch says what it does: ``say`` takes a line, ``progress`` a text and a share from 0 to 1."""

    say: Callable[[str], None] = print
    progress: Callable[[str, float], None] = field(default=lambda text, share: None)


def urls_of(given: Sequence[str] = ()) -> list[Secret]:
    """Return the URLs of nodes: those given, else NBEXT_RPC_URL, else the keyring's.

    Raises
    ------
    ConfigError
        There is none.
    """
    texts, trouble = " ".join(given) or os.environ.get(URL_VARIABLE, ""), ""
    if not texts.strip():
        texts, trouble = _from_keyring()
    found = [Secret(url) for url in re.split(r"[\s,]+", texts) if url]
    if not found:
        raise ConfigError(f"No node is set. Set {URL_VARIABLE} to its URL, or store it in the system's keyring: "
                          f"`keyring set nbext {URL_VARIABLE}`.{trouble}")
    return found


def _from_keyring() -> tuple[str, str]:
    """Return the URLs that the system's keyring has, or nothing and why it cannot be read."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return "", ' That needs `pip install "nbext[node]"`.'
    try:
        return keyring.get_password("nbext", URL_VARIABLE) or "", ""
    except (KeyringError, OSError, RuntimeError) as error:
        return "", f" The keyring cannot be read ({type(error).__name__})."


def addresses_of(
    contracts: Sequence[str], chain: Chain, fetched: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str | None]:
    """Return the addresses of contracts, and the standards of those that the package knows.

    ``fetched`` are the symbols of contracts that were fetched before, by address.

    Raises
    ------
    ValidationError
        A symbol is not known on the chain, or several contracts bear it; an address is not one.
    """
    from nbext.engine.sample.known import KNOWN

    here = [one for one in KNOWN if one.chain == chain.name]
    standards = {one.address: one.standard for one in here}
    found: dict[str, str | None] = {}
    for text in contracts:
        if looks_like_address(text) or text[:2].lower() == "0x":
            address = normalised(text, "contract")
        else:
            symbols = {**{one.address: one.symbol or "" for one in here}, **fetched}
            named = [address for address, symbol in symbols.items() if symbol.casefold() == text.casefold()]
            if len(named) != 1:
                many = f"several contracts: {', '.join(map(checksummed, named))}." if named else None
                near = did_you_mean(text, filter(None, symbols.values()))
                raise ValidationError.of("contract", "ambiguous" if named else "unknown", (
                    f"{quoted(text)} is the symbol of "
                    f"{many or f'no contract on {chain.name} that nbext knows or has fetched.{near}'} "
                    "Write the 0x... address: anyone can give a contract any symbol."))
            address = named[0]
        found[address] = standards.get(address)
    return found


def fetch(
    urls: Sequence[Secret], request: Request, data_dir: Path, output: Output, *, ending: threading.Event | None = None
) -> None:
    """Fetch contracts' transfers into a data folder, verify balances, and follow the chain where asked to.

    Parameters
    ----------
    ending
        Set by a signal's handler: the fetch ends after what is under way, and what was read is ingested.

    Raises
    ------
    NodeError
        No node answers, its history is pruned, or its answers contradict each other. What was read before is ingested.
    ValidationError
        A contract, block or chain is not allowed.
    QueryCancelled
        It was interrupted, or ended before its last block. What was whole is ingested.
    StorageError
        Another fetch or ingest is at work on the folder.
    ConfigError
        A library of the extra ``node`` is not installed.
    """
    _check_installed()
    from nbext.engine.ingest.run import check_memory
    from nbext.node.coverage import opened
    from nbext.node.rpc import Node, Refusal

    chain = chain_of(request.chain)
    check_memory(request.memory)
    if not request.contracts:
        raise ValidationError.of("contract", "required", "a contract is missing. Write --contract UNI, or 0x....")
    _check_last(request)
    interrupted, refused = False, None
    with opened(data_dir, chain) as coverage:
        standards = addresses_of(request.contracts, chain, coverage.symbols())
        node = Node(urls, rps=request.rps)
        work = _Fetch(node, coverage, request, standards=standards, data_dir=data_dir, output=output,
                      ending=ending or threading.Event())
        try:
            _check_chain(node, chain, output)
            work.run()
        except KeyboardInterrupt:
            # Not as its context: the libraries' frames hold the URL, and some tracebacks print them.
            interrupted = True
        except Refusal as refusal:
            refused = refusal.as_error()
        finally:
            node.close()
    if refused is not None:
        raise refused
    if interrupted:
        raise QueryCancelled(f"The fetch was interrupted. {work.kept()}")


def _check_installed() -> None:
    if not all(importlib.util.find_spec(name) for name in ("duckdb", "ibis")):
        raise ConfigError("A fetch ingests what it reads, and the libraries for that are not installed: pip install "
                          '"nbext[node]"')


def _check_last(request: Request) -> None:
    """Refuse words that contradict each other on where to end."""
    if request.follow and request.to_block.isdecimal():
        raise ValidationError.of("to_block", "follow", f"--follow has no last block, and --to-block {request.to_block} "
                                 "is one. Leave one of them out, or write --to-block latest or finalized.")
    if request.confirmations is not None and request.to_block not in ("auto", "latest"):
        raise ValidationError.of("confirmations", "to_block", f"--confirmations counts from the latest block, and "
                                 f"--to-block {request.to_block} says another last one. Leave one of them out.")


def _check_chain(node: Node, chain: Chain, output: Output) -> None:
    """Refuse a node of another chain; leave out one that does not answer, where others do."""
    from nbext.node.rpc import Refusal, quantity

    answers = node.of_each("eth_chainId")
    refused = [answer for answer in answers.values() if isinstance(answer, Refusal)]
    if len(refused) == len(answers):
        raise refused[-1].as_error(refused[:-1])
    for refusal in refused:
        output.say(f"{refusal} It is left out.")
    for name, answer in answers.items():
        if not isinstance(answer, Refusal) and (found := quantity(answer, "chain id")) != chain.id:
            raise NodeError(f"{name.capitalize()} has the chain id {found}, and --chain {chain.name} means {chain.id}.")
    if len(node.places) > 1:
        # Anybody may give a chain any id.
        blocks = node.of_each("eth_getBlockByNumber", "0x0", False)
        hashes = {name: block.get("hash") for name, block in blocks.items() if isinstance(block, Mapping)}
        if len(set(hashes.values())) > 1:
            raise NodeError(f"The nodes are of different chains: block 0 is not the same at {', '.join(hashes)}.")


class _Fetch:
    """One run of `fetch`."""

    def __init__(
        self, node: Node, coverage: Coverage, request: Request, *, standards: Mapping[str, str | None],
        data_dir: Path, output: Output, ending: threading.Event,
    ) -> None:  # fmt: skip
        from nbext.node.contracts import DEPOSIT, TRANSFERS, WITHDRAWAL
        from nbext.node.reader import Reader

        self.node, self.coverage, self.request, self.data_dir, self.output = node, coverage, request, data_dir, output
        self.standards, self.ending = standards, ending
        self.ingested = False
        topics = (*TRANSFERS, *((DEPOSIT, WITHDRAWAL) if request.deposits else ()))
        self.topics = dict.fromkeys(standards, topics)
        self.reader: Reader = Reader(
            node, coverage, dict(self.topics), request.in_flight,
            lambda progress: output.progress(progress.text, progress.share), ending=ending)

    def run(self) -> None:
        """Read what is missing; then go on as the chain does, where asked to."""
        from nbext.node.rpc import Refusal

        self._forget_what_was_removed()
        # Of contracts that a killed run has read too: their parts are ingested with those of this one.
        self.cards = self._cards({**self.coverage.in_parts(), **self.topics})
        last = self._last()
        self.firsts = {address: self._first(address, last) for address in self.topics}
        self._read(last)
        if self.ending.is_set() and not self.request.follow and self.reader.plan(self.firsts, last):
            raise QueryCancelled(f"The fetch was ended before block {last:,}. {self.kept()}")
        if not self.ingested and not self.ending.is_set():
            self.output.say(f"Nothing new: {', '.join(map(self._name, self.topics))} to block {last:,}.")
        self._verify(last)
        while self.request.follow and not self.ending.wait(self.request.every):
            try:
                self._read(self._last())
            except (NodeError, Refusal) as why:
                # A node that is away for a while is no reason to end: what follows is a service.
                error = why.as_error() if isinstance(why, Refusal) else why
                self.output.say(f"{error} Trying again in {self.request.every:g} s.")
        if self.request.follow:
            self.output.say(f"The fetch was ended. {self.kept()}")

    def kept(self) -> str:
        """Return what became of the blocks that were read, for a fetch that ends early."""
        stored = "What was whole is ingested" if self.ingested else "Nothing new was whole"
        return f"{stored}; the same words go on from there."

    def _forget_what_was_removed(self) -> None:
        from nbext.engine import storage

        served = storage.current(self.data_dir)
        taken = {entry["path"]: entry.get("replaced_from") for entry in served.manifest["files"]} if served else {}
        lost = self.coverage.only_those_in(taken)
        if lost:
            names = ", ".join(map(self._name, lost))
            self.output.say(f"Files of {names} are no longer in the data, and are read again.")

    def _cards(self, addresses: Mapping[str, Any]) -> list[Card]:
        from nbext.node.contracts import read_cards

        known = {address: standard for address, standard in self.standards.items() if standard}
        return read_cards(self.node, sorted(addresses), known)

    def _name(self, address: str) -> str:
        card = self.coverage.about.get(address, {}).get("card") or [None, None, None]
        return f"{visible(card[2] or 'the contract', 40)} ({checksummed(address)})"

    def _last(self) -> int:
        """Return the block to read to."""
        from nbext.node.contracts import head_of
        from nbext.node.rpc import quantity

        stored = max(self.coverage.recent(), default=0)
        for attempt in range(_TRIES):
            latest = quantity(self.node.call("eth_blockNumber"), "block number")
            # Behind a balancer the next node may be some blocks behind the last one; a reorganised chain may be, too.
            if latest >= stored or self.reader.fork() is not None:
                break
            self.node.turn()
            if self.ending.wait(0.2 * 2**attempt):
                break
        else:
            raise NodeError(f"The node's latest block, {latest:,}, is before block {stored:,}, which was read earlier. "
                            "It is behind.", meaning="BEHIND")
        wanted = self.request.to_block
        if not wanted.isdecimal():
            return head_of(self.node, wanted, self.request.confirmations)
        if int(wanted) > latest:
            raise ValidationError.of("to_block", "range", f"--to-block {int(wanted):,} is after the chain's last, "
                                     f"{latest:,}.")
        return int(wanted)

    def _first(self, address: str, last: int) -> int:
        """Return the block to read a contract from."""
        from nbext.node.contracts import deployment

        if self.request.from_block.isdecimal():
            first = int(self.request.from_block)
            if first > last:
                raise ValidationError.of("from_block", "range", f"--from-block {first:,} is after the last block to "
                                         f"read, {last:,}.")
            return first
        about = self.coverage.about.setdefault(address, {})
        if about.get("deployed") is None:
            found = deployment(self.node, address, last)
            if found is None:
                # Not stored: an archive node, asked later, knows it.
                self.output.say(f"{self._name(address)}: the node does not have the old states that would show when it "
                                "was deployed. An archive node has. Its logs are read from block 0 on, or from "
                                "--from-block N.")
                return 0
            about["deployed"] = found
        return int(about["deployed"])

    def _read(self, last: int) -> None:
        """Read and ingest what is missing up to a block, in steps."""
        while True:
            self._notice_reorganisation()
            for address in self.coverage.owed:
                self.reader.topics = {address: self.coverage.events_of(address), **self.reader.topics}
                self.firsts.setdefault(address, self.coverage.replacing or 0)
            plan = self.reader.plan(self.firsts, last)
            error: BaseException | None = None
            try:
                self.reader.read(plan, last)
            except (NodeError, KeyboardInterrupt) as stopped:
                error = stopped
            # Another reorganisation while it was read: its parts are dropped, and read again.
            if error is None and self.reader.fork() is not None:
                continue
            self._ingest()
            if error is not None:
                raise error
            if not plan or self.ending.is_set():
                return

    def _notice_reorganisation(self) -> None:
        fork = self.reader.fork()
        if fork is not None:
            self.coverage.drop_from(fork)
            self.output.say(f"The chain was reorganised: blocks from {fork:,} on are read again and replaced.")

    def _ingest(self) -> None:
        """Ingest the parts, and count them as covered."""
        import pyarrow as pa

        from nbext.engine.ingest import ingest
        from nbext.node.coverage import about_cards

        deployed = {address: about.get("deployed") for address, about in self.coverage.about.items()}
        step = self.coverage.joined(self.cards, deployed)
        if step is None:
            return
        # Arrow would hold on to what the reading needed.
        pa.default_memory_pool().release_unused()
        # Before its deployment a contract has no transfer.
        complete = {address: [(0 if first <= (deployed.get(address) or 0) else first, end)
                              for first, end in self.coverage.covered(address, topics)]
                    for address, topics in {**self.coverage.in_parts(), **self.topics}.items()}
        report = ingest(step.files, self.coverage.chain.name, self.data_dir, replace_from=self.coverage.replacing,
                        covered=complete, memory=self.request.memory,
                        progress=lambda step, done: self.output.progress(f"ingest: {step}", done))
        # A file of ours that is refused, or a row of it that cannot be stored, would be a hole behind what is covered.
        if report.refused:
            raise report.refused[0]
        if report.bad_rows:
            raise IngestError(f"{report.bad_rows:,} of the fetched rows could not be stored, and are listed in "
                              f"{report.bad_path}.", path=report.bad_path or "")
        self.coverage.commit(step, about_cards(self.cards))
        self.ingested = True
        ranges = {address: spans for address, spans in step.covers.items() if spans}
        for address, spans in ranges.items():
            read = " and ".join(f"{first:,} to {end:,}" for first, end in spans)
            self.output.say(f"{self._name(address)}: blocks {read}.")
        for line in report.removed:
            self.output.say(f"replaced: {line}")
        self.output.say(f"{report.new:,} new transfers are ingested. Services that run on this folder serve them "
                        "within two seconds.")

    def _verify(self, last: int) -> None:
        """Compare balances of holders with what the contract says at that block."""
        from nbext.engine.ingest.run import record_compared
        from nbext.engine.open import open_dataset

        # Without the first transfers no balance can be equal.
        whole = [address for address, topics in self.topics.items()
                 if any(first <= (self.coverage.about.get(address, {}).get("deployed") or 0) and end >= last
                        for first, end in self.coverage.covered(address, topics))]
        if not self.request.check or not whole:
            return
        compared, left_out = {}, []
        dataset = open_dataset(self.data_dir)
        try:
            for address in whole:
                line, found = self._compared(dataset, address, last)
                if found:
                    compared[address] = found
                    self.coverage.about[address]["check"] = asdict(found)
                if found and found.cause == "left out":
                    left_out.append(f"{self._name(address)}: {line}")
                    self.coverage.forget(address)
                else:
                    self.output.say(f"{self._name(address)}: {line}")
        finally:
            dataset.close()
        self.coverage.save()
        # Answers about those that differ say so from now on.
        record_compared(self.data_dir, self.coverage.chain, compared)
        if left_out:
            raise NodeError(" ".join(left_out), meaning="LEFT_OUT")

    def _compared(self, dataset: Dataset, address: str, block: int) -> tuple[str, Compared | None]:
        """Return how balances compare, in words and as it is stored; nothing to store where they were not compared."""
        from nbext.engine.dataset import Compared
        from nbext.node.comparison import Cause, Parting, parting, supply_differs
        from nbext.node.contracts import balances
        from nbext.node.windows import Wanted

        standard = (self.coverage.about[address].get("card") or ["ERC20"])[0]
        holders = _holders(dataset, self.coverage.chain, address, standard, block)
        drawn = random.SystemRandom().sample(sorted(holders), min(self.request.check, len(holders)))
        # Of ERC1155 the contract knows only the balance of each token id: those are summed that a wallet was sent.
        ids = self.coverage.ids_sent_to(address, drawn) if standard == "ERC1155" else {}
        asked = [(wallet, number) for wallet in drawn for number in ids.get(wallet, [None])]
        try:
            said = list(balances(self.node, address, asked, block))
            # Whoever was sent nothing that is stored is not drawn: the supply has them, too.
            of_all = standard == "ERC20" and supply_differs(self.node, self.coverage, address, block)
        except NodeError as error:
            return f"balances were not compared: {error}", None
        sums = dict.fromkeys(drawn, 0)
        for (wallet, _), amount in zip(asked, said, strict=True):
            # A contract that does not answer has no balance that could be equal.
            sums[wallet] += -1 if amount is None else amount
        wrong = [wallet for wallet, amount in sums.items() if holders[wallet] != amount]
        partings = [Parting(Cause.UNKNOWN)] if wrong and standard == "ERC1155" else [
            parting(self.node, self.coverage, Wanted((address,), tuple(self.topics[address])), wallet,
                    first=self._first(address, block), last=block)
            for wallet in (*wrong[:_LOOKED_INTO], *([ZERO_ADDRESS] if of_all else []))]
        line = f"{len(drawn) - len(wrong)} of {len(drawn)} balances equal the chain's at block {block:,}."
        if not drawn:
            line = f"nobody has a balance at block {block:,}."
        found = next((one for one in partings if one.cause is Cause.LEFT_OUT), partings[0] if wrong else None)
        if found is not None:
            line += " " + _DIFFERS[found.cause.value].format(first=f"{found.block:,}" if found.block else "")
        return line, Compared(block, len(drawn) - len(wrong), len(drawn), None if found is None else found.cause.value)


def _holders(dataset: Dataset, chain: Chain, address: str, standard: str, block: int) -> dict[str, int]:
    """Return the balances of a contract's holders in the data at a block, up to a bound."""
    from nbext.language.language import compile, parse, resolve  # noqa: A004  the step's name

    kind = "token" if standard == "ERC20" else "nft"
    filters = {kind: {kind: address}, "chain": chain.name, "asOf": block}
    plan = resolve(parse({"filters": filters, "limit": _DRAWN_FROM}), dataset)
    table = dataset.ask(compile(plan), limit=_DRAWN_FROM).rows
    exact = [name for name in table.column_names if name != "address"]
    column = next((name for name in exact if name.endswith("_raw")), exact[0])
    return dict(zip(table["address"].to_pylist(), map(int, table[column].to_pylist()), strict=True))


def add_arguments(parser: argparse.ArgumentParser, *, on_a_terminal: bool = True) -> None:
    """Declare the command's arguments; in a notebook those that need no terminal, and no URL."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    if on_a_terminal:
        parser.epilog = _EXAMPLES
        parser.add_argument("--rpc", action="append", default=[], metavar="URL",
                            help=f"the URL of a node of your own (one that holds a key: set {URL_VARIABLE}); repeat "
                                 "the option for several of one chain")
        parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    parser.add_argument("--contract", action="append", required=True, type=_no_url(str), metavar="SYMBOL|0x...",
                        help="a token or collection: its address, or a symbol that nbext knows or has fetched; repeat "
                             "the option for several")
    parser.add_argument("--chain", default=Request.chain, type=_no_url(str), metavar="CHAIN",
                        help="the chain's name or id, which the node's must be (default: %(default)s)")
    parser.add_argument("--from-block", type=_no_url(_block("deployment")), default=Request.from_block,
                        metavar="N|deployment", help="the first block (default: deployment, which is looked up)")
    parser.add_argument("--to-block", type=_no_url(_block("latest", "finalized", "auto")), default=Request.to_block,
                        metavar="N|latest|finalized|auto",
                        help="the last block (default: auto, which is the finalized one where the node knows it, else "
                             "12 before the latest)")
    parser.add_argument("--follow", action="store_true",
                        help="then read each new block, and replace those that a reorganisation orphans, until SIGTERM "
                             "or Ctrl-C")
    parser.add_argument("--confirmations", type=_no_url(_whole), metavar="N",
                        help="read to N blocks before the latest one")
    parser.add_argument("--every", type=_no_url(_above_zero), default=EVERY, metavar="S",
                        help="with --follow: ask for new blocks every S seconds (default: %(default)g)")
    parser.add_argument("--deposits", action="store_true",
                        help="also read Deposit and Withdrawal, which are the mints and burns of wrapped ether")
    parser.add_argument("--check", type=_no_url(_whole), default=CHECKED, metavar="N",
                        help="after a fetch from deployment compare the balances of N holders with the contract's own "
                             "(default: %(default)s; 0: of none)")
    parser.add_argument("--rps", type=_no_url(_above_zero), metavar="N",
                        help="send at most N calls a second (default: as many as the node takes)")
    parser.add_argument("--in-flight", type=_no_url(_at_least_one), default=IN_FLIGHT, metavar="N",
                        help="send up to N requests at once (default: %(default)s)")
    parser.add_argument("--memory", default=MEMORY, type=_no_url(str), metavar="SIZE",
                        help="the memory that ingest may use, such as 512MB; the rest goes to the disk (default: "
                             "%(default)s)")
    parser.add_argument("--data", metavar="DIR", type=_no_url(data_folder),
                        help="the data folder (default: NBEXT_DATA_DIR, else your user data folder)")


def _no_url(read: Callable[[str], T]) -> Callable[[str], T]:
    """Return the type of an argument that takes no URL: what is wrong with a word is said by repeating it."""
    def checked(text: str) -> T:
        if could_be_url(text):
            raise argparse.ArgumentTypeError(
                f"a URL was given, which is not shown: it may hold a key. Set {URL_VARIABLE} to a node's URL. Write ./ "
                "before the name of a folder that looks like a URL.")
        return read(text)

    return checked


def _block(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        digits = text.replace(",", "").replace("_", "")
        if text in words or re.fullmatch(r"\d{1,15}", digits):
            return text if text in words else str(int(digits))
        raise argparse.ArgumentTypeError(f"{quoted(text, 40)} is not a block. Write a number, or {' or '.join(words)}.")

    return read


def _whole(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text):
        raise argparse.ArgumentTypeError(f"{quoted(text, 40)} is not a whole number from 0.")
    return int(text)


def _at_least_one(text: str) -> int:
    if (number := _whole(text)) < 1:
        raise argparse.ArgumentTypeError("0 is not a whole number from 1.")
    return number


def _above_zero(text: str) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text) or not float(text):
        raise argparse.ArgumentTypeError(f"{quoted(text, 40)} is not a number above 0.")
    return float(text)


def read(args: argparse.Namespace) -> tuple[Request, Path | None]:
    """Return what parsed arguments ask for, and the data folder that they name."""
    names = Request.__dataclass_fields__.keys() - {"contracts"}
    return Request(tuple(args.contract), **{name: getattr(args, name) for name in names}), args.data


def run(args: argparse.Namespace) -> int:
    """Fetch, until the end or SIGTERM."""
    _check_installed()
    from nbext.engine.ingest.command import bar

    urls = urls_of(args.rpc)
    ending = threading.Event()
    former = signal.signal(signal.SIGTERM, lambda *_: ending.set())
    request, folder = read(args)
    try:
        with bar(quiet=args.quiet) as progress:
            output = Output(lambda line: print(line, flush=True), progress or (lambda text, share: None))
            fetch(urls, request, folder or default_data_dir(Settings()), output, ending=ending)
    except QueryCancelled as cancelled:
        print(cancelled, file=sys.stderr)
        return 143 if ending.is_set() else 130  # as a shell has it: 128 and the number of SIGTERM, or of SIGINT
    finally:
        signal.signal(signal.SIGTERM, former)
    return 0
