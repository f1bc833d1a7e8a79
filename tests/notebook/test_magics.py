"""The magics on the embedded service with its sample: one call each, and the result handed over."""

from __future__ import annotations

import asyncio
import json
import time

import pandas as pd
import pyarrow as pa
import pytest

from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import html
from nbext.errors import NotFound, UsageError
from nbext.notebook.cell.body import laid_out
from nbext.notebook.results.tables import as_html, as_text
from nbext.notebook.run.root import COMMANDS, MAGICS
from nbext.notebook.session import current_session
from nbext.settings import SETTINGS, Settings
from tests.notebook.slow_service import slow_service

USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
UNI = "0x1f9840a85d5af5bf1d1762f925bdaddc4201f984"
HOLDERS = '{"token": {"token": "UNI", "balance": {"min": "1000"}}}'


@pytest.fixture
def asked(shell):
    """A shell that is connected already, so that a test sees only what its own cells print."""
    shell.run("%nbext connect")
    return shell


def test_the_first_call_says_once_whose_data_answers(shell):
    first = shell.run("%token ethereum USDC").printed
    assert first.startswith("nbext: synthetic sample; ethereum to block ")
    assert shell.run("%token ethereum UNI").printed.startswith("nbext") is False


def test_token_makes_one_row_for_each_address_in_the_order_asked(asked):
    frame = asked.value(f"%token ethereum UNI {USDC}")
    assert type(frame) is pd.DataFrame
    assert frame[["chain", "address", "symbol", "decimals"]].to_dict("records") == [
        {"chain": "ethereum", "address": UNI, "symbol": "UNI", "decimals": 18},
        {"chain": "ethereum", "address": USDC, "symbol": "USDC", "decimals": 6},
    ]


def test_addresses_come_out_of_variables_columns_and_expressions(asked):
    asked.run(f"few = ['{UNI}', '{USDC}']\nframe = %token eth UNI USDC\none = few[1]")
    for words in (
        "{{few}}",
        "{{frame['address']}}",
        "{{few[0]}} {{one}}",
        "{{few[:1]}} {{ few[1] }}",
    ):
        assert list(asked.value(f"%token ethereum {words}")["address"]) == [UNI, USDC]
    assert list(asked.value("%token {{'ethereum'}} {{few}}")["symbol"]) == ["UNI", "USDC"]


def test_a_word_without_braces_is_a_symbol_whatever_variables_there_are(asked):
    asked.run(f"UNI, few = ['{USDC}'], ['{USDC}']")
    assert list(asked.value("%token ethereum UNI")["address"]) == [UNI]
    assert list(asked.value("%token ethereum {{UNI}}")["address"]) == [USDC]
    assert asked.error("%token ethereum few") == (
        "NotFound: The service answered 404: The data has no token with the symbol 'few' on ethereum. "
        "For the addresses in your variable, use braces: %token ethereum {{few}}"
    )


def test_a_table_on_the_line_means_its_segment(asked):
    asked.run(f"%%segment_query whales --limit 3\n{HOLDERS}")
    segment = asked.ip.user_ns["whales"].attrs["nbext"]["segment_id"]
    assert list(asked.value("%segment whales")["id"]) == [segment]
    assert asked.value("%segment {{whales}} --csv").equals(asked.ip.user_ns["whales"])
    asked.run("import pandas\nothers = pandas.DataFrame({'address': []})")
    assert asked.error("%segment others") == (
        "ValidationError: id: The table does not say which segment it is from. Give the segment's id."
    )


@pytest.mark.parametrize(
    ("setup", "cell", "message"),
    [
        (
            "bad = [1, 2]",
            "%token ethereum {{bad}}",
            "bad contains int values, not addresses. An address is a string of "
            "0x and 40 hex digits.",
        ),
        ("bad = []", "%nft ethereum {{bad}}", "bad is empty. Give at least one address."),
        ("", "%token ethereum {{nothing}}", "'nothing' is not defined in this notebook."),
    ],
)
def test_a_variable_that_holds_no_addresses_is_refused(asked, setup, cell, message):
    asked.run(setup)
    assert message in asked.error(cell)


def test_ipythons_own_expansion_is_off(asked):
    asked.run("USDC, x = 'UNI', 'UNI'")
    assert "the symbol '$x'" in asked.error("%token ethereum '$x'")
    assert "the symbol '{x}'" in asked.error("%token ethereum '{x}'")


def test_nft_reads_collections_and_searches_them(asked):
    assert list(asked.value("%nft ethereum BAYC")["symbol"]) == ["BAYC"]
    found = asked.value("%nft search bored ape --limit 3")
    assert found["name"].str.contains("Ape").all()
    assert list(
        asked.value('%nft search "USD" --type token --chain polygon --limit 1')["chain"]
    ) == ["polygon"]


def test_a_query_is_stored_under_its_name_and_says_so(asked):
    ran = asked.run(f"%%segment_query whales --limit 5\n{HOLDERS}")
    assert ran.value is None
    whales = asked.ip.user_ns["whales"]
    assert type(whales) is pd.DataFrame
    assert list(whales.columns) == ["address", "UNI_balance", "UNI_balance_raw"]
    matched = whales.attrs["nbext"]["matched"]
    assert ran.printed == (
        f"5 of {matched:,} wallets; --limit 0 counts, --all fetches\nwhales = 5 rows, 3 columns\n"
    )
    assert len(asked.value(f"%%segment_query --all\n{HOLDERS}")) == matched
    assert asked.value(f"%%segment_query --limit 0\n{HOLDERS}") == matched
    assert asked.value(f"%%segment_query --count\n{HOLDERS}") == matched
    assert asked.run(f"%%segment_query n --count\n{HOLDERS}").printed == f"n = {matched}\n"
    assert asked.ip.user_ns["n"] == matched


def test_a_count_says_what_a_query_says(asked):
    window = '{"transfer": {"token": "UNI", "before": "2001-01-01"}}'
    for options in ("--count", "--limit 5"):
        ran = asked.run(f"%%segment_query {options}\n{window}")
        assert "note: /filters/transfer: no block of the data is in this window." in ran.printed


