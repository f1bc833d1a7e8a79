"""Where results go: safe names, whole files, nothing overwritten unasked."""

from __future__ import annotations

import pandas as pd
import pytest

from nbext.errors import UsageError
from nbext.notebook.results.store import checked_file, checked_name, cut_in_words, in_words


@pytest.mark.parametrize("name", ["whales", "ÄpfelUndBirnen", "x1", "df_2", "USDC"])
def test_a_users_name_is_taken(name):
    assert checked_name(name) == name


def test_a_name_is_kept_as_python_reads_it():
    assert checked_name("\u00b5") == "\u03bc"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("1x", "cannot name a variable"),
        ("a b", "cannot name a variable"),
        ("a.b", "cannot name a variable"),
        ("", "cannot name a variable"),
        ("x\u202e", "'x\\u202e' cannot name a variable"),
        ("class", "is a word of Python itself"),
        ("None", "is a word of Python itself"),
        ("match", "is a word of Python itself"),
        ("print", "belongs to Python or IPython"),
        ("\uff50rint", "belongs to Python or IPython"),
        ("__builtins__", "belongs to Python or IPython"),
        ("In", "belongs to Python or IPython"),
        ("Out", "belongs to Python or IPython"),
        ("_", "is a word of Python itself"),
        ("_1", "belongs to Python or IPython"),
        ("get_ipython", "belongs to Python or IPython"),
    ],
)
def test_another_name_is_refused_with_the_reason(name, reason):
    with pytest.raises(UsageError) as caught:
        checked_name(name)
    assert reason in str(caught.value)


@pytest.mark.parametrize("cell", ["%%segment_query print\n{}", "%token ethereum USDC -o In", "%nft search a -o 1x"])
def test_a_wrong_name_is_refused_before_anything_is_asked(shell, cell):
    names = dict(shell.ip.user_ns)
    assert shell.error(cell).endswith("choose another name for the result.") or "cannot name" in shell.error(cell)
    assert print is __builtins__["print"]
    assert shell.ip.user_ns["In"] is names["In"]


def test_a_folder_a_link_and_an_existing_file_are_not_written(tmp_path):
    (tmp_path / "there.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "there.csv")
    (tmp_path / "folder.csv").mkdir()
    for name, reason in {
        "there.csv": "the file exists. --overwrite replaces it.",
        "link.csv": "is a link; name a file.",
        "folder.csv": "is a folder; name a file.",
        "none/x.csv": "there is no folder",
        "x.xlsx": "the file's ending says its format: .csv, .json, .parquet.",
    }.items():
        with pytest.raises(UsageError, match=reason.replace(".", r"\.")):
            checked_file(str(tmp_path / name), overwrite=False)
    with pytest.raises(UsageError):
        checked_file(str(tmp_path / "link.csv"), overwrite=True)
    assert checked_file(str(tmp_path / "there.csv"), overwrite=True) == tmp_path / "there.csv"


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"truncated": False, "matched": 5, "returned": 5}, None),
        (
            {"truncated": True, "matched": 62_972, "returned": 1_000, "operation": "execute_segment"},
            "1,000 of 62,972 wallets; --limit 0 counts, --all fetches",
        ),
        ({"truncated": True, "matched": 62_972, "returned": 1_000}, "1,000 of 62,972 wallets"),
        ({"truncated": True}, "the service says that the limit cut rows off; --limit takes more."),
        ({}, None),
    ],
)
def test_a_limited_answer_says_what_was_cut(about, words):
    assert cut_in_words(about) == words


def test_a_table_is_told_by_its_size():
    assert in_words(pd.DataFrame({"a": [1]})) == "1 row, 1 column"
    assert in_words(pd.DataFrame({"a": range(1000), "b": 1})) == "1,000 rows, 2 columns"
    assert in_words(7) == "7"
