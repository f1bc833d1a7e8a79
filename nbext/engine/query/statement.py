"""What sets of wallets and columns are fetched from: a statement, or a stored list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbext.core.addresses import WIDTH
from nbext.errors import SegmentExpired

# The columns of a series' rows: the blocks between which each stood.
ENTERS, LEAVES = "enters", "leaves"


@dataclass(frozen=True)
class Sql:
    """A statement, and what it reads beside the data.

    Attributes
    ----------
    values
        By name, without the ``$``: an int of 64 bits, a Decimal where it is larger, a str, or a list of one of these.
    tables
        Arrow tables by the names under which the text reads them.
    """

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def timed(self) -> bool:
        """Whether its rows say between which blocks they stood."""
        return ENTERS in self.text


@dataclass(frozen=True)
class WalletList:
    """A stored list of wallets. Its file has the 20 bytes of each address, in order and each once."""

    id: str
    wallets: int
    path: Path = field(compare=False)

    def pieces(self, addresses: int = 1_000_000) -> Iterator[bytes]:
        """Yield the bytes of its addresses, so many addresses at a time."""
        try:
            with self.path.open("rb") as file:
                while piece := file.read(addresses * WIDTH):
                    yield piece
        except FileNotFoundError:
            gone = "was deleted to make room before the segment ran. Execute the segment again."
        else:
            return
        raise SegmentExpired(f"The list of wallets {self.id} {gone}")