def test_the_largest_holders_are_one_cell(asked):
    whole = asked.value('%%segment_query --all\n{"token": {"token": "UNI"}}')
    wanted = whole.iloc[whole["UNI_balance"].map(int).argsort()[::-1][:10]]["address"].tolist()
    top = asked.value('%%segment_query --top 10 --by UNI_balance\n{"token": {"token": "UNI"}}')
    assert top["address"].tolist() == wanted
    assert (
        asked.value('%segment {"token": {"token": "UNI"}} --top 10 --by UNI_balance')[
            "address"
        ].tolist()
        == wanted
    )
    assert top.attrs["nbext"]["filters"]["orderBy"] == "-UNI_balance"
    alone = asked.run('%segment {"token": {"token": "UNI"}} --top 10 -o alone')
    assert "10 of 1,002 wallets, those with the largest amount; a larger --top" in alone.printed
    alone = asked.ip.user_ns["alone"]
    assert alone["address"].tolist() == wanted
    assert list(alone) == ["address", "UNI_balance", "UNI_share", "UNI_balance_raw"]
    two = '%segment {"token": [{"token": "UNI"}, {"token": "LINK"}]} --top 10'
    assert asked.error(two).startswith(
        "InvalidSegment: /filters/orderBy: The rows have 2 amounts. Allowed: address, UNI_balance, UNI_balance_raw, "
        "LINK_balance, LINK_balance_raw."
    )
    smallest = '%segment {"token": {"token": "UNI"}, "orderBy": "UNI_balance"} --top 10'
    assert '--top on the line contradicts "orderBy" in the cell' in asked.error(smallest)


@pytest.mark.slow
def test_a_notebook_is_pinned_to_a_time_by_one_setting(asked):
    then = asked.value('%segment {"token": {"token": "UNI"}} --all --as-of 24000000')
    asked.run("%nbext set as_of 24,000,000")
    try:
        now = asked.value('%segment {"token": {"token": "UNI"}} --all')
        assert now.attrs["nbext"]["as_of"] == {"block": 24_000_000, "timestamp": None}
        assert now.equals(then)
        assert asked.value('%segment {"token": {"token": "UNI"}} --count') == len(then)
        wallet = now["address"][0]
        held = asked.value(f"%nbext wallet {wallet} --chain ethereum")
        assert held.attrs["nbext"]["as_of"]["block"] == 24_000_000
        asked.run("import nbext")
        python = asked.value(
            "nbext.connect().execute_segment({'token': {'token': 'UNI'}}, limit=None)"
        )
        assert python.equals(then)
        assert "as of     24,000,000" in asked.run("%nbext status").printed
        # What a question says itself counts.
        later = asked.value('%segment {"token": {"token": "UNI"}} --all --as-of 24136000')
        assert len(later) == 1_002
    finally:
        asked.run("%nbext unset as_of")
    assert asked.value('%segment {"token": {"token": "UNI"}} --count') == 1_002


def test_what_is_no_time_pins_nothing(asked):
    assert asked.error("%nbext set as_of nonsense") == (
        'ConfigError: as_of (argument): \'nonsense\' is not a time such as "30d" or "2025-01-31", or a block.'
    )
    assert "as of" not in asked.run("%nbext status").printed


def test_history_and_a_saved_query_have_the_time_that_the_notebook_was_pinned_to(
    asked, monkeypatch, tmp_path
):
    monkeypatch.setattr(type(current_session()), "data_dir", tmp_path)
    asked.run("%nbext set as_of 24,000,000")
    try:
        then = asked.value('%segment {"token": {"token": "UNI"}} --limit 5')
        later = asked.value(
            '%segment {"token": {"token": "UNI"}, "asOf": 24000001} --limit 5 --bg'
        ).result()
        asked.run("%nbext save pinned 1")
    finally:
        asked.run("%nbext unset as_of")
    filters = map(json.loads, asked.value("%nbext history")["filters"])
    uni = {"token": {"token": "UNI"}}
    assert list(filters) == [{"asOf": 24_000_000, **uni}, {**uni, "asOf": 24_000_001}]
    for again in ("%nbext history 1", "%segment --from pinned"):
        found = asked.value(again)
        pd.testing.assert_frame_equal(found, then)
        assert found.attrs["nbext"]["as_of"]["block"] == 24_000_000
    assert later.attrs["nbext"]["as_of"]["block"] == 24_000_001
    # Nobody was pinned.
    asked.run('%segment {"token": {"token": "UNI"}} --limit 5')
    assert json.loads(asked.value("%nbext history")["filters"].iloc[-1]) == uni


def test_wallets_are_left_out_on_the_line(asked):
    whole = asked.value('%segment {"token": {"token": "UNI"}} --all')
    without = asked.value(
        f'%segment {{"token": {{"token": "UNI"}}}} --all --exclude burn,{whole["address"][0]}'
    )
    assert without["address"].tolist() == whole["address"].tolist()[1:]
    # As people write a list: what stands around a comma is no part of a word.
    spaced = f'"burn , {whole["address"][0]}" --columns "share, transfers"'
    both = asked.value(f'%segment {{"token": {{"token": "UNI"}}}} --all --exclude {spaced}')
    assert both["address"].equals(without["address"])
    assert {"UNI_share", "transfers"} <= {*both.columns}


def test_a_file_of_wallets_is_left_out_on_the_line(asked, tmp_path):
    whole = asked.value('%segment {"token": {"token": "UNI"}} --all')
    whole.head(5).to_csv(tmp_path / "known.csv")
    count = f'%segment {{"token": {{"token": "UNI"}}}} --count --exclude "@{tmp_path}/known.csv"'
    assert asked.value(count) == len(whole) - 5


def test_nobody_is_left_out_where_an_empty_list_is_on_the_line(asked):
    bayc = '{"nft": {"nft": "BAYC"}}'
    everybody = asked.value(f'%segment {{"filters": {bayc}, "limit": "all"}} --exclude []')
    assert len(everybody) == 1 + asked.value(f"%segment {bayc} --count")
    assert "0x000000000000000000000000000000000000dead" in set(everybody["address"])


def test_no_limit_in_a_cell_is_none_in_python_and_means_all(asked):
    asked.run("%nbext set limit 3")
    asked.run("filters = {'nft': {'nft': 'BAYC'}}\nrequest = {'filters': filters, 'limit': None}")
    asked.run("import nbext\nrows = nbext.connect().execute_segment(filters, limit=None)")
    for cell in ("{{request}}", '{"filters": {{filters}}, "limit": null}'):
        assert asked.value(f"%segment {cell}").equals(asked.ip.user_ns["rows"])
    assert len(asked.ip.user_ns["rows"]) == 202
    assert len(asked.value("%segment {{filters}}")) == 3
    asked.run("%nbext unset limit")


