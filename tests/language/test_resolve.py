"""What a query means on the data at hand, and what is said where the data cannot tell."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.chains import chain_of
from nbext.engine.dataset import ChainExtent, Contract
from nbext.engine.query.sql import SqlBuilder
from nbext.errors import AmbiguousSymbol, InvalidSegment
from nbext.language import language
from nbext.language.lookup import notes_on
from tests.language.tables import ZERO, Transfer, World, WorldDataset

HOUR = 3600


def address(number):
    return f"0x{number:040x}"


WORLD = World(
    contracts=[
        Contract(0, 1, address(0xC0), "ERC20", symbol="UNI", decimals=18, transfers=1),
        Contract(1, 1, address(0xC1), "ERC721", symbol="BAYC", transfers=1),
        Contract(2, 10, address(0xC2), "ERC721", symbol="QUEST", transfers=1),
        Contract(3, 1, address(0xC3), "ERC20", symbol="ODD", transfers=1, inferred=True),
        Contract(4, 1, address(0xC4), "ERC20", symbol="TWICE", decimals=0, transfers=1),
        Contract(
            5, 1, address(0xC5), "ERC20", symbol="twice", decimals=0, name="the other", transfers=1
        ),
        Contract(6, 10, address(0xC0), "ERC20", symbol="OP", decimals=18),
        Contract(7, 137, address(0xC7), "ERC20", symbol="POL", decimals=18, transfers=1),
        Contract(
            8, 1, address(0xC8), "ERC20", symbol="MAD", decimals=2**31 - 1, transfers=1, spam=True
        ),
        Contract(9, 1, address(0xC9), "ERC20", symbol="BAY", decimals=0, transfers=1),
    ],
    transfers=[Transfer(0, 1, 0, ZERO, address(5), 1), Transfer(2, 5, 0, ZERO, address(5), 1)],
    last_blocks={1: 100, 10: 50, 137: 9},
    seconds={1: HOUR, 10: HOUR, 137: 0},
)


@pytest.fixture(scope="module")
def dataset():
    opened = WorldDataset(WORLD)
    yield opened
    opened.close()


def resolved(dataset, filters, saved=None, **body):
    return language.resolve(
        language.parse({"filters": filters, **body}), dataset, (saved or {}).get
    )


def errors(dataset, filters, saved=None):
    with pytest.raises(InvalidSegment) as caught:
        resolved(dataset, filters, saved)
    return [(error["pointer"], error["code"], error["detail"]) for error in caught.value.errors]


def token(name="UNI", **fields):
    return {"token": {"token": name, **fields}}


C1, C2, C3, CF = (f"0x{'0' * 38}{end}" for end in ("C1", "c2", "C3", "ff"))
UNKNOWN = [
    (
        token("UNO"),
        "/token/token",
        "unknown-symbol",
        "The data has no token with the symbol 'UNO' on ethereum. Did you mean 'UNI'?",
    ),
    (
        token("BAYC"),
        "/token/token",
        "unknown-symbol",
        "The data has no token with the symbol 'BAYC' on ethereum. It is an NFT collection: "
        'write "nft" in filters, /v1/nfts in a path, %nft as a magic.',
    ),
    (
        {"nft": {"nft": "uni"}},
        "/nft/nft",
        "unknown-symbol",
        "The data has no collection with the symbol 'uni' on ethereum. It is a token: "
        'write "token" in filters, /v1/tokens in a path, %token as a magic.',
    ),
    (
        # That of the token is what was written, though BAYC is near.
        {"nft": {"nft": "BAY"}},
        "/nft/nft",
        "unknown-symbol",
        "The data has no collection with the symbol 'BAY' on ethereum. It is a token: "
        'write "token" in filters, /v1/tokens in a path, %token as a magic.',
    ),
    (
        {"nft": {"nft": "QUEST"}},
        "/nft/nft",
        "unknown-symbol",
        "The data has no collection with the symbol 'QUEST' on ethereum. It has one on optimism: "
        'name that chain, as in "chain": "optimism".',
    ),
    (
        {"nft": {"nft": "Bored Ape"}},
        "/nft/nft",
        "unknown-symbol",
        "The data has no collection with the symbol 'Bored Ape' on ethereum. It looks like a name: find it "
        'with /v1/search, or %nft search "Bored Ape", and write its symbol or its address.',
    ),
    (
        token(address(0xFF)),
        "/token/token",
        "unknown-contract",
        f"The data has no contract {CF} on ethereum.",
    ),
    (
        {"nft": {"nft": address(0xC2)}},
        "/nft/nft",
        "unknown-contract",
        f"The data has no contract {C2} on ethereum. It has one on optimism: "
        'name that chain, as in "chain": "optimism".',
    ),
    (
        token(address(0xC1)),
        "/token/token",
        "standard",
        f"{C1} is ERC721, not an ERC20 token. Use 'nft' for it.",
    ),
    (
        {"nft": {"nft": address(0xC3)}},
        "/nft/nft",
        "standard",
        f"{C3} is ERC20, not an NFT collection. Use 'token' for it: it is read as a token by its transfers, because "
        "no file says what it is. If it is not, ingest a file with address, is_erc20, is_erc721: "
        "nbext ingest FILE --chain ethereum",
    ),
    (
        {**token("ODD"), "orderBy": "-ODD_balance"},
        "/orderBy",
        "column",
        "The rows have no column 'ODD_balance'. Did you mean 'ODD_balance_raw'?",
    ),
    (
        {"transfer": {"token": "ODD"}, "columns": ["transferred"], "orderBy": "transferred"},
        "/orderBy",
        "column",
        "The rows have no column 'transferred'. Did you mean 'transferred_raw'?",
    ),
    (
        token(chain="gnosis"),
        "/token/chain",
        "chain",
        "The data has nothing on gnosis. It has: ethereum, optimism, polygon.",
    ),
    (
        {**token(), "chain": "gnosis"},
        "/chain",
        "chain",
        "The data has nothing on gnosis. It has: ethereum, optimism, polygon.",
    ),
    (
        {"segment": {"id": "sg_x"}},
        "/segment/id",
        "unknown-segment",
        "No segment 'sg_x' is saved here.",
    ),
    (
        {"wallet": {"in": "sg_x"}},
        "/wallet/in",
        "unknown-segment",
        "No segment 'sg_x' is saved here.",
    ),
    (
        {"wallet": {"in": [C1, "sg_x"]}},
        "/wallet/in/1",
        "unknown-segment",
        "No segment 'sg_x' is saved here.",
    ),
    (
        token(balance={"min": "0.1234567890123456789"}),
        "/token/balance/min",
        "decimals",
        "0.1234567890123456789 has 19 decimals; UNI has 18. Round it: 0.123456789012345679.",
    ),
    (
        token(balance={"max": "1.5"}, unit="raw"),
        "/token/balance/max",
        "decimals",
        "1.5 has 1 decimal; raw amounts have none. Round it: 1.",
    ),
    (
        token(balance={"min": "0.5"}, unit="raw"),
        "/token/balance/min",
        "decimals",
        "0.5 has 1 decimal; raw amounts have none. Round it: 1.",
    ),
    (
        {"transfer": {"nft": "BAYC", "total": {"min": "1.5"}}},
        "/transfer/total/min",
        "decimals",
        "1.5 has 1 decimal; NFTs are counted whole.",
    ),
    (
        token("ODD", balance={"min": "1"}),
        "/token/balance/min",
        "decimals",
        'The data does not have the decimals of ODD. Give the amount in its smallest unit, with "unit": "raw".',
    ),
    (
        token("MAD", balance={"min": "1"}),
        "/token/balance/min",
        "decimals",
        'The data does not have the decimals of MAD. Give the amount in its smallest unit, with "unit": "raw".',
    ),
    (
        token(balance={"min": str(10**60)}),
        "/token/balance/min",
        "range",
        f"{10**60} is out of range: more than 2^256-1 in the smallest unit.",
    ),
    (
        {"collections": {"of": ["BAYC", address(0xC1)]}},
        "/collections/of/1",
        "twice",
        f"'{address(0xC1)}' is in the list twice.",
    ),
    (
        {"collections": {"of": ["BAYC"], "atLeast": 2}},
        "/collections/atLeast",
        "range",
        "2 is out of range: the list has 1 collection.",
    ),
    (
        {"transfer": {"direction": "burn", "counterparty": address(5)}},
        "/transfer/counterparty",
        "exclusive",
        "A burn has no counterparty: the other side is the burn address.",
    ),
    (
        {"transfer": {"direction": "mint", "counterparty": address(5)}},
        "/transfer/counterparty",
        "exclusive",
        "A mint has no counterparty: the other side is the zero address.",
    ),
    (
        {"transfer": {"after": 5, "before": 3}},
        "/transfer",
        "range",
        'The window is empty: "after" is later than "before".',
    ),
    # Times. The chain begins at 2023-11-14T22:13:20Z, an hour a block.
    (
        token(heldSince="2023-11-14"),
        "/token/heldSince",
        "range",
        "'2023-11-14' is before the start of the data: ethereum has blocks 0 to 100, the last at 2023-11-19T02:13:20Z.",
    ),
    (
        token(heldSince="5d"),
        "/token/heldSince",
        "range",
        "'5d' is before the start of the data: ethereum has blocks 0 to 100, the last at 2023-11-19T02:13:20Z.",
    ),
    (
        token(heldSince=101),
        "/token/heldSince",
        "range",
        "block 101 is after the end of the data: ethereum has blocks 0 to 100, the last at 2023-11-19T02:13:20Z.",
    ),
    (
        {**token(), "asOf": "2023-11-19T02:13:21Z"},
        "/asOf",
        "range",
        "'2023-11-19T02:13:21Z' is after the end of the data: ethereum has blocks 0 to 100, "
        "the last at 2023-11-19T02:13:20Z.",
    ),
    (
        {**token(heldSince=5), "asOf": 4},
        "/token/heldSince",
        "range",
        "block 5 is after asOf, which is block 4.",
    ),
    (
        token("POL", chain="polygon", heldSince="1d"),
        "/token/heldSince",
        "no-times",
        "The data has no block times for polygon. Give a block number instead.",
    ),
    (
        {"activity": {"chain": "polygon", "activeDays": {"min": 2}}},
        "/activity/activeDays",
        "no-times",
        "The data has no block times for polygon. Days cannot be counted.",
    ),
    (
        {**token("QUEST"), "chain": "polygon", "asOf": "1d"},
        "/asOf",
        "no-times",
        "The data has no block times for polygon. Give a block number instead.",
    ),
    (
        {"token": [{"token": "POL"}, {"token": "OP", "chain": 10}], "chain": "polygon", "asOf": 5},
        "/asOf",
        "no-times",
        "The data of polygon has no block time for block 5 to find it on optimism.",
    ),
]


@pytest.mark.parametrize(
    ("filters", "pointer", "code", "detail"), UNKNOWN, ids=[f"{e[1]} {e[2]}" for e in UNKNOWN]
)
def test_what_the_data_cannot_tell_is_named(dataset, filters, pointer, code, detail):
    assert ("/filters" + pointer, code, detail) in errors(dataset, filters)


def test_days_at_a_block_are_counted_only_where_they_are_asked_for(dataset):
    def counted(asked, *columns):
        filters = {"activity": asked, "asOf": 50, **({"columns": list(columns)} if columns else {})}
        question, sql = language.compile(resolved(dataset, filters)), SqlBuilder()
        texts = [repr(question.wallets(sql)), *(one.values(sql) for one in question.columns)]
        return ["count(DISTINCT" in text for text in texts]

    some = {"transfers": {"min": 1}}
    assert counted(some, "firstSeen", "activeDays", "transfers") == [False, False, True, False]
    assert counted({**some, "activeDays": {"min": 2}}) == [True]


def test_a_block_without_a_time_is_not_taken_for_one_of_another_chain():
    opened = WorldDataset(replace(WORLD, last_blocks={**WORLD.last_blocks, 137: 60}))
    asked = [{"token": "POL"}, {"token": "OP", "chain": 10}, {"token": "UNI", "chain": 1}]
    said = "The data of polygon has no block time for block 60 to find it on"
    assert errors(opened, {"token": asked, "chain": "polygon", "asOf": 60}) == [
        ("/filters/asOf", "no-times", f"{said} {name}.") for name in ("optimism", "ethereum")
    ]
    opened.close()


A, B = {"segment": {"id": "sg_a"}}, {"segment": {"id": "sg_b"}}
SAVED_AS_LISTS = [
    ({"wallet": {"in": "sg_a"}}, A),
    ({"wallet": {"in": ["sg_a"]}, "not": {"wallet": {"in": "sg_b"}}}, {**A, "not": B}),
    ({"wallet": {"in": ["sg_a", "sg_b", "sg_a"]}}, {"any": [A, B]}),
    (
        {"wallet": {"in": [address(5), "sg_b"], "contract": True}, **token()},
        {
            "all": [{"any": [B, {"wallet": {"in": [address(5)]}}]}, {"wallet": {"contract": True}}],
            **token(),
        },
    ),
]


@pytest.mark.parametrize(("short", "long"), SAVED_AS_LISTS)
def test_saved_segments_are_lists_of_wallets(dataset, short, long):
    saved = {
        "sg_a": {"operator": "AND", "filters": token()},
        "sg_b": {"operator": "AND", "filters": token("ODD")},
    }
    both = [resolved(dataset, one, saved) for one in (short, long)]
    assert both[0].canonical == both[1].canonical
    assert both[0].words == both[1].words


def test_errors_of_several_conditions_come_together(dataset):
    filters = {"token": [{"token": "UNO"}, {"token": "twice"}], "nft": {"nft": "AZUKI"}}
    assert [(pointer, code) for pointer, code, _ in errors(dataset, filters)] == [
        ("/filters/token/0/token", "unknown-symbol"),
        ("/filters/token/1/token", "ambiguous-symbol"),
        ("/filters/nft/nft", "unknown-symbol"),
    ]


def test_a_symbol_that_several_contracts_bear_is_answered_with_them(dataset):
    with pytest.raises(AmbiguousSymbol) as caught:
        resolved(dataset, {**token("Twice"), "not": {"transfer": {"token": "TWICE"}}})
    assert [error["pointer"] for error in caught.value.errors] == [
        "/filters/token/token",
        "/filters/not/transfer/token",
    ]
    both = [
        {"chain": "ethereum", "address": address(0xC4), "symbol": "TWICE", "name": None},
        {"chain": "ethereum", "address": address(0xC5), "symbol": "twice", "name": "the other"},
    ]
    assert caught.value.candidates == both
    assert resolved(dataset, token(address(0xC5))).columns[1]["symbol"] == "twice"


@pytest.mark.parametrize("chain", ["ethereum", "eth", "ETH", "1", 1, "0x1", "eip155:1", "mainnet"])
def test_every_spelling_of_a_chain_is_that_chain(dataset, chain):
    assert (
        resolved(dataset, token(chain=chain)).canonical["filters"]["token"]["chain"] == "ethereum"
    )


def test_what_means_the_same_has_one_id_and_what_does_not_has_another(dataset):
    def id_of(filters, fingerprint="data", **body):
        return language.segment_id(resolved(dataset, filters, **body), fingerprint)

    plain = id_of(token(balance={"min": "1.5"}))
    assert len(plain) == 27
    assert plain == id_of(token("uni", balance={"min": "1.50"}, chain="eip155:1"))
    assert plain == id_of(
        {**token(address(0xC0), balance={"min": 15 * 10**17}, unit="raw"), "chain": 1}
    )
    assert plain == id_of(
        {**token(balance={"min": "1.5"}), "exclude": [address(0xDEAD), "burn", address(0)]}
    )
    assert plain == id_of({**token(balance={"min": "1.5"}), "asOf": 100})
    others = {
        id_of(token(balance={"min": "1.5"}), fingerprint="other data"),
        id_of(token(balance={"min": "1.5"}), limit=5),
        id_of(token(balance={"min": "1.5"}), operator="OR"),
        id_of({**token(balance={"min": "1.5"}), "exclude": []}),
        id_of({**token(balance={"min": "1.5"}), "asOf": 99}),
        id_of(token(balance={"min": "1.5"}, heldSince=3)),
        id_of({"not": token(balance={"min": "1.5"})}),
    }
    assert len(others | {plain}) == 8


def test_a_default_and_what_it_stands_for_have_one_id(dataset):
    plain, spelt = (
        resolved(dataset, one) for one in (token(), token(balance={"min": 1}, unit="raw"))
    )
    assert plain.canonical == spelt.canonical


def test_times_become_blocks_inclusive_on_both_ends(dataset):
    def window(**span):
        asked = resolved(dataset, {"transfer": {"direction": "in", **span}}).canonical["filters"][
            "transfer"
        ]
        return asked.get("after"), asked.get("before")

    tenth = "2023-11-15T08:13:20Z"  # the time of block 10
    assert window(after=tenth, before=tenth) == (10, 10)
    assert window(after="2023-11-15T08:13:19Z", before="2023-11-15T08:13:21Z") == (10, 10)
    assert window(after="2023-11-15T08:13:21Z", before="2023-11-15T10:13:20+01:00") == (11, 11)
    assert window(after="2d", before="24h") == (52, 76)
    assert window(after="2020-01-01") == (0, None)


def test_a_window_that_no_block_lies_in_matches_nothing_and_says_so(dataset):
    for span in ({"before": "2020-01-01"}, {"after": "2030-01-01"}):
        plan = resolved(dataset, {"transfer": span})
        assert plan.warnings == ["/filters/transfer: no block of the data is in this window."]
        assert dataset.ask(language.compile(plan), limit=5).matched == 0
        assert resolved(dataset, plan.canonical["filters"]).canonical == plan.canonical


def test_a_window_that_begins_before_the_data_says_that_nothing_before_is_counted():
    begin = 40
    world = replace(
        WORLD, transfers=[Transfer(number, begin, number, ZERO, address(5), 1) for number in (0, 1)]
    )
    with contextlib.closing(WorldDataset(world)) as young:
        extent = replace(young.about.chains[0], first_block=begin)
        others = young.about.chains[1:]

        def notes(condition, **known):
            young.about = replace(young.about, chains=(replace(extent, **known), *others))
            return resolved(young, condition).warnings

        note = ": the data of ethereum begins with block 40, at 2023-11-16T14:13:20Z: what was before is not counted."
        for after in ("2023-11-16T13:13:19Z", "80d", 39, 0):
            for condition in (
                {"transfer": {"token": "UNI", "after": after}},
                {"transfer": {"after": after}},
            ):
                assert notes(condition) == [f"/filters/transfer/after{note}"]
            for name in ("first", "last"):
                assert notes({"activity": {name: {"after": after}}}) == [
                    f"/filters/activity/{name}/after{note}"
                ]
            # Of what was fetched from its deployment on there is nothing before.
            fetched = {address(0xC0): ((0, 100),)}
            assert notes({"transfer": {"token": "UNI", "after": after}}, covered=fetched) == []
        # Within the hour is a file that is cut by days.
        for after in ("2023-11-16T13:13:20Z", 40, 41, "1h"):
            assert notes({"transfer": {"token": "UNI", "after": after}}) == []


def test_a_date_is_its_whole_day_wherever_one_is_written(dataset):
    # Block 1 is at 23:13 of the 14th, block 2 at 00:13 of the 15th, block 25 at 23:13, block 26 at 00:13 of the 16th.
    day = "2023-11-15"
    plan = resolved(dataset, {"transfer": {"after": day, "before": day}})
    assert plan.canonical["filters"]["transfer"] == {
        "direction": "any",
        "chain": "ethereum",
        "count": {"min": 1},
        "after": 2,
        "before": 25,
    }
    assert plan.words.endswith("from block 2 (2023-11-15) up to block 25 (2023-11-15)")
    seen = resolved(dataset, {"activity": {"last": {"after": day, "before": day}}})
    assert seen.canonical["filters"]["activity"]["last"] == {"after": 2, "before": 25}
    held = resolved(dataset, {**token(heldSince=day), "asOf": day})
    assert (held.canonical["filters"]["token"]["heldSince"], held.canonical["filters"]["asOf"]) == (
        1,
        25,
    )
    assert held.words == (
        "wallets that hold UNI on ethereum as of block 25 (2023-11-15), and held at every block since 1 (2023-11-15)"
    )
    assert resolved(dataset, token(heldSince="2d")).words.endswith(
        "every block since 52 (2d before the last block)"
    )
    # As of a time the data ends there: 2 days before block 90 is block 42.
    then = resolved(dataset, {**token(heldSince="2d"), "asOf": "10h"})
    assert then.words.endswith(
        "as of block 90 (10h before the last block), and held at every block since 42 (2d before asOf)"
    )


def test_a_block_of_the_second_that_a_time_lies_within_is_before_that_time(dataset):
    # Block 2 is at 00:13:20.
    for fraction, first in (("", 2), (".000", 2), (".5", 3), (".000001+00:00", 3)):
        time = f"2023-11-15T00:13:20{fraction}"
        plan = resolved(dataset, {"transfer": {"after": time}})
        assert plan.canonical["filters"]["transfer"]["after"] == first, time
        plan = resolved(dataset, {"activity": {"first": {"after": time}}})
        assert plan.canonical["filters"]["activity"]["first"] == {"after": first}, time
        plan = resolved(dataset, {**token(heldSince=time), "transfer": {"before": time}})
        asked = plan.canonical["filters"]
        assert (asked["token"]["heldSince"], asked["transfer"]["before"]) == (2, 2), time


def test_a_day_that_the_data_does_not_reach_the_end_of_is_answered_with_a_note(dataset):
    plan = resolved(dataset, {**token(), "asOf": "2023-11-19"})
    assert plan.as_of == {"block": 100, "timestamp": "2023-11-19T02:13:20Z"}
    assert plan.warnings == [
        "/filters/asOf: the data of ethereum ends at 2023-11-19T02:13:20Z, before 2023-11-19 ends."
    ]
    (error,) = errors(dataset, {**token(), "asOf": "2023-11-20"})
    assert error[2].startswith(
        "'2023-11-20' is after the end of the data: ethereum has blocks 0 to 100"
    )


def test_a_number_beyond_the_last_block_is_refused_with_the_time_that_it_may_be(dataset):
    held = "ethereum has blocks 0 to 100, the last at 2023-11-19T02:13:20Z."
    for field, number, time in (
        ({"transfer": {"after": 1_700_000_000}}, "1,700,000,000", "2023-11-14T22:13:20Z"),
        ({"transfer": {"before": 1_700_000_000_000}}, "1,700,000,000,000", "2023-11-14T22:13:20Z"),
        ({**token(), "asOf": 1_700_000_000}, "1,700,000,000", "2023-11-14T22:13:20Z"),
        (token(heldSince=1_700_000_000), "1,700,000,000", "2023-11-14T22:13:20Z"),
        ({"activity": {"last": {"before": 101}}}, "101", None),
    ):
        unix = f' As a Unix time it is "{time}": write that.' if time else ""
        (error,) = errors(dataset, field)
        assert error[1:] == ("range", f"block {number} is after the end of the data: {held}{unix}")


def test_an_answer_says_in_one_line_what_its_contracts_lack(dataset):
    lacking = replace(
        WORLD,
        contracts=[
            replace(WORLD.contracts[0], deployed_block=3, below_zero=1_742),
            *WORLD.contracts[1:],
        ],
    )
    known = WorldDataset.unconnected(lacking)
    known.about = replace(
        known.about,
        chains=(
            ChainExtent(1, 10, 100, WORLD.timestamp(1, 100), ((20, 29), (40, 79))),
            *known.about.chains[1:],
        ),
    )
    gaps = "the data has no row of blocks 40 to 79 and of 1 more range"
    line = (
        "UNI on ethereum: transfers are missing: the data starts at block 10, and the contract at 3; "
        f"{gaps}; balances of 1,742 wallets are below zero at some block, which no wallet can have, and are left out "
        "there."
    )
    named_twice = {"token": [{"token": "UNI"}, {"token": "UNI", "balance": {"min": "5"}}]}
    assert resolved(known, named_twice).warnings == [line]
    assert resolved(known, {"nft": {"nft": "BAYC"}}).warnings == [
        f"BAYC on ethereum: transfers are missing: {gaps}."
    ]
    assert resolved(dataset, token()).warnings == []
    for standard, (missing, kind) in {
        "ERC721": ("95 of 100 ids were never seen to arrive", "a collection"),
        "ERC1155": ("1 id was never seen to arrive", "a collection"),
        "ERC20": (None, "a token"),
    }.items():
        ids, unseen = {"ERC721": (100, 95), "ERC1155": (0, 1), "ERC20": (0, 0)}[standard]
        one = replace(WORLD.contracts[0], standard=standard, inferred=True, ids=ids, unseen=unseen)
        assert notes_on(one, chain_of("ethereum"), dataset.about.chains[0]) == [
            *(
                [f"UNI on ethereum: transfers are missing: {missing}, so mints are missing."]
                * bool(missing)
            ),
            f"UNI on ethereum: it is read as {kind} by its transfers, because no file says what it is. If it is not, "
            "ingest a file with address, is_erc20, is_erc721: nbext ingest FILE --chain ethereum",
        ]
    # Of what is known to be complete, only the balances below zero are left to say.
    extent = replace(
        known.about.chains[0], covered={lacking.contracts[0].address: ((0, 25), (26, 100))}
    )
    known.about = replace(known.about, chains=(extent, *known.about.chains[1:]))
    assert resolved(known, token()).warnings == [
        "UNI on ethereum: transfers are missing: the data has no row of blocks 20 to 29; balances of 1,742 wallets are "
        "below zero at some block, which no wallet can have, and are left out there."
    ]


def test_a_day_that_ends_after_one_of_two_chains_means_the_same_as_it_was_written():
    ends = WorldDataset.unconnected(
        World(
            [
                Contract(0, 1, address(0xC0), "ERC20", symbol="UNI", decimals=18, transfers=1),
                Contract(1, 10, address(0xC0), "ERC20", symbol="OP", decimals=18, transfers=1),
            ],
            [],
            {1: 30, 10: 60},
        )
    )
    both = {"any": [token(), token("OP", chain="optimism")], "asOf": "2023-11-16"}
    asked = resolved(ends, both)
    assert asked.canonical["filters"]["asOf"] == "2023-11-16"
    again = resolved(ends, asked.canonical["filters"])
    assert (again.canonical, again.whole) == (asked.canonical, asked.whole)


def test_balances_are_not_asked_for_before_the_snapshot_that_they_begin_with(dataset):
    begun = WorldDataset.unconnected(WORLD)
    snapshots = {address(0xC0): 40, address(0xC1): 60, address(0xC3): 20}
    begun.about = replace(
        begun.about,
        chains=(replace(begun.about.chains[0], snapshots=snapshots), *begun.about.chains[1:]),
    )

    def error(pointer, block, name, start):
        return (
            f"/filters{pointer}",
            "range",
            f"Block {block} is before the balances of {name} on ethereum: they "
            f"begin with a snapshot of holders, of block {start}.",
        )

    nft = {"nft": {"nft": "BAYC"}}
    assert errors(begun, {**token(), "asOf": 39}) == [error("/asOf", 39, "UNI", 40)]
    assert errors(begun, token(heldSince=39)) == [error("/token/heldSince", 39, "UNI", 40)]
    assert errors(begun, {"nft": {"nft": "BAYC", "heldSince": 59}}) == [
        error("/nft/heldSince", 59, "BAYC", 60)
    ]
    assert errors(begun, {"collections": {"of": ["BAYC"]}, "asOf": 59}) == [
        error("/asOf", 59, "BAYC", 60)
    ]
    assert errors(begun, {**token(), "not": nft, "asOf": 5}) == [
        error("/asOf", 5, "UNI", 40),
        error("/asOf", 5, "BAYC", 60),
    ]
    for known in (
        {**token(), "asOf": 40},
        token(heldSince=40),
        token(),
        {"transfer": {"token": "UNI"}, "asOf": 5},
    ):
        assert resolved(begun, known).warnings == []
    distinct = {"collections": {"distinct": {"min": 2}}}
    assert errors(begun, {**distinct, "asOf": 59}) == [error("/asOf", 59, "BAYC", 60)]
    # The snapshots of tokens say nothing of collections.
    begun.about = replace(
        begun.about,
        chains=(
            replace(begun.about.chains[0], snapshots={**snapshots, address(0xC1): 10}),
            *begun.about.chains[1:],
        ),
    )
    assert resolved(begun, {**distinct, "asOf": 39}).warnings == []


def test_it_is_said_that_burn_addresses_are_left_out_where_that_changes_the_number():
    burned = WorldDataset.unconnected(
        replace(
            WORLD,
            contracts=[
                *WORLD.contracts[:1],
                replace(WORLD.contracts[1], burned=4),
                *WORLD.contracts[2:],
            ],
        )
    )
    note = 'BAYC: the burn address 0x...dEaD is a holder too, and is left out. "exclude": [] includes it.'
    bayc = {"nft": {"nft": "BAYC"}}
    assert resolved(burned, bayc).warnings == [note]
    # One that would do is enough; of what is not asked to hold, nothing is known.
    assert resolved(burned, {**bayc, **token()}, operator="OR").warnings == [note]
    assert resolved(burned, {"any": [{**bayc, **token()}, bayc]}).warnings == [note]
    assert resolved(burned, {"any": [{"not": bayc}, token()]}).warnings == []
    assert resolved(burned, {"nft": {"nft": "BAYC", "count": {"min": 4}}}).warnings == [note]
    assert resolved(burned, {"collections": {"of": ["BAYC"]}}).warnings == [note]
    for filters in (
        {"collections": {"of": ["BAYC"]}, "asOf": 50},
        {"collections": {"distinct": {"min": 1}}},
        {"nft": {"nft": "BAYC", "count": {"min": 5}}},
        {"nft": {"nft": "BAYC", "count": {"max": 3}}},
        {"not": bayc},
        {**bayc, **token()},
        {**bayc, "exclude": []},
        {**bayc, "asOf": 50},
    ):
        assert resolved(burned, filters).warnings == []
    # Who names others to leave out has the burn address back, which a file of them cannot have beside it.
    counted = (
        'BAYC: the burn address 0x...dEaD is a holder too, and is counted: "exclude" names only others. '
        '{"not": {"wallet": {"in": ...}}} leaves out both.'
    )
    other, (zero, dead) = "0x" + "aa" * 20, BURN_ADDRESSES
    for exclude, notes in (
        ([other], [counted]),
        ([other, zero], [counted]),
        (["burn", other], []),
        ([other, dead], []),
    ):
        assert resolved(burned, {**bayc, "exclude": exclude}).warnings == notes
    (other,) = resolved(burned, {"nft": {"nft": "BAYC", "tokenIds": [1]}}).warnings
    assert other.startswith("BAYC: the count in a row is of all token ids")


def test_whose_count_is_in_a_row_is_said_where_token_ids_choose_its_wallet(dataset):
    of_id = {"nft": {"nft": "BAYC", "tokenIds": [1]}}
    note = "BAYC: the count in a row is of all token ids; tokenIds choose only the wallets."
    assert resolved(dataset, of_id).warnings == [note]
    assert resolved(dataset, {"not": of_id}).warnings == []
    # There are no rows.
    assert resolved(dataset, of_id, limit=0).warnings == []


def test_the_answer_echoes_its_block_and_time(dataset):
    assert resolved(dataset, token()).as_of == {"block": 100, "timestamp": "2023-11-19T02:13:20Z"}
    assert resolved(dataset, {**token(), "asOf": "10h"}).as_of == {
        "block": 90,
        "timestamp": "2023-11-18T16:13:20Z",
    }
    assert resolved(dataset, {**token("POL"), "chain": "polygon"}).as_of == {
        "block": 9,
        "timestamp": None,
    }


QUEST = {"nft": {"nft": "QUEST", "chain": 10}}


def test_an_answer_of_another_chain_alone_is_of_that_chains_blocks(dataset):
    saved = {"sg_op": {"filters": {**QUEST, "chain": "optimism"}}, "sg_eth": {"filters": token()}}
    of_op = {"block": 50, "timestamp": "2023-11-17T00:13:20Z"}
    for filters in (
        QUEST,
        {"not": QUEST, "activity": {"transfers": {"min": 1}, "chain": "op"}},
        {"segment": {"id": "sg_op"}},
    ):
        plan = resolved(dataset, {**filters, "wallet": {"contract": False}}, saved)
        assert (plan.chain.name, plan.as_of) == ("optimism", of_op)
        plan = resolved(dataset, {**filters, "wallet": {"contract": False}, "asOf": 20}, saved)
        assert [(seen.chain_id, seen.at) for seen in plan.whole.seen] == [(10, 20)]
    for filters in (
        {**QUEST, "chain": "ethereum"},
        {**QUEST, **token()},
        {**QUEST, "segment": {"id": "sg_eth"}},
        {"wallet": {"contract": False}},
    ):
        assert resolved(dataset, filters, saved).as_of["block"] == 100


def test_a_saved_segment_of_another_chain_is_asked_as_of_the_outer_moment_and_not_block(dataset):
    later = replace(WORLD, seconds={1: HOUR, 10: 2 * HOUR, 137: 0})
    opened, saved = WorldDataset.unconnected(later), {"sg_op": {"filters": {**QUEST, "chain": 10}}}
    for moment in (40, "60h", "2023-11-16T14:13:20Z"):
        inside = {**token(), "segment": {"id": "sg_op"}, "asOf": moment}
        beside = {**token(), **QUEST, "asOf": moment}
        seen = [
            [(one.chain_id, one.at) for one in resolved(opened, asked, saved).whole.seen]
            for asked in (inside, beside)
        ]
        assert seen == [[(1, 40), (10, 20)]] * 2
        inner = resolved(opened, inside, saved).whole.node.children[1].segment.seen
        assert [(one.chain_id, one.at) for one in inner] == [(10, 20)]


def test_collections_of_a_chain_are_counted_with_a_note_where_mints_are_missing(dataset):
    contracts = [replace(one, unseen=one.contract == 1) for one in WORLD.contracts]
    known = WorldDataset.unconnected(replace(WORLD, contracts=contracts))
    note = "ethereum: mints of 1 collection are missing: some of their token ids were never seen to arrive."
    distinct = {"collections": {"distinct": {"min": 2}}}
    assert resolved(known, distinct).warnings == [note]
    assert resolved(known, {**distinct, "chain": "optimism"}).warnings == []
    assert resolved(dataset, distinct).warnings == []


def test_as_of_means_the_same_moment_on_every_chain(dataset):
    plan = resolved(dataset, {"nft": [{"nft": "BAYC"}, {"nft": "QUEST", "chain": 10}], "asOf": 20})
    assert [leaf.at for leaf in plan.whole.node.children] == [20, 20]
    assert [(seen.chain_id, seen.at) for seen in plan.whole.seen] == [(1, 20), (10, 20)]
    assert plan.warnings == []


def test_a_chain_whose_data_ends_before_as_of_is_taken_at_its_end(dataset):
    plan = resolved(dataset, {"nft": [{"nft": "BAYC"}, {"nft": "QUEST", "chain": 10}], "asOf": 60})
    assert [leaf.at for leaf in plan.whole.node.children] == [60, None]
    assert plan.warnings == [
        "the data of optimism ends at 2023-11-17T00:13:20Z, before asOf: its last block is used."
    ]


def test_where_no_condition_is_on_ethereum_the_answer_need_not_be(dataset):
    only = replace(
        WORLD,
        contracts=[one for one in WORLD.contracts if one.chain_id == 10],
        transfers=[one for one in WORLD.transfers if one.contract == 2],
        last_blocks={10: 50},
    )
    opened = WorldDataset(only)
    try:
        assert resolved(opened, {"nft": {"nft": "QUEST", "chain": "op"}}).chain.name == "optimism"
        assert errors(opened, {"nft": {"nft": "QUEST"}}) == [
            ("/filters/chain", "chain", "The data has nothing on ethereum. It has: optimism.")
        ]
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("filters", "place"),
    [
        (token(balance={"min": "0"}), "token/balance"),
        ({"nft": {"nft": "BAYC", "count": {"min": 0}}}, "nft/count"),
        ({"collections": {"distinct": {"min": 0}}}, "collections/distinct"),
        ({"transfer": {"count": {"min": 0}}}, "transfer/count"),
        ({"transfer": {"token": "UNI", "total": {"min": "0"}}}, "transfer/total"),
        (
            {"transfer": {"token": "UNI", "count": {"min": 0}, "total": {"min": "0"}}},
            "transfer/count",
        ),
        ({"activity": {"activeDays": {"min": 0}}}, "activity/activeDays"),
        # These ask something.
        ({"activity": {"transfers": {"min": 0}, "last": {"after": 1}}}, None),
        ({"activity": {"transfers": {"min": 0}, "activeDays": {"max": 5}}}, None),
        ({"transfer": {"token": "UNI", "count": {"min": 0}, "total": {"max": "5"}}}, None),
        ({"transfer": {"token": "UNI", "count": {"min": 0}, "total": {"min": "5"}}}, None),
    ],
)
def test_a_min_of_0_without_a_max_is_called_out(dataset, filters, place):
    assert resolved(dataset, filters).warnings == [
        f"/filters/{one}/min: 0 without max matches every wallet seen." for one in [place] if one
    ]


def test_columns_are_told_apart_by_chain_and_then_by_address(dataset):
    contracts = [
        {"token": "UNI"},
        {"token": address(0xC4)},
        {"token": address(0xC5)},
        {"token": "OP", "chain": 10},
        {"token": "UNI", "balance": {"min": "5"}},
    ]
    filters = {"token": contracts, "nft": {"nft": "BAYC"}, "not": {"token": {"token": "MAD"}}}
    plan = resolved(dataset, filters, operator="OR")

    def amounts(name, symbol, chain, number, decimals):
        known = {"symbol": symbol, "chain": chain, "address": address(number), "decimals": decimals}
        return [
            {"name": name, "type": "float64", "unit": "token", **known},
            {"name": f"{name}_raw", "type": "uint256", "unit": "raw", **known},
        ]

    assert plan.columns == [
        {"name": "address", "type": "string"},
        *amounts("UNI_balance", "UNI", "ethereum", 0xC0, 18),
        *amounts(f"TWICE_ethereum_{address(0xC4)}_balance", "TWICE", "ethereum", 0xC4, 0),
        *amounts(f"twice_ethereum_{address(0xC5)}_balance", "twice", "ethereum", 0xC5, 0),
        *amounts("OP_balance", "OP", "optimism", 0xC0, 18),
        {
            "name": "BAYC_count",
            "type": "integer",
            "symbol": "BAYC",
            "chain": "ethereum",
            "address": address(0xC1),
        },
    ]


def test_parts_ask_each_condition_alone(dataset):
    plan = resolved(dataset, {**token(), "not": {"nft": {"nft": "QUEST", "chain": 10}}})
    assert [
        (words, dataset.ask(question, limit=0).matched) for words, question in language.parts(plan)
    ] == [("hold UNI on ethereum", 1), ("own QUEST on optimism", 1)]


def test_a_saved_segment_is_asked_again_as_of_the_outer_time(dataset):
    saved = {"sg_uni": {"operator": "AND", "filters": token(), "fileType": "csv", "limit": 3}}
    outer = {"segment": {"id": "sg_uni"}}
    assert dataset.ask(language.compile(resolved(dataset, outer, saved)), limit=0).matched == 1
    assert (
        dataset.ask(
            language.compile(resolved(dataset, {**outer, "asOf": 0}, saved)), limit=0
        ).matched
        == 0
    )


def test_as_of_the_end_of_the_data_is_no_as_of(dataset):
    saved = {"sg_then": {"filters": {**token(), "asOf": 3}}}
    outer = {"segment": {"id": "sg_then"}}
    plain, at_the_end = (
        resolved(dataset, outer, saved),
        resolved(dataset, {**outer, "asOf": 100}, saved),
    )
    assert at_the_end.canonical == plain.canonical
    assert at_the_end.whole == plain.whole


@pytest.mark.parametrize(
    ("beside", "warnings"),
    [
        ({}, []),
        ({"limit": 9, "matched": 9}, []),
        ({"limit": 0, "matched": 9}, []),
        (
            {"limit": 3, "matched": 1_009},
            ["sg_a was saved with limit 3: all 1,009 wallets that match are taken."],
        ),
        (
            {"limit": 3, "matched": None},
            ["sg_a was saved with limit 3: all wallets that match are taken."],
        ),
        (
            {"changed": True},
            ["sg_a was saved on other data: all wallets that match now are taken."],
        ),
        (
            {"limit": 3, "matched": 4, "changed": True},
            [
                "sg_a was saved with limit 3 and on other data: all wallets that match now are taken."
            ],
        ),
    ],
)
def test_a_saved_segment_warns_where_its_rows_were_others(dataset, beside, warnings):
    saved = {"sg_a": {"filters": token(), **beside}}
    twice = {"any": [{"segment": {"id": "sg_a"}}, {"wallet": {"in": "sg_a"}}]}
    assert [one for one in resolved(dataset, twice, saved).warnings if "saved" in one] == warnings


def test_conditions_of_saved_segments_count_however_they_are_nested(dataset):
    saved = {"sg_0": {"filters": {"any": [token() for _ in range(20)]}}}
    for level in range(1, 6):
        inner = [{"segment": {"id": f"sg_{level - 1}"}} for _ in range(12)]
        saved[f"sg_{level}"] = {"filters": {"any": inner}}
    assert resolved(dataset, {"any": [{"segment": {"id": "sg_0"}}] * 9}, saved)
    for filters in ({"any": [{"segment": {"id": "sg_0"}}] * 10}, {"segment": {"id": "sg_5"}}):
        found = errors(dataset, filters, saved)
        assert {code for _, code, _ in found} == {"size"}
        assert (
            "A segment has at most 200 conditions, those of saved segments counted." in found[0][2]
        )


def test_a_saved_segment_that_no_longer_holds_says_why(dataset):
    saved = {
        "sg_old": {"filters": token("GONE")},
        "sg_self": {"filters": {"segment": {"id": "sg_self"}}},
    }
    assert errors(dataset, {"segment": {"id": "sg_old"}}, saved) == [
        (
            "/filters/segment/id",
            "unknown-symbol",
            "The saved segment sg_old is no longer valid: /filters/token/token: The data has no token with the symbol "
            "'GONE' on ethereum.",
        )
    ]
    ((pointer, code, detail),) = errors(dataset, {"segment": {"id": "sg_self"}}, saved)
    assert (pointer, code) == ("/filters/segment/id", "depth")
    assert detail.endswith("Saved segments are nested more than 16 deep.")


def test_a_name_that_leads_to_spam_or_to_nothing_is_called_out(dataset):
    (nothing,) = resolved(dataset, {"token": {"token": "OP", "chain": 10}}).warnings
    assert nothing == (
        "/filters/token/token: the data has no transfer and no holder of "
        "'OP' (0x00000000000000000000000000000000000000C0)."
    )
    (spam,) = resolved(dataset, {"token": {"token": "MAD", "unit": "raw"}}).warnings
    assert (
        spam
        == "/filters/token/token: 'MAD' (0x00000000000000000000000000000000000000C8) is marked as spam."
    )
