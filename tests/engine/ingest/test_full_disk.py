"""Wherever a run meets the end of the disk, the data is as before or as after it, and nothing of the run is left."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nbext.engine import storage
from nbext.engine.ingest import ingest, stage
from nbext.engine.ingest.run import compact, remove
from nbext.errors import OutOfMemory, StorageError
from tests.engine.ingest import large
from tests.engine.ingest.conftest import write_csv
from tests.engine.ingest.reading_back import take
from tests.engine.ingest.test_append import contents
from tests.full_disk import fill

pytestmark = pytest.mark.load


@pytest.fixture(params=["begin", "add", "derive again", "fold", "take out"])
def work(request, grown, tmp_path, log):
    """What a run does, and the data folder before it."""
    data, _ = grown
    if request.param == "begin":
        data = tmp_path / "empty"
        data.mkdir()
        return lambda folder: take(
            folder, *(tmp_path / name for name in ("0.csv", "1.csv", "tokens.csv"))
        ), data
    if request.param == "fold":
        return compact, data
    if request.param == "take out":
        return lambda folder: remove("1.csv", folder), data
    # A row that is older than stored ones has everything derived again.
    path = write_csv(
        tmp_path / "more.csv", [log(5, 8, 5, block=110 if request.param == "add" else 99)]
    )
    return lambda folder: take(folder, path), data


def names(data: Path) -> set[Path]:
    """What is in a data folder, beside what every run makes first."""
    return {path.relative_to(data) for path in data.rglob("*")} - {
        Path(".folding.lock"),
        Path(".ingest.lock"),
        Path("generations"),
    }


@pytest.mark.parametrize(
    "step", [2**21, pytest.param(2**17, marks=pytest.mark.long)], ids=["a few sizes", "many"]
)
def test_a_run_that_meets_the_end_of_the_disk_leaves_before_or_after(
    work, small_disk, tmp_path, step
):
    run, data = work
    after = shutil.copytree(data, tmp_path / "after")
    run(after)
    whole, refused = contents(after), 0
    for free in range(0, 2**24, step):
        copy = shutil.copytree(data, small_disk / "data")
        held = names(copy)
        filler = fill(small_disk, free=free)
        try:
            run(copy)
        except StorageError as error:
            message = str(error)
        else:
            break
        finally:
            filler.unlink()
        refused += 1
        assert message.startswith(f"{copy} cannot be written: ")
        assert message.endswith(". Nothing was changed.")
        assert names(copy) == held
        if held:
            assert contents(copy) == contents(data)
        run(copy)
        assert contents(copy) == whole
        shutil.rmtree(copy)
    print(f"{refused} runs were refused; one with {free // 1024:,} KiB was not")
    assert contents(copy) == whole
    assert refused >= 2


def test_what_came_is_served_where_the_end_of_the_disk_leaves_it_uncompacted(
    grown, small_disk, tmp_path, log
):
    data, whole = grown
    large.grow(data)
    path = write_csv(tmp_path / "more.csv", [log(5, 8, 5, block=110)])
    take(whole, path)
    copy = shutil.copytree(data, small_disk / "data")
    # Only compaction merges: the rows have been served by then.
    report = ingest(
        [path], "ethereum", copy, progress=lambda step, _: step == "merging" and fill(small_disk)
    )
    assert report.generation == storage.current_generation(copy).folder.name
    assert (contents(copy), storage.current_generation(copy).delta is None) == (
        contents(whole),
        False,
    )
    assert report.uncompacted in str(report).splitlines()
    assert report.uncompacted.startswith(
        "The new rows are served; compacting them with the rest failed, so that "
        f"queries may be slower: {copy} cannot be written: "
    )
    assert report.uncompacted.endswith(". `nbext compact` tries it again.")
    unfolded = tmp_path / "unfolded"

    def interrupted(step, _):
        if step == "merging":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take(shutil.copytree(data, unfolded), path, progress=interrupted)
    assert names(copy) == names(unfolded)
    (small_disk / "fill").unlink()
    compact(copy)
    assert contents(copy) == contents(whole)


def test_compaction_that_needs_more_memory_than_others_should_miss_takes_all_that_is_allowed(
    grown, tmp_path, log, monkeypatch
):
    data, whole = grown
    path = write_csv(tmp_path / "more.csv", [log(5, 8, 5, block=110)])
    take(whole, path)
    large.grow(data)
    monkeypatch.setattr(stage, "LITTLE_MEMORY", 1_000_000)
    with pytest.raises(OutOfMemory):
        compact(shutil.copytree(data, tmp_path / "copy"), memory="1MB")
    report = take(data, path)
    assert (report.uncompacted, storage.current_generation(data).delta) == (None, None)
    assert contents(data) == contents(whole)
