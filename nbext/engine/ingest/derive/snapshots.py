"""Holder snapshots: the balances or token ids of each wallet at one block, without transfers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from nbext.core.addresses import looks_like_address
from nbext.core.uint256 import MAX_UINT256, TooManyDecimals, to_raw, uint256_of
from nbext.core.untrusted_text import quoted, visible
from nbext.engine.ingest.derive import facts
from nbext.engine.ingest.derive.duplicates import Conflict
from nbext.engine.ingest.derive.rows import check_columns, limbs, refuse_all
from nbext.engine.ingest.reading import FileTable
from nbext.engine.ingest.stage import Stage
from nbext.engine.schema import FOREVER
from nbext.errors import ValidationError

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
# Exact digits only; 1E-18 is how exports write the smallest part of a token.
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,64}\Z")
_NUMBER = re.compile(r"[+-]?(\d{1,78}(\.\d{0,80})?|\.\d{1,80})([eE][+-]?\d{1,3})?\Z")
# As explorers write amounts for people; and as spreadsheets do, with a comma before decimals, or without all digits.
_SEPARATED = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_OF_SPREADSHEETS = r"\d+(\.\d{3})*,\d+", r"\d\.\d{5}E\+\d\d"
_LAST_BLOCK = FOREVER - 1
_MOMENTS = {
    "block": "block number is not a whole number",
    "timestamp": "time of the snapshot is not a time",
}
OTHER_BALANCE = "the file has another balance of this wallet"
OTHER_OWNER = (
    "the file has another owner of this token id; of an ERC1155, ingest metadata that says so first"
)


@dataclass(frozen=True)
class SnapshotOptions:
    """What a snapshot, or a table of somebody's own, does not say itself.

    Attributes
    ----------
    tokens
        Symbol (lower case) to address, or to another symbol; the key ``""`` is for files that name no token.
    decimals
        The decimals of tokens for which no metadata has them.
    unit
        ``token``, or None: balances are in the token's unit, ``raw``: in its smallest.
    block
        The block of the snapshot, if the file does not have it.
    date
        In the place of the block: when the snapshot was made, in seconds since 1970.
    date_format
        How times are written, as strptime takes it: ``%d/%m/%Y``.

    Raises
    ------
    ValidationError
        The decimals or the block are out of range, or both a block and a date are given.
    """

    tokens: Mapping[str, str] = field(default_factory=dict)
    decimals: int | None = None
    unit: str | None = None
    block: int | None = None
    date: int | None = None
    date_format: str | None = None

    def __post_init__(self) -> None:
        for name, given, most in (
            ("decimals", self.decimals, 255),
            ("block", self.block, _LAST_BLOCK),
        ):
            if given is not None and not 0 <= given <= most:
                raise ValidationError.of(
                    name, "range", f"{given} is out of range. Allowed: 0 to {most:,}."
                )
        if self.block is not None and self.date is not None:
            raise ValidationError.of(
                "date", "range", "a snapshot has a block or a date. Leave one of them out."
            )

    def check_used(self, files: Sequence[FileTable]) -> None:
        """Refuse what was given and says nothing of these files: a `ValidationError`."""
        used = set()
        for file in files:
            if file.kind.needs_options:
                used |= {"tokens", "decimals", "unit"}
            if file.kind.holds == "holders":
                used |= {"block", "date"}
            if file.types.get("timestamp") == "VARCHAR":
                used.add("date_format")
        for name, given in vars(self).items():
            if given not in (None, {}) and name not in used:
                # As the command has it, which nobody else calls with options that no file needs.
                flag = "--token" if name == "tokens" else f"--{name.replace('_', '-')}"
                raise ValidationError.of(
                    flag, "unused", "no file here is read by it. Leave it out."
                )

    def given(self) -> dict[str, Any]:
        """Return the options of amounts and snapshots that were given, as the manifest has them."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value not in (None, {}) and name != "date_format"
        }


