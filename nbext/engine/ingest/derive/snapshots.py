"""Holder snapshots: the balances or token ids of each wallet at one block, without transfers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from nbext.core.addresses import looks_like_address
from nbext.core.uint256 import MAX_UINT256, TooManyDecimals, to_raw, uint256_of
from nbext.core.untrusted_text import quoted, visible
from nbext.engine.ingest.derive.rows import DECIMAL, limbs
from nbext.engine.ingest.sources import tokens
from nbext.engine.ingest.sources.reading import Opened
from nbext.engine.ingest.stage import Stage
from nbext.engine.schema import FOREVER
from nbext.errors import IngestError, ValidationError

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
# Exact digits only; 1E-18 is how exports write the smallest part of a token.
_NUMBER = re.compile(r"[+-]?(\d{1,78}(\.\d{0,80})?|\.\d{1,80})([eE][+-]?\d{1,3})?\Z")
# Rows that Python parses at a time, so that memory does not grow with the file.
_BATCH = 100_000
_LAST_BLOCK = FOREVER - 1
_ARRIVING = pa.schema([("row", pa.int64()), ("contract", pa.string()), ("address", pa.string()),
                       ("moment", pa.int64()), ("digits", pa.string())])
# Why a good row of a snapshot is not used.
ZERO = "zero balances skipped"
OUTDATED = "balances skipped, because the same file has them at a later block"
OLDER = "balances skipped, because a newer snapshot was ingested before"


@dataclass(frozen=True)
class SnapshotOptions:
    """What a snapshot does not say itself.

    Attributes
    ----------
    tokens
        Symbol (lower case) to address; the key ``""`` is for files that name no token.
    decimals
        The decimals of tokens for which no metadata has them.
    unit
        ``token``: balances are in the token's unit, ``raw``: in its smallest.
    block
        The block of the snapshot; None means the last block that the data has of the chain.

    Raises
    ------
    ValidationError
        The decimals or the block are out of range.
    """

    tokens: Mapping[str, str] = field(default_factory=dict)
    decimals: int | None = None
    unit: str = "token"
    block: int | None = None

    def __post_init__(self) -> None:
        for name, given, most in (("decimals", self.decimals, 255), ("block", self.block, _LAST_BLOCK)):
            if given is not None and not 0 <= given <= most:
                raise ValidationError.of(name, "range", f"{given} is out of range. Allowed: 0 to {most:,}.")


def begin(stage: Stage) -> None:
    """Create ``openings``: the balances of the newest snapshot of each contract."""
    stage.run(f"""CREATE TABLE openings (chain_id BIGINT, contract VARCHAR, address VARCHAR, block BIGINT,
        hi {DECIMAL}, mid {DECIMAL}, lo {DECIMAL}, has_id BOOLEAN)""")
    if stage.previous:
        stage.run("INSERT INTO openings SELECT * FROM prev.ingest.openings")


def take(stage: Stage, file: Opened, chain: int, options: SnapshotOptions) -> None:
    """Add a snapshot; it replaces earlier ones of the same contracts.

    Raises
    ------
    IngestError
        The token of a row or its decimals are unknown, or no row can be parsed.
    """
    named = _Tokens(stage, file, chain, options)
    by_id = file.has("token_id")
    amount = "token_id" if by_id else "balance"
    stage.run("CREATE OR REPLACE TABLE arrived_holders "
              "(row BIGINT, contract VARCHAR, address VARCHAR, moment BIGINT, digits VARCHAR)")
    # By Python, not SQL: each row has its own decimals, and "1.5E-18" must come out exact or not at all.
    needed = options.block is None and file.has("block")  # then each row must have a block of its own
    moment = (f"TRY_CAST({file.text('block')} AS BIGINT)" if needed
              else file.seconds() if options.block is None else "NULL::BIGINT")
    rows = stage.connection.cursor().execute(f"""
        SELECT row, {file.text('address')}, {file.text(amount)}, {file.text('contract')}, {file.text('symbol')},
            {moment}
        FROM {file.relation} ORDER BY row""")
    while batch := rows.fetchmany(_BATCH):
        good, bad = [], []
        for row, address, text, contract, symbol, at in batch:
            token = named.of(contract, symbol)
            digits, fault = _digits(text, named, token, by_id=by_id)
            if not looks_like_address(address or ""):
                digits, fault = None, "holder is not an address"
            elif needed and (at is None or not 0 <= at <= _LAST_BLOCK):
                digits, fault = None, "block number is not a whole number"
            if fault:
                bad.append((file.number, row, fault, str(address if "address" in fault else text)[:200]))
            else:
                good.append((row, token, address.lower(), at, digits or "0"))
        _store(stage, good, bad)
    _keep_the_latest(stage, file, by_id=by_id)
    _replace(stage, file, chain, _block(stage, file, chain, options), by_id=by_id)
    if options.decimals is not None and not by_id:
        for token in sorted(set(named.found.values())):
            tokens.learn_decimals(stage, chain, token, options.decimals)


def _store(stage: Stage, good: list[tuple[Any, ...]], bad: list[tuple[Any, ...]]) -> None:
    columns = list(zip(*good, strict=True)) or [()] * len(_ARRIVING)
    stage.insert("arrived_holders", pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, _ARRIVING, strict=True)], schema=_ARRIVING))
    if bad:
        stage.connection.executemany("INSERT INTO bad VALUES (?, ?, ?, ?)", bad)


def _keep_the_latest(stage: Stage, file: Opened, *, by_id: bool) -> None:
    """Remove balances that the file repeats later, zero balances, and those that contradict an earlier row."""
    if by_id:  # of an ERC1155's token several wallets may hold some
        return
    outdated = """FROM arrived_holders a WHERE EXISTS (SELECT 1 FROM arrived_holders b
        WHERE b.contract = a.contract AND b.address = a.address AND b.moment > a.moment)"""
    _leave_out(stage, file, OUTDATED, outdated)
    contradicting = """SELECT row, digits FROM (
        SELECT row, digits, digits <> first(digits) OVER (PARTITION BY contract, address ORDER BY row) AS other
        FROM arrived_holders) WHERE other"""
    stage.run(f"INSERT INTO bad SELECT {file.number}, row, 'the file has another balance of this wallet', digits "
              f"FROM ({contradicting})")
    stage.run(f"DELETE FROM arrived_holders WHERE row IN (SELECT row FROM ({contradicting}))")
    _leave_out(stage, file, ZERO, "FROM arrived_holders WHERE digits = '0'")


def _leave_out(stage: Stage, file: Opened, why: str, which: str) -> None:
    number = stage.value(f"SELECT count(*) {which}")
    stage.run("INSERT INTO odd VALUES (?, ?, ?)", [file.number, why, number])
    if number:
        stage.run(f"DELETE {which}")


def _replace(stage: Stage, file: Opened, chain: int, block: int | None, *, by_id: bool) -> None:
    """Replace the rows of snapshots that are not newer by the file's."""
    if not stage.value("SELECT count(*) FROM arrived_holders"):
        found = stage.rows("SELECT row, why, value FROM bad WHERE file = ? ORDER BY row LIMIT 1", [file.number])
        row, why = (found[0][0], f"{found[0][1]}: {found[0][2]!r}") if found else (1, "every balance is zero")
        raise IngestError(f"{file.source.shown}, row {row}: {why}. No row of the file is usable.",
                          path=file.source.name, row=row)
    at = "max(moment) OVER (PARTITION BY contract)" if block is None else str(block)
    stage.run(f"CREATE OR REPLACE TABLE arrived_holders AS SELECT *, ({at})::BIGINT AS block FROM arrived_holders")
    newer = (f"FROM arrived_holders a WHERE EXISTS (SELECT 1 FROM openings o WHERE o.chain_id = {chain} "
             "AND o.contract = a.contract AND o.block > a.block)")
    _leave_out(stage, file, OLDER, newer)
    stage.run(f"DELETE FROM openings WHERE chain_id = {chain} AND contract IN (SELECT contract FROM arrived_holders)")
    hi, mid, lo = limbs("digits")
    # A wallet may be listed twice with the same balance.
    stage.run(f"INSERT INTO openings SELECT DISTINCT {chain}, contract, address, block, {hi}, {mid}, {lo}, "
              f"{str(by_id).lower()} FROM arrived_holders")
    stage.drop("arrived_holders")


