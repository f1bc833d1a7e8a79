"""One request, tried as often as it may be, within one deadline: whether to ask again, when, and how often in all.

    for attempt in transport.exchange(call):
        with attempt as exchange:
            answer = exchange.open().whole()

The answer is read inside of the attempt: an answer that breaks off is asked for again, as one that never began.
"""

from __future__ import annotations

import logging
import math
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from nbext.core.untrusted_text import visible
from nbext.core.wire import DATA_HEADER, IDEMPOTENCY_HEADER
from nbext.errors import (
    ApiError,
    ConnectionFailed,
    DeadlineExceeded,
    NbextError,
    OutcomeUnknown,
    ProtocolError,
    QueryCancelled,
    RateLimited,
    ServiceDied,
    TruncatedResponse,
)
from nbext.http import connections
from nbext.http.base_url import Origin, usable_key
from nbext.http.body import Answer, Headers, Incoming, Report, rate_limit_reset, retry_after
from nbext.http.connections import CachingAdapter, tls_context
from nbext.http.deadline import SCOPE, Deadline, Scope, Watch, watched
from nbext.http.errors import FOREIGN, of_answer, of_library, of_proxy_status
from nbext.settings import Secret, Settings

LOG = logging.getLogger("nbext")
MAX_ERROR_BODY = 1_000_000
MAX_REDIRECTS = 3
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
# Not the module's own generator: a retry in a background thread would change what a notebook draws after its seed.
_jitter = random.Random()
# A hundred retries at once, and then one for each ten good answers: many callers of a sick service make no storm.
MAX_RETRIES, REGAINED = 100.0, 0.1


class Repeat(Enum):
    """What may be asked again.

    ``ALWAYS``: reading, or writing under an Idempotency-Key that the service is known to honour.
    ``IF_REFUSED``: a segment on a service that may not honour the key; 502 and 503 count as a gateway's refusal.
    ``NEVER_TWICE``: a sign-up; only what surely did not happen.
    """

    ALWAYS = frozenset({408, 425, 429, 500, 502, 503, 504})
    IF_REFUSED = frozenset({429, 502, 503})
    NEVER_TWICE = frozenset({429})

    def allows(self, error: NbextError, *, sent: bool) -> bool:
        """Say whether a call that ended so, after its bytes were sent or not, may be asked again."""
        if isinstance(error, ApiError):
            return error.status in self.value
        if not isinstance(error, ConnectionFailed | TruncatedResponse | DeadlineExceeded):
            return False
        return self is Repeat.ALWAYS or not sent

    def unsure(self, error: NbextError, *, sent: bool) -> bool:
        """Say whether nobody knows if a call that ended so has happened."""
        if self is Repeat.ALWAYS:
            return False
        # A request that took too long, or that the service broke on, may have run: of 504 it is the likely case.
        if isinstance(error, ApiError):
            return error.status in (408, 425, 500, 504)
        return sent and isinstance(error, ConnectionFailed | TruncatedResponse)


@dataclass(frozen=True)
class Call:
    """One logical request. ``target`` is a path below base_url, or an absolute URL that the service named."""

    method: str
    target: str
    deadline: Deadline
    body: bytes | None = field(default=None, repr=False)
    headers: Headers = field(default_factory=dict)
    repeat: Repeat = Repeat.ALWAYS
    # A service may take its time to answer a segment: then silence is no fault.
    patient: bool = False
    report: Report | None = None
    # How the client reads the answer: whose settings do (segment, export, search, token, nft or signup), the types of
    # columns that it knows already, and the folder of the file that the rows are for.
    operation: str = "segment"
    types: dict[str, str] = field(default_factory=dict)
    folder: Path | None = None
    # What the answer must be of: the segment; the chain, and the address or the term.
    asked: Mapping[str, str] = field(default_factory=dict)


