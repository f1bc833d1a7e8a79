"""The one place where what went wrong becomes one of our errors: a library's exception, or an answer that is an error.

requests' and urllib3's exceptions carry the request, and http.client's frames the bytes that were sent, with the key in
them: none of them leaves the client. A service's own words go into our message shortened, and never with the key.
"""

from __future__ import annotations

import base64
import html
import http.client
import json
import logging
import re
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from operator import eq
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import requests
import urllib3.exceptions as u

from nbext.core.strict_json import NotJson, read_answer, with_texts
from nbext.core.untrusted_text import visible
from nbext.errors import (
    AmbiguousSymbol,
    ApiError,
    AuthError,
    BadRequest,
    ConfigError,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    FieldError,
    InvalidSegment,
    NbextError,
    NotFound,
    ProtocolError,
    QueryTimeout,
    RateLimited,
    ResourceLimit,
    SegmentExpired,
    ServerError,
    TLSError,
    TransportError,
    TruncatedResponse,
    ValidationError,
)
from nbext.http.body import Answer
from nbext.settings import Secret

_STARS = "***"
# So many characters of a key, from its beginning or its end, are too much to show.
_PART = 6
# Words of URLs that are no keys; and the longest that is masked only where it is a whole word.
_ORDINARY = re.compile(r"api|archive|eth|ethereum|http|key|main|mainnet|node|rpc|token|v\d", re.I)
_SHORT = 7


def redacted(value: Any, key: Secret | None) -> Any:
    """Return a JSON value, or a tuple of such, with the key, wherever a text holds it, as stars.

    In any case, as base64 and in a URL's escapes; and its beginning and its end, since a text may have been cut.
    """
    if not key:
        return value
    secret = key.reveal()
    forms = _forms(secret)
    # Backwards the key's end is a beginning, too.
    return with_texts(
        value,
        lambda text: _without_start(
            _without_start(_masked(text, forms), secret)[::-1], secret[::-1]
        )[::-1],
    )


def _masked(text: str, words: Iterable[str], *, before: str = "") -> str:
    # The longest first: a word may be a part of another.
    patterns = map(re.escape, sorted(words, key=len, reverse=True))
    return re.sub(f"(?i)(?:{'|'.join(patterns)})(?={before})", _STARS, text)


def _forms(secret: str) -> set[str]:
    """Return a secret as texts have it: as it is, in a URL, in JSON, as base64 and as hex."""
    quoted, escaped = quote(secret, safe=""), json.dumps(secret)[1:-1]
    return {secret, quoted, unquote(secret), escaped, secret.encode().hex(), *_packed(secret)}


