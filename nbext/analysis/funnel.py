"""The conditions of one segment, one after the other: how many wallets match each, and how many remain."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nbext.analysis import charts
from nbext.analysis.results import Result, result
from nbext.analysis.segments import (
    SCOPE,
    Segment,
    client_of,
    counted,
    described,
    segment_of,
)
from nbext.core.provenance import Provenance

if TYPE_CHECKING:
    from nbext.client import Client


def funnel(segment: Any, *, client: Client | None = None) -> Result:
    """Return the conditions of a segment that must all hold, in the order in which they are asked.

    Parameters
    ----------
    segment
        Filters, the table of a segment, its id, or the symbol or address of a contract. With the operator OR, and of
        one condition, the table has one row.
    client
        The client to ask; by default of the service that is set.

    Returns
    -------
    Result
        A row for each condition: ``condition`` str, its words; ``alone`` int64, the wallets that match it;
        ``remaining`` int64, those that match it and all before it. A condition under ``not`` takes wallets away.
        ``.segment(row, "alone")`` and ``.segment(row, "remaining")`` are these wallets; ``.chart()`` draws both.

    Source
    ------
    POST /funnel; of a service that is not our own, two segments for each condition.
    """
    import pandas as pd

    asked = segment_of(segment, client_of(client))
    if asked.client.is_ours:
        found = asked.client.funnel(asked.filters, asked.operator)
        members = [step["filters"] for step in found["steps"]]
        scope = {
            key: found["canonical"]["filters"][key]
            for key in SCOPE[:3]
            if key in found["canonical"]["filters"]
        }
        chains = found["chains"]
        rows = [(step["words"], step["alone"], step["remaining"]) for step in found["steps"]]
        about = Provenance(
            operation="funnel",
            service=asked.client.base_url,
            as_of=found["asOf"],
            warnings=found["warnings"],
            segments=described([asked]),
        )
    else:
        members, scope, chains = _members(asked), asked.scope(), []
        places = range(len(members))
        both = [_of(members[place : place + 1], scope, chains, asked) for place in places]
        both += [_of(members[: place + 1], scope, chains, asked) for place in places]
        counts = counted(both, [[place] for place in range(len(both))])
        words = [json.dumps(one, default=str, ensure_ascii=False) for one in members]
        rows = list(zip(words, counts.counts, counts.counts[len(members) :], strict=False))
        about = counts.about("funnel", [asked])

    def cell(row: int, column: Any) -> Segment | None:
        if column not in ("alone", "remaining"):
            return None
        return _of(members[row if column == "alone" else 0 : row + 1], scope, chains, asked)

    table = pd.DataFrame(rows, columns=["condition", "alone", "remaining"])
    table = table.astype({"condition": "str", "alone": "int64", "remaining": "int64"})
    return result(
        table,
        about,
        cell,
        {
            "bars": lambda made: charts.steps(
                made["condition"].tolist(),
                made["alone"].tolist(),
                made["remaining"].tolist(),
                about,
            )
        },
    )


def _of(
    members: Sequence[Mapping[str, Any]],
    scope: Mapping[str, Any],
    chains: Sequence[str],
    of: Segment,
) -> Segment:
    """Return the segment of the wallets that match some conditions.

    A condition that is denied is taken from the wallets seen on all ``chains`` of the whole segment: where these
    conditions name fewer, one on each chain is added that no wallet matches, so that all are seen here too.
    """
    inside: dict[str, Any] = dict(members[0]) if len(members) == 1 else {"all": list(members)}
    fewer = set(chains) - (set(_chains(inside)) or {scope.get("chain", "")})
    nobody = [
        {"all": [one, {"not": one}]}
        for one in (
            {"activity": {"transfers": {"min": 1}, "chain": chain}}
            for chain in (chains if fewer else [])
        )
    ]
    return Segment(
        {**({"any": [inside, *nobody]} if nobody else inside), **scope}, client=of.client
    )


def _chains(part: Any) -> Iterator[str]:
    """Yield the chains that canonical conditions name."""
    if isinstance(part, Mapping):
        for key, one in part.items():
            yield from [one] if key == "chain" else _chains(one)
    elif isinstance(part, list):
        for one in part:
            yield from _chains(one)


def _members(asked: Segment) -> list[dict[str, Any]]:
    if asked.operator != "AND":
        return [asked.member()]
    return [
        {key: one}
        for key, value in asked.member().items()
        for one in (value if isinstance(value, list) and key not in ("all", "any") else [value])
    ]
