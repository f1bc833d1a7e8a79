"""The edge of a client's public methods.

An error leaves with no trace of the key, and with no frames that hold answers; Ctrl-C ends a wait.
"""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from nbext.client.http.redact import redacted
from nbext.errors import NbextError
from nbext.settings import Secret


class HasKey(Protocol):
    """Something with a key."""

    @property
    def key(self) -> Secret:
        """The key."""


S = TypeVar("S", bound=HasKey)
P = ParamSpec("P")
R = TypeVar("R")


def public(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Let a method's errors out without the key.

    A service may echo the key in any text; tools that print the locals of frames would print its answer.
    NBEXT_TRACEBACK=1 keeps the frames. Ctrl-C ends the method at once.
    """

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **options: P.kwargs) -> R:
        _heed_interrupts()
        try:
            return method(self, *args, **options)
        except NbextError as error:
            failure = _cleaned(error, self.key)
        raise failure

    return call


def _heed_interrupts() -> None:
    """Let Ctrl-C end what waits.

    Python has it so from the start; other libraries (polars 2.1 as it is imported) have waits go on after it.
    """
    if hasattr(signal, "siginterrupt") and threading.current_thread() is threading.main_thread():
        signal.siginterrupt(signal.SIGINT, True)


def _cleaned(error: NbextError, key: Secret) -> NbextError:
    error.args = tuple(redacted(list(error.args), key))
    for name, value in vars(error).items():
        setattr(error, name, _same_kind(value, key))
    error.__cause__ = error.__context__ = None
    return error if os.environ.get("NBEXT_TRACEBACK") else error.with_traceback(None)


def _same_kind(value: Any, key: Secret) -> Any:
    return tuple(redacted(list(value), key)) if isinstance(value, tuple) else redacted(value, key)