def test_a_block_that_reads_as_a_day_is_said_to_be_a_block(asked):
    active = '{"activity": {"last": {"after": 20250601}}}'
    assert asked.run(f"%segment {active} --count -o number").printed.splitlines()[0] == (
        "note: /filters/activity/last/after: 20250601 is a block. For the day write '2025-06-01'."
    )
    error = asked.error('%segment {"token": {"token": "UNI"}} --as-of 20250601')
    assert error.endswith("For the day write '2025-06-01'.")
    assert error.startswith("InvalidSegment: /filters/asOf: block 20,250,601 is before the start")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--by UNI_balance", "--by needs --top: --top 100 --by UNI_balance"),
        ("--top 5 --by UNI_balance --limit 5", "Use --limit or --top, not both."),
        (
            "--top 5 --by -UNI_balance",
            "--by -UNI_balance: --top returns the rows with the largest values. Write --by UNI_balance. "
            'For the smallest, write "orderBy": "UNI_balance" beside the conditions, and --limit 5.',
        ),
        (
            "--top 0 --by UNI_balance",
            "--top: 0 is not a limit. Write a whole number from 1 to 10,000,000.",
        ),
        (
            "--top 5 --by UNI_balanc",
            "The rows have no column 'UNI_balanc'. Did you mean 'UNI_balance'?",
        ),
        (
            "--top 5 --by firstSeen",
            'The rows have no column \'firstSeen\'. Add it to "columns": ["firstSeen"].',
        ),
    ],
)
def test_what_cannot_be_ranked_by_is_said(asked, options, message):
    assert message in asked.error(f'%%segment_query {options}\n{{"token": {{"token": "UNI"}}}}')


def test_an_error_leaves_the_old_value(asked):
    asked.run("whales = 'as it was'")
    asked.error('%%segment_query whales\n{"token": {"token": "NOSUCH"}}')
    asked.error("%token ethereum NOSUCH -o whales")
    assert asked.ip.user_ns["whales"] == "as it was"


def test_a_whole_request_says_the_same_as_options_do(asked):
    request = {
        "operator": "OR",
        "limit": 3,
        "fileType": "csv",
        "filters": {"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}},
    }
    whole = asked.value(f"%%segment_query\n{json.dumps(request)}")
    options = asked.value(
        f"%%segment_query --operator or --limit 3 --type csv\n{json.dumps(request['filters'])}"
    )
    pd.testing.assert_frame_equal(whole, options)
    assert whole.attrs["nbext"]["operator"] == "OR"
    # In any case, as on the line and in Python; and the history has the word as it is sent.
    spelled = asked.value(
        f"%%segment_query\n{json.dumps({**request, 'operator': 'or', 'fileType': 'CSV'})}"
    )
    pd.testing.assert_frame_equal(spelled, whole)
    assert asked.value("%nbext history")["operator"].tolist()[-1] == "OR"
    both = asked.error(f"%%segment_query --operator AND\n{json.dumps(request)}")
    assert (
        both == "UsageError: --operator AND on the line contradicts OR in the cell. Write it once."
    )


def test_python_values_stand_in_a_cell(asked):
    asked.run(
        "from decimal import Decimal\nsmallest = Decimal('1000.5')\nasset = 'UNI'\nwallets = None"
    )
    asked.run(
        '%%segment_query a\n{"token": {"token": {{asset}}, "balance": {"min": {{smallest}}}}}'
    )
    asked.run('%%segment_query b\n{"token": {"token": "UNI", "balance": {"min": "1000.5"}}}')
    pd.testing.assert_frame_equal(asked.ip.user_ns["a"], asked.ip.user_ns["b"])
    few = asked.value('%%segment_query --limit 9\n{"wallet": {"in": {{a["address"].head(4)}}}}')
    assert list(few["address"]) == list(asked.ip.user_ns["a"]["address"].head(4))


def test_a_segment_is_read_and_exported_by_its_id(asked):
    asked.run(f"%%segment_query whales --limit 5\n{HOLDERS}")
    asked.run("id_ = whales.attrs['nbext']['segment_id']")
    row = asked.value("%segment {{id_}}")
    assert list(row["status"]) == ["completed"]
    whales = asked.ip.user_ns["whales"]
    for way in ("--json", "--csv"):
        assert asked.run(f"%segment {{{{id_}}}} {way} -o rows").error is None
        pd.testing.assert_frame_equal(asked.ip.user_ns["rows"], whales, check_dtype=True)
    assert isinstance(asked.run("%segment sg_nosuch").error, NotFound)
    assert asked.error("%segment {{id_}} --json --csv") == (
        "UsageError: %segment: use --json or --csv, not both."
    )


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
@pytest.mark.parametrize("way", ["--json", "--csv"])
def test_an_export_goes_straight_to_a_file(asked, tmp_path, way, ending):
    asked.run(f"%%segment_query whales --limit 5\n{HOLDERS}")
    asked.run("id_ = whales.attrs['nbext']['segment_id']")
    path = tmp_path / f"rows{ending}"
    ran = asked.run(f"%segment {{{{id_}}}} {way} --to {path}")
    assert ran.printed == f"5 of 262 wallets\n{path}: 5 rows, {path.stat().st_size:,} bytes\n"
    again = asked.error(f"%segment {{{{id_}}}} {way} --to {path}")
    assert again.endswith("the file exists. Add --overwrite (overwrite=True) to replace it.")
    both = asked.run(f"%segment {{{{id_}}}} {way} --to {path} --overwrite -o rows")
    assert both.printed.endswith("rows = 5 rows, 3 columns\n")


def test_a_place_inside_of_a_setting_is_set_as_an_error_shows_it(asked):
    asked.run('%nbext set remote.paths.rows = "data.owners"')
    asked.run("%nbext set remote.paths.id job.handle")
    assert current_session().settings["remote"] == {
        "paths": {"rows": "data.owners", "id": "job.handle"}
    }


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (
            "set remote.pathz.rows x",
            "remote.pathz.rows is not a setting. Did you mean 'paths'? Allowed: paths, states, "
            "paging, columns, types, idempotent, profile, segment, export, search, token, nft, "
            "signup.",
        ),
        (
            "set remote.paths.row x",
            "remote.paths.row is not a setting. Did you mean 'rows'? Allowed: rows, id, status, "
            "next, error, total, url, poll.",
        ),
        (
            "set remote.types.n bool",
            "remote.types.n: 'bool' is not allowed. Did you mean 'boolean'? Allowed: string, "
            "integer, uint256, number, boolean, object.",
        ),
        (
            "set remote.paths x",
            'remote.paths is a table, such as remote.paths.rows = "data.items".',
        ),
        (
            "set remote dun",
            "remote.profile: 'dun' is not allowed. Did you mean 'dune'? Allowed: none, dune, "
            "covalent, alchemy, moralis, blockscout, etherscan, opensea, graphql, jsonapi.",
        ),
        ("set limit.rows 5", "limit is a single value: it has no entry 'rows'."),
        (
            "set base_url ftp://example.org",
            "base_url 'ftp://example.org' is not an address. "
            "Write one such as https://api.example.com or http://127.0.0.1:8000.",
        ),
        (
            "unset limt",
            f"Unknown setting 'limt'. Did you mean 'limit'? Allowed: {', '.join(Settings().all())}.",
        ),
        (
            "unset remote.paths.ids",
            "remote.paths.ids is not set in this session. Did you mean 'remote.paths.id'? "
            "Set here: remote.paths.id.",
        ),
        ("unset limit.x", "limit.x is not set in this session. No entry of limit is set."),
    ],
)
def test_a_setting_that_cannot_be_is_refused_at_once(shell, line, error):
    shell.run("%nbext set remote.paths.id job.handle")
    assert shell.error(f"%nbext {line}") == f"ConfigError: {error}"
    assert current_session().settings.arguments == {"remote": {"paths": {"id": "job.handle"}}}


