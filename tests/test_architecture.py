"""The house's rooms: who may import whom. The table is the architecture; nbext's docstring tells it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "nbext"
SHARED = {"errors", "settings", "core"}
# A room may import itself, what all rooms see, and these.
ROOMS = {
    "notebook": {"client", "connect"},
    "client": set(),
    "service": {"language", "engine"},
    "language": {"engine"},
    "engine": set(),
    "core": set(),
    "errors": set(),
    "settings": set(),
    # The doors.
    "connect": {"client", "embedded"},
    "embedded": {"service", "language", "engine"},
    "cli": set(),  # its table names modules as text and imports the one that was asked for
    "__init__": {"client", "connect", "notebook"},
}
# What a room must not know, whoever it is imported through.
FOREIGN = {
    "notebook": {"requests", "fastapi", "ibis", "duckdb", "urllib3"},
    "client": {"IPython", "ipywidgets", "fastapi", "ibis", "duckdb"},
    "service": {"IPython", "ipywidgets", "requests", "ibis", "duckdb", "pandas"},
    "language": {"IPython", "ipywidgets", "requests", "fastapi", "duckdb", "pyspark", "pandas"},
    "engine": {"IPython", "ipywidgets", "requests", "fastapi", "starlette", "uvicorn"},
    "core": {"IPython", "ipywidgets", "requests", "fastapi", "ibis", "duckdb", "pandas"},
    "errors": {"IPython", "ipywidgets", "requests", "fastapi", "ibis", "duckdb", "pandas"},
    "settings": {"IPython", "ipywidgets", "requests", "fastapi", "ibis", "duckdb", "pandas"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Every module that the file imports, also inside functions and for type checking."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide which room is meant"
            base = node.module or ""
            names.update(f"nbext.{alias.name}" for alias in node.names) if base == "nbext" else names.add(base)
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_what_stands_to_its_right(path):
    room = room_of(path)
    rooms_seen = {name.split(".")[1] for name in imported(path) if name.startswith("nbext.")}
    allowed = ROOMS[room] | ({room} if room not in ("errors", "settings") else set()) | SHARED | {"__version__"}
    assert rooms_seen <= allowed, f"{room} may not import {sorted(rooms_seen - allowed)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_does_not_know_what_belongs_to_another(path):
    outside = {name.split(".")[0] for name in imported(path)}
    assert not outside & FOREIGN.get(room_of(path), set())


def test_every_module_stands_in_a_room_of_the_table():
    assert {room_of(path) for path in MODULES} <= set(ROOMS)
