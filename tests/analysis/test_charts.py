"""Charts: what stands in them, and that names from a chain are drawn literally."""

from __future__ import annotations

import io

import matplotlib.image
import pytest

import nbext
from nbext.analysis import charts

HOSTILE = ["$\\frac{1}{0}$ and $$$", "a\u202eb <script>", "\U0001f680" * 40, "_{x}^{y}"]


@pytest.fixture
def tables(client):
    symbols = ["BAYC", "USDC", "WEI", "ITEMS"]
    return {
        "overlap": nbext.overlap(dict(zip(HOSTILE, symbols, strict=True)), client=client),
        "concentration": nbext.concentration("USDC", client=client),
        "trend": nbext.trend("USDC", every="1h", since="1d", client=client),
        "funnel": nbext.funnel({"nft": {"nft": "BAYC"}, "not": {"token": {"token": "USDC"}}}, client=client),
    }


def texts(chart):
    return [one.get_text() for one in chart.figure.findobj(lambda artist: hasattr(artist, "get_parse_math"))]


def drawn(chart):
    return matplotlib.image.imread(io.BytesIO(chart.png()))


def test_each_chart_is_a_picture_with_title_source_block_and_words(tables):
    all_kinds = {"overlap": ["heatmap", "upset"], "funnel": ["bars"], "concentration": ["lorenz"], "trend": ["line"]}
    for name, kinds in all_kinds.items():
        for kind in kinds:
            chart = tables[name].chart(kind)
            data, about = chart._repr_mimebundle_()
            assert data["image/png"].startswith(b"\x89PNG")
            assert data["text/plain"] == about["image/png"]["alt"] == chart.words
            source = [text for text in texts(chart) if "block 12" in text]
            assert source == [f"{tables[name].attrs['nbext']['service']} · block 12 · "
                              f"{tables[name].attrs['nbext']['as_of']['timestamp']}"]  # fmt: skip
            assert chart.figure.get_suptitle()
            assert len({tuple(point) for row in drawn(chart) for point in row}) > 3


def test_names_from_a_chain_are_drawn_literally_and_cut_in_the_middle(tables):
    shown = ["$\\frac{1}{0}$ and $$$", "a\\u202eb <script>", "\U0001f680" * 13 + "…" + "\U0001f680" * 13, "_{x}^{y}"]
    for kind in ("heatmap", "upset"):
        chart = tables["overlap"].chart(kind)
        drawn(chart)
        names = [one for one in texts(chart) if any(one.startswith(name) for name in shown)]
        assert [name for name in shown if any(one.startswith(name) for one in names)] == shown
        for artist in chart.figure.findobj(lambda one: hasattr(one, "get_parse_math")):
            assert not artist.get_parse_math() or not any(artist.get_text().startswith(name) for name in shown)


def test_names_of_any_width_leave_room_for_the_cells_and_dots_beside_them(tables):
    heatmap, upset = (tables["overlap"].chart(kind) for kind in ("heatmap", "upset"))
    for chart in (heatmap, upset):
        drawn(chart)
    cells = heatmap.figure.axes[0].get_window_extent()
    assert min(cells.width, cells.height) / heatmap.figure.dpi / len(HOSTILE) > 0.3
    above, below = upset.figure.axes
    assert below.get_ylim() == (len(HOSTILE) - 0.5, -0.5)
    assert above.yaxis.get_major_formatter()(1_000) == "1,000"


def test_bars_and_histograms_draw_a_strangers_names_literally_with_their_units(tables):
    about = tables["trend"].attrs["nbext"]
    drawn_ones = [charts.bars(HOSTILE, [1, 2, 3, 4], HOSTILE[0], about, "contracts"),
                  charts.histogram([("1 to 2", 5), ("2 to 3", 1_000)], f"{HOSTILE[0]} per wallet", about)]  # fmt: skip
    for chart, units in zip(drawn_ones, (["contracts"], [f"{HOSTILE[0]} per wallet", "wallets"]), strict=True):
        assert drawn(chart).shape[2] == 4
        axes = chart.figure.axes[0]
        assert [text for text in (axes.get_xlabel(), axes.get_ylabel()) if text] == units
        assert [text for text in texts(chart) if "block 12" in text]
        for artist in chart.figure.findobj(lambda one: hasattr(one, "get_parse_math")):
            assert not artist.get_parse_math() or "$" not in artist.get_text()
    assert 'alt="$\\frac{1}{0}$ and $$$ per wallet: ' in drawn_ones[1].html()


def test_a_chart_is_saved_as_a_picture_of_any_kind(tables, tmp_path):
    chart = tables["funnel"].chart()
    for name in ("funnel.png", "funnel.svg"):
        chart.save(str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 5_000


def test_cells_whose_numbers_span_decades_are_shaded_by_their_logarithms(client):
    from matplotlib.colors import LogNorm, Normalize
    from pandas import DataFrame

    for numbers, norm in (([[1, 2], [2, 40]], Normalize), ([[1, 0], [0, 5_000_000]], LogNorm), ([[0]], Normalize)):
        chart = charts.heatmap(DataFrame(numbers), "title", "wallets", {})
        (image,) = chart.figure.axes[0].images
        assert type(image.norm) is norm
        assert f"{max(map(max, numbers)):,}" in texts(chart)


def test_an_axis_of_few_wallets_is_marked_at_whole_numbers_each_once():
    for chart in (charts.histogram([("1", 2), ("2", 1)], "BAYC per wallet", {}),
                  charts.bars(["joined", "left"], [2, 1], "Wallets that changed", {})):
        drawn(chart)
        (axes,) = chart.figure.axes
        axis = axes.yaxis if axes.get_ylabel() == "wallets" else axes.xaxis
        shown = [label.get_text() for label in axis.get_ticklabels()]
        assert len(shown) == len(set(shown)) > 2
        assert all(place == int(place) for place in axis.get_ticklocs())
