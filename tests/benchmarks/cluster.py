"""Ingest on a Spark cluster, a master and two workers of one core and 2 GB, with a driver of 1 GB, beside DuckDB.

Every table is compared with DuckDB's, by a hash of its sorted rows.

    python -m tests.benchmarks cluster --rows 10_000_000 --folder FOLDER
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.generate import World, add_kept_world_arguments, generated
from tests.benchmarks.measure import Took, apart, high_water
from tests.benchmarks.table import Row
from tests.engine.cluster import cluster

CONF = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "2g",
    "spark.sql.shuffle.partitions": "16",
}


def on_spark(source: str, url: str, master: str) -> Took:
    """Ingest on the cluster."""
    from nbext.engine.ingest.cluster.run import ingest

    started = time.monotonic()
    ingest(
        [source],
        "ethereum",
        url,
        master,
        CONF,
        progress=lambda step, done: print(
            f"{step} {done:.0%}: {time.monotonic() - started:.0f} s", flush=True
        ),
    )
    return Took(time.monotonic() - started)


def on_duckdb(source: str, data_dir: str) -> Took:
    """Ingest on this machine."""
    from nbext.engine.ingest import ingest

    started = time.monotonic()
    ingest([source], "ethereum", data_dir)
    return Took(time.monotonic() - started, megabytes=high_water())


def differing(data_dir: Path, there: Path) -> list[str]:
    """Return the tables that are not the same in both."""
    import duckdb

    from nbext.engine.layers import attach
    from nbext.engine.schema import TABLES
    from nbext.engine.storage import current_generation

    served = current_generation(data_dir)
    assert served is not None
    (made,) = there.glob("0*")
    found = []
    with duckdb.connect() as connection:
        attach(connection.execute, served, "here")
        for name, columns in TABLES.items():
            # Sums and XOR of hashes do not depend on the order of rows, as sorting them first would not.
            hashed = [
                connection.execute(
                    f"SELECT count(*), bit_xor(hash(t)), sum(hash(t) % 4294967291) FROM "
                    f"(SELECT {', '.join(columns)} FROM {place}) t"
                ).fetchall()
                for place in (f"here.{name}", f"read_parquet('{made}/{name}.parquet/*.parquet')")
            ]
            found += [name] if hashed[0] != hashed[1] else []
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``cluster``."""
    add_kept_world_arguments(parser)


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield the row of the ingest."""
    source = generated(args.folder, World(args.rows, seed=args.seed))
    work = Path(tempfile.mkdtemp(dir=args.folder))
    try:
        with cluster(work, "2g") as master:
            spark = apart(on_spark, str(source), f"file://{work}/there", master)
        duckdb = apart(on_duckdb, str(source), str(work / "here"))
        if found := differing(work / "here", work / "there"):
            raise AssertionError(f"these tables differ from DuckDB's: {', '.join(found)}")
        yield Row(
            f"{args.rows:,} transfers ingested on Spark, two workers of 2 GB",
            spark,
            {"on DuckDB": duckdb},
        )
    finally:
        shutil.rmtree(work)
