"""What a field of a condition is: its types, how each is read, and its JSON Schema; the limits of the language.

Parsing, the JSON Schema, error messages, help and forms are all made of fields. A field's ``kind`` names its type, one
of `FIELD_TYPES`. The reader of a type gets the value, its JSON pointer, its field and the errors so far; it returns
what it read, or None after it reported what is wrong. The schema of a type takes what its reader takes, except where a
rule cannot be said in a schema (checksums, ``min`` above ``max``): the schema is never the stricter of the two.
"""

from __future__ import annotations

import calendar
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

from nbext.core.addresses import ENS_NAME, LIST_ID_PATTERN, normalised
from nbext.core.chains import chain_names, chain_of
from nbext.core.rules import MAX_BLOCK, MAX_SYMBOL, SAVED_PATTERN, SEGMENT_ID_PATTERN, is_whole
from nbext.core.strict_json import below
from nbext.core.times import BACK, MOMENT, iso
from nbext.core.uint256 import MAX_UINT256, ungrouped, whole_of
from nbext.core.untrusted_text import shown
from nbext.errors import ValidationError, did_you_mean
from nbext.language.describe import ErrorReport

# Raised when a query of the same text would mean something else: it is part of each segment's id.
GRAMMAR = 2
# Every level takes several frames in each step: far below Python's own 1,000, far above what people nest.
MAX_DEPTH = 16
# Each is a statement of its own on DuckDB: this bounds what one request may cost.
MAX_CONDITIONS = 200
# Of these each is counted twice where a segment has no wallet.
MAX_EXPLAINED = 10
# Spark gets the list as text in the statement: 10,000 addresses are 450 KB.
MAX_LIST = 10_000
MAX_COLLECTIONS = 100
# An id of more than 26 digits is three comparisons in the statement, not an element of a list.
MAX_TOKEN_IDS = 1_000

BURN = "burn"
# In place of a column's name, that of the rows' only amount.
ONLY_AMOUNT = "amount"
_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}
# 2^256-1 has 78 digits. The length is bounded before Decimal or int see the text, whose cost grows with it.
_DIGITS = "[0-9]{1,78}"
_AMOUNT = rf"{_DIGITS}(\.{_DIGITS})?"
_SCIENTIFIC = rf"{_AMOUNT}[eE]\+?([0-9]{{1,2}})"
_UINT256 = "0 to 2^256-1"
_A_TIME = (
    'Write a date such as "2024-06-30" or "2024-06-30T12:00:00Z" (UTC), a span back from the last block or asOf '
    'such as "90d", "12h" or "4w", or a block number.'
)
# A span as people write it elsewhere, and how many hours or days its unit has.
_LOOSE_BACK = re.compile(
    r"-?([0-9]{1,4}) ?(h|hr|hour|d|day|w|wk|week|m|mo|month|y|yr|year)s?( ago)?",
    re.ASCII | re.IGNORECASE,
)
_LOOSE_UNITS = {"h": (1, "h"), "d": (1, "d"), "w": (1, "w"), "m": (30, "d"), "y": (365, "d")}


@dataclass(frozen=True)
class Field:
    """One field of a condition, or one scope key.

    Attributes
    ----------
    kind
        Its type: a name of `FIELD_TYPES`; ``group`` of a key that joins conditions, which the parser reads itself.
    unit
        What a number counts, where it counts something.
    choices
        The words that a field of kind ``choice`` takes.
    most
        The greatest length of a list.
    """

    name: str
    kind: str
    help: str
    unit: str | None = None
    default: Any = None
    examples: tuple[Any, ...] = ()
    required: bool = False
    choices: tuple[str, ...] = ()
    most: int = MAX_LIST


@dataclass(frozen=True)
class Bounds:
    """Inclusive bounds of an amount (Decimal) or a count (int); None where none was given."""

    min: Decimal | int | None = None
    max: Decimal | int | None = None


