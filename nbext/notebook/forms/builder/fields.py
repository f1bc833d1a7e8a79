"""A condition's fields, by the service's schema: what the page draws, their texts, a line in words, what is offered."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nbext.core.addresses import looks_like_address
from nbext.core.provenance import Provenance
from nbext.core.rules import MAX_LIMIT
from nbext.core.uint256 import ungrouped, whole_of
from nbext.core.untrusted_text import visible
from nbext.errors import ConfigError
from nbext.notebook import session
from nbext.notebook.forms.builder.filters import SCOPE, FilterGroup, FilterPart, Tree
from nbext.notebook.forms.form import variables
from nbext.notebook.forms.markup import marks_of, number_text, text_of
from nbext.notebook.schema import Schema, keys, meaning, row_columns, variants

# The value of an empty input: its field is left out of the query.
NOTHING = object()
# The key whose value is a column of the rows, and what is offered beside it.
ORDER, COLUMN = "orderBy", "column"
JOIN_WORDS = {"all": "All of these", "any": "Any of these"}
Shape = Literal["choice", "flag", "pair", "list", "text"]
# The input for a type that a field may have; any other is typed as text.
_SHAPES: dict[Any, Shape] = {"boolean": "flag", "object": "pair", "array": "list"}
_ACRONYMS = {"nft": "NFT", "id": "ID", "ids": "IDs"}
# What is offered beside a field that takes such a text; the first that fits.
_SAMPLES = (("segment", "sg_x"), ("list", "ls_" + "x" * 24), ("time", "90d"))
_DURATION = re.compile(r"(\d{1,6})([hdw])\Z")
_UNITS = {"h": "hour", "d": "day", "w": "week"}
# As a line shows a duration, and as people write one.
_SPELT = re.compile(r"(\d{1,4}) ?(hour|day|week|month|year)s?( ago)?", re.IGNORECASE)
_IN_DAYS = {"month": 30, "year": 365}
_NAMED, _CUT = 3, 60
_MAX_HELP = 400

# So many hits of a kind fit below a field.
MOST = 8
# The kind of a query that `%nbext save` put away.
SAVED = "saved"
_SEARCHED = {"token": "token", "collection": "nft"}
_SYMBOL = re.compile(r"\w{1,32}\Z")
# What a field will hold, and what is shown of it.
Offers = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class FieldSpec:
    """One field as the page draws it, and every schema that its value may follow.

    ``picks`` is what is offered beside it: token, collection, time, segment, list, column, or nothing. ``choices`` are
    pairs of a value and what is shown, of a list those of a member. ``accepts``: what one typed text may be; of a list,
    what a member may be; of a pair, what either bound may be.
    """

    name: str
    label: str
    help: str
    shape: Shape
    required: bool
    keys: tuple[str, ...]
    picks: str
    choices: list[tuple[str, str]]
    examples: Mapping[str, str] | str
    accepts: tuple[Schema, ...]


@dataclass(frozen=True)
class ConditionSpec:
    """One condition: what it asks of a wallet, and its fields."""

    name: str
    label: str
    help: str
    fields: tuple[FieldSpec, ...]

    @property
    def names(self) -> list[str]:
        """The names of its fields, in the order of the form."""
        return [one.name for one in self.fields]


@dataclass(frozen=True)
class FilterGrammar:
    """The conditions, the groups in words, and the keys that belong at the top of filters only."""

    conditions: dict[str, ConditionSpec]
    groups: dict[str, str]
    scope: ConditionSpec
    most: int

    def spec_of(self, part: FilterPart) -> ConditionSpec | None:
        """Return what is known of a part that is no group."""
        return self.scope if part.id == SCOPE else self.conditions.get(part.key)


def grammar_of(schema: Schema | None, chains: Sequence[str] = ()) -> FilterGrammar:
    """Return what a builder can offer, from the schema that a service publishes; ``chains`` have data, and come first.

    Raises
    ------
    ConfigError
        The service publishes none.
    """
    root = schema or {}
    filters = keys(root, ["filters"])

    # A condition is what has a definition of its own; groups and scope keys are written out in place.
    defined = root.get("$defs", {})
    conditions = {name: _condition(root, name, chains) for name in filters if name in defined}
    if not conditions:
        raise ConfigError(
            "This service publishes no schema of its filters, so nbext cannot make a form for them. "
            "Write the filters in a %%segment_query cell, as the service's documentation describes them."
        )
    groups = {**JOIN_WORDS, "not": "None of these"}
    scope = tuple(
        _field(root, name, one, chains)
        for name, one in filters.items()
        if name not in conditions and name not in groups
    )
    most = keys(root, ()).get("limit", {}).get("maximum", MAX_LIMIT)
    held = {name: words for name, words in groups.items() if name in filters}
    options = ConditionSpec("", "Options", "Options of the whole segment", scope)
    return FilterGrammar(conditions, held, options, most)


def _condition(root: Schema, name: str, chains: Sequence[str]) -> ConditionSpec:
    definition = root["$defs"][name]
    # Not of its alternatives: "atLeast or distinct" requires neither of the two.
    required = definition.get("required") or ()
    parts = keys(root, ["filters", name]).items()
    fields = tuple(_field(root, key, part, chains, key in required) for key, part in parts)
    return ConditionSpec(name, _label(name), visible(meaning(root, definition), _MAX_HELP), fields)


def _field(
    root: Schema, name: str, schema: Schema, chains: Sequence[str], required: bool = False
) -> FieldSpec:
    accepts = tuple(variants(root, schema))
    listed = _listed(accepts)
    # Choices before types: a chain is one of the listed names, or any text, and a list to choose from helps more.
    # Compared one by one: a stranger's type may be a list, which no dict can look up.
    typed = next((one for one in accepts if not listed and one.get("type") in tuple(_SHAPES)), {})
    shape = "choice" if listed else _SHAPES.get(typed.get("type"), "text")
    bounds = (typed.get("properties") or {}) if shape == "pair" else {}
    inner = typed.get("items") if shape == "list" else next(iter(bounds.values()), None)
    accepts = accepts if inner is None else tuple(variants(root, inner))
    if shape == "list":
        listed = _listed(accepts)
    choices = [(str(one), visible(one, _CUT)) for one in listed]
    if shape == "flag":
        choices = [("", "(either)"), ("true", "yes"), ("false", "no")]
    elif shape == "choice" and name == "chain":
        held = {one: f"{visible(one, _CUT)} (has data)" for one in chains}
        choices = [("", "(the segment's)"), *{**held, **dict(choices), **held}.items()]
    elif shape == "choice":
        default = schema.get("default")
        choices.insert(0, ("", f"({visible(default, _CUT)})" if default else "(any)"))
    examples = schema.get("examples") or ()
    return FieldSpec(
        name,
        _label(name),
        visible(meaning(root, schema), _MAX_HELP),
        shape,
        required,
        tuple(bounds),
        # The columns that the filters give the rows.
        COLUMN if name == ORDER else _offered(accepts),
        choices,
        {key: _example(examples, key) for key in bounds} or _example(examples),
        accepts,
    )


def _listed(accepts: Iterable[Schema]) -> Sequence[Any]:
    return next((one["enum"] for one in accepts if one.get("enum")), ())


def _label(name: str) -> str:
    """Return a camel-case name in words.

    >>> _label("heldSince"), _label("nft"), _label("tokenIds")
    ('Held since', 'NFT', 'Token IDs')
    """
    # A name comes from the service, and front ends may typeset a label as maths: letters and digits only.
    parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name[:60])]
    text = " ".join(_ACRONYMS.get(part, part) for part in parts)
    return text[:1].upper() + text[1:]


def _offered(accepts: Sequence[Schema]) -> str:
    contract = next((one["x-contract"] for one in accepts if "x-contract" in one), "")
    if contract in ("token", "collection"):
        return str(contract)
    patterns = [one["pattern"] for one in accepts if isinstance(one.get("pattern"), str)]
    fits = (kind for kind, text in _SAMPLES if any(re.search(one, text) for one in patterns))
    return next(fits, "")


def _example(examples: Sequence[Any], key: str | None = None) -> str:
    """Return an example of a field's value, or of one of its bounds, as a placeholder."""
    for one in examples:
        found = one.get(key) if key is not None and isinstance(one, Mapping) else one
        if isinstance(found, list):
            found = ", ".join(str(member) for member in found[:2])
        if found is not None and not isinstance(found, Mapping):
            return f"e.g. {visible(found, _CUT)}"
    return ""


