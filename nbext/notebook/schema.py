"""What a segment may say: the JSON Schema of a request, and the words of a service's data.

The schema is read for completion, for the table of ``%nbext schema`` and for the builder's fields.

One walker serves all three: `at_path` returns every schema that a place may follow, whatever references and
alternatives lead to it. `keys`, `values` and `segment_schema` only pick out of what it returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from nbext.core.chains import chain_names, chain_of
from nbext.core.provenance import Provenance
from nbext.core.rules import ERC20, MAX_LIMIT
from nbext.core.uint256 import whole_of
from nbext.core.untrusted_text import quoted, visible
from nbext.errors import ConfigError, NbextError, UsageError, ValidationError, did_you_mean
from nbext.notebook.results.progress import in_background

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client import Client

Schema = Mapping[str, Any]
Kind = Literal["token", "collection"]
_SEARCHED: dict[Kind, str] = {"token": "token", "collection": "nft"}
# More are not remembered: nobody reads a longer list, and every answer is searched for new ones.
_MAX_SYMBOLS = 2_000
# Fetched before anything is typed: those with the most holders. A longer list is searched by what is typed.
_FIRST, _PAGE = 300, 100
# The key whose value is a column of the rows.
ORDER = "orderBy"
Shape = Literal["choice", "flag", "pair", "list", "several", "order", "text"]
# A schema that refers to itself is followed this far and no further.
_DEPTH = 12
# A table's cell lists this many names; completion knows all.
_LISTED = 12
# The input for a type that a field may have; any other is typed as text.
_SHAPES: dict[Any, Shape] = {"boolean": "flag", "object": "pair", "array": "list"}
# A symbol that gives the rows a column; an address gives one whose name only the service knows.
_HELD = re.compile(r'"(token|nft)"\s*:\s*"(\w{1,32})"')
# A front end has room for so much beside a word.
_ROOM = 80
_ACRONYMS = {"nft": "NFT", "id": "ID", "ids": "IDs"}


@dataclass
class Vocabulary:
    """The words to offer; filled by a connection, by answers and by searches, read by completion."""

    # All chains, those of the service's data first, and what is said of each; the schema of a request, None where the
    # service publishes none; and the address of each symbol, by kind and chain.
    chains: dict[str, str] = field(default_factory=lambda: dict.fromkeys(chain_names(), "chain"))
    schema: Mapping[str, Any] | None = None
    known: dict[tuple[Kind, str], dict[str, str]] = field(default_factory=dict)
    # Of our own service; None before it answers, and beside another.
    client: Client | None = None
    _asked: set[tuple[Kind, str, str]] = field(default_factory=set)
    _data: str | None = None

    def learn_service(
        self, client: Client, about: Mapping[str, Any], schema: Mapping[str, Any] | None
    ) -> None:
        """Remember a service of ours: its schema, and its chains before all others."""
        data = about.get("data") or {}
        if data.get("fingerprint") != self._data:
            # Symbols of the sample, or of contracts that are gone, would not be found.
            self._data = data.get("fingerprint")
            self.known.clear()
            self._asked.clear()
        held = [str(chain.get("chain")) for chain in data.get("chains") or []]
        self.chains = dict.fromkeys([*held, *chain_names()], "chain")
        self.schema, self.client = schema, client

    def learn_rows(self, frame: pd.DataFrame) -> None:
        """Remember the ``symbol`` and ``address`` of each row of an answer; those of spam are not offered."""
        operation = Provenance.of(frame).operation
        absent = [None] * len(frame)
        names = ("symbol", "address", "chain", "tokenType", "possibleSpam")
        columns = [frame.get(name, absent) for name in names]
        for symbol, address, chain, standard, spam in zip(*columns, strict=True):
            if not isinstance(symbol, str) or not isinstance(address, str) or spam is True:
                continue
            kind: Kind = "token" if operation == "tokens" or standard == ERC20 else "collection"
            symbols = self.known.setdefault((kind, chain if isinstance(chain, str) else ""), {})
            if len(symbols) < _MAX_SYMBOLS:
                symbols.setdefault(symbol, address)

    def symbols(self, kind: Kind, chain: str | None = None, typed: str = "") -> dict[str, str]:
        """Return the symbols of a kind, on a chain or on any, and of what; more may follow for what is typed."""
        name = _name_of(chain) if chain else None
        found: dict[str, str] = {}
        for (one, place), symbols in list(self.known.items()):
            if one == kind and name in (None, place):
                for symbol, address in list(symbols.items()):
                    found.setdefault(symbol, help_line(kind, f"{address} on {place}"))
        if self.client is not None and not any(
            one.lower().startswith(typed.lower()) for one in found
        ):
            in_background(
                partial(self.fetch, kind, name or next(iter(self.chains)), typed), "nbext-symbols"
            )
        return found

    def fetch(self, kind: Kind, chain: str, term: str = "") -> None:
        """Ask our own service once for the symbols that a term fits; without one, for those with the most holders."""
        client, wanted = self.client, (kind, chain, term.lower())
        if client is None or wanted in self._asked:
            return
        self._asked.add(wanted)
        for offset in range(0, _PAGE if term else _FIRST, _PAGE):
            try:
                frame = client.search_nfts(
                    term, chain, type=_SEARCHED[kind], limit=_PAGE, offset=offset
                )
            except NbextError:
                # Nobody waits for it: a service that has ended says so at the next call.
                return
            self.learn_rows(frame)
            if len(frame) < _PAGE:
                return


def help_line(kind: str, meaning: str = "") -> str:
    """Return what completion says of a word: its kind, and the first sentence of what is known of it."""
    first = visible(re.split(r"(?<=[^.])\.(?:\s|$)", meaning, maxsplit=1)[0], None)
    shown = first if len(first) <= _ROOM else f"{first[: _ROOM - 1]}…"
    return f"{kind}: {shown}" if shown else kind


def variables_in_words(names: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that have a JSON form, by name: tables, columns, lists, strings, numbers."""
    return {
        name: help_line("variable", type(value).__name__)
        for name, value in sorted(names.items())
        if not name.startswith("_")
        and name not in ("In", "Out")
        and (
            isinstance(value, str | int | float | list | tuple | set | dict)
            or hasattr(value, "tolist")
            or (hasattr(value, "columns") and hasattr(value, "attrs"))
        )
    }


