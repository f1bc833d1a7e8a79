"""Ingest, remove and compact: each locks the data folder, decides what is read, and runs until that succeeds."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Event

import duckdb

from nbext.core.chains import Chain, chain_of
from nbext.core.locks import exclusive
from nbext.engine import storage
from nbext.engine.dataset import Compared
from nbext.engine.ingest import files
from nbext.engine.ingest import sources as taken
from nbext.engine.ingest.derive import append
from nbext.engine.ingest.derive.append import Rebuild
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.ingest.files import Source
from nbext.engine.ingest.reading import unreadable
from nbext.engine.ingest.report import Report
from nbext.engine.ingest.stage import Stage, TakenOut, storage_errors, take_out
from nbext.engine.ingest.steps import Covered, IngestJob, IngestRun, Progress, Refused, take
from nbext.engine.open import DEFAULT_MEMORY, MEMORY_SIZE
from nbext.errors import IngestError, StorageError, ValidationError
from nbext.settings import data_folder

# Who folds holds it; who adds rows meanwhile does not wait for that.
_FOLDING = ".folding.lock"


def ingest(
    paths: Iterable[str | os.PathLike[str]],
    chain: str | int | None,
    data_dir: str | os.PathLike[str],
    *,
    options: SnapshotOptions | None = None,
    renamed: Mapping[str, str] | None = None,
    replace_from: int | None = None,
    in_place_of: Collection[str] = (),
    covered: Covered | None = None,
    dry_run: bool = False,
    memory: str = DEFAULT_MEMORY,
    progress: Progress | None = None,
    served: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Ingest files: add them to the data folder, and serve the result from now on.

    Parameters
    ----------
    paths
        Files, folders and globs. Each file is recognised by its columns.
    chain
        The chain of files that do not name one; None where all do.
    data_dir
        The data folder; created if it does not exist.
    renamed
        The name that a known format has for a column (lower case) of these files, or the other way round.
    options
        What files do not say themselves: their token, its decimals, a snapshot's block.
    replace_from
        Take everything of the chain from this block on out of the data, as the files have it anew. It must be one
        chain, which is named, and then no file may be refused.
    in_place_of
        Paths of files of the data: what they gave is taken out as these come in.
    covered
        By contract of the chain, the ranges of blocks of which the data has every transfer once these files are in:
        blocks without one are no gaps there. Then no file and no row may be refused.
    dry_run
        Change nothing: the report says how the first rows are read.
    memory
        The memory that DuckDB may use; the rest is spilled to the data folder.
    progress
        Called with the name of the current step and how much of it is done, from 0 to 1.
    served
        Called with the report once the new rows are served. Compaction, where it is time for it, comes after that;
        other runs may begin meanwhile.

    Returns
    -------
    Report
        What was ingested, skipped and refused. Refused files leave no trace in the data.

    Raises
    ------
    IngestError
        No file could be used; this is the error of the first. Or rows contradict stored ones, or those of another
        file: nothing is changed then.
    ValidationError
        The chain is unknown or missing, or the memory is not a size.
    StorageError
        Another run is writing to the data folder, or it cannot be written.
    """
    started = time.monotonic()
    # Before the lock and before any file is opened: a wrong word on the command line must not leave a folder behind.
    check_memory(memory)
    named = None if chain is None else chain_of(chain)
    if replace_from is not None and (named is None or replace_from < 0):
        raise ValidationError.of(
            "replace_from",
            "range",
            "it needs the chain, and a block from 0 on. "
            "Write --chain ethereum --replace-from 12000000.",
        )
    folder = data_folder(data_dir).resolve()
    found, refused = files.find(paths)
    if refused and not found:
        raise refused[0]
    # What is served now may change until the lock is held, so nothing of the data folder is read before.
    with _locked(folder):
        previous = storage.current_generation(folder)
        job = IngestJob(
            folder,
            memory,
            progress,
            chain=named,
            options=options or SnapshotOptions(),
            renamed=renamed or {},
            removed=frozenset(
                entry["source"]
                for entry in storage.files_of(previous)
                if entry["path"] in in_place_of
            ),
            replace_from=replace_from,
            covered=covered or {},
            dry_run=dry_run,
            given=len(found) + len(refused),
        )
        fresh, skipped = _not_taken(job, found, previous, refused)
        if not fresh:
            storage.verify(previous, base=False)
        report = _take(job, previous, fresh, refused)
        before = storage.files_of(previous) if replace_from is None else ()
        report.other_bytes = [
            each.source.name
            for each in report.files
            if any(
                entry["path"] == each.source.name
                and entry["sha256"] != each.source.digest()
                and taken.is_of(entry, job.chain)
                for entry in before
            )
        ]
        report.skipped = {
            source.name: entry.get("replaced_from") for source, entry in skipped.items()
        }
        # Some are found out when they are opened, others by their rows: told in the order in which all are read.
        places = {source.name: place for place, source in enumerate(found)}
        report.refused.sort(key=lambda error: places.get(error.path, -1))
        report.seconds = time.monotonic() - started
        # One bad file among good ones is a line of the report; a run that could use none has failed.
        if report.refused and not report.files and not skipped:
            raise report.refused[0]
    served(report)
    _compact_outgrown(job, report)
    return report