def _packed(secret: str) -> Iterator[str]:
    """Yield what is in base64 wherever the secret stands in the text that was encoded: there are three ways."""
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + secret.encode()).decode().rstrip("=")
        # Its first and last characters are made from what is around the secret, too.
        inner = whole[(before * 8 + 5) // 6 : len(whole) - ((before + len(secret)) % 3 > 0)]
        if len(inner) >= _PART:
            yield from {inner, inner.translate(str.maketrans("+/", "-_"))}


def _without_start(text: str, secret: str) -> str:
    pieces = list[str]()
    while secret[:_PART] in text:
        before, _, text = text.partition(secret[:_PART])
        # As much of it as follows.
        text = text[sum(takewhile(bool, map(eq, text, secret[_PART:]))) :]
        pieces += [before, _STARS]
    return "".join([*pieces, text])


class Redaction:
    """Takes everything of some URLs that could be a key out of a text; and from now on out of urllib3's log.

    At the level DEBUG that log has the path of each request.
    """

    def __init__(self, urls: Iterable[Secret]) -> None:
        words = set[str]()
        for url in urls:
            split = urlsplit(url.reveal())
            given = {split.username or "", split.password or "", split.path, split.query}
            words |= {url.reveal(), split.netloc, *given}
            words |= set(re.split(r"[/&=?]", f"{split.path}?{split.query}"))
            # Hosts too: some providers put the key there. A word such as mainnet is none.
            words |= {label for label in (split.hostname or "").split(".") if not label.isalpha()}
        words = {word for word in words if len(word) > 2 and not _ORDINARY.fullmatch(word)}
        long = {form for word in words if len(word) > _SHORT for form in _forms(word)}
        # What is short may be a part of any word, and of any number.
        self._short = [Secret(word) for word in words if len(word) <= _SHORT and not word.isdigit()]
        self._long = [Secret(form) for form in long]
        _UNLOGGED.redactions.append(self)

    def finds(self, raw: bytes) -> bool:
        """Say whether an answer repeats any of them, or may: a text with an escape can be written in many ways."""
        words = [word.reveal().encode() for word in (*self._long, *self._short)]
        # Most have a character that is nowhere in it, which is found in a tenth of the time that a word takes.
        return b"\\" in raw or any(
            all(each in raw for each in set(word)) and word in raw
            for word in words
            if re.search(rb"[^0-9a-f]", word) or len(word) > _SHORT
        )

    def __call__(self, text: str) -> str:
        """Return the text without them; also where it was cut within one, at its end or before the dots that say so."""
        if forms := [form.reveal() for form in self._long]:
            begun = [form[:end] for form in forms for end in range(_PART, len(form))]
            text = _masked(_masked(text, forms), begun, before="…|$")
        for word in self._short:
            whole = rf"(?i)(?<![^\W_]){re.escape(word.reveal())}(?![^\W_])"
            text = re.sub(whole, _STARS, text)
        return text


class _Unlogged(logging.Filter):
    """Takes the keys of all URLs that were ever asked out of a log: threads may end after their fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.redactions: list[Redaction] = []
        for name in ("urllib3.connectionpool", "urllib3.util.retry"):
            logging.getLogger(name).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        for redaction in self.redactions:
            text = redaction(text)
        record.msg, record.args = text, ()
        return True


_UNLOGGED = _Unlogged()


# What requests, urllib3, http.client, ssl and the sockets may raise: requests' errors are OSErrors, too.
FOREIGN = (u.HTTPError, http.client.HTTPException, OSError, ValueError)

# The first that fits: what failed, and what we make of it. {0} is the service's address, {1} what it is, or the proxy's
# where that failed, {2} the proxy's. What requests raises has urllib3's error as a cause, or is a ValueError.
_OF_LIBRARY: Sequence[tuple[Any, type[TransportError | ConfigError], str]] = (
    (
        (requests.exceptions.InvalidProxyURL,),
        ConfigError,
        "The proxy {2} has no host. Write one such as http://proxy.example.com:8080.",
    ),
    (
        (requests.exceptions.InvalidSchema,),
        ConfigError,
        'The proxy {2} needs a package that is not installed: pip install "nbext[socks]"',
    ),
    (
        (socket.gaierror, u.NameResolutionError),
        ConnectionFailed,
        "{0}: there is no host of that name, or no network.",
    ),
    (
        # urllib3's are of this class, too.
        (http.client.IncompleteRead,),
        TruncatedResponse,
        "{0} ended its answer before it was complete.",
    ),
    (
        (ConnectionRefusedError,),
        ConnectionFailed,
        "{0} refused the connection. Is {1} running there?",
    ),
    ((u.ConnectTimeoutError,), ConnectionFailed, "{0} could not be reached in time."),
    (
        (u.ReadTimeoutError, TimeoutError),
        DeadlineExceeded,
        "{0} sent nothing for longer than the setting read_timeout allows.",
    ),
    (
        (ConnectionResetError, BrokenPipeError),
        ConnectionFailed,
        "{0} closed the connection before it had answered.",
    ),
    (
        (http.client.HTTPException, u.InvalidHeader, ValueError),
        ProtocolError,
        "{0} answered with something that is not HTTP.",
    ),
)
_OF_STATUS: dict[int, type[ApiError]] = {
    401: AuthError,
    402: AuthError,
    403: AuthError,
    404: NotFound,
    410: NotFound,
    409: Conflict,
    429: RateLimited,
}


def of_library(
    error: BaseException, where: str, proxy: str | None = None
) -> TransportError | ConfigError:
    """Return our error for a library's exception; ``where`` is the service's address, ``proxy`` that of the proxy."""
    causes = list(_causes(error))
    for cause in causes:
        # Ours, raised while a library read for us: it says more than what the library made of it.
        if isinstance(cause, TransportError | ConfigError):
            return cause
    what, otherwise = "the service", f"The connection to {where} failed."
    # PySocks has no error of its own for a proxy that failed.
    of_proxy = u.NewConnectionError if proxy and proxy.startswith("socks") else u.ProxyError
    if proxy and any(isinstance(cause, u.ProxyError | of_proxy) for cause in causes):
        for cause in causes:
            if refused := re.search(r"Tunnel connection failed: (\d{3})", str(cause)):
                return of_proxy_status(int(refused[1]), where, proxy)
        otherwise = f"There is no connection to {where} through the proxy {proxy}."
        where, what = f"The proxy {proxy}", "it"
    elif any(isinstance(cause, ssl.SSLError | u.SSLError) for cause in causes):
        return TLSError(f"No safe connection to {where}: {_tls_reason(causes, proxy)}.")
    for kinds, ours, message in _OF_LIBRARY:
        if any(isinstance(cause, kinds) for cause in causes):
            return ours(message.format(where, what, proxy))
    return ConnectionFailed(otherwise)


def of_proxy_status(status: int, where: str, proxy: str) -> ConnectionFailed:
    """Return our error for a status with which a proxy refused to connect us to the service."""
    if status == 407:
        scheme, _, host = proxy.partition("://")
        return ConnectionFailed(
            f"The proxy {proxy} wants a user name and a password. "
            f"Write them into the variable that names it: {scheme}://USER:PASSWORD@{host}"
        )
    return ConnectionFailed(
        f"The proxy {proxy} refused to connect to {where} ({status}). "
        "Ask who runs it to allow that host, or name it in NO_PROXY to go there directly."
    )


def _tls_reason(causes: list[BaseException], proxy: str | None) -> str:
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            through = (
                f" It came through the proxy {proxy}, which may have put its own in place."
                if proxy
                else ""
            )
            return (
                f"its certificate is not trusted ({cause.verify_message}).{through} "
                "To trust it, set ca_bundle to a file with its certificate"
            )
        if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
            return "it does not speak TLS on that port"
    return "the TLS handshake failed"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return the error, what it wraps and what it came from; libraries use all of these."""
    seen: set[int] = set()
    todo: list[object] = [error]
    while todo:
        cause = todo.pop(0)
        # Libraries link errors in circles.
        if not isinstance(cause, BaseException) or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        todo += [cause.__cause__, cause.__context__, getattr(cause, "reason", None), *cause.args]


def of_answer(answer: Answer, key: Secret | None = None, attempts: int = 1) -> NbextError:
    """Return our error for an answer of status 400 or more."""
    try:
        document, _ = read_answer(answer.body)
    except NotJson:
        document = None
    if isinstance(document, str):
        document = {"detail": document}
    # The key goes before anything is cut: a cut could leave half of it.
    problem = redacted(document if isinstance(document, dict) else {}, key)
    return of_problem(answer.status, problem, words(problem) or plain_words(answer), key, attempts)


def of_problem(
    status: int, problem: Mapping[str, Any], said: str, key: Secret | None = None, attempts: int = 1
) -> NbextError:
    """Return our error for a status, a problem object and the service's own words."""
    ours = _of_code(problem, said, key)
    if ours is not None:
        return ours
    said = one_line(said, key, 400)
    why = f": {said}" if said else " without a reason."
    message = f"The service answered {status}{why}"
    if status >= 500:
        again = f" (after {attempts} attempts)" if attempts > 1 else ""
        return ServerError(message + again, status=status, problem=problem, attempts=attempts)
    return _OF_STATUS.get(status, BadRequest)(message, status=status, problem=problem)


def _of_code(problem: Mapping[str, Any], said: str, key: Secret | None) -> NbextError | None:
    """Return the error of a problem of our own service; its codes say more than its statuses."""
    code = str(problem.get("code"))
    # Fifty say enough of what is wrong; a stranger may send a million.
    given = problem["errors"][:50] if isinstance(problem.get("errors"), list) else []
    errors = [
        FieldError(
            pointer=one_line(e.get("pointer", ""), key),
            code=one_line(e.get("code", ""), key),
            detail=one_line(e["detail"], key),
        )
        for e in given
        if isinstance(e, dict) and isinstance(e.get("detail"), str)
    ]
    plain = one_line(said, key)
    more = problem.get("moreErrors")
    more = more if isinstance(more, int) and more > 0 else 0
    if code == "ambiguous-symbol" and isinstance(problem.get("candidates"), list):
        candidates = [c for c in problem["candidates"] if isinstance(c, dict)]
        errors = errors or [FieldError(pointer="", code=code, detail=plain)]
        return AmbiguousSymbol(errors, more, candidates)
    invalid = {"invalid-segment": InvalidSegment, "invalid": ValidationError}
    if errors and code in invalid:
        return invalid[code](errors, more)
    failed = {
        "query-timeout": QueryTimeout,
        "resource-limit": ResourceLimit,
        "expired": SegmentExpired,
    }
    return failed[code](plain) if code in failed else None


def words(document: Any) -> str:
    """Return what an error object says, in whichever field it says it."""
    if isinstance(document, str):
        return document
    if isinstance(document, list):
        return "; ".join(filter(None, (words(item) for item in document[:5])))
    if not isinstance(document, dict):
        return ""
    place = ".".join(map(str, document["loc"])) if isinstance(document.get("loc"), list) else ""
    # A problem's detail says what its title says, of this case (RFC 9457).
    title = (
        "" if "type" in document and words(document.get("detail")) else words(document.get("title"))
    )
    names = "error message msg detail reason errors error_description errorMessage description"
    # Objects often say the same in several fields.
    once = list(
        dict.fromkeys(
            filter(None, [place, title, *(words(document.get(name)) for name in names.split())])
        )
    )
    return ": ".join(once[:3])


def plain_words(answer: Answer) -> str:
    """Return what an answer that is no JSON says: its text on one line, of an HTML page its title."""
    # Bounded before the patterns: an error's body may have a megabyte.
    text = answer.body[:20_000].decode("utf-8", "replace")
    if "html" in answer.content_type or re.match(r"(?i)\s*<(!doctype|html|head|body)", text):
        title = re.search(r"(?i)<title[^>]*>([^<]{1,200})", text)
        return f"an HTML page{f', {html.unescape(title[1]).strip()!r}' if title else ''}"
    return " ".join(text.split())


def one_line(text: object, key: Secret | None = None, length: int = 500) -> str:
    """Return the text for a message: on one line, cut, with nothing hidden, and without the key."""
    # The key goes first: escaping or cutting could leave a part of it.
    plain = redacted(str(text), key).replace("\n", " ").replace("\t", " ")
    safe = visible(plain, length)
    # An escape is up to ten times as long as its character, and a message is not to grow with a stranger's text.
    return safe if len(safe) <= length + 30 else safe[:length] + "…"
