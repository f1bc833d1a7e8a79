"""Generations: immutable folders of tables, and the one line of text that says which of them is served.

    DATA/generations/000002-5f3a.../tables.duckdb    the tables of `nbext.engine.schema`, only ever read: the base
    DATA/generations/000002-5f3a.../delta.duckdb     what later runs have added to it (`nbext.engine.layers`)
    DATA/generations/000002-5f3a.../manifest.json    what they hold, which files they came from, and their SHA-256
    DATA/generations/000002-5f3a.../FOLDER           made of the tables by an engine, and anew where it is damaged
    DATA/current                                     the folder's name, and the SHA-256 of its manifest

A generation is built in a folder whose name starts with a dot, written through to the disk, and renamed;
`current` is then replaced in one step. A process killed at any moment leaves the old or the new, whole.
Generations on one base share its file, by hard links: whichever of them is removed last takes it along.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbext.core.atomic_files import files_in, is_intact, sha256_of, sync, write_whole
from nbext.core.untrusted_text import quoted
from nbext.engine.dataset import ChainExtent, Compared, DataAbout
from nbext.engine.schema import TABLES
from nbext.errors import StorageError

FORMAT = 8
TABLES_FILE = "tables.duckdb"
DELTA_FILE = "delta.duckdb"
MANIFEST = "manifest.json"
# The generation served, and the one before it for services that still have it open: they look for a new one when
# they are asked next.
KEPT = 2
# How every DuckDB of ours is set.
DUCKDB: Mapping[str, str] = {
    # It would otherwise fetch an extension from the network when a file or a statement seems to need one.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # 1.5.1 to 1.5.6 take two joins with one table for the same where the arms of a UNION ALL read other columns of
    # them, and then answer wrong without a word (duckdb/duckdb#25819). No statement of ours is planned with this step.
    "disabled_optimizers": "common_subplan",
}
# What to do where a data folder is damaged: an ingest into it would build on what is wrong.
ADVICE = "Restore the data folder from a copy, or ingest the files into a new one."
# What `current` contains while the first generation gets its name, and once all files are removed. Without the file, a
# folder was not copied whole.
_NONE_YET = "no generation yet"
_NAME = re.compile(r"(\d{6,})-([0-9a-f]{4,64})\Z")


@dataclass(frozen=True)
class Generation:
    """One generation: its folder, and its manifest."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def tables(self) -> Path:
        """The DuckDB file of the base; to be opened read-only."""
        return self.folder / TABLES_FILE

    @property
    def delta(self) -> Path | None:
        """The DuckDB file of what was added to the base since; None where nothing was."""
        return self.folder / DELTA_FILE if DELTA_FILE in self.manifest["digests"] else None

    @property
    def number(self) -> int:
        """How many generations this data folder has had, including this one."""
        return int(self.manifest["number"])

    @property
    def fingerprint(self) -> str:
        """A text that changes when any row of the tables does."""
        return str(self.manifest["fingerprint"])

    @property
    def chains(self) -> tuple[ChainExtent, ...]:
        """The extent of each chain in the tables, in the order of the chains' ids."""
        return tuple(map(_extent, self.manifest["chains"]))


def files_of(generation: Generation | None) -> Sequence[Mapping[str, Any]]:
    """Return the entries of the files that a generation is of; of None, none."""
    return generation.manifest["files"] if generation else ()


def _extent(chain: Mapping[str, Any]) -> ChainExtent:
    differing, covered = (chain.get(name, {}) for name in ("differing", "covered"))
    return ChainExtent(
        **{
            **chain,
            "gaps": tuple(map(tuple, chain.get("gaps", ()))),
            "differing": {address: Compared(**one) for address, one in differing.items()},
            "covered": {address: tuple(map(tuple, ranges)) for address, ranges in covered.items()},
        }
    )


def current_generation(data_dir: Path) -> Generation | None:
    """Return the generation that is served, or None if nothing was ever ingested.

    Raises
    ------
    StorageError
        ``current`` names no whole generation.
    """
    pointed = _pointed(data_dir)
    if pointed is None:
        return None
    name, digest = pointed
    return read_generation(data_dir / "generations" / name, digest)


