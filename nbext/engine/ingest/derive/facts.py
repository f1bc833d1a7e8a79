"""Facts about contracts, from token and contract exports, token lists, and the well-known contracts.

Facts are stored with what they are from and the file that gave them, so that a later run can weigh them again. Of two
kinds, the one that comes first in `SOURCES` wins, field by field; within one kind, the newest.
"""

from __future__ import annotations

import pyarrow as pa

from nbext.core.chains import chain_of
from nbext.core.uint256 import MAX_UINT256
from nbext.core.untrusted_text import visible
from nbext.engine.ingest.reading import FileTable
from nbext.engine.ingest.stage import OF_A_FILE, Stage
from nbext.engine.sample.known import KNOWN
from nbext.engine.schema import CONTRACTS, SQL_TYPES, sql_literal
from nbext.errors import ValidationError

# First what an exporter read from the contracts and their logs, then curated lists, then what a row calls a token.
SOURCES = ("contracts", "tokens", "transfers", "list", "tokentx", "known", "snapshot")
FIELDS = (
    "standard",
    "name",
    "symbol",
    "decimals",
    "logo",
    "verified",
    "spam",
    "deployer",
    "deployed_block",
    "total_supply",
)
FACTS = {
    "chain_id": "int64",
    "address": "string",
    "source": "string",
    "seq": "int64",
    **{name: CONTRACTS[name] for name in FIELDS},
}
_PRIORITY = "list_position([" + ", ".join(f"'{s}'" for s in SOURCES) + "], source)"
ADDRESS = "regexp_full_match({0}, '0[xX][0-9a-fA-F]{{40}}')"


def create_facts(stage: Stage) -> None:
    """Create the table of facts, with those of the generation before."""
    stage.run(f"CREATE TABLE facts ({', '.join(f'{c} {SQL_TYPES[t]}' for c, t in FACTS.items())})")
    if stage.previous:
        # The well-known contracts are of this version.
        stage.run(
            f"INSERT INTO facts SELECT {', '.join(FACTS)} FROM prev.ingest.facts WHERE source <> 'known'"
        )
    # Facts of the well-known contracts fill what no file says, and never contradict one.
    schema = pa.schema((column, pa.type_for_alias(kind)) for column, kind in FACTS.items())
    known = [
        {
            **vars(entry),
            "chain_id": entry.chain_id,
            "address": entry.address,
            "source": "known",
            "seq": 0,
            "verified": True,
        }
        for entry in KNOWN
    ]
    stage.insert("facts", pa.Table.from_pylist(known, schema))


def take_table(stage: Stage, file: FileTable) -> None:
    """Add the facts of a tokens or contracts file."""
    # Whoever curates a list has looked at its tokens.
    source, verified = file.kind.source or file.kind.holds, "true" if file.kind.source else "NULL"
    address, chain, relation = file.text("address"), str(file.chain), file.relation
    if file.chain is None:
        chain, relation = "their_chain", _by_chain(stage, file)
    stage.run(
        f"INSERT INTO bad SELECT {file.number}, row, 'not an address', {address} "
        f"FROM {relation} WHERE NOT coalesce({ADDRESS.format(address)}, false)"
    )
    stage.run(f"""
        INSERT INTO facts SELECT {chain}, lower({address}), '{source}', {file.number} * {OF_A_FILE} + row,
            {_standard(file)}, {_text(file, "name")}, {_text(file, "symbol")}, {decimals(file)}, {_text(file, "logo")},
            {verified}, NULL, lower({_text(file, "deployer")}), {file.whole("deployed_block")},
            {_supply(file)}
        FROM {relation} WHERE {ADDRESS.format(address)}""")
    read = {
        "decimals": decimals(file),
        "total_supply": _supply(file),
        "standard": standard_of(file.text("standard")),
    }
    unread = " + ".join(
        f"count(*) FILTER ({file.text(c)} <> '' AND {sql} IS NULL)" for c, sql in read.items()
    )
    stage.run(f"INSERT INTO odd SELECT {file.number}, 'unread', {unread} FROM {relation}")


def _by_chain(stage: Stage, file: FileTable) -> str:
    """Return the SQL of the rows of chains that nbext supports, as ``their_chain``; the others are counted."""
    text = file.its_chain
    named = stage.rows(f"SELECT DISTINCT {text} FROM {file.relation}")
    known = [
        f"WHEN {sql_literal(each)} THEN {number}"
        for (each,) in named
        # A "mainnet" beside named chains may be any other one's.
        if each is not None
        and (number := _chain_id(each) if each else file.default_chain) is not None
    ]
    chain = f"CASE {text} {' '.join(known)} END" if known else "NULL"
    stage.run(
        f"INSERT INTO bad SELECT {file.number}, row, 'names no chain', {file.text('chain_id')} FROM {file.relation} "
        f"WHERE coalesce({text}, '') = '' AND {chain} IS NULL"
    )
    stage.run(
        f"INSERT INTO odd SELECT {file.number}, 'elsewhere', count(*) "
        f"FROM {file.relation} WHERE {text} <> '' AND {chain} IS NULL"
    )
    return f"(SELECT *, {chain} AS their_chain FROM {file.relation} WHERE {chain} IS NOT NULL)"


