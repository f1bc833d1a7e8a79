"""The folder of results: immutable Arrow files.

A file is written once, flushed, named, and never changed. Its SHA-256 is stored in the registry and compared
before the first read of this process: bytes that changed are set aside, never served.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbext.core.atomic_files import PART, sha256_of, whole_file
from nbext.errors import StorageError

if TYPE_CHECKING:
    import pyarrow as pa

# Rows of one batch on disk: small enough that the first bytes of an export go out at once.
BATCH = 16_384


@dataclass(frozen=True)
class ResultFile:
    """The name of a result's file, and what its bytes were when it was written."""

    file: str
    size: int
    sha256: str


class Results:
    """The folder of result files, and the folder where damaged ones are set aside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "results"
        self.aside = folder / "aside"
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Files whose hash was compared, with the time of their last change: a gigabyte is not hashed for each read.
        self._verified: set[tuple[str, int]] = set()

    def write(self, rows: pa.Table) -> ResultFile:
        """Store the rows in a new file."""
        # pyarrow takes up to 0.3 s to load: a service is ready without it.
        import pyarrow as pa

        name = f"{secrets.token_hex(12)}.arrow"
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        try:
            with whole_file(self.folder / name) as part:
                with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, rows.schema, options=options) as out:
                    out.write_table(rows, max_chunksize=BATCH)
                result = ResultFile(name, part.stat().st_size, sha256_of(part))
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"a result could not be written ({type(error).__name__})") from None
        self._verified.add((name, self._changed_at(result)))
        return result

    def open(self, result: ResultFile) -> Any:
        """Return a pyarrow RecordBatchFileReader over the file.

        Raises
        ------
        StorageError
            The file is missing, or its bytes are not those that were written.
        """
        import pyarrow as pa

        self.verify(result)
        try:
            return pa.ipc.open_file(pa.memory_map(str(self.folder / result.file)))
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"result {result.file} cannot be read ({type(error).__name__})") from None

    def verify(self, result: ResultFile, *, again: bool = False) -> None:
        """Compare the file's bytes with what was written: once in a process, or ``again``."""
        version = (result.file, self._changed_at(result))
        if again or version not in self._verified:
            if version[1] < 0:
                raise StorageError(f"result {result.file} is missing or has another size")
            if sha256_of(self.folder / result.file) != result.sha256:
                raise StorageError(f"result {result.file} has other bytes than were written")
            self._verified.add(version)

    def _changed_at(self, result: ResultFile) -> int:
        """Return when the file last changed (ns), or -1 where it is missing or of another size."""
        try:
            stat = (self.folder / result.file).stat()
        except OSError:
            return -1
        return stat.st_mtime_ns if stat.st_size == result.size else -1

    def present(self, result: ResultFile) -> bool:
        """Return whether the file is there and has its size; its bytes are not read."""
        return self._changed_at(result) >= 0

    def set_aside(self, result: ResultFile) -> None:
        """Move a damaged file out of the way, for the operator to look at."""
        self.aside.mkdir(exist_ok=True, mode=0o700)
        path = self.folder / result.file
        if path.exists():
            path.replace(self.aside / result.file)

    def remove(self, file: str) -> None:
        """Delete an expired result; readers that have it open go on reading."""
        (self.folder / file).unlink(missing_ok=True)

    def strays(self, known: set[str], *, older_than: float) -> Iterator[Path]:
        """Yield files that the registry does not name, last changed before ``older_than`` (seconds since 1970).

        Another service may be about to register a younger one.
        """
        for path in self.folder.iterdir():
            if path.name not in known and (path.suffix in (".arrow", PART)) and path.stat().st_mtime < older_than:
                yield path
