"""What stands between the network and the routes: Host, Origin, key and rate.

Pure ASGI: it runs for every path, known or not, before a byte of the body is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nbext.core.operations import DOCS, HEALTH, KEY_HEADER
from nbext.service.accounts.keys import Key, KeyRing
from nbext.service.http.problems import Problem, answer_problem
from nbext.service.middleware.rate_limit import Rates

# Neither says anything of the data or of who asks; a browser and a load balancer carry no key.
OPEN_PATHS = (HEALTH, DOCS)
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
_FIXED = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Limits": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Limits": "no-referrer",
}


class Security:
    """Lets through what names this host, comes from no foreign page and carries a key; stamps the answers."""

    def __init__(self, app: ASGIApp, *, keys: KeyRing, rates: Rates, hosts: Iterable[str]) -> None:
        self._app, self._keys, self._rates = app, keys, rates
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request and hand it on, or answer it with the problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _stamped(send)
        try:
            scope["nbext.key"] = self._admit(scope)
        except Problem as problem:
            await answer_problem(Request(scope), problem)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _admit(self, scope: Scope) -> Key | None:
        headers = Headers(scope=scope)
        self._check_host(headers)
        self._check_origin(headers)
        if scope["path"] in OPEN_PATHS:
            return None
        key = self._key(headers.get(KEY_HEADER))
        self._rates.take(key)
        return key

    def _check_host(self, headers: Headers) -> None:
        # A page that rebinds its name to this address still sends its own name as Host.
        if _host_of(headers.get("host", "")) not in self._hosts:
            raise Problem("foreign-host", "The Host header does not name this service.")

    def _check_origin(self, headers: Headers) -> None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        same = origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
        if not same or site not in ("none", "same-origin"):
            raise Problem("foreign-origin", "A page of another origin may not ask this service.")

    def _key(self, text: str | None) -> Key:
        if not text:
            raise Problem("key-missing", f"Send your key in the {KEY_HEADER} header.")
        key = self._keys.find(text)
        if key is None:
            raise Problem("key-unknown", f"The key in the {KEY_HEADER} header is not one that this service takes.")
        return key


def _host_of(header: str) -> str:
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


def _stamped(send: Send) -> Send:
    async def stamp(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _FIXED.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return stamp
