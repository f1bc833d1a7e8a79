"""A list as people have it: what is kept of it, what is left out, and why; by every door that lists come in."""

from __future__ import annotations

import json
import warnings

import pandas as pd
import pyarrow as pa
import pytest

import nbext
from nbext.client.filters import as_sent
from nbext.client.writer import Target
from nbext.core.addresses import checksummed
from nbext.core.rules import FILES as FILES_WRITTEN
from nbext.errors import ValidationError

ONE, TWO = (checksummed("0x" + digits * 20) for digits in ("ab", "cd"))
BOTH = [ONE.lower(), TWO.lower()]
MISTYPED = ONE.swapcase().replace("X", "x")
CHECKSUM = f"The checksum of {MISTYPED} does not match: a letter may be mistyped. If the digits are right, write {ONE}."
ENS = "'vitalik.eth' is an ENS name. nbext does not resolve names; give the 0x... address."
SHORT = "'0x1234' is not an address. An address is 0x and 40 hex digits."
BARE = f"{ONE[2:]!r} is not an address. Write {ONE}."

# Each form: what is given, and its rows that are left out. Both addresses are kept of each.
FORMS = {
    "padded, quoted and repeated": (
        pd.Series([f"  {ONE}", f"\u00a0{TWO}\t", f"'{ONE.lower()}'", f'"{TWO}",']),
        [("row 2", f"'{ONE.lower()}'", "repeats row 0"), ("row 3", f'"{TWO}",', "repeats row 1")],
    ),
    "blanks of a spreadsheet": (
        pd.Series([ONE, None, "", float("nan"), TWO, "  "], dtype=object),
        [(f"row {row}", text, "blank") for row, text in ((1, None), (2, ""), (3, None), (5, "  "))],
    ),
    "names and slips": (
        [ONE, "vitalik.eth", MISTYPED, "0x1234", ONE[2:], TWO, "# team", "0x1234  # slip"],
        [
            ("row 1", "vitalik.eth", ENS),
            ("row 2", MISTYPED, CHECKSUM),
            ("row 3", "0x1234", SHORT),
            ("row 4", ONE[2:], BARE),
            ("row 6", "# team", "a comment"),
            ("row 7", "0x1234  # slip", SHORT),
        ],
    ),
    "CAIP-10": ([f"eip155:1:{ONE}", f"eip155:137:{TWO}"], []),
    "a text with comments": (
        f"# team\n{ONE}  # treasury\n\n{TWO}\nvitalik.eth\n",
        [("line 5", "vitalik.eth", ENS)],
    ),
    "many on a line": (
        f"{ONE}, {TWO}; 0x1234\n{ONE}",
        [("line 1", "0x1234", SHORT), ("line 2", ONE, "repeats line 1")],
    ),
    "cells of a spreadsheet": (
        f"Wallet\tAmount\n{ONE}\t1,000\n{TWO}\t5\n\t\n",
        [("line 4", "", "blank")],
    ),
    "a program's list": (f"['{ONE}', '{TWO}', 'vitalik.eth']", [("line 1", "'vitalik.eth'", ENS)]),
    "JSON lines": (f'{{"wallet": "{ONE}"}}\n{{"wallet": "{TWO}"}}\n', []),
    "claims of a Merkle tree": (
        json.dumps({"merkleRoot": "0x" + "12" * 32, "claims": {ONE: {"amount": "0x1"}, TWO: {}}}),
        [],
    ),
    "rows of cells": (
        [(ONE, None), (TWO, "0x1234")],
        [("row 1", None, "blank"), ("row 3", "0x1234", SHORT)],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_ten_dirty_forms_say_what_is_kept_what_is_left_out_and_why(form):
    given, left = FORMS[form]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept = nbext.addresses(given)
    assert (kept.tolist(), kept.name, str(kept.dtype)) == (BOTH, "address", "str")
    out = nbext.addresses(given, left_out=True)
    assert list(out) == ["row", "text", "reason"]
    assert [
        tuple(None if pd.isna(one) else one for one in row) for row in out.itertuples(index=False)
    ] == left
    faults = [row for row in left if not row[2].startswith(("blank", "a comment", "repeats"))]
    said = (
        [
            f"{len(faults):,} of {len(left) + 2:,} values are left out, such as {faults[0][0]}: {faults[0][2]} "
            "nbext.addresses(..., left_out=True) lists them."
        ]
        if faults
        else []
    )
    assert [str(one.message) for one in caught] == said


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        ("contract_address,holder,balance", "holder"),
        ("token_address,token_id,owner_of", "owner_of"),
        ("ContractAddress,OwnerAddress", "OwnerAddress"),
        ("TokenHolderAddress,TokenHolderQuantity", "TokenHolderAddress"),
        ("email_address,wallet", "wallet"),
        ("contract_address", "contract_address"),
        ("contract_address,user", None),
    ],
)
def test_a_token_s_own_address_beside_its_holders_is_no_wallet(names, chosen):
    row = {name: ONE if name == chosen else TWO for name in names.split(",")}
    cells = f"{names}\n{','.join(row.values())}\n"
    for given in (pd.DataFrame([row]), pa.table(pd.DataFrame([row])), cells, json.dumps([row])):
        if chosen:
            assert nbext.addresses(given).tolist() == [ONE.lower()]
        else:
            with pytest.raises(ValidationError, match="which has the addresses"):
                nbext.addresses(given)


