"""Charts as Vega-Lite 5 descriptions: plain dicts that a notebook draws offline, in the ink of its own theme.

Nothing is told by colour alone: numbers stand beside bars and in cells. Names are a stranger's text: they are values of
the data, cut in the middle. Titles, names of fields and expressions are our own words, since a front end reads more
into those: a tooltip that is titled ``image`` loads one.
"""

from __future__ import annotations

import json
import math
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nbext.core.provenance import Provenance
from nbext.core.uint256 import six_digits
from nbext.core.untrusted_text import quoted, visible
from nbext.errors import ConfigError, ValidationError

if TYPE_CHECKING:
    import pandas as pd


MIME = "application/vnd.vegalite.v5+json"
# How each chart looks.
_LOOKS = Path(__file__).with_name("charts.json").read_text("utf-8")
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
MOST_NUMBERED, MOST_IN_HEATMAP, MOST_BARS, MOST_SAID = 14, 30, 30, 30
# Letters that have room below a cell.
MOST_LEVEL = 7
# The bars of a condition.
STEPS = ("alone", "removed", "remaining")
# Eight bytes that begin every PNG, and the chunk of its size and colours.
_PNG_HEAD = 8 + 25
# A name, its number, and the number as it is written.
Said = tuple[str, float, str]


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite 5 description, and what it shows as text. ``spec`` is a dict of your own to change.

    ``altair.Chart.from_dict(chart.spec)`` goes on in Altair. ``values`` has what the text says, name by name. Each
    row of its data is a mark that can be pressed: of the cell of that place among ``cells``, whose segment ``of_cell``
    returns.
    """

    spec: dict[str, Any]
    title: str
    values: Sequence[Said]
    # Each a row of the analysis, and a column or None.
    cells: Sequence[Any]
    # Set where an analysis is asked for its chart.
    of_cell: Any = field(default=None, repr=False)

    def live(self) -> Any:
        """Return the chart as a form: pressing a mark opens its wallets below it, and their segment as a cell.

        Raises
        ------
        ConfigError
            vl-convert-python is not installed.
        """
        from nbext import explore

        return explore(self)

    def _display_(self) -> Any:
        """Return what marimo draws."""
        return self.live()

    @property
    def words(self) -> str:
        """What the chart shows, as a sentence."""
        said = [f"{name}: {number}" for name, _, number in self.values[:MOST_SAID]]
        return f"{self.title}: {'; '.join([*said, *self._more()])}"

    @property
    def text(self) -> str:
        """What the chart shows, as lines with bars."""
        said = self.values[:MOST_SAID]
        wide = max((len(name) for name, *_ in said), default=0)
        long = max((len(number) for *_, number in said), default=0)
        most = max((number for _, number, _ in said), default=0) or 1
        lines = [
            f"{name:<{wide}}  {shown:>{long}}  {'█' * round(24 * number / most)}".rstrip()
            for name, number, shown in said
        ]
        return "\n".join([self.title, *lines, *self._more()])

    def _more(self) -> list[str]:
        more = len(self.values) - MOST_SAID
        return [f"and {more:,} more"] if more > 0 else []

    def picture(self, kind: str = "png") -> bytes:
        """Return the chart as a PNG, black on white, or as ``svg`` or ``pdf``.

        Raises
        ------
        ConfigError
            vl-convert-python is not installed.
        """
        try:
            import vl_convert
        except ImportError:
            raise ConfigError(
                'A picture of a chart needs vl-convert. Install it: %pip install "nbext[plot]"'
            ) from None
        is_png = kind == "png"
        convert = getattr(vl_convert, f"vegalite_to_{kind}")
        # As old as JupyterLab's, so that a picture shows what it draws; nothing is loaded from anywhere.
        made = convert(
            {**self.spec, "background": "white" if is_png else "transparent"},
            vl_version="5.8",
            allowed_base_urls=[],
            **{"scale": 2} if is_png else {},
        )
        return _packed(made) if is_png else made.encode() if kind == "svg" else bytes(made)

    def save(self, path: str) -> None:
        """Write the chart to a file: .png, .svg or .pdf.

        Raises
        ------
        ConfigError
            vl-convert-python is not installed.
        ValidationError
            A file of another kind.
        """
        kind = Path(path).suffix[1:].lower()
        if kind not in ("png", "svg", "pdf"):
            detail = (
                f"A chart is written to a file that ends in .png, .svg or .pdf, not {quoted(kind)}."
            )
            raise ValidationError.of("/path", "choice", detail)
        Path(path).write_bytes(self.picture(kind))

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data: dict[str, Any] = {MIME: self.spec, "text/plain": self.text}
        try:
            data["image/png"] = self.picture()
        except ConfigError:
            # A notebook draws the description itself: only pages made of it have no picture.
            return data, {}
        about = {"alt": self.words, "width": drawn_width(data["image/png"])}
        return data, {"image/png": about}


def drawn_width(png: bytes) -> int:
    """Return how wide a page draws the picture of a chart: it has twice the points, and says how many."""
    return int.from_bytes(png[16:20]) // 2


def _packed(png: bytes) -> bytes:
    """Return a PNG of one picture with its points packed tightly: a notebook has four times the room for it."""
    points, place = b"", _PNG_HEAD
    while place < len(png):
        size, kind = int.from_bytes(png[place : place + 4]), png[place + 4 : place + 8]
        points += png[place + 8 : place + 8 + size] if kind == b"IDAT" else b""
        place += size + 12
    chunks = (b"IDAT" + zlib.compress(zlib.decompress(points), 9), b"IEND")
    return png[:_PNG_HEAD] + b"".join(
        (len(one) - 4).to_bytes(4) + one + zlib.crc32(one).to_bytes(4) for one in chunks
    )


def check_room(
    number: int, most: int, chart: str, what: str, pointer: str, *, instead: str = ""
) -> None:
    """Refuse a chart of more than there is room for, with what to write ``instead``."""
    if number > most:
        detail = (
            f"{chart} has room for {most} {what}, and the table has {number}. {instead}".strip()
        )
        raise ValidationError.of(pointer, "size", detail)


def shortened(name: str, most: int = 28) -> str:
    """Return a name with its middle left out where it is long.

    >>> shortened("A name that is far too long for an axis", 15)
    'A name …an axis'
    """
    # Of a text of a megabyte no more is looked at than may be shown.
    flat, marks = "", 0
    for char in visible(name if len(name) <= 2 * most else name[:most] + name[-most:], None):
        # Two marks on a letter at most: a pile of them takes the room of the chart.
        marks = marks + 1 if unicodedata.combining(char) else 0
        flat += char if marks < 3 else "…" * (marks == 3)
    half = (most - 1) // 2
    return flat if len(flat) <= most else f"{flat[:half]}…{flat[-half:]}"


def told_apart(names: Iterable[str]) -> list[str]:
    """Return names, no two alike: rows of one name would be drawn as one row.

    >>> told_apart(["UNI (2)", "UNI", "UNI"])
    ['UNI (2)', 'UNI', 'UNI (3)']
    """
    taken: list[str] = []
    for name in names:
        one, again = name, 1
        while one in taken:
            again += 1
            one = f"{name} ({again})"
        taken.append(one)
    return taken


def _look(name: str) -> Any:
    return json.loads(_LOOKS)[name]


def _described(
    title: str,
    subject: str,
    about: Provenance,
    *,
    rows: Sequence[Mapping[str, Any]],
    panels: Sequence[dict[str, Any]],
    cells: Sequence[Any],
    said: Sequence[Said] | None = None,
) -> Chart:
    """Return the chart of panels below each other: our title, and under it the subject and the source as data.

    What is ``said`` of it is by default each row's name and value; its ``cells`` are rows of a table.
    """
    said = _said(rows) if said is None else said
    subject, as_of, service = shortened(subject, 90), about.as_of or {}, str(about.service or "")
    # The embedded service has another port each time: the same chart would differ from run to run.
    service = "service on this machine" if urlsplit(service).hostname in _THIS_MACHINE else service
    block = as_of.get("block")
    parts = [service, f"block {block:,}" if isinstance(block, int) else "", as_of.get("timestamp")]
    source = " · ".join(visible(part, 60) for part in parts if part)
    chart = Chart(_look("whole"), f"{title}: {subject}" if subject else title, said, cells)
    chart.spec.update(
        title=title,
        description=chart.words,
        params=[{"name": "subject", "value": [one for one in (subject, source) if one]}],
        data={"values": rows},
    )
    # Titled together: their axes differ in width, and the title of one would not begin below ours.
    chart.spec["vconcat"][0]["vconcat"] = panels
    return chart


def _said(rows: Iterable[Mapping[str, Any]]) -> list[Said]:
    return [(row["name"], row["value"], row["shown"]) for row in rows]


def _room(most: float) -> dict[str, Any]:
    """Return the scale of numbers from 0, with room for the largest to be written, and the marks of its axis."""
    # No more marks than whole numbers: rounded, those of a short axis would be 0, 0, 1, 2, 2.
    marks = max(1, min(5, int(most)))
    return {"scale": {"domainMax": 1.3 * (most or 1)}, "axis": _look("axis") | {"tickCount": marks}}


def heatmap(
    table: pd.DataFrame,
    title: str,
    subject: str,
    about: Provenance,
    *,
    form: str = "{:,.0f}",
    square: bool = True,
) -> Chart:
    """Draw a table as shaded cells with their numbers.

    A ``square`` one has the same names on both axes: its diagonal has no shade, 0 is dark, and where numbers span
    decades the shade is logarithmic. The shades of another one are from its least to its largest number.
    """
    rows, columns = (
        told_apart(shortened(str(name)) for name in names) for names in (table.index, table.columns)
    )
    square = square and len(rows) > 1
    joint = " and " if square else ", "
    cells: list[dict[str, Any]] = []
    for row, line in zip(rows, table.to_numpy(dtype=float).tolist(), strict=True):
        for column, value in zip(columns, line, strict=True):
            cell = {"row": row, "column": column, "name": f"{row}{joint}{column}", "shown": ""}
            if math.isfinite(value):
                cell |= {"value": value, "shown": form.format(value)}
                if not (square and row == column):
                    cell["shade"] = value
            cells.append(cell)
    shaded = [one for one in cells if "shade" in one]
    known = [one["value"] for one in shaded if one["value"] > 0 or not square]
    low, most = min(known, default=0.0), max(known, default=1.0)
    wide = square and most > 50 * low > 0
    low = low if wide or not square else 0.0
    numbered = max(len(rows), len(columns)) <= MOST_NUMBERED
    panel = _look("heatmap") | _look("numbered" if numbered else "dense")
    for axis, names in (("x", columns), ("y", rows)):
        panel["encoding"][axis]["scale"] = {"domain": names}
    color = panel["layer"][0]["encoding"]["color"]
    color["scale"] |= {"type": "log" if wide else "linear", "domain": [low, most]}
    if not numbered:
        color["legend"] = {"format": ".0%" if "%" in form else ",~r"}
        del panel["layer"][1]
    elif max(map(len, columns), default=0) <= MOST_LEVEL:
        panel["encoding"]["x"]["axis"]["labelAngle"] = 0
    if square:
        shaded.sort(key=lambda one: -one["value"])
        if table.equals(table.T):
            # Both halves say the same.
            shaded = [one for one in shaded if rows.index(one["row"]) < rows.index(one["column"])]
    places = [*product(range(len(rows)), table.columns)]
    return _described(
        title, subject, about, rows=cells, panels=[panel], said=_said(shaded), cells=places
    )


def upset(
    names: Sequence[str], sizes: Sequence[int], only: Mapping[int, int], about: Provenance
) -> Chart:
    """Draw the largest groups of wallets that are in exactly some segments: bars, and dots that say which segments.

    ``only`` has the wallets of each group, by the bits of its segments: the row of its cell, which has no column.
    """
    groups = sorted(
        (group for group in only if only[group]), key=lambda group: (-only[group], group)
    )[:MOST_BARS]
    labels = [
        f"{name} ({size:,})"
        for name, size in zip(told_apart(map(shortened, names)), sizes, strict=True)
    ]
    rows = []
    for place, group in enumerate(groups):
        inside = [row for row in range(len(names)) if group >> row & 1]
        rows.append(
            {
                "group": place,
                "name": " and ".join(shortened(names[row]) for row in inside),
                "value": only[group],
                "shown": f"{only[group]:,}",
                "first": labels[inside[0]],
                "last": labels[inside[-1]],
                "marks": [
                    {"segment": label, "inside": row in inside} for row, label in enumerate(labels)
                ],
            }
        )
    panels = _look("upset")
    panels[0]["encoding"]["y"] |= _room(max(map(only.__getitem__, groups), default=1))
    title, cells = "Wallets in exactly these segments", [(group, None) for group in groups]
    return _described(title, "", about, rows=rows, panels=panels, cells=cells)


def steps(
    names: Sequence[str], alone: Sequence[int], left: Sequence[int], about: Provenance
) -> Chart:
    """Draw three bars for each condition: the wallets that match it alone, that it removes, and that remain."""
    removed = [before - after for before, after in pairwise([*left[:1], *left])]
    rows = [
        {"name": label, "what": what, "value": number, "shown": f"{number:,} {what}"}
        for label, *numbers in zip(
            told_apart(shortened(name, 112) for name in names), alone, removed, left, strict=True
        )
        for what, number in zip(STEPS, numbers, strict=True)
    ]
    above = [number for number in (*alone, *left) if number]
    panel = _bars(rows, "wallets", wide=bool(above) and max(above) > 100 * min(above))
    panel["height"] = {"step": 18, "for": "offset"}
    panel["encoding"] |= _look("steps")
    title = "Wallets that remain, condition by condition"
    return _described(
        title, "", about, rows=rows, panels=[panel], cells=[*product(range(len(names)), STEPS)]
    )


def bars(
    names: Sequence[str],
    numbers: Sequence[float],
    title: str,
    subject: str,
    about: Provenance,
    *,
    unit: str = "wallets",
    form: Callable[[Any], str] = "{:,}".format,
    wide: bool = False,
    begin: float | None = None,
    cells: Sequence[Any] | None = None,
) -> Chart:
    """Draw a bar for each name, with its number; ``wide`` numbers on a logarithmic axis, from ``begin`` if given.

    A number that can have no bar there is left out, and its cell with it.
    """
    labels = told_apart(shortened(name, 40) for name in names)
    drawn = [at for at, one in enumerate(numbers) if math.isfinite(one) and (one > 0 or not wide)]
    rows = [{"name": labels[at], "value": numbers[at], "shown": form(numbers[at])} for at in drawn]
    panel = _bars(rows, unit, wide=wide, begin=begin)
    of = [cells[at] if cells else (at, None) for at in drawn]
    return _described(title, subject, about, rows=rows, panels=[panel], cells=of)


def _bars(
    rows: Sequence[dict[str, Any]], unit: str, *, wide: bool, begin: float | None = None
) -> dict[str, Any]:
    """Return the panel of a bar for each row: from 0, or on a logarithmic axis from ``begin`` or below the least."""
    known = [row["value"] for row in rows if row["value"] > 0] or [1]
    least, most = min(known), max(known)
    panel: dict[str, Any] = _look("bars")
    x, low = panel["layer"][0]["encoding"]["x"], 0.0
    x |= {"title": unit, **_room(most)}
    if wide:
        first, last = (math.floor(math.log10(end)) for end in (least, most))
        low = min(least, begin) if begin else 10.0**first / 2
        ticks = [10.0**power for power in range(first, last + 1, 1 + (last - first) // 4)]
        x["title"], x["axis"] = f"{unit} (logarithmic)", _look("axis") | {"values": ticks}
        x["scale"] = _look("wide") | {"domain": [low, most * max(most / low, 10) ** 0.3]}
    for row in rows:
        # Nothing at all has no logarithm, and its number stands where the bars begin.
        row |= {"begin": begin or low, "end": max(row["value"], low)}
        row["place"] = max(row["begin"], row["end"])
    return panel


def lorenz(largest: Sequence[int], name: str, gini: float, about: Provenance) -> Chart:
    """Draw the Lorenz curve of amounts, given from the largest down, beside the line of equal shares.

    The row of a point's cell is how many of the largest lie beyond it.
    """
    smallest, total, number = [0, *accumulate(reversed(largest))], sum(largest) or 1, len(largest)
    # As many points as the picture has room for, the ends included.
    places = sorted({round(number * step / 200) for step in range(201)})
    curve = [
        {
            "holders": place / max(number, 1),
            "share": smallest[place] / total,
            # Of those whose wallets a press opens.
            "name": f"the largest {number - place:,} of {number:,}",
            "shown": f"{(total - smallest[place]) / total:.3%}",
        }
        for place in places
    ]
    said = []
    for part in (1, 5, 10, 25, 50) if largest else ():
        many = -(-number * part // 100)
        share = (total - smallest[number - many]) / total
        said.append((f"the largest {part} % ({many:,})", share, f"{share:.1%}"))
    subject = f"{shortened(name)} · {number:,} holders · Gini {gini:.3f} (dashed: equal shares)"
    title, panel = "How much the smallest and the largest hold", _look("lorenz")
    cells = [(number - place, None) for place in places]
    return _described(title, subject, about, rows=curve, panels=[panel], said=said, cells=cells)


def line(table: pd.DataFrame, subject: str, about: Provenance) -> Chart:
    """Draw counts through time, and below them amounts where they are known: lines with points, the ends numbered."""
    timed = bool(table["at"].notna().all())
    moments = table["at"].dt.strftime("%Y-%m-%dT%H:%M:%SZ") if timed else table["block"]
    counts = table["count"].tolist()
    rows = [
        {
            "at": at,
            "wallets": count,
            "shown": f"{count:,}",
            "end": place in (0, len(counts) - 1),
            "name": at.replace("T", " ").rstrip("Z") if timed else f"block {at:,}",
        }
        for place, (at, count) in enumerate(zip(moments.tolist(), counts, strict=True))
    ]
    shown = {"wallets": "shown"}
    if "amount" in table and table["amount"].notna().all():
        shown["held together"] = "amount"
        for row, amount in zip(rows, table["amount"].tolist(), strict=True):
            row |= {"held together": amount, "amount": six_digits(amount)}
    panels: list[dict[str, Any]] = []
    for amount_of, text in shown.items():
        panel = _look("line")
        panel["height"] = 90 if panels else 150
        panel["encoding"]["y"] |= {"field": amount_of, **_room(max(row[amount_of] for row in rows))}
        panel["layer"][-1]["encoding"]["text"] = {"field": text}
        # Two layers of one name would be one mark.
        panel["layer"][-2]["name"] += f"_{len(panels)}" * bool(panels)
        if "held together" in shown:
            panel["encoding"]["tooltip"].append({"field": "amount", "title": "held together"})
        if timed:
            panel["encoding"]["x"] |= _look("time")
        panels.append(panel)
    # As many moments as are read, the first and the last among them.
    step = max(1, -(-(len(rows) - 1) // (MOST_SAID - 2)))
    said = [(row["name"], row["wallets"], row["shown"]) for row in [*rows[:-1:step], rows[-1]]]
    title, cells = "Wallets through time", [(place, None) for place in range(len(rows))]
    return _described(title, subject, about, rows=rows, panels=panels, said=said, cells=cells)
