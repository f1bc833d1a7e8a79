"""What pyproject declares is what the package imports, with a floor for each that the gate installs."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from tests.test_architecture import MODULES, imported, room_of

REPO = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# What users install; the extras for tests and the gate are ours.
OURS = ("test", "bench", "gate", "lab")
DECLARED = PROJECT["dependencies"] + [
    line for name in EXTRAS if name not in OURS for line in EXTRAS[name]
]
# The import's name where it is not the package's, and what comes with a package that decides its version.
COMES_WITH = {
    "Crypto": "pycryptodome",
    "vl_convert": "vl-convert-python",
    "py4j": "pyspark",
    "anyio": "starlette",
    "traitlets": "ipython",
    "pydantic_core": "pydantic",
}
# `--as polars` works where it is installed, and says so where it is not.
OPTIONAL = {"polars"}


def packages_of(modules: Iterable[Path]) -> set[str]:
    libraries = {name.split(".")[0] for path in modules for name in imported(path)} - set(
        sys.stdlib_module_names
    )
    return {
        COMES_WITH.get(name, name).lower().replace("_", "-")
        for name in libraries - {"nbext"} - OPTIONAL
    }


def declared(lines: Iterable[str]) -> set[str]:
    return {re.split(r"[\[><=]", line)[0].lower() for line in lines}


def test_every_library_that_the_package_imports_is_declared():
    assert packages_of(MODULES) - declared(DECLARED) == set()


def test_what_runs_without_the_embedded_service_needs_no_library_of_it():
    without = [
        path
        for path in MODULES
        if room_of(path) not in ("service", "language", "engine", "embedded")
    ]
    lean = [*PROJECT["dependencies"], *EXTRAS["keyring"], *EXTRAS["plot"], *EXTRAS["agents"]]
    assert packages_of(without) - declared(lean) == set()


def test_every_declared_library_has_a_floor():
    assert [line for line in DECLARED if ">=" not in line and not line.startswith("nbext[")] == []


def test_the_lock_file_has_every_declared_library_at_a_version_that_is_allowed():
    lines = (REPO / ".ci" / "lock.txt").read_text("utf-8").splitlines()
    # A name and a version in each line, and no address of a registry.
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.+]+", line)] == []
    locked = {
        name.lower().replace("_", "-"): version
        for name, version in (line.split("==") for line in lines)
    }
    asked = [
        Requirement(line)
        for line in DECLARED + EXTRAS["test"] + EXTRAS["gate"]
        if not line.startswith("nbext[")
    ]
    wrong = [
        str(each)
        for each in asked
        if not each.specifier.contains(locked.get(each.name.lower(), "0"))
    ]
    assert wrong == []


# What users install may be used in closed products. Two that ask for more are used as they are, and not changed.
FREE = re.compile(r"MIT|BSD|Apache|PSF|Python Software Foundation|ISC|Unlicense")
KNOWN = {"certifi": "Mozilla Public License 2.0", "psycopg": "LGPL", "psycopg-binary": "LGPL"}


def installed(name: str, extras: Iterable[str], found: set[str]) -> set[str]:
    """Return the names of all installed packages that this one needs, with theirs."""
    for line in metadata.requires(name) or ():
        need = Requirement(line)
        wanted = need.marker is None or any(
            need.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        )
        key = re.sub(r"[-_.]+", "-", need.name).lower()
        if wanted and key not in found:
            try:
                metadata.distribution(key)
            except metadata.PackageNotFoundError:  # an extra that is not installed here
                continue
            found.add(key)
            installed(key, need.extras, found)
    return found


def test_the_licences_of_all_that_users_install_are_free_or_known():
    names = installed("nbext", [name for name in EXTRAS if name not in OURS], set())
    assert len(names) > 50
    other = {}
    for name in names:
        about = metadata.metadata(name)
        classifiers = [
            line for line in about.get_all("Classifier", []) if line.startswith("License")
        ]
        text = " ".join(
            [
                about.get("License-Expression") or "",
                *classifiers,
                (about.get("License") or "")[:100],
            ]
        )
        if not FREE.search(text) and KNOWN.get(name, "none") not in text:
            other[name] = text
    assert other == {}
