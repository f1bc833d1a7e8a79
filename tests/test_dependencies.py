"""What pyproject declares is what the package imports, with a floor for each that the gate installs."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from tests.test_architecture import MODULES, imported

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# What users install; the extras for tests and the gate are ours.
DECLARED = PROJECT["dependencies"] + [line for name in ("local", "spark", "keyring", "plot") for line in EXTRAS[name]]
# The import's name where it is not the package's, and what comes with a package that decides its version.
COMES_WITH = {
    "Crypto": "pycryptodome", "ibis": "ibis-framework", "anyio": "starlette", "traitlets": "ipython",
    "pydantic": "fastapi", "typing_extensions": "fastapi",
}  # fmt: skip
# `--as polars` works where it is installed, and says so where it is not.
OPTIONAL = {"polars"}


def test_every_library_that_the_package_imports_is_declared():
    libraries = {name.split(".")[0] for path in MODULES for name in imported(path)} - set(sys.stdlib_module_names)
    packages = {COMES_WITH.get(name, name).lower().replace("_", "-") for name in libraries - {"nbext"} - OPTIONAL}
    declared = {re.split(r"[\[><=]", line)[0].lower() for line in DECLARED}
    assert packages - declared == set()


def test_every_declared_library_has_a_floor():
    assert [line for line in DECLARED if ">=" not in line and not line.startswith("nbext[")] == []
