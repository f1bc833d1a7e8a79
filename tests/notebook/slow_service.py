"""A service on loopback that is as slow and as rude as a test wants; it keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SEGMENT = {
    "id": "seg_1",
    "status": "running",
    "operator": "AND",
    "filters": {},
    "fileType": "json",
    "limit": 10,
    "counts": {"matched": None, "returned": None},
    "truncated": False,
    "columns": [],
    "preview": [],
}


class SlowService:
    """Answers by path: ``answers[path] = (seconds, status, document)``; what is not there is a 404."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answers: dict[str, tuple[float, int, object]] = {}
        self.release = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                service.asked.append((self.command, self.path))
                seconds, status, document = service.answers.get(
                    f"{self.command} {self.path}", (0, 404, {})
                )
                service.release.wait(seconds)
                text = json.dumps(document).replace("THE KEY", self.headers.get("x-api-key", ""))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_POST = do_DELETE = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:  # the client went away: that is what is tested
                    self.close_connection = True

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def slow_service() -> Iterator[SlowService]:
    """A running service; at the end, what still waits is let go."""
    service = SlowService()
    thread = threading.Thread(
        target=service.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield service
    finally:
        service.release.set()
        service.server.shutdown()
        service.server.server_close()
        thread.join()
