"""A total divided by weights: exact sums, in proportion between a floor and a cap, largest remainders first."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nbext.errors import ValidationError
from nbext.payouts.payout import shares

WEIGHTS = st.lists(
    st.one_of(st.integers(1, 9), st.integers(1, 2**256 - 1), st.just(7)), min_size=1, max_size=12
)


def named(weights):
    return {f"0x{at:040x}": weight for at, weight in enumerate(weights)}


def at_rate(weights, rate, cap, floor):
    return [min(max(weight * rate, floor), cap) for weight in weights]


def exactly(weights, total, cap, floor):
    """The shares as fractions: at the one rate at which those within floor and cap make the total."""
    turns = sorted({Fraction(bound, weight) for weight in weights for bound in (floor, cap)})
    # Between two turns all amounts grow evenly: the total lies on the line between the last below and the first above.
    low = max(rate for rate in turns if sum(at_rate(weights, rate, cap, floor)) <= total)
    high = min(rate for rate in turns if sum(at_rate(weights, rate, cap, floor)) >= total)
    begin, end = (sum(at_rate(weights, rate, cap, floor)) for rate in (low, high))
    rate = low + (high - low) * Fraction(total - begin, end - begin) if end > begin else low
    return at_rate(weights, rate, cap, floor)


def with_largest_remainders(parts, total):
    whole = [part.numerator // part.denominator for part in map(Fraction, parts)]
    ranked = sorted(range(len(parts)), key=lambda at: (whole[at] - parts[at], at))
    for at in ranked[: total - sum(whole)]:
        whole[at] += 1
    return whole


@given(weights=WEIGHTS, draw=st.data())
def test_shares_are_those_of_exact_fractions_and_sum_up_to_the_total(weights, draw):
    total = draw.draw(st.one_of(st.integers(1, 200), st.integers(1, 2**256 - 1)))
    floor = draw.draw(st.one_of(st.just(0), st.integers(0, total // len(weights))))
    cap = draw.draw(st.one_of(st.none(), st.integers(-(-total // len(weights)), 2 * total)))
    expected = with_largest_remainders(
        exactly(weights, total, total if cap is None else cap, floor), total
    )
    assume(0 not in expected)
    found = shares(named(weights), total, cap, floor)
    assert list(found.values()) == expected
    assert sum(found.values()) == total


@given(weights=WEIGHTS, total=st.integers(1, 2**256 - 1), least=st.integers(0, 2**256 - 1))
def test_who_is_paid_has_at_least_so_much_of_the_total_and_the_others_share_what_others_would_have(
    weights, total, least
):
    wallets, whole = named(weights), sum(weights)
    fit = {
        one: weight for one, weight in wallets.items() if Fraction(weight * total, whole) >= least
    }
    assume(fit and min(fit.values()) * total >= sum(fit.values()))
    found = shares(wallets, total, at_least=least)
    assert found == shares(fit, total)
    # Without the others everybody's share is larger: nobody falls below again.
    assert min(found.values()) >= least


def test_shares_of_a_few():
    table = {
        "equal, what is left over to the first": ([1, 1, 1], 11, None, 0, [4, 4, 3]),
        "the largest remainder first": ([1, 2, 4], 10, None, 0, [1, 3, 6]),
        "one wallet": ([5], 10, None, 0, [10]),
        "capped": ([1, 1, 8], 10, 4, 0, [3, 3, 4]),
        "with a floor": ([1, 1, 8], 10, None, 2, [2, 2, 6]),
        "a weight of zero has the floor": ([0, 4, 4], 10, None, 2, [2, 4, 4]),
        "floor and cap at once": ([1, 5, 100], 12, 6, 2, [2, 4, 6]),
        "a floor that is the cap": ([0, 1, 9], 9, 3, 3, [3, 3, 3]),
        "a cap that all reach": ([1, 2, 3], 9, 3, 0, [3, 3, 3]),
        "equal weights beside a cap": ([2, 2, 2, 9], 13, 4, 0, [3, 3, 3, 4]),
        "the largest numbers": ([2**256 - 1, 1], 2**256 - 1, None, 1, [2**256 - 2, 1]),
    }
    found = {
        name: list(shares(named(weights), total, cap, floor).values())
        for name, (weights, total, cap, floor, _) in table.items()
    }
    assert found == {name: expected for name, (*_, expected) in table.items()}


def test_what_cannot_be_divided_so_is_refused():
    table = {
        "floors above the total": ([1, 1], 9, None, 5),
        "caps below the total": ([1, 1], 9, 4, 0),
        "a floor above the cap": ([1, 1], 9, 4, 5),
        "nobody": ([], 9, None, 0),
        "a weight of zero": ([0, 1], 9, None, 0),
        "only weights of zero": ([0, 0], 9, None, 0),
        "a total of zero": ([1, 1], 0, None, 0),
        "less than one unit each": ([1, 10**9], 5, None, 0),
        "a cap that leaves what a weight of zero cannot take": ([0, 5], 10, 6, 0),
    }
    for name, (weights, *asked) in table.items():
        with pytest.raises(ValidationError) as caught:
            shares(named(weights), *asked)
        assert caught.value.errors[0]["code"] == "range", name
