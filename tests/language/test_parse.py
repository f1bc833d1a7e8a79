"""What is not a segment, and what the message says then: every text in full."""

from __future__ import annotations

import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbext.core.chains import chain_names
from nbext.errors import MOST_ERRORS, InvalidSegment
from nbext.language.conditions import CONDITIONS
from nbext.language.fields import MAX_CONDITIONS, MAX_DEPTH
from nbext.language.parse import parse
from tests import slow
from tests.reference.language_page import CODES

ALLOWED = ", ".join([*CONDITIONS, "all", "any", "not"])
A_TIME = (
    'a time. Write a date such as "2024-06-30" or "2024-06-30T12:00:00Z" (UTC), a span back from the last '
    'block or asOf such as "90d", "12h" or "4w", or a block number.'
)
DIGITS = 'Write its digits as text, such as "1000" or "0.5".'
AN_AMOUNT = f"an amount. {DIGITS}"
VITALIK = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"


def errors(filters, **body):
    with pytest.raises(InvalidSegment) as caught:
        parse({"filters": filters, **body})
    assert {error["code"] for error in caught.value.errors} <= set(CODES)
    return [(error["pointer"], error["code"], error["detail"]) for error in caught.value.errors]


def token(**fields):
    return {"token": {"token": "UNI", **fields}}


