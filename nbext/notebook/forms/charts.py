"""Pictures for a segment's card, where matplotlib is installed (the ``plot`` extra); else there are tables only."""

from __future__ import annotations

import base64
import importlib.util
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import html, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NAMES = 14
BLUE, GREY = "#1f77b4", "#9aa5b1"


def available() -> bool:
    """Say whether pictures can be drawn here."""
    return importlib.util.find_spec("matplotlib") is not None


def histogram(bins: Sequence[tuple[str, int]], title: str) -> str:
    """Return upright bars, one for each bin, as an HTML picture with its words for screen readers."""
    figure, axes = _figure(2.6)
    positions = range(len(bins))
    drawn = axes.bar(positions, [count for _, count in bins], color=BLUE, width=0.92)
    axes.bar_label(drawn, [f"{count:,}" if count else "" for _, count in bins], padding=2, fontsize=8)
    many = len(bins) > 8
    # More names than these would stand on each other.
    step = -(-len(bins) // MOST_NAMES)
    names = [label for label, _ in bins][::step]
    axes.set_xticks(positions[::step], names, rotation=30 * many, ha="right" if many else "center")
    axes.set_xlabel(visible(title, 60), parse_math=False, fontsize=8)
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)
    spoken = ", ".join(f"{label}: {count} wallets" for label, count in bins)
    return _html(figure, f"{title}: {spoken}")


def bars(labels: Sequence[str], values: Sequence[int], title: str) -> str:
    """Return horizontal bars, the last of them set apart, as an HTML picture."""
    figure, axes = _figure(0.7 + 0.36 * len(values))
    positions = range(len(values))
    colours = [GREY] * (len(values) - 1) + [BLUE]
    drawn = axes.barh(positions, values, color=colours, height=0.62)
    axes.bar_label(drawn, [f"{value:,}" for value in values], padding=4, fontsize=8)
    axes.set_yticks(positions, [visible(label, 48) for label in labels], parse_math=False, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    spoken = ", ".join(f"{label}: {value}" for label, value in zip(labels, values, strict=True))
    return _html(figure, f"{title}: {spoken}")


def _figure(height: float) -> tuple[Figure, Any]:
    # Not through pyplot: that would keep the figure, and show it once more in some notebooks.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _html(figure: Figure, words: str) -> str:
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=144)
    data = base64.b64encode(written.getvalue()).decode("ascii")
    source = f"data:image/png;base64,{data}"
    return f'<img class="nbext-picture" src="{source}" alt="{html(words, 400)}" style="width: 560px">'
