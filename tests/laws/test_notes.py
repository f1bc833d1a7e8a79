"""Each note on an answer, in one table: where the code makes it, a question that it is about, and where it is said."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nbext
from tests.laws.test_said_in_python import said
from tests.notebook.conftest import home, shell

__all__ = ["home", "shell"]

PACKAGE = Path(nbext.__file__).parent
# Whose notes are read here. A stranger's answers have tests of their own (tests/client/remote); what ingest and fetch
# print are reports of commands.
ROOMS = ("language", "client/*.py", "analysis", "service", "engine/dataset.py")


def sites() -> set[str]:
    """Return where the code adds a note: the file, and the function."""
    files = [file for room in ROOMS for file in _files(room)]
    return {
        f"{file.relative_to(PACKAGE).as_posix()}:{function.name}"
        for file in files
        for function in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(map(_adds_a_note, _own(function)))
    }


def _files(room: str) -> list[Path]:
    found = PACKAGE / room
    return sorted(found.rglob("*.py")) if found.is_dir() else sorted(PACKAGE.glob(room))


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions inside of it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _own(child)


def _adds_a_note(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "warn":
            return True
        return node.func.attr == "append" and _is_notes(node.func.value)
    return isinstance(node, ast.AugAssign) and _is_notes(node.target)


def _is_notes(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.endswith(("notes", "warnings"))


# Questions of the sample, and a part of a note on each.
ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "burn": ({"nft": {"nft": "BAYC"}}, "the burn address 0x...dEaD is a holder too"),
    "zero": ({"token": {"token": "UNI", "balance": {"min": "0"}}}, "0 without max matches every"),
    "window": ({"transfer": {"token": "UNI", "before": "2019-01-01"}}, "no block of the data is"),
    "start": ({"transfer": {"token": "UNI", "after": "2019-01-01"}}, "what was before is not"),
    "day": ({"token": {"token": "UNI"}, "asOf": "2026-01-01"}, "before 2026-01-01 ends"),
    "number": ({"activity": {"last": {"after": 20250601}}}, "20250601 is a block."),
    "ids": ({"nft": {"nft": "BAYC", "tokenIds": [1]}}, "the count in a row is of all token ids"),
    "spam": ({"token": {"token": "MAX"}}, "is marked as spam"),
    "wide": ({"token": {"token": "MAX"}}, "or its sum has more than 76 digits"),
}
# Where each note is made: the question here that has it, or a part of it and the tests of that note, where no question
# of the sample has it.
NOTES: dict[str, str | tuple[str, str]] = {
    "client/frames.py:wide_columns": "wide",
    "client/decode.py:of_ours": ("No hit for", "notebook/run/test_settings.py"),
    "client/lookups.py:metadata": ("is not a whole number", "client/remote/test_silent.py"),
    "client/lookups.py:search": ("The service sent", "client/remote/test_never_a_part.py"),
    "client/segment_run.py:_describe": (
        "What the service says of the segment could not be read",
        "client/remote/test_silent.py",
    ),
    "client/segment_run.py:_provenance": (
        "were stored before the data changed",
        "notebook/test_new_data.py",
    ),
    # Adds what the others say, each once.
    "client/segment_run.py:_streamed": "wide",
    "client/segment_run.py:_took": ("more than 38 digits", "client/test_exports.py"),
    "client/service.py:table": ("more than 38 digits", "client/test_exports.py"),
    "language/language.py:columns": "ids",
    "language/language.py:fact": (
        "is missing where it is one of them",
        "engine/test_block_times.py",
    ),
    "language/language.py:saved_segment": ("was saved with limit", "notebook/test_magics.py"),
    "language/language.py:segment": "burn",
    "language/conditions/collections.py:resolve": (
        "mints of 1 collection are missing",
        "language/test_resolve.py",
    ),
    "language/lookup.py:_as_of": ("its last block is used", "language/test_resolve.py"),
    "language/lookup.py:_block_of": "number",
    "language/lookup.py:_contract": "spam",
    "language/lookup.py:_moment": "day",
    "language/lookup.py:_warn_of_start": "start",
    "language/lookup.py:blocks": "window",
    "language/lookup.py:notes_on": ("it is read as a", "service/test_generations.py"),
    "language/lookup.py:supply": ("of the supply are not known", "language/test_language.py"),
    # Adds what the others say, each once.
    "language/lookup.py:warn": "burn",
    "language/lookup.py:warn_of_every_wallet": "zero",
    "language/lookup.py:warn_of_gaps": ("the data has no row of", "language/test_resolve.py"),
    "service/metadata.py:contract": ("too; segments leave it out", "client/test_embedded.py"),
    "service/segments/analysis.py:wallet_holdings": (
        "no holdings in this data",
        "analysis/test_wallet.py",
    ),
}
# Where a note is said; of the questions after it, it is not, because of the reason.
WAYS: dict[str, tuple[Callable[[Any, nbext.Client, dict[str, Any]], str], set[str], str]] = {
    "magic": (lambda shell, _, asked: shell.run("%segment {{asked}} -o t").printed, set(), ""),
    "Python": (
        lambda _, client, asked: "\n".join(said(lambda: client.execute_segment(asked))),
        set(),
        "",
    ),
    "--count": (
        lambda shell, _, asked: shell.run("%segment {{asked}} --count").printed,
        {"wide", "ids"},
        "no amount is returned",
    ),
    "--to": (
        lambda shell, _, asked: shell.run("%segment {{asked}} --to t.csv --overwrite").printed,
        set(),
        "",
    ),
    "background": (
        lambda shell, _, asked: (
            shell.run("%segment {{asked}} --bg -o b").printed + shell.run("t = b.result()").printed
        ),
        set(),
        "",
    ),
    "analysis": (
        lambda _, client, asked: "\n".join(said(lambda: nbext.funnel(asked, client=client))),
        {"wide", "ids"},
        "it counts",
    ),
}


def test_each_place_that_makes_a_note_is_in_the_table_with_a_question_or_tests_of_its_own():
    assert sites() == set(NOTES)
    for place, asked in NOTES.items():
        if isinstance(asked, tuple):
            text, file = asked
            assert text in (PACKAGE.parent / "tests" / file).read_text("utf-8"), place
        else:
            assert asked in ASKED, place


@pytest.mark.slow
def test_each_note_is_said_in_every_way_to_ask_or_the_table_says_why_not(
    shell, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    client, silent = nbext.connect(), []
    for name, (filters, note) in ASKED.items():
        shell.ip.user_ns["asked"] = filters
        for way, (ask, unless, _) in WAYS.items():
            if (note in ask(shell, client, filters)) == (name in unless):
                silent.append((name, way))
    assert silent == []
