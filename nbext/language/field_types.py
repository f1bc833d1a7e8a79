"""How each kind of field is read, and how the JSON Schema says the same.

A reader gets the value, its JSON pointer, its field and the report; it returns what it read, or None
after it reported what is wrong. A kind's schema takes what its reader takes, except where a rule cannot be said in a
schema (checksums, ``min`` above ``max``): the schema is never the stricter of the two.
"""

from __future__ import annotations

import calendar
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from nbext.core.addresses import LIST_ID_PATTERN, normalised
from nbext.core.chains import chain_names, chain_of
from nbext.core.constants import MAX_SYMBOL, SAVED_PATTERN, SEGMENT_ID, SEGMENT_ID_PATTERN, is_whole
from nbext.core.times import iso
from nbext.core.uint256 import MAX_UINT256
from nbext.core.untrusted_text import shown
from nbext.errors import ValidationError, did_you_mean
from nbext.language.describe import Report, at, meant
from nbext.language.fields import Field
from nbext.language.model import Bounds, Span, Time

_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?([Zz]|[+-][0-9]{2}:[0-9]{2})?)?"
# Six digits: whatever the span, the time stays a number that every engine can hold.
_BACK = r"[0-9]{1,6}[hdw]"
TIME_PATTERN = f"^({_ISO}|{_BACK})$"
_ISO_TEXT = re.compile(_ISO + r"\Z")
_BACK_TEXT = re.compile(_BACK + r"\Z")
_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}
# One less than what stands for "no block": a block that is compared never leaves 64 bits.
MAX_BLOCK = 2**62 - 1
# 2^256-1 has 78 digits. The length is bounded before Decimal or int see the text, whose cost grows with it.
AMOUNT = re.compile(r"[0-9]{1,78}(\.[0-9]{1,78})?\Z")
BURN = "burn"
_ENS_NAME = re.compile(r"[\w.-]{1,255}\.eth\Z")
_SCIENTIFIC = re.compile(r"[0-9]{1,78}(\.[0-9]{1,78})?[eE]\+?([0-9]{1,2})\Z")
# A column's name is made of these characters only.
_ORDER = re.compile("^-?[A-Za-z0-9_]{1,200}$")
_A_TIME = (
    'Write a date such as "2024-06-30" or "2024-06-30T12:00:00Z" (UTC), a span back from the data\'s last block '
    'such as "90d", "12h" or "4w", or a block number.'
)

# A span as people write it elsewhere, and how many hours or days its unit has.
_LOOSE_BACK = re.compile(
    r"-?([0-9]{1,4}) ?(h|hr|hour|d|day|w|wk|week|m|mo|month|y|yr|year)s?( ago)?",
    re.ASCII | re.IGNORECASE,
)
_LOOSE_UNITS = {"h": (1, "h"), "d": (1, "d"), "w": (1, "w"), "m": (30, "d"), "y": (365, "d")}

Read = Callable[[Any, str, Field, Report], Any]


@dataclass(frozen=True)
class Kind:
    """How a value is read, and what the schema says of it."""

    read: Read
    schema: Callable[[Field], dict[str, Any]]


def read(field: Field, value: Any, pointer: str, report: Report) -> Any:
    """Return a field's value as its kind reads it; None after an error was reported."""
    return KINDS[field.kind].read(value, pointer, field, report)


def wrong_type(report: Report, pointer: str, what: str, value: object, advice: str) -> None:
    """Report a value that is not what a field takes, and what to write instead."""
    # A float that reaches this side was rounded before: its digits are not what somebody wrote.
    if isinstance(value, float):
        report.add(pointer, "type", f"{value!r} is a binary float, which is not exact. {advice}")
    else:
        report.add(pointer, "type", f"{shown(value)} is not {what}. {advice}")


