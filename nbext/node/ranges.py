"""One range of blocks: its logs and headers, checked against each other before any row is used.

A node behind a balancer, pruned or broken answers with too little as readily as with an error. So the headers of the
first and the last block are asked of the same node; each log must be of the range, the contracts and the block that its
header's hash names; and a header's bloom filter, which says what a block may hold, is held against what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from nbext.core.untrusted_text import visible
from nbext.errors import NodeError
from nbext.node.contracts import Unreadable, decode_transfer, shown_standard
from nbext.node.limits import Meaning
from nbext.node.rpc import Node, Refusal, quantity

# So near to the end of what is read every header is asked for: that is where nodes differ, and blocks are orphaned.
NEAR = 64
# Blocks of one range that are looked at by their receipts.
_LOOKED_AT = 2
_HASH = 66


class InconsistentAnswer(NodeError):
    """An answer that contradicts the question, itself, or another answer."""


@dataclass(frozen=True)
class Header:
    """What is stored of a block; ``bloom`` is 2,048 bits, as a number, and None where the node gives none."""

    number: int
    hash: str
    parent: str
    timestamp: int
    bloom: int | None


class TransferRow(NamedTuple):
    """One row of a range; ``place`` is that among the ids of a batch, ``standard`` the one that its log shows.

    Memory has few of them: a tuple is small.
    """

    contract: str
    sender: str
    recipient: str
    value: str
    quantity: str | None
    place: int
    tx: str
    log_index: int
    block: int
    standard: str | None


@dataclass
class BlockRange:
    """A range that was read whole: its rows, and the times and hashes of its blocks by their numbers."""

    first: int
    last: int
    rows: list[TransferRow]
    times: dict[int, int]
    hashes: dict[int, str]
    logs: int


@dataclass(frozen=True)
class LogFilter:
    """The contracts and events of a range."""

    contracts: tuple[str, ...]
    topics: tuple[str, ...]

    @property
    def digest(self) -> str:
        """What tells it from others in a file's name."""
        return sha256(repr(self).encode()).hexdigest()[:8]

    def filter(self, first: int, last: int) -> dict[str, Any]:
        """Return the filter of eth_getLogs."""
        address = self.contracts[0] if len(self.contracts) == 1 else list(self.contracts)
        return {
            "address": address,
            "fromBlock": hex(first),
            "toBlock": hex(last),
            "topics": [list(self.topics)],
        }


# What to read of a range, both ends included.
RangeTask = tuple[LogFilter, int, int]


@dataclass(frozen=True)
class _Log:
    contract: str
    topics: list[str]
    data: str
    block: int
    hash: str
    tx: str
    index: int
    time: int | None


