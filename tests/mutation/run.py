"""Runs the tests of one mutant after the other, in a copy of the tree, each in a process with the libraries loaded."""

from __future__ import annotations

import importlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from pathlib import Path

from coverage import CoverageData

from tests.mutation.mutants import Mutant, is_a_fault, mutants_of

ROOT = Path(__file__).parents[2]
# Reasons why some mutants change nothing that anybody could see: a line for each, `file: line: before -> after: why`.
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
# A mutant in one of these is a mutant of that room, and else of its folder below the package.
_ROOMS = ("client/remote", "engine/ingest", "service/accounts")
# Loading these takes most of the time of a short run of tests.
_LOADED = (
    *("numpy", "pandas", "pyarrow.compute", "pyarrow.parquet", "pyarrow.csv", "pyarrow.dataset"),
    *("duckdb", "fastapi", "uvicorn", "requests", "hypothesis.strategies", "pytest"),
    *("IPython", "ipywidgets", "jmespath", "pydantic", "cachecontrol", "jsonschema"),
    *("limits", "email_validator", "keyring", "polars", "anywidget", "starlette.testclient"),
)
# Of one parametrized test so many cases come first: a mutant that these miss is rarely seen by the other hundreds.
_CASES = 6
# How many times longer than by the processor tests may take by the clock.
_PATIENCE = 4
# Files of tests that are run before the rest.
_NEAR = 4
KILLED, SURVIVED, HUNG, UNSEEN = "killed", "survived", "killed (hung)", "run by no test"


def room_of(file: str) -> str:
    """Return the room of a module of the package, by which mutants are chosen and counted."""
    inside = file.removeprefix("nbext/")
    return next(
        (room for room in _ROOMS if inside.startswith(f"{room}/")),
        inside.split("/")[0] if "/" in inside else "beside the rooms",
    )


def chosen(count: int, seed: int, lines: set[tuple[str, int]] | None = None) -> list[Mutant]:
    """Return so many random mutants, the same number of each room; ``lines`` (file and number) narrows them."""
    draw = random.Random(seed)
    rooms: defaultdict[str, list[Mutant]] = defaultdict(list)
    for path in sorted((ROOT / "nbext").rglob("*.py")):
        for mutant in mutants_of(path, ROOT):
            if lines is None or (mutant.file, mutant.line) in lines:
                rooms[room_of(mutant.file)].append(mutant)
    for mutants in rooms.values():
        draw.shuffle(mutants)
    return _one_of_each_in_turn(rooms, count)


def _one_of_each_in_turn(rooms: dict[str, list[Mutant]], count: int) -> list[Mutant]:
    found: list[Mutant] = []
    equivalent = set(equivalents())
    taken: set[tuple[str, int]] = set()
    while len(found) < count and any(rooms.values()):
        for mutants in filter(None, rooms.values()):
            while mutants:
                mutant = mutants.pop()
                text = (ROOT / mutant.file).read_text("utf-8")
                if (
                    mutant.name not in equivalent
                    and (mutant.file, mutant.line) not in taken
                    and is_a_fault(mutant, text)
                ):
                    taken.add((mutant.file, mutant.line))
                    found.append(mutant)
                    break
    return found[:count]


def equivalents() -> dict[str, str]:
    """Return the mutants that change nothing, without their lines' numbers, and why."""
    rows = EQUIVALENT.read_text("utf-8").splitlines()
    return dict(row.rsplit(": ", 1) for row in rows if row and not row.startswith("#"))


