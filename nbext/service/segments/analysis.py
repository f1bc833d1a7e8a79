"""Numbers about segments and wallets that are answered at once, with nothing stored: counts, funnels, holdings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from nbext.core.chains import chain_of
from nbext.core.times import iso
from nbext.core.wire import CountsRequest
from nbext.engine.dataset import Cancel, Dataset, Holding
from nbext.engine.holdings import holdings_of
from nbext.errors import ValidationError
from nbext.service.accounts.keys import Key
from nbext.service.segments.service import SegmentService, give_back_memory

# The most wallets that a funnel names.
_SAMPLE = 10


def count(
    service: SegmentService, asked: CountsRequest, key: Key, dataset: Dataset, cancel: Cancel
) -> dict[str, Any]:
    """Return how many wallets some segments have in common, and what each holds where that is asked."""
    together, amounts = asked["counts"], asked.get("amounts", False)
    plans = service.plans(
        dataset, [{**segment, "limit": 0} for segment in asked["segments"]], key, cancel
    )
    questions = [service.language.compile(plan) for plan in plans]
    known: dict[tuple[int, ...], int] = {}
    held: list[dict[str, Any] | None] = [None] * len(plans)
    try:
        name = amounts if isinstance(amounts, str) else None
        balances = [service.language.balance(plan, name) if amounts else None for plan in plans]
        columns = {place: one for place, one in enumerate(balances) if one}
        totals = dataset.totals([question for _, question in columns.values()], cancel=cancel)
        for (place, (column, _)), (matched, total) in zip(columns.items(), totals, strict=True):
            known[(place,)] = matched
            held[place] = {
                "symbol": column.get("symbol"),
                **_amount(total, column.get("decimals", 0)),
            }
        rest = [places for places in together if tuple(places) not in known]
        known |= zip(
            map(tuple, rest),
            dataset.count(questions, rest, cancel=cancel) if rest else [],
            strict=True,
        )
        counts = [known[tuple(places)] for places in together]
    finally:
        give_back_memory()
    return {
        "counts": counts,
        "segments": [
            {
                "words": plan.words,
                "canonical": plan.canonical,
                "asOf": plan.as_of,
                "warnings": plan.warnings,
                **({"held": each} if amounts else {}),
            }
            for plan, each in zip(plans, held, strict=True)
        ],
    }


def _amount(raw: int, decimals: int | None) -> dict[str, Any]:
    """Return an amount in its unit, where that is known, and its digits."""
    # Reading a text rounds once, as a segment's amounts are rounded.
    return {
        "decimals": decimals,
        "amount": None if decimals is None else float(f"{raw}e-{decimals}"),
        "amountRaw": str(raw),
    }


def funnel(
    service: SegmentService, body: Mapping[str, Any], key: Key, dataset: Dataset, cancel: Cancel
) -> dict[str, Any]:
    """Return each condition of a segment that must hold, counted alone and with those before it; and a few wallets."""
    plan = service.plan(dataset, body, key, cancel)
    steps = service.language.funnel(plan, partial(dataset.count, cancel=cancel))
    few = min(plan.limit, _SAMPLE)
    rows = (
        dataset.ask(service.language.compile(plan), limit=few, cancel=cancel).rows if few else None
    )
    return {
        "words": plan.words,
        "canonical": plan.canonical,
        "asOf": plan.as_of,
        "warnings": plan.warnings,
        "chains": [chain_of(one.chain_id).name for one in plan.whole.seen],
        "steps": [vars(step) for step in steps],
        "sample": rows["address"].to_pylist() if rows is not None else [],
    }


def holdings(
    service: SegmentService, body: Mapping[str, Any], key: Key, dataset: Dataset, cancel: Cancel
) -> dict[str, Any]:
    """Return what some wallets hold, on one chain or on all, now or at ``asOf``."""
    if "chain" in body:
        chains = [chain_of(body["chain"], "/chain")]
    else:
        chains = [chain_of(extent.chain_id) for extent in dataset.about.chains]
    # As a segment of what is seen on these chains: so addresses, times and their errors are those of segments.
    seen = [{"activity": {"transfers": {"min": 1}, "chain": chain.name}} for chain in chains]
    scope = {name: body[name] for name in ("chain", "asOf") if name in body}
    filters = {"wallet": {"in": body["wallets"]}, "any": seen, "exclude": [], **scope}
    try:
        plan = service.plan(dataset, {"filters": filters, "limit": 0}, key, cancel)
    except ValidationError as error:
        raise _of_wallets(error) from None
    asked = {one.chain_id: one.at for one in plan.whole.seen}
    ends = {
        chain: dataset.clock.last(chain)[0] if at is None else at for chain, at in asked.items()
    }
    now = all(at is None for at in asked.values())
    found = holdings_of(
        dataset, plan.canonical["filters"]["wallet"]["in"], ends, now=now, cancel=cancel
    )
    below = sum(one.amount < 0 for one in found)
    lacking = (
        f"{below:,} balances are below zero, because the data lacks transfers. They are left out."
    )
    return {
        "asOf": plan.as_of,
        "chains": [
            {
                "chain": chain_of(one).name,
                "block": end,
                "timestamp": iso(dataset.clock.timestamp_of(one, end)),
            }
            for one, end in ends.items()
        ],
        "warnings": [
            *plan.warnings,
            *dataset.about.unknown_at(asked),
            *([lacking] if below else []),
        ],
        "holdings": [
            _described(one) for one in sorted(found, key=_by_wallet_and_chain) if one.amount > 0
        ],
    }


def _of_wallets(error: ValidationError) -> ValidationError:
    """Return the error of a segment with its pointers as the request for holdings has them."""
    places = {"/filters/wallet/in": "/wallets", "/filters": ""}
    return type(error)(
        [
            {
                **one,
                "pointer": next(
                    new + one["pointer"].removeprefix(old)
                    for old, new in places.items()
                    if one["pointer"].startswith(old)
                ),
            }
            for one in error.errors
        ],
        error.more,
    )


def _by_wallet_and_chain(one: Holding) -> tuple[Any, ...]:
    # What nobody sent unasked comes first: spam is last, and what most wallets hold before what few do.
    contract = one.contract
    return (
        one.address,
        contract.chain_id,
        bool(contract.spam),
        -(contract.holders or 0),
        contract.address,
    )


def _described(one: Holding) -> dict[str, Any]:
    contract = one.contract
    decimals = 0 if contract.is_nft else contract.decimals
    return {
        "address": one.address,
        "chain": chain_of(contract.chain_id).name,
        "contract": contract.address,
        "symbol": contract.symbol,
        "name": contract.name,
        "tokenType": contract.standard,
        **_amount(one.amount, decimals),
        "verified": contract.verified,
        "possibleSpam": contract.spam,
    }
