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
from dataclasses import asdict, dataclass, field
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
from nbext.node.ranges import BlockRange, LogFilter, RangeTask
from nbext.node.received import SUFFIX, Received, checksum_of, range_of
from nbext.node.rpc import InconsistentAnswer

Range = tuple[int, int]
# Recent blocks whose hashes are stored, to find where a reorganisation began.
_HASHES = 512
# Blocks that a step may cover, those of each contract counted, for the next one to be counted with it.
_SMALL_STEP = 10_000
# Of its SHA-256, at the end of a part's name.
_DIGITS = 16
_PART = pa.schema(
    {
        "contract": pa.string(),
        "sender": pa.string(),
        "recipient": pa.string(),
        "value": pa.string(),
        "count": pa.string(),
        "place": pa.int32(),
        "tx": pa.string(),
        "log_index": pa.int64(),
        "block": pa.int64(),
        "standard": pa.string(),
    }
)

_TOKENS = pa.schema(
    [
        *((name, pa.string()) for name in ("address", "symbol", "name")),
        ("decimals", pa.int64()),
        *((name, pa.string()) for name in ("total_supply", "standard")),
        ("deployed_block_number", pa.int64()),
    ]
)


# What coverage.json has of a `Coverage`, and of a contract's card.
_SAVED = ("steps", "hashes", "about", "replacing", "replaced")
_CARD = ("standard", "name", "symbol", "decimals")