@dataclass(frozen=True)
class Time:
    """A time as it was written: exactly one of ``timestamp`` (seconds since 1970), ``back`` (seconds) and ``block``.

    ``day``: it was written as a date alone, and means the last second of that day.
    """

    text: str
    timestamp: int | None = None
    back: int | None = None
    block: int | None = None
    day: bool = False

    @property
    def is_within(self) -> bool:
        """Whether it is within its second, of which a block is before it."""
        return bool(re.search(r"\.\d*[1-9]", self.text))

    def seconds(self, last: int | None) -> int | None:
        """Return the seconds since 1970 of a time that is no block, given those that a span counts back from."""
        return self.timestamp if self.back is None or last is None else last - self.back

    def shown(self) -> str:
        """Return the time as a message shows it."""
        return repr(self.text) if self.block is None else f"block {self.block:,}"

    def written(self, end: str) -> str:
        """Return a time that is not a block as words show it beside its block."""
        return self.text if self.back is None else f"{self.text} before {end}"


@dataclass(frozen=True)
class TimeRange:
    """Inclusive bounds in time."""

    after: Time | None = None
    before: Time | None = None


@dataclass
class FieldPlace:
    """Where a value is in a request, of which field it is, and where what is wrong with it is reported."""

    pointer: str
    field: Field
    report: ErrorReport

    def below(self, key: object) -> FieldPlace:
        """Return the place of a member."""
        return FieldPlace(below(self.pointer, key), self.field, self.report)

    def wrong(self, code: str, detail: str) -> None:
        """Report what is wrong."""
        self.report.add(self.pointer, code, detail)

    def wrong_type(self, what: str, value: object, advice: str) -> None:
        """Report a value that is not what a field takes, and what to write instead."""
        # A float that reaches this side was rounded before: its digits are not what somebody wrote.
        if isinstance(value, float):
            self.wrong("type", f"{value!r} is a binary float, which is not exact. {advice}")
        else:
            self.wrong("type", f"{shown(value)} is not {what}. {advice}")

    def out_of_range(self, value: object, allowed: str) -> None:
        """Report a number that is too small or too large."""
        self.wrong("range", f"{shown(value)} is out of range. Allowed: {allowed}.")


Read = Callable[[Any, FieldPlace], Any]


@dataclass(frozen=True)
class FieldType:
    """How a value is read, and what the schema says of it."""

    read: Read
    schema: Callable[[Field], dict[str, Any]]


def read_field(field: Field, value: Any, pointer: str, report: ErrorReport) -> Any:
    """Return a field's value as its type reads it; None after an error was reported."""
    return FIELD_TYPES[field.kind].read(value, FieldPlace(pointer, field, report))


# Numbers


def _read_amount(value: Any, place: FieldPlace) -> Decimal | None:
    """Read an amount: a decimal text, a whole number, or an exact decimal."""
    # In a text the digits are the sender's own; a JSON number may have been a float on its way.
    if isinstance(value, str) and re.fullmatch(_AMOUNT, value):
        return Decimal(value)
    if is_whole(value) and 0 <= value <= MAX_UINT256:
        return Decimal(value)
    if isinstance(value, Decimal) and value.is_finite():
        # Exponents first: 1e999999999 is short to write and must not be written out.
        exponent = value.as_tuple().exponent
        if value >= 0 and value.adjusted() <= 78 and isinstance(exponent, int) and exponent >= -78:
            return value
    elif not is_whole(value):
        place.wrong_type("an amount", value, _amount_advice(value))
        return None
    place.out_of_range(value, _UINT256)
    return None


def _amount_advice(value: Any) -> str:
    """Return how to write what was probably meant: the digits, where the text has other characters between them."""
    plain = ungrouped(re.sub("[ ']", ",", value.strip())) if isinstance(value, str) else ""
    # The powers that tokens have: the text itself may be of any length, and its value of any size.
    if re.fullmatch(_SCIENTIFIC, plain):
        return (
            f'Write the digits: "{Decimal(plain):f}", or add "unit": "raw" for the smallest unit.'
        )
    if re.fullmatch(_AMOUNT, plain):
        return f'Write the digits: "{plain}".'
    return 'Write its digits as text, such as "1000" or "0.5".'


