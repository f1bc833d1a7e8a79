"""JSON-RPC over HTTP: several URLs in turn, batches where they work, pauses, and no URL in any message.

A provider's URL holds its key. It is a `Secret`, revealed only as the argument of the one call that posts; an error of
a library names it, and is never chained to one of ours; what a node says is shown without any part of it.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import requests
from urllib3.util.wait import wait_for_read

from nbext.core import strict_json
from nbext.core.untrusted_text import visible
from nbext.errors import (
    ConfigError,
    DeadlineExceeded,
    NbextError,
    NodeError,
    QueryCancelled,
    ResponseTooLarge,
    TLSError,
)
from nbext.http.body import Incoming, retry_after
from nbext.http.connections import send, session, tls_context
from nbext.http.deadline import Deadline, Scope, Watch, watched
from nbext.http.errors import FOREIGN, Redaction, of_library
from nbext.node.limits import Meaning, meaning_of
from nbext.node.received import Received, checksum_of
from nbext.settings import Secret

# A method and its parameters.
Call = tuple[str, Sequence[Any]]
CONNECT, SILENCE, DEADLINE = 5.0, 30.0, 60.0
# An answer beyond it is refused. Of a range that can be halved it is one beyond the second: logs are Python's objects,
# ten times as large, until they are rows, and several answers are read at once.
MOST_BYTES, RANGE_BYTES = 32_000_000, 6_000_000
ATTEMPTS, FIRST_PAUSE, LONGEST_PAUSE, LONGEST_ASKED = 6, 0.25, 8.0, 60.0
FIRST_BATCH = 100
# Beyond it is no block that is stored, nor any chain's id.
LAST_BLOCK = 2**53
# What another node, or the same one later, may answer.
_AGAIN = {
    Meaning.RATE,
    Meaning.BEHIND,
    Meaning.BUSY,
    Meaning.TIMEOUT,
    Meaning.AWAY,
    Meaning.GARBAGE,
}
# What only another node may answer.
_ELSEWHERE = {Meaning.DENIED, Meaning.PRUNED, Meaning.UNKNOWN_METHOD, Meaning.UNTRUSTED}
# What further calls would be answered, too.
_FINAL = {Meaning.DENIED, Meaning.UNTRUSTED, Meaning.TIMEOUT}
# What a shorter batch may be answered.
_FEWER = {Meaning.BATCH, Meaning.LESS, Meaning.OTHER, Meaning.REVERTED, Meaning.UNKNOWN_METHOD}
# What a reader can do about a refusal.
_ADVICE = {
    Meaning.AWAY: "Check the URL's host and port, whether it is http or https, that the node runs, and the network.",
    Meaning.UNTRUSTED: "Check whether the URL is http or https. A certificate that the system trusts is trusted.",
    Meaning.DENIED: "Check the key in the URL.",
    Meaning.RATE: "--rps N asks less often.",
    Meaning.PRUNED: "Use an archive node, or begin later with --from-block.",
}
_BYTES, _QUANTITY = re.compile("0x([0-9a-fA-F]{2})*"), re.compile("0x[0-9a-fA-F]{1,64}")
_jitter = random.Random()
# Seconds after which nobody waits for an answer that is still coming: it is not received yet.
_PATIENCE = 1.0


@dataclass(eq=False)
class Refusal(Exception):
    """A node's refusal: what it means, its words without the URL, how long it asks to wait.

    ``finding`` is what we found of its answer, a sentence without its dot, where it is not the node that says so.
    """

    meaning: Meaning
    finding: str = ""
    text: str = ""
    pause: float | None = None
    node: str = ""

    def __str__(self) -> str:
        found = f" {self.finding}." if self.finding else ""
        says = f" It says: {visible(self.text).rstrip('.')}." if self.text else ""
        return f"{(self.node or 'the node').capitalize()} {self.meaning.value}.{found}{says}"


def error_of(*refusals: Refusal, during: str = "") -> NodeError:
    """Return the error that says to people what some nodes said, of which the last counts, and what to do about it."""
    said = dict.fromkeys(map(str, refusals))
    advice = dict.fromkeys(_ADVICE.get(each.meaning, "") for each in refusals)
    text = " ".join(filter(None, (during, *said, *advice)))
    return NodeError(text, meaning=refusals[-1].meaning.name)


@dataclass(eq=False)
class Endpoint:
    """One URL: what is known of the node there, and when it may be asked again."""

    name: str
    url: Secret
    batch: int = FIRST_BATCH
    not_before: float = 0.0
    # How often it failed since it last answered: it rests the longer.
    failed: int = 0


class _OfThread(threading.local):
    """Whose turn it is to be asked by a thread, and where what it receives is written."""

    turn = 0
    received: Received | None = None


class Node:
    """The nodes at some URLs, asked as one. Safe to use from several threads.

    Parameters
    ----------
    urls
        ``http://`` or ``https://``; all of one chain. Threads ask them in turn; one that fails rests.
    rps
        How many calls a second at most, those of a batch counted one by one; None for no bound.
    """

    def __init__(self, urls: Sequence[Secret], *, rps: float | None = None) -> None:
        many = len(urls) > 1
        self.endpoints = [
            Endpoint(f"node {number} of {len(urls)}" if many else "the node", url)
            for number, url in enumerate(urls, 1)
        ]
        for endpoint in self.endpoints:
            if not _is_http(endpoint.url):
                raise ConfigError(
                    f"The URL of {endpoint.name} does not begin with http:// or https://. It is not shown here."
                )
        self.redact = Redaction(urls)
        # One for all threads: it has a connection for each request under way.
        self._session, self._scope = session("application/json", "gzip, deflate"), Scope()
        self._rps, self._next = rps, 0.0
        self._lock, self._local = threading.Lock(), _OfThread()
        self._reading = threading.Lock()
        self._turn = 0
        self.stopped = self._scope.ended
        # How often receipts were not offered, and blocks that could not be looked into for that.
        self.lacks_receipts = self.unchecked = 0

    def close(self) -> None:
        """End what is under way, and refuse what comes later."""
        self._scope.end()
        self._session.close()

    def call(self, method: str, *params: Any) -> Any:
        """Return a call's result.

        Raises
        ------
        Refusal
            The node refuses in a way that asking again does not change: too much, pruned, reverted, no such method.
        NodeError
            No node answered, after several attempts.
        """
        return self.together([(method, params)])[0]

    def batch(self, calls: Sequence[Call]) -> list[Any]:
        """Return the results of several calls in their order; of one that was refused, the `Refusal`."""
        results: list[Any] = []
        while len(results) < len(calls):
            rest = calls[len(results) :]
            results += self._repeated(partial(self._some, calls=rest))
            if isinstance(results[-1], Refusal) and results[-1].meaning in _FINAL:
                return results + results[-1:] * (len(calls) - len(results))
        return results

    def together(self, calls: Sequence[Call]) -> list[Any]:
        """Return the results of a few calls that one node answers, whichever that is; a refusal is raised."""

        def ask(endpoint: Endpoint) -> list[Any]:
            answers: list[Any] = []
            while len(answers) < len(calls):
                answers += self._some(endpoint, calls[len(answers) :])
                if isinstance(answers[-1], Refusal):
                    break
            return answers

        answers = self._repeated(ask)
        for answer in answers:
            if isinstance(answer, Refusal):
                raise answer
        return answers

    def of_each(self, method: str, *params: Any) -> dict[Endpoint, Any]:
        """Return what each endpoint answers, or its refusal; of one that failed last, nothing: it rests."""
        found = {}
        for endpoint in [each for each in self.endpoints if not each.failed]:
            for _ in range(3):
                (answer,) = self._post(endpoint, [(method, params)])
                if not isinstance(answer, Refusal) or answer.meaning not in _AGAIN:
                    break
                self._pause(endpoint, answer)
            found[endpoint] = answer
        return found

    def next_endpoint(self) -> None:
        """Have this thread ask the next endpoint from now on, so that what it asks next is of one node."""
        with self._lock:
            self._turn += 1
            self._local.turn = self._turn

    def switch_endpoint(self) -> None:
        """Have this thread ask another endpoint: what this one answers cannot be used."""
        self._local.turn += 1

    @contextmanager
    def recording(self, received: Received) -> Iterator[None]:
        """Have what this thread asks answered from what was received before, and what it receives written there."""
        self._local.received = received
        try:
            yield
        finally:
            self._local.received = None

    def _some(self, endpoint: Endpoint, calls: Sequence[Call]) -> list[Any]:
        """Return the answers of as many of the first calls as the endpoint takes at once."""
        size = min(endpoint.batch, len(calls))
        answers = self._post(endpoint, calls[:size])
        refused = answers[0]
        # One refusal of all of them. Whatever it dislikes, fewer at once are no worse: at last one, in no batch.
        is_of_all = size > 1 and refused is answers[-1] and isinstance(refused, Refusal)
        if is_of_all and refused.meaning in _FEWER:
            endpoint.batch = size // 2
            return self._some(endpoint, calls)
        return answers

    def _repeated(self, ask: Callable[[Endpoint], list[Any]]) -> list[Any]:
        """Return what an endpoint answers: where it fails another one's answer, or its own a little later."""
        # By the name of the endpoint.
        failures: dict[str, Refusal] = {}
        attempts = ATTEMPTS + len(self.endpoints) - 1
        for attempt in range(1, attempts + 1):
            endpoint = self._endpoint()
            answers, refused = ask(endpoint), None
            for each in answers:
                if isinstance(each, Refusal) and each.meaning in _AGAIN | _ELSEWHERE:
                    refused = each
            if refused is None:
                endpoint.failed = 0
                return answers
            failures[endpoint.name] = refused
            if (
                (refused.meaning in _ELSEWHERE and len(failures) == len(self.endpoints))
                or (refused.meaning is Meaning.TIMEOUT and attempt > len(self.endpoints))
                # What is asked beside garbage may be answered.
                or (refused.meaning is Meaning.GARBAGE and attempt == attempts)
            ):
                return answers
            self._pause(endpoint, refused)
        raise error_of(*failures.values(), during=f"No answer after {attempts} attempts.")

    def _endpoint(self) -> Endpoint:
        """Return the endpoint whose turn it is: of those that may be asked now, else the one that may be first."""
        with self._lock:
            turn = self._local.turn % len(self.endpoints)
            in_turn, now = self.endpoints[turn:] + self.endpoints[:turn], time.monotonic()
            return min(in_turn, key=lambda each: max(each.not_before, now))

    def _pause(self, endpoint: Endpoint, refusal: Refusal) -> None:
        """Let an endpoint rest, and have this thread ask another one meanwhile."""
        with self._lock:
            now = time.monotonic()
            if refusal.meaning in _AGAIN:
                longest = LONGEST_ASKED if len(self.endpoints) > 1 else LONGEST_PAUSE
                wait = (
                    min(FIRST_PAUSE * 2**endpoint.failed, longest)
                    if refusal.pause is None
                    else refusal.pause
                )
                # Of several threads that it failed at once, the first counts; each may be asked to wait longer.
                rests = endpoint.not_before > now
                endpoint.failed += not rests
                if not rests or refusal.pause is not None:
                    until = now + min(wait, LONGEST_ASKED) * _jitter.uniform(1.0, 1.2)
                    endpoint.not_before = max(endpoint.not_before, until)
            self._local.turn = self.endpoints.index(endpoint) + 1

    def _wait(self, endpoint: Endpoint, calls: int) -> None:
        """Wait until the endpoint may be asked so many calls."""
        while not self.stopped.is_set():
            with self._lock:
                now = time.monotonic()
                until = max(endpoint.not_before, self._next)
                # Looked at again after each wait: another thread may have been asked to wait longer, or been quicker.
                if until <= now:
                    self._next = now + calls / self._rps if self._rps else now
                    return
            self.stopped.wait(until - now)
        raise QueryCancelled("The fetch was stopped.")

    def _post(self, endpoint: Endpoint, calls: Sequence[Call]) -> list[Any]:
        """Return the results of calls that are asked at once, or refusals: of all of them the same one."""
        bodies: list[dict[str, Any]] = []
        for call in calls:
            # An id that no other call has: an answer to another one is none, and a recorded one is known again. Of 52
            # bits, which each reader of JSON has whole.
            number = int(checksum_of(json.dumps(call).encode())[:13], 16)
            bodies.append({"jsonrpc": "2.0", "id": number, "method": call[0], "params": call[1]})
        body = strict_json.to_json(bodies if len(calls) > 1 else bodies[0])
        received = self._local.received
        logs = [params[0] for method, params in calls if method == "eth_getLogs"]
        is_range = any(wanted["fromBlock"] != wanted["toBlock"] for wanted in logs)
        most = RANGE_BYTES if is_range else MOST_BYTES
        raw = received.take(body) if received else None
        status, pause = 200, None
        # Its bytes, its text and its value are all in memory then, and so those of one answer at a time.
        with _in_turn(self._reading) if received and logs else nullcontext() as turn:
            if raw is None:
                self._wait(endpoint, len(calls))
                came = self._exchange(endpoint, body, most, turn)
                if isinstance(came, Refusal):
                    return [came] * len(calls)
                status, pause, raw = came
                # Before it is even parsed: a process that follows a killed one does not ask for what had come.
                if received and status == 200 and not self.redact.finds(raw):
                    received.add(body, raw)
            # What is not JSON is cut, or the page of a proxy.
            value: Any = raw
            with suppress(strict_json.NotJson):
                value, _ = strict_json.read_answer(raw)
        del raw
        # An error may have no id.
        is_one = len(calls) == 1 and isinstance(value, Mapping) and "result" in value
        answers = [value] if is_one else value
        if status != 200 or not isinstance(answers, list):
            return [self._refusal(endpoint, status, value, pause)] * len(calls)
        # An id may be anything: only numbers are ours.
        found = {
            each["id"]: each
            for each in answers
            if isinstance(each, Mapping) and isinstance(each.get("id"), int)
        }
        results: list[Any] = []
        for one in bodies:
            answer: Any = found.get(one["id"])
            if answer is None:
                finding = "An answer of the batch is missing"
                answer = Refusal(Meaning.BUSY, finding, node=endpoint.name)
            elif answer.get("error") is not None or "result" not in answer:
                answer = self._refusal(endpoint, status, answer, pause)
            else:
                try:
                    answer = _result(one["method"], answer["result"])
                except InconsistentAnswer:
                    finding = f"Its answer to {one['method']} has another form"
                    answer = Refusal(Meaning.GARBAGE, finding, node=endpoint.name)
            results.append(answer)
        return results

    def _refusal(self, endpoint: Endpoint, status: int, value: Any, pause: float | None) -> Refusal:
        """Return the refusal that an answer is; its words are a stranger's, and may repeat the URL.

        ``value`` is bytes where it is not JSON.
        """
        code, text, finding = None, "", ""
        error = value.get("error") if isinstance(value, Mapping) else value
        if isinstance(error, bytes) and status != 200:
            error = error[:500].decode("utf-8", "replace")
        if isinstance(error, Mapping):
            code, data = error.get("code"), error.get("data")
            if isinstance(data, Mapping):
                data = strict_json.to_json(data).decode("ascii")
            elif isinstance(data, str) and data.startswith("0x"):
                data = None  # a revert's reason, encoded
            text = " ".join(each for each in (error.get("message"), data) if isinstance(each, str))
        elif isinstance(error, str) and error:
            text = error
        elif status != 200:
            finding = f"The HTTP status is {status}"
        else:
            finding = "Its answer is not " + (
                "JSON" if isinstance(error, bytes) else "one of JSON-RPC"
            )
        meaning = meaning_of(status, code if isinstance(code, int) else None, text)
        # Nobody's answer: the next one may be the node's.
        if finding and status == 200 and not isinstance(value, Mapping):
            meaning = Meaning.BUSY
        return Refusal(meaning, finding, self.redact(text[:500]), pause, endpoint.name)

    def _exchange(
        self, endpoint: Endpoint, body: bytes, most: int, turn: Callable[[Any], None] | None
    ) -> tuple[int, float | None, bytes] | Refusal:
        """Return status, seconds to wait, and body; a library's error, which would name the URL, is a `Refusal`."""
        watch = Watch(Deadline(DEADLINE), trust=partial(tls_context, None), turn=turn)
        headers = {"Content-Type": "application/json"}
        request = requests.Request("POST", endpoint.url.reveal(), headers, data=body)
        try:
            with (
                watched(watch, self._scope),
                send(self._session, request, watch, timeout=(CONNECT, SILENCE)) as response,
            ):
                status, pause = response.status_code, retry_after(response.headers)
                came = Incoming(
                    status, response.headers, "", response.raw, watch=watch, cap=most, report=None
                )
                raw = came.whole().body
                came.finish()
                return status, pause, raw
        except ResponseTooLarge:
            refused, finding = Meaning.LESS, f"Its answer is larger than {most // 10**6} MB"
        except (NbextError, *FOREIGN) as error:
            refused, finding = _meaning(of_library(error, "", watch.proxy), watch), ""
        if self.stopped.is_set():
            raise QueryCancelled("The fetch was stopped.")
        return Refusal(refused, finding, node=endpoint.name)


