"""What a builder's fields offer to pick: contracts that a service finds, and what the notebook has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from nbext.core.addresses import looks_like_address
from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import visible
from nbext.notebook import session
from nbext.notebook.forms.builder.fields import COLUMN
from nbext.notebook.forms.form import variables
from nbext.notebook.forms.markup import marks_of, number_text, text_of

# So many hits of a kind fit below a field.
MOST = 8
# The kind of a query that `%nbext save` put away.
SAVED = "saved"
_CUT = 60
_SEARCHED = {"token": "token", "collection": "nft"}
_SYMBOL = re.compile(r"\w{1,32}\Z")
# What a field will hold, and what is shown of it.
Offers = Iterable[tuple[str, str]]


def hits(
    client: Any, kind: str, term: str, chain: str | None, orders: Offers = ()
) -> list[dict[str, Any]]:
    """Return what a term fits, of a kind: what the field will hold, and what is shown of each.

    Of tokens and collections what the service finds; of the notebook's segments, lists of wallets and saved queries,
    and of the ``orders`` of the rows, those that contain the term.
    """
    if kind not in _SEARCHED:
        # Each value once.
        offered = dict(orders if kind == COLUMN else _NAMED[kind]())
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


_NAMED = {SAVED: _saved, "segment": _segments, "list": _lists}
