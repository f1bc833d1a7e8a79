"""The magics on the embedded service with its sample: one call each, and the result handed over."""

from __future__ import annotations

import asyncio
import json
import time

import pandas as pd
import pyarrow as pa
import pytest

from nbext.errors import NotFound, UsageError
from nbext.notebook.line import grammars
from nbext.notebook.run.segment import compact
from nbext.notebook.session import current
from nbext.settings import Settings
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
    for words in ("few", "{{few}}", "{{frame['address']}}", "{{few[0]}} one", "{{few[:1]}} {{ few[1] }}"):
        assert list(asked.value(f"%token ethereum {words}")["address"]) == [UNI, USDC]
    assert list(asked.value("%token {{'ethereum'}} {{few}}")["symbol"]) == ["UNI", "USDC"]


def test_a_symbol_is_not_taken_for_a_variable_that_holds_something_else(asked):
    asked.run("USDC = %token ethereum USDC")
    assert list(asked.value("%token ethereum USDC")["address"]) == [USDC]
    asked.run(f"UNI = ['{USDC}']")
    assert list(asked.value("%token ethereum UNI")["address"]) == [USDC]
    assert list(asked.value("%token ethereum 'UNI'")["address"]) == [UNI]


@pytest.mark.parametrize(
    ("setup", "cell", "message"),
    [
        ("bad = [1, 2]", "%token ethereum bad", "bad contains int values, not addresses. An address is a string of "
         "0x and 40 hex digits."),
        ("bad = []", "%nft ethereum bad", "bad is empty. Give at least one address."),
        ("", "%token ethereum {{nothing}}", "'nothing' is not defined in this notebook."),
    ],
)
def test_a_variable_that_holds_no_addresses_is_refused(asked, setup, cell, message):
    asked.run(setup)
    assert message in asked.error(cell)


def test_ipythons_own_expansion_is_off(asked):
    asked.run("USDC, x = 'UNI', 'UNI'")
    assert "no symbol '$x'" in asked.error("%token ethereum '$x'")
    assert "no symbol '{x}'" in asked.error("%token ethereum '{x}'")


def test_nft_reads_collections_and_searches_them(asked):
    assert list(asked.value("%nft ethereum BAYC")["symbol"]) == ["BAYC"]
    found = asked.value("%nft search bored ape --limit 3")
    assert found["name"].str.contains("Ape").all()
    assert list(asked.value('%nft search "USD" --type token --chain polygon --limit 1')["chain"]) == ["polygon"]


def test_a_query_is_stored_under_its_name_and_says_so(asked):
    ran = asked.run(f"%%segment_query whales --limit 5\n{HOLDERS}")
    assert ran.value is None
    whales = asked.ip.user_ns["whales"]
    assert type(whales) is pd.DataFrame
    assert list(whales.columns) == ["address", "UNI_balance"]
    matched = whales.attrs["nbext"]["matched"]
    assert ran.printed == (
        f"5 of {matched:,} wallets; --limit 0 counts, --all fetches\nwhales = 5 rows, 2 columns\n"
    )
    assert len(asked.value(f"%%segment_query --all\n{HOLDERS}")) == matched
    assert asked.value(f"%%segment_query --limit 0\n{HOLDERS}") == matched
    assert asked.value(f"%%segment_query --count\n{HOLDERS}") == matched
    assert asked.run(f"%%segment_query n --count\n{HOLDERS}").printed == f"n = {matched}\n"
    assert asked.ip.user_ns["n"] == matched


def test_an_error_leaves_the_old_value(asked):
    asked.run("whales = 'as it was'")
    asked.error('%%segment_query whales\n{"token": {"token": "NOSUCH"}}')
    asked.error("%token ethereum NOSUCH -o whales")
    assert asked.ip.user_ns["whales"] == "as it was"


