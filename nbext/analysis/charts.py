"""Charts as static pictures in one style: dark ink on white, so that they read on light and dark pages and in print.

Nothing is told by colour alone: numbers stand in cells, and lines have markers. Names are a stranger's text: they are
drawn literally, never as mathematics, and cut in the middle.
"""

from __future__ import annotations

import base64
import importlib.util
import io
import math
import textwrap
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import html, visible
from nbext.errors import ConfigError, ValidationError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

INK, BLUE, GREY = "#222222", "#1f77b4", "#9aa5b1"
# Behind a number that lines or hatches cross.
_ON_PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 1}
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
MOST_NUMBERED, MOST_IN_HEATMAP, MOST_BARS = 14, 30, 30


@dataclass(frozen=True)
class Chart:
    """A picture, and its words for whoever does not see it. ``figure`` is matplotlib's."""

    figure: Figure
    words: str

    def png(self) -> bytes:
        """Return the picture as a PNG."""
        written = io.BytesIO()
        with warnings.catch_warnings():
            # A name may have letters that no font here has: they are boxes then.
            warnings.filterwarnings("ignore", "Glyph ", UserWarning)
            self.figure.savefig(written, format="png", dpi=144)
        return written.getvalue()

    def save(self, path: str) -> None:
        """Write the picture to a file: .png, .svg or .pdf."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph ", UserWarning)
            self.figure.savefig(path)

    def html(self) -> str:
        """Return the picture as HTML, with its words for screen readers."""
        # Inside the HTML: a picture in a file of its own would be missing from the saved notebook.
        source = f"data:image/png;base64,{base64.b64encode(self.png()).decode('ascii')}"
        return f'<img class="nbext-picture" src="{source}" alt="{html(self.words, 400)}" style="width: 560px">'

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        width = int(self.figure.get_figwidth() * 88)
        return {"image/png": self.png(), "text/plain": self.words}, {
            "image/png": {"width": width, "alt": self.words}
        }


def available() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def blank(width: float, height: float, title: str, about: Provenance) -> Any:
    """Return empty axes with a title above them, and below the service and block that the numbers are of."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError(
            'A chart needs matplotlib. Install it: %pip install "nbext[plot]"'
        ) from None
    # Not through pyplot, which keeps every figure, and shows it a second time in notebooks with inline plots.
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    figure.suptitle(
        _wrapped(shortened(title, 140), width), fontsize=10, color=INK, parse_math=False
    )
    figure.supxlabel(_source(about), fontsize=7, color="#555555", parse_math=False)
    axes = figure.add_subplot()
    axes.tick_params(labelsize=8, colors=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def check_room(number: int, most: int, chart: str, what: str, pointer: str) -> None:
    """Refuse a chart of more than there is room for."""
    if number > most:
        detail = f"{chart} has room for {most} {what}, and these are {number}."
        raise ValidationError.of(pointer, "size", detail)


def _source(about: Provenance) -> str:
    as_of = about.as_of or {}
    block = as_of.get("block")
    service = str(about.service)
    # The embedded service has another port each time: the same chart would differ from run to run.
    service = "service on this machine" if urlsplit(service).hostname in _THIS_MACHINE else service
    parts = [service, f"block {block:,}" if isinstance(block, int) else "", as_of.get("timestamp")]
    return " · ".join(visible(part, 60) for part in parts if part)


def shortened(name: str, most: int = 28) -> str:
    """Return a name with its middle left out where it is long.

    >>> shortened("A name that is far too long for an axis", 15)
    'A name …an axis'
    """
    # Of a text of a megabyte no more is looked at than may be shown.
    text = _flat(visible(name if len(name) <= 2 * most else name[:most] + name[-most:], None))
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def _flat(text: str) -> str:
    """Return a text with two marks on a letter at most: a pile of them takes the room of the chart."""
    kept, marks = [], 0
    for char in text:
        marks = marks + 1 if unicodedata.combining(char) else 0
        kept.append(char if marks < 3 else "…" * (marks == 3))
    return "".join(kept)


def _wide(text: str) -> int:
    """Return how many letters wide a text is: an emoji is as wide as two."""
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def _wrapped(title: str, width: float) -> str:
    """Return a title in lines that a figure of so many inches has room for."""
    letters = max(1, int(8 * width * len(title) / max(1, _wide(title))))
    return "\n".join(textwrap.wrap(title, letters, break_on_hyphens=False))


def _room(names: Sequence[str]) -> float:
    """Return the inches that names take beside an axis, at least those of a short one."""
    return max(1.0, *(0.075 * _wide(shortened(name)) for name in names))


def names_on(axis: Any, names: Sequence[str], most: int = 28, *, upright: bool = False) -> None:
    """Write names at the places of an axis, literally, a long one in up to three lines of 44 letters."""
    texts = [
        "\n".join(textwrap.wrap(shortened(name, most), 44, max_lines=3, placeholder="…"))
        for name in names
    ]
    if upright:
        axis.set_ticks(
            range(len(texts)),
            texts,
            rotation=45,
            ha="right",
            rotation_mode="anchor",
            parse_math=False,
        )
    else:
        axis.set_ticks(range(len(texts)), texts, parse_math=False)


def whole_numbers(axis: Any) -> None:
    """Mark an axis of counts at whole numbers alone: rounded, the marks of a small one would be 0, 0, 1, 2, 2."""
    if axis.get_scale() == "linear":
        axis.get_major_locator().set_params(integer=True)
    axis.set_major_formatter("{x:,.0f}")


def heatmap(
    table: pd.DataFrame,
    title: str,
    unit: str,
    about: Provenance,
    form: str = "{:,.0f}",
    *,
    diagonal: bool = True,
) -> Chart:
    """Draw a table as shaded cells with their numbers; a logarithmic shade where they span decades.

    Without ``diagonal`` its numbers do not set the range of the shades.
    """
    from matplotlib.colors import LogNorm, Normalize

    values = table.to_numpy(dtype=float)
    rows, columns = values.shape
    index, header = [str(name) for name in table.index], [str(name) for name in table.columns]
    # The names below are aslant.
    axes = blank(
        1.9 + _room(index) + 0.42 * columns, 1.2 + 0.75 * _room(header) + 0.36 * rows, title, about
    )
    ranged = (values > 0) & (values < math.inf)
    if not diagonal and rows > 1:
        ranged[range(rows), range(rows)] = False
    known = values[ranged]
    least, most = (known.min(), known.max()) if len(known) else (1.0, 1.0)
    norm = LogNorm(least, max(most, least * 1.01)) if most > 50 * least else Normalize(0, most)
    shaded = axes.imshow(_clipped(values, least), cmap="cividis", norm=norm, aspect="auto")
    names_on(axes.yaxis, index)
    names_on(axes.xaxis, header, upright=True)
    bar = axes.figure.colorbar(shaded, ax=axes, fraction=0.04)
    bar.set_label(unit, fontsize=8, color=INK)
    bar.ax.tick_params(labelsize=7)
    # A logarithmic axis would write powers of ten.
    bar.ax.yaxis.set_major_formatter(lambda value, _: form.format(value))
    if max(rows, columns) <= MOST_NUMBERED:
        for row in range(rows):
            for column in range(columns):
                value = values[row, column]
                dark = not value > 0 or norm(value) < 0.55
                text = "" if math.isnan(value) else form.format(value)
                axes.text(
                    column,
                    row,
                    text,
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if dark else "black",
                )
    return Chart(axes.figure, f"{visible(title)}: {rows} by {columns} {unit}")


def _clipped(values: Any, least: float) -> Any:
    # Nothing at all has no logarithm: it is as dark as the least.
    return values.clip(min=least)


def upset(
    names: Sequence[str], sizes: Sequence[int], only: Mapping[int, int], about: Provenance
) -> Chart:
    """Draw the largest groups of wallets that are in exactly some segments: bars, and dots that say which segments.

    ``only`` has the wallets of each group, by the bits of its segments.
    """
    groups = sorted(
        (group for group in only if only[group]), key=lambda group: (-only[group], group)
    )[:MOST_BARS]
    title = "Wallets in exactly these segments"
    axes = blank(
        1.6 + _room(names) + 0.26 * max(len(groups), 6), 3.2 + 0.3 * len(names), title, about
    )
    figure = axes.figure
    axes.remove()
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 0.3 * len(names)])
    drawn = above.bar(range(len(groups)), [only[group] for group in groups], color=BLUE, width=0.7)
    above.bar_label(
        drawn, [f"{only[group]:,}" for group in groups], fontsize=7, rotation=90, padding=3
    )
    above.set_ylabel("wallets", fontsize=8, color=INK)
    above.margins(y=0.3)
    whole_numbers(above.yaxis)
    above.tick_params(labelsize=7, bottom=False, labelbottom=False)
    for place, group in enumerate(groups):
        rows = [row for row in range(len(names)) if group >> row & 1]
        below.plot([place] * len(names), range(len(names)), "o", color="#d9dee3", markersize=6)
        below.plot([place] * len(rows), rows, "o-", color=INK, markersize=6, linewidth=1.5)
    labels = [f"{shortened(name)} ({size:,})" for name, size in zip(names, sizes, strict=True)]
    below.set_yticks(range(len(names)), labels, fontsize=8, parse_math=False)
    # Half a row below the last, whose dots the axis would cut.
    below.set_ylim(len(names) - 0.5, -0.5)
    below.set_xticks([])
    for one in (above, below):
        for side in ("top", "right"):
            one.spines[side].set_visible(False)
    spoken = [
        f"{' and '.join(visible(name, 60) for row, name in enumerate(names) if group >> row & 1)}: {only[group]:,}"
        for group in groups
    ]
    return Chart(figure, f"{title}: {'; '.join(spoken)}")


