"""What wallets hold: a few of them all that they have, those of a segment what they hold more than others do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from nbext.analysis import charts
from nbext.analysis.segments import (
    Result,
    Segment,
    client_of,
    names_of,
    requests_of,
    result,
    scope_of,
    segment_of,
)
from nbext.client import frames
from nbext.core.provenance import Provenance, warned
from nbext.core.rules import NFT_STANDARDS
from nbext.core.uint256 import six_digits

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client import Client
    from nbext.client.segment_run import Reporter


_PROFILED = {
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


@warned
def wallet(
    address: Any,
    *,
    as_of: str | int | date | None = None,
    chain: str | None = None,
    client: Client | None = None,
) -> Result:
    """Return what wallets hold: one, a few, or tens of thousands.

    Parameters
    ----------
    address
        An address, or any number of them: a list, a column or a table of addresses, or ``@FILE``.
    as_of
        A time (``2025-01-31``, ``30d`` before the last block) or a block of ``chain``; without it now.
    chain
        One chain; without it all chains of the data.
    client
        The client to ask; by default of the service that is set. Only nbext's own lists what a wallet holds.

    Returns
    -------
    Result
        A row for each balance above zero, by wallet and chain, spam last and otherwise what most wallets hold first:
        ``address``, ``chain``, ``contract``, ``symbol``, ``name``, ``tokenType`` str (ERC20, ERC721, ERC1155);
        ``amount`` float64 in the token's unit, a count of NFTs, missing where decimals are not known; ``amount_raw``
        exact, in the smallest unit, of the dtype that a segment's amounts have; ``share`` float64, the amount's part of
        the supply, missing where that is not known; ``verified``, ``possibleSpam`` boolean. Nothing held:
        no rows. ``attrs["nbext"]`` has the block of each chain. ``.segment(row)`` is all holders of that row's contract
        at that block, ``.chart()`` the first 30 amounts.

    Raises
    ------
    ConfigError
        The service is not nbext's own.
    ValidationError
        No address, one that is none, or a time outside the data.
    ResourceLimit
        More than 500,000 holdings: ask for fewer wallets, or one chain.

    Source
    ------
    POST /holdings, after POST /lists where there are more than 1,000 wallets
    """
    client = client_of(client, does="lists what a wallet holds")
    table = client.holdings(address, chain, as_of)
    about, contracts = Provenance.of(table), table[["chain", "contract", "tokenType"]]
    blocks = {one["chain"]: one["block"] for one in about.chains}

    def cell(row: int, _: Any) -> Segment:
        held = contracts.iloc[row]
        return Segment({**_holders(held), "asOf": blocks[held["chain"]]}, client=client)

    return result(table, about, cell, {"bars": _amounts})


def _holders(row: Mapping[str, Any] | pd.Series[Any]) -> dict[str, Any]:
    """Return the condition of the holders of a row's contract."""
    kind = "nft" if row["tokenType"] in NFT_STANDARDS else "token"
    return {kind: {kind: row["contract"], "chain": row["chain"]}}


def _called(rows: pd.DataFrame) -> list[str]:
    """Return what each row's contract is called: some have no symbol, and some no name either."""
    return list(rows["symbol"].fillna(rows["name"]).fillna(rows["contract"]))


def _amounts(made: Result) -> charts.Chart:
    wallets = made["address"].unique()
    drawn = made[made["amount"] > 0].head(charts.MOST_BARS)
    names = _called(drawn)
    for column in ("chain", "address"):
        if made[column].nunique() > 1:
            told = [charts.shortened(one, 14) for one in drawn[column]]
            names = [f"{name}, {one}" for name, one in zip(names, told, strict=True)]
    return charts.bars(
        names,
        drawn["amount"].tolist(),
        "What wallets hold",
        wallets[0] if len(wallets) == 1 else f"{len(wallets):,} wallets",
        Provenance.of(made),
        unit="amount, each in its own unit",
        form=six_digits,
        wide=True,
        cells=[(row, None) for row in drawn.index],
    )


@warned
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
    client = client_of(client, segment, does="profiles a segment")
    asked = segment_of(segment, client)
    against = None if base is None else segment_of(base, client, "/base")
    both = [one for one in (asked, against) if one]
    sides = None if against is None else (against.filters, against.operator)
    said = client.segment_profile(asked.filters, asked.operator, sides, least, progress=progress)
    found = said["profile"]
    size, of_base = found["wallets"], found["base"]
    rows = [
        {
            **one,
            "share": one["wallets"] / size,
            "base_share": one["base"] / of_base if of_base else None,
            # Rounded once: as the quotient of the two shares, equal lifts would differ in their last digit.
            "lift": one["wallets"] * of_base / (size * one["base"]) if one["base"] else None,
        }
        for one in found["holdings"]
    ]
    table = frames.frame(rows, _PROFILED)[[*_PROFILED]]
    held = f"{found['contracts']:,} contracts are held by {found['least']:,} wallets or more"
    cut = f"{held}: these are the {len(rows)} with the highest lift."
    none = f"{held}. nbext.profile(..., least=1) has those of fewer."
    notes = [none] if not rows and found["least"] > 1 else [cut] * (found["contracts"] > len(rows))
    about = Provenance(
        operation="profile",
        service=client.base_url,
        as_of=said["asOf"],
        segment_id=said["id"],
        warnings=[
            *said["warnings"],
            *notes,
            *(note for one in both for note in one.notes(said["fingerprint"])),
        ],
        wallets=size,
        base=of_base,
        base_words=found["baseWords"],
        least=found["least"],
        activity=found["activity"],
        segments=requests_of(both),
    )

    def cell(row: int, _: Any) -> Segment:
        members = [asked.member(), _holders(rows[row])]
        # Named, since its block is one of its own chain, which may be another than the row's.
        scope = {**scope_of(asked.filters), "chain": said["chain"]}
        return Segment({"all": members, **scope}, client=client)

    (name,) = names_of([segment], [asked])
    return result(table, about, cell, {"bars": lambda made: _lifts(made, name)})


def _lifts(made: Result, name: str) -> charts.Chart:
    # What all of them hold is what the segment asks for, most often its own collection.
    drawn = made[(made["share"] < 1) & (made["lift"] > 0)].head(MOST_DRAWN)
    names = [
        f"{one} ({share:.0%})" for one, share in zip(_called(drawn), drawn["share"], strict=True)
    ]
    left_out = _called(made[made["share"] == 1])[:3]
    subject = f"{charts.shortened(name)}{', without what all of them hold: ' * bool(left_out)}{', '.join(left_out)}"
    title = "What the wallets of a segment hold more than others do"
    return charts.bars(
        names,
        drawn["lift"].tolist(),
        title,
        subject,
        Provenance.of(made),
        unit="times as large a share as of the base",
        form="{:,.3g}".format,
        wide=True,
        begin=1,
        cells=[(row, None) for row in drawn.index],
    )