def _name_of(chain: str) -> str:
    try:
        return chain_of(chain).name
    except ValidationError:
        return chain


def variants(root: Schema, schema: Any, depth: int = 0) -> Iterator[Schema]:
    """Yield a schema and all that it refers to or offers instead of itself."""
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return
    yield schema
    if isinstance(reference := schema.get("$ref"), str):
        here: Any = root
        for part in reference.removeprefix("#").split("/")[1:]:
            here = here.get(part) if isinstance(here, Mapping) else None
        yield from variants(root, here, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        for other in schema.get(word) or ():
            yield from variants(root, other, depth + 1)


def at_path(root: Schema, path: Sequence[str]) -> list[Schema]:
    """Return every schema that a place may follow; lists on the way to it are looked through."""
    found = list(variants(root, root))
    for name in path:
        found = [
            one
            for schema in found
            for one in variants(root, (schema.get("properties") or {}).get(name))
        ]
        # A key that stands once and a list under the key lead to the same fields.
        found += [one for schema in found for one in variants(root, schema.get("items"))]
    return found


def keys(root: Schema, path: Sequence[str]) -> dict[str, Schema]:
    """Return the keys that the object at a path may hold."""
    found: dict[str, Schema] = {}
    for schema in at_path(root, path):
        found.update(schema.get("properties") or {})
    return found


def keys_in_words(root: Schema, path: Sequence[str]) -> dict[str, str]:
    """Return the keys that the object at a path may hold, each with what completion says of it."""
    kind = "field" if path[1:] else "condition"
    return {name: help_line(kind, meaning(root, one)) for name, one in keys(root, path).items()}


def values(root: Schema, path: Sequence[str]) -> dict[str, str]:
    """Return the texts that a schema lists for a place, each with what completion says of it."""
    found = at_path(root, path)
    about = help_line("value", next(filter(None, (meaning(root, one) for one in found)), ""))
    listed = (text for one in found for text in (*(one.get("enum") or ()), one.get("const")))
    return {text: about for text in listed if isinstance(text, str)}


def row_columns(filters: str, facts: Iterable[str]) -> list[str]:
    """Return the columns that the rows of some filters have, as far as these are written; ``facts`` are asked for."""
    held = [
        f"{symbol}_{'balance' if key == 'token' else 'count'}"
        for key, symbol in _HELD.findall(filters)
    ]
    asked = [fact for fact in facts if fact != "share" and f'"{fact}"' in filters]
    return list(dict.fromkeys([*held, *asked, "address"]))


def contract_kinds(root: Schema, path: Sequence[str]) -> list[Kind]:
    """Return the kinds of contract that a place names by address or symbol; none where it takes other texts."""
    found = {one.get("x-contract") for one in at_path(root, path)}
    kinds: tuple[Kind, ...] = ("token", "collection")
    return [kind for kind in kinds if kind in found]


def rows(root: Schema, condition: str | None) -> list[dict[str, str]]:
    """Return the conditions and what they mean, or the fields of one."""
    top = keys(root, ["filters"])
    if condition is None:
        return [
            {
                "condition": name,
                "fields": ", ".join(_inside(root, ["filters", name])[:_LISTED]),
                "meaning": meaning(root, one),
            }
            for name, one in top.items()
        ]
    if condition not in top:
        raise UsageError(
            f"%nbext schema: unknown condition {quoted(condition)}.{did_you_mean(condition, top)} "
            f"Conditions: {', '.join(map(visible, top))}."
        )
    fields = keys(root, ["filters", condition])
    # What has no fields is a value itself, such as orderBy.
    places = {name: ["filters", condition, name] for name in fields} or {
        condition: ["filters", condition]
    }
    rows = []
    for name, path in places.items():
        one = fields.get(name, top[condition])
        allowed = ", ".join(_inside(root, path)[:_LISTED]) or _types(root, one)
        rows.append({"field": name, "allowed": allowed, "meaning": meaning(root, one)})
    return rows


@dataclass(frozen=True)
class FieldSpec:
    """One field: the kind of input it takes, its words, and every schema that its value may follow."""

    name: str
    shape: Shape
    help: str
    # What one typed text may be: of a list, what a member may be; of a pair, what either bound may be.
    accepts: tuple[Schema, ...]
    examples: tuple[Any, ...] = ()
    choices: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    default: Any = None
    required: bool = False

    @property
    def label(self) -> str:
        """The field's name in words."""
        return label_of(self.name)

    @property
    def takes_others(self) -> bool:
        """Whether values beside the listed choices are allowed: a chain has more names than a schema lists."""
        return any("type" in schema and "enum" not in schema for schema in self.accepts)


@dataclass(frozen=True)
class ConditionSpec:
    """One condition: what it asks of a wallet, and its fields."""

    name: str
    help: str
    fields: tuple[FieldSpec, ...]

    @property
    def label(self) -> str:
        """The condition's name in words."""
        return label_of(self.name)


@dataclass(frozen=True)
class SegmentSchema:
    """The conditions, the names of the groups, and the keys that belong at the top of filters only."""

    conditions: Mapping[str, ConditionSpec]
    groups: Sequence[str]
    scope: tuple[FieldSpec, ...]
    most: int = MAX_LIMIT


def segment_schema(schema: Schema | None) -> SegmentSchema:
    """Return what a builder can offer, from the schema that a service publishes."""
    root = schema or {}
    filters = keys(root, ["filters"])
    # A condition is what has a definition of its own; groups and scope keys are written out in place.
    conditions = {name: _condition(root, name) for name in filters if name in root.get("$defs", {})}
    if not conditions:
        raise ConfigError(
            "This service publishes no schema of its filters, so nbext cannot make a form for them. "
            "Write the filters in a %%segment_query cell, as the service's documentation describes them."
        )
    groups = tuple(name for name in ("all", "any", "not") if name in filters)
    scope = [name for name in filters if name not in conditions and name not in groups]
    limit = keys(root, ()).get("limit", {})
    fields = tuple(_field(root, name, filters[name], required=False) for name in scope)
    return SegmentSchema(conditions, groups, fields, limit.get("maximum", MAX_LIMIT))


def encoded(text: str, accepts: Sequence[Schema]) -> Any:
    """Return a typed text as the JSON value that a schema wants; what fits none stays text, for the service to refuse.

    >>> encoded("90d", [{"type": "string", "pattern": "^[0-9]+d$"}, {"type": "integer"}])
    '90d'
    >>> encoded("19000000", [{"type": "string", "pattern": "^[0-9]+d$"}, {"type": "integer"}])
    19000000
    """
    # Text first: readers of JSON round long numbers, and digits that fit a pattern are exact as text.
    for schema in accepts:
        if schema.get("type") == "string" and re.search(schema.get("pattern", ""), text):
            return text
    number = whole_of(text)
    if number is None or all(schema.get("type") != "integer" for schema in accepts):
        return text
    return number


def label_of(name: str) -> str:
    """Return a camel-case name in words.

    >>> label_of("heldSince"), label_of("nft"), label_of("tokenIds")
    ('Held since', 'NFT', 'Token IDs')
    """
    # A name comes from the service, and front ends may typeset a label as maths: letters and digits only.
    parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name[:60])]
    text = " ".join(_ACRONYMS.get(part, part) for part in parts)
    return text[:1].upper() + text[1:]


