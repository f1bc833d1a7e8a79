"""Whatever goes wrong, an error and the log hold a request id, and nothing of the machine, the key or the caller."""

from __future__ import annotations

import sqlite3
import time

import pytest
import requests

from nbext.service.limits import Limits
from nbext.service.problems import CODES
from nbext.service.segments import results
from tests.service.conftest import KEY, USDC, Running

EMAIL = "somebody.of.note@example.com"
SQL = "SELECT name FROM sqlite_master"


@pytest.fixture
def service(data_dir, tmp_path):
    running = Running(data_dir, tmp_path, Limits(body_bytes=100_000))
    yield running
    running.stop()


def wrong_requests(service: Running):
    """Ask wrongly in every way that one request can, each time with a key, an address or a statement in it."""
    word = f"{KEY} {EMAIL} {SQL}"
    json_type = {"Content-Type": "application/json"}
    ask = service.session.request
    yield ask("GET", service.url + "/about", headers={"x-api-key": f"{EMAIL} wrong"})
    yield ask("GET", service.url + "/about", headers={"x-api-key": ""})
    yield ask("GET", service.url + "/about", headers={"Host": "elsewhere.example"})
    yield ask(
        "GET", service.url + "/about", headers={"Origin": f"https://{EMAIL.partition('@')[2]}"}
    )
    yield ask("PUT", service.url + "/v1/search")
    for path in ("/v1/segment/execute", "/explain", "/v1/search", "/v1/signup/newsletter"):
        for raw in (
            b"{",
            b"[]",
            b"\xff",
            b'{"a":NaN}',
            b'{"a":1,"a":2}',
            b"{}",
            b'{"x":"' + b"x" * 100_000 + b'"}',
        ):
            yield ask("POST", service.url + path, data=raw, headers=json_type)
        yield ask(
            "POST", service.url + path, data=word.encode(), headers={"Content-Type": "text/plain"}
        )
    yield service.post("/v1/signup/newsletter", {"email": f"{KEY} <{EMAIL}>"})
    yield service.post("/v1/signup/newsletter", {"email": f"{EMAIL}\r\nBcc: x@y.co"})
    yield service.post("/v1/search", {"searchTerm": "x", "type": KEY[:4], "chain": "nowhere"})
    yield service.post("/v1/segment/execute", {"filters": {"tokn": {"token": "USDC"}}, "limit": -1})
    yield service.post("/v1/segment/execute", {"filters": {"segment": {"id": "none"}}})
    yield service.get("/v1/segment/none")
    yield service.get("/v1/segment/none/csv")
    yield service.get("/v1/tokens/nowhere/USDC")
    yield service.get(f"/v1/nfts/ethereum/{USDC}")
    yield service.delete("/v1/segment/none")
    yield service.post(
        "/v1/segment/execute", {"filters": {}}, headers={"Idempotency-Key": f"{KEY} {EMAIL}"}
    )


def is_clean(text: str, data_dir, tmp_path) -> bool:
    machine = (str(data_dir), str(tmp_path), "Traceback", 'File "', ".py", "sqlite", "SELECT")
    words = (KEY, EMAIL, "somebody", *machine)
    return not [word for word in words if word in text]


def test_no_error_and_no_line_of_the_log_gives_anything_away(service, data_dir, tmp_path):
    answers = list(wrong_requests(service))
    for answer in answers:
        problem = answer.json()
        assert (answer.headers["content-type"], problem["status"]) == (
            "application/problem+json",
            answer.status_code,
        )
        assert answer.status_code == CODES[problem["code"]]["status"] < 500
        assert problem["request_id"] == answer.headers["x-request-id"]
        assert is_clean(answer.text, data_dir, tmp_path), answer.text
    assert len({answer.json()["request_id"] for answer in answers}) == len(answers)
    assert {answer.json()["code"] for answer in answers} >= {
        "not-json",
        "bad-header",
        "key-missing",
        "key-unknown",
        "foreign-host",
        "foreign-origin",
        "not-found",
        "method",
        "too-large",
        "media-type",
        "invalid",
        "invalid-segment",
    }
    assert is_clean(service.log.getvalue(), data_dir, tmp_path)
    # A line is written after its answer was sent.
    asked = [answer.headers["x-request-id"] for answer in answers]
    end = time.monotonic() + 20
    while (
        told := [line["request_id"] for line in service.lines() if line["event"] == "request"]
    ) != asked:
        assert time.monotonic() < end, told
        time.sleep(0.02)


def test_a_registry_without_a_table_is_500_without_a_word_of_it_and_the_log_says_where(
    service, data_dir, tmp_path
):
    # An operator's other tool took a table away.
    with sqlite3.connect(tmp_path / "registry.sqlite") as registry:
        registry.execute("DROP TABLE signups")
    registry.close()
    answer = service.post("/v1/signup/newsletter", {"email": EMAIL})
    assert (answer.status_code, answer.json()["code"]) == (500, "storage")
    assert answer.json()["detail"] == (
        "A stored file is damaged: `nbext check` says which. The operator's log has this request's id."
    )
    (line,) = [line for line in service.lines() if line["level"] == "error"]
    assert (line["event"], line["error"], line["request_id"]) == (
        "request failed",
        "StorageError",
        answer.json()["request_id"],
    )
    assert line["where"].startswith("nbext.service.accounts.signups:record:")
    # The cause, which names the table, is for the operator.
    assert is_clean(answer.text, data_dir, tmp_path)
    assert service.get("/v1/tokens/ethereum/USDC").status_code == 200


def test_a_fault_of_ours_is_500_without_a_word_of_it_and_the_log_says_where(
    service, data_dir, tmp_path
):
    # What no deployment does.
    service.container.signups = None
    answer = service.post("/v1/signup/newsletter", {"email": EMAIL})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    (line,) = [line for line in service.lines() if line["level"] == "error"]
    assert (line["event"], line["error"], line["request_id"]) == (
        "request failed",
        "AttributeError",
        answer.json()["request_id"],
    )
    assert is_clean(answer.text, data_dir, tmp_path)


def test_what_cuts_an_answer_short_is_in_the_log_without_a_word_of_it_nor_in_that_of_the_server(
    service, caplog, monkeypatch
):
    class Broken:
        num_record_batches = 1

        def get_batch(self, number: int) -> None:
            raise ValueError(f"{EMAIL} {SQL}")

    export = service.execute()["links"]["csv"]
    monkeypatch.setattr(results, "SMALL", 0)
    service.container.segments.results.open = lambda result: Broken()
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        service.get(export)
    (line,) = [line for line in service.lines() if line["level"] == "error"]
    assert (line["event"], line["error"]) == ("request failed", "ValueError")
    service.stop()
    assert "Exception in ASGI application" in caplog.text
    assert not [word for word in (EMAIL, SQL) if word in caplog.text + service.log.getvalue()]
