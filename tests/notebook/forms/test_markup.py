"""Parts of forms: what they show of a stranger's text, and pictures only where they are allowed."""

from __future__ import annotations

import re

import pytest

from nbext.notebook.forms.markup import code_html, facts_html, lines_html, table_html
from nbext.notebook.forms.search import image_html

HOSTILE = "<img src=x onerror='alert(1)'>\x1b[31m\u202e$x$"
LITERAL = "&lt;img src=x onerror=&#x27;alert(1)&#x27;&gt;\\x1b[31m\\u202e$x$"


def test_tables_facts_code_and_messages_show_markup_literally():
    made = table_html([HOSTILE], [[HOSTILE]], numbers=[0])
    # Whole in the title, too: where there is no room the cell is cut.
    for tag in ("th", "td"):
        assert f'<{tag} class="nbext-number" title="{LITERAL}">{LITERAL}</{tag}>' in made
    assert f'<tr><th scope="row">{LITERAL}</th><td>{LITERAL}</td></tr>' in facts_html(
        [(HOSTILE, HOSTILE)]
    )
    assert f">{LITERAL}\n{LITERAL}</pre>" in code_html(f"{HOSTILE}\n{HOSTILE}")
    assert lines_html(f"{HOSTILE}\n{HOSTILE}") == f"{LITERAL}<br>{LITERAL}"


def test_tables_and_lists_are_kept_from_being_set_as_maths():
    for made in (table_html(["a"], [["$x$"]]), facts_html([("a", "$x$")]), code_html("$x$")):
        assert "mathjax_ignore" in made


def test_amounts_stand_below_each_other_at_their_decimal_points():
    amounts = ["0.000000000000000001", "-1,234.5", "7", "", "1.5 of 2"]
    made = table_html(["UNI", "n"], [[one, "7"] for one in amounts], numbers=[0, 1])
    fraction = '<span class="nbext-fraction" style="width: 19ch">'
    assert re.findall(r'<td class="nbext-number"[^>]*>(.*?)</td>', made)[::2] == [
        f"0{fraction}.000000000000000001</span>",
        f"-1,234{fraction}.5</span>",
        f"7{fraction}</span>",
        "",
        "1.5 of 2",
    ]
    # Whole numbers need no more room than they had.
    assert made.count('<td class="nbext-number">7</td>') == len(amounts)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,<script>",
        "//host/x",
        "\\\\host\\x",
        "https:\\\\host\\x",
        "https://user:key@host/x",
        "https://",
        "https://[broken",
        "HTTPS\n://host/x",
        "https://host/x\r\n",
        "data:image/svg+xml,<svg onload=alert(1)>",
        None,
        7,
        "",
    ],
)
def test_only_plain_https_addresses_become_pictures_even_when_pictures_are_on(url):
    assert image_html(url, allowed=True) == ""


def test_pictures_are_loaded_only_where_they_are_allowed():
    url = "https://pictures.example/a.png?b=1&c='2'"
    assert image_html(url, allowed=False) == ""
    assert image_html(url, allowed=True).startswith(
        '<img src="https://pictures.example/a.png?b=1&amp;c=&#x27;2&#x27;" alt=""'
    )
