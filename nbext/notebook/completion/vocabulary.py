"""The words that completion offers: chains, the service's schema, and symbols of tokens and collections.

Completion itself never waits: it offers what is here. Symbols that are missing are fetched in the background, from our
own service alone, and are there for the next key.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from nbext.core.chains import chain_names, chain_of
from nbext.core.constants import ERC20
from nbext.core.provenance import Provenance
from nbext.errors import NbextError, ValidationError

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client import Client

Kind = Literal["token", "collection"]
_SEARCHED: dict[Kind, str] = {"token": "token", "collection": "nft"}
# More are not remembered: nobody reads a longer list, and every answer is searched for new ones.
_MAX_SYMBOLS = 2_000
# Fetched before anything is typed: those with the most holders. A longer list is searched by what is typed.
_FIRST, _PAGE = 300, 100


@dataclass
class Vocabulary:
    """The words to offer; filled by a connection, by answers and by searches, read by completion."""

    # All chains, those of the service's data first; the schema of a request, None where the service publishes none;
    # and the address of each symbol, by kind and chain.
    chains: tuple[str, ...] = field(default_factory=chain_names)
    schema: Mapping[str, Any] | None = None
    known: dict[tuple[Kind, str], dict[str, str]] = field(default_factory=dict)
    # Of our own service; None before it answers, and beside another.
    client: Client | None = None
    _asked: set[tuple[Kind, str, str]] = field(default_factory=set)
    _data: str | None = None

    def learn_service(
        self, client: Client, about: Mapping[str, Any], schema: Mapping[str, Any] | None
    ) -> None:
        """Remember a service of ours: its schema, and its chains before all others."""
        data = about.get("data") or {}
        if data.get("fingerprint") != self._data:
            # Symbols of the sample, or of contracts that are gone, would not be found.
            self._data = data.get("fingerprint")
            self.known.clear()
            self._asked.clear()
        held = [str(chain.get("chain")) for chain in data.get("chains") or []]
        self.chains = tuple(dict.fromkeys([*held, *chain_names()]))
        self.schema, self.client = schema, client

    def learn_rows(self, frame: pd.DataFrame) -> None:
        """Remember the symbols and addresses of an answer's rows; those of spam are not offered."""
        if not {"symbol", "address"} <= set(frame.columns):
            return
        operation = Provenance.of(frame).operation
        absent = [None] * len(frame)
        names = ("symbol", "address", "chain", "tokenType", "possibleSpam")
        columns = [frame.get(name, absent) for name in names]
        for symbol, address, chain, standard, spam in zip(*columns, strict=True):
            if not isinstance(symbol, str) or not isinstance(address, str) or spam is True:
                continue
            kind: Kind = "token" if operation == "tokens" or standard == ERC20 else "collection"
            symbols = self.known.setdefault((kind, chain if isinstance(chain, str) else ""), {})
            if len(symbols) < _MAX_SYMBOLS:
                symbols.setdefault(symbol, address)

    def symbols(self, kind: Kind, chain: str | None = None, typed: str = "") -> list[str]:
        """Return the symbols of a kind, on a chain or on any; more may follow for what is typed."""
        name = _name_of(chain) if chain else None
        found = [
            symbol
            for (one, place), symbols in list(self.known.items())
            if one == kind and name in (None, place)
            for symbol in list(symbols)
        ]
        if self.client is not None and not any(
            one.lower().startswith(typed.lower()) for one in found
        ):
            thread = threading.Thread(
                target=self.fetch,
                args=(kind, name or self.chains[0], typed),
                name="nbext-symbols",
                daemon=True,
            )
            thread.start()
        return list(dict.fromkeys(found))

    def fetch(self, kind: Kind, chain: str, term: str = "") -> None:
        """Ask our own service once for the symbols that a term fits; without one, for those with the most holders."""
        client, wanted = self.client, (kind, chain, term.lower())
        if client is None or wanted in self._asked:
            return
        self._asked.add(wanted)
        for offset in range(0, _PAGE if term else _FIRST, _PAGE):
            try:
                frame = client.search_nfts(
                    term, chain, type=_SEARCHED[kind], limit=_PAGE, offset=offset
                )
            except NbextError:
                # Nobody waits for it: a service that has ended says so at the next call.
                return
            self.learn_rows(frame)
            if len(frame) < _PAGE:
                return


def _name_of(chain: str) -> str:
    try:
        return chain_of(chain).name
    except ValidationError:
        return chain
