"""What one or a few wallets hold: every token and collection, on every chain of the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Any

from nbext.analysis import charts
from nbext.analysis.results import Result, result
from nbext.analysis.segments import Segment, client_of
from nbext.client import frames
from nbext.core.constants import NFT_STANDARDS
from nbext.core.provenance import Provenance
from nbext.errors import ConfigError

if TYPE_CHECKING:
    from nbext.client import Client

_TYPES = {
    "address": "string",
    "chain": "string",
    "contract": "string",
    "symbol": "string",
    "name": "string",
    "tokenType": "string",
    "amount": "float64",
    "amount_raw": "uint256",
    "verified": "boolean",
    "possibleSpam": "boolean",
}


def wallet(
    address: str | Iterable[str],
    *,
    as_of: str | int | date | None = None,
    chain: str | None = None,
    client: Client | None = None,
) -> Result:
    """Return what one or a few wallets hold.

    Parameters
    ----------
    address
        An address, or up to 100 of them: a list, or a column of a table.
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
        exact, in the smallest unit, of the dtype that a segment's amounts have; ``verified``, ``possibleSpam``
        boolean. Nothing held: no rows. ``attrs["nbext"]`` has the block of each chain. ``.segment(row)`` is all
        holders of that row's contract at that block, ``.chart()`` how many contracts each wallet has.

    Raises
    ------
    ConfigError
        The service is not nbext's own.
    ValidationError
        No address, more than 100, one that is none, or a time outside the data.
    ResourceLimit
        More than 10,000 holdings: ask for fewer wallets, or one chain.

    Source
    ------
    POST /holdings
    """
    client = client_of(client)
    if not client.is_ours:
        raise ConfigError(
            f"{client.base_url} is not nbext's own service, the only one that lists what a wallet holds."
        )
    asked = [address] if isinstance(address, str) else [str(one) for one in address]
    moment = as_of.isoformat() if isinstance(as_of, date) else as_of
    found = client.holdings(list(dict.fromkeys(asked)), chain, moment)
    rows = [{**one, "amount_raw": one["amountRaw"]} for one in found["holdings"]]
    table = frames.frame([{name: row[name] for name in _TYPES} for row in rows], _TYPES)
    nothing = sorted({one.lower() for one in asked} - {row["address"] for row in rows})
    none = (
        f"{', '.join(nothing[:3])}{' and others' * (len(nothing) > 3)}: no holdings in this data."
    )
    about = Provenance(
        operation="wallet",
        service=client.base_url,
        as_of=found["asOf"],
        chains=found["chains"],
        warnings=[*found["warnings"], *([none] if nothing else [])],
        wallets=asked,
    )
    blocks = {one["chain"]: one["block"] for one in found["chains"]}

    def cell(row: int, _: Any) -> Segment:
        one = rows[row]
        kind = "nft" if one["tokenType"] in NFT_STANDARDS else "token"
        held = {kind: {kind: one["contract"]}, "chain": one["chain"], "asOf": blocks[one["chain"]]}
        return Segment(held, client=client)

    return result(table, about, cell, {"bars": _chart})


def _chart(made: Result) -> charts.Chart:
    kinds = Counter(zip(made["address"], made["chain"], made["tokenType"], strict=True))
    wallets = made["address"].unique()
    names = [f"{charts.cut(address, 14)} {chain} {kind}" for address, chain, kind in kinds]
    title = (
        f"What {wallets[0]} holds" if len(wallets) == 1 else f"What {len(wallets):,} wallets hold"
    )
    return charts.bars(
        names, list(kinds.values()), title, Provenance.of(made), "tokens and collections"
    )
