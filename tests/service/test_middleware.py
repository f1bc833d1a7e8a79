"""What is refused before a route is reached: keys, hosts, foreign pages, scopes and rates."""

from __future__ import annotations

import http.client
import json
import re
import socket
import sys
import threading

import pandas as pd
import pytest
import requests

import nbext
from tests.service.conftest import HOLDERS, KEY, Running

PATHS = [
    ("GET", "/about"),
    ("GET", "/schema"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/nowhere"),
    ("POST", "/explain"),
    ("POST", "/counts"),
    ("POST", "/funnel"),
    ("POST", "/holdings"),
    ("POST", "/profile"),
    ("POST", "/changes"),
    ("POST", "/v1/segment/execute"),
    ("POST", "/v1/search"),
    ("POST", "/v1/signup/newsletter"),
    ("GET", "/v1/tokens/ethereum/USDC"),
    ("GET", "/v1/nfts/ethereum/BAYC"),
    ("GET", "/v1/segment/x"),
    ("GET", "/v1/segment/x/json"),
    ("GET", "/v1/segment/x/csv"),
    ("DELETE", "/v1/segment/x"),
]


def ask(service: Running, method: str, path: str, headers: dict[str, str]) -> requests.Response:
    return requests.request(method, service.url + path, headers=headers, timeout=10)


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_without_a_key_every_path_answers_401_alike(service, method, path):
    answer = ask(service, method, path, {})
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem.pop("request_id") == answer.headers["x-request-id"]
    assert problem == {
        "type": "urn:nbext:problem:key-missing",
        "title": "A key is needed",
        "status": 401,
        "detail": "Send your key in the x-api-key header.",
        "instance": path,
        "code": "key-missing",
        "errors": [],
    }


@pytest.mark.parametrize("key", ["wrong", KEY + "x", KEY[:-1], KEY.upper(), "ключ".encode()])
def test_a_wrong_key_is_refused_and_never_repeated(service, key):
    answer = ask(service, "GET", "/about", {"x-api-key": key})
    assert (answer.status_code, answer.json()["code"]) == (401, "key-unknown")
    assert str(key) not in answer.text.replace("x-api-key", "")


@pytest.mark.parametrize("path", ["/healthz", "/docs"])
def test_health_and_the_docs_page_need_no_key_and_load_nothing(service, path):
    answer = ask(service, "GET", path, {})
    assert answer.status_code == 200
    assert "http://" not in answer.text.replace(service.url, "")
    assert "<script" not in answer.text


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example:80",
        "",
        "[",
        "169.254.169.254",
        "localhost@x",
        "evil@127.0.0.1",
        "127.0.0.1, evil",
        "127.0.0.1:80:80",
        "localhost/x",
        "127.0.0.1:x",
    ],
)
def test_a_foreign_host_is_refused_even_with_the_key(service, host):
    answer = ask(service, "GET", "/about", {"x-api-key": KEY, "Host": host})
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign-host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:80"])
def test_the_names_of_this_host_are_taken_with_any_port(service, host):
    assert ask(service, "GET", "/about", {"x-api-key": KEY, "Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_origin_is_refused_and_gets_no_cors_header(service, headers):
    answer = ask(service, "POST", "/v1/search", {"x-api-key": KEY, **headers})
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign-origin")
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_a_page_of_this_origin_may_ask(service):
    headers = {"x-api-key": KEY, "Origin": service.url, "Sec-Fetch-Site": "same-origin"}
    assert ask(service, "GET", "/about", headers).status_code == 200


def test_a_key_may_only_do_what_its_scopes_say(service):
    _, text = service.container.keys.add("reader only", ["read"], None)
    headers = {"x-api-key": text.reveal(), "Content-Type": "application/json"}
    assert ask(service, "GET", "/v1/tokens/ethereum/USDC", headers).status_code == 200
    for method, path in [
        ("POST", "/v1/segment/execute"),
        ("POST", "/v1/signup/newsletter"),
        ("POST", "/explain"),
        ("DELETE", "/v1/segment/x"),
    ]:
        answer = ask(service, method, path, headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "scope"), path


def test_a_key_that_asks_too_often_is_told_when_to_come_back(service):
    _, text = service.container.keys.add("hasty", ["read"], "3/minute")
    headers = {"x-api-key": text.reveal()}
    assert [ask(service, "GET", "/about", headers).status_code for _ in range(4)] == [
        200,
        200,
        200,
        429,
    ]
    answer = ask(service, "GET", "/about", headers)
    assert answer.json()["code"] == "rate-limit"
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert service.get("/about").status_code == 200


# Each names nothing, or what it names is no value.
TARGETS = [
    "/v1/segment/..%2f..%2fetc%2fpasswd",
    "/v1/segment/%00",
    "/v1/segment/%ed%a0%80",
    "/v1/segment/x%0a",
    "//v1/segment/x",
    "/v1/segment/" + "x" * 9_000,
    "/v1/tokens/nowhere/USDC",
    "/v1/tokens/ethereum/..%2f..%2fetc",
    "/v1/tokens/ethereum/%00",
    "/v1/nfts/..%2f/x",
    "/v1/tokens/ethereum/" + "0" * 9_000,
    "/v1/tokens/ethereum/0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB49",
    "/v1/segment/x/json?limit=0",
    "/v1/segment/x/json?offset=-1",
    "/v1/segment/x/json?limit=nan",
    "/v1/segment/x/xml",
]


@pytest.mark.parametrize("target", TARGETS)
def test_a_path_that_names_nothing_is_404_or_422(service, target):
    connection = http.client.HTTPConnection(service.host, service.port, timeout=10)
    connection.request("GET", target, headers={"x-api-key": KEY})
    answer = connection.getresponse()
    assert answer.status in (404, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    connection.close()


def test_a_path_that_names_nothing_touches_no_file(service):
    def ask() -> None:
        for target in TARGETS:
            connection = http.client.HTTPConnection(service.host, service.port, timeout=10)
            connection.request("GET", target, headers={"x-api-key": KEY})
            connection.getresponse().read()
            connection.close()

    ask()  # what is imported at the first request is opened now
    touched: list[tuple[str, object]] = []
    watching = True
    # The maintenance and the queue look at files and at the registry at moments of their own.
    theirs = re.compile("nbext-(maintenance|job-.*)")

    def note(event: str, values: tuple[object, ...]) -> None:
        if not watching or theirs.fullmatch(threading.current_thread().name):
            return
        if event == "open" or event.startswith(("os.", "pathlib.", "shutil.", "glob.", "sqlite3.")):
            touched.append((event, values[0] if values else None))

    sys.addaudithook(note)  # for good: a hook cannot be taken back
    ask()
    assert touched == []
    service.execute({**HOLDERS, "limit": 7})
    watching = False
    assert touched, "what is really written is seen"


def test_another_method_is_405_and_says_which_are_taken(service):
    answer = service.session.put(service.url + "/v1/search", timeout=10)
    assert (answer.status_code, answer.json()["code"], answer.headers["Allow"]) == (
        405,
        "method",
        "POST",
    )


def test_what_is_not_http_gets_a_problem_too(service):
    import socket

    with socket.create_connection((service.host, service.port), timeout=10) as raw:
        raw.sendall(b"GARBAGE\r\n\r\n")
        answer = raw.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"not-http"' in answer


def raw(service: Running, *lines: str, body: str = "") -> tuple[int, dict]:
    """Send a request as written, without a library that mends it, and return the answer's status and problem."""
    with socket.create_connection((service.host, service.port), timeout=10) as connection:
        connection.sendall(("\r\n".join([*lines, "", ""]) + body).encode())
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status, json.load(answer)


def test_a_name_of_the_service_that_is_empty_lets_no_mistyped_host_in(data_dir, tmp_path):
    running = Running(data_dir, tmp_path, hosts=["localhost", ""])
    try:
        for host in ("evil@127.0.0.1", "a, 127.0.0.1"):
            key = f"x-api-key: {KEY}"
            status, problem = raw(running, "GET /about HTTP/1.1", f"Host: {host}", key)
            assert (status, problem["code"]) == (403, "foreign-host")
    finally:
        running.stop()


def test_a_request_with_two_keys_is_refused_whichever_is_right(service):
    for pair in [(KEY, "wrong"), ("wrong", KEY), (KEY, KEY)]:
        keys = [f"x-api-key: {key}" for key in pair]
        status, problem = raw(service, "GET /about HTTP/1.1", "Host: localhost", *keys)
        assert (status, problem["code"], problem["detail"]) == (
            400,
            "bad-header",
            "The request has 2 x-api-key headers. Send one.",
        )


def test_a_request_with_two_idempotency_keys_is_refused(service):
    body = json.dumps(HOLDERS)
    status, problem = raw(
        service,
        "POST /v1/segment/execute HTTP/1.1",
        "Host: localhost",
        f"x-api-key: {KEY}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Idempotency-Key: one",
        "Idempotency-Key: two",
        body=body,
    )
    assert (status, problem["code"], problem["detail"]) == (
        400,
        "bad-header",
        "The request has 2 Idempotency-Key headers. Send one.",
    )


def test_a_request_that_says_its_length_twice_is_refused(service):
    status, problem = raw(
        service,
        "POST /v1/search HTTP/1.1",
        "Host: localhost",
        f"x-api-key: {KEY}",
        "Content-Type: application/json",
        "Content-Length: 5",
        "Transfer-Encoding: chunked",
        body="0\r\n\r\n",
    )
    assert (status, problem["code"], problem["detail"]) == (
        400,
        "bad-header",
        "The request has both Content-Length and Transfer-Encoding. Send one of them.",
    )


def test_below_a_root_path_requests_are_answered_with_and_without_it_and_links_begin_with_it(
    data_dir, tmp_path
):
    running = Running(data_dir, tmp_path, root_path="/chain/nbext")
    try:
        for prefix in ("", "/chain/nbext"):
            assert running.get(f"{prefix}/healthz", headers={"x-api-key": ""}).json() == {
                "status": "ok"
            }
            assert running.get(f"{prefix}/about").json()["links"] == {
                "schema": "/chain/nbext/schema",
                "openapi": "/chain/nbext/openapi.json",
                "lists": "/chain/nbext/lists",
            }
            segment = running.post(f"{prefix}/v1/segment/execute", HOLDERS).json()
            own = f"/chain/nbext/v1/segment/{segment['id']}"
            assert segment["links"] == {
                "self": own,
                **{form: f"{own}/{form}" for form in ("json", "csv", "arrow")},
            }
            page = running.get(f"{prefix}/v1/segment/{segment['id']}/json?limit=10").json()["page"]
            assert page["next"] == f"{own}/json?limit=10&offset=10"
            assert running.get(page["next"]).json()["page"]["offset"] == 10
        assert "at <code>/chain/nbext/openapi.json</code>" in running.get("/docs").text
        # A client below the path, too: the links that it gets begin with what its base_url ends with.
        client = nbext.Client(f"http://127.0.0.1:{running.port}/chain/nbext", KEY)
        table = client.execute_segment(HOLDERS["filters"], limit=50)
        client.execute_segment(HOLDERS["filters"], limit=50, to=tmp_path / "rows.csv")
        assert len(table) == 50
        assert pd.read_csv(tmp_path / "rows.csv")["address"].tolist() == table["address"].tolist()
    finally:
        running.stop()
