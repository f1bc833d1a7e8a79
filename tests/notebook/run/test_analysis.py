"""The commands that compare segments: tables, notes and charts, from symbols, tables, ids and filters."""

from __future__ import annotations

import pandas as pd
import pytest

HOLDERS = '{"nft": {"nft": "BAYC"}, "token": {"token": "USDC"}}'

COMPARED = "has no effect with --changes, which returns who of all wallets joined and left. Use one of them."


def test_overlap_takes_symbols_tables_and_filters(shell):
    shell.run('%%segment_query rich\n{"token": {"token": "USDC", "balance": {"min": "100"}}}')
    ran = shell.run(f"%nbext overlap BAYC rich {HOLDERS}")
    assert ran.error is None
    assert list(ran.value.columns) == ["BAYC", "rich", HOLDERS]
    assert ran.value.at["BAYC", HOLDERS] == ran.value.at[HOLDERS, HOLDERS] > 0
    assert "note: BAYC: the burn address" in ran.printed
    shares = shell.run("%nbext overlap BAYC BAYC --share -o same")
    assert shares.value is None
    assert "same = 2 rows, 2 columns" in shares.printed
    assert shell.ip.user_ns["same"].to_numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert list(shell.ip.user_ns["same"].index) == ["BAYC", "BAYC (2)"]


