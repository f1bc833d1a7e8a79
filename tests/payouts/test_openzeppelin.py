"""Roots are those of OpenZeppelin's own library, which npm installs."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from nbext.payouts.folder import Claims, write_files
from tests.seed import gate_seed

pytestmark = pytest.mark.npm
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    """Return a function that asks the library for roots."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    for name in ("package.json", "roots.mjs"):
        shutil.copy(HERE / name, folder)
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run(install, cwd=folder, check=True, timeout=300)

    def ask(given):
        lines = "".join(f"{json.dumps(one)}\n" for one in given)
        told = subprocess.run(
            ["node", "roots.mjs"],
            cwd=folder,
            input=lines,
            capture_output=True,
            text=True,
            check=True,
        )
        return told.stdout.split()

    return ask


def drawn(draw, count):
    """Claims of random wallets, with small and with the largest amounts."""
    amounts = (lambda: draw.randint(1, 9), lambda: draw.getrandbits(256) or 1, lambda: 2**256 - 1)
    found = {f"0x{draw.getrandbits(160):040x}": draw.choice(amounts)() for _ in range(count)}
    return Claims(dict(sorted(found.items())))


def values(claims):
    return [[address, str(amount)] for address, amount in claims.amounts.items()]


def test_the_roots_of_a_thousand_random_lists_are_those_of_the_library(roots):
    draw = random.Random(gate_seed())
    lists = [
        drawn(draw, size) for size in [1, 2, 3, 4, 5, *(draw.randint(1, 70) for _ in range(995))]
    ]
    assert [one.standard.root for one in lists] == roots(map(values, lists))


def test_the_library_loads_a_tree_of_a_hundred_thousand_leaves_and_has_its_root(roots, tmp_path):
    claims = drawn(random.Random(gate_seed()), 100_000)
    write_files(tmp_path, claims, {"token": None}, {})
    root = claims.standard.root
    assert roots([str(tmp_path / "tree.json"), values(claims)]) == [root, root]
