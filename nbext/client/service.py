"""One service, by its base_url and key: what all calls of a client share, and what the service says of itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn, Self

from nbext.client import validate
from nbext.client.error_boundary import public
from nbext.client.http.deadline import Deadline
from nbext.client.http.transport import Call, Transport
from nbext.client.remote import content
from nbext.client.remote.profile import Overrides
from nbext.core import operations as op
from nbext.errors import ApiError, BadRequest, NbextError, NotFound, ProtocolError, QueryCancelled
from nbext.settings import Secret, Settings


class Caller:
    """A service and how it is asked; a client's methods stand in the classes that derive from it."""

    def __init__(
        self,
        base_url: str,
        api_key: str | Secret,
        *,
        settings: Settings | None = None,
        restart: Callable[[], Any] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._overrides = Overrides(self.settings["remote"])
        self._transport = Transport(base_url, api_key, self.settings, restart)
        self._ours: bool | None = True if restart else None

    def __repr__(self) -> str:
        return f"<nbext.Client {self.base_url}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client holds a key and open connections: it is neither pickled nor copied")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The client can be used again."""
        self._transport.close()

    @property
    def base_url(self) -> str:
        """The service's address."""
        return self._transport.origin.url

    @property
    def answered(self) -> bool:
        """Whether the service has answered this client anything yet, be it an error. Nothing is asked."""
        return self._transport.answered

    @property
    def is_ours(self) -> bool:
        """Whether the service is nbext's own. A service that is not known yet is asked once (GET /about)."""
        if self._ours is None:
            try:
                self.about()
            except (ApiError, ProtocolError):
                self._ours = False
            except QueryCancelled:
                raise
            except NbextError:
                # It could not be asked now: nothing is known, and nothing is remembered.
                return False
        return bool(self._ours)

    @public
    def about(self) -> dict[str, Any]:
        """Return what the service says of itself: version, engine and data. Only ours is known to answer.

        Source
        ------
        GET /about
        """
        found = self._document(self._call("GET", op.ABOUT))
        self._ours = found.get("service") == "nbext"
        return found

    @public
    def schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of filters, or None where the service has none.

        Source
        ------
        GET /schema
        """
        try:
            return self._document(self._call("GET", op.SCHEMA))
        except (NotFound, BadRequest, ProtocolError):
            return None

    @property
    def key(self) -> Secret:
        """The key; it prints as stars."""
        return self._transport.key

    def _chain(self, chain: Any) -> str:
        return validate.chain_of(self.settings["chain"] if chain is None else chain, ours=self._ours is True)

    def _call(self, method: str, target: str, body: Any = None, deadline: str = "deadline") -> Call:
        data = None if body is None else json.dumps(body).encode()
        return Call(method, target, Deadline(self.settings[deadline]), data)

    def _document(self, call: Call) -> dict[str, Any]:
        found = content.opened(self._transport.fetch(call)).document
        if not isinstance(found, dict):
            raise ProtocolError(f"{self.base_url}{call.target} did not answer with a JSON object.")
        return found