@dataclass
class IngestStep:
    """The files of one step, and the ranges of each contract that they cover; ``events`` are the topics asked for."""

    files: list[str]
    covers: dict[str, list[Range]]
    events: dict[str, list[str]]
    # What they covered when they were ingested.
    read: dict[str, list[Range]] = field(default_factory=dict)
    # Rows of each contract by the standard that their logs show; of none where they show none.
    shown: dict[str, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # JSON has lists.
        self.covers, self.read = (
            {contract: [(first, last) for first, last in each] for contract, each in known.items()}
            for known in (self.covers, self.read)
        )

    def took_in(self, step: IngestStep) -> bool:
        """Be both steps, where they are small: a chain that is followed has thousands a day.

        Where a file of a step is taken out of the data, all that it covers is read again.
        """
        both = itertools.chain(*self.read.values(), *step.covers.values())
        many = sum(last - first + 1 for first, last in both)
        if many > _SMALL_STEP or self.events != step.events or self.covers != self.read:
            return False
        self.files += step.files
        for contract, ranges in step.covers.items():
            self.covers[contract] = union([*self.covers[contract], *ranges])
            shown = Counter(self.shown.get(contract)) + Counter(step.shown.get(contract))
            self.shown[contract] = dict(shown)
        return True


@dataclass
class Coverage:
    """What is stored of one chain in a data folder; `open_coverage` locks it."""

    folder: Path
    chain: Chain
    steps: list[IngestStep] = field(default_factory=list)
    hashes: dict[int, str] = field(default_factory=dict)
    # By contract: what it said of itself, its first block, and how balances compared.
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
        asked = set(topics)
        ranges = [
            each
            for step in self.steps
            if asked <= set(step.events.get(contract, ()))
            for each in step.covers.get(contract, ())
        ]
        ranges += [
            (part.first, part.last)
            for part in self._parts()
            if contract in part.wanted.contracts and asked <= set(part.wanted.topics)
        ]
        return union(ranges)

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
        found: dict[str, tuple[int, tuple[str, ...]]] = {}
        for step in self.steps:
            for contract, ranges in step.read.items():
                topics = tuple(step.events[contract])
                covered = self.covered(contract, topics)
                for first, _ in (gap for each in ranges for gap in uncovered(*each, covered)):
                    if contract not in found or first < found[contract][0]:
                        found[contract] = first, topics
        return found

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
            address: card[2]
            for address, said in self.about.items()
            if (card := said.get("card")) and card[2]
        }

    def name_of(self, contract: str) -> str:
        """Return how people are told of a contract: by its symbol, and its address."""
        symbol = self.symbols().get(contract, "the contract")
        return f"{visible(symbol, 40)} ({checksummed(contract)})"

    def keep(self, window: BlockRange, wanted: LogFilter) -> None:
        """Store a range as a part: the checkpoint.

        InconsistentAnswer: it does not follow the stored block before it, or the stored one after it does not follow.
        """
        chain = _linked(
            window.first, window.parent, {n: known for n, (known, _) in window.blocks.items()}
        )
        if parted := [n for n, found in chain.items() if self.known().get(n, found) != found]:
            self.parted = parted[0]
            raise InconsistentAnswer(
                f"Blocks {window.first:,} to {window.last:,} are of another branch than the stored ones: block "
                f"{parted[0]:,} is not the same.",
                meaning="BEHIND",
            )
        columns = zip(*window.rows, strict=True) if window.rows else ((),) * len(_PART)
        table = pa.table(
            [pa.array(column, each.type) for column, each in zip(columns, _PART, strict=True)],
            schema=_PART,
        )
        known = {
            "first": window.first,
            "last": window.last,
            "contracts": wanted.contracts,
            "topics": wanted.topics,
            "parent": window.parent,
            "blocks": sorted((number, *block) for number, block in window.blocks.items()),
        }
        raw = pa.BufferOutputStream()
        table = table.replace_schema_metadata({"nbext": json.dumps(known)})
        pq.write_table(table, raw, compression="zstd")
        whole = raw.getvalue().to_pybytes()
        digest = checksum_of(whole)[:_DIGITS]
        answers = self._answers(wanted, window.first, window.last)
        # Not flushed: of a part that a power cut takes, or cuts, the name is not its bytes', and it is read again.
        with whole_file(
            answers.with_name(f"{answers.stem}-{digest}.parquet"), mode=ORDINARY, flush=False
        ) as path:
            path.write_bytes(whole)
        self.known().update(chain)
        answers.unlink(missing_ok=True)

    def receiving(self, wanted: LogFilter, first: int, last: int) -> Received:
        """Return where the answers of a range are written until it is a part."""
        of = {"contracts": wanted.contracts, "topics": wanted.topics, "first": first, "last": last}
        return Received(self._answers(wanted, first, last), of)

    def _answers(self, wanted: LogFilter, first: int, last: int) -> Path:
        return self.parts / f"{first:012d}-{last:012d}-{wanted.digest}{SUFFIX}"

    def received(self) -> list[RangeTask]:
        """Return the ranges of which a process that ended has left answers."""
        found = []
        for path in files_in(self.parts, f"*{SUFFIX}"):
            if known := range_of(path):
                wanted = LogFilter(tuple(known["contracts"]), tuple(known["topics"]))
                found.append((wanted, known["first"], known["last"]))
            else:
                path.unlink()
        return found

    def stored(
        self, contract: str, column: str, among: Iterable[Any], files: str = "token_transfers"
    ) -> Iterator[dict[str, Any]]:
        """Yield the stored rows that have one of some values in a column, each once; none that was orphaned since.

        The columns are those of a part. Transfers of ERC1155 are in ``files`` of another name.
        """
        names = _ERC1155_TRANSFERS if files.startswith("erc1155") else _TOKEN_TRANSFERS
        # Arrow knows no type of a list without values.
        if not (among := list(among)):
            return
        where = [(names["contract"], "=", contract), (names[column], "in", among)]
        # A range is read again for more events.
        seen = set()
        for step in self.steps:
            covers = step.covers.get(contract, ())
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
            if step.covers.get(contract):
                # What contracts say of themselves stays.
                self.replaced += [
                    path for path in step.files if not Path(path).name.startswith("tokens-")
                ]
                step.files, step.covers, step.shown = [], {}, {}
        self.save()

    def drop_from(self, block: int) -> None:
        """Take everything from a block on out of what is covered: a reorganisation orphaned it."""
        self.discard_parts(block)
        for step in self.steps:
            covers = {contract: _below(ranges, block) for contract, ranges in step.covers.items()}
            # Of parts alone nothing was ingested, and so nothing is replaced.
            if covers != step.covers:
                self.replacing = block if self.replacing is None else min(block, self.replacing)
            step.covers = covers
        self.hashes = {number: found for number, found in self.hashes.items() if number < block}
        self.parted = None
        self.save()

    def fill_in(self, card: ContractMetadata) -> None:
        """Give a card what a contract said before, where the node does not say it now."""
        for name, value in zip(
            _CARD, self.about.get(card.address, {}).get("card", ()), strict=False
        ):
            if name in card.unknown and name != "standard":
                setattr(card, name, value)

    def discard_parts(self, block: int = 0) -> None:
        """Delete the parts that reach to a block: they are ingested, or read again."""
        for part in self._parts():
            if part.last >= block:
                part.path.unlink()
        self._known = None

    def only_those_in(self, taken: Mapping[str, int | None]) -> list[str]:
        """Cover only what the data still has; ``taken`` are its files, and from which block on each was replaced.

        Returns the contracts that lost something.
        """
        lost: set[str] = set()
        for step in self.steps:
            missing = any(name not in taken for name in step.files)
            cuts = [cut for name in step.files if (cut := taken.get(name)) is not None]
            kept = {
                contract: [] if missing else _below(ranges, min(cuts)) if cuts else ranges
                for contract, ranges in step.covers.items()
            }
            # A replacement of our own has been counted before.
            lost |= {
                contract for contract, ranges in kept.items() if ranges != step.covers[contract]
            }
            step.covers = kept
        self.steps = [
            step
            for step in self.steps
            if any(step.covers.values()) or taken.keys() >= set(step.files)
        ]
        # Joined by a process that was killed before they were ingested: what they have is joined anew.
        ours = {name for step in self.steps for name in step.files}
        for path in self.folder.glob("*.parquet"):
            if str(path) not in ours and str(path) not in taken:
                path.unlink()
        return sorted(lost)

    def joined(self, cards: Sequence[ContractMetadata]) -> IngestStep | None:
        """Write the parts together as files for ingest, and return them; None where there is nothing to ingest."""
        parts = self._parts()
        step = IngestStep([], {}, {})
        for part in parts:
            for contract in part.wanted.contracts:
                covers, events = step.covers.get(contract, ()), part.wanted.topics
                step.covers[contract] = union([*covers, (part.first, part.last)])
                # Those of which all blocks were read: a run that was killed may have been asked for fewer.
                step.events[contract] = sorted({*step.events.get(contract, events)} & {*events})
            shown = part.rows().group_by(["contract", "standard"]).aggregate([([], "count_all")])
            for one in shown.to_pylist():
                of = step.shown.setdefault(one["contract"], {})
                if one["standard"]:
                    of[one["standard"]] = of.get(one["standard"], 0) + one["count_all"]
        if parts:
            step.files += self._rows_of(parts)
        # Of contracts alone there would be data without a row.
        if parts or any(one.covers for one in self.steps):
            step.files += self._metadata(cards, step)
        return step if step.files else None

    def _rows_of(self, parts: Sequence[_Part]) -> list[str]:
        """Write the rows of parts, and their blocks."""
        blocks = {number: block for part in parts for number, *block in part.blocks}
        # By its parts, which are named by their bytes: what is joined again after a kill is the same file.
        digest = checksum_of(*(part.path.name.encode() for part in parts))
        place = f"{parts[0].first}-{max(part.last for part in parts)}-{digest[:12]}"
        numbers = sorted(blocks)
        of_blocks = pa.table(
            {
                "number": numbers,
                "hash": [blocks[number][0] for number in numbers],
                "timestamp": [blocks[number][1] for number in numbers],
            }
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
        self.steps[-1].read = dict(self.steps[-1].covers)
        found = self.known()
        # What comes before or after a covered range must be linked to it.
        ends = {
            edge
            for each in self.steps
            for ranges in each.covers.values()
            for first, last in ranges
            for edge in (first - 1, last)
        }
        recent = sorted(found)[-_HASHES:]
        self.hashes = {n: found[n] for n in sorted(ends.union(recent)) if n in found}
        for card in cards:
            self.about.setdefault(card.address, {})["card"] = _said(card)
        self.replacing, self.replaced = None, []
        self.save()
        self.discard_parts()

    def save(self) -> None:
        """Write coverage.json, in one step."""
        known = {"chain_id": self.chain.id, **{name: getattr(self, name) for name in _SAVED}}
        known["steps"] = [asdict(step) for step in self.steps]
        proved = {**known, "sha256": checksum_of(json.dumps(known).encode())}
        write_whole(self.folder / "coverage.json", json.dumps(proved))

    def _parts(self) -> list[_Part]:
        return [_Part.of(path) for path in files_in(self.parts, "[0-9]*.parquet")]

    def _metadata(self, cards: Sequence[ContractMetadata], fresh: IngestStep) -> list[str]:
        """Write what contracts say of themselves, where it is other than what was ingested before."""
        for card in cards:
            # Of old contracts only the logs tell: most of them, as a token may log one Transfer as a collection does.
            shown = Counter[str]()
            for step in (*self.steps, fresh):
                shown.update(step.shown.get(card.address, {}))
            card.standard = card.standard or max(shown, key=lambda each: shown[each], default=None)
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


def _said(card: ContractMetadata) -> list[str | int | None]:
    # Not the supply, which moves with each mint.
    return [getattr(card, name) for name in _CARD]


@dataclass(frozen=True)
class _Part:
    path: Path
    first: int
    last: int
    wanted: LogFilter
    blocks: list[tuple[int, str, int]]
    parent: str

    @staticmethod
    def of(path: Path) -> _Part:
        known = json.loads(pq.read_schema(path).metadata[b"nbext"])
        wanted = LogFilter(tuple(known.pop("contracts")), tuple(known.pop("topics")))
        return _Part(path, wanted=wanted, **known)

    def chain(self) -> dict[int, str]:
        """Return the hashes of its blocks that are stored, and of the one before its first."""
        return _linked(self.first, self.parent, {n: known for n, known, _ in self.blocks})

    @staticmethod
    def is_intact(path: Path) -> bool:
        """Return whether a file has the bytes that it was named by."""
        return path.stem.endswith(sha256_of(path)[:_DIGITS])

    def rows(self) -> pa.Table:
        """Return its rows in order, with the times of their blocks."""
        times = {number: seconds for number, _, seconds in self.blocks}
        rows = pq.read_table(self.path, schema=_PART).replace_schema_metadata()
        return rows.append_column(
            "time", pa.array([times[n] for n in rows["block"].to_pylist()], pa.int64())
        )


def _linked(first: int, parent: str, hashes: dict[int, str]) -> dict[int, str]:
    """Return the hashes of a range's blocks, and of the one before it, where there is one."""
    return {first - 1: parent, **hashes} if first else hashes


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
            known["steps"] = [IngestStep(**one) for one in known["steps"]]
            known["hashes"] = {int(n): found for n, found in known["hashes"].items()}
            del known["chain_id"]
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


def _below(ranges: Sequence[Range], block: int) -> list[Range]:
    """Return the part of ranges below a block."""
    return [(first, min(last, block - 1)) for first, last in ranges if first < block]


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


# The files of a step, by the standard of the rows that have a count. ERC-2309 mints many ids by one log: these are in a
# file of their own, in which a row is told from others of its log by its id.
_FILES = {
    "token_transfers": None,
    "token_transfers_consecutive": "ERC721",
    "erc1155_transfers": "ERC1155",
}


def _exported(rows: pa.Table, name: str) -> pa.Table:
    """Return the rows of one of the files, as ingest and other tools read them."""
    standard, count = _FILES[name], pc.field("count")
    of_file = count.is_valid() & (pc.field("standard") == standard)
    some = rows.filter(of_file if standard else count.is_null())
    names = _ERC1155_TRANSFERS if standard == "ERC1155" else _TOKEN_TRANSFERS
    if standard == "ERC721":
        names = {**names, "count": "consecutive"}
    return some.select(list(names)).rename_columns(list(names.values()))