def read_range(
    node: Node, wanted: LogFilter, first: int, last: int, *, near_end: bool
) -> BlockRange:
    """Read a range of blocks, both ends included.

    Parameters
    ----------
    near_end
        Whether to ask for every header, and to look into each block that may hold more than came.

    Raises
    ------
    Refusal
        The range is too much for one answer, or its history pruned.
    InconsistentAnswer
        The answers contradict each other; another node, or the same one again, may do better.
    """
    # Of one node: another may have the last block, and this one only what comes before it.
    ends = sorted({first, last})
    logs, *answers = node.together(
        [
            ("eth_getLogs", [wanted.filter(first, last)]),
            *(("eth_getBlockByNumber", [hex(number), False]) for number in ends),
        ]
    )
    if answers[0] is None and answers[-1] is not None:
        raise Refusal(Meaning.PRUNED, finding=f"It has no block {first:,}")
    headers = {
        number: _header(answer, number) for number, answer in zip(ends, answers, strict=True)
    }
    found = _logs(logs, wanted, first, last)
    count = str(len(found))
    # A gateway may have cut the answer without a word, as some do at 100 or 10,000 logs: it is asked again for less.
    if last > first and len(count) > 2 and count[0] in "125" and not count[1:].strip("0"):
        finding = f"{len(found):,} logs are a suspiciously round number"
        raise Refusal(Meaning.LESS, finding=finding)
    by_block: dict[int, list[_Log]] = {}
    for log in found:
        by_block.setdefault(log.block, []).append(log)
    # Their times, unless the logs have them: most nodes add them to each log.
    needed = (
        set(range(first, last + 1))
        if near_end
        else {n for n, logs in by_block.items() if logs[0].time is None}
    )
    headers |= read_headers(node, sorted(needed - headers.keys()))
    _check_headers(by_block, headers)
    _check_blooms(node, wanted, by_block, headers, near_end=near_end)
    is_silent = not found and not near_end and headers[first].bloom is not None
    # Some nodes say nothing of logs that they no longer have.
    if is_silent and _receipts(node, first) == []:
        finding = f"It has no receipts of block {first:,}, which has logs"
        raise Refusal(Meaning.PRUNED, finding=finding)
    times = {number: header.timestamp for number, header in headers.items()}
    hashes = {number: header.hash for number, header in headers.items()}
    for number, logs_of in by_block.items():
        times.setdefault(number, logs_of[0].time or 0)
        hashes.setdefault(number, logs_of[0].hash)
    return BlockRange(first, last, _rows(found), times, hashes, len(found))


def read_from_receipts(node: Node, wanted: LogFilter, block: int) -> BlockRange:
    """Read a block by its receipts, where it has more logs than the node returns in one answer."""
    header = read_headers(node, [block])[block]
    receipts = _receipts(node, block)
    if receipts is None:
        raise Refusal(
            Meaning.LESS,
            finding=f"Block {block:,} has more logs than one answer, and its receipts are not "
            "offered",
        )
    logs = [log for log in receipts if _is_of(log, wanted)]
    found = _logs(logs, wanted, block, block)
    _check_headers({block: found}, {block: header})
    return BlockRange(
        block,
        block,
        _rows(found),
        {block: header.timestamp},
        {block: header.hash},
        len(found),
    )


def transfers_in(node: Node, wanted: LogFilter, number: int) -> set[int] | None:
    """Return the log indexes of a contract's transfers in a block, asked for by itself; None where that is not known.

    Raises
    ------
    InconsistentAnswer
        The node hides what the block has.
    """
    bloom = read_headers(node, [number])[number].bloom
    receipts = _receipts(node, number)
    if bloom is not None and receipts == []:
        raise InconsistentAnswer(f"The node has no receipts of block {number:,}, which has logs.")
    logs = receipts or node.call("eth_getLogs", wanted.filter(number, number))
    there = {
        log.index
        for log in _logs([log for log in logs if _is_of(log, wanted)], wanted, number, number)
    }
    (contract,) = map(_bits, wanted.contracts)
    excluded = bloom is not None and (
        bloom & contract != contract
        or not any(bloom & bits == bits for bits in map(_bits, wanted.topics))
    )
    return there if there or receipts or excluded else None


def _is_of(log: Any, wanted: LogFilter) -> bool:
    return (
        isinstance(log, Mapping)
        and str(log.get("address")).lower() in wanted.contracts
        and (log.get("topics") or [""])[0] in wanted.topics
    )


def read_headers(node: Node, numbers: Sequence[int]) -> dict[int, Header]:
    """Return the headers of blocks, by number."""
    answers = node.batch([("eth_getBlockByNumber", (hex(number), False)) for number in numbers])
    found = {}
    for number, answer in zip(numbers, answers, strict=True):
        if isinstance(answer, Refusal):
            raise answer
        found[number] = _header(answer, number)
    return found


def check_on_chain(node: Node, number: int, known: str) -> None:
    """Refuse a block that a reorganisation has orphaned since it was read."""
    if read_headers(node, [number])[number].hash != known:
        raise InconsistentAnswer(f"Block {number:,} has changed since it was read.")


