"""Completion: inside our cells only, from what is known already."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
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
from nbext.notebook.completion import offers
from nbext.notebook.session import current_session

KEYS = [*CONDITIONS, "all", "any", "not"]
TOP = [*KEYS, "chain", "asOf", "exclude", "orderBy", "columns"]
REQUEST = ["operator", "filters", "fileType", "limit"]


@pytest.fixture
def session(shell):
    """A session that knows what a connection would have taught it."""
    made = current_session()
    made.vocabulary.learn_service(None, {"data": {"chains": [{"chain": "polygon"}]}}, json_schema())
    learn(
        made,
        "tokens",
        symbol=["USDC", "UNI", None],
        address=["0x1", "0x2", "0x3"],
        chain=["ethereum"] * 3,
    )
    learn(made, "nfts", symbol=["UNIPUNK"], address=["0x4"], chain=["ethereum"])
    return made


def learn(session, operation, **columns):
    """Let a session see an answer of one operation."""
    frame = pd.DataFrame(columns)
    frame.attrs["nbext"] = {"operation": operation}
    session.vocabulary.learn_rows(frame)


def offered(session, cell):
    """What is offered where ``|`` stands."""
    before, _, _ = cell.partition("|")
    lines = cell.replace("|", "").split("\n")
    found = offers(session, lines, before.count("\n"), len(before.rpartition("\n")[2]))
    return found and (found.typed, list(found.words))


def quoted(names):
    return [f'"{name}": ' for name in names]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("%%segment_query\n{|", ("", quoted([*TOP, *REQUEST]))),
        ('%%segment_query\n{"|', ("", [*TOP, *REQUEST])),
        ('%%segment_query\n{"to|', ("to", ["token"])),
        (
            '%%segment_query\n{"token": {"|',
            ("", ["token", "chain", "balance", "unit", "heldSince"]),
        ),
        ('%%segment_query\n{"token": [{"token": "UNI"}, {"ba|', ("ba", ["balance"])),
        ('%%segment_query\n{"token": {"balance": {"|', ("", ["min", "max"])),
        ('%%segment_query\n{"not": {"any": [{"|', ("", KEYS)),
        ('%%segment_query\n{"filters": {"tr|', ("tr", ["transfer"])),
        ('%%segment_query\n{"operator": "|', ("", ["AND", "OR"])),
        (
            '%%segment_query\n{"transfer": {"direction": |',
            ("", ['"in"', '"out"', '"any"', '"mint"', '"burn"']),
        ),
        ('%%segment_query\n{"transfer": {"direction": "m|', ("m", ["mint"])),
        ('%%segment_query\n{"token": {"token": "U|', ("U", ["USDC", "UNI"])),
        ('%%segment_query\n{"token": {"chain": "pol|', ("pol", ["polygon", "polygon-zkevm"])),
        ('%%segment_query\n{"token": {"token": "UNI"}|', ("", [])),
        ('%%segment_query\n{"wallet": {"in": {{wha|', ("wha", ["whales"])),
        (
            '%%segment_query\n{"token": {"token": "UNI"}, "orderBy": "|',
            ("", ["-UNI_balance", "UNI_balance", "-address", "address"]),
        ),
        (
            '%%segment_query\n{"nft": {"nft": "BAYC"}, "columns": ["firstSeen"], "orderBy": "-f|',
            ("-f", ["-firstSeen"]),
        ),
        ('%%segment_query\n{"columns": ["f|', ("f", ["firstSeen", "firstTransfer"])),
        (
            '%%segment_query --top 5 --by |\n{"token": {"token": "UNI"}}',
            ("", ["UNI_balance", "address"]),
        ),
        ("%%segment_query --op|", ("--op", ["--operator"])),
        ("%%segment_query --operator |", ("", ["AND", "OR"])),
        ("%token |", ("", ["search", "polygon", *[n for n in chain_names() if n != "polygon"]])),
        ("%token ethereum U|", ("U", ["USDC", "UNI"])),
        ("%token eth U|", ("U", ["USDC", "UNI"])),
        ("%token base U|", ("U", [])),
        ("%nft ethereum U|", ("U", ["UNIPUNK"])),
        ('%%segment_query\n{"nft": {"nft": "U|', ("U", ["UNIPUNK"])),
        ("%nbext retention U|", ("U", ["USDC", "UNI", "UNIPUNK"])),
        ("%token ethereum {{wha|", ("wha", ["whales"])),
        ("%segment wha|", ("wha", ["whales"])),
        ("df = %token eth|", ("eth", ["ethereum"])),
        ("%nft sea|", ("sea", ["search"])),
        ("%nft search punk --chain bas|", ("bas", ["base"])),
        ("%nbext hi|", ("hi", ["history"])),
        ("%nbext set lim|", ("lim", ["limit"])),
        ("%nbext set warm_up |", ("", ["true", "false"])),
        ("%nbext set frame |", ("", ["pandas", "polars", "arrow"])),
        ("%nbext set chain eth|", ("eth", ["ethereum"])),
        ("%nbext set nosuch |", ("", [])),
        ("%nbext unset lim|", ("lim", ["limit"])),
        ("%nbext unset limit |", ("", [])),
        ("%nbext  set  lim|", ("lim", ["limit"])),
        ("%nbext schema tr|", ("tr", ["transfer"])),
        (
            "%nbext overlap UNI --|",
            ("--", ["--share", "--lift", "--out", "--page", "--overwrite", "--help"]),
        ),
        ("%nbext wallet --as-of |", ("", [])),
        ("%nbext wallet UNI --chain bas|", ("bas", ["base"])),
        ("%segment --limit wha|", ("wha", [])),
        ('%segment {"token": {"|', ("", ["token", "chain", "balance", "unit", "heldSince"])),
        (
            "%segment abc --c|",
            ("--c", ["--csv", "--chain", "--columns", "--count", "--card", "--changes"]),
        ),
    ],
)
def test_each_place_offers_what_may_stand_there(session, cell, expected):
    session.names["whales"] = pd.DataFrame({"address": ["0x1"]})
    session.names["whales"].attrs["nbext"] = {}
    assert offered(session, cell) == expected


def test_symbols_are_offered_wherever_the_schema_takes_a_contract(session):
    for name, condition in CONDITIONS.items():
        for field in condition.fields:
            many = "[" * (field.kind == "collections")
            _, words = offered(
                session, f'%%segment_query\n{{"{name}": {{"{field.name}": {many}"|'
            ) or ("", [])
            offers = {
                "token": ["USDC", "UNI"],
                "collection": ["UNIPUNK"],
                "collections": ["UNIPUNK"],
            }
            assert words == offers.get(field.kind, words) != ["x"], (name, field.name)
            if field.kind not in offers:
                assert not {"USDC", "UNIPUNK"} & set(words), (name, field.name)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('{"chain": "polygon", "token": {"token": "U|', ["UNIMATIC"]),
        ('{"chain": "polygon", "token": {"chain": "ethereum", "token": "U|', ["USDC", "UNI"]),
        (
            '{"token": {"chain": "polygon", "token": "UNIMATIC"}, "any": [{"token": {"token": "U|',
            ["USDC", "UNI", "UNIMATIC"],
        ),
    ],
)
def test_symbols_are_those_of_the_chain_that_the_cell_names_around_them(session, cell, expected):
    learn(session, "tokens", symbol=["UNIMATIC"], address=["0x9"], chain=["polygon"])
    assert offered(session, f"%%segment_query\n{cell}") == ("U", expected)


def test_a_tables_columns_are_offered_after_its_dot(shell, session):
    shell.ip.user_ns["whales"] = pd.DataFrame(
        {"address": ["0x1"], "added": [1], "no name": [2], 3: [4]}
    )
    for cell in ('%%segment_query\n{"wallet": {"in": {{whales.ad|', "%token ethereum {{whales.ad|"):
        assert offered(session, cell) == ("whales.ad", ["whales.address", "whales.added"])
    assert offered(session, "%token ethereum {{nothing.|") == ("nothing.", [])


def test_files_of_addresses_are_offered_in_a_list_of_wallets(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lists").mkdir()
    for name in ("allow.csv", "also.parquet", "alone.py", "lists/all.txt"):
        (tmp_path / name).touch()
    assert offered(session, '%%segment_query\n{"wallet": {"in": "@al|') == (
        "@al",
        ["@allow.csv", "@also.parquet"],
    )
    assert offered(session, '%%segment_query\n{"wallet": {"in": ["@lists/|') == (
        "@lists/",
        ["@lists/all.txt"],
    )
    assert offered(session, '%%segment_query\n{"wallet": {"in": "@none/|') == ("@none/", [])
    assert offered(session, '%%segment_query\n{"token": {"token": "@al|') == ("@al", [])


def test_saved_queries_are_offered_after_from(session):
    folder = session.data_dir / "queries"
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.json" for name in ("weekly", "whales")]
    for file in files:
        file.write_text("{}")
    assert offered(session, "%segment --from w|") == ("w", ["weekly", "whales"])
    assert offered(session, "%%segment_query --from wh|") == ("wh", ["whales"])
    for file in files:
        file.unlink()  # the folder is that of all tests


def test_a_service_without_a_schema_has_its_symbols_offered_too(session):
    session.vocabulary.schema = None
    assert offered(session, '%%segment_query\n{"token": {"token": "U|') == ("U", ["USDC", "UNI"])
    assert offered(session, '%%segment_query\n{"collections": {"of": ["U|') == ("U", ["UNIPUNK"])
    assert offered(session, '%%segment_query\n{"token": {"unit": "|') == ("", [])


def test_a_command_with_words_of_its_own_offers_its_own_options(session):
    assert offered(session, "%nbext fetch --contract UNI --con|") == (
        "--con",
        ["--confirmations", "--contract"],
    )


@pytest.mark.parametrize(
    "cell", ["imp|", "x = {'|", "%time to|", "%%time\n{|", "%%bash\n%token |x", "token eth|"]
)
def test_other_cells_are_left_alone(session, cell):
    assert offered(session, cell) is None


@pytest.mark.slow
def test_ipythons_completer_offers_ours_and_nothing_else(shell, session):
    with warnings.catch_warnings(), provisionalcompleter():
        warnings.simplefilter("ignore", DeprecationWarning)
        cell = '%%segment_query\n{"token": {"token": "USDC", "hel'
        found = list(shell.ip.Completer.completions(cell, len(cell)))
        other = list(shell.ip.Completer.completions("impor", 5))
    assert [(cell[one.start : one.end], one.text) for one in found] == [("hel", "heldSince")]
    assert "import" in [one.text for one in other]


def test_each_word_is_offered_with_its_type_and_a_line_of_help(
    shell, session, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("address\n")
    session.settings.set("data_dir", str(tmp_path))
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "loyal.json").write_text("{}")
    shell.ip.user_ns["whales"] = pd.DataFrame({"address": ["0x1"]})
    shell.ip.user_ns["whales"].attrs["nbext"] = {}
    wanted = {
        '%%segment_query\n{"tok': ("token", "condition: Wallets that hold an ERC20 token"),
        '%%segment_query\n{"token": {"heldS': (
            "heldSince",
            "field: Since this time (a date: its 00:00 UTC) the holding never fell below min; witho…",
        ),
        '%%segment_query\n{"token": {"token": "USD': ("USDC", "token: 0x1 on ethereum"),
        '%%segment_query\n{"chain": "polygon-z': ("polygon-zkevm", "chain"),
        '%%segment_query\n{"wallet": {"in": {{wha': ("whales", "variable: DataFrame"),
        '%%segment_query\n{"wallet": {"in": {{whales.ad': ("whales.address", "column: of whales"),
        '%%segment_query\n{"wallet": {"in": "@': ("@mine.csv", "file: a list of wallets"),
        '%%segment_query\n{"token": {"token": "UNI"}, "orderBy": "-': (
            "-UNI_balance",
            "column: the largest first",
        ),
        '%%segment_query\n{"transfer": {"direction": "mi': (
            "mint",
            "value: The wallet received (in), sent (out), either (any), or was minted to or burned …",
        ),
        '%%segment_query --top 5 --by UN|\n{"token": {"token": "UNI"}}': ("UNI_balance", "column"),
        "%%segment_query --from l": ("loyal", "saved query"),
        "%%segment_query --operator O": ("OR", "value: how the conditions combine (default AND)"),
        "%token sea": ("search", "command: search by name or symbol"),
        "%token ethereum US": ("USDC", "token: 0x1 on ethereum"),
        "%nft eth": ("ethereum", "chain"),
        "%segment wha": ("whales", "variable: DataFrame"),
        "%nbext schema tok": ("token", "condition: Wallets that hold an ERC20 token"),
        "%nbext overlap UNIP": ("UNIPUNK", "collection: 0x4 on ethereum"),
        "%nbext unset lim": (
            "limit",
            "setting: Rows that a segment returns when no limit is given",
        ),
        "%nbext ingest --ch": (
            "--chain",
            "option: the chain of files that do not name one: ethereum, 10, eip155:137, ...",
        ),
        "%segment abc --ou": ("--out", "option: store the result in this variable"),
        "%nbext histor": (
            "history",
            "command: list this session's queries, on a --card to edit them; with a number, run that …",
        ),
        "%nbext set frame pol": ("polars", "value: Library of the tables that calls return"),
    }
    with warnings.catch_warnings(), provisionalcompleter():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = {
            cell: next(
                iter(shell.ip.Completer.completions(cell.replace("|", ""), (cell + "|").index("|")))
            )
            for cell in wanted
        }
    assert {cell: (one.text, one.type) for cell, one in found.items()} == wanted


def of_many_wallets(many):
    """An unfinished cell that has so many wallets before the place of the cursor."""
    wallets = ", ".join(['"0x' + "a" * 40 + '"'] * many)
    return f'%%segment_query\n{{"wallet": {{"in": [{wallets}]}}, "token": {{"|'


def test_a_completion_in_a_cell_ten_times_as_long_makes_no_more_calls_than_in_proportion(session):
    def calls(many):
        made, cell = itertools.count(), of_many_wallets(many)
        sys.setprofile(lambda *_: next(made))
        try:
            assert offered(session, cell) is not None
        finally:
            sys.setprofile(None)
        return next(made)

    # Where each place of the text is read anew it makes a hundred times as many.
    assert calls(2_000) < 15 * calls(200)


@pytest.mark.load
def test_a_completion_in_a_cell_twenty_times_as_long_takes_no_more_than_in_proportion(session):
    """A pattern that tries every place of the text is one call, however long it takes."""

    def seconds(many):
        cell = of_many_wallets(many)
        start = time.thread_time()
        assert offered(session, cell) is not None
        return time.thread_time() - start

    # Of the processor, which others that run beside it do not lengthen. Each place anew: four hundred times.
    assert min(seconds(10_000) for _ in range(5)) < 90 * min(seconds(500) for _ in range(5))


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
    from nbext.notebook.schema import Vocabulary

    made = Vocabulary()
    made.learn_service(None, {}, json_schema())
    return made


@pytest.mark.parametrize(
    "symbol", ["UX\n!id", "UX\u202e", 'UX"}', "UX{{name}}", "UX\\n", "UX\x1b[31m", "UX" * 200]
)
@pytest.mark.parametrize(
    "cell", ['%%segment_query\n{"token": {"token": "UX|', "%token ethereum UX|"]
)
def test_a_strangers_symbol_that_would_break_out_of_its_place_is_not_offered(session, cell, symbol):
    learn(session, "tokens", symbol=[symbol, "UXD"], address=["0x4", "0x5"], chain=["ethereum"] * 2)
    assert offered(session, cell) == ("UX", ["UXD"])


def test_symbols_of_our_service_are_offered_before_any_answer_and_without_waiting(shell):
    shell.run("%nbext connect")
    vocabulary = current_session().vocabulary
    assert vocabulary.symbols("token", "base", "no such symbol") == {}
    vocabulary.fetch("token", "ethereum")
    vocabulary.fetch("collection", "ethereum")
    assert offered(current_session(), "%token ethereum UN|") == ("UN", ["UNI"])
    assert offered(current_session(), "%nft ethereum BAY|") == ("BAY", ["BAYC"])
    assert offered(current_session(), "%nft ethereum UN|")[1] == []


def test_a_symbol_that_is_not_known_yet_is_there_for_the_next_key(shell):
    shell.run("%nbext connect")
    assert offered(current_session(), "%token ethereum LIN|") == ("LIN", [])
    until = time.monotonic() + 20
    while not offered(current_session(), "%token ethereum LIN|")[1] and time.monotonic() < until:
        time.sleep(0.05)
    assert offered(current_session(), "%token ethereum LIN|") == ("LIN", ["LINK"])


def test_spam_is_not_offered(session):
    learn(
        session,
        "search_nfts",
        symbol=["UNISPAM"],
        address=["0x9"],
        tokenType=["ERC20"],
        possibleSpam=[True],
    )
    assert offered(session, "%token ethereum UNIS|") == ("UNIS", [])


def test_where_nothing_fits_ipythons_magics_are_not_offered_instead(shell, session):
    with warnings.catch_warnings(), provisionalcompleter():
        warnings.simplefilter("ignore", DeprecationWarning)
        for cell in (
            '%%segment_query\n{"token": {"token": "UNI", "zz',
            '%%segment_query\n{"token": {"token": "lo',
        ):
            found = list(shell.ip.Completer.completions(cell, len(cell)))
            assert [(cell[one.start : one.end], one.text) for one in found] == [
                (cell[-2:], cell[-2:])
            ]


LISTS = """
import sys
from pathlib import Path
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.instance().run_line_magic("load_ext", "nbext")
from nbext.notebook.completion import offers
from nbext.notebook.session import current_session
Path("allow.csv").touch()
lines = ["%%segment_query", '{"wallet": {"in": "@al']
print(dict(offers(current_session(), lines, 1, len(lines[1])).words), "pandas" in sys.modules)
"""


def test_a_file_of_wallets_is_offered_without_pandas(home):
    # Imported between two cells it takes the kernel for a terminal, and cuts the columns of every table.
    done = subprocess.run(
        [sys.executable, "-c", LISTS],
        capture_output=True,
        text=True,
        check=True,
        cwd=home,
        env={**os.environ, "NBEXT_WARM_UP": "false"},
    )
    assert done.stdout.splitlines()[-1] == "{'@allow.csv': 'file: a list of wallets'} False"
