"""Exports for people, in the form of all others: each row has its contract, one token id or one whole amount.

Block explorers leave the contract to the file's name and write amounts in the token's unit; an ERC1155's batch is one
log of many token ids; and one table may have all standards in it, and the chain's own coin.
"""

from __future__ import annotations

from collections.abc import Mapping

from nbext.engine.ingest.derive import facts, rows, snapshots
from nbext.engine.ingest.reading import FileTable
from nbext.engine.ingest.stage import Stage, name
from nbext.engine.schema import sql_literal

# What only a row that is reshaped has.
_RESHAPED = ("ids", "counts", "token_id")


def reshape(stage: Stage, file: FileTable, options: snapshots.SnapshotOptions) -> None:
    """Give each row of a transfers file its contract and one token id.

    Raises
    ------
    IngestError
        The file names no contract, and no option does, its times are not in seconds, or it has token ids and amounts.
    """
    rows.check_columns(stage, file)
    if file.has("type"):
        stage.run(
            f"INSERT INTO odd SELECT {file.number}, 'no_transfers', count(*) "
            f"FROM {file.relation} WHERE {file.text('type')} IS DISTINCT FROM 'token_transfer'"
        )
    if not file.has("contract") or any(map(file.has, ("ids", "standard"))):
        _reshape(stage, file, options)
    if file.has("value") and (file.has("count") or not file.has("log_index")):
        _spell_values(stage, file)


def _reshape(stage: Stage, file: FileTable, options: snapshots.SnapshotOptions) -> None:
    columns, relation = {ours: file.text(ours) for ours in file.columns}, file.relation
    if not file.has("contract"):
        found = snapshots.named_token(stage, file, None, options, "facts")
        if found is None:
            raise file.source.fault(
                "which token are these transfers of? No column says it, nor does the "
                "file's name. Give its address alone, without a symbol: --token 0x..."
            )
        columns["contract"] = sql_literal(found)
    if file.has("standard"):
        standard = f"coalesce({facts.standard_of(columns['standard'])}, lower(trim({columns['standard']})))"
        columns["standard"] = standard
        _count_coins(stage, file, standard)
        relation = f"(SELECT * FROM {relation} WHERE {standard} IS DISTINCT FROM 'native')"
        if file.has("token_id"):
            relation = _of_known_standards(stage, file, relation, standard)
    if file.has("count"):  # with separators, as people read it
        columns["count"] = f"regexp_replace({columns['count']}, ',([0-9]{{3}})\\b', '\\1', 'g')"
    if file.has("token_id"):
        columns |= _by_standard({"value": file.text("value"), **columns})
    if file.has("ids"):
        relation = _batches(stage, file, relation, columns)
        columns = {ours: name(ours) for ours in (*columns, "value", "count")}
    columns = {ours: sql for ours, sql in columns.items() if ours not in _RESHAPED}
    _write(stage, file, relation, columns, "reshaped")
    if file.rows and not stage.value(f"SELECT count(*) FROM {file.relation}"):
        rows.refuse_all(stage, file)


def _write(
    stage: Stage, file: FileTable, relation: str, columns: Mapping[str, str], made: str
) -> None:
    """Make a table of the stage the file's relation."""
    table = f"{made}_{file.number}"
    listed = ", ".join(f"{sql} AS {name(ours)}" for ours, sql in columns.items())
    stage.run(f"CREATE TABLE {table} AS SELECT row, {listed} FROM {relation}")
    file.relation, file.columns, file.types = (
        table,
        {c: c for c in columns},
        dict.fromkeys(columns, "VARCHAR"),
    )


def _spell_values(stage: Stage, file: FileTable) -> None:
    """Write values as plain decimals where they are a part of a row's key: 0x7 and 007 are the same token id as 7."""
    text = file.text("value")
    if not stage.value(
        f"SELECT count(*) FROM {file.relation} WHERE {text} LIKE '0x%' OR {text} LIKE '0_%'"
    ):
        return
    rows.spell_hex(stage, file.relation, text)
    columns = {ours: file.text(ours) for ours in file.columns}
    zeros = f"coalesce(nullif(ltrim({text}, '0'), ''), '0')"
    columns["value"] = (
        f"coalesce(hex_digits.digits, CASE WHEN regexp_full_match({text}, '0[0-9]+') THEN {zeros} "
        f"ELSE {text} END)"
    )
    _write(
        stage,
        file,
        f"{file.relation} LEFT JOIN hex_digits ON hex_digits.text = {text}",
        columns,
        "plain",
    )


def _count_coins(stage: Stage, file: FileTable, standard: str) -> None:
    coins = stage.value(f"SELECT count(*) FROM {file.relation} WHERE {standard} = 'native'")
    if coins == file.rows:
        raise file.source.fault("its rows are transfers of the chain's own coin, not of tokens.")
    stage.run("INSERT INTO odd VALUES (?, ?, ?)", [file.number, "coins", coins])


