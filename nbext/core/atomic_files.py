"""Files that are whole or absent: written aside, flushed to the disk, then named."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

PART = ".part"


def sync_folder(folder: Path) -> None:
    """Flush a folder, so that a name in it survives a power cut."""
    if os.name == "nt":  # Windows has no such call; NTFS journals names by itself
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Lend a path to write to; at the end it becomes the target at one stroke, or nothing is left."""
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}{PART}")
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.chmod(0o600)
        part.replace(target)
        sync_folder(target.parent)
    finally:
        part.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def secret_file(path: Path, make: str) -> str:
    """Return the one line of a file that only its owner may read; it is made with ``make`` where absent."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        with whole_file(path) as part:
            part.touch(mode=0o600)
            part.write_text(make + "\n", "ascii")
    return path.read_text("ascii").strip()
