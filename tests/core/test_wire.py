"""The shapes of what crosses HTTP: what each refuses, in our words, and what importing them loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nbext.core import wire
from nbext.core.rules import check_shape, unlike
from nbext.errors import ValidationError

SEGMENT = {"filters": {"nft": {"nft": "BAYC"}}}


def refused(shape, body):
    with pytest.raises(ValidationError) as caught:
        check_shape(shape, body)
    return [tuple(each.values()) for each in caught.value.errors]


def test_importing_the_shapes_loads_neither_pydantic_nor_what_checks_email():
    code = (
        "import sys, nbext.core.wire; "
        "print({'pydantic', 'pydantic_core', 'fastapi', 'email_validator', 'pandas'} & sys.modules.keys())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


def test_every_fault_of_a_body_is_named_at_once_unknown_fields_first():
    body = {"segments": [SEGMENT, 5], "counts": [[0], [True], []], "amounts": 1, "cuonts": 1}
    of_count = (
        "A count is a list of places of segments, each once: 0 to 1. After one of these, -1 to -2 are those whose "
        "wallets are left out: -1 is place 0, -2 place 1."
    )
    assert refused(wire.CountsRequest, body) == [
        ("/cuonts", "unknown-key", "Unknown field 'cuonts'. Did you mean 'counts'?"),
        (
            "/segments/1",
            "type",
            'A segment here is an object with "filters", and "operator" where it is not AND.',
        ),
        ("/counts/1", "range", of_count),
        ("/counts/2", "range", of_count),
        ("/amounts", "type", "amounts is true, false, or the symbol or address of a contract."),
    ]


@pytest.mark.parametrize(
    ("shape", "body", "errors"),
    [
        (
            wire.CountsRequest,
            {"segments": 5},
            [
                ("/segments", "size", "segments is a list of 1 to 128 requests."),
                ("/counts", "size", "counts is a list of 1 to 4,095 lists of places."),
            ],
        ),
        (
            wire.HoldingsRequest,
            {"wallets": ["0x1", "sg_1"], "limit": 1},
            [
                ("/limit", "unknown-key", "Unknown field 'limit'. Allowed: wallets, chain, asOf."),
                ("/wallets/1", "type", "A wallet is an address: 0x and 40 hex digits."),
            ],
        ),
        (
            wire.ProfileRequest,
            {"base": {"limit": 1}, "least": True},
            [
                (
                    "/base",
                    "type",
                    'A base is an object with "filters", and "operator" where it is not AND.',
                ),
                ("/least", "range", "least is a whole number from 1 to 10,000,000."),
            ],
        ),
        (
            wire.ChangesRequest,
            SEGMENT,
            [
                (
                    "/since",
                    "missing",
                    "since is missing: a time, a span back such as 30d, or a block.",
                )
            ],
        ),
        (wire.ExplainRequest, {"parts": 1}, [("/parts", "type", "parts is true or false.")]),
        (wire.SignUpRequest, {"email": 5}, [("/email", "type", "An e-mail address is a string.")]),
    ],
)
def test_what_is_not_allowed_is_said_in_our_words(shape, body, errors):
    assert refused(shape, body) == errors


def test_what_the_language_says_of_a_segment_is_left_to_it():
    check_shape(wire.ExecuteRequest, {"operator": 5, "limit": [], "sort": 1})
    check_shape(wire.ExplainRequest, {"parts": True, "sort": 1})
    check_shape(wire.ProfileRequest, {"operator": 5})


def test_of_ten_thousand_faults_twenty_are_shown_and_the_others_counted():
    with pytest.raises(ValidationError) as caught:
        check_shape(wire.CountsRequest, {"segments": [SEGMENT], "counts": [[""] * 128] * 4095})
    assert (len(caught.value.errors), caught.value.more) == (20, 4075)


def test_of_an_answer_only_the_fields_that_are_needed_have_to_be_right():
    page = {"data": [{"a": 1}], "columns": [], "page": {"total": 1, "next": None}, "new": 1}
    needed = ("data", "columns", "page", "page/total", "page/next")
    assert unlike(wire.SegmentRows, page, needed) is None
    assert unlike(wire.SegmentRows, {**page, "data": [{}, 1]}, needed) == "data"
    # True is a number to Python, and digits are one to a reader that is not strict.
    for total in (True, "1", 1.0, None):
        wrong = {**page, "page": {"total": total, "next": None}}
        assert unlike(wire.SegmentRows, wrong, needed) == "page/total"
    assert unlike(wire.SegmentRows, {**page, "page": {"total": 1}}, needed) == "page/next"


def test_the_columns_of_tables_follow_from_the_shapes():
    assert wire.TOKEN_FIELDS["totalSupply"] == "uint256"
    assert wire.SEARCH_FIELDS["score"] == "number"
    assert wire.NFT_FIELDS["asOf"] == "object"
    assert wire.SIGN_UP_FIELDS == {"email": "string", "status": "string", "delivered": "boolean"}
