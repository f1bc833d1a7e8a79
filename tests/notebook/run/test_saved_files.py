"""Saved files are read back as the page of magics says, and their exact amounts are what it says of them."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from tests.reference.magics_page import READERS

WHALES = '{"token": {"token": "UNI", "balance": {"min": "1000"}}}'


@pytest.mark.parametrize("ending", READERS)
def test_each_tool_reads_a_saved_file_exactly_with_the_code_of_the_page(
    shell, tmp_path, monkeypatch, ending
):
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    exact = [int(one) for one in shell.value(f"%segment --limit 9 {WHALES}")["UNI_balance_raw"]]
    # Digits that a float cannot hold: what was rounded on its way differs.
    assert any(int(float(one)) != one for one in exact)
    shell.value(f"%segment --limit 9 --to whales{ending} {WHALES}")
    for code in READERS[ending][:3]:
        table = eval(code, {"duckdb": duckdb, "pa": pa, "pd": pd, "pl": pl})
        rows = (
            table["UNI_balance_raw"].fetchall()
            if code.startswith("duckdb")
            else table["UNI_balance_raw"]
        )
        read = [one[0] if isinstance(one, tuple) else one for one in rows]
        assert not any(isinstance(one, float) for one in read), code
        assert [int(one) for one in read] == exact, code


@pytest.mark.spark
def test_spark_reads_a_saved_file_exactly_with_the_code_of_the_page(shell, tmp_path, monkeypatch):
    from pyspark.sql import SparkSession

    monkeypatch.chdir(tmp_path)
    exact = [int(one) for one in shell.value(f"%segment --limit 9 {WHALES}")["UNI_balance_raw"]]
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    try:
        for ending, (*_, code) in READERS.items():
            shell.value(f"%segment --limit 9 --to whales{ending} {WHALES}")
            # Java stays in the folder in which it began.
            there = code.replace("whales", f"{tmp_path}/whales")
            rows = eval(there, {"spark": spark}).orderBy("address").collect()
            assert not any(isinstance(row["UNI_balance_raw"], float) for row in rows), code
            assert [int(row["UNI_balance_raw"]) for row in rows] == exact, code
    finally:
        spark.stop()


def test_pandas_sums_compares_and_sorts_exact_amounts(shell):
    raw = shell.value(f"%segment --limit 9 {WHALES}")["UNI_balance_raw"]
    whole = raw.map(int)
    assert (int(raw.sum()), int(raw.min()), int(raw.max())) == (sum(whole), min(whole), max(whole))
    assert raw.sort_values().map(int).tolist() == sorted(whole)
    assert (raw > Decimal(2) * 10**21).tolist() == [one > 2 * 10**21 for one in whole]
    assert [one * 7 // 3 for one in whole] == (whole * 7 // 3).tolist()
