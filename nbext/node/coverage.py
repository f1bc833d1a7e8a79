"""Which blocks of which contracts are stored, in the files themselves.

    DATA/fetched/ethereum/parts/         each range as it was read, whole or absent: the checkpoint is the file
                                         *.answers: what a node answered of ranges that are not whole yet
    DATA/fetched/ethereum/*.parquet      the parts of a step together, as ingest and other tools read them
    DATA/fetched/ethereum/coverage.json  what each step's files cover, recent blocks' hashes, how balances compared

A range that was read is a part, in one rename; a process killed at any moment reads again only what was under way. A
step joins the parts, has them ingested, and only then counts them as covered: killed between, it joins the same parts
again into the same files, which ingest knows. Files that were taken out of the data cover nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nbext.core import strict_json
from nbext.core.addresses import checksummed
from nbext.core.atomic_files import ORDINARY, PART, files_in, sha256_of, whole_file, write_whole
from nbext.core.chains import Chain
from nbext.core.locks import exclusive
from nbext.core.untrusted_text import visible
from nbext.errors import DiskFull, StorageError
from nbext.node.contracts import ContractMetadata
from nbext.node.ranges import BlockRange, LogFilter, Row
from nbext.node.received import SUFFIX, checksum_of
from nbext.node.rpc import InconsistentAnswer

Range = tuple[int, int]
# Recent blocks whose hashes are stored, to find where a reorganisation began.
_HASHES = 512
# Blocks that a step may cover, those of each contract counted, for the next one to be counted with it.
_SMALL_STEP = 10_000
# Of its SHA-256, at the end of a part's name.
_DIGITS = 16
_NUMBERS = {"place", "log_index", "block", "decimals", "deployed_block_number"}


def _schema(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int64() if name in _NUMBERS else pa.string()) for name in names])


# The columns of a part, as `Row` has them, and of what contracts say of themselves.
_PART = _schema(
    "contract",
    "sender",
    "recipient",
    "value",
    "count",
    "place",
    "tx",
    "log_index",
    "block",
    "standard",
)
_TOKENS = _schema(
    "address",
    "symbol",
    "name",
    "decimals",
    "total_supply",
    "standard",
    "deployed_block_number",
)
# What coverage.json has of a `Coverage`, and of a contract as it describes itself.
_SAVED = ("steps", "hashes", "about", "replacing", "replaced")
_CARD = ("standard", "name", "symbol", "decimals")


@dataclass
class IngestStep:
    """The files of one step, what they cover, and what they covered when they were ingested."""

    files: list[str]
    covers: list[LogFilter]
    read: list[LogFilter] = field(default_factory=list)

    def cut(self, block: int) -> set[str]:
        """Cover nothing from a block on, and return the contracts of which something was."""
        lost = {
            contract for each in self.covers if each.last >= block for contract in each.contracts
        }
        self.covers = [
            replace(each, last=min(each.last, block - 1))
            for each in self.covers
            if each.first < block
        ]
        return lost

    def took_in(self, step: IngestStep) -> bool:
        """Be both steps, where they are small: a chain that is followed has thousands a day.

        Where a file of a step is taken out of the data, all that it covers is read again.
        """
        many = sum(each.blocks * len(each.contracts) for each in (*self.read, *step.covers))
        if many > _SMALL_STEP or self.covers != self.read:
            return False
        self.files += step.files
        self.covers = _merged([*self.covers, *step.covers])
        return True


@dataclass
class Coverage:
    """What is stored of one chain in a data folder; `open_coverage` locks it."""

    folder: Path
    chain: Chain
    steps: list[IngestStep] = field(default_factory=list)
    hashes: dict[int, str] = field(default_factory=dict)
    # By contract: what it said of itself, rows by the standard that they show, its first block, how balances compared.
    about: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Set between the moment when a reorganisation is seen and the ingest that replaces what it orphaned.
    replacing: int | None = None
    # The files of steps that are read again: the ingest of what comes instead takes them out of the data.
    replaced: list[str] = field(default_factory=list)
    # The last block of which a part that came had another hash than what is stored.
    parted: int | None = None
    _known: dict[int, str] | None = None

    @property
    def parts(self) -> Path:
        """The folder of the ranges that are read and not ingested."""
        return self.folder / "parts"

    def covered(self, contract: str, topics: Sequence[str]) -> list[Range]:
        """Return the stored ranges of a contract for these events, in order, none touching another."""
        parts = (part.wanted for part in self._parts())
        steps = (each for step in self.steps for each in step.covers)
        return blocks_of(contract, (*steps, *parts), topics)

    def known(self) -> dict[int, str]:
        """Return the hashes of blocks that are stored, which the chain must have, and a new part agree with."""
        if self._known is None:
            self._known = dict(self.hashes)
            for part in self._parts():
                self._known |= part.chain()
        return self._known

    def owed(self) -> dict[str, tuple[int, tuple[str, ...]]]:
        """Return the contracts that steps have read more of than is covered now: from which block on, and what events.

        The next run reads that, whichever it was asked for.
        """
        missing = [
            (gap, contract, each.topics)
            for step in self.steps
            for each in step.read
            for contract in each.contracts
            for gap in uncovered(each.first, each.last, self.covered(contract, each.topics))
        ]
        # The first block of each contract is the last to be taken.
        return {contract: (first, topics) for (first, _), contract, topics in sorted(missing)[::-1]}

    def in_parts(self) -> dict[str, tuple[str, ...]]:
        """Return the contracts of the parts, which a run that was killed has read, and their events."""
        return {
            contract: part.wanted.topics
            for part in self._parts()
            for contract in part.wanted.contracts
        }

    def complete(self, contract: str, topics: Sequence[str]) -> list[Range]:
        """Return the ranges of a contract as `covered`; before its deployment, where that is known, it has no event."""
        deployed = self.about.get(contract, {}).get("deployed") or 0
        return [
            (0 if first <= deployed else first, last)
            for first, last in self.covered(contract, topics)
        ]

    def symbols(self) -> dict[str, str]:
        """Return the symbols of the contracts that were fetched, by address."""
        return {
            address: symbol
            for address, said in self.about.items()
            if (symbol := said.get("card", {}).get("symbol"))
        }

    def name_of(self, contract: str) -> str:
        """Return how people are told of a contract: by its symbol, and its address."""
        symbol = self.symbols().get(contract, "the contract")
        return f"{visible(symbol, 40)} ({checksummed(contract)})"

    def keep(self, window: BlockRange, rows: Sequence[Row]) -> None:
        """Store a range as a part: the checkpoint.

        InconsistentAnswer: it does not follow the stored block before it, or the stored one after it does not follow.
        """
        chain, wanted = window.chain(), window.wanted
        if parted := [n for n, found in chain.items() if self.known().get(n, found) != found]:
            self.parted = parted[0]
            raise InconsistentAnswer(
                f"Blocks {wanted.first:,} to {wanted.last:,} are of another branch than the stored ones: block "
                f"{parted[0]:,} is not the same.",
                meaning="BEHIND",
            )
        columns = zip(*rows, strict=True) if rows else ((),) * len(_PART)
        arrays = [pa.array(column, each.type) for column, each in zip(columns, _PART, strict=True)]
        about = json.dumps({**asdict(window), "blocks": list(window.blocks.items())})
        raw = pa.BufferOutputStream()
        table = pa.table(arrays, schema=_PART).replace_schema_metadata({"nbext": about})
        pq.write_table(table, raw, compression="zstd")
        whole = raw.getvalue().to_pybytes()
        name = f"{wanted.name}-{checksum_of(whole)[:_DIGITS]}.parquet"
        # Not flushed: of a part that a power cut takes, or cuts, the name is not its bytes', and it is read again.
        with whole_file(self.parts / name, mode=ORDINARY, flush=False) as path:
            path.write_bytes(whole)
        self.known().update(chain)
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
        self, contract: str, column: str, among: Iterable[Any], files: str = "token_transfers"
    ) -> Iterator[dict[str, Any]]:
        """Yield the stored rows that have one of some values in a column, each once; none that was orphaned since.

        The columns are those of a part. Transfers of ERC1155 are in ``files`` of another name.
        """
        _, names = _FILES[files]
        # Arrow knows no type of a list without values.
        if not (among := list(among)):
            return
        where = [(names["contract"], "=", contract), (names[column], "in", among)]
        # A range is read again for more events.
        seen = set()
        for step in self.steps:
            covers = blocks_of(contract, step.covers)
            for path in step.files if covers else ():
                if not Path(path).name.startswith(files):
                    continue
                rows = pq.read_table(path, columns=list(names.values()), filters=where)
                # As objects of Python a step's rows are more than memory should hold.
                for batch in rows.rename_columns(list(names)).to_batches(10_000):
                    for row in batch.to_pylist():
                        log = row["block"], row["log_index"], row["value"]
                        if log not in seen and any(a <= row["block"] <= b for a, b in covers):
                            seen.add(log)
                            yield row

    def forget(self, contract: str) -> None:
        """Cover nothing of a contract: its blocks are read again, and what they gave is taken out of the data then."""
        for step in self.steps:
            if blocks_of(contract, step.covers):
                # What contracts say of themselves stays.
                self.replaced += [
                    path for path in step.files if not Path(path).name.startswith("tokens-")
                ]
                step.files = []
                step.cut(0)
        self.about[contract].pop("shown", None)
        self.save()

    def drop_from(self, block: int) -> None:
        """Take everything from a block on out of what is covered: a reorganisation orphaned it."""
        self.discard_parts(block)
        for step in self.steps:
            # Of parts alone nothing was ingested, and so nothing is replaced.
            if step.cut(block):
                self.replacing = block if self.replacing is None else min(block, self.replacing)
        self.hashes = {number: found for number, found in self.hashes.items() if number < block}
        self.parted = None
        self.save()

    def fill_in(self, card: ContractMetadata) -> None:
        """Give a card what a contract said before, where the node does not say it now."""
        known = self.about.get(card.address, {}).get("card", {})
        # Of the standard the logs tell.
        for name in card.unknown.keys() & known.keys() - {"standard"}:
            setattr(card, name, known[name])

    def discard_parts(self, block: int = 0) -> None:
        """Delete the parts that reach to a block: they are ingested, or read again."""
        for part in self._parts():
            if part.wanted.last >= block:
                part.path.unlink()
        self._known = None

    def only_those_in(self, taken: Mapping[str, int | None]) -> list[str]:
        """Cover only what the data still has; ``taken`` are its files, and from which block on each was replaced.

        Returns the contracts that lost something.
        """
        lost: set[str] = set()
        for step in self.steps:
            # A replacement of our own has been counted before.
            cuts = [block for path in step.files if (block := taken.get(path, 0)) is not None]
            if cuts:
                lost.update(step.cut(min(cuts)))
        self.steps = [step for step in self.steps if step.covers or taken.keys() >= set(step.files)]
        # Joined by a process that was killed before they were ingested: what they have is joined anew.
        ours = {name for step in self.steps for name in step.files}
        for path in self.folder.glob("*.parquet"):
            if str(path) not in ours and str(path) not in taken:
                path.unlink()
        return sorted(lost)

    def joined(self, cards: Sequence[ContractMetadata]) -> IngestStep | None:
        """Write the parts together as files for ingest, and return them; None where there is nothing to ingest."""
        parts = self._parts()
        step = IngestStep([], _merged([part.wanted for part in parts]))
        shown: dict[str, Counter[str]] = {}
        for part in parts:
            counted = part.rows().group_by(["contract", "standard"]).aggregate([([], "count_all")])
            for one in counted.to_pylist():
                if one["standard"]:
                    of = shown.setdefault(one["contract"], Counter())
                    of[one["standard"]] += one["count_all"]
        for card in cards:
            # Of old contracts only the logs tell: most of them, as a token may log one Transfer as a collection does.
            card.shown = Counter(self.about.get(card.address, {}).get("shown"))
            card.shown.update(shown.get(card.address))
            if card.shown and not card.standard:
                card.standard = card.shown.most_common(1)[0][0]
        if parts:
            step.files += self._rows_of(parts)
        # Of contracts alone there would be data without a row.
        if parts or any(one.covers for one in self.steps):
            step.files += self._metadata(cards)
        return step if step.files else None

    def _rows_of(self, parts: Sequence[_Part]) -> list[str]:
        """Write the rows of parts, and their blocks."""
        blocks = {number: block for part in parts for number, block in part.blocks.items()}
        # By its parts, which are named by their bytes: what is joined again after a kill is the same file.
        digest = checksum_of(*(part.path.name.encode() for part in parts))
        last = max(part.wanted.last for part in parts)
        place = f"{parts[0].wanted.first}-{last}-{digest[:12]}"
        of_blocks = pa.Table.from_pylist(
            [
                {"number": number, "hash": found, "timestamp": seconds}
                for number, (found, seconds) in sorted(blocks.items())
            ]
        )
        files = [self._write(f"blocks-{place}", [of_blocks])]
        for name in _FILES:
            # One part at a time: all rows of a step are more than memory should hold.
            tables = (_exported(part.rows(), name) for part in parts)
            if first := next((table for table in tables if table.num_rows), None):
                files.append(self._write(f"{name}-{place}", itertools.chain([first], tables)))
        return files

    def commit(self, step: IngestStep, cards: Sequence[ContractMetadata]) -> None:
        """Count a step as covered: its files are ingested, with what contracts say of themselves."""
        if not (self.steps and self.steps[-1].took_in(step)):
            self.steps.append(step)
        self.steps[-1].read = self.steps[-1].covers
        found = self.known()
        # What comes before or after a covered range must be linked to it.
        ends = {
            edge
            for known in self.steps
            for each in known.covers
            for edge in (each.first - 1, each.last)
        }
        recent = sorted(found)[-_HASHES:]
        self.hashes = {n: found[n] for n in sorted(ends.union(recent)) if n in found}
        for card in cards:
            known = self.about.setdefault(card.address, {})
            known["card"], known["shown"] = _said(card), card.shown
        self.replacing, self.replaced = None, []
        self.save()
        self.discard_parts()

    def save(self) -> None:
        """Write coverage.json, in one step."""
        known = {name: getattr(self, name) for name in _SAVED}
        known["steps"] = [asdict(step) for step in self.steps]
        proved = {**known, "sha256": checksum_of(json.dumps(known).encode())}
        write_whole(self.folder / "coverage.json", json.dumps(proved))

    def _parts(self) -> list[_Part]:
        return [_Part.of(path) for path in files_in(self.parts, "[0-9]*.parquet")]

    def _metadata(self, cards: Sequence[ContractMetadata]) -> list[str]:
        """Write what contracts say of themselves, where it is other than what was ingested before."""
        changed = [
            card for card in cards if self.about.get(card.address, {}).get("card") != _said(card)
        ]
        if not changed:
            return []
        tokens = pa.Table.from_pylist(
            [
                {
                    **asdict(card),
                    "decimals": card.decimals if card.standard in (None, "ERC20") else None,
                    "total_supply": None if card.total_supply is None else str(card.total_supply),
                    "deployed_block_number": self.about.get(card.address, {}).get("deployed"),
                }
                for card in changed
            ],
            _TOKENS,
        )
        return [
            self._write(f"tokens-{checksum_of(repr(tokens.to_pydict()).encode())[:12]}", [tokens])
        ]

    def _write(self, name: str, tables: Iterable[pa.Table]) -> str:
        """Write tables of one schema to a file, one after the other."""
        path = self.folder / f"{name}.parquet"
        # Also where one is there, of a process that was killed: it may have changed since.
        with whole_file(path, mode=ORDINARY) as part, contextlib.ExitStack() as stack:
            writer = None
            for table in tables:
                writer = writer or stack.enter_context(
                    pq.ParquetWriter(part, table.schema, compression="zstd")
                )
                writer.write_table(table)
        return str(path)


def _said(card: ContractMetadata) -> dict[str, str | int | None]:
    # Not the supply, which moves with each mint.
    return {name: getattr(card, name) for name in _CARD}


@dataclass(frozen=True)
class _Part(BlockRange):
    path: Path

    @staticmethod
    def of(path: Path) -> _Part:
        known = json.loads(pq.read_schema(path).metadata[b"nbext"])
        wanted, blocks = LogFilter.of(known["wanted"]), dict(known["blocks"])
        return _Part(wanted, known["parent"], blocks, path)

    @staticmethod
    def is_intact(path: Path) -> bool:
        """Return whether a file has the bytes that it was named by."""
        return path.stem.endswith(sha256_of(path)[:_DIGITS])

    def rows(self) -> pa.Table:
        """Return its rows in order, with the times of their blocks."""
        rows = pq.read_table(self.path, schema=_PART).replace_schema_metadata()
        times = [self.blocks[number][1] for number in rows["block"].to_pylist()]
        return rows.append_column("time", pa.array(times, pa.int64()))


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
            for left in (*folder.glob(f".*{PART}"), *folder.glob(f"parts/.*{PART}")):
                left.unlink()
            for path in files_in(folder / "parts", "*.parquet"):
                # Its blocks are read again.
                if not _Part.is_intact(path):
                    path.unlink()
            yield _read(folder, chain)


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


def _read(folder: Path, chain: Chain) -> Coverage:
    path = folder / "coverage.json"
    if not path.exists():
        return Coverage(folder, chain)
    try:
        known = strict_json.parse(path.read_text("utf-8"))
        if known.pop("sha256") == checksum_of(json.dumps(known).encode()):
            known["steps"] = [
                IngestStep(
                    one["files"],
                    *([LogFilter.of(each) for each in one[name]] for name in ("covers", "read")),
                )
                for one in known["steps"]
            ]
            known["hashes"] = {int(n): found for n, found in known["hashes"].items()}
            return Coverage(folder, chain, **known)
    except (strict_json.NotJson, KeyError, TypeError, ValueError, AttributeError):
        pass
    raise StorageError(
        f"{path} is damaged. Move {folder} away: its blocks are read again, and repeated rows skipped."
    )


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


def _merged(filters: Sequence[LogFilter]) -> list[LogFilter]:
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
_FILES: dict[str, tuple[str | None, dict[str, str]]] = {
    "token_transfers": (None, _TOKEN_TRANSFERS),
    "token_transfers_consecutive": ("ERC721", {**_TOKEN_TRANSFERS, "count": "consecutive"}),
    "erc1155_transfers": ("ERC1155", _ERC1155_TRANSFERS),
}


def _exported(rows: pa.Table, name: str) -> pa.Table:
    """Return the rows of one of the files, as ingest and other tools read them."""
    (standard, names), count = _FILES[name], pc.field("count")
    of_file = (pc.field("standard") == standard) & count.is_valid() if standard else count.is_null()
    return rows.filter(of_file).select(list(names)).rename_columns(list(names.values()))