def test_the_last_answer_is_a_remotes(asked, shell):
    asked.run("%token ethereum USDC")
    assert asked.error("%nbext last-answer") == (
        "UsageError: %nbext last-answer: the answers of nbext's own service have one reading."
    )


def test_without_an_answer_there_is_no_last_one(shell):
    assert shell.error("%nbext last-answer --values") == (
        "UsageError: %nbext last-answer: no remote service has answered yet."
    )


def test_an_option_of_another_command_is_refused_with_the_command_that_takes_it(shell):
    flags = {option.flags[0] for one in COMMANDS.values() for option in one.options}
    said = {flag: shell.error(f"%nbext status {flag}") for flag in flags}
    assert {
        flag: error.removeprefix(f"UsageError: %nbext status: unknown option {flag!r}. It is for ")
        for flag, error in said.items()
    } == {
        "--out": "config, history, schema, overlap, funnel, concentration, trend, retention, wallet.",
        "--page": "overlap, funnel, concentration, trend, retention, wallet.",
        "--overwrite": "overlap, funnel, concentration, trend, retention, wallet.",
        "--agent": "history.",
        "--card": "history.",
        "--share": "overlap.",
        "--every": "trend.",
        "--amounts": "trend.",
        "--no-amounts": "trend.",
        "--since": "trend, retention.",
        "--by": "retention.",
        "--cohort": "retention.",
        "--lift": "overlap.",
        "--as-of": "wallet.",
        "--chain": "wallet.",
        "--keep": "login.",
        "--values": "last-answer.",
    }


def test_what_was_set_is_taken_back_and_what_holds_then_is_said(asked, monkeypatch):
    asked.run("%nbext set limit 50")
    assert asked.run("%nbext unset limit").printed == "limit = 1000 (default)\n"
    monkeypatch.setenv("NBEXT_LIMIT", "7")
    asked.run("%nbext set limit 50")
    assert asked.run("%nbext unset limit").printed == "limit = 7 (NBEXT_LIMIT)\n"
    assert asked.run("%nbext unset limit").printed == "limit = 7 (NBEXT_LIMIT)\n"
    before = current_session().client
    asked.run("%nbext set read_timeout 20")
    assert asked.run("%nbext unset read_timeout").printed == "read_timeout = 30.0 (default)\n"
    assert current_session().client is not before
    assert asked.error("%nbext unset") == (
        "UsageError: %nbext unset takes the name of a setting, such as `%nbext unset limit`."
    )


def test_a_place_inside_of_a_setting_is_taken_back_to_what_the_file_says(shell, tmp_path):
    file = tmp_path / "pyproject.toml"
    file.write_text('[tool.nbext.remote.paths]\nid = "job.id"\n')
    settings = current_session().settings
    settings.folder = tmp_path
    shell.run("%nbext set remote.paths.id job.handle")
    shell.run("%nbext set remote.types.n integer")
    shell.run("%nbext unset remote.types.n")
    assert settings.arguments == {"remote": {"paths": {"id": "job.handle"}}}
    printed = shell.run("%nbext unset remote.paths.id").printed
    assert printed == f"remote = {{'paths': {{'id': 'job.id'}}}} ({file})\n"
    assert settings.arguments == {}


def test_the_file_of_settings_is_read_before_each_magic_and_a_broken_one_changes_nothing(
    asked, tmp_path
):
    current_session().settings.folder = tmp_path
    (tmp_path / "pyproject.toml").write_text("[tool.nbext]\nlimit = 2\n")
    assert len(asked.value(f"%%segment_query\n{HOLDERS}")) == 2
    (tmp_path / "pyproject.toml").write_text("[tool.nbext]\nlimits = 2\n")
    assert asked.error("%nbext connect").startswith(
        "ConfigError: Unknown setting 'limits'. Did you mean 'limit'?"
    )
    assert len(asked.value(f"%%segment_query\n{HOLDERS}")) == 2


def test_a_segment_on_the_line_is_run(asked):
    frame = asked.value('%segment {"token": {"token": "UNI"}} --limit 2')
    assert list(frame.columns) == ["address", "UNI_balance", "UNI_balance_raw"]
    assert len(frame) == 2


def test_a_magic_can_be_assigned(asked):
    asked.run("df = %token ethereum USDC")
    assert list(asked.ip.user_ns["df"]["symbol"]) == ["USDC"]


@pytest.mark.parametrize(
    ("ending", "read"),
    [
        (".csv", lambda path: pd.read_csv(path, dtype=str, keep_default_na=False)),
        (".json", lambda path: pd.DataFrame(json.loads(path.read_text()))),
        (".parquet", pd.read_parquet),
    ],
)
def test_a_result_is_written_to_a_file(asked, tmp_path, ending, read):
    path = tmp_path / f"tokens{ending}"
    ran = asked.run(f"%token ethereum USDC UNI --to '{path}'")
    assert ran.value is None
    assert (
        ran.printed
        == f"{path}: 2 rows, {len(asked.value('%token ethereum UNI').columns)} columns\n"
    )
    written = read(path)
    assert list(written["symbol"]) == ["USDC", "UNI"]
    assert list(written["address"]) == [USDC, UNI]
    before = path.read_bytes()
    assert asked.error(f"%token ethereum UNI --to '{path}'") == (
        f"ValidationError: --to: {path}: the file exists. Add --overwrite (overwrite=True) to replace it."
    )
    assert path.read_bytes() == before
    asked.value(f"%token ethereum UNI --to '{path}' --overwrite")
    assert list(read(path)["symbol"]) == ["UNI"]
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_tables_come_as_what_was_asked_for(asked):
    arrow = asked.value("%token ethereum USDC --as arrow")
    assert isinstance(arrow, pa.Table)
    assert arrow.column("symbol").to_pylist() == ["USDC"]
    asked.run("%nbext set frame arrow")
    assert isinstance(asked.value("%token ethereum USDC"), pa.Table)
    polars = pytest.importorskip("polars")
    assert isinstance(asked.value("%token ethereum USDC --as polars"), polars.DataFrame)