def read_amount(value: Any, pointer: str, field: Field, report: Report) -> Decimal | None:
    """Read an amount: a decimal text, a whole number, or an exact decimal."""
    if is_whole(value):
        if not 0 <= value <= MAX_UINT256:
            report.add(pointer, "range", f"{shown(value)} is out of range. Allowed: 0 to 2^256-1.")
            return None
        return Decimal(value)
    # In a text the digits are the sender's own; a JSON number may have been a float on its way.
    if isinstance(value, str) and AMOUNT.match(value):
        return Decimal(value)
    if isinstance(value, Decimal) and value.is_finite():
        # Exponents first: 1e999999999 is short to write and must not be written out.
        exponent = value.as_tuple().exponent
        if value < 0 or value.adjusted() > 78 or not isinstance(exponent, int) or exponent < -78:
            report.add(pointer, "range", f"{shown(value)} is out of range. Allowed: 0 to 2^256-1.")
            return None
        return value
    wrong_type(report, pointer, "an amount", value, _amount_advice(value))
    return None


def _amount_advice(value: Any) -> str:
    """Return how to write what was probably meant: the digits, where the text has other characters between them."""
    text = value.strip() if isinstance(value, str) else ""
    plain = re.sub(r"[,_ ']", "", text)
    # The powers that tokens have: the text itself may be of any length, and its value of any size.
    if _SCIENTIFIC.match(plain):
        return (
            f'Write the digits: "{Decimal(plain):f}", or add "unit": "raw" for the smallest unit.'
        )
    if AMOUNT.match(plain):
        return f'Write the digits: "{plain}".'
    return 'Write its digits as text, such as "1000" or "0.5".'


def read_count(value: Any, pointer: str, field: Field, report: Report) -> int | None:
    """Read a whole number from 0 on."""
    if not is_whole(value):
        digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20
        advice = f"Write it without quotes: {value}." if digits else "Write a number such as 2."
        wrong_type(report, pointer, "a whole number", value, advice)
        return None
    # The engines' int64: a count beyond it could not be bound to the statement.
    if not 0 <= value < 2**63:
        report.add(pointer, "range", f"{shown(value)} is out of range. Allowed: 0 to 2^63-1.")
        return None
    return int(value)


def read_natural(value: Any, pointer: str, field: Field, report: Report) -> int | None:
    """Read a whole number from 1 on."""
    count = read_count(value, pointer, field, report)
    if count == 0:
        report.add(pointer, "range", "0 is out of range. Allowed: 1 or more.")
        return None
    return count


def read_contract(value: Any, pointer: str, field: Field, report: Report) -> str | None:
    """Read a contract: an address, else a symbol."""
    if not isinstance(value, str):
        wrong_type(
            report,
            pointer,
            "an address or a symbol",
            value,
            'Write a text such as "USDC" or "0x...".',
        )
        return None
    # Everything that sets out to be an address is read as one: a digit short must not become a symbol.
    if (value[:2] in ("0x", "0X") and len(value) > 10) or _ENS_NAME.match(value):
        return read_address(value, pointer, field, report)
    if not value.strip() or len(value) > MAX_SYMBOL:
        report.add(
            pointer, "symbol", f"{shown(value)} is not a symbol of 1 to {MAX_SYMBOL} characters."
        )
        return None
    return value


def read_address(value: Any, pointer: str, field: Field, report: Report) -> str | None:
    """Read an address, into lower case."""
    if isinstance(value, str) and _ENS_NAME.match(value):
        # Resolving it would need a node, and its owner can point it elsewhere tomorrow.
        advice = "nbext does not resolve names; give the 0x... address."
        report.add(pointer, "address", f"{shown(value)} is an ENS name. {advice}")
        return None
    try:
        return normalised(value, pointer)
    except ValidationError as error:
        report.take(error)
        return None


def read_chain(value: Any, pointer: str, field: Field, report: Report) -> Any:
    """Read a chain's name, alias or id."""
    if not isinstance(value, str) and not is_whole(value):
        wrong_type(
            report, pointer, "a chain", value, 'Write its name or its id, such as "ethereum" or 1.'
        )
        return None
    try:
        # Long texts and huge integers are no chain, and must not be spelt out in the message.
        return chain_of(
            value if is_whole(value) and value.bit_length() < 64 else str(value)[:80], pointer
        )
    except ValidationError as error:
        report.take(error)
        return None


