"""Make the shipped tables of the sample: ``python -m tests.sample_generator.prepare [FOLDER]``."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from nbext.core.addresses import ZERO_ADDRESS
from nbext.core.chains import chain_of
from nbext.core.uint256 import Limbs, join
from nbext.engine.ingest import ingest
from nbext.engine.sample.unpack import MANIFEST, PREPARED
from nbext.engine.schema import TABLES
from nbext.engine.storage import FORMAT
from tests.sample_generator.cast import CONTRACTS, contract
from tests.sample_generator.export import write_export
from tests.sample_generator.slots import LAST_SLOT, PACES, block, timestamp
from tests.sample_generator.spam import SPAM
from tests.sample_generator.transfers import NAME

_UNORDERED = {"to_block", "log_index", "sender", "transfers", "active_days"}


def shipped(name: str) -> dict[str, str]:
    """Return the columns of a table that are shipped: the others are made when it is unpacked."""
    return {
        column: kind for column, kind in TABLES[name].items() if column not in ("sort_key", "hash")
    }


def prepare(folder: Path) -> None:
    """Write every table that ingest makes of the export as Parquet, and the manifest, into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        export = Path(work) / "export"
        export.mkdir()
        write_export(export)
        report = ingest([export], None, Path(work) / "data")
        generation = Path(work) / "data" / "generations" / str(report.generation)
        with duckdb.connect(str(generation / "tables.duckdb")) as made:
            _tell_what_no_exporter_knows(made)
            tables = {
                name: made.sql(f"SELECT {', '.join(shipped(name))} FROM {name}").to_arrow_table()
                for name in TABLES
            }
    # Of the rows and not of the files, which change with the library that writes them.
    fingerprint = sha256()
    for name, table in tables.items():
        fingerprint.update(f"{name} {_rows(table)}".encode())
        _write(table, shipped(name), folder / f"{name}.parquet")
    manifest = _manifest(
        {name: table.num_rows for name, table in tables.items()}, fingerprint.hexdigest()
    )
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _tell_what_no_exporter_knows(made: duckdb.DuckDBPyConnection) -> None:
    """Mark spam, and say of wallets whether they are contracts, and what was minted: only the sample's author knows."""
    spam = [known.address for known in SPAM]
    made.execute("UPDATE contracts SET spam = address IN (FROM unnest($1))", [spam])
    made.execute("UPDATE contracts SET verified = NOT spam")
    made.execute(
        "UPDATE wallets SET is_contract = address IN (FROM unnest($1))",
        [[contract(n) for n in CONTRACTS]],
    )
    # Its world begins with nothing: every contract's first mint is in it.
    sums = made.sql(
        "SELECT contract, sum(hi), sum(mid), sum(lo) FROM balances JOIN wallets USING (wallet) "
        f"WHERE address <> '{ZERO_ADDRESS}' GROUP BY 1"
    ).fetchall()
    made.executemany(
        "UPDATE contracts SET total_supply = $2 WHERE contract = $1",
        [(number, str(join(Limbs(*map(int, limbs))))) for number, *limbs in sums],
    )


def _rows(table: Any) -> list[tuple[Any, ...]]:
    columns = (
        [int(v) if isinstance(v, Decimal) else v for v in column.to_pylist()]
        for column in table.columns
    )
    return list(zip(*columns, strict=True))


def _write(table: Any, layout: dict[str, str], path: Path) -> None:
    # Ordered whole numbers are smallest as differences; zstd finds what repeats in the others.
    ordered = [
        column
        for column, kind in layout.items()
        if kind.startswith("int") and column not in _UNORDERED
    ]
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=False,
        column_encoding=dict.fromkeys(ordered, "DELTA_BINARY_PACKED"),
        data_page_size=2**23,
        write_statistics=False,
        store_schema=False,
    )


def _manifest(rows: dict[str, int], fingerprint: str) -> dict[str, Any]:
    chains = [
        {
            "chain_id": chain_of(chain).id,
            "first_block": block(chain, 0),
            "last_block": block(chain, LAST_SLOT),
            "last_timestamp": timestamp(LAST_SLOT),
        }
        for chain in sorted(PACES, key=lambda chain: chain_of(chain).id)
    ]
    return {
        "format": FORMAT,
        "number": 0,
        "fingerprint": fingerprint,
        "name": NAME,
        "synthetic": True,
        "created_at": "2026-01-01T00:00:00Z",
        "chains": chains,
        "tables": rows,
        "files": [],
        "digests": {},
    }


def main(words: Sequence[str]) -> None:
    """Prepare into the folder that is named, else into the package."""
    prepare(Path(words[0]) if words else PREPARED)


if __name__ == "__main__":
    main(sys.argv[1:])
