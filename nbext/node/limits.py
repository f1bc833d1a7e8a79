"""What nodes and providers say where they refuse, and how many blocks to ask for next.

Nobody configures a limit: a refusal's words say which one was met, and some of them a range that would do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Meaning(Enum):
    """What a refusal means: what the node does."""

    LESS = "refuses the range: it has too many blocks or logs"
    RATE = "is asked too often"
    BEHIND = "does not have the block yet"
    PRUNED = "has pruned this history"
    BATCH = "refuses batches, or one as long as this"
    UNKNOWN_METHOD = "does not offer the method"
    REVERTED = "says that the contract refuses the call"
    DENIED = "refuses the key"
    AWAY = "does not answer at its URL"
    UNTRUSTED = "has a certificate that is not trusted, or speaks no https"
    BUSY = "failed"
    TIMEOUT = "took too long"
    GARBAGE = "does not answer what it was asked"
    OTHER = "refuses the request"


# In order: the first whose words are found counts. Each is worded by at least one of geth, erigon, nethermind, reth,
# Alchemy, Infura, QuickNode, Ankr, Cloudflare, Tenderly, drpc, publicnode or 1rpc; tests/node/refusals.py has them.
_WORDINGS = tuple(
    (meaning, re.compile(words, re.IGNORECASE))
    for meaning, words in (
        (Meaning.LESS, r"range should work|try with this block range|retry with the range"),
        (Meaning.BATCH, r"batch"),
        (
            Meaning.REVERTED,
            r"revert|invalid opcode|out of gas|stack (under|over)flow|vm execution|bad instruction",
        ),
        (
            Meaning.PRUNED,
            r"prun|missing trie node|history unavailable|historical state|archiv|data before txnum|no state "
            r"available|state .{0,40}not available|proof window|(pebble|leveldb): not found",
        ),
        (
            Meaning.BEHIND,
            r"beyond (the )?(current )?head|unknown block|block .{0,40}not found|header not found|cannot be "
            r"found|after last accepted|not yet (available|synced|imported)|block .{0,30}is not available",
        ),
        (
            Meaning.RATE,
            r"rate.?limit|too many requests|compute units|per second|request count|throttl|quota|capacity",
        ),
        (
            Meaning.LESS,
            r"returned more than|response (size|is|too|body)|too (many|large|big|wide|much)|block.?s? range|"
            r"blocks? (span|distance)|range.{0,60}(exceed|limit|bigger|over|large|wide)|ranges over|exceeds? "
            r"(the )?max|limited to|results? limit|length limit|size limit|limit exceeded|max range|"
            r"maximum.{0,20}(range|blocks)|reduce",
        ),
        (Meaning.TIMEOUT, r"time.?d? ?out|deadline exceeded|context cancel|too long"),
        (
            Meaning.UNKNOWN_METHOD,
            r"(method|eth_\w+).{0,60}(not|un)|unsupported|not (supported|whitelisted|implemented)",
        ),
        (
            Meaning.DENIED,
            r"unauthorized|forbidden|api.?key|authenticat|project id|access denied|invalid token|tenant",
        ),
    )
)
# What HTTP's statuses and JSON-RPC's codes mean; some gateways write the one for the other.
_NUMBERS: dict[int | None, Meaning] = {
    401: Meaning.DENIED,
    403: Meaning.DENIED,
    408: Meaning.TIMEOUT,
    413: Meaning.LESS,
    504: Meaning.TIMEOUT,
    524: Meaning.TIMEOUT,
    -32601: Meaning.UNKNOWN_METHOD,
    -32004: Meaning.UNKNOWN_METHOD,
    -32005: Meaning.LESS,
    -32007: Meaning.RATE,
    -32603: Meaning.BUSY,
    -32614: Meaning.LESS,
    -32097: Meaning.RATE,
    3: Meaning.REVERTED,
}
_OF_RANGES = re.compile("block|range|log|result|response", re.IGNORECASE)
# A range that would do: in brackets as hex, or as two numbers.
_OFFERED = re.compile(
    r"(?:work|range)\D{0,10}\[\s*(0x[0-9a-f]{1,16})\s*,\s*(0x[0-9a-f]{1,16})\s*\]|"
    r"retry with the range\s+(\d{1,15})\s*-\s*(\d{1,15})"
)
# A number of blocks, as in "limited to a 10,000 range" or "exceed maximum block range: 5000".
_AT_MOST = re.compile(
    r"(?:limited to (?:a |0 - )?|up to an? |max(?:imum)? (?:block )?range:? (?:is )?|limit of |range "
    r"limit |max block range |ranges over |maximum is set to )(\d{1,3}(?:,\d{3})+|\d{1,9})(?!\d)"
    r"( ?k\b)?"
)
# A message is an attacker's text, and may be as long as the answer.
_READ = 2000


def meaning_of(status: int, code: int | None, message: str) -> Meaning:
    """Return what a refusal means: by its words, else by the HTTP status, else by the JSON-RPC code."""
    text = message[:_READ]
    found = next((meaning for meaning, words in _WORDINGS if words.search(text)), None)
    # 429 means the rate, whatever else its page says; except where its words are of a range.
    if status == 429 and not (found is Meaning.LESS and _OF_RANGES.search(text)):
        return Meaning.RATE
    rest = Meaning.BUSY if status >= 500 else Meaning.OTHER
    return found or _NUMBERS.get(status) or _NUMBERS.get(code, rest)


def blocks_offered(message: str) -> int | None:
    """Return the number of blocks that a refusal says would do; None where it says none.

    >>> blocks_offered("eth_getLogs is limited to a 10,000 range")
    10000
    """
    text = message[:_READ].lower()
    if found := _OFFERED.search(text):
        first, last = (
            int(each, 16) if each.startswith("0x") else int(each) for each in found.groups() if each
        )
        return last - first + 1 if last >= first else None
    if (found := _AT_MOST.search(text)) and "result" not in text[found.end() : found.end() + 12]:
        return int(found[1].replace(",", "")) * (1000 if found[2] else 1)
    return None


@dataclass
class RangeSize:
    """How many blocks to ask for next. It has no lock: several threads share it under their reader's.

    It doubles after answers that were quick and small, and halves after a refusal. A size that was refused as too many
    *blocks* is not tried again; one that had too many *logs* is, as contracts have quiet years.
    """

    size: int = 500
    # Each header of a range is read, whatever its size: in larger ones more is read again after a failure.
    most: int = 2_000

    def refused(self, blocks: int, offered: int | None) -> int:
        """Take a refusal of so many blocks; return how many to ask for instead, fewer than these."""
        # An offer may be the very range that was asked for: halve it then.
        size = max(1, blocks // 2)
        # An exact offer is a limit, and worth a probe later only if it came with a range of its own.
        if offered is not None and 0 < offered < blocks:
            size, self.most = offered, min(self.most, offered * 4)
        self.size = min(self.size, size)
        return size

    def answered(self, blocks: int, rows: int, seconds: float) -> None:
        """Take an answer: how many blocks it covers, how many rows its logs are, and how long it took."""
        if rows > 5000 or seconds > 8:
            self.size = min(self.size, blocks // 2 or 1)
        elif blocks >= self.size and rows < 2500 and seconds < 4:
            self.size = min(self.size * 2, self.most)
