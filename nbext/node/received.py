"""The answers of a range that is not whole yet, in a file: a process that was killed does not ask for them again.

A range is whole after several calls, and the checks between them. Each answer is written as it came, before it is even
parsed; the calls of a later process are answered from the file. It is not flushed to the disk: kill -9 leaves what was
written, and after a power cut a record that is cut is asked for again. So is what follows one whose checksum is not its
own.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nbext.core import strict_json
from nbext.core.atomic_files import PRIVATE

Call = tuple[str, Sequence[Any]]
SUFFIX = ".answers"


class Received:
    """The answers to the calls of one range.

    Parameters
    ----------
    path
        A file that is there, of an earlier process, or not.
    of
        What the file says of the range, for `range_of`: contracts, topics, first and last block.
    """

    def __init__(self, path: Path, of: Mapping[str, Any]) -> None:
        self.path, self._of = path, of
        self._known = _results(path)
        # Whether an earlier process wrote it: the chain may have been reorganised since.
        self.is_old = bool(self._known)

    def results(self, calls: Sequence[Call]) -> list[Any] | None:
        """Return what was answered to calls; None where not each was."""
        keys = [_key(method, params) for method, params in calls] if self._known else []
        return (
            [self._known[key] for key in keys]
            if keys and all(key in self._known for key in keys)
            else None
        )

    def add(self, bodies: Sequence[Mapping[str, Any]], raw: bytes) -> None:
        """Write an answer as it came, and the calls that it is to."""
        head = json.dumps({**self._of, "calls": bodies, "bytes": len(raw)}).encode() + b"\n"
        # Those who may read the data may read this too; what a node answers beside results is nobody else's.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(self.path, flags, PRIVATE), "ab") as file:
            file.writelines((head, raw, _seal(head, raw)))

    def forget(self) -> None:
        """Delete the file: the range is stored, or its answers cannot be used."""
        self._known, self.is_old = {}, False
        self.path.unlink(missing_ok=True)


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
    return b"\n%s\n" % hashlib.sha256(head + raw).hexdigest().encode()


def _results(path: Path) -> dict[str, Any]:
    """Return the results in a file, by their calls; of a record that was cut, none."""
    found: dict[str, Any] = {}
    for head, raw in _records(path) if path.exists() else ():
        try:
            value, _ = strict_json.read_answer(raw)
        except strict_json.NotJson:
            continue
        answers = {
            each["id"]: each["result"]
            for each in (value if isinstance(value, list) else [value])
            if isinstance(each, Mapping)
            and each.get("error") is None
            and isinstance(each.get("id"), int)
            and "result" in each
        }
        found |= {
            _key(body["method"], body["params"]): answers[body["id"]]
            for body in head["calls"]
            if body["id"] in answers
        }
    return found


def _key(method: str, params: Sequence[Any]) -> str:
    return json.dumps([method, list(params)])