def read_id(value: Any, pointer: str, field: Field, report: Report) -> int | None:
    """Read a token id: a whole number, or its digits as text."""
    # The length is bounded first: a million digits would take int() its time.
    number = int(value) if isinstance(value, str) and re.match(r"[0-9]{1,78}\Z", value) else value
    if not is_whole(number):
        wrong_type(
            report, pointer, "a token id", value, "Write a whole number, or its digits as text."
        )
        return None
    if not 0 <= number <= MAX_UINT256:
        report.add(pointer, "range", f"{shown(number)} is out of range. Allowed: 0 to 2^256-1.")
        return None
    return int(number)


def read_segment(value: Any, pointer: str, field: Field, report: Report) -> str | None:
    """Read a saved segment's id."""
    if isinstance(value, str) and SEGMENT_ID.match(value):
        return value
    wrong_type(
        report, pointer, "a segment id", value, "Ids have 1 to 128 letters, digits, - and _."
    )
    return None


def read_list(value: Any, pointer: str, field: Field, report: Report) -> str | None:
    """Read a list's id."""
    if isinstance(value, str) and re.fullmatch(LIST_ID_PATTERN, value):
        return value
    wrong_type(
        report,
        pointer,
        "the id of a list",
        value,
        'Write addresses under "in"; POST /lists answers with ids.',
    )
    return None


def read_choice(value: Any, pointer: str, field: Field, report: Report) -> str | None:
    """Read one of the field's words."""
    if isinstance(value, str) and value in field.choices:
        return value
    hint = meant(value[:80], field.choices) if isinstance(value, str) and not report.full else ""
    report.add(
        pointer,
        "choice",
        f"{shown(value)} is not allowed.{hint} Allowed: {', '.join(field.choices)}.",
    )
    return None


def read_order(value: Any, pointer: str, field: Field, report: Report) -> str | None:
    """Read the name of a column, with or without "-" in front; which columns there are, the conditions decide."""
    if isinstance(value, str) and _ORDER.fullmatch(value):
        return value
    advice = 'Write its name, with "-" in front for the largest first: "-UNI_balance".'
    wrong_type(report, pointer, "the name of a column", value, advice)
    return None


def read_columns(value: Any, pointer: str, field: Field, report: Report) -> Any:
    """Read a list of columns, each of them once."""
    names = _many(read_choice, "columns")(value, pointer, field, report)
    for index, name in enumerate(names or ()):
        if name is not None and name in names[:index]:
            report.add(at(pointer, index), "twice", f"{shown(name)} is in the list twice.")
    return names


def read_boolean(value: Any, pointer: str, field: Field, report: Report) -> bool | None:
    """Read true or false."""
    if isinstance(value, bool):
        return value
    wrong_type(report, pointer, "true or false", value, "Write true or false, without quotes.")
    return None


def read_moment(value: Any, pointer: str, field: Field, report: Report) -> Any:
    """Read a time: ISO-8601, relative, or a block number."""
    if is_whole(value) and not 0 <= value <= MAX_BLOCK:
        report.add(
            pointer, "range", f"{shown(value)} is out of range. Allowed: a block from 0 to 2^62-1."
        )
        return None
    time = read_time(value)
    if time is None:
        wrong_type(report, pointer, "a time", value, _time_advice(value))
    return time