def _block(stage: Stage, file: Opened, chain: int, options: SnapshotOptions) -> int | None:
    """Return the block of a snapshot: given, found by its time, or the last one known; None if each row has one."""
    if options.block is not None:
        return options.block
    if file.has("block"):
        return None
    seconds = stage.value(f"SELECT max({file.seconds()}) FROM {file.relation}")
    known = "SELECT block, seconds FROM times WHERE chain_id = $1 "
    if stage.previous:
        known += "UNION ALL SELECT block, timestamp FROM prev.main.blocks WHERE chain_id = $1"
    at = stage.value(f"SELECT max(block) FROM ({known}) WHERE seconds <= $2", [chain, seconds]) if seconds else None
    # A file without a time is the newest: people export holders to know of today.
    known += "UNION ALL SELECT block, NULL FROM openings WHERE chain_id = $1"
    last = stage.value(f"SELECT max(block) FROM ({known})", [chain])
    block = int(at if at is not None else last or 0)
    if seconds is not None and at is None:
        stage.run("INSERT INTO times VALUES (?, ?, ?)", [chain, block, seconds])
    return block


class _Tokens:
    """Finds the token of a row, and its decimals."""

    def __init__(self, stage: Stage, file: Opened, chain: int, options: SnapshotOptions) -> None:
        self.stage, self.file, self.chain, self.options = stage, file, chain, options
        self.found: dict[tuple[str | None, str | None], str] = {}
        self.places: dict[str, int] = {}

    def of(self, contract: str | None, symbol: str | None) -> str:
        """Return the token's address: the row's own, the option's, or that of the only token with the symbol."""
        if (contract, symbol) not in self.found:
            self.found[contract, symbol] = self._find(contract, symbol)
        return self.found[contract, symbol]

    def _find(self, contract: str | None, symbol: str | None) -> str:
        if contract and looks_like_address(contract):
            return contract.lower()
        stem = self.file.source.path.name.split(".")[0]
        word = (symbol or re.split(r"[-_ ]", stem)[-1]).lower()
        chosen = self.options.tokens.get(word) or self.options.tokens.get("")
        in_name = _ADDRESS.search(self.file.source.path.name)
        if chosen or (in_name and not symbol):
            return (chosen or in_name.group()).lower()  # type: ignore[union-attr]  # one of the two is there
        bearing = self.stage.rows(
            "SELECT address, coalesce(verified, false) FROM known WHERE chain_id = ? AND lower(symbol) = ?",
            [self.chain, word])
        bearing = [row for row in bearing if row[1]] or bearing
        if len(bearing) == 1:
            return str(bearing[0][0])
        many = f"{len(bearing)} contracts have" if bearing else "No known contract has"
        raise IngestError(
            f"{self.file.source.shown}: which token do these wallets hold? {many} the symbol {quoted(word)}. "
            f"Name the token: --token {visible(word, 40)}=0x...", path=self.file.source.name)

    def decimals(self, token: str) -> int:
        """Return the token's decimals; without them, balances in its unit have no meaning."""
        if token not in self.places:
            known = self.stage.value(
                "SELECT decimals FROM known WHERE chain_id = ? AND address = ?", [self.chain, token])
            places = self.options.decimals if known is None else known
            if places is None:
                raise IngestError(
                    f"{self.file.source.shown}: the decimals of {token} are unknown, so its balances cannot be read. "
                    "Ingest a token list or tokens file that has them, or give --decimals N, or --unit raw.",
                    path=self.file.source.name)
            self.places[token] = places
        return self.places[token]


def _digits(text: str | None, tokens: _Tokens, token: str, *, by_id: bool) -> tuple[str | None, str | None]:
    """Return the amount in the smallest unit, or what is wrong with it; neither for a balance of zero."""
    if by_id or tokens.options.unit == "raw":
        number = uint256_of(text) if text and text.isdecimal() else None
        if number is None:
            return None, "not a whole number from 0 to 2**256-1"
        return (str(number), None) if by_id or number else (None, None)
    if not text or not _NUMBER.match(text):
        return None, "balance is not a number"
    return _in_smallest_unit(text, tokens.decimals(token))


def _in_smallest_unit(text: str, decimals: int) -> tuple[str | None, str | None]:
    try:
        raw = to_raw(Decimal(text), decimals)
    except InvalidOperation:
        return None, "balance is not a number"
    except TooManyDecimals:
        return None, f"balance has more than {decimals} decimals"
    if raw < 0:
        return None, "balance is below zero"
    if raw > MAX_UINT256:
        return None, "balance is above 2**256-1"
    return (str(raw), None) if raw else (None, None)
