"""A body as it arrives: decoded, counted against its cap, and whole or an error."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Any

from nbext.client.http.deadline import Watch
from nbext.errors import DeadlineExceeded, ProtocolError, ResponseTooLarge

CHUNK = 1 << 18
# More layers than a server, a cache and a proxy would ever add are a bomb's.
MAX_LAYERS = 2


class Stream(io.RawIOBase):
    """The decoded body of one answer, as a file to read from.

    Unpacking is done here and not by urllib3, which takes a packed body that ends early for a whole one.
    """

    def __init__(
        self, raw: Any, encoding: str, watch: Watch, cap: int, told: Callable[[int], None] = lambda _: None
    ) -> None:
        super().__init__()
        self._raw, self._watch, self._cap, self._told = raw, watch, cap, told
        self._layers = [_Unpacker(name) for name in _layers(encoding)]
        self._ready = bytearray()
        self._ended = False
        self.came = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Return ``size`` decoded bytes, fewer only at the end of a body that came whole."""
        if size is None or size < 0:
            self._fill(self._cap + 1)
            size = len(self._ready)
        elif not self._layers and not self._ready:
            return self._take(size)
        self._fill(size)
        piece = bytes(self._ready[:size])
        del self._ready[:size]
        return piece

    def peek(self, size: int) -> bytes:
        """Return the next bytes without taking them."""
        self._fill(size)
        return bytes(self._ready[:size])

    def bounded(self, cap: int) -> Stream:
        """Lower the cap, for a body that is to be held whole."""
        self._cap = min(self._cap, cap)
        return self

    def finish(self) -> None:
        """Read what a reader that knew where to stop left over: the connection is then whole for the next call."""
        self._ready.clear()
        if not self._ended:
            self._take(CHUNK)

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer."""
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def _fill(self, size: int) -> None:
        while len(self._ready) < size and not self._ended:
            self._ready += self._take(min(CHUNK, size - len(self._ready)))

    def _take(self, size: int) -> bytes:
        """Return some decoded bytes; none once the body has ended."""
        piece = self._unpacked(size) if self._layers else self._wire(size)
        self._ended = self._ended or (size > 0 and not piece)
        self.came += len(piece)
        if self.came > self._cap:
            raise ResponseTooLarge(
                f"the answer is larger than {self._cap / 1e6:,.0f} MB. "
                "The setting max_body_mb raises the bound; exports can go to a file with to=."
            )
        self._told(self.came)
        return piece

    def _wire(self, size: int) -> bytes:
        piece: bytes = self._raw.read(size, decode_content=False)
        # A socket that the watchdog shut reads like a body that has ended.
        if self._watch.fired:
            raise DeadlineExceeded("")
        return piece

    def _unpacked(self, size: int) -> bytes:
        while True:
            piece, hungry = b"", True
            for layer in self._layers:
                piece = layer.more(piece, size)
                hungry = not piece
            if piece:
                return piece
            if hungry:
                packed = self._wire(CHUNK)
                if not packed:
                    return self._end()
                self._layers[0].feed(packed)

    def _end(self) -> bytes:
        for layer in self._layers:
            layer.check()
        return b""


def _layers(encoding: str) -> list[str]:
    names = [name.strip().lower() for name in encoding.split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if len(names) > MAX_LAYERS:
        raise ResponseTooLarge(f"the answer is packed {len(names)} times over; at most {MAX_LAYERS} are unpacked.")
    for name in names:
        if name not in ("gzip", "x-gzip", "deflate"):
            raise ProtocolError(f"the answer is packed as {name[:40]!r}, which was not asked for.")
    return names[::-1]


class _Unpacker:
    """One layer of gzip or deflate, never unpacking more than it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name
        # 15 + 32: zlib finds out by itself whether the header is gzip's or zlib's.
        self._inflate = zlib.decompressobj(15 + 32)
        self._packed = b""
        self._fed = 0

    def feed(self, packed: bytes) -> None:
        self._packed += packed
        self._fed += len(packed)

    def more(self, packed: bytes, size: int) -> bytes:
        if packed:
            self.feed(packed)
        if self._inflate.eof and self._packed:
            # gzip may be several members, one after the other.
            self._inflate = zlib.decompressobj(15 + 32)
        try:
            piece = self._inflate.decompress(self._packed, size)
        except zlib.error:
            pass
        else:
            self._packed = self._inflate.unconsumed_tail or self._inflate.unused_data
            return piece
        raise ProtocolError(f"the answer says that it is packed as {self._name}, and is not.")

    def check(self) -> None:
        if self._fed and not self._inflate.eof:
            raise ProtocolError(f"the answer, packed as {self._name}, ends before its packing does.")