def _time_advice(value: object) -> str:
    """Return how to write the time that was probably meant."""
    if not isinstance(value, str):
        return _A_TIME
    if re.fullmatch("[0-9]{1,18}", value):
        number = int(value)
        back = f' For {number} days back, write "{number}d".' if 0 < number < 1_000 else ""
        return f"A block number is written without quotes: {number}.{back}{unix_hint(number)}"
    if loose := _LOOSE_BACK.fullmatch(value.strip()):
        times, unit = _LOOSE_UNITS[loose[2][0].lower()]
        span = f"{int(loose[1]) * times}{unit}"
        return f'Write "{span}". The units are h, d and w.' if _BACK_TEXT.match(span) else _A_TIME
    if _ISO_TEXT.match(value):
        year, month, day = (int(part) for part in value[:10].split("-"))
        last = calendar.monthrange(year, month)[1] if year and 1 <= month <= 12 else day
        if day > last:
            return f"{calendar.month_name[month]} {year} has {last} days."
    return _A_TIME


def unix_hint(number: int) -> str:
    """Return the date of a number that cannot be a block, as a sentence; nothing where it can be one."""
    # No chain has a billion blocks: so large a number counts the seconds since 1970, or their thousandths.
    seconds = number // 1000 if number >= 10**12 else number
    return (
        f' As a Unix time it is "{iso(seconds)}": write that.' if 10**9 <= seconds < 2**32 else ""
    )


def read_until(value: Any, pointer: str, field: Field, report: Report) -> Any:
    """Read a time up to which something is; a date alone is the whole day."""
    time = read_moment(value, pointer, field, report)
    if time is not None and time.timestamp is not None and len(time.text) == len("2024-06-30"):
        return replace(time, timestamp=time.timestamp + _SECONDS["d"] - 1, day=True)
    return time


def read_time(value: object) -> Time | None:
    """Return the time that a JSON value writes, or None.

    >>> read_time("90d").back
    7776000
    """
    if is_whole(value):
        return Time(str(value), block=value)
    if not isinstance(value, str):
        return None
    if _BACK_TEXT.match(value):
        return Time(value, back=int(value[:-1]) * _SECONDS[value[-1]])
    if not _ISO_TEXT.match(value):
        return None
    # The pattern takes a 30th of February; the calendar does not.
    try:
        moment = datetime.fromisoformat(value.upper())
    except ValueError:
        return None
    return Time(
        value,
        timestamp=int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() // 1),
    )


def _pair(
    low: str, high: str, one: Read, build: Callable[..., Any], last: Read | None = None
) -> Read:
    """Return a reader of an object of two bounds, of which at least one is given; ``last`` reads the upper one."""

    def read(value: Any, pointer: str, field: Field, report: Report) -> Any:
        if not isinstance(value, Mapping):
            report.add(
                pointer,
                "type",
                f"{_named(field.name)} is an object: {_example({low: value}, value, field)}.",
            )
            return None
        if not value:
            report.add(pointer, "empty", f"{field.name} is empty. Give {low}, {high} or both.")
            return None
        bounds: dict[str, Any] = {}
        # Both bounds are read even where one is wrong, and unknown keys are named: all errors in one answer.
        for key, bound in value.items():
            if key in (low, high) and bound is None:
                # As Python's None becomes it: without the other bound, nothing would be left.
                out = key if any(one is not None for one in value.values()) else field.name
                detail = f'null is not a bound. Leave out "{out}", or give "{key}" a value.'
                report.add(at(pointer, key), "type", detail)
            elif key in (low, high):
                bounds[key] = (last if last and key == high else one)(
                    bound, at(pointer, key), field, report
                )
            else:
                report.unknown(at(pointer, key), key, f"field {{}} of {field.name}", (low, high))
        return build(bounds.get(low), bounds.get(high), pointer, report)

    return read


def _named(name: str) -> str:
    """Return a field as the subject of a sentence: the nouns among the names with their article."""
    if name in ("amount", "balance", "count", "total"):
        return f"{'An' if name == 'amount' else 'A'} {name}"
    return f'"{name}"'


def _example(own: Any, value: Any, field: Field) -> str:
    """Return how a field is written: as ``own``, of the single value that was given, where the field takes that."""
    trial = Report()
    fits = isinstance(value, str | int) and not isinstance(value, bool)
    if fits:
        read(field, own, "", trial)
    return json.dumps(own if fits and not trial.errors else field.examples[0])