def test_a_whole_request_says_the_same_as_options_do(asked):
    request = {"operator": "OR", "limit": 3, "fileType": "csv",
               "filters": {"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}}}  # fmt: skip
    whole = asked.value(f"%%segment_query\n{json.dumps(request)}")
    options = asked.value(f"%%segment_query --operator or --limit 3 --type csv\n{json.dumps(request['filters'])}")
    pd.testing.assert_frame_equal(whole, options)
    assert whole.attrs["nbext"]["operator"] == "OR"
    both = asked.error(f"%%segment_query --operator AND\n{json.dumps(request)}")
    assert both == "UsageError: --operator AND on the line contradicts OR in the cell. Write it once."


def test_python_values_stand_in_a_cell(asked):
    asked.run("from decimal import Decimal\nsmallest = Decimal('1000.5')\nasset = 'UNI'\nwallets = None")
    asked.run('%%segment_query a\n{"token": {"token": {{asset}}, "balance": {"min": {{smallest}}}}}')
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
    assert ran.printed == f"{path}: 5 rows, {path.stat().st_size:,} bytes\n"
    again = asked.error(f"%segment {{{{id_}}}} {way} --to {path}")
    assert again.endswith("the file exists. Add --overwrite to replace it.")
    both = asked.run(f"%segment {{{{id_}}}} {way} --to {path} --overwrite -o rows")
    assert both.printed.endswith("rows = 5 rows, 2 columns\n")


def test_a_place_inside_of_a_setting_is_set_as_an_error_shows_it(asked):
    asked.run('%nbext set remote.paths.rows = "data.owners"')
    asked.run("%nbext set remote.paths.id job.handle")
    assert current().settings["remote"] == {"paths": {"rows": "data.owners", "id": "job.handle"}}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("set remote.pathz.rows x", "remote.pathz is not a setting. Did you mean 'paths'? Allowed: paths, types."),
        ("set remote.paths.row x", "remote.paths.row is not a setting. Did you mean 'rows'? Allowed: id, status, rows, "
         "next, error, url, total."),
        ("set remote.types.n bool", "remote.types.n: 'bool' is not a type. Did you mean 'boolean'? Allowed: string, "
         "integer, uint256, number, boolean, object."),
        ("set remote.paths x", 'remote.paths is a table, such as remote.paths.id = "job.id".'),
        ("set remote x", "remote (argument): 'x' is not a table."),
        ("set limit.rows 5", "limit is a single value: it has no entry 'rows'."),
        ("set base_url ftp://example.org", "base_url 'ftp://example.org' is not an address. "
         "Write one such as https://api.example.com or http://127.0.0.1:8000."),
        ("unset limt", f"Unknown setting 'limt'. Did you mean 'limit'? Allowed: {', '.join(Settings().all())}."),
        ("unset remote.paths.ids", "remote.paths.ids is not set in this session. Did you mean 'remote.paths.id'? "
         "Set here: remote.paths.id."),
        ("unset limit.x", "limit.x is not set in this session. No entry of limit is set."),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_refused_at_once(shell, line, error):
    shell.run("%nbext set remote.paths.id job.handle")
    assert shell.error(f"%nbext {line}") == f"ConfigError: {error}"
    assert current().settings.arguments == {"remote": {"paths": {"id": "job.handle"}}}


def test_what_was_set_is_taken_back_and_what_holds_then_is_said(asked, monkeypatch):
    asked.run("%nbext set limit 50")
    assert asked.run("%nbext unset limit").printed == "limit = 1000 (default)\n"
    monkeypatch.setenv("NBEXT_LIMIT", "7")
    asked.run("%nbext set limit 50")
    assert asked.run("%nbext unset limit").printed == "limit = 7 (NBEXT_LIMIT)\n"
    assert asked.run("%nbext unset limit").printed == "limit = 7 (NBEXT_LIMIT)\n"
    before = current().client
    asked.run("%nbext set read_timeout 20")
    assert asked.run("%nbext unset read_timeout").printed == "read_timeout = 30.0 (default)\n"
    assert current().client is not before
    assert asked.error("%nbext unset") == (
        "UsageError: %nbext unset takes the name of a setting, such as `%nbext unset limit`."
    )


def test_a_place_inside_of_a_setting_is_taken_back_to_what_the_file_says(shell, tmp_path, monkeypatch):
    file = tmp_path / "pyproject.toml"
    file.write_text('[tool.nbext.remote.paths]\nid = "job.id"\n')
    monkeypatch.chdir(tmp_path)
    settings = current().settings
    settings.reread()
    shell.run("%nbext set remote.paths.id job.handle")
    shell.run("%nbext set remote.types.n integer")
    shell.run("%nbext unset remote.types.n")
    assert settings.arguments == {"remote": {"paths": {"id": "job.handle"}}}
    printed = shell.run("%nbext unset remote.paths.id").printed
    assert printed == f"remote = {{'paths': {{'id': 'job.id'}}}} ({file})\n"
    assert settings.arguments == {}


def test_connect_reads_the_file_of_settings_again(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.nbext]\nlimit = 2\n")
    asked.run("%nbext connect")
    assert len(asked.value(f"%%segment_query\n{HOLDERS}")) == 2
    (tmp_path / "pyproject.toml").write_text("[tool.nbext]\nlimits = 2\n")
    assert asked.error("%nbext connect").startswith("ConfigError: Unknown setting 'limits'. Did you mean 'limit'?")
    assert len(asked.value(f"%%segment_query\n{HOLDERS}")) == 2


def test_a_segment_on_the_line_is_run(asked):
    frame = asked.value('%segment {"token": {"token": "UNI"}} --limit 2')
    assert list(frame.columns) == ["address", "UNI_balance"]
    assert len(frame) == 2


def test_a_magic_can_be_assigned(asked):
    asked.run("df = %token ethereum USDC")
    assert list(asked.ip.user_ns["df"]["symbol"]) == ["USDC"]


@pytest.mark.parametrize(("ending", "read"), [
    (".csv", lambda path: pd.read_csv(path, dtype=str, keep_default_na=False)),
    (".json", lambda path: pd.DataFrame(json.loads(path.read_text()))),
    (".parquet", pd.read_parquet),
])  # fmt: skip
def test_a_result_is_written_to_a_file(asked, tmp_path, ending, read):
    path = tmp_path / f"tokens{ending}"
    ran = asked.run(f"%token ethereum USDC UNI --to '{path}'")
    assert ran.value is None
    assert ran.printed == f"{path}: 2 rows, {len(asked.value('%token ethereum UNI').columns)} columns\n"
    written = read(path)
    assert list(written["symbol"]) == ["USDC", "UNI"]
    assert list(written["address"]) == [USDC, UNI]
    before = path.read_bytes()
    assert asked.error(f"%token ethereum UNI --to '{path}'") == (
        f"UsageError: --to {path}: the file exists. Add --overwrite to replace it."
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
    url = current().client.base_url + "/v1/segment/execute"
    body = f'{{"operator": "AND", "filters": {HOLDERS}, "fileType": "json", "limit": 7}}'
    assert ran.printed == (
        f"POST {url}\nContent-Type: application/json\nx-api-key: (not shown)\n\n"
        '{\n  "operator": "AND",\n'
        f'  "filters": {HOLDERS},\n'
        '  "fileType": "json",\n  "limit": 7\n}\n\n'
        "Valid. In words: wallets that hold at least 1,000 UNI on ethereum\n\n"
        f"curl -X POST {url} -H 'Content-Type: application/json' -H \"x-api-key: $NBEXT_API_KEY\" -d '{body}'\n"
    )
    assert asked.error('%%segment_query --dry-run\n{"tokn": {}}').startswith("InvalidSegment: /filters/tokn: ")
    assert current().history.runs == []


def test_a_request_that_is_shown_is_the_same_json_in_lines_that_fit():
    body = {"operator": "AND", "limit": 5, "": [], "filters": {
        "wallet": {"in": ["0x" + digit * 40 for digit in "abc"]}, "token": {"token": "UNI", "balance": {"min": "1"}},
    }}  # fmt: skip
    shown = compact(body)
    assert json.loads(shown) == body
    assert shown.splitlines()[:5] == ["{", '  "operator": "AND",', '  "limit": 5,', '  "": [],', '  "filters": {']
    assert shown.splitlines()[-3:] == ['    "token": {"token": "UNI", "balance": {"min": "1"}}', "  }", "}"]
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


HANDLE = "has no effect with --bg, which returns a handle; its .result() is a DataFrame. Use one of them."


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("--bg --to {}/x.csv", f"--to {HANDLE}"),
        ("--bg --as polars", f"--as {HANDLE}"),
        ("--bg --count", f"--count {HANDLE}"),
        ("--card --to {}/x.csv", "--to has no effect with --card, which returns a card. Use one of them."),
        ("--count --to {}/x.csv", "--to has no effect with --count, which returns a number. Use one of them."),
        ("--csv", "--csv exports a segment by its id. To write the rows of this query, use --to FILE.csv."),
    ],
)  # fmt: skip
def test_an_option_that_another_leaves_nothing_to_do_is_refused_before_anything_runs(asked, tmp_path, cell, message):
    line = f"%segment {HOLDERS} {cell.format(tmp_path)}"
    assert asked.error(line) == f"UsageError: %segment: {message}"
    assert asked.error(f"%segment {HOLDERS} --limit 0 --to {tmp_path}/x.csv") == (
        "UsageError: --to has no rows to write: a limit of 0 only counts."
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", [
    "--operator OR", "--limit 2", "--all", "--count", "--type csv", "--dry-run", "--explain", "--bg", "--from x",
])  # fmt: skip
def test_a_segment_with_an_id_is_not_run_again_so_options_of_a_run_are_refused(asked, tmp_path, option):
    asked.run(f"%%segment_query whales --limit 5\n{HOLDERS}")
    line = f"%segment {{{{whales.attrs['nbext']['segment_id']}}}} --csv {option}"
    assert asked.error(line) == (
        f"UsageError: %segment: {option.split()[0]} has no effect on a segment that has run. Use it with filters."
    )


