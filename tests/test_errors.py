"""The drawn tree of errors is the real one, and an error shows as its message alone."""

from __future__ import annotations

import inspect
import re

import pytest

from nbext import errors
from nbext.errors import NbextError, did_you_mean


def drawn_tree() -> dict[str, str]:
    """Return each drawn class and the one it hangs from."""
    parents: dict[str, str] = {}
    stack: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        name = re.search(r"[A-Z]\w+", line)
        if name is None or not re.match(r"^(NbextError|[│ ]*[├└])", line):
            continue
        stack = [(depth, above) for depth, above in stack if depth < name.start()]
        parents[name[0]] = stack[-1][1] if stack else "Exception"
        stack.append((name.start(), name[0]))
    return parents


def test_the_tree_at_the_top_of_the_module_is_the_tree_of_classes():
    real = {
        name: thing.__base__.__name__
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and issubclass(thing, NbextError)
    }
    assert drawn_tree() == real


def test_in_a_notebook_an_error_is_its_name_and_message(monkeypatch):
    monkeypatch.delenv("NBEXT_TRACEBACK", raising=False)
    assert errors.ConfigError("no such setting")._render_traceback_() == [
        "ConfigError: no such setting"
    ]


def test_the_stack_is_shown_on_request(monkeypatch):
    monkeypatch.setenv("NBEXT_TRACEBACK", "1")
    try:
        raise errors.ConfigError("no such setting")
    except errors.ConfigError as caught:
        shown = "".join(caught._render_traceback_())
    assert shown.startswith("Traceback (most recent call last):")
    assert shown.endswith("nbext.errors.ConfigError: no such setting\n")


def test_without_a_service_the_two_choices_are_named():
    assert str(errors.NoService()) == (
        "No service is set. Set one (`%nbext connect https://...`, or NBEXT_BASE_URL), "
        'or install the embedded one, which needs no account: pip install "nbext[local]"'
    )


@pytest.mark.parametrize(
    ("got", "hint"),
    [("tokn", " Did you mean 'token'?"), ("TOKEN", " Did you mean 'token'?"), ("xyz", "")],
)
def test_the_nearest_allowed_word_is_suggested(got, hint):
    assert did_you_mean(got, ["token", "nft", "transfer"]) == hint


def test_of_a_strangers_text_80_characters_are_compared_with_the_allowed_words():
    word = "t" * 80
    assert did_you_mean(word + "x" * 10_000, [word]) == f" Did you mean {word!r}?"


@pytest.mark.parametrize(
    ("got", "names", "near"),
    [
        ("holder", ["wallet", "holders"], "holders"),
        ("holder", ["wallet", "older"], "older"),
        ("holder", ["wallet", "folded"], "wallet"),
        ("count", ["unit", "balance"], "balance"),
    ],
)
def test_a_name_that_is_spelt_nearly_so_is_nearer_than_one_that_means_the_same(got, names, near):
    assert did_you_mean(got, names) == f" Did you mean {near!r}?"
