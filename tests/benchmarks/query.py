"""Segments beside raw SQL, polars, pandas and arrays in memory: "at least X of A, and B, and not C".

Ours is timed from the segment's body to Arrow rows, warm, and reads every contract's wallets again, but not the burn
addresses', which any question before it has read. Asked twice, it would have all in memory, as the arrays are, which is
a side of its own. All must agree on the wallets and their balances.
Then the other kinds of conditions beside the plain one, and, in a process of its own, the first query and the
memory.

    python -m tests.benchmarks query --rows 10_000_000 --folder FOLDER
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.generate import (
    FIRST_TIME,
    ROWS_PER_BLOCK,
    SECONDS_PER_BLOCK,
    World,
    add_kept_world_arguments,
    generated,
)
from tests.benchmarks.measure import Took, apart, high_water, median, timed
from tests.benchmarks.rivals import Arrays, Case, Found, Pandas, Polars, RawDuckDB
from tests.benchmarks.table import Row

# The popularity of A, B (a collection) and C.
HOLDERS = {"very large": (0, 3, 1), "mid-size": (200, 206, 201), "long-tail": (5000, 5001, 5002)}
RIVALS = {"DuckDB SQL over the Parquet files": RawDuckDB, "polars": Polars, "pandas": Pandas}


class Ours:
    """The engine, from a segment's body to Arrow rows."""

    def __init__(self, data_dir: Path) -> None:
        from nbext.engine.open import open_dataset

        self.dataset = open_dataset(data_dir)

    def rows(self, filters: dict[str, Any], limit: int = 10_000, *, anew: bool = True) -> Any:
        """Answer filters; ``anew`` reads what an answer before this one has left in memory."""
        from nbext.language import language

        for key in list(self.dataset.sets) if anew else ():
            if "FROM wallets WHERE address" not in key:
                del self.dataset.sets[key]
        body = {"operator": "AND", "filters": filters, "fileType": "json", "limit": limit}
        plan = language.resolve(language.parse(body), self.dataset)
        return self.dataset.ask(language.compile(plan), limit=limit)

    def ask(self, case: Case, *, anew: bool = True) -> Found:
        answer = self.rows(plain(case), case.limit, anew=anew)
        (balance,) = [name for name in answer.rows.column_names if name.endswith("_balance_raw")]
        return (
            answer.matched,
            answer.rows["address"].to_pylist(),
            answer.rows[balance].cast("string").to_pylist(),
        )


def plain(case: Case) -> dict[str, Any]:
    """Return a case's filters."""
    return {
        "token": {"token": case.token, "unit": "raw", "balance": {"min": str(case.least)}},
        "nft": {"nft": case.collection, "count": {"min": 1}},
        "not": {"token": {"token": case.without}},
    }


def other_kinds(case: Case, world: World) -> dict[str, dict[str, Any]]:
    """Return filters of the conditions that are not decided by balances as they stand."""
    then, later, late = (at_share(world, share) for share in (0.6, 0.75, 0.9))
    collections = [world.contract_address(rank) for rank in (3, 10, 17, 24, 31)]
    return {
        "heldSince": {
            "token": {**plain(case)["token"], "heldSince": then},
            "nft": plain(case)["nft"],
        },
        "transfer in a window": {
            "transfer": {"direction": "in", "token": case.token, "after": then, "before": later}
        },
        "activity": {"activity": {"last": {"after": late}, "transfers": {"min": 3}}},
        "collections atLeast 3": {"collections": {"of": collections, "atLeast": 3}},
    }


