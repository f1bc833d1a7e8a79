"""A cell beside a cell: ``%%segment_query`` and JupySQL's ``%%sql``, each in a new IPython shell.

Both ask "at least X of A, and B, and not C" of the same generated transfers, and give a DataFrame. Ours goes through
the embedded service; JupySQL asks DuckDB in its own process, once over the Parquet files and once over the tables
that nbext's ingest prepared. X moves by one each time, so that no side has the answer already. (JupySQL runs a
query twice where it makes a DataFrame of DuckDB's answer; that is in its figures, as it is in its users' days.)

    python -m tests.benchmarks notebook --rows 10_000_000 --folder FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.benchmarks.generate import TRANSFERS, World, add_kept_world_arguments
from tests.benchmarks.measure import Took, apart, median
from tests.benchmarks.query import HOLDERS, Ours, case_of, ours_tables, plain, prepared
from tests.benchmarks.rivals import Case, RawDuckDB
from tests.benchmarks.table import Row

# Answers after the first, in each shell.
WARM = 3
OURS, PARQUET, TABLES = (
    "nbext",
    "JupySQL over the Parquet files",
    "JupySQL over nbext's prepared tables",
)
OVER_TABLES = """
    SELECT address AS wallet FROM balances JOIN wallets USING (wallet)
    WHERE contract = (SELECT contract FROM contracts WHERE address = $token) AND sort_key >= $size
    AND wallet IN (SELECT wallet FROM balances WHERE sort_key > 0
        AND contract = (SELECT contract FROM contracts WHERE address = $collection))
    AND wallet NOT IN (SELECT wallet FROM balances WHERE sort_key > 0
        AND contract = (SELECT contract FROM contracts WHERE address = $without))
    AND address NOT IN $burn ORDER BY address LIMIT $limit"""


@dataclass(frozen=True)
class Cells:
    """What one side runs: a line that loads it, what else it needs before its first answer, and the questions."""

    load: str
    before: str
    questions: list[str]


@dataclass(frozen=True)
class Told:
    """What one shell took: to load, from there to the first answer, and for each answer after it; and the answers."""

    load: float
    first: float
    warm: list[float]
    wallets: list[list[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``notebook``."""
    add_kept_world_arguments(parser)
    parser.add_argument("--rounds", type=int, default=5, help="new shells of each side")


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for loading, for the first answer after it, and for the answers after that."""
    world = World(args.rows, seed=args.seed)
    source, data_dir = prepared(args, world)
    name = next(iter(HOLDERS))
    cases = apart(cases_of, data_dir, world, name, WARM + 1)
    told = {
        side: in_new_shells(cells, data_dir, args.rounds)
        for side, cells in sides(source, data_dir, cases).items()
    }
    answers = [one[0].wallets for one in told.values() if not isinstance(one, str)]
    assert all(answer == answers[0] for answer in answers), "the sides find different wallets"
    loaded = took(told, "load")
    yield Row("`%load_ext`", loaded[OURS], {"JupySQL": loaded[PARQUET]})
    asked = f"{args.rows:,} transfers, {name} contracts, {len(answers[0][0]):,} wallets"
    first, warm = took(told, "first"), took(told, "warm")
    yield Row(
        f"from there to the first answer (service started, modules loaded): {asked}",
        first.pop(OURS),
        first,
    )
    yield Row(
        f"a `%%segment_query` cell after that, beside a `%%sql` cell: {asked}", warm.pop(OURS), warm
    )


def cases_of(data_dir: Path, world: World, name: str, count: int) -> list[Case]:
    """Return the case of that name with as many least amounts, one next to the other."""
    from dataclasses import replace

    case = case_of(Ours(data_dir), world, name, HOLDERS[name])
    return [replace(case, least=case.least + number) for number in range(count)]


def sides(source: Path, data_dir: Path, cases: list[Case]) -> dict[str, Cells]:
    """Return the cells of each side."""
    from nbext.engine.query.amounts import sort_key

    ours = [f"%%segment_query --limit {case.limit}\n{json.dumps(plain(case))}" for case in cases]
    path = str(source / TRANSFERS)
    settings = {"displaycon": False, "feedback": 0, "autopandas": True}
    config = "".join(f"%config SqlMagic.{name} = {value}\n" for name, value in settings.items())
    connect = (
        config + "import duckdb\nconnection = duckdb.connect({})\n%sql connection --alias duckdb"
    )
    tables = f"{str(ours_tables(data_dir))!r}, read_only=True"
    over_parquet = [_sql(RawDuckDB.SQL, case, path=path) for case in cases]
    over_tables = [_sql(OVER_TABLES, case, size=sort_key(case.least)) for case in cases]
    return {
        OURS: Cells("%load_ext nbext", "", ours),
        PARQUET: Cells("%load_ext sql", connect.format(""), over_parquet),
        TABLES: Cells("%load_ext sql", connect.format(tables), over_tables),
    }


def _sql(query: str, case: Case, **more: Any) -> str:
    """Return the query as a cell, with its values written out."""
    from nbext.core.addresses import BURN_ADDRESSES

    values = {
        "token": case.token,
        "collection": case.collection,
        "without": case.without,
        "least": case.least,
        "limit": case.limit,
        "burn": tuple(sorted(BURN_ADDRESSES)),
        **more,
    }
    for name, value in values.items():
        query = query.replace(f"${name}", repr(value))
    return f"%%sql\n{query.strip()}"


def in_new_shells(cells: Cells, data_dir: Path, rounds: int) -> list[Told] | str:
    """Return what each of some new shells told, or that its extension is not installed."""
    extension = cells.load.split()[1]
    if find_spec(extension) is None:
        return "jupysql is not installed"
    told = []
    # The first is not counted: it leaves the byte code of what it loads, as a user's first day does.
    for _ in range(rounds + 1):
        with tempfile.TemporaryDirectory() as home:
            told.append(apart(in_a_shell, cells, str(data_dir), home))
    return told[1:]


def in_a_shell(cells: Cells, data_dir: str, home: str) -> Told:
    """Run the cells in this new process."""
    _environment(Path(data_dir), Path(home))
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()

    def run(cell: str) -> Any:
        with capture_output():
            ran = shell.run_cell(cell)
        ran.raise_error()
        return ran.result

    load, taken, wallets = _seconds(run, cells.load)[0], [], []
    started = time.perf_counter()
    run(cells.before)
    before = time.perf_counter() - started
    for question in cells.questions:
        seconds, table = _seconds(run, question)
        taken.append(seconds)
        wallets.append(table.iloc[:, 0].tolist())
    run("%unload_ext nbext" if cells.load.endswith("nbext") else "connection.close()")
    return Told(load, before + taken[0], taken[1:], wallets)


def _seconds(run: Any, cell: str) -> tuple[float, Any]:
    started = time.perf_counter()
    result = run(cell)
    return time.perf_counter() - started, result


def _environment(data_dir: Path, home: Path) -> None:
    """Give the process an empty home, and a data folder of its own that keeps no earlier answers."""
    sys.dont_write_bytecode = False
    os.chdir(home)
    (home / "data").mkdir()
    shutil.copy(data_dir / "current", home / "data" / "current")
    (home / "data" / "generations").symlink_to((data_dir / "generations").absolute())
    for name in [name for name in os.environ if name.startswith("NBEXT_")]:
        del os.environ[name]
    # JupySQL would otherwise tell its makers of each use, and ask whether there is a newer one.
    os.environ |= {
        "HOME": str(home),
        "NBEXT_DATA_DIR": str(home / "data"),
        "NBEXT_PROGRESS": "false",
        "PLOOMBER_STATS_ENABLED": "false",
        "PLOOMBER_VERSION_CHECK_DISABLED": "true",
    }
    # It cannot be loaded beside a pyspark that has no grpcio, as ours has none.
    sys.modules["pyspark"] = None  # type: ignore[assignment]


def took(told: dict[str, list[Told] | str], what: str) -> dict[str, Took | str]:
    """Return each side's median of one thing that its shells told."""
    return {
        side: shells if isinstance(shells, str) else median(_all(shells, what))
        for side, shells in told.items()
    }


def _all(shells: list[Told], what: str) -> list[float]:
    if what == "warm":
        return [seconds for shell in shells for seconds in shell.warm]
    return [getattr(shell, what) for shell in shells]