EACH = [
    # The request
    ([], "", "type", "Filters are an object of conditions, not a list."),
    (None, "", "type", "Filters are an object of conditions, not null."),
    ({}, "", "empty-group", f"The filters have no condition. Give at least one of: {ALLOWED}."),
    (
        {"chain": "base"},
        "",
        "empty-group",
        f"The filters have no condition. Give at least one of: {ALLOWED}.",
    ),
    # Keys
    ({"tokn": {}}, "/tokn", "unknown-key", "Unknown condition 'tokn'. Did you mean 'token'?"),
    (
        {"pizza": {}},
        "/pizza",
        "unknown-key",
        f"Unknown condition 'pizza'. Allowed: {ALLOWED}, chain, asOf, exclude, orderBy, columns.",
    ),
    (
        {7: {}},
        "/7",
        "unknown-key",
        f"Unknown condition 7. Allowed: {ALLOWED}, chain, asOf, exclude, orderBy, columns.",
    ),
    (
        {"AND": [token()]},
        "/AND",
        "unknown-key",
        'Unknown condition \'AND\'. Use "all" for AND and "any" for OR.',
    ),
    (
        {"or": [token()]},
        "/or",
        "unknown-key",
        'Unknown condition \'or\'. Use "all" for AND and "any" for OR.',
    ),
    (
        {"a/b~c": {}},
        "/a~1b~0c",
        "unknown-key",
        f"Unknown condition 'a/b~c'. Allowed: {ALLOWED}, chain, asOf, exclude, orderBy, columns.",
    ),
    (
        {"tok\ud800en": {}},
        "/tok\\ud800en",
        "unknown-key",
        "Unknown condition 'tok\\ud800en'. Did you mean 'token'?",
    ),
    (
        {**token(), "orderBy": 5},
        "/orderBy",
        "type",
        '5 is not the name of a column. Write its name, with "-" in front for the largest first: "-UNI_balance".',
    ),
    (
        {**token(), "columns": ["firstSeen", "first"]},
        "/columns/1",
        "choice",
        "'first' is not allowed. Did you mean 'firstSeen'? Allowed: firstSeen, lastSeen, transfers, activeDays, "
        "transferred, transferCount, firstTransfer, lastTransfer, share.",
    ),
    (
        {**token(), "columns": ["transfers", "transfers"]},
        "/columns/1",
        "twice",
        "'transfers' is in the list twice.",
    ),
    (
        {"all": [{**token(), "orderBy": "address"}]},
        "/all/0/orderBy",
        "unknown-key",
        "'orderBy' is allowed at the top of the filters, not inside a group.",
    ),
    (
        {"all": [{**token(), "asOf": "30d"}]},
        "/all/0/asOf",
        "unknown-key",
        "'asOf' is allowed at the top of the filters, not inside a group. For the wallets of another time run them as "
        'of then, and name that: {"segment": {"id": "sg_..."}}.',
    ),
    (
        {"all": [{"chain": "base"}]},
        "/all/0/chain",
        "unknown-key",
        "'chain' is allowed at the top of the filters, not inside a group.",
    ),
    (
        token(balence={}),
        "/token/balence",
        "unknown-key",
        "Unknown field 'balence' of token. Did you mean 'balance'?",
    ),
    (
        token(price=1),
        "/token/price",
        "unknown-key",
        "Unknown field 'price' of token. Allowed: token, chain, balance, unit, heldSince.",
    ),
    (
        token(balance={"least": 1}),
        "/token/balance/least",
        "unknown-key",
        "Unknown field 'least' of balance. Allowed: min, max.",
    ),
    # Groups
    (
        {"all": []},
        "/all",
        "empty-group",
        '"all" is empty. Give at least one object with conditions.',
    ),
    ({"any": [{}]}, "/any/0", "empty-group", "The object is empty. Give at least one condition."),
    ({"not": {}}, "/not", "empty-group", "The object is empty. Give at least one condition."),
    (
        {"token": []},
        "/token",
        "empty-group",
        '"token" is an empty list. Give at least one condition.',
    ),
    (
        {"all": token()},
        "/all",
        "type",
        '"all" is a list of objects with conditions: [{...}, {...}], not an object.',
    ),
    (
        {"not": 3},
        "/not",
        "type",
        '"not" is a list of objects with conditions: [{...}, {...}], or one such object, not 3.',
    ),
    (
        {"any": ["UNI"]},
        "/any/0",
        "type",
        '\'UNI\' is not an object with conditions, such as {"token": {"token": "UNI"}}.',
    ),
    (
        {"token": "UNI"},
        "/token",
        "type",
        '\'UNI\' is not an object with the fields of "token". Write {"token": {"token": "UNI"}}.',
    ),
    # Which fields go together
    (
        {"token": {}},
        "/token",
        "required",
        "token needs 'token': the token's address, or its symbol.",
    ),
    (
        {"wallet": {}},
        "/wallet",
        "empty",
        "wallet has nothing to match. Give at least one of: in, list, contract.",
    ),
    (
        {"activity": {"chain": "base"}},
        "/activity",
        "empty",
        "activity has nothing to match. Give at least one of: first, last, transfers, activeDays.",
    ),
    (
        {"collections": {"of": ["A"], "distinct": {"min": 1}}},
        "/collections",
        "exclusive",
        "collections takes 'of' or 'distinct', not both.",
    ),
    (
        {"transfer": {"token": "A", "nft": "B"}},
        "/transfer",
        "exclusive",
        "transfer takes 'token' or 'nft', not both.",
    ),
    (
        {"collections": {"distinct": {"min": 1}, "atLeast": 2}},
        "/collections/atLeast",
        "needs",
        "'atLeast' needs 'of' beside it.",
    ),
    (
        {"transfer": {"total": {"min": 1}}},
        "/transfer/total",
        "needs",
        "'total' needs 'token' or 'nft' beside it.",
    ),
    # Amounts and counts
    (token(balance="5"), "/token/balance", "type", 'A balance is an object: {"min": "5"}.'),
    (token(balance=100), "/token/balance", "type", 'A balance is an object: {"min": 100}.'),
    (token(balance=[]), "/token/balance", "type", 'A balance is an object: {"min": "1000"}.'),
    (
        {"activity": {"first": "2024-06-30"}},
        "/activity/first",
        "type",
        '"first" is an object: {"after": "2024-06-30"}, or {"before": "2024-06-30"}.',
    ),
    (token(balance={}), "/token/balance", "empty", "balance is empty. Give min, max or both."),
    (token(balance={"min": "-1"}), "/token/balance/min", "type", f"'-1' is not {AN_AMOUNT}"),
    (
        token(balance={"min": "1e18"}),
        "/token/balance/min",
        "type",
        '\'1e18\' is not an amount. Write the digits: "1000000000000000000", or add "unit": "raw" for the smallest '
        "unit.",
    ),
    (
        token(balance={"min": "1,000"}),
        "/token/balance/min",
        "type",
        "'1,000' is not an amount. Write the digits: \"1000\".",
    ),
    (
        token(balance={"min": "1 000'000"}),
        "/token/balance/min",
        "type",
        '"1 000\'000" is not an amount. Write the digits: "1000000".',
    ),
    (token(balance={"min": "0,5"}), "/token/balance/min", "type", f"'0,5' is not {AN_AMOUNT}"),
    (
        token(balance={"min": "\u0661"}),
        "/token/balance/min",
        "type",
        f"'\u0661' is not {AN_AMOUNT}",
    ),
    (
        token(balance={"min": "1\n"}),
        "/token/balance/min",
        "type",
        "'1\\n' is not an amount. Write the digits: \"1\".",
    ),
    (token(balance={"min": True}), "/token/balance/min", "type", f"true is not {AN_AMOUNT}"),
    (
        token(balance={"min": Decimal("NaN")}),
        "/token/balance/min",
        "type",
        f"NaN is not {AN_AMOUNT}",
    ),
    (
        token(balance={"min": 0.1}),
        "/token/balance/min",
        "type",
        f"0.1 is a binary float, which is not exact. {DIGITS}",
    ),
    (
        token(balance={"min": -1}),
        "/token/balance/min",
        "range",
        "-1 is out of range. Allowed: 0 to 2^256-1.",
    ),
    (
        token(balance={"min": 10**5000}),
        "/token/balance/min",
        "range",
        "a number of more than 90 digits is out of range. Allowed: 0 to 2^256-1.",
    ),
    (
        token(balance={"min": Decimal("1E+999999999")}),
        "/token/balance/min",
        "range",
        "1E+999999999 is out of range. Allowed: 0 to 2^256-1.",
    ),
    (
        token(balance={"min": "1", "max": "0.5"}),
        "/token/balance",
        "range",
        "min 1 is above max 0.5.",
    ),
    (
        token(balance={"max": 0}),
        "/token/balance",
        "range",
        '"max": 0 alone matches no wallet. Write {"min": 0, "max": 0} for wallets with none.',
    ),
    (
        {"nft": {"nft": "A", "count": {"min": "2"}}},
        "/nft/count/min",
        "type",
        "'2' is not a whole number. Write it without quotes: 2.",
    ),
    (
        {"nft": {"nft": "A", "count": {"min": 2**63}}},
        "/nft/count/min",
        "range",
        "9223372036854775808 is out of range. Allowed: 0 to 2^63-1.",
    ),
    (
        {"collections": {"of": ["A"], "atLeast": 0}},
        "/collections/atLeast",
        "range",
        "0 is out of range. Allowed: 1 to 2^63-1.",
    ),
    (
        {"nft": {"nft": "A", "tokenIds": []}},
        "/nft/tokenIds",
        "empty",
        "tokenIds is an empty list. Give at least one.",
    ),
    (
        {"nft": {"nft": "A", "tokenIds": ["x"]}},
        "/nft/tokenIds/0",
        "type",
        "'x' is not a token id. Write a whole number, or its digits as text.",
    ),
    (
        {"nft": {"nft": "A", "tokenIds": [1] * 1001}},
        "/nft/tokenIds",
        "size",
        "tokenIds has 1,001 members. At most 1,000 are allowed.",
    ),
    (
        {**token(), "exclude": [VITALIK] * 10_001},
        "/exclude",
        "size",
        'exclude has 10,001 members. At most 10,000 are allowed. {"not": {"wallet": {"in": ...}}} takes more.',
    ),
    # The text that a message says to write has the value that was given, where a list may have it
    (
        {"wallet": {"in": VITALIK.lower()}},
        "/wallet/in",
        "type",
        f"'{VITALIK.lower()}' is not a list of addresses. Write [\"{VITALIK.lower()}\"].",
    ),
    (
        {"collections": {"of": "MAYC"}},
        "/collections/of",
        "type",
        "'MAYC' is not a list of addresses or symbols. Write [\"MAYC\"].",
    ),
    (
        {**token(), "columns": "lastSeen"},
        "/columns",
        "type",
        "'lastSeen' is not a list of columns. Write [\"lastSeen\"].",
    ),
    # ... and of a text that no list may have either, what is wrong with it
    (
        {**token(), "columns": "wealth"},
        "/columns",
        "choice",
        "'wealth' is not allowed. Allowed: firstSeen, lastSeen, transfers, activeDays, transferred, "
        "transferCount, firstTransfer, lastTransfer, share.",
    ),
    (
        {"wallet": {"in": "hello"}},
        "/wallet/in",
        "address",
        "'hello' is not an address. An address is 0x and 40 hex digits.",
    ),
    (
        {**token(), "exclude": "burn"},
        "/exclude",
        "type",
        "'burn' is not a list of addresses. Write [\"burn\"].",
    ),
    (
        {"nft": {"nft": "A", "tokenIds": 7}},
        "/nft/tokenIds",
        "type",
        "7 is not a list of token ids. Write [7].",
    ),
    # Python's None becomes null
    (
        token(balance={"min": None}),
        "/token/balance/min",
        "type",
        'null is not a bound. Leave out "balance", or give "min" a value.',
    ),
    (
        token(balance={"min": "1", "max": None}),
        "/token/balance/max",
        "type",
        'null is not a bound. Leave out "max", or give "max" a value.',
    ),
    # Names
    (
        token(token=5),
        "/token/token",
        "type",
        '5 is not an address or a symbol. Write a text such as "USDC" or "0x...".',
    ),
    (
        token(token="0x1234567890"),
        "/token/token",
        "address",
        "'0x1234567890' is not an address. An address is 0x and 40 hex digits.",
    ),
    (
        token(token=VITALIK + "\n"),
        "/token/token",
        "address",
        f"'{VITALIK}\\n' is not an address. An address is 0x and 40 hex digits.",
    ),
    (
        token(token="vitalik.eth"),
        "/token/token",
        "address",
        "'vitalik.eth' is an ENS name. nbext does not resolve names; give the 0x... address.",
    ),
    (
        {"wallet": {"in": ["vitalik.eth"]}},
        "/wallet/in/0",
        "address",
        "'vitalik.eth' is an ENS name. nbext does not resolve names; give the 0x... address.",
    ),
    (token(token=""), "/token/token", "symbol", "'' is not a symbol of 1 to 64 characters."),
    (
        {"wallet": {"in": [VITALIK.replace("dA", "DA")]}},
        "/wallet/in/0",
        "checksum",
        f"The checksum of {VITALIK.replace('dA', 'DA')} does not match: a letter may be mistyped. "
        f"If the digits are right, write {VITALIK}.",
    ),
    (
        token(chain=[]),
        "/token/chain",
        "chain",
        f"Unknown chain: a list. Allowed: {', '.join(chain_names())}, or a chain id such as 137 or eip155:137.",
    ),
    (
        {"segment": {"id": "a/b"}},
        "/segment/id",
        "type",
        "'a/b' is not a segment id. Ids have 1 to 128 letters, digits, - and _.",
    ),
    (
        {"transfer": {"direction": "inn"}},
        "/transfer/direction",
        "choice",
        "'inn' is not allowed. Did you mean 'in'? Allowed: in, out, any, mint, burn.",
    ),
    (
        {"wallet": {"contract": "yes"}},
        "/wallet/contract",
        "type",
        "'yes' is not true or false. Write true or false, without quotes.",
    ),
    (
        {**token(), "exclude": ["burnt"]},
        "/exclude/0",
        "address",
        "'burnt' is neither an address nor the word \"burn\". Did you mean 'burn'?",
    ),
    # Times
    (token(heldSince="soon"), "/token/heldSince", "type", f"'soon' is not {A_TIME}"),
    (token(heldSince="9999y"), "/token/heldSince", "type", f"'9999y' is not {A_TIME}"),
    (token(heldSince="2024-13-01"), "/token/heldSince", "type", f"'2024-13-01' is not {A_TIME}"),
    (token(heldSince="0000-02-30"), "/token/heldSince", "type", f"'0000-02-30' is not {A_TIME}"),
    (
        token(heldSince="2025-02-30"),
        "/token/heldSince",
        "type",
        "'2025-02-30' is not a time. February 2025 has 28 days.",
    ),
    *(
        (
            token(heldSince=given),
            "/token/heldSince",
            "type",
            f'{given!r} is not a time. Write "{meant}". The units are h, d and w.',
        )
        for given, meant in {
            "30D": "30d",
            "30 days": "30d",
            "-12h": "12h",
            "2 weeks ago": "2w",
            "1m": "30d",
            "1y": "365d",
            "5 years": "1825d",
        }.items()
    ),
    (
        token(heldSince="90"),
        "/token/heldSince",
        "type",
        "'90' is not a time. A block number is written without quotes: 90. For 90 days back, write \"90d\".",
    ),
    (
        {**token(), "asOf": "23000000"},
        "/asOf",
        "type",
        "'23000000' is not a time. A block number is written without quotes: 23000000.",
    ),
    (
        {"activity": {"last": {"before": "1738367999"}}},
        "/activity/last/before",
        "type",
        "'1738367999' is not a time. A block number is written without quotes: 1738367999. As a Unix time it is "
        '"2025-01-31T23:59:59Z": write that.',
    ),
    (token(heldSince=Decimal("1.5")), "/token/heldSince", "type", f"1.5 is not {A_TIME}"),
    (
        {**token(), "asOf": -1},
        "/asOf",
        "range",
        "-1 is out of range. Allowed: a block from 0 to 2^62-1.",
    ),
    (
        {"activity": {"first": {}}},
        "/activity/first",
        "empty",
        "first is empty. Give after, before or both.",
    ),
]


