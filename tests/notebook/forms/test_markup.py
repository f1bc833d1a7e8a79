"""Parts of forms: what they show of a stranger's text, and pictures only where they are allowed."""

from __future__ import annotations

import pytest

from nbext.notebook.forms.card import image_html
from nbext.notebook.forms.markup import code_html, facts_html, lines_html

HOSTILE = "<img src=x onerror='alert(1)'>\x1b[31m\u202e$x$"
LITERAL = "&lt;img src=x onerror=&#x27;alert(1)&#x27;&gt;\\x1b[31m\\u202e$x$"


def test_tables_facts_code_and_messages_show_markup_literally():
    assert f'<tr><th scope="row">{LITERAL}</th><td>{LITERAL}</td></tr>' in facts_html(
        [(HOSTILE, HOSTILE)]
    )
    assert f">{LITERAL}\n{LITERAL}</pre>" in code_html(f"{HOSTILE}\n{HOSTILE}")
    assert lines_html(f"{HOSTILE}\n{HOSTILE}") == f"{LITERAL}<br>{LITERAL}"


def test_tables_and_lists_are_kept_from_being_set_as_maths():
    for made in (facts_html([("a", "$x$")]), code_html("$x$")):
        assert "mathjax_ignore" in made


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
