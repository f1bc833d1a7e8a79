"""The faults are put where they are meant to be, and what is said to change nothing is still in the code."""

from __future__ import annotations

from tests.mutation.mutants import changed_lines, is_a_fault, mutants_of
from tests.mutation.run import ROOT, distance, equivalents

MODULE = '''\
"""A module."""

MOST = 5


def kept(rows: list[int] | None, least: int = 1) -> list[int]:
    """Return rows."""
    try:
        if rows and least < 2:
            take(rows, "SELECT a FROM b WHERE c = 1")
    except OSError:
        rows = sorted(rows)
    return [row for row in rows if row]
'''


def test_each_fault_is_another_module_and_none_is_in_an_annotation_or_at_import(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    found = [one for one in mutants_of(path, tmp_path) if is_a_fault(one, MODULE)]
    assert [str(one).partition(": ")[2] for one in found] == [
        "and -> or",
        "rows and least < 2 -> rows",
        "rows and least < 2 -> least < 2",
        "< -> <=",
        "2 -> 3",
        "2 -> 1",
        'take(rows, "SELECT a FROM b WHERE c = 1") -> pass',
        'rows, "SELECT a FROM b WHERE c = 1" -> "SELECT a FROM b WHERE c = 1", rows',
        "= -> <>",
        "1 -> 2",
        "OSError -> FileNotFoundError",
        "sorted -> list",
        "[row for row in rows if row] -> None",
        "row -> True",
    ]
    assert len({one.applied(MODULE) for one in found}) == len(found)


def test_changed_lines_are_read_from_a_diff():
    diff = "--- a/nbext/x.py\n+++ b/nbext/x.py\n@@ -3,0 +4,2 @@\n+a\n+b\n@@ -9 +11 @@\n-c\n+d\n@@ -20,3 +21,0 @@\n"
    assert list(changed_lines(diff)) == [("nbext/x.py", 4), ("nbext/x.py", 5), ("nbext/x.py", 11)]


def test_the_tests_of_a_module_are_nearer_than_those_of_its_room():
    files = [
        "tests/service/test_load.py",
        "tests/client/test_key.py",
        "tests/service/http/test_a.py",
    ]
    assert sorted(files, key=lambda one: distance("nbext/service/http/a.py", one)) == [
        files[2],
        files[0],
        files[1],
    ]


def test_what_is_said_to_change_nothing_is_still_in_the_code():
    known = {
        one.name
        for file in {mutant.partition(": ")[0] for mutant in equivalents()}
        for one in mutants_of(ROOT / file, ROOT)
    }
    assert sorted(equivalents().keys() - known) == []
