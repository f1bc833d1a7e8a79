"""However transfers are split into runs, added and compacted, the tables are those of one ingest of all of them."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbext import cli
from nbext.core.chains import chain_of
from nbext.engine import storage
from nbext.engine.dataset import Compared
from nbext.engine.ingest import ingest, stage
from nbext.engine.ingest.run import compact, record_compared, remove
from nbext.engine.open import open_dataset
from nbext.engine.schema import TABLES
from nbext.engine.spark.session import parquet_files
from nbext.errors import NbextError, StorageError
from nbext.language import language
from tests import slow
from tests.engine.ingest import large
from tests.engine.ingest.conftest import ERC20, ERC721, ERC1155, FACTS, UNKNOWN, WIDE, write_csv
from tests.engine.ingest.reading_back import Tables, take, transaction, wallet
from tests.engine.ingest.replay import Log

# Every table by address: a wallet's number depends on when it came. But for what is `large`, which not each has.
HERE = f"chain_id <> {large.CHAIN.id}"
BY_ADDRESS = {
    "wallets": f"SELECT address, is_contract FROM wallets WHERE address NOT IN {large.WALLETS}",
    "balances": "SELECT c.address, w.address, hi, mid, lo, sort_key FROM balances JOIN contracts c USING (contract) "
    f"JOIN wallets w USING (wallet) WHERE {HERE}",
    "nft_changes": "SELECT c.address, w.address, id_hi, id_mid, id_lo, block, change FROM nft_changes "
    f"JOIN contracts c USING (contract) JOIN wallets w USING (wallet) WHERE {HERE}",
    "history": "SELECT c.address, w.address, from_block, to_block, hi, mid, lo, sort_key FROM history "
    f"JOIN contracts c USING (contract) JOIN wallets w USING (wallet) WHERE {HERE}",
    "transfers": "SELECT c.address, block, log_index, s.address, r.address, hi, mid, lo, count FROM transfers "
    "JOIN contracts c USING (contract) JOIN wallets s ON s.wallet = sender "
    f"JOIN wallets r ON r.wallet = recipient WHERE {HERE}",
    "snapshot_wallets": "SELECT chain_id, address, block FROM snapshot_wallets JOIN wallets USING (wallet)",
    "activity": f"SELECT a.* EXCLUDE (wallet), address FROM activity a JOIN wallets USING (wallet) WHERE {HERE}",
    "blocks": f"SELECT * FROM blocks WHERE {HERE}",
    "contracts": f"SELECT * EXCLUDE (contract) FROM contracts WHERE {HERE}",
    "keys": f"SELECT chain_id, tx, low, key_index FROM ingest.keys WHERE {HERE}",
    "repeats": "SELECT tx, low, key_index, block FROM ingest.repeats",
    "numbers": "SELECT count(*) = count(DISTINCT wallet), coalesce(max(wallet) + 1, 0) = count(*) FROM wallets",
}


def contents(data):
    """Every table's rows by address, sorted, and what the manifest says of them."""
    with Tables(data) as tables:
        manifest = tables.generation.manifest
        counted = {
            table: tables.rows(f"SELECT count(*) FROM {table}")[0][0]
            for table in manifest["tables"]
        }
        assert manifest["tables"] == counted
        rows = {name: sorted(map(str, tables.rows(sql))) for name, sql in BY_ADDRESS.items()}
        # What contracts said is of the chain, and not of the files.
        return rows, [
            {name: said for name, said in chain.items() if name != "differing"}
            for chain in manifest["chains"]
            if chain["chain_id"] != large.CHAIN.id
        ]


@st.composite
def histories(draw):
    """Transfers, in which run each one comes, and what else happens between."""
    block = st.integers(100, 112)
    amounts = st.one_of(st.integers(0, 3), st.integers(10**20, 10**20 + 2), st.just(2**256 - 1))
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from([ERC20, ERC20, WIDE, ERC721, ERC1155, UNKNOWN]),
                st.integers(0, 5),
                st.integers(0, 5),
                amounts,
                block,
            ),
            min_size=1,
            max_size=24,
        )
    )
    logs = [
        Log(
            wallet(contract),
            wallet(n * 7 % 6),
            wallet(recipient * 11 % 6 if recipient < 5 else 1000),
            value % 4 if contract in (ERC721, ERC1155) else value,
            transaction(place + 1),
            place,
            at,
        )
        for place, (contract, n, recipient, value, at) in enumerate(rows)
    ]
    if draw(st.booleans()):
        logs.sort(key=lambda log: log.block_number)
        cuts = sorted(draw(st.lists(st.integers(0, len(logs)), max_size=4)))
        runs = [logs[a:b] for a, b in zip([0, *cuts], [*cuts, len(logs)], strict=True)]
    else:
        places = draw(st.lists(st.integers(0, 4), min_size=len(logs), max_size=len(logs)))
        runs = [
            [log for log, place in zip(logs, places, strict=True) if place == n] for n in range(5)
        ]
    runs = [run + draw(st.lists(st.sampled_from(logs), max_size=2)) for run in runs if run]
    # Each replaces what was before its block, wherever that is among the runs.
    holders = st.lists(
        st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, unique_by=lambda one: one[0]
    )
    snapshot = st.tuples(
        st.sampled_from([ERC20, WIDE, ERC721, UNKNOWN]), st.integers(99, 113), holders
    )
    return SimpleNamespace(
        runs=runs,
        snapshots=draw(st.dictionaries(st.integers(0, len(runs) - 1), snapshot, max_size=2)),
        removed=draw(st.none() | st.integers(0, len(runs) - 1)),
        facts=draw(st.integers(0, len(runs) - 1)),
        compacted=draw(st.sets(st.integers(0, 4))),
        timed=draw(st.sampled_from(["all", "none", "some"])),
    )


