"""What completion may offer, learned from the service's schema and from the answers seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nbext.core.chains import chain_names

if TYPE_CHECKING:
    import pandas as pd

# Symbols and addresses beyond this many are not kept: a list that long helps nobody.
_KEPT = 2_000


@dataclass
class Knowledge:
    """Names to offer; filled by a connection and by answers, read by completion.

    Attributes
    ----------
    conditions
        Each condition's fields, and each field's own fields or allowed values.
    """

    chains: tuple[str, ...] = field(default_factory=chain_names)
    schema: Mapping[str, Any] | None = None
    symbols: dict[str, str] = field(default_factory=dict)

    def learn_service(self, about: Mapping[str, Any], schema: Mapping[str, Any] | None) -> None:
        """Keep the service's chains, its own first, and its schema of filters."""
        held = [str(chain.get("chain")) for chain in (about.get("data") or {}).get("chains") or []]
        self.chains = tuple(dict.fromkeys([*held, *chain_names()]))
        self.schema = schema

    def learn_rows(self, frame: pd.DataFrame) -> None:
        """Keep the symbols and addresses of an answer's rows."""
        if not {"symbol", "address"} <= set(frame.columns):
            return
        for symbol, address in zip(frame["symbol"], frame["address"], strict=True):
            if isinstance(symbol, str) and isinstance(address, str) and len(self.symbols) < _KEPT:
                self.symbols[symbol] = address
