"""Analyses of a world, asked through the front door: an entry of ``ANALYSES`` for each, and what the oracle says of it.

Each takes the client, the oracle and who draws (`tests.oracle.asking.Asking`), and raises where they differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import nbext
from nbext import Client
from tests.oracle.asking import Asking
from tests.oracle.meaning import One, Oracle
from tests.oracle.world import BURNED

Analysis = Callable[[Client, Oracle, Asking], None]


def of_now(oracle: Oracle, asking: Asking) -> dict[str, Any]:
    """Draw a request at no time of its own; its blocks are of the first chain, or of the one that it is all about."""
    asking.default, asking.ends = asking.chains[0], dict(asking.world.last_blocks)
    conditions = asking.members()
    request = {"operator": asking.one_of(["AND", "OR"]), "filters": conditions}
    asking.default = One(oracle, request).default
    return request


def at(request: Mapping[str, Any], moment: Any) -> dict[str, Any]:
    """Return a request as of a time."""
    return {**request, "filters": {**request["filters"], "asOf": moment}}


def overlap(client: Client, oracle: Oracle, asking: Asking) -> None:
    asked = [of_now(oracle, asking) for _ in range(asking.luck.randint(1, 3))]
    sets = [oracle.wallets(one) for one in asked]
    table = nbext.overlap({f"s{place}": one for place, one in enumerate(asked)}, client=client)
    assert table.to_numpy().tolist() == [[len(one & other) for other in sets] for one in sets]


def funnel(client: Client, oracle: Oracle, asking: Asking) -> None:
    asked = of_now(oracle, asking)
    table = nbext.funnel(asked, client=client)
    assert table["remaining"].iloc[-1] == len(oracle.wallets(asked))
    assert table["remaining"].iloc[0] == table["alone"].iloc[0]


def changes(client: Client, oracle: Oracle, asking: Asking) -> None:
    asked = of_now(oracle, asking)
    since = asking.one_of(sorted(asking.known(asking.default)))
    before = oracle.wallets(at(asked, since))
    after = oracle.wallets(at(asked, asking.world.last_blocks[asking.default]))
    table = nbext.changes(asked, since, client=client)
    expected = {
        **dict.fromkeys(after - before, "joined"),
        **dict.fromkeys(before - after, "left"),
        **dict.fromkeys(before & after, "stayed"),
    }
    assert dict(zip(table["address"], table["status"], strict=True)) == expected


def trend(client: Client, oracle: Oracle, asking: Asking) -> None:
    asked, every = of_now(oracle, asking), asking.luck.randint(1, 30)
    asking.times = True
    table = nbext.trend(asked, every=f"{every}h", since="60h", client=client)
    # Points from before the data begins are left out.
    chain = asking.default
    first, last = (asking.seconds(chain, one[chain]) for one in (asking.begins, asking.ends))
    hours = [hour for hour in range(0, 61, every) if last - hour * 3600 >= first][::-1]
    expected = [len(oracle.wallets(at(asked, f"{hour}h"))) for hour in hours]
    assert table["count"].tolist() == expected, (asked, every, expected)


def retention(client: Client, oracle: Oracle, asking: Asking) -> None:
    asked = of_now(oracle, asking)
    asking.times = True
    table = nbext.retention(asked, "day", cohort="held", since="2d", client=client)
    days = [str(name).removeprefix("until ") for name in table.index]
    ends = [*days[:-1], asking.world.last_blocks[asking.default]]
    sets = [oracle.wallets(at(asked, end)) for end in ends]
    cohorts = [one.difference(*sets[:place]) for place, one in enumerate(sets)]
    assert table["wallets"].tolist() == [len(one) for one in cohorts]
    for row, cohort in enumerate(cohorts):
        for step, later in enumerate(sets[row:] if cohort else []):
            assert table.iloc[row, 1 + step] == len(cohort & later) / len(cohort)


def concentration(client: Client, oracle: Oracle, asking: Asking) -> None:
    contract = asking.contract(asking.one_of(asking.chains), "ERC20")
    asked = One(oracle, {"filters": {"chain": contract.chain_id}})
    end = asking.world.last_blocks[contract.chain_id]
    held = [asked.balance(contract, one, end) for one in sorted(asked.seen() - {*BURNED})]
    amounts = sorted((one for one in held if one > 0), reverse=True)
    filters = {"token": {"token": contract.address}, "chain": contract.chain_id}
    table = nbext.concentration(filters, client=client)
    if amounts:
        assert int(table.at["all", "amount_raw"]) == sum(amounts)
        assert (table.at["all", "wallets"], table.at["top 10", "wallets"]) == (
            len(amounts),
            min(10, len(amounts)),
        )
    differences = sum(abs(one - other) for one in amounts for other in amounts)
    gini = table.attrs["nbext"]["gini"]
    parts = 2 * len(amounts) * sum(amounts)
    assert gini == float(Fraction(differences, parts)) if amounts else math.isnan(gini)


def profile(client: Client, oracle: Oracle, asking: Asking) -> None:
    asked = of_now(oracle, asking)
    table = nbext.profile(asked, least=1, client=client)
    one, wallets = One(oracle, asked), oracle.wallets(asked)
    expected = {}
    for contract in asking.world.contracts:
        if contract.chain_id in one.own_chains():
            end = one.end(contract.chain_id)
            number = sum(one.balance(contract, wallet, end) > 0 for wallet in wallets)
            expected |= {(contract.chain_id, contract.address): number} if number else {}
    rows = zip(table["chain"], table["contract"], table["wallets"], strict=True)
    assert {(number_of(chain), contract): many for chain, contract, many in rows} == expected


def wallet(client: Client, oracle: Oracle, asking: Asking) -> None:
    wallets = asking.some(asking.wallets)
    table = nbext.wallet(wallets, client=client)
    asked = One(oracle, {"filters": {}})
    expected = {}
    for contract in asking.world.contracts:
        for one in wallets:
            held = asked.balance(contract, one, asking.world.last_blocks[contract.chain_id])
            if held > 0:
                expected[one, contract.chain_id, contract.address] = held
    rows = zip(
        table["address"], table["chain"], table["contract"], table["amount_raw"], strict=True
    )
    found = {(who, number_of(chain), contract): int(held) for who, chain, contract, held in rows}
    assert found == expected


def number_of(chain: str) -> int:
    return {"ethereum": 1, "optimism": 10, "base": 8453}[chain]


ANALYSES: dict[str, Analysis] = {
    one.__name__: one
    for one in (overlap, funnel, changes, trend, retention, concentration, profile, wallet)
}
