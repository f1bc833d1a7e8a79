"""Make the files in ``prepared/``: ``python -m tests.sample_generator.prepare [FOLDER]``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from nbext.core.chains import chain_of
from nbext.engine.sample.unpack import MANIFEST, PREPARED
from nbext.engine.schema import TABLES
from tests.sample_generator.slots import LAST_SLOT, PACES, block, timestamp
from tests.sample_generator.tables import Prepared, arrow, shipped
from tests.sample_generator.transfers import NAME, logs

_UNORDERED = {"to_block", "log_index", "sender", "transfers", "active_days"}


def prepare(folder: Path) -> None:
    """Write every table as Parquet, and the manifest, into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    prepared = Prepared(logs())
    # Of the rows and not of the files, which change with the library that writes them.
    fingerprint, counts = sha256(), {}
    for name in TABLES:
        rows = prepared.rows(name)
        counts[name] = len(rows)
        fingerprint.update(f"{name} {rows}".encode())
        _write(arrow(name, rows), shipped(name), folder / f"{name}.parquet")
    manifest = _manifest(counts, fingerprint.hexdigest())
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _write(table: Any, layout: dict[str, str], path: Path) -> None:
    # Ordered whole numbers are smallest as differences; zstd finds what repeats in the others.
    ordered = [column for column, kind in layout.items() if kind.startswith("int") and column not in _UNORDERED]
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
        "format": 1,
        "number": 0,
        "fingerprint": fingerprint,
        "name": NAME,
        "synthetic": True,
        "created_at": "2026-01-01T00:00:00Z",
        "chains": chains,
        "tables": rows,
        "files": [],
    }


def main(words: Sequence[str]) -> None:
    """Prepare into the folder that is named, else into the package."""
    prepare(Path(words[0]) if words else PREPARED)


if __name__ == "__main__":
    main(sys.argv[1:])
