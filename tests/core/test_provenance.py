"""Where a table comes from is known by name in our code, and is a plain dict to everybody else."""

import ast
import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from nbext.core.provenance import Provenance

REPO = Path(__file__).parents[2]
SAID = {"operation": "execute_segment", "segment_id": "sg_1", "matched": None, "warnings": ["new"]}


@pytest.fixture
def table():
    return Provenance(**SAID).attach(pd.DataFrame({"address": ["0x1", "0x2"]}))


def test_a_table_says_what_was_written_and_no_more(table):
    assert table.attrs == {"nbext": SAID}
    assert type(table.attrs["nbext"]) is dict
    known = Provenance.of(table)
    assert (known.segment_id, known.matched, known.warnings) == ("sg_1", None, ["new"])
    assert (known.filters, known.truncated, known.columns) == (None, False, ())


def test_what_is_read_can_be_changed_without_the_table(table):
    known = Provenance.of(table)
    known.gini = 0.5
    del known.warnings
    other = known.attach(pd.DataFrame())
    assert other.attrs["nbext"] == {
        "operation": "execute_segment",
        "segment_id": "sg_1",
        "gini": 0.5,
    }
    assert table.attrs == {"nbext": SAID}


@pytest.mark.parametrize("attrs", [None, 1, {"segment_id": "sg_1"}, {"nbext": None}, {"nbext": []}])
def test_of_anything_else_nothing_is_known(attrs):
    class Other:
        pass

    Other.attrs = attrs
    assert not Provenance.of(Other())
    assert not Provenance.of("sg_1")
    assert Provenance.of(pd.DataFrame()).segment_id is None


def test_keys_of_the_user_are_passed_over(table):
    table.attrs["nbext"] |= {"mine": 1, "attach": 2}
    assert Provenance.of(table).operation == "execute_segment"
    assert not hasattr(Provenance.of(table), "mine")


def test_each_key_is_documented():
    documented = {
        name
        for line in Provenance.__doc__.splitlines()
        if line.startswith("    ") and not line.startswith("     ")
        for name in line.strip().split(", ")
    }
    assert set(Provenance.__annotations__) <= documented


def test_it_goes_along_where_pandas_copies_compares_and_writes(table, tmp_path):
    assert copy.deepcopy(table).attrs == table.head(1).attrs == table.attrs
    assert pd.concat([table, table.copy()]).attrs == table.attrs
    table.to_parquet(tmp_path / "table.parquet")
    assert pd.read_parquet(tmp_path / "table.parquet").attrs == table.attrs
    assert json.loads(json.dumps(table.attrs)) == table.attrs


def test_a_pickle_opens_where_nbext_is_not_installed(table, tmp_path):
    (tmp_path / "table.pickle").write_bytes(pickle.dumps(table))
    code = (
        "import pickle, sys; sys.modules['nbext'] = None\n"
        "print(pickle.load(open('table.pickle', 'rb')).attrs['nbext'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == str(SAID)


def test_no_other_module_reads_or_writes_it_by_its_keys():
    wrong = []
    for path in (REPO / "nbext").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Subscript):
                place, key = node.value, node.slice
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                place, key = node.func.value, node.args[0]
            else:
                continue
            of_attrs = isinstance(place, ast.Attribute) and place.attr == "attrs"
            if of_attrs and ast.unparse(key) == "'nbext'":
                wrong.append(f"{path.name}:{node.lineno}")
    assert wrong == [where for where in wrong if where.startswith("provenance.py")]


def test_in_a_script_that_imports_ipython_a_warning_of_ours_has_its_file_and_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import warnings\n\nimport IPython\n\nimport nbext\n\n"
        "warnings.warn('2 of 9 wallets', nbext.AnswerWarning)\n"
    )
    ran = subprocess.run(
        [sys.executable, script],
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stderr.splitlines()[0] == f"{script}:7: AnswerWarning: 2 of 9 wallets"