def steps(
    names: Sequence[str], alone: Sequence[int], left: Sequence[int], about: Provenance
) -> Chart:
    """Draw a bar for each condition: an outline of what matches it alone, filled with what remains after it."""
    title = "Wallets that remain, condition by condition"
    axes = blank(7.2, 1.4 + 0.42 * len(names), title, about)
    places = range(len(names))
    axes.barh(
        places,
        alone,
        color="none",
        edgecolor=GREY,
        hatch="////",
        height=0.7,
        label="this condition alone",
    )
    filled = axes.barh(places, left, color=BLUE, height=0.45, label="with those before it")
    axes.bar_label(
        filled, [f"{number:,}" for number in left], fontsize=8, padding=4, bbox=_ON_PAPER
    )
    names_on(axes.yaxis, names, 112)
    axes.invert_yaxis()
    above = [number for number in (*alone, *left) if number]
    if above and max(above) > 100 * min(above):
        axes.set_xscale("symlog", linthresh=1)
    axes.set_xlabel("wallets", fontsize=8, color=INK)
    axes.margins(x=0.15)
    whole_numbers(axes.xaxis)
    axes.legend(fontsize=7, frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    spoken = "; ".join(
        f"{visible(name, 60)}: {number:,}" for name, number in zip(names, left, strict=True)
    )
    return Chart(axes.figure, f"{title}: {spoken}")


def bars(
    names: Sequence[str],
    counts: Sequence[int],
    title: str,
    about: Provenance,
    unit: str = "wallets",
) -> Chart:
    """Draw a bar for each name, with its number."""
    axes = blank(7.2, 1.4 + 0.42 * len(names), title, about)
    drawn = axes.barh(range(len(names)), counts, color=BLUE, height=0.6)
    axes.bar_label(drawn, [f"{number:,}" for number in counts], fontsize=8, padding=4)
    names_on(axes.yaxis, names, 112)
    axes.invert_yaxis()
    axes.set_xlabel(unit, fontsize=8, color=INK)
    axes.margins(x=0.15)
    whole_numbers(axes.xaxis)
    spoken = "; ".join(
        f"{visible(name, 60)}: {number:,}" for name, number in zip(names, counts, strict=True)
    )
    return Chart(axes.figure, f"{visible(title)}: {spoken}")


def lifts(names: Sequence[str], ratios: Sequence[float], title: str, about: Provenance) -> Chart:
    """Draw a bar for each name, from 1, where nothing is special, to its ratio, on a logarithmic axis."""
    axes = blank(7.2, 1.6 + 0.3 * len(names), title, about)
    known = [(place, ratio) for place, ratio in enumerate(ratios) if 0 < ratio < math.inf]
    drawn = axes.barh(
        [place for place, _ in known],
        [ratio - 1 for _, ratio in known],
        left=1,
        color=BLUE,
        height=0.6,
    )
    axes.bar_label(drawn, [f"{ratio:,.3g}" for _, ratio in known], fontsize=8, padding=4)
    names_on(axes.yaxis, names, 44)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color=INK, linewidth=0.8)
    axes.margins(x=0.15)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_xlabel("times as large a share as of the base", fontsize=8, color=INK)
    spoken = "; ".join(f"{visible(names[place], 60)}: {ratio:,.3g}" for place, ratio in known)
    return Chart(axes.figure, f"{visible(title)}: {spoken}")


