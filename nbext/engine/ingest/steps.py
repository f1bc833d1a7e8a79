"""The steps of one run: its files become the tables of one generation, or one of them turns out to be unusable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from nbext.core.chains import Chain, chain_of
from nbext.engine import storage
from nbext.engine.ingest import report as counts
from nbext.engine.ingest import taken
from nbext.engine.ingest.derive import append, contracts, exports, rows, snapshots, tables, wallets
from nbext.engine.ingest.derive.append import Rebuild
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.ingest.previous import TakenOut
from nbext.engine.ingest.report import FileTaken, Report
from nbext.engine.ingest.sources import reading, tokens
from nbext.engine.ingest.sources.files import Source, shown
from nbext.engine.ingest.stage import Stage
from nbext.engine.schema import TABLES
from nbext.errors import IngestError

Progress = Callable[[str, float], None]
# By contract, the ranges of blocks of which every transfer is in the data.
Covered = Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class Job:
    """The arguments of a run, checked."""

    folder: Path
    chain: Chain | None
    options: SnapshotOptions
    renamed: Mapping[str, str]
    memory: str
    progress: Progress
    removed: frozenset[int] = frozenset()
    replace_from: int | None = None
    covered: Covered = field(default_factory=dict)
    compacting: bool = False


@dataclass
class Run:
    """The state that the steps of one run share; ``first`` is the number of its first file among all sources."""

    job: Job
    stage: Stage
    report: Report
    digests: dict[Source, Future[str]]
    out: TakenOut
    first: int
    verified: Future[None]
    opened: list[reading.Opened] = field(default_factory=list)
    lists: list[tuple[int, Source, int]] = field(default_factory=list)

    def holding(self, what: str) -> list[reading.Opened]:
        """Return the opened files of one sort: transfers, tokens, contracts, blocks or holders."""
        return [file for file in self.opened if file.kind.holds == what]


class Refused(Exception):
    """A file turned out to be unusable during the run: the run starts again without it."""

    def __init__(self, error: IngestError, source: Source) -> None:
        super().__init__(str(error))
        self.error, self.source = error, source


def take(run: Run, fresh: dict[Source, int | None]) -> Report:
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
    _open(run, fresh)
    stage, report, job = run.stage, run.report, run.job
    sources = [*(file.source for file in run.opened), *(source for _, source, _ in run.lists)]
    if not sources and not job.removed and not job.compacting:
        return report
    if stage.appending:
        if run.holding("holders"):
            raise Rebuild("a snapshot of holders is new")
        append.begin(stage)
    _read_facts(run)
    _read_transfers(run)
    counts.count_rows(stage, run.first)
    _set_repeated_apart(run)
    if run.opened:
        _check_times(run)
    # A fetch says itself what it has read: of a reorganised range that may be no row.
    if job.replace_from is not None and not job.covered:
        anew = [
            number for number, replaced in enumerate(fresh.values(), run.first) if replaced is None
        ]
        report.odd["beside_replaced"] = taken.check_replaced(
            stage, job.replace_from, run.first, anew
        )
    report.new = stage.value("SELECT count(*) FROM incoming WHERE file >= ?", [run.first])
    rows_of = append.merge(stage, wallets.zero(stage)) if stage.appending else _build(run)
    if not stage.appending:
        report.snapshots = counts.snapshots_taken(stage, run.first)
    counts.count_oddities(stage, report)
    report.files = [
        FileTaken(f.source.name, f.kind.name, f.rows, _chain_name(run, f), f.number)
        for f in run.opened
    ]
    report.files += [
        FileTaken(s.name, "token list", rows, None, number) for number, s, rows in run.lists
    ]
    report.rows = sum(file.rows for file in report.files)
    report.removed = taken.removed(stage, run.out, job.chain)
    report.replaced_before = taken.replaced_before(stage, run.out)
    paths = {number: source.name for number, source in enumerate(fresh, run.first)}
    report.disagreements = taken.disagreements(stage, run.first, paths)
    counts.write_lists(stage, report, job.folder, paths)
    # Last before the switch: a file that grew while it was read may have given half a row, or rows of two states.
    for source in sources:
        with _refusing(source):
            source.check_unchanged()
    _publish(run, sources, rows_of)
    return report


def _set_repeated_apart(run: Run) -> None:
    """Set rows that were ingested before apart; refuse those that contradict what was."""
    stage, paths = run.stage, {file.number: file.source for file in run.opened}
    rows.find_repeated(stage)
    within = stage.value("SELECT min(file) FROM contradictions WHERE source = file")
    if stage.value("SELECT count(*) FROM contradictions WHERE source <> file"):
        raise taken.contradiction(stage, paths, "source <> file")
    if within is not None:
        raise Refused(taken.contradiction(stage, paths, f"file = {within}"), paths[within])
    run.report.odd.update(rows.drop_repeated(stage, run.first))


def _check_times(run: Run) -> None:
    """Refuse another time of a block that has one, and one before an earlier block's: no answer by date is right."""
    stage, paths = run.stage, {file.number: file.source for file in run.opened}
    if (first := tables.find_other_times(stage)) is not None:
        within = stage.value(
            "SELECT min(source) FROM (SELECT source FROM two_times GROUP BY source, chain_id, block "
            "HAVING count(*) > 1)"
        )
        error = taken.other_times(stage, paths, first, within if within in paths else None)
    elif found := tables.find_backward_times(stage):
        sources = {source for one in found for source in (one.source, one.source_before)}
        within = sources.pop() if len(sources) == 1 else None
        error = taken.backward_times(stage, paths, found, inside=within is not None)
    else:
        return
    # One file at odds with itself is left out; which of two is wrong, nobody can tell.
    raise Refused(error, paths[within]) if within in paths else error


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
        if not reading.is_about(source, error):
            raise
        raise Refused(reading.unreadable(source, error), source) from None


