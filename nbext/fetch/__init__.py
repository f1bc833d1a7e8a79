"""``nbext fetch``: from a node's logs to data that is served. It joins the room that reads nodes with ingest.

What is asked for is a `Request`, and where it says what it does an `Output`.

run       what is missing is read and ingested step by step, and the chain followed
balances  whether holders have what the contract says, and why not
command   what a fetch is asked for: the command's words, and those of the magic, and the URLs of nodes
"""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Request:
    """What to fetch. Blocks are numbers or words, as on the command line; ``check`` is how many balances to compare."""

    contracts: tuple[str, ...]
    chain: str = "ethereum"
    from_block: str = "deployment"
    to_block: str = "auto"
    follow: bool = False
    confirmations: int | None = None
    deposits: bool = False
    check: int = 20
    rps: float | None = None
    in_flight: int = 4
    every: float = 30.0
    # That of ingest's DuckDB: what is read from a node is held in pieces.
    memory: str = "4GB"


@dataclass
class Output:
    """Where a fetch says what it does: ``say`` takes a line, ``progress`` a text and a share from 0 to 1."""

    say: Callable[[str], None] = print
    progress: Callable[[str, float], None] = field(default=lambda text, share: None)
