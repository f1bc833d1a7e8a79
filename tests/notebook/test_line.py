"""The grammar of options: one for all magics."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbext.errors import UsageError
from nbext.notebook.line import KEY_REFUSED, Grammar, Option, Word, split_line
from nbext.notebook.run.root import MAGICS

GRAMMAR = Grammar(
    "%try",
    "%try [NAME]",
    "Try.",
    (
        Option("--limit", "rows", "integer", "N"),
        Option("--out", "name", "text", "NAME", short="-o"),
        Option("--operator", "join", "text", choices=("AND", "OR")),
        Option("--dry-run", "show"),
    ),
)


def parsed(line):
    args = GRAMMAR.parse(line)
    return [word.text for word in args.words], args.options


def refused(line):
    with pytest.raises(UsageError) as caught:
        GRAMMAR.parse(line)
    return str(caught.value)


def test_words_and_options_stand_in_any_order():
    expected = (["whales", "two"], {"limit": 5, "out": "x", "dry_run": True})
    assert parsed("whales --limit 5 two -o x --dry-run") == expected
    assert parsed("--dry-run -o x --limit=5 whales two") == expected


def test_quotes_are_posix_and_keep_spaces_dashes_and_quotes():
    assert parsed("""'a b' "c \\"d\\"" --out="e f" '--limit' g\\ h""") == (
        ["a b", 'c "d"', "--limit", "g h"],
        {"out": "e f"},
    )


def test_what_follows_two_dashes_is_words():
    assert parsed("-o x -- --limit -o") == (["--limit", "-o"], {"out": "x"})


def test_comments_and_a_final_semicolon_are_no_words():
    assert parsed("whales --limit 5; # --dry-run") == (["whales"], {"limit": 5})
    assert parsed("whales --limit 5 # --dry-run") == (["whales"], {"limit": 5})
    assert parsed("whales --limit 5 ;") == (["whales"], {"limit": 5})
    assert parsed("a#b") == (["a#b"], {})


def test_an_object_on_the_line_is_one_word_with_its_quotes_and_braces():
    line = '{"a": "} #", "b": {"c": [1, {{x}}]}} --limit 3'
    args = GRAMMAR.parse(line)
    assert args.words == [Word('{"a": "} #", "b": {"c": [1, {{x}}]}}', 0, "json")]
    assert args.options == {"limit": 3}


def test_double_braces_are_a_python_expression():
    assert split_line("ethereum {{ few['address'] }} x", "%try") == [
        Word("ethereum", 0),
        Word("few['address']", 9, "python"),
        Word("x", 30),
    ]


def test_an_unknown_option_is_named_with_its_nearest_and_a_caret():
    assert refused("whales --limt 5") == (
        "%try: unknown option '--limt'. Did you mean '--limit'?\n    %try whales --limt 5\n                ^"
    )


def test_an_unknown_option_without_a_near_one_lists_all():
    assert refused("--zzz").splitlines()[0] == (
        "%try: unknown option '--zzz'. Allowed: --limit, --out, --operator, --dry-run, --help."
    )


@pytest.mark.parametrize(
    ("line", "first_line"),
    [
        ("--limit", "%try: --limit needs a value: --limit N."),
        ("--limit --dry-run", "%try: --limit needs a value: --limit N."),
        ("--limit five", "%try: --limit takes a whole number, not 'five'."),
        ("--limit 1.5", "%try: --limit takes a whole number, not '1.5'."),
        ("--limit 1,5", "%try: --limit takes a whole number, not '1,5'."),
        ("--limit 5 --limit 6", "%try: --limit is given twice."),
        ("--dry-run=yes", "%try: --dry-run takes no value."),
        (
            "--operator XOR",
            "%try: --operator: 'XOR' is not allowed. Did you mean 'OR'? Allowed: AND, OR.",
        ),
        ("'open", "%try: the ' at column 1 of the line is not closed: ' is missing."),
        ("{{open", "%try: the {{ at column 1 of the line is not closed: }} is missing."),
    ],
)
def test_a_wrong_option_is_named_with_what_it_takes(line, first_line):
    assert refused(line).splitlines()[0] == first_line


def test_a_negative_number_is_a_word_and_no_option():
    assert parsed("-1 -.5 --limit 5") == (["-1", "-.5"], {"limit": 5})


def test_thousands_separators_are_taken_in_a_whole_number():
    assert parsed("--limit 10,000")[1] == {"limit": 10_000}
    assert parsed("--limit 10_000")[1] == {"limit": 10_000}


def test_choices_are_taken_in_any_case():
    assert parsed("--operator or")[1] == {"operator": "OR"}


@pytest.mark.parametrize(
    "word", ["--api-key=s3cret", "--key", "-key=s3cret", "api_key=s3cret", "--password=s3cret"]
)
def test_a_key_on_a_line_is_refused_and_not_repeated(word):
    assert refused(f"whales {word} s3cret") == f"%try: {KEY_REFUSED}"


@given(st.text(max_size=60))
def test_any_line_is_words_or_a_usage_error(line):
    with contextlib.suppress(UsageError):
        GRAMMAR.parse(line)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
        max_size=5,
    )
)
def test_quoted_words_come_back_as_they_were(texts):
    line = " ".join("'" + text.replace("'", "'\"'\"'") + "'" for text in texts)
    assert [word.text for word in split_line(line + " end", "%try")] == [*texts, "end"]


@pytest.mark.parametrize("grammar", [one for one, _ in MAGICS.values()], ids=MAGICS)
def test_each_magic_has_a_purpose_and_three_examples_and_every_option_explained(grammar):
    assert grammar.purpose.endswith(".")
    assert len(grammar.examples) == 3
    assert all(option.help for option in grammar.options)
    assert all(example.startswith(grammar.magic) for example in grammar.examples)
    assert len(grammar.flags) == sum(len(option.flags) for option in grammar.options) + 2
