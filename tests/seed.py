"""The seed of what the gate draws: new with each change of the tree, the same wherever one tree is tested.

What is green here is green there; ``TESTS_SEED`` repeats a run of another tree, or draws anew.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def gate_seed() -> int:
    """Return the seed, and print it."""
    number = int(os.environ.get("TESTS_SEED") or _of_the_tree())
    print(f"TESTS_SEED={number}")
    return number


def _of_the_tree() -> int:
    # A copy without its history, such as an unpacked archive, has one seed.
    asked = ["git", "rev-parse", "HEAD^{tree}"]
    folder = Path(__file__).parent
    told = subprocess.run(asked, check=False, cwd=folder, capture_output=True, text=True)
    return int(told.stdout[:8] or "0", 16)