def _header(value: Any, number: int) -> Header:
    if not isinstance(value, Mapping):
        raise InconsistentAnswer(
            f"The node has no block {number:,}, though its latest block is beyond it.",
            meaning="BEHIND",
        )
    if quantity(value.get("number"), "block number") != number:
        raise InconsistentAnswer(f"The node returned another block than {number:,}.")
    bloom = value.get("logsBloom")
    # Some chains leave the filter empty, whatever the block holds: that one says nothing.
    bits = (
        int(bloom, 16)
        if isinstance(bloom, str) and len(bloom) == 514 and bloom.startswith("0x")
        else 0
    )
    return Header(
        number,
        _hash(value.get("hash")),
        _hash(value.get("parentHash")),
        quantity(value.get("timestamp"), "time of a block"),
        bits or None,
    )


def _hash(value: Any) -> str:
    if not isinstance(value, str) or len(value) != _HASH or not value.startswith("0x"):
        raise InconsistentAnswer(f"{visible(value, 80)} is not a hash of 32 bytes.")
    return value.lower()


def _logs(logs: Any, wanted: LogFilter, first: int, last: int) -> list[_Log]:
    """Return the logs in order; an `InconsistentAnswer` where one is not of the question, or is there twice."""
    if not isinstance(logs, list):
        raise InconsistentAnswer(f"The node's logs are not a list: {visible(logs, 80)}.")
    contracts, topics = frozenset(wanted.contracts), frozenset(wanted.topics)
    found, seen = [], set()
    for raw in logs:
        log = _log(raw)
        if not first <= log.block <= last:
            raise InconsistentAnswer(
                f"The node answers with a log of block {log.block:,} to a question for {first:,} to {last:,}."
            )
        if log.contract not in contracts:
            raise InconsistentAnswer(
                f"The node answers with a log of {visible(log.contract, 60)}, which was not asked for."
            )
        if not log.topics or log.topics[0] not in topics:
            raise InconsistentAnswer(
                f"The node answers with a log of another event, in block {log.block:,}."
            )
        key = (log.block, log.index)
        if key in seen:
            raise InconsistentAnswer(
                f"The node answers with log {log.index:,} of block {log.block:,} twice."
            )
        seen.add(key)
        found.append(log)
    found.sort(key=lambda log: (log.block, log.index))
    return found


def _log(raw: Any) -> _Log:
    try:
        if raw.get("removed"):
            raise InconsistentAnswer(
                "The node answers with a log that a reorganisation has removed."
            )
        time = raw.get("blockTimestamp")
        return _Log(
            raw["address"].lower(),
            [topic.lower() for topic in raw["topics"]],
            raw["data"],
            int(raw["blockNumber"], 16),
            _hash(raw["blockHash"]),
            _hash(raw["transactionHash"]),
            int(raw["logIndex"], 16),
            None if time is None else int(time, 16),
        )
    except (KeyError, TypeError, AttributeError, ValueError):
        pass
    raise InconsistentAnswer(
        f"A log that the node answers with lacks a field, or has a wrong one: {visible(raw, 300)}"
    )


def _check_headers(by_block: Mapping[int, list[_Log]], headers: Mapping[int, Header]) -> None:
    """Hold logs against the headers of their blocks, and each header against the one before."""
    for number, logs in by_block.items():
        hashes = {log.hash for log in logs}
        if len(hashes) > 1 or (number in headers and headers[number].hash not in hashes):
            # Of a reorganisation between two answers, too: both are then of one chain when they are asked for again.
            raise InconsistentAnswer(
                f"The logs of block {number:,} are of another block than its header.",
                meaning="BEHIND",
            )
        if number in headers and any(
            log.time not in (None, headers[number].timestamp) for log in logs
        ):
            raise InconsistentAnswer(
                f"The logs of block {number:,} have another time than its header."
            )

    for number, header in headers.items():
        if number - 1 in headers and headers[number - 1].hash != header.parent:
            raise InconsistentAnswer(
                f"Block {number:,} does not follow block {number - 1:,}.", meaning="BEHIND"
            )