def test_dry_run_shows_the_request_and_a_curl_line_without_the_key(asked):
    ran = asked.run(f"%%segment_query --dry-run --limit 7\n{HOLDERS}")
    url = current_session().client.base_url + "/v1/segment/execute"
    body = f'{{"operator": "AND", "filters": {HOLDERS}, "fileType": "json", "limit": 7}}'
    assert ran.printed == (
        f"POST {url}\nContent-Type: application/json\nx-api-key: (not shown)\n\n"
        '{\n  "operator": "AND",\n'
        f'  "filters": {HOLDERS},\n'
        '  "fileType": "json",\n  "limit": 7\n}\n\n'
        "Valid. In words: wallets that hold at least 1,000 UNI on ethereum\n\n"
        f"curl -X POST {url} -H 'Content-Type: application/json' -H \"x-api-key: $NBEXT_API_KEY\" -d '{body}'\n"
    )
    assert asked.error('%%segment_query --dry-run\n{"tokn": {}}').startswith(
        "InvalidSegment: /filters/tokn: "
    )
    assert current_session().history.runs == []


def test_a_request_that_is_shown_is_the_same_json_in_lines_that_fit():
    body = {
        "operator": "AND",
        "limit": 5,
        "": [],
        "filters": {
            "wallet": {"in": ["0x" + digit * 40 for digit in "abc"]},
            "token": {"token": "UNI", "balance": {"min": "1"}},
        },
    }
    shown = laid_out(body, 100)
    assert json.loads(shown) == body
    assert shown.splitlines()[:5] == [
        "{",
        '  "operator": "AND",',
        '  "limit": 5,',
        '  "": [],',
        '  "filters": {',
    ]
    assert shown.splitlines()[-3:] == [
        '    "token": {"token": "UNI", "balance": {"min": "1"}}',
        "  }",
        "}",
    ]
    assert max(map(len, shown.splitlines())) <= 100


def test_explain_shows_words_sql_and_plan(asked):
    printed = asked.run(f"%%segment_query --explain\n{HOLDERS}").printed
    assert printed.startswith("wallets that hold at least 1,000 UNI on ethereum\n\nSQL\n")
    assert "SELECT" in printed
    assert "\nPlan\n" in printed
    assert max(map(len, printed.splitlines())) <= 100


def test_a_query_in_the_background_is_looked_at_waited_for_and_awaited(asked):
    asked.run(f"%%segment_query job --bg --limit 5\n{HOLDERS}")
    job = asked.ip.user_ns["job"]
    frame = job.result(30)
    assert len(frame) == 5
    assert job.status == "completed"
    assert repr(job) == "<segment in the background: completed>"

    async def waited():
        return await job

    assert asyncio.run(waited()) is frame
    handle = asked.value('%%segment_query --bg\n{"token": {"token": "NOSUCH"}}')
    with pytest.raises(Exception, match="NOSUCH"):
        handle.result(30)
    assert handle.status == "failed"


HANDLE = (
    "has no effect with --bg, which returns a handle; its .result() is the table. Use one of them."
)
REQUEST = "has no effect with --dry-run, which returns the request. Use one of them."


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("--bg --to {}/x.csv", f"--to {HANDLE}"),
        ("--dry-run --card", f"--card {REQUEST}"),
        ("--dry-run --to {}/x.csv", f"--to {REQUEST}"),
        ("--dry-run --bg", f"--bg {REQUEST}"),
        ("-o few --dry-run", "few: nothing is stored, because nothing runs. Leave the name out."),
        (
            "--explain --explore",
            "--explore has no effect with --explain, which returns words and SQL. Use one of them.",
        ),
        ("--bg --count", f"--count {HANDLE}"),
        (
            "--card --to {}/x.csv",
            "--to has no effect with --card, which returns a card. Use one of them.",
        ),
        (
            "--count --to {}/x.csv",
            "--to has no effect with --count, which returns a number. Use one of them.",
        ),
        (
            "--csv",
            "--csv exports a segment by its id. To write the rows of this query, use --to FILE.csv.",
        ),
        ("--from q1", "--from runs a saved query, but the line has filters too. Use one of them."),
    ],
)
def test_an_option_that_another_leaves_nothing_to_do_is_refused_before_anything_runs(
    asked, tmp_path, cell, message
):
    line = f"%segment {HOLDERS} {cell.format(tmp_path)}"
    assert asked.error(line).splitlines()[0] == f"UsageError: %segment: {message}"
    assert asked.error(f"%segment {HOLDERS} --limit 0 --to {tmp_path}/x.csv") == (
        "ValidationError: /limit: A limit of 0 only counts: there are no rows to write to a file."
    )
    for file in ("--to {}/x.csv", "--page {}/x.html"):
        assert asked.error(f"%segment {HOLDERS} --limit 0 -o n {file.format(tmp_path)}") == (
            "UsageError: A limit of 0 only counts: there are no rows to write to a file."
        )
    long = f"{tmp_path}/{'x' * 300}.csv"
    assert asked.error(f"%segment {HOLDERS} --to {long}").startswith("StorageError: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "option",
    [
        "--operator OR",
        "--limit 2",
        "--all",
        "--count",
        "--type csv",
        "--dry-run",
        "--explain",
        "--bg",
        "--from x",
    ],
)
def test_a_segment_with_an_id_is_not_run_again_so_options_of_a_run_are_refused(
    asked, tmp_path, option
):
    asked.run(f"%%segment_query whales --limit 5\n{HOLDERS}")
    line = f"%segment {{{{whales.attrs['nbext']['segment_id']}}}} --csv {option}"
    assert asked.error(line) == (
        f"UsageError: %segment: {option.split()[0]} has no effect on a segment that has run. Use it with filters."
    )


