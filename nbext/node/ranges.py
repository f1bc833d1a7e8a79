"""One range of blocks: its logs and headers, checked against each other before any row is used.

A node behind a balancer, pruned or broken answers with too little as readily as with an error. So the headers of the
first and the last block are asked of the same node, and each header between them must name the one before; each log
must be of the range, the contracts and the block that its header's hash names; and a header's bloom filter, which says
what a block may hold, is held against what came of it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import groupby, pairwise, product
from operator import attrgetter, or_
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from Crypto.Hash import keccak

from nbext.core.addresses import ADDRESS_PATTERN
from nbext.core.untrusted_text import visible
from nbext.errors import NodeError
from nbext.node.contracts import Unreadable, decode_transfer
from nbext.node.limits import Meaning
from nbext.node.received import checksum_of
from nbext.node.rpc import LAST_BLOCK, InconsistentAnswer, Node, Refusal, quantity

# So near to the end of what is read each block that may hold more is looked into, and its hash stored: that is where
# nodes differ, and blocks are orphaned.
NEAR = 64
# Headers that are asked for before they are looked at.
_PIECE = 200
# Rows of one range, in memory; of one block there may not be more.
MOST_ROWS = 500_000
# Refusals of a range that a shorter one, or one of fewer contracts, may pass.
TOO_MUCH = (Meaning.LESS, Meaning.TIMEOUT)
_HASH = re.compile("0x[0-9a-fA-F]{64}")
_BLOOM = re.compile("0x[0-9a-fA-F]{512}")
# A filter that says nothing: of the busiest blocks, and of all blocks of some chains.
_FULL = 2**2048 - 1
# What is stored of a block, a log and a time; the last one is of the year 9999, as pandas and DuckDB write it.
_MOST_INDEX, _LAST_SECOND = 2**32 - 1, 253_402_300_799


class Header(NamedTuple):
    """What is stored of a block; ``bloom`` is 2,048 bits, as a number, and 0 where the node gives none."""

    number: int
    hash: str
    parent: str
    timestamp: int
    bloom: int


@dataclass(frozen=True, order=True)
class LogFilter:
    """The events of some contracts in a range of blocks, both ends included; ordered by blocks."""

    first: int
    last: int
    contracts: tuple[str, ...]
    topics: tuple[str, ...]

    @property
    def name(self) -> str:
        """What tells it from others in a file's name: its blocks, and what else there is."""
        return f"{self.first:012d}-{self.last:012d}-{checksum_of(repr(self).encode())[:8]}"

    @property
    def blocks(self) -> int:
        """How many blocks it has."""
        return self.last - self.first + 1

    def filter(self) -> dict[str, Any]:
        """Return the filter of eth_getLogs."""
        address = self.contracts[0] if len(self.contracts) == 1 else list(self.contracts)
        return {
            "address": address,
            "fromBlock": hex(self.first),
            "toBlock": hex(self.last),
            "topics": [list(self.topics)],
        }


# Hash and time of blocks by their numbers. Each block of a range follows the one before; of most that have no log
# nothing is stored. Of the one before the first its hash alone is known.
Blocks = dict[int, tuple[str, int | None]]
# What a part stores of a transfer: its fields are those of the part's columns.
Row = tuple[Any, ...]


# What the fields of a log are in messages, and their form, or the most that they may be.
_OF_HASHES = "a hash of 32 bytes", f"^{_HASH.pattern}$"
_FIELDS: dict[str, tuple[str, str | int]] = {
    "blockNumber": ("block number", LAST_BLOCK),
    "logIndex": ("index of a log", _MOST_INDEX),
    "address": ("an address", ADDRESS_PATTERN),
    "topics": _OF_HASHES,
    "data": ("bytes as hex", "^0x([0-9a-fA-F]{2})*$"),
    "blockHash": _OF_HASHES,
    "transactionHash": _OF_HASHES,
    "transactionIndex": ("index of a transaction", _MOST_INDEX),
    "blockTimestamp": ("time of a block", _LAST_SECOND),
}
# What some nodes do not say.
_ABSENT = {"transactionIndex": 0, "blockTimestamp": None}
_LOG = pa.struct(
    {**dict.fromkeys(_FIELDS, pa.string()), "topics": pa.list_(pa.string()), "removed": pa.bool_()}
)


