"""The page of the ``nbext`` command: each subcommand's options, and an example of each with what it prints."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from pkgutil import resolve_name
from unittest import mock

import nbext
from nbext import cli, embedded
from nbext.engine.ingest.formats import CHAIN_NAMES, formats
from notebooks.example_files import write_example_files
from tests.reference import table
from tests.reference.shown import cut, transcript

# A list of somebody's own, whose columns have names of theirs.
HOLDERS = f"holder,amount\n0x{'a1':0>40},12.5\n0x{'a2':0>40},3\n"
PAID = f"""src,dst,qty,day,txid
0x{"a1":0>40},0x{"a2":0>40},2.5,31/12/2025,0x{"b1":0>64}
"""
UNI = "0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984"
# Each command's lines, in the order in which they run, in one folder.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "ingest": (
        "nbext ingest chain-data/ethereum/*.csv --chain ethereum --memory 1GB --quiet",
        "nbext ingest chain-data/token_list.json --quiet",
        f"nbext ingest holders.csv --chain base --token {UNI} --map holder=HolderAddress,amount=Balance --decimals 18 "
        "--unit token --block 40000000 --data base --quiet",
        f"nbext ingest holders.csv --chain base --token {UNI} --map holder=HolderAddress,amount=Balance --decimals 18 "
        "--date 2025-12-01 --data base --quiet",
        "nbext ingest paid.csv --chain base --token USDC --map from=src,to=dst,amount=qty,time=day,hash=txid "
        "--date-format %d/%m/%Y --dry-run --data paid --quiet",
        "nbext ingest chain-data/ethereum/token_transfers.csv --chain ethereum --replace-from 24000000 --quiet",
    ),
    "sources": ("nbext sources", "nbext sources --data base"),
    "remove": (
        "nbext remove token_list.json --memory 1GB --quiet",
        "nbext remove --all --chain base --data base",
    ),
    "compact": ("nbext compact --memory 1GB --quiet",),
    "serve": (
        "nbext serve --data base --host 127.0.0.1 --port 8080 --allow-host segments.example.org --root-path /nbext "
        "--proxy-headers 10.0.0.0/8",
        "nbext serve --engine 'duckdb://?memory=2GB' --processes 2 --workers 4 --query-seconds 60 --keep-days 7 "
        "--audit-days 90 --keep-gib 50 --key-gib 10 --lists-gib 8",
    ),
    "policy": (
        "nbext policy",
        "nbext policy --keep-days 7 --audit-days 90 --keep-gib 50 --key-gib 10 --lists-gib 8",
    ),
    "keys": (
        "nbext keys add ada --scope read --scope execute --rate 60/minute --expires 90d --private",
        "nbext keys list",
        "nbext keys rotate ada --grace 1h --expires 30d",
        "nbext keys revoke ada",
    ),
    "signups": (
        "nbext signups export",
        "nbext signups export --to signups.csv",
        "nbext signups delete a@example.com",
    ),
    "audit": ("nbext audit --since 7d", "nbext audit --key ada"),
    "backup": ("nbext backup copy",),
    "check": ("nbext check", "nbext check --give-up"),
    "mcp": ("nbext mcp --folder .",),
    "examples": ("nbext examples", "nbext examples --overwrite", "nbext examples my-notebooks"),
    "schema": ("nbext schema activity",),
    "payout": ("nbext payout verify payout",),
}
# These need a cluster, a database, a node, or a notebook that has run.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "ingest": (
        "nbext ingest chain-data/ethereum/*.csv --chain ethereum --engine spark://10.0.0.5:7077 "
        "--spark-conf spark.executor.memory=4g --data s3a://BUCKET/nbext",
    ),
    "serve": (
        "nbext serve --engine spark://10.0.0.5:7077 --spark-conf spark.executor.memory=4g --data s3a://BUCKET/nbext",
    ),
    "keys": ("nbext keys list --registry postgresql://nbext@10.0.0.7/nbext",),
    "check": ("nbext check --notebook",),
}
# Options that mean the same wherever they are.
SHARED = ("--data", "--registry", "--notebook", "--memory", "--quiet", "--spark-conf")
# What is another one in each run: a key, an id, a time, a generation, a duration.
_CHANCE = (
    (r"nbx_[\w-]+", "nbx_..."),
    (r"\b[0-9a-f]{12}(?=  ada|\)|\")", "9f2c51d07ab3"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"\b(\d{6})-[0-9a-f]{16}", r"\1"),
    (r"\d+\.\d s\.", "1.0 s."),
)


def page() -> str:
    """Return the page: the options of several commands, then each command with its own and its examples."""
    shared: dict[str, str] = {}
    sections = []
    with _folder():
        for name in EXAMPLES:
            rows = [row for command in parsers(name) for row in _rows(command, shared)]
            options = "\n" + table(["option", "what it does"], rows) if rows else ""
            if name == "ingest":
                options += f"\n{_formats()}"
            sections.append(
                f"\n## nbext {name}\n\n{_sentence(cli.COMMANDS[name][1])}\n{options}\n{_examples(name)}"
            )
    return (
        "# Commands\n\n"
        "`nbext COMMAND --help` shows these options in a terminal; [`nbext fetch`](node.md) has a page of its own. The "
        "examples run one after the other, in a folder with files as ethereum-etl exports them, a token list "
        "(`chain-data/`), a list of holders and a table of payments; `...` ends what is longer.\n\n"
        "Options of several commands:\n\n"
        + table(
            ["option", "what it does"], [[f"`{option}`", text] for option, text in shared.items()]
        )
        + "".join(sections)
    )


def parsers(name: str) -> list[argparse.ArgumentParser]:
    """Return the parser of a subcommand, or those of its own subcommands."""
    parser = argparse.ArgumentParser(prog=f"nbext {name}", add_help=False)
    resolve_name(cli.COMMANDS[name][0]).add_arguments(parser)
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return list(inner[0].choices.values()) if inner else [parser]


def _rows(parser: argparse.ArgumentParser, shared: dict[str, str]) -> list[list[str]]:
    """Return a row for each option of a command's own; those of several commands go into ``shared``."""
    rows = []
    sub = parser.prog.split()[2:]
    for action in parser._actions:
        if "-h" in action.option_strings:
            continue
        name = action.option_strings[0] if action.option_strings else ""
        wanted = action.metavar or (
            "|".join(action.choices) if action.choices else action.dest.upper()
        )
        spelled = " ".join(
            [*([] if name in SHARED else sub), name, "" if action.nargs == 0 else str(wanted)]
        ).strip()
        text = (action.help or "the address") % {"default": action.default}
        if name in SHARED:
            shared.setdefault(spelled, text)
        else:
            rows.append([f"`{' '.join(spelled.split())}`", text])
    return rows


