"""Completion: inside our cells only, from what is known already."""

from __future__ import annotations

import socket
import time
import warnings

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.completer import provisionalcompleter

from nbext.core.chains import chain_names
from nbext.language.conditions import CONDITIONS
from nbext.language.json_schema import json_schema
from nbext.notebook.cell.json_source import cursor_of
from nbext.notebook.completion.matcher import offers
from nbext.notebook.session import current

KEYS = [*CONDITIONS, "all", "any", "not"]
TOP = [*KEYS, "chain", "asOf", "exclude"]
REQUEST = ["operator", "filters", "fileType", "limit"]


@pytest.fixture
def session(shell):
    """A session that knows what a connection would have taught it."""
    made = current()
    made.vocabulary.learn_service({"data": {"chains": [{"chain": "polygon"}]}}, json_schema())
    made.vocabulary.learn_rows(pd.DataFrame({"symbol": ["USDC", "UNI", None], "address": ["0x1", "0x2", "0x3"]}))
    return made


def offered(session, cell):
    """What is offered where ``|`` stands."""
    before, _, _ = cell.partition("|")
    lines = cell.replace("|", "").split("\n")
    return offers(session, lines, before.count("\n"), len(before.rpartition("\n")[2]))


def quoted(names):
    return [f'"{name}": ' for name in names]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("%%segment_query\n{|", ("", quoted([*TOP, *REQUEST]))),
        ('%%segment_query\n{"|', ("", [*TOP, *REQUEST])),
        ('%%segment_query\n{"to|', ("to", ["token"])),
        ('%%segment_query\n{"token": {"|', ("", ["token", "chain", "balance", "unit", "heldSince"])),
        ('%%segment_query\n{"token": [{"token": "UNI"}, {"ba|', ("ba", ["balance"])),
        ('%%segment_query\n{"token": {"balance": {"|', ("", ["min", "max"])),
        ('%%segment_query\n{"not": {"any": [{"|', ("", KEYS)),
        ('%%segment_query\n{"filters": {"tr|', ("tr", ["transfer"])),
        ('%%segment_query\n{"operator": "|', ("", ["AND", "OR"])),
        ('%%segment_query\n{"transfer": {"direction": |', ("", ['"in"', '"out"', '"any"', '"mint"', '"burn"'])),
        ('%%segment_query\n{"transfer": {"direction": "m|', ("m", ["mint"])),
        ('%%segment_query\n{"token": {"token": "U|', ("U", ["USDC", "UNI"])),
        ('%%segment_query\n{"token": {"chain": "pol|', ("pol", ["polygon", "polygon-zkevm"])),
        ('%%segment_query\n{"token": {"token": "UNI"}|', ("", [])),
        ('%%segment_query\n{"wallet": {"in": {{wha|', ("wha", ["whales"])),
        ("%%segment_query --op|", ("--op", ["--operator"])),
        ("%%segment_query --operator |", ("", ["AND", "OR"])),
        ("%token |", ("", ["polygon", *[n for n in chain_names() if n != "polygon"]])),
        ("%token ethereum U|", ("U", ["USDC", "UNI"])),
        ("%token ethereum wha|", ("wha", ["whales"])),
        ("df = %token eth|", ("eth", ["ethereum"])),
        ("%nft sea|", ("sea", ["search"])),
        ("%nft search punk --chain bas|", ("bas", ["base"])),
        ("%nbext hi|", ("hi", ["history"])),
        ("%nbext set lim|", ("lim", ["limit"])),
        ("%nbext unset lim|", ("lim", ["limit"])),
        ("%nbext schema tr|", ("tr", ["transfer"])),
        ('%segment {"token": {"|', ("", ["token", "chain", "balance", "unit", "heldSince"])),
        ("%segment abc --c|", ("--c", ["--csv", "--count", "--card"])),
    ],
)  # fmt: skip
def test_each_place_offers_what_may_stand_there(session, cell, expected):
    session.names["whales"] = pd.DataFrame({"address": ["0x1"]})
    assert offered(session, cell) == expected


