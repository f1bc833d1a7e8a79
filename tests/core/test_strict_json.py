"""Strict JSON in, exact JSON out."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbext.core.strict_json import (
    MAX_DEPTH,
    REPLACED,
    NotJson,
    canonical_json,
    parse,
    read_answer,
    read_request,
    to_json,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('abc"\\\u202e'), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON)
def test_what_is_written_is_read_back_as_it_was(value):
    assert read_request(to_json(value)) == value
    assert read_request(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.dictionaries(st.text("abc"), st.integers()))
def test_equal_objects_have_one_canonical_form_whatever_their_order(value):
    assert canonical_json(value) == canonical_json(dict(reversed(value.items())))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "line 1, column 1: Expecting value"),
        (b"{", "line 1, column 2: Expecting property name enclosed in double quotes"),
        (b"\xff{}", "byte 0 is not UTF-8"),
        (b"\xef\xbb\xbf{}", "line 1, column 1: Unexpected UTF-8 BOM (decode using utf-8-sig)"),
        (b'{"operator": NaN}', "NaN is not a JSON number"),
        (b"[-Infinity]", "-Infinity is not a JSON number"),
        (b'{"a": 1, "a": 2}', "the name 'a' appears twice in one object"),
        (b'["\\ud800"]', "a text has a lone surrogate, which UTF-8 cannot carry"),
        (b"[" * 100_000, "nested more than 64 levels deep"),
        (b'{"a":' * 100_000, "nested more than 64 levels deep"),
        (b"[" * 65 + b"]" * 65, "nested more than 64 levels deep"),
        (b"1" * 5_000, "a number has too many digits"),
        (b"1e999999999", "a number has too many digits"),
        (b"{} {}", "line 1, column 4: Extra data"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_its_place(raw, message):
    with pytest.raises(NotJson) as caught:
        read_request(raw)
    assert str(caught.value) == message


def test_a_body_of_the_greatest_depth_is_read():
    value = read_request(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    for _ in range(MAX_DEPTH):
        value = value[0] if value else None
    assert value is None


def test_a_fraction_stays_exact_on_the_way_through():
    value = read_request(b'{"min": 0.1000000000000000055511151231257827}')
    assert value == {"min": Decimal("0.1000000000000000055511151231257827")}
    assert to_json(value) == b'{"min":"0.1000000000000000055511151231257827"}'


def test_a_surrogate_pair_is_one_character():
    assert read_request(b'["\\ud83d\\ude00"]') == ["\U0001f600"]


@given(JSON)
def test_an_answer_is_read_as_a_request_is(value):
    assert read_answer(to_json(value)) == (value, [])


def test_an_answers_numbers_are_exact_and_its_byte_order_mark_is_skipped():
    value, warnings = read_answer(b'\xef\xbb\xbf{"big": %d, "small": 1.10}' % 2**256)
    assert (value, warnings) == ({"big": 2**256, "small": Decimal("1.10")}, [])
    assert str(value["small"]) == "1.10"


def test_half_a_character_of_an_answer_is_replaced_and_said():
    assert read_answer(b'{"\\ud800": ["a\\udfff", 1]}') == ({"\ufffd": ["a\ufffd", 1]}, [REPLACED])
    assert read_answer(b'["\\ud83d\\ude00"]') == (["\U0001f600"], [])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "syntax"),
        ('{"a": 1, "b": {"c": 1, "c": 1}}', "duplicate"),
        ("Infinity", "constant"),
        ("1" * 4301, "digits"),
        ("1.5e-401", "digits"),
        ("[" * 100_000, "depth"),
    ],
)
def test_a_fault_is_named_and_carries_no_frame_of_the_decoder(text, fault):
    with pytest.raises(NotJson) as caught:
        parse(text)
    assert caught.value.fault == fault
    assert caught.value.__context__ is None


def test_the_caller_chooses_what_a_fraction_becomes():
    assert parse("[1.5, 1e3, 7]", fraction=str) == ["1.5", "1e3", 7]


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, '["\\"[", ' * 50_000],
    ids=["lists", "objects", "texts"],
)
def test_brackets_alone_do_not_end_a_process_whose_recursion_limit_was_raised(text):
    """Libraries raise it, and cells do; without a bound of ours Python's own reader overflows the stack then."""
    code = (
        "import sys; sys.setrecursionlimit(100_000)\nfrom nbext.core.strict_json import NotJson, parse\n"
        "try: parse(sys.stdin.read())\nexcept NotJson as error: print(error.fault)\n"
        'print(parse(\'["[[", {"a": [1]}]\'))'
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "depth\n['[[', {'a': [1]}]\n", "")
