"""What holds for every test, and for the notebooks and commands that tests run."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import full_disk

# Half of what a small ingest takes is waiting for the disk. What lies in memory is flushed at once, whoever wrote it:
# Python, DuckDB, SQLite or a process that a test starts and kills. TMPDIR says otherwise.
MEMORY, ENOUGH = Path("/dev/shm"), 4 << 30


def may_hold_everything(folder: Path) -> bool:
    """Whether there is such a folder, with room, from which programs may run: tests of the wheel make environments."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return False
    return shutil.disk_usage(folder).free > ENOUGH and not (
        os.statvfs(folder).f_flag & os.ST_NOEXEC
    )


if "TMPDIR" not in os.environ and may_hold_everything(MEMORY):
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# Kernels and commands that tests start inherit these. Nobody's own data, service or key is touched,
# and no bar comes or goes with the machine's speed.
_data = tempfile.mkdtemp(prefix="nbext-tests-")
atexit.register(shutil.rmtree, _data, ignore_errors=True)
for name in [name for name in os.environ if name.startswith("NBEXT_")]:
    del os.environ[name]
os.environ["NBEXT_DATA_DIR"] = _data
os.environ["NBEXT_PROGRESS"] = "false"
os.environ["XDG_CACHE_HOME"] = f"{_data}/cache"
os.environ["XDG_STATE_HOME"] = f"{_data}/state"
# A thread that imports and starts things beside a test makes the test's own order of events a matter of luck. The
# tests of the warm-up switch it on.
os.environ["NBEXT_WARM_UP"] = "false"

# A shell that starts the tests in the background has them ignore interrupts, for good; some tests send interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run: a red gate is about the change in hand. `--hypothesis-profile default` finds others.
# However long one takes on a busy machine.
settings.register_profile(
    "the same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("the same")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Half of the tests' time is waiting, for deadlines and other processes: on two cores four take 200 s, two 275."""
    return 2 * (os.cpu_count() or 1)


def pytest_collection_finish() -> None:
    """Leave what was loaded and collected out of every later look for garbage: a tenth of the tests' CPU time."""
    # Hypothesis registers its generator with the first example, and warns where gc does not see who holds it.
    given(st.none())(lambda nothing: None)()
    gc.collect()
    gc.freeze()


# Spark's library leaves sockets open when a statement is cancelled, and they are collected in whatever thread comes by,
# where the filter of the warning itself does not always hold.
_OF_SPARKS_LIBRARY = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pass over what Spark's own library warns of, in the tests that start it and say nothing of warnings."""
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("filterwarnings"):
            item.add_marker(_OF_SPARKS_LIBRARY)


@pytest.fixture(autouse=True)
def forms_have_come_to_rest():
    """A form that a test leaves open counts on in a thread, and would print into the tests that come after it."""
    yield
    for thread in threading.enumerate():
        if thread.name == "nbext-form" and (target := getattr(thread, "_target", None)) is not None:
            target.__self__.drop()
            assert target.__self__.join(60), "a form's request did not end with its test"


@pytest.fixture
def ring():
    """Use a keyring of a test's choice; the real one comes back afterwards."""
    import keyring

    before = keyring.get_keyring()
    yield keyring.set_keyring
    keyring.set_keyring(before)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 60 MB of its own."""
    with full_disk.mounted(tmp_path / "disk") as disk:
        yield disk
