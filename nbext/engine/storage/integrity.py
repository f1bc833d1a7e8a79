"""What is damaged of the data that a folder serves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nbext.engine.about import about
from nbext.engine.schema import TABLES
from nbext.engine.storage import generation
from nbext.errors import StorageError


def damage_of(data_dir: Path) -> Iterator[str]:
    """Read every byte of the tables that are served, and yield what is wrong with them."""
    import duckdb

    try:
        served = generation.current(data_dir)
        if served is None:
            return
        about(served, "duckdb")
        with duckdb.connect(str(served.tables), read_only=True, config={"memory_limit": "1GB"}) as tables:
            for table in TABLES:
                # DuckDB holds each block against its checksum when it is read.
                tables.execute(f"SELECT bit_xor(hash(t)) FROM {table} t").fetchall()
    except StorageError as error:
        yield f"chain data: {error}"
    except duckdb.Error as error:
        assert served is not None
        yield f"chain data: {served.tables}: {str(error).splitlines()[0]}"
