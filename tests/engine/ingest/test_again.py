"""Taking more in: the same again, a day more, altered files, two runs at once, and a process that is killed."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from nbext.core.locks import exclusive
from nbext.engine import storage
from nbext.engine.ingest import stage
from nbext.errors import StorageError
from tests.engine.ingest.conftest import write_csv, write_parquet
from tests.engine.ingest.reading_back import Tables, everything, take, wallet
from tests.engine.ingest.replay import tokens


@pytest.fixture
def days(tmp_path, log):
    """Two days of transfers whose wallets and contracts interleave, and both in one file."""
    one = [
        log(0, 5, 10**20, block=100),
        log(5, 3, 10**19, block=101),
        log(0, 9, 7, contract=2000, block=101),
    ]
    two = [
        log(3, 4, 10**18, block=102),
        log(9, 1, 7, contract=2000, block=103),
        log(0, 2, 10**20, contract=900, block=103),
    ]
    paths = [
        write_parquet(tmp_path / f"{n}.parquet", logs)
        for n, logs in enumerate((one, two, one + two))
    ]
    return paths, one, two


def test_a_file_that_was_taken_in_is_skipped_also_under_another_name(data, tmp_path, days):
    path = days[0][0]
    first = take(data, path)
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(path.read_bytes())
    again = take(data, path, copy)
    assert list(again.skipped) == [str(path), str(copy)]
    assert (again.changed, again.generation, again.rows) == (False, first.generation, 0)


@pytest.mark.slow
def test_a_file_with_other_bytes_than_before_says_that_what_these_gave_stays(data, tmp_path, days):
    path = write_csv(tmp_path / "day.csv", days[1])
    assert take(data, path).other_bytes == []
    write_csv(path, days[1][:1])
    report = take(data, path)
    assert (report.other_bytes, report.changed) == ([str(path)], False)
    assert report.lines()[1] == (
        f"{path}: it had other bytes when it was ingested before, and what these gave stays (nbext sources lists both, "
        "and nbext remove takes one out)"
    )
    assert take(data, path).other_bytes == []


@pytest.mark.slow
def test_the_same_rows_in_another_file_change_nothing(data, tmp_path, days):
    take(data, days[0][0])
    before = everything(data)
    report = take(data, write_csv(tmp_path / "same.csv", days[1]))
    assert (report.rows, report.new, report.odd["duplicates"], report.changed) == (3, 0, 3, False)
    assert everything(data) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "order",
    [(0, 1), *(pytest.param(order, marks=pytest.mark.slow) for order in ((1, 0), (0, 2), (2, 0)))],
    ids=["in order", "backwards", "whole", "part"],
)
def test_a_day_more_makes_the_data_that_one_run_over_all_files_makes(
    tmp_path, days, contracts_file, order
):
    for n in order:
        take(tmp_path / "steps", days[0][n], contracts_file)
    take(tmp_path / "whole", days[0][2], contracts_file)
    assert everything(tmp_path / "steps") == everything(tmp_path / "whole")


@pytest.mark.slow
def test_hashes_that_all_collide_change_nothing(tmp_path, days, contracts_file, monkeypatch):
    """Addresses and keys are told apart by hashes where those differ, else by themselves."""
    take(tmp_path / "data", days[0][0], contracts_file, days[0][2])
    expected = everything(tmp_path / "data")[0]
    opened = stage.Stage._shut

    def colliding(self, sources):
        self.run(
            "CREATE MACRO hash(a) AS 7::UBIGINT, (a, b, c) AS 7::UBIGINT, (a, b, c, d) AS 7::UBIGINT"
        )
        opened(self, sources)

    monkeypatch.setattr(stage.Stage, "_shut", colliding)
    report = take(tmp_path / "again", days[0][0], contracts_file, days[0][2])
    assert everything(tmp_path / "again")[0] == expected
    assert report.odd["duplicates"] == 3


@pytest.mark.slow
def test_a_day_more_does_not_need_the_files_of_the_days_before(data, days, contracts_file):
    take(data, days[0][0], contracts_file)
    days[0][0].unlink()
    take(data, days[0][1])
    with Tables(data) as tables:
        assert {
            key: amount for key, amount in tables.balances().items() if key[0] != wallet(2000)
        } == tokens(
            [log for log in days[1] + days[2] if log.token_address != wallet(2000)]
        ).balances
        assert tables.owners() == {(wallet(2000), 7): wallet(1)}


def test_hashes_that_differ_in_their_last_byte_only_are_of_different_transfers(data, tmp_path, log):
    """Test chains number their transactions: most of a hash is zeros."""
    rows = [log(0, 1, 1, index=0)._replace(transaction_hash=f"0x{n:064x}") for n in range(1, 25)]
    assert take(data, write_csv(tmp_path / "a.csv", rows)).new == 24
    assert (
        take(data, write_csv(tmp_path / "b.csv", [*rows, log(0, 1, 1, index=0, block=101)])).new
        == 1
    )


@pytest.mark.slow
def test_a_changed_file_adds_its_new_rows_and_takes_none_away(data, tmp_path, log):
    one, two, three = (log(0, n, 10**20) for n in (1, 2, 3))
    path = write_csv(tmp_path / "t.csv", [one, two])
    take(data, path)
    write_csv(path, [two, three])
    report = take(data, path)
    assert (report.skipped, report.new, report.odd["duplicates"]) == ({}, 1, 1)
    with Tables(data) as tables:
        assert tables.balances() == tokens([one, two, three]).balances


@pytest.mark.slow
def test_the_same_log_on_another_chain_is_another_transfer(data, tmp_path, log):
    row = log(0, 1, 10**20)
    take(data, write_parquet(tmp_path / "a.parquet", [row]))
    report = take(data, write_csv(tmp_path / "b.csv", [row]), chain="optimism")
    assert report.new == 1
    with Tables(data) as tables:
        assert tables.rows("SELECT chain_id, address FROM contracts WHERE transfers > 0") == [
            (1, wallet(1000)),
            (10, wallet(1000)),
        ]


@pytest.mark.slow
def test_blocks_that_are_missing_between_others_are_told_as_ranges(data, tmp_path, log):
    logs = [log(block=block) for block in (*range(100, 150), *range(300, 350), *range(351, 360))]
    report = take(data, write_parquet(tmp_path / "t.parquet", logs))
    assert report.gaps == ["  no data for ethereum blocks 150 to 299 (150 blocks)"]
    assert report.gaps[0] in report.lines()
    assert storage.current_generation(data).chains[0].gaps == ((150, 299),)
    # Another chain's run, which can close none of them, does not tell them again.
    assert take(data, write_csv(tmp_path / "o.csv", [log(), log()]), chain="optimism").gaps == []
    # Of a quiet chain nobody can say which blocks are missing: answers must not.
    assert [one.gaps for one in storage.current_generation(data).chains] == [((150, 299),), ()]


def test_of_many_gaps_the_widest_three_are_told(data, tmp_path, log):
    starts = [100, 400, 800, 1_300, 1_900]
    logs = [log(block=start + n) for start in starts for n in range(50)]
    report = take(data, write_parquet(tmp_path / "t.parquet", logs))
    assert [line for line in report.lines() if line.endswith(("blocks)", "gap"))] == [
        "  no data for ethereum blocks 1,350 to 1,899 (550 blocks)",
        "  no data for ethereum blocks 850 to 1,299 (450 blocks)",
        "  no data for ethereum blocks 450 to 799 (350 blocks)",
        "  and 1 smaller gap",
    ]


@pytest.mark.slow
def test_metadata_that_comes_later_classifies_transfers_that_came_before(
    data, tmp_path, log, contracts_file
):
    made = [log(0, 1, 10**20, contract=2000), log(0, 2, 10**20 + 1, contract=2000)]
    first = take(data, write_parquet(tmp_path / "t.parquet", made))
    assert (first.erc20, first.odd["inferred"]) == (2, 1)
    take(data, contracts_file)
    with Tables(data) as tables:
        assert tables.owners() == {
            (wallet(2000), 10**20): wallet(1),
            (wallet(2000), 10**20 + 1): wallet(2),
        }
        assert tables.rows("SELECT DISTINCT count FROM transfers") == [(1,)]


def test_a_second_run_in_the_same_folder_is_turned_away(data, days):
    data.mkdir()
    turned_away = pytest.raises(StorageError, match=r"another `nbext ingest` is writing there")
    with exclusive(data / ".ingest.lock"), turned_away:
        take(data, days[0][0])


@pytest.mark.slow
def test_the_files_of_a_generation_before_stay_readable_while_two_more_are_made(
    data, days, contracts_file
):
    take(data, days[0][0])
    with Tables(data) as old:
        before = old.balances()
        take(data, days[0][1])
        take(data, contracts_file)
        assert old.balances() == before
    assert len(list((data / "generations").iterdir())) == 2


# A process that kills itself, as `kill -9` would, at the n-th time that something happens.
SUICIDAL = """
import os, signal, sys
from pathlib import Path
from nbext.engine.ingest import ingest, remove, stage
place, nth, path, data, work = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
happened = 0
def dying(work):
    def counted(*args, **options):
        global happened
        happened += 1
        if happened == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return work(*args, **options)
    return counted
