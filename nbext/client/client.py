"""The client: one method per operation of the service."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

from nbext.client import frames, inputs, jsontext
from nbext.client.deadline import Deadline
from nbext.client.filters import encoded
from nbext.client.progress import Reporter, no_report
from nbext.client.retry import Repeat
from nbext.client.transport import Call, Transport
from nbext.errors import NbextError, NotFound, ProtocolError
from nbext.settings import Secret, Settings
from nbext.wire import operations as op

if TYPE_CHECKING:
    import pandas as pd


class Client:
    """One service, by its base_url and key."""

    def __init__(
        self,
        base_url: str,
        api_key: str | Secret,
        *,
        settings: Settings | None = None,
        restart: Callable[[], Any] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._transport = Transport(base_url, api_key, self.settings, restart)
        self._ours: bool | None = True if restart else None

    def __repr__(self) -> str:
        return f"<nbext.Client {self.base_url}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client holds a key and open connections: it is neither pickled nor copied")

    @property
    def base_url(self) -> str:
        """The service's address."""
        return self._transport.origin.url

    @property
    def is_ours(self) -> bool:
        """Whether the service is nbext's own; it is asked once."""
        if self._ours is None:
            try:
                self._ours = self.about().get("service") == "nbext"
            except NbextError:
                return False
        return self._ours

    def about(self) -> dict[str, Any]:
        """Return what the service says of itself; our own tells its version, engine and data."""
        found = self._get(op.ABOUT)
        self._ours = isinstance(found, dict) and found.get("service") == "nbext"
        return found if isinstance(found, dict) else {}

    def schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of filters, or None where the service has none."""
        try:
            found: dict[str, Any] = self._get(op.SCHEMA)
        except NotFound:
            return None
        return found

    def explain(self, filters: Mapping[str, Any], operator: str = "AND", limit: int | None = None) -> dict[str, Any]:
        """Return how our own service would run a segment."""
        body = self.request_for(filters, operator, limit=limit)["body"]
        found: dict[str, Any] = self._post("/explain", {**body, "parts": True})
        return found

    def cancel(self, segment_id: str) -> None:
        """Tell our own service to stop a segment."""
        path = op.SEGMENT.format(id=inputs.segment_id_of(segment_id))
        self._transport.fetch(Call("DELETE", path, self._deadline()))

    def request_for(
        self, filters: Mapping[str, Any], operator: str = "AND", file_type: str = "json", limit: int | None = None
    ) -> dict[str, Any]:
        """Return the request that `execute_segment` would send, without sending it."""
        body = {
            "operator": inputs.operator_of(operator),
            "filters": encoded(filters),
            "fileType": inputs.file_type_of(file_type),
            "limit": inputs.limit_of(self.settings["limit"] if limit is None else limit, counting=True),
        }
        return {"method": "POST", "url": self.base_url + op.EXECUTE, "body": body}

    def execute_segment(
        self,
        filters: Mapping[str, Any],
        operator: str = "AND",
        file_type: str = "json",
        limit: int | None = None,
        *,
        progress: Reporter | None = None,
    ) -> pd.DataFrame:
        """Run a segment and return its wallets."""
        from uuid import uuid4

        body = self.request_for(filters, operator, file_type, limit)["body"]
        deadline = Deadline(self.settings["execute_deadline"])
        headers = {op_header: str(uuid4()) for op_header in ("Idempotency-Key",)} | {"Prefer": "wait=10"}
        repeat = Repeat.ALWAYS if self._ours else Repeat.IF_REFUSED
        call = Call("POST", op.EXECUTE, deadline, json.dumps(body).encode(), headers, repeat, patient=True)
        found = self._json(call)
        tell = progress or no_report
        while found.get("status") in ("queued", "running"):
            import time

            from nbext.client.progress import Progress

            tell(Progress("running", found["status"], found["id"], deadline.spent()))
            time.sleep(0.5)
            found = self._json(Call("GET", op.SEGMENT.format(id=found["id"]), deadline, headers={"Prefer": "wait=10"}))
        table = self.export_json(found["id"])
        table.attrs["nbext"] = {
            "segment_id": found["id"], "operation": "execute_segment", "service": self.base_url,
            "status": found["status"], "operator": found["operator"], "filters": found["filters"],
            "limit": found["limit"], "chain": found["chain"], "as_of": found["asOf"],
            "matched": found["counts"]["matched"], "returned": found["counts"]["returned"],
            "truncated": found["truncated"], "columns": found["columns"], "seconds": deadline.spent(),
            "cached": found["cached"], "warnings": found["warnings"],
        }
        return table

    def segment(self, segment_id: str) -> pd.DataFrame:
        """Return what the service knows of a segment: one row."""
        found = self._get(op.SEGMENT.format(id=inputs.segment_id_of(segment_id)))
        counts = found.get("counts") or {}
        row = {**found, "matched": counts.get("matched"), "returned": counts.get("returned")}
        return frames.frame([{name: row.get(name) for name in op.SEGMENT_FIELDS}], op.SEGMENT_FIELDS)

    def export_json(self, segment_id: str, to: str | None = None, overwrite: bool = False) -> pd.DataFrame:
        """Return a segment's rows, read as JSON."""
        found = self._get(op.SEGMENT_JSON.format(id=inputs.segment_id_of(segment_id)))
        return frames.frame(found["data"], frames.types_of(found["columns"]))

    def export_csv(self, segment_id: str, to: str | None = None, overwrite: bool = False) -> pd.DataFrame:
        """Return a segment's rows."""
        return self.export_json(segment_id)

    def search_nfts(
        self,
        term: str,
        chain: str | None = None,
        *,
        type: str = "nft",  # noqa: A002  # the interface's own name
        limit: int = 20,
        offset: int = 0,
    ) -> pd.DataFrame:
        """Return the collections that fit a term."""
        body = {
            "type": inputs.search_type_of(type),
            "chain": inputs.chain_of(chain or self.settings["chain"], ours=bool(self._ours)),
            "searchTerm": inputs.search_term_of(term), "limit": limit, "offset": offset,
        }
        found = self._post(op.SEARCH, body)
        return frames.frame(found["items"], op.SEARCH_FIELDS)

    def tokens(
        self, chain: str, addresses: str | Iterable[str], *, strict: bool = False, refresh: bool = False
    ) -> pd.DataFrame:
        """Return the metadata of ERC20 tokens, one row for each address."""
        return self._look_up(op.TOKEN, op.TOKEN_FIELDS, chain, addresses)

    def nfts(
        self, chain: str, addresses: str | Iterable[str], *, strict: bool = False, refresh: bool = False
    ) -> pd.DataFrame:
        """Return the metadata of NFT collections, one row for each address."""
        return self._look_up(op.NFT, op.NFT_FIELDS, chain, addresses)

    def sign_up(self, email: str) -> pd.DataFrame:
        """Sign up for the newsletter."""
        body = json.dumps({"email": inputs.email_of(email)}).encode()
        call = Call("POST", op.SIGN_UP, self._deadline(), body, repeat=Repeat.NEVER_TWICE)
        return frames.frame([self._json(call)], op.SIGN_UP_FIELDS)

    def _look_up(self, path: str, types: dict[str, str], chain: str, addresses: str | Iterable[str]) -> pd.DataFrame:
        wanted = [addresses] if isinstance(addresses, str) else list(addresses)
        chain = inputs.chain_of(chain, ours=bool(self._ours))
        names = [a if inputs.is_symbol(a) else inputs.address_of(a) for a in wanted]
        return frames.frame([self._get(path.format(chain=chain, address=quote(n, safe=""))) for n in names], types)

    def _deadline(self) -> Deadline:
        return Deadline(self.settings["deadline"])

    def _get(self, path: str) -> Any:
        return self._json(Call("GET", path, self._deadline()))

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._json(Call("POST", path, self._deadline(), json.dumps(body).encode()))

    def _json(self, call: Call) -> Any:
        answer = self._transport.fetch(call)
        document, _ = jsontext.decode(answer.body)
        if not isinstance(document, dict):
            raise ProtocolError("the answer is not an object.")
        return document
