"""Segments in words: each condition, and how it reads when it is denied."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from nbext.engine.dataset import Contract
from nbext.language import language
from tests.language.tables import ZERO, Transfer, World, WorldDataset
from tests.language.test_against_oracle import (
    CONTRACTS,
    LAST,
    SECONDS,
    STORED,
    WALLETS,
    requests,
    settled,
)

DATASET = WorldDataset.unconnected(
    World(CONTRACTS, [Transfer(0, 1, 0, ZERO, WALLETS[2], 1)], LAST, SECONDS)
)
FIVE = WALLETS[2]


def words(filters, operator="AND"):
    saved = {"sg_x": {"filters": {"token": {"token": "USDC"}}}}
    return language.resolve(
        language.parse({"filters": filters, "operator": operator}), DATASET, saved.get
    ).words


SENTENCES = [
    ({"token": {"token": "USDC"}}, "hold USDC on ethereum"),
    ({"not": {"token": {"token": "USDC"}}}, "do not hold USDC on ethereum"),
    (
        {"token": {"token": "USDC", "balance": {"min": "1234567.5"}}},
        "hold at least 1,234,567.5 USDC on ethereum",
    ),
    (
        {"token": {"token": "USDC", "balance": {"max": 10}}},
        "hold some USDC, at most 10 on ethereum",
    ),
    (
        {"token": {"token": "WEI", "balance": {"min": 0, "max": 5}}},
        "hold from 0 to 5 WEI on ethereum",
    ),
    (
        {"token": {"token": "USDC", "balance": {"min": 5}, "heldSince": 3}},
        "hold at least 5 USDC on ethereum, and held 5 or more at every block since 3",
    ),
    (
        {"nft": {"nft": "QUEST", "chain": 10, "count": {"min": 2, "max": 2}}},
        "own exactly 2 QUEST on optimism",
    ),
    (
        {"nft": {"nft": "BAYC", "tokenIds": [1, 2, 3, 4]}},
        "own BAYC (ids 1, 2, 3 and 1 more) on ethereum",
    ),
    (
        {"collections": {"of": ["BAYC", "ITEMS"], "atLeast": 2}},
        "own NFTs of at least 2 of BAYC, ITEMS on ethereum",
    ),
    (
        {"collections": {"distinct": {"min": 1}}, "asOf": 4},
        "own NFTs of at least 1 collections on ethereum as of block 4",
    ),
    (
        {
            "transfer": {
                "token": "USDC",
                "direction": "in",
                "counterparty": FIVE,
                "total": {"min": "10"},
                "after": 4,
            }
        },
        f"received USDC on ethereum, from {FIVE}, at least 10 in all from block 4",
    ),
    (
        {"transfer": {"token": "USDC", "amount": {"min": "10"}, "count": {"min": 2}}},
        "sent or received USDC at least 2 times on ethereum, in transfers of at least 10",
    ),
    (
        {"transfer": {"token": "USDC", "amount": {"min": 0}, "total": {"min": 0}}},
        "sent or received USDC any number of times on ethereum, in transfers of any amount, any amount in all",
    ),
    (
        {"not": {"transfer": {"count": {"min": 3}}}},
        "did not send or receive anything at least 3 times on ethereum",
    ),
    ({"transfer": {"direction": "mint", "nft": "BAYC"}}, "were minted BAYC on ethereum"),
    (
        {"transfer": {"before": "2020-01-01"}},
        "sent or received anything on ethereum in no block of the data",
    ),
    (
        {"activity": {"first": {"before": 5}, "activeDays": {"min": 2}}},
        "were first seen up to block 5 and were active on at least 2 days on ethereum",
    ),
    (
        {"not": {"activity": {"transfers": {"min": 2}}}},
        "not (took part in at least 2 transfers on ethereum)",
    ),
    (
        {"wallet": {"contract": False, "in": [FIVE]}},
        f"are not known to be contracts and are one of {FIVE}",
    ),
    ({"segment": {"id": "sg_x"}}, "are in the saved segment sg_x (hold USDC on ethereum)"),
    (
        {
            "any": [
                {"token": {"token": "WEI"}, "nft": {"nft": "BAYC"}},
                {"wallet": {"contract": True}},
            ],
            "exclude": [FIVE],
        },
        f"(hold WEI on ethereum and own BAYC on ethereum) or are known to be contracts; without {FIVE}",
    ),
    (
        {"wallet": {"contract": True}, "exclude": []},
        "are known to be contracts; burn addresses too",
    ),
]


@pytest.mark.parametrize(
    ("filters", "expected"), SENTENCES, ids=[sentence for _, sentence in SENTENCES]
)
def test_a_segment_reads_as_a_sentence(filters, expected):
    assert words(filters) == "wallets that " + expected


def test_a_name_on_chain_is_shown_short_and_never_breaks_the_sentence():
    spam = Contract(9, 1, f"0x{9:040x}", "ERC20", symbol="x" * 500 + "\ud800", decimals=2**30)
    world = World([*CONTRACTS, spam], [], LAST, SECONDS)
    query = language.parse(
        {"filters": {"token": {"token": spam.address, "balance": {"min": 7}, "unit": "raw"}}}
    )
    plan = language.resolve(query, WorldDataset.unconnected(world))
    assert plan.words == f"wallets that hold at least 7 {'x' * 80}… (501 characters) on ethereum"


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(asked=requests(saved=False))
def test_every_segment_has_words(asked):
    plan = language.resolve(language.parse(settled(asked, asked)), DATASET, lists=STORED.get)
    assert plan.words.startswith("wallets that ")
    assert all(text for text, _ in language.parts(plan))
