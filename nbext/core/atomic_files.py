"""Files and folders that are whole or absent: written aside, flushed to the disk, then named.

A process killed at any moment, or a power cut, leaves the old one or the new one. What a killed process wrote aside
has a name that begins with a dot and ends in PART; nothing reads it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

PART = ".part"
PRIVATE = 0o600
# As open() makes files: the umask takes its bits away.
ORDINARY = 0o666
# The file in a folder of `made_folder` that proves the others.
_SEAL = "sha256"


def files_in(folder: Path, pattern: str) -> list[Path]:
    """Return what a folder has of a pattern, in order; nothing where there is no folder.

    OSError where it cannot be read: of a folder that this process may not read `Path.glob` returns nothing.
    """
    try:
        with os.scandir(folder) as found:
            return sorted(folder / one.name for one in found if fnmatchcase(one.name, pattern))
    except FileNotFoundError:
        return []


def sync(path: Path) -> None:
    """Flush a file, or a folder's list of names, to the disk: a rename alone does not survive a power cut."""
    if (
        os.name == "nt" and path.is_dir()
    ):  # Windows cannot flush a folder; NTFS journals names by itself
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def whole_file(
    target: Path, *, mode: int = PRIVATE, overwrite: bool = True, flush: bool = True
) -> Iterator[Path]:
    """Lend a path to write to; at the end it becomes the target in one step, or nothing is left.

    What is not flushed may be gone, or cut, after a power cut: only for files whose readers prove them.
    FileExistsError: the target exists at the end, and ``overwrite`` is false.
    """
    part = _aside(target)
    # Made here, with its final mode: a key written into a file of the default mode can be read until it is renamed.
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        yield part
        if flush:
            sync(part)
        if overwrite:
            part.replace(target)
        else:
            # A link fails where someone else has made the file meanwhile; a rename would replace it.
            target.hardlink_to(part)
        if flush:
            sync(target.parent)
    finally:
        part.unlink(missing_ok=True)


def write_whole(target: Path, text: str, *, mode: int = ORDINARY) -> None:
    """Write a text file, in UTF-8, in one step."""
    with whole_file(target, mode=mode) as part:
        part.write_text(text, "utf-8")


@contextlib.contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Lend a new folder to fill; at the end it becomes the target in one step, or nothing is left.

    OSError: the target exists at the end.
    """
    building = _aside(target)
    building.mkdir()
    try:
        yield building
        for path in (*building.rglob("*"), building):
            sync(path)
        building.rename(target)
        sync(target.parent)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def made_folder(target: Path, of: str, fill: Callable[[Path], None]) -> None:
    """Have a folder of files that can be made at any time: made where it is absent, and again where it is damaged.

    ``of`` is a text of what they are made of: a folder that was made of anything else is as damaged.
    """
    if is_intact(target, of):
        return
    if target.is_dir():
        shutil.rmtree(target)
    try:
        with whole_folder(target) as building:
            fill(building)
            (building / _SEAL).write_text(_seal(building, of), "ascii")
    except OSError:
        # Another process may have made it meanwhile, of the same.
        if not is_intact(target, of):
            raise


def is_intact(folder: Path, of: str) -> bool:
    """Return whether a folder of `made_folder` has the bytes that it was made with; they are all read."""
    try:
        return (folder / _SEAL).read_bytes() == _seal(folder, of).encode()
    except OSError:  # absent, or not ours to look into
        return False


def _seal(folder: Path, of: str) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _SEAL)
    listed = [(path.relative_to(folder).as_posix(), sha256_of(path)) for path in files]
    return hashlib.sha256(repr((of, listed)).encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def secret_file(path: Path, make: str) -> str:
    """Return the one line of a file that only its owner may read; where there is none, write ``make`` into it.

    Of several processes that make it at once, all return the line of the first.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        with contextlib.suppress(FileExistsError), whole_file(path, overwrite=False) as part:
            part.write_text(make + "\n", "ascii")
    return path.read_text("ascii").strip()


def _aside(target: Path) -> Path:
    # In the same folder, because a rename is one step only within a file system. Cut: a name has at most 255 bytes.
    return target.with_name(f".{target.name[:80]}.{os.urandom(6).hex()}{PART}")
