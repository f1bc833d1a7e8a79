"""What people read of a request: its errors, gathered, and phrases of its plan in English.

`ErrorReport` gathers the errors, each with a JSON pointer. Phrases are names, numbers and windows; the sentences are
the conditions' own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import BURN_ADDRESSES, checksummed, looks_like_address
from nbext.core.chains import Chain, chain_of
from nbext.core.uint256 import units_text
from nbext.core.untrusted_text import shown, visible
from nbext.engine.query.amounts import NO_BLOCKS, Block, Range
from nbext.errors import (
    MOST_ERRORS,
    AmbiguousSymbol,
    FieldError,
    InvalidSegment,
    ValidationError,
    did_you_mean,
)

if TYPE_CHECKING:
    from nbext.engine.catalog import Catalog
    from nbext.engine.dataset import Contract

# A symbol may have thousands of copies, and a query names 200: an answer has no more candidates than this.
_MOST_CANDIDATES = 1_000


def chain_name(chain_id: int) -> str:
    """Return a chain's name."""
    return chain_of(chain_id).name


def find_contract(
    catalog: Catalog, chain: Chain, text: str, pointer: str, *, nft: bool
) -> Contract | None:
    """Return the contract at an address (in lower case), or of a symbol; None where the data has none.

    Raises
    ------
    AmbiguousSymbol
        Several contracts have the symbol, with the candidates.
    """
    if looks_like_address(text):
        return catalog.contract(chain.id, text)
    found = catalog.by_symbol(chain.id, text, nft=nft)
    # Never the "best" of several: a copy of USDC with the same symbol is the commonest fraud there is.
    if len(found) > 1:
        # A popular symbol has hundreds of copies: five are named.
        some = ", ".join(checksummed(contract.address) for contract in found[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        detail = (
            f"{len(found)} contracts on {chain.name} have the symbol {shown(text)}: {some}{more}. "
            "Give the address."
        )
        candidates = [
            {"chain": chain.name, "address": one.address, "symbol": one.symbol, "name": one.name}
            for one in found
        ]
        error: FieldError = {"pointer": pointer, "code": "ambiguous-symbol", "detail": detail}
        raise AmbiguousSymbol([error], candidates=candidates)
    return found[0] if found else None


def unknown_contract(
    catalog: Catalog, chains: Iterable[int], chain: Chain, text: str, *, nft: bool
) -> str:
    """Return that the data has no contract of an address or a symbol on a chain, and what to write instead."""
    is_address, hint = looks_like_address(text), ""
    key, other = ("nft", "a token") if nft else ("token", "an NFT collection")
    # The commonest reason is a forgotten chain, so it is looked for on all of them.
    elsewhere = [
        chain_name(one)
        for one in chains
        if (catalog.contract(one, text) if is_address else catalog.by_symbol(one, text, nft=nft))
    ]
    if elsewhere:
        names = ", ".join(elsewhere)
        hint = f' It has one on {names}: name that chain, as in "chain": "{elsewhere[0]}".'
    elif not is_address and catalog.by_symbol(chain.id, text, nft=not nft):
        right = "token" if nft else "nft"
        hint = f' It is {other}: write "{right}" in filters, /v1/{right}s in a path, %{right} as a magic.'
    elif not is_address:
        hint = did_you_mean(text, catalog.symbols(chain.id, nft=nft))
    if not hint and " " in text:
        example = f'%{key} search "{visible(text, 80)}"'
        hint = f" It looks like a name: find it with /v1/search, or {example}, and write its symbol or its address."
    what = f"{'collection' if nft else 'token'} with the symbol {shown(text)}"
    what = f"contract {checksummed(text)}" if is_address else what
    return f"The data has no {what} on {chain.name}.{hint}"


def contract_name(contract: Contract) -> str:
    """Return a contract's symbol, made visible and short: it is a stranger's text; or its address."""
    return visible(contract.symbol or contract.address, 80)


def unit_of(contract: Contract) -> Callable[[int], str]:
    """Return what writes raw integers in the contract's unit; as they are where nobody knows the decimals."""
    decimals = decimals_of(contract)
    return str if contract.is_nft or decimals is None else partial(units_text, decimals=decimals)


def decimals_of(contract: Contract) -> int | None:
    """Return a contract's decimals; None where the data has none, or none that can be true."""
    # A contract can claim any number of decimals; the standard's type ends at 255.
    return contract.decimals if contract.decimals in range(256) else None


def amount_phrase(within: Range, name: str, written: Callable[[int], str]) -> str:
    """Return bounds of a balance. Without a lower bound, some is meant: the smallest unit would say nothing."""
    # "at least 0.000000000000000001 UNI" is true, and nobody would read on.
    if within.low == 1 and within.high is None:
        return name
    if within.low == 1 and within.high is not None and within.high > 1:
        return f"some {name}, at most {written(within.high)}"
    return f"{number_phrase(within, written)} {name}"


def number_phrase(within: Range, written: Callable[[int], str] = str) -> str:
    """Return bounds of a number."""
    low, high = within.low or 0, within.high
    if high is None:
        return "any number of" if low == 0 else f"at least {written(low)}"
    return f"exactly {written(low)}" if low == high else f"from {written(low)} to {written(high)}"


def first_three(names: Sequence[str]) -> str:
    """Return a list, its first three members by name."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def window_phrase(blocks: Range) -> str:
    """Return bounds in blocks."""
    if blocks == NO_BLOCKS:
        return " in no block of the data"
    first = "" if blocks.low is None else f" from block {block_phrase(blocks.low)}"
    return first + ("" if blocks.high is None else f" up to block {block_phrase(blocks.high)}")


def block_phrase(number: int) -> str:
    """Return a block's number, with the time that was written for it."""
    return f"{number:,}" + (f" ({number.written})" if isinstance(number, Block) else "")


def on_chain(chain_id: int, at: int | None = None) -> str:
    """Return where something holds, and when: on a chain, as of a block where history is asked."""
    return f" on {chain_name(chain_id)}" + (
        "" if at is None else f" as of block {block_phrase(at)}"
    )


def excluding(exclude: tuple[str, ...]) -> str:
    """Return whom a segment leaves out, where it is not the burn addresses alone."""
    if exclude == tuple(sorted(BURN_ADDRESSES)):
        return ""
    return f"; without {first_three(exclude)}" if exclude else "; burn addresses too"


def ordered(order_by: str | None) -> str:
    """Return the order of the rows, where it is not that of their addresses."""
    if order_by is None:
        return ""
    name = order_by.removeprefix("-")
    is_time = name.endswith(("Seen", "Transfer"))
    words = ("earliest", "latest") if is_time else ("smallest", "largest")
    return f"; ordered by {name}, {words[name != order_by]} first"


@dataclass
class ErrorReport:
    """The errors found so far: the first ones, and how many ``more`` there are."""

    errors: list[FieldError] = field(default_factory=list)
    more: int = 0
    _candidates: dict[tuple[Any, Any], Mapping[str, Any]] = field(default_factory=dict)
    _ambiguous: bool = True

    @property
    def full(self) -> bool:
        """Whether further errors are only counted: nothing is worded for them."""
        return len(self.errors) >= MOST_ERRORS

    def add(self, pointer: str, code: str, detail: str) -> None:
        """Add one error."""
        self._ambiguous = self._ambiguous and code == "ambiguous-symbol"
        if self.full:
            self.more += 1
        else:
            self.errors.append({"pointer": pointer, "code": code, "detail": detail})

    def unknown(self, pointer: str, key: object, what: str, allowed: Iterable[str]) -> None:
        """Add a key that is not allowed, as "Unknown condition 'tokn'. Did you mean ...": ``what`` has the ``{}``."""
        detail = ""
        # To find the nearest word takes longer than all else, and a body may have a hundred thousand such keys.
        if not self.full:
            hint = did_you_mean(str(key), allowed) or f" Allowed: {', '.join(allowed)}."
            detail = f"Unknown {what.format(shown(key))}.{hint}"
        self.add(pointer, "unknown-key", detail)

    def take(self, error: ValidationError) -> None:
        """Add the errors that a reader or a look-up raised."""
        for one in error.errors:
            self.add(one["pointer"], one["code"], one["detail"])
        self.more += error.more
        if isinstance(error, AmbiguousSymbol):
            for candidate in error.candidates[: _MOST_CANDIDATES - len(self._candidates)]:
                key = (candidate["chain"], candidate["address"])
                self._candidates.setdefault(key, candidate)

    def close(self) -> None:
        """Raise what was found, or return.

        Raises
        ------
        AmbiguousSymbol
            Symbols that several contracts have are all that is wrong.
        InvalidSegment
            Anything else is.
        """
        if not self.errors:
            return
        if self._ambiguous:
            raise AmbiguousSymbol(self.errors, self.more, list(self._candidates.values()))
        raise InvalidSegment(self.errors, self.more)