def take_snapshot(stage: Stage, file: FileTable, options: SnapshotOptions) -> None:
    """Add a snapshot.

    Raises
    ------
    IngestError
        The token of a row, its decimals or the snapshot's block are unknown, or no row can be parsed.
    """
    made = _moment(stage, file, options)
    named = Tokens(stage, file, options)
    by_id = file.has("token_id")
    if by_id:
        check_columns(stage, file, "held")
    text = file.text("token_id" if by_id else "balance")
    columns = ("contract", "symbol", "written")
    written = (
        f"{file.text('contract')} AS contract, {file.text('symbol')} AS symbol, {text} AS written"
    )

    # Each token has its own decimals, and "1.5E-18" must come out exact or not at all.
    def read(
        contract: str | None, symbol: str | None, written: str | None
    ) -> tuple[str | None, ...]:
        if contract and not looks_like_address(contract):
            return contract, symbol, written, None, None, "token address is not an address"
        token = named.of(contract, symbol)
        return contract, symbol, written, token, *_digits(written, named, token, by_id=by_id)

    stage.spell(
        "amounts",
        (*columns, "token", "digits", "why"),
        f"SELECT {written} FROM {file.relation} GROUP BY ALL ORDER BY min(row)",
        read,
    )
    check_written(stage, file)
    same = " AND ".join(f"a.{column} IS NOT DISTINCT FROM h.{column}" for column in columns)
    is_address = "coalesce(regexp_full_match(address, '0x[0-9a-fA-F]{40}'), false)"
    bad_time = f"coalesce(moment NOT BETWEEN 0 AND {_LAST_BLOCK}, true)" if made.column else "false"
    # Of a wallet there is one balance, of an ERC721's id one owner; of an ERC1155's id several wallets may hold some.
    several = f"(SELECT address FROM known WHERE chain_id = {file.chain} AND standard = 'ERC1155')"
    what, held = (
        (
            f"CASE WHEN token IN {several} THEN digits || address ELSE digits END",
            f"CASE WHEN token IN {several} THEN '' ELSE address END",
        )
        if by_id
        else ("address", "digits")
    )
    stage.run(f"""
        CREATE OR REPLACE TABLE arrived_holders AS
        SELECT *, {what} AS what, {held} AS held FROM (
            SELECT row, token AS contract, token, lower(address) AS address, moment, coalesce(digits, '0') AS digits,
                CASE WHEN NOT {is_address} THEN 'holder is not an address'
                    WHEN {bad_time} THEN '{_MOMENTS.get(made.column)}' ELSE why END AS fault,
                CASE WHEN NOT {is_address} THEN address WHEN {bad_time} THEN said
                    WHEN token IS NULL THEN h.contract ELSE h.written END AS value
            FROM (SELECT row, {file.text("address")} AS address, {made.at} AS moment, {file.text(made.column)} AS said,
                      {written} FROM {file.relation}) h JOIN amounts a ON {same})""")
    stage.run(
        f"INSERT INTO bad SELECT {file.number}, row, fault, left(coalesce(value, ''), 200) "
        "FROM arrived_holders WHERE fault IS NOT NULL"
    )
    stage.run("DELETE FROM arrived_holders WHERE fault IS NOT NULL")
    stage.drop("amounts")
    _check_one(stage, file)
    _keep_the_latest(stage, file, by_id=by_id)
    _add(stage, file, made, by_id=by_id)
    for token in sorted(set(named.found.values())) if not by_id else ():
        if (places := named.places.get(token, options.decimals)) is not None:
            facts.learn_decimals(stage, file, token, places)


def _check_one(stage: Stage, file: FileTable) -> None:
    """Refuse several snapshots of one contract: who has left by the last would be taken for a holder still."""
    column = file.columns.get("block") or file.columns.get("timestamp") or ""
    # Others are a row's own, such as of a balance's last change; Covalent's block_height is what was asked for.
    if not column.lower().startswith(("snapshot", "block_height")):
        return
    found = stage.rows(
        "SELECT contract FROM arrived_holders GROUP BY contract "
        "HAVING count(DISTINCT moment) > 1 ORDER BY 1 LIMIT 1"
    )
    if found:
        raise file.source.fault(
            f"it has several snapshots of {found[0][0]}, by column "
            f"{quoted(column)}. Write each to a file of its own."
        )


def _keep_the_latest(stage: Stage, file: FileTable, *, by_id: bool) -> None:
    """Remove balances that the file repeats later, zero balances, and those that contradict an earlier row."""
    outdated = """FROM arrived_holders a WHERE EXISTS (SELECT 1 FROM arrived_holders b
        WHERE b.contract = a.contract AND b.what = a.what AND b.moment > a.moment)"""
    _leave_out(stage, file, "outdated", outdated)
    contradicting = """SELECT row, held FROM (
        SELECT row, held, held <> first(held) OVER (PARTITION BY contract, what ORDER BY row) AS other
        FROM arrived_holders) WHERE other"""
    stage.run(
        f"INSERT INTO bad SELECT {file.number}, row, '{OTHER_OWNER if by_id else OTHER_BALANCE}', held "
        f"FROM ({contradicting})"
    )
    stage.run(f"DELETE FROM arrived_holders WHERE row IN (SELECT row FROM ({contradicting}))")
    if not by_id:
        _leave_out(stage, file, "zero_balances", "FROM arrived_holders WHERE digits = '0'")