def _check_blooms(
    node: Node,
    wanted: LogFilter,
    by_block: Mapping[int, list[_Log]],
    headers: Mapping[int, Header],
    *,
    near_end: bool,
) -> None:
    """Hold logs against the filters of their blocks, and look into blocks that may hold more than came."""
    of = {text: _bits(text) for text in (*wanted.contracts, *wanted.topics)}
    suspects = []
    for number, header in headers.items():
        bloom = header.bloom
        if bloom is None:
            continue
        came = by_block.get(number, [])
        if any(
            bloom & of[each] != of[each] for log in came for each in (log.contract, log.topics[0])
        ):
            raise InconsistentAnswer(
                f"Block {number:,} cannot hold the logs that came of it: its bloom filter excludes them."
            )
        silent = set(wanted.contracts) - {log.contract for log in came}
        if any(bloom & of[each] == of[each] for each in wanted.topics) and any(
            bloom & of[each] == of[each] for each in silent
        ):
            suspects.append(number)
    # A filter may be wrong in this direction, of busy blocks one time in eight: only the receipts say.
    looked_at = suspects if near_end else suspects[:_LOOKED_AT]
    if by_block:
        looked_at = [*looked_at, sorted(by_block)[len(by_block) // 2]]
    for number in looked_at:
        logs = _receipts(node, number)
        if logs is None:
            return
        there = {int(log["logIndex"], 16) for log in logs if _is_of(log, wanted)}
        if there != (here := {log.index for log in by_block.get(number, ())}):
            missing, more = len(there - here), len(here - there)
            raise InconsistentAnswer(
                f"Of block {number:,} the node's answer lacks {missing:,} logs that its receipts have, "
                f"and has {more:,} that they lack."
            )


def _receipts(node: Node, number: int) -> list[Any] | None:
    """Return the logs of a block's receipts; None where the node does not offer them."""
    if "eth_getBlockReceipts" in node.lacks:
        return None
    try:
        receipts = node.call("eth_getBlockReceipts", hex(number))
    except Refusal as refusal:
        if refusal.meaning is Meaning.PRUNED:
            raise
        node.lacks.add("eth_getBlockReceipts")
        return None
    except NodeError:
        return None
    if not isinstance(receipts, list):
        return None
    return [
        log
        for receipt in receipts
        if isinstance(receipt, Mapping)
        for log in receipt.get("logs") or ()
    ]


def _bits(text: str) -> int:
    """Return the three bits that an address or a topic sets in a block's bloom filter."""
    from Crypto.Hash import keccak

    digest = keccak.new(digest_bits=256, data=bytes.fromhex(text[2:])).digest()
    bits = 0
    for at in (0, 2, 4):
        bits |= 1 << (int.from_bytes(digest[at : at + 2]) & 2047)
    return bits


def _rows(logs: Sequence[_Log]) -> list[TransferRow]:
    """Return the rows of logs, in the order of blocks, logs and places in a batch."""
    rows: list[TransferRow] = []
    for log in logs:
        why = None
        try:
            moves = decode_transfer(log.topics, log.data)
        except (Unreadable, ValueError, IndexError) as error:
            why = str(error)
        if why is not None:
            # To leave it out would make every balance after it wrong, without a word.
            raise NodeError(
                f"Log {log.index:,} of transaction {log.tx}, in block {log.block:,}, of {log.contract}, cannot "
                f"be stored as a transfer: {why}."
            )
        rows += [
            TransferRow(
                log.contract,
                one.sender,
                one.recipient,
                str(one.value),
                None if one.count is None else str(one.count),
                one.place,
                log.tx,
                log.index,
                log.block,
                shown_standard(log.topics),
            )
            for one in moves
        ]
    return rows