def lorenz(largest: Sequence[int], name: str, gini: float, about: Provenance) -> Chart:
    """Draw the Lorenz curve of amounts, given from the largest down, beside the line of equal shares."""
    smallest, total, number = [0, *accumulate(reversed(largest))], sum(largest), len(largest)
    # As many points as the picture has room for, the ends included.
    places = sorted({round(number * step / 200) for step in range(201)})
    title = f"Who holds {shortened(name)}: Gini {gini:.3f}"
    axes = blank(5.2, 4.2, title, about)
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", label="equal shares")
    axes.plot(
        [place / number for place in places],
        [smallest[place] / total for place in places],
        color=BLUE,
        linewidth=2,
        marker="o",
        markevery=20,
        markersize=4,
        label=f"{number:,} holders",
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("holders, from the smallest", fontsize=8, color=INK)
    axes.set_ylabel(f"share of all {shortened(name)} held", fontsize=8, color=INK, parse_math=False)
    axes.legend(fontsize=8, frameon=False, loc="upper left")
    return Chart(axes.figure, visible(f"{title}, of {number:,} holders"))


def line(table: pd.DataFrame, title: str, about: Provenance) -> Chart:
    """Draw counts through time: a line with its points, and the first and last number."""
    axes = blank(7.2, 3.4, title, about)
    timed = table["at"].notna().all()
    places = table["at"].dt.tz_localize(None) if timed else table["block"].astype("float64")
    axes.plot(places, table["count"], color=BLUE, marker="o", markersize=4, linewidth=1.5)
    for row in {0, len(table) - 1}:
        axes.annotate(
            f"{table['count'].iloc[row]:,}",
            (places.iloc[row], table["count"].iloc[row]),
            fontsize=8,
            xytext=(0, 9),
            textcoords="offset points",
            ha="center",
            bbox=_ON_PAPER,
        )
    # Room for the number above the highest point.
    axes.set_ylim(0, max(1, 1.15 * table["count"].max()))
    whole_numbers(axes.yaxis)
    axes.set_xlabel("time (UTC)" if timed else "block", fontsize=8, color=INK)
    axes.set_ylabel("wallets", fontsize=8, color=INK)
    axes.grid(axis="y", color="#e3e6ea")
    return Chart(
        axes.figure, f"{visible(title)}: {table['count'].iloc[0]:,} to {table['count'].iloc[-1]:,}"
    )