def _leave_out(stage: Stage, file: FileTable, why: str, which: str) -> None:
    stage.run(f"INSERT INTO odd SELECT {file.number}, '{why}', count(*) {which}")
    stage.run(f"DELETE {which}")


def _add(stage: Stage, file: FileTable, moment: _Moment, *, by_id: bool) -> None:
    """Add the file's rows to ``openings``."""
    if not stage.value("SELECT count(*) FROM arrived_holders"):
        refuse_all(stage, file, "every balance is zero")
    hi, mid, lo = limbs("digits")
    # A wallet may be listed twice with the same balance.
    stage.run(f"""
        INSERT INTO openings SELECT DISTINCT {file.number}, {file.chain}, contract, address, block, {hi}, {mid}, {lo},
            {str(by_id).lower()}, {"NULL" if moment.seconds is None else moment.seconds} FROM (
            SELECT *, ({moment.block})::BIGINT AS block FROM arrived_holders)""")
    stage.drop("arrived_holders")


@dataclass(frozen=True)
class _Moment:
    """When a snapshot was made: the SQL of its block, or its time.

    ``column`` is the column of the file that has it, if one has; ``at`` the SQL of a row's own.
    """

    block: str = "NULL"
    seconds: int | None = None
    column: str = ""
    at: str = "NULL::BIGINT"


def _moment(stage: Stage, file: FileTable, options: SnapshotOptions) -> _Moment:
    """Return when a snapshot was made, as the options or the file say.

    Raises
    ------
    IngestError
        Neither says: of whatever block it were taken, its balances could be wrong.
    """
    # Also beside an option: several snapshots in one file are none of that moment.
    own = file.whole("block") if file.has("block") else _seconds(file)
    if options.block is not None:
        return _Moment(str(options.block), at=own)
    if options.date is not None:
        return _Moment(seconds=options.date, at=own)
    if file.has("block"):
        by_row = "max(moment) OVER (PARTITION BY contract)"
        return _Moment(by_row, column="block", at=own)
    check_columns(stage, file, "timestamp")
    seconds = stage.value(f"SELECT max({own}) FROM {file.relation}")
    if seconds is None:
        says = "The file does not say"
        if file.has("timestamp"):
            first = stage.value(
                f"SELECT first({file.text('timestamp')} ORDER BY row) FROM {file.relation}"
            )
            says = f"Column {quoted(file.columns['timestamp'])} has no time that nbext reads, but {quoted(first)}"
        raise file.source.fault(
            f"of which block are these holders? {says}. Give it with --block N, "
            "or its day with --date 2025-01-31."
        )
    return _Moment(seconds=int(seconds), column="timestamp", at=own)


def _seconds(file: FileTable) -> str:
    """Return the SQL of a row's time; a date alone is its end, as of --date."""
    day = f"regexp_full_match({file.text('timestamp')}, '[0-9]+[-/][0-9]+[-/][0-9]+')"
    if file.date_format:
        day = str(not re.search("%-?[HIMscX]", file.date_format)).lower()
    is_date = {"DATE": "true", "VARCHAR": day}.get(file.types.get("timestamp", ""), "false")
    return f"({file.seconds()} + CASE WHEN {is_date} THEN 86399 ELSE 0 END)"


