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
from contextvars import Context
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from nbext.client import frames
from nbext.client.decode import HINT, Reading, State, Want, check_count, json_object, of_ours
from nbext.core import wire as op
from nbext.core.provenance import warned
from nbext.errors import (
    ApiError,
    NbextError,
    ProtocolError,
    QueryCancelled,
    RateLimited,
    ServerError,
)
from nbext.http.body import Answer, Incoming
from nbext.http.deadline import SCOPE, Deadline, Scope
from nbext.http.errors import redacted
from nbext.http.transport import Call, Transport
from nbext.settings import Secret, Settings

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client.remote.profile import LastAnswer as LastAnswer  # noqa: PLC0414  # others name it too
    from nbext.client.remote.reading import Stranger

# A service that sends us further than this sends us in a circle.
MAX_HOPS = 3
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
        self,
        base_url: str,
        api_key: str | Secret,
        settings: Settings,
        restart: Callable[[], Any] | None,
    ) -> None:
        self.settings = settings
        self.transport = Transport(base_url, api_key, settings, restart)
        self.ours: bool | None = True if restart else None
        # The outline of a stranger's last answer, for `%nbext last-answer`.
        self.last_answer: LastAnswer | None = None
        # Bytes of an answer that are held at a time, at most.
        self.cap = settings["max_body_mb"] * 1_000_000
        if settings["remote"]:
            # Settings that make no sense are refused now, and not by the first answer.
            _ = self._strangers_decoder

    @property
    def stranger(self) -> Stranger | None:
        """The decoder of a service that is not known to be ours; None of ours, whose columns have no other types."""
        return None if self.ours else self._strangers_decoder

    @cached_property
    def _strangers_decoder(self) -> Stranger:
        return _stranger(self.settings["remote"], self.transport.origin.host, self.transport.key)

    def is_ours(self) -> bool:
        """Say whether the service is nbext's own; one that is not known yet is asked (GET /about).

        One that cannot be asked now, or does not know the key, is not thereby a stranger: its error is raised, and
        nothing is remembered. A stranger's gateway answers 403 where it has no such path.
        """
        if self.ours is None:
            try:
                self.about()
            except (ApiError, ProtocolError) as error:
                if (
                    isinstance(error, RateLimited | ServerError)
                    or getattr(error, "status", 0) == 401
                ):
                    raise
                self.ours = False
        return bool(self.ours)

    def about(self) -> dict[str, Any]:
        """Return the answer of GET /about, which says whose service it is."""
        found = self.document(self.call("GET", op.ABOUT))
        self.ours = found.get("service") == "nbext"
        return found

    def call(
        self,
        method: str,
        target: str,
        body: Any = None,
        deadline: str = "deadline",
        operation: str = "segment",
        **asked: str,
    ) -> Call:
        """Return a request; ``deadline`` names the setting with its seconds, ``asked`` is what it asks for."""
        data, until = None if body is None else json.dumps(body).encode(), self.settings[deadline]
        return Call(method, target, Deadline(until), data, operation=operation, asked=asked)

    def follow(self, link: str) -> str:
        """Return where a link of an answer leads, which is the service's own address; another is refused."""
        origin = self.transport.origin
        return origin.follow(link, origin.url + "/")

    def document(self, call: Call) -> dict[str, Any]:
        """Return the JSON object that one of our own service's operations answers with."""
        return json_object(self.transport.fetch(call))[0]

    def read(self, call: Call, want: Want = Want.TABLE) -> Reading:
        """Return what the answer says; where it only says where the rows are, what is there."""
        for hop in range(MAX_HOPS):
            for attempt in self.transport.exchange(call):
                with attempt as exchange:
                    try:
                        came = exchange.open()
                    except ApiError as error:
                        if not self.ours:
                            refused = Answer(error.status, {}, b"", call.target)
                            said = Reading(dict(error.problem))
                            self._remember(refused, call, said, str(error))
                        raise
                    reading = self.decoded(came, want, call)
            waits = reading.id is not None or reading.state is State.RUNNING
            if reading.url is None or reading.rows is not None or waits:
                reading.source = call.target if hop else None
                return reading
            target = self.follow(reading.url)
            call, want = replace(call, method="GET", target=target, body=None), Want.TABLE
        raise ProtocolError("The service sends us from one address to the next, and never to rows.")

    def decoded(self, came: Incoming, want: Want, call: Call) -> Reading:
        """Return what an answer says; of a stranger's the outline is remembered.

        A stranger's table waits on the disk, in the call's ``folder``, where it is on its way to a file: it may be
        larger than memory.
        """
        if self.ours:
            return of_ours(came, want, call.operation)
        try:
            reading = self._strangers_decoder.read(came, want, call)
        except NbextError as error:
            answer = came.answer or Answer(came.status, came.headers, came.head, came.url)
            self._remember(answer, call, Reading(), str(error))
            # An ambiguous answer has its own line.
            if type(error) is ProtocolError:
                of_job = want is Want.SEGMENT
                others = ("rows", *("url", "poll") * of_job)
                # One that has a line of settings has found rows: they may be of another id, but not of another chain.
                roles = () if "%nbext set" in str(error) else others
                self.advise(error, *["id"] * (of_job and "for chain" not in str(error)), *roles)
            raise
        # No stranger has all fields of our answer by chance.
        if self.ours is None and op.SegmentAnswer.__required_keys__ <= reading.said.keys():
            self.ours = True
        answer = came.answer or Answer(came.status, came.headers, b"", came.url)
        self._remember(answer, call, reading)
        return reading

    def advise(self, error: ProtocolError, *roles: str) -> ProtocolError:
        """Return an error about a stranger's last answer with the settings that would read it."""
        if self.last_answer is not None and not self.ours:
            error.args = (f"{str(error).rstrip('.')}. {self.last_answer.advice(roles)}".strip(),)
        return error

    def _remember(self, answer: Answer, call: Call, reading: Reading, failure: str = "") -> None:
        outline = self._strangers_decoder.outline
        self.last_answer = outline(answer, call.operation, reading, failure)
        if scope := SCOPE.get():
            scope.remembered = True

    def pages(
        self, reading: Reading, call: Call, *, limit: int | None, counts: Mapping[str, int]
    ) -> Iterator[Reading]:
        """Yield an answer page by page, the first one being read already; the next is asked for when it is wanted.

        An error where the rows are not as many as ``counts``, or the answer, state; the ``limit`` excuses fewer.
        All bytes of a stranger's pages are bounded, but for those on their way to a file.
        """
        if stranger := self.stranger:
            if reading.source is not None:
                # A link is relative to the address that it came from.
                call = replace(call, method="GET", target=reading.source, body=None)
            cap, origin = None if call.folder else self.cap, self.transport.origin
            walk = stranger.walk(self.read, origin, reading, limit=limit, counts=counts, cap=cap)
            yield from walk.pages(call)
            return
        # Our own service's rows come in one piece, as Arrow.
        yield reading
        check_count(reading.rows or 0, {**reading.stated, **counts}, limit)

    def table(
        self, reading: Reading, call: Call, *, limit: int | None, counts: Mapping[str, int]
    ) -> pd.DataFrame:
        """Return what was read, and the pages that follow it, as a DataFrame, once its rows are counted."""
        records, tables = list[dict[str, Any]](), list[Any]()
        for page in self.pages(reading, call, limit=limit, counts=counts):
            records += page.records or []
            tables += [] if page.table is None else [page.table]
        configured = reading.types | reading.configured
        stated = configured | call.types
        if tables:
            found = frames.arrow_frame(pa.concat_tables(frames.alike(tables)), stated)
        else:
            # A table of a million rows and their records at once would take twice the memory.
            reading.records = None
            reading.document = None if reading.id is None else reading.document
            found = frames.frame(records, call.types, configured)
            stated = frames.whole_texts(records, found) | stated
        reading.warnings += frames.wide_columns(stated, found.dtypes)
        return found

    def stop(self, segment_id: str) -> str:
        """Tell our own service to stop a segment whose wait was interrupted; return the words that say so."""
        if self.ours:
            try:
                # Two seconds: who pressed Ctrl-C does not wait for much more.
                call = Call("DELETE", op.SEGMENT.format(id=segment_id), Deadline(2.0))
                # In a context of its own: the scope of the call may have ended.
                Context().run(self.transport.fetch, call)
            except NbextError:
                pass
            else:
                return f" Segment {segment_id} was stopped."
        return f" Segment {segment_id} may still be running at the service."


