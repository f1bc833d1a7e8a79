"""Amounts and token ids: decimal or hex text becomes three limbs of 26 digits, exactly or not at all."""

from __future__ import annotations

import pyarrow as pa

from nbext.core.uint256 import LIMB_DIGITS, MAX_UINT256, uint256_of
from nbext.engine.ingest.stage import Stage

DECIMAL = "DECIMAL(38,0)"


def is_amount(digits: str) -> str:
    """Return the SQL that says whether a text is a whole number from 0 to 2**256 - 1, in decimal digits."""
    return (f"(regexp_full_match({digits}, '[0-9]{{1,78}}') "
            f"AND (length({digits}) < 78 OR {digits} <= '{MAX_UINT256}'))")


def limbs(digits: str) -> tuple[str, str, str]:
    """Return the SQL of the three limbs of a text that is an amount; NULL where a part is not digits.

    Texts of up to 26 digits, nearly all of them, are cast once. The cast goes by HUGEINT: text to DECIMAL
    is many times slower.
    """
    width = LIMB_DIGITS
    cast = f"TRY_CAST({{}} AS HUGEINT)::{DECIMAL}"
    zero = f"0::{DECIMAL}"
    lo = cast.format(f"CASE WHEN length({digits}) <= {width} THEN {digits} ELSE right({digits}, {width}) END")
    mid = cast.format(f"substr({digits}, greatest(length({digits}) - {2 * width - 1}, 1), "
                      f"least(length({digits}) - {width}, {width}))")
    hi = cast.format(f"left({digits}, length({digits}) - {2 * width})")
    return (f"CASE WHEN length({digits}) > {2 * width} THEN {hi} ELSE {zero} END",
            f"CASE WHEN length({digits}) > {width} THEN {mid} ELSE {zero} END", lo)


def spell_hex(stage: Stage, relation: str, column: str) -> None:
    """Make ``hex_digits``: the decimal digits of each distinct hex text of a column.

    Python's integers do it exactly; what is no hex number, or too large, is left out.
    """
    stage.run("CREATE OR REPLACE TABLE hex_digits (text VARCHAR, digits VARCHAR)")
    found = stage.connection.cursor().execute(
        f"SELECT DISTINCT {column} AS text FROM {relation} WHERE {column} LIKE '0x%'")
    while texts := [row[0] for row in found.fetchmany(100_000)]:
        read = [(text, number) for text in texts if (number := uint256_of(text)) is not None]
        arriving = pa.table({"text": [text for text, _ in read], "digits": [str(number) for _, number in read]},
                            schema=pa.schema([("text", pa.string()), ("digits", pa.string())]))
        stage.connection.register("arriving_hex", arriving)
        stage.run("INSERT INTO hex_digits SELECT * FROM arriving_hex")
        stage.connection.unregister("arriving_hex")


def decimal(number: int) -> str:
    """Return the SQL of a whole number as a limb's type: compared with another type, a column is cast."""
    return f"{number}::{DECIMAL}"
