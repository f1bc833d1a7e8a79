"""The answers of a range that is not whole yet, in a file: a process that was killed does not ask for them again.

A range is whole after several calls, and the checks between them. Each answer is written as it came, before it is even
parsed; the requests of a later process are answered from the file, each once. It is not flushed to the disk: kill -9
leaves what was written, and after a power cut a record that is cut is asked for again. So is what follows one whose
checksum is not its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from nbext.core.atomic_files import PRIVATE

SUFFIX = ".answers"


class Received:
    """The answers to the requests of one range.

    Parameters
    ----------
    path
        A file that is there, of an earlier process, or not.
    of
        What the file says of the range, for `range_of`: contracts, topics, first and last block.
    """

    def __init__(self, path: Path, of: Mapping[str, Any]) -> None:
        self.path, self._of = path, of
        # A node's refusal is no answer: it is asked again.
        self._known = {
            head["asked"]: raw
            for head, raw in (_records(path) if path.exists() else ())
            if b'"error"' not in raw
        }
        # Whether an earlier process wrote it: the chain may have been reorganised since.
        self.is_old = bool(self._known)

    def take(self, asked: bytes) -> bytes | None:
        """Return what was answered to a request, once: where it cannot be used, the node is asked."""
        return self._known.pop(asked.decode("ascii"), None)

    def add(self, asked: bytes, raw: bytes) -> None:
        """Write an answer as it came, and the request that it is to."""
        about = {**self._of, "asked": asked.decode("ascii"), "bytes": len(raw)}
        head = json.dumps(about).encode() + b"\n"
        # Those who may read the data may read this too; what a node answers beside results is nobody else's.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(self.path, flags, PRIVATE), "ab") as file:
            file.writelines((head, raw, _seal(head, raw)))

    def forget(self) -> None:
        """Delete the file: the range is stored, or its answers cannot be used."""
        self._known, self.is_old = {}, False
        self.path.unlink(missing_ok=True)


def checksum_of(*pieces: bytes) -> str:
    """Return the SHA-256 of bytes, as hex: what proves a file of a fetch, or a record in one."""
    return sha256(b"".join(pieces)).hexdigest()


def range_of(path: Path) -> Mapping[str, Any] | None:
    """Return of which range a file has answers; None where it was cut, or damaged."""
    return next((head for head, _ in _records(path)), None)


def _records(path: Path) -> Iterator[tuple[Mapping[str, Any], bytes]]:
    """Yield the head and the answer of each record up to the first that is not whole."""
    with path.open("rb") as file:
        while line := file.readline():
            try:
                head: Mapping[str, Any] = json.loads(line)
                raw = file.read(head["bytes"])
            except (ValueError, KeyError, TypeError):
                return
            seal = _seal(line, raw)
            if file.read(len(seal)) != seal:
                return
            yield head, raw


def _seal(head: bytes, raw: bytes) -> bytes:
    return f"\n{checksum_of(head, raw)}\n".encode()
