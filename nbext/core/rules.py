"""What rooms agree on: limits, standards, and how a value is held to its shape.

A shape is a TypedDict of `nbext.core.wire`. Pydantic checks it, and its errors become ours, all at once. Pydantic
loads, and a shape is compiled, when one is first checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from numbers import Integral
from typing import Any, TypeGuard

from nbext.core.untrusted_text import quoted, shown, visible
from nbext.errors import MOST_ERRORS, FieldError, ValidationError, did_you_mean

DEFAULT_LIMIT = 1_000
MAX_LIMIT = 10_000_000
MAX_SEARCH_TERM = 256
# One less than what stands for "no block": a block that is compared never leaves 64 bits.
MAX_BLOCK = 2**62 - 1
# Where filters take a list of wallets: `in` of the condition on wallets, and two that take no saved list.
LIST_KEYS = ("in", "exclude", "counterparty")
# The longest address that SMTP can carry (RFC 5321, 4.5.3.1.3, without its angle brackets).
MAX_EMAIL = 254

# For JSON Schema, which searches: there the pattern carries ^ and $.
SEGMENT_ID_PATTERN = "[A-Za-z0-9_-]{1,128}"
SEGMENT_ID = re.compile(SEGMENT_ID_PATTERN + r"\Z")
# Ours, which tells them from addresses in a list.
SAVED_PATTERN = "sg_[A-Za-z0-9_-]{1,125}"

ERC20 = "ERC20"
NFT_STANDARDS = ("ERC721", "ERC1155")

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
# What --to writes; `nbext.client.writer` knows how.
FILES = (".csv", ".json", ".parquet", ".arrow")
# What a list of wallets is read from, as @FILE; `nbext.client.addresses` knows how.
LIST_FILES = (".csv", ".txt", ".json", ".parquet", ".arrow")


def is_whole(value: object) -> TypeGuard[int]:
    """Say whether a value is a whole number: numpy's integers are, True is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def limit_of(given: object, least: int = 0, also: str = "") -> int:
    """Return how many rows a segment is to return; a ValidationError has what may be written, and ``also`` that.

    >>> limit_of(5)
    5
    """
    if is_whole(given) and least <= int(given) <= MAX_LIMIT:
        return int(given)
    lowest = "0 (count only)" if least == 0 else f"{least}"
    raise ValidationError.of(
        "/limit",
        "range" if is_whole(given) else "type",
        f"{shown(given)} is not a limit. Write a whole number from {lowest} to {MAX_LIMIT:,}{also}.",
    )


def rows_of(given: object) -> int:
    """Return how many rows are meant, in a cell as in Python: a limit, or None and "all" for the most."""
    return MAX_LIMIT if given in (None, "all") else limit_of(given, also=', or "all"')


def one_of(given: object, allowed: Iterable[str], pointer: str) -> str:
    """Return the word if it is allowed, in the spelling of the interface."""
    words = list(allowed)
    if isinstance(given, str):
        if given in words:
            return given
        for word in words:
            if given.isascii() and given.lower() == word.lower():
                return word
    hint = did_you_mean(given, words) if isinstance(given, str) else ""
    raise ValidationError.of(
        pointer,
        "choice",
        f"{shown(given)} is not allowed.{hint} Allowed: {', '.join(map(visible, words))}.",
    )


class Rule:
    """What a type does not say of a field.

    Parameters
    ----------
    code, words
        The error of a value that is not allowed, in place of all that pydantic has to say of it; ``words`` may be made
        of the body.
    absent
        The code and words where the field is missing, if they are others.
    by
        A check of ours beside the type: it raises the ValidationError whose code and words are taken.
    core
        What pydantic checks in place of the type, as its core schema.
    schema
        What is added to the field's JSON Schema; with ``core`` all of it. ``x_language`` names the field of a segment
        request whose schema is the language's.
    """

    def __init__(
        self,
        code: str = "",
        words: str | Callable[[Mapping[str, Any]], str] = "",
        *,
        absent: tuple[str, str] | None = None,
        by: Callable[[Any], object] | None = None,
        core: dict[str, Any] | None = None,
        **schema: Any,
    ) -> None:
        self.code, self.words, self.absent = code, words, absent or (code, words)
        self._by, self._core, self._schema = by, core, schema

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        schema = self._core or handler(source)
        if self._by:
            schema = {
                "type": "function-before",
                "function": {"type": "no-info", "function": self._checked},
                "schema": schema,
            }
        # Where items have rules of their own, `check_shape` gives the words for the list.
        if not self.code or schema.get("items_schema", {}).get("type") == "custom-error":
            return schema
        return {
            "type": "custom-error",
            "schema": schema,
            "custom_error_type": self.code,
            "custom_error_message": "{rule}",
            "custom_error_context": {"rule": self},
        }

    def __get_pydantic_json_schema__(self, core: Any, handler: Callable[[Any], Any]) -> Any:
        return self._schema if self._core else {**handler(core), **self._schema}

    def _checked(self, given: Any) -> Any:
        assert self._by is not None
        try:
            self._by(given)
        except ValidationError as error:
            from pydantic_core import PydanticCustomError

            code, words = error.errors[0]["code"], error.errors[0]["detail"]
            raise PydanticCustomError(code, "{words}", {"words": words}) from None
        return given


def check_shape(shape: Any, body: Mapping[str, Any]) -> None:
    """Refuse a body that is not of a shape; the ValidationError names every field that is not allowed."""
    faults: list[FieldError] = []
    unknown: list[str] = []
    for error in _errors(shape, body):
        code, words, place = error["type"], error["msg"], error["loc"]
        if code == "extra_forbidden":
            unknown.append(place[-1])
            continue
        if code == "missing":
            code, words = _rule_of(shape, place[-1]).absent
        elif "words" not in (context := error.get("ctx", {})):
            rule = context.get("rule") or _rule_of(shape, place[0])
            code, words = rule.code, rule.words
        # Without a code it is the language's, which has words of its own.
        if code:
            pointer = "".join(f"/{part}" for part in place)
            detail = words if isinstance(words, str) else words(body)
            faults.append({"pointer": pointer, "code": code, "detail": detail})
    names = tuple(shape.__annotations__)
    # The first are shown and the others counted: a body may have a hundred thousand, of any length.
    named: list[FieldError] = [
        {
            "pointer": f"/{visible(name, 80)}",
            "code": "unknown-key",
            "detail": f"Unknown field {quoted(name)}."
            + (did_you_mean(name, names) or f" Allowed: {', '.join(names)}."),
        }
        for name in unknown[:MOST_ERRORS]
    ]
    if named or faults:
        raise ValidationError(
            named + faults[:MOST_ERRORS], len(unknown[MOST_ERRORS:] + faults[MOST_ERRORS:])
        )


def unlike(shape: Any, document: Mapping[str, Any], needed: Collection[str]) -> str | None:
    """Return the first of some fields that is not as a shape says; ``page/total`` is a field of another.

    All others may differ: the document may be of another version.
    """
    for error in _errors(shape, document):
        path = "/".join(part for part in error["loc"] if isinstance(part, str))
        if path in needed:
            return path
    return None


def _rule_of(shape: Any, name: str) -> Rule:
    return next(each for each in shape.__annotations__[name].__metadata__ if isinstance(each, Rule))


def _errors(shape: Any, value: Any) -> list[Any]:
    from pydantic import ValidationError as Invalid

    try:
        # Strict: true is no number, and a list no tuple.
        _adapter(shape).validate_python(value, strict=True)
    except Invalid as error:
        return error.errors(include_url=False)
    return []


@cache
def _adapter(shape: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(shape)
