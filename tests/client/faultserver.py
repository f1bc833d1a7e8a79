"""A real HTTP server on loopback that answers as it is told, byte for byte, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from nbext.core.wire import ARROW_TYPE

RESET = object()


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


# What a reply is made of: bytes are sent, numbers are seconds to wait, RESET resets the connection.
Reply = Iterable[Any]


def reply(
    body: Any = b"",
    status: int = 200,
    content_type: str | None = "application/json",
    **headers: str,
) -> bytes:
    """A whole answer; a body that is not bytes is sent as JSON. Header names are written with _ for -."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
    lines += [f"Content-Type: {content_type}"] if content_type else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def as_arrow(rows):
    """An answer with rows as our own service sends them: addresses and amounts of UNI, in Arrow."""
    amounts = pa.array([int(row["UNI_balance"]) for row in rows], pa.decimal128(38, 0))
    table = pa.table({"address": [row["address"] for row in rows], "UNI_balance": amounts})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return reply(sink.getvalue().to_pybytes(), content_type=ARROW_TYPE)


@dataclass
class FaultServer:
    """Answers each request with the next reply of its script, the last one for ever; or with ``handler``."""

    handler: Callable[[Request], Any] | None = None
    requests: list[Request] = field(default_factory=list)
    scripts: dict[str, list[Any]] = field(default_factory=dict)
    latency: float = 0.0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def script(self, path: str, *replies: Any) -> None:
        """Answer ``METHOD /path`` (or every path that starts so, with a closing ``*``) with these, in turn."""
        self.scripts[path] = list(replies)

    def close(self) -> None:
        self._listener.close()
        with self._lock:
            for sock in self._open:
                sock.close()

    def asked(self, path: str = "") -> list[Request]:
        return [r for r in self.requests if r.path.startswith(path)]

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open.add(sock)
                self._connections += 1
                number = self._connections
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        try:
            came = sock.makefile("rb")
            if came.peek(1)[:1] == b"\x16":
                # The first byte of a TLS handshake: a plain server does not speak it.
                sock.sendall(b"HTTP/1.1 400 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            while request := _read(came, number):
                with self._lock:
                    self.requests.append(request)
                if self.latency:
                    time.sleep(self.latency)
                if not self._send(sock, self._reply_to(request)):
                    break
        except (OSError, ValueError):
            pass
        finally:
            with self._lock:
                self._open.discard(sock)
            sock.close()

    def _reply_to(self, request: Request) -> Any:
        if self.handler:
            return self.handler(request)
        asked = f"{request.method} {request.path}"
        with self._lock:
            for path, replies in self.scripts.items():
                if path in (asked, "*") or (path.endswith("*") and asked.startswith(path[:-1])):
                    return replies.pop(0) if len(replies) > 1 else replies[0]
        return reply({"detail": f"no script for {asked}"}, 404)

    def _send(self, sock: socket.socket, answer: Any) -> bool:
        """Send a reply; False where the connection is over."""
        for piece in [answer] if isinstance(answer, bytes) else answer:
            if piece is RESET:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            if piece is None:
                return False
            if isinstance(piece, bytes):
                sock.sendall(piece)
            else:
                time.sleep(piece)
        return True


def _read(came: Any, number: int) -> Request | None:
    first = came.readline(65537).decode("latin-1").split()
    if len(first) < 2:
        return None
    headers = {}
    while line := came.readline(65537).decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = came.read(int(headers.get("content-length", 0)))
    return Request(first[0], first[1], headers, body, number)
