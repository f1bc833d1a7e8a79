"""Which blocks of which contracts are stored: the files say it, of those that the data has.

    DATA/fetched/ethereum/parts/         each range as it was read, whole or absent: the checkpoint is the file
                                         *.answers: what a node answered of ranges that are not whole yet
    DATA/fetched/ethereum/*.parquet      the parts of a step together, as ingest and other tools read them; the metadata
                                         of blocks-* say what was read, and recent blocks' hashes
    DATA/fetched/ethereum/all-*          what many steps cover, so that a start reads one file in place of thousands
    DATA/fetched/ethereum/again-*        what steps have read of which all is read again: they cover nothing

A range that was read is a part, in one rename; a process killed at any moment reads again only what was under way. A
step joins the parts and has them ingested: it covers what it read once the data has its files, up to the block from
which on the data says that it was replaced. Killed between, it joins the same parts again into the same files. Files
that were taken out of the data cover nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from nbext.core.addresses import checksummed
from nbext.core.atomic_files import ORDINARY, PART, files_in, sha256_of, whole_file
from nbext.core.chains import Chain
from nbext.core.locks import exclusive
from nbext.core.untrusted_text import visible
from nbext.errors import DiskFull, StorageError
from nbext.node.contracts import ContractMetadata
from nbext.node.ranges import Blocks, LogFilter, Row
from nbext.node.received import SUFFIX, checksum_of
from nbext.node.rpc import LAST_BLOCK, InconsistentAnswer

Range = tuple[int, int]
# Recent blocks whose hashes are stored, to find where a reorganisation began.
_HASHES = 512
# Steps of equal contracts that are covered by a file each: a chain that is followed has thousands a day, and a start
# reads all of them.
_STEPS = 64
# Of its SHA-256, at the end of a part's name.
_DIGITS = 16
_NUMBERS = {"place", "log_index", "block", "decimals", "deployed_block_number"}


def _schema(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int64() if name in _NUMBERS else pa.string()) for name in names])


# The columns of a part, as `Row` has them, and of what contracts say of themselves.
_PART = _schema(
    "contract",
    "tx",
    "log_index",
    "block",
    "sender",
    "recipient",
    "value",
    "count",
    "place",
    "standard",
)
_TOKENS = _schema(
    "address", "symbol", "name", "decimals", "total_supply", "standard", "deployed_block_number"
)
_SAID = [name for name in _TOKENS.names if name != "total_supply"]


@dataclass
class Stored:
    """What a file covers, as its metadata say: a part; the blocks of a step, which has files of rows; many steps."""

    path: Path
    read: list[LogFilter]
    # Hash and time of blocks: of a step recent ones, to find where a reorganisation began, and those that others are
    # linked to.
    blocks: Blocks
    # How many rows show a standard, by contract and standard.
    shown: Mapping[str, int]
    # The names of the files of a step beside it; of many steps all of theirs.
    rows: list[str] = field(default_factory=list)
    # The first block that another step has instead, or is to have; 0 where all of it is read again.
    end: int = LAST_BLOCK + 1

    @staticmethod
    def of(path: Path) -> Stored:
        """Return what a file covers."""
        known = json.loads(pq.read_schema(path).metadata[b"nbext"])
        read = [
            LogFilter(first, last, tuple(contracts), tuple(topics))
            for first, last, contracts, topics in known["read"]
        ]
        return Stored(path, read, dict(known["blocks"]), known["shown"], known["rows"])

    def write(self, table: pa.Table, *, flush: bool) -> None:
        """Write its file, which is named by its bytes then: as that which is written of the same again."""
        about = {
            "name": self.path.name,
            "read": list(map(astuple, self.read)),
            "blocks": list(self.blocks.items()),
            "shown": self.shown,
            "rows": self.rows,
        }
        raw = pa.BufferOutputStream()
        table = table.replace_schema_metadata({"nbext": json.dumps(about)})
        pq.write_table(table, raw, compression="zstd")
        whole = raw.getvalue().to_pybytes()
        self.path = self.path.with_name(f"{self.path.name}-{checksum_of(whole)[:_DIGITS]}.parquet")
        with whole_file(self.path, mode=ORDINARY, flush=flush) as path:
            path.write_bytes(whole)

    @property
    def files(self) -> list[str]:
        """The names of its files that are ingested."""
        return [self.path.name] * self.path.name.startswith("blocks-") + self.rows

    @property
    def contracts(self) -> set[str]:
        """The contracts that were read."""
        return {contract for each in self.read for contract in each.contracts}

    def table(self) -> pa.Table:
        """Return the rows of a part in order, with the times of their blocks."""
        rows = pq.ParquetFile(self.path).read(use_threads=False).replace_schema_metadata()
        times = pa.array([seconds for _, seconds in self.blocks.values()], pa.int64())
        places = pc.index_in(rows["block"], pa.array(self.blocks, pa.int64()))
        return rows.append_column("time", times.take(places))

    def covers(self) -> list[LogFilter]:
        """Return what counts of what was read."""
        return [
            replace(each, last=min(each.last, self.end - 1))
            for each in self.read
            if each.first < self.end
        ]


@dataclass
class Coverage:
    """What is stored of one chain in a data folder; `open_coverage` locks it."""

    folder: Path
    chain: Chain
    steps: list[Stored] = field(default_factory=list)
    # By contract: what it said of itself, and its first block.
    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    deployed: dict[str, int | None] = field(default_factory=dict)
    # The files of the data, as it lists them, by their names: the folder may have been moved since.
    taken: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    # The first block that a reorganisation orphaned, from when that is seen to the ingest that replaces it.
    replacing: int = LAST_BLOCK + 1
    # The last block of which a part that came had another hash than what is stored.
    parted: int | None = None
    _known: dict[int, str] | None = None

    @property
    def parts(self) -> Path:
        """The folder of the ranges that are read and not ingested."""
        return self.folder / "parts"

    def covered(self, contract: str, topics: Sequence[str]) -> list[Range]:
        """Return the stored ranges of a contract for these events, in order, none touching another."""
        stored = (*self.steps, *self._parts())
        return blocks_of(contract, (each for one in stored for each in one.covers()), topics)

    def ingested(self) -> dict[int, str]:
        """Return the hashes of blocks that were ingested, which the chain must have."""
        return _hashes(self.steps)

    def known(self) -> dict[int, str]:
        """Return the hashes of all blocks that are stored: a new part must agree with them."""
        if self._known is None:
            self._known = _hashes((*self.steps, *self._parts()))
        return self._known

    def missing(self, steps: Iterable[Stored]) -> Iterator[tuple[int, str, tuple[str, ...]]]:
        """Yield the first block, contract and events of what steps have read and is not covered.

        The next run reads that, whichever it was asked for.
        """
        for each in _merged(each for step in steps for each in step.read):
            for contract in each.contracts:
                covered = self.covered(contract, each.topics)
                for first, _ in uncovered(each.first, each.last, covered):
                    yield first, contract, each.topics

    def in_parts(self) -> dict[str, tuple[str, ...]]:
        """Return the contracts of the parts, which a run that was killed has read, and their events."""
        return {
            contract: wanted.topics
            for part in self._parts()
            for wanted in part.read
            for contract in wanted.contracts
        }

    def complete(self, contract: str, topics: Sequence[str]) -> list[Range]:
        """Return the ranges of a contract as `covered`; before its deployment, where that is known, it has no event."""
        deployed = self.deployed.get(contract) or 0
        return [
            (0 if first <= deployed else first, last)
            for first, last in self.covered(contract, topics)
        ]

    def name_of(self, contract: str) -> str:
        """Return how people are told of a contract: by its symbol, and its address."""
        symbol = self.said.get(contract, {}).get("symbol") or "the contract"
        return f"{visible(symbol, 40)} ({checksummed(contract)})"

    def keep(self, wanted: LogFilter, blocks: Blocks, rows: Sequence[Row]) -> None:
        """Store a range as a part: the checkpoint.

        InconsistentAnswer: it does not follow the stored block before it, or the stored one after it does not follow.
        """
        known = self.known()
        if parted := [n for n, (found, _) in blocks.items() if known.get(n, found) != found]:
            self.parted = parted[0]
            raise InconsistentAnswer(
                f"Blocks {wanted.first:,} to {wanted.last:,} are of another branch than the stored ones: block "
                f"{parted[0]:,} is not the same.",
                meaning="BEHIND",
            )
        columns = list(zip(*rows, strict=True)) or [()] * len(_PART)
        shown = Counter(f"{contract} {standard}" for contract, *_, standard in rows if standard)
        part = Stored(self.parts / wanted.name, [wanted], blocks, shown)
        # Not flushed: of a part that a power cut takes, or cuts, the name is not its bytes', and it is read again.
        part.write(pa.table(columns, schema=_PART), flush=False)
        known.update(_hashes([part]))
        self.answers(wanted).unlink(missing_ok=True)

    def answers(self, wanted: LogFilter) -> Path:
        """Return where the answers of a range are written until it is a part."""
        return self.parts / f"{wanted.name}{SUFFIX}"

    def received(self) -> dict[Path, Range]:
        """Return the files of answers that a process has left that ended, and the first and last block of each."""
        found = {}
        for path in files_in(self.parts, f"*{SUFFIX}"):
            first, last, _ = path.stem.split("-")
            found[path] = int(first), int(last)
        return found

    def stored(
        self, contract: str, columns: Iterable[str], among: Iterable[Any], standard: str = "ERC721"
    ) -> Iterator[dict[str, Any]]:
        """Yield the stored rows that have one of some values in a column, each once; none that was orphaned since.

        The columns are those of a part. Transfers of ERC1155 are in files of another name.
        """
        files = "erc1155_transfers" if standard == "ERC1155" else "token_transfers"
        fields = {name: ds.field(column) for name, column in _FILES[files][1].items()}
        # Arrow knows no type of a list without values.
        if not (among := list(among)):
            return
        wanted = reduce(or_, (fields[column].isin(among) for column in columns))
        # A range is read again for more events.
        seen = set()
        for step in self.steps:
            covers = blocks_of(contract, step.covers())
            paths = [str(self.folder / name) for name in step.rows if name.startswith(files)]
            if not (covers and paths):
                continue
            # All files that one stands for are one scan: opened one by one, 5,000 took four times as long. As objects
            # of Python a step's rows are more than memory should hold.
            for batch in ds.dataset(paths).to_batches(
                columns=fields,
                filter=(fields["contract"] == contract) & wanted,
                batch_size=10_000,
                cache_metadata=False,
            ):
                for row in batch.to_pylist():
                    log = row["block"], row["log_index"], row["value"]
                    if log not in seen and any(a <= row["block"] <= b for a, b in covers):
                        seen.add(log)
                        yield row

    def forget(self, contract: str) -> None:
        """Cover nothing of a contract: its blocks are read again, and what they gave is taken out of the data then.

        One file says so of all its steps: killed, either all of them are read again or none.
        """
        if steps := [step for step in self.steps if blocks_of(contract, step.covers())]:
            self._as_one("again", steps).end = 0

    def drop_from(self, block: int) -> None:
        """Take everything from a block on out of what is covered: a reorganisation orphaned it.

        A process that follows a killed one finds that out again, by the hashes of what was ingested.
        """
        self.discard_parts(block)
        for step in self.steps:
            # Of parts alone nothing was ingested, and so nothing is replaced.
            if any(each.last >= block for each in step.covers()):
                step.end = block
                self.replacing = min(block, self.replacing)
        self.parted = None

    def fill_in(self, card: ContractMetadata) -> None:
        """Give a card what a contract said before, where the node does not say it now."""
        known = self.said.get(card.address, {})
        # Of the standard the logs tell.
        for name in card.unknown.keys() & known.keys() - {"standard"}:
            setattr(card, name, known[name])

    def discard_parts(self, block: int = 0) -> None:
        """Delete the parts that reach to a block: they are ingested, or read again."""
        for part in self._parts():
            if part.read[0].last >= block:
                part.path.unlink()
        self._known = None

    def only_those_in(self, entries: Iterable[Mapping[str, Any]]) -> set[str]:
        """Cover only what the data has: its files, each with its path and the block from which on it was replaced.

        Returns the contracts of which files were taken out of it.
        """
        self.taken = {Path(entry["path"]).name: entry for entry in entries}
        removed: list[Stored] = []
        of_many: set[str] = set()
        # In the order of their names: what many steps cover, or no longer do, is believed before each of them.
        for path in files_in(self.folder, "[ab]*-*"):
            if path.name in of_many:
                continue
            is_again = path.name.startswith("again-")
            if not _is_intact(path):
                # What the data has not taken is of no use, and what many steps cover each of them says.
                if path.name not in self.taken and not is_again:
                    continue
                raise StorageError(
                    f"{path} is damaged, or another version's. Move {self.folder} away: its blocks are read again, and "
                    "repeated rows skipped."
                )
            step = Stored.of(path)
            if is_again:
                step.end = 0
            elif self.taken.keys() >= set(step.files) and of_many.isdisjoint(step.files):
                of_step = (self.taken[name] for name in step.files)
                step.end = min(entry.get("replaced_from", step.end) for entry in of_step)
            else:
                removed.append(step)
                continue
            of_many.update(step.files)
            self.steps.append(step)
        lost = {contract for _, contract, _ in self.missing(removed)}
        # Read again is what is in parts alone, too: until they are ingested the data has the files from before.
        self.steps = [
            step
            for step in self.steps
            if step.end or self.taken.keys() & set(step.files) or any(self.missing([step]))
        ]
        # Joined by a process that was killed before they were ingested, or replaced: what they have is joined or read
        # anew. So is what stands for steps that are others now.
        names = self.taken.keys() | {step.path.name for step in self.steps}
        for path in self.folder.glob("*.parquet"):
            if path.name not in names:
                path.unlink()
        # What contracts said of themselves, in the order in which the data took the files.
        for path in map(self.folder.joinpath, self.taken):
            if path.name.startswith("tokens-") and path.exists():
                for row in pq.read_table(path, columns=_SAID).to_pylist():
                    self.said[row["address"]] = row
                    self.deployed[row["address"]] = row["deployed_block_number"]
        return lost

    def joined(self, cards: Sequence[ContractMetadata]) -> tuple[Stored | None, list[str]]:
        """Write the parts, and what contracts say of themselves, as files; return the step, and what to ingest.

        There may be contracts to ingest without a step, and nothing at all.
        """
        parts = self._parts()
        stored = [each for each in (*self.steps, *parts) if each.end]
        # Of old contracts only the logs tell: most of them, as a token may log one Transfer as a collection does.
        shown = dict(what.split() for what, _ in reversed(_shown(stored).most_common()))
        for card in cards:
            card.standard = card.standard or shown.get(card.address)
        step = None
        if parts:
            # By its parts, which are named by their bytes: what is joined again after a kill are the same files. What
            # is read again are others, whatever it is.
            again = (each for each in self.steps if not each.end)
            digest = checksum_of(*(each.path.name.encode() for each in (*parts, *again)))
            last = max(each.last for part in parts for each in part.read)
            place = f"{parts[0].read[0].first}-{last}-{digest[:12]}"
            step = _union(self.folder / f"blocks-{place}", parts, self._rows_of(parts, place))
        # Of contracts alone there would be data without a row.
        tokens = self._metadata(cards) if any(each.covers() for each in stored) else []
        return step, [str(self.folder / name) for name in (*(step.files if step else ()), *tokens)]

    def _as_one(self, kind: str, steps: Sequence[Stored]) -> Stored:
        """Have one file stand for steps, and return it."""
        one = _union(self.folder / kind, steps, [name for step in steps for name in step.files])
        for step in steps:
            self.steps.remove(step)
            if step.path.name not in self.taken:
                step.path.unlink()
        self.steps.append(one)
        return one

    def _rows_of(self, parts: Sequence[Stored], place: str) -> list[str]:
        """Write the rows of parts; return the names of the files."""
        with contextlib.ExitStack() as stack:
            writers: dict[str, pq.ParquetWriter] = {}
            # One part at a time: all rows of a step are more than memory should hold.
            for part in parts:
                rows = part.table()
                for kind in _FILES:
                    name, table = f"{kind}-{place}.parquet", _exported(rows, kind)
                    if table.num_rows and name not in writers:
                        # Also where one is there, of a process that was killed: it may have changed since. Its name
                        # is in it, as ingest knows files by their bytes: another step may have the same rows.
                        schema = table.schema.with_metadata({"nbext": name})
                        path = stack.enter_context(whole_file(self.folder / name, mode=ORDINARY))
                        writer = pq.ParquetWriter(path, schema, compression="zstd")
                        writers[name] = stack.enter_context(writer)
                    if table.num_rows:
                        writers[name].write_table(table)
            return list(writers)

    def commit(
        self, step: Stored | None, files: Sequence[str], cards: Sequence[ContractMetadata]
    ) -> None:
        """Count a step as covered: its files are ingested, with what contracts say of themselves."""
        self.said |= {card.address: self._said(card) for card in cards}
        self.taken |= {Path(name).name: {"path": name} for name in files}
        if step:
            self.steps.append(step)
            self.discard_parts()
            # Those of which nothing was replaced: of others it would be, wherever their files have a block. Of equal
            # contracts: where one of a file is forgotten, all of it is read again.
            whole = [
                each
                for each in self.steps
                if each.end > LAST_BLOCK and each.contracts == step.contracts
            ]
            if len(whole) > _STEPS:
                self._as_one("all", whole)

    def replaced_by(self, step: Stored | None) -> tuple[int | None, set[str]]:
        """Return what the ingest of a step takes out of the data: everything from a block on, and which files."""
        # Of contracts alone nothing comes instead, nor of a step that ends before what was orphaned.
        if step is None:
            return None, set()
        reaches = any(each.last >= self.replacing for each in step.read)
        names = {name for each in self.steps if not each.end for name in each.files}
        paths = {self.taken[name]["path"] for name in names & self.taken.keys()}
        return self.replacing if reaches else None, paths

    def _parts(self) -> list[Stored]:
        return [Stored.of(path) for path in files_in(self.parts, "[0-9]*.parquet")]

    def _said(self, card: ContractMetadata) -> dict[str, Any]:
        """Return what is stored of a contract; not the supply, which moves with each mint."""
        return {
            **{name: getattr(card, name, None) for name in _SAID},
            "decimals": card.decimals if card.standard in (None, "ERC20") else None,
            "deployed_block_number": self.deployed.get(card.address),
        }

    def _metadata(self, cards: Sequence[ContractMetadata]) -> list[str]:
        """Write what contracts say of themselves, where it is other than what was ingested before."""
        rows = [
            {**said, "total_supply": None if card.total_supply is None else str(card.total_supply)}
            for card in cards
            if self.said.get(card.address) != (said := self._said(card))
        ]
        if not rows:
            return []
        # With the names of those before, as ingest knows files by their bytes: a contract may say again what it said.
        before = [name for name in self.taken if name.startswith("tokens-")]
        tokens = Stored(self.folder / "tokens", [], {}, {}, before)
        tokens.write(pa.Table.from_pylist(rows, _TOKENS), flush=True)
        return [tokens.path.name]


@contextlib.contextmanager
def open_coverage(data_dir: Path, chain: Chain) -> Iterator[Coverage]:
    """Lend what is stored of a chain; no other process may fetch it meanwhile.

    StorageError: one does, a file is damaged, or the folder cannot be read or written.
    """
    folder = data_dir.expanduser().resolve() / "fetched" / chain.name
    with on_disk(folder):
        (folder / "parts").mkdir(parents=True, exist_ok=True)
        with exclusive(folder / ".lock"):
            # Of a process that was killed while it wrote.
            for left in folder.rglob(f".*{PART}"):
                left.unlink()
            for path in files_in(folder / "parts", "*.parquet"):
                # Its blocks are read again.
                if not _is_intact(path):
                    path.unlink()
            yield Coverage(folder, chain)


@contextlib.contextmanager
def on_disk(folder: Path) -> Iterator[None]:
    """Raise a `StorageError` where the folder cannot be read or written, or another process fetches into it."""
    try:
        yield
    except BlockingIOError:
        raise StorageError(
            f"{folder}: another `nbext fetch` is running there. Wait until it ends."
        ) from None
    except BrokenPipeError:  # of whoever reads what the fetch prints
        raise
    except OSError as error:
        raise DiskFull.where(
            error, f"{folder} cannot be read or written: {error.strerror or error}."
        ) from None


def _is_intact(path: Path) -> bool:
    """Return whether a file has the bytes that it was named by."""
    return path.stem.endswith(sha256_of(path)[:_DIGITS])


def _union(path: Path, stored: Sequence[Stored], rows: list[str]) -> Stored:
    """Write and return what parts or steps cover together."""
    read = _merged(each for one in stored for each in one.read)
    # In the order of their first blocks, back: of the one before it a part knows the hash alone, and another one may
    # have its time.
    blocks = {n: block for one in reversed(stored) for n, block in one.blocks.items()}
    recent = {n for each in read for n in (each.first - 1, each.last)}
    recent.update(sorted(blocks)[-_HASHES:])
    here = {n: block for n, block in blocks.items() if n in recent}
    one = Stored(path, read, here, _shown(stored), rows)
    timed = sorted((n, *block) for n, block in blocks.items() if block[1] is not None)
    table = pa.table(list(zip(*timed, strict=True)), names=["number", "hash", "timestamp"])
    one.write(table, flush=True)
    return one


def _hashes(stored: Iterable[Stored]) -> dict[int, str]:
    return {n: found for each in stored for n, (found, _) in each.blocks.items() if n < each.end}


def _shown(stored: Iterable[Stored]) -> Counter[str]:
    shown = Counter[str]()
    for each in stored:
        shown.update(each.shown)
    return shown


def union(ranges: Sequence[Range]) -> list[Range]:
    """Return the same blocks as ranges in order, none touching another.

    >>> union([(5, 9), (0, 4), (20, 30)])
    [(0, 9), (20, 30)]
    """
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def blocks_of(
    contract: str, filters: Iterable[LogFilter], topics: Sequence[str] = ()
) -> list[Range]:
    """Return the ranges of a contract in what was read, for some events at least, none touching another."""
    return union(
        [
            (each.first, each.last)
            for each in filters
            if contract in each.contracts and set(topics) <= set(each.topics)
        ]
    )


def _merged(filters: Iterable[LogFilter]) -> list[LogFilter]:
    """Return the same as fewer: those of the same contracts and events that touch are one."""
    kinds: dict[tuple[Any, Any], list[Range]] = {}
    for each in filters:
        kinds.setdefault((each.contracts, each.topics), []).append((each.first, each.last))
    return [LogFilter(*blocks, *kind) for kind, ranges in kinds.items() for blocks in union(ranges)]


def uncovered(first: int, last: int, covered: Sequence[Range]) -> list[Range]:
    """Return what of a range is not covered.

    >>> uncovered(0, 9, [(2, 3), (8, 20)])
    [(0, 1), (4, 7)]
    """
    found, at = [], first
    for begin, end in union(covered):
        if begin > last:
            break
        if begin > at:
            found.append((at, begin - 1))
        at = max(at, end + 1)
    return [*found, (at, last)] if at <= last else found


# As ethereum-etl names ERC20 and ERC721 rows; a token id is the value, as there.
_TOKEN_TRANSFERS = {
    "contract": "token_address",
    "sender": "from_address",
    "recipient": "to_address",
    "value": "value",
    "tx": "transaction_hash",
    "log_index": "log_index",
    "block": "block_number",
    "time": "block_timestamp",
}
# As Dune names the events of ERC1155, for which ethereum-etl has no table.
_ERC1155_TRANSFERS = {
    "contract": "contract_address",
    "tx": "evt_tx_hash",
    "log_index": "evt_index",
    "block": "evt_block_number",
    "time": "evt_block_time",
    "sender": "from",
    "recipient": "to",
    "value": "id",
    "count": "value",
}


# The files of a step: the standard of the rows that have a count, and the names of the columns. ERC-2309 mints many ids
# by one log: these are in a file of their own, in which a row is told from others of its log by its id.
_FILES = {
    "token_transfers": ("", _TOKEN_TRANSFERS),
    "token_transfers_consecutive": ("ERC721", {**_TOKEN_TRANSFERS, "count": "consecutive"}),
    "erc1155_transfers": ("ERC1155", _ERC1155_TRANSFERS),
}


def _exported(rows: pa.Table, name: str) -> pa.Table:
    """Return the rows of one of the files, as ingest and other tools read them."""
    standard, names = _FILES[name]
    # As arrays: an expression would be a plan of Arrow's, which held 30 MB for its threads from then on.
    shown = pc.if_else(rows["count"].is_valid(), rows["standard"], "")
    return (
        rows.filter(pc.equal(shown, standard))
        .select(list(names))
        .rename_columns(list(names.values()))
    )