def test_a_funnel_is_shown_with_its_chart(shell, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    table = shell.value(f"%nbext funnel {HOLDERS}")
    assert table["condition"].tolist() == ["own BAYC on ethereum", "hold USDC on ethereum"]
    assert [chart.words for chart in shown] == [table.chart().words]


def test_an_analysis_is_written_as_a_page_with_its_chart(shell, tmp_path):
    for line in ("overlap BAYC MAYC", "funnel BAYC", "concentration UNI -o held"):
        path = tmp_path / f"{line.split()[0]}.html"
        written = f"%nbext {line} --page {path}"
        assert f"{path}: " in shell.run(written).printed
        assert '<img alt="' in path.read_text()
        assert "the file exists. Add --overwrite" in shell.error(written)
        assert shell.run(f"{written} --overwrite").error is None
    assert shell.error("%nbext overlap BAYC MAYC --overwrite") == (
        "UsageError: %nbext overlap: --overwrite needs --page FILE."
    )


def test_concentration_and_trend_take_their_options(shell):
    table = shell.value("%nbext concentration UNI")
    assert (list(table.index), table.at["all", "share"]) == (
        ["top 10", "top 100", "top 1 %", "all"],
        1.0,
    )
    both = '{"any": [{"token": {"token": "UNI"}}, {"token": {"token": "USDC"}}]}'
    shell.run(f"%nbext trend {both} --amounts USDC --every 4w --since 12w -o held")
    assert shell.ip.user_ns["held"].attrs["nbext"]["amounts"] == "USDC"
    shell.run("%nbext trend UNI --no-amounts --every 4w --since 12w -o counted")
    assert list(shell.ip.user_ns["counted"].columns) == ["at", "block", "count"]
    assert shell.error("%nbext trend UNI --no-amounts --amounts UNI") == (
        "UsageError: %nbext trend: use --amounts or --no-amounts, not both."
    )
    both = shell.value("%nbext overlap UNI, BAYC")
    assert list(both.columns) == ["UNI", "BAYC"]
    rows = '%segment {"token": {"token": "UNI"}}'
    shell.run(
        f"{rows} --all -o rows\n%segment rows --changes 30d -o one\n{rows} --changes 30d -o two"
    )
    pd.testing.assert_frame_equal(shell.ip.user_ns["one"], shell.ip.user_ns["two"])
    assert len(shell.ip.user_ns["one"].columns) == 6
    shell.ip.user_ns |= {"asked": {"token": {"token": "UNI"}}, "named": "sg_x"}
    assert shell.error("%nbext funnel asked").splitlines()[0] == (
        "UsageError: %nbext funnel: asked is a dict, not a segment's table. Python values need braces: "
        "%nbext funnel {{asked}}"
    )
    assert shell.error("%nbext overlap BAYC named").endswith(
        "a variable with an id. Python values need braces: %nbext overlap {{named}}"
    )
    points = shell.run("%nbext trend BAYC --every 4w --since 12w -o points")
    assert "points = 4 rows, 3 columns" in points.printed
    assert shell.ip.user_ns["points"]["count"].gt(0).all()


def test_changes_of_a_cell_a_line_and_an_id_are_one_table(shell):
    cell = shell.run(
        '%%segment_query moved --changes 90d --operator OR\n{"token": {"token": "UNI"}}'
    )
    assert cell.error is None
    moved = shell.ip.user_ns["moved"]
    joined, left, stayed = (
        int((moved["status"] == one).sum()) for one in ("joined", "left", "stayed")
    )
    assert f"{joined:,} joined, {left:,} left, {stayed:,} stayed from block " in cell.printed
    assert list(moved.columns) == [
        "address",
        "status",
        "UNI_balance_then",
        "UNI_balance_now",
        "UNI_balance_raw_then",
        "UNI_balance_raw_now",
    ]
    assert set(moved["status"]) == {"joined", "left", "stayed"}
    line = shell.value('%segment {"token": {"token": "UNI"}} --changes 90d')
    assert line.equals(moved)
    shell.run('%segment {"token": {"token": "UNI"}} --limit 1 -o few')
    of_id = shell.value("%segment {{few.attrs['nbext']['segment_id']}} --changes 90d")
    assert of_id["status"].tolist() == moved["status"].tolist()


def test_options_that_choose_rows_are_refused_beside_changes_and_a_time_of_its_own_is_pointed_at(
    shell,
):
    filters = '{"token": {"token": "UNI"}'
    refused = f"UsageError: %segment: --limit {COMPARED}"
    assert shell.error(f"%segment {filters}}} --changes 90d --limit 5") == refused
    assert "Leave it out" in shell.error(f'%segment {filters}, "asOf": "5d"}} --changes 90d')
    for key, line in (
        ("columns", ' "columns": ["firstSeen"]'),
        ("orderBy", ' "orderBy": "-UNI_balance"'),
    ):
        said = shell.error(f"%%segment_query --changes 90d\n{filters},\n{line}}}")
        assert said == (
            f"ValidationError: /filters/{key}: Changes set {key} themselves. Leave it out.\n  line 3, column 2:\n"
            f"    {line}}}\n     ^"
        )
    assert "/filters/columns: Changes set" in shell.error(
        f"%segment {filters}}} --changes 90d --columns firstSeen"
    )
    assert "/filters/token/token" in shell.error(
        '%segment {"token": {"token": "NOPE"}} --changes 90d'
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "overlap",
            "UsageError: %nbext overlap: name a segment: a symbol, a table, an id, or {filters}.",
        ),
        (
            "overlap BAYC NOPE",
            "ValidationError: /segments/1: There is no token and no collection 'NOPE' on ethereum.",
        ),
        (
            "funnel BAYC --lift",
            "UsageError: %nbext funnel: unknown option '--lift'. It is for overlap.",
        ),
        (
            "profile BAYC",
            'UsageError: %nbext: profile is an option of a segment: %segment {"nft": {"nft": "BAYC"}}'
            ' --profile, or nbext.profile("BAYC", base=..., least=...) in Python.',
        ),
        (
            "status --share",
            "UsageError: %nbext status: unknown option '--share'. It is for overlap.",
        ),
    ],
)
def test_what_cannot_be_compared_is_named(shell, line, message):
    assert shell.error(f"%nbext {line}") == message


def test_a_table_is_a_segment_by_its_name_and_as_a_value_from_python(shell):
    shell.run('%segment {"token": {"token": "UNI", "balance": {"min": "1000"}}} -o whales')
    for line in ("whales BAYC", "{{whales}} BAYC"):
        table = shell.value(f"%nbext overlap {line}")
        assert list(table.index) == ["whales", "BAYC"]
        assert table.at["whales", "whales"] == len(shell.ip.user_ns["whales"])