def _formats() -> str:
    rows = [[kind.name, kind.described().replace("|", " or ")] for kind in formats()]
    chain = ", ".join(CHAIN_NAMES)
    return (
        "A format's columns, with those that a file may lack in brackets. A file of any of them may have one that "
        f"names the chain of its rows, by the first of these that it has: {chain}. "
        "A row of a transfer that a column `removed` says a node took back is a bad row.\n\n"
        + table(["format", "columns"], rows)
    )


def _sentence(line: str) -> str:
    return f"{line[0].upper()}{line[1:]}."


@contextlib.contextmanager
def _folder():  # type: ignore[no-untyped-def]
    with tempfile.TemporaryDirectory(prefix="nbext-pages-") as folder, contextlib.chdir(folder):
        environ = {"NBEXT_DATA_DIR": "data", "PYTHONPATH": os.pathsep.join(sys.path)}
        with mock.patch.dict(os.environ, environ):
            write_example_files("chain-data")
            Path("holders.csv").write_text(HOLDERS, "utf-8")
            Path("paid.csv").write_text(PAID, "utf-8")
            yield


def _examples(name: str) -> str:
    shown = transcript((line, _output(line)) for line in EXAMPLES[name])
    if name not in ELSEWHERE:
        return shown
    return f"{shown}\nWith a cluster or a database:\n\n" + transcript(
        (line, "") for line in ELSEWHERE[name]
    )


def _output(line: str) -> str:
    words = shlex.split(line)[1:]
    words = [
        path
        for word in words
        for path in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
    ]
    text = {"payout": _verified, "serve": _served, "mcp": _served}.get(words[0], _printed)(words)
    for pattern, instead in ((re.escape(f"{Path.cwd()}/"), ""), *_CHANCE):
        text = re.sub(pattern, instead, text)
    return cut(text) or "(prints nothing)"


def _printed(words: list[str]) -> str:
    """Return what a command prints, errors among it."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        cli.main(words)
    return said.getvalue()


def _verified(words: list[str]) -> str:
    """Return what the command prints of a payout that is made for it."""
    rows = nbext.connect().execute_segment({"token": {"token": UNI}}, limit="all")
    nbext.payout(rows, "1000000", UNI, "proportional", at_least="1")
    try:
        return _printed(words)
    finally:
        embedded.start_service(Path("data")).stop()


def _served(words: list[str]) -> str:
    """Return the line in which a service says where it answers; on a port that is free, and with nothing to read."""
    words = ["0" if word == "8080" else word for word in words]
    with subprocess.Popen(
        [sys.executable, "-m", "nbext.cli", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.DEVNULL,
    ) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        running.wait(30)
    return line