def test_a_segment_with_an_id_has_a_card(asked):
    asked.run(f"%%segment_query whales --limit 5\n{HOLDERS}")
    card = asked.value("%segment {{whales.attrs['nbext']['segment_id']}} --card -o again")
    pd.testing.assert_frame_equal(asked.ip.user_ns["again"], asked.ip.user_ns["whales"])
    assert card.body() == asked.value("__import__('nbext').show(whales)").body()
    assert dict(card.facts)["Wallets that"] == "hold at least 1,000 UNI on ethereum"


def test_an_expression_on_a_line_may_be_an_object_with_exact_fractions(asked):
    asked.run(
        "from decimal import Decimal; least = {'token': {'token': 'UNI', 'balance': {'min': Decimal('1E-18')}}}"
    )
    counted = asked.value('%segment {"token": {"token": "UNI"}} --count')
    assert asked.value("%segment {{least}} --count") == counted
    assert asked.value("%segment {{ {'token': {'token': 'UNI'}} }} --count") == counted


def test_history_runs_again_and_saved_queries_come_back(asked, monkeypatch, tmp_path):
    monkeypatch.setattr(type(current_session()), "data_dir", tmp_path)
    asked.run(f"%%segment_query whales --limit 5\n{HOLDERS}")
    asked.run('%segment {"nft": {"nft": "BAYC"}} --limit 2')
    table = asked.value("%nbext history")
    block = current_session().about["data"]["chains"][0]["lastBlock"]
    assert table[["number", "limit", "returned", "block"]].values.tolist() == [
        [1, 5, 5, block],
        [2, 2, 2, block],
    ]
    assert set(table.dtypes[["matched", "returned", "block"]].astype(str)) == {"Int64"}
    pd.testing.assert_frame_equal(asked.value("%nbext history 1"), asked.ip.user_ns["whales"])
    assert asked.error("%nbext history first") == (
        "UsageError: %nbext: 'first' is not the number of a query. `%nbext history` lists them."
    )
    saved = asked.run("%nbext save big 1").printed
    assert saved == "saved query 1 as big; `%%segment_query --from big` runs it\n"
    pd.testing.assert_frame_equal(
        asked.value("%%segment_query --from big"), asked.ip.user_ns["whales"]
    )
    pd.testing.assert_frame_equal(asked.value("%segment --from big"), asked.ip.user_ns["whales"])
    assert asked.error("%%segment_query --from bigg") == (
        "UsageError: No query is saved as 'bigg'. Did you mean 'big'? Saved: big."
    )
    assert "runs a saved query" in asked.error(f"%%segment_query --from big\n{HOLDERS}")
    assert asked.error("%nbext save ../x") == (
        "UsageError: '../x' is not a name for a query. Names use letters, digits, _ and -, at most 64."
    )


def test_status_names_the_service_its_data_its_blocks_and_the_versions(asked):
    printed = asked.run("%nbext status").printed
    words = {line.split()[0]: line for line in printed.splitlines()}
    assert list(words) == ["service", "key", "engine", "data", "chains", "versions"]
    assert words["data"] == "data      synthetic sample"
    assert "ethereum to block" in words["chains"]
    assert "pandas" in words["versions"]


def test_config_shows_every_setting_and_its_source(asked, monkeypatch):
    monkeypatch.setenv("NBEXT_DEADLINE", "55")
    asked.run("%nbext set limit 50")
    table = asked.value("%nbext config").set_index("setting")
    assert table.loc["limit"].tolist() == ["50", "argument"]
    assert table.loc["deadline"].tolist() == ["55.0", "NBEXT_DEADLINE"]
    assert table.loc["chain"].tolist() == ["ethereum", "default"]
    assert list(table.index) == list(current_session().settings.all())


def test_schema_lists_conditions_and_the_fields_of_one(asked):
    table = asked.value("%nbext schema")
    assert {"token", "nft", "transfer", "activity"} <= set(table["condition"])
    assert list(asked.value("%nbext schema token")["field"]) == [
        "token",
        "chain",
        "balance",
        "unit",
        "heldSince",
    ]
    assert asked.error("%nbext schema tokn").startswith(
        "ValidationError: %nbext schema: 'tokn' is not allowed. Did you mean 'token'?"
    )


def test_connecting_elsewhere_in_vain_keeps_the_service(asked):
    before = current_session().client
    assert asked.error("%nbext connect ftp://example.org").startswith("ConfigError: base_url")
    assert current_session().client is before
    assert asked.value("%token ethereum USDC") is not None


def test_what_was_not_checked_is_not_claimed(shell, monkeypatch):
    monkeypatch.setenv("NBEXT_API_KEY", "s3cret-key")
    monkeypatch.setenv("NBEXT_ATTEMPTS", "1")
    with slow_service() as service:
        url = service.url
        assert shell.run(f"%nbext connect {url}").printed == (
            f"nbext: connected to {url}. Its data and its filters are its own.\n"
        )
        printed = shell.run("%nbext status").printed.splitlines()
        assert printed[:2] == [f"service   {url} (not nbext's own)", "key       NBEXT_API_KEY"]
    gone = "http://127.0.0.1:9"
    assert shell.run(f"%nbext connect {gone}").printed == (
        f"nbext: {gone} does not answer. The next call tries again.\n"
    )
    printed = shell.run("%nbext status").printed.splitlines()
    assert printed[0] == f"service   {gone} (no answer)"
    assert printed[2:5] == ["engine    not known", "data      not known", "chains    not known"]


REFUSED = "The service answered 401: The service does not know the key in the x-api-key header."
DEAD = "http://127.0.0.1:9 refused the connection. Is the service running there?"


@pytest.mark.parametrize(
    ("url", "connected", "state", "failure"),
    [
        ("", f"nbext: {REFUSED}\n", REFUSED.rstrip("."), f"AuthError: {REFUSED}"),
        (
            "http://127.0.0.1:9",
            "nbext: http://127.0.0.1:9 does not answer. The next call tries again.\n",
            "no answer",
            f"ConnectionFailed: {DEAD}",
        ),
    ],
    ids=["a wrong key", "a dead service"],
)
def test_a_service_that_cannot_be_identified_is_no_stranger_and_no_bad_symbol(
    asked, monkeypatch, url, connected, state, failure
):
    url = url or current_session().client.base_url
    monkeypatch.setenv("NBEXT_API_KEY", "not-this-one")
    monkeypatch.setenv("NBEXT_ATTEMPTS", "1")
    assert asked.run(f"%nbext connect {url}").printed == connected
    assert asked.run("%nbext status").printed.splitlines()[0] == f"service   {url} ({state})"
    for cell in (
        '%segment {"token": {"token": "UNI"}}',
        '%segment {"token": {"token": "UNI"}} --count',
        '%segment {"token": {"token": "UNI"}} --top 3 --by UNI_balance',
        '%segment {"token": {"token": "UNI"}} --explain',
        "%token ethereum UNI",
        "%nft search ape --limit 5",
        "%nbext overlap UNI BAYC",
        "%nbext trend UNI",
        "%nbext wallet 0x0000000000000000000000000000000000000001",
    ):
        assert asked.error(cell) == failure, cell
    printed = asked.run('%segment {"token": {"token": "UNI"}} --dry-run').printed
    assert f"\nNot checked: {failure.partition(': ')[2]}\n" in printed