owner, name = {"statement": (stage.Stage, "run"), "sync": (os, "fsync"), "rename": (Path, "rename"),
               "switch": (Path, "replace"), "prune": (__import__("shutil"), "rmtree")}[place]
setattr(owner, name, dying(getattr(owner, name)))
ingest([path], "ethereum", data) if work == "ingest" else remove(path, data)
"""


def killed_at(place, nth, path, data, work="ingest"):
    """Take a file in, or remove it, with a process that dies there; return whether it lived."""
    command = [sys.executable, "-c", SUICIDAL, place, str(nth), str(path), str(data), work]
    code = subprocess.run(command, check=False, capture_output=True).returncode
    assert code in (0, -signal.SIGKILL)
    return code == 0


MOMENTS = [
    ("statement", 3),
    ("statement", 40),
    ("statement", 80),
    ("sync", 1),
    ("sync", 5),
    ("rename", 1),
    ("sync", 9),
    ("switch", 2),
]


@pytest.mark.parametrize(
    "moments",
    [MOMENTS[-1:], pytest.param(MOMENTS[:-1], marks=pytest.mark.load)],
    ids=["at the switch", "elsewhere"],
)
def test_a_process_killed_at_any_moment_leaves_what_was_before_or_what_comes_after(
    tmp_path, days, moments
):
    take(tmp_path / "whole", days[0][0])
    take(tmp_path / "whole", days[0][1])
    after = everything(tmp_path / "whole")
    data = tmp_path / "data"
    take(data, days[0][0])
    before = everything(data)
    for place, nth in moments:
        lived = killed_at(place, nth, days[0][1], data)
        assert everything(data) == (
            after if storage.current_generation(data).number == 2 else before
        )
        assert not lived, f"nothing happened at {place} {nth}"
    take(data, days[0][1])
    assert everything(data) == after
    assert not (data / ".stage").exists()
    assert not [p.name for p in (data / "generations").iterdir() if p.name.startswith(".")]


def test_a_folder_that_cannot_be_made_is_said(tmp_path, days):
    (tmp_path / "data").write_text("a file, not a folder")
    with pytest.raises(StorageError, match="cannot be written"):
        take(tmp_path / "data", days[0][0])


@pytest.mark.slow
def test_what_is_served_between_the_rename_and_the_switch_is_the_old_generation(data, days):
    take(data, days[0][0])
    served = storage.current_generation(data)
    orphan = data / "generations" / "000002-0000aaaa"
    orphan.mkdir()
    assert storage.current_generation(data) == served
    take(data, days[0][1])
    assert storage.current_generation(data).number == 2
    assert not orphan.exists()
