"""Who may import whom, how large a folder and the package may grow, and that each folder's map is true."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests import size

PACKAGE = Path(__file__).parents[1] / "nbext"
# What every room may import.
SHARED = {"errors", "settings", "core"}
# A room may import itself, SHARED, and these: a query walks notebook -> client ~ HTTP ~ service -> language -> engine.
ROOMS = {
    "agents": {"notebook", "analysis", "client", "embedded", "http"},
    "notebook": {"client", "embedded", "analysis", "fetch", "http", "cli", "agents", "payouts"},
    "analysis": {
        "client",
        "embedded",
        "explore",
    },  # a chart that is shown live is a form of the notebook's
    "payouts": {"client", "embedded"},
    "client": {"http"},
    "http": set(),
    "service": {"language", "engine"},
    "language": {"engine"},
    "engine": set(),
    "node": {"http"},
    "core": set(),
    "errors": set(),
    "settings": set(),
    # The modules that join rooms.
    "fetch": {"node", "language", "engine"},
    "embedded": {"client", "service", "language", "engine"},
    "cli": set(),  # its table names modules as text and imports the one that was asked for
    "__init__": {"analysis", "client", "embedded", "notebook", "payouts"},
}
# What a room must not know, whoever it is imported through.
FOREIGN = {
    "agents": {"IPython", "ipywidgets", "requests", "fastapi", "duckdb"},
    "notebook": {"requests", "fastapi", "duckdb", "urllib3"},
    "analysis": {"IPython", "ipywidgets", "requests", "fastapi", "duckdb"},
    "payouts": {"IPython", "ipywidgets", "requests", "fastapi", "duckdb"},
    "client": {"IPython", "ipywidgets", "fastapi", "duckdb"},
    "service": {"IPython", "ipywidgets", "requests", "duckdb", "pandas"},
    "http": {"IPython", "ipywidgets", "fastapi", "duckdb", "pandas"},
    "language": {"IPython", "ipywidgets", "requests", "fastapi", "duckdb", "pyspark", "pandas"},
    "engine": {"IPython", "ipywidgets", "requests", "fastapi", "starlette", "uvicorn"},
    "node": {"IPython", "ipywidgets", "fastapi", "starlette", "duckdb", "pandas"},
    "core": {"IPython", "ipywidgets", "requests", "fastapi", "duckdb", "pandas", "numpy"},
    "errors": {"IPython", "ipywidgets", "requests", "fastapi", "duckdb", "pandas"},
    "settings": {"IPython", "ipywidgets", "requests", "fastapi", "duckdb", "pandas"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})
# Public names of two meanings, a line each. The list only shrinks.
DEFINED_TWICE = Path(__file__).with_name("defined_twice.txt")
# Past these a stranger no longer finds a file within a minute.
MOST_FILES_IN_A_FOLDER = 12


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(
        ".__init__"
    )


def path_id(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


NAMES = {dotted(path) for path in MODULES}


@cache
def imported(path: Path, *, at_the_top: bool = False) -> set[str]:
    """Every module that the file imports, also inside functions and for type checking; or those it is loaded with."""
    return {
        name for node in _nodes(tree_of(path), at_the_top) for name in _modules_named(node, path)
    }


def _nodes(node: ast.AST, at_the_top: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        )
        if not (at_the_top and later):
            yield from _nodes(child, at_the_top)


def _modules_named(node: ast.AST, path: Path) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if not isinstance(node, ast.ImportFrom):
        return set()
    assert node.level == 0, f"{path}: relative imports hide which room is meant"
    base = node.module or ""
    # `from nbext.client import frames` names a module, `from nbext.client import Client` a folder.
    inside = {
        f"{base}.{alias.name}"
        for alias in node.names
        if base == "nbext" or f"{base}.{alias.name}" in NAMES
    }
    return inside or {base}


def test_a_room_imports_only_what_the_table_allows():
    wrong = []
    for path in MODULES:
        room = room_of(path)
        allowed = ROOMS[room] | SHARED | {"__version__"}
        if room not in ("errors", "settings"):
            allowed |= {room}
        seen = {name.split(".")[1] for name in imported(path) if name.startswith("nbext.")}
        wrong += [f"{path_id(path)} may not import {name}" for name in sorted(seen - allowed)]
    assert wrong == []


def test_a_room_uses_no_library_that_belongs_to_another():
    wrong = []
    for path in MODULES:
        outside = {name.split(".")[0] for name in imported(path)}
        foreign = sorted(outside & FOREIGN.get(room_of(path), set()))
        wrong += [f"{path_id(path)} may not import {name}" for name in foreign]
    assert wrong == []


def test_every_module_is_in_a_room_of_the_table():
    assert {room_of(path) for path in MODULES} <= set(ROOMS)


def test_a_strangers_answers_are_read_by_code_that_only_a_strangers_service_loads():
    """``client/remote`` guesses; our own service never needs it, so one function outside of it may import it."""
    outside = [path for path in MODULES if not dotted(path).startswith("nbext.client.remote")]
    assert [path for path in outside if reaches_remote(imported(path, at_the_top=True))] == []
    assert len([path for path in outside if reaches_remote(imported(path))]) == 1


def reaches_remote(names: set[str]) -> bool:
    return any(name.startswith("nbext.client.remote") for name in names)


def test_no_module_imports_itself_through_others():
    """Imports for type checking count: two modules that need each other's types are read as one."""
    graph = {dotted(path): imported(path) & NAMES - {dotted(path)} for path in MODULES}
    # A module without imports that are left to take away is in no cycle.
    while free := {name for name, needs in graph.items() if not needs & graph.keys()}:
        graph = {name: needs for name, needs in graph.items() if name not in free}
    while unused := graph.keys() - set().union(*graph.values(), set()):
        graph = {name: needs for name, needs in graph.items() if name not in unused}
    assert {name: sorted(needs & graph.keys()) for name, needs in graph.items()} == {}


