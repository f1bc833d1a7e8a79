"""The steps of one run: its files become the tables of one generation, or one of them turns out to be unusable."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from nbext.core.chains import Chain
from nbext.core.times import iso
from nbext.core.untrusted_text import quoted
from nbext.engine import storage
from nbext.engine.ingest import reading
from nbext.engine.ingest import report as counts
from nbext.engine.ingest import sources as taken
from nbext.engine.ingest.derive import (
    append,
    contracts,
    duplicates,
    exports,
    facts,
    rows,
    snapshots,
    tables,
)
from nbext.engine.ingest.derive.duplicates import Conflict
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.ingest.files import Source
from nbext.engine.ingest.reading import FileTable
from nbext.engine.ingest.report import Report
from nbext.engine.ingest.stage import REPEATED, Stage, TakenOut
from nbext.errors import IngestError

Progress = Callable[[str, float], None]
# By contract, the ranges of blocks of which every transfer is in the data.
Covered = Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class IngestJob:
    """The arguments of a run, checked."""

    folder: Path
    memory: str
    progress: Progress | None = None
    chain: Chain | None = None
    options: SnapshotOptions = field(default_factory=SnapshotOptions)
    renamed: Mapping[str, str] = field(default_factory=dict)
    removed: frozenset[int] = frozenset()
    replace_from: int | None = None
    covered: Covered = field(default_factory=dict)
    compacting: bool = False
    dry_run: bool = False
    given: int = 0
    # Held while what was built takes its place.
    switching: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def needs_every_file(self) -> bool:
        """Whether the data would lack what a file has that is refused, and nobody would know."""
        return bool(self.covered) or self.replace_from is not None

    def advance(self, step: str, done: float) -> None:
        """Tell who wants to know how much of a step is done."""
        if self.progress:
            self.progress(step, done)


@dataclass
class IngestRun:
    """The state that the steps of one run share."""

    job: IngestJob
    stage: Stage
    report: Report
    digests: dict[Source, Future[str]]
    out: TakenOut
    verified: Future[None]
    opened: list[FileTable] = field(default_factory=list)

    def holding(self, what: str) -> list[FileTable]:
        """Return the opened files of one sort: transfers, tokens, contracts, blocks or holders."""
        return [file for file in self.opened if file.kind.holds == what]


class Refused(Exception):
    """A file turned out to be unusable during the run: the run starts again without it."""

    def __init__(self, error: IngestError, source: Source) -> None:
        super().__init__(str(error))
        self.error, self.source = error, source


def take(run: IngestRun, fresh: dict[Source, int | None]) -> Report:
    """Read the files, build every table and publish the generation; return the report.

    Raises
    ------
    Refused
        One file cannot be used.
    Rebuild
        Its rows cannot be added to what is stored: everything is to be built again.
    IngestError
        Rows of several files contradict each other, or stored ones.
    """
    stage, report, job = run.stage, run.report, run.job
    stage.paths |= {number: source.name for number, source in enumerate(fresh, stage.first)}
    _open(run, fresh)
    if not run.opened and not job.removed and not job.compacting:
        return report
    if stage.appending:
        append.create_delta(stage)
    _read_facts(run)
    _read_transfers(run)
    counts.count_rows(stage)
    duplicates.find_duplicates(stage)
    _check(run, duplicates.contradiction(stage))
    report.odd.update(duplicates.set_repeated_apart(stage))
    if run.opened:
        _check(run, tables.mixed_blocks(stage) or tables.time_conflict(stage))
    if job.dry_run:
        counts.show_first_rows(stage, report, run.opened)
        return report
    # A fetch says itself what it has read: of a reorganised range that may be no row.
    if job.replace_from is not None and not job.covered:
        anew = [
            number for number, replaced in enumerate(fresh.values(), stage.first) if not replaced
        ]
        report.odd["beside_replaced"] = taken.check_replaced(stage, job.replace_from, anew)
    rows_of = _append(run) if stage.appending else _build(run)
    report.snapshots = counts.snapshots_taken(stage)
    report.files = run.opened
    counts.count_oddities(stage, report)
    report.removed = taken.removed(stage, run.out)
    report.replaced_before = taken.replaced_before(stage, run.out)
    report.disagreements = facts.disagreements(stage)
    counts.write_lists(stage, report, job.folder)
    if job.covered and report.bad_rows:
        raise IngestError(
            f"{report.bad_rows:,} of the fetched rows could not be stored, and are listed in {report.bad_path}.",
            path=report.bad_path or "",
        )
    # Last before the switch: a file that grew while it was read may have given half a row, or rows of two states.
    for file in run.opened:
        with _refusing(file.source):
            file.source.check_unchanged()
    _publish(run, rows_of)
    return report


def _check(run: IngestRun, conflict: Conflict | None) -> None:
    """Refuse the file that is at odds with itself; which of two is wrong, nobody can tell: then refuse the run."""
    if conflict is None:
        return
    error, number = conflict
    for file in run.opened:
        if file.number == number:
            raise Refused(error, file.source)
    raise error


@contextmanager
def _refusing(source: Source) -> Iterator[None]:
    """Translate an error about one file into the refusal of that file."""
    try:
        yield
    except IngestError as error:
        raise Refused(error, source) from None
    except OSError as error:
        if error.filename is None or Path(error.filename) != source.path:
            raise
        raise Refused(reading.unreadable(source, error), source) from None
    except (
        duckdb.InvalidInputException,
        duckdb.IOException,
        duckdb.ConversionException,
        duckdb.BinderException,
    ) as error:
        # What went wrong with our own files is not the source's fault.
        if isinstance(error, duckdb.IOException) and str(source.path) not in str(error):
            raise
        raise Refused(reading.unreadable(source, error), source) from None


# ``openings``: the balances of all snapshots, by the source of each; one at a time has no block. ``times``: the blocks
# that this run's files name, with times and hashes. ``hashes``: those of their transfers' blocks.
_INPUTS = (
    "bad (file INTEGER, row BIGINT, why VARCHAR, value VARCHAR)",
    "odd (file INTEGER, what VARCHAR, n BIGINT)",
    "openings (source INTEGER, chain_id BIGINT, contract VARCHAR, address VARCHAR, block BIGINT, hi DECIMAL(38,0), "
    "mid DECIMAL(38,0), lo DECIMAL(38,0), has_id BOOLEAN, seconds BIGINT)",
    "times (source INTEGER, chain_id BIGINT, block BIGINT, seconds BIGINT, hash VARCHAR)",
    "hashes (file INTEGER, chain_id BIGINT, block BIGINT, hash VARCHAR)",
)


def create_inputs(stage: Stage) -> None:
    """Create the tables that what is read goes to: facts, bad rows, counts of odd ones, and those of `_INPUTS`."""
    for described in _INPUTS:
        stage.run(f"CREATE TABLE {described}")
    facts.create_facts(stage)
    if stage.previous:
        stage.run("INSERT INTO openings SELECT * FROM prev.ingest.openings")


def take_facts(stage: Stage, file: FileTable) -> None:
    """Add what a file says of contracts and of blocks."""
    if file.kind.holds == "blocks":
        tables.take_blocks(stage, file)
    elif file.kind.holds == "transfers":
        facts.declare(stage, file)
        tables.take_hashes(stage, file)
    elif file.kind.holds in ("tokens", "contracts"):
        facts.take_table(stage, file)


def _open(run: IngestRun, fresh: dict[Source, int | None]) -> None:
    stage = run.stage
    create_inputs(stage)
    for number, (source, replaced) in enumerate(fresh.items(), stage.first):
        run.job.advance("reading", (number - stage.first) / len(fresh))
        try:
            with _refusing(source):
                table = reading.open_table(stage, number, source, run.job.renamed)
                # A quiet day's export; it replaces nothing that the data has.
                if not table.rows:
                    if run.job.replace_from is not None or run.job.removed:
                        raise source.fault("the file has no rows.")
                    run.report.empty.append(source.name)
                    continue
                table.date_format = run.job.options.date_format
                table.find_chain(stage, run.job.chain)
                run.opened.append(table)
        except Refused as without:
            # What the file gave before must stay, then, and what it was to replace too.
            if replaced or run.job.needs_every_file:
                raise
            # Nothing of the file is in the stage yet: the run can go on.
            run.report.refused.append(without.error)
    # Of a file that is skipped, refused or empty nobody knows what it would have needed.
    if len(run.opened) == run.job.given:
        run.job.options.check_used(run.opened)
    if ragged := [(file.number, row, why) for file in run.opened for row, why in file.ragged]:
        stage.connection.executemany("INSERT INTO bad VALUES (?, ?, ?, NULL)", ragged)


def _read_facts(run: IngestRun) -> None:
    """Read the facts about contracts and blocks, before the rows that they explain."""
    stage, options = run.stage, run.job.options
    # Refused alone, it would leave the last page, which says nothing of the others, to stand for all.
    for file in run.holding("holders"):
        if file.part:
            raise file.source.fault(
                f"{quoted(file.part)} says that it does not have all holders, and the others would be taken to have "
                "nothing. Write the rows of all pages to one file, as one JSON list."
            )
    # Transfers last: --token may name theirs by a symbol that another file has.
    for file in sorted(run.opened, key=lambda file: file.kind.holds == "transfers"):
        with _refusing(file.source):
            if file.kind.holds == "transfers":
                exports.reshape(stage, file, options)
            take_facts(stage, file)
            if stage.value("SELECT count(*) FROM bad WHERE file = ?", [file.number]) == file.rows:
                rows.refuse_all(stage, file)
    facts.merge_facts(stage)
    for file in run.holding("transfers"):
        with _refusing(file.source):
            exports.spell_amounts(stage, file, options)
    for file in run.holding("holders"):
        with _refusing(file.source):
            snapshots.take_snapshot(stage, file, options)


def _read_transfers(run: IngestRun) -> None:
    stage, files = run.stage, run.holding("transfers")
    rows.create_incoming(stage)
    for done, file in enumerate(files):
        run.job.advance("reading addresses", done / len(files))
        with _refusing(file.source):
            rows.collect_addresses(stage, file)
    # A rank is an address's place among all addresses, so every file's must be known before the first row is written.
    (append.number_addresses if stage.appending else rows.rank_addresses)(stage)
    for done, file in enumerate(files):
        run.job.advance("reading transfers", done / len(files))
        with _refusing(file.source):
            rows.take_rows(stage, file)
    tables.take_blocks_of_transfers(stage)
    if run.out:
        # What is to be decided again, because something was taken out.
        names = REPEATED.replace("source", "file").replace("given", "count")
        stage.run(
            f"INSERT INTO incoming ({names}) {duplicates.in_todays_ranks(stage, 'prev.ingest.again')}"
        )
    # Else a bad row would change the ranks, and with them the fingerprint, of data that it is not part of.
    if stage.value("SELECT count(*) FROM bad"):
        (append.check_bad_rows if stage.appending else rows.forget_unused)(stage)


def _build(run: IngestRun) -> Mapping[str, int]:
    """Build every table of the layout from the new rows and the generation before."""
    stage, progress = run.stage, run.job.advance
    progress("merging", 0)
    tables.create_tables(stage)
    zero = rows.zero_rank(stage)
    tables.collect_blocks(stage)
    _check(run, snapshots.place_snapshots(stage))
    tables.save_blocks(stage)
    tables.save_extents(stage)
    rows.open_snapshots(stage)
    duplicates.join_previous(stage)
    duplicates.save_keys(stage)
    contracts.save_wallets(stage)
    if run.job.compacting:
        append.fold_delta(stage, lambda done: progress("merging", done))
    else:
        contracts.classify(stage)
        _check(run, contracts.mistaken_snapshot(stage))
        run.report.restated = contracts.restated(stage)
        rows.save_transfers(stage)
        tables.derive_holdings(stage, zero, lambda done: progress("balances", done))
        progress("activity", 0)
        tables.save_activity(stage)
        contracts.save_contracts(stage, zero)
    return counts.rows_of_tables(stage)


def _append(run: IngestRun) -> Mapping[str, int]:
    """Add the new rows to the generation before."""
    stage, progress = run.stage, run.job.advance
    _check(run, snapshots.place_snapshots(stage))
    found = append.merge_rows(stage, rows.zero_rank(stage), lambda done: progress("balances", done))
    _check(run, contracts.mistaken_snapshot(stage))
    run.report.restated = contracts.restated(stage)
    return found


def _publish(run: IngestRun, rows_of: Mapping[str, int]) -> None:
    run.job.advance("saving", 0)
    stage, report = run.stage, run.report
    previous = stage.previous
    # Compacted, the rows are the same.
    compacted = previous if run.job.compacting else None
    fingerprint = compacted.fingerprint if compacted else counts.fingerprint(stage)
    manifest = _manifest(run, fingerprint, rows_of)
    report.tables = manifest["tables"]
    # What was built on is read to the end before anything is served.
    run.verified.result()
    # DETACH writes what is still in memory: only then is the file whole enough to be renamed.
    stage.run("DETACH out")
    with run.job.switching():
        published = storage.publish(run.job.folder, stage.building, manifest)
    report.generation = published.folder.name
    # Files without a new row are recorded all the same: the next run then skips them by size and digest.
    report.changed = previous is None or previous.fingerprint != fingerprint


def manifest_of(
    stage: Stage,
    fingerprint: str,
    rows_of: Mapping[str, int],
    files: list[dict[str, Any]],
    known: Mapping[int, Mapping[str, Any]] = {},
) -> dict[str, Any]:
    """Return the manifest of what a run made, as `storage.publish` takes it.

    ``files`` are those that it ingested, ``known`` is what is known of a chain beside its extent.
    """
    now = iso(int(time.time()))
    gaps = counts.sure_gaps(stage)
    return {
        "fingerprint": fingerprint,
        "name": "ingested data",
        "synthetic": False,
        "created_at": now,
        "chains": [
            {
                "chain_id": chain,
                "first_block": first,
                "last_block": last,
                "last_timestamp": seconds,
                # Only where there are some.
                **({"last_hash": of_last} if of_last else {}),
                **({"gaps": gaps[chain]} if chain in gaps else {}),
                **known.get(chain, {}),
            }
            for chain, first, last, seconds, of_last in stage.rows(
                "SELECT chain_id, first_block, last_block, last_timestamp, last_hash FROM extents ORDER BY 1"
            )
        ],
        "tables": dict(rows_of),
        "files": [{**one, "taken_at": now} for one in files],
    }


def _manifest(run: IngestRun, fingerprint: str, rows_of: Mapping[str, int]) -> dict[str, Any]:
    stage, previous, job = run.stage, run.stage.previous, run.job
    files = [
        {
            "source": file.number,
            "path": file.source.name,
            "sha256": run.digests[file.source].result(),
            "size": file.source.size,
            "mtime": file.source.modified,
            "rows": file.rows,
            "kind": file.kind.name,
            "chain_id": file.chain,
            **taken.read_how(job.options, job.renamed),
            # Those that it is read by.
            **({"options": job.options.given()} if file.kind.needs_options else {}),
            **({"snapshots": made} if made else {}),
        }
        for file in run.opened
        for made in [[one.entry() for one in run.report.snapshots if one.source == file.number]]
    ]
    manifest = manifest_of(stage, fingerprint, rows_of, files, _known(run))
    manifest["files"] = [*taken.left(stage, run.out), *manifest["files"]]
    if previous and stage.appending:
        # The base's digest is the one that it was written with. ``added`` are the transfers that it does not have.
        digest = previous.manifest["digests"][storage.TABLES_FILE]
        manifest["digests"] = {storage.TABLES_FILE: digest}
        manifest["added"] = int(stage.value("SELECT count(*) FROM out.transfers"))
    return manifest


def _known(run: IngestRun) -> dict[int, dict[str, dict[str, Any]]]:
    """Return by chain its contracts that differ from the data, are complete in ranges, or begin with a snapshot."""
    stage, job = run.stage, run.job
    known: dict[int, dict[str, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    # What was known of ranges is not, once rows are taken out.
    kept = ("differing",) if run.report.removed else ("differing", "covered")
    for entry in stage.previous.manifest["chains"] if stage.previous else ():
        known[entry["chain_id"]] |= {name: {**entry[name]} for name in kept if name in entry}
    if job.chain and job.covered:
        known[job.chain.id]["covered"] |= job.covered
    for chain, contract, block in stage.rows(
        "SELECT chain_id, contract, block FROM newest ORDER BY ALL"
    ):
        known[chain]["snapshots"][contract] = block
    return known
