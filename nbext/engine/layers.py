"""The tables of a generation as one: those of its base, and what its delta has added and overridden since.

A base is what one run made of everything: its wallets are numbered in the order of their addresses. A delta holds what
later runs added, in the same tables, and which rows of the base it overrides:

    stale.holdings   balances that changed, and the block at which the last interval of their history ended, or `WHOLE`
                     where the delta has all of their history; ``held`` where the base has a balance that is not zero
    stale.contracts  contracts of which the delta has every row
    stale.blocks     blocks of contracts of which the delta has every change of an NFT
    stale.activity   wallets that were active again
    stale.wallets    wallets that have become known as contracts
    stale.untimed    chains of which there is a block without a time by now

Wallets and contracts that came later have the next numbers: a number is given once. ``contracts`` and ``ingest.facts``
are in the delta whole. What one query reads of both is one statement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from nbext.engine.query.sql import ENDED, NEEDED, Layers
from nbext.engine.schema import FOREVER, TABLES, sql_literal

if TYPE_CHECKING:
    from nbext.engine.query.bitmaps import Wallets
    from nbext.engine.storage import Generation

STALE = {
    "holdings": {"contract": "INTEGER", "wallet": "INTEGER", "until": "BIGINT", "held": "BOOLEAN"},
    "contracts": {"contract": "INTEGER"},
    "blocks": {"contract": "INTEGER", "block": "BIGINT"},
    "activity": {"chain_id": "BIGINT", "wallet": "INTEGER"},
    "wallets": {"wallet": "INTEGER"},
    "untimed": {"chain_id": "BIGINT"},
}
Run = Callable[[str], Any]


# Where the end of a holding's last interval stands: its history is whole in the delta.
WHOLE = -1
# Tables of which no row of the base is overridden but with its contract.
_GROWING = ("transfers", "nft_changes", "snapshot_wallets")


def attach(run: Run, generation: Generation, name: str) -> Layers | None:
    """Attach a generation read-only, its tables as those of the database of that name; return its layers, if any."""
    if generation.delta is None:
        run(f"ATTACH {sql_literal(generation.tables)} AS {name} (READ_ONLY)")
        return None
    run(f"ATTACH {sql_literal(generation.tables)} AS {name}_base (READ_ONLY)")
    run(f"ATTACH {sql_literal(generation.delta)} AS {name}_delta (READ_ONLY)")
    run(f"ATTACH ':memory:' AS {name}")
    return overlay(run, name, f"{name}_base", f"{name}_delta")


def ranks_of(run: Run, name: str) -> tuple[Wallets, Wallets]:
    """Return each wallet's rank by address, and the wallet of each rank, of a base and a delta that are attached."""
    added = f"SELECT wallet, place FROM {name}_delta.ingest.places ORDER BY place, address"
    wallets, places = run(added).fetchnumpy().values()
    base = run(f"SELECT count(*) FROM {name}_base.main.wallets").fetchall()[0][0]
    by_rank = np.insert(np.arange(base, dtype=np.int32), places, wallets)
    ranks = np.empty_like(by_rank)
    ranks[by_rank] = np.arange(len(by_rank), dtype=np.int32)
    return ranks, by_rank