def test_every_module_says_what_it_holds():
    assert [path_id(path) for path in MODULES if not ast.get_docstring(tree_of(path))] == []


def test_a_folders_docstring_is_its_map():
    unnamed = []
    for folder in FOLDERS[1:]:
        docstring = ast.get_docstring(tree_of(folder / "__init__.py")) or ""
        files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        beside = files | {path.parent.name for path in folder.glob("*/__init__.py")}
        missing = sorted(beside - set(re.findall(r"\w+", docstring)))
        unnamed += [f"{path_id(folder)}/__init__.py does not name {name}" for name in missing]
    assert unnamed == []


_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def public_names() -> dict[str, set[str]]:
    """Each public class and function at the top of a module, and the modules that define it."""
    found: dict[str, set[str]] = {}
    for path in MODULES:
        for node in tree_of(path).body:
            if isinstance(node, _DEFINITIONS) and not node.name.startswith("_"):
                found.setdefault(node.name, set()).add(dotted(path))
    return found


def test_a_public_name_is_defined_once():
    """One name, one meaning: who searches for it finds one place."""
    twice = {name: sorted(where) for name, where in public_names().items() if len(where) > 1}
    known = set(DEFINED_TWICE.read_text("utf-8").split())
    new = [f"{name}: {' and '.join(twice[name])}" for name in sorted(twice.keys() - known)]
    assert new == [], "rename one of each, by the field's noun for what it is"
    gone = sorted(known - twice.keys())
    assert gone == [], f"no longer defined twice: take these off tests/{DEFINED_TWICE.name}"


def test_the_house_stays_small_enough_to_find_ones_way():
    tokens, modules, _ = size.history()[-1]
    assert max(len(list(folder.glob("*.py"))) for folder in FOLDERS) <= MOST_FILES_IN_A_FOLDER
    assert len(MODULES) <= modules
    assert sum(size.tokens_of(path) for path in MODULES) <= tokens


def test_the_cap_of_the_houses_size_falls_where_no_room_came_in():
    for before, after in itertools.pairwise(size.history()):
        rooms = re.match(r"with ([a-z, /]+):", after[2])
        assert rooms or (after[0] <= before[0] and after[1] <= before[1])
        for room in rooms[1].split(", ") if rooms else ():
            assert (size.PACKAGE / room).is_dir()
