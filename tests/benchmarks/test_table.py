"""The table of figures: one row for each question, whole figures, and a word where there is none."""

from __future__ import annotations

from tests.benchmarks import table
from tests.benchmarks.measure import Took
from tests.benchmarks.table import Row


def test_a_row_shows_medians_ratios_and_rounds():
    row = Row(
        "a | b", Took(0.0369, 15, 100), {"SQL": Took(1.4194, 5, 250), "arrays": Took(0.007, 15)}
    )
    assert table.rendered([row], "1 May 2026", "2 cores") == (
        "1 May 2026, on 2 cores. Times are medians of the rounds in the last column, nbext's first.\n\n"
        "| question | nbext | beside it (times ours) | rounds |\n"
        "| --- | --- | --- | --- |\n"
        "| a \\| b | 37 ms, 100 MB | SQL: 1.42 s, 250 MB (38x, 2.5x the memory); arrays: 7 ms (0.19x) | 15, 5, 15 |\n"
    )


def test_sides_of_as_many_rounds_say_so_once_and_long_ones_are_whole_seconds():
    assert Row("q", Took(39.6), {"alone": Took(18.7)}).cells() == [
        "q",
        "40 s",
        "alone: 19 s (0.47x)",
        "1",
    ]


def test_a_side_without_a_time_says_why():
    row = Row("q", Took(0.5, 2), {"JupySQL": "jupysql is not installed"})
    assert row.cells() == ["q", "500 ms", "JupySQL: jupysql is not installed", "2"]
    assert Row("q", "3 commands", {}).cells() == ["q", "3 commands", "", ""]


def test_the_machine_is_told_by_what_it_has_and_not_by_its_name():
    told = table.machine()
    assert " cores" in told
    assert " GB, " in told
    assert "pandas " in told


def test_what_is_written_is_what_the_page_shows(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{table.BEGINS}old\n{table.ENDS}after\n")
    table.write("new\n", page)
    assert page.read_text() == f"before\n{table.BEGINS}new\n{table.ENDS}after\n"
    assert table.written(page) == "new\n"
