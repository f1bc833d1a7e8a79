"""``%nbext fetch``: the command's words, without the URL, which no notebook should keep."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from nbext.errors import UsageError
from nbext.fetch import command
from nbext.fetch.request import URL_VARIABLE, Output, check_installed, urls_of
from nbext.notebook.line.options import Args
from nbext.settings import could_be_url

if TYPE_CHECKING:
    from nbext.notebook.session import Session

_REFUSED = (
    f"Do not write a node's URL in a cell: it holds your key, and the notebook would store it. Set {URL_VARIABLE} "
    f"before you start Jupyter, or store it in the system's keyring: `keyring set nbext {URL_VARIABLE}`."
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # argparse would end the process.
        raise UsageError(f"%nbext fetch: {message}. `%nbext fetch --help` lists the options.")


def run(session: Session, args: Args, words: list[str]) -> None:
    """Run ``%nbext fetch WORDS``, with a bar; interrupted, what is whole is ingested."""
    # Before anything else: an error about a word would repeat it.
    if any(word.startswith("--rpc") or could_be_url(word) for word in words):
        raise UsageError(f"%nbext fetch: {_REFUSED}")
    parser = _parser()
    if not words or {"-h", "--help"} & set(words):
        print(parser.format_help())
        return
    check_installed()
    from nbext.fetch.run import fetch

    request, folder = command.read(parser.parse_args(words))
    if request.follow:
        _say(
            "--follow holds this kernel until you interrupt it. `nbext fetch --follow` in a terminal leaves it free, "
            "and its cells see each new block."
        )
    with session.bar("fetch") as bar:
        fetch(urls_of(), request, folder or session.data_dir, Output(_say, bar.at))


def flags() -> list[str]:
    """Return the options that a line may have, for completion."""
    return sorted(flag for action in _parser()._actions for flag in action.option_strings)


def _parser() -> _Parser:
    parser = _Parser(prog="%nbext fetch", add_help=False, allow_abbrev=False)
    command.add_arguments(parser, on_a_terminal=False)
    return parser


def _say(line: str) -> None:
    # At once: the next line may be minutes away.
    print(line, flush=True)
