"""What pyproject declares is what the package imports, with a floor for each that the gate installs."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from tests.test_architecture import MODULES, imported, room_of

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# What users install; the extras for tests and the gate are ours.
DECLARED = PROJECT["dependencies"] + [line for name in ("local", "spark", "keyring", "plot") for line in EXTRAS[name]]
# The import's name where it is not the package's, and what comes with a package that decides its version.
COMES_WITH = {
    "Crypto": "pycryptodome", "ibis": "ibis-framework", "anyio": "starlette", "traitlets": "ipython",
    "pydantic": "fastapi",
}  # fmt: skip
# `--as polars` works where it is installed, and says so where it is not.
OPTIONAL = {"polars"}


def packages_of(modules: Iterable[Path]) -> set[str]:
    libraries = {name.split(".")[0] for path in modules for name in imported(path)} - set(sys.stdlib_module_names)
    return {COMES_WITH.get(name, name).lower().replace("_", "-") for name in libraries - {"nbext"} - OPTIONAL}


def declared(lines: Iterable[str]) -> set[str]:
    return {re.split(r"[\[><=]", line)[0].lower() for line in lines}


def test_every_library_that_the_package_imports_is_declared():
    assert packages_of(MODULES) - declared(DECLARED) == set()


def test_what_runs_without_the_embedded_service_needs_no_library_of_it():
    without = [path for path in MODULES if room_of(path) not in ("service", "language", "engine", "embedded")]
    lean = [*PROJECT["dependencies"], *EXTRAS["keyring"], *EXTRAS["plot"]]
    assert packages_of(without) - declared(lean) == set()


def test_every_declared_library_has_a_floor():
    assert [line for line in DECLARED if ">=" not in line and not line.startswith("nbext[")] == []