class Contexts:
    """Which tests run which lines, as ``tests.mutation.contexts`` left it in a folder."""

    def __init__(self, folder: Path) -> None:
        self._tests: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(
            lambda: defaultdict(set)
        )
        for path in folder.glob(".coverage*"):
            data = CoverageData(str(path))
            data.read()
            for measured in data.measured_files():
                file = "nbext/" + measured.rsplit("/nbext/", 1)[1]
                for line, tests in data.contexts_by_lineno(measured).items():
                    self._tests[file][line].update(filter(None, tests))
        self._seconds: Counter[str] = Counter()
        for path in folder.glob("seconds-*.json"):
            self._seconds.update(json.loads(path.read_text("utf-8")))

    def tests_of(self, mutant: Mutant, seconds: float) -> list[list[str]]:
        """Return the tests that run a mutant's statement, or else its function, in two runs, within the seconds.

        The first run has those of the nearest files: to collect forty files takes longer than most of their tests.
        """
        seen = self._between(mutant.file, *mutant.lines) or self._between(
            mutant.file, *mutant.function
        )
        cases: Counter[str] = Counter()
        first: list[str] = []
        later: list[str] = []
        for test in sorted(seen, key=lambda test: self._seconds[test]):
            cases[test.split("[")[0]] += 1
            (first if cases[test.split("[")[0]] <= _CASES else later).append(test)
        within = list(self._within([*first, *later], seconds))
        files = sorted({file_of(test) for test in within}, key=partial(distance, mutant.file))
        near = set(files[:_NEAR])
        return [
            [test for test in within if file_of(test) in near],
            [test for test in within if file_of(test) not in near],
        ]

    def _between(self, file: str, first: int, last: int) -> set[str]:
        return {
            test
            for line, tests in self._tests[file].items()
            if first <= line <= last
            for test in tests
        }

    def _within(self, tests: Sequence[str], seconds: float) -> Iterator[str]:
        for test in tests:
            if (seconds := seconds - self._seconds[test]) < 0:
                return
            yield test


def file_of(test: str) -> str:
    """Return the file of a test's id."""
    return test.split("::", maxsplit=1)[0]


def distance(file: str, test: str) -> int:
    """Return how far a file of tests is from a module: 0 where it has its name and folder."""
    module, mirrored = Path(file).with_suffix("").parts[1:], Path(test).with_suffix("").parts[1:]
    pairs = zip(module[:-1], mirrored[:-1], strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return len(module) - 1 - shared + (mirrored[-1] != f"test_{module[-1]}")


def copy_of_the_tree(folder: Path) -> Path:
    """Copy what git has of the tree, as it is now."""
    named = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    for name in filter(None, named.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def load_libraries() -> None:
    """Load what tests load, once for all mutants."""
    for name in _LOADED:
        with suppress(ImportError):
            importlib.import_module(name)


def verdicts(
    mutants: Iterable[Mutant], contexts: Contexts, tree: Path, seconds: float
) -> Iterator[tuple[Mutant, str, float]]:
    """Yield each mutant with what its tests said of it, and how long that took (seconds)."""
    load_libraries()
    for mutant in mutants:
        began = time.monotonic()
        tests = contexts.tests_of(mutant, seconds)
        path = tree / mutant.file
        text = path.read_text("utf-8")
        path.write_text(mutant.applied(text), "utf-8")
        try:
            found = UNSEEN
            for some in filter(None, tests):
                if (found := _tested(some, tree, 30 + 4 * seconds)) != SURVIVED:
                    break
        finally:
            path.write_text(text, "utf-8")
        yield mutant, found, time.monotonic() - began


def _tested(tests: Sequence[str], tree: Path, seconds: float) -> str:
    child = os.fork()
    if not child:
        # Of the processor: on a busy machine tests that pass take many times as long by the clock, and would be called
        # hung. What waits for ever takes none of it, and is left to wait for longer.
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
        os._exit(_in_a_child(tests, tree))
    end = time.monotonic() + _PATIENCE * seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _end_group(child)
            return SURVIVED if os.waitstatus_to_exitcode(status) == 0 else KILLED
        time.sleep(0.05)
    _end_group(child)
    os.waitpid(child, 0)
    return HUNG


def _end_group(child: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _in_a_child(tests: Sequence[str], tree: Path) -> int:
    os.setsid()
    os.chdir(tree)
    os.environ.update(PYTHONPATH=str(tree), PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    sys.path[:] = [str(tree), *(place for place in sys.path if place not in {"", str(ROOT)})]
    for name in [name for name in sys.modules if name.split(".")[0] in {"tests", "nbext"}]:
        del sys.modules[name]
    output = os.open(tree / "last-run.txt", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    import pytest

    options = ["-x", "-q", "-m", "", "-p", "no:cacheprovider", "-p", "no:nbval", "-p", "no:xdist"]
    try:
        # Libraries that were loaded before pytest could rewrite them are no fault of the mutant.
        quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        return int(pytest.main([*options, *quiet, *tests]))
    except BaseException:  # noqa: BLE001 - also what a mutant makes of SystemExit
        return 1
