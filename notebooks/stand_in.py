"""A wallet-segment service that nobody documented, on loopback: a stand-in with made-up wallets and answers of its own.

    with StandIn() as service:
        ...                 # service.url and service.key, as its vendor would hand them out

It wants `{"holdersOf": ...}`, calls a balance `amount` and an address `owner`. Asked to `compare` it answers two lists,
and asked `slowly` a job that is `crunching`.
"""

from __future__ import annotations

import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OWNERS = [
    {"owner": f"0x{number:040x}", "amount": str(3 ** (number * 7 % 23) * 10**13)}
    for number in range(8, 28)
]


class StandIn:
    """The service, until the context ends or `close`. ``seen`` has the headers of each request that it received."""

    def __init__(self) -> None:
        self.key = secrets.token_urlsafe(16)
        self.seen: list[dict[str, str]] = []
        self.polls = 0
        self._server = _serve(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the service."""
        self._server.shutdown()
        self._server.server_close()

    def answer(  # noqa: PLR0911  one for each way to answer
        self, path: str, body: dict[str, Any], headers: dict[str, str]
    ) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the answer to a request."""
        self.seen.append(headers)
        if headers.get("x-api-key") != self.key:
            return 401, {"message": f"key {headers.get('x-api-key')} is not known"}
        filters = body.get("filters", {})
        if path.startswith("/v1/tokens/ethereum/0x1f98"):
            return 200, {"data": {"contractAddress": path[-42:], "ticker": "UNI", "precision": 18}}
        if path == "/v1/segment/job-81":
            self.polls += 1
            if self.polls > 2:
                return 200, {"jobId": "job-81", "phase": "finished", "holders": OWNERS[:5]}
            return 200, {"jobId": "job-81", "phase": "crunching"}
        if filters.get("slowly"):
            return 202, {"jobId": "job-81", "phase": "queued"}
        if filters.get("compare"):
            return 200, {"holders": OWNERS[:12], "formerHolders": OWNERS[12:]}
        return (
            (200, {"ok": True, "holders": OWNERS})
            if filters
            else (404, {"message": "no such thing here"})
        )


def _serve(service: StandIn) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else {}
            status, answer = service.answer(self.path, body, dict(self.headers))
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET  # noqa: N815  the name that http.server calls

        def log_message(self, *words: object) -> None:
            """Keep quiet: the notebook is the log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
