"""Answers in the shapes that vendors give are read right: without any settings, or with the profile of that vendor."""

# A row of a table stays on its line.

from __future__ import annotations

import pytest

from nbext import Client
from tests.client.conftest import KEY
from tests.client.faultserver import reply
from tests.client.remote.test_never_a_part import case
from tests.client.remote.vendors import CASES


def test_an_answer_in_a_vendors_shape_is_read_right(server, settings):
    for each in CASES:
        with case(each.vendor, each.name):
            server.requests.clear()
            server.scripts.clear()
            server.scripts.update({path: list(replies) for path, replies in each.replies.items()})
            client = Client(
                server.url, KEY, settings=settings(remote={"profile": each.profile, **each.remote})
            )
            table = each.call(client)
            assert {name: table[name].tolist() for name in each.expected} == each.expected


def test_there_are_enough_vendors_and_most_need_no_settings():
    assert len({each.vendor for each in CASES}) >= 8
    plain = [each for each in CASES if each.profile == "none" and not each.remote]
    assert len(plain) >= 0.9 * len(CASES)


A = "0x" + "aa" * 20


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (
            {"token_name": "Dai", "token_symbol": "DAI", "token_decimals": "18"},
            {"name": "Dai", "symbol": "DAI", "decimals": 18},
        ),
        (
            {
                "contract_name": "Dai",
                "contract_ticker_symbol": "DAI",
                "contract_decimals": 18,
                "supports_erc": ["erc20"],
            },
            {"name": "Dai", "symbol": "DAI", "decimals": 18, "supports_erc": ["erc20"]},
        ),
        (
            {"tokenAddress": A, "tokenName": "Dai", "tokenDecimal": "6"},
            {"address": A, "name": "Dai", "decimals": 6},
        ),
        (
            {"NAME": "Dai", "Total_Supply": "123", "chain_id": "1"},
            {"name": "Dai", "totalSupply": 123, "chainId": 1},
        ),
        # Two that could be one of ours stay as they are; so does one beside ours.
        (
            {"token_name": "Dai", "contract_name": "DaiToken"},
            {"token_name": "Dai", "contract_name": "DaiToken"},
        ),
        (
            {"name": "Dai", "token_name": "DAI Stablecoin"},
            {"name": "Dai", "token_name": "DAI Stablecoin"},
        ),
        # What only looks like a field of ours: no digits, no standard, a list.
        (
            {"name": "x", "divisor": "n/a", "type": "fungible", "contract": [1]},
            {"divisor": "n/a", "type": "fungible", "contract": [1]},
        ),
    ],
)
@pytest.mark.parametrize(
    "wrapped",
    [lambda record: record, lambda record: {"data": [record]}, lambda record: {"node": record}],
)
def test_a_contracts_fields_have_our_names_and_its_others_stay(
    server, client, sent, expected, wrapped
):
    server.script("*", reply(wrapped(sent)))
    record = client.tokens("ethereum", A).iloc[0].to_dict()
    assert {name: record[name] for name in expected} == expected
    assert len(record) == len(sent)


def test_whole_numbers_in_text_are_integers_where_the_column_is_known_to_hold_them(server, client):
    server.script(
        "*",
        reply(
            [
                {"address": A, "decimals": "18", "numOwners": "7", "rank": "1"},
                {"address": A, "decimals": None},
            ]
        ),
    )
    table = client.search_nfts("dai")
    assert table.dtypes.astype(str).to_dict() == {
        "address": "str",
        "decimals": "Int64",
        "ownerCount": "Int64",
        "rank": "str",
    }


def test_a_column_that_only_a_later_hit_has_is_of_its_type(server, client):
    hits = [{"address": A, "name": "a"}, {"address": A[:-1] + "b", "total_supply": "123"}]
    server.script("*", reply(hits))
    table = client.search_nfts("dai")
    assert table.dtypes.astype(str)["totalSupply"] == "decimal128(38, 0)[pyarrow]"
    assert table["totalSupply"].dropna().tolist() == [123]
