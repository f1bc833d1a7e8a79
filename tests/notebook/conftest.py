"""Shells for the room's tests."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.notebook.shells import loaded_shell


@pytest.fixture(scope="session")
def home():
    """A folder that stands for the user's home: nothing is read from or written to the real one."""
    patch = pytest.MonkeyPatch()
    # Not pytest's, which is gone when IPython writes its history, as Python ends.
    folder = Path(tempfile.mkdtemp(prefix="home-", dir=os.environ["NBEXT_DATA_DIR"]))
    patch.setenv("IPYTHONDIR", str(folder / "ipython"))
    patch.setenv("NBEXT_DATA_DIR", str(folder / "data"))
    for name in ("NBEXT_BASE_URL", "NBEXT_API_KEY", "NBEXT_TRACEBACK"):
        patch.delenv(name, raising=False)
    yield folder
    InteractiveShell.clear_instance()
    patch.undo()


@pytest.fixture
def shell(home):
    """A fresh shell with nbext loaded."""
    with loaded_shell() as made:
        yield made