def test_a_segment_with_an_id_has_a_card(asked):
    asked.run(f"%%segment_query whales --limit 5\n{HOLDERS}")
    card = asked.value("%segment {{whales.attrs['nbext']['segment_id']}} --card -o again")
    pd.testing.assert_frame_equal(asked.ip.user_ns["again"], asked.ip.user_ns["whales"])
    assert card.facts() == asked.value("__import__('nbext').show(whales)").facts()
    assert card.words == "hold at least 1,000 UNI on ethereum"


def test_an_expression_on_a_line_may_be_an_object_with_exact_fractions(asked):
    asked.run("from decimal import Decimal; least = {'token': {'token': 'UNI', 'balance': {'min': Decimal('1E-18')}}}")
    counted = asked.value('%segment {"token": {"token": "UNI"}} --count')
    assert asked.value("%segment {{least}} --count") == counted
    assert asked.value("%segment {{ {'token': {'token': 'UNI'}} }} --count") == counted


def test_history_runs_again_and_saved_queries_come_back(asked, monkeypatch, tmp_path):
    monkeypatch.setattr(type(current()), "data_dir", tmp_path)
    asked.run(f"%%segment_query whales --limit 5\n{HOLDERS}")
    asked.run('%segment {"nft": {"nft": "BAYC"}} --limit 2')
    table = asked.value("%nbext history")
    assert table[["number", "limit", "returned"]].values.tolist() == [[1, 5, 5], [2, 2, 2]]
    pd.testing.assert_frame_equal(asked.value("%nbext history 1"), asked.ip.user_ns["whales"])
    saved = asked.run("%nbext save big 1").printed
    assert saved == "saved query 1 as big; `%%segment_query --from big` runs it\n"
    pd.testing.assert_frame_equal(asked.value("%%segment_query --from big"), asked.ip.user_ns["whales"])
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
    assert list(table.index) == list(current().settings.all())


