"""How our tables are shown: nothing hides, runs or becomes maths, and the data stays as it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nbext
from nbext.notebook.results.tables import as_html, as_text, displayed_cell, flags
from nbext.notebook.session import current_session

ADDRESS = "0xd8da6bf26964af9d7eed9e03e53415d37aa96045"
NASTY = {
    "dollars": "$PEPE and $WIF",
    "maths": "$$\\href{javascript:alert(1)}{x}$$",
    "script": "<script>alert('1')</script>",
    "escape": "\x1b[31mred\x1b]8;;http://x\x07",
    "bidi": "USDC\u202ecod.exe",
    "zero width": "US\u200bDC",
    "return": "a\rb",
    "long": "x" * 20_000,
}


def ours(**columns):
    frame = pd.DataFrame(columns)
    frame.attrs["nbext"] = {"operation": "test"}
    return frame


def formatted(shell, value):
    data, _ = shell.ip.display_formatter.format(value)
    return data


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ADDRESS, "0xd8da6bf2…7aa96045"),
        ("0x" + "A" * 40, "0xAAAAAAAA…AAAAAAAA"),
        ("0x" + "a" * 64, "0x" + "a" * 64),
        ("$PEPE", "$PEPE"),
        ("a\x1b[0m\u202e", "a\\x1b[0m\\u202e"),
        ("x" * 300, "x" * 200 + "… (300 characters)"),
        (1234567, "1,234,567"),
        (0.0123456789, "0.0123457"),
        (None, ""),
        (float("nan"), ""),
        (pd.NaT, ""),
        (True, "True"),
        (pd.Timestamp("2025-01-31 12:00:05Z"), "2025-01-31 12:00:05Z"),
        (np.int64(2024), "2,024"),
    ],
)
def test_a_cell_is_shown_so_that_nothing_in_it_hides(value, expected):
    assert displayed_cell(value) == expected


@pytest.mark.parametrize(
    "collection", [list, set, frozenset, tuple, pd.Series, pd.array, dict.fromkeys, np.array]
)
def test_nothing_hides_in_a_list_an_array_or_another_collection_of_a_cell(collection):
    text = as_text(ours(values=[collection([NASTY["escape"]]), collection([NASTY["bidi"]])]))
    assert not set("\x1b\x07\u202e") & set(text)
    assert "USDC" in text


def test_html_ignores_maths_escapes_names_and_shows_control_characters(shell):
    frame = ours(name=list(NASTY.values()))
    html = formatted(shell, frame)["text/html"]
    assert 'class="dataframe nbext-rows tex2jax_ignore mathjax_ignore"' in html
    assert "$PEPE and $WIF" in html
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert "\\x1b[31mred" in html
    for hidden in ("\x1b", "\u202e", "\u200b", "\r", "x" * 201):
        assert hidden not in html


def test_text_shows_control_characters(shell):
    text = formatted(shell, ours(name=list(NASTY.values())))["text/plain"]
    for hidden in ("\x1b", "\u202e", "\u200b", "\r", "x" * 201):
        assert hidden not in text
    assert "USDC\\u202ecod.exe" in text


def test_headers_and_index_are_shown_as_safely_as_cells(shell):
    frame = ours(**{"a\u202eb": [1]})
    frame.index = ["\x1b[31m"]
    for text in formatted(shell, frame).values():
        assert "\u202e" not in text
        assert "\x1b" not in text
        assert "a\\u202eb" in text


def test_showing_changes_neither_data_nor_options(shell):
    frame = ours(name=list(NASTY.values()), n=range(len(NASTY)))
    before = frame.copy(deep=True)
    options = {
        name: pd.get_option(name)
        for name in ("display.html.use_mathjax", "display.show_dimensions")
    }
    formatted(shell, frame)
    pd.testing.assert_frame_equal(frame, before)
    assert frame.attrs == {"nbext": {"operation": "test"}}
    assert options == {name: pd.get_option(name) for name in options}


def test_a_long_table_is_cut_where_pandas_cuts_it_and_says_so():
    for rows in (0, 1, 59, 60, 61, 5000):
        frame = ours(a=range(rows), b=["text"] * rows)
        text, html = as_text(frame), as_html(frame)
        cut = rows > 60
        assert html.count("<td>text</td>") == text.count("text") == (10 if cut else rows)
        said = f"{rows:,} rows, 2 columns; the first 5 and the last 5 are shown"
        assert (said in text, said in html) == (cut, cut)
        assert text.endswith("0 rows, 2 columns") is (rows == 0)


HOLDERS = """\
error           wallet               UNI_balance    share  transfers  chainId  seen
no such wallet  0xd8da6bf2…7aa96045   1,047.33     67.97%      1,234     8453  2025-01-31 12:00:05Z
                0xd8da6bf2…7aa96045       0.0001  0.0123%          7        1

