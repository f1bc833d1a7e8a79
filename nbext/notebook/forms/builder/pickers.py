"""What fields offer to pick: contracts that the service finds by what is typed; segments and lists by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from IPython.core.getipython import get_ipython

from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import visible
from nbext.errors import UsageError
from nbext.notebook import session
from nbext.notebook.forms.widgets import count_text, variables

# So many hits of a kind fit below a field.
MOST = 8
# The kind of a query that `%nbext save` put away.
SAVED = "saved"
_CUT = 60
_SEARCHED = {"token": "token", "collection": "nft"}
_SYMBOL = re.compile(r"\w{1,32}\Z")


def hits(client: Any, kind: str, term: str, chain: str | None) -> list[dict[str, Any]]:
    """Return what a term fits, of a kind: what the field will hold, and what is shown of each.

    Of tokens and collections what the service finds; of the notebook's segments, lists of wallets and saved queries
    those whose name contains the term.
    """
    if kind not in _SEARCHED:
        return [
            {"kind": kind, "value": value, "label": label, "name": visible(name, _CUT)}
            for value, label, name in _named(kind)
            if term.lower() in label.lower()
        ]
    rows = client.search_nfts(term, chain, type=_SEARCHED[kind], limit=MOST).to_dict("records")
    symbols = Counter(str(row.get("symbol")).lower() for row in rows)

    def is_plain(row: Mapping[str, Any]) -> bool:
        # A symbol that two contracts have, or spam, would be answered with a question: their address is not.
        symbol = str(row.get("symbol"))
        named = isinstance(row.get("symbol"), str) and _SYMBOL.match(symbol)
        return bool(named) and row.get("possibleSpam") is not True and symbols[symbol.lower()] == 1

    return [
        {
            "kind": kind,
            "value": row["symbol"] if is_plain(row) else str(row.get("address")),
            "label": visible(row.get("symbol"), _CUT),
            "name": visible(row.get("name"), _CUT),
            "verified": row.get("verified") is True,
            "spam": row.get("possibleSpam") is True,
            "holders": visible(
                (held := count_text(row.get("ownerCount"))) and f"{held} holders", _CUT
            ),
        }
        for row in rows
    ]


def _named(kind: str) -> Iterable[tuple[str, str, str]]:
    """Yield value, label and name of the notebook's variables and history, each value once; or of saved queries."""
    # Where there is no notebook there are no names either.
    if get_ipython() is None:
        return []
    if kind == SAVED:
        here = session.current_session()
        names = session.saved_names(here.data_dir) if here else []
        return [(name, name, "a saved query") for name in names]
    found = dict(_lists() if kind == "list" else _segments())
    return [(value, label, value) for value, label in found.items()]


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
            size = f" ({matched:,} wallets)" if isinstance(matched, int) else ""
            yield found, visible(name, _CUT) + size


def _lists() -> Iterator[tuple[str, str]]:
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
    return len(value) if isinstance(first, str) and re.fullmatch(r"0x[0-9a-fA-F]{40}", first) else 0


def stored(client: Any, name: str) -> dict[str, Any]:
    """Return the condition on a variable's wallets: few are written out, many are stored with the service once."""
    value = variables()[name]
    asked = client.execute_segment({"wallet": {"in": value}}, limit=0)
    lists = Provenance.of(asked).lists
    column = value["address"] if hasattr(value, "columns") else value
    return {"list": next(iter(lists))} if lists else {"in": list(column)}
