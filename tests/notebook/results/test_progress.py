"""The bar: after half a second, with what is known, and gone at the end."""

from __future__ import annotations

import re
import time

import pytest
from IPython.core.interactiveshell import InteractiveShell

from nbext.client.segment_run import Progress
from nbext.notebook.results.progress import Bar, NotebookView, TerminalView, view_for


class Kept:
    """A view that keeps what it was told to draw."""

    def __init__(self) -> None:
        self.drawn: list[tuple[str, float | None]] = []
        self.closed = 0

    def show(self, text: str, share: float | None) -> None:
        self.drawn.append((text, share))

    def close(self) -> None:
        self.closed += 1


def drawn_after(*reports, give=Bar.__call__):
    view = Kept()
    # Drawn for the first time after the reports, however busy the machine is.
    with Bar("segment", view, delay=0.5) as bar:
        for report in reports:
            give(bar, report)
        until = time.monotonic() + 60
        while not view.drawn and time.monotonic() < until:
            time.sleep(0.005)
    assert view.closed == 1
    text, share = view.drawn[0]
    return re.sub(r"\b\d+ s$", "0 s", text), share


def test_a_quick_call_draws_nothing():
    view = Kept()
    with Bar("segment", view, delay=30):
        pass
    assert (view.drawn, view.closed) == ([], 0)


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ((), ("segment: waiting, 0 s", None)),
        ((Progress("running"),), ("segment: running, 0 s", None)),
        ((Progress("running", "queued", "a"),), ("segment: queued, 0 s", None)),
        ((Progress("running", "\x1b[31m", "a"),), ("segment: \\x1b[31m, 0 s", None)),
        ((Progress("fetching"),), ("segment: fetching, 0 s", None)),
        ((Progress("fetching", done=49_999, total=100_000),), ("segment: fetching, 0 s", 0.49999)),
        ((Progress("fetching", done=50_000),), ("segment: 0.1 MB, 0 s", None)),
        ((Progress("fetching", done=1_500_000),), ("segment: 1.5 MB, 0 s", None)),
        (
            (Progress("fetching", done=1_500_000, total=6_000_000),),
            ("segment: 1.5 MB of 6.0 MB, 0 s", 0.25),
        ),
    ],
)
def test_the_bar_says_what_is_known(reports, expected):
    assert drawn_after(*reports) == expected


def test_a_line_that_says_its_own_time_has_no_seconds_beside_it():
    line = ("12 of 20 blocks, 0:00:12 left", 0.6)
    assert drawn_after(line, give=lambda bar, line: bar.at(*line)) == (f"segment: {line[0]}", 0.6)


def test_the_bar_goes_away_when_the_call_fails():
    view = Kept()

    def fail():
        with Bar("segment", view, delay=0):
            time.sleep(0.1)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert view.closed == 1


def test_a_terminals_line_is_written_over_and_blanked(capsys):
    view = TerminalView()
    view.show("segment: waiting, 1 s", None)
    view.show("short", 0.5)
    view.close()
    assert capsys.readouterr().err == (
        "\rsegment: waiting, 1 s\rshort (50%)          \r" + " " * len("short (50%)") + "\r"
    )


def test_nothing_is_drawn_into_a_file_or_where_no_bar_is_wanted():
    assert view_for(object()) is None
    assert view_for(object(), wanted=False) is None


def test_a_bar_in_a_notebook_is_an_output_of_no_type_before_and_after(monkeypatch):
    """Of any type, strict nbval misses it in a run that is quick enough for no bar, or finds it in one that is not."""
    shown = []
    # Without a shell IPython prints what it would display.
    InteractiveShell.instance()
    monkeypatch.setattr(
        "IPython.core.display_functions.publish_display_data",
        lambda data, metadata=None, **more: shown.append(data),
    )
    view = NotebookView()
    view.show("segment: waiting, 0 s", None)
    view.close()
    assert [sorted(data) for data in shown] == [[], ["text/html", "text/plain"], []]