def _of_known_standards(stage: Stage, file: FileTable, relation: str, standard: str) -> str:
    """Return the SQL of the rows whose standard says which column is the amount; the others go to ``bad``."""
    known = f"coalesce({standard} IN ('ERC20', 'ERC721', 'ERC1155'), false)"
    stage.run(
        f"INSERT INTO bad SELECT {file.number}, row, 'the standard is none of ERC20, ERC721 and ERC1155', "
        f"left({file.text('standard')}, 200) FROM {relation} WHERE NOT {known}"
    )
    return f"(SELECT * FROM {relation} WHERE {known})"


def _by_standard(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the SQL of value and count where an amount and a token id have columns of their own."""
    is_coin = f"{columns['standard']} = 'ERC20'"
    is_many = f"{columns['standard']} = 'ERC1155'"
    return {
        "value": f"CASE WHEN {is_coin} THEN {columns['value']} ELSE {columns['token_id']} END",
        "count": f"CASE WHEN {is_many} THEN {columns['value']} ELSE '1' END",
    }


def _batches(stage: Stage, file: FileTable, relation: str, columns: Mapping[str, str]) -> str:
    """Return the SQL of a row for each token id of a batch; batches whose ids and counts do not match go to ``bad``."""
    # [1, 2], [1 2], {1,2} and ["1","2"]: every exporter writes lists in a way of its own.
    ids, counts = (
        f"list_filter(string_split_regex(regexp_replace({columns[c]}, '[^0-9A-Za-z.+-]+', ' ', 'g'), ' '), "
        "lambda one: one <> '')"
        for c in ("ids", "counts")
    )
    stage.run(
        f"INSERT INTO bad SELECT {file.number}, row, 'ids and values are not as many', "
        f"left(concat_ws(' ', {columns['ids']}, {columns['counts']}), 200) FROM {relation} "
        f"WHERE coalesce(len({ids}) <> len({counts}), true)"
    )
    kept = ", ".join(
        f"{sql} AS {name(ours)}" for ours, sql in columns.items() if ours not in _RESHAPED
    )
    passed = ", ".join(
        f"any_value({name(ours)}) AS {name(ours)}" for ours in columns if ours not in _RESHAPED
    )
    # A cast alone would round 1.5.
    whole = "CASE WHEN regexp_full_match(one, '[0-9]+') THEN TRY_CAST(one AS HUGEINT) END"
    # One row for each id: a batch may name an id twice, and a row is told from the others of its log by its id.
    return f"""(SELECT row + (row_number() OVER (PARTITION BY row ORDER BY place) - 1) * {rows.ELEMENT} AS row,
            * EXCLUDE (row, place) FROM (
        SELECT row, min(place) AS place, id AS value, {passed},
            CASE WHEN count({whole}) = count(*) THEN sum({whole})::VARCHAR ELSE string_agg(one, ' ' ORDER BY place) END
                AS count
        FROM (SELECT row, {kept}, unnest({ids}) AS id, unnest({counts}) AS one,
                  generate_subscripts({ids}, 1) AS place
              FROM {relation} WHERE len({ids}) = len({counts}))
        GROUP BY row, id))"""


def spell_amounts(stage: Stage, file: FileTable, options: snapshots.SnapshotOptions) -> None:
    """Write a file's amounts in the smallest unit of their tokens; those that are none go to ``bad``.

    Raises
    ------
    IngestError
        The decimals of a token are unknown, or no amount can be read.
    """
    if not file.has("amount"):
        return
    named = snapshots.Tokens(stage, file, options)
    texts = ", ".join(f"{file.text(ours)} AS {name(ours)}" for ours in file.columns)
    plain = f"(SELECT row, {texts} FROM {file.relation})"
    stage.spell(
        "amounts",
        ("token", "written", "digits", "why"),
        f"SELECT DISTINCT lower(contract), amount FROM {plain} WHERE {facts.ADDRESS.format('contract')} "
        "AND amount IS NOT NULL ORDER BY ALL",
        lambda token, text: (token, text, *snapshots.amount_of(text, named.decimals(token))),
    )
    snapshots.check_written(stage, file)
    spelled = f"{plain} LEFT JOIN amounts ON token = lower(contract) AND written = amount"
    stage.run(
        f"INSERT INTO bad SELECT {file.number}, row, why, amount FROM {spelled} WHERE why IS NOT NULL"
    )
    columns = {ours: name(ours) for ours in file.columns if ours != "amount"}
    _write(stage, file, f"{spelled} WHERE why IS NULL", {"value": "digits", **columns}, "spelled")
    if not stage.value(f"SELECT count(*) FROM {file.relation}"):
        rows.refuse_all(stage, file)
    for token, places in named.places.items():
        facts.learn_decimals(stage, file, token, places)
