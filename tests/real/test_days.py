"""A month of days as chains have them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import nbext
from nbext.engine.ingest import ingest
from tests.real.transfers import FIRST_BLOCK, Chain, coin, collection, popular_contracts
from tests.service.conftest import KEY, Running

ROWS, A_DAY = 300_000, 1_500
# In the base two thirds of the rows are by then.
MIDDLE = FIRST_BLOCK + ROWS // 150 * 2 // 3
QUESTIONS: list[dict[str, Any]] = [
    {"token": {"token": coin(0), "balance": {"min": "1"}, "unit": "raw"}},
    {"token": {"token": coin(7), "balance": {"min": "1"}, "unit": "raw", "heldSince": MIDDLE}},
    {"nft": {"nft": collection(0), "count": {"min": 1}}},
    {"nft": {"nft": collection(1), "count": {"min": 2}}},
    {"nft": {"nft": collection(1), "tokenIds": ["1", "17", "4999"]}},
    {"nft": {"nft": collection(1), "count": {"min": 1}}, "asOf": MIDDLE},
    {"transfer": {"direction": "mint", "nft": collection(2)}},
    {"transfer": {"direction": "out", "token": coin(1), "count": {"min": 3}}},
    {"collections": {"distinct": {"min": 20}}},
    {"activity": {"transfers": {"min": 200}}},
]


def answers(data: Path) -> list[Any]:
    """Return what a service over a data folder answers to the questions."""
    running = Running(data, data / "service")
    try:
        with nbext.connect(running.url, KEY) as client:
            tables = [client.execute_segment(asked, limit=100_000) for asked in QUESTIONS]
        return [(table.columns.tolist(), table.astype(str).values.tolist()) for table in tables]
    finally:
        running.stop()


def taken_in(folder: Path, days: int, *, split: bool) -> tuple[list[Any], list[Path]]:
    """Take in the base and its days; return each day's report, and all files."""
    chain = Chain(ROWS // 6)
    files = [popular_contracts(folder / "contracts.csv"), chain.write(folder / "0.parquet", ROWS)]
    ingest(files, "ethereum", folder / "data")
    reports = []
    for day in range(1, days + 1):
        files.append(chain.write(folder / f"{day}.parquet", A_DAY + 70 * split))
        began = time.process_time()
        reports.append(ingest(files[-1:], "ethereum", folder / "data"))
        took = time.process_time() - began
        print(f"day {day}: {took:.1f} CPU s, rebuilt: {reports[-1].rebuilt}")
    return reports, files


class Month:
    """Days that were taken in one by one, and what is answered of them and of one ingest of all files."""

    def __init__(self, folder: Path, days: int, *, split: bool) -> None:
        reports, files = taken_in(folder, days, split=split)
        ingest(files, "ethereum", folder / "at once")
        self.rebuilt = [report.rebuilt for report in reports]
        self.found, self.expected = answers(folder / "data"), answers(folder / "at once")


@pytest.fixture(scope="module", params=[False, True], ids=["whole blocks", "split blocks"])
def month(request, tmp_path_factory):
    """Three days."""
    return Month(tmp_path_factory.mktemp("month"), 3, split=request.param)


@pytest.mark.slow
def test_real_days_are_answered_as_if_all_had_come_at_once(month):
    assert [rows for _, rows in month.expected if not rows] == []
    assert month.found == month.expected


@pytest.mark.slow
def test_no_real_day_is_a_reason_to_build_everything_again(month):
    assert month.rebuilt == [None] * 3


@pytest.mark.long
@pytest.mark.parametrize("split", [False, True], ids=["whole blocks", "split blocks"])
def test_thirty_real_days_are_added_and_answered_as_if_all_had_come_at_once(tmp_path, split):
    month = Month(tmp_path, 30, split=split)
    assert month.found == month.expected
    assert month.rebuilt == [None] * 30