FILES = {
    "allow.csv": f"# of the drop\nname,holder_address\n# nobody\nAnn,{ONE}\nBob, {TWO}\nCy,\n".encode(),
    "wide.csv": f"Address\tAmount\r\n{ONE}\t5\r\n{TWO}\t6\r\n".encode("utf-16"),
    "body.txt": f'# of a program\n"{ONE}",\n"{TWO}"\n'.encode(),
    "labels.csv": f"{ONE}\t\n{TWO}\tBob\n".encode(),
    "no-label.csv": f"{ONE}\tAnn\n{TWO}\t\n".encode(),
    "allow.txt": f"\ufeff{ONE}\n\n{TWO}\n{ONE}\n".encode(),
    "claims.json": json.dumps(
        [{"address": ONE, "proof": []}, {"address": TWO, "proof": []}]
    ).encode(),
    "lines.json": f'\ufeff{{"wallet": "{ONE}", "n": 1}}\r\n\n{{"wallet": "{TWO}", "n": 2}}\n'.encode(),
}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"address,n\n{ONE},1\n{TWO},2,3\n", f"Expected 2 columns, got 3: {TWO},2,3"),
        (f"address,n\n{ONE},1\n{TWO}\n", f"Expected 2 columns, got 1: {TWO}"),
        (f"address\r{ONE}\r{TWO}", "new-line character seen in unquoted field"),
        (f"address\n{ONE}\n\ud800", "surrogates not allowed"),
    ],
)
def test_a_text_that_is_no_table_is_a_value_that_is_not_allowed(text, said):
    with pytest.raises(ValidationError, match=said):
        nbext.addresses(text)


def test_a_comment_begins_after_the_same_blanks_for_arrow_and_for_python():
    values = [f"{ONE}\v# mine", f"{TWO}\u2003# yours"]
    assert nbext.addresses(values, left_out=True)["text"].tolist() == values[1:]


def test_a_fault_below_a_line_that_ends_in_cr_is_named_by_its_line():
    left = nbext.addresses(f"address,n\n{ONE},1\rvitalik.eth,2\n{TWO},3\n", left_out=True)
    assert left[["row", "text"]].to_numpy().tolist() == [["line 3", "vitalik.eth"]]


def test_a_fault_in_lines_of_json_is_named_by_its_line(tmp_path):
    for text, place in (
        (
            f'{{"wallet": "{ONE}"}}\n\n{{"wallet": "{TWO}"}}\n{{"wallet": oops}}\n',
            "line 4, column 12",
        ),
        (f'{{"wallet": "{ONE}"}}\r\n{{"wallet": "{TWO}"\r\n', "line 3, column 1"),
        (f'{{"wallet": {ONE}}}\n{{"wallet": "{TWO}"}}\n', "line 1, column 13"),
    ):
        (tmp_path / "lines.json").write_bytes(text.encode())
        with pytest.raises(ValidationError, match=f"cannot be read: {place}: "):
            nbext.addresses(tmp_path / "lines.json")


def test_a_file_is_read_alike_by_a_path_a_name_and_a_cell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
        for given in (tmp_path / name, f"@{name}", name):
            assert nbext.addresses(given).tolist() == BOTH, given
        for filters, settled in (
            ({"wallet": {"in": f"@{name}"}}, {"wallet": {"in": BOTH}}),
            ({"not": {"wallet": {"in": f"@{name}"}}}, {"not": {"wallet": {"in": BOTH}}}),
            ({"exclude": f"@{name}"}, {"exclude": BOTH}),
            ({"transfer": [{"counterparty": f"@{name}"}]}, {"transfer": [{"counterparty": BOTH}]}),
        ):
            assert as_sent(filters, lambda: True) == (settled, {}), filters
    # Each file that --to writes is one that is read.
    for ending in FILES_WRITTEN:
        Target(tmp_path / f"written{ending}").save(pd.DataFrame({"address": BOTH, "n": [1, 2]}))
        assert nbext.addresses(f"@written{ending}").tolist() == BOTH
    column = pa.array([f" {ONE}", None, TWO, ONE])
    for key in ("exclude", "counterparty"):
        assert as_sent({key: column}, lambda: True) == ({key: BOTH}, {})
        assert as_sent({key: ["burn"]}, lambda: True) == ({key: ["burn"]}, {})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "The text is empty. Write one address a line."),
        (
            {"a": [ONE], "b": [TWO]},
            "The JSON has no list of addresses: write a list, or an object whose keys",
        ),
        (
            pd.DataFrame({"a": [ONE], "b": [TWO]}),
            "Its columns are 'a', 'b': which has the addresses?",
        ),
        ("@no.csv", "@no.csv cannot be read: there is no such file in "),
    ],
)
def test_what_holds_no_list_is_refused_with_what_does(given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValidationError) as caught:
        nbext.addresses(given)
    assert caught.value.errors[0]["detail"].startswith(message)


def test_addresses_and_names_on_one_line_are_values_and_no_columns():
    line = f"0x{'a1':0>40}, vitalik.eth, eip155:1:0x{'a2':0>40}"
    assert list(nbext.addresses(line)) == [f"0x{'a1':0>40}", f"0x{'a2':0>40}"]
    left = nbext.addresses(line, left_out=True)
    assert left[["row", "text"]].to_numpy().tolist() == [["line 1", "vitalik.eth"]]
