"""Charts: what stands in them, and that names from a chain are data of theirs, drawn literally."""

from __future__ import annotations

import json
import math
import re
import zlib
from contextlib import ExitStack
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pandas as pd
import pytest
import vl_convert
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell

import nbext
from nbext.analysis import charts
from nbext.core.provenance import Provenance
from nbext.core.uint256 import six_digits
from nbext.core.untrusted_text import visible
from nbext.errors import ConfigError, ValidationError
from nbext.notebook.results.tables import SuspiciousNames, display_literally
from tests.analysis.conftest import random_world
from tests.analysis.test_random_chains import served
from tests.browser.hostile import names
from tests.language.test_against_oracle import WALLETS

HOSTILE = ["$\\frac{1}{0}$ and $$$", "a\u202eb <script>", "\U0001f680" * 40, "_{x}^{y}"]


@pytest.fixture
def tables(client):
    symbols = ["BAYC", "USDC", "WEI", "ITEMS"]
    return {
        "overlap": nbext.overlap(dict(zip(HOSTILE, symbols, strict=True)), client=client),
        "concentration": nbext.concentration("USDC", client=client),
        "trend": nbext.trend("USDC", every="1h", since="1d", client=client),
        "funnel": nbext.funnel(
            {"nft": {"nft": "BAYC"}, "not": {"token": {"token": "USDC"}}}, client=client
        ),
    }


def drawn(chart):
    """Return the picture's SVG, as elements; drawing warns of nothing."""
    assert chart.spec == json.loads(json.dumps(chart.spec, allow_nan=False))
    svg = vl_convert.vegalite_to_svg(chart.spec, "5.8")
    assert "NaN" not in svg
    return ElementTree.fromstring(svg)


def texts(chart):
    """Return all that is written in the picture."""
    return [
        "".join(one.itertext()) for one in drawn(chart).iter("{http://www.w3.org/2000/svg}text")
    ]


def our_words(part, path=()):
    """Yield where each text of a description is, but the data, which nothing reads as more than text."""
    if path in {("data",), ("params",), ("description",)} or path[-2:] == ("scale", "domain"):
        return
    if isinstance(part, dict | list):
        items = part.items() if isinstance(part, dict) else enumerate(part)
        for key, one in items:
            yield from our_words(one, (*path, key))
    elif isinstance(part, str):
        yield path, part


def values(chart):
    return {(row["row"], row["column"]): row for row in chart.spec["data"]["values"]}


