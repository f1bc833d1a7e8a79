"""Texts of strangers become texts that hide nothing and run nothing."""

from __future__ import annotations

import unicodedata
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbext.core.untrusted_text import html, quoted, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("USDC", "USDC"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\rb\nc\td", "a\\rb\\nc\\td"),
        ("pay\u202etpircs", "pay\\u202etpircs"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("line\u2028end", "line\\u2028end"),
        ("lone \ud83d", "lone \\ud83d"),
        ("nul \x00", "nul \\x00"),
        ("شبكة 🚀 Ⅷ", "شبكة 🚀 Ⅷ"),
        ("USDC\u3164 \u2800 \U000e0041", "USDC\\u3164 \\u2800 \\U000e0041"),
        ("US\u200dDC \ue000", "US\\u200dDC \\ue000"),
        (None, "None"),
        (2**256 - 1, str(2**256 - 1)),
    ],
)
def test_hidden_characters_are_shown_as_escapes_and_others_stay(text, shown):
    assert visible(text) == shown


def test_a_long_text_is_cut_and_says_how_long_it_was():
    assert visible("x" * 20_000) == "x" * 200 + "… (20,000 characters)"
    assert visible("x" * 20_000, limit=None) == "x" * 20_000
    assert visible("x" * 200) == "x" * 200


def test_markup_is_shown_literally_in_elements_and_in_attributes():
    assert html("<img src=x onerror='a(\"b\")'>&amp;") == (
        "&lt;img src=x onerror=&#x27;a(&quot;b&quot;)&#x27;&gt;&amp;amp;"
    )


@given(st.text(alphabet=st.characters()))
def test_no_text_leaves_markup_or_a_hidden_character(text):
    escaped = html(text, limit=None)
    assert not set(escaped) & set("<>\"'")
    assert unescape(escaped) == visible(text, limit=None)
    hidden = [c for c in escaped if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]
    assert hidden == []


@given(st.text(alphabet=st.characters()))
def test_a_quoted_text_hides_nothing_either(text):
    quote = quoted(text)
    assert quote == visible(quote, limit=None)
    assert quote[0] in "'\""


def test_a_quoted_text_is_cut_and_says_how_long_it_was():
    assert quoted("it's") == '"it\'s"'
    assert quoted("x" * 81) == "'" + "x" * 80 + "'… (81 characters)"
