"""A service that speaks the eight operations and means harm: every text of every answer is an attacker's.

It also serves as the trap: whatever asks it for anything but an operation was made to by a name.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa

from nbext.core.wire import ARROW_TYPE
from nbext.language.conditions import CONDITIONS
from nbext.language.json_schema import json_schema

MARK = "h0stile"
_SEGMENT = "/v1/segment/sg_hostile"
_SHAPES = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=2</script>",
    "<img src=x onerror=window.pwned=3>",
    "<img src='{trap}/img.png'>",
    "<svg onload=window.pwned=4>",
    "<svg><script>window.pwned=5</script></svg>",
    "<svg><animate onbegin=window.pwned=6 attributeName=x dur=1s>",
    "<iframe src=javascript:window.top.pwned=7></iframe>",
    "<iframe srcdoc='<script>top.pwned=8</script>'></iframe>",
    '<a href="javascript:window.pwned=9">click</a>',
    "javascript:window.pwned=10",
    "<body onload=window.pwned=11>",
    "<input autofocus onfocus=window.pwned=12>",
    "<details open ontoggle=window.pwned=13>",
    "<video src=x onerror=window.pwned=14>",
    "<audio src={trap}/a.mp3 autoplay>",
    "<object data=javascript:window.pwned=15></object>",
    "<embed src={trap}/e.svg>",
    "<link rel=stylesheet href={trap}/s.css>",
    "<style>@import url({trap}/i.css);*{{background:url({trap}/b.png)}}</style>",
    "<meta http-equiv=refresh content='0;url={trap}/m'>",
    "<base href={trap}/>",
    "<form action={trap}><button autofocus>x</button></form>",
    "<math><mtext></mtext><script>window.pwned=16</script></math>",
    "<template><script>window.pwned=17</script></template>",
    '"><script>window.pwned=18</script>',
    "'><img src=x onerror=window.pwned=19>",
    "' onmouseover='window.pwned=20' autofocus onfocus='window.pwned=21",
    '" onfocus="window.pwned=22" autofocus="',
    "&lt;script&gt;window.pwned=23&lt;/script&gt;",
    "&#60;img src=x onerror=window.pwned=24&#62;",
    "$PEPE and $WIF",
    "$$\\href{{javascript:window.pwned=25}}{{click}}$$",
    "\\(\\unicode{{x}}\\) \\[x\\]",
    "**bold** [link](javascript:window.pwned=26) ![i]({trap}/md.png)",
    "\u202egnirts detrever\u202c \u2066isolated\u2069",
    "zero\u200bwidth\ufeff \u200ejoin\u00ad",
    "\x1b[31mred\x1b[0m \x1b]8;;{trap}/osc\x07link\x1b]8;;\x07 \r\n\x08",
    "{{{{2*2}}}} {{{{__import__('os').system('true')}}}} ${{7*7}} `id`",
    "<b>{long}</b>",
)
COUNT = len(_SHAPES)


def names(trap: str) -> list[str]:
    """Return the hostile names; each begins with a mark that says which it is, so that it can be looked for."""
    return [
        f"{MARK}{i:02d} " + shape.format(trap=trap, long="x" * 20_000)
        for i, shape in enumerate(_SHAPES)
    ]


def leaves(value: Any, pointer: str = "") -> Iterator[str]:
    """The JSON pointers of a value's texts and numbers."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{pointer}/{index}")
    else:
        yield pointer


