"""The report of a run: what was read and skipped, every oddity, and the fingerprint of the result."""

from __future__ import annotations

import csv
import hashlib
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbext import __version__
from nbext.core.atomic_files import ORDINARY, whole_file
from nbext.core.chains import chain_of
from nbext.core.uint256 import split
from nbext.core.untrusted_text import quoted, visible
from nbext.engine.ingest.derive.rows import SPELLED, row_texts, zero_rank
from nbext.engine.ingest.files import short_path
from nbext.engine.ingest.reading import FileTable
from nbext.engine.ingest.sources import SnapshotTaken, how_many
from nbext.engine.ingest.stage import OF_A_FILE, Stage
from nbext.engine.schema import TABLES
from nbext.engine.storage import FORMAT
from nbext.errors import IngestError

# What says of a contract which standard it follows.
_STATED = "address, is_erc20, is_erc721"
# A report is read on a terminal: the files beside the data have the rest.
SHOWN = 10
SHOWN_GAPS = SHOWN_ROWS = 3
# The words for one, and for several.
ODDITIES: dict[str, list[str]] = tomllib.loads(
    Path(__file__).with_name("oddities.toml").read_text("utf-8")
)


@dataclass(frozen=True)
class BadRow:
    """One row that could not be read: its file, its number (the first row after a header is 1), and why.

    Read on a cluster, where rows have no numbers, it stands for ``alike`` rows.
    """

    path: str
    row: int | None
    why: str
    value: str | None
    alike: int = 1


