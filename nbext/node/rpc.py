"""JSON-RPC over HTTP: several URLs in turn, batches where they work, pauses, and no URL in any message.

A provider's URL holds its key. It is a `Secret`, revealed only as the argument of the one call that posts; an error of
a library names it, and is never chained to one of ours; what a node says is shown without any part of it.
"""

from __future__ import annotations

import logging
import random
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import requests
import truststore
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.wait import wait_for_read

from nbext import __version__
from nbext.core import strict_json
from nbext.core.untrusted_text import visible
from nbext.errors import ConfigError, NodeError, QueryCancelled
from nbext.node.limits import Meaning, blocks_offered, meaning_of
from nbext.settings import Secret

if TYPE_CHECKING:
    from nbext.node.received import Received

CONNECT, SILENCE, DEADLINE = 5.0, 30.0, 60.0
# An answer beyond it is refused. Of a range that can be halved it is one beyond the second: logs are Python's objects,
# ten times as large, until they are rows, and several answers are read at once.
MOST_BYTES, RANGE_BYTES = 32_000_000, 6_000_000
ATTEMPTS, FIRST_PAUSE, LONGEST_PAUSE, LONGEST_ASKED = 6, 0.25, 8.0, 60.0
FIRST_BATCH = 50
# What another node, or the same one later, may answer.
_AGAIN = {Meaning.RATE, Meaning.BEHIND, Meaning.BUSY, Meaning.TIMEOUT, Meaning.AWAY}
# What only another node may answer.
_ELSEWHERE = {Meaning.DENIED, Meaning.PRUNED, Meaning.UNKNOWN_METHOD, Meaning.UNTRUSTED}
# What a reader can do about a refusal.
_ADVICE = {
    Meaning.AWAY: "Check the URL's host and port, whether it is http or https, that the node runs, and the network.",
    Meaning.UNTRUSTED: "Check whether the URL is http or https. A certificate that the system trusts is trusted.",
    Meaning.DENIED: "Check the key in the URL.",
    Meaning.RATE: "--rps N asks less often.",
    Meaning.PRUNED: "Use an archive node, or begin later with --from-block.",
}
_PIECE = 1 << 16
_jitter = random.Random()
# Seconds after which nobody waits for an answer that is still coming: it is not received yet.
_PATIENCE = 1.0
_thread = threading.local()


class Refusal(Exception):
    """A node's refusal: what it means, its words without the URL, how long it asks to wait, what range would do.

    ``finding`` is what we found of its answer, a sentence without its dot, where it is not the node that says so.
    """

    def __init__(
        self,
        meaning: Meaning,
        text: str = "",
        *,
        finding: str = "",
        pause: float | None = None,
        node: str = "",
    ) -> None:
        super().__init__(text or finding)
        self.meaning, self.text, self.finding, self.pause, self.node = (
            meaning,
            text,
            finding,
            pause,
            node,
        )
        self.offered = blocks_offered(text)

    def __str__(self) -> str:
        found = f" {self.finding}." if self.finding else ""
        says = f" It says: {visible(self.text).rstrip('.')}." if self.text else ""
        return f"{(self.node or 'the node').capitalize()} {self.meaning.value}.{found}{says}"

    def as_error(self, others: Sequence[Refusal] = (), *, during: str = "") -> NodeError:
        """Return the error that says so to people, with what other nodes said before, and what to do about it."""
        said = list(dict.fromkeys(map(str, (*others, self))))
        advice = dict.fromkeys(_ADVICE.get(each.meaning, "") for each in (*others, self))
        return NodeError(
            " ".join(filter(None, (during, *said, *advice))), meaning=self.meaning.name
        )


