"""Lists of wallets in filters: read in bulk as one at a time, and inline for a stranger's service."""

from __future__ import annotations

import os

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings

from nbext import Client
from nbext.client import addresses
from nbext.client.filters import Wallets, as_sent
from nbext.core.addresses import checksummed, normalised
from nbext.errors import InvalidSegment, ValidationError
from tests.client.conftest import KEY
from tests.client.faultserver import reply


def ours():
    return True


ADDRESSES = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
SPELLED = st.one_of(
    ADDRESSES,
    ADDRESSES.map(checksummed),
    ADDRESSES.map(lambda one: "0x" + one[2:].upper()),
    ADDRESSES.map(lambda one: checksummed(one).swapcase().replace("X", "x", 1)),
    ADDRESSES.map(str.upper),
    st.tuples(ADDRESSES, st.integers(0, 41), st.characters(codec="utf-8")).map(
        lambda one: one[0][: one[1]] + one[2] + one[0][one[1] + 1 :]
    ),
    st.text(st.characters(codec="utf-8"), max_size=50),
    st.none(),
)


def one_by_one(values):
    """Return the addresses in order and each once, and which values are none: blanks are no values."""
    found, wrong = set(), []
    for row, value in enumerate(values):
        bare = (value or "").strip(addresses._AROUND)
        if bare == "" or bare.startswith("#"):
            continue
        try:
            found.add(normalised(bare))
        except ValidationError:
            wrong.append(row)
    return sorted(found), wrong


# Without a deadline: the first example waits for pyarrow.
@hypothesis_settings(deadline=None)
@given(st.lists(SPELLED, max_size=30))
@example(["0x" + "é" * 20, "0x" + "0" * 40])
def test_many_are_read_as_one_is(values):
    expected, wrong = one_by_one(values)
    right = Wallets([one for row, one in enumerate(values) if row not in wrong], "x")
    settled, named = as_sent({"wallet": {"in": right}}, ours)
    assert (settled, named) == ({"wallet": {"in": expected}}, {})
    if wrong:
        with pytest.raises(InvalidSegment) as caught:
            as_sent({"wallet": {"in": Wallets(values, "x")}}, ours)
        rows = caught.value.errors[0]["detail"].split("\n")[1:]
        assert [row.split(":")[0] for row in rows if row.startswith("  row ")] == [
            f"  row {row}" for row in wrong
        ][:20]


def test_every_checksum_is_checked_whatever_the_number_of_addresses():
    spelled = [checksummed("0x" + os.urandom(20).hex()) for _ in range(9_000)]
    wrong = list(spelled)
    # The last of them, in the case that no checksum has.
    wrong[-1] = checksummed("0x" + "ab" * 20).swapcase().replace("X", "x")
    assert Wallets(spelled, "x").count == 9_000
    with pytest.raises(
        InvalidSegment, match=r"wallet/in: 1 of 9,000 values of x is not(?s:.)*row 8999: The che"
    ):
        as_sent({"wallet": {"in": Wallets(wrong, "x")}}, ours)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ([2**70], str(2**70)),
        ({2**70}, str(2**70)),
        (pd.Series([2**70], dtype=object), str(2**70)),
        (pd.DataFrame({"address": [2**70]}), str(2**70)),
        ([10**5000], "int of too many digits"),
        ([["0x0013"]], "['0x0013']"),
        (pd.Series([["0x0013"]]), "['0x0013']"),
        (pa.array([["0x0013"]]), "['0x0013']"),
        ([{"a": 1}], "{'a': 1}"),
        ([[10**5000]], "list of too many digits"),
        (np.array("0x0013"), "0x0013"),
        (np.array([["0x0013"]]), "array(['0x0013'], dtype='<U6')"),
    ],
)
def test_a_value_of_any_type_is_a_row_that_is_no_address(values, fault):
    with pytest.raises(InvalidSegment) as caught:
        as_sent({"wallet": {"in": Wallets(values, "{{x}}")}}, ours)
    assert caught.value.errors[0]["detail"] == (
        "1 of 1 values of {{x}} is not an address. Nothing was sent. Rows are counted from 0.\n"
        f"  row 0: {fault!r} is not an address. An address is 0x and 40 hex digits."
    )


@pytest.mark.parametrize("values", [[], np.array([]), set(), ()])
def test_an_empty_list_is_left_to_the_service_which_refuses_it(values):
    assert as_sent({"wallet": {"in": values}}, ours) == ({"wallet": {"in": []}}, {})


def test_an_empty_file_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "allow.csv").write_text("\n")
    with pytest.raises(
        InvalidSegment, match=r"^/filters/wallet/in: allow.csv is empty. Write one address a line.$"
    ):
        as_sent({"wallet": {"in": "@allow.csv"}}, ours)


def test_lists_are_found_wherever_conditions_are_and_nowhere_else():
    long = sorted("0x" + os.urandom(20).hex() for _ in range(1_001))
    name = Wallets(long, "").id
    filters = {
        "all": [
            {"wallet": [{"in": long}, {"in": long[:3]}]},
            {"not": {"wallet": {"in": tuple(long), "contract": False}}},
        ],
        "nft": {"nft": "BAYC", "tokenIds": [1]},
        "exclude": ["burn"],
    }
    settled, named = as_sent(filters, ours)
    assert settled == {
        "all": [
            {"wallet": [{"list": name}, {"in": long[:3]}]},
            {"not": {"wallet": {"list": name, "contract": False}}},
        ],
        "nft": {"nft": "BAYC", "tokenIds": [1]},
        "exclude": ["burn"],
    }
    assert list(named) == [name]
    # Two lists in one condition: the service says that it takes one of them.
    both = {"wallet": {"in": long, "list": name}}
    assert as_sent(both, ours) == (both, {})
    inside: dict = {}
    inside["all"] = [inside]
    with pytest.raises(InvalidSegment, match="nested more than 64 levels deep"):
        as_sent(inside, ours)


def test_a_stranger_gets_the_values_as_they_are_written(server, settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "allow.csv").write_text("address\n0xABC\nnobody\n")
    server.script("GET /about", reply({}, 404))
    server.script("POST /v1/segment/execute", reply([{"address": "0x" + "11" * 20}]))
    client = Client(server.url, KEY, settings=settings())
    many = [f"user-{number}" for number in range(2_000)]
    for given_, sent in (
        (many, many),
        (np.array(many), many),
        (pd.DataFrame({"address": many, "number": range(2_000)}), many),
        (pa.array(many), many),
        ("@allow.csv", ["0xABC", "nobody"]),
        ("@handle", "@handle"),
    ):
        client.execute_segment({"wallet": {"in": given_}, "in": {"in": Wallets(many[:3], "x")}})
        assert server.requests[-1].json["filters"] == {
            "wallet": {"in": sent},
            "in": {"in": many[:3]},
        }
    with pytest.raises(
        InvalidSegment, match="The filters have more than 50,000 values, the most that a"
    ):
        client.execute_segment({"wallet": {"in": many * 26}})
    assert {request.path for request in server.requests} == {"/about", "/v1/segment/execute"}