def remove(
    name: str | None,
    data_dir: str | os.PathLike[str],
    *,
    chain: str | int | None = None,
    memory: str = DEFAULT_MEMORY,
    progress: Progress | None = None,
) -> Report:
    """Take what one file gave out of the data folder, and serve the result from now on.

    Rows that other files gave, too, stay. Once no file is left, the sample is served.

    Parameters
    ----------
    name
        The file: its path, its name if only one has it, or the first digits of its checksum. None: all files.
    chain
        Only what was ingested for this chain: the same file may have been ingested for several.
    data_dir, memory, progress
        As for `ingest`.

    Raises
    ------
    ValidationError
        No file or several files are so named, or the chain is unknown. Or there is no such data folder.
    StorageError
        Another run is writing to the data folder, or it cannot be written.
    """
    started = time.monotonic()
    check_memory(memory)
    named = None if chain is None else chain_of(chain)
    folder = data_folder(data_dir).resolve()
    taken.check_folder(folder)
    with _locked(folder):
        previous = storage.current_generation(folder)
        found = taken.removable(folder, previous, name, named)
        if len(found) == len(storage.files_of(previous)):
            storage.withdraw(folder)
            report = Report(removed=[taken.what(entry) for entry in found], changed=True)
        else:
            removed = frozenset(entry["source"] for entry in found)
            report = _take(IngestJob(folder, memory, progress, removed=removed), previous)
    report.seconds = time.monotonic() - started
    return report


def compact(
    data_dir: str | os.PathLike[str],
    *,
    memory: str = DEFAULT_MEMORY,
    progress: Progress | None = None,
) -> str | None:
    """Fold what runs have added to a data folder into a new base; the answers stay the same.

    Returns
    -------
    str
        The generation that is served from now on; None where nothing was added since the last one.

    Raises
    ------
    StorageError
        Another run is writing to the data folder, it is damaged, or it cannot be written.
    """
    check_memory(memory)
    folder = data_folder(data_dir).resolve()
    # A folder that is not there has nothing to compact, and is not made.
    if not folder.is_dir():
        return None
    with _locked(folder):
        return _fold(IngestJob(folder, memory, progress, compacting=True))


def _fold(job: IngestJob, **words: str) -> str | None:
    """Fold what was added to a data folder, and return what is served then; ``words`` as of `storage_errors`."""
    with _locked(job.folder, _FOLDING, **words):
        previous = storage.current_generation(job.folder)
        if previous is None or previous.delta is None:
            return None
        return _take(job, previous).generation