class _Hides(logging.Filter):
    """Takes the URLs out of what urllib3 logs: at the level DEBUG that is the path of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.redact: list[Redaction] = []

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        for each in self.redact:
            text = each(text)
        record.msg, record.args = text, ()
        return True


_HIDES = _Hides()
for _name in ("urllib3.connectionpool", "urllib3.util.retry"):
    logging.getLogger(_name).addFilter(_HIDES)


class Redaction:
    """Takes everything of some URLs that could be a key out of a text."""

    def __init__(self, urls: Sequence[Secret]) -> None:
        parts: set[str] = set()
        for url in urls:
            split = urlsplit(url.reveal())
            parts |= {
                url.reveal(),
                split.netloc,
                split.path,
                split.query,
                split.username or "",
                split.password or "",
            }
            # Hosts too: some providers put the key there. A word such as v3 is none.
            parts |= {
                piece
                for piece in re.split(r"[/&=.?]", f"{split.hostname}/{split.path}?{split.query}")
                if len(piece) >= 8 or (any(mark.isdigit() for mark in piece) and len(piece) > 4)
            }
        found = sorted((re.escape(part) for part in parts if len(part) > 3), key=len, reverse=True)
        self._parts = Secret("|".join(found))
        self._words = [Secret(part) for part in parts if len(part) > 3]

    def is_needed(self, raw: bytes) -> bool:
        """Say whether an answer repeats any of them."""
        return any(word.reveal().encode() in raw for word in self._words)

    def __call__(self, text: str) -> str:
        """Return the text without them."""
        return (
            re.sub(self._parts.reveal(), "***", text, flags=re.IGNORECASE) if self._parts else text
        )


@dataclass
class Endpoint:
    """One URL: what is known of the node there, and when it may be asked again."""

    name: str
    url: Secret
    batch: int = FIRST_BATCH
    not_before: float = 0.0
    # How often it failed since it last answered: it rests the longer.
    failed: int = 0


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
        if not urls:
            raise ConfigError(
                "No node is set. Set NBEXT_RPC_URL to its URL, or to several with a space between."
            )
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
        _HIDES.redact.append(self.redact)
        self._rps, self._next = rps, 0.0
        self._lock = threading.Lock()
        self._local = threading.local()
        self._reading = _Turn()
        self._turn, self._id = 0, 0
        self.stopped = threading.Event()
        # Methods that are not offered: they are not asked for again.
        self.lacks: set[str] = set()
        # Seconds that threads spent waiting for nodes, and calls made: what a benchmark and a progress line show.
        self.waited, self.calls = 0.0, 0

    def close(self) -> None:
        """End what is under way as soon as its next bytes come, and refuse what comes later."""
        self.stopped.set()
        if self.redact in _HIDES.redact:
            _HIDES.redact.remove(self.redact)

    def call(self, method: str, *params: Any) -> Any:
        """Return a call's result.

        Raises
        ------
        Refusal
            The node refuses in a way that asking again does not change: too much, pruned, reverted, no such method.
        NodeError
            No node answered, after several attempts.
        """
        answer = self._repeated(
            lambda endpoint: self._post(endpoint, [(method, params)], single=True)[0]
        )
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Return the results of several calls in their order; of one that was refused, the `Refusal`."""
        results: list[Any] = []
        while len(results) < len(calls):
            rest = calls[len(results) :]
            results += self._repeated(partial(self._some, calls=rest))
        return results

    def together(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Return the results of a few calls that one node answers, whichever that is; a refusal is raised."""

        def ask(endpoint: Endpoint) -> list[Any]:
            answers: list[Any] = []
            while len(answers) < len(calls):
                answers += self._some(endpoint, calls[len(answers) :])
            return answers

        answers: list[Any] = self._repeated(ask)
        for answer in answers:
            if isinstance(answer, Refusal):
                raise answer
        return answers

    def of_each(self, method: str, *params: Any) -> dict[str, Any]:
        """Return what each endpoint answers, by its name; endpoints that do not answer are asked nothing more."""
        found = {}
        for endpoint in list(self.endpoints):
            for _ in range(3):
                try:
                    answer = self._post(endpoint, [(method, params)], single=True)[0]
                except Refusal as refusal:
                    answer = refusal
                if not isinstance(answer, Refusal) or answer.meaning not in _AGAIN:
                    break
                self._pause(endpoint, answer)
            if isinstance(answer, Refusal):
                answer = answer.with_traceback(None)
                self.endpoints = [
                    each for each in self.endpoints if each is not endpoint
                ] or self.endpoints
            found[endpoint.name] = answer
        return found

    def next_endpoint(self) -> None:
        """Have this thread ask the next endpoint from now on, so that what it asks next is of one node."""
        with self._lock:
            self._turn += 1
            self._local.turn = self._turn

    def switch_endpoint(self) -> None:
        """Have this thread ask another endpoint: what this one answers cannot be used."""
        self._local.turn = getattr(self._local, "turn", 0) + 1

    @contextmanager
    def recording(self, received: Received) -> Iterator[None]:
        """Have what this thread asks answered from what was received before, and what it receives written there."""
        self._local.received = received
        try:
            yield
        finally:
            self._local.received = None

    def _some(self, endpoint: Endpoint, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Return the answers of as many of the first calls as the endpoint takes at once."""
        size = min(endpoint.batch, len(calls))
        if size <= 1:
            return self._post(endpoint, calls[:1], single=True)
        try:
            return self._post(endpoint, calls[:size])
        except Refusal as refusal:
            if refusal.meaning not in (
                Meaning.BATCH,
                Meaning.LESS,
                Meaning.OTHER,
                Meaning.UNKNOWN_METHOD,
            ):
                raise
        # Whatever it dislikes, fewer at once are no worse: at last one, in no batch.
        endpoint.batch = size // 2
        return self._some(endpoint, calls)

    def _repeated(self, ask: Callable[[Endpoint], Any]) -> Any:
        """Return what an endpoint answers: where it fails another one's answer, or its own a little later."""
        # By the name of the endpoint.
        failures: dict[str, Refusal] = {}
        for attempt in range(ATTEMPTS + len(self.endpoints) - 1):
            endpoint = self._endpoint()
            answer, refused = None, None
            try:
                answer = ask(endpoint)
            except Refusal as refusal:
                refused = refusal
            for each in answer if isinstance(answer, list) else [answer]:
                if isinstance(each, Refusal) and each.meaning in _AGAIN | _ELSEWHERE:
                    refused = each
            if refused is None:
                endpoint.failed = 0
                return answer
            # Not with a traceback: its frames are the libraries', whose locals hold the URL.
            found = failures | {endpoint.name: refused.with_traceback(None)}
            if not (
                refused.meaning in _AGAIN
                or (refused.meaning in _ELSEWHERE and len(found) < len(self.endpoints))
            ):
                if answer is None:
                    raise refused
                return answer
            failures = found
            if refused.meaning is Meaning.TIMEOUT and attempt >= len(self.endpoints):
                raise refused
            self._pause(endpoint, refused)
        *others, last = failures.values()
        raise last.as_error(others, during=f"No answer after {attempt + 1} attempts.")

    def _endpoint(self) -> Endpoint:
        """Return the endpoint whose turn it is: of those that may be asked now, else the one that may be first."""
        with self._lock:
            turn = getattr(self._local, "turn", 0)
            order = [
                self.endpoints[(turn + step) % len(self.endpoints)]
                for step in range(len(self.endpoints))
            ]
            now = time.monotonic()
            return next(
                (endpoint for endpoint in order if endpoint.not_before <= now),
                min(order, key=lambda p: p.not_before),
            )

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
                    self.calls += calls
                    return
            self.stopped.wait(until - now)
        raise QueryCancelled("The fetch was stopped.")

    def _post(
        self,
        endpoint: Endpoint,
        calls: Sequence[tuple[str, Sequence[Any]]],
        *,
        single: bool = False,
    ) -> list[Any]:
        received: Received | None = getattr(self._local, "received", None)
        if received is not None and (known := received.results(calls)) is not None:
            return known
        self._wait(endpoint, len(calls))
        with self._lock:
            first, self._id = self._id + 1, self._id + len(calls)
        bodies = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": list(params)}
            for number, (method, params) in enumerate(calls, first)
        ]
        started = time.monotonic()
        logs = [params[0] for method, params in calls if method == "eth_getLogs"]
        is_range = any(wanted["fromBlock"] != wanted["toBlock"] for wanted in logs)
        most = RANGE_BYTES if is_range else MOST_BYTES
        body = strict_json.to_json(bodies[0] if single else bodies)
        with ExitStack() as stack:
            if received is not None and logs:
                stack.enter_context(self._reading.taken())
            status, headers, raw, refused = self._exchange(endpoint, body, most)
            # Before it is even parsed: a process that follows a killed one does not ask for what had come.
            if (
                received is not None
                and status == 200
                and refused is None
                and not self.redact.is_needed(raw)
            ):
                received.add(bodies, raw)
        with self._lock:
            self.waited += time.monotonic() - started
        if refused is not None:
            finding = (
                f"Its answer is larger than {most // 10**6} MB" if refused is Meaning.LESS else ""
            )
            raise Refusal(refused, finding=finding, node=endpoint.name)
        pause = _retry_after(headers)
        value, wrong = _read(raw)
        if wrong and status == 200:
            # Cut, or the page of a proxy.
            raise Refusal(Meaning.BUSY, finding="Its answer is not JSON", node=endpoint.name)
        if status != 200:
            said = raw[:500].decode("utf-8", "replace") if wrong else value
            raise self._refusal(endpoint, status, said, pause)
        answers = [value] if single else value
        if not isinstance(answers, list):
            raise self._refusal(endpoint, status, value, pause)
        found = {each.get("id"): each for each in answers if isinstance(each, Mapping)}
        if single and len(found) == 1 and "error" in (only := next(iter(found.values()))):
            found = {first: only}  # an error may have no id
        return [
            self._result(endpoint, status, found.get(number), pause)
            for number in range(first, first + len(calls))
        ]

    def _result(
        self, endpoint: Endpoint, status: int, answer: Mapping[str, Any] | None, pause: float | None
    ) -> Any:
        if answer is None:
            return Refusal(
                Meaning.BUSY, finding="An answer of the batch is missing", node=endpoint.name
            )
        if answer.get("error") is not None or "result" not in answer:
            return self._refusal(endpoint, status, answer, pause)
        return answer["result"]

    def _refusal(self, endpoint: Endpoint, status: int, value: Any, pause: float | None) -> Refusal:
        """Return the refusal that an answer is; its words are a stranger's, and may repeat the URL."""
        code, text, finding = None, value if isinstance(value, str) else "", ""
        error = value.get("error") if isinstance(value, Mapping) else None
        if isinstance(error, Mapping):
            code = error.get("code") if isinstance(error.get("code"), int) else None
            data = error.get("data")
            more = strict_json.to_json(data).decode("ascii") if isinstance(data, Mapping) else data
            text = " ".join(
                str(each) for each in (error.get("message"), more) if isinstance(each, str)
            )
            if isinstance(more, str) and more.startswith("0x"):
                text = str(error.get("message"))  # a revert's reason, encoded
        elif isinstance(error, str):
            text = error
        elif not text:
            finding = (
                "Its answer is not one of JSON-RPC"
                if status == 200
                else f"The HTTP status is {status}"
            )
        meaning = meaning_of(status, code, text)
        return Refusal(
            meaning, self.redact(text[:500]), finding=finding, pause=pause, node=endpoint.name
        )

    def _exchange(
        self, endpoint: Endpoint, body: bytes, most: int
    ) -> tuple[int, Mapping[str, str], bytes, Meaning | None]:
        """Return status, headers and body; in place of a library's error, which would name the URL, its meaning."""
        refused = None
        try:
            response = self._session().post(
                endpoint.url.reveal(),
                data=body,
                headers={"Content-Type": "application/json"},
                stream=True,
                timeout=(CONNECT, SILENCE),
                allow_redirects=False,
                proxies=requests.utils.get_environ_proxies(endpoint.url.reveal()),
            )
            with response:
                raw = self._body(response, most)
            return (
                response.status_code,
                response.headers,
                raw,
                None if len(raw) <= most else Meaning.LESS,
            )
        except requests.exceptions.SSLError:
            refused = Meaning.UNTRUSTED
        except requests.ConnectTimeout:
            refused = Meaning.AWAY
        except requests.Timeout:
            refused = Meaning.TIMEOUT
        except requests.ConnectionError as error:
            # A connection that was made and then broken is no wrong address.
            was_made = error.args and isinstance(error.args[0], urllib3.exceptions.ProtocolError)
            refused = Meaning.BUSY if was_made else Meaning.AWAY
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError):
            refused = Meaning.BUSY
        return 0, {}, b"", refused

    def _body(self, response: requests.Response, most: int) -> bytes:
        """Return the body, up to a byte more than is allowed; a timeout of requests' where it drips for too long."""
        until, pieces, size = time.monotonic() + DEADLINE, [], 0
        while size <= most and (piece := response.raw.read1(_PIECE, decode_content=True)):
            pieces.append(piece)
            size += len(piece)
            if time.monotonic() > until:
                raise requests.Timeout
            if self.stopped.is_set():
                raise QueryCancelled("The fetch was stopped.")
        return b"".join(pieces)

    def _session(self) -> requests.Session:
        session = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
            # No .netrc: its password would go to whoever the URL names.
            session.trust_env = False
            session.headers["User-Agent"] = f"nbext/{__version__}"
            for scheme in ("http://", "https://"):
                session.mount(scheme, _Adapter(max_retries=0))
        return session


