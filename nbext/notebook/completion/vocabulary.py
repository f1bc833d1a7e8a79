"""The words that completion offers, learned from the service's schema and from answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nbext.core.chains import chain_names

if TYPE_CHECKING:
    import pandas as pd

# More are not remembered: nobody reads a longer list, and every answer is searched for new ones.
_MAX_SYMBOLS = 2_000


@dataclass
class Vocabulary:
    """The words to offer; filled by a connection and by answers, read by completion.

    Attributes
    ----------
    chains
        The names of all chains; those of the service's data first.
    schema
        The JSON Schema of a request; None where the service publishes none.
    symbols
        The symbols of tokens and collections in answers, each with its address.
    """

    chains: tuple[str, ...] = field(default_factory=chain_names)
    schema: Mapping[str, Any] | None = None
    symbols: dict[str, str] = field(default_factory=dict)

    def learn_service(self, about: Mapping[str, Any], schema: Mapping[str, Any] | None) -> None:
        """Remember the service's schema, and its chains before all others."""
        held = [str(chain.get("chain")) for chain in (about.get("data") or {}).get("chains") or []]
        self.chains = tuple(dict.fromkeys([*held, *chain_names()]))
        self.schema = schema

    def learn_rows(self, frame: pd.DataFrame) -> None:
        """Remember the symbols and addresses of an answer's rows."""
        if not {"symbol", "address"} <= set(frame.columns):
            return
        for symbol, address in zip(frame["symbol"], frame["address"], strict=True):
            if isinstance(symbol, str) and isinstance(address, str) and len(self.symbols) < _MAX_SYMBOLS:
                self.symbols[symbol] = address
