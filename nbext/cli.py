"""The ``nbext`` command: one table of subcommands, each in the room that does its work."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pkgutil import resolve_name
from typing import NoReturn

from nbext import __version__
from nbext.errors import NbextError
from nbext.settings import without_urls

# name -> (module, or object in one, with add_arguments(parser) and run(args) -> int; one line of help). It is imported
# when its command runs: `nbext --help` answers at once, and `nbext schema` loads neither FastAPI nor pandas.
COMMANDS = {
    "serve": ("nbext.service.commands.serve", "serve the eight operations over HTTP"),
    "policy": (
        "nbext.service.commands.policy",
        "print or change what the service stores, and for how long",
    ),
    "keys": ("nbext.service.commands.keys", "add, list, rotate and revoke API keys of the service"),
    "signups": ("nbext.service.commands.signups", "export or delete newsletter sign-ups"),
    "audit": (
        "nbext.service.commands.audit",
        "print who did what with segments, keys and sign-ups",
    ),
    "backup": (
        "nbext.service.commands.backup",
        "copy the service's registry and results to a folder",
    ),
    "check": (
        "nbext.service.commands.check",
        "check the stored data and results, and report what is damaged",
    ),
    "ingest": (
        "nbext.engine.ingest.command:INGEST",
        "ingest chain data: transfers, tokens, token lists, holders",
    ),
    "fetch": ("nbext.fetch.command", "fetch transfers from a node's JSON-RPC URL, and ingest them"),
    "sources": (
        "nbext.engine.ingest.command:SOURCES",
        "list the files that were ingested, and how each was read",
    ),
    "remove": (
        "nbext.engine.ingest.command:REMOVE",
        "take a file that was ingested out of the data",
    ),
    "compact": (
        "nbext.engine.ingest.command:COMPACT",
        "fold what ingest has added into one base, for the fastest queries",
    ),
    "mcp": (
        "nbext.agents.server",
        "serve an agent over stdin and stdout: the Model Context Protocol",
    ),
    "payout": ("nbext.payouts.payout", "verify the folder of a payout: ask its request again"),
    "examples": ("nbext.notebook.run.examples", "copy the example notebooks to a folder"),
    "schema": ("nbext.language.json_schema", "print the JSON Schema of segment filters"),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # argparse repeats what it does not know: a node's URL, or a database's, in the wrong place would show its key.
        super().error(without_urls(message))


def parser() -> argparse.ArgumentParser:
    """Build the command line, one subcommand for each entry of COMMANDS."""
    top = _Parser(prog="nbext", description="Wallet segments and chain metadata.")
    top.add_argument("--version", action="version", version=f"nbext {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_, line) in COMMANDS.items():
        commands.add_parser(name, help=line, add_help=False)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code; an error is one line on stderr, and code 2."""
    words = list(sys.argv[1:] if argv is None else argv)
    known, rest = parser().parse_known_args(words[:1])[0], words[1:]
    place, line = COMMANDS[known.command]
    try:
        command = resolve_name(place)
        own = _Parser(prog=f"nbext {known.command}", description=line)
        command.add_arguments(own)
        return int(command.run(own.parse_args(rest)))
    except NbextError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        # About a file that the user named: one of our own files is reported as StorageError.
        print(f"{error.filename or known.command}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130  # as a shell has it: 128 and the number of SIGINT


if __name__ == "__main__":
    sys.exit(main())
