"""What an analysis says of a stranger's segment: no more than is known of it, whatever it says of itself."""

from __future__ import annotations

from warnings import catch_warnings, simplefilter

import pytest

import nbext
from nbext import Client
from nbext.settings import Settings
from tests.client.faultserver import FaultServer, reply
from tests.service.conftest import KEY

ROWS = [{"address": f"0x{number:040x}", "n": number} for number in (1, 2, 3)]
FILTERS = {"token": {"token": "UNI"}}
DONE = {"id": "seg-1", "status": "completed", "rows": ROWS}


@pytest.fixture
def server():
    found = FaultServer()
    found.script("GET /about", *[reply({"detail": "none"}, 404)] * 9)
    yield found
    found.close()


@pytest.fixture
def client(server, tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    with Client(server.url, KEY, settings=Settings(environ={}, folder=tmp_path)) as made:
        yield made


@pytest.mark.parametrize(
    ("said", "warnings"),
    [
        ({**DONE, "limit": "1000", "counts": {"matched": 3}}, []),
        ({**DONE, "limit": 2, "counts": {"matched": 3}, "truncated": False}, []),
        (
            {**DONE, "limit": "7", "counts": {"matched": 5}, "truncated": True},
            ["seg-1 was saved with limit 3: all 5 wallets that match are taken."],
        ),
        ({**DONE, "fingerprint": "ab", "counts": {"matched": 3}}, []),
        # No total: nobody says that rows were cut off.
        (DONE, []),
        # Nothing was saved.
        ({"status": "completed", "rows": ROWS}, []),
        (
            {"status": "completed", "rows": ROWS, "limit": 3, "counts": {"matched": 5}},
            ["limit 3 is not used: all wallets that match are taken."],
        ),
        (
            {**DONE, "counts": {"matched": 5}},
            ["seg-1 was saved with limit 3: all 5 wallets that match are taken."],
        ),
    ],
)
def test_the_limit_of_a_strangers_table_is_said_where_it_cut_rows_off(
    server, client, said, warnings
):
    whole = {"status": "completed", "rows": ROWS, "counts": {"matched": 3}}
    server.script("POST /v1/segment/execute", reply(said), reply(whole))
    with catch_warnings():
        simplefilter("ignore", nbext.AnswerWarning)
        table = client.execute_segment(FILTERS, limit=1_000 if said == DONE else 3)
        shares = nbext.concentration(table, client=client)
    assert shares["share"].tolist() == [1.0, 1.0, 0.5, 1.0]
    assert shares.attrs["nbext"]["warnings"] == warnings


def test_a_table_is_of_the_filters_that_were_asked_whatever_a_stranger_makes_of_them(
    server, client
):
    """A notebook's history asks them again, and an analysis."""
    theirs = {"filters": {**FILTERS, "asOf": 24_136_000}, "operator": "OR", "limit": 7}
    server.script("POST /v1/segment/execute", reply({**DONE, **theirs, "counts": {"matched": 3}}))
    about = client.execute_segment(FILTERS, limit=3).attrs["nbext"]
    assert [about[name] for name in ("filters", "operator", "limit")] == [FILTERS, "AND", 3]


@pytest.mark.parametrize("state", ["queued", "running", "failed", "cancelled"])
def test_of_a_segment_without_a_result_nobody_knows_whether_its_limit_cuts_rows_off(
    server, client, state
):
    counts = {"matched": None, "returned": None}
    unfinished = {"id": "sg_a", "status": state, "filters": FILTERS, "operator": "AND"}
    unfinished |= {"limit": 1000, "truncated": None, "counts": counts, "fingerprint": None}
    server.script("GET /v1/segment/sg_a", reply(unfinished))
    server.script("POST /v1/segment/execute", reply({"status": "completed", "rows": ROWS}))
    shares = nbext.concentration("sg_a", client=client)
    assert shares["share"].tolist() == [1.0, 1.0, 0.5, 1.0]
    assert shares.attrs["nbext"]["warnings"] == []