SEGMENTS = (
    {"token": {"token": wallet(ERC20), "unit": "raw", "balance": {"min": "1"}}},
    {"token": {"token": wallet(ERC20), "unit": "raw", "balance": {"min": "1"}, "heldSince": 106}},
    {
        "nft": {"nft": wallet(ERC721), "count": {"min": 1}},
        "not": {"token": {"token": wallet(WIDE)}},
    },
    {"nft": {"nft": wallet(ERC1155), "tokenIds": ["1", "2"]}},
    {"activity": {"transfers": {"min": 1}, "last": {"after": 103}}},
    {
        "any": [
            {"transfer": {"direction": "in", "token": wallet(ERC20)}},
            {"wallet": {"contract": True}},
        ]
    },
)


def answers(data, engine="duckdb://"):
    """The rows of some segments, in their order, now and as of a block, and the first two of each."""
    dataset = open_dataset(data, engine)
    try:
        return [
            segment(dataset, filters, limit, **more)
            for filters in SEGMENTS
            for limit, more in (
                (2, {}),
                (100, {"asOf": 105}),
                (2, {"columns": ["transfers"], "orderBy": "-transfers"}),
            )
        ]
    finally:
        dataset.close()


def segment(dataset, filters, limit, **more):
    try:
        parsed = language.parse({"operator": "AND", "filters": {**filters, **more}, "limit": limit})
        answer = dataset.ask(language.compile(language.resolve(parsed, dataset)), limit=limit)
    except NbextError as error:  # the data need not have each contract
        return str(error)
    with closing(answer.stored):
        return answer.matched, answer.rows.to_pylist()


def times(folder, history):
    logs = [log for run in history.runs for log in run]
    blocks = sorted({log.block_number for log in logs})[:: 2 if history.timed == "some" else 1]
    path = folder / "blocks.csv"
    # Every third block alone has a hash.
    lines = [
        f"{n},{1_600_000_000 + n * 20_000},{'0x' if n % 3 else transaction(n)}\n" for n in blocks
    ]
    path.write_text("".join(["number,timestamp,hash\n", *lines]))
    return [] if history.timed == "none" else [path]


def snapshots(folder, history, n):
    """The file of holders that comes with a run, if one does."""
    if n not in history.snapshots:
        return []
    contract, block, holders = history.snapshots[n]
    what = "token_id" if contract == ERC721 else "balance"
    path = folder / f"holders-{n}.csv"
    path.write_text(
        f"address,{what},block_number,token_address\n"
        + "".join(
            f"{wallet(held if what == 'token_id' else holder)},"
            f"{holder if what == 'token_id' else held},{block},{wallet(contract)}\n"
            for holder, held in holders
        )
    )
    return [path]


@pytest.mark.slow
@pytest.mark.parametrize("part", slow.but_the_first(range(2)))
@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(history=histories())
def test_transfers_in_any_runs_make_the_tables_of_one_ingest(part, history):
    compare(history)


@pytest.mark.long
@pytest.mark.parametrize("part", range(3))  # sixty in all, on every core
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(history=histories())
def test_many_transfers_in_any_runs_make_the_tables_of_one_ingest(part, history):
    compare(history)