def _chain_id(text: str) -> int | None:
    try:
        return chain_of(text).id
    except ValidationError:
        return None


def declare(stage: Stage, file: FileTable) -> None:
    """Add what a transfers file says of its contracts: the standard of its format, the names in its rows."""
    if not file.kind.standard and not file.has("standard"):
        return
    if file.has("standard"):
        _check_standards(stage, file)
    source = "tokentx" if file.has("symbol") else "transfers"
    standard = (
        f"any_value({standard_of(file.text('standard'))})"
        if file.has("standard")
        else f"'{file.kind.standard}'"
    )
    address = file.text("contract")
    stage.run(f"""
        INSERT INTO facts (chain_id, address, source, seq, standard, name, symbol, decimals)
        SELECT {file.chain}, lower({address}), '{source}', {file.number} * {OF_A_FILE} + max(row), {standard},
            {_text(file, "name")}, {_text(file, "symbol")}, {decimals(file)}
        FROM {file.relation} WHERE {ADDRESS.format(address)} GROUP BY 2, 6, 7, 8""")


def _check_standards(stage: Stage, file: FileTable) -> None:
    """Refuse a file that says two standards of one contract: token ids would count as amounts, or amounts as ids."""
    address, standard = file.text("contract"), standard_of(file.text("standard"))
    for contract, said in stage.rows(f"""
        SELECT lower({address}), string_agg(DISTINCT {standard}, ' and ' ORDER BY {standard})
        FROM {file.relation} WHERE {ADDRESS.format(address)}
        GROUP BY 1 HAVING count(DISTINCT {standard}) > 1 ORDER BY 1 LIMIT 1"""):
        raise file.source.fault(
            f"its rows of {contract} are {said}, and a contract has one standard. Leave out those that are wrong."
        )


def merge_facts(stage: Stage) -> None:
    """Reduce the facts to one row per contract, kind and file, and create ``known``: one row per contract."""
    stage.run(f"""
        INSERT INTO odd SELECT number, 'said_twice', count(*) FROM (
            SELECT seq // {OF_A_FILE} AS number FROM facts WHERE seq >= {stage.first * OF_A_FILE}
            GROUP BY chain_id, address, source, number
            HAVING greatest(count(DISTINCT decimals), count(DISTINCT lower(symbol)), count(DISTINCT standard)) > 1)
        GROUP BY number""")
    # Field by field, since a newer source that leaves a field empty does not make the older one wrong.
    newest = ", ".join(
        f"first({c} ORDER BY seq DESC) FILTER ({c} IS NOT NULL) AS {c}" for c in FIELDS
    )
    stage.run("CREATE SCHEMA IF NOT EXISTS out.ingest")
    stage.run(
        "CREATE OR REPLACE TABLE out.ingest.facts AS SELECT chain_id, address, source, "
        f"seq // {OF_A_FILE} * {OF_A_FILE} AS seq, {newest} FROM facts GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
    )
    best = ", ".join(
        f"first({c} ORDER BY {_PRIORITY}, seq DESC) FILTER ({c} IS NOT NULL) AS {c}" for c in FIELDS
    )
    stage.run(
        f"CREATE TABLE known AS SELECT chain_id, address, {best} FROM out.ingest.facts GROUP BY 1, 2"
    )
    stage.drop("facts")
    check_decimals(stage)


_NEW = "known k LEFT JOIN prev.main.contracts c USING (chain_id, address) WHERE k.decimals IS DISTINCT FROM c.decimals"


def check_decimals(stage: Stage, new: str = _NEW, which: str = "true") -> None:
    """Refuse decimals of a token with which its stored amounts were not read: they would be wrong from now on.

    ``new`` is the SQL of the tokens that get other decimals, as ``k``; ``which`` that of the files, by their
    ``number``, that count.
    """
    if stage.previous is None:
        return
    read = [
        entry["source"] for entry in stage.files if entry.get("options", {}).get("unit") != "raw"
    ]
    for number, address, then, now in stage.rows(
        f"""
        SELECT number, address, f.decimals, now.decimals
        FROM (SELECT *, seq // {OF_A_FILE} AS number FROM out.ingest.facts WHERE source = 'snapshot') f
        JOIN (SELECT chain_id, address, k.decimals FROM {new}) now USING (chain_id, address)
        WHERE f.decimals <> now.decimals AND number IN (SELECT unnest(?)) AND {which} ORDER BY ALL LIMIT 1""",
        [read],
    ):
        raise stage.fault(
            number,
            f"its amounts of {address} were read with {then} decimals, and would be wrong with {now}, which the token "
            f"has from now on. Ingest the file again in the same run with --decimals {now}, or remove it first.",
        )


# In the place of a file's number.
_WELL_KNOWN = -1