class Transport:
    """The session, the pool, the key and the retries that are left of one client."""

    def __init__(
        self,
        base_url: str,
        api_key: str | Secret | None,
        settings: Settings,
        restart: Callable[[], Any] | None = None,
    ) -> None:
        self.settings = settings
        # Starts the embedded service again; None for a service that is not ours to start.
        self.restart = restart
        self._born = 0
        # The data that our own service said it serves, in its last answer.
        self.data: str | None = None
        self._point(base_url, api_key)
        self._renew()

    def _point(self, base_url: str, api_key: str | Secret | None) -> None:
        self.origin = Origin.of(base_url, insecure=self.settings["insecure"])
        self.key = usable_key(api_key)

    def _renew(self) -> None:
        # Also in a forked child: it must not talk over its parent's connections, nor wait for its locks.
        self._process = os.getpid()
        self.lock = threading.Lock()
        self.retries = MAX_RETRIES
        # Compression does not pay on loopback.
        self.session = connections.session(
            "application/json, text/csv;q=0.9, */*;q=0.1",
            "identity" if self.origin.is_loopback else "gzip, deflate",
        )
        self._cache_metadata()
        self.trust = partial(tls_context, self.settings["ca_bundle"])
        if self.settings["ca_bundle"] or self.origin.scheme == "https":
            # A bundle that cannot be read is refused now, and not by the first request.
            self.trust()

    def _cache_metadata(self) -> None:
        for path in ("/v1/tokens/", "/v1/nfts/"):
            self.session.mount(self.origin.url + path, CachingAdapter())

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self.session.close()

    def fetch(self, call: Call) -> Answer:
        """Return the whole answer, after the retries that the call allows, and never later than its deadline."""
        for attempt in self.exchange(call):
            with attempt as exchange:
                answer = exchange.open().whole()
        return answer

    def exchange(self, call: Call) -> Iterator[AbstractContextManager[Exchange]]:
        """Yield the attempts at a call; the last one succeeds or raises."""
        if os.getpid() != self._process:
            self._renew()
        exchange = Exchange(self, call, SCOPE.get() or Scope())
        while not exchange.done:
            yield exchange.attempt()

    def revive(self, born: int) -> None:
        """Start the embedded service again, once for all calls that found it gone."""
        with self.lock:
            # Another thread was here first: its new service is everybody's.
            if self._born != born:
                return
            assert self.restart is not None
            try:
                running = self.restart()
            except (NbextError, OSError, RuntimeError) as error:
                raise ServiceDied(
                    f"The embedded service ended and could not be started again: {error}"
                ) from None
            self._point(running.base_url, running.api_key)
            # The next time it is the new one that would have died.
            self.restart = running.restart
            self._cache_metadata()
            self._born += 1


