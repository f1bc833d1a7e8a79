"""Who joined a segment, left it or stayed: the oracle's sets at two times, and its balances of each wallet at both."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbext
from nbext.errors import InvalidSegment, ValidationError
from tests.analysis.test_overlap import EACH, matched, segments
from tests.language.test_against_oracle import CONTRACTS, LAST, SECONDS
from tests.oracle.meaning import One

# Symbol, whether it is exact, and when.
COLUMN = re.compile(r"([A-Z]+)_(balance(_raw)?|count)_(then|now)")


@EACH
@given(asked=segments(most=1), hours=st.integers(0, 55))
def test_each_wallet_is_in_the_oracles_sets_of_both_times(client, oracle, asked, hours):
    filters = {key: one for key, one in asked[0]["filters"].items() if key != "asOf"}
    asked = {**asked[0], "filters": {**filters, "chain": "eth"}}
    try:
        table = (
            nbext.changes(asked, f"{hours}h", client=client)
            if hours
            else nbext.changes(asked, 3, client=client)
        )
    except InvalidSegment:
        # Its heldSince lies after the first time.
        return
    moments = [f"{hours}h" if hours else 3, LAST[1]]
    then, now = ({**asked, "filters": {**asked["filters"], "asOf": one}} for one in moments)
    before, after = oracle.wallets(then), oracle.wallets(now)
    expected = {
        **dict.fromkeys(after - before, "joined"),
        **dict.fromkeys(before - after, "left"),
        **dict.fromkeys(before & after, "stayed"),
    }
    assert dict(zip(table["address"], table["status"], strict=True)) == expected
    assert table["address"].tolist() == sorted(expected)
    about = table.attrs["nbext"]
    assert about["joined"] - about["left"] == len(after) - len(before)
    assert about["as_of"]["block"] == LAST[1]
    for name in table.columns[2:]:
        symbol, _, exact, when = COLUMN.fullmatch(name).groups()
        contract = next(one for one in CONTRACTS if one.symbol == symbol)
        one = One(oracle, then if when == "then" else now)
        held = [
            one.balance(contract, wallet, one.end(contract.chain_id)) for wallet in table["address"]
        ]
        unit = 1 if exact else 10 ** (contract.decimals or 0)
        assert [int(one) if exact else one for one in table[name]] == [
            one / unit if not exact else one for one in held
        ]
    for status in set(expected.values()):
        row = table.index[table["status"] == status][0]
        assert set(table.segment(row).open(100)["address"]) == {
            one for one in expected if expected[one] == status
        }


@pytest.mark.parametrize(
    "contract", [one for one in CONTRACTS if one.chain_id == 1], ids=lambda one: one.symbol
)
@pytest.mark.parametrize("block", [1, 6])
def test_balances_are_those_of_each_wallet_then_and_now_whether_it_matches_or_not(
    client, oracle, contract, block
):
    kind = "token" if contract.standard == "ERC20" else "nft"
    bounds = {"balance": {"min": "2"}, "unit": "raw"} if kind == "token" else {"count": {"min": 2}}
    table = nbext.changes({kind: {kind: contract.symbol, **bounds}}, block, client=client)
    exact = f"{contract.symbol}_balance_raw" if kind == "token" else f"{contract.symbol}_count"
    asked = One(oracle, {"filters": {}})
    for when, at in (("then", block), ("now", LAST[1])):
        held = [asked.balance(contract, wallet, at) for wallet in table["address"]]
        assert [int(one) for one in table[f"{exact}_{when}"]] == held
        if kind == "token":
            amounts = [one / 10 ** (contract.decimals or 0) for one in held]
            assert table[f"{contract.symbol}_balance_{when}"].tolist() == amounts
    assert (table.attrs["nbext"]["then"]["block"], table.attrs["nbext"]["as_of"]["block"]) == (
        block,
        LAST[1],
    )


def test_a_span_is_counted_back_from_the_last_block_and_both_blocks_are_named(client):
    table = nbext.changes("USDC", "20h", client=client)
    about = table.attrs["nbext"]
    block = (LAST[1] * SECONDS[1] - 20 * 3600) // SECONDS[1]
    assert (about["then"]["block"], about["as_of"]["block"], about["operation"]) == (
        block,
        LAST[1],
        "changes",
    )
    assert {type(one["filters"]["asOf"]) for one in about["segments"]} == {int, str}
    chart = table.chart()
    assert chart.words == (
        f"Who joined and who left: USDC from {about['then']['timestamp']} to {about['as_of']['timestamp']}: "
        f"then: {about['left'] + about['stayed']}; left: {about['left']}; joined: {about['joined']}; "
        f"now: {about['joined'] + about['stayed']}"
    )
    assert matched(table.segment(0)) == about[table["status"][0]]


def test_a_segment_without_balances_has_addresses_and_statuses_alone(client):
    filters = {"activity": {"transfers": {"min": 20}}, "columns": ["firstSeen"]}
    rows = client.execute_segment({**filters, "orderBy": "-firstSeen"}, limit="all")
    table = nbext.changes(rows, 6, client=client)
    assert list(table.columns) == ["address", "status"]
    assert set(table["status"]) == {"joined"}
    assert table.dtypes.astype(str).tolist() == ["str", "str"]


def test_changes_are_a_segment_of_their_own_with_rows_that_no_filters_name(service):
    asked = {"filters": {"token": {"token": "USDC"}}, "since": 3}
    made = service.post("/changes", asked, headers={"Prefer": "wait=10"}).json()
    assert [one["name"] for one in made["columns"]] == [
        "address",
        "then_USDC_balance",
        "then_USDC_balance_raw",
        "then_matches",
        "now_USDC_balance",
        "now_USDC_balance_raw",
        "now_matches",
    ]
    assert (made["since"]["block"], made["asOf"]["block"], made["status"]) == (
        3,
        LAST[1],
        "completed",
    )
    assert service.get(made["links"]["self"]).json()["since"] == made["since"]
    assert service.post("/changes", {**asked, "since": 4}).json()["id"] != made["id"]
    named = service.post("/v1/segment/execute", {"filters": {"segment": {"id": made["id"]}}})
    assert named.json()["errors"][0]["code"] == "unknown-segment"


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"filters": {"token": {"token": "USDC"}}}, "/since"),
        ({"filters": {"token": {"token": "USDC"}, "asOf": 3}, "since": 3}, "/filters/asOf"),
        (
            {"filters": {"token": {"token": "USDC"}, "orderBy": "address"}, "since": 3},
            "/filters/orderBy",
        ),
        ({"filters": {"token": {"token": "USDC"}}, "since": 3, "limit": 5}, "/limit"),
        ({"filters": {"token": {"token": "USDC"}}, "since": 10**6}, "/since"),
        ({"filters": {"token": {"token": "USDC"}}, "since": None}, "/since"),
    ],
)
def test_a_request_for_changes_names_the_field_that_is_wrong(service, asked, pointer):
    answer = service.post("/changes", asked)
    assert (answer.status_code, [one["pointer"] for one in answer.json()["errors"]]) == (
        422,
        [pointer],
    )


@pytest.mark.parametrize(
    ("segment", "since", "message"),
    [
        (
            {"token": {"token": "USDC"}, "asOf": 5},
            "30d",
            "/segment/asOf: changes sets asOf itself. Leave it out.",
        ),
        ("USDC", "soon", "/since: 'soon' is not a time."),
        ({"token": {"token": "NOPE"}}, "1d", "/filters/token/token: "),
        # What a table has beside its wallets, whoever writes the filters wants to see.
        *(
            (
                {"token": {"token": "USDC"}, name: given},
                3,
                f"/filters/{name}: Changes set {name} themselves. Leave it out.",
            )
            for name, given in (("columns", ["firstSeen"]), ("orderBy", "-USDC_balance"))
        ),
    ],
)
def test_what_cannot_be_compared_is_named(client, segment, since, message):
    with pytest.raises(ValidationError) as caught:
        nbext.changes(segment, since, client=client)
    assert str(caught.value).startswith(message)
