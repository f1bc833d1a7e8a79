"""Files of made-up transfers, and what to take them in with."""

from __future__ import annotations

import csv
import itertools
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nbext.engine.ingest.run import compact
from tests.engine.ingest import large
from tests.engine.ingest.reading_back import take, transaction, wallet
from tests.engine.ingest.replay import Log

ETL = list(Log._fields)
ERC20, WIDE, ERC721, ERC1155, UNKNOWN = 1000, 1001, 2000, 3000, 900
FACTS = (
    "address,symbol,name,decimals,total_supply,standard\n"
    f"{wallet(ERC20)},A,A,18,,ERC20\n{wallet(WIDE)},B,B,0,,ERC20\n"
    f"{wallet(ERC721)},C,C,,,ERC721\n{wallet(ERC1155)},D,D,,,ERC1155\n"
)


@pytest.fixture
def data(tmp_path):
    """An empty data folder."""
    return tmp_path / "data"


@pytest.fixture
def added(tmp_path):
    """A data folder beside whose base is added what comes."""
    return large.begin(tmp_path / "data")


@pytest.fixture
def contracts_file(tmp_path):
    """A contracts export that says of wallet(1000) that it is an ERC20 and of wallet(2000) that it is an ERC721."""
    path = tmp_path / "contracts.csv"
    path.write_text(
        "address,bytecode,function_sighashes,is_erc20,is_erc721,block_number\n"
        f"{wallet(1000)},0x,,true,false,5\n{wallet(2000)},0x,,false,true,\n"
    )
    return path


@pytest.fixture
def log():
    """Make a log; what is not given counts up or is the same every time."""
    numbers = itertools.count(1)

    def make(sender=1, recipient=2, value=5, *, block=100, index=None, contract=1000, tx=None):
        n = next(numbers)
        return Log(
            wallet(contract),
            wallet(sender),
            wallet(recipient),
            value,
            transaction(tx or n),
            n if index is None else index,
            block,
        )

    return make


@pytest.fixture
def grown(ready, tmp_path, log):
    """A folder with a day in its base and two in its delta, and one of them alone, in one ingest."""
    files = _three_days(tmp_path, log)  # counted, so that the test's own logs are others
    facts = tmp_path / "tokens.csv"
    facts.write_text(FACTS)
    if not any(ready.iterdir()):
        whole, data = ready / "whole", ready / "data"
        take(whole, *files, facts)
        take(large.begin(data), files[0], facts)
        compact(data)
        for path in files[1:]:
            assert take(data, path).rebuilt is None
    return copied(ready / "data", tmp_path / "data"), copied(ready / "whole", tmp_path / "whole")


@pytest.fixture(scope="session")
def ready(tmp_path_factory):
    """Where the folders of `grown` are once they have been made: four ingests."""
    return tmp_path_factory.mktemp("grown")


def _three_days(folder, log):
    days = [
        [log(0, 5, 10**20, block=100), log(0, 7, 3, contract=ERC721, block=101)],
        [log(5, 3, 10**19, block=102), log(7, 4, 3, contract=ERC721, block=103)],
        [log(3, 4, 10**18, block=104), log(0, 1, 5, contract=901, block=104)],
    ]
    return [write_csv(folder / f"{n}.csv", logs) for n, logs in enumerate(days)]


def copied(folder, target):
    """Copy a data folder; files that are one stay one: a generation and the one added to it share their base."""
    made = {}

    def copy(source, to):
        inode = Path(source).stat().st_ino
        if inode in made:
            os.link(made[inode], to)
        else:
            made[inode] = shutil.copy2(source, to)

    return shutil.copytree(folder, target, copy_function=copy)


def write_parquet(path, logs, **columns):
    """Write logs as ethereum-etl does; ``columns`` add to or take the place of its columns."""
    rows = {name: [getattr(log, name) for log in logs] for name in ETL}
    rows["value"] = [str(value) for value in rows["value"]]
    pq.write_table(pa.table({**rows, **columns}), path)
    return path


def write_csv(path, logs):
    """Write logs as ethereum-etl's CSV."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(ETL)
        writer.writerows(logs)
    return path