@dataclass(eq=False, repr=False)
class Exchange:
    """One request: goes through its attempts, each of which is a context in which the answer is read.

    An attempt that fails and may be repeated ends quietly, and the next one follows after a pause; otherwise its error,
    which is always one of ours, leaves the ``with``.
    """

    _transport: Transport
    _call: Call
    _scope: Scope
    done: bool = False
    _attempt: int = 0
    _revived: bool = False
    # This attempt's requests.Response, and as it was accepted.
    _response: Any = None
    _incoming: Any = None

    @contextmanager
    def attempt(self) -> Iterator[Exchange]:
        """Try once: the answer is read in this context, and what breaks off in it counts as a failed attempt."""
        call, transport = self._call, self._transport
        self._attempt += 1
        self._response = self._incoming = None
        # What must not run twice goes over a new connection: an idle one may break without a word of whether it ran.
        self._watch = watch = Watch(call.deadline, fresh=call.repeat is not Repeat.ALWAYS)
        began, born = time.monotonic(), transport._born
        failure: NbextError | None = None
        try:
            with watched(watch, self._scope):
                yield self
                if self._incoming is not None:
                    self._incoming.finish()
                if watch.fired:
                    # What came may be the beginning only: a socket that was shut reads like an end.
                    raise DeadlineExceeded("")
        except NbextError as error:
            failure = error
        except FOREIGN as error:
            failure = of_library(error, transport.origin.root, watch.proxy)
        finally:
            if self._response is not None:
                self._response.close()
        if watch.fired and failure is not None and not isinstance(failure, ApiError):
            # A socket that was shut fails in any of a dozen ways; why it was shut is what there is to say.
            failure = self._too_late()
        # What follows ? may be a signature that opens a file.
        path, ended = call.target.split("?", 1)[0], type(failure).__name__ if failure else "ok"
        LOG.debug("%s %s: %s in %.3f s", call.method, path, ended, time.monotonic() - began)
        if failure is None:
            self.done = True
            with transport.lock:
                transport.retries = min(MAX_RETRIES, transport.retries + REGAINED)
        elif (
            transport.restart
            and not self._revived
            and isinstance(failure, ConnectionFailed)
            and not watch.sent
        ):
            transport.revive(born)
            self._revived = True
        else:
            self._wait(failure, watch)

    def open(self) -> Incoming:
        """Send the request, follow where the service sends it, and return the answer, its body still to be read."""
        transport, call = self._transport, self._call
        url = transport.origin.address(call.target)
        method, body = call.method, call.body
        for _ in range(MAX_REDIRECTS + 1):
            self._response = response = self._send(method, url, body)
            location = response.headers.get("Location")
            if response.status_code not in (301, 302, 303, 307, 308) or not location:
                return self._accepted(response, url)
            response.close()
            target = transport.origin.follow(location, url)
            if response.status_code == 303 or method == "GET":
                method, body = "GET", None
            elif response.status_code == 302 and _name(url) != _name(target):
                where = visible(urlsplit(target).path, 80)
                raise ProtocolError(
                    f"{transport.origin.root} redirects the {method} to {where} with status 302, which does not say "
                    "whether the request moved there, or its answer is there."
                )
            elif not transport.origin.owns(target):
                # The filters of a segment are the user's business, and no other service's.
                raise ProtocolError(
                    f"{transport.origin.root} redirects the {method} to another service."
                )
            url = target
        raise ProtocolError(
            f"{transport.origin.root} redirected the request more than {MAX_REDIRECTS} times."
        )

    def _send(self, method: str, url: str, body: bytes | None) -> requests.Response:
        """Send one request, and follow no redirect; the body is still to be read."""
        transport, call, watch = self._transport, self._call, self._watch
        left = call.deadline.remaining()
        if not left:
            raise self._too_late()
        own = transport.origin.owns(url)
        # The one decision about who gets the key. Another origin gets no header of the call either.
        watch.key = transport.key if own else None
        watch.trust = transport.trust
        headers = dict(call.headers) if own else {}
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        connect, read = (transport.settings[f"{name}_timeout"] for name in ("connect", "read"))
        response = connections.send(
            transport.session,
            requests.Request(method, url, headers=headers, data=body),
            watch,
            timeout=(min(connect, left), left if call.patient else min(read, left)),
        )
        if own:
            transport.data = response.headers.get(DATA_HEADER, transport.data)
        return response

    def _accepted(self, response: requests.Response, url: str) -> Incoming:
        transport, status, headers = self._transport, response.status_code, response.headers
        cap = MAX_ERROR_BODY if status >= 400 else transport.settings["max_body_mb"] * 1_000_000
        came = Incoming(
            status, headers, url, response.raw, watch=self._watch, cap=cap, report=self._call.report
        )
        proxy = self._watch.proxy
        if status == 407 and proxy:
            raise of_proxy_status(status, transport.origin.root, proxy)
        if status >= 400:
            # No name for the error here: a frame that holds it would live with its traceback, and a table with that.
            raise self._refusal(Answer(status, headers, _beginning(came), url), proxy)
        # A part of a file, answers of which some failed, and a difference must never pass for the whole.
        if status < 200 or status in (206, 207, 226):
            raise ProtocolError(
                f"{transport.origin.root} answered {status}, which nbext did not ask for."
            )
        self._incoming = came
        return came

    def _refusal(self, answer: Answer, proxy: str | None) -> NbextError:
        error = of_answer(answer, self._transport.key, self._attempt)
        if answer.status == 403 and proxy and answer.url.startswith("http:"):
            # Without TLS a proxy can answer in the service's place.
            error.args = (
                f"{_ended(error)} It came through the proxy {proxy}, which may have refused it.",
            )
        return error

    def _wait(self, failure: NbextError, watch: Watch) -> None:
        """Sleep before the next attempt, or raise the error that the call ends with."""
        call, transport = self._call, self._transport
        headers = self._response.headers if self._response is not None else {}
        stated = retry_after(headers)
        if stated is None and isinstance(failure, RateLimited):
            # That header is in good answers too, where it asks for nothing.
            stated = rate_limit_reset(headers)
        # Jitter: many callers must not all ask again at the same moment.
        backoff = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (self._attempt - 1)) * _jitter.uniform(
            0.5, 1.0
        )
        seconds = backoff if stated is None else stated
        if self._scope.ended.is_set():
            raise QueryCancelled("Interrupted.")
        again = self._attempt < transport.settings["attempts"] and call.repeat.allows(
            failure, sent=watch.sent
        )
        # A pause that would outlast the deadline is not begun: the error is known now.
        again = again and seconds < call.deadline.remaining()
        if again:
            with transport.lock:
                again = transport.retries >= 1
                transport.retries -= again
        if again:
            LOG.debug("%s again in %.1f s after %s", call.method, seconds, type(failure).__name__)
            self._scope.ended.wait(seconds)
            return
        if self._revived and isinstance(failure, ConnectionFailed):
            raise ServiceDied(f"The embedded service ended, and again after one restart: {failure}")
        if call.repeat.unsure(failure, sent=watch.sent):
            raise self._unknown(failure)
        if stated is not None:
            failure.args = (
                f"{_ended(failure)} It asks to wait {math.ceil(stated):,} s before the next request.",
            )
        raise failure

    def _unknown(self, failure: NbextError) -> OutcomeUnknown:
        key = self._call.headers.get(IDEMPOTENCY_HEADER)
        if self._call.repeat is Repeat.NEVER_TWICE:
            advice = "The sign-up may have been recorded, and nbext did not send it again."
        else:
            advice = (
                "The query may have run, and nbext did not send it again. Running it again only costs a query. If the "
                f"service honours Idempotency-Key (this one was {key}), `%nbext set remote.idempotent true` repeats it."
            )
        return OutcomeUnknown(f"{_ended(failure)} {advice}", idempotency_key=key)

    def _too_late(self) -> DeadlineExceeded:
        call = self._call
        maybe = (
            ""
            if call.repeat is Repeat.ALWAYS
            else " The request may have been carried out all the same."
        )
        return DeadlineExceeded(
            f"{self._transport.origin.root} did not answer within {call.deadline.seconds:g} s.{maybe}"
        )


def _name(url: str) -> str:
    # Browsers make a GET of a 302, which a moved /search would answer with all there is: what has its name is it.
    return urlsplit(url).path.rstrip("/").rpartition("/")[2]


def _ended(error: NbextError) -> str:
    """Return an error's message as a sentence that another may follow."""
    return f"{str(error).rstrip('.')}."


def _beginning(came: Incoming) -> bytes:
    """Return as much of an error's body as can be read."""
    # The status says most of it already; a second error about the missing words would hide it.
    with suppress(NbextError, *FOREIGN):
        came.peek(MAX_ERROR_BODY)
    return bytes(came.ready)
