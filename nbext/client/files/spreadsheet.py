"""Cells that a spreadsheet would take for formulas, made texts: a name on chain is anybody's text."""

from __future__ import annotations

from typing import Any

# What opens a formula, in ASCII or full width, or hides one behind a tab, line break or NUL; plain numbers do not.
_FORMULA = r"^[=+\-@\t\r\n\x00＝＋－＠]"
_NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?$"


def safe(batch: Any, schema: Any) -> Any:
    """Return a batch whose texts a spreadsheet shows as they are: with ``'`` before what it would run."""
    import pyarrow as pa

    columns = [_safe(column) if _is_text(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def safe_names(schema: Any) -> Any:
    """Return the schema with names that a spreadsheet shows as they are."""
    import pyarrow as pa

    names = _safe(pa.array(schema.names, pa.string())).to_pylist()
    return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _safe(texts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    runs = pc.and_(
        pc.match_substring_regex(texts, _FORMULA), pc.invert(pc.match_substring_regex(texts, _NUMBER))
    )
    quote, nothing = (pa.scalar(text, texts.type) for text in ("'", ""))
    return pc.if_else(runs, pc.binary_join_element_wise(quote, texts, nothing), texts)
