"""What a dataset has on the disk: the generation attached and locked down, the addresses' file, a folder to spill into.

Wallets are numbered one after the other: the address of wallet n is the n-th text of a file of fixed width, in a folder
beside the tables. Looking up ten thousand of three million in a table reads most of the table; here it reads ten
thousand pages at most, and the operating system keeps them no longer than it has room.
"""

from __future__ import annotations

import contextlib
import mmap
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from nbext.core.atomic_files import made_folder
from nbext.core.locks import ProcessLock
from nbext.engine.layers import attach, ranks_of
from nbext.engine.query.rows import ADDRESS_LENGTH, address_column
from nbext.engine.query.sql import Layers
from nbext.engine.storage import ADVICE, DUCKDB
from nbext.errors import StorageError

if TYPE_CHECKING:
    from nbext.engine.query.bitmaps import Wallets
    from nbext.engine.storage import Generation

MOST_SPILLED = "4GB"
FOLDER, _FILE = "addresses", "addresses.txt"


class Spill:
    """A folder of its own for one dataset to spill into; what ended processes left beside it is removed."""

    def __init__(self, data_dir: Path) -> None:
        place = data_dir / "spill"
        self._lease: ProcessLock | None = None
        try:
            self._lease = ProcessLock(place)
        except (OSError, sqlite3.OperationalError):
            # A data folder that may only be read: questions spill among the system's temporary files.
            self.folder = Path(tempfile.mkdtemp(prefix="nbext-spill-"))
            return
        self.folder = place / self._lease.name
        for name in {
            *self._lease.others(),
            *(path.name for path in place.iterdir() if path.is_dir()),
        }:
            if not self._lease.is_alive(name):
                shutil.rmtree(place / name, ignore_errors=True)

    def release(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lease:
            self._lease.release()


def locked_down(
    generation: Generation, spill: Spill, memory: str, threads: int
) -> tuple[duckdb.DuckDBPyConnection, Layers | None, tuple[Wallets, Wallets] | None]:
    """Attach the generation to an empty database, and read its ranks: two datasets of one file then share nothing."""
    connection = duckdb.connect(
        ":memory:",
        config={
            **DUCKDB,
            # DuckDB hashes the side of a join that it expects to be smaller: of a contract with 700,000 holders it
            # expects 500, and hashes all of them to look 7,800 wallets up, which takes twice as long. Our statements
            # have the smaller side on the right, where it stays.
            "disabled_optimizers": f"{DUCKDB['disabled_optimizers']},build_side_probe_side",
            "memory_limit": memory,
            "threads": threads,
            "temp_directory": str(spill.folder),
            "max_temp_directory_size": MOST_SPILLED,
            "python_enable_replacements": False,
        },
    )
    try:
        layers = attach(connection.execute, generation, "generation")
        ranks = ranks_of(connection.execute, "generation") if generation.delta else None
        ((found,),) = connection.execute(
            "SELECT count(*) FROM generation.main.transfers"
        ).fetchall()
        # A file of another generation in the place of one's own is whole, and would answer from that one's rows.
        wrong, stated = "", generation.manifest["tables"].get("transfers", found)
        if stated != found:
            wrong = f"is damaged: it has {found:,} transfers, and its manifest says {stated:,}"
    except duckdb.Error as error:
        wrong = f"cannot be opened: {str(error).splitlines()[0]}"
    if wrong:
        connection.close()
        spill.release()
        raise StorageError(f"{generation.folder} {wrong}. {ADVICE}")
    # From here on no query can name a file, an address, a setting or a table of Python's.
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection, layers, ranks


class Addresses:
    """The addresses of one generation; until `make` has made the file, or read all of it, there are none.

    ``of`` is the generation's fingerprint.
    """

    def __init__(self, folder: Path, of: str) -> None:
        self._folder, self._of = folder / FOLDER, of
        self._texts: np.ndarray[Any, np.dtype[np.uint8]] | None = None

    def of(self, wallets: Wallets) -> pa.StringArray | None:
        """Return the address of each wallet; None where they cannot be looked up."""
        if self._texts is None:
            return None
        # Half of what an index of an array takes.
        texts = self._texts.take(wallets, axis=0)
        mapped: Any = self._texts.base
        # What was read stays in the system's cache, and is no longer counted as this process's memory; of fewer wallets
        # the pages stay mapped.
        if len(wallets) > 100_000 and hasattr(mmap, "MADV_DONTNEED"):
            mapped.base.madvise(mmap.MADV_DONTNEED)
        return address_column(texts)

    def make(self, columns: Iterable[pa.StringArray], number: int) -> None:
        """Have the file of so many addresses in the order of their wallets; one that is there is proved.

        Where the columns end early or the folder cannot be written there is no file: addresses then come
        from the table.
        """

        def write(into: Path) -> None:
            with (into / _FILE).open("wb") as file:
                for column in columns:
                    file.write(texts_joined(column))
                if file.tell() != number * ADDRESS_LENGTH:
                    raise pa.ArrowInvalid("fewer addresses than wallets")

        with contextlib.suppress(OSError, pa.ArrowInvalid):
            made_folder(self._folder, self._of, write)
            texts = np.memmap(self._folder / _FILE, np.uint8, mode="r")
            self._texts = texts.reshape(number, ADDRESS_LENGTH)


def texts_joined(column: pa.StringArray) -> bytes:
    """Return the column's texts one after the other; ArrowInvalid where one has not the width of an address."""
    return bytes(column.cast(pa.binary(ADDRESS_LENGTH)).buffers()[1])[
        : len(column) * ADDRESS_LENGTH
    ]