@pytest.mark.parametrize(
    ("filters", "pointer", "code", "detail"), EACH, ids=[each[1] + each[2] for each in EACH]
)
def test_each_error_says_what_where_and_what_is_allowed(filters, pointer, code, detail):
    assert errors(filters) == [("/filters" + pointer, code, detail)]


def test_a_count_that_readers_of_json_may_round_is_a_number_also_as_text():
    def counted(most):
        return parse({"filters": {"nft": {"nft": "BAYC", "count": {"max": most}}}})

    assert counted(str(2**53 + 1)) == counted(2**53 + 1)


def test_an_unknown_chain_is_answered_with_those_known():
    assert errors(token(chain="etherium")) == [
        (
            "/filters/token/chain",
            "chain",
            "Unknown chain 'etherium'. Did you mean 'ethereum'? Allowed: ethereum, optimism, bnb, gnosis, "
            "polygon, fantom, zksync, polygon-zkevm, mantle, base, arbitrum, arbitrum-nova, celo, avalanche, "
            "linea, blast, scroll, zora, sepolia, or a chain id such as 137 or eip155:137.",
        )
    ]


def test_all_errors_come_at_once():
    filters = {"tokn": {}, "nft": {"count": {"mn": 1}}, "wallet": [{"in": ["0x12"]}, {}]}
    assert errors(filters, operator="and", limit=-1, fileType="exe", sort="x") == [
        (
            "/sort",
            "unknown-key",
            "Unknown field 'sort' of a segment request. Allowed: operator, filters, fileType, limit.",
        ),
        ("/operator", "choice", "'and' is not allowed. Did you mean 'AND'? Allowed: AND, OR."),
        ("/fileType", "choice", "'exe' is not allowed. Allowed: json, csv."),
        (
            "/limit",
            "range",
            "-1 is not a limit. Write a whole number from 0 (count only) to 10,000,000.",
        ),
        ("/filters/tokn", "unknown-key", "Unknown condition 'tokn'. Did you mean 'token'?"),
        (
            "/filters/nft/count/mn",
            "unknown-key",
            "Unknown field 'mn' of count. Did you mean 'min'?",
        ),
        ("/filters/nft", "required", "nft needs 'nft': the collection's address, or its symbol."),
        (
            "/filters/wallet/0/in/0",
            "address",
            "'0x12' is not an address. An address is 0x and 40 hex digits.",
        ),
        (
            "/filters/wallet/1",
            "empty",
            "wallet has nothing to match. Give at least one of: in, list, contract.",
        ),
    ]