def overlay(run: Run, name: str, base: str, delta: str) -> Layers:
    """Create in a database the tables of a base and a delta that are attached, as views."""
    run(f"CREATE SCHEMA {name}.ingest")

    def some(relation: str) -> bool:
        return bool(run(f"SELECT count(*) > 0 FROM {relation}").fetchall()[0][0])

    stale = {table: some(f"{delta}.stale.{table}") for table in STALE}
    gone = {
        table: " ".join(
            _joined("ANTI", f"SELECT {key} FROM {rows}", *key.split(", "), name=f"gone_{place}")
            for place, (rows, key) in enumerate(hidden(table, delta))
            if some(rows)
        )
        for table in TABLES
    }
    views = {table: _view(table, base, delta, stale, gone[table]) for table in TABLES}
    for table, sql in views.items():
        run(f"CREATE VIEW {name}.main.{table} AS {sql.replace(NEEDED, 'true')}")
    for table in ("keys", "repeats", "blocks", "openings"):
        run(
            f"CREATE VIEW {name}.ingest.{table} AS FROM {base}.ingest.{table} UNION ALL FROM {delta}.ingest.{table}"
        )
    run(f"CREATE VIEW {name}.ingest.facts AS FROM {delta}.ingest.facts")
    layered = {table: sql for table, sql in views.items() if NEEDED in sql}
    # Not as they ended, but left out: then DuckDB compares ``to_block`` where it reads it, which takes half as long.
    ended = f"SELECT contract, wallet, {FOREVER} AS to_block FROM {delta}.stale.holdings"
    join = _joined(
        "ANTI", ended, "contract", "wallet", "to_block", needed=f"{NEEDED} AND until <= {ENDED}"
    )
    columns = ", ".join(TABLES["history"])
    lasting = (
        f"SELECT {columns} FROM {base}.main.history AS b {join} {gone['history']} "
        f"UNION ALL SELECT {columns} FROM {delta}.main.history AS d"
    )
    return Layers(base, delta, layered, lasting)


def hidden(table: str, delta: str) -> list[tuple[str, str]]:
    """Return which rows of a table of the base the delta has in another form: SQL of their keys, and the columns."""
    of_contracts = (f"{delta}.stale.contracts", "contract")
    of_holdings = (f"(FROM {delta}.stale.holdings WHERE until = {WHOLE})", "contract, wallet")
    return {
        "transfers": [of_contracts],
        "nft_changes": [of_contracts, (f"{delta}.stale.blocks", "contract, block")],
        "balances": [of_contracts],
        "history": [of_contracts, of_holdings],
    }.get(table, [])


def _view(table: str, base: str, delta: str, stale: dict[str, bool], gone: str) -> str:
    if table == "contracts":
        return f"SELECT * FROM {delta}.main.contracts"
    if table in _GROWING:  # with all columns: ingest has more of transfers
        return (
            f"SELECT b.* FROM {base}.main.{table} AS b {gone} "
            f"UNION ALL SELECT * FROM {delta}.main.{table}"
        )
    changed = {column: f"b.{column}" for column in TABLES[table]}
    added = {column: f"d.{column}" for column in TABLES[table]}
    join = ""
    if table == "wallets" and stale["wallets"]:
        changed["is_contract"] = (
            f"CASE WHEN b.wallet IN (SELECT wallet FROM {delta}.stale.wallets) THEN true ELSE b.is_contract END"
        )
    elif table == "history" and stale["holdings"]:
        changed["to_block"] = (
            f"CASE WHEN b.to_block = {FOREVER} THEN coalesce(s.until, b.to_block) ELSE b.to_block END"
        )
        join = _joined(
            "LEFT",
            f"SELECT contract, wallet, until FROM {delta}.stale.holdings",
            "contract",
            "wallet",
        )
    elif table == "balances" and stale["holdings"]:
        held = f"SELECT contract, wallet FROM {delta}.stale.holdings"
        join = _joined("ANTI", held, "contract", "wallet", needed=f"held AND {NEEDED}")
    elif table == "activity" and stale["activity"]:
        join = _joined("ANTI", f"SELECT * FROM {delta}.stale.activity", *STALE["activity"])
    if table == "activity" and stale["untimed"]:
        for columns, alias in ((changed, "b"), (added, "d")):
            untimed = f"{alias}.chain_id IN (SELECT chain_id FROM {delta}.stale.untimed)"
            columns["active_days"] = f"CASE WHEN {untimed} THEN NULL ELSE {alias}.active_days END"
    return (
        f"SELECT {_listed(changed)} FROM {base}.main.{table} AS b {join} {gone} "
        f"UNION ALL SELECT {_listed(added)} FROM {delta}.main.{table} AS d"
    )


def _joined(how: str, stale: str, *keys: str, needed: str = NEEDED, name: str = "s") -> str:
    matching = " AND ".join(f"{name}.{key} = b.{key}" for key in keys)
    return f"{how} JOIN ({stale} WHERE {needed}) AS {name} ON {matching}"


def _listed(columns: dict[str, str]) -> str:
    return ", ".join(f"{sql} AS {column}" for column, sql in columns.items())