exact amounts: UNI_balance_raw"""


def holders():
    frame = ours(
        wallet=[ADDRESS, ADDRESS],
        UNI_balance=[1047.3333333, 0.0001],
        UNI_balance_raw=pd.array([1047333333300000000001, 10**14], dtype="object"),
        share=[0.679686, 0.000123],
        transfers=[1234, 7],
        chainId=[8453, 1],
        seen=[pd.Timestamp("2025-01-31 12:00:05Z"), pd.NaT],
        error=["no such wallet", None],
    )
    frame.attrs["nbext"]["columns"] = [{"name": "UNI_balance_raw", "unit": "raw", "decimals": 18}]
    return frame


def test_a_table_is_text_with_points_below_one_another_shares_as_per_cent_and_what_is_exact_folded():
    with pd.option_context("display.width", 120, "display.max_columns", 20):
        assert as_text(holders()) == HOLDERS


def test_an_address_is_whole_in_the_page_and_cut_to_the_eye_and_an_exact_amount_is_its_title():
    html = as_html(holders())
    assert (
        html.count(
            '<td class="a"><span>0xd8da6bf2<i>6964af9d7eed9e03e53415d3</i>7aa96045</span></td>'
        )
        == 2
    )
    assert '<td class="n p2" title="1,047.333333300000000001">1,047.33</td>' in html
    assert '<td class="n" title="0.0001">' not in html
    assert '<td class="n" title="0.679686">67.97%</td>' in html
    assert "UNI_balance_raw</th>" not in html
    assert re.search(r"<th>(.*?)</th>", html)[1] == "error"


def test_columns_that_are_said_to_be_shares_are_shown_as_per_cent():
    frame = ours(cohort=["2025"], **{"week 0": [0.0833333]})
    frame.attrs["nbext"]["columns"] = [{"name": "week 0", "unit": "share"}]
    assert as_text(frame) == "cohort  week 0\n2025    8.333%"


def test_what_a_line_has_no_room_for_goes_on_below_beside_the_first_column():
    frame = ours(wallet=["a", "b"], first=["x" * 40] * 2, second=["y" * 40] * 2)
    with pd.option_context("display.width", 60, "display.max_columns", 20):
        assert as_text(frame).splitlines() == [
            "wallet  first",
            f"a       {'x' * 40}",
            f"b       {'x' * 40}",
            "",
            "wallet  second",
            f"a       {'y' * 40}",
            f"b       {'y' * 40}",
        ]


def test_columns_beyond_those_that_pandas_shows_are_counted_and_rows_with_labels_keep_them():
    frame = ours(**{f"c{place}": [place] for place in range(25)}).set_index("c3")
    frame.attrs["nbext"] = {}
    with pd.option_context("display.max_columns", 20):
        text = as_text(frame)
    assert text.endswith("4 more columns are not shown")
    assert text.split()[:2] == ["c3", "c0"]


def test_what_a_reader_wrote_in_place_of_an_exact_amount_is_its_title():
    frame = holders()
    frame["UNI_balance_raw"] = "<unknown>"
    assert 'title="&lt;unknown&gt;"' in as_html(frame)
    assert "exact amounts: UNI_balance_raw" in as_text(frame)


def test_other_tables_are_shown_as_ever(shell):
    plain = pd.DataFrame({"name": ["$a and $b"], "address": [ADDRESS]})
    assert formatted(shell, plain) == {"text/plain": repr(plain), "text/html": plain._repr_html_()}


def test_a_table_made_of_ours_is_shown_as_ours(shell):
    frame = ours(address=[ADDRESS] * 3, n=[1, 2, 3])
    assert "0xd8da6bf2…7aa96045" in formatted(shell, frame[frame["n"] > 1].head(1))["text/plain"]


HOSTILE = ["$\\text{USDC}$", "USDC\u202ecod\x1b[31m", "US\u200bDC", "USD\u0421"]
DERIVED = {
    "concat": lambda frame: pd.concat([frame, pd.DataFrame({"symbol": ["mine"]})]),
    "groupby": lambda frame: frame.groupby("name").size().to_frame("n"),
    "pivot": lambda frame: frame.assign(n=1).pivot(index="symbol", columns="name", values="n"),
    "merge": lambda frame: pd.DataFrame({"symbol": ["a"]}).merge(frame, on="symbol"),
    "rows": lambda frame: pd.DataFrame(frame.to_dict("records")),
    "levels": lambda frame: pd.DataFrame(
        frame.set_index(["symbol", "name"]).index.to_frame(index=False).values
    ),
    "category": lambda frame: pd.DataFrame({"name": frame["name"].astype("category").array}),
    "column": lambda frame: pd.Series(frame["name"].tolist()),
    "pandas' own types": lambda frame: frame[["name"]].convert_dtypes(),
    "types of Arrow": lambda frame: frame[["name"]].convert_dtypes(dtype_backend="pyarrow"),
    "names of rows": lambda frame: pd.DataFrame({"n": [1]}).rename_axis(frame["name"].iloc[1]),
    "names of columns": lambda frame: frame.assign(n=1).pivot_table(
        values="n", columns="name", index="symbol", aggfunc="sum"
    ),
    "a name over columns": lambda frame: pd.DataFrame({"n": [1]}).rename_axis(
        frame["name"].iloc[1], axis="columns"
    ),
}


@pytest.mark.parametrize("made", DERIVED.values(), ids=DERIVED)
def test_what_pandas_makes_of_our_tables_is_shown_literally_too(shell, made):
    current_session().suspicious.learn(ours(symbol=list("abcd"), name=HOSTILE, n=[1, 2, 3, 4]))
    derived = made(ours(symbol=list("abcd"), name=HOSTILE))
    derived.attrs.clear()  # some of these keep them, as pandas pleases
    for mime, text in formatted(shell, derived).items():
        assert not {"\u202e", "\x1b", "\u200b"} & set(text), mime
        assert "mathjax_ignore" in text or mime == "text/plain"


def test_a_table_of_ours_that_is_shown_is_known_again(shell):
    frame = ours(name=HOSTILE)
    formatted(shell, frame)
    assert "mathjax_ignore" in formatted(shell, pd.DataFrame(frame.to_dict("list")))["text/html"]


def test_a_table_without_a_name_of_a_service_is_shown_as_ever(shell):
    current_session().suspicious.learn(ours(name=[*HOSTILE, "plain", ADDRESS]))
    for mine in (["$x$ and $y$", "plain", ADDRESS], ["a\u202e"], [1, 2], [{"k": HOSTILE[0]}]):
        frame, column = pd.DataFrame({"a": mine}), pd.Series(mine)
        assert formatted(shell, frame) == {
            "text/plain": repr(frame),
            "text/html": frame._repr_html_(),
        }
        assert formatted(shell, column) == {"text/plain": repr(column)}


def test_a_column_of_ours_is_shown_literally(shell):
    column = ours(name=["plain", "a\x1b[31m\u202e"])["name"]
    shown_text = formatted(shell, column)["text/plain"]
    assert shown_text == "0      plain\n1    a\\x1b[31m\\u202e\nName: name, dtype: str"


def test_a_formatter_of_the_user_keeps_other_tables(shell):
    shell.run("%unload_ext nbext")
    html = shell.ip.display_formatter.formatters["text/html"]
    html.for_type(pd.DataFrame, lambda frame: "mine")
    shell.run("%load_ext nbext")
    assert formatted(shell, pd.DataFrame({"a": [1]}))["text/html"] == "mine"
    assert "mathjax_ignore" in formatted(shell, ours(a=[1]))["text/html"]
    shell.run("%unload_ext nbext")
    assert formatted(shell, ours(a=[1]))["text/html"] == "mine"
    html.pop(pd.DataFrame)


def test_strange_tables_are_shown_too(shell):
    two = ours(a=[1], b=["x\u202e"])
    two.columns = ["same", "same"]
    many = ours(a=[1, 2])
    many.index = pd.MultiIndex.from_tuples([("a\u202e", 1), ("b", 2)])
    objects = ours(a=[{"k": "v\u202e"}, [1], None, pd.NA])
    for frame in (two, many, objects, ours(), ours(a=[])):
        assert formatted(shell, frame)["text/plain"]
        assert as_html(frame)
    assert "\u202e" not in as_html(two)
    assert "\u202e" not in as_html(many)
    assert "\u202e" not in as_html(objects)


def test_names_that_pretend_to_be_others_are_marked_in_what_is_shown_and_not_in_the_data(shell):
    frame = ours(
        symbol=["USDC", "USD\u0421", None],
        name=["USD Coin", "USD\u200b Coin", "\uff35\uff33\uff24"],
    )
    text = formatted(shell, frame)["text/plain"]
    assert "name_flags" in text
    with pd.option_context(
        "display.max_colwidth", None, "display.width", 500, "display.max_columns", 20
    ):
        rows = as_text(frame).splitlines()
    assert rows[2].endswith("hidden characters; mixed scripts: Cyrillic, Latin; looks like 'USDC'")
    assert rows[3].endswith("looks like 'USD'")
    assert list(frame.columns) == ["symbol", "name"]
    assert (
        "name_flags"
        not in formatted(shell, ours(symbol=["USDC"], name=["アニメ NFT"]))["text/plain"]
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("USDC", ""),
        ("Ölkanne", ""),
        ("アニメ NFT", ""),
        ("Ελλάδα", ""),
        (None, ""),
        ("US\u200bDC", "hidden characters"),
        ("a\x1bb", "hidden characters"),
        ("U\u0405DT", "mixed scripts: Cyrillic, Latin; looks like 'USDT'"),
        ("\uff35\uff33\uff24\uff23", "looks like 'USDC'"),
    ],
)
def test_a_name_is_flagged_for_what_is_suspicious_in_it(name, expected):
    assert flags(name) == expected


def test_the_package_uses_no_styler():
    # Styler does not escape HTML unless told to, and never its headers.
    for path in Path(nbext.__file__).parent.rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if ".style" in text or ".Styler" in text else ():
            if isinstance(node, ast.Attribute) and node.attr in ("style", "Styler"):
                assert not isinstance(node.value, ast.Name) or node.value.id not in (
                    "frame",
                    "df",
                    "table",
                    "pd",
                ), path


def test_a_library_that_draws_tables_gets_all_rows_literally_with_whole_addresses_and_numbers_as_numbers(
    shell, monkeypatch
):
    drawn = []
    monkeypatch.setattr(
        pd.DataFrame, "_repr_html_", lambda table: drawn.append(table) or "<table>drawn</table>"
    )
    table = ours(address=[ADDRESS] * 1002, name=[NASTY["escape"]] * 1002, balance=range(1002))
    assert formatted(shell, table)["text/html"] == "<table>drawn</table>"
    wanted = pd.DataFrame(
        {"address": ADDRESS, "name": displayed_cell(NASTY["escape"]), "balance": range(1002)}
    )
    wanted["name_flags"] = "hidden characters"
    pd.testing.assert_frame_equal(drawn[0], wanted, check_dtype=False)
    assert drawn[0]["balance"].dtype == "int64"


def test_itables_shows_all_rows_of_our_tables_or_says_how_many_of_them(shell):
    """itables is not a dependency: where it is missing this is skipped."""
    itables = pytest.importorskip("itables", reason="itables is not installed")
    rows = shell.value('%segment {"token": {"token": "UNI"}} --limit 1002')
    few = rows.head(200)
    itables.init_notebook_mode(all_interactive=True)
    try:
        said, all_of_them = (formatted(shell, table)["text/html"] for table in (rows, few))
    finally:
        itables.init_notebook_mode(all_interactive=False)
    shown_rows = sum(address in said for address in rows["address"])
    assert 200 < shown_rows < 1002
    assert re.search(r"downsampled\b.{0,20} from 1,002", said)
    assert [address for address in few["address"] if address not in all_of_them] == []
    assert "downsampled from" not in all_of_them