def _pointed(data_dir: Path) -> tuple[str, str] | None:
    """Return what ``current`` says: the generation's name and its manifest's SHA-256."""
    pointer = data_dir / "current"
    text, left = _NONE_YET, list[str]()
    try:
        try:
            text = pointer.read_text("utf-8")
        except FileNotFoundError:
            found = files_in(data_dir / "generations", "*")
            left = [path.name for path in found if _NAME.match(path.name)]
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{pointer} cannot be read: {error}. {ADVICE}") from None
    if left:
        raise StorageError(
            f"{data_dir} is not whole: it has {left[-1]} in {quoted('generations')}, and no file "
            f"{quoted('current')}, which says what is served. {ADVICE}"
        )
    if text.strip() == _NONE_YET:
        return None
    name, _, digest = text.strip().partition(" ")
    # The name is joined to a path: anything but a generation's own name could lead out of the data folder.
    if not _NAME.match(name):
        raise StorageError(
            f"{pointer} contains {quoted(text.strip())}, which is not the name of a generation. "
            f"{ADVICE}"
        )
    return name, digest


def read_generation(folder: Path, digest: str | None = None) -> Generation:
    """Return the generation in a folder; ``digest`` is the SHA-256 that its manifest must have.

    Raises
    ------
    StorageError
        Its manifest or its tables are missing, damaged, or of another version's format.
    """
    path = folder / MANIFEST
    try:
        text = path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error!r}. {ADVICE}") from None
    # One wrong digit of a block number would be an answer that nobody could tell from a true one.
    if digest not in (None, hashlib.sha256(text).hexdigest()):
        raise StorageError(
            f"{path} is damaged: its SHA-256 is not the one in {folder.parents[1] / 'current'}. {ADVICE}"
        )
    found = parse_manifest(folder, text)
    for name in found.manifest["digests"]:
        if not (folder / name).is_file():
            raise StorageError(f"{folder} has no {name}. {ADVICE}")
    return found


def parse_manifest(folder: Path, text: str | bytes) -> Generation:
    """Return the generation that a manifest's text describes; StorageError where it is none."""
    path = folder / MANIFEST
    try:
        found = Generation(folder, json.loads(text))
        if (written := found.manifest["format"]) == FORMAT:
            _ = found.chains, found.number, found.fingerprint, found.delta, found.manifest["files"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"{path} cannot be read: {error!r}. {ADVICE}") from None
    if written != FORMAT:
        raise StorageError(
            f"{path} has format {written!r}, of another version of nbext; this one reads format {FORMAT}. "
            "Use that version, or ingest the files into a new data folder."
        )
    return found


def verify(generation: Generation | None, *, base: bool = True) -> None:
    """Read every byte of a generation's files, if there is one, and compare each with its SHA-256 in the manifest.

    Without ``base`` only what was added to it is read: DuckDB compares each block of the base with its own checksum
    when it reads it.

    Raises
    ------
    StorageError
        A file is missing or damaged.
    """
    if generation is None:
        return
    for name, expected in generation.manifest["digests"].items():
        if name == TABLES_FILE and not base:
            continue
        path = generation.folder / name
        try:
            found = sha256_of(path)
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error.strerror}. {ADVICE}") from None
        if found != expected:
            raise StorageError(
                f"{path} is damaged: its SHA-256 is not the one in {MANIFEST}. {ADVICE}"
            )


def create_building(data_dir: Path, name: str = "building") -> Path:
    """Create an empty folder to build a generation in; remove what a killed build of that name left behind.

    The caller holds the lock of such builds: two at once would remove each other's folders.
    """
    place = data_dir / "generations"
    place.mkdir(parents=True, exist_ok=True)
    for left in place.glob(f".{name}-*"):
        shutil.rmtree(left)
    building = place / f".{name}-{os.getpid()}"
    building.mkdir()
    return building


def link_file(path: Path, building: Path) -> None:
    """Have a file of a generation, such as its base, in a folder that is being built, too."""
    try:
        os.link(path, building / path.name)
    except (
        OSError
    ):  # a file system without links, or a file of another user: a copy is as good, and slower
        shutil.copyfile(path, building / path.name)


