"""Where results go: safe names, whole files, nothing overwritten unasked."""

from __future__ import annotations

import pandas as pd
import pytest

import nbext
from nbext.core.provenance import Provenance
from nbext.errors import UsageError, ValidationError
from nbext.notebook.line import Args
from nbext.notebook.results.deliver import checked_name, cut_in_words, size_in_words
from nbext.notebook.run.query import SEGMENT


@pytest.mark.parametrize("name", ["whales", "ÄpfelUndBirnen", "x1", "df_2", "USDC"])
def test_a_users_name_is_taken(name):
    assert checked_name(name) == name


def test_a_name_is_kept_as_python_reads_it():
    assert checked_name("\u00b5") == "\u03bc"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("1x", "is not a variable name"),
        ("a b", "is not a variable name"),
        ("a.b", "is not a variable name"),
        ("", "is not a variable name"),
        ("x\u202e", "'x\\u202e' is not a variable name"),
        ("class", "is a Python keyword"),
        ("None", "is a Python keyword"),
        ("match", "is a Python keyword"),
        ("print", "Python or IPython uses the name"),
        ("\uff50rint", "Python or IPython uses the name"),
        ("__builtins__", "Python or IPython uses the name"),
        ("In", "Python or IPython uses the name"),
        ("Out", "Python or IPython uses the name"),
        ("_", "is a Python keyword"),
        ("_1", "Python or IPython uses the name"),
        ("get_ipython", "Python or IPython uses the name"),
    ],
)
def test_another_name_is_refused_with_the_reason(name, reason):
    with pytest.raises(UsageError) as caught:
        checked_name(name)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "cell", ["%%segment_query print\n{}", "%token ethereum USDC -o In", "%nft search a -o 1x"]
)
def test_a_wrong_name_is_refused_before_anything_is_asked(shell, cell):
    names = dict(shell.ip.user_ns)
    error = shell.error(cell)
    assert (
        error.endswith("Choose another name for the result.") or "is not a variable name" in error
    )
    assert print is __builtins__["print"]
    assert shell.ip.user_ns["In"] is names["In"]


CUT = {"truncated": True, "matched": 62_972, "returned": 1_000}


@pytest.mark.parametrize(
    ("about", "options", "words"),
    [
        ({"truncated": False, "matched": 5, "returned": 5}, {}, None),
        (
            {**CUT, "operation": "execute_segment"},
            {},
            "1,000 of 62,972 wallets; --limit 0 counts, --all fetches",
        ),
        (
            {**CUT, "operation": "execute_segment"},
            {"top": 1_000, "by": "UNI_balance"},
            "1,000 of 62,972 wallets, those with the largest UNI_balance; a larger --top returns more",
        ),
        (
            {**CUT, "operation": "execute_segment", "matched": 12_000_000, "returned": 10_000_000},
            {"all": True},
            "10,000,000 of 12,000,000 wallets; 10,000,000 is the most. For the others narrow the query, for example by "
            "a balance",
        ),
        (CUT, {}, "1,000 of 62,972 wallets"),
        ({"truncated": True}, {}, "The limit cut off rows; a larger one returns more."),
        ({}, {}, None),
    ],
)
def test_a_limited_answer_says_what_was_cut(about, options, words):
    assert cut_in_words(Provenance(**about), Args(SEGMENT, "", options=options)) == words


def test_a_page_is_written_and_none_that_is_there_is_replaced_unasked(shell, tmp_path):
    rows, file = (
        shell.value('%segment {"token": {"token": "UNI"}} --limit 5'),
        tmp_path / "few.html",
    )
    nbext.page(rows, file)
    page = file.read_text("utf-8")
    assert "default-src 'none'" in page
    assert "What was asked" in page
    there = f"{file}: the file exists. Add --overwrite (overwrite=True) to replace it."
    other = f"{file.with_suffix('.pdf')}: unknown file format. Allowed: .html."
    for at, words in ((file, there), (file.with_suffix(".pdf"), other)):
        with pytest.raises(ValidationError) as caught:
            nbext.page(rows, at)
        assert str(caught.value) == f"path: {words}"
        # The magic says the same of its option.
        line = f'%segment {{"token": {{"token": "UNI"}}}} --limit 5 --page {at}'
        assert shell.error(line) == f"ValidationError: --page: {words}"
    nbext.page(rows, file, overwrite=True)
    cell = f'%segment {{"token": {{"token": "UNI"}}}} --limit 5 --page {file}'
    assert shell.run(f"{cell} --overwrite").printed.endswith(f"{file}: 5 rows, 3 columns\n")
    assert shell.run(f"{cell} --overwrite -o few").printed.endswith("few = 5 rows, 3 columns\n")


def test_a_table_is_told_by_its_size():
    assert size_in_words(pd.DataFrame({"a": [1]})) == "1 row, 1 column"
    assert size_in_words(pd.DataFrame({"a": range(1000), "b": 1})) == "1,000 rows, 2 columns"
    assert size_in_words(7) == "7"