def _open(run: Run, fresh: dict[Source, int | None]) -> None:
    stage = run.stage
    stage.run("CREATE TABLE bad (file INTEGER, row BIGINT, why VARCHAR, value VARCHAR)")
    stage.run("CREATE TABLE odd (file INTEGER, what VARCHAR, n BIGINT)")
    tokens.begin(stage)
    for number, (source, replaced) in enumerate(fresh.items(), run.first):
        run.job.progress("reading", (number - run.first) / len(fresh))
        try:
            with _refusing(source):
                table = reading.open_table(stage, number, source, run.job.renamed)
                if table is None:
                    run.lists.append((number, source, tokens.take_list(stage, number, source)))
                else:
                    run.opened.append(table)
        except Refused as without:
            # What the file gave before must stay, then, and what it was to replace too.
            if replaced or run.job.replace_from is not None:
                raise
            # Nothing of the file is in the stage yet: the run can go on.
            run.report.refused.append(without.error)
    if ragged := [(file.number, row, why) for file in run.opened for row, why in file.ragged]:
        stage.connection.executemany("INSERT INTO bad VALUES (?, ?, ?, NULL)", ragged)


def chain_id_of(stage: Stage, given: Chain | None, file: reading.Opened) -> int:
    """Return the chain of a file's rows: the one it names, which --chain must not contradict, or --chain's."""
    if file.has("chain_id"):
        found = stage.rows(f"SELECT DISTINCT {file.text('chain_id')} FROM {file.relation} LIMIT 3")
        named = [row[0] for row in found]
        own = chain_of(named[0], file.source.name) if len(named) == 1 and named[0] else None
        wanted = given or own
        if own is None or wanted is None or wanted != own:
            why = (
                f"its rows are on several chains ({', '.join(map(str, named))}). Split it by chain"
                if len(named) > 1
                else f"its rows are on chain {named[0]}, but --chain {given.name if given else None} was given"
            )
            raise IngestError(f"{file.source.shown}: {why}.", path=file.source.name)
        return wanted.id
    if given is None:
        raise IngestError(
            f"{file.source.shown}: its rows name no chain. Give it: --chain ethereum.",
            path=file.source.name,
        )
    return given.id


def _chain_name(run: Run, file: reading.Opened) -> str | None:
    by_row = file.kind.holds == "tokens" and file.has("chain_id")
    return None if by_row else chain_of(chain_id_of(run.stage, run.job.chain, file)).name