def disagreements(stage: Stage) -> list[str]:
    """Return a line for each contract whose decimals, symbol or standard differ between files, one of this run."""
    found: list[str] = []
    # A day's transfers seldom say anything of a contract, and what is stored says much of many.
    if not stage.value(
        f"SELECT count(*) FROM out.ingest.facts WHERE seq >= {stage.first * OF_A_FILE}"
    ):
        return found
    for column in ("decimals", "symbol", "standard"):
        told = stage.rows(
            f"""
            SELECT address, list((value, number) ORDER BY {_PRIORITY}, seq DESC) FROM (
                SELECT *, {column}::VARCHAR AS value,
                    CASE source WHEN 'known' THEN {_WELL_KNOWN} ELSE seq // {OF_A_FILE} END AS number
                FROM out.ingest.facts WHERE {column} IS NOT NULL AND source <> 'snapshot')
            GROUP BY chain_id, address HAVING count(DISTINCT lower(value)) > 1 AND max(number) >= ? ORDER BY 1""",
            [stage.first],
        )
        for address, (used, *others) in told:
            other = next(one for one in others if one[0].lower() != used[0].lower())
            here, there = (
                f"{visible(value, 40)} as in "
                + ("the well-known tokens" if number == _WELL_KNOWN else stage.shown(number))
                for value, number in (used, other)
            )
            found.append(f"{address}: {column} {here}, not {there}")
    return found


def known_decimals(stage: Stage, file: FileTable, address: str) -> tuple[int | None, bool]:
    """Return the decimals of a file's contract, and whether metadata has them: not only a snapshot taken with them."""
    [(found, stated)] = stage.rows(
        """
        SELECT (SELECT decimals FROM known WHERE chain_id = $1 AND address = $2), count(decimals) > 0
        FROM out.ingest.facts WHERE chain_id = $1 AND address = $2 AND source <> 'snapshot'""",
        [file.chain, address],
    )
    return found, stated


def learn_decimals(stage: Stage, file: FileTable, address: str, decimals: int) -> None:
    """Store the decimals that a file's snapshot was taken with; they are the token's where no metadata has them."""
    # Stored also where metadata has them: what the balances were read with stays true when that is removed.
    (_, stated), key = known_decimals(stage, file, address), [file.chain, address]
    # Of snapshots only the newest counts, which `snapshots.place_snapshots` finds.
    check_decimals(
        stage,
        f"(SELECT {file.chain} AS chain_id, {sql_literal(address)} AS address, {decimals} AS decimals) k",
        "number NOT IN (SELECT source FROM prev.ingest.openings)",
    )
    stage.run(
        "INSERT INTO out.ingest.facts (chain_id, address, source, seq, decimals) VALUES (?, ?, 'snapshot', ?, ?)",
        [*key, file.number * OF_A_FILE, decimals],
    )
    if not stated:
        stage.run(
            """
            MERGE INTO known USING (SELECT ? AS chain_id, ? AS address, ? AS decimals) AS now
            USING (chain_id, address) WHEN MATCHED THEN UPDATE SET decimals = now.decimals
            WHEN NOT MATCHED THEN
                INSERT (chain_id, address, decimals) VALUES (now.chain_id, now.address, now.decimals)""",
            [*key, decimals],
        )


def _text(file: FileTable, column: str) -> str:
    return f"nullif({file.text(column)}, '')"


def decimals(file: FileTable) -> str:
    """Return the SQL of a file's decimals: a whole number from 0 to 255, else NULL."""
    number = file.whole("decimals")
    return f"CASE WHEN {number} BETWEEN 0 AND 255 THEN {number} END"


def _supply(file: FileTable) -> str:
    digits = f"coalesce(nullif(ltrim({file.text('total_supply')}, '0'), ''), '0')"
    return f"CASE WHEN {file.text('total_supply')} <> '' AND {is_uint256(digits)} THEN {digits} END"


def is_uint256(digits: str) -> str:
    """Return the SQL of whether a text is the decimal digits of a uint256."""
    return (
        f"coalesce(regexp_full_match({digits}, '[0-9]{{1,78}}') "
        f"AND (length({digits}) < 78 OR {digits} <= '{MAX_UINT256}'), false)"
    )


def standard_of(text: str) -> str:
    """Return the SQL of a standard: ERC20, ERC721 or ERC1155, also written erc-721, bep721 or 721; else NULL."""
    # Also BEP20, as Dune writes it of BNB.
    number = f"regexp_extract(lower(trim({text})), '^([a-z]+-?)?(20|721|1155)\\z', 2)"
    return f"CASE WHEN {number} <> '' THEN 'ERC' || {number} END"


def _standard(file: FileTable) -> str:
    if file.kind.holds == "contracts":
        is_true = "lower({}) IN ('true', '1', 't')"
        return (
            f"CASE WHEN {is_true.format(file.text('is_erc721'))} THEN 'ERC721' "
            f"WHEN {is_true.format(file.text('is_erc20'))} THEN 'ERC20' END"
        )
    # A collection has no decimals, so one or more of them make it an ERC20; zero or none prove nothing, but in a list.
    least = 0 if file.kind.source else 1
    by_decimals = f"CASE WHEN {decimals(file)} >= {least} THEN 'ERC20' END"
    if file.has("standard"):
        return f"coalesce({standard_of(file.text('standard'))}, {by_decimals})"
    return f"'{file.kind.standard}'" if file.kind.standard else by_decimals
