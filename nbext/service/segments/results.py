"""Results of segments: immutable Arrow files, read in pieces.

A file is written once, flushed, named, and never changed. Its SHA-256 is kept in the registry and
compared before the first read of this process: bytes that changed are set aside, never served.
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

# Rows of one batch on disk: small enough that the first bytes of an export come at once.
BATCH = 16_384


@dataclass(frozen=True)
class ResultFile:
    """Where a result is kept, and what its bytes were when it was written."""

    file: str
    size: int
    sha256: str


class Results:
    """The folder of result files, and the folder where damaged ones are set aside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "results"
        self.aside = folder / "aside"
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._verified: set[tuple[str, int]] = set()

    def write(self, rows: pa.Table) -> ResultFile:
        """Keep the rows in a new file."""
        import pyarrow as pa

        name = f"{secrets.token_hex(12)}.arrow"
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        try:
            with whole_file(self.folder / name) as part:
                with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, rows.schema, options=options) as out:
                    out.write_table(rows, max_chunksize=BATCH)
                kept = ResultFile(name, part.stat().st_size, sha256_of(part))
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"a result could not be written ({type(error).__name__})") from None
        self._remember(kept)
        return kept

    def open(self, kept: ResultFile) -> Any:
        """Return a pyarrow RecordBatchFileReader over the file.

        Raises
        ------
        StorageError
            The file is absent, or its bytes are not those that were written.
        """
        import pyarrow as pa

        self.verify(kept)
        try:
            return pa.ipc.open_file(pa.memory_map(str(self.folder / kept.file)))
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"result {kept.file} cannot be read ({type(error).__name__})") from None

    def verify(self, kept: ResultFile, *, again: bool = False) -> None:
        """Compare the file's bytes with what was written; once in a process, or ``again``."""
        if again or (kept.file, self._changed_at(kept)) not in self._verified:
            if self._changed_at(kept) < 0:
                raise StorageError(f"result {kept.file} is absent or has another size")
            if sha256_of(self.folder / kept.file) != kept.sha256:
                raise StorageError(f"result {kept.file} has other bytes than were written")
            self._remember(kept)

    def _remember(self, kept: ResultFile) -> None:
        self._verified.add((kept.file, self._changed_at(kept)))

    def _changed_at(self, kept: ResultFile) -> int:
        """Return when the file last changed (ns), or -1 where it is absent or of another size."""
        try:
            stat = (self.folder / kept.file).stat()
        except OSError:
            return -1
        return stat.st_mtime_ns if stat.st_size == kept.size else -1

    def present(self, kept: ResultFile) -> bool:
        """Say whether the file is there and has its size: a quick look, for the start of a service."""
        return self._changed_at(kept) >= 0

    def set_aside(self, kept: ResultFile) -> None:
        """Move a damaged file out of the way, for the operator to look at."""
        self.aside.mkdir(exist_ok=True, mode=0o700)
        path = self.folder / kept.file
        if path.exists():
            path.replace(self.aside / kept.file)

    def remove(self, file: str) -> None:
        """Delete a result that is no longer kept; readers that have it open go on reading."""
        (self.folder / file).unlink(missing_ok=True)

    def strays(self, known: set[str], *, older_than: float) -> Iterator[Path]:
        """Yield files that the registry does not know, last changed before ``older_than`` (seconds since 1970).

        Another service may be about to register a young one.
        """
        for path in self.folder.iterdir():
            if path.name not in known and (path.suffix in (".arrow", PART)) and path.stat().st_mtime < older_than:
                yield path
