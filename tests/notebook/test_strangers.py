"""Five services that nobody knows: from the first error to the table by following messages, in three lines at most."""

from __future__ import annotations

import re

import pytest

from nbext.notebook.schema import Vocabulary
from nbext.notebook.session import current_session
from tests.client.conftest import KEY
from tests.client.faultserver import FaultServer, reply

A, B, C = ("0x" + two * 20 for two in ("aa", "bb", "cc"))
RUN = '%%segment_query found\n{"a": 1}'
SEARCH = "%nft search ape -o found"
SUGGESTED = re.compile(r"`%nbext set (remote\.[^`]+)`")


@pytest.fixture
def stranger(shell, monkeypatch):
    """A service of the test's own, to which the shell is connected."""
    monkeypatch.setenv("NBEXT_API_KEY", KEY)
    server = FaultServer()
    server.script("GET /about", reply({}, 404))
    shell.run(f"%nbext set base_url {server.url}")
    shell.run("%nbext set execute_deadline 10")
    yield server
    assert {request.headers["x-api-key"] for request in server.requests} == {KEY}
    server.close()


def followed(shell, magic):
    """Follow the first line that each message suggests; return these lines, and the rows of the table."""
    lines = []
    for _ in range(4):
        error = shell.run(magic).shown_error
        if not error:
            return lines, shell.value("found").to_dict("records")
        assert KEY not in error
        assert "`%nbext last-answer`" in error
        lines += SUGGESTED.findall(error)[:1]
        assert shell.run(f"%nbext set {lines[-1]}").error is None, error
        outline = shell.run("%nbext last-answer --values")
        assert (outline.error, KEY in outline.printed) == (None, False)
    raise AssertionError(lines)


def test_graphql_with_two_connections(shell, stranger):
    def page(rows, cursor):
        edges = [{"node": {"address": one, "name": "Apes"}, "cursor": one[:4]} for one in rows]
        found = {
            "edges": edges,
            "pageInfo": {"hasNextPage": cursor is not None, "endCursor": cursor},
        }
        return reply(
            {"data": {"found": found, "owned": {"edges": [{"node": {"address": C, "name": "Ad"}}]}}}
        )

    def handler(request):
        if request.method == "GET":
            return reply({}, 404)
        return page([B], None) if request.json.get("after") == "c1" else page([A], "c1")

    stranger.handler = handler
    lines, rows = followed(shell, SEARCH)
    assert lines == ['remote.search.paths.rows = "data.found.edges"']
    assert [(row["address"], row["name"]) for row in rows] == [(A, "Apes"), (B, "Apes")]


def test_nested_keys_with_numeric_ids_and_foreign_status_words(shell, stranger):
    stranger.script(
        "POST /v1/segment/execute", reply({"job": {"nummer": 4711, "status": "LAEUFT"}})
    )
    stranger.script("GET /v1/segment/4711", reply({"job": {"nummer": 4711, "status": "FERTIG"}}))
    hints = [{"text": "x"}, {"text": "y"}]
    stranger.script(
        "GET /v1/segment/4711/json",
        reply({"zeilen": [{"address": A}, {"address": B}], "hinweise": hints}),
    )
    lines, rows = followed(shell, RUN)
    assert lines == [
        'remote.segment.paths.id = "job.nummer"',
        'remote.segment.states.done = "FERTIG"',
        'remote.export.paths.rows = "zeilen"',
    ]
    assert rows == [{"address": A}, {"address": B}]


def test_csv_with_pages_in_link_headers(shell, stranger):
    stranger.script(
        "POST /v1/segment/execute", reply({"csvUrl": "/files/1.csv", "jsonUrl": "/files/1.json"})
    )
    link = '<1.csv?part=2>; rel="next"'
    stranger.script(
        "GET /files/1.csv",
        reply(f"address,n\n{A},1\n".encode(), content_type="text/csv", Link=link),
    )
    stranger.script(
        "GET /files/1.csv?part=2", reply(f"address,n\n{B},2\n".encode(), content_type="text/csv")
    )
    assert followed(shell, RUN) == (
        ['remote.segment.paths.url = "csvUrl"'],
        [{"address": A, "n": "1"}, {"address": B, "n": "2"}],
    )


def test_objects_keyed_by_address(shell, stranger):
    hits, ads = {A: {"name": "Apes"}, B: {"name": "Bees"}}, {C: {"name": "Ad"}, A: {"name": "Ad"}}
    stranger.script("POST /v1/search", reply({"treffer": hits, "werbung": ads}))
    lines, rows = followed(shell, SEARCH)
    assert lines == ['remote.search.paths.rows = "treffer"']
    assert [(row["address"], row["name"]) for row in rows] == [(A, "Apes"), (B, "Bees")]