@dataclass
class Report:
    """The outcome of one run.

    Attributes
    ----------
    rows
        Rows read from all files, bad ones counted.
    new
        Transfers that no earlier run had.
    skipped
        Files that were ingested before, in the same way, with the block from which on their rows were replaced since.
    other_bytes
        Files of which an earlier run took other bytes, whose rows stay.
    empty
        Files without a row.
    preview
        Of a dry run, how the first rows are read, in words.
    gaps, untimed
        The ranges of blocks without a row, and the blocks of the chains without a time, in words.
    disagreements
        Where files say different things of a contract's decimals, symbol or standard, in words.
    restated
        Contracts whose standard is another than before: address, then, now, and whether a file says so.
    removed
        What was taken out of the data, and replaced if files were ingested: a line for each.
    replaced_before
        Files whose rows an earlier run replaced, and which stay replaced though its file is removed, in words.
    snapshots
        What the balances of holder snapshots were taken as.
    erc20, nft
        Transfers read in this run of ERC20 contracts and of NFT contracts.
    odd
        How often each oddity of ODDITIES (`oddities.toml`) occurred.
    bad_rows, bad, bad_path
        How many rows could not be read, the first few of them, and the file that lists all.
    inferred_path
        The file that lists the contracts that were classified by their behaviour.
    generation
        The generation that is served after the run; ``changed`` is true if this run made it.
    rebuilt
        Why everything was built again where a run adds to what is stored as a rule; else None.
    uncompacted
        That the data could not be compacted after the run, and why; None where it was, or need not be.
    """

    rows: int = 0
    new: int = 0
    erc20: int = 0
    nft: int = 0
    erc20_contracts: int = 0
    nft_contracts: int = 0
    files: list[FileTable] = field(default_factory=list)
    skipped: dict[str, int | None] = field(default_factory=dict)
    refused: list[IngestError] = field(default_factory=list)
    other_bytes: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    preview: list[str] | None = None
    removed: list[str] = field(default_factory=list)
    replaced_before: list[str] = field(default_factory=list)
    snapshots: list[SnapshotTaken] = field(default_factory=list)
    odd: dict[str, int] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)
    untimed: list[str] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)
    restated: list[tuple[str, str, str, bool]] = field(default_factory=list)
    bad_rows: int = 0
    bad: list[BadRow] = field(default_factory=list)
    bad_path: str | None = None
    inferred_path: str | None = None
    generation: str | None = None
    changed: bool = False
    rebuilt: str | None = None
    uncompacted: str | None = None
    tables: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the report in plain words."""
        return [*self._files(), *self._rows(), *self._oddities(), *self._bad(), *self._end()]

    def _files(self) -> list[str]:
        lines = [
            f"{f.source.shown}: {f.kind.name}, {how_many(f.rows, 'row')}"
            + (f", {f.chain_name}" if f.chain_name else "")
            + (
                f"; {quoted(f.part)} says that there are more rows, which are not here"
                if f.part
                else ""
            )
            for f in self.files
        ]
        lines += _shortened([f"  {snapshot}" for snapshot in self.snapshots], "of {}")
        lines += [f"{'replaced' if self.files else 'removed'}: {what}" for what in self.removed]
        lines += self.replaced_before
        lines += [
            f"{short_path(path)}: ingested before, skipped"
            + (
                ""
                if block is None
                else (f"; its rows from block {block:,} on were replaced, and are not read again")
            )
            for path, block in self.skipped.items()
        ]
        lines += [
            f"{short_path(path)}: it had other bytes when it was ingested before, and what these gave stays "
            "(nbext sources lists both, and nbext remove takes one out)"
            for path in self.other_bytes
        ]
        lines += [f"{short_path(path)}: it has no rows" for path in self.empty]
        return lines + [f"refused: {error}" for error in self.refused]

    def _rows(self) -> list[str]:
        if not self.files:
            return [] if self.removed else ["No new rows."]
        read = f"{how_many(self.rows, 'row')} read"
        kinds = (("ERC20", self.erc20, self.erc20_contracts), ("NFT", self.nft, self.nft_contracts))
        found = [
            f"{how_many(n, f'{kind} transfer')} ({how_many(contracts, 'contract')})"
            for kind, n, contracts in kinds
            if n
        ]
        return [
            f"{read}: {' and '.join(found)}, {self.new:,} of them new." if found else f"{read}."
        ]

    def _oddities(self) -> list[str]:
        lines = []
        for name, count in self.odd.items():
            if count:
                lines.append(f"  {count:,} {ODDITIES[name][count != 1]}")
            if count and name == "inferred" and self.inferred_path:
                lines.append(
                    f"    listed in {short_path(self.inferred_path)}: a file with {_STATED} corrects them"
                )
        lines += self.gaps
        inferred = f"by its transfers: if it is not, ingest a file with {_STATED}"
        restated = [
            f"  {address} was {then}, and is {now} now, {'as a file says' if declared else inferred}"
            for address, then, now, declared in self.restated
        ]
        for found in (restated, [f"  {one}" for one in self.disagreements]):
            lines += _shortened(found, "{} like these")
        return lines + self.untimed

    def _bad(self) -> list[str]:
        if not self.bad_rows:
            return []
        lines = [f"{how_many(self.bad_rows, 'bad row')} skipped:"]
        lines += [
            f"  {short_path(b.path)}, {how_many(b.alike, 'row') if b.row is None else f'row {b.row:,}'}: {b.why}"
            + ("" if b.value is None else f"{', such as' if b.alike > 1 else ':'} {b.value[:80]!r}")
            for b in self.bad[:SHOWN]
        ]
        return lines + ([f"  full list: {short_path(self.bad_path)}"] if self.bad_path else [])

    def _end(self) -> list[str]:
        if self.preview is not None:
            return [*self.preview, "Nothing was changed: without --dry-run it is ingested."]
        if not self.changed:
            served = f"The data has not changed: generation {self.generation}."
            return [served if self.generation else "There is no data."]
        if not self.generation:
            return ["The folder has no data any more: the sample is served in its place."]
        # One block, and not 1 blocks; history and activity are no plural.
        rows = ", ".join(
            how_many(rows, table[:-1]) if table.endswith("s") else f"{rows:,} {table}"
            for name, rows in self.tables.items()
            for table in [name.replace("_", " ")]
        )
        again = [f"Everything was built again: {self.rebuilt}."] if self.rebuilt else []
        return [
            *again,
            f"Now serving generation {self.generation}: {rows}. {self.seconds:.1f} s.",
            *([self.uncompacted] if self.uncompacted else []),
        ]


def _shortened(lines: list[str], rest: str) -> list[str]:
    """Return the first of the lines about contracts, and of how many more there are some."""
    more = how_many(len(lines) - SHOWN, "more contract")
    return lines[:SHOWN] + ([f"  and {rest.format(more)}"] if len(lines) > SHOWN else [])


# A gap is this many times the usual distance between two blocks of the data: a quiet token has no row in most blocks.
_WIDE = 10


def snapshots_taken(stage: Stage) -> list[SnapshotTaken]:
    """Return what the snapshots among this run's sources were taken as."""
    return [
        SnapshotTaken(*found)
        for found in stage.rows(
            f"""
        SELECT p.source, p.contract, decimals, p.block, p.seconds FROM placed p
        LEFT JOIN (SELECT chain_id, address, decimals, seq // {OF_A_FILE} AS number FROM out.ingest.facts
                   WHERE source = 'snapshot') f
            ON number = p.source AND f.chain_id = p.chain_id AND f.address = p.contract
        WHERE p.source >= ? ORDER BY 1, 2""",
            [stage.first],
        )
    ]


