"""An answer: its body as it arrives, decoded, counted against its cap, and whole or an error."""

from __future__ import annotations

import codecs
import io
import re
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from nbext.core.untrusted_text import quoted
from nbext.errors import DeadlineExceeded, ProtocolError, ResponseTooLarge
from nbext.http.deadline import Watch

CHUNK = 1 << 18
# More layers than a server, a cache and a proxy would ever add are a bomb's.
MAX_LAYERS = 2
# The bound of a body that is not held in memory.
NO_CAP = sys.maxsize
Headers = Mapping[str, str]
# Called with the bytes that came and, where the service says it, how many there are in all.
Report = Callable[[int, int | None], None]


class _Head:
    """What both kinds of answer have: one whose body is whole, and one whose body is still to be read."""

    headers: Headers

    @property
    def content_type(self) -> str:
        """The media type, without parameters, in lower case."""
        return self.headers.get("Content-Type", "").split(";")[0].strip().lower()


@dataclass(frozen=True)
class Answer(_Head):
    """A whole answer: status, headers (names in any case), decoded body, and the URL that sent it."""

    status: int
    headers: Headers
    body: bytes = field(repr=False)
    url: str = ""


def retry_after(headers: Headers) -> float | None:
    """Return the seconds that Retry-After asks for; None where it is absent or makes no sense."""
    text = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        return float(text)
    try:
        seconds = (parsedate_to_datetime(text) - _now(headers)).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if seconds >= 0 else None


def rate_limit_reset(headers: Headers) -> float | None:
    """Return the seconds until a rate limit ends, as the header of that name says: in seconds, or as a Unix time."""
    for name in ("RateLimit-Reset", "X-RateLimit-Reset", "X-Rate-Limit-Reset"):
        text = headers.get(name, "").strip()
        if not re.fullmatch(r"[0-9]{1,13}(\.[0-9]{1,9})?", text):
            continue
        seconds = float(text)
        # No limit lasts for thirty years: what is more is a time, in seconds or in milliseconds.
        if seconds > 1e9:
            seconds = seconds / (1000 if seconds > 1e11 else 1) - _now(headers).timestamp()
        return seconds if seconds >= 0 else None
    return None


def _now(headers: Headers) -> datetime:
    """Return the service's own time, as far as it says that: this machine's may be minutes off."""
    try:
        return parsedate_to_datetime(headers["Date"]).astimezone(UTC)
    except (KeyError, TypeError, ValueError, OverflowError):
        return datetime.now(UTC)


