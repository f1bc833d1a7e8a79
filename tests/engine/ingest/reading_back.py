"""The tables of a generation as plain Python values: addresses, integers, sets of rows."""

from __future__ import annotations

import duckdb

from nbext.engine import storage
from nbext.engine.ingest import ingest
from nbext.engine.layers import attach
from nbext.engine.schema import TABLES

BASE = 10**26
ZERO = "0x" + "0" * 40
# Who owns each token id, and how many.
OWNERS = (
    "(SELECT contract, id_hi, id_mid, id_lo, wallet, sum(change)::BIGINT AS count FROM nft_changes "
    "GROUP BY ALL HAVING sum(change) <> 0)"
)


def wallet(n: int) -> str:
    """A made-up wallet; number 0 is the zero address."""
    return f"0x{n:040x}"


def transaction(n: int) -> str:
    """A made-up transaction hash."""
    return f"0x{n * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**256:064x}"


class Tables:
    """The served generation, read with plain SQL and Python's integers."""

    def __init__(self, data_dir):
        self.generation = storage.current_generation(data_dir)
        self.connection = duckdb.connect(":memory:")
        attach(self.connection.execute, self.generation, "generation")
        self.connection.execute("USE generation")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.connection.close()

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()

    def _amounts(self, sql):
        return [
            (*keys, int(hi) * BASE**2 + int(mid) * BASE + int(lo))
            for *keys, hi, mid, lo in self.rows(sql)
        ]

    def balances(self):
        """{(contract, wallet): balance}"""
        rows = self._amounts(
            "SELECT c.address, w.address, hi, mid, lo FROM balances JOIN contracts c USING (contract)"
            " JOIN wallets w USING (wallet)"
        )
        return {(contract, holder): amount for contract, holder, amount in rows}

    def owners(self):
        """{(contract, token id): owner}"""
        rows = self._amounts(
            f"SELECT c.address, w.address, id_hi, id_mid, id_lo FROM {OWNERS}"
            " JOIN contracts c USING (contract) JOIN wallets w USING (wallet)"
        )
        return {(contract, token): owner for contract, owner, token in rows}

    def history(self):
        """[(contract, wallet, from, to, balance)] in the order of the table."""
        return self._amounts(
            "SELECT c.address, w.address, from_block, to_block, hi, mid, lo FROM history h"
            " JOIN contracts c USING (contract) JOIN wallets w USING (wallet) ORDER BY h.rowid"
        )

    def transfers(self):
        return self._amounts(
            "SELECT c.address, block, log_index, s.address, r.address, count, hi, mid, lo"
            " FROM transfers t JOIN contracts c USING (contract) JOIN wallets s ON s.wallet = sender"
            " JOIN wallets r ON r.wallet = recipient ORDER BY t.rowid"
        )

    def contract(self, address):
        columns = "standard, name, symbol, decimals, verified, total_supply, holders, transfers"
        found = self.connection.execute(
            f"SELECT {columns} FROM contracts WHERE address = ?", [address]
        ).fetchall()
        return dict(zip(columns.split(", "), found[0], strict=True)) if found else None


def everything(data_dir):
    """Every row of every table of the layout, in its order, and the fingerprint."""
    with Tables(data_dir) as tables:
        rows = {
            table: tables.rows(f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid")
            for table, columns in TABLES.items()
        }
        return rows, tables.generation.fingerprint


def take(data_dir, *paths, chain="ethereum", **options):
    """Ingest, and return the report."""
    return ingest(paths, chain, data_dir, **options)
