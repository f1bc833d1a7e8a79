"""The edge of the client's public methods, where every error leaves, and where Ctrl-C ends every wait.

Inside of the client, exceptions travel as they are. Here they lose the API key, which a service may echo in any text,
and the frames, whose locals tools print. Nothing else in the client handles an interrupt.
"""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from nbext.client.http.deadline import Scope
from nbext.client.http.errors import redacted
from nbext.errors import NbextError, QueryCancelled
from nbext.settings import Secret

P = ParamSpec("P")
R = TypeVar("R")


def public(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Strip the API key from every error that leaves the method, and let Ctrl-C end the method at once.

    NBEXT_TRACEBACK=1 keeps the frames. The method's object has its `Service` as ``_service``.
    """

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> R:
        # polars (2.1, as it is imported) has waits for locks go on after an interrupt; Python's own way is set again.
        if hasattr(signal, "siginterrupt") and threading.current_thread() is threading.main_thread():
            signal.siginterrupt(signal.SIGINT, True)
        failure: NbextError
        with Scope() as scope:
            try:
                return method(self, *args, **options)
            except NbextError as error:
                failure = error
            except KeyboardInterrupt:
                failure = QueryCancelled("Interrupted.")
        # The scope has ended every exchange of the call, on whichever thread.
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
