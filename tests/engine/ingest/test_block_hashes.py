"""Blocks have the hashes that files say they have: whichever file does, once, and never two."""

from __future__ import annotations

import pytest

from nbext.engine import storage
from nbext.engine.ingest import remove
from nbext.engine.ingest.run import compact
from nbext.errors import IngestError
from tests import slow
from tests.engine.ingest import large
from tests.engine.ingest.conftest import ETL, write_csv, write_parquet
from tests.engine.ingest.reading_back import Tables, take


def name(block, branch=0):
    """A made-up hash of a block on a branch of the chain."""
    return f"0x{branch}b{block:062x}"


def hashes(data):
    """Return the hash of each block, and that of the chain's last one."""
    with Tables(data) as tables:
        of_blocks = dict(
            tables.rows("SELECT block, hash FROM blocks WHERE chain_id = 1 ORDER BY 1")
        )
    (last,) = [
        one.last_hash for one in storage.current_generation(data).chains if one.chain_id == 1
    ]
    return of_blocks, last


def blocks_file(path, *blocks, branch=0):
    lines = [f"{n},{1_600_000_000 + 12 * n},{name(n, branch)}" for n in blocks]
    path.write_text("\n".join(["number,timestamp,hash", *lines]))
    return path


@pytest.mark.slow
def test_files_of_blocks_and_of_transfers_say_the_hashes_of_blocks(data, tmp_path, log):
    first, second, third = log(0, 1, block=100), log(1, 2, block=101), log(0, 2, block=104)
    etherscan = tmp_path / "api.json"
    etherscan.write_text(
        '{"status": "1", "result": [{"blockNumber": "104", "timeStamp": "1600001248", '
        f'"hash": "{third.transaction_hash}", "blockHash": "{name(104)}", "from": "{third.from_address}", '
        f'"to": "{third.to_address}", "value": "5", "contractAddress": "{third.token_address}"}}]}}'
    )
    take(
        data,
        blocks_file(tmp_path / "etl.csv", 100, 102),
        # Of cryo, with bytes; and one whose text is no hash says nothing of its block.
        write_parquet(
            tmp_path / "cryo.parquet", [second], block_hash=[bytes.fromhex(name(101)[2:])]
        ),
        write_parquet(tmp_path / "odd.parquet", [first, log(block=103)], block_hash=["", "0x12"]),
        etherscan,
    )
    known = {100: name(100), 101: name(101), 102: name(102), 103: None, 104: name(104)}
    assert hashes(data) == (known, name(104))
    shouted = tmp_path / "upper.csv"
    shouted.write_text(f"number,timestamp,hash\n104,1600001248,0x{name(104)[2:].upper()}\n")
    take(data, shouted)
    assert hashes(data) == (known, name(104)), "capitals are no other hash"


def test_the_last_block_without_a_hash_has_not_that_of_another(data, tmp_path, log):
    take(
        data, blocks_file(tmp_path / "b.csv", 100), write_csv(tmp_path / "t.csv", [log(block=101)])
    )
    assert hashes(data) == ({100: name(100), 101: None}, None)


@pytest.mark.parametrize("later", slow.but_the_first([True, False]))
def test_two_hashes_of_one_block_are_refused(data, tmp_path, log, later):
    one, two = (
        write_parquet(
            tmp_path / f"{branch}.parquet", [log(block=100 + branch), log(block=102)],
            block_hash=[name(100 + branch), name(102, branch)],
        )
        for branch in (0, 1)
    )  # fmt: skip
    if later:
        take(data, one)
    with pytest.raises(IngestError) as caught:
        take(data, *([] if later else [one]), two)
    assert str(caught.value) == (
        f"{two}: 1 block has two hashes. If a chain was reorganised, ingest its new blocks with --replace-from 102; "
        f"if a file is wrong, take it out with `nbext remove`.\n  block 102: {name(102)} in {one}, "
        f"{name(102, 1)} in {two}"
    )
    # A file that contradicts itself is left out alone.
    wrong = blocks_file(tmp_path / "wrong.csv", 100)
    wrong.write_text(f"{wrong.read_text()}\n100,1600001200,{name(100, 1)}\n")
    report = take(data, one, wrong)
    assert [str(error).split("\n")[0] for error in report.refused] == [
        f"{wrong}: 1 block has two hashes. Correct the file."
    ]
    assert hashes(data)[1] == name(102)


@pytest.mark.slow
def test_a_reorganised_block_gets_its_new_hash_and_what_is_taken_out_takes_its_hash_along(
    added, tmp_path, log
):
    data = added
    transfers = write_csv(tmp_path / "t.csv", [log(block=block) for block in (100, 101, 102)])
    take(data, transfers, blocks_file(tmp_path / "old.csv", 100, 101, 102))
    new = blocks_file(tmp_path / "new.csv", 102, 103, branch=1)
    moved = write_csv(tmp_path / "moved.csv", [log(block=103)])
    take(data, new, moved, replace_from=102)
    known = {100: name(100), 101: name(101), 102: name(102, 1), 103: name(103, 1)}
    assert hashes(data) == (known, name(103, 1))
    remove("new.csv", data)
    assert hashes(data) == ({100: name(100), 101: name(101), 103: None}, None)


@pytest.mark.slow
def test_a_day_brings_its_hashes_and_those_of_stored_blocks_are_added_by_building_again(
    added, tmp_path, log
):
    days = [[log(block=100), log(block=101)], [log(block=102)]]
    paths = [write_csv(tmp_path / f"{n}.csv", logs) for n, logs in enumerate(days)]
    take(added, paths[0], blocks_file(tmp_path / "a.csv", 100, 101))
    report = take(added, paths[1], blocks_file(tmp_path / "b.csv", 102))
    assert (report.rebuilt, storage.current_generation(added).delta is not None) == (None, True)
    known = {block: name(block) for block in (100, 101, 102)}
    assert hashes(added) == (known, name(102))
    compact(added)
    assert hashes(added) == (known, name(102))
    # The same transfers and times, and hashes later: an answer says more then, and none from before is given again.
    late = large.begin(tmp_path / "late")
    plain = tmp_path / "plain.csv"
    plain.write_text(
        "number,timestamp\n" + "".join(f"{n},{1_600_000_000 + 12 * n}\n" for n in (100, 101))
    )
    take(late, paths[0], plain)
    before = storage.current_generation(late).fingerprint
    report = take(late, tmp_path / "a.csv")
    assert report.rebuilt == "stored blocks get their times or hashes"
    assert storage.current_generation(late).fingerprint != before
    assert hashes(late) == ({100: name(100), 101: name(101)}, name(101))


def test_a_hash_of_a_bad_row_is_that_of_no_block(data, tmp_path, log):
    bad = log(block=105)._replace(value="much")
    path = tmp_path / "t.csv"
    rows = [(*log(block=100), name(100)), (*bad, name(105))]
    path.write_text(
        "\n".join([",".join([*ETL, "block_hash"]), *(",".join(map(str, r)) for r in rows)])
    )
    assert take(data, path).bad_rows == 1
    assert hashes(data) == ({100: name(100)}, name(100))