def record_compared(
    data_dir: str | os.PathLike[str], chain: Chain, compared: Mapping[str, Compared]
) -> None:
    """Store how balances in the data compared with what contracts themselves say of their holders.

    Answers about a contract of which some differed say so, until they are all equal in a later comparison.

    Parameters
    ----------
    compared
        By address.

    Raises
    ------
    StorageError
        Another run is writing to the data folder, or it cannot be written.
    """
    folder = data_folder(data_dir).resolve()
    with _locked(folder):
        served = storage.current_generation(folder)
        if served is None:
            return
        extent = next((one for one in served.chains if one.chain_id == chain.id), None)
        before = extent.differing if extent else {}
        here = {address: one for address, one in {**before, **compared}.items() if one.differs}
        if here == before:
            return
        chains = [
            {**one, "differing": {address: asdict(each) for address, each in here.items()}}
            if one["chain_id"] == chain.id
            else one
            for one in served.manifest["chains"]
        ]
        building = storage.create_building(folder)
        try:
            for path in filter(None, (served.tables, served.delta)):
                storage.link_file(path, building)
            storage.publish(folder, building, {**served.manifest, "chains": chains})
        finally:
            shutil.rmtree(building, ignore_errors=True)


def _compact_outgrown(job: IngestJob, report: Report) -> None:
    """Compact where a delta has become so large that queries wait for it. What came is served by now."""
    words = {
        "more": "`nbext compact --memory 8GB` may use more.",
        "then": "`nbext compact` tries it again.",
    }
    stopped = Event()
    try:
        with storage_errors(job.folder, **words):
            served = storage.current_generation(job.folder) if report.changed else None
        if served is None or served.delta is None:
            return
        least = append.FOLDED * served.manifest["tables"]["transfers"]
        if served.manifest.get("added", 0) <= least:
            return
        folding = IngestJob(
            job.folder,
            job.memory,
            partial(_advance_unless, stopped, job),
            compacting=True,
            switching=partial(_still_served, job.folder, served),
        )
        with ThreadPoolExecutor(1, initializer=_give_way) as pool:
            try:
                report.generation = pool.submit(_fold, folding, **words).result()
            finally:
                stopped.set()
    except _Busy:  # another run folds, or adds rows: the next one has more to fold
        return
    except StorageError as error:
        report.uncompacted = (
            "The new rows are served; compacting them with the rest failed, so that queries may be "
            f"slower: {error}"
        )


def _give_way() -> None:
    """Have this thread, and those that DuckDB starts from it, work when nobody else does."""
    # Elsewhere it would be the whole process, which cannot become as it was.
    if sys.platform == "linux":
        os.nice(19)


def _advance_unless(stopped: Event, job: IngestJob, step: str, done: float) -> None:
    """Tell of a step of folding, or end it: Ctrl-C ends the thread that waits, and not the one that folds."""
    if stopped.is_set():
        raise KeyboardInterrupt
    job.advance(step, done)


@contextmanager
def _still_served(folder: Path, served: storage.Generation) -> Iterator[None]:
    """Hold the data folder, where it still serves what was folded; other runs did not wait for that."""
    with _locked(folder):
        now = storage.current_generation(folder)
        if now is None or now.folder != served.folder:
            raise _Busy(f"{folder}: another run has added rows meanwhile.")
        yield


def check_memory(memory: str) -> None:
    """Refuse a text that is not a size of memory: a `ValidationError`."""
    if not MEMORY_SIZE.match(memory):
        raise ValidationError.of(
            "memory", "size", f"{memory[:40]!r} is not a memory size. Write 800MB or 4GB."
        )


class _Busy(StorageError):
    """Another run works on the data folder."""


@contextmanager
def _locked(folder: Path, lock: str = ".ingest.lock", **words: str) -> Iterator[None]:
    """Lock the data folder; the lock ends with the process, however it ends. Errors inside as of `storage_errors`."""
    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(exclusive(folder / lock))
        except BlockingIOError:
            raise _Busy(
                f"{folder}: another `nbext ingest` is writing there. Wait until it ends."
            ) from None
        except OSError as error:
            raise StorageError(f"{folder} cannot be written: {error.strerror}.") from None
        held.enter_context(storage_errors(folder, **words))
        yield


