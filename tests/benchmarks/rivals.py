"""Other ways to ask "holds at least X of A, and B, and not C": the same rows, each by its own means.

Each rival is made once with the generated files and answers cases: how many wallets match, and of the first
the addresses and the balances of A, as digits. DuckDB, polars and pandas read the transfers' Parquet each time;
the arrays are held in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nbext.core.addresses import BURN_ADDRESSES
from tests.benchmarks.generate import TRANSFERS


@dataclass(frozen=True)
class Case:
    """One question: contracts as addresses, the least amount of A in its smallest unit."""

    name: str
    token: str
    collection: str
    without: str
    least: int
    limit: int = 10_000


Found = tuple[int, list[str], list[str]]


class RawDuckDB:
    """SQL over the transfers, as one writes it without prepared tables."""

    SQL = """
        WITH moved AS (SELECT * FROM read_parquet($path) WHERE token_address IN ($token, $collection, $without)),
        balances AS (
            SELECT token_address, wallet, sum(amount) AS balance FROM (
                SELECT token_address, to_address AS wallet, value::HUGEINT AS amount FROM moved
                WHERE token_address <> $collection
                UNION ALL SELECT token_address, from_address, -value::HUGEINT FROM moved
                WHERE token_address <> $collection) GROUP BY ALL),
        owners AS (SELECT DISTINCT owner AS wallet FROM (
            SELECT arg_max(to_address, (block_number, log_index)) AS owner FROM moved
            WHERE token_address = $collection GROUP BY value)),
        matched AS MATERIALIZED (
            SELECT wallet, balance FROM balances WHERE token_address = $token AND balance >= $least
            AND wallet IN (FROM owners)
            AND wallet NOT IN (SELECT wallet FROM balances WHERE token_address = $without AND balance > 0)
            AND wallet NOT IN $burn)
        SELECT wallet, balance::VARCHAR, (SELECT count(*) FROM matched) FROM matched ORDER BY wallet LIMIT $limit"""

    def __init__(self, source: Path) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._path = str(source / TRANSFERS)

    def ask(self, case: Case) -> Found:
        values = {
            "path": self._path,
            "token": case.token,
            "collection": case.collection,
            "without": case.without,
            "least": case.least,
            "burn": list(BURN_ADDRESSES),
            "limit": case.limit,
        }
        rows = self._connection.execute(self.SQL, values).fetchall()
        return (rows[0][2] if rows else 0), [row[0] for row in rows], [row[1] for row in rows]


class Polars:
    """The same in polars, lazily, with 128-bit integers."""

    def __init__(self, source: Path) -> None:
        self._path = str(source / TRANSFERS)

    def ask(self, case: Case) -> Found:
        import polars as pl

        moved = pl.scan_parquet(self._path)
        least = pl.lit(case.least, dtype=pl.Int128)
        of_collection = moved.filter(pl.col("token_address") == case.collection)
        owners = (
            of_collection.sort("block_number", "log_index")
            .group_by("value")
            .agg(pl.col("to_address").last())
        )
        matched = (
            self._balances(moved, case.token)
            .filter(pl.col("balance") >= least, ~pl.col("wallet").is_in(BURN_ADDRESSES))
            .join(owners.select(wallet="to_address").unique(), on="wallet", how="semi")
            .join(
                self._balances(moved, case.without).filter(pl.col("balance") > 0),
                on="wallet",
                how="anti",
            )
            .select("wallet", pl.col("balance").cast(pl.String))
            .sort("wallet")
            .collect()
        )
        first = matched.head(case.limit)
        return matched.height, first["wallet"].to_list(), first["balance"].to_list()

    @staticmethod
    def _balances(moved: Any, token: str) -> Any:
        import polars as pl

        own = moved.filter(pl.col("token_address") == token)
        amount = pl.col("value").cast(pl.Int128)
        # polars does not negate 128-bit integers.
        lost = pl.lit(0, dtype=pl.Int128) - amount
        sides = [
            own.select(wallet="to_address", balance=amount),
            own.select(wallet="from_address", balance=lost),
        ]
        return pl.concat(sides).group_by("wallet").agg(pl.col("balance").sum())


class Pandas:
    """The same in pandas, reading only the rows of the three contracts, with Python's integers."""

    def __init__(self, source: Path) -> None:
        self._path = source / TRANSFERS

    def ask(self, case: Case) -> Found:
        import pandas as pd

        contracts = [case.token, case.collection, case.without]
        moved = pd.read_parquet(self._path, filters=[("token_address", "in", contracts)])
        own = moved[moved.token_address == case.collection].sort_values(
            ["block_number", "log_index"]
        )
        owners = set(own.drop_duplicates("value", keep="last").to_address)
        held, others = (
            self._balances(moved[moved.token_address == token])
            for token in (case.token, case.without)
        )
        matched = set(held[held >= case.least].index) & owners
        wallets = sorted(matched - set(others[others > 0].index) - set(BURN_ADDRESSES))
        first = wallets[: case.limit]
        return len(wallets), first, held[first].map(str).to_list()

    @staticmethod
    def _balances(own: Any) -> Any:
        amount = own.value.map(int).astype(object)
        gained = amount.groupby(own.to_address).sum()
        return gained.sub(amount.groupby(own.from_address).sum(), fill_value=0)


class Arrays:
    """Arrays of wallet ids and balances in memory, made beforehand: the least that any way could take."""

    def __init__(self, tables: Path) -> None:
        import duckdb

        self._connection = duckdb.connect(str(tables), read_only=True)
        addresses = self._connection.sql(
            "SELECT address FROM wallets ORDER BY wallet"
        ).to_arrow_table()
        self._addresses = addresses["address"].combine_chunks()
        self._held: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._digits: dict[str, pa.StringArray] = {}

    def hold(self, case: Case) -> None:
        """Read the arrays of a case, so that asking it reads nothing."""
        for address in (case.token, case.collection, case.without):
            rows = self._connection.sql(
                "SELECT wallet, sort_key, lo::VARCHAR AS digits FROM balances "
                "WHERE sort_key > 0 AND contract = "
                "(SELECT contract FROM contracts WHERE address = ?) ORDER BY wallet",
                params=[address],
            ).to_arrow_table()
            wallets, sizes, digits = (
                rows[name].combine_chunks() for name in ("wallet", "sort_key", "digits")
            )
            self._held[address] = wallets.to_numpy(), sizes.to_numpy()
            self._digits[address] = digits

    def ask(self, case: Case) -> Found:
        from nbext.engine.query.amounts import sort_key

        wallets, sizes = self._held[case.token]
        found = np.intersect1d(
            wallets[sizes >= sort_key(case.least)],
            self._held[case.collection][0],
            assume_unique=True,
        )
        found = np.setdiff1d(found, self._held[case.without][0], assume_unique=True)
        first = found[: case.limit]
        digits = self._digits[case.token].take(pa.array(np.searchsorted(wallets, first)))
        return len(found), self._addresses.take(pa.array(first)).to_pylist(), digits.to_pylist()
