"""What every request passes before a route: Host, Origin, key and rate.

Pure ASGI: it runs for every path, known or not, before a byte of the body is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nbext.core.operations import DOCS, HEALTH, KEY_HEADER
from nbext.service.accounts.keys import Key, KeyRing, Rates
from nbext.service.http.problems import Problem, answer_problem

# Neither reveals anything of the data or of who asks; a browser and a load balancer carry no key.
OPEN_PATHS = (HEALTH, DOCS)
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
_FIXED = {
    # A browser that guesses types would run a search term out of a JSON body as HTML.
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


class Security:
    """Passes on what names this host, is sent by no foreign page and carries a key; adds headers to the answers."""

    def __init__(self, app: ASGIApp, *, keys: KeyRing, rates: Rates, hosts: Iterable[str]) -> None:
        self._app, self._keys, self._rates = app, keys, rates
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request and pass it on, or answer it with the problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_FIXED)
                # Answers hold what only this key may see: no shared cache stores them unless a route says so.
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            scope["nbext.key"] = self._admit(scope["path"], Headers(scope=scope))
        except Problem as problem:
            # Here and not by the application's handlers, which are inside of this layer.
            await answer_problem(Request(scope), problem)(scope, receive, stamped)
        else:
            await self._app(scope, receive, stamped)

    def _admit(self, path: str, headers: Headers) -> Key | None:
        """Return the key of a request that may pass, None where the path needs none; else raise the problem."""
        host = headers.get("host", "")
        # A page that rebinds its name to this address still sends its own name as Host.
        if _name_of(host) not in self._hosts:
            raise Problem("foreign-host", "The Host header does not name this service.")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        same = origin is None or urlsplit(origin).netloc.lower() == host.lower()
        # A script of this page sends same-origin; a person who types the address sends none.
        if not same or site not in ("none", "same-origin"):
            raise Problem("foreign-origin", "A page of another origin may not send requests to this service.")
        if path in OPEN_PATHS:
            return None
        text = headers.get(KEY_HEADER)
        if not text:
            raise Problem("key-missing", f"Send your key in the {KEY_HEADER} header.")
        key = self._keys.find(text)
        if key is None:
            raise Problem("key-unknown", f"The service does not know the key in the {KEY_HEADER} header.")
        self._rates.take(key)
        return key


def _name_of(host: str) -> str:
    """Return the name in a Host header, without its port; empty where it cannot be read."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:  # a bracket without its other
        return ""
