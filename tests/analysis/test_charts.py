"""Charts: what stands in them, and that names from a chain are drawn literally."""

from __future__ import annotations

import io
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib.image
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.text import Text

import nbext
from nbext.analysis import charts
from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import visible
from nbext.notebook.results.tables import Formatters, SuspiciousNames
from tests import slow
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


def texts(chart):
    return [
        one.get_text()
        for one in chart.figure.findobj(lambda artist: hasattr(artist, "get_parse_math"))
    ]


def drawn(chart):
    return matplotlib.image.imread(io.BytesIO(chart.png()))


def test_each_chart_is_a_picture_with_title_source_block_and_words(tables):
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
            assert data["text/plain"] == about["image/png"]["alt"] == chart.words
            source = [text for text in texts(chart) if "block 12" in text]
            moment = tables[name].attrs["nbext"]["as_of"]["timestamp"]
            assert source == [f"service on this machine · block 12 · {moment}"]
            assert chart.figure.get_suptitle()
            sizes = [one.get_fontsize() for one in chart.figure.findobj(Text) if one.get_text()]
            assert min(sizes) >= 8, (name, kind)
            picture = matplotlib.image.imread(io.BytesIO(data["image/png"]))
            assert len({tuple(point) for row in picture[::5] for point in row[::5]}) > 3


def test_names_from_a_chain_are_drawn_literally_and_cut_in_the_middle(tables):
    shown = [
        "$\\frac{1}{0}$ and $$$",
        "a\\u202eb <script>",
        "\U0001f680" * 13 + "…" + "\U0001f680" * 13,
        "_{x}^{y}",
    ]
    for kind in ("heatmap", "upset"):
        chart = tables["overlap"].chart(kind)
        drawn(chart)
        names = [one for one in texts(chart) if any(one.startswith(name) for name in shown)]
        assert [name for name in shown if any(one.startswith(name) for one in names)] == shown
        for artist in chart.figure.findobj(lambda one: hasattr(one, "get_parse_math")):
            assert not artist.get_parse_math() or not any(
                artist.get_text().startswith(name) for name in shown
            )


def test_names_of_any_width_leave_room_for_the_cells_and_dots_beside_them(tables):
    heatmap, upset = (tables["overlap"].chart(kind) for kind in ("heatmap", "upset"))
    for chart in (heatmap, upset):
        drawn(chart)
    cells = heatmap.figure.axes[0].get_window_extent()
    assert min(cells.width, cells.height) / heatmap.figure.dpi / len(HOSTILE) > 0.3
    above, below = upset.figure.axes
    assert below.get_ylim() == (len(HOSTILE) - 0.5, -0.5)
    assert above.yaxis.get_major_formatter()(1_000) == "1,000"


# Maths that matplotlib cannot read, names for its legend alone, format strings, half of a pair, nothing at all.
ODD = [
    "$\\frac{",
    "$$",
    "\\$a$",
    "$x^",
    "_nolegend_",
    "%s {0} {x:,.0f}",
    "a\nb\tc",
    "\u0301" * 300,
    "",
    " ",
    "\u0e33" * 100,
    "$" * 20_000,
]


@pytest.mark.parametrize("text", slow.but_the_first(ODD, 6), ids=range(len(ODD)))
def test_whatever_stands_in_a_label_is_drawn_and_never_read_as_maths(text):
    names, about = (
        [text, f"{text}b", f"{text}c"],
        Provenance(service=text, as_of={"block": 1, "timestamp": text}),
    )
    table = pd.DataFrame([[1, 2, 3]] * 3, index=names, columns=names)
    counted = pd.DataFrame({"at": [pd.NaT, pd.NaT], "block": [1, 2], "count": [1, 2]})
    for chart in (
        charts.heatmap(table, text, "wallets", about),
        charts.upset(names, [1, 2, 3], {1: 5, 7: 1}, about),
        charts.steps(names, [3, 2, 1], [3, 2, 1], about),
        charts.bars(names, [1, 2, 3], text, about),
        charts.lifts(names, [0.5, 2.0, 3.0], text, about),
        charts.lorenz([3, 2, 1], text, 0.5, about),
        charts.line(counted, text, about),
    ):
        chart.figure.set_dpi(72)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph ", UserWarning)
            chart.figure.canvas.draw()
        for artist in chart.figure.findobj(lambda one: hasattr(one, "get_parse_math")):
            assert not artist.get_parse_math() or not {"$", "\\"} & set(artist.get_text())
            assert artist.get_text() == "\n".join(
                visible(line, None) for line in artist.get_text().split("\n")
            )