def compare(history):
    """Take a history in run by run, and at once: tables and answers are the same."""
    folder = Path(tempfile.mkdtemp())
    try:
        facts = folder / "tokens.csv"
        facts.write_text(FACTS)
        days = [
            [write_csv(folder / f"{n}.csv", run), *snapshots(folder, history, n)]
            for n, run in enumerate(history.runs)
        ]
        also = times(folder, history)
        # Decimals stand beside a snapshot's balances, and a standard beside its ids: both are known from the start.
        early = 0 if history.snapshots else history.facts
        files = [path for day in days for path in day]
        if refusal(folder / "whole", *files, facts, *also, chain="ethereum"):
            return
        large.begin(folder / "runs")
        for n, day in enumerate(days):
            take(folder / "runs", *day, *([facts] if n == early else []), *(also if n == 0 else []))
            if n in history.compacted:
                compact(folder / "runs")
        assert contents(folder / "runs") == contents(folder / "whole")
        assert answers(folder / "runs") == answers(folder / "whole")
        if history.removed is not None and len(files) > 1:
            for data in ("runs", "whole"):
                remove(f"{history.removed}.csv", folder / data)
            assert contents(folder / "runs") == contents(folder / "whole")
        compact(folder / "runs")
        assert storage.current_generation(folder / "runs").delta is None
        assert contents(folder / "runs") == contents(folder / "whole")
    finally:
        shutil.rmtree(folder)


def test_what_is_added_lies_beside_the_base_which_is_not_written_again(grown):
    data, whole = grown
    served = storage.current_generation(data)
    first, last = sorted((data / "generations").iterdir())
    assert served.folder == last
    assert served.tables.stat().st_ino == (first / storage.TABLES_FILE).stat().st_ino
    assert served.delta is not None
    assert contents(data) == contents(whole)
    assert answers(data) == answers(whole)
    assert list(storage.damage_of(data)) == []


@pytest.mark.slow
def test_whoever_changed_in_the_delta_is_asked_of_as_of_whom_is_there_now_on_either_side_of_every_bound(
    tmp_path, added, log
):
    days = [
        [log(0, n, 4, block=100) for n in (1, 2, 3)] + [log(3, 9, 4, block=101)],
        [log(1, 3, 3, block=103), log(2, 9, 4, block=103)],
        [log(1, 2, 1, block=105), log(9, 1, 2, block=106), log(2, 5, 1, block=107)],
    ]
    files = [write_csv(tmp_path / f"{n}.csv", logs) for n, logs in enumerate(days)]
    facts = tmp_path / "tokens.csv"
    facts.write_text(FACTS)
    times = tmp_path / "blocks.csv"
    times.write_text(
        "number,timestamp\n"
        + "".join(f"{n},{1_600_000_000 + n * 20_000}\n" for n in range(100, 108))
    )
    take(tmp_path / "whole", *files, facts, times)
    take(added, files[0], facts, times)
    compact(added)
    for path in files[1:]:
        assert take(added, path).rebuilt is None
    held = {"token": wallet(ERC20), "unit": "raw"}
    bounds = [{side: n} for side in ("min", "max") for n in (1, 2, 3, 4)]
    asked = [
        {"activity": {name: bound}} for name in ("transfers", "activeDays") for bound in bounds
    ]
    asked += [
        {"activity": {name: {side: block}}}
        for name in ("first", "last")
        for side in ("after", "before")
        for block in range(100, 108)
    ]
    asked += [{"not": one} for one in asked]
    asked += [
        {"token": {**held, "balance": {"min": str(n)}, "heldSince": block}, **more}
        for n in (1, 2, 3)
        for block in range(100, 108)
        for more in ({}, {"asOf": 104}, {"asOf": 106})
    ]
    grown, whole = open_dataset(added), open_dataset(tmp_path / "whole")
    with closing(grown), closing(whole):
        found = [segment(grown, filters, 100) for filters in asked]
        assert found == [segment(whole, filters, 100) for filters in asked]
    assert len(set(map(str, found))) > 20


