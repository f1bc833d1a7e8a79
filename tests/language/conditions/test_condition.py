"""What a condition of the language must define, and where else it is named: each registered one is held to this list.

A new condition is its file, an entry of the registry, a method of the oracle that answers it and a function that draws
it, examples for the page, the page that the generator writes, and a line of the changelog: six files.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from nbext.language import conditions
from nbext.language.conditions import CONDITIONS, GROUP, SCOPE_KEY
from nbext.language.conditions.condition import Condition
from nbext.language.fields import FIELD_TYPES, Field
from nbext.language.json_schema import json_schema
from tests.language import drawing
from tests.oracle.meaning import One

# What people may write and read, and the steps from what was written to the wallets.
WRITTEN = ("name", "help", "fields", "examples")
STEPS = ("resolve", "wallets", "canonical", "words")
EACH = pytest.mark.parametrize(
    "condition", CONDITIONS.values(), ids=lambda condition: condition.name
)


@EACH
@pytest.mark.parametrize("name", [*WRITTEN, *STEPS])
def test_a_condition_defines_all_that_makes_it_one(condition, name):
    abstract = (Condition.__module__, "nbext.language.model")
    bases = [base for base in condition.__mro__ if base.__module__ not in abstract]
    assert any(name in vars(base) for base in bases), f"{condition.__name__} does not define {name}"


@EACH
def test_nothing_of_a_condition_is_left_abstract(condition):
    assert issubclass(condition, Condition)
    assert dataclasses.is_dataclass(condition)
    assert not condition.__abstractmethods__


@EACH
def test_a_conditions_fields_can_be_read_and_are_named_right(condition):
    assert condition.fields
    assert all(isinstance(field, Field) and field.kind in FIELD_TYPES for field in condition.fields)
    names = [field.name for field in condition.fields]
    assert len(set(names)) == len(names)
    assert condition.name not in (*GROUP, *SCOPE_KEY)
    together = {name for pair in condition.exclusive for name in pair}
    together |= {name for one, others in condition.needs for name in (one, *others)}
    assert together <= set(names)
    assert condition.examples
    assert condition.help.endswith(".")


@EACH
def test_whoever_lists_conditions_lists_each(condition):
    assert condition.name in json_schema()["$defs"]
    assert condition.name in json_schema()["properties"]["filters"]["properties"]
    assert callable(getattr(One, condition.name, None)), "the oracle does not answer it"
    drawn = hasattr(drawing, f"draw_{condition.name}") or condition.name == "segment"
    assert drawn, "no random request holds it"
    page = Path(conditions.__file__).parents[2] / "reference" / "segment-language.md"
    assert f"\n## {condition.name}\n" in page.read_text("utf-8")


def test_each_file_of_the_folder_is_a_condition_of_the_registry():
    modules = {path.stem for path in Path(conditions.__file__).parent.glob("*.py")} - {
        "__init__",
        "condition",
    }
    assert modules == {condition.__module__.rsplit(".", 1)[1] for condition in CONDITIONS.values()}
    assert [condition.name for condition in CONDITIONS.values()] == list(CONDITIONS)


def test_a_condition_that_lacks_a_step_cannot_be_made():
    @dataclasses.dataclass(frozen=True)
    class Half(Condition):
        name = "half"

    with pytest.raises(TypeError, match="canonical, resolve, wallets, words"):
        Half()