def count_rows(stage: Stage) -> None:
    """Count the rows of each contract that this run's files have."""
    null, half = zero_rank(stage), split(2**127)
    # From 2**127 on, other tools overflow a signed 128-bit integer: people compare their sums with ours.
    stage.run(f"""
        CREATE TABLE read AS SELECT contract, count(*) AS n,
            count(*) FILTER (sender = recipient) AS self_transfers, count(*) FILTER (sender = {null}) AS mints,
            count(*) FILTER (count > 1) AS several,
            count(*) FILTER (recipient = {null}) AS burns, count(*) FILTER (hi = 0 AND mid = 0 AND lo = 0) AS zeros,
            count(*) FILTER (hi > 0 OR mid > {half.mid} OR (mid = {half.mid} AND lo >= {half.lo}::HUGEINT)) AS huge
        FROM incoming WHERE file >= {stage.first} GROUP BY 1""")


def count_oddities(stage: Stage, report: Report) -> None:
    """Fill the report's counts from its files, the rows read, and the finished tables."""
    report.rows = sum(file.rows for file in report.files)
    report.new = stage.value("SELECT count(*) FROM incoming WHERE file >= ?", [stage.first])
    nft = "standard <> 'ERC20'"
    found = stage.rows(f"""
        SELECT coalesce(sum(n) FILTER (NOT {nft}), 0)::BIGINT, coalesce(sum(n) FILTER ({nft}), 0)::BIGINT,
            count(*) FILTER (NOT {nft}), count(*) FILTER ({nft}), coalesce(sum(self_transfers), 0)::BIGINT,
            coalesce(sum(zeros) FILTER (NOT {nft}), 0)::BIGINT, coalesce(sum(mints), 0)::BIGINT,
            coalesce(sum(burns), 0)::BIGINT, coalesce(sum(huge), 0)::BIGINT, count(*) FILTER (NOT declared),
            coalesce(sum(several) FILTER (standard = 'ERC721'), 0)::BIGINT
        FROM read JOIN standards USING (contract)""")[0]
    report.erc20, report.nft, report.erc20_contracts, report.nft_contracts = found[:4]
    names = (
        "self_transfers",
        "zero_values",
        "mints",
        "burns",
        "huge_values",
        "inferred",
        "several",
    )
    report.odd.update(zip(names, found[4:], strict=True))
    # Of what was removed, any contract may have lost transfers.
    how = "" if report.new else "LEFT"
    of_contracts = stage.rows(f"""
        SELECT coalesce(sum(below_zero), 0)::BIGINT, coalesce(sum(unseen), 0)::BIGINT,
            count(*) FILTER (standard = 'ERC20' AND decimals IS NULL AND n IS NOT NULL)
        FROM out.contracts {how} JOIN read USING (contract)""")[0]
    report.odd.update(zip(("below_zero", "unseen", "unknown_decimals"), of_contracts, strict=True))
    if stage.value("SELECT count(*) FROM opened"):
        touched = [one.contract for one in report.snapshots]
        report.odd["before_snapshot"] = stage.value(
            f"""
            SELECT count(*) FROM {stage.now}.transfers t
            JOIN (SELECT contract, max(block) AS until FROM opened GROUP BY 1) o
                ON o.contract = t.contract AND t.block <= o.until
            WHERE t.contract IN (SELECT contract FROM read UNION SELECT rowid FROM contract_ranks
                                 WHERE list_contains(?, address))""",
            [touched],
        )
    report.odd.update(
        stage.rows("SELECT what, sum(n)::BIGINT FROM odd GROUP BY 1 HAVING sum(n) > 0 ORDER BY 1")
    )
    _gaps(stage, report)


