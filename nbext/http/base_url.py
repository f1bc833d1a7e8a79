"""Which address may be asked and who gets the key, before any request; and which redirects are followed."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import SplitResult, urljoin, urlsplit

from nbext.core.untrusted_text import quoted, visible
from nbext.errors import ConfigError, ProtocolError
from nbext.settings import Secret

MAX_KEY = 4096
_DEFAULT_PORTS = {"http": 80, "https": 443}


def usable_key(given: str | Secret | None) -> Secret:
    """Return the key without outer whitespace; a ConfigError, which never shows it, where no header can carry it."""
    text = (given.reveal() if isinstance(given, Secret) else str(given or "")).strip()
    if not text:
        raise ConfigError("No API key. Set NBEXT_API_KEY, or run `%nbext login`.")
    if len(text) > MAX_KEY:
        raise ConfigError(f"The API key has {len(text):,} characters. Allowed: {MAX_KEY:,}.")
    # A line break in a header's value would begin a header of its own.
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise ConfigError("The API key has a space, a line break or a character outside ASCII.")
    return Secret(text)


@dataclass(frozen=True)
class Origin:
    """A service's address: scheme, host, port, and the path before /v1."""

    scheme: str
    host: str
    port: int
    prefix: str

    @classmethod
    def of(cls, base_url: str, *, insecure: bool = False) -> Origin:
        """Read a base_url; a ConfigError where it is not one, or would carry the key unencrypted over a network."""
        parts = _split(base_url)
        # The operations' paths begin with /v1 themselves: documentation often names the address with it.
        prefix = parts.path.rstrip("/").removesuffix("/v1")
        try:
            port = parts.port
        except ValueError:
            port = 0
        if port == 0:
            raise ConfigError("base_url: A port is a whole number from 1 to 65535.")
        port = port or _DEFAULT_PORTS[parts.scheme]
        origin = cls(parts.scheme, (parts.hostname or "").lower(), port, prefix)
        if origin.scheme == "http" and not origin.is_loopback and not insecure:
            raise ConfigError(
                f"base_url: http:// would send the key to {origin.host} unencrypted. Use https://, "
                "or `%nbext set insecure true` (NBEXT_INSECURE=1) if the network is yours."
            )
        return origin

    @cached_property
    def is_loopback(self) -> bool:
        """Whether it is this machine."""
        return is_loopback(self.host)

    @cached_property
    def url(self) -> str:
        """The base_url, in one spelling."""
        return f"{self.root}{self.prefix}"

    @cached_property
    def root(self) -> str:
        """Scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    def address(self, target: str) -> str:
        """Return where a request goes to: a path below base_url, or an absolute URL that the service named."""
        return target if "://" in target else self.url + target

    def owns(self, url: str) -> bool:
        """Say whether the URL is of this scheme, host and port, so that the key may go there."""
        parts = urlsplit(url)
        return (parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)) == (
            self.scheme,
            self.host,
            self.port,
        )

    def follow(self, location: str, base: str) -> str:
        """Return the address that an answer of this service redirects to; a ProtocolError where we do not go there."""
        try:
            target = urljoin(base, location.strip())
            parts = urlsplit(target)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if (
            parts.scheme not in _DEFAULT_PORTS
            or not parts.hostname
            or parts.username
            or parts.password
            or port == 0
        ):
            raise ProtocolError(
                f"{self.root} redirects to something that is not an http(s) address."
            )
        # A service outside must not use us to reach what only this machine can: 169.254.169.254 hands out credentials.
        is_local = self.is_loopback and is_loopback(parts.hostname)
        is_public = parts.scheme == "https" and not _is_inside(parts.hostname)
        if not (self.owns(target) or is_local or is_public):
            host = visible(parts.hostname, 80)
            raise ProtocolError(
                f"{self.root} redirects to {parts.scheme}://{host}, where nbext does not follow: "
                "it follows only to https:// addresses outside of private networks."
            )
        return target


def _split(base_url: str) -> SplitResult:
    if not isinstance(base_url, str) or not re.fullmatch(r"[^\s\x00-\x20\x7f\\]+", base_url):
        raise ConfigError(
            "base_url: Expected a text without spaces, such as https://api.example.com."
        )
    try:
        parts = urlsplit(base_url)
        host = parts.hostname
    except ValueError:
        host = None
    if host is None or parts.scheme not in _DEFAULT_PORTS:
        # It may hold a password: it is shown only where it has no user name.
        named = "" if "@" in base_url else f" {base_url[:80]!r}"
        raise ConfigError(
            f"base_url{named} is not an address. Write one such as https://api.example.com or http://127.0.0.1:8000."
        )
    if "@" in parts.netloc or "?" in base_url or "#" in base_url:
        raise ConfigError("base_url: Leave out user name, password, key, ?query and #fragment.")
    _check_host(host)
    return parts


def _check_host(host: str) -> None:
    if not host.isascii():
        try:
            spelled = host.encode("idna").decode()
        except UnicodeError:
            spelled = "its xn-- form"
        raise ConfigError(
            f"base_url: The host has letters outside ASCII, which may look alike. Write {spelled}."
        )
    if (
        not re.fullmatch(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?|[0-9a-f:.]+(%[a-z0-9]+)?", host)
        or ".." in host
    ):
        raise ConfigError(f"base_url: {quoted(host)} is not a host name or address.")


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine, by its name or its address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_inside(host: str) -> bool:
    """Say whether the host is this machine, or an address of a private network."""
    if is_loopback(host) or host.endswith((".local", ".internal")):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False