def _meaning(error: NbextError, watch: Watch) -> Meaning:
    if watch.fired or isinstance(error, DeadlineExceeded):
        return Meaning.TIMEOUT
    # A connection that was made and then broken is no wrong address.
    if watch.sent:
        return Meaning.BUSY
    return Meaning.UNTRUSTED if isinstance(error, TLSError) else Meaning.AWAY


@contextmanager
def _in_turn(reading: threading.Lock) -> Iterator[Callable[[Any], None]]:
    """Give what has a thread take its turn when the first bytes of its answer are there, until the block's end.

    Several requests are under way at once, and their answers may all come in the same moment. Each is read from the
    connection and written to the disk before the next one is touched: what kill -9 finds received and not written is
    one answer at most. The others are still the network's.
    """
    has = False

    def take(connection: Any) -> None:
        nonlocal has
        if not has:
            wait_for_read(connection.sock, timeout=connection.timeout)
            has = reading.acquire(timeout=_PATIENCE)

    try:
        yield take
    finally:
        if has:
            reading.release()


class InconsistentAnswer(NodeError):
    """An answer that contradicts the question, itself, or another answer."""


def quantity(value: Any, what: str, most: int = LAST_BLOCK) -> int:
    """Return the number that a quantity writes, such as 0x10; `InconsistentAnswer` where it is none up to ``most``."""
    if isinstance(value, str) and _QUANTITY.fullmatch(value):
        number = int(value, 16)
        if number <= most:
            return number
    raise InconsistentAnswer(
        f"The node's answer has no {what}: {visible(value, 40)} is not a quantity such as 0x10."
    )


def _result(method: str, value: Any) -> Any:
    """Return a result as its method has it: bytes, a number, logs; `InconsistentAnswer` where it is none.

    Of a method that is not named here null says that the node has none.
    """
    match method, value:
        case "eth_blockNumber" | "eth_chainId" | "eth_getTransactionCount", _:
            return quantity(value, "number")
        case "eth_getCode" | "eth_call", str() if _BYTES.fullmatch(value):
            return bytes.fromhex(value[2:])
        case "eth_getLogs", list():
            return value
        case "eth_getCode" | "eth_call" | "eth_getLogs", _:
            raise InconsistentAnswer(f"The node's answer to {method} has another form.")
    return value


def _is_http(url: Secret) -> bool:
    try:
        split = urlsplit(url.reveal())
        return split.scheme in ("http", "https") and bool(split.hostname) and split.port != 0
    except ValueError:
        return False
