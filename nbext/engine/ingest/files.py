"""Find the files to ingest: paths, folders and globs become a list of regular files."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nbext.errors import IngestError

SUFFIXES = (
    ".parquet",
    ".csv",
    ".csv.gz",
    ".json",
    ".json.gz",
    ".ndjson",
    ".ndjson.gz",
    ".jsonl",
    ".jsonl.gz",
)
# By the first letter of `stat.filemode`.
_OTHERS = {
    "l": "a symbolic link",
    "d": "a folder",
    "p": "a pipe",
    "c": "a device",
    "b": "a device",
    "s": "a socket",
}
# Two letters at least: C:/ is a drive.
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


@dataclass(frozen=True)
class Source:
    """A regular file, with the size and time that identify it without reading it."""

    path: Path
    size: int
    modified: int

    @property
    def name(self) -> str:
        """The path as text, for messages."""
        return str(self.path)

    @property
    def shown(self) -> str:
        """The path for messages: relative where the file is below the working folder."""
        return short_path(self.path)

    def fault(self, why: str, row: int | None = None) -> IngestError:
        """Return the error of the file, or of one of its rows."""
        where = self.shown if row is None else f"{self.shown}, row {row}"
        return IngestError(f"{where}: {why}", path=self.name, row=row)

    def digest(self) -> str:
        """Return the SHA-256 of the file's bytes."""
        with open_regular(self.path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def check_unchanged(self) -> None:
        """Raise IngestError if the file was written to since it was found."""
        now = source_of(self.path)
        if (now.size, now.modified) != (self.size, self.modified):
            raise self.fault("the file changed while it was being read. Ingest it again.")


def _fault(path: object, why: str) -> IngestError:
    """Return the error of what is no source: by its whole path."""
    return IngestError(f"{path}: {why}.", path=str(path))


def short_path(path: str | Path) -> str:
    """Return a path for messages: relative where it is below the working folder, as it was most likely given."""
    path = Path(path)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def open_regular(path: Path):  # type: ignore[no-untyped-def]  # the built-in open's own type
    """Open a regular file for reading bytes; refuse a link, pipe or device, even one that was just put there."""
    # Checked on the open handle, because a path can be exchanged between a check and an open. Without O_NONBLOCK,
    # opening a pipe waits for a writer that may never come.
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)  # each platform has its own of these
    handle = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _fault(path, "not a regular file")
    return os.fdopen(handle, "rb")


def source_of(path: Path) -> Source:
    """Return a regular file as a source.

    Raises
    ------
    IngestError
        There is no such file, or it is a link, a folder, a pipe or a device.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise _fault(path, "no such file") from None
    except (OSError, ValueError) as error:
        raise _fault(path, getattr(error, "strerror", None) or str(error)) from None
    if not stat.S_ISREG(found.st_mode):
        what = _OTHERS.get(stat.filemode(found.st_mode)[0], "not a file")
        raise _fault(path, f"{what}; only regular files can be ingested")
    # Only the folder is resolved: resolving the name would follow a link that has just been refused.
    return Source(path.parent.resolve() / path.name, found.st_size, found.st_mtime_ns)


def find(given: Iterable[str | os.PathLike[str]]) -> tuple[list[Source], list[IngestError]]:
    """Return the files that paths, folders and globs name, each once, and the errors of those refused.

    A folder stands for every file below it that ends in one of SUFFIXES; links are not followed. A path that
    exists is never read as a glob.
    """
    sources: dict[Path, Source] = {}
    refused: list[IngestError] = []
    for item in given:
        try:
            for path in _expand(os.fspath(item)):
                try:
                    source = source_of(path)
                    sources.setdefault(source.path, source)
                except IngestError as error:
                    refused.append(error)
        except IngestError as error:
            refused.append(error)
        except OSError as error:
            refused.append(_fault(os.fspath(item), f"cannot be read now ({error.strerror})"))
    # Sorted, so that the first of two contradicting rows is the same one whatever order a shell expands a glob in.
    return sorted(sources.values(), key=lambda source: source.path), refused


def _expand(text: str) -> Iterator[Path]:
    if URL.match(text):
        raise _fault(
            text[:200],
            "a URL, not a path. Download the file first: nbext ingests only files on this machine",
        )
    path = Path(text).expanduser()
    if os.path.lexists(path):  # true of a broken link too, which must be refused as a link
        yield from _below(path) if path.is_dir() and not path.is_symlink() else [path]
        return
    # Path.glob takes no absolute pattern.
    found = sorted(glob.glob(str(path), recursive=True)) if glob.has_magic(text) else []  # noqa: PTH207
    _check_listed(path)
    if not found:
        missing = "no file matches" if glob.has_magic(text) else "no such file"
        raise _fault(text[:200], missing)
    for name in found:
        if not Path(name).is_dir() or Path(name).is_symlink():
            yield Path(name)


def _check_listed(pattern: Path) -> None:
    """Refuse a pattern that goes through a folder which cannot be read: `glob` passes over it without a word."""
    parts = pattern.absolute().parts
    first = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    for end in range(first, len(parts) + (parts[-1] == "**")):
        for folder in glob.iglob(f"{Path(*parts[:end])}/", recursive=True):  # noqa: PTH207
            next(os.walk(folder, onerror=_unreadable), None)


def _unreadable(error: OSError) -> None:
    # Left out, as os.walk leaves it out, its rows would be missing from all answers.
    raise _fault(error.filename, f"the folder cannot be read: {error.strerror}")


def _below(folder: Path) -> list[Path]:
    # Downloads under way, and what other programs write aside, have names that begin with a dot.
    found = [
        Path(place) / name
        for place, _, names in sorted(os.walk(folder, onerror=_unreadable))
        for name in sorted(names)
        if name.lower().endswith(SUFFIXES) and not name.startswith(".")
    ]
    if not found:
        raise _fault(folder, f"the folder contains no file that ends in {', '.join(SUFFIXES)}")
    return found
