"""Bodies that are not what they should be: answered in order, never with 500, never read to the end."""

from __future__ import annotations

import re
import socket
import time

import pytest

from tests.service.conftest import KEY, Running

POSTS = [
    "/v1/segment/execute",
    "/v1/search",
    "/v1/signup/newsletter",
    "/explain",
    "/counts",
    "/funnel",
    "/holdings",
    "/profile",
    "/changes",
]
BODIES = {
    "empty": (b"", 400),
    "null": (b"null", 422),
    "array": (b"[]", 422),
    "number": (b"42", 422),
    "text": (b'"x"', 422),
    "half": (b"{", 400),
    "bad UTF-8": (b'{"a":"\xff"}', 400),
    "NaN": (b'{"operator": NaN}', 400),
    "lone surrogate": (b'{"email": "\\ud800", "searchTerm": "\\udfff"}', 400),
    "duplicate keys": (b'{"email": "a@b.co", "email": "c@d.co"}', 400),
    "100 000 levels": (b'{"filters":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    "100 000 keys": (b"{%s}" % b",".join(b'"k%d":0' % n for n in range(85_000)), 422),
    "5 000 digits": (b'{"limit":' + b"9" * 5_000 + b"}", 400),
    "unknown fields": (b'{"nothing": 1}', 422),
}


def memory(service: Running) -> float:
    """Return the resident bytes of the service's process, by its own metrics."""
    found = re.search(
        r"^process_resident_memory_bytes (\S+)$", service.get("/metrics").text, re.MULTILINE
    )
    if not found:
        pytest.skip("this platform does not tell a process's memory")
    return float(found[1])


def send(service: Running, path: str, raw: bytes, **headers: str):
    headers = {"Content-Type": "application/json", **headers}
    return service.session.post(service.url + path, data=raw, headers=headers, timeout=30)


@pytest.mark.parametrize("path", POSTS)
def test_a_body_that_is_no_json_object_is_a_problem(service, path):
    for name, (raw, status) in BODIES.items():
        answer = send(service, path, raw)
        assert answer.status_code == status, name
        assert answer.headers["content-type"] == "application/problem+json", name
        problem = answer.json()
        assert problem["status"] == status, name
        assert problem["errors"], name
        assert problem["request_id"], name


def test_no_value_is_made_of_more_keys_than_any_request_has(service):
    for raw in (BODIES["100 000 keys"][0], b'{"any":[%s{}]}' % (b"{}," * 20_000)):
        problem = send(service, "/explain", raw).json()
        detail = "The body has more than 10,000 keys or objects. No request needs so many."
        assert (problem["code"], problem["detail"]) == ("invalid", detail)
        assert problem["errors"] == [{"pointer": "", "code": "size", "detail": detail}]


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
        "application/json; charset=utf-16",
        "application/jsonp",
    ],
)
def test_a_body_that_is_not_declared_as_json_is_415(service, path, media_type):
    answer = send(service, path, b"{}", **{"Content-Type": media_type})
    assert (answer.status_code, answer.json()["code"]) == (415, "media-type")


def test_a_packed_body_is_415(service):
    assert send(service, "/v1/search", b"{}", **{"Content-Encoding": "gzip"}).status_code == 415


def test_json_with_its_charset_named_is_taken(service):
    answer = send(
        service,
        "/v1/search",
        b'{"searchTerm":"x"}',
        **{"Content-Type": 'Application/JSON; charset="UTF-8"'},
    )
    assert answer.status_code == 200


@pytest.mark.parametrize("path", POSTS)
def test_three_megabytes_are_413(service, path):
    answer = send(service, path, b'{"searchTerm":"' + b"x" * 3_000_000 + b'"}')
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


@pytest.mark.parametrize("path", POSTS)
def test_a_body_that_says_it_is_too_long_is_413_before_any_of_it_is_sent(service, path):
    with socket.create_connection((service.host, service.port), timeout=20) as raw:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nx-api-key: {KEY}\r\nContent-Type: application/json\r\n"
        raw.sendall(f"{head}Content-Length: 200000000\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"}"):
            piece = raw.recv(65536)
            assert piece, answer
            answer += piece
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"code":"too-large"' in answer


def test_no_more_than_a_megabyte_of_a_body_is_kept(data_dir, tmp_path):
    from nbext.service.limits import Limits

    # The bound is one byte short of what comes in chunks, none of which says how many there are.
    pieces = [b'{"searchTerm":"', b"x" * 1000, b'"}']
    for longest, status in ((sum(map(len, pieces)) - 1, 413), (sum(map(len, pieces)), 422)):
        running = Running(data_dir, tmp_path, Limits(body_bytes=longest))
        try:
            headers = {"Content-Type": "application/json"}
            for path in POSTS:
                answer = running.session.post(
                    running.url + path, data=iter(pieces), headers=headers, timeout=30
                )
                assert (path, answer.status_code) == (path, status)
        finally:
            running.stop()
    assert Limits().body_bytes == 1 << 20


def test_a_body_without_end_is_413_after_a_megabyte_and_takes_no_memory(service):
    before = memory(service)

    def endless():
        for _ in range(3_000):
            yield b"x" * 65_536

    answer = service.session.post(
        service.url + "/v1/search",
        data=endless(),
        headers={"Content-Type": "application/json"},
        timeout=60,
    )
    assert answer.status_code == 413
    assert memory(service) - before < 50e6


def test_a_body_that_dribbles_is_ended_with_408(data_dir, tmp_path):
    from nbext.service.limits import Limits

    running = Running(data_dir, tmp_path, Limits(arrive_seconds=0.5))
    try:
        with socket.create_connection((running.host, running.port), timeout=10) as raw:
            head = f"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nx-api-key: {KEY}\r\n"
            raw.sendall(
                f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode()
            )
            began = time.monotonic()
            answer = raw.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"code":"slow-request"' in answer
        assert time.monotonic() - began < 9, (
            "half a second, and not the ten that a service has without the limit"
        )
    finally:
        running.stop()