def _condition(root: Schema, name: str) -> ConditionSpec:
    definition = root["$defs"][name]
    # Not of its alternatives: "atLeast or distinct" requires neither of the two.
    required = definition.get("required") or ()
    parts = keys(root, ["filters", name]).items()
    fields = tuple(_field(root, key, part, required=key in required) for key, part in parts)
    return ConditionSpec(name, meaning(root, definition), fields)


def _field(root: Schema, name: str, schema: Schema, *, required: bool) -> FieldSpec:
    accepts = tuple(variants(root, schema))
    choices = next((tuple(one["enum"]) for one in accepts if one.get("enum")), ())
    # Choices before types: a chain is one of the listed names, or any text, and a list to choose from helps more.
    # Compared one by one: a stranger's type may be a list, which no dict can look up.
    typed = next((one for one in accepts if not choices and one.get("type") in tuple(_SHAPES)), {})
    shape = "choice" if choices else _SHAPES.get(typed.get("type"), "text")
    bounds = (typed.get("properties") or {}) if shape == "pair" else {}
    inner = typed.get("items") if shape == "list" else next(iter(bounds.values()), None)
    if shape == "list" and isinstance(inner, Mapping) and inner.get("enum"):
        shape, choices = "several", tuple(inner["enum"])
    # Its choices are the columns that the filters give the rows: the form offers them as they change.
    shape = "order" if name == ORDER and shape == "text" else shape
    return FieldSpec(
        name,
        shape,
        meaning(root, schema),
        accepts if inner is None else tuple(variants(root, inner)),
        tuple(schema.get("examples") or ()),
        choices,
        tuple(bounds),
        schema.get("default"),
        required,
    )


def _inside(root: Schema, path: Sequence[str]) -> list[str]:
    return list(values(root, path) or keys(root, path))


def meaning(root: Schema, schema: Schema) -> str:
    """Return the description of a schema, or of what it refers to."""
    return next(
        (str(one["description"]) for one in variants(root, schema) if one.get("description")), ""
    )


def _types(root: Schema, schema: Schema) -> str:
    kinds = [one.get("type") or () for one in variants(root, schema)]
    each = [str(name) for kind in kinds for name in ([kind] if isinstance(kind, str) else kind)]
    return " or ".join(dict.fromkeys(each))
