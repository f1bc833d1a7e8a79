"""The walk from a request to rows, on a chain small enough to answer by eye."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nbext.engine.dataset import Contract
from nbext.errors import AmbiguousSymbol, InvalidSegment
from nbext.language import language
from tests.language.tables import ZERO, Transfer, World, WorldDataset


def address(number: int) -> str:
    return f"0x{number:040x}"


WORLD = World(
    contracts=[
        Contract(0, 1, address(0xC0), "ERC20", symbol="USDC", decimals=6, name="USD Coin"),
        Contract(1, 1, address(0xC1), "ERC721", symbol="BAYC"),
        Contract(2, 10, address(0xC2), "ERC1155", symbol="OPX"),
        Contract(3, 1, address(0xC3), "ERC20", symbol="USDC", decimals=None, name="a copy"),
        Contract(4, 1, address(0xC4), "ERC20", symbol="DAI", decimals=18),
    ],
    transfers=[
        Transfer(0, 1, 0, ZERO, address(5), 2 * 10**6),
        Transfer(0, 2, 0, address(5), address(6), 5 * 10**5),
        Transfer(1, 2, 1, ZERO, address(6), 7),
        Transfer(1, 3, 1, ZERO, address(7), 2**256 - 1),
        Transfer(2, 3, 1, ZERO, address(7), 9, 3),
        Transfer(4, 4, 1, ZERO, address(8), 2**256 - 1),
    ],
    last_blocks={1: 10, 10: 12},
)
USDC = address(0xC0)


@pytest.fixture(scope="module")
def dataset():
    opened = WorldDataset(WORLD)
    yield opened
    opened.close()


def rows(dataset, filters, operator="AND"):
    plan = language.resolve(language.parse({"operator": operator, "filters": filters}), dataset)
    answer = dataset.ask(language.compile(plan), limit=100)
    found = answer.rows.to_pylist()
    assert answer.matched == len(found)
    return found


def wallets(dataset, filters, operator="AND"):
    return [int(row["address"], 16) for row in rows(dataset, filters, operator)]


def test_holders_come_with_exact_balances_ordered_by_address(dataset):
    assert rows(dataset, {"token": {"token": USDC}}) == [
        {"address": address(5), "USDC_balance": 1.5, "USDC_balance_raw": 1_500_000},
        {"address": address(6), "USDC_balance": 0.5, "USDC_balance_raw": 500_000},
    ]


def test_a_share_of_a_supply_that_nobody_knows_is_missing_and_says_why(dataset):
    known = WORLD.contracts[0]
    unknown = "USDC: shares of the supply are not known: "
    for stated, as_of, shares, why in (
        (2 * 10**6, {}, [0.75, 0.25], None),
        (8 * 10**6, {}, [0.1875, 0.0625], None),
        (2 * 10**6, {"asOf": 1}, [1.0], None),
        (None, {}, [None] * 2, "the data may begin after its first mint."),
        (10**6, {}, [None] * 2, "totalSupply is not what its wallets hold."),
        (8 * 10**6, {"asOf": 1}, [None], "totalSupply is not what its wallets hold."),
    ):
        world = replace(
            WORLD, contracts=[replace(known, total_supply=stated), *WORLD.contracts[1:]]
        )
        dataset.catalog.world = world
        try:
            asked = {"token": {"token": USDC}, "columns": ["share"], **as_of}
            plan = language.resolve(language.parse({"filters": asked}), dataset)
            assert [row["USDC_share"] for row in rows(dataset, asked)] == shares
        finally:
            dataset.catalog.world = WORLD
        # The first: that the chain's contract counts no transfers.
        assert plan.warnings[1:] == ([] if why is None else [unknown + why])


@pytest.mark.parametrize(
    ("filters", "pointer", "detail"),
    [
        (
            {"activity": {"transfers": {"min": 1}}, "columns": ["share", "transferred"]},
            "columns",
            '"share" needs a token or nft condition that holds of the wallets. '
            '"transferred" needs one transfer condition that holds of the wallets, with "token" or "nft".',
        ),
        (
            {"transfer": [{"token": USDC}, {"nft": "BAYC"}], "columns": ["lastTransfer"]},
            "columns",
            '"lastTransfer" needs one transfer condition that holds of the wallets.',
        ),
        (
            {"not": {"transfer": {"token": USDC}}, "columns": ["transferCount"]},
            "columns",
            '"transferCount" needs one transfer condition that holds of the wallets.',
        ),
        (
            {"transfer": {"direction": "in"}, "columns": ["transferCount", "transferred"]},
            "columns",
            '"transferred" needs one transfer condition that holds of the wallets, with "token" or "nft".',
        ),
        (
            {"token": {"token": USDC}, "nft": {"nft": "BAYC"}, "orderBy": "-amount"},
            "orderBy",
            "The rows have 2 amounts. Allowed: address, USDC_balance, USDC_balance_raw, BAYC_count.",
        ),
        (
            {"wallet": {"contract": True}, "orderBy": "amount"},
            "orderBy",
            "The rows have 0 amounts. Allowed: address.",
        ),
    ],
)
def test_a_column_that_the_conditions_do_not_have_is_refused(dataset, filters, pointer, detail):
    with pytest.raises(InvalidSegment) as caught:
        rows(dataset, filters)
    found = caught.value.errors
    assert {one["pointer"] for one in found} == {f"/filters/{pointer}"}
    assert " ".join(one["detail"] for one in found) == detail


def test_the_greatest_balance_there_is_stays_exact(dataset):
    assert rows(
        dataset, {"token": {"token": "DAI", "balance": {"min": str(2**256 - 1)}, "unit": "raw"}}
    ) == [
        {
            "address": address(8),
            "DAI_balance": (2**256 - 1) / 10**18,
            "DAI_balance_raw": str(2**256 - 1),
        }
    ]


def test_holders_of_one_but_not_of_another(dataset):
    assert wallets(dataset, {"token": {"token": USDC}, "not": {"nft": {"nft": "BAYC"}}}) == [5]


def test_not_beside_or_complements_all_wallets_seen(dataset):
    assert wallets(dataset, {"token": {"token": USDC}, "not": {"nft": {"nft": "BAYC"}}}, "OR") == [
        5,
        6,
        8,
    ]


def test_a_max_alone_asks_for_some_and_an_explicit_min_of_0_takes_wallets_with_none_too(dataset):
    assert wallets(dataset, {"token": {"token": USDC, "balance": {"max": "1"}}}) == [6]
    assert wallets(dataset, {"token": {"token": USDC, "balance": {"min": 0, "max": "1"}}}) == [
        6,
        7,
        8,
    ]


def test_no_transfer_at_all_will_do_where_0_is_asked_for_and_nothing_above(dataset):
    sent = {"direction": "out", "token": USDC}
    some = wallets(dataset, {"transfer": sent})
    none = wallets(dataset, {"transfer": {**sent, "count": {"min": 0, "max": 0}}})
    everybody = wallets(dataset, {"token": {"token": USDC, "balance": {"min": 0}}})
    assert (some != [], none != [], sorted([*some, *none])) == (True, True, everybody)
    assert wallets(dataset, {"transfer": {**sent, "count": {"min": 0}}}) == sorted([*some, *none])
    assert wallets(dataset, {"activity": {"transfers": {"min": 0}}}) == everybody


def test_a_symbol_of_several_contracts_names_them_all(dataset):
    with pytest.raises(AmbiguousSymbol) as caught:
        rows(dataset, {"token": {"token": "usdc"}})
    assert caught.value.errors == [
        {
            "pointer": "/filters/token/token",
            "code": "ambiguous-symbol",
            "detail": "2 contracts on ethereum have the symbol 'usdc': 0x00000000000000000000000000000000000000C0, "
            "0x00000000000000000000000000000000000000C3. Give the address.",
        }
    ]
    assert caught.value.candidates == [
        {"chain": "ethereum", "address": address(0xC0), "symbol": "USDC", "name": "USD Coin"},
        {"chain": "ethereum", "address": address(0xC3), "symbol": "USDC", "name": "a copy"},
    ]


def test_a_misspelt_condition_is_named_and_corrected():
    with pytest.raises(InvalidSegment) as caught:
        language.parse({"operator": "AND", "filters": {"tokn": {"token": "USDC"}}})
    assert caught.value.errors == [
        {
            "pointer": "/filters/tokn",
            "code": "unknown-key",
            "detail": "Unknown condition 'tokn'. Did you mean 'token'?",
        }
    ]
