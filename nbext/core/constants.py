"""Limits and standards that more than one room must agree on, and the one check of a segment's limit."""

from __future__ import annotations

import re
from numbers import Integral
from typing import TypeGuard

from nbext.core.untrusted_text import shown

DEFAULT_LIMIT = 1_000
MAX_LIMIT = 10_000_000
MAX_SEARCH_TERM = 256
# The longest address that SMTP can carry (RFC 5321, 4.5.3.1.3, without its angle brackets).
MAX_EMAIL = 254

# For JSON Schema, which searches: there the pattern carries ^ and $.
SEGMENT_ID_PATTERN = "[A-Za-z0-9_-]{1,128}"
SEGMENT_ID = re.compile(SEGMENT_ID_PATTERN + r"\Z")
# Ours, which tells them from addresses in a list.
SAVED_PATTERN = "sg_[A-Za-z0-9_-]{1,125}"

ERC20 = "ERC20"
NFT_STANDARDS = ("ERC721", "ERC1155")
STANDARDS = (ERC20, *NFT_STANDARDS)

# The longest text that is looked up as a symbol; longer ones are spam, and no answer is to repeat them.
MAX_SYMBOL = 64
# What of a symbol goes into the name of a column: the name must stay readable as a heading.
MAX_COLUMN_SYMBOL = 32
# What --as and the setting `frame` name, and the function that makes it of a DataFrame, imported when somebody asks.
FRAMES = {
    "pandas": None,
    "polars": "nbext.client.frames:to_polars",
    "arrow": "nbext.client.frames:to_arrow",
}
# What --to writes; `nbext.client.files.writer` knows how.
FILES = (".csv", ".json", ".parquet", ".arrow")


def is_whole(value: object) -> TypeGuard[int]:
    """Say whether a value is a whole number: numpy's integers are, True is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def limit_of(given: object, least: int = 0) -> int | str:
    """Return how many rows a segment is to return, or what is wrong with the number, in words.

    >>> limit_of(5)
    5
    >>> limit_of("many", least=1)
    "'many' is not a limit. Write a whole number from 1 to 10,000,000."
    """
    if is_whole(given) and least <= int(given) <= MAX_LIMIT:
        return int(given)
    lowest = "0 (count only)" if least == 0 else f"{least}"
    return f"{shown(given)} is not a limit. Write a whole number from {lowest} to {MAX_LIMIT:,}."