def _read_count(value: Any, place: FieldPlace, least: int = 0) -> int | None:
    """Read a whole number from ``least`` on."""
    # Our client sends what a reader of JSON may round as text.
    number = whole_of(value) if isinstance(value, str) else None
    if number is not None and number > 2**53:
        value = number
    if not is_whole(value):
        advice = (
            "Write a number such as 2." if number is None else f"Write it without quotes: {value}."
        )
        place.wrong_type("a whole number", value, advice)
        return None
    # The engines' int64: a count beyond it could not be bound to the statement.
    if not least <= value < 2**63:
        place.out_of_range(value, f"{least} to 2^63-1")
        return None
    return int(value)


def _read_token_id(value: Any, place: FieldPlace) -> int | None:
    """Read a token id: a whole number, or its digits as text."""
    number = whole_of(value) if isinstance(value, str) else value
    if not is_whole(number):
        place.wrong_type("a token id", value, "Write a whole number, or its digits as text.")
        return None
    if not 0 <= number <= MAX_UINT256:
        place.out_of_range(number, _UINT256)
        return None
    return int(number)


# Contracts, addresses and words


def _read_contract(value: Any, place: FieldPlace) -> Any:
    """Read a contract: an address, else a symbol."""
    if not isinstance(value, str):
        place.wrong_type("an address or a symbol", value, 'Write a text such as "USDC" or "0x...".')
        return None
    # Everything that sets out to be an address is read as one: a digit short must not become a symbol.
    if (value[:2] in ("0x", "0X") and len(value) > 10) or ENS_NAME.fullmatch(value):
        return _read_address(value, place)
    if not value.strip() or len(value) > MAX_SYMBOL:
        detail = f"{shown(value)} is not a symbol of 1 to {MAX_SYMBOL} characters."
        place.wrong("symbol", detail)
        return None
    return value


def _as_everywhere(meant: Callable[[Any, str], Any]) -> Read:
    """Return the reader of what means the same wherever it is written."""

    def read(value: Any, place: FieldPlace) -> Any:
        try:
            return meant(value, place.pointer)
        except ValidationError as error:
            place.report.take(error)
            return None

    return read


# Into lower case; and a chain from its name, an alias or its id.
_read_address, _read_chain = _as_everywhere(normalised), _as_everywhere(chain_of)


def _read_choice(value: Any, place: FieldPlace) -> str | None:
    """Read one of the field's words."""
    choices = place.field.choices
    if isinstance(value, str) and value in choices:
        return value
    hint = did_you_mean(value, choices) if isinstance(value, str) and not place.report.full else ""
    detail = f"{shown(value)} is not allowed.{hint} Allowed: {', '.join(choices)}."
    place.wrong("choice", detail)
    return None


def _read_boolean(value: Any, place: FieldPlace) -> bool | None:
    """Read true or false."""
    if isinstance(value, bool):
        return value
    place.wrong_type("true or false", value, "Write true or false, without quotes.")
    return None


# Times


def _read_time(value: Any, place: FieldPlace) -> Any:
    """Read a time: ISO-8601, relative, or a block number."""
    if is_whole(value) and not 0 <= value <= MAX_BLOCK:
        place.out_of_range(value, "a block from 0 to 2^62-1")
        return None
    time = time_of(value)
    if time is None:
        place.wrong_type("a time", value, _time_advice(value))
    return time


def _read_until(value: Any, place: FieldPlace) -> Any:
    """Read a time up to which something is; a date alone is the whole day."""
    time = _read_time(value, place)
    if time is not None and time.timestamp is not None and len(time.text) == len("2024-06-30"):
        return replace(time, timestamp=time.timestamp + _SECONDS["d"] - 1, day=True)
    return time