def _read_facts(run: Run) -> None:
    """Read the facts about contracts and blocks, before the rows that they explain."""
    stage = run.stage
    tables.begin_times(stage)
    for file in run.holding("tokens") + run.holding("contracts"):
        with _refusing(file.source):
            by_row = file.has("chain_id")
            sql = (
                file.whole("chain_id")
                if by_row
                else str(chain_id_of(run.stage, run.job.chain, file))
            )
            tokens.take_table(stage, file, sql)
    for file in run.holding("blocks"):
        with _refusing(file.source):
            tables.take_blocks(stage, file, chain_id_of(run.stage, run.job.chain, file))
    for file in run.holding("transfers"):
        with _refusing(file.source):
            exports.reshape(stage, file, run.job.options)
            tokens.declare(stage, file, chain_id_of(run.stage, run.job.chain, file))
    # After the files: facts of the well-known contracts fill what no file says, and never contradict one.
    tokens.insert_facts(stage, tokens.well_known())
    tokens.settle(stage)
    for file in run.holding("transfers"):
        with _refusing(file.source):
            exports.spell_amounts(
                stage, file, chain_id_of(run.stage, run.job.chain, file), run.job.options
            )
    snapshots.begin(stage)
    for file in run.holding("holders"):
        with _refusing(file.source):
            snapshots.take(
                stage, file, chain_id_of(run.stage, run.job.chain, file), run.job.options
            )


def _read_transfers(run: Run) -> None:
    stage, files = run.stage, run.holding("transfers")
    wallets.begin(stage)
    rows.begin(stage)
    for done, file in enumerate(files):
        run.job.progress("reading addresses", done / len(files))
        with _refusing(file.source):
            wallets.collect(stage, file, chain_id_of(run.stage, run.job.chain, file))
    # A rank is an address's place among all addresses, so every file's must be known before the first row is written.
    (append.number if stage.appending else wallets.rank)(stage)
    for done, file in enumerate(files):
        run.job.progress("reading transfers", done / len(files))
        with _refusing(file.source):
            rows.take(stage, file, chain_id_of(run.stage, run.job.chain, file))
    tables.take_blocks_of_transfers(stage)
    if run.out:
        rows.take_again(stage)
    # Else a bad row would change the ranks, and with them the fingerprint, of data that it is not part of.
    if stage.value("SELECT count(*) FROM bad"):
        (append.check_bad_rows if stage.appending else wallets.forget_unused)(stage)


def _build(run: Run) -> Mapping[str, int]:
    """Build every table of the layout from the new rows and the generation before."""
    stage = run.stage
    run.job.progress("merging", 0)
    tables.create_tables(stage)
    zero = wallets.zero(stage)
    tables.collect_blocks(stage)
    _settle_snapshots(run)
    tables.save_blocks(stage)
    tables.save_extents(stage)
    wallets.open_snapshots(stage)
    wallets.join_previous(stage)
    rows.save_keys(stage)
    rows.save_repeats(stage)
    contracts.save_wallets(stage)
    if run.job.compacting:
        append.fold(stage, lambda done: run.job.progress("merging", done))
    else:
        _derive(run, zero)
    return {table: int(stage.value(f"SELECT count(*) FROM out.{table}")) for table in TABLES}


def _derive(run: Run, zero: int) -> None:
    stage = run.stage
    contracts.classify(stage)
    _check_snapshots(run)
    run.report.restated = contracts.restated(stage)
    rows.save(stage)
    tables.derive(stage, zero, lambda done: run.job.progress("balances", done))
    run.job.progress("activity", 0)
    tables.save_activity(stage)
    contracts.save_contracts(stage, zero)


def _check_snapshots(run: Run) -> None:
    """Refuse a snapshot of amounts of an NFT collection, and one of token ids of an ERC20."""
    if (found := contracts.mistaken_snapshot(run.stage)) is None:
        return
    paths = {file.number: file.source for file in run.opened}
    error = taken.mistaken_snapshot(run.stage, paths, found)
    raise Refused(error, paths[found.source]) if found.source in paths else error


def _settle_snapshots(run: Run) -> None:
    lost = snapshots.settle(run.stage, run.first)
    for file in run.holding("holders"):
        if file.number in lost:
            raise Refused(
                IngestError(
                    f"{file.source.shown}: blocks of the data around this snapshot's time have no time, so its block "
                    "is unknown. Give it with --block N, or ingest a blocks file.",
                    path=file.source.name,
                ),
                file.source,
            )
    if lost and run.stage.previous:
        (path,) = (
            entry["path"]
            for entry in run.stage.previous.manifest["files"]
            if entry["source"] == lost[0]
        )
        raise IngestError(
            f"{shown(path)} is a snapshot of a time, and blocks around it would have no time, so its block would be "
            "unknown. Ingest a blocks file first, or ingest the snapshot again with --block N, or remove it.",
            path=path,
        )


