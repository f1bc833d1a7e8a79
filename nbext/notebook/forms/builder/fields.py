"""A condition's fields for the page, as the service's schema describes them: inputs, their texts, a line in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nbext.core.uint256 import ungrouped
from nbext.core.untrusted_text import visible
from nbext.notebook import schema
from nbext.notebook.forms.builder.tree import Group, Join, Line, Part, Tree
from nbext.notebook.schema import ConditionSpec, FieldSpec, Schema, SegmentSchema, encoded

# The value of an empty input: its field is left out of the query.
NOTHING = object()
JOIN_WORDS: dict[Join, str] = {"all": "All of these", "any": "Any of these"}
# A text that shows what a field takes, and what is then offered beside it; the first that fits.
_SAMPLES = (
    ("time", "90d", "ls_" + "x" * 24),
    ("segment", "sg_x", ""),
    ("list", "ls_" + "x" * 24, "sg_x"),
)
_DURATION = re.compile(r"(\d{1,6})([hdw])\Z")
_UNITS = {"h": "hour", "d": "day", "w": "week"}
# As a line shows a duration, and as people write one.
_SPELT = re.compile(r"(\d{1,4}) ?(hour|day|week|month|year)s?( ago)?", re.IGNORECASE)
_IN_DAYS = {"month": 30, "year": 365}
_NAMED, _CUT = 3, 60
_MAX_HELP = 400


class Unfit(ValueError):
    """An input cannot show this value."""


def described(grammar: SegmentSchema, chains: Sequence[str]) -> dict[str, Any]:
    """Return what the page makes inputs of; ``chains`` have data, and come first."""
    conditions = {
        name: {
            "label": one.label,
            "help": visible(one.help, _MAX_HELP),
            "fields": _inputs(one.fields, chains),
        }
        for name, one in grammar.conditions.items()
    }
    groups = {name: JOIN_WORDS.get(name, "None of these") for name in grammar.groups}  # type: ignore[call-overload]
    return {"conditions": conditions, "groups": groups, "scope": _inputs(grammar.scope, chains)}


def _inputs(specs: Iterable[FieldSpec], chains: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "name": spec.name,
            "label": spec.label,
            "help": visible(spec.help, _MAX_HELP),
            "shape": spec.shape,
            "required": spec.required,
            "keys": spec.keys,
            "picks": offered(spec),
            "choices": _choices(spec, chains),
            "examples": {key: example(spec, key) for key in spec.keys} or example(spec),
        }
        for spec in specs
    ]


def _choices(spec: FieldSpec, chains: Sequence[str]) -> list[tuple[str, str]]:
    if spec.shape == "flag":
        return [("", "(either)"), ("true", "yes"), ("false", "no")]
    shown = [(one, visible(one, _CUT)) for one in spec.choices]
    if spec.shape == "several":
        return shown
    if spec.shape != "choice":
        return []
    if spec.name == "chain":
        held = [(one, f"{visible(one, _CUT)} (has data)") for one in chains]
        return [("", "(the segment's)"), *held, *(one for one in shown if one[0] not in chains)]
    return [("", f"({visible(spec.default, _CUT)})" if spec.default else "(any)"), *shown]


def offered(spec: FieldSpec) -> str:
    """Return what is offered beside a field: token, collection, time, segment, list, or nothing."""
    contract = next((one["x-contract"] for one in spec.accepts if "x-contract" in one), "")
    if contract in ("token", "collection"):
        return str(contract)
    patterns = [one["pattern"] for one in spec.accepts if isinstance(one.get("pattern"), str)]

    def takes(text: str) -> bool:
        return any(re.search(pattern, text) for pattern in patterns)

    return next((kind for kind, yes, no in _SAMPLES if takes(yes) and not (no and takes(no))), "")


def typed(spec: FieldSpec, given: Any) -> Any:
    """Return the JSON value of what was typed or chosen, or NOTHING."""
    if spec.shape == "pair":
        texts = {key: str(text).strip() for key, text in given.items() if key in spec.keys}
        return {
            key: _as_shown(text, spec.accepts) for key, text in texts.items() if text
        } or NOTHING
    if spec.shape == "several":
        return list(given) or NOTHING
    text = str(given).strip()
    if spec.shape == "flag":
        return {"true": True, "false": False}.get(text, NOTHING)
    if spec.shape == "list":
        # Addresses are pasted from sheets and chats: commas, blanks and line breaks all separate them.
        return [encoded(one, spec.accepts) for one in re.split(r"[,\s]+", text) if one] or NOTHING
    if text and spec.shape not in ("choice", "order"):
        return _as_shown(text, spec.accepts)
    return text or NOTHING


def _as_shown(text: str, accepts: Sequence[Schema]) -> Any:
    """Return the value of a text that may be written as a line shows it: ``1,000``, ``3 months``."""
    if spelt := _SPELT.fullmatch(text):
        number, unit = int(spelt[1]), spelt[2].lower()
        days = _IN_DAYS.get(unit)
        plain = f"{number * days}d" if days else f"{number}{unit[0]}"
        # Only where the field takes a duration: elsewhere it is what was typed.
        return plain if any(re.search(one.get("pattern", "$."), plain) for one in accepts) else text
    # A name may be any text.
    is_name = any("x-contract" in one for one in accepts)
    return encoded(text if is_name else ungrouped(text), accepts)


def texts(spec: FieldSpec, value: Any) -> Any:
    """Return a value as its input shows it: a text, one for each bound, or a list; raise Unfit where none can."""
    if spec.shape == "pair" and isinstance(value, Mapping) and set(value) <= set(spec.keys):
        return {key: _text(one) for key, one in value.items()}
    if (
        spec.shape == "several"
        and isinstance(value, list)
        and set(map(str, value)) <= set(spec.choices)
    ):
        return value
    if spec.shape == "flag" and isinstance(value, bool):
        return str(value).lower()
    if spec.shape == "list" and isinstance(value, list | str):
        return ", ".join(map(_text, value if isinstance(value, list) else [value]))
    if spec.shape == "choice" and value not in spec.choices and not spec.takes_others:
        raise Unfit(spec.name)
    if spec.shape in ("choice", "order", "text"):
        return _text(value)
    raise Unfit(spec.name)


def inputs_of(specs: Sequence[FieldSpec], value: Any) -> dict[str, Any] | None:
    """Return the texts of a condition's inputs by field; None where it has a part that no input can show."""
    known = {spec.name: spec for spec in specs}
    if not isinstance(value, Mapping) or not set(value) <= set(known):
        return None
    try:
        return {name: texts(known[name], one) for name, one in value.items()}
    except Unfit:
        return None