@pytest.mark.parametrize(
    ("limit", "detail"),
    [
        (True, "true is not a limit. Write a whole number from 0 (count only) to 10,000,000."),
        ("10", "'10' is not a limit. Write a whole number from 0 (count only) to 10,000,000."),
        (1.5, "1.5 is not a limit. Write a whole number from 0 (count only) to 10,000,000."),
        (None, "null is not a limit. Write a whole number from 0 (count only) to 10,000,000."),
        (
            10_000_001,
            "10000001 is not a limit. Write a whole number from 0 (count only) to 10,000,000.",
        ),
    ],
)
def test_a_limit_is_a_whole_number_within_bounds(limit, detail):
    assert [(pointer, text) for pointer, _, text in errors(token(), limit=limit)] == [
        ("/limit", detail)
    ]


def test_a_body_that_is_no_object_and_filters_that_are_missing():
    for body, error in (
        (
            [],
            (
                "",
                "type",
                "A segment request is an object with operator, filters, fileType, limit, not a list.",
            ),
        ),
        (
            {},
            (
                "/filters",
                "required",
                'Filters are missing. Write "filters": {...} with at least one condition.',
            ),
        ),
    ):
        with pytest.raises(InvalidSegment) as caught:
            parse(body)
        assert [tuple(one.values()) for one in caught.value.errors] == [error]


