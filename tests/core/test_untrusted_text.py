"""Texts of strangers become texts that hide nothing and run nothing."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbext
from nbext.core.untrusted_text import html, quoted, visible

PACKAGE = Path(nbext.__file__).parent


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
    hidden = [
        c for c in escaped if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    ]
    assert hidden == []


@given(st.text(alphabet=st.characters()))
def test_a_quoted_text_hides_nothing_either(text):
    quote = quoted(text)
    assert quote == visible(quote, limit=None)
    assert quote[0] in "'\""


def test_a_quoted_text_is_cut_and_says_how_long_it_was():
    assert quoted("it's") == '"it\'s"'
    assert quoted("x" * 81) == "'" + "x" * 80 + "'… (81 characters)"


def test_only_this_module_decides_what_is_shown_as_an_escape():
    elsewhere = [path for path in PACKAGE.rglob("*.py") if path.name != "untrusted_text.py"]
    escaping = re.compile(r"unicode_escape|html\.escape\(|from html import escape")
    found = {
        str(path.relative_to(PACKAGE))
        for path in elsewhere
        if escaping.search(path.read_text("utf-8"))
    }
    # The page of the operations escapes our own descriptions, and nobody else's text.
    assert found <= {"service/routes/operator.py"}


# What may go into HTML as it is: a random id, HTML that was made of escaped parts, pandas' own HTML, one of our words.
OURS = {
    "made.html",
    "size.lstrip()",
    "self.status",
    # Lines that went through `html` one by one, and the notes that are made of such.
    "'<br>'.join(map(html, failures.splitlines()))",
    "below.lstrip()",
    # The parts of what was found to be an address, and how many columns there are.
    "value[:_BEGIN]",
    "value[_BEGIN:-_END]",
    "value[-_END:]",
    "len(shown.columns)",
    # Facts, code and a chart's words that went through `html`, and a picture in base64.
    "''.join(_about(table))",
}


def raw_in_html(path: Path) -> Iterator[str]:
    """What f-strings with tags in them hold besides local names, numbers with a format, and what `html` returned."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        ours = "".join(part.value for part in node.values if isinstance(part, ast.Constant))
        if re.search(r"</?[a-z]+[ >]", ours):
            for part in node.values:
                if isinstance(part, ast.FormattedValue) and not part.format_spec:
                    yield from () if is_escaped(part.value) else [ast.unparse(part.value)]


def is_escaped(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        name = ast.unparse(value.func)
        return name in ("html", "cells") or name.endswith("_html")
    return isinstance(value, ast.Name)


def test_a_strangers_text_goes_into_html_only_by_way_of_this_module():
    found = {one for path in (PACKAGE / "notebook").rglob("*.py") for one in raw_in_html(path)}
    assert found <= OURS


@pytest.mark.parametrize(
    "text", ["value['name']", "known.get('symbol')", "str(name)", "visible(name)"]
)
def test_the_search_for_raw_text_finds_it(tmp_path, text):
    module = tmp_path / "module.py"
    module.write_text(f'made = f"<td>{{{text}}}</td>"')
    assert list(raw_in_html(module)) == [text]
