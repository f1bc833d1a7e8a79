"""One request, as often as it may be asked, within one deadline."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar
from urllib.parse import urlsplit

import requests

from nbext import __version__
from nbext.client.http.base_url import Origin, usable_key
from nbext.client.http.body import Stream
from nbext.client.http.connections import WatchedAdapter
from nbext.client.http.deadline import CURRENT, WATCHDOG, Deadline, Watch
from nbext.client.http.errors import FOREIGN, typed
from nbext.client.http.problems import Answer, error_of
from nbext.client.http.retry import Budget, Repeat, pause
from nbext.core.operations import IDEMPOTENCY_HEADER
from nbext.errors import (
    ApiError,
    ConnectionFailed,
    DeadlineExceeded,
    NbextError,
    OutcomeUnknown,
    ProtocolError,
    QueryCancelled,
    ServiceDied,
    TruncatedResponse,
)
from nbext.settings import Secret, Settings

LOG = logging.getLogger("nbext")
MAX_ERROR_BODY = 1_000_000
MAX_REDIRECTS = 3
T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One logical request. ``target`` is a path below base_url, or an absolute URL that the service named."""

    method: str
    target: str
    deadline: Deadline
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    repeat: Repeat = Repeat.ALWAYS
    # A service may take its time to answer a segment: then silence is no fault.
    patient: bool = False
    told: Callable[[int, int | None], None] = lambda came, total: None
    cap: int | None = None
    scope: Scope | None = None


@dataclass(frozen=True)
class Incoming:
    """An answer whose body is still to be read."""

    status: int
    headers: Mapping[str, str]
    stream: Stream
    url: str


@dataclass
class _Outcome(Generic[T]):
    """How an attempt ended. Errors are handed over as values: raised later, they drag no foreign frames along."""

    value: T | None = None
    error: NbextError | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: bool = False