def test_a_chart_is_saved_as_a_picture_of_any_kind(tables, tmp_path):
    chart = tables["funnel"].chart()
    for name in ("funnel.png", "funnel.svg"):
        chart.save(str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 5_000


def test_cells_whose_numbers_span_decades_are_shaded_by_their_logarithms(client):
    from matplotlib.colors import LogNorm, Normalize

    for numbers, norm in (
        ([[1, 2], [2, 40]], Normalize),
        ([[1, 0], [0, 5_000_000]], LogNorm),
        ([[0]], Normalize),
    ):
        chart = charts.heatmap(pd.DataFrame(numbers), "title", "wallets", Provenance())
        (image,) = chart.figure.axes[0].images
        assert type(image.norm) is norm
        assert f"{max(map(max, numbers)):,}" in texts(chart)


def test_an_axis_of_few_wallets_is_marked_at_whole_numbers_each_once():
    chart = charts.bars(["joined", "left"], [2, 1], "Wallets that changed", Provenance())
    drawn(chart)
    axis = chart.figure.axes[0].xaxis
    shown = [label.get_text() for label in axis.get_ticklabels()]
    assert len(shown) == len(set(shown)) > 2
    assert all(place == int(place) for place in axis.get_ticklocs())


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
    params=[
        *(pytest.param(first, marks=pytest.mark.long) for first in (0, 10, 20)),
        30,
    ],
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
def test_hostile_names_are_literal_in_every_chart_as_a_picture_as_a_file_and_as_html(
    hostile, tmp_path
):
    drawings = [table.chart(kind) for table in hostile for kind in table._drawn]
    assert len(drawings) == len(hostile) + 3, "an overlap is drawn in two ways"
    for chart in drawings:
        chart.save(str(tmp_path / "chart.svg"))
        found = {
            one.tag.rpartition("}")[2] for one in ElementTree.parse(tmp_path / "chart.svg").iter()
        }
        assert found <= {
            "svg",
            "metadata",
            "RDF",
            "Work",
            "type",
            "date",
            "format",
            "creator",
            "Agent",
            "title",
            "defs",
            "style",
            "g",
            "path",
            "use",
            "clipPath",
            "rect",
            "image",
            "pattern",
        }
        html = Parsed(chart.html())
        assert (html.tags, html.attributes) == ({"img"}, {"class", "src", "alt", "style"})
        for artist in chart.figure.findobj(lambda one: hasattr(one, "get_parse_math")):
            for line in artist.get_text().split("\n"):
                assert line == visible(line, None)
                assert len(line) <= 100
            assert not artist.get_parse_math() or not {"$", "\\"} & set(artist.get_text())


def test_hostile_names_are_literal_in_every_table(hostile):
    shell = InteractiveShell()
    Formatters(shell, SuspiciousNames())
    for table in hostile:
        shown = shell.display_formatter.format(table)[0]
        html = Parsed(shown["text/html"])
        assert html.tags <= {"div", "style", "table", "thead", "tbody", "tr", "th", "td", "p", "br"}
        assert html.attributes <= {"class", "border", "scoped", "style"}
        assert "mathjax_ignore" in shown["text/html"]
        assert shown["text/plain"].replace("\n", "") == visible(
            shown["text/plain"].replace("\n", ""), None
        )


@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_long_name_is_cut_in_the_middle_and_a_long_title_goes_on_in_another_line():
    assert charts.shortened("a" * 50_000 + "b" * 50_000) == "a" * 13 + "…" + "b" * 13
    assert charts.shortened("$x$\u202e", 28) == "$x$\\u202e"
    for title in (
        "Wallets that " + "hold at least 1,000 UNI on ethereum and " * 9,
        "\U0001f680" * 200,
    ):
        chart = charts.bars(["one"], [1], title, Provenance())
        drawn(chart)
        (shown,) = [
            one for one in chart.figure.texts if one.get_text() == chart.figure.get_suptitle()
        ]
        extent = shown.get_window_extent()
        assert extent.x0 > 0
        assert extent.x1 < chart.figure.bbox.width


def test_the_number_at_the_highest_point_of_a_line_and_the_point_are_inside_the_picture(tables):
    chart = tables["trend"].chart()
    axes = chart.figure.axes[0]
    drawn(chart)
    assert axes.get_ylim()[1] > tables["trend"]["count"].max()
    for label in axes.texts:
        assert axes.get_window_extent().y1 > label.get_window_extent().y0


def test_a_line_says_its_first_and_last_number_and_shares_begin_at_nothing(tables):
    trend = tables["trend"]
    found = [one.get_text() for one in trend.chart().figure.axes[0].texts]
    assert found == [f"{trend['count'].iloc[place]:,}" for place in (0, -1)]
    (shares, *_) = tables["concentration"].chart().figure.axes[0].get_lines()
    assert shares.get_xydata()[[0, -1]].tolist() == [[0, 0], [1, 1]]
