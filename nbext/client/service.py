"""One service: whose it is, how it is asked, and which of the two decoders reads its answers.

`public` is the edge of the client's methods, where every error leaves, and where Ctrl-C ends every wait. Inside of the
client exceptions travel as they are. There they lose the API key, which a service may echo in any text, and the frames,
whose locals tools print. Nothing else in the client handles an interrupt.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from nbext.client.decode import Decoder, Ours, Reading, Want, json_object
from nbext.client.http.deadline import SCOPE, Deadline, Scope
from nbext.client.http.errors import redacted
from nbext.client.http.transport import NO_CAP, Call, Transport
from nbext.core import operations as op
from nbext.errors import ApiError, NbextError, ProtocolError, QueryCancelled
from nbext.settings import Secret, Settings

# A service that sends us further than this, or to more pages, sends us in a circle.
MAX_HOPS, MAX_PAGES = 3, 10_000
P = ParamSpec("P")
R = TypeVar("R")


class Service:
    """A service, by its base_url and key.

    Attributes
    ----------
    ours
        Whether it is nbext's own; None where that is not known yet. It decides who decodes the answers, and what
        may be asked: our own grammar and operations, and an execute that is repeated under its Idempotency-Key.
    """

    def __init__(
        self, base_url: str, api_key: str | Secret, settings: Settings, restart: Callable[[], Any] | None
    ) -> None:
        self.settings = settings
        self.transport = Transport(base_url, api_key, settings, restart)
        self.ours: bool | None = True if restart else None
        self._our_decoder = Ours(settings["max_body_mb"] * 1_000_000)
        # Settings that make no sense are refused now, and not by the first answer.
        self._stranger: Decoder | None = _stranger(settings, self.transport.key) if settings["remote"] else None

    @property
    def decoder(self) -> Decoder:
        """What reads the answers. A service that is not known to be ours is read as a stranger's."""
        if self.ours:
            return self._our_decoder
        if self._stranger is None:
            self._stranger = _stranger(self.settings, self.transport.key)
        return self._stranger

    def is_ours(self) -> bool:
        """Say whether the service is nbext's own; one that is not known yet is asked (GET /about)."""
        if self.ours is None:
            try:
                self.about()
            except (ApiError, ProtocolError):
                self.ours = False
            except QueryCancelled:
                raise
            except NbextError:
                # It could not be asked now: nothing is known, and nothing is remembered.
                return False
        return bool(self.ours)

    def about(self) -> dict[str, Any]:
        """Return the answer of GET /about, which says whose service it is."""
        found = self.document(self.call("GET", op.ABOUT))
        self.ours = found.get("service") == "nbext"
        return found

    def call(self, method: str, target: str, body: Any = None, deadline: str = "deadline") -> Call:
        """Return a request; ``deadline`` names the setting with its seconds."""
        data = None if body is None else json.dumps(body).encode()
        return Call(method, target, Deadline(self.settings[deadline]), data)

    def document(self, call: Call) -> dict[str, Any]:
        """Return the JSON object that one of our own service's operations answers with."""
        return json_object(self.transport.fetch(call))[0]

    def read(self, call: Call, want: Want = Want.TABLE, types: Mapping[str, str] | None = None) -> Reading:
        """Return what the answer says; where it only says where the rows are, what is there."""
        # Tables become Arrow while they arrive: the decoder bounds what is held whole.
        call = replace(call, cap=NO_CAP)
        for _ in range(MAX_HOPS):
            for attempt in self.transport.exchange(call):
                with attempt as exchange:
                    reading = self.decoder.read(exchange.open(), want, types or {})
            if reading.url is None or reading.rows is not None or reading.id is not None:
                return reading
            target = self.transport.origin.follow(reading.url, self.transport.origin.url + "/")
            call, want = replace(call, method="GET", target=target, body=None), Want.TABLE
        raise ProtocolError("The service sends us from one address to the next, and never to rows.")

    def pages(self, reading: Reading, call: Call, types: Mapping[str, str]) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows page by page, the first one being read already; the next is asked for when it is wanted."""
        came = reading.rows or 0
        yield reading.records or []
        url = call.target if "://" in call.target else self.transport.origin.url + call.target
        seen: set[str] = set()
        while reading.next is not None:
            if not isinstance(reading.next, str) and call.method != "GET":
                # A POST has no query that a cursor could go into.
                raise ProtocolError(f"Only the first {came:,} rows came, without an address for the others.")
            following = reading.next if isinstance(reading.next, str) else _with_query(url, reading.next)
            url = self.transport.origin.follow(following, url)
            if url in seen or len(seen) >= MAX_PAGES:
                raise ProtocolError(f"The pages of the answer lead in a circle after {came:,} rows.")
            seen.add(url)
            call = replace(call, method="GET", target=url, body=None)
            reading = self.read(call, types=types)
            if not reading.rows:
                break
            came += reading.rows
            yield reading.records or []

    def stop(self, segment_id: str) -> str:
        """Tell our own service to stop a segment whose wait was interrupted; return the words that say so."""
        if self.ours:
            try:
                # Two seconds: who pressed Ctrl-C does not wait for much more.
                self.transport.fetch(Call("DELETE", op.SEGMENT.format(id=segment_id), Deadline(2.0)))
            except NbextError:
                pass
            else:
                return f" Segment {segment_id} was stopped."
        return f" Segment {segment_id} may still be running at the service."


def _with_query(url: str, changes: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **changes}
    return urlunsplit(parts._replace(query=urlencode(query)))


def _stranger(settings: Settings | Mapping[str, Any], key: Secret) -> Decoder:
    # The one import of client/remote: 700 lines that our own service does without.
    from nbext.client.remote.reading import Stranger

    return Stranger(settings["remote"], key, settings["max_body_mb"] * 1_000_000)


def check_remote(remote: Mapping[str, Any]) -> None:
    """Refuse settings under ``remote`` that a client would refuse, with a ConfigError."""
    _stranger({"remote": remote, "max_body_mb": 0}, Secret(""))


def public(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Strip the API key from every error that leaves the method, and let Ctrl-C end the method at once.

    NBEXT_TRACEBACK=1 keeps the frames. The method's object has its `Service` as ``_service``.
    """

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> R:
        # Importing polars (2.1) makes waits for locks go on after an interrupt: this restores Python's own way.
        if hasattr(signal, "siginterrupt") and threading.current_thread() is threading.main_thread():
            signal.siginterrupt(signal.SIGINT, True)
        failure: NbextError
        scope = Scope()
        outer = SCOPE.set(scope)
        try:
            return method(self, *args, **options)
        except NbextError as error:
            failure = error
        except KeyboardInterrupt:
            failure = QueryCancelled("Interrupted.")
        finally:
            SCOPE.reset(outer)
            # On whichever thread they are: a pool of look-ups would go on without anybody who waits for it.
            scope.end()
        if isinstance(failure, QueryCancelled) and scope.segment_id:
            failure = QueryCancelled(f"Interrupted.{self._service.stop(scope.segment_id)}")
        # Raised outside of the except block: what was handled there would hang on it, frames and all.
        raise _cleaned(failure, self._service.transport.key)

    return call


def _cleaned(error: NbextError, key: Secret) -> NbextError:
    error.args = tuple(redacted(list(error.args), key))
    for name, value in vars(error).items():
        clean = tuple(redacted(list(value), key)) if isinstance(value, tuple) else redacted(value, key)
        setattr(error, name, clean)
    error.__cause__ = error.__context__ = None
    return error if os.environ.get("NBEXT_TRACEBACK") else error.with_traceback(None)