def _not_taken(
    job: IngestJob,
    found: list[Source],
    previous: storage.Generation | None,
    refused: list[IngestError],
) -> tuple[dict[Source, int | None], dict[Source, taken.Entry]]:
    """Split the files into those to ingest and those that an earlier run ingested in the same way, with their entries.

    Those that cannot be read go to ``refused``. A file to ingest has the number of the source that it replaces: of the
    same file, taken in another way.
    """
    # The same bytes for another chain are another source.
    before = [
        entry
        for entry in storage.files_of(previous)
        if taken.is_of(entry, job.chain) and entry["source"] not in job.removed
    ]
    places = {(entry["path"], entry["size"], entry["mtime"]): entry for entry in before}
    sizes = {entry["size"] for entry in before}
    # Where options say how it is read, the name may say which token it is of: the same bytes may be two snapshots.
    digests = {(entry["sha256"], "options" in entry and entry["path"]): entry for entry in before}
    fresh: dict[Source, int | None] = {}
    skipped: dict[Source, taken.Entry] = {}
    for source in found:
        known = places.get((source.name, source.size, source.modified))
        # Only a file as large as one that was taken can be that file under another name.
        if known is None and source.size in sizes:
            try:
                digest = source.digest()
            except OSError as error:
                refused.append(unreadable(source, error))
                continue
            known = digests.get((digest, False)) or digests.get((digest, source.name))
        if known is None:
            fresh[source] = None
        elif job.replace_from is None and taken.same_way(known, job.options, job.renamed):
            skipped[source] = known
        else:
            fresh[source] = known["source"]
    return fresh, skipped


def _take(
    job: IngestJob,
    previous: storage.Generation | None,
    fresh: dict[Source, int | None] | None = None,
    refused: Sequence[IngestError] = (),
) -> Report:
    fresh, refused = dict(fresh or {}), list(refused)
    # Rows may be added while what is stored is folded: each has its own place.
    work = job.folder / (".folding" if job.compacting else ".stage")
    shutil.rmtree(work, ignore_errors=True)  # of a run that was killed
    stored = previous.manifest["tables"]["transfers"] if previous else 0
    appending, why, spared = stored >= append.LEAST and not job.compacting, None, True
    while True:
        if job.needs_every_file and refused:
            raise refused[0]
        report = Report(
            refused=list(refused), generation=previous.folder.name if previous else None
        )
        if not fresh and not job.removed and not job.compacting:
            return report
        out = TakenOut(
            job.removed | {number for number in fresh.values() if number},
            job.chain.id if job.chain else 0,
            job.replace_from if previous else None,
        )
        appending = appending and not out
        report.rebuilt = why
        size = previous.tables.stat().st_size if previous else 0
        # Of a base that is added to little is needed at a time, and of one that is folded a tenth.
        needed = 0 if appending else size // 10 if job.compacting else size
        building = storage.create_building(job.folder, "folding" if job.compacting else "building")
        try:
            # Digests need every byte of every file: a thread reads them while the tables are built. Of a base that is
            # added to, most bytes are never read: there DuckDB's checksums of blocks do.
            with (
                ThreadPoolExecutor(1) as pool,
                _damage_first(previous),
                Stage(
                    work,
                    building,
                    previous,
                    fresh,
                    memory=job.memory,
                    appending=appending,
                    needed=needed if spared else None,
                    previous_as="before" if out else "prev",
                ) as stage,
            ):
                verified = pool.submit(storage.verify, previous, base=not appending)
                digests = {source: pool.submit(source.digest) for source in fresh}
                try:
                    if out:
                        take_out(stage, out)
                    return take(IngestRun(job, stage, report, digests, out, verified), fresh)
                except Refused as without:
                    # Rows of the file may be in any table of the stage by now. Beginning again is simpler than taking
                    # them out, and rare: most files that cannot be used are found out when they are opened.
                    refused.append(without.error)
                    fresh = {
                        source: number
                        for source, number in fresh.items()
                        if source != without.source
                    }
                except Rebuild as reason:
                    appending, why = False, str(reason)
                    job.advance(f"all {stored:,} transfers again ({why})", 0)
                except duckdb.OutOfMemoryException:
                    if not stage.spared:
                        raise
                    spared = False
                finally:
                    pool.shutdown(cancel_futures=True)
        finally:
            # A run that was published has none. Any other leaves nothing behind, least of all on a full disk.
            for left in (building, work):
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _damage_first(previous: storage.Generation | None) -> Iterator[None]:
    """Where DuckDB fails on stored data that is damaged, raise what `storage.verify` says of it."""
    try:
        yield
    except duckdb.Error:
        storage.verify(previous)
        raise
