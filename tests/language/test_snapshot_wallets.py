"""Wallets that only a holder snapshot tells of: seen, though no transfer of theirs is in the data."""

from __future__ import annotations

import pytest

from nbext import cli
from nbext.engine.open import open_dataset
from nbext.language import language


def address(number):
    return f"0x{number:040x}"


@pytest.fixture
def dataset(tmp_path):
    held = (
        "".join(f"{address(0xC0)},{address(wallet)},5\n" for wallet in (5, 6))
        + f"{address(0xC1)},{address(7)},5\n"
    )
    (tmp_path / "holders.csv").write_text("contract_address,address,balance\n" + held)
    asked = [
        "--chain",
        "ethereum",
        "--data",
        str(tmp_path / "data"),
        "--unit",
        "raw",
        "--block",
        "100",
        "--quiet",
    ]
    (tmp_path / "blocks.csv").write_text("number,timestamp\n100,1600000000\n")
    files = [str(tmp_path / name) for name in ("holders.csv", "blocks.csv")]
    assert cli.main(["ingest", *files, *asked]) == 0
    opened = open_dataset(tmp_path / "data")
    yield opened
    opened.close()


def wallets(dataset, filters):
    plan = language.resolve(language.parse({"filters": filters}), dataset)
    return [
        int(one, 16)
        for one in dataset.ask(language.compile(plan), limit=10).rows["address"].to_pylist()
    ]


def test_a_holder_without_transfers_is_seen_and_took_part_in_none(dataset):
    assert wallets(dataset, {"not": {"token": {"token": address(0xC0)}}}) == [7]
    assert wallets(
        dataset, {"token": {"token": address(0xC0), "unit": "raw", "balance": {"min": "0"}}}
    ) == [5, 6, 7]
    assert wallets(dataset, {"wallet": {"contract": False}}) == [5, 6, 7]
    assert wallets(dataset, {"activity": {"transfers": {"min": 0, "max": 0}}}) == [5, 6, 7]
    few = {"transfers": {"min": 0}, "activeDays": {"max": 5}}
    assert wallets(dataset, {"activity": few}) == [5, 6, 7]
    assert wallets(dataset, {"activity": {"transfers": {"min": 1}}}) == []
    assert wallets(dataset, {"activity": {"first": {"after": 100}}}) == [5, 6, 7]