def _gaps(stage: Stage, report: Report) -> None:
    touched = {
        chain
        for (chain,) in stage.rows("SELECT chain_id FROM incoming UNION SELECT chain_id FROM times")
    }
    found = [
        (chain_of(chain).name, first, last)
        for chain, first, last, _ in _wide_steps(stage)
        if chain in touched
    ]
    report.gaps = [
        f"  no data for {chain} blocks {first:,} to {last:,} ({how_many(last - first + 1, 'block')})"
        for chain, first, last in found[:SHOWN_GAPS]
    ]
    if (more := len(found) - SHOWN_GAPS) > 0:
        report.gaps.append(f"  and {how_many(more, 'smaller gap')}")
    report.untimed = [
        f"  {_untimed(chain_of(chain).name, *numbers)}. Ingest a file with their times (number, timestamp)"
        for chain, *numbers in stage.rows(f"""
        SELECT chain_id, count(*) FILTER (timestamp IS NULL), count(*), min(block) FILTER (timestamp IS NULL),
            max(block) FILTER (timestamp IS NULL)
        FROM {stage.now}.blocks GROUP BY 1 HAVING count(timestamp) < count(*) ORDER BY 1""")
        if chain in touched
    ]


def _untimed(chain: str, blocks: int, of: int, first: int, last: int) -> str:
    """Return in words which blocks of a chain have no time: so many of so many, the first and the last."""
    if blocks == of:
        return f"no block of {chain} has a time: questions by date are refused"
    where = f"{first:,} to {last:,}" if blocks > 1 else f"{first:,}"
    return (
        f"{blocks:,} of {of:,} blocks of {chain} ({where}) without a time: "
        "questions by a date around them are refused"
    )


def rows_of_tables(stage: Stage) -> dict[str, int]:
    """Return how many rows each finished table has."""
    counts = ", ".join(f"(SELECT count(*) FROM out.{table})" for table in TABLES)
    return dict(zip(TABLES, stage.rows(f"SELECT {counts}")[0], strict=True))


def sure_gaps(stage: Stage) -> dict[int, list[tuple[int, int]]]:
    """Return the widest gaps of each chain nearly every block of which has a row: elsewhere a block may be quiet."""
    found: dict[int, list[tuple[int, int]]] = {}
    for chain, first, last, usual in _wide_steps(stage):
        if usual <= 2:
            found.setdefault(chain, []).append((first, last))
    return {chain: sorted(gaps[:SHOWN]) for chain, gaps in found.items()}


def _wide_steps(stage: Stage) -> list[tuple[int, int, int, float]]:
    return stage.rows(f"""
        WITH steps AS (SELECT chain_id, block, block - lag(block) OVER (PARTITION BY chain_id ORDER BY block) AS step
                       FROM {stage.now}.blocks),
             usual AS (SELECT chain_id, median(step) AS step FROM steps GROUP BY 1)
        SELECT s.chain_id, s.block - s.step + 1, s.block - 1, u.step FROM steps s JOIN usual u USING (chain_id)
        WHERE s.step > {_WIDE} * u.step ORDER BY s.step DESC, 1, 2""")


