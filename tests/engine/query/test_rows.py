"""Rows that are made column after column come out batch by batch, whole, in one type for each column."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pytest

from nbext.core.uint256 import split
from nbext.engine.query import rows as module
from nbext.engine.query.rows import Rows
from nbext.errors import StorageError

LIMBS = pa.struct([(limb, pa.decimal128(38, 0)) for limb in ("hi", "mid", "lo")])


def limbs(amounts):
    return pa.array(
        [dict(zip(("hi", "mid", "lo"), map(Decimal, split(one)), strict=True)) for one in amounts],
        LIMBS,
    )


def added(rows, columns, most, size):
    for name, values in columns.items():
        for some in rows.chunks(most):
            rows.add(name, values[some], "address" if name == "address" else "amount", size)
    return rows


@pytest.mark.parametrize(
    ("last", "least", "kind"),
    [
        (5, 0, pa.decimal128(38, 0)),
        (10**38, 0, pa.decimal256(76, 0)),
        (10**76, 0, pa.string()),
        # What all holders of the token have decides, however few of them are returned.
        (5, 1e40, pa.decimal256(76, 0)),
        (5, 1e77, pa.string()),
    ],
)
def test_a_column_has_one_type_whichever_batch_needs_it(monkeypatch, tmp_path, last, least, kind):
    monkeypatch.setattr(module, "BATCH", 4)
    # The first parts are in memory, the others in the file.
    monkeypatch.setattr(module, "_IN_MEMORY", 1_000)
    amounts = [*range(10, 28), last]
    rows = Rows(19, 3, {"A": ("A_raw", 10)}, tmp_path)
    added(
        rows,
        {"address": pa.array([f"0x{n:040x}" for n in range(19)]), "A_raw": limbs(amounts)},
        most=9,
        size=least,
    )
    assert rows.schema == pa.schema(
        [("address", pa.string()), ("A", pa.float64()), ("A_raw", kind)]
    )
    assert [batch.num_rows for batch in rows.batches()] == [4, 4, 4, 4, 3]
    table = rows.table()
    assert table["A_raw"].cast(pa.string()).to_pylist() == list(map(str, amounts))
    assert table["A"].to_pylist() == [amount / 10 for amount in amounts]
    assert table["address"].to_pylist()[-1] == f"0x{18:040x}"
    # Nothing has a name in the folder, so that nothing is left there.
    assert list(tmp_path.iterdir()) == []
    rows.close()


def test_hundreds_of_columns_come_in_batches_of_few_rows():
    assert Rows(1, 3, {}, None).per_batch == module.BATCH
    assert 500 < Rows(1, 401, {}, None).per_batch < 1_000


def test_rows_that_cannot_be_stored_aside_are_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_IN_MEMORY", 1)
    rows = Rows(1, 1, {}, tmp_path / "absent")
    with pytest.raises(StorageError, match="could not be stored"):
        rows.add("address", pa.array(["0x"]), "address")


def test_what_fails_beside_the_next_statement_is_an_error_of_what_is_done_next(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(module, "_IN_MEMORY", 1)
    monkeypatch.setattr(module, "BATCH", 1)
    rows, two = Rows(2, 1, {}, tmp_path / "absent"), pa.array(["0x", "0y"])
    rows.add("address", two, "address")
    for done in (rows.table, lambda: rows.add("name", two, "address"), lambda: rows.schema):
        with pytest.raises(StorageError, match="could not be stored"):
            done()
    rows.close()


FORK = """
import os, signal
import pyarrow as pa
from nbext.engine.query import rows
rows.BATCH = 1

def made():
    found = rows.Rows(2, 1, {}, None)
    found.add("address", pa.array(["0x", "0y"]), "address")
    return found.table()["address"].to_pylist()

before, child = made(), os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if made() == before else 1)
print(before, os.waitpid(child, 0)[1])
"""


def test_rows_are_made_in_a_forked_child_of_a_process_that_made_some():
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], stdout=subprocess.PIPE, text=True, check=True
    )
    assert ran.stdout == "['0x', '0y'] 0\n"
