"""What every request passes before a route: Host, Origin, key and rate.

Pure ASGI: it runs for every path, known or not, before a byte of the body is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from nbext.core.operations import DOCS, HEALTH, KEY_HEADER
from nbext.service.accounts.keys import Key, KeyRing, Rates
from nbext.service.http.problems import Problem

# Neither reveals anything of the data or of who asks; a browser and a load balancer carry no key.
OPEN_PATHS = (HEALTH, DOCS)
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


class Security:
    """Passes on what names this host, is sent by no foreign page and carries a key; raises the problem of all else."""

    def __init__(self, app: ASGIApp, *, keys: KeyRing, rates: Rates, hosts: Iterable[str]) -> None:
        self._app, self._keys, self._rates = app, keys, rates
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request and pass it on."""
        if scope["type"] == "http":
            scope["nbext.key"] = self._admit(scope["path"], Headers(scope=scope))
        await self._app(scope, receive, send)

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