def place_snapshots(stage: Stage) -> Conflict | None:
    """Create ``newest``: of each contract the newest snapshot, and its block.

    The block of a snapshot with a time is the last one that the data has up to then. Of two snapshots of one block the
    later one counts, by their times, else the one ingested later. Returns the error of one of whose time the data does
    not say which blocks are up to then: the next block has no time, and may be from before it or after.

    Raises
    ------
    IngestError
        Two files of this run have one of the same moment, as the pages of a service's answer do.
    """
    stage.run("""
        CREATE TABLE made AS SELECT source, chain_id, contract, any_value(block) AS known, any_value(seconds) AS seconds
        FROM openings GROUP BY 1, 2, 3""")
    # Of several blocks in a second the last; where the data begins later, the block before its first.
    stage.run("""
        CREATE TABLE placed AS
        SELECT m.source, m.chain_id, m.contract, coalesce(m.known, m.until, greatest(n.block - 1, 0), 0) AS block,
            m.seconds, m.known IS NULL AND n.block IS NOT NULL AND n.seconds IS NULL AS lost
        FROM (SELECT m.*, b.block AS until, coalesce(b.block, -1) AS passed FROM made m
              ASOF LEFT JOIN (SELECT chain_id, seconds, max(block) AS block FROM out.ingest.blocks
                              WHERE seconds IS NOT NULL GROUP BY 1, 2) b
                  ON b.chain_id = m.chain_id AND m.seconds >= b.seconds) m
        ASOF LEFT JOIN (SELECT chain_id, block, max(seconds) AS seconds FROM (
                            SELECT chain_id, block, seconds FROM out.ingest.blocks
                            UNION ALL SELECT chain_id, known, NULL FROM made WHERE known IS NOT NULL)
                        GROUP BY 1, 2) n
            ON n.chain_id = m.chain_id AND m.passed < n.block""")
    stage.run(
        "CREATE TABLE newest AS FROM placed "
        "QUALIFY row_number() OVER (PARTITION BY chain_id, contract ORDER BY block DESC, seconds DESC, source DESC) = 1"
    )
    newest = "SELECT (chain_id, contract, source) FROM newest"
    facts.check_decimals(stage, which=f"(chain_id, address, number) IN ({newest})")
    stage.run(
        """
        INSERT INTO odd SELECT o.source, ?, count(*) FROM openings o JOIN newest n USING (chain_id, contract)
        WHERE o.source >= ? AND n.source < o.source GROUP BY 1""",
        ["older", stage.first],
    )
    for contract, part, source in stage.rows(
        "SELECT contract, min(source), max(source) FROM placed WHERE source >= ? "
        "GROUP BY chain_id, contract, block, seconds HAVING count(*) > 1 ORDER BY 2, 1 LIMIT 1",
        [stage.first],
    ):
        raise stage.fault(
            source,
            f"its holders of {contract} are of the same moment as those of {stage.shown(part)}, and would take their "
            "place. Write the parts of one snapshot to one file, and ingest two snapshots one after the other.",
        )
    source = stage.value(
        "SELECT source FROM placed WHERE lost ORDER BY source < ?, source LIMIT 1", [stage.first]
    )
    stage.drop("made")
    if source is None:
        return None
    why = (
        "blocks of the data around this snapshot's time have no time, so its block is unknown. Give it with --block N, "
        "or ingest a blocks file."
        if source >= stage.first
        else "it is a snapshot of a time, and blocks around it would have no time, so its block would be unknown. "
        "Ingest a blocks file first, or ingest the snapshot again with --block N, or remove it."
    )
    return stage.fault(source, why), source


def _word(file: FileTable, symbol: str | None) -> str:
    """Return what a row or a file calls its token: the row's symbol, or the last word of the file's name."""
    return (symbol or re.split(r"[-_ ]", file.source.path.name.split(".")[0])[-1]).lower()


def named_token(
    stage: Stage,
    file: FileTable,
    symbol: str | None,
    options: SnapshotOptions,
    table: str = "known",
) -> str | None:
    """Return the address that an option or the file's name gives a token of that symbol, or of none.

    ``table`` has what is known of tokens when the option gives a symbol.
    """
    word = _word(file, symbol)
    # A symbol of --token may be in the name of a folder: snapshots/UNI/2024.csv. Two of them leave it open.
    said = set(re.split(r"[-_ ./\\]", file.source.shown.lower())) & options.tokens.keys() - {""}
    if not symbol and len(said) == 1:
        (word,) = said
    chosen = options.tokens.get(word) or options.tokens.get("")
    if not chosen and not symbol and (in_name := _ADDRESS.search(file.source.path.name)):
        chosen = in_name.group()
    if chosen and not looks_like_address(chosen):
        return _bearer(stage, file, chosen, table)
    return chosen and chosen.lower()


def _bearer(stage: Stage, file: FileTable, word: str, table: str) -> str:
    """Return the address of the only token of a symbol; of several, of the only one that is verified."""
    bearing = stage.rows(
        f"SELECT address, coalesce(bool_or(verified), false) FROM {table} WHERE chain_id = ? AND lower(symbol) = ? "
        "GROUP BY 1",
        [file.chain, word.lower()],
    )
    bearing = [row for row in bearing if row[1]] or bearing
    if len(bearing) == 1:
        return str(bearing[0][0])
    many = f"{len(bearing)} contracts have" if bearing else "No known contract has"
    raise file.source.fault(
        f"which token do these wallets hold? {many} the symbol {quoted(word)}. "
        f"Name the token: --token {visible(word, 40)}=0x..."
    )


