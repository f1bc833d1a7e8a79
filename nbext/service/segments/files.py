"""What became of a stored file: the one place that decides it, for results and for lists of wallets.

Unknown is not damaged, and not gone: a disk that is not mounted, a process without descriptors and a folder without
permission look like a lost file to whoever only asks whether it can be opened. What is decided here changes nothing;
callers set aside what is damaged, and nothing else.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from nbext.core.atomic_files import PART, files_in, secret_file
from nbext.errors import StorageError

Condition = Literal["here", "absent", "damaged"]
# The file in each folder that names the registry whose files these are.
_MARK = "registry-id"


class Unavailable(StorageError):
    """A file cannot be read or written now: it is neither damaged nor gone, as far as anyone can tell."""


class StoredFiles:
    """A folder, of a service's own, of files that never change, which belongs to one registry.

    A file's bytes are compared with what they were before its first use in this process, and again where its size or
    the time of its last change is another: a gigabyte is not hashed for each read.
    """

    name: str

    def __init__(self, state: Path, registry_id: str) -> None:
        self.folder = state / self.name
        self._registry = registry_id
        self._intact: dict[str, tuple[int, int, int]] = {}

    def claim(self, *, expected: bool) -> None:
        """Take the folder for the registry's own, or raise StorageError where it is another's.

        ``expected`` is whether the registry names files that have to be in it: then a folder that does not name the
        registry is one whose disk is not mounted, and is not made.
        """
        found = self._owner()
        if found is None and not expected and not files_in(self.folder, "*.arrow"):
            # Another service may be making it: then it is that one's.
            found = secret_file(self.folder / _MARK, self._registry)
        if found != self._registry:
            difference = "the registry names results, and the folder is empty or missing."
            if found is not None:
                difference = "it has the results of another one."
            elif files_in(self.folder, "*.arrow"):
                difference = "it has results, of which the registry knows none."
            raise StorageError(
                f"{self.folder} is not the folder of this registry: {difference} Name the --data and"
                " the --registry that go together, or mount the disk that is missing. To give the results up, run"
                " nbext check --give-up; to begin anew with this --data, move its folder `service` away."
            )

    def _owner(self) -> str | None:
        try:
            return (self.folder / _MARK).read_text("ascii").strip()
        except FileNotFoundError:
            return None

    def is_own(self) -> bool:
        """Return whether the folder is there, and still the registry's own."""
        try:
            return self._owner() == self._registry
        except OSError:
            return False

    def condition(
        self, name: str, *, size: int | None = None, intact: Callable[[Path], bool] | None = None
    ) -> Condition:
        """Return what became of a file that was stored here, with that size.

        ``intact`` reads it and compares its bytes; without, they are not read. Unavailable: it cannot be told now.
        """
        path = self.folder / name
        try:
            version = _version(path)
            if size not in (None, version[0]):
                return "damaged"
            if intact is not None and self._intact.get(name) != version:
                if not intact(path):
                    return "damaged"
                self._intact[name] = version
        except OSError as error:
            if isinstance(error, FileNotFoundError) and self.is_own():
                self._intact.pop(name, None)
                return "absent"
            raise Unavailable(f"{path} cannot be read now ({type(error).__name__})") from None
        return "here"

    def strays(self, age: float) -> Iterator[Path]:
        """Yield what was last changed before ``age`` (seconds since 1970) and may belong to nothing.

        Results, of which another service may be writing a younger one; and parts of lists and of marks.
        """
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                    if entry.name.endswith((".arrow", PART)) and entry.stat().st_mtime < age:
                        yield Path(entry.path)

    def trust(self, name: str) -> None:
        """Note that a file was just written: its bytes need no comparison before it changes."""
        self._intact[name] = _version(self.folder / name)

    def set_aside(self, name: str) -> None:
        """Move a damaged file out of the way, for the operator to look at."""
        aside = self.folder.with_name("aside")
        aside.mkdir(exist_ok=True, mode=0o700)
        with contextlib.suppress(FileNotFoundError):  # another service was quicker
            (self.folder / name).replace(aside / name)

    def remove(self, name: str) -> None:
        """Delete a file: old, or of a run that was cancelled; readers that have it open go on reading."""
        self._intact.pop(name, None)
        (self.folder / name).unlink(missing_ok=True)


def _version(path: Path) -> tuple[int, int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ino
