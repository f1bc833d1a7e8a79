"""Segments beside raw SQL, polars, pandas and arrays in memory: "at least X of A, and B, and not C".

Ours is timed from the segment's body to Arrow rows, warm. All must agree on the wallets. Then the other
kinds of conditions beside the plain one, and, in a process of its own, the first query and the memory.

    python -m tests.benchmarks query --rows 10_000_000 --folder FOLDER
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.generate import FIRST_TIME, ROWS_PER_BLOCK, SECONDS_PER_BLOCK, World, generate
from tests.benchmarks.rivals import Arrays, Case, Found, Pandas, Polars, RawDuckDB

# The popularity of A, B (a collection) and C.
HOLDERS = {"very large": (0, 3, 1), "mid-size": (200, 206, 201), "long tail": (5000, 5001, 5002)}


class Ours:
    """The engine, from a segment's body to Arrow rows."""

    def __init__(self, data_dir: Path) -> None:
        from nbext.engine.open import open_dataset

        self.dataset = open_dataset(data_dir)

    def rows(self, filters: dict[str, Any], limit: int = 10_000) -> Any:
        """Answer filters."""
        from nbext.segment import language

        body = {"operator": "AND", "filters": filters, "fileType": "json", "limit": limit}
        plan = language.resolve(language.parse(body), self.dataset)
        return self.dataset.ask(language.compile(plan), limit=limit)

    def ask(self, case: Case) -> Found:
        answer = self.rows(plain(case), case.limit)
        return answer.matched, answer.rows["address"].to_pylist()


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
        "heldSince": {"token": {**plain(case)["token"], "heldSince": then}, "nft": plain(case)["nft"]},
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


def timed(work: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """Return the median seconds of some rounds, and the last result; one round before them warms up."""
    result, taken = work(), []
    for _ in range(rounds):
        started = time.perf_counter()
        result = work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken), result


def least_of(ours: Ours, token: str) -> int:
    """Return an amount that about half of the token's holders have, of two digits."""
    from nbext.engine.dataset import Tables

    def middle(tables: Tables, scalars: Any) -> Any:
        balances = tables["balances"]
        return balances.filter(balances.contract == scalars[0]).agg(size=balances.size.median().cast("int64"))

    contract = ours.dataset.catalog.contract(1, token)
    found = ours.dataset._read("benchmark", middle, (contract.contract,))["size"][0].as_py()
    more, digits = divmod(found, 10**17)
    digits *= 10 ** max(more, 0)
    return int(str(digits)[:2]) * 10 ** max(len(str(digits)) - 2, 0)


def first_query(data_dir: str, case: Case) -> tuple[float, float]:
    """Return the seconds to open the data and to answer first, in a new process."""
    import nbext.segment.language  # noqa: F401  a service has loaded its modules when it says that it is ready

    started = time.perf_counter()
    ours = Ours(Path(data_dir))
    opened = time.perf_counter()
    ours.ask(case)
    return opened - started, time.perf_counter() - opened


def memory_of(data_dir: str, filters: list[dict[str, Any]]) -> float:
    """Return the peak gigabytes of a process that answers all of these."""
    ours = Ours(Path(data_dir))
    for one in filters:
        ours.rows(one)
    # Not getrusage: a new process starts there with the peak of the one that started it.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("utf-8"))
    assert peak is not None
    return int(peak.group(1)) / 2**20


def prepared(args: argparse.Namespace, world: World) -> tuple[Path, Path]:
    """Return the folders of the generated files and of the data, made where they are not there yet."""
    from nbext.engine.ingest import ingest

    source = args.folder / f"rows-{args.rows}-seed-{args.seed}"
    data_dir = args.folder / f"data-{args.rows}-seed-{args.seed}"
    if not (source / "contracts.parquet").is_file():
        generate(source, world)
    if not (data_dir / "current").is_file():
        ingest([source], "ethereum", data_dir)
    return source, data_dir


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``query``."""
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without", nargs="*", default=[], choices=["DuckDB", "polars", "pandas"])
    parser.add_argument("--folder", type=Path, required=True, help="where the generated files and the data are kept")


def run(args: argparse.Namespace) -> None:
    """Print the medians of each case, and how many times ours each rival takes."""
    world = World(args.rows, seed=args.seed)
    source, data_dir = prepared(args, world)
    ours, arrays = Ours(data_dir), Arrays(ours_tables(data_dir))
    rivals = {"DuckDB": RawDuckDB(source), "polars": Polars(source), "pandas": Pandas(source)}
    rivals = {name: rival for name, rival in rivals.items() if name not in args.without}
    cases = [case_of(ours, world, name, ranks) for name, ranks in HOLDERS.items()]
    for case in cases:
        beside(case, ours, arrays, rivals, args.rounds)
    large = timed(lambda: ours.ask(cases[0]), args.rounds)[0]
    for name, filters in other_kinds(cases[0], world).items():
        seconds, answer = timed(lambda filters=filters: ours.rows(filters), args.rounds)
        print(f"{name}: {seconds * 1e3:.1f} ms, {seconds / large:.1f} times the plain query; {answer.matched:,} match")
    everything = [plain(case) for case in cases] + list(other_kinds(cases[0], world).values())
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(1) as pool:
        opened, first = pool.apply(first_query, (str(data_dir), cases[0]))
    with spawn.Pool(1) as pool:
        memory = pool.apply(memory_of, (str(data_dir), everything))
    print(f"opened in {opened:.2f} s, first answer in {first:.2f} s; peak memory after all of these {memory:.2f} GB")


def ours_tables(data_dir: Path) -> Path:
    """Return the DuckDB file of the data."""
    from nbext.engine.generation import current

    generation = current(data_dir)
    assert generation is not None
    return generation.tables


def case_of(ours: Ours, world: World, name: str, ranks: tuple[int, int, int]) -> Case:
    """Return the question about contracts of these popularities."""
    token, collection, without = map(world.contract_address, ranks)
    return Case(name, token, collection, without, least_of(ours, token))


def beside(case: Case, ours: Ours, arrays: Arrays, rivals: dict[str, Any], rounds: int) -> None:
    """Time a case on every side, print it, and stop where one finds other wallets."""
    arrays.hold(case)
    seconds, found = timed(lambda: ours.ask(case), 3 * rounds)
    in_memory, expected = timed(lambda: arrays.ask(case), 3 * rounds)
    assert found == expected, f"{case.name}: the arrays find {expected[0]} wallets, we {found[0]}"
    print(f"{case.name}: {found[0]:,} match. ours {seconds * 1e3:.1f} ms; arrays {in_memory * 1e3:.1f} ms, "
          f"so ours is theirs * 1.3 {(seconds - 1.3 * in_memory) * 1e3:+.1f} ms")  # fmt: skip
    for name, rival in rivals.items():
        theirs, expected = timed(lambda rival=rival: rival.ask(case), rounds)
        assert found == expected, f"{case.name}: {name} finds {expected[0]} wallets, we {found[0]}"
        print(f"    {name} {theirs * 1e3:,.0f} ms: {theirs / seconds:,.0f} times ours")