def time_of(value: object) -> Time | None:
    """Return the time that a JSON value writes, or None.

    >>> time_of("90d").back
    7776000
    """
    if is_whole(value):
        return Time(str(value), block=value)
    if not isinstance(value, str):
        return None
    if re.fullmatch(BACK, value):
        return Time(value, back=int(value[:-1]) * _SECONDS[value[-1]])
    if not re.fullmatch(MOMENT, value):
        return None
    # The pattern takes a 30th of February; the calendar does not.
    try:
        moment = datetime.fromisoformat(value.upper())
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Time(value, timestamp=int(moment.timestamp() // 1))


def _time_advice(value: object) -> str:
    """Return how to write the time that was probably meant."""
    if not isinstance(value, str):
        return _A_TIME
    if re.fullmatch("[0-9]{1,18}", value):
        number = int(value)
        back = f' For {number} days back, write "{number}d".' if 0 < number < 1_000 else ""
        return f"A block number is written without quotes: {number}.{back}{time_hint(number)}"
    if loose := _LOOSE_BACK.fullmatch(value.strip()):
        times, unit = _LOOSE_UNITS[loose[2][0].lower()]
        span = f"{int(loose[1]) * times}{unit}"
        return f'Write "{span}". The units are h, d and w.' if re.fullmatch(BACK, span) else _A_TIME
    if re.fullmatch(MOMENT, value):
        year, month, day = (int(part) for part in value[:10].split("-"))
        last = calendar.monthrange(year, month)[1] if year and 1 <= month <= 12 else day
        if day > last:
            return f"{calendar.month_name[month]} {year} has {last} days."
    return _A_TIME


def time_hint(number: int) -> str:
    """Return how to write the time that a number may be meant for, in a sentence; nothing of most blocks."""
    if day := re.fullmatch("(20[0-9]{2})(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])", str(number)):
        return f" For the day write '{'-'.join(day.groups())}'."
    # No chain has a billion blocks: so large a number counts the seconds since 1970, or their thousandths.
    seconds = number // 1000 if number >= 10**12 else number
    return (
        f' As a Unix time it is "{iso(seconds)}": write that.' if 10**9 <= seconds < 2**32 else ""
    )


# Objects of two bounds, and lists


def _pair(
    keys: tuple[str, str],
    one: Read,
    schema: Mapping[str, Any],
    build: Callable[..., Any],
    last: Read | None = None,
) -> FieldType:
    """Return the type of an object of two bounds, of which at least one is given; ``last`` reads the upper one."""
    low, high = keys

    def read(value: Any, place: FieldPlace) -> Any:
        name = place.field.name
        if not isinstance(value, Mapping):
            article = {"amount": "An", "balance": "A", "count": "A", "total": "A"}.get(name)
            named = f"{article} {name}" if article else f'"{name}"'
            written = _example({low: value}, value, place.field)
            # Of a time alone nobody knows which of the two is meant: one is the opposite of the other.
            other = f", or {written.replace(low, high)}" if low == "after" else ""
            detail = f"{named} is an object: {written}{other}."
            place.wrong("type", detail)
            return None
        if not value:
            place.wrong("empty", f"{name} is empty. Give {low}, {high} or both.")
            return None
        bounds: dict[str, Any] = {}
        # Both bounds are read even where one is wrong, and unknown keys are named: all errors in one answer.
        for key, bound in value.items():
            here = place.below(key)
            if key not in keys:
                place.report.unknown(here.pointer, key, f"field {{}} of {name}", keys)
            elif bound is None:
                # As Python's None becomes it: without the other bound, nothing would be left.
                out = key if any(one is not None for one in value.values()) else name
                detail = f'null is not a bound. Leave out "{out}", or give "{key}" a value.'
                here.wrong("type", detail)
            else:
                bounds[key] = (last if last and key == high else one)(bound, here)
        return build(bounds.get(low), bounds.get(high), place)

    return FieldType(
        read,
        _is(
            {
                "type": "object",
                "properties": {key: dict(schema) for key in keys},
                "additionalProperties": False,
                "minProperties": 1,
            }
        ),
    )


def _example(own: Any, value: Any, field: Field) -> str:
    """Return how a field is written: as ``own``, of the single value that was given, where the field takes that."""
    trial = ErrorReport()
    fits = isinstance(value, str | int) and not isinstance(value, bool)
    if fits:
        read_field(field, own, "", trial)
    return json.dumps(own if fits and not trial.errors else field.examples[0])


def _bounds(low: Any, high: Any, place: FieldPlace, *, some: bool = True) -> Bounds:
    if some and low is None and high == 0:
        # Without min, some is meant: at least some and at most none is nobody.
        detail = (
            '"max": 0 alone matches no wallet. Write {"min": 0, "max": 0} for wallets with none.'
        )
        place.wrong("range", detail)
    if low is not None and high is not None and low > high:
        place.wrong("range", f"min {shown(low)} is above max {shown(high)}.")
    return Bounds(low, high)


def _many(one: Read, what: str) -> Read:
    """Return a reader of a list that is not empty."""

    def read(value: Any, place: FieldPlace) -> Any:
        field = place.field
        if not isinstance(value, list | tuple):
            # What is wrong with a text that would be no member either is said by who reads members.
            if not isinstance(value, str) or one(value, place) is not None:
                advice = f"Write {_example([value], value, field)}."
                place.wrong_type(f"a list of {what}", value, advice)
            return None
        if not value:
            place.wrong("empty", f"{field.name} is an empty list. Give at least one.")
            return None
        if len(value) > field.most:
            detail = f"{field.name} has {len(value):,} members. At most {field.most:,} are allowed."
            if field.name == "exclude":
                detail += ' {"not": {"wallet": {"in": ...}}} takes more.'
            place.wrong("size", detail)
            return None
        return tuple(one(each, place.below(index)) for index, each in enumerate(value))

    return read


def _read_columns(value: Any, place: FieldPlace) -> Any:
    """Read a list of columns, each of them once."""
    names = _many(_read_choice, "columns")(value, place)
    for index, name in enumerate(names or ()):
        if name is not None and name in names[:index]:
            place.below(index).wrong("twice", f"{shown(name)} is in the list twice.")
    return names


def _read_parties(value: Any, place: FieldPlace) -> Any:
    """Read one address, or a list of them."""
    if isinstance(value, list | tuple):
        return _many(_read_address, "addresses")(value, place)
    return (_read_address(value, place),)


def _read_wallets(value: Any, place: FieldPlace) -> Any:
    """Read a list of addresses and ids of saved segments, or one such id."""

    def read_one(value: Any, place: FieldPlace) -> Any:
        return value if is_saved(value) else _read_address(value, place)

    return (value,) if is_saved(value) else _many(read_one, "addresses")(value, place)


def is_saved(value: Any) -> bool:
    """Say whether a value has the form of a saved segment's id."""
    return isinstance(value, str) and re.fullmatch(SAVED_PATTERN, value) is not None


def _read_excluded(value: Any, place: FieldPlace) -> Any:
    """Read a list of addresses and the word burn; it may be empty."""

    def read_one(value: Any, place: FieldPlace) -> Any:
        if isinstance(value, str) and value[:2].lower() != "0x" and value != BURN:
            hint = "" if place.report.full else did_you_mean(value, (BURN,))
            detail = f'{shown(value)} is neither an address nor the word "burn".{hint}'
            place.wrong("address", detail)
            return None
        return BURN if value == BURN else _read_address(value, place)

    # An empty list says that nobody is left out; everywhere else an empty list is a slip.
    if isinstance(value, list | tuple) and not value:
        return ()
    return _many(read_one, "addresses")(value, place)


# The types


def _text(pattern: str, what: str, advice: str) -> FieldType:
    """Return the type of a text of some pattern."""

    def read(value: Any, place: FieldPlace) -> str | None:
        if isinstance(value, str) and re.fullmatch(pattern, value):
            return value
        place.wrong_type(what, value, advice)
        return None

    return FieldType(read, _is({"type": "string", "pattern": f"^{pattern}$"}))


def _is(schema: Mapping[str, Any]) -> Callable[[Field], dict[str, Any]]:
    return lambda _: dict(schema)


def _array(one: Mapping[str, Any], least: int = 1) -> Callable[[Field], dict[str, Any]]:
    return lambda field: {
        "type": "array",
        "items": dict(one),
        "minItems": least,
        "maxItems": field.most,
    }


_ADDRESS_SCHEMA = {"type": "string", "pattern": "^0[xX][0-9a-fA-F]{40}$"}
_SAVED_SCHEMA = {"type": "string", "pattern": f"^{SAVED_PATTERN}$"}
_AMOUNT_SCHEMA = {
    "anyOf": [{"type": "string", "pattern": f"^{_AMOUNT}$"}, {"type": "number", "minimum": 0}]
}
_COUNT_SCHEMA = {"type": "integer", "minimum": 0}
_MIN_MAX = ("min", "max")
# As text too: ids of 256 bits do not survive JavaScript's or pandas' numbers.
_ID_SCHEMA = {"anyOf": [{"type": "string", "pattern": f"^{_DIGITS}$"}, _COUNT_SCHEMA]}
_TIME_SCHEMA = {"anyOf": [{"type": "string", "pattern": f"^({MOMENT}|{BACK})$"}, _COUNT_SCHEMA]}
# No pattern: a symbol can be any text, and only the parser can tell a mistyped address from one.
# What the text names, so that completion offers it: the keyword is ours, and validators pass over it.
_TOKEN_SCHEMA = {"type": "string", "minLength": 1, "x-contract": "token"}
_COLLECTION_SCHEMA = {**_TOKEN_SCHEMA, "x-contract": "collection"}
# The names come first, so that completion and forms can offer them; an alias or an id is as good.
_CHAIN_SCHEMA = {
    "anyOf": [
        {"type": "string", "enum": list(chain_names())},
        {"type": "string", "minLength": 1},
        {"type": "integer", "minimum": 1},
    ]
}

FIELD_TYPES: dict[str, FieldType] = {
    "amounts": _pair(_MIN_MAX, _read_amount, _AMOUNT_SCHEMA, _bounds),
    # Of transfers: those of nothing are what address-poisoning sends.
    "moved": _pair(_MIN_MAX, _read_amount, _AMOUNT_SCHEMA, partial(_bounds, some=False)),
    "counts": _pair(_MIN_MAX, _read_count, _COUNT_SCHEMA, _bounds),
    "natural": FieldType(partial(_read_count, least=1), _is({"type": "integer", "minimum": 1})),
    # Read alike: of an address or a symbol, only the data knows which of the two it is.
    "token": FieldType(_read_contract, _is(_TOKEN_SCHEMA)),
    "collection": FieldType(_read_contract, _is(_COLLECTION_SCHEMA)),
    "collections": FieldType(
        _many(_read_contract, "addresses or symbols"), _array(_COLLECTION_SCHEMA)
    ),
    "chain": FieldType(_read_chain, _is(_CHAIN_SCHEMA)),
    "wallets": FieldType(
        _read_wallets,
        lambda field: {
            "anyOf": [_SAVED_SCHEMA, _array({"anyOf": [_ADDRESS_SCHEMA, _SAVED_SCHEMA]})(field)]
        },
    ),
    "parties": FieldType(
        _read_parties, lambda field: {"anyOf": [_ADDRESS_SCHEMA, _array(_ADDRESS_SCHEMA)(field)]}
    ),
    "exclude": FieldType(
        _read_excluded, _array({"anyOf": [{"const": BURN}, _ADDRESS_SCHEMA]}, least=0)
    ),
    "ids": FieldType(_many(_read_token_id, "token ids"), _array(_ID_SCHEMA)),
    "time": FieldType(_read_time, _is(_TIME_SCHEMA)),
    "until": FieldType(_read_until, _is(_TIME_SCHEMA)),
    "window": _pair(
        ("after", "before"),
        _read_time,
        _TIME_SCHEMA,
        lambda low, high, *_: TimeRange(low, high),
        _read_until,
    ),
    "choice": FieldType(
        _read_choice, lambda field: {"type": "string", "enum": list(field.choices)}
    ),
    # Which columns there are, the conditions decide.
    "order": _text(
        "-?[A-Za-z0-9_]{1,200}",
        "the name of a column",
        'Write its name, with "-" in front for the largest first: "-UNI_balance".',
    ),
    "columns": FieldType(
        _read_columns,
        lambda field: {
            **_array({"type": "string", "enum": list(field.choices)})(field),
            "maxItems": len(field.choices),
        },
    ),
    "boolean": FieldType(_read_boolean, _is({"type": "boolean"})),
    "list": _text(
        LIST_ID_PATTERN,
        "the id of a list",
        'Write addresses under "in"; POST /lists answers with ids.',
    ),
    "segment": _text(
        SEGMENT_ID_PATTERN, "a segment id", "Ids have 1 to 128 letters, digits, - and _."
    ),
}