@pytest.mark.slow
def test_wallets_are_named_on_the_line_or_by_a_table_a_file_or_a_value_from_python(shell, tmp_path):
    shell.run("%%segment_query rich --top 2 --by UNI_balance\n" + '{"token": {"token": "UNI"}}')
    addresses = list(shell.ip.user_ns["rich"]["address"])
    one = shell.value(f"%nbext wallet {addresses[0]} --chain ethereum")
    assert set(one["address"]) == {addresses[0]}
    assert "UNI" in set(one["symbol"])
    shell.ip.user_ns["rich"].to_csv(tmp_path / "rich.csv")
    for word in ("rich", "{{rich}}", f"@{tmp_path / 'rich.csv'}"):
        assert set(shell.value(f"%nbext wallet {word}")["address"]) == set(addresses)
    assert "'rich' is not an address" in shell.error(f"%nbext wallet rich {addresses[0]}")
    both = shell.run("%nbext wallet {{rich['address']}} --as-of 30d -o both")
    assert both.error is None
    assert set(shell.ip.user_ns["both"]["address"]) == set(addresses)
    assert shell.ip.user_ns["both"].attrs["nbext"]["as_of"]["timestamp"][:10] == "2025-12-01"
    assert (
        shell.error("%nbext wallet")
        == "UsageError: %nbext wallet: name an address: %nbext wallet 0x..."
    )
    assert "name an address" not in shell.error("%nbext wallet vitalik.eth")
    for value, kind in (("1", "int"), ("None", "NoneType"), ("[None]", "NoneType")):
        assert shell.error(f"%nbext wallet {{{{{value}}}}}").startswith(
            f"UsageError: %nbext wallet: {value} contains {kind} values, not addresses. "
            "An address is a string of 0x and 40 hex digits."
        )
    assert shell.error("%nbext trend UNI --as-of 5d") == (
        "UsageError: %nbext trend: unknown option '--as-of'. It is for wallet."
    )


def test_retention_takes_its_period_and_its_cohorts(shell):
    options = "--by quarter --cohort seen --since 26w"
    table = shell.value(f"%nbext retention BAYC {options}")
    assert list(table.columns) == ["wallets", "quarter 0", "quarter 1"]
    filters = '{"nft": {"nft": "BAYC"}}'
    assert shell.value(f"%nbext retention {filters} {options}").equals(table)
    # The data ends with the first instant of 2026, of which no cohort is made.
    assert list(table.index) == ["2025Q3", "2025Q4"]
    assert shell.error("%nbext retention BAYC --by year").startswith("UsageError: ")


def test_more_periods_than_are_compared_or_drawn_are_said_with_what_to_write(shell):
    assert shell.error("%nbext retention BAYC --by day") == (
        "ValidationError: /since: By day these are 365 periods. At most 60 are compared. Write "
        'by="week" (on a line --by week), or since="2025-11-02" (on a line --since 2025-11-02).'
    )
    shell.run("%nbext retention BAYC --by day --since 2025-11-02 -o daily")
    assert len(shell.ip.user_ns["daily"]) == 60
    weekly = shell.run("%nbext retention BAYC --by week")
    assert len(weekly.value) == 53
    room = "A heatmap has room for 30 cohorts, and the table has 53. "
    month = 'Write by="month" (on a line --by month), or since="2025-06-09" (on a line --since 2025-06-09).'
    assert f"note: no chart: {room}{month}\n" in weekly.printed
    assert shell.error("%nbext trend BAYC --every 1h") == (
        "ValidationError: /every: These are more than 1,000 points. Choose a longer step, such as "
        'every="1d" (on a line --every 1d).'
    )


def test_a_profile_of_filters_and_of_an_id_is_one_table(shell):
    table = shell.value('%segment {"nft": {"nft": "BAYC"}} --profile')
    assert "BAYC" in set(table["symbol"])
    assert table["lift"].iloc[0] > 1
    shell.run('%segment {"nft": {"nft": "BAYC"}} --limit 1 -o one')
    of_id = shell.value("%segment {{one.attrs['nbext']['segment_id']}} --profile")
    assert of_id["wallets"].tolist() == table["wallets"].tolist()
    both = shell.error('%segment {"nft": {"nft": "BAYC"}} --profile --changes 30d')
    assert both == f"UsageError: %segment: --profile {COMPARED}"
    limited = shell.error('%segment {"nft": {"nft": "BAYC"}} --profile --limit 5')
    assert (
        limited == "UsageError: %segment: --limit has no effect with --profile, which returns "
        "what its wallets hold more than others do. Use one of them."
    )
