"""The service under many callers at once, and under sudden death.

Seconds are printed and not asserted: they are the machine's as much as ours.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import signal
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.service.process import Process, serve

pytestmark = pytest.mark.load
REQUESTS, CONNECTIONS = 10_000, 64
COLLECTIONS = ["BAYC", "PPG"]
SYMBOLS = ["USDC", "USDT", "DAI", "WETH", "UNI", "LINK"]


def body(number: int) -> dict[str, Any]:
    least = {"token": {"token": SYMBOLS[number % len(SYMBOLS)], "balance": {"min": str(number)}}}
    return {"operator": "AND", "filters": least, "fileType": "json", "limit": 500}


class Caller(threading.Thread):
    """One kept connection that asks the eight operations in a mixed order, and notes what it got."""

    def __init__(self, process: Process, number: int) -> None:
        super().__init__(daemon=True)
        self._random = random.Random(number)
        self._process, self._number = process, number
        self._connection = http.client.HTTPConnection(process.url.removeprefix("http://"), timeout=60)
        self.seconds: list[float] = []
        self.wrong: list[str] = []
        self._segment = ""

    def run(self) -> None:
        operations: list[Callable[[], tuple[str, str, Any]]] = [
            lambda: ("POST", "/v1/segment/execute", body(self._random.randrange(300))),
            lambda: ("POST", "/v1/search", {"chain": "ethereum", "searchTerm": self._random.choice("abcde")}),
            lambda: ("POST", "/v1/signup/newsletter", {"email": f"r{self._random.randrange(10**6)}@example.com"}),
            lambda: ("GET", f"/v1/tokens/ethereum/{self._random.choice(SYMBOLS)}", None),
            lambda: ("GET", f"/v1/nfts/ethereum/{self._random.choice(COLLECTIONS)}", None),
            lambda: ("GET", f"/v1/segment/{self._segment}", None),
            lambda: ("GET", f"/v1/segment/{self._segment}/json", None),
            lambda: ("GET", f"/v1/segment/{self._segment}/csv", None),
        ]
        for count in range(REQUESTS // CONNECTIONS + (self._number < REQUESTS % CONNECTIONS)):
            self.ask(*operations[count % 8 if count < 8 else self._random.randrange(8)]())
        self.hang_up()

    def hang_up(self) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, sent: Any) -> None:
        headers = {"x-api-key": self._process.key, "Content-Type": "application/json"}
        began = time.perf_counter()
        try:
            self._connection.request(method, path, json.dumps(sent) if sent else None, headers)
            answer = self._connection.getresponse()
            raw = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.wrong.append(f"{method} {path}: {error!r}")
            return
        self.seconds.append(time.perf_counter() - began)
        if answer.status not in (200, 202):
            self.wrong.append(f"{method} {path}: {answer.status} {raw[:200]!r}")
        elif path.endswith("/execute"):
            self._segment = json.loads(raw)["id"]
        if answer.status == 202 and "/segment/" in path:
            self.ask("GET", f"/v1/segment/{self._segment}", None)


def alone(process: Process, first: int) -> float:
    """Return the median seconds of a new segment when nobody else asks; each symbol's first one is not counted."""
    caller = Caller(process, 0)
    for number in range(first, first + 5 * len(SYMBOLS)):
        caller.ask("POST", "/v1/segment/execute", body(number))
    caller.hang_up()
    assert caller.wrong == []
    return statistics.median(caller.seconds[len(SYMBOLS):])