def encoded(text: str, accepts: Sequence[Schema]) -> Any:
    """Return a typed text as the JSON value that a schema wants; what fits none stays text, for the service to refuse.

    It may be written as a line shows it: ``1,000``, ``3 months``.

    >>> times = [{"type": "string", "pattern": "^[0-9]+d$"}, {"type": "integer"}]
    >>> encoded("3 months", times), encoded("19,000,000", times)
    ('90d', 19000000)
    """
    if spelt := _SPELT.fullmatch(text):
        count, unit = int(spelt[1]), spelt[2].lower()
        days = _IN_DAYS.get(unit)
        plain = f"{count * days}d" if days else f"{count}{unit[0]}"
        # Only where the field takes a duration: elsewhere it is what was typed.
        return plain if any(re.search(one.get("pattern", "$."), plain) for one in accepts) else text
    # A name may be any text.
    if not any("x-contract" in one for one in accepts):
        text = ungrouped(text)
    # Text first: readers of JSON round long numbers, and digits that fit a pattern are exact as text.
    for schema in accepts:
        if schema.get("type") == "string" and re.search(schema.get("pattern", ""), text):
            return text
    number = whole_of(text)
    takes_numbers = any(schema.get("type") == "integer" for schema in accepts)
    return number if takes_numbers and number is not None else text


