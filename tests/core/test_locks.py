"""A lock is held by one process at a time, and free again however that process ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nbext.core.locks import ProcessLock, exclusive

HOLDER = """
import sys, time
from pathlib import Path
from nbext.core.locks import ProcessLock, exclusive
folder = Path(sys.argv[1])
alive = ProcessLock(folder / "leases")
with exclusive(folder / ".lock"):
    print(alive.name, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def test_a_lock_that_another_process_holds_is_refused_until_that_process_is_killed(
    holder, tmp_path
):
    name = holder.stdout.readline().strip()
    own = ProcessLock(tmp_path / "leases")
    assert (own.others(), own.is_alive(name), own.is_alive(own.name)) == ([name], True, True)
    with pytest.raises(BlockingIOError), exclusive(tmp_path / ".lock"):
        pass
    holder.kill()
    holder.wait()
    with exclusive(tmp_path / ".lock"):
        pass
    assert (own.is_alive(name), own.others()) == (False, [])


def test_a_lock_is_free_again_after_its_block(tmp_path):
    for _ in range(2):
        with (
            exclusive(tmp_path / ".lock"),
            pytest.raises(BlockingIOError),
            exclusive(tmp_path / ".lock"),
        ):
            pass


def test_a_lock_that_cannot_be_made_is_not_called_held(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError), exclusive(tmp_path / "file" / ".lock"):
        pass


def test_a_released_lock_leaves_no_file_and_none_is_made_by_looking_for_it(tmp_path):
    first, second = ProcessLock(tmp_path), ProcessLock(tmp_path)
    first.release()
    assert not second.is_alive(first.name)
    assert [path.name for path in Path(tmp_path).iterdir()] == [f"{second.name}.lease"]
    second.release()
