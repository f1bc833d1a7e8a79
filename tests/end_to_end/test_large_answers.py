"""Millions of rows, from the service's tables to a file: exact, and in bounded memory on both sides."""

from __future__ import annotations

import subprocess
import sys
import time

import duckdb
import pytest

from tests.service import heavy
from tests.service.process import serve
from tests.service.test_load import peak_megabytes

pytestmark = pytest.mark.load
ROWS = 5_000_000
MOST_MEGABYTES = 1_000
CLIENT = """
import sys
from pathlib import Path
from nbext import Client
url, key, file = sys.argv[1:]
table = Client(url, key).execute_segment({"token": {"token": "BIG"}}, limit=10_000_000, to=file)
status = Path("/proc/self/status").read_text().splitlines()
print(int(table["rows"].iloc[0]), next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def test_five_million_rows_reach_a_file_within_a_gigabyte_of_either_process(tmp_path):
    heavy.holders(tmp_path, ROWS)
    file = tmp_path / "big.parquet"
    with serve(tmp_path) as process:
        began = time.perf_counter()
        ran = subprocess.run(
            [sys.executable, "-c", CLIENT, process.url, process.key, str(file)],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert not ran.returncode, ran.stderr
        seconds, service = time.perf_counter() - began, peak_megabytes(process)
    rows, client = int(ran.stdout.split()[0]), int(ran.stdout.split()[1]) / 1024
    print(
        f"{rows:,} rows, {file.stat().st_size / 1e6:.0f} MB of Parquet in {seconds:.1f} s: "
        f"service {service:.0f} MB, client {client:.0f} MB"
    )
    assert rows == ROWS
    assert max(service, client) <= MOST_MEGABYTES
    wallet = f"(('0x' || right(address, 12))::BIGINT - {heavy.FIRST})"
    exact = duckdb.sql(
        f"SELECT count(*), count(DISTINCT address), bool_and(BIG_balance_raw = {heavy.amount_sql(wallet)}), "
        f"bool_and(abs(BIG_balance / (BIG_balance_raw::DOUBLE / 1e18) - 1) < 1e-15) FROM '{file}'"
    )
    assert exact.fetchall() == [(ROWS, ROWS, True, True)]
