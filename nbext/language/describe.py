"""What people read of a request: its errors, gathered, and phrases of its plan in English.

`Report` gathers the errors, each with a JSON pointer that `at` extends. Phrases are names, numbers and windows;
the sentences are the conditions' own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.chains import CHAINS
from nbext.core.uint256 import units_text
from nbext.core.untrusted_text import visible
from nbext.engine.query.bounds import NO_BLOCKS, Blocks, Range
from nbext.errors import AmbiguousSymbol, FieldError, InvalidSegment, ValidationError

if TYPE_CHECKING:
    from nbext.engine.dataset import Contract

# Enough to correct a query by; a hostile body must not make an answer of a megabyte.
MOST = 50
_CHAIN_NAMES = {chain.id: chain.name for chain in CHAINS}


def chain_name(chain_id: int) -> str:
    """Return a chain's name, or its CAIP-2 identifier where it has none here."""
    return _CHAIN_NAMES.get(chain_id, f"eip155:{chain_id}")


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
    known = contract.decimals is not None and 0 <= contract.decimals <= 255
    return contract.decimals if known else None


def amount(within: Range, name: str, written: Callable[[int], str]) -> str:
    """Return bounds of a balance. Without a lower bound, some is meant: the smallest unit would say nothing."""
    # "at least 0.000000000000000001 UNI" is true, and nobody would read on.
    if within.low == 1 and within.high is None:
        return name
    if within.low == 1 and within.high is not None and within.high > 1:
        return f"some {name}, at most {written(within.high)}"
    return f"{number(within, written)} {name}"


def number(within: Range, written: Callable[[int], str] = str) -> str:
    """Return bounds of a number."""
    low, high = within.low, within.high
    if high is None:
        return "any number of" if low == 0 else f"at least {written(low)}"
    return f"exactly {written(low)}" if low == high else f"from {written(low)} to {written(high)}"


def listed(names: Sequence[str]) -> str:
    """Return a list, its first three members by name."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def window(blocks: Blocks) -> str:
    """Return bounds in blocks."""
    if blocks == NO_BLOCKS:
        return " in no block of the data"
    first = "" if blocks.first is None else f" from block {blocks.first:,}"
    return first + ("" if blocks.last is None else f" up to block {blocks.last:,}")


def on_chain(chain_id: int, at: int | None = None) -> str:
    """Return where something holds, and when: on a chain, as of a block where history is asked."""
    return f" on {chain_name(chain_id)}" + ("" if at is None else f" as of block {at:,}")


def excluding(exclude: tuple[str, ...]) -> str:
    """Return whom a segment leaves out, where it is not the burn addresses alone."""
    if exclude == tuple(sorted(BURN_ADDRESSES)):
        return ""
    return f"; without {listed(exclude)}" if exclude else "; burn addresses too"


@dataclass
class Report:
    """The errors found so far."""

    errors: list[FieldError] = field(default_factory=list)
    candidates: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, pointer: str, code: str, detail: str) -> None:
        """Add one error."""
        if len(self.errors) < MOST:
            self.errors.append({"pointer": pointer, "code": code, "detail": detail})

    def take(self, error: ValidationError) -> None:
        """Add the errors that a reader raised."""
        for one in error.errors:
            self.add(one["pointer"], one["code"], one["detail"])

    def ambiguous(self, pointer: str, detail: str, candidates: list[Mapping[str, Any]]) -> None:
        """Add a symbol that several contracts have."""
        self.add(pointer, "ambiguous-symbol", detail)
        self.candidates.extend(one for one in candidates if one not in self.candidates)

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
        if all(error["code"] == "ambiguous-symbol" for error in self.errors):
            raise AmbiguousSymbol(self.errors, self.candidates)
        raise InvalidSegment(self.errors)


def at(pointer: str, key: object) -> str:
    """Return the JSON pointer (RFC 6901) of a member."""
    return f"{pointer}/{visible(str(key)[:80], None).replace('~', '~0').replace('/', '~1')}"