class Scope:
    """The exchanges under way for one call of the user, so that an interrupt can end them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: set[Watch] = set()
        self.ended = threading.Event()

    def add(self, watch: Watch) -> None:
        """Take an exchange in; one that comes too late is ended at once."""
        with self._lock:
            self._watches.add(watch)
        if self.ended.is_set():
            watch.fire()

    def remove(self, watch: Watch) -> None:
        """Let an exchange go."""
        with self._lock:
            self._watches.discard(watch)

    def end(self) -> None:
        """End every exchange, and every pause between two attempts."""
        self.ended.set()
        with self._lock:
            for watch in self._watches:
                watch.fire()


class Transport:
    """The session, the pool, the key and the retry budget of one client."""

    def __init__(
        self, base_url: str, api_key: str | Secret | None, settings: Settings, restart: Callable[[], Any] | None = None
    ) -> None:
        self.settings = settings
        self._restart = restart
        self._born = 0
        # Whether anything came back, be it an error.
        self.answered = False
        self._point(base_url, api_key)
        self._renew()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client holds a key and open connections: it is neither pickled nor copied")

    @property
    def is_embedded(self) -> bool:
        """Whether the service is one that we started, and can start again."""
        return self._restart is not None

    def _point(self, base_url: str, api_key: str | Secret | None) -> None:
        self.origin = Origin.of(base_url, insecure=self.settings["insecure"])
        self.key = usable_key(api_key)

    def _renew(self) -> None:
        # Also in a forked child: it must not talk over its parent's connections, nor wait for its locks.
        self._process = os.getpid()
        self._lock = threading.Lock()
        self.budget = Budget()
        self.session = requests.Session()
        # No .netrc, no surprise: proxies and bundles are read from the environment in _line().
        self.session.trust_env = False
        for scheme in ("http://", "https://"):
            self.session.mount(scheme, WatchedAdapter())
        self._cache_metadata()
        self.session.headers = requests.structures.CaseInsensitiveDict({
            "User-Agent": f"nbext/{__version__}",
            "Accept": "application/json, text/csv;q=0.9, */*;q=0.1",
            # Packing does not pay on loopback.
            "Accept-Encoding": "identity" if self.origin.is_loopback else "gzip, deflate",
        })

    def _cache_metadata(self) -> None:
        from nbext.client.http.cache import CachingAdapter

        for path in ("/v1/tokens/", "/v1/nfts/"):
            self.session.mount(self.origin.url + path, CachingAdapter())

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self.session.close()

    def fetch(self, call: Call) -> Answer:
        """Return the whole answer.

        Raises
        ------
        ApiError, TransportError
            See `nbext.errors`; after the retries that the call allows, and never later than its deadline.
        """
        return self.run(call, lambda came: Answer(came.status, came.headers, came.stream.read(), came.url))

    def run(self, call: Call, consume: Callable[[Incoming], T]) -> T:
        """Send, retry, and hand the answer to ``consume``, anew at each attempt."""
        if os.getpid() != self._process:
            self._renew()
        scope = call.scope or Scope()
        interrupted = False
        try:
            return self._run(call, consume, scope)
        except KeyboardInterrupt:
            scope.end()
            interrupted = True
        assert interrupted
        raise QueryCancelled("the call was interrupted.")

    def _run(self, call: Call, consume: Callable[[Incoming], T], scope: Scope) -> T:
        attempt, revived = 1, False
        while True:
            born = self._born
            outcome = self._attempt(call, consume, scope, attempt)
            if outcome.error is None:
                self.budget.earn()
                return outcome.value  # type: ignore[return-value]  # T itself may be Optional
            if self._restart and not revived and isinstance(outcome.error, ConnectionFailed) and not outcome.sent:
                self._revive(born)
                revived = True
            else:
                self._wait(call, outcome, attempt, scope, revived=revived)
            attempt += 1

    def _wait(self, call: Call, outcome: _Outcome[T], attempt: int, scope: Scope, *, revived: bool) -> None:
        """Sleep before the next attempt, or raise what the call ends with."""
        error = outcome.error
        assert error is not None
        seconds = pause(attempt, outcome.headers)
        again = attempt < self.settings["attempts"] and call.repeat.allows(error, sent=outcome.sent)
        if scope.ended.is_set():
            raise QueryCancelled("the call was interrupted.")
        if not again or seconds >= call.deadline.remaining() or not self.budget.spend():
            raise self._last(call, error, sent=outcome.sent, revived=revived)
        LOG.debug("%s %s again in %.1f s: %s", call.method, _path(call.target), seconds, type(error).__name__)
        scope.ended.wait(seconds)

    def _last(self, call: Call, error: NbextError, *, sent: bool, revived: bool) -> NbextError:
        if revived and isinstance(error, ConnectionFailed):
            return ServiceDied(f"the embedded service ended, and again after one restart: {error}")
        unsure = isinstance(error, ConnectionFailed | TruncatedResponse) and sent
        if unsure and call.repeat is not Repeat.ALWAYS:
            return OutcomeUnknown(
                f"{error} The request may have been carried out; it was not repeated.",
                idempotency_key=call.headers.get(IDEMPOTENCY_HEADER),
            )
        return error

    def _revive(self, born: int) -> None:
        """Start the embedded service again, once for all calls that found it gone."""
        with self._lock:
            if self._born != born:
                return
            assert self._restart is not None
            try:
                running = self._restart()
            except (NbextError, OSError, RuntimeError) as error:
                failure = str(error)
            else:
                self._point(running.base_url, running.api_key)
                # The next time it is the new one that would have died.
                self._restart = running.restart
                self._cache_metadata()
                self._born += 1
                return
        raise ServiceDied(f"the embedded service ended and could not be started again: {failure}")

    def _attempt(
        self, call: Call, consume: Callable[[Incoming], T], scope: Scope, attempt: int
    ) -> _Outcome[T]:
        began = time.monotonic()
        watch = Watch(call.deadline, fresh=call.repeat is not Repeat.ALWAYS)
        scope.add(watch)
        WATCHDOG.arm(watch)
        token = CURRENT.set(watch)
        outcome: _Outcome[T] = _Outcome()
        try:
            self._exchange(call, consume, watch, outcome, attempt)
        except NbextError as error:
            outcome.error = error
        except FOREIGN as error:
            outcome.error = typed(error, self.origin.root)
        finally:
            CURRENT.reset(token)
            watch.release()
            scope.remove(watch)
        outcome.sent = watch.sent
        if watch.fired and outcome.error is not None and not isinstance(outcome.error, ApiError):
            outcome.error = self._too_late(call)
        if outcome.error is not None:
            # It may have been raised by another thread, or in an except block: nothing shall hang on it.
            outcome.error.__context__ = outcome.error.__cause__ = None
        ended = type(outcome.error).__name__ if outcome.error else "ok"
        LOG.debug("%s %s: %s in %.3f s", call.method, _path(call.target), ended, time.monotonic() - began)
        return outcome

    def _too_late(self, call: Call) -> DeadlineExceeded:
        maybe = "" if call.repeat is Repeat.ALWAYS else " The request may have been carried out all the same."
        return DeadlineExceeded(f"{self.origin.root} did not answer within {call.deadline.seconds:g} s.{maybe}")

    def _exchange(
        self, call: Call, consume: Callable[[Incoming], T], watch: Watch, outcome: _Outcome[T], attempt: int
    ) -> None:
        url, method, body = self.absolute(call.target), call.method, call.body
        for _ in range(MAX_REDIRECTS + 1):
            response = self._send(call, method, url, body, watch)
            self.answered = True
            try:
                location = response.headers.get("Location")
                if response.status_code in (301, 302, 303, 307, 308) and location:
                    method, url, body = self._redirected(response, location, method, url, body)
                    continue
                outcome.headers = response.headers
                outcome.value = self._read(call, self._incoming(call, response, url, watch), watch, consume, attempt)
                return
            finally:
                response.close()
        raise ProtocolError(f"{self.origin.root} sent us on more than {MAX_REDIRECTS} times.")

    def absolute(self, target: str) -> str:
        """Return the address of a call's target."""
        return target if "://" in target else self.origin.url + target

    def _redirected(
        self, response: requests.Response, location: str, method: str, url: str, body: bytes | None
    ) -> tuple[str, str, bytes | None]:
        target = self.origin.follow(location, url)
        if response.status_code in (307, 308) or method == "GET":
            if method != "GET" and not self.origin.owns(target):
                raise ProtocolError(f"{self.origin.root} wants this sent to another service; it is not.")
            return method, target, body
        return "GET", target, None

    def _send(self, call: Call, method: str, url: str, body: bytes | None, watch: Watch) -> requests.Response:
        own = self.origin.owns(url)
        watch.key = self.key if own else None
        headers = dict(call.headers) if own else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = self.session.prepare_request(requests.Request(method, url, headers=headers, data=body))
        left = call.deadline.remaining()
        if left <= 0:
            raise self._too_late(call)
        read = left if call.patient else min(self.settings["read_timeout"], left)
        timeout = (min(self.settings["connect_timeout"], left), read)
        return self.session.get_adapter(url).send(request, stream=True, timeout=timeout, **self._line(url))

    def _line(self, url: str) -> dict[str, Any]:
        """Return which certificates to trust and which proxy to use for a URL; none on loopback."""
        bundle = self.settings["ca_bundle"] or os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
        if (urlsplit(url).hostname or "") in ("localhost", "127.0.0.1", "::1") or self.origin.is_loopback:
            return {"verify": bundle or True, "proxies": {}}
        return {"verify": bundle or True, "proxies": requests.utils.get_environ_proxies(url)}

    def _incoming(self, call: Call, response: requests.Response, url: str, watch: Watch) -> Incoming:
        cap = MAX_ERROR_BODY if response.status_code >= 400 else call.cap or self.settings["max_body_mb"] * 1_000_000
        encoding = response.headers.get("Content-Encoding", "")
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() and not encoding else None
        stream = Stream(response.raw, encoding, watch, cap, lambda came: call.told(came, total))
        return Incoming(response.status_code, response.headers, stream, url)

    def _read(
        self, call: Call, came: Incoming, watch: Watch, consume: Callable[[Incoming], T], attempt: int
    ) -> T:
        if came.status >= 400:
            raise error_of(Answer(came.status, came.headers, _beginning(came.stream), came.url), self.key, attempt)
        if came.status < 200 or came.status == 206:
            raise ProtocolError(f"{self.origin.root} answered {came.status}, which was not asked for.")
        value = consume(came)
        came.stream.finish()
        if watch.fired:
            # What came may be the beginning only: a socket that was shut reads like an end.
            raise self._too_late(call)
        return value


NO_CAP = sys.maxsize


def _beginning(stream: Stream) -> bytes:
    """Return as much of an error's body as can be read: its status is told in any case."""
    piece = bytearray()
    try:
        while len(piece) < MAX_ERROR_BODY and (more := stream.read(min(1 << 16, MAX_ERROR_BODY - len(piece)))):
            piece += more
    except (NbextError, *FOREIGN):
        pass
    return bytes(piece)


def _path(target: str) -> str:
    # What follows ? may be a signature that opens a file.
    return target.split("?", 1)[0]
