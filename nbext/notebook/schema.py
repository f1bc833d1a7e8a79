"""What a segment may say: the JSON Schema of a request, and the words of a service's data.

The schema is read for completion, for the table of ``%nbext schema`` and for the builder's fields.

One walker serves all three: `at_path` returns every schema that a place may follow, whatever references and
alternatives lead to it. `keys`, `values` and the builder's `grammar_of` only pick out of what it returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from nbext.core.chains import chain_names, chain_of
from nbext.core.provenance import Provenance
from nbext.core.rules import ERC20, one_of
from nbext.core.untrusted_text import visible
from nbext.errors import NbextError, ValidationError
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
# A schema that refers to itself is followed this far and no further.
_DEPTH = 12
# A table's cell lists this many names; completion knows all.
_LISTED = 12
# A symbol that gives the rows a column; an address gives one whose name only the service knows.
_HELD = re.compile(r'"(token|nft)"\s*:\s*"(\w{1,32})"')
# A front end has room for so much beside a word.
_ROOM = 80


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
        name = name_of_chain(chain) if chain else None
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


def name_of_chain(chain: str) -> str:
    """Return a chain's name, or what is none of ours as it is: it may be a remote service's own."""
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
    return [kind for kind in _SEARCHED if kind in found]


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
    condition = one_of(condition, top, "%nbext schema")
    above = ["filters", condition]
    places = [(name, one, [*above, name]) for name, one in keys(root, above).items()]
    # What has no fields is a value itself, such as orderBy.
    return [
        {
            "field": name,
            "allowed": ", ".join(_inside(root, path)[:_LISTED]) or _types(root, one),
            "meaning": meaning(root, one),
        }
        for name, one, path in places or [(condition, top[condition], above)]
    ]


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
