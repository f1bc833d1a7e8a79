"""What to fetch, where a fetch says what it does, and the URLs of the nodes that it asks."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from nbext.core.addresses import checksummed, looks_like_address, normalised
from nbext.core.chains import Chain
from nbext.core.untrusted_text import quoted
from nbext.errors import ConfigError, ValidationError, did_you_mean
from nbext.settings import Secret

URL_VARIABLE = "NBEXT_RPC_URL"
CHECKED, EVERY, IN_FLIGHT = 20, 30.0, 4
# That of ingest's DuckDB: what is read from a node is held in pieces.
MEMORY = "4GB"


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
    check: int = CHECKED
    rps: float | None = None
    in_flight: int = IN_FLIGHT
    every: float = EVERY
    memory: str = MEMORY


@dataclass
class Output:
    """Where a fetch says what it does: ``say`` takes a line, ``progress`` a text and a share from 0 to 1."""

    say: Callable[[str], None] = print
    progress: Callable[[str, float], None] = field(default=lambda text, share: None)


def urls_of(given: Sequence[str] = ()) -> list[Secret]:
    """Return the URLs of nodes: those given, else NBEXT_RPC_URL, else the keyring's.

    Raises
    ------
    ConfigError
        There is none.
    """
    texts, trouble = " ".join(given) or os.environ.get(URL_VARIABLE, ""), ""
    if not texts.strip():
        texts, trouble = _from_keyring()
    found = [Secret(url) for url in re.split(r"[\s,]+", texts) if url]
    if not found:
        raise ConfigError(
            f"No node is set. Set {URL_VARIABLE} to its URL, or store it in the system's keyring: "
            f"`keyring set nbext {URL_VARIABLE}`.{trouble}"
        )
    return found


def _from_keyring() -> tuple[str, str]:
    """Return the URLs that the system's keyring has, or nothing and why it cannot be read."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return "", ' That needs `pip install "nbext[node]"`.'
    try:
        return keyring.get_password("nbext", URL_VARIABLE) or "", ""
    except (KeyringError, OSError, RuntimeError) as error:
        return "", f" The keyring cannot be read ({type(error).__name__})."


def addresses_of(
    contracts: Sequence[str], chain: Chain, fetched: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str | None]:
    """Return the addresses of contracts, and the standards of those that the package knows.

    ``fetched`` are the symbols of contracts that were fetched before, by address.

    Raises
    ------
    ValidationError
        A symbol is not known on the chain, or several contracts bear it; an address is not one.
    """
    from nbext.engine.sample.known import KNOWN

    here = [one for one in KNOWN if one.chain == chain.name]
    standards = {one.address: one.standard for one in here}
    found: dict[str, str | None] = {}
    for text in contracts:
        if looks_like_address(text) or text[:2].lower() == "0x":
            address = normalised(text, "contract")
        else:
            symbols = {**{one.address: one.symbol or "" for one in here}, **fetched}
            named = [
                address
                for address, symbol in symbols.items()
                if symbol.casefold() == text.casefold()
            ]
            if len(named) != 1:
                many = (
                    f"several contracts: {', '.join(map(checksummed, named))}." if named else None
                )
                near = did_you_mean(text, filter(None, symbols.values()))
                raise ValidationError.of(
                    "contract",
                    "ambiguous" if named else "unknown",
                    (
                        f"{quoted(text)} is the symbol of "
                        f"{many or f'no contract on {chain.name} that nbext knows or has fetched.{near}'} "
                        "Write the 0x... address: anyone can give a contract any symbol."
                    ),
                )
            address = named[0]
        found[address] = standards.get(address)
    return found


def check_installed() -> None:
    """Raise a `ConfigError` where a library of the extra ``node`` is missing."""
    if not all(importlib.util.find_spec(name) for name in ("duckdb", "ibis")):
        raise ConfigError(
            "A fetch ingests what it reads, and the libraries for that are not installed: pip install "
            '"nbext[node]"'
        )


def check_last_block(request: Request) -> None:
    """Refuse words that contradict each other on where to end."""
    if request.follow and request.to_block.isdecimal():
        raise ValidationError.of(
            "to_block",
            "follow",
            f"--follow has no last block, and --to-block {request.to_block} "
            "is one. Leave one of them out, or write --to-block latest or finalized.",
        )
    if request.confirmations is not None and request.to_block not in ("auto", "latest"):
        raise ValidationError.of(
            "confirmations",
            "to_block",
            f"--confirmations counts from the latest block, and "
            f"--to-block {request.to_block} names another last block. Leave one of them out.",
        )
