"""What refusals mean, and how many blocks are asked for after them."""

from __future__ import annotations

import pytest

from nbext.node.limits import Meaning, RangeSize, blocks_offered, meaning_of
from tests.node.refusals import FINAL, PASSING, RANGES


@pytest.mark.parametrize(
    "refused", [*RANGES, *PASSING, *FINAL], ids=lambda one: f"{one.who}: {one.message[:30]}"
)
def test_each_providers_words_are_understood(refused):
    text = f"{refused.message} {refused.data or ''}"
    assert (meaning_of(refused.status, refused.code, text), blocks_offered(text)) == (
        refused.meaning,
        refused.offered,
    )


def test_a_span_shrinks_by_halves_and_grows_again():
    span = RangeSize(size=1000)
    assert span.refused(1000, None) == 500
    assert span.size == 500
    span.answered(500, 10, 0.1)
    assert span.size == 1000
    # Many logs, or one answer that took long: less is asked for at once, and no more while it is so.
    for logs, seconds, size in ((5001, 0.1, 500), (10, 8.1, 250), (2500, 0.1, 250), (10, 4, 250)):
        span.answered(span.size, logs, seconds)
        assert span.size == size


def test_an_offer_is_taken_and_the_very_range_that_was_asked_is_halved():
    span = RangeSize(size=1000)
    assert span.refused(1000, 100) == 100
    assert span.refused(100, 100) == 50


def test_a_message_as_long_as_an_attack_is_read_at_once():
    assert meaning_of(200, None, "a" * 10_000_000) is Meaning.OTHER
    assert blocks_offered("limited to a " + "1" * 10_000_000) is None


def test_429_is_the_rate_whatever_its_page_says_but_of_a_range_that_is_too_large():
    for text, meaning in (
        ("your API key may ask for no more blocks today", Meaning.RATE),
        ("reduce your load", Meaning.RATE),
        ("", Meaning.RATE),
        ("the block range is too large", Meaning.LESS),
    ):
        assert meaning_of(429, None, text) is meaning, text


def test_an_offer_is_read_in_capitals_too():
    assert blocks_offered("TRY WITH THIS BLOCK RANGE [0X1, 0XFF].") == 255
    assert blocks_offered("Limited To A 10 K Range") == 10_000
