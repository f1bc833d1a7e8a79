"""A segment's profile: what its wallets hold more than others do, how old and how active they are.

It is a segment that only counts, with more to say: the same job, queue, limits and cancelling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from nbext.core.chains import chain_of
from nbext.core.times import iso
from nbext.engine.dataset import Cancel, Common, Dataset
from nbext.errors import ValidationError

# Contracts of one answer.
MOST_CONTRACTS = 200
_DAYS, _TRANSFERS = (30, 90, 365), (2, 10, 100)
Planned = Callable[[Mapping[str, Any]], Any]


def asked(plan: Any, base: Any | None, least: int, dataset: Dataset) -> Any:
    """Return the plan of a segment's profile: another question than the segment's, with an id of its own."""
    profile = {"base": None if base is None else base.canonical["filters"], "least": least}
    operator = {} if base is None else {"operator": base.canonical["operator"]}
    unknown = dataset.about.unknown_at({one.chain_id: one.at for one in plan.whole.seen})
    return replace(
        plan,
        canonical={**plan.canonical, "profile": {**profile, **operator}},
        warnings=[*plan.warnings, *unknown],
    )


def profile(
    language: Any,
    planned: Planned,
    of: tuple[Any, Mapping[str, Any] | None, int],
    dataset: Dataset,
    cancel: Cancel,
) -> dict[str, Any]:
    """Return the profile of a plan beside the request of a base; ``planned`` makes plans on the same data."""
    plan, against, least = of
    known = plan.canonical["filters"]
    scope = {name: known[name] for name in ("chain", "asOf", "exclude") if name in known}
    chains = [chain_of(one.chain_id).name for one in plan.whole.seen]
    seen = {
        "any": [{"activity": {"transfers": {"min": 1}, "chain": one}} for one in chains],
        **scope,
    }
    base = planned(against or {"filters": seen, "limit": 0})
    parts = _parts(planned, plan, scope)
    questions = [language.compile(one) for one in (plan, base, *parts)]
    both = [[side, 2 + place] for place in range(len(parts)) for side in (0, 1)]
    counts = dataset.count(questions, [[0], [1], *both], cancel=cancel)
    ends = {
        one.chain_id: dataset.clock.last(one.chain_id)[0] if one.at is None else one.at
        for one in plan.whole.seen
    }
    now = all(one.at is None for one in plan.whole.seen)
    found = dataset.profile(questions[0], questions[1], ends, now=now, least=least, cancel=cancel)
    return {
        "wallets": counts[0],
        "base": counts[1],
        "baseWords": base.words,
        "least": least,
        "contracts": len(found),
        "holdings": [_described(one) for one in found[:MOST_CONTRACTS]],
        "activity": [
            {
                "words": part.words.removeprefix("wallets that "),
                "filters": part.canonical["filters"],
                "wallets": counts[2 + 2 * place],
                "base": counts[3 + 2 * place],
            }
            for place, part in enumerate(parts)
        ],
    }


def _parts(planned: Planned, plan: Any, scope: Mapping[str, Any]) -> list[Any]:
    """Return plans of how old and how active wallets are on the segment's chain, as far as the data goes back."""
    asked: list[dict[str, Any]] = []
    if plan.as_of["timestamp"] is not None:
        end = int(datetime.fromisoformat(plan.as_of["timestamp"]).timestamp())
        starts = [iso(end - days * 86_400) for days in _DAYS]
        asked += [{key: {"after": start}} for key in ("first", "last") for start in starts]
    asked += [{"transfers": {"min": least}} for least in _TRANSFERS]
    plans = []
    for one in asked:
        try:
            plans.append(
                planned({"filters": {"activity": {**one, "chain": plan.chain.name}, **scope}})
            )
        except ValidationError:
            # The data begins later than that.
            continue
    return plans


def _described(one: Common) -> dict[str, Any]:
    contract = one.contract
    return {
        "chain": chain_of(contract.chain_id).name,
        "contract": contract.address,
        "symbol": contract.symbol,
        "name": contract.name,
        "tokenType": contract.standard,
        "possibleSpam": contract.spam,
        "wallets": one.wallets,
        "base": one.base,
    }