def peak_megabytes(process: Process) -> float:
    status = Path(f"/proc/{process.process.pid}/status")
    if not status.exists():
        pytest.skip("this platform does not tell a process's peak of memory")
    return int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def test_ten_thousand_mixed_requests_from_64_connections_are_all_answered_in_bounded_memory(tmp_path):
    with serve(tmp_path, key="load") as process:
        one = alone(process, 1000)
        callers = [Caller(process, number) for number in range(CONNECTIONS)]
        began = time.monotonic()
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        took = time.monotonic() - began
        seconds = sorted(each for caller in callers for each in caller.seconds)
        p99 = seconds[int(len(seconds) * 0.99)]
        peak = peak_megabytes(process)
        print(f"{len(seconds)} requests in {took:.0f} s: median {statistics.median(seconds) * 1000:.0f} ms, "
              f"p99 {p99 * 1000:.0f} ms, longest {seconds[-1] * 1000:.0f} ms, peak {peak:.0f} MB")
        print(f"a new segment alone takes {one * 1000:.0f} ms, the 99th percentile is {p99 / one:.0f} times that")
        assert [wrong for caller in callers for wrong in caller.wrong] == []
        assert len(seconds) >= REQUESTS
        assert p99 <= CONNECTIONS * one, "so long as if all callers' new segments were made one after the other"
        assert peak <= 600
        assert process.end(signal.SIGTERM) == 0
    assert list((tmp_path / "service" / "leases").iterdir()) == []


class Writer(threading.Thread):
    """Runs segments and signs addresses up until the service dies, and notes what was acknowledged."""

    def __init__(self, url: str, number: int, life: int) -> None:
        super().__init__(daemon=True)
        self._url, self._number, self._life = url, number, life
        self.segments: dict[str, tuple[int, str]] = {}
        self.emails: list[str] = []

    def run(self) -> None:
        with requests.Session() as session, contextlib.suppress(requests.RequestException):
            session.trust_env = False
            session.headers["x-api-key"] = "load"
            for count in range(10_000):
                self.write(session, count)

    def write(self, session: requests.Session, count: int) -> None:
        email = f"w{self._life}-{self._number}-{count}@example.com"
        if session.post(f"{self._url}/v1/signup/newsletter", json={"email": email}, timeout=30).status_code == 202:
            self.emails.append(email)
        # Two writers share each claim.
        claim, asked = f"{self._life}-{self._number // 2}-{count}", self._life * 100 + count
        answer = session.post(f"{self._url}/v1/segment/execute", json=body(asked), timeout=30,
                              headers={"Idempotency-Key": claim})
        if answer.status_code in (200, 202):
            self.segments[claim] = (asked, answer.json()["id"])


def test_twenty_sudden_deaths_under_eight_writers_lose_nothing_that_was_acknowledged(tmp_path):
    segments: dict[str, tuple[int, str]] = {}
    emails: set[str] = set()
    stored: dict[str, bytes] = {}
    ready: list[float] = []
    for life in range(20):
        with serve(tmp_path, key="load") as process:
            ready.append(process.seconds)
            writers = [Writer(process.url, number, life) for number in range(8)]
            for writer in writers:
                writer.start()
            time.sleep(1.0 + life % 5 * 0.13)
            process.end(signal.SIGKILL)
            for writer in writers:
                writer.join()
        for writer in writers:
            emails.update(writer.emails)
            for claim, told in writer.segments.items():
                assert segments.setdefault(claim, told) == told, "one claim, two segments"
        for path in (tmp_path / "service" / "results").glob("*.arrow"):
            assert stored.setdefault(path.name, path.read_bytes()) == path.read_bytes(), "a stored byte changed"
    with serve(tmp_path, key="load") as process:
        for claim, (asked, segment_id) in segments.items():
            path = f"{process.url}/v1/segment/{segment_id}"
            answer = process.session.get(path, headers={"Prefer": "wait=30"}, timeout=60)
            assert (answer.status_code, answer.json()["status"]) == (200, "completed")
            again = process.session.post(f"{process.url}/v1/segment/execute", json=body(asked),
                                         headers={"Idempotency-Key": claim}, timeout=60)
            assert (again.json()["id"], again.headers["Idempotency-Replayed"]) == (segment_id, "true")
        assert process.end(signal.SIGTERM) == 0
    print(f"{len(segments)} claims and {len(emails)} sign-ups acknowledged over 20 deaths; "
          f"ready again in at most {max(ready[1:]):.1f} s")
    assert emails <= kept_emails(tmp_path)


def kept_emails(folder: Path) -> set[str]:
    from nbext.service.accounts.database import Database
    from nbext.service.accounts.signups import SignUps

    database = Database(folder / "service" / "registry.sqlite")
    found = {each.email for each in SignUps(database).all()}
    database.close()
    return found