def typed(spec: FieldSpec, given: Any) -> Any:
    """Return the JSON value of what was typed or chosen, or NOTHING."""
    if spec.shape == "pair":
        bounds = {key: str(text).strip() for key, text in given.items() if key in spec.keys}
        return {key: encoded(text, spec.accepts) for key, text in bounds.items() if text} or NOTHING
    text = str(given).strip()
    if spec.shape == "flag":
        return {"true": True, "false": False}.get(text, NOTHING)
    if spec.shape == "list":
        # Addresses are pasted from sheets and chats: commas, blanks and line breaks all separate them.
        return [encoded(one, spec.accepts) for one in re.split(r"[,\s]+", text) if one] or NOTHING
    return (text if spec.shape == "choice" else encoded(text, spec.accepts)) if text else NOTHING


def inputs_of(specs: Sequence[FieldSpec], value: Any) -> dict[str, Any] | None:
    """Return the texts of a condition's inputs by field; None where typing one of them would mean something else."""
    known = {spec.name: spec for spec in specs}
    if not isinstance(value, Mapping) or not set(value) <= set(known):
        return None
    shown = {name: _shown(one) for name, one in value.items()}
    fits = all(_means(known[name], text, value[name]) for name, text in shown.items())
    return shown if fits else None


def _shown(value: Any) -> Any:
    """Return a value as an input shows it: a text, or one for each bound."""
    if isinstance(value, Mapping):
        return {key: _shown(one) for key, one in value.items()}
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _means(spec: FieldSpec, shown: Any, value: Any) -> bool:
    """Return whether what is shown would be read as the value. A float's text may differ from what the query holds."""
    if isinstance(shown, str) == (spec.shape == "pair"):
        return False
    again = typed(spec, shown)
    if spec.shape == "list":
        # One alone means a list of one; and none is not the same as no field.
        value, again = (
            value if isinstance(value, list) else [value],
            [] if again is NOTHING else again,
        )
    # Of whole numbers it is the digits that count.
    one, other = (
        json.loads(json.dumps(each, default=str), parse_int=str) for each in (value, again)
    )
    return bool(one == other)


def in_words(spec: ConditionSpec, value: Mapping[str, Any]) -> str:
    """Return a condition as one line, such as ``UNI · balance >= 1,000 · held for 180 days``."""
    return " · ".join(
        _field_in_words(one, value[one.name]) for one in spec.fields if one.name in value
    )


def _field_in_words(spec: FieldSpec, value: Any) -> str:
    label = spec.label[:1].lower() + spec.label[1:] if not spec.label[:2].isupper() else spec.label
    if spec.required or (spec.picks in ("token", "collection") and spec.shape == "text"):
        return visible(value, _CUT)
    if isinstance(value, bool):
        return label if value else f"no {label}"
    if isinstance(value, list):
        more = f" and {len(value) - _NAMED:,} more" if len(value) > _NAMED else ""
        few = ", ".join(visible(one, _CUT) for one in value[:_NAMED])
        return f"{label} {few or 'none'}{more}"
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