def _bounds(low: Any, high: Any, pointer: str, report: Report) -> Bounds:
    if low is None and high == 0:
        # Without min, some is meant: at least some and at most none is nobody.
        detail = (
            '"max": 0 alone matches no wallet. Write {"min": 0, "max": 0} for wallets with none.'
        )
        report.add(pointer, "range", detail)
    return _bounds_from_0(low, high, pointer, report)


def _bounds_from_0(low: Any, high: Any, pointer: str, report: Report) -> Bounds:
    if low is not None and high is not None and low > high:
        report.add(pointer, "range", f"min {shown(low)} is above max {shown(high)}.")
    return Bounds(low, high)


def _span(low: Any, high: Any, pointer: str, report: Report) -> Span:
    return Span(low, high)


def _many(one: Read, what: str) -> Read:
    """Return a reader of a list that is not empty."""

    def read(value: Any, pointer: str, field: Field, report: Report) -> Any:
        if not isinstance(value, list | tuple):
            # What is wrong with a text that would be no member either is said by who reads members.
            if not isinstance(value, str) or one(value, pointer, field, report) is not None:
                wrong_type(
                    report,
                    pointer,
                    f"a list of {what}",
                    value,
                    f"Write {_example([value], value, field)}.",
                )
            return None
        if not value:
            report.add(pointer, "empty", f"{field.name} is an empty list. Give at least one.")
            return None
        if len(value) > field.most:
            report.add(
                pointer,
                "size",
                f"{field.name} has {len(value):,} members. At most {field.most:,} are allowed.",
            )
            return None
        return tuple(
            one(member, at(pointer, index), field, report) for index, member in enumerate(value)
        )

    return read


def read_parties(value: Any, pointer: str, field: Field, report: Report) -> Any:
    """Read one address, or a list of them."""
    if isinstance(value, list | tuple):
        return _many(read_address, "addresses")(value, pointer, field, report)
    return (read_address(value, pointer, field, report),)


def read_wallets(value: Any, pointer: str, field: Field, report: Report) -> Any:
    """Read a list of addresses and ids of saved segments, or one such id."""
    return (
        (value,)
        if is_saved(value)
        else _many(_address_or_saved, "addresses")(value, pointer, field, report)
    )


def is_saved(value: Any) -> bool:
    """Say whether a value has the form of a saved segment's id."""
    return isinstance(value, str) and re.fullmatch(SAVED_PATTERN, value) is not None


def _address_or_saved(value: Any, pointer: str, field: Field, report: Report) -> str | None:
    return str(value) if is_saved(value) else read_address(value, pointer, field, report)


def read_exclude(value: Any, pointer: str, field: Field, report: Report) -> Any:
    """Read a list of addresses and the word burn; it may be empty."""
    # An empty list says that nobody is left out; everywhere else an empty list is a slip.
    if isinstance(value, list | tuple) and not value:
        return ()
    return _many(_address_or_burn, "addresses")(value, pointer, field, report)


def _address_or_burn(value: Any, pointer: str, field: Field, report: Report) -> str | None:
    if isinstance(value, str) and value[:2].lower() != "0x" and value != BURN:
        hint = "" if report.full else did_you_mean(value[:80], (BURN,))
        report.add(
            pointer, "address", f'{shown(value)} is neither an address nor the word "burn".{hint}'
        )
        return None
    return BURN if value == BURN else read_address(value, pointer, field, report)