class _Turn:
    """Whose answer is read from its connection. Threads share one.

    Several requests are under way at once, and their answers may all come in the same moment. Each is read from the
    connection and written to the disk before the next one is touched: what kill -9 finds received and not written is
    one answer at most. The others are still the network's.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have this thread take its turn when the first bytes of its answer are there, until the end of the block."""
        _thread.lock, _thread.has = self._lock, False
        try:
            yield
        finally:
            if _thread.has:
                self._lock.release()
            _thread.lock, _thread.has = None, False


class _InTurn:
    """A connection that waits for its thread's turn before it reads an answer."""

    sock: Any
    timeout: Any

    def getresponse(self) -> Any:
        lock: threading.Lock | None = getattr(_thread, "lock", None)
        if lock is not None and not _thread.has:
            wait_for_read(self.sock, timeout=self.timeout)
            _thread.has = lock.acquire(timeout=_PATIENCE)
        return super().getresponse()  # type: ignore[misc]  # that of the connection that this is mixed into


class _Http(_InTurn, HTTPConnection):
    pass


class _Https(_InTurn, HTTPSConnection):
    pass


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https


class _Adapter(HTTPAdapter):
    """Trusts what the system trusts, and so a company's own certificates."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pools, as requests does."""
        super().init_poolmanager(
            *args, ssl_context=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT), **options
        )
        self.poolmanager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}


def quantity(value: Any, what: str) -> int:
    """Return the number that a quantity writes, such as 0x10; NodeError where it is none below 2**256."""
    if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,64}", value):
        return int(value, 16)
    raise NodeError(
        f"The node's answer has no {what}: {visible(value, 40)} is not a quantity such as 0x10."
    )


def _is_http(url: Secret) -> bool:
    try:
        split = urlsplit(url.reveal())
        return split.scheme in ("http", "https") and bool(split.hostname) and (split.port or 1) > 0
    except ValueError:
        return False


def _read(raw: bytes) -> tuple[Any, bool]:
    try:
        return strict_json.read_answer(raw)[0], False
    except strict_json.NotJson:
        return None, True


def _retry_after(headers: Mapping[str, str]) -> float | None:
    text = headers.get("Retry-After", "")
    if re.fullmatch(r"\d{1,6}(\.\d+)?", text):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time()) if text else None
    except (ValueError, TypeError):
        return None