def publish(data_dir: Path, building: Path, manifest: Mapping[str, Any]) -> Generation:
    """Serve a built folder from now on, and remove the generations that nobody can need.

    ``manifest`` is as in the module's description; ``format`` and ``number`` are filled in here, and the ``digests`` of
    the files that it has none of.
    """
    before = current_generation(data_dir)
    known = manifest.get("digests", {})
    digests = {
        name: known.get(name) or sha256_of(path)
        for path in sorted(building.rglob("*"))
        if path.is_file()
        for name in [path.relative_to(building).as_posix()]
    }
    whole = {
        "format": FORMAT,
        **manifest,
        "number": before.number + 1 if before else 1,
        "digests": digests,
    }
    write_whole(building / MANIFEST, json.dumps(whole, indent=1, ensure_ascii=True) + "\n")
    for path in (*building.rglob("*"), building):
        sync(path)
    name = f"{whole['number']:06d}-{whole['fingerprint'][:16]}"
    folder = data_dir / "generations" / name
    if folder.exists():  # renamed by a process that was killed before it could switch `current`
        shutil.rmtree(folder)
    pointer = data_dir / "current"
    if before is None:
        write_whole(pointer, f"{_NONE_YET}\n")
    building.rename(folder)
    try:
        sync(folder.parent)
        write_whole(pointer, f"{name} {sha256_of(folder / MANIFEST)}\n")
    except OSError:
        # Where only the folder's own sync failed, `current` names the new one: it is served, and must stay.
        if (_pointed(data_dir) or ("",))[0] != name:
            shutil.rmtree(
                folder, ignore_errors=True
            )  # a full disk: nobody can be served what nothing names
            if before is None:
                pointer.unlink(missing_ok=True)
            raise
    prune(data_dir)
    return Generation(folder, whole)


def withdraw(data_dir: Path) -> None:
    """Serve nothing of a data folder from now on, and remove its generations: it is as before its first ingest."""
    # Not removed: a folder without it was not copied whole, and services that run would not look further.
    write_whole(data_dir / "current", f"{_NONE_YET}\n")
    for path in (data_dir / "generations").iterdir():
        shutil.rmtree(path, ignore_errors=True)


def prune(data_dir: Path) -> None:
    """Remove all but the current generation and the ones just before it."""
    pointer, _ = _pointed(data_dir) or ("", None)
    named = [(_NAME.match(p.name), p) for p in (data_dir / "generations").iterdir()]
    numbered = sorted((int(m.group(1)), p.name, p) for m, p in named if m)
    served = next(number for number, name, _ in numbered if name == pointer)
    before = [path for number, _, path in numbered if number < served]
    # Renamed by a process that was killed before it could switch `current`: never served.
    orphans = [path for number, name, path in numbered if number >= served and name != pointer]
    # What cannot be removed, such as a file that a process on another machine reads, is tried again at the next run.
    for path in before[: max(0, len(before) - KEPT + 1)] + orphans:
        shutil.rmtree(path, ignore_errors=True)


def about(generation: Generation, engine: str) -> DataAbout:
    """Return the description of a generation's data, as read through an engine."""
    manifest, fingerprint = generation.manifest, generation.fingerprint
    if differing := [(one.chain_id, one.differing) for one in generation.chains if one.differing]:
        # Answers from the same rows have other warnings then: none of those before is given again.
        text = repr((fingerprint, differing))
        fingerprint = hashlib.sha256(text.encode()).hexdigest()[: len(fingerprint)]
    return DataAbout(
        name=manifest["name"],
        synthetic=manifest["synthetic"],
        engine=engine,
        fingerprint=fingerprint,
        chains=generation.chains,
    )


def damage_of(data_dir: Path) -> Iterator[str]:
    """Read every byte of the tables that are served, and of what was made of them; yield what is damaged."""
    import duckdb

    try:
        served = current_generation(data_dir)
        if served is None:
            return
        verify(served)
        for path in (served.tables, served.delta):
            if not path:
                continue
            with duckdb.connect(str(path), True, {"memory_limit": "1GB"}) as tables:
                for table in TABLES:
                    # DuckDB compares each block with its checksum when it reads it: reading all is checking all.
                    tables.execute(f"SELECT bit_xor(hash(t)) FROM {table} t").fetchall()
        for folder in sorted(path for path in served.folder.iterdir() if path.is_dir()):
            # One that is being made has a name with a dot.
            if not folder.name.startswith(".") and not is_intact(folder, served.fingerprint):
                yield (
                    f"chain data: {folder} has other bytes than were written. Start the services on the data folder "
                    "again: they make it anew."
                )
    except StorageError as error:
        yield f"chain data: {error}"
    except duckdb.Error as error:
        assert served is not None
        yield f"chain data: {served.tables}: {str(error).splitlines()[0]}. {ADVICE}"
