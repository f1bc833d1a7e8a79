"""What went wrong below, as one of our errors: no error of a library leaves the client, nor hangs on ours.

requests' and urllib3's errors carry the request, and http.client's frames the bytes that were sent.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import requests
import urllib3.exceptions as u

from nbext.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    ProtocolError,
    TLSError,
    TransportError,
    TruncatedResponse,
)

# What may come out of requests, urllib3, http.client, ssl and the sockets.
FOREIGN: Final = (requests.RequestException, u.HTTPError, http.client.HTTPException, OSError, ValueError)


def typed(error: BaseException, where: str) -> TransportError:
    """Return our error for one from below; ``where`` is the service's origin."""
    causes = list(_causes(error))

    def is_a(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    for cause in causes:
        if isinstance(cause, TransportError):
            return cause
    if is_a(ssl.SSLError, u.SSLError, requests.exceptions.SSLError):
        return TLSError(f"no safe connection to {where}: {_tls_words(causes)}.")
    if is_a(socket.gaierror, u.NameResolutionError):
        return ConnectionFailed(f"{where}: there is no host of that name, or no network.")
    if is_a(u.IncompleteRead, http.client.IncompleteRead, u.InvalidChunkLength):
        return TruncatedResponse(f"the answer of {where} ended before it was whole.")
    return _of_connection(is_a, where)


def _of_connection(is_a: object, where: str) -> TransportError:
    assert callable(is_a)
    if is_a(ConnectionRefusedError):
        return ConnectionFailed(f"{where}: the connection was refused. Is the service running there?")
    if is_a(u.ConnectTimeoutError, requests.ConnectTimeout):
        return ConnectionFailed(f"{where} could not be reached in time.")
    if is_a(u.ReadTimeoutError, requests.ReadTimeout, TimeoutError):
        return DeadlineExceeded(f"{where} sent nothing for too long.")
    if is_a(ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected):
        return ConnectionFailed(f"{where} closed the connection before it had answered.")
    if is_a(http.client.HTTPException, requests.exceptions.InvalidHeader, u.InvalidHeader, ValueError):
        return ProtocolError(f"the answer of {where} is not HTTP that can be read.")
    return ConnectionFailed(f"the connection to {where} failed.")


def _tls_words(causes: list[BaseException]) -> str:
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({cause.verify_message}). The setting ca_bundle names what to trust"
        if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
            return "it does not speak TLS on that port"
    return "the TLS handshake failed"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return the error, what it wraps and what it came from; libraries use all of these."""
    seen: set[int] = set()
    todo: list[object] = [error]
    while todo:
        cause = todo.pop(0)
        if not isinstance(cause, BaseException) or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        todo += [cause.__cause__, cause.__context__, getattr(cause, "reason", None), *cause.args]