def write_lists(stage: Stage, report: Report, folder: Path) -> None:
    """Write the bad rows and the contracts classified by behaviour to files beside the data."""
    if rows := _find_bad(stage, report):
        report.bad_path = str(folder / "bad-rows.csv")
        _write(folder / "bad-rows.csv", ("file", "row", "why", "value"), rows)
    inferred = stage.rows(
        "SELECT chain_id, address, s.standard FROM standards s JOIN contract_ranks r "
        "ON r.rowid = contract WHERE NOT declared ORDER BY 1, 2"
    )
    if inferred:
        report.inferred_path = str(folder / "inferred-contracts.csv")
        _write(folder / "inferred-contracts.csv", ("chain_id", "address", "taken_as"), inferred)


def _find_bad(stage: Stage, report: Report) -> list[tuple[Any, ...]]:
    bad = stage.rows("SELECT file, row, why, value FROM bad ORDER BY file, row")
    rows = [(stage.paths[file], *found) for file, *found in bad]
    report.bad_rows, report.bad = len(rows), [BadRow(*row) for row in rows[:SHOWN]]
    return rows


def show_first_rows(stage: Stage, report: Report, files: list[FileTable]) -> None:
    """Fill the report of a dry run: what would be ingested, and how the first rows of each file are read."""
    report.files = files
    report.rows = sum(file.rows for file in files)
    report.preview = []
    _find_bad(stage, report)
    moment = "strftime(make_timestamp(seconds * 1000000), '%Y-%m-%d %H:%M:%S UTC')"
    for file in files:
        if file.kind.holds == "transfers":
            read = f"""SELECT row, concat_ws(', ', sender_text || ' to ' || recipient_text, value_text || ' of '
                || contract_text, 'block ' || block, {moment}) AS said FROM ({row_texts(stage, file)})"""
        elif file.kind.holds == "holders":
            read = f"""SELECT row_number() OVER () AS row, concat_ws(', ', address || ' has ' || {SPELLED} || ' of '
                || contract, 'block ' || block, {moment}) AS said FROM openings WHERE source = {file.number}"""
        else:
            continue
        first = stage.rows(f"SELECT said FROM ({read}) ORDER BY row LIMIT {SHOWN_ROWS}")
        report.preview += [
            f"{file.source.shown} is read as:",
            *(f"  {visible(said)}" for (said,) in first),
        ]


def _write(path: Path, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    # Replaced at every run: a list of an earlier run's bad rows would be taken for this one's.
    with (
        whole_file(path, mode=ORDINARY) as part,
        part.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def fingerprint(stage: Stage) -> str:
    """Return a text that changes when any row does, whatever the order of rows and files was.

    The tables that are not hashed are derived from these by this version's code.
    """
    if stage.appending and stage.previous:
        before = stage.previous.fingerprint
        listed = _hashed(stage, "FROM out.main.contracts")
        came = [
            _hashed(stage, f"FROM {table}")
            for table in (
                *("incoming", "fresh_blocks", "fresh_wallets"),
                f"out.ingest.openings WHERE source >= {stage.first}",
            )
        ]
        same = listed == _hashed(stage, "FROM prev.main.contracts")
        if same and not any(count for count, *_ in came):
            return before
        return hashlib.sha256(repr((before, listed, came)).encode()).hexdigest()[:32]
    # Neither XOR nor a sum depends on the order of rows. XOR alone would miss a row that is there twice more.
    found = [
        (__version__, FORMAT),
        # Not its other columns, if it has some: which file gave a row is nothing that a query sees.
        *(
            (table, _hashed(stage, f"SELECT {', '.join(TABLES[table])} FROM out.{table}"))
            for table in ("transfers", "blocks", "contracts", "snapshot_wallets")
        ),
        _hashed(stage, "SELECT * FROM opened"),
        stage.rows("SELECT count(*), bit_xor(hash(address)) FROM wallets"),
    ]
    return hashlib.sha256("".join(map(repr, found)).encode()).hexdigest()[:32]


def _hashed(stage: Stage, rows: str) -> tuple[object, ...]:
    return stage.rows(
        f"SELECT count(*), bit_xor(hash(t)), sum(hash(t) % 4294967291) FROM ({rows}) t"
    )[0]
