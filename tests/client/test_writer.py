"""A table in memory, written to a file: exact, whole or not at all, and no formula for a spreadsheet."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbext.client.frames import frame, to_arrow
from nbext.client.writer import Target, target_of
from nbext.core.strict_json import read_answer
from nbext.errors import StorageError, ValidationError

FORMULAS = ["=1+1", "+1+1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "＝1"]
HARMLESS = ["harmless", "NA", '"quoted", \n text', "-5", "-0.1234567890123456789"]
ODD = """[
    {"exact": 0.123456789012345, "tiny": 1e-12, "long": -0.1234567890123456789, "mixed": true, "nested": {"a": 1}},
    {"exact": 1.5, "tiny": null, "long": 1, "mixed": 1, "nested": {"b": [1180591620717411303424, {}]}}
]"""


def test_a_csv_is_safe_for_spreadsheets_and_raw_is_exact(tmp_path):
    table = pd.DataFrame({"name": FORMULAS + HARMLESS, "=n": range(12)})
    path = tmp_path / "x.csv"
    Target(path).save(table)
    safe = pd.read_csv(path, keep_default_na=False)
    assert list(safe["name"]) == ["'" + name for name in FORMULAS] + HARMLESS
    assert list(safe.columns) == ["name", "'=n"]
    Target(path, overwrite=True, raw=True).save(table)
    pd.testing.assert_frame_equal(
        pd.read_csv(path, keep_default_na=False), table, check_dtype=False
    )


# Each file is flushed to the disk, which takes what the disk takes.
@pytest.mark.slow
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1),
        max_size=5,
    )
)
def test_texts_come_back_from_every_kind_of_file(tmp_path_factory, texts):
    table = pd.DataFrame({"a": pd.Series(texts, dtype="str")})
    folder = tmp_path_factory.mktemp("files")
    for name in ("x.parquet", "x.csv", "x.json", "x.arrow"):
        Target(folder / name, raw=True).save(table)
    assert list(pd.read_parquet(folder / "x.parquet")["a"]) == texts
    assert list(pd.read_csv(folder / "x.csv", keep_default_na=False, dtype=str)["a"]) == texts
    assert pa.ipc.open_file(folder / "x.arrow").read_all()["a"].to_pylist() == texts
    assert [row["a"] for row in json.loads((folder / "x.json").read_text("utf-8"))] == texts
    assert sorted(path.name for path in folder.iterdir()) == [
        "x.arrow",
        "x.csv",
        "x.json",
        "x.parquet",
    ]


def test_a_folder_a_link_an_existing_file_and_a_long_name_are_refused_whoever_asks(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("there.csv").write_text("old")
    Path("link.csv").symlink_to("there.csv")
    Path("folder.csv").mkdir()
    exists = "the file exists. Add --overwrite (overwrite=True) to replace it."
    for overwrite in (False, True):
        for name, why in {
            "there.csv": "" if overwrite else exists,
            "link.csv": "it is a link. Give a file name.",
            "folder.csv": "it is a folder. Give a file name.",
            "none/x.csv": "there is no folder none.",
            "x.xlsx": "unknown file format. Allowed: .csv, .json, .parquet, .arrow.",
            "x": "unknown file format. Allowed: .csv, .json, .parquet, .arrow.",
        }.items():
            said = ""
            try:
                target_of(name, overwrite=overwrite, option="--to")
            except ValidationError as error:
                said = str(error)
            assert said == (f"--to: {name}: {why}" if why else "")
        with pytest.raises(StorageError, match=r"^x+… \(304 characters\) cannot be written: "):
            target_of("x" * 300 + ".csv", overwrite=overwrite)
        for odd in (5, True, b"x.csv", ["x.csv"]):
            with pytest.raises(ValidationError, match=r"^to: .* is not a path\. Write a text\.$"):
                target_of(odd, overwrite=overwrite)


def test_what_cannot_be_written_leaves_what_was_there(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")
    with pytest.raises(StorageError):
        Target(tmp_path / "gone" / "x.csv").save(pd.DataFrame({"a": [1]}))
    with pytest.raises(ValidationError, match="exists"):
        Target(path).save(pd.DataFrame({"a": [1]}))
    assert path.read_text() == "old"


@pytest.fixture
def odd():
    return frame(read_answer(ODD.encode())[0])


def test_json_holds_every_digit_and_every_value_as_it_came(odd, tmp_path):
    Target(tmp_path / "x.json").save(odd)
    assert json.loads((tmp_path / "x.json").read_text()) == [
        {
            "exact": 0.123456789012345,
            "tiny": 1e-12,
            "long": "-0.1234567890123456789",
            "mixed": True,
            "nested": {"a": 1},
        },
        {"exact": 1.5, "tiny": None, "long": "1", "mixed": 1, "nested": {"b": [2**70, {}]}},
    ]


def test_values_without_one_type_stand_in_other_files_as_their_texts(odd, tmp_path):
    expected = {
        "exact": [0.123456789012345, 1.5],
        "tiny": [1e-12, None],
        "long": ["-0.1234567890123456789", "1"],
        "mixed": ["true", "1"],
        "nested": ['{"a": 1}', '{"b": [1180591620717411303424, {}]}'],
    }
    Target(tmp_path / "x.parquet").save(odd)
    assert pq.read_table(tmp_path / "x.parquet").to_pydict() == expected
    Target(tmp_path / "x.csv").save(odd)
    read = pd.read_csv(tmp_path / "x.csv", dtype={"long": str, "mixed": str})
    assert read.astype(object).where(read.notna(), None).to_dict("list") == expected


def test_an_arrow_table_keeps_what_has_one_type_nested_and_provenance(odd):
    odd.attrs["nbext"] = {"segment_id": "sg_1"}
    table = to_arrow(odd)
    assert table.column("mixed").to_pylist() == ["true", "1"]
    assert to_arrow(frame([{"a": {"b": 1}}])).schema.field("a").type == pa.struct(
        [("b", pa.int64())]
    )
    assert (
        json.loads(table.schema.metadata[b"pandas"])["attributes"]["nbext"]["segment_id"] == "sg_1"
    )
