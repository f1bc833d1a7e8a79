"""What an agent asked through ``nbext mcp``: its history in the user's data folder, and the commands that show it."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbext.core.atomic_files import PRIVATE
from nbext.core.strict_json import NotJson, parse, to_json
from nbext.errors import UsageError
from nbext.notebook.line import Args, Command, Option
from nbext.notebook.results.deliver import own_table, put
from nbext.notebook.session import OF_THE_CONNECTION

if TYPE_CHECKING:
    from nbext.notebook.session import Session

HISTORY, EARLIER = "agent.jsonl", "agent.1.jsonl"
# Bytes of the file in which questions are added, and of one question: two such files are all that is stored.
MOST_BYTES, MOST_OF_ONE = 1 << 20, 1 << 16
OPTION = Option(
    "--agent",
    "what agents asked through `nbext mcp`; with a number, write that one into the next cell",
)
# The limit of a segment's cell, where the question says none; what Python calls otherwise than a tool.
_LIMITS = {"count": 0, "explain": 0, "run": 20, "export": None}
_NAMES = {"searchTerm": "term", "wallets": "address", "asOf": "as_of"}


def record(folder: Path, tool: str, asked: Mapping[str, Any], said: str, opens: bool) -> None:
    """Add a question to the history, what was said to it, and whether a cell may ask it again."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    entry = {"at": at, "tool": tool[:80], "answer": said[:1_000], "opens": opens}
    line = to_json({**entry, "asked": asked})
    if len(line) > MOST_OF_ONE:
        line = to_json({**entry, "asked": "more than is stored of a question", "opens": False})
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / HISTORY
    if path.exists() and path.stat().st_size > MOST_BYTES:
        path.replace(folder / EARLIER)
    path.touch(PRIVATE)
    # One write of a whole line: several servers may add to the file.
    with path.open("ab", buffering=0) as file:
        file.write(line + b"\n")


def recorded(folder: Path) -> list[dict[str, Any]]:
    """Return what agents asked, the first question first; of a damaged line only that it is one."""
    found: list[dict[str, Any]] = []
    for path in (folder / EARLIER, folder / HISTORY):
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                found.append(parse(line.decode(), float))
            except (NotJson, UnicodeDecodeError):
                found.append({"answer": "This line of the history is damaged."})
    return found


def questions(session: Session, args: Args, number: int | None) -> Any:
    """List what agents asked, or write one of their questions into the next cell."""
    if idle := args.given("card", *["out"] * (number is not None)):
        raise UsageError(f"%nbext history: {idle[0]} has no effect with --agent. Leave it out.")
    asked = recorded(session.data_dir)
    if number is None:
        rows = [
            {**one, "number": place, "asked": json.dumps(one.get("asked"))}
            for place, one in enumerate(asked, 1)
        ]
        print("`%nbext history N --agent` writes number N into the next cell.")
        return put(session, args, own_table(rows, ["number", "at", "tool", "asked", "answer"]))
    if not 1 <= number <= len(asked):
        raise UsageError(f"%nbext: there is no question {number}. Agents asked {len(asked)}.")
    question = asked[number - 1]
    # A refused one may name files, which a cell would read.
    if not question.get("opens"):
        raise UsageError(f"%nbext: question {number} was refused, or is not stored whole.")
    session.shell.set_next_input(cell_of(question["tool"], question["asked"]), replace=False)
    return None


def cell_of(tool: str, asked: Mapping[str, Any]) -> str:
    """Return the cell that asks an agent's question again.

    Its values are a stranger's: they become literals of Python, in ASCII, or JSON in which no expression can hide.
    """
    filters, operator = asked.get("filters", {}), asked.get("operator", "AND")
    if tool in _LIMITS:
        # It loads the forms' modules.
        from nbext.notebook.forms.builder.filters import cell_text

        return cell_text("", filters, operator, asked.get("limit", _LIMITS[tool]))
    if tool == "describe":
        return "%nbext schema"
    words = [
        f"{_NAMES.get(key, key)}={value!a}"
        for key, value in asked.items()
        if key not in ("filters", "operator")
    ]
    if filters:
        words.insert(0, f"{ {'filters': filters, 'operator': operator}!a}")
    call = "connect().search_nfts" if tool == "search" else tool
    return f"import nbext\n\nnbext.{call}({', '.join(words)})"


@Command(
    "mcp",
    "[DIR]",
    "print the configuration by which an agent asks this service; DIR is where it may write files",
    elsewhere=("%nbext mcp",),
)
def _mcp(session: Session, args: Args, folder: str | None = None) -> None:
    where = ["--folder", str(Path(folder).expanduser().absolute())] if folder else []
    found = {name: session.settings.where(name) for name in OF_THE_CONNECTION}
    given = {name: value for name, (value, source) in found.items() if source != "default"}
    if given.pop("remote", None):
        print(
            "Settings under `remote` are read from the pyproject.toml of the folder that it starts in."
        )
    # Its home may be another.
    given["data_dir"] = session.data_dir
    env = {f"NBEXT_{name.upper()}": str(value) for name, value in given.items()}
    server = {"command": sys.executable, "args": ["-m", "nbext.cli", "mcp", *where], "env": env}
    print("For Claude Desktop, Cursor and other clients, under mcpServers in their configuration:")
    print(json.dumps({"nbext": server}))
    print("For Claude Code, in a terminal:")
    print(f"claude mcp add-json nbext {shlex.quote(json.dumps(server))}")
    print("A key is no part of it: `%nbext login --keep` stores it where the server finds it.")


COMMANDS = (_mcp,)