class Tokens:
    """Finds the token of a row, and its decimals."""

    def __init__(self, stage: Stage, file: FileTable, options: SnapshotOptions) -> None:
        self.stage, self.file, self.options = stage, file, options
        self.unit = options.unit or file.kind.unit
        self.found: dict[str, str] = {}
        self.symbols: dict[str, str] = {}
        self.places: dict[str, int] = {}

    def of(self, contract: str | None, symbol: str | None) -> str:
        """Return the token's address: the row's own, the option's, or that of the only token with the symbol."""
        if contract:
            return self.found.setdefault(contract, contract.lower())
        word = _word(self.file, symbol)
        if word not in self.found:
            named = named_token(self.stage, self.file, symbol, self.options)
            token = named or _bearer(self.stage, self.file, word, "known")
            # One --token for all rows would make holders of one token of those of several. Who gives each symbol the
            # same address means it: a token that was renamed has rows of both.
            other = self.symbols.setdefault(token, word) if symbol else word
            if word != other and (missing := {word, other} - self.options.tokens.keys()):
                raise self.file.source.fault(
                    f"its rows are of {quoted(other)} and of {quoted(word)}, and both would be {token}. "
                    f"Name each token: --token {visible(min(missing), 40)}=0x..."
                )
            self.found[word] = token
        return self.found[word]

    def decimals(self, token: str) -> int:
        """Return the token's decimals, 0 of raw amounts; without them, balances in its unit have no meaning."""
        if self.unit == "raw":
            return 0
        if token not in self.places:
            places, stated = facts.known_decimals(self.stage, self.file, token)
            # Where metadata has none, as is said here; else as an earlier snapshot was taken.
            if not stated and self.options.decimals is not None:
                places = self.options.decimals
            if places is None:
                transfers = self.file.kind.holds == "transfers"
                what, raw = ("amounts", "") if transfers else ("balances", ", or --unit raw")
                raise self.file.source.fault(
                    f"the decimals of {token} are unknown, so its {what} cannot be read. "
                    f"Ingest a token list or tokens file that has them, or give --decimals N{raw}."
                )
            self.places[token] = places
        return self.places[token]


def _digits(
    text: str | None, tokens: Tokens, token: str, *, by_id: bool
) -> tuple[str | None, str | None]:
    """Return the amount in the smallest unit, or what is wrong with it; neither for a balance of zero."""
    text, raw = text or "", tokens.unit == "raw"
    if by_id or (raw and _HEX.match(text)):
        number = uint256_of(text.lower())
        digits, fault = (None, "none") if number is None else (str(number), None)
    elif _HEX.match(text):
        return None, "balance is hexadecimal, as amounts in the smallest unit are: add --unit raw"
    else:
        digits, fault = amount_of(text, tokens.decimals(token))
    if fault:
        whole = "not a whole number from 0 to 2**256-1"
        return None, whole if by_id or raw else f"balance {fault}"
    return (None if digits == "0" and not by_id else digits), None


def check_written(stage: Stage, file: FileTable) -> None:
    """Refuse a file whose ``amounts`` a spreadsheet has written: some would be read as what they are not."""
    separated, comma, cut = (
        f"regexp_full_match(written, '{pattern}')"
        for pattern in (_SEPARATED.pattern, *_OF_SPREADSHEETS)
    )
    between, before, dropped = stage.rows(
        f"SELECT min(written) FILTER ({separated}), min(written) FILTER ({comma} AND NOT {separated}), "
        f"min(written) FILTER ({cut} AND why IS NULL) FROM amounts"
    )[0]
    if between and before:
        why = f"a comma is before decimals in {quoted(before)}, and {quoted(between)} would be read as of thousands."
    elif dropped:
        why = f"{quoted(dropped)} has six digits and an exponent, as spreadsheets write amounts without all digits."
    else:
        return
    raise file.source.fault(f"{why} Take the file as it was before a spreadsheet wrote it.")


def amount_of(text: str, decimals: int) -> tuple[str | None, str | None]:
    """Return an amount in a token's unit as digits of its smallest unit, or what is wrong with it."""
    number = text.replace(",", "") if _SEPARATED.fullmatch(text) else text
    if not _NUMBER.match(number):
        return None, "is not a number"
    try:
        raw = to_raw(Decimal(number), decimals)
    except TooManyDecimals:
        return None, f"has more than {decimals} decimals"
    if raw < 0:
        return None, "is below zero"
    return (None, "is above 2**256-1") if raw > MAX_UINT256 else (str(raw), None)