class Incoming(_Head, io.RawIOBase):
    """An answer whose body is still to be read: it is the file to read the decoded body from.

    Unpacking is done here and not by urllib3, which takes a packed body that ends early for a whole one.

    Beyond ``cap`` decoded bytes it is refused.
    """

    def __init__(
        self,
        status: int,
        headers: Headers,
        url: str,
        raw: Any,
        *,
        watch: Watch,
        cap: int,
        report: Report | None,
    ) -> None:
        super().__init__()
        self.status, self.headers, self.url = status, headers, url
        self._raw, self._watch, self.cap, self._report = raw, watch, cap, report
        encoding, length = headers.get("Content-Encoding", ""), headers.get("Content-Length", "")
        # The length on the wire says nothing of how many bytes a packed body unpacks to.
        self._total = int(length) if length.isdigit() and not encoding else None
        self._layers = _layers(encoding)
        charset = _charset(headers.get("Content-Type", ""))
        self._text = _Recoded(charset) if charset else None
        # Whether the wire itself says where the body ends; without that, a connection that closes early looks whole,
        # also to gzip, whose body may be several members.
        chunked = "chunked" in headers.get("Transfer-Encoding", "").lower()
        self.delimited = length.isdigit() or chunked
        # The first bytes, for who reports what could not be read; and the last byte that was given out.
        self.head = self.tail = b""
        # What was read, and is not yet given out.
        self.ready = bytearray()
        # Whether the body's end was read: a reader that knew where to stop has not.
        self.ended = False
        self._came = 0
        # The whole, once that was asked for.
        self.answer: Answer | None = None

    def whole(self) -> Answer:
        """Return the answer with its body."""
        self.answer = Answer(self.status, self.headers, self.read(), self.url)
        return self.answer

    def readable(self) -> bool:
        """Return True: io's readers ask before they read."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Return ``size`` decoded bytes, fewer only at the end of a body that came whole."""
        if size is None or size < 0:
            self._fill(self.cap + 1)
            size = len(self.ready)
        if self._came and not self._layers and not self._text and not self.ready:
            piece = self._take(size)
            self.tail = piece[-1:] or self.tail
        else:
            self._fill(size)
            piece = bytes(self.ready[:size])
            del self.ready[:size]
        return piece

    def peek(self, size: int) -> bytes:
        """Return the next bytes without taking them."""
        self._fill(size)
        return bytes(self.ready[:size])

    def finish(self) -> None:
        """Read what a reader that knew where to stop left over."""
        # A connection goes back to the pool only when its answer was read to the end.
        self.ready.clear()
        if not self.ended:
            self._take(CHUNK)

    def _fill(self, size: int) -> None:
        while len(self.ready) < size and not self.ended:
            piece = self._take(min(CHUNK, size - len(self.ready)))
            piece = self._text.more(piece, self.ended) if self._text else piece
            self.tail = piece[-1:] or self.tail
            self.ready += piece

    def _take(self, size: int) -> bytes:
        """Return some decoded bytes; none once the body has ended."""
        piece: bytes = (
            self._unpacked(size) if self._layers else self._raw.read(size, decode_content=False)
        )
        if not self._came:
            # The first bytes may say that a packed file, or text of 16 bits, comes undeclared.
            if piece[:2] == b"\x1f\x8b" and not self._layers:
                self._layers, self._total = [_Unpacker("gzip")], None
                piece = self._unpacked(size, piece)
            if piece[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and not self._text:
                self._text = _Recoded("utf-16")
            self.head = piece[:200]
        # A socket that the timer shut reads like a body that has ended.
        if self._watch.fired:
            raise DeadlineExceeded("")
        self.ended = self.ended or (size > 0 and not piece)
        self._came += len(piece)
        if self._came > self.cap:
            raise ResponseTooLarge(
                f"The answer is larger than {self.cap / 1e6:,.0f} MB. "
                "Raise the setting max_body_mb, or export to a file with to=."
            )
        if self._report:
            self._report(self._came, self._total)
        return piece

    def _unpacked(self, size: int, packed: bytes = b"") -> bytes:
        while True:
            piece = packed
            for layer in self._layers:
                piece = layer.more(piece, size)
            if piece:
                return piece
            packed = self._raw.read(CHUNK, decode_content=False)
            if not packed:
                # gzip has its own end, which urllib3 does not miss when it is missing.
                for layer in self._layers:
                    layer.check()
                return b""


# Where the standard says that the sender may choose. Python knows more, some of which are no encodings of text.
_CHARSETS = r"utf-(16|32)(-[lb]e)?|iso8859-\d+|cp125\d|koi8-[ru]|shift_jis|gb18030|gbk|gb2312|euc_(jp|kr)|big5"


def _charset(content_type: str) -> str | None:
    """Return the charset that a content type declares, where the body has to be recoded for it."""
    found = re.search(r"(?i);\s*charset\s*=\s*[\"']?([a-z0-9._:-]+)", content_type)
    try:
        name = codecs.lookup(found[1]).name if found else ""
    except LookupError:
        return None
    return name if re.fullmatch(_CHARSETS, name) else None


class _Recoded:
    """A body of another charset, as UTF-8.

    Many a service declares latin-1 and sends UTF-8: as long as the body is UTF-8, it is that; text of another charset
    stops being so at its first letter outside ASCII.
    """

    def __init__(self, charset: str) -> None:
        self._charset = charset
        # The first one counts as long as the body is text in it. Text of 16 bits is full of zeros, which UTF-8 allows.
        tried = [charset] if charset.startswith("utf") else ["utf-8", charset]
        self._decoders = [codecs.getincrementaldecoder(name)() for name in tried]
        self._ascii = True

    def more(self, piece: bytes, last: bool) -> bytes:
        begun = self._decoders[0].getstate()[0]
        try:
            text = self._decoders[0].decode(piece, last)
            recoded = text.encode("utf-8")
        except UnicodeError:
            if self._ascii and self._decoders[1:]:
                del self._decoders[0]
                return self.more(begun + piece, last)
            raise ProtocolError(
                f"The answer declares the charset {self._charset}, but is not text in it."
            ) from None
        self._ascii = self._ascii and text.isascii()
        return recoded


def _layers(encoding: str) -> list[_Unpacker]:
    parts = map(str.strip, encoding.lower().split(","))
    names = [name for name in parts if name not in ("", "identity")]
    if len(names) > MAX_LAYERS:
        raise ResponseTooLarge(
            f"The answer is compressed {len(names)} times over. Allowed: {MAX_LAYERS}."
        )
    for name in names:
        if name not in ("gzip", "x-gzip", "deflate"):
            raise ProtocolError(
                f"The answer has Content-Encoding {quoted(name, 40)}; nbext asked for gzip or deflate."
            )
    # The last one named was applied last, and comes off first.
    return [_Unpacker(name) for name in names[::-1]]


class _Unpacker:
    """One layer of gzip or deflate, never unpacking more than it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name
        # 15 + 32: zlib finds out by itself whether the header is gzip's or zlib's.
        self._inflate = zlib.decompressobj(15 + 32)
        self._packed = b""
        self._fed = False

    def more(self, packed: bytes, size: int) -> bytes:
        self._packed += packed
        self._fed = self._fed or bool(packed)
        if self._inflate.eof and self._packed:
            # gzip may be several members, one after the other.
            self._inflate = zlib.decompressobj(15 + 32)
        try:
            # The size bounds what one call unpacks: 300 kB of gzip may hold 300 MB of zeros.
            piece = self._inflate.decompress(self._packed, size)
        except zlib.error:
            raise ProtocolError(
                f"The answer declares {self._name}, but is not {self._name}."
            ) from None
        self._packed = self._inflate.unconsumed_tail or self._inflate.unused_data
        return piece

    def check(self) -> None:
        if self._fed and not self._inflate.eof:
            raise ProtocolError(f"The answer ends in the middle of its {self._name} data.")
