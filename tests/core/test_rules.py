"""A limit is checked in one place, and its words are right for whoever asks."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbext.core.rules import MAX_LIMIT, is_whole, limit_of, one_of
from nbext.errors import ValidationError


@given(st.integers())
def test_a_limit_is_taken_within_its_bounds_and_refused_in_words_beyond(number):
    for least in (0, 1):
        if least <= number <= MAX_LIMIT:
            assert limit_of(number, least) == number
        else:
            with pytest.raises(ValidationError):
                limit_of(number, least)


@pytest.mark.parametrize(
    ("given", "least", "words"),
    [
        (
            50_000_000,
            0,
            "50000000 is not a limit. Write a whole number from 0 (count only) to 10,000,000.",
        ),
        (0, 1, "0 is not a limit. Write a whole number from 1 to 10,000,000."),
        (True, 0, "true is not a limit. Write a whole number from 0 (count only) to 10,000,000."),
        (Decimal("1.5"), 1, "1.5 is not a limit. Write a whole number from 1 to 10,000,000."),
        (
            "a\u202e" * 3,
            1,
            "'a\\u202ea\\u202ea\\u202e' is not a limit. Write a whole number from 1 to 10,000,000.",
        ),
        (
            10**100,
            1,
            "a number of more than 90 digits is not a limit. Write a whole number from 1 to 10,000,000.",
        ),
    ],
)
def test_what_is_wrong_with_a_limit_is_said_in_one_sentence(given, least, words):
    with pytest.raises(ValidationError) as caught:
        limit_of(given, least)
    assert str(caught.value) == f"/limit: {words}"


def test_numpys_integers_are_whole_numbers_and_booleans_are_not():
    assert [is_whole(value) for value in (1, np.int64(1), True, np.bool_(True), 1.0, "1")] == [
        True
    ] * 2 + [False] * 4
    assert type(limit_of(np.int64(5))) is int


@pytest.mark.parametrize(
    ("given", "word"),
    [("größe", "größe"), ("UNI", "UNI"), ("uni", "uni"), ("Uni", "UNI"), ("TOKEN", "token")],
)
def test_a_word_is_taken_as_it_is_written_or_in_another_case(given, word):
    assert one_of(given, ["UNI", "uni", "token", "größe"], "/word") == word


def test_nothing_hides_in_the_words_that_a_refusal_lists():
    with pytest.raises(ValidationError) as caught:
        one_of("foo", ["evil\x1b[31mX", "token"], "/word")
    assert caught.value.errors == [
        {
            "pointer": "/word",
            "code": "choice",
            "detail": "'foo' is not allowed. Allowed: evil\\x1b[31mX, token.",
        }
    ]
