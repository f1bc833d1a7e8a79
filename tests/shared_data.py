"""Real chain data for tests, where the machine has it beside the checkout; a test that needs it skips without."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "data"


def shared_data(name: str) -> Path:
    """Return a file of the shared data, or skip the test that asks."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"the shared data file {name} is not on this machine")
    return path
