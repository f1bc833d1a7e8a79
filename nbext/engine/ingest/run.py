"""One run of ingest: files in, one generation out, or nothing."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from nbext.core.chains import Chain, chain_of
from nbext.engine import storage
from nbext.engine.ingest import report as counts
from nbext.engine.ingest.derive import contracts, rows, snapshots, tables, wallets
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.ingest.report import FileTaken, Report
from nbext.engine.ingest.sources import files, reading, tokens
from nbext.engine.ingest.sources.files import Source
from nbext.engine.ingest.stage import DEFAULT_MEMORY, Stage, storage_errors
from nbext.engine.open import MEMORY_SIZE
from nbext.engine.schema import TABLES
from nbext.errors import IngestError, StorageError, ValidationError

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Job:
    """The arguments of a run, checked."""

    folder: Path
    chain: Chain | None
    options: SnapshotOptions
    memory: str
    progress: Progress


@dataclass
class Run:
    """The state that the steps of one run share."""

    job: Job
    stage: Stage
    report: Report
    digests: dict[Source, Future[str]]
    opened: list[reading.Opened] = field(default_factory=list)
    lists: list[tuple[int, Source, int]] = field(default_factory=list)

    def holding(self, what: str) -> list[reading.Opened]:
        """Return the opened files of one sort: transfers, tokens, contracts, blocks or holders."""
        return [file for file in self.opened if file.kind.holds == what]


class _Refused(Exception):
    """A file turned out to be unusable during the run: the run starts again without it."""

    def __init__(self, error: IngestError, source: Source) -> None:
        super().__init__(str(error))
        self.error, self.source = error, source


def ingest(
    paths: Iterable[str | os.PathLike[str]],
    chain: str | int | None,
    data_dir: str | os.PathLike[str],
    *,
    options: SnapshotOptions | None = None,
    memory: str = DEFAULT_MEMORY,
    progress: Progress | None = None,
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
    options
        What holder snapshots do not say themselves: their token, its decimals, their block.
    memory
        The memory that DuckDB may use; the rest is spilled to the data folder.
    progress
        Called with the name of the current step and how much of it is done, from 0 to 1.

    Returns
    -------
    Report
        What was ingested, skipped and refused. Refused files leave no trace in the data.

    Raises
    ------
    IngestError
        No file could be used; this is the error of the first.
    ValidationError
        The chain is unknown, or the memory is not a size.
    StorageError
        Another run is writing to the data folder, or it cannot be written.
    """
    if not MEMORY_SIZE.match(memory):
        raise ValidationError.of("memory", "size", f"{memory[:40]!r} is not a memory size. Write 800MB or 4GB.")
    started = time.monotonic()
    # Before the lock and before any file is opened: a wrong word on the command line must not leave a folder behind.
    named = None if chain is None else chain_of(chain)
    folder = Path(data_dir).expanduser().resolve()
    found, refused = files.find(paths)
    # What is served now may change until the lock is held, so nothing of the data folder is read before.
    with _locked(folder):
        previous = storage.current(folder)
        fresh, skipped = _not_taken(found, previous)
        job = Job(folder, named, options or SnapshotOptions(), memory, progress or (lambda step, done: None))
        report = _take(job, previous, fresh, refused)
    report.skipped = [source.name for source in skipped]
    report.seconds = time.monotonic() - started
    # One bad file among good ones is a line of the report; a run that could use none has failed.
    if report.refused and not report.files and not skipped:
        raise report.refused[0]
    return report


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the data folder; the lock ends with the process, however it ends."""
    # Not at the top: Windows has no fcntl, and must still be able to import this module to say what it lacks.
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".ingest.lock").open("w")
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error.strerror}.") from None
    with lock:
        try:
            # Not a file that is there or not: one of those outlives a killed run, and then nobody can ingest.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StorageError(f"{folder}: another `nbext ingest` is writing there. Wait until it ends.") from None
        with storage_errors(folder):
            yield


def _not_taken(found: list[Source], previous: storage.Generation | None) -> tuple[list[Source], list[Source]]:
    """Split the files into those to ingest and those that an earlier run ingested."""
    taken = previous.manifest["files"] if previous else []
    places = {(entry["path"], entry["size"], entry["mtime"]) for entry in taken}
    sizes = {entry["size"] for entry in taken}
    digests = {entry["sha256"] for entry in taken}
    fresh: list[Source] = []
    skipped: list[Source] = []
    for source in found:
        same_place = (source.name, source.size, source.modified) in places
        # Only a file as large as one that was taken can be that file under another name.
        known = same_place or (source.size in sizes and source.digest() in digests)
        (skipped if known else fresh).append(source)
    return fresh, skipped


def _take(job: Job, previous: storage.Generation | None, fresh: list[Source], refused: list[IngestError]) -> Report:
    shutil.rmtree(job.folder / ".stage", ignore_errors=True)  # of a run that was killed
    while True:
        report = Report(refused=refused, generation=previous.folder.name if previous else None)
        if not fresh:
            return report
        building = storage.begin(job.folder)
        # Digests need every byte of every file: a thread reads them while the tables are built.
        with (Stage(job.folder / ".stage", building, previous, fresh, memory=job.memory) as stage,
              ThreadPoolExecutor(1) as pool):
            digests = {source: pool.submit(source.digest) for source in fresh}
            try:
                return _steps(Run(job, stage, report, digests), fresh)
            except _Refused as without:
                # Rows of the file may be in any table of the stage by now. Beginning again is simpler than taking
                # them out, and rare: most files that cannot be used are found out when they are opened.
                refused.append(without.error)
                fresh = [source for source in fresh if source != without.source]
            finally:
                pool.shutdown(cancel_futures=True)


def _steps(run: Run, fresh: list[Source]) -> Report:
    opening = fresh
    _open(run, opening)
    fresh = [*(file.source for file in run.opened), *(source for _, source, _ in run.lists)]
    if not fresh:
        return run.report
    _read_facts(run)
    _read_transfers(run)
    stage, report = run.stage, run.report
    counts.count_rows(stage)
    report.odd.update(rows.drop_repeated(stage))
    report.new = stage.value("SELECT count(*) FROM incoming")
    _build(run)
    counts.count_oddities(stage, report)
    report.files = [FileTaken(f.source.name, f.kind.name, f.rows, _chain_name(run, f)) for f in run.opened]
    report.files += [FileTaken(s.name, "token list", rows, None) for _, s, rows in run.lists]
    report.rows = sum(file.rows for file in report.files)
    counts.write_lists(stage, report, run.job.folder, [source.name for source in opening])
    # Last before the switch: a file that grew while it was read may have given half a row, or rows of two states.
    for source in fresh:
        with _refusing(source):
            source.check_unchanged()
    _publish(run, fresh)
    return report


@contextmanager
def _refusing(source: Source) -> Iterator[None]:
    """Translate an error about one file into the refusal of that file."""
    try:
        yield
    except IngestError as error:
        raise _Refused(error, source) from None
    except PermissionError as error:
        raise _Refused(reading.unreadable(source, error), source) from None
    except (duckdb.InvalidInputException, duckdb.IOException, duckdb.ConversionException) as error:
        # What went wrong with our own files is not the source's fault.
        if not reading.is_about(source, error):
            raise
        raise _Refused(reading.unreadable(source, error), source) from None


def _open(run: Run, fresh: list[Source]) -> None:
    stage = run.stage
    stage.run("CREATE TABLE bad (file INTEGER, row BIGINT, why VARCHAR, value VARCHAR)")
    stage.run("CREATE TABLE odd (file INTEGER, what VARCHAR, n BIGINT)")
    tokens.begin(stage)
    for number, source in enumerate(fresh):
        run.job.progress("reading", number / len(fresh))
        try:
            with _refusing(source):
                if reading.first_bytes(source).lstrip()[:1] in (b"{", b"["):
                    run.lists.append((number, source, tokens.take_list(stage, number, source)))
                else:
                    run.opened.append(reading.open_table(stage, number, source))
        except _Refused as without:
            # Nothing of the file is in the stage yet: the run can go on.
            run.report.refused.append(without.error)
    if ragged := [(file.number, row, why) for file in run.opened for row, why in file.ragged]:
        stage.connection.executemany("INSERT INTO bad VALUES (?, ?, ?, NULL)", ragged)


def _chain_id(run: Run, file: reading.Opened) -> int:
    """Return the chain of a file's rows: the one it names, which --chain must not contradict, or --chain's."""
    if file.has("chain_id"):
        found = run.stage.rows(f"SELECT DISTINCT {file.text('chain_id')} FROM {file.relation} LIMIT 3")
        named = [row[0] for row in found]
        wanted = run.job.chain or (chain_of(named[0], file.source.name) if len(named) == 1 else None)
        if len(named) > 1 or wanted is None or str(wanted.id) != named[0]:
            given = run.job.chain.name if run.job.chain else None
            why = (f"its rows are on several chains ({', '.join(map(str, named))}). Split it by chain" if len(named) > 1
                   else f"its rows are on chain {named[0]}, but --chain {given} was given")
            raise IngestError(f"{file.source.shown}: {why}.", path=file.source.name)
        return wanted.id
    if run.job.chain is None:
        raise IngestError(f"{file.source.shown}: its rows name no chain. Give it: --chain ethereum.",
                          path=file.source.name)
    return run.job.chain.id


def _chain_name(run: Run, file: reading.Opened) -> str | None:
    by_row = file.kind.holds == "tokens" and file.has("chain_id")
    return None if by_row else chain_of(_chain_id(run, file)).name


def _read_facts(run: Run) -> None:
    """Read the facts about contracts and blocks, before the rows that they explain."""
    stage = run.stage
    tables.begin_times(stage)
    for file in run.holding("tokens") + run.holding("contracts"):
        with _refusing(file.source):
            by_row = file.has("chain_id")
            sql = f"TRY_CAST({file.text('chain_id')} AS BIGINT)" if by_row else str(_chain_id(run, file))
            tokens.take_table(stage, file, sql)
    for file in run.holding("blocks"):
        with _refusing(file.source):
            tables.take_blocks(stage, file, _chain_id(run, file))
    for file in run.holding("transfers"):
        with _refusing(file.source):
            tokens.declare(stage, file, _chain_id(run, file))
    # After the files: facts of the well-known contracts fill what no file says, and never contradict one.
    tokens.insert_facts(stage, tokens.well_known())
    tokens.settle(stage)
    snapshots.begin(stage)
    for file in run.holding("holders"):
        with _refusing(file.source):
            snapshots.take(stage, file, _chain_id(run, file), run.job.options)


def _read_transfers(run: Run) -> None:
    stage, files = run.stage, run.holding("transfers")
    wallets.begin(stage)
    rows.begin(stage)
    for done, file in enumerate(files):
        run.job.progress("reading addresses", done / len(files))
        with _refusing(file.source):
            wallets.collect(stage, file, _chain_id(run, file))
    # A rank is an address's place among all addresses, so every file's must be known before the first row is written.
    wallets.rank(stage)
    for done, file in enumerate(files):
        run.job.progress("reading transfers", done / len(files))
        with _refusing(file.source):
            rows.take(stage, file, _chain_id(run, file))
    # Else a bad row would change the ranks, and with them the fingerprint, of data that it is not part of.
    if stage.value("SELECT count(*) FROM bad"):
        wallets.forget_unused(stage)


def _build(run: Run) -> None:
    """Build every table of the layout from the new rows and the generation before."""
    stage = run.stage
    run.job.progress("merging", 0)
    tables.create_tables(stage)
    zero = wallets.zero(stage)
    tables.save_blocks(stage)
    tables.save_extents(stage)
    wallets.open_snapshots(stage)
    wallets.join_previous(stage)
    contracts.classify(stage)
    rows.save(stage)
    rows.save_keys(stage)
    tables.derive(stage, zero, lambda done: run.job.progress("balances", done))
    run.job.progress("activity", 0)
    tables.save_activity(stage)
    contracts.save_wallets(stage)
    contracts.save_contracts(stage, zero)


def _publish(run: Run, fresh: list[Source]) -> None:
    run.job.progress("saving", 0)
    stage, report = run.stage, run.report
    previous, fingerprint = stage.previous, counts.fingerprint(stage)
    manifest = _manifest(run, fresh, fingerprint)
    report.tables = manifest["tables"]
    # DETACH writes what is still in memory: only then is the file whole enough to be renamed.
    stage.run("DETACH out")
    published = storage.publish(run.job.folder, stage.building, manifest)
    report.generation = published.folder.name
    # Files without a new row are recorded all the same: the next run then skips them by size and digest.
    report.changed = previous is None or previous.fingerprint != fingerprint


def _manifest(run: Run, fresh: list[Source], fingerprint: str) -> dict[str, Any]:
    stage = run.stage
    taken = {file.path: file for file in run.report.files}
    return {
        "fingerprint": fingerprint, "name": "ingested data", "synthetic": False,
        "created_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "chains": stage.arrow("SELECT chain_id, first_block, last_block, last_timestamp FROM extents ORDER BY 1")
                       .to_pylist(),
        "tables": {table: int(stage.value(f"SELECT count(*) FROM out.{table}")) for table in TABLES},
        "files": [
            *(stage.previous.manifest["files"] if stage.previous else []),
            *({"path": s.name, "sha256": run.digests[s].result(), "size": s.size, "mtime": s.modified,
               "rows": file.rows, "kind": file.kind, "chain_id": chain_of(file.chain).id if file.chain else None}
              for s in fresh for file in [taken[s.name]]),
        ],
    }