def _publish(run: Run, fresh: list[Source], rows_of: Mapping[str, int]) -> None:
    run.job.progress("saving", 0)
    stage, report = run.stage, run.report
    previous = stage.previous
    if previous and run.job.compacting:  # the rows are the same
        fingerprint = previous.fingerprint
    else:
        fingerprint = append.fingerprint(stage) if stage.appending else counts.fingerprint(stage)
    manifest = _manifest(run, fresh, fingerprint, rows_of)
    report.tables = manifest["tables"]
    # What was built on is read to the end before anything is served.
    run.verified.result()
    # DETACH writes what is still in memory: only then is the file whole enough to be renamed.
    stage.run("DETACH out")
    published = storage.publish(run.job.folder, stage.building, manifest)
    report.generation = published.folder.name
    # Files without a new row are recorded all the same: the next run then skips them by size and digest.
    report.changed = previous is None or previous.fingerprint != fingerprint


def _covered(run: Run) -> dict[str, Covered]:
    """Return by chain which ranges of contracts are complete. What was known is not, once rows are taken out."""
    previous, job = run.stage.previous, run.job
    known = dict(previous.covered) if previous and not run.report.removed else {}
    if job.chain and job.covered:
        chain = str(job.chain.id)
        known[chain] = {**known.get(chain, {}), **job.covered}
    return known


def _snapshots(run: Run) -> dict[int, dict[str, int]]:
    """Return by chain the contracts whose balances begin with a snapshot, and its block."""
    stage, previous = run.stage, run.stage.previous
    if stage.appending and previous:  # a snapshot is never added to what is stored
        return {
            chain.chain_id: dict(chain.snapshots) for chain in previous.chains if chain.snapshots
        }
    found: dict[int, dict[str, int]] = {}
    for chain, contract, block in stage.rows(
        "SELECT chain_id, contract, block FROM newest ORDER BY ALL"
    ):
        found.setdefault(chain, {})[contract] = block
    return found


def _manifest(
    run: Run, fresh: list[Source], fingerprint: str, rows_of: Mapping[str, int]
) -> dict[str, Any]:
    stage, previous = run.stage, run.stage.previous
    kept = previous if stage.appending else None
    given = {file.path: file for file in run.report.files}
    # Which of the options a file is read by.
    asked = {file.number for file in run.opened if file.kind.needs_options}
    renamed = {"map": dict(run.job.renamed)} if run.job.renamed else {}
    made: dict[int, list[dict[str, Any]]] = {}
    for one in run.report.snapshots:
        made.setdefault(one.source, []).append(one.entry())
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    gaps, snapshots = counts.sure_gaps(stage), _snapshots(run)
    extents = stage.arrow(
        "SELECT chain_id, first_block, last_block, last_timestamp FROM extents ORDER BY 1"
    )
    return {
        "fingerprint": fingerprint,
        "name": "ingested data",
        "synthetic": False,
        "created_at": now,
        # Only where there are some: what was stored before these were has none either.
        "chains": [
            {
                **one,
                **{
                    name: found[one["chain_id"]]
                    for name, found in (("gaps", gaps), ("snapshots", snapshots))
                    if one["chain_id"] in found
                },
            }
            for one in extents.to_pylist()
        ],
        **({"differing": previous.differing} if previous and previous.differing else {}),
        **({"covered": covered} if (covered := _covered(run)) else {}),
        "tables": dict(rows_of),
        # The base's digest is the one that it was written with. ``added`` are the transfers that it does not have.
        **(
            {
                "digests": {storage.TABLES_FILE: kept.manifest["digests"][storage.TABLES_FILE]},
                "added": int(stage.value("SELECT count(*) FROM out.transfers")),
            }
            if kept
            else {}
        ),
        "files": [
            *taken.left(stage, run.out),
            *(
                {
                    "source": file.number,
                    "path": s.name,
                    "sha256": run.digests[s].result(),
                    "size": s.size,
                    "mtime": s.modified,
                    "rows": file.rows,
                    "kind": file.kind,
                    "taken_at": now,
                    "chain_id": chain_of(file.chain).id if file.chain else None,
                    **renamed,
                    **({"options": run.job.options.given()} if file.number in asked else {}),
                    **({"snapshots": made[file.number]} if file.number in made else {}),
                }
                for s in fresh
                for file in [given[s.name]]
            ),
        ],
    }