def test_groups_nest_to_the_limit_and_no_deeper():
    def nested(levels):
        return token() if not levels else {"not": nested(levels - 1)}

    parse({"filters": nested(MAX_DEPTH)})
    ((pointer, code, detail),) = errors(nested(MAX_DEPTH + 1))
    assert (pointer, code) == ("/filters" + "/not" * (MAX_DEPTH + 1), "depth")
    assert detail == "Groups are nested more than 16 deep."


def test_a_segment_of_too_many_conditions_is_refused_once():
    parse({"filters": {"token": [{"token": "UNI"}] * MAX_CONDITIONS}})
    assert errors({"token": [{"token": "UNI"}] * (MAX_CONDITIONS + 50)}) == [
        (f"/filters/token/{MAX_CONDITIONS}", "size", "A segment has at most 200 conditions.")
    ]


MANY = 100_000
HOSTILE = {
    "conditions": ({f"key{number}": {} for number in range(MANY)}, MANY),
    "fields": ({"token": {"token": "UNI", **{f"key{number}": 1 for number in range(MANY)}}}, MANY),
    "bounds": (
        {"token": {"token": "UNI", "balance": {f"key{number}": 1 for number in range(MANY)}}},
        MANY,
    ),
    # The one about the list's length is the 201st: no more members are read than a segment has conditions.
    "members": ({"any": [1] * MANY}, MAX_CONDITIONS + 1),
    "empty members": ({"not": [{}] * MANY}, MAX_CONDITIONS + 1),
}


