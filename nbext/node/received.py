"""The answers of a range that is not whole yet, in a file: a process that was killed does not ask for them again.

A range is whole after several calls, and the checks between them. Each answer is written as it came, before it is even
parsed; the requests of a later process are answered from the file, each once. It is not flushed to the disk: kill -9
leaves what was written, and after a power cut a record that is cut is asked for again. So is what follows one whose
checksum is not its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path

from nbext.core.atomic_files import PRIVATE

SUFFIX = ".answers"


class Received:
    """The answers to the requests of one range, in a file that is there, of an earlier process, or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # A node's refusal is no answer: it is asked again.
        self._known = {asked: raw for asked, raw in _records(path) if b'"error"' not in raw}
        # Whether an earlier process wrote it: the chain may have been reorganised since.
        self.is_old = bool(self._known)

    def take(self, asked: bytes) -> bytes | None:
        """Return what was answered to a request, once: where it cannot be used, the node is asked."""
        return self._known.pop(asked, None)

    def add(self, asked: bytes, raw: bytes) -> None:
        """Write an answer as it came, and the request that it is to: a line each, and one that proves them."""
        # In JSON the end of a line is no more than a space.
        record = b"%b\n%b\n" % (asked, raw.replace(b"\n", b" "))
        # Those who may read the data may read this too; what a node answers beside results is nobody else's.
        with open(self.path, "ab", opener=partial(os.open, mode=PRIVATE)) as file:
            file.writelines((record, _seal(record)))


def checksum_of(*pieces: bytes) -> str:
    """Return the SHA-256 of bytes, as hex: what proves a file of a fetch, or a record in one."""
    return sha256(b"".join(pieces)).hexdigest()


def _records(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the request and the answer of each record up to the first that is not whole."""
    if not path.exists():
        return
    with path.open("rb") as file:
        while record := file.readline() + file.readline():
            if file.readline() != _seal(record):
                return
            asked, raw, _ = record.split(b"\n")
            yield asked, raw


def _seal(record: bytes) -> bytes:
    return f"{checksum_of(record)}\n".encode()