def test_symbols_are_offered_wherever_the_schema_takes_a_contract(session):
    for name, condition in CONDITIONS.items():
        for field in condition.fields:
            many = "[" * (field.kind == "collections")
            _, words = offered(session, f'%%segment_query\n{{"{name}": {{"{field.name}": {many}"|') or ("", [])
            is_contract = field.kind in ("token", "collection", "collections")
            assert (words == ["USDC", "UNI"]) == is_contract, (name, field.name)


def test_a_service_without_a_schema_has_its_symbols_offered_too(session):
    session.vocabulary.schema = None
    assert offered(session, '%%segment_query\n{"token": {"token": "U|') == ("U", ["USDC", "UNI"])
    assert offered(session, '%%segment_query\n{"collections": {"of": ["U|') == ("U", ["USDC", "UNI"])
    assert offered(session, '%%segment_query\n{"token": {"unit": "|') == ("", [])


@pytest.mark.parametrize("cell", ["imp|", "x = {'|", "%time to|", "%%time\n{|", "%%bash\n%token |x", "token eth|"])
def test_other_cells_are_left_alone(session, cell):
    assert offered(session, cell) is None


def test_ipythons_completer_offers_ours_and_nothing_else(shell, session):
    with warnings.catch_warnings(), provisionalcompleter():
        warnings.simplefilter("ignore", DeprecationWarning)
        cell = '%%segment_query\n{"token": {"token": "USDC", "hel'
        found = list(shell.ip.Completer.completions(cell, len(cell)))
        other = list(shell.ip.Completer.completions("impor", 5))
    assert [(cell[one.start : one.end], one.text) for one in found] == [("hel", "heldSince")]
    assert "import" in [one.text for one in other]


def test_a_completion_takes_less_than_20_ms_in_a_long_cell(session):
    long = '%%segment_query\n{"wallet": {"in": [' + ", ".join(['"0x' + "a" * 40 + '"'] * 1_000) + ']}, "token": {"|'
    best = min(_seconds(session, long) for _ in range(5))
    assert best < 0.02


def _seconds(session, cell):
    start = time.perf_counter()
    assert offered(session, cell) is not None
    return time.perf_counter() - start


def test_completing_never_opens_a_connection(session, monkeypatch):
    def refuse(*_):
        raise AssertionError("completion opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert offered(session, '%%segment_query\n{"token": {"token": "U|') == ("U", ["USDC", "UNI"])


@settings(max_examples=300)
@given(st.text(alphabet='{}[]",:\\ \nab%"', max_size=60))
def test_a_cursor_is_found_in_any_text(text):
    cursor = cursor_of(text)
    assert cursor.place in ("key", "value", "python", "nowhere")
    assert text.endswith(cursor.typed)


@settings(max_examples=150)
@given(st.text(max_size=50), st.integers(-2, 60), st.integers(-2, 60))
def test_no_text_and_no_place_makes_completion_fail(text, line, column):
    class Bare:
        names: dict[str, object] = {}  # noqa: RUF012
        vocabulary = _vocabulary()
        settings = None

    for head in ("%%segment_query\n", "%token ", "%nft ", ""):
        offers(Bare, (head + text).split("\n"), line, column)


def _vocabulary():
    from nbext.notebook.session import Vocabulary

    made = Vocabulary()
    made.learn_service({}, json_schema())
    return made


@pytest.mark.parametrize("symbol", ["UX\n!id", "UX\u202e", 'UX"}', "UX{{name}}", "UX\\n", "UX\x1b[31m", "UX" * 200])
@pytest.mark.parametrize("cell", ['%%segment_query\n{"token": {"token": "UX|', "%token ethereum UX|"])
def test_a_strangers_symbol_that_would_break_out_of_its_place_is_not_offered(session, cell, symbol):
    session.vocabulary.learn_rows(pd.DataFrame({"symbol": [symbol, "UXD"], "address": ["0x4", "0x5"]}))
    assert offered(session, cell) == ("UX", ["UXD"])