def test_a_setting_of_the_connection_takes_another_client(asked):
    before = current_session().client
    asked.run("%nbext set limit 5")
    assert current_session().client is before
    asked.run("%nbext set read_timeout 20")
    assert current_session().client is not before


@pytest.mark.parametrize("name", MAGICS)
def test_the_examples_of_each_magics_help_run(asked, name):
    asked.run("%token ethereum USDC UNI -o tokens")
    for example in MAGICS[name][0].examples:
        ran = asked.run(example)
        assert ran.error is None, (example, ran.shown_error)


def test_symbols_of_answers_are_kept_for_completion(asked):
    asked.value("%token ethereum USDC")
    assert current_session().vocabulary.known["token", "ethereum"]["USDC"] == USDC


def test_a_warm_query_costs_little_more_than_its_call(asked):
    client = current_session().client
    cell = f"%%segment_query whales --limit 100\n{HOLDERS}"
    filters = json.loads(HOLDERS)

    def seconds(run):
        start = time.process_time()
        run()
        return time.process_time() - start

    asked.run(cell)
    calls, cells = [], []
    for _ in range(7):
        calls.append(seconds(lambda: client.execute_segment(filters, limit=100)))
        cells.append(
            seconds(lambda: asked.ip.run_cell_magic("segment_query", "whales --limit 100", HOLDERS))
        )
    assert min(cells) - min(calls) < 0.03


def test_usage_errors_are_ours_and_not_ipythons(asked):
    assert type(asked.run("%token").error) is UsageError
    assert asked.error("%token").count("\n") == 0


def test_a_corrected_cell_runs_and_says_what_was_corrected(asked):
    ran = asked.run(
        "%%segment_query --run-corrected --count\n{'token': {'token': 'UNI'},}  # holders"
    )
    assert (ran.value, ran.printed.splitlines()[0]) == (
        1002,
        "corrected: single quotes, trailing commas, comments",
    )
    assert (
        "corrected"
        not in asked.run('%segment {"token": {"token": "UNI"}} --run-corrected --count').printed
    )


