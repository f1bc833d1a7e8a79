"""A file or folder is whole or absent, whatever happens while it is written."""

from __future__ import annotations

import errno
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from nbext.core.atomic_files import (
    ORDINARY,
    PART,
    files_in,
    is_intact,
    made_folder,
    secret_file,
    whole_file,
    whole_folder,
    write_whole,
)
from nbext.engine.storage import current_generation
from nbext.errors import StorageError


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def fail_in(part: Path) -> None:
    part.write_text("half")
    raise ZeroDivisionError


def test_a_file_takes_its_name_when_it_is_complete(tmp_path):
    target = tmp_path / "x.csv"
    target.write_text("old")
    with whole_file(target) as part:
        part.write_text("new")
        assert target.read_text() == "old"
    assert (names(tmp_path), target.read_text()) == (["x.csv"], "new")


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "x.csv"
    write_whole(target, "old")
    with pytest.raises(ZeroDivisionError), whole_file(target) as part:
        fail_in(part)
    assert (names(tmp_path), target.read_text()) == (["x.csv"], "old")


def test_a_file_that_appears_meanwhile_is_not_replaced_unless_asked(tmp_path):
    target = tmp_path / "x.csv"
    with pytest.raises(FileExistsError), whole_file(target, overwrite=False):
        target.write_text("theirs")
    assert (names(tmp_path), target.read_text()) == (["x.csv"], "theirs")
    target.unlink()
    with whole_file(target, overwrite=False) as part:
        part.write_text("ours")
    assert (names(tmp_path), target.read_text()) == (["x.csv"], "ours")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_a_private_file_is_never_readable_by_others(tmp_path):
    before = os.umask(0o022)
    try:
        with whole_file(tmp_path / "private") as part:
            assert stat.S_IMODE(part.stat().st_mode) == 0o600
        with whole_file(tmp_path / "ordinary", mode=ORDINARY):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "ordinary").stat().st_mode) == 0o644


def test_a_name_of_the_greatest_length_can_be_written(tmp_path):
    target = tmp_path / ("x" * 251 + ".csv")
    write_whole(target, "é")
    assert target.read_bytes() == "é".encode()


def test_a_folder_takes_its_name_when_it_is_complete(tmp_path):
    target = tmp_path / "tables"
    with whole_folder(target) as building:
        (building / "below").mkdir()
        (building / "below" / "a").write_text("1")
        assert not target.exists()
    assert names(tmp_path) == ["tables"]
    assert (target / "below" / "a").read_text() == "1"


def test_a_folder_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "tables") as building:
        fail_in(building / "a")
    assert names(tmp_path) == []


def test_of_two_that_make_a_folder_the_first_one_stays_and_the_other_is_told(tmp_path):
    target = tmp_path / "tables"
    ours = whole_folder(target)
    (ours.__enter__() / "a").write_text("ours")
    with whole_folder(target) as other:
        (other / "a").write_text("theirs")
    with pytest.raises(OSError, match=re.escape(str(target))):
        ours.__exit__(None, None, None)
    assert (names(tmp_path), (target / "a").read_text()) == (["tables"], "theirs")


def test_of_two_processes_that_make_a_folder_of_the_same_either_does(tmp_path):
    target = tmp_path / "tables"

    def fill(building: Path) -> None:
        (building / "a").write_text("1")

    def late(building: Path) -> None:
        made_folder(target, "same", fill)
        fill(building)

    made_folder(target, "same", late)
    assert is_intact(target, "same")
    # Of anything else it is not the folder that was to be made.
    with pytest.raises(OSError, match=re.escape(str(target))):
        made_folder(target, "other", late)
    assert (names(tmp_path), is_intact(target, "same")) == (["tables"], True)


def test_what_is_written_aside_is_hidden_and_named_as_a_part(tmp_path):
    with whole_file(tmp_path / "x") as part:
        assert part.name.startswith(".x.")
        assert part.suffix == PART


def test_a_secret_is_made_once(tmp_path):
    path = tmp_path / "deep" / "key"
    assert [secret_file(path, "first"), secret_file(path, "second")] == ["first", "first"]
    assert path.read_text() == "first\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 or os.name == "nt"


@pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="what a handle is open on is looked up"
)
def test_what_is_renamed_is_on_the_disk_before_and_its_name_after(tmp_path, monkeypatch):
    flushed, fsync = [], os.fsync

    def noted(handle: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{handle}").readlink())
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    with whole_file(tmp_path / "x") as part:
        pass
    with whole_folder(tmp_path / "tables") as building:
        (building / "a").write_text("1")
    assert flushed == [part, tmp_path, building / "a", building, tmp_path]


def test_a_folder_that_may_not_be_read_is_not_an_empty_one(tmp_path, monkeypatch):
    for name in ("b.arrow", "a.arrow", ".c.arrow.part"):
        (tmp_path / name).touch()
    assert files_in(tmp_path, "*.arrow") == [tmp_path / "a.arrow", tmp_path / "b.arrow"]
    assert files_in(tmp_path / "nowhere", "*") == []

    def refused(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    # Nothing is refused to root, who may run the tests.
    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(PermissionError):
        files_in(tmp_path, "*.arrow")
    with pytest.raises(StorageError, match=r"current cannot be read: .*Permission denied"):
        current_generation(tmp_path)


def test_a_secret_that_many_make_at_once_is_the_same_for_all(tmp_path):
    for number in range(20):
        path, together = tmp_path / f"{number}.key", Barrier(8)

        def made(mine: str, path=path, together=together) -> str:
            together.wait()
            return secret_file(path, mine)

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(made, map(str, range(8)))) == {path.read_text("ascii").strip()}