class EventLog(NamedTuple):
    """A log, each field of which is what a log's must be; its topics are one text."""

    block: int
    log_index: int
    contract: str
    topics: str
    data: str
    hash: str
    tx: str
    # Of its transaction in the block, where the node says it.
    place: int
    time: int | None


def read_range(
    node: Node, wanted: LogFilter, *, near_end: bool, known: Container[int] = ()
) -> tuple[Blocks, list[Row]]:
    """Read a range of blocks; return those that are stored, and the rows of its logs, in their order.

    Parameters
    ----------
    near_end
        Whether to look into each block that may hold more than came, and to return the hashes of all.
    known
        Blocks whose hashes to return, too: those that are stored must be the same.

    Raises
    ------
    Refusal
        The range is too much for one answer, or its history pruned.
    InconsistentAnswer
        The answers contradict each other; another node, or the same one again, may do better.
    """
    # Of one node: another may have the last block, and this one only what comes before it.
    ends = sorted({wanted.first, wanted.last})
    headers = [("eth_getBlockByNumber", [hex(number), False]) for number in ends]
    found: list[Any] | None
    try:
        found, *answers = node.together([("eth_getLogs", [wanted.filter()]), *headers])
    except Refusal as refusal:
        if len(ends) > 1 or len(wanted.contracts) > 1 or refusal.meaning not in TOO_MUCH:
            raise
        # Of a block with more logs than the node returns in one answer the receipts have them.
        found, answers = None, node.together(headers)
    if answers[0] is None and answers[-1] is not None:
        raise Refusal(Meaning.PRUNED, f"It has no block {wanted.first:,}")
    at_ends = {number: _header(each, number) for number, each in zip(ends, answers, strict=True)}
    begin = at_ends[wanted.first]
    is_whole = found is None
    logs = _receipts(node, wanted, begin) if found is None else _logs(found)
    # Not held while the other headers are read: as the node says them they are several times as large.
    del found
    if logs is None:
        raise Refusal(
            Meaning.LESS,
            f"Block {begin.number:,} has more logs than one answer, and its receipts are not offered",
        )
    count = str(len(logs))
    # A gateway may have cut the answer without a word, as some do at 100 or 10,000 logs: it is asked again for less.
    if len(ends) > 1 and len(count) > 2 and count[0] in "125" and not count[1:].strip("0"):
        raise Refusal(Meaning.LESS, f"{len(logs):,} logs are a suspiciously round number")
    by_block = {number: list(came) for number, came in groupby(logs, attrgetter("block"))}
    for number in by_block.keys() - range(wanted.first, wanted.last + 1):
        raise InconsistentAnswer(
            f"The node answers with a log of block {number:,} to a question for {wanted.first:,} to {wanted.last:,}."
        )
    blocks: Blocks = {wanted.first - 1: (begin.parent, None)} if wanted.first else {}
    # Blocks that may hold more than came: of a busy chain's one in eight. And one as a sample, also of a range without
    # logs: some nodes say nothing of those that they no longer have.
    suspects: list[Header] = []
    sample = logs[len(logs) // 2].block if logs else wanted.first
    for header in _linked(node, wanted, at_ends):
        number, came = header.number, by_block.get(header.number, [])
        _check_logs(wanted, header, came)
        if near_end or came or number in at_ends or number in known:
            blocks[number] = header.hash, header.timestamp
        if number == sample and not is_whole:
            _check_receipts(node, wanted, header, came)
        else:
            # Where its filter allows logs of contracts of which none came; of busy blocks one in eight does.
            silent = set(wanted.contracts) - {log.contract for log in came}
            if any(_holds(header.bloom, *each) for each in product(wanted.topics, silent)):
                suspects.append(header)
    # An answer that was cut lacks the last ones.
    for header in suspects if near_end else {*suspects[:1], *suspects[-1:]}:
        _check_receipts(node, wanted, header, by_block.get(header.number, []))
    return blocks, _rows(logs)


def _linked(node: Node, wanted: LogFilter, known: Mapping[int, Header]) -> Iterator[Header]:
    """Yield the headers of a range in order, each of which must name the one before as its parent."""
    before: Header | None = None
    # A few at a time: a block's list of transactions takes more memory than all that is used of it.
    for start in range(wanted.first, wanted.last + 1, _PIECE):
        numbers = range(start, min(start + _PIECE, wanted.last + 1))
        asked = [number for number in numbers if number not in known]
        answers = iter(node.batch([("eth_getBlockByNumber", (hex(n), False)) for n in asked]))
        for number in numbers:
            header = known.get(number) or _header(next(answers), number)
            if before and header.parent != before.hash:
                raise InconsistentAnswer(
                    f"Block {number:,} does not follow block {number - 1:,}.", meaning="BEHIND"
                )
            if before and header.timestamp < before.timestamp:
                raise InconsistentAnswer(f"Block {number:,} is earlier than block {number - 1:,}.")
            yield header
            before = header


def has_block(node: Node, number: int, found: str) -> bool:
    """Return whether a block has a hash; not where the node has no such block: its chain is shorter."""
    try:
        return _header(node.call("eth_getBlockByNumber", hex(number), False), number).hash == found
    except InconsistentAnswer as error:
        if error.meaning != "BEHIND":
            raise
        return False


def _header(value: Any, number: int) -> Header:
    if isinstance(value, Refusal):
        raise value
    if not isinstance(value, Mapping):
        raise InconsistentAnswer(
            f"The node has no block {number:,}, though its latest block is beyond it.",
            meaning="BEHIND",
        )
    if quantity(value.get("number"), "block number") != number:
        raise InconsistentAnswer(f"The node returned another block than {number:,}.")
    bloom = value.get("logsBloom")
    return Header(
        number,
        _hash(value.get("hash")),
        _hash(value.get("parentHash")),
        quantity(value.get("timestamp"), "time of a block", _LAST_SECOND),
        # Some chains leave the filter empty, whatever the block holds: that one says nothing.
        int(bloom, 16) if isinstance(bloom, str) and _BLOOM.fullmatch(bloom) else 0,
    )


def _hash(value: Any) -> str:
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise InconsistentAnswer(f"{visible(value, 80)} is not a hash of 32 bytes.")
    return value.lower()


def _logs(said: Sequence[Any]) -> list[EventLog]:
    """Return logs in order; `InconsistentAnswer` where one is none."""
    try:
        raw = pa.array(said, _LOG)
    except pa.ArrowException:
        # Which one?
        for log in said if len(said) > 1 else ():
            _logs([log])
        raise InconsistentAnswer(
            f"A log that the node answers with lacks a field, or has a wrong one: {visible(said[0], 300)}"
        ) from None
    if pc.any(raw.field("removed")).as_py():
        raise InconsistentAnswer("The node answers with a log that a reorganisation has removed.")
    columns = []
    for name, (what, form) in _FIELDS.items():
        column = raw.field(name)
        values = column.flatten() if name == "topics" else column
        # Each once: most values of a log are those of one before.
        coded = values.dictionary_encode("encode")
        unlike = coded.dictionary
        if isinstance(form, int):
            numbers = [
                _ABSENT[name] if each is None and name in _ABSENT else quantity(each, what, form)
                for each in unlike.to_pylist()
            ]
            unlike = pa.array(numbers, pa.int64())
        else:
            fits = pc.fill_null(pc.match_substring_regex(unlike, form), False)
            for wrong in unlike.filter(pc.invert(fits))[:1].to_pylist():
                raise InconsistentAnswer(f"{visible(wrong, 80)} is not {what}.")
            unlike = pc.ascii_lower(unlike)
        values = unlike.take(coded.indices)
        if name == "topics":
            values = pc.binary_join(pa.ListArray.from_arrays(column.offsets, values), "")
        columns.append(values.to_pylist())
    made = map(EventLog._make, zip(*columns, strict=True))
    return sorted(made, key=attrgetter("block", "log_index"))


def _check_logs(wanted: LogFilter, header: Header, came: Sequence[EventLog]) -> None:
    """Hold the logs of a block against the question and its header, whose hash, time and filter are theirs.

    InconsistentAnswer: also where one is there twice.
    """
    for log in came:
        if log.contract not in wanted.contracts:
            raise InconsistentAnswer(
                f"The node answers with a log of {log.contract}, which was not asked for."
            )
        if log.topics[:66] not in wanted.topics:
            raise InconsistentAnswer(
                f"The node answers with a log of another event, in block {header.number:,}."
            )
        if log.hash != header.hash:
            # Of a reorganisation between two answers, too: both are then of one chain when they are asked for again.
            raise InconsistentAnswer(
                f"The logs of block {header.number:,} are of another block than its header.",
                meaning="BEHIND",
            )
        if log.time not in (None, header.timestamp):
            raise InconsistentAnswer(
                f"The logs of block {header.number:,} have another time than its header."
            )
    for before, log in pairwise(came):
        if log.log_index == before.log_index:
            raise InconsistentAnswer(
                f"The node answers with log {log.log_index:,} of block {header.number:,} twice."
            )
        if log.place < before.place:
            raise InconsistentAnswer(
                f"The logs of block {header.number:,} are not in the order of its transactions."
            )
    if header.bloom not in (0, _FULL) and not _holds(header.bloom, *_texts(came)):
        raise InconsistentAnswer(
            f"Block {header.number:,} cannot hold the logs that came of it: its bloom filter excludes them."
        )


def _texts(logs: Sequence[EventLog]) -> set[str]:
    """Return what logs set in their block's filter: their addresses and topics."""
    return {text for log in logs for text in (log.contract, *_HASH.findall(log.topics))}


def _check_receipts(
    node: Node, wanted: LogFilter, header: Header, came: Sequence[EventLog]
) -> None:
    """Hold the logs of a block against its receipts, where the node offers them."""
    receipts = _receipts(node, wanted, header)
    if receipts is None:
        return
    there, here = ({log[:7] for log in logs} for logs in (receipts, came))
    if there != here:
        raise InconsistentAnswer(
            f"Of block {header.number:,} the node's answer lacks {len(there - here):,} logs that its receipts have, "
            f"and has {len(here - there):,} that they lack."
        )


def _receipts(node: Node, wanted: LogFilter, header: Header) -> list[EventLog] | None:
    """Return the wanted logs of a block's receipts; None where the node does not say them.

    InconsistentAnswer: they lack a contract of which the block's filter says that it has a log.
    """
    receipts = None
    # Twice that they are not offered, and nothing more is asked.
    if node.lacks_receipts < 2:
        try:
            receipts = node.call("eth_getBlockReceipts", hex(header.number))
        except Refusal as refusal:
            if refusal.meaning is Meaning.PRUNED:
                raise
            node.lacks_receipts += refusal.meaning is Meaning.UNKNOWN_METHOD
    if not isinstance(receipts, list):
        node.unchecked += 1
        return None
    if header.bloom and not receipts:
        raise Refusal(
            Meaning.PRUNED, f"It has no receipts of block {header.number:,}, which has logs"
        )
    found = _logs(
        [
            log
            for one in receipts
            if isinstance(one, Mapping) and isinstance(one.get("logs"), list)
            for log in one["logs"]
        ]
    )
    # A filter may say so of what other logs have in common with it; those are in the receipts then.
    whole = reduce(or_, map(_bits, _texts(found)), 0)
    for contract in wanted.contracts if header.bloom != _FULL else ():
        if _holds(header.bloom, contract) and not _holds(whole, contract):
            raise InconsistentAnswer(
                f"The receipts of block {header.number:,} have no log of {contract}, and its bloom filter says that it "
                "has one."
            )
    return [
        log
        for log in found
        if log.contract in wanted.contracts and log.topics[:66] in wanted.topics
    ]


def _holds(bloom: int, *texts: str) -> bool:
    bits = reduce(or_, map(_bits, texts), 0)
    return bloom & bits == bits


# As many as the wallets of a busy token: a hash takes fifty times as long as finding it here.
@lru_cache(1 << 16)
def _bits(text: str) -> int:
    """Return the three bits that an address or a topic sets in a block's bloom filter."""
    digest = keccak.new(digest_bits=256, data=bytes.fromhex(text[2:])).digest()
    return reduce(or_, (1 << (int.from_bytes(digest[at : at + 2]) & 2047) for at in (0, 2, 4)))


def _rows(logs: Sequence[EventLog]) -> list[Row]:
    """Return the rows of logs, one for each id of a batch."""
    rows: list[Row] = []
    for log in logs:
        try:
            moves = decode_transfer(log.topics, log.data)
        except (Unreadable, ValueError, IndexError) as error:
            # To leave it out would make every balance after it wrong, without a word.
            raise NodeError(
                f"Log {log.log_index:,} of transaction {log.tx}, in block {log.block:,}, of {log.contract}, cannot "
                f"be stored as a transfer: {error}."
            ) from None
        # One log of ERC-2309 may be of 100,000 ids, and a block has room for thousands of them.
        if len(rows) + len(moves) > MOST_ROWS:
            raise Refusal(Meaning.LESS, f"Its logs are more than {MOST_ROWS:,} rows")
        rows += [(log.contract, log.tx, log.log_index, log.block, *move) for move in moves]
    return rows
