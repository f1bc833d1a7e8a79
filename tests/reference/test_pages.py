"""The stored reference pages are what the code says today, and leave nothing without an example."""

from __future__ import annotations

import re
from typing import get_type_hints

import pytest

from nbext.cli import COMMANDS
from nbext.core import wire
from nbext.language.conditions import CONDITIONS, GROUPS, SCOPE
from nbext.notebook.run.root import COMMANDS as OF_NBEXT
from nbext.notebook.run.root import MAGICS
from nbext.settings import SETTINGS
from tests.reference import (
    FILLED,
    FOLDER,
    PAGES,
    commands_page,
    language_page,
    made,
    magics_page,
    operations_page,
    python_page,
    settings_page,
)
from tests.reference.shown import output, sample

# Those with most examples to run take longer than all others.
LONG = {
    "analysis.md",
    "commands.md",
    "magics.md",
    "operations.md",
    "python.md",
    "segment-language.md",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LONG else ())
        for name in (*PAGES, *FILLED)
    ],
)
def test_a_reference_page_is_what_the_code_says_today(name):
    kept = (FOLDER / name).read_text("utf-8")
    assert kept == made(name), "run: python -m tests.reference"


def test_every_page_is_made_from_the_code_or_is_one_of_the_written_guides():
    guides = {
        "analysis.md",
        "explorer.md",
        "from-sql.md",
        "limits.md",
        "node.md",
        "performance.md",
        "remote.md",
        "scaling.md",
        "team.md",
    }
    assert {path.name for path in FOLDER.glob("*.*")} == set(PAGES) | guides


def _flags(lines):
    return {flag for line in lines for flag in re.findall(r"(?<!\S)--?[a-z][\w-]*", line)}


@pytest.mark.parametrize("grammar", [one for one, _ in MAGICS.values()], ids=MAGICS)
def test_each_option_of_a_magic_has_an_example(grammar):
    cells = magics_page.cells(grammar.magic) + (
        magics_page.ELSEWHERE if grammar.magic == "%nbext" else ()
    )
    if grammar.magic == "%%segment_query":
        # Its options are those of %segment, as its section says.
        cells += magics_page.cells("%segment")
    shown = _flags(cells)
    assert [
        (one.magic, option.spelling)
        for one in (grammar, *grammar.commands.values())
        for option in one.options
        if not shown & set(option.flags)
    ] == []


def test_each_public_name_in_python_has_an_example_that_works():
    assert {name for name, _ in python_page.names()} == set(python_page.EXAMPLES)
    page = (FOLDER / "python.md").read_text("utf-8")
    # What ends in an error here is one that the reader is to see: a segment that has ended cannot be cancelled.
    assert re.findall(r"^    (\w+): ", page, re.MULTILINE) == ["Conflict"]


def test_each_command_of_nbext_has_an_example():
    cells = (*magics_page.cells("%nbext"), *magics_page.ELSEWHERE)
    assert [
        name for name in OF_NBEXT if not any(re.match(rf"%nbext {name}\b", cell) for cell in cells)
    ] == []


@pytest.mark.parametrize("name", CONDITIONS)
def test_each_field_of_a_condition_has_an_example(name):
    shown = [one[name] for one in language_page.EXAMPLES.get(name, ()) if name in one]
    fields = {field for one in shown for field in one}
    fields |= set(re.findall(r'"(\w+)":', " ".join(language_page.CELLS.get(name, ()))))
    assert [field.name for field in CONDITIONS[name].fields if field.name not in fields] == []


def test_each_group_and_each_key_at_the_top_has_an_example():
    shown = {
        key for part in ("top", "groups") for one in language_page.EXAMPLES[part] for key in one
    }
    shown |= set(re.findall(r'"(\w+)":', " ".join(language_page.CELLS["top"])))
    assert [key.name for key in (*GROUPS, *SCOPE) if key.name not in shown] == []


def test_each_setting_has_an_example_that_sets_it():
    with sample() as shell:
        shown = {
            name: output(shell, f"%nbext set {name} {value}\n%nbext unset {name}").split("\n")[0]
            for name, value in settings_page.VALUES.items()
        }
    assert [setting.name for setting in SETTINGS] == list(settings_page.VALUES)
    assert {name: line.split(" = ")[0] for name, line in shown.items()} == {
        name: name for name in shown
    }


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"fetch"}))
def test_each_option_of_a_command_has_an_example(name):
    lines = [*commands_page.EXAMPLES[name], *commands_page.ELSEWHERE.get(name, ())]
    shown = _flags([*lines, *(commands_page.SHARED if name != "ingest" else ())])
    options = {
        flag
        for parser in commands_page.parsers(name)
        for action in parser._actions
        for flag in action.option_strings
        if flag.startswith("--") and flag != "--help"
    }
    assert options - shown == set()


def test_each_shared_option_of_a_command_has_an_example():
    assert set(commands_page.SHARED) <= _flags(
        line
        for part in (commands_page.EXAMPLES, commands_page.ELSEWHERE)
        for lines in part.values()
        for line in lines
    )


def test_each_operation_has_a_request_with_every_field_and_an_answer_with_every_field():
    page = (FOLDER / "operations.md").read_text("utf-8").split("## One of each")[1]
    asked = re.split(r"^(?=(?:GET|POST) /)", page.split("```")[1], flags=re.MULTILINE)[1:]
    for (method, path, request, answer, _), shown in zip(
        operations_page.OPERATIONS, asked, strict=True
    ):
        assert re.match(rf"{method} {re.sub(r'{.*?}', '.+', path)}\n", shown)
        assert [
            name for name in get_type_hints(request or object) if f'"{name}": ' not in shown
        ] == []
        fields = set(answer if isinstance(answer, dict) else get_type_hints(answer or object))
        # A segment by its id has those of the first; a profile and changes have these two.
        fields -= fields if path == wire.SEGMENT else {"profile", "since"}
        assert [name for name in fields if f'{name}": ' not in shown] == []