def in_words(spec: ConditionSpec, value: Mapping[str, Any]) -> str:
    """Return a condition as one line, such as ``UNI · balance >= 1,000 · held for 180 days``."""
    return " · ".join(
        _field_in_words(one, value[one.name]) for one in spec.fields if one.name in value
    )


def _field_in_words(spec: FieldSpec, value: Any) -> str:
    label = spec.label[:1].lower() + spec.label[1:] if not spec.label[:2].isupper() else spec.label
    if spec.required or (offered(spec) in ("token", "collection") and spec.shape == "text"):
        return visible(value, _CUT)
    if isinstance(value, bool):
        return label if value else f"no {label}"
    if isinstance(value, list):
        more = f" and {len(value) - _NAMED:,} more" if len(value) > _NAMED else ""
        return f"{label} {', '.join(visible(one, _CUT) for one in value[:_NAMED])}{more}"
    if isinstance(value, Mapping):
        return f"{label} {_bounds(value)}"
    number = _number(value)
    if label.endswith(" since") and number.endswith(" ago"):
        return f"{label.removesuffix(' since')} for {number.removesuffix(' ago')}"
    return f"{label} {number}"


def _bounds(value: Mapping[str, Any]) -> str:
    low, high = value.get("min"), value.get("max")
    if low is not None and high is not None:
        return _number(low) if low == high else f"{_number(low)} to {_number(high)}"
    signs = {"min": ">=", "max": "<="}
    return " and ".join(
        f"{signs.get(key, visible(key, _CUT))} {_number(one)}" for key, one in value.items()
    )


def _number(value: Any) -> str:
    text = visible(value, _CUT)
    if duration := _DURATION.match(text):
        return f"{int(duration[1]):,} {_UNITS[duration[2]]}{'s' * (int(duration[1]) != 1)} ago"
    found = re.fullmatch(r"(\d{1,78})(\.\d+)?", text)
    return f"{int(found[1]):,}{found[2] or ''}" if found else text


def missing(tree: Tree, grammar: SegmentSchema) -> Iterator[tuple[int, str, str]]:
    """Yield what is still to be filled in: the part, its field, and the field's label."""
    if not tree.root.members:
        yield tree.root.id, "", "a condition"
    for part in tree.root.walk():
        if isinstance(part, Group):
            if not part.members:
                yield part.id, "", f"a condition in {JOIN_WORDS[part.join]!r}"
        elif (spec := grammar.conditions.get(part.key)) and isinstance(part.value, Mapping):
            for one in spec.fields:
                if one.required and one.name not in part.value:
                    yield part.id, one.name, one.label


def field_of(part: Part | None, grammar: SegmentSchema, name: str) -> FieldSpec:
    """Return the field of a line, or of the keys at the top where there is no line."""
    specs: Sequence[FieldSpec] = ()
    if part is None:
        specs = grammar.scope
    elif isinstance(part, Line):
        specs = grammar.conditions[part.key].fields
    return next(spec for spec in specs if spec.name == name)


def orders(filters: str, grammar: SegmentSchema, chosen: Any) -> list[tuple[str, str]]:
    """Return what the rows of some filters can be ordered by, and what is chosen."""
    facts = next((spec.choices for spec in grammar.scope if spec.name == "columns"), ())
    ways = [
        (sign + name, f"{name}, {way} first")
        for name in schema.row_columns(filters, facts)
        for way, sign in (("largest", "-"), ("smallest", ""))
    ]
    known = [("", "(address)"), *(way for way in ways if way[0] != "address")]
    if chosen is not None and chosen not in dict(known):
        # What is chosen stays, although the rows no longer have it: the service says so beside the field.
        known.append((str(chosen), visible(chosen, _CUT)))
    return known


def example(spec: FieldSpec, key: str | None = None) -> str:
    """Return an example of a field's value, or of one of its bounds, as a placeholder."""
    for one in spec.examples:
        found = one.get(key) if key is not None and isinstance(one, Mapping) else one
        if isinstance(found, list):
            found = ", ".join(str(member) for member in found[:2])
        if found is not None and not isinstance(found, Mapping):
            return f"e.g. {visible(found, _CUT)}"
    return ""


def _text(value: Any) -> str:
    # A float is refused: its text may differ from what the query holds.
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Unfit(str(value)[:40])
    return str(value)