def test_polling_by_an_address_in_a_header(shell, stranger):
    stranger.script("POST /v1/segment/execute", reply(b"", 202, None, X_Auftrag="/jobs/9?t=1"))
    done = {"state": "done", "url": "/files/9.json"}
    stranger.script(
        "GET /jobs/9?t=1", reply({"state": "running"}), reply({"state": "running"}), reply(done)
    )
    stranger.script("GET /files/9.json", reply([{"address": A}]))
    assert followed(shell, RUN) == (
        ['remote.segment.paths.poll = "header:X-Auftrag"'],
        [{"address": A}],
    )
    assert len(stranger.asked("/jobs/9")) == 3


def test_the_lines_in_use_and_why_the_last_rows_may_be_incomplete_are_in_the_status(
    shell, stranger, tmp_path
):
    stranger.script("POST /v1/segment/execute", reply({"rows": [{"address": A}], "left": 15}))
    shell.run("%nbext set remote.export.paths.next = more")
    shell.run(RUN)
    status = shell.run("%nbext status").printed
    assert "settings  remote.export.paths.next = more\n" in status
    assert (
        "last rows Beside the rows the answer has fields that nbext does not understand: left = 15"
        in status
    )
    # Of whatever was asked last.
    stranger.script("POST /v1/search", reply({"hits": [{"name": "Apes"}], "truncated": "maybe"}))
    shell.run("%nft search apes")
    said = shell.run("%nbext status").printed
    assert "fields that nbext does not understand: truncated = 'maybe'" in said
    assert "left = 15" not in said
    rows = reply(f"# 1 of 9\naddress,n\n{A},1\n".encode(), content_type="text/csv")
    stranger.script("GET /v1/segment/abc", reply({}, 404))
    stranger.script("GET /v1/segment/abc/csv", rows)
    shell.run(f"%segment abc --csv --to {tmp_path / 'rows.csv'}")
    assert (
        "last rows Above the header the answer says '1 of 9'" in shell.run("%nbext status").printed
    )
    moved = shell.run(f"%nbext set base_url {stranger.url}/other").printed
    assert "read by the lines that are set: remote.export.paths.next = more." in moved
    assert "last rows" not in shell.run("%nbext status").printed


def test_numbers_of_a_stranger_that_are_too_large_for_the_history_are_missing_there(
    shell, stranger
):
    for block in (2**63 - 1, 2**63):
        about = {"rows": [{"address": A}], "asOf": {"block": block}}
        stranger.script("POST /v1/segment/execute", reply(about))
        shell.run(RUN)
    table = shell.value("%nbext history")
    assert [*map(str, table["block"])] == [f"{2**63 - 1}", "<NA>"]


def test_words_of_the_service_before_are_not_offered_for_another(shell, stranger, monkeypatch):
    url = stranger.url
    shell.run("%nbext unset base_url")
    assert len(shell.value("%nbext schema")) > 10
    assert current_session().vocabulary.schema is not None
    shell.run(f"%nbext set base_url {url}")
    assert shell.error("%nbext schema") == (
        "UsageError: %nbext schema: this service publishes no schema of its filters."
    )
    assert current_session().vocabulary == Vocabulary()
    # What does not know the key is not known to publish none.
    shell.run("%nbext unset base_url")
    own = shell.value("nbext_client = __import__('nbext').connect(); nbext_client.base_url")
    monkeypatch.setenv("NBEXT_API_KEY", "another")
    shell.run(f"%nbext set base_url {own}")
    assert shell.error("%nbext schema").startswith("AuthError: The service answered 401")


def test_what_a_stranger_may_pass_over_without_a_word_is_not_sent_to_it(shell, stranger):
    """An answer of now, of another chain, or in no order, would be taken for the one that was asked for."""
    stranger.handler = lambda request: reply({"rows": [{"address": A}]})
    for option in ("--top 5", "--as-of 30d", "--chain base", "--columns share", "--exclude burn"):
        refused = (
            f"UsageError: {option.split()[0]}: only the embedded service (or another `nbext serve`) is known to take "
            "it. Leave it out, and write in the filters what this service takes."
        )
        assert shell.error(f'%segment {{"a": 1}} {option}') == refused
        shell.run(f'job = %segment {{"a": 1}} {option} --bg')
        assert shell.error("job.result(30)") == refused
    shell.run("%nbext set as_of 30d")
    pinned = (
        f"ConfigError: The setting as_of is '30d', and {stranger.url} is not nbext's own service, the only one that "
        "is known to take it. Unset it, and write the time in the filters as this service does."
    )
    for ask in (RUN, 'nbext_client.execute_segment({"a": 1})'):
        shell.run("nbext_client = __import__('nbext').connect()")
        assert shell.error(ask) == pinned
    # What is written in the filters is the service's own.
    written = '{"asOf": "30d", "chain": "base"}'
    shell.run(f"%%segment_query found\n{written}")
    sent = [one.json["filters"] for one in stranger.requests if one.method == "POST"]
    assert sent == [{"asOf": "30d", "chain": "base"}]