_ADDRESS = {"type": "string", "pattern": "^0[xX][0-9a-fA-F]{40}$"}
_SAVED = {"type": "string", "pattern": f"^{SAVED_PATTERN}$"}
_AMOUNT = {
    "anyOf": [
        {"type": "string", "pattern": "^[0-9]{1,78}(\\.[0-9]{1,78})?$"},
        {"type": "number", "minimum": 0},
    ]
}
_COUNT = {"type": "integer", "minimum": 0}
# As text too: ids of 256 bits do not survive JavaScript's or pandas' numbers.
_ID = {"anyOf": [{"type": "string", "pattern": "^[0-9]{1,78}$"}, _COUNT]}
_TIME = {"anyOf": [{"type": "string", "pattern": TIME_PATTERN}, _COUNT]}
# No pattern: a symbol can be any text, and only the parser can tell a mistyped address from one.
# What the text names, so that completion offers it: the keyword is ours, and validators pass over it.
_TOKEN = {"type": "string", "minLength": 1, "x-contract": "token"}
_COLLECTION = {**_TOKEN, "x-contract": "collection"}


def _object(low: str, high: str, one: Mapping[str, Any]) -> Callable[[Field], dict[str, Any]]:
    bounds = {low: dict(one), high: dict(one)}
    return lambda _: {
        "type": "object",
        "properties": bounds,
        "additionalProperties": False,
        "minProperties": 1,
    }


def _array(one: Mapping[str, Any], least: int = 1) -> Callable[[Field], dict[str, Any]]:
    return lambda field: {
        "type": "array",
        "items": dict(one),
        "minItems": least,
        "maxItems": field.most,
    }


def _is(schema: Mapping[str, Any]) -> Callable[[Field], dict[str, Any]]:
    return lambda _: dict(schema)


# The names come first, so that completion and forms can offer them; an alias or an id is as good.
_CHAIN = {
    "anyOf": [
        {"type": "string", "enum": list(chain_names())},
        {"type": "string", "minLength": 1},
        {"type": "integer", "minimum": 1},
    ]
}

KINDS: dict[str, Kind] = {
    "amounts": Kind(_pair("min", "max", read_amount, _bounds), _object("min", "max", _AMOUNT)),
    # Of transfers: those of nothing are what address-poisoning sends.
    "moved": Kind(_pair("min", "max", read_amount, _bounds_from_0), _object("min", "max", _AMOUNT)),
    "counts": Kind(_pair("min", "max", read_count, _bounds), _object("min", "max", _COUNT)),
    "natural": Kind(read_natural, _is({"type": "integer", "minimum": 1})),
    # Read alike: of an address or a symbol, only the data knows which of the two it is.
    "token": Kind(read_contract, _is(_TOKEN)),
    "collection": Kind(read_contract, _is(_COLLECTION)),
    "collections": Kind(_many(read_contract, "addresses or symbols"), _array(_COLLECTION)),
    "chain": Kind(read_chain, _is(_CHAIN)),
    "wallets": Kind(
        read_wallets,
        lambda field: {"anyOf": [_SAVED, _array({"anyOf": [_ADDRESS, _SAVED]})(field)]},
    ),
    "parties": Kind(read_parties, lambda field: {"anyOf": [_ADDRESS, _array(_ADDRESS)(field)]}),
    "exclude": Kind(read_exclude, _array({"anyOf": [{"const": BURN}, _ADDRESS]}, least=0)),
    "ids": Kind(_many(read_id, "token ids"), _array(_ID)),
    "time": Kind(read_moment, _is(_TIME)),
    "until": Kind(read_until, _is(_TIME)),
    "window": Kind(
        _pair("after", "before", read_moment, _span, read_until), _object("after", "before", _TIME)
    ),
    "choice": Kind(read_choice, lambda field: {"type": "string", "enum": list(field.choices)}),
    "order": Kind(read_order, _is({"type": "string", "pattern": _ORDER.pattern})),
    "columns": Kind(
        read_columns,
        lambda field: {
            **_array({"type": "string", "enum": list(field.choices)})(field),
            "maxItems": len(field.choices),
        },
    ),
    "boolean": Kind(read_boolean, _is({"type": "boolean"})),
    "list": Kind(read_list, _is({"type": "string", "pattern": f"^{LIST_ID_PATTERN}$"})),
    "segment": Kind(read_segment, _is({"type": "string", "pattern": f"^{SEGMENT_ID_PATTERN}$"})),
}