def at_share(world: World, share: float) -> str:
    """Return the time when that share of the transfers had been."""
    seconds = int(world.rows / ROWS_PER_BLOCK * SECONDS_PER_BLOCK * share)
    return datetime.fromtimestamp(FIRST_TIME + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def least_of(ours: Ours, token: str) -> int:
    """Return an amount that about half of the token's holders have, of two digits."""
    contract = ours.dataset.catalog.contract(1, token).contract
    found = ours.dataset.read(
        lambda sql: (
            "SELECT CAST(median(sort_key) AS BIGINT) AS middle "
            f"FROM {sql.table('balances', contract=contract)}"
        )
    )["middle"][0].as_py()
    more, digits = divmod(found, 10**17)
    digits *= 10 ** max(more, 0)
    return int(str(digits)[:2]) * 10 ** max(len(str(digits)) - 2, 0)


def first_query(data_dir: str, filters: dict[str, Any]) -> float:
    """Return the seconds to open the data and to answer first, in a new process."""
    import nbext.language.language  # noqa: F401  a service has loaded its modules when it says that it is ready

    started = time.perf_counter()
    Ours(Path(data_dir)).rows(filters)
    return time.perf_counter() - started


def memory_of(data_dir: str, filters: list[dict[str, Any]]) -> float:
    """Return the peak megabytes of a process that answers all of these."""
    ours = Ours(Path(data_dir))
    for one in filters:
        ours.rows(one)
    return high_water()


def prepared(args: argparse.Namespace, world: World) -> tuple[Path, Path]:
    """Return the folders of the generated files and of the data, made where they are not there yet."""
    from nbext.engine.ingest import ingest

    source = generated(args.folder, world)
    data_dir = args.folder / f"data-{args.rows}-seed-{args.seed}"
    if not (data_dir / "current").is_file():
        ingest([source], "ethereum", data_dir)
    return source, data_dir


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``query``."""
    add_kept_world_arguments(parser)
    parser.add_argument(
        "--rounds", type=int, default=5, help="of each rival; ours has three times as many"
    )


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each question, then what opening takes."""
    world = World(args.rows, seed=args.seed)
    source, data_dir = prepared(args, world)
    ours, arrays = Ours(data_dir), Arrays(ours_tables(data_dir))
    cases = [case_of(ours, world, name, ranks) for name, ranks in HOLDERS.items()]
    for case in cases:
        yield beside(case, ours, arrays, source, args)
    others = other_kinds(cases[0], world)
    for name, filters in others.items():
        took, answer = timed(lambda filters=filters: ours.rows(filters), 3 * args.rounds)
        yield Row(f"{name}, of the same transfers, {answer.matched:,} match", took)
    yield totals_beside(cases[0], ours, data_dir, args)
    ours.dataset.close()
    everything = [plain(case) for case in cases] + list(others.values())
    opened = median([apart(first_query, str(data_dir), everything[0]) for _ in range(args.rounds)])
    memory = apart(memory_of, str(data_dir), everything)
    yield Row(
        "to open those transfers and answer first; memory after all of these",
        replace(opened, megabytes=memory),
    )


def ours_tables(data_dir: Path) -> Path:
    """Return the DuckDB file of the data."""
    from nbext.engine.storage import current_generation

    generation = current_generation(data_dir)
    assert generation is not None
    return generation.tables


def case_of(ours: Ours, world: World, name: str, ranks: tuple[int, int, int]) -> Case:
    """Return the question about contracts of these popularities."""
    token, collection, without = map(world.contract_address, ranks)
    return Case(name, token, collection, without, least_of(ours, token))


def beside(case: Case, ours: Ours, arrays: Arrays, source: Path, args: argparse.Namespace) -> Row:
    """Time a case on every side, and stop where one finds other rows."""
    arrays.hold(case)
    took, found = timed(lambda: ours.ask(case), 3 * args.rounds)
    asks = '"at least X of A, and B, and not C"'
    question = f"{asks}, {case.name} contracts of {args.rows:,} transfers, {found[0]:,} match"
    again, _ = timed(lambda: ours.ask(case, anew=False), 3 * args.rounds)
    sides = {name: asked(rival, source, case, found, args.rounds) for name, rival in RIVALS.items()}
    in_memory, expected = timed(lambda: arrays.ask(case), 3 * args.rounds)
    assert found == expected, f"{case.name}: the arrays find {expected[0]} wallets, we {found[0]}"
    return Row(
        question,
        took,
        {**sides, "the same asked again": again, "arrays of ids, already in memory": in_memory},
    )


# Sums of less than 2^127, as one writes it who has the prepared tables.
_TOTALS = f"""
    SELECT count(*) FROM (
        SELECT recipient FROM transfers JOIN contracts USING (contract)
        WHERE address = $token AND recipient NOT IN (SELECT wallet FROM wallets WHERE address IN $burned)
        GROUP BY recipient
        HAVING CAST(sum(mid) AS HUGEINT) * CAST({10**26} AS HUGEINT) + CAST(sum(lo) AS HUGEINT) >= $least
    )
"""


def totals_beside(case: Case, ours: Ours, data_dir: Path, args: argparse.Namespace) -> Row:
    """Time who received how much in all, and SQL by hand over the same tables."""
    import duckdb

    from nbext.core.addresses import BURN_ADDRESSES

    received = {"direction": "in", "token": case.token, "unit": "raw"}
    filters = {"transfer": {**received, "total": {"min": str(case.least)}}}
    took, found = timed(lambda: ours.rows(filters, limit=0).matched, 3 * args.rounds)
    values = {"token": case.token, "least": case.least, "burned": list(BURN_ADDRESSES)}
    with duckdb.connect(str(ours_tables(data_dir)), read_only=True) as connection:
        by_hand, ((expected,),) = timed(
            lambda: connection.execute(_TOTALS, values).fetchall(), 3 * args.rounds
        )
    assert found == expected, f"transfer with total: SQL finds {expected} wallets, we {found}"
    question = f"transfer with total, of the same transfers, {found:,} match, counted"
    return Row(question, took, {"DuckDB SQL over our tables": by_hand})


def asked(rival: type, source: Path, case: Case, found: Found, rounds: int) -> Took | str:
    """Return what a rival takes for a case, or that it is not installed."""
    try:
        side = rival(source)
        # Who takes long is asked less often.
        took, expected = timed(lambda: side.ask(case), 1)
        if took.seconds < 6:
            took, expected = timed(lambda: side.ask(case), rounds)
    except ModuleNotFoundError as missing:
        return f"{missing.name} is not installed"
    assert found == expected, (
        f"{case.name}: {rival.__name__} finds {expected[0]} wallets, we {found[0]}"
    )
    return took