def _stranger(remote: Mapping[str, Any], host: str, key: Secret) -> Stranger:
    # The one import of client/remote: 3,000 lines that our own service does without.
    from nbext.client.remote.reading import Stranger

    return Stranger(remote, host, key)


def check_remote(remote: Mapping[str, Any]) -> None:
    """Refuse settings under ``remote`` that a client would refuse, with a ConfigError."""
    _stranger(remote, "", Secret(""))


def public(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Strip the API key from every error that leaves the method, and let Ctrl-C end the method at once.

    NBEXT_TRACEBACK=1 keeps the frames. The method's object has its `Service` as ``_service``.
    """

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> R:
        # Importing polars (2.1) makes waits for locks go on after an interrupt: this restores Python's own way.
        if (
            hasattr(signal, "siginterrupt")
            and threading.current_thread() is threading.main_thread()
        ):
            signal.siginterrupt(signal.SIGINT, True)
        failure: NbextError
        # One that is around several calls is ended by who made it: from another thread, to stop them all.
        around = SCOPE.get()
        scope = around or Scope()
        before = SCOPE.set(scope)
        try:
            return method(self, *args, **options)
        except NbextError as error:
            failure = error
        except KeyboardInterrupt:
            failure = QueryCancelled("Interrupted.")
        finally:
            SCOPE.reset(before)
            # On whichever thread they are: a pool of look-ups would go on without anybody who waits for it.
            if around is None:
                scope.end()
        if isinstance(failure, ProtocolError) and scope.remembered:
            failure.args = (f"{str(failure).rstrip('.')}. {HINT}",)
        if isinstance(failure, QueryCancelled) and scope.segment_id:
            failure = QueryCancelled(f"Interrupted.{self._service.stop(scope.segment_id)}")
        # Raised outside of the except block: what was handled there would hang on it, frames and all.
        raise _cleaned(failure, self._service.transport.key)

    return warned(call)


def _cleaned(error: NbextError, key: Secret) -> NbextError:
    # In a frame of its own, which ends: tools print the locals of the one that raises.
    error.args = redacted(error.args, key)
    for name, value in vars(error).items():
        setattr(error, name, redacted(value, key))
    error.__cause__ = error.__context__ = None
    return error if os.environ.get("NBEXT_TRACEBACK") else error.with_traceback(None)