def test_schema_lists_conditions_and_the_fields_of_one(asked):
    table = asked.value("%nbext schema")
    assert {"token", "nft", "transfer", "activity"} <= set(table["condition"])
    assert list(asked.value("%nbext schema token")["field"]) == ["token", "chain", "balance", "unit", "heldSince"]
    assert asked.error("%nbext schema tokn").startswith(
        "UsageError: %nbext schema: unknown condition 'tokn'. Did you mean 'token'?"
    )


def test_connecting_elsewhere_in_vain_keeps_the_service(asked):
    before = current().client
    assert asked.error("%nbext connect ftp://example.org").startswith("ConfigError: base_url")
    assert current().client is before
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


def test_a_setting_of_the_connection_takes_another_client(asked):
    before = current().client
    asked.run("%nbext set limit 5")
    assert current().client is before
    asked.run("%nbext set read_timeout 20")
    assert current().client is not before


@pytest.mark.parametrize("name", grammars.BY_MAGIC)
def test_the_examples_of_each_magics_help_run(asked, name):
    asked.run("%token ethereum USDC UNI -o tokens")
    for example in grammars.BY_MAGIC[name].examples:
        ran = asked.run(example)
        assert ran.error is None, (example, ran.shown_error)


def test_symbols_of_answers_are_kept_for_completion(asked):
    asked.value("%token ethereum USDC")
    assert current().vocabulary.symbols["USDC"] == USDC


def test_a_warm_query_costs_little_more_than_its_call(asked):
    client = current().client
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
        cells.append(seconds(lambda: asked.ip.run_cell_magic("segment_query", "whales --limit 100", HOLDERS)))
    assert min(cells) - min(calls) < 0.03


def test_usage_errors_are_ours_and_not_ipythons(asked):
    assert type(asked.run("%token").error) is UsageError
    assert asked.error("%token").count("\n") == 0