class Hostile:
    """The service as the tests see it: its address, what it was asked, and what its trap caught."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.names = names(url)
        self.only: str | None = None
        self.asked: list[tuple[str, str, Any]] = []
        self.caught: list[str] = []
        self.delay = threading.Event()
        # How many results a search has, how many of them come at once, and whether the service is one of ours: another
        # one sends all of them, and does not say how many there are.
        self.found, self.most, self.ours = COUNT, 100, True

    @property
    def texts(self) -> list[str]:
        """The texts of the answers: all names in turn, or one of them everywhere."""
        return self.names if self.only is None else [self.only] * COUNT

    def of(self, operation: str) -> list[Any]:
        """The bodies of the requests to one path."""
        return [body for _, path, body in self.asked if path.split("?")[0] == operation]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Answer one request, or catch it."""
        key = (
            method,
            path.split("/")[1] if path.count("/") < 2 else "/".join(path.split("/")[1:3]),
        )
        make = {
            ("GET", "about"): self._about,
            ("GET", "schema"): self._schema,
            ("POST", "v1/search"): self._search,
            ("GET", "v1/nfts"): self._metadata,
            ("GET", "v1/tokens"): self._metadata,
            ("POST", "v1/signup"): self._sign_up,
            ("POST", "v1/segment"): self._execute,
            ("GET", "v1/segment"): self._rows,
            ("POST", "explain"): self._explain,
            ("POST", "funnel"): self._funnel,
            ("POST", "counts"): self._counts,
        }.get(key)
        if make is None:
            self.caught.append(f"{method} {path}")
            return 404, {}
        self.asked.append((method, path, body))
        return make(path, body)

    def _about(self, *_: Any) -> tuple[int, Any]:
        if not self.ours:
            return 404, {}
        everything = " ".join(name[:80] for name in self.texts)
        data = {"name": everything, "synthetic": True, "fingerprint": "f", "chains": []}
        return 200, {
            "service": "nbext",
            "version": everything,
            "grammar": 1,
            "engine": everything,
            "data": data,
            "links": {},
        }

    def _schema(self, *_: Any) -> tuple[int, Any]:
        """The schema that we serve, its words exchanged for hostile ones."""
        supply = iter(self.texts * 20)

        def spoilt(value: Any) -> Any:
            if isinstance(value, dict):
                return {
                    k: next(supply)
                    if k in ("description", "title") and isinstance(v, str)
                    else [next(supply)]
                    if k == "examples"
                    else [*v, next(supply)]
                    if k == "enum"
                    else spoilt(v)
                    for k, v in value.items()
                }
            return [spoilt(one) for one in value] if isinstance(value, list) else value

        schema = spoilt(json_schema())
        # Also the name of a field is the service's.
        for condition in CONDITIONS:
            name = next(supply)
            schema["$defs"][condition]["properties"][name] = {
                "type": "string",
                "description": name,
                "default": name,
            }
        return 200, schema

    def _record(self, index: int) -> dict[str, Any]:
        text = self.texts[index % COUNT]
        other = self.texts[(index + 1) % COUNT]
        return {
            "chain": "ethereum",
            "chainId": 1,
            "address": f"0x{index + 1:040x}",
            "checksumAddress": text,
            "name": text,
            "symbol": other,
            "tokenType": text,
            "totalSupply": text,
            "ownerCount": 7,
            "contractDeployer": other,
            "floorPrice": None,
            "logo": f"{self.url}/logo.png",
            "imageUrl": f"{self.url}/image.png",
            "verified": True,
            "possibleSpam": True,
            "deployedBlockNumber": 1,
            "transfers": 1,
            "asOf": {"block": 1, "timestamp": text},
            "score": 1.0,
        }

    def _search(self, _: str, body: Any) -> tuple[int, Any]:
        offset, limit = body.get("offset", 0), body.get("limit", 20 if self.ours else self.found)
        items = [
            self._record(index)
            for index in range(self.found)[offset : offset + min(limit, self.most)]
        ]
        found = {"type": "nft", "chain": "ethereum", "searchTerm": body["searchTerm"]}
        return 200, found | {"items": items} | ({"total": self.found} if self.ours else {})

    def _metadata(self, path: str, _: Any) -> tuple[int, Any]:
        return 200, self._record(int(path.rsplit("/", 1)[1], 16) - 1)

    def _sign_up(self, _: str, body: Any) -> tuple[int, Any]:
        if "refused" in body["email"]:
            detail = f"{body['email']} is refused: " + " ".join(
                name[:60] for name in self.texts[:6]
            )
            return 422, {
                "title": "Refused",
                "status": 422,
                "detail": detail,
                "code": "x",
                "errors": [{"pointer": "/email", "code": "x", "detail": detail}],
            }
        self.delay.wait(0.5)
        return 202, {"email": body["email"], "status": "recorded", "delivered": False}

    def _funnel(self, _: str, body: Any) -> tuple[int, Any]:
        if errors := self._errors(
            body, counts=self.only is not None and "counted" not in json.dumps(body)
        ):
            return 422, {
                "title": "No",
                "status": 422,
                "detail": "No",
                "code": "invalid-segment",
                "errors": errors,
            }
        steps = [
            {"words": text, "filters": {}, "alone": 2 * COUNT, "remaining": COUNT}
            for text in self.texts
        ]
        return 200, {
            "words": self.texts[0],
            "canonical": {},
            "asOf": {"block": 1, "timestamp": self.texts[1]},
            "warnings": self.texts,
            "chains": [],
            "steps": steps,
            "sample": self.texts[:3],
        }

    def _counts(self, _: str, body: Any) -> tuple[int, Any]:
        first = self.texts[0]
        each = {
            "words": first,
            "asOf": {"block": 1, "timestamp": first},
            "canonical": {"filters": {"chain": first}},
            "chains": [first],
            "warnings": self.texts,
        }
        return 200, {
            "counts": [COUNT for _ in body["counts"]],
            "segments": [each for _ in body["segments"]],
            "fingerprint": "f",
        }

    def _errors(self, body: Any, *, counts: bool) -> list[dict[str, str]]:
        if counts:
            # Every field of the query is wrong, and hostile words say why.
            details = {f"/filters{pointer}": str(self.only) for pointer in leaves(body["filters"])}
        elif "refused" in json.dumps(body["filters"]):
            details = {
                "/filters/token/token": self.texts[2],
                f"/filters/{self.texts[0]}": self.texts[4],
            }
        else:
            details = {}
        return [
            {"pointer": pointer, "code": "x", "detail": detail}
            for pointer, detail in details.items()
        ]

    def _execute(self, _: str, body: Any) -> tuple[int, Any]:
        if errors := self._errors(body, counts=self.only is not None and body["limit"] == 0):
            return 422, {
                "title": "No",
                "status": 422,
                "detail": "No",
                "code": "invalid-segment",
                "errors": errors,
            }
        returned = min(COUNT, body["limit"])
        return 200, {
            "id": "sg_hostile",
            "status": "completed",
            "operator": body["operator"],
            "filters": body["filters"],
            "fileType": "json",
            "limit": body["limit"],
            "chain": self.texts[0],
            "chainId": 1,
            "asOf": {"block": 1, "timestamp": self.texts[1]},
            "counts": {"matched": COUNT, "returned": returned},
            "truncated": False,
            "columns": self._columns(),
            "preview": [],
            "createdAt": "2024-01-01T00:00:00Z",
            "completedAt": "2024-01-01T00:00:00Z",
            "durationMs": 1,
            "cached": False,
            "error": None,
            "warnings": self.texts,
            "links": {"self": _SEGMENT, "arrow": f"{_SEGMENT}/arrow"},
        }

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {"name": self.texts[0], "type": "string"},
            {
                "name": "balance",
                "type": "float64",
                "unit": "token",
                "decimals": 2,
                "symbol": self.texts[31],
            },
            {
                "name": "balance_raw",
                "type": "uint256",
                "unit": "raw",
                "decimals": 2,
                "symbol": self.texts[31],
            },
        ]

    def _rows(self, path: str, _: Any) -> tuple[int, Any]:
        if path.startswith(f"{_SEGMENT}/arrow"):
            return 200, self._table()
        return self._execute("", {"filters": {}, "operator": "AND", "limit": COUNT})

    def _table(self) -> bytes:
        """Return the rows as an Arrow stream."""
        count = len(self.texts)
        rows = {
            self.texts[0]: pa.array(self.texts, pa.string()),
            "balance": [10**i / 100 for i in range(count)],
            "balance_raw": [str(10**i) for i in range(count)],
        }
        table, written = pa.table(rows), io.BytesIO()
        with pa.ipc.new_stream(written, table.schema) as stream:
            stream.write_table(table)
        return written.getvalue()

    def _explain(self, *_: Any) -> tuple[int, Any]:
        parts = [{"words": name, "matched": i} for i, name in enumerate(self.texts)]
        everything = " ".join(name[:60] for name in self.texts)
        return 200, {
            "id": "sg_hostile",
            "canonical": {},
            "words": everything,
            "sql": "",
            "plan": "",
            "parts": parts,
        }


@contextmanager
def running() -> Iterator[Hostile]:
    """Serve on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, document = hostile.answer(self.command, self.path, body)
            is_arrow = isinstance(document, bytes)
            written = document if is_arrow else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", ARROW_TYPE if is_arrow else "application/json")
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        do_GET = do_POST = do_DELETE = do_HEAD = _respond  # noqa: N815  names of http.server

        def log_message(self, *_: Any) -> None:
            """Say nothing: the tests look at what was asked."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        hostile = Hostile(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield hostile
        server.shutdown()
