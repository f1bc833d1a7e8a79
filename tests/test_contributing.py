"""CONTRIBUTING is true: each file that it names is there, and each function is in its file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
CONTRIBUTING = (REPO / "CONTRIBUTING.md").read_text("utf-8")
WALK = re.findall(r"^\d+\. `([\w/]+\.py)`: `([\w.]+)`", CONTRIBUTING, re.MULTILINE)
NAMED = re.findall(r"`([\w/]+\.py)`: `([\w.]+)`", CONTRIBUTING)


def test_the_walk_of_a_query_is_at_most_twelve_steps():
    assert 10 <= len(WALK) <= 12
    assert len(re.findall(r"^\d+\. ", CONTRIBUTING, re.MULTILINE)) == len(WALK)
    assert {"compile", "HoldingCondition.wallets"} <= {function for _, function in NAMED}


@pytest.mark.parametrize(("file", "function"), NAMED, ids=lambda value: value)
def test_a_function_of_the_walk_is_in_its_file(file, function):
    node: ast.AST = ast.parse((REPO / file).read_text("utf-8"))
    for name in function.split("."):
        (node,) = [
            child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == name
        ]


def test_every_file_and_folder_that_it_names_is_there():
    named = set(re.findall(r"`((?:nbext|tests|\.ci)/[\w./]*)`", CONTRIBUTING))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (REPO / path).exists()] == []


def test_every_room_and_every_module_beside_the_rooms_is_named():
    beside = [path.name for path in (REPO / "nbext").glob("*.py") if path.name != "__init__.py"]
    rooms = [path.parent.name for path in (REPO / "nbext").glob("*/__init__.py")]
    unnamed = [
        name for name in (*beside, *rooms) if not re.search(rf"`{name}`|\b{name}/", CONTRIBUTING)
    ]
    assert unnamed == []