@pytest.mark.slow
def test_a_token_id_that_moves_in_two_days_has_one_owner_then_and_now(tmp_path, added, log):
    # Also bought and sold within a day, and back to who had it.
    days = [[(0, 7, 101)], [(7, 4, 103), (4, 6, 105)], [(6, 8, 106), (8, 9, 106)], [(9, 6, 107)]]
    logs = [[log(*move[:2], 3, contract=ERC721, block=move[2]) for move in day] for day in days]
    files = [write_csv(tmp_path / f"{n}.csv", made) for n, made in enumerate(logs)]
    facts = tmp_path / "tokens.csv"
    facts.write_text(FACTS)
    take(tmp_path / "whole", *files, facts)
    take(added, files[0], facts)
    compact(added)
    for path in files[1:]:
        assert take(added, path).rebuilt is None
    owned = {"nft": {"nft": wallet(ERC721), "tokenIds": [3]}}
    with closing(open_dataset(added)) as dataset:
        for block, owner in {101: 7, 103: 4, 105: 6, 106: 9, 107: 6}.items():
            matched, rows = segment(dataset, owned, 10, asOf=block)
            assert (matched, [row["address"] for row in rows]) == (1, [wallet(owner)]), block
        assert segment(dataset, owned, 10) == (matched, rows)
    assert contents(added) == contents(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("snapshot", [False, True])
def test_a_day_counts_once_whichever_run_and_contract_its_transfers_are_of(
    tmp_path, added, log, snapshot
):
    """Five blocks a day. Wallet 1 is active on days 0, 2 and 4 before another contract's rows come, of every day."""
    before = [log(0, 1, 9, block=block) for block in (100, 110, 120)]
    later = [
        [log(1, 2, 1, contract=WIDE, block=block) for block in (101, 106, 111, 116, 121, 126)],
        [log(2, 1, 1, contract=WIDE, block=block) for block in (127, 131)],
    ]
    files = [write_csv(tmp_path / f"{n}.csv", logs) for n, logs in enumerate([before, *later])]
    facts, times, held = (tmp_path / name for name in ("tokens.csv", "blocks.csv", "holders.csv"))
    facts.write_text(FACTS)
    times.write_text(
        "number,timestamp\n"
        + "".join(f"{n},{1_600_041_600 + n * 17_280}\n" for n in range(100, 132))
    )
    # Seen on day 1 and without a transfer then.
    held.write_text(
        f"address,balance,block_number,token_address\n{wallet(2)},5,107,{wallet(ERC20)}\n"
    )
    first = [files[0], facts, times, *([held] if snapshot else [])]
    take(tmp_path / "whole", *files[1:], *first)
    take(added, *first)
    compact(added)
    for path in files[1:]:
        assert take(added, path).rebuilt is None
    assert contents(added) == contents(tmp_path / "whole")
    with Tables(added) as tables:
        days = (
            "SELECT address, active_days FROM activity JOIN wallets USING (wallet) "
            f"WHERE {HERE} ORDER BY address"
        )
        assert tables.rows(days)[1:] == [(wallet(1), 7), (wallet(2), 7)]


@pytest.mark.slow
def test_a_report_counts_the_balances_below_zero_of_the_contracts_read_and_after_a_removal_all_of_them(
    tmp_path, added, log
):
    days = [
        # 3 and 5 send what they never received; then 3 and 7 do, who receives more than it sent.
        [log(3, 4, 9, block=100), log(5, 4, 9, block=100)],
        [log(3, 6, 1, block=101), log(7, 4, 2, block=101), log(4, 7, 2, block=102)],
        [log(4, 6, 1, block=103)],
    ]
    files = [write_csv(tmp_path / f"{n}.csv", made) for n, made in enumerate(days)]
    below = [take(added, path).odd["below_zero"] for path in files]
    assert below == [2, 3, 3]
    assert take(tmp_path / "whole", *files).odd["below_zero"] == 3
    assert remove("2.csv", added).odd["below_zero"] == 3


def test_the_files_for_engines_elsewhere_have_what_was_added_in_the_order_of_their_tables(grown):
    rows = []
    for data in grown:
        folder = parquet_files(storage.current_generation(data))
        with duckdb.connect() as files:
            for table, columns in TABLES.items():
                files.execute(f"CREATE VIEW {table} AS FROM '{folder / table}.parquet'")
                stored = files.sql(f"SELECT {', '.join(list(columns)[:4])} FROM {table}").fetchall()
                assert stored == sorted(stored), table
            rows.append(
                {
                    table: files.sql(f"{BY_ADDRESS[table]} ORDER BY ALL").fetchall()
                    for table in TABLES
                }
            )
    assert rows[0] == rows[1]


@pytest.mark.spark
def test_spark_answers_from_what_was_added_as_from_one_ingest_of_all(grown):
    data, whole = grown
    engine = "local[1]?spark.sql.shuffle.partitions=1&spark.default.parallelism=1"
    assert answers(data, engine) == answers(whole)


def test_compaction_changes_neither_the_fingerprint_nor_an_answer(grown, capsys):
    data, whole = grown
    before = storage.current_generation(data).fingerprint
    assert cli.main(["compact", "--data", str(data), "--quiet"]) == 0
    served = storage.current_generation(data)
    assert (served.delta, served.fingerprint) == (None, before)
    assert contents(data) == contents(whole)
    assert cli.main(["compact", "--data", str(data)]) == 0
    assert capsys.readouterr().out == (
        f"Now serving generation {served.folder.name}, with the same rows.\nThere is nothing to compact.\n"
    )


@pytest.mark.slow
def test_a_delta_that_outgrows_its_base_is_compacted_once_its_rows_are_served(grown, log, tmp_path):
    data, _ = grown
    large.grow(data)
    before = storage.current_generation(data)
    assert before.delta is not None
    report = take(data, write_csv(tmp_path / "more.csv", [log(4, 9, 1, block=105)]))
    served = storage.current_generation(data)
    assert (report.rebuilt, served.delta, served.number) == (None, None, before.number + 2)
    assert report.generation == served.folder.name


def test_the_same_rows_again_leave_the_fingerprint_as_it_was(grown, tmp_path, log):
    data, _ = grown
    before = contents(data), storage.current_generation(data).fingerprint
    again = Log(wallet(ERC20), wallet(0), wallet(5), 10**20, transaction(1), 1, 100)
    report = take(data, write_csv(tmp_path / "again.csv", [again]))
    assert (report.new, report.odd["duplicates"], report.changed, report.rebuilt) == (
        0,
        1,
        False,
        None,
    )
    after = contents(data), storage.current_generation(data).fingerprint
    # The row itself is kept: it stays when the file that had it first is removed.
    assert len(after[0][0].pop("repeats")) == len(before[0][0].pop("repeats")) + 1
    assert after == before


@pytest.mark.slow
def test_what_lies_in_a_delta_can_be_listed_and_removed(grown, tmp_path):
    data, _ = grown
    remove("1.csv", data)
    assert storage.current_generation(data).delta is None
    take(tmp_path / "rest", *(tmp_path / f"{n}.csv" for n in (0, 2)), tmp_path / "tokens.csv")
    assert contents(data) == contents(tmp_path / "rest")


# Of a base of four rows and two days on it (`grown`): what reaches back into these.
REACHING_BACK = {
    "a row that is older than stored ones of its contract": [{"block": 101}],
    "an ERC721's id that its sender had before": [
        {"block": 109, "contract": ERC721, "sender": 6, "value": 77}
    ],
    "ERC1155's ids that their sender had before, more of them later, and within the first block": [
        {"block": 100, "contract": ERC1155, "sender": 6, "value": 7},
        {"block": 109, "contract": ERC1155, "sender": 6, "value": 7},
        {"block": 109, "contract": ERC1155, "sender": 8, "value": 7},
    ],
    "a block that goes on": [
        {"block": 104, "contract": 901, "sender": 1, "recipient": 8},
        {"block": 104, "contract": 1000, "sender": 4, "recipient": 8},
    ],
    "a block of NFTs that goes on": [{"block": 103, "contract": ERC721, "sender": 4, "value": 3}],
    "a contract that is taken for another": [
        {"block": block, "contract": 901, "sender": block % 3, "recipient": 6}
        for block in (106, 108)
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("rows", slow.but_the_first(list(REACHING_BACK.values())), ids=str)
def test_rows_that_change_the_past_of_a_contract_are_added_and_all_others_stay_as_they_are(
    grown, tmp_path, log, rows
):
    data, _ = grown
    base = storage.current_generation(data).tables.stat().st_ino
    files = [write_csv(tmp_path / f"more-{n}.csv", [log(**row)]) for n, row in enumerate(rows)]
    for path in files:
        assert take(data, path).rebuilt is None
    assert storage.current_generation(data).tables.stat().st_ino == base
    days = (tmp_path / f"{n}.csv" for n in range(3))
    take(tmp_path / "all", *days, tmp_path / "tokens.csv", *files)
    assert contents(data) == contents(tmp_path / "all")
    assert answers(data) == answers(tmp_path / "all")
    assert list(storage.damage_of(data)) == []


@pytest.mark.slow
@pytest.mark.parametrize("later", ["another snapshot", "a row from before"])
def test_an_id_that_no_snapshot_names_is_its_senders_from_the_snapshot_on_in_whichever_run_it_is_sent(
    tmp_path, added, log, later
):
    facts, held = tmp_path / "tokens.csv", "address,token_id,block_number,token_address\n"
    facts.write_text(FACTS)
    logs = {
        "first": [log(0, 9, 1, contract=ERC721, block=100)],
        "sent": [log(n, 8, 2, contract=of, block=110) for n, of in ((4, ERC721), (5, ERC1155))],
        "a row from before": [log(7, 8, 3, contract=of, block=102) for of in (ERC721, ERC1155)],
    }
    files = {name: write_csv(tmp_path / f"{name}.csv", some) for name, some in logs.items()}
    for name, block in (("snapshot", 105), ("another snapshot", 107)):
        files[name] = tmp_path / f"{name}.csv"
        rows = [f"{wallet(6)},1,{block},{wallet(of)}\n" for of in (ERC721, ERC1155)]
        files[name].write_text(held + "".join(rows))
    runs = [[files["first"], facts], [files["snapshot"]], [files["sent"]], [files[later]]]
    take(tmp_path / "whole", *(path for run in runs for path in run))
    for run in runs:
        assert take(added, *run).rebuilt is None
        if run == runs[1]:
            compact(added)
    assert contents(added) == contents(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("first", slow.but_the_first(["its contract", "its block"]))
def test_a_row_of_the_base_that_is_there_in_another_form_for_two_reasons_is_counted_once(
    tmp_path, added, log, first
):
    """The ERC1155's block is derived again for an id that 1 had before, the contract for a row from before others."""
    runs = {
        "base": [log(1, 5, 1, contract=ERC1155, block=block, index=block) for block in (100, 104)],
        "its block": [log(1, 5, 1, contract=ERC1155, block=110)],
        "its contract": [log(2, 5, 1, contract=ERC1155, block=102)],
    }
    order = ["base", first, *({"its block", "its contract"} - {first})]
    files = {name: write_csv(tmp_path / f"{name}.csv", logs) for name, logs in runs.items()}
    facts = tmp_path / "tokens.csv"
    facts.write_text(FACTS)
    take(tmp_path / "whole", *files.values(), facts)
    for name in order:
        more = [facts] if name == "base" else []
        assert take(added, files[name], *more).rebuilt is None
        if name == "base":
            compact(added)
    assert contents(added) == contents(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("seed", slow.but_the_first(range(4)))
def test_a_day_counts_balances_below_zero_as_one_ingest_of_all_days_does(
    tmp_path, added, log, seed
):
    draw = random.Random(seed)
    logs = [
        log(draw.randint(0, 9), draw.randint(0, 9), draw.randint(1, 9), block=100 + n // 4, index=n)
        for n in range(60)
    ]
    facts = tmp_path / "tokens.csv"
    facts.write_text(FACTS)
    # Days that end in the middle of a block, too; in the last but one, rows from before the others.
    cuts = [0, *sorted(draw.sample(range(2, 58), 5)), 60]
    days = [logs[first:last] for first, last in pairwise(cuts)]
    days[3:5] = days[4:2:-1]
    files = [facts]
    for n, day in enumerate(days):
        files.append(write_csv(tmp_path / f"{n}.csv", day))
        added_to = take(added, *files[-1:], *files[: n == 0])
        whole = take(tmp_path / f"whole-{n}", *files)
        assert added_to.rebuilt is None
        assert added_to.odd["below_zero"] == whole.odd["below_zero"]
    assert whole.odd["below_zero"] > 3


@pytest.mark.slow
def test_a_snapshot_of_the_first_block_leaves_known_which_mints_of_other_contracts_are_missing(
    tmp_path, added, log
):
    facts, holders = tmp_path / "tokens.csv", tmp_path / "holders.csv"
    facts.write_text(FACTS)
    holders.write_text(
        f"address,balance,block_number,token_address\n{wallet(1)},5,100,{wallet(ERC20)}\n"
    )
    sold = write_csv(
        tmp_path / "sold.csv", [log(block=100), log(6, 7, 77, contract=ERC721, block=101)]
    )
    assert take(added, sold, facts).odd["unseen"] == 1
    assert take(added, holders).rebuilt is None
    take(tmp_path / "whole", sold, facts, holders)
    assert contents(added) == contents(tmp_path / "whole")
    with Tables(added) as tables:
        assert tables.rows(f"SELECT sum(unseen) FROM contracts WHERE {HERE}") == [(1,)]


def test_blocks_before_the_first_are_built_with_all_others_and_the_report_says_so(
    grown, tmp_path, log
):
    data, _ = grown
    path = write_csv(tmp_path / "more.csv", [log(block=99)])
    report = take(data, path)
    why = "blocks before the first one are new"
    assert report.rebuilt == why
    assert f"Everything was built again: {why}." in str(report)
    assert storage.current_generation(data).delta is None
    take(
        tmp_path / "all", *(tmp_path / f"{n}.csv" for n in range(3)), tmp_path / "tokens.csv", path
    )
    assert contents(data) == contents(tmp_path / "all")


@pytest.mark.slow
def test_a_delta_that_is_damaged_anywhere_is_one_error_or_opens(grown):
    data, _ = grown
    delta = storage.current_generation(data).delta
    whole, refused = delta.read_bytes(), []
    for start in range(3 * 4096 + 100, len(whole), 1 << 16):
        flipped(delta, start)
        try:
            open_dataset(data).close()
        except StorageError as error:
            refused.append(str(error))
        delta.write_bytes(whole)
    assert {message.partition(": ")[0] for message in refused} == {
        f"{delta.parent} cannot be opened"
    }


@pytest.mark.slow
def test_the_report_is_there_before_the_data_is_compacted_and_stays_where_that_is_interrupted(
    grown, tmp_path, log
):
    data, whole = grown
    large.grow(data)
    path = write_csv(tmp_path / "more.csv", [log(5, 8, 5, block=110)])
    said = []

    def interrupted(step, _):
        if step == "merging":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest([path], "ethereum", data, progress=interrupted, served=said.append)
    (report,) = said
    assert (report.new, report.generation) == (1, storage.current_generation(data).folder.name)
    take(whole, path)
    assert contents(data) == contents(whole)
    assert not [*data.rglob(".building*"), *data.rglob(".folding-*")]


@pytest.mark.slow
def test_a_run_that_needs_more_memory_than_its_files_suggest_takes_all_that_is_allowed(
    grown, tmp_path, log, monkeypatch
):
    data, whole = grown
    path = write_csv(tmp_path / "more.csv", [log(5, 8, 5, block=110)])
    alone = [tmp_path / "alone", tmp_path / "spared"]
    take(whole, path)
    take(alone[0], path)
    monkeypatch.setattr(stage, "LITTLE_MEMORY", 1_000_000)
    report = take(data, path)
    take(alone[1], path)
    assert (report.new, report.rebuilt) == (1, None)
    assert contents(data) == contents(whole)
    assert contents(alone[1]) == contents(alone[0])


@pytest.mark.slow
def test_folding_gives_way_to_all_that_runs_and_ends_where_its_caller_is_interrupted(
    grown, tmp_path, log
):
    data, whole = grown
    large.grow(data)
    paths = [
        write_csv(tmp_path / f"{block}.csv", [log(5, 8, 5, block=block)]) for block in (110, 111)
    ]
    own, found = os.nice(0), []

    def interrupting(step, _):
        if step != "merging":
            return
        found.append(os.nice(0))
        if len(found) == 1:
            main = threading.main_thread().ident
            signal.pthread_kill(main, signal.SIGINT)
            # Until the caller only waits for this thread to end.
            while "shutdown" not in {
                one.name for one in traceback.extract_stack(sys._current_frames()[main])
            }:
                pass

    with pytest.raises(KeyboardInterrupt):
        ingest([paths[0]], "ethereum", data, progress=interrupting)
    assert found == [19 if sys.platform == "linux" else own]
    assert os.nice(0) == own
    assert storage.current_generation(data).delta
    take(data, paths[1])
    assert storage.current_generation(data).delta is None
    for path in paths:
        take(whole, path)
    assert contents(data) == contents(whole)


@pytest.mark.slow
def test_a_run_does_not_wait_for_the_folding_of_another_which_gives_way_to_its_rows(
    grown, tmp_path, log
):
    data, whole = grown
    large.grow(data)
    paths = [
        write_csv(tmp_path / f"{block}.csv", [log(5, 8, 5, block=block)]) for block in (110, 111)
    ]
    said, meanwhile = [], []

    def progress(step, _):
        if step == "merging" and not meanwhile:
            meanwhile.append(ingest([paths[1]], "ethereum", data))

    report = ingest([paths[0]], "ethereum", data, progress=progress, served=said.append)
    (second,) = meanwhile
    served = storage.current_generation(data)
    assert (second.new, second.generation) == (1, served.folder.name)
    assert served.delta
    assert (report.uncompacted, report.generation) == (None, said[0].generation)
    for path in paths:
        take(whole, path)
    assert contents(data) == contents(whole)
    assert not list(data.rglob(".folding*-*"))
    assert not (data / ".folding").exists()
    # The next run finds more to fold, and nobody in its way.
    take(data, write_csv(tmp_path / "112.csv", [log(5, 8, 5, block=112)]))
    assert storage.current_generation(data).delta is None


def test_a_report_that_cannot_be_printed_is_no_error_of_the_data_folder(data, tmp_path, log):
    def closed(_):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    path = write_csv(tmp_path / "one.csv", [log()])
    with pytest.raises(BrokenPipeError):
        ingest([path], "ethereum", data, served=closed)
    assert storage.current_generation(data).manifest["tables"]["transfers"] == 1


def flipped(path, start):
    whole = path.read_bytes()
    path.write_bytes(
        whole[:start] + bytes(byte ^ 1 for byte in whole[start : start + 64]) + whole[start + 64 :]
    )


def test_a_damaged_delta_is_found_by_the_check_and_not_added_to(grown, tmp_path, log):
    data, _ = grown
    path = storage.current_generation(data).delta
    flipped(path, path.stat().st_size - 64)
    assert len(list(storage.damage_of(data))) == 1
    before = sorted(data.rglob("*"))
    with pytest.raises(
        StorageError,
        match=r"delta\.duckdb is damaged: its SHA-256 is not the one in manifest\.json",
    ):
        take(data, write_csv(tmp_path / "more.csv", [log(5, 1, 5, block=110)]))
    assert sorted(data.rglob("*")) == before


def refusal(data, *paths, **options):
    """What ingesting files is refused with; None where it is not."""
    try:
        take(data, *paths, **options)
    except NbextError as error:
        return str(error)
    return None


@pytest.mark.slow
def test_what_is_added_to_a_damaged_base_is_true_or_refused_and_the_check_always_finds_it(
    grown, tmp_path, log
):
    path = write_csv(tmp_path / "more.csv", [log(5, 1, 5, block=110)])
    right = tmp_path / "right"
    shutil.copytree(grown[0], right)
    take(right, path)
    refused = 0
    size = storage.current_generation(right).tables.stat().st_size
    places = range(8192, size, max(size // 16, 2**18))
    for place in places:
        data = tmp_path / str(place)
        shutil.copytree(grown[0], data)
        base = storage.current_generation(data).tables
        whole = base.read_bytes()
        flipped(base, place)
        said = refusal(data, path)
        assert "tables.duckdb is damaged: its SHA-256 is not the one" in (
            said or "".join(storage.damage_of(data))
        )
        if said:
            refused += 1
            continue
        with pytest.raises(StorageError, match=r"tables\.duckdb is damaged"):
            compact(data)
        storage.current_generation(data).tables.write_bytes(whole)
        assert contents(data) == contents(right)
    # Both happen: what an addition reads is not all that there is.
    assert 0 < refused < len(places)


# Adds a file, or compacts; dies as by `kill -9` at the n-th statement, flush or rename.
DYING = """
import os, signal, sys
from pathlib import Path
from nbext.engine.ingest import ingest, run, stage
place, nth, path, data = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
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
               "switch": (Path, "replace")}[place]
setattr(owner, name, dying(getattr(owner, name)))
ingest([path], "ethereum", data) if path else run.compact(data)
"""
DEATHS = [("statement", 70), ("sync", 2), ("switch", 2)]
MORE_DEATHS = [*(("statement", n) for n in range(5, 120, 15)), ("sync", 1), ("rename", 1)]


@pytest.mark.parametrize(
    "deaths",
    [
        pytest.param(DEATHS, marks=pytest.mark.slow),
        pytest.param(MORE_DEATHS, marks=pytest.mark.long),
    ],
    ids=["a few", "many"],
)
def test_a_process_killed_while_it_appends_or_compacts_leaves_before_or_after(
    grown, tmp_path, log, deaths
):
    data, _ = grown
    path = write_csv(tmp_path / "more.csv", [log(5, 8, 5, block=110)])
    for place, nth in deaths:
        for file in (path, ""):
            copy = tmp_path / f"{place}{nth}{bool(file)}"
            shutil.copytree(data, copy)
            before = contents(copy)
            command = [sys.executable, "-c", DYING, place, str(nth), str(file), str(copy)]
            ended = subprocess.run(command, check=False, capture_output=True, text=True)
            assert (ended.returncode, ended.stderr) == (-signal.SIGKILL, "")
            left = contents(copy)
            (take(copy, file) if file else compact(copy))
            assert left in (before, contents(copy))
            assert [
                p.name for p in (copy / "generations").iterdir() if p.name.startswith(".")
            ] == []
            assert not (copy / ".stage").exists()
            shutil.rmtree(copy)


@pytest.mark.slow
def test_balances_that_differed_from_the_chains_are_known_until_they_are_equal_again(
    grown, tmp_path, log
):
    data, whole = grown
    before, chain = storage.current_generation(data), chain_of("ethereum")
    record_compared(
        data, chain, {wallet(ERC20): Compared(104, 3, 4), wallet(WIDE): Compared(104, 2, 2)}
    )
    known = {wallet(ERC20): Compared(104, 3, 4)}

    def differing():
        return storage.current_generation(data).chains[0].differing

    marked = storage.about(storage.current_generation(data), "duckdb").fingerprint
    assert differing() == known
    # The same rows, and answers of another id: those before had no warning.
    assert (storage.current_generation(data).fingerprint, marked != before.fingerprint) == (
        before.fingerprint,
        True,
    )
    assert contents(data) == contents(whole)
    # Of which chain it is said counts, too: contracts of two may have one address.
    served = storage.current_generation(data)
    (said,), others = served.manifest["chains"][:1], served.manifest["chains"][1:]
    moved = [{**said, "chain_id": 10}, *others]
    elsewhere = replace(served, manifest={**served.manifest, "chains": moved})
    assert storage.about(elsewhere, "duckdb").fingerprint not in (marked, before.fingerprint)
    compact(data)
    assert differing() == known
    take(data, write_csv(tmp_path / "more.csv", [log(5, 8, 5, block=110)]))
    assert differing() == known
    plan = language.resolve(
        language.parse({"filters": {"token": {"token": "A"}}}), open_dataset(data)
    )
    assert plan.warnings[-1] == (
        "A on ethereum: 1 of 4 balances differed from the contract's own at block 104: it changes balances without a "
        "transfer, as tokens do that rebase or take a fee. Its amounts are approximate."
    )
    number = storage.current_generation(data).number
    record_compared(data, chain, {wallet(ERC20): Compared(104, 3, 4)})
    assert storage.current_generation(data).number == number
    record_compared(data, chain, {wallet(ERC20): Compared(110, 4, 4)})
    assert differing() == {}
    assert (
        storage.about(storage.current_generation(data), "duckdb").fingerprint
        == storage.current_generation(data).fingerprint
    )
    assert list(storage.damage_of(data)) == []