@pytest.mark.parametrize(
    ("filters", "all_errors"), slow.but_the_first(list(HOSTILE.values()), 2), ids=HOSTILE
)
def test_twenty_errors_are_worded_and_the_others_only_counted(filters, all_errors):
    searched = 0

    def count(frame, event, value):
        nonlocal searched
        searched += event == "call" and frame.f_code.co_name == "get_close_matches"

    sys.setprofile(count)
    try:
        with pytest.raises(InvalidSegment) as caught:
            parse({"filters": filters})
    finally:
        sys.setprofile(None)
    assert (len(caught.value.errors), caught.value.more) == (MOST_ERRORS, all_errors - MOST_ERRORS)
    assert str(caught.value).splitlines()[-1] == f"and {all_errors - MOST_ERRORS:,} more errors"
    assert len(str(caught.value)) < 5_000
    assert searched <= MOST_ERRORS, "the nearest word is looked for only where it is shown"


def test_a_hostile_key_is_cut():
    ((pointer, _, detail),) = errors({"k" * 10**6: {}})
    assert len(pointer) < 100
    assert len(detail) < 300


def test_exact_numbers_are_taken_in_every_spelling():
    spellings = ["1.5", Decimal("1.5"), Decimal("15E-1"), Decimal("1.50")]
    read = [
        parse({"filters": token(balance={"min": one})}).root.children[0].values["balance"].min
        for one in spellings
    ]
    assert read == [Decimal("1.5")] * 4


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=5)
        | st.decimals(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "token",
                        "nft",
                        "all",
                        "any",
                        "not",
                        "transfer",
                        "balance",
                        "min",
                        "in",
                        "chain",
                        "asOf",
                    ]
                )
                | st.text(max_size=3),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_anything_at_all_is_either_read_or_answered_with_pointers(anything):
    found = []
    try:
        parse({"filters": anything})
    except InvalidSegment as error:
        found = error.errors
        str(error).encode("utf-8")
    assert all(one["pointer"].startswith("/filters") and one["code"] in CODES for one in found)
