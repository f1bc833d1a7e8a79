"""What fields offer to pick: contracts that the service finds by what is typed; segments and lists by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from IPython.core.getipython import get_ipython

from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import visible
from nbext.errors import UsageError
from nbext.notebook import session
from nbext.notebook.forms.widgets import is_missing, variables

# So many hits of a kind fit below a field.
MOST = 8
# The kind of a query that `%nbext save` put away.
SAVED = "saved"
_CUT = 60
_SEARCHED = {"token": "token", "collection": "nft"}
_SYMBOL = re.compile(r"\w{1,32}\Z")


def contracts(client: Any, kind: str, term: str, chain: str | None) -> list[dict[str, Any]]:
    """Return the tokens or collections that a term fits: what the field will hold, and what is shown of each."""
    rows = client.search_nfts(term, chain, type=_SEARCHED[kind], limit=MOST).to_dict("records")
    symbols = [str(row.get("symbol")).lower() for row in rows]
    return [
        {
            "kind": kind,
            # A symbol that two contracts have, or spam, would be answered with a question: their address is not.
            "value": row["symbol"] if _is_plain(row, symbols) else str(row.get("address")),
            "label": visible(row.get("symbol"), _CUT),
            "name": visible(row.get("name"), _CUT),
            "verified": row.get("verified") is True,
            "spam": row.get("possibleSpam") is True,
            "holders": _count(row.get("ownerCount")),
        }
        for row in rows
    ]


def _is_plain(row: Mapping[str, Any], symbols: list[str]) -> bool:
    symbol = row.get("symbol")
    known = (
        isinstance(symbol, str) and _SYMBOL.match(symbol) and row.get("possibleSpam") is not True
    )
    return bool(known) and symbols.count(str(symbol).lower()) == 1


def _count(value: Any) -> str:
    return (
        ""
        if is_missing(value)
        else f"{int(value):,} holders"
        if str(value).isdigit()
        else visible(value, _CUT)
    )


def named(kind: str) -> list[dict[str, Any]]:
    """Return the notebook's segments or lists of wallets by name, its variables, then its history; or saved queries."""
    # Where there is no notebook there are no names either.
    if get_ipython() is None:
        return []
    here = session.current_session()
    if kind == SAVED:
        names = session.saved_names(here.data_dir) if here else []
        return [
            {"kind": kind, "value": name, "label": name, "name": "a saved query"} for name in names
        ]
    found = dict(_lists() if kind == "list" else _segments())
    return [
        {"kind": kind, "value": value, "label": label, "name": visible(value, _CUT)}
        for value, label in found.items()
    ]


def saved(name: str) -> str:
    """Return the request of a saved query, as JSON text."""
    here = session.current_session()
    if here is None:
        raise UsageError("Saved queries need `%load_ext nbext`.")
    return session.saved_query(here.data_dir, name)


def _tables() -> Iterator[tuple[str, Provenance]]:
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


def _segments() -> Iterator[tuple[str, str]]:
    for name, known in _tables():
        if isinstance(found := known.segment_id, str):
            matched = known.matched
            yield (
                found,
                visible(name, _CUT)
                + (f" ({matched:,} wallets)" if isinstance(matched, int) else ""),
            )


def _lists() -> Iterator[tuple[str, str]]:
    for _, known in _tables():
        lists = known.lists
        yield from ((str(one), visible(words, _CUT)) for one, words in (lists or {}).items())
    for name, value in list(variables().items()):
        if count := _wallets(value) if not name.startswith("_") else 0:
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
    return len(value) if isinstance(first, str) and re.fullmatch(r"0x[0-9a-fA-F]{40}", first) else 0


def stored(client: Any, name: str) -> dict[str, Any]:
    """Return the condition on a variable's wallets: few are written out, many are stored with the service once."""
    value = variables()[name]
    asked = client.execute_segment({"wallet": {"in": value}}, limit=0)
    lists = Provenance.of(asked).lists
    column = value["address"] if hasattr(value, "columns") else value
    return {"list": next(iter(lists))} if lists else {"in": list(column)}