def missing(tree: Tree, grammar: FilterGrammar) -> Iterator[tuple[int, str]]:
    """Yield what is still to be filled in: the part, and the label of its field."""
    for part in tree.root.walk():
        if isinstance(part, FilterGroup):
            if not part.members:
                inside = "" if part is tree.root else f" in {JOIN_WORDS[part.key]!r}"
                yield part.id, f"a condition{inside}"
        elif (spec := grammar.conditions.get(part.key)) and isinstance(part.value, Mapping):
            for one in spec.fields:
                if one.required and one.name not in part.value:
                    yield part.id, one.label


def orders(filters: str, grammar: FilterGrammar) -> list[tuple[str, str]]:
    """Return what the rows of some filters can be ordered by, and what is shown of each."""
    facts = next((dict(one.choices) for one in grammar.scope.fields if one.name == "columns"), {})
    ways = [
        (sign + name, f"{name}, {way} first")
        for name in row_columns(filters, facts)
        for way, sign in (("largest", "-"), ("smallest", ""))
    ]
    # By address they are without an order.
    return [way for way in ways if way[0] != "address"]


def hits(
    client: Any, kind: str, term: str, chain: str | None, orders: Offers = ()
) -> list[dict[str, Any]]:
    """Return what a term fits, of a kind: what the field will hold, and what is shown of each.

    Of tokens and collections what the service finds; of the notebook's segments, lists of wallets and saved queries,
    and of the ``orders`` of the rows, those that contain the term.
    """
    if kind not in _SEARCHED:
        # Each value once.
        offered = dict(orders if kind == COLUMN else _OFFERED[kind]())
        return [
            {
                "kind": kind,
                "value": value,
                "label": label,
                "name": "a saved query" if kind == SAVED else visible(value, _CUT),
            }
            for value, label in offered.items()
            if term.lower() in f"{label} {value}".lower()
        ]
    rows = client.search_nfts(term, chain, type=_SEARCHED[kind], limit=MOST).to_dict("records")
    symbols = Counter(text_of(row.get("symbol")).lower() for row in rows)
    found = []
    for row in rows:
        symbol, held = text_of(row.get("symbol")), number_text(row.get("ownerCount"))
        # A symbol that two contracts have, or spam, would be answered with a question: their address is not.
        is_one = symbols[symbol.lower()] == 1 and row.get("possibleSpam") is not True
        found.append(
            {
                "kind": kind,
                "value": symbol if is_one and _SYMBOL.match(symbol) else str(row.get("address")),
                "label": visible(symbol, _CUT),
                "name": visible(row.get("name"), _CUT),
                "marks": marks_of(row),
                "holders": visible(held and f"{held} holders", _CUT),
            }
        )
    return found


def _saved() -> Offers:
    here = session.current_session()
    for name in session.saved_names(here.data_dir) if here else ():
        yield name, name


def _tables() -> Iterable[tuple[str, Provenance]]:
    here = session.current_session()
    for run in reversed(here.history.runs if here else ()):
        yield f"history {run.number}", run.about
    for name, value in list(variables().items()):
        if (
            hasattr(value, "columns")
            and not name.startswith("_")
            and (known := Provenance.of(value))
        ):
            yield name, known


def _segments() -> Offers:
    for name, known in _tables():
        if isinstance(found := known.segment_id, str):
            matched = known.matched
            size = f" ({matched:,} wallets)" if isinstance(matched, int) else ""
            yield found, visible(name, _CUT) + size


def _lists() -> Offers:
    for _, known in _tables():
        for one, words in (known.lists or {}).items():
            yield str(one), visible(words, _CUT)
    for name, value in list(variables().items()):
        if not name.startswith("_") and (count := _wallets(value)):
            yield f"${name}", f"{visible(name, _CUT)} ({count:,} wallets)"


def _wallets(value: Any) -> int:
    """Return how many wallets a variable names, as far as its first value shows: a frame, a column, a set, a list."""
    if Provenance.of(value).segment_id:
        return 0
    if hasattr(value, "columns"):
        value = value["address"] if "address" in list(map(str, value.columns)) else ()
    if not isinstance(value, list | tuple | set | frozenset) and not hasattr(value, "to_list"):
        return 0
    first = next(iter(value), None)
    return len(value) if isinstance(first, str) and looks_like_address(first) else 0


_OFFERED = {SAVED: _saved, "segment": _segments, "list": _lists}
