"""What the wallets of a segment hold more than others do, how old they are and how active."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nbext.analysis import charts
from nbext.analysis.results import Result, result
from nbext.analysis.segments import Segment, all_of, client_of, described, names_of, segment_of
from nbext.client import frames
from nbext.core.constants import NFT_STANDARDS
from nbext.core.provenance import Provenance
from nbext.errors import ConfigError

if TYPE_CHECKING:
    from nbext.client import Client
    from nbext.client.segment_run import Reporter

_TYPES = {
    "symbol": "string",
    "name": "string",
    "chain": "string",
    "contract": "string",
    "tokenType": "string",
    "wallets": "integer",
    "share": "float64",
    "base_share": "float64",
    "lift": "float64",
    "possibleSpam": "boolean",
}
MOST_DRAWN = 20


def profile(
    segment: Any,
    *,
    base: Any = None,
    least: int | None = None,
    client: Client | None = None,
    progress: Reporter | None = None,
) -> Result:
    """Return which tokens and collections the wallets of a segment hold more than others do.

    Parameters
    ----------
    segment
        Filters, the table of a segment, its id, or the symbol or address of a contract.
    base
        Another segment to compare with; by default all wallets seen on the segment's chains, without those that it
        excludes.
    least
        How many wallets of the segment have to hold a contract (default 5): the share of a few says little.
    client
        The client to ask; by default of the service that is set. It has to be nbext's own.
    progress
        Called with a `Progress` while the service works.

    Returns
    -------
    Result
        A row for each of at most 200 contracts, those with the highest lift first: ``symbol``, ``name``, ``chain``,
        ``contract``, ``tokenType`` str; ``wallets`` int64, how many of the segment hold it at the segment's block;
        ``share`` of the segment and ``base_share`` of the base float64; ``lift`` float64, the one divided by the other,
        missing where nobody of the base holds it; ``possibleSpam`` boolean. ``attrs["nbext"]["activity"]`` has how many
        wallets of both are young, active, or have many transfers. ``.segment(row)`` is the segment's wallets that hold
        the row's contract, ``.chart()`` the lifts.

    Raises
    ------
    ConfigError
        The service is not nbext's own.
    SegmentFailed, QueryTimeout, ResourceLimit
        As of any segment: the profile is one that only counts.

    Source
    ------
    POST /profile, then GET /v1/segment/{id} until it is made
    """
    client = client_of(client)
    asked = segment_of(segment, client)
    if not client.is_ours:
        raise ConfigError(
            f"{client.base_url} is not nbext's own service, the only one that profiles a segment."
        )
    against = None if base is None else segment_of(base, client, "/base")
    sides = None if against is None else (against.filters, against.operator)
    said = client.segment_profile(asked.filters, asked.operator, sides, least, progress=progress)
    found = said["profile"]
    rows = [_row(one, found) for one in found["holdings"]]
    table = frames.frame(rows, _TYPES)
    held = f"{found['contracts']:,} contracts are held by {found['least']:,} wallets or more"
    cut = f"{held}: these are the {len(rows)} with the highest lift."
    about = Provenance(
        operation="profile",
        service=client.base_url,
        as_of=said["asOf"],
        segment_id=said["id"],
        warnings=[*said["warnings"], *([cut] if found["contracts"] > len(rows) else [])],
        wallets=found["wallets"],
        base=found["base"],
        base_words=found["baseWords"],
        least=found["least"],
        activity=found["activity"],
        segments=described(one for one in (asked, against) if one),
    )

    def cell(row: int, _: Any) -> Segment:
        one = rows[row]
        kind = "nft" if one["tokenType"] in NFT_STANDARDS else "token"
        held = {kind: {kind: one["contract"], "chain": one["chain"]}, **asked.scope()}
        return all_of([asked, Segment(held, client=client)])

    (name,) = names_of([segment], [asked], [""])
    return result(table, about, cell, {"bars": lambda made: _chart(made, name)})


def _row(one: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: one[name] for name in _TYPES if name in one},
        "share": one["wallets"] / found["wallets"],
        "base_share": one["base"] / found["base"] if found["base"] else None,
        # Rounded once: as the quotient of the two shares, equal lifts would differ in their last digit.
        "lift": one["wallets"] * found["base"] / (found["wallets"] * one["base"])
        if one["base"]
        else None,
    }


def _chart(made: Result, name: str) -> charts.Chart:
    drawn = made.head(MOST_DRAWN)
    # Some contracts have no symbol, and some no name either.
    known = drawn["symbol"].fillna(drawn["name"]).fillna(drawn["contract"])
    names = [f"{name} ({share:.0%})" for name, share in zip(known, drawn["share"], strict=True)]
    title = f"What the wallets of {charts.cut(name)} hold more than others do"
    return charts.lifts(names, drawn["lift"].tolist(), title, Provenance.of(made))