@pytest.mark.slow
def test_each_chart_is_a_description_a_picture_and_words_with_title_source_and_block(tables):
    all_kinds = {
        "overlap": ["heatmap", "upset"],
        "funnel": ["bars"],
        "concentration": ["lorenz"],
        "trend": ["line"],
    }
    for name, kinds in all_kinds.items():
        for kind in kinds:
            chart = tables[name].chart(kind)
            data, about = chart._repr_mimebundle_()
            assert data["image/png"].startswith(b"\x89PNG")
            assert data["application/vnd.vegalite.v5+json"] == chart.spec
            assert data["text/plain"] == chart.text
            # On a page as wide as it is drawn, from twice the points.
            points = int.from_bytes(data["image/png"][16:20])
            assert about == {"image/png": {"alt": chart.words, "width": points // 2}}
            moment = tables[name].attrs["nbext"]["as_of"]["timestamp"]
            written = texts(chart)
            assert chart.spec["title"] in written
            assert f"service on this machine · block 12 · {moment}" in " ".join(written)
            sizes = {one.get("font-size") for one in drawn(chart).iter() if one.get("font-size")}
            assert min(int(size.removesuffix("px")) for size in sizes) >= 10, (name, kind)


@pytest.mark.slow
def test_altair_goes_on_from_every_description():
    import altair

    for chart in kinds_of(["a", "b"]):
        goes_on = altair.Chart.from_dict(chart.spec).properties(title="Mine")
        assert goes_on.to_dict(validate=True)["title"] == "Mine"


def test_names_from_a_chain_are_drawn_literally_and_cut_in_the_middle(tables):
    rockets = "\U0001f680" * 13
    shown = ["$\\frac{1}{0}$ and $$$", "a\\u202eb <script>", f"{rockets}…{rockets}", "_{x}^{y}"]
    for kind in ("heatmap", "upset"):
        written = texts(tables["overlap"].chart(kind))
        assert [name for name in shown if not any(one.startswith(name) for one in written)] == []


@pytest.mark.slow
def test_each_mark_of_a_chart_opens_the_wallets_that_it_counts(tables, client):
    bayc = {"nft": {"nft": "BAYC"}}
    all_tables = {
        **tables,
        "changes": nbext.changes(bayc, "6h", client=client),
        "retention": nbext.retention(bayc, "day", since="2d", client=client),
        "profile": nbext.profile(bayc, least=1, client=client),
        "wallet": nbext.wallet(WALLETS[:2], client=client),
    }
    wrong = []
    for name, table in all_tables.items():
        for kind in table._drawn:
            chart = table.chart(kind)
            rows = chart.spec["data"]["values"]
            assert len(rows) == len(chart.cells), name
            for place, row in enumerate(rows):
                if not row["shown"]:
                    continue
                found = len(chart.of_cell(*chart.cells[place]).open())
                if name == "retention":
                    cohort = table["wallets"].iloc[place // (table.shape[1] - 1)]
                    counted = round(row["value"] * cohort)
                elif name == "concentration":
                    counted = round((1 - row["holders"]) * table.loc["all", "wallets"])
                elif name == "profile":
                    counted = table[table["share"] < 1]["wallets"].iloc[place]
                elif name == "wallet":
                    assert found, row
                    continue
                else:
                    counted = row.get("value", row.get("wallets"))
                if found != counted:
                    wrong.append((name, kind, row, found, counted))
    assert wrong == []


# Maths, expressions and format strings; half of a pair, nothing at all, a tooltip's title that loads a picture.
ODD = [
    "$\\frac{",
    "${datum.x}",
    "datum['value']",
    "%s {0} {x:,.0f}",
    "a\nb\tc",
    "\u0301" * 300,
    "",
    " ",
    "image",
    "title",
    "javascript:window.pwned=1",
    "$" * 20_000,
]


def kinds_of(given):
    """Return a chart of each kind that has these names, and the last of them wherever a text is one alone."""
    text, numbers = given[-1], list(range(1, len(given) + 1))
    about = Provenance(service=text, as_of={"block": 1, "timestamp": text})
    table = pd.DataFrame([numbers] * len(given), index=given, columns=given)
    counted = pd.DataFrame(
        {"at": [pd.NaT, pd.NaT], "block": [1, 2], "count": [1, 2], "amount": [0.5, 2e9]}
    )
    return (
        charts.heatmap(table, "Title", text, about),
        charts.heatmap(table, "Title", text, about, square=False),
        charts.upset(given, numbers, {1: 5, 2 ** len(given) - 1: 1}, about),
        charts.steps(given, numbers, numbers, about),
        charts.bars(given, numbers, "Title", text, about),
        charts.bars(given, numbers, "Title", text, about, wide=True, begin=2),
        charts.lorenz([3, 2, 1], text, 0.5, about),
        charts.line(counted, text, about),
    )


@pytest.mark.slow
def test_whatever_stands_in_a_name_is_data_and_no_title_field_or_expression_of_a_chart():
    plain = [
        list(our_words(chart.spec)) for chart in kinds_of([f"n{at}" for at in range(len(ODD))])
    ]
    for words, chart in zip(plain, kinds_of(ODD), strict=True):
        assert list(our_words(chart.spec)) == words
        written = texts(chart)
        assert [one for one in written if one != visible(one, None) or len(one) > 250] == []


@settings(max_examples=20)
@given(st.text(max_size=80))
def test_any_name_at_all_is_data_alone(text):
    plain = [list(our_words(chart.spec)) for chart in kinds_of(["plain", "other"])]
    found = [list(our_words(chart.spec)) for chart in kinds_of([text, f"{text}b"])]
    assert found == plain


def test_no_field_under_the_pointer_has_a_title_that_a_front_end_reads_as_more():
    # vega-tooltip loads the value of the one as a picture, and makes a heading of the other.
    looks = json.dumps(json.loads(charts._LOOKS))
    titles = re.findall(r'"(?:field|title)": "([^"]*)"', looks)
    assert len(titles) > 30
    assert not {"image", "title"} & set(titles)


def test_two_names_that_are_cut_alike_are_two_rows():
    long = [f"{'a' * 40}{place}{'b' * 40}" for place in range(3)]
    chart = charts.bars(long, [1, 2, 3], "Title", "", Provenance())
    cut = "a" * 19 + "…" + "b" * 19
    assert [(row["name"], row["value"]) for row in chart.spec["data"]["values"]] == [
        (cut, 1),
        (f"{cut} (2)", 2),
        (f"{cut} (3)", 3),
    ]


def test_a_chart_is_saved_as_a_picture_of_any_kind(tables, tmp_path):
    chart = tables["funnel"].chart()
    for name, begins in (("f.png", b"\x89PNG"), ("f.svg", b"<svg"), ("F.PDF", b"%PDF")):
        chart.save(str(tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(begins)
    with pytest.raises(ValidationError, match=r"ends in .png, .svg or .pdf, not 'bmp'"):
        chart.save(str(tmp_path / "funnel.bmp"))


def points_of(png):
    """Return the points of a PNG, unpacked, and the names of its chunks."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, place = [], 8
    while place < len(png):
        size = int.from_bytes(png[place : place + 4])
        chunk = png[place + 4 : place + 8 + size]
        assert zlib.crc32(chunk) == int.from_bytes(png[place + 8 + size : place + 12 + size])
        chunks.append((chunk[:4], chunk[4:]))
        place += 12 + size
    return zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT")), [
        kind for kind, _ in chunks
    ]


@pytest.mark.slow
def test_a_picture_takes_less_room_than_it_is_made_with_and_has_the_same_points(tables):
    chart = tables["overlap"].chart()
    made = vl_convert.vegalite_to_png({**chart.spec, "background": "white"}, "5.8", scale=2)
    assert points_of(chart.picture())[0] == points_of(made)[0]
    assert points_of(chart.picture())[1] == [b"IHDR", b"IDAT", b"IEND"]
    assert 2 * len(chart.picture()) < len(made)


def test_without_vl_convert_a_notebook_still_draws_and_a_picture_says_what_is_missing(
    tables, monkeypatch, tmp_path
):
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    chart = tables["funnel"].chart()
    data, about = chart._repr_mimebundle_()
    assert (set(data), about) == ({"application/vnd.vegalite.v5+json", "text/plain"}, {})
    with pytest.raises(ConfigError) as caught:
        chart.save(str(tmp_path / "funnel.svg"))
    assert str(caught.value) == (
        'A picture of a chart needs vl-convert. Install it: %pip install "nbext[plot]"'
    )


def test_the_sizes_on_the_diagonal_have_no_shade_and_do_not_set_those_of_the_rest():
    shares = pd.DataFrame([[1.0, 0.2], [0.4, 1.0]], index=["A", "B"], columns=["A", "B"])
    chart = charts.heatmap(shares, "Title", "", Provenance(), form="{:.0%}")
    color = chart.spec["vconcat"][0]["vconcat"][0]["layer"][0]["encoding"]["color"]
    assert color["scale"]["domain"] == [0, 0.4]
    assert {pair: row.get("shade") for pair, row in values(chart).items()} == {
        ("A", "A"): None,
        ("A", "B"): 0.2,
        ("B", "A"): 0.4,
        ("B", "B"): None,
    }
    assert chart.text == (
        "Title\nB and A  40%  ████████████████████████\nA and B  20%  ████████████"
    )


def test_cells_whose_numbers_span_decades_are_shaded_by_their_logarithms():
    for numbers, kind, domain in (
        ([[9, 2, 5], [2, 9, 40], [5, 40, 9]], "linear", [0, 40]),
        ([[9, 0, 5], [0, 9, 5_000_000], [5, 5_000_000, 9]], "log", [5, 5_000_000]),
        ([[0]], "linear", [0, 0]),
    ):
        named = ["A", "B", "C"][: len(numbers)]
        table = pd.DataFrame(numbers, index=named, columns=named)
        chart = charts.heatmap(table, "Title", "", Provenance())
        scale = chart.spec["vconcat"][0]["vconcat"][0]["layer"][0]["encoding"]["color"]["scale"]
        assert (scale["type"], scale["domain"]) == (kind, domain)
        assert f"{max(map(max, numbers)):,}" in texts(chart)


def test_the_shades_of_cohorts_are_those_of_their_values_and_what_has_not_come_is_blank():
    table = pd.DataFrame(
        [[1.0, 0.98], [1.0, float("nan")]], index=["May", "June"], columns=["month 0", "month 1"]
    )
    chart = charts.heatmap(table, "Title", "UNI", Provenance(), form="{:.0%}", square=False)
    scale = chart.spec["vconcat"][0]["vconcat"][0]["layer"][0]["encoding"]["color"]["scale"]
    assert scale == {"type": "linear", "scheme": "cividis", "clamp": True, "domain": [0.98, 1.0]}
    assert [(name, shown) for name, _, shown in chart.values] == [
        ("May, month 0", "100%"),
        ("May, month 1", "98%"),
        ("June, month 0", "100%"),
    ]
    assert values(chart)["June", "month 1"] == {
        "row": "June",
        "column": "month 1",
        "name": "June, month 1",
        "shown": "",
    }
    # A screen reader hears each cell once, by its mark.
    said = [one.get("aria-label", "") for one in drawn(chart).iter()]
    assert [one for one in said if "ink" in one or "undefined" in one] == []
    assert [one for one in said if "month 1" in one and "number" in one] == [
        "column: month 1; row: May; number: 98%",
        "column: month 1; row: June; number: ",
    ]


def test_a_funnel_has_three_bars_for_each_step_that_add_up():
    chart = charts.steps(["own A", "hold B", "not C"], [50, 40, 900], [50, 20, 20], Provenance())
    assert [row["shown"] for row in chart.spec["data"]["values"]] == [
        *("50 alone", "0 removed", "50 remaining"),
        *("40 alone", "30 removed", "20 remaining"),
        *("900 alone", "0 removed", "20 remaining"),
    ]
    assert chart.words == (
        "Wallets that remain, condition by condition: own A: 50 alone; own A: 0 removed; "
        "own A: 50 remaining; hold B: 40 alone; hold B: 30 removed; hold B: 20 remaining; "
        "not C: 900 alone; not C: 0 removed; not C: 20 remaining"
    )
    nothing = charts.steps(["own A"], [0], [0], Provenance())
    assert "0 remaining" in texts(nothing)


def test_an_axis_of_few_wallets_is_marked_at_whole_numbers_each_once():
    chart = charts.bars(["then", "now"], [2, 1], "Title", "", Provenance())
    marks = [one for one in texts(chart) if one.isdigit()]
    # Those of the axis, and of both bars.
    assert sorted(marks) == ["0", "1", "1", "2", "2"]


def test_a_logarithmic_axis_has_room_for_every_amount_and_begins_below_the_least():
    amounts = [1e-6, 1.0, 2.5, 999_999.7, 3.04e10]
    chart = charts.bars(
        list("abcde"), amounts, "Title", "", Provenance(), form=six_digits, wide=True
    )
    rows = chart.spec["data"]["values"]
    assert [row["shown"] for row in rows] == ["0.000001", "1", "2.5", "1,000,000", "30,400,000,000"]
    assert all(row["begin"] < row["end"] == row["value"] for row in rows)


def test_a_number_that_has_no_bar_takes_its_cell_with_it():
    told = charts.bars(list("abc"), [2, 0, 1], "Title", "", Provenance(), wide=True)
    given = charts.bars(
        list("abc"),
        [math.nan, 1, 2],
        "Title",
        "",
        Provenance(),
        cells=[(7, None), (8, None), (9, None)],
    )
    assert [[row["name"] for row in one.spec["data"]["values"]] for one in (told, given)] == [
        ["a", "c"],
        ["b", "c"],
    ]
    assert [list(one.cells) for one in (told, given)] == [
        [(0, None), (2, None)],
        [(8, None), (9, None)],
    ]


def test_the_largest_parts_of_a_hundred_are_said_beside_the_curve():
    chart = charts.lorenz([6, 3, 1], "UNI", 0.3, Provenance())
    assert [line.split()[2:6] for line in str(chart.text).splitlines()[1:]] == [
        ["1", "%", "(1)", "60.0%"],
        ["5", "%", "(1)", "60.0%"],
        ["10", "%", "(1)", "60.0%"],
        ["25", "%", "(1)", "60.0%"],
        ["50", "%", "(2)", "90.0%"],
    ]


def test_a_point_of_the_curve_says_what_those_hold_whom_a_press_on_it_opens():
    chart = charts.lorenz([6, 3, 1], "UNI", 0.3, Provenance())
    points = [(row["name"], row["shown"]) for row in chart.spec["data"]["values"]]
    assert list(zip(points, chart.cells, strict=True)) == [
        (("the largest 3 of 3", "100.000%"), (3, None)),
        (("the largest 2 of 3", "90.000%"), (2, None)),
        (("the largest 1 of 3", "60.000%"), (1, None)),
        (("the largest 0 of 3", "0.000%"), (0, None)),
    ]


def test_no_two_layers_of_a_chart_are_one_mark():
    for chart in kinds_of(["a", "b"]):
        named = [
            layer["name"]
            for panel in chart.spec["vconcat"][0]["vconcat"]
            for layer in panel["layer"]
            if "name" in layer
        ]
        assert len(named) == len(set(named)) > 0


def lefts(part, left=0.0):
    """Yield each text of a picture and where it begins."""
    for one in part:
        moved = re.match(r"translate\(([-\d.]+)", one.get("transform") or "")
        begin = left + float(moved[1] if moved else 0)
        if one.text and one.text.strip():
            yield one.text, begin
        yield from lefts(one, begin)


def test_what_a_chart_is_of_begins_below_its_title_however_wide_its_axes_are():
    for chart in kinds_of(["a segment with a long name", "UNI"]):
        begins = dict(lefts(drawn(chart)))
        title, source = chart.spec["title"], chart.spec["params"][0]["value"][-1]
        assert begins[source] == begins[title]


@pytest.mark.slow
def test_a_chart_of_nothing_is_drawn_too():
    for chart in (
        charts.upset(["A", "B"], [0, 0], {1: 0, 2: 0, 3: 0}, Provenance()),
        charts.steps([], [], [], Provenance()),
        charts.bars([], [], "Title", "", Provenance(), wide=True, begin=1),
        charts.bars(["all alike"], [1.0], "Title", "", Provenance(), wide=True, begin=1),
        charts.lorenz([], "UNI", float("nan"), Provenance()),
        charts.lorenz([7], "UNI", 0.0, Provenance()),
        charts.heatmap(
            pd.DataFrame([[float("nan")]], index=["A"], columns=["A"]), "Title", "", Provenance()
        ),
    ):
        drawn(chart)
        assert chart.picture().startswith(b"\x89PNG")


def test_more_than_is_read_is_counted_and_a_trend_says_its_first_and_last_moment():
    many = charts.bars([f"n{place}" for place in range(40)], [1] * 40, "Title", "", Provenance())
    assert many.text.endswith("n29  1  ████████████████████████\nand 10 more")
    assert many.words.endswith("; n29: 1; and 10 more")
    for length in (1, 2, 29, 30, 31, 58, 1_000):
        table = pd.DataFrame(
            {"at": [pd.NaT] * length, "block": range(length), "count": range(length)}
        )
        said = charts.line(table, "", Provenance()).values
        assert len(said) <= charts.MOST_SAID
        assert (said[0][0], said[-1][0]) == ("block 0", f"block {length - 1:,}")


class Parsed(HTMLParser):
    """The tags and attributes of some HTML."""

    def __init__(self, markup):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


PAYLOADS = names("http://127.0.0.1:9")


@pytest.fixture(
    scope="module",
    params=[*(pytest.param(first, marks=pytest.mark.long) for first in (0, 10, 20)), 30],
)
def hostile(request, tmp_path_factory):
    """A client of a chain whose contracts have hostile symbols and names, and analyses of it by hostile names."""
    texts = PAYLOADS[request.param :][:10]
    world = random_world(1)
    world.contracts = [
        replace(one, symbol=texts[place], name=texts[place + 4])
        for place, one in enumerate(world.contracts)
    ]
    usdc, wei, bayc, items, *_ = (one.address for one in world.contracts)
    held, owned = {"token": {"token": usdc}}, {"nft": {"nft": bayc}}
    with served(world, tmp_path_factory.mktemp("hostile")) as (client, _):
        segments = dict(
            zip(
                texts,
                [held, {"token": {"token": wei}}, owned, {"nft": {"nft": items}}],
                strict=False,
            )
        )
        yield [
            nbext.overlap(segments, client=client),
            nbext.overlap(list(segments.values()), share=True, client=client),
            nbext.overlap([held, owned], lift=True, client=client),
            nbext.changes({**held, **owned}, 3, client=client),
            nbext.concentration(usdc, client=client),
            nbext.trend({**held, **owned}, every="5h", since="2d", client=client),
            nbext.trend(usdc, every="5h", since="2d", client=client),
            nbext.retention({**held, **owned}, "day", since="2d", client=client),
            nbext.profile({"any": [held, owned]}, base=wei, least=1, client=client),
            nbext.funnel({**held, **owned, "not": {"token": {"token": wei}}}, client=client),
            nbext.wallet(WALLETS[2:], client=client),
        ]


@pytest.mark.slow
def test_hostile_names_are_literal_in_every_chart_as_a_picture_and_in_words(hostile):
    drawings = [table.chart(kind) for table in hostile for kind in table._drawn]
    assert len(drawings) == len(hostile) + 3, "an overlap is drawn in two ways"
    for chart in drawings:
        found = {one.tag.rpartition("}")[2] for one in drawn(chart).iter()}
        assert found <= {"svg", "g", "path", "text", "tspan", "rect", "line", "defs", "title"} | {
            "clipPath",
            "linearGradient",
            "stop",
        }
        assert not [word for _, word in our_words(chart.spec) if "h0stile" in word]
        for text in (*texts(chart), *chart.text.split("\n"), chart.words):
            assert text == visible(text, None)


def test_hostile_names_are_literal_in_every_table(hostile):
    shell = InteractiveShell()
    display_literally(shell, SuspiciousNames(), ExitStack())
    for table in hostile:
        shown = shell.display_formatter.format(table)[0]
        html = Parsed(shown["text/html"])
        assert html.tags <= {
            "div",
            "style",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "p",
            "span",
            "i",
        }
        assert html.attributes <= {"class", "title", "role", "aria-label", "tabindex"}
        assert "mathjax_ignore" in shown["text/html"]
        assert shown["text/plain"].replace("\n", "") == visible(
            shown["text/plain"].replace("\n", ""), None
        )


def test_a_long_name_is_cut_in_the_middle_and_so_is_a_long_subject():
    assert charts.shortened("a" * 50_000 + "b" * 50_000) == "a" * 13 + "…" + "b" * 13
    assert charts.shortened("$x$\u202e", 28) == "$x$\\u202e"
    for subject in ("hold at least 1,000 UNI on ethereum and " * 9, "\U0001f680" * 200):
        chart = charts.bars(["one"], [1], "Title", subject, Provenance())
        shown = chart.spec["params"][0]["value"][0]
        assert len(shown) == 89


def test_a_line_writes_its_first_and_last_number_and_shares_begin_at_nothing(tables):
    trend = tables["trend"]
    rows = trend.chart().spec["data"]["values"]
    assert [row["shown"] for row in rows if row["end"]] == [
        f"{trend['count'].iloc[place]:,}" for place in (0, -1)
    ]
    shares = tables["concentration"].chart().spec["data"]["values"]
    assert [(row["holders"], row["share"]) for row in (shares[0], shares[-1])] == [(0, 0), (1, 1)]