def test_a_dead_service_is_said_to_be_dead_under_count(shell, monkeypatch):
    monkeypatch.setenv("NBEXT_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("NBEXT_API_KEY", "key")
    monkeypatch.setenv("NBEXT_ATTEMPTS", "1")
    assert shell.error('%segment {"token": {"token": "UNI"}} --count').startswith(
        "ConnectionFailed: "
    )


def test_the_notes_of_a_background_run_are_printed_once_with_its_result(asked):
    cut = "5 of 202 wallets; --limit 0 counts, --all fetches\nnote: BAYC: the burn address 0x...dEaD is a holder too"
    asked.run('%%segment_query job --bg --limit 5\n{"nft": {"nft": "BAYC"}}')
    assert asked.run("table = job.result(30)").printed.startswith(cut)
    assert asked.run("table = job.result(30)").printed == ""


def test_rows_of_many_that_failed_are_named_in_a_note_wherever_the_table_goes(asked):
    note = "note: 1 of 3 rows failed: NOSUCH: The data has no token with the symbol 'NOSUCH' on ethereum.\n"
    for more, then in (("", ""), ("--as polars", ""), ("-o few", "few = 3 rows, 18 columns\n")):
        cell = f"t = %token ethereum USDC UNI NOSUCH {more}"
        assert asked.run(cell).printed == note + then, cell
    assert asked.run("t = %token ethereum USDC UNI").printed == ""
    many = asked.run("t = %token ethereum A1 A2 A3 A4 A5 UNI A1").printed
    assert (many.startswith("note: 6 of 7 rows failed: A1: "), many.count("A1: ")) == (True, 1)
    assert many.endswith(" | and 2 more; see the column error\n")


def test_a_part_of_a_table_is_no_segment_in_a_cell_as_in_python(asked, tmp_path):
    asked.run(f"%%segment_query whales\n{HOLDERS}")
    asked.run("import nbext\nfew = whales[:31]")
    part = "The table has 31 rows, and its segment's had 262. Give its id for the segment, or "
    for ask in (
        "%segment few",
        "%segment few --json",
        "%segment {{few}} --profile",
        "%segment few --changes 30d",
        "%nbext funnel few",
        "nbext.connect().segment(few)",
        "nbext.profile(few)",
    ):
        assert part + '{"wallet": {"in": table}} for the wallets in the table.' in asked.error(ask)
    assert asked.run("again = %segment whales --json").printed == ""
    # A file's table has one row, and is of all of them.
    segment_id = "whales.attrs['nbext']['segment_id']"
    path = str(tmp_path / "whales.csv")
    asked.run(f"import nbext\nfile = nbext.connect().export_csv({segment_id}, to={path!r})")
    assert asked.run("again = %segment file --json").printed == ""


def test_the_rows_of_a_segment_that_was_only_counted_are_said_to_be_none_of_all(asked, tmp_path):
    asked.run(f"import nbext\nnumber = %segment {HOLDERS}")
    asked.run("import nbext")
    counted = "counted = nbext.connect().execute_segment({'nft': {'nft': 'BAYC'}}, limit=0)"
    # Who counts has asked for no rows.
    assert "of 202 wallets" not in asked.run(counted).printed
    for way in ("--csv", "--json", f"--csv --to {tmp_path}/none.csv"):
        assert asked.run(f"rows = %segment counted {way}").printed.startswith("0 of 202 wallets\n")
    exported = asked.value("nbext.connect().export_csv(counted)")
    assert Provenance.of(exported).cut() == "0 of 202 wallets"


def test_a_saved_segment_as_a_list_says_that_its_limit_does_not_count(asked):
    asked.run(f"%%segment_query whales --limit 10\n{HOLDERS}")
    name = asked.value("name, at = whales.attrs['nbext']['segment_id'], 'segment_id'\nname")
    note = f"note: {name} was saved with limit 10: all 262 wallets that match are taken.\n"
    for filters in ('{"wallet": {"in": {{name}}}}', '{"segment": {"id": {{name}}}}'):
        assert asked.run(f"counted = %segment {filters} --count").printed == note
        assert asked.ip.user_ns["counted"] == 262
    asked.run(f"%%segment_query whole\n{HOLDERS}")
    whole = '{"wallet": {"in": {{whole.attrs["nbext"][at]}}}}'
    assert asked.run(f"counted = %segment {whole} --count").printed == ""


def test_a_folder_of_data_that_is_not_there_is_said(shell, tmp_path):
    for folder, note in (
        (tmp_path, ""),
        (tmp_path / "none", "does not exist yet. The sample is served until"),
    ):
        printed = shell.run(f"%nbext set data_dir {folder}").printed
        assert (note in printed, printed.count("\n")) == (True, 1 + bool(note))


def test_a_chain_that_is_set_is_the_one_that_a_lookup_without_one_is_told_to_write(asked):
    asked.run("%nbext set chain base")
    assert asked.error("%token USDC").startswith(
        "UsageError: %token: the chain is missing. Write: %token base USDC\n"
    )
    assert f"Write: %token base {USDC}\n" in asked.error(f"%token {USDC}")
    # One that the line names goes before one that is set.
    for word in ("USDC", USDC):
        for named in (f"{word} --chain polygon", f"--chain polygon {word}"):
            assert f"Write: %token polygon {word}\n" in asked.error(f"%token {named}")


def test_a_background_run_on_a_silent_service_returns_at_once(shell, monkeypatch):
    with slow_service() as silent:
        silent.answers["GET /about"] = (30, 200, {})
        monkeypatch.setenv("NBEXT_BASE_URL", silent.url)
        monkeypatch.setenv("NBEXT_API_KEY", "key")
        monkeypatch.setenv("NBEXT_READ_TIMEOUT", "20")
        monkeypatch.setenv("NBEXT_ATTEMPTS", "1")
        start = time.monotonic()
        handle = shell.value('%%segment_query --bg\n{"token": {"token": "UNI"}}')
        assert time.monotonic() - start < 10
        assert handle.status == "running"
        handle.cancel()


def test_two_threads_that_make_the_first_call_connect_once(shell):
    shell.run("from concurrent.futures import ThreadPoolExecutor as Pool")
    shell.run("from nbext.notebook.session import current_session")
    call = "with Pool(4) as pool: made = list(pool.map(lambda _: current_session().connected(), range(4)))"
    ran = shell.run(f"{call}\nlen(set(made))")
    assert (ran.value, ran.printed.count("nbext: ")) == (1, 1)


def test_a_status_that_connects_says_nothing_twice(shell):
    assert [line.split()[0] for line in shell.run("%nbext status").printed.splitlines()] == [
        "service",
        "key",
        "engine",
        "data",
        "chains",
        "versions",
    ]


def test_a_table_of_a_command_is_stored_under_a_name(shell):
    assert (
        shell.run("%nbext config -o found").printed == f"found = {len(SETTINGS)} rows, 3 columns\n"
    )
    assert list(shell.ip.user_ns["found"]["setting"]) == [setting.name for setting in SETTINGS]


def test_a_chain_alone_lists_what_there_is_by_holders(asked):
    ran = asked.run("%token ethereum")
    assert set(ran.value["tokenType"]) == {"ERC20"}
    holders = ran.value.loc[ran.value["possibleSpam"] != True, "ownerCount"]  # noqa: E712 - missing is not True
    assert list(holders) == sorted(holders, reverse=True)
    assert len(ran.value) == min(100, ran.value.attrs["nbext"]["matched"])
    collections = asked.value("%nft ethereum")
    assert set(collections["tokenType"]) <= {"ERC721", "ERC1155"}
    ran = asked.run('%nft search "" --limit 3')
    assert list(ran.value["address"]) == list(collections["address"][:3])
    matched = collections.attrs["nbext"]["matched"]
    assert ran.printed.startswith(
        f'3 of {matched}, by holders; the next: %nft search "" --chain ethereum --type nft --limit 100 --offset 3\n'
    )


def test_a_stranger_that_is_asked_for_everything_says_what_it_needs(shell, monkeypatch):
    with slow_service() as stranger:
        monkeypatch.setenv("NBEXT_BASE_URL", stranger.url)
        monkeypatch.setenv("NBEXT_API_KEY", "key")
        assert shell.error('%nft search ""') == (
            "ValidationError: /searchTerm: The term is empty. This service needs a name or a symbol; "
            "only nbext's own lists everything."
        )
        assert shell.error("%token ethereum").startswith(
            "UsageError: %token: an address or a symbol is missing"
        )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("few", "few is a variable with an id. Python values need braces: %segment {{few}}"),
        ("job", "job is a background run. Its table is job.result()."),
        ("[{}]", "Filters are one JSON object, {...}, not a list."),
        ("{{few}}--count", "a space is missing before the option."),
    ],
)
def test_what_is_no_segment_on_a_line_is_said(asked, line, message):
    asked.run('few = "sg_few"\njob = %segment {"token": {"token": "UNI"}} --bg')
    assert asked.error(f"%segment {line}").splitlines()[0] == f"UsageError: %segment: {message}"


def test_a_description_in_a_file_is_not_taken_for_the_rows(asked, tmp_path):
    asked.run(f"%%segment_query whales --limit 5\n{HOLDERS}")
    ran = asked.run(f"%segment whales --to {tmp_path}/few.csv")
    assert ran.printed.startswith(
        "note: this is the segment's description. Add --csv to write its rows.\n"
    )


@pytest.mark.parametrize("key", ["orderBy", "asOf", "columns"])
def test_the_schema_of_a_key_without_fields_is_its_value(asked, key):
    table = asked.value(f"%nbext schema {key}")
    assert table["field"].tolist() == [key]
    assert all(table.iloc[0])


@pytest.mark.parametrize("condition", ["", "token", "transfer"])
def test_a_schema_is_displayed_with_every_meaning_whole(asked, condition):
    table = asked.value(f"%nbext schema {condition}")
    for drawn in (as_html(table), as_text(table)):
        words = " ".join(drawn.split())
        assert all(html(meaning, None) in words or meaning in words for meaning in table["meaning"])
    assert "…" not in as_html(table)
