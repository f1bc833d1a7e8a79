"""Errors of one request, gathered so that all are reported together, each with a JSON pointer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbext.core.untrusted_text import visible
from nbext.errors import AmbiguousSymbol, FieldError, InvalidSegment, ValidationError

# What is wrong, in one word for programs.
CODES = {
    "address": "not an address",
    "ambiguous-symbol": "several contracts have the symbol; `candidates` lists them",
    "chain": "an unknown chain, or one without data",
    "checksum": "a mixed-case address whose EIP-55 checksum does not match",
    "choice": "not one of the allowed words",
    "decimals": "more decimals than the token has, or a token whose decimals are unknown",
    "depth": "groups nested too deep",
    "empty": "an object or a list with nothing to match",
    "empty-group": "filters or a group without a condition",
    "exclusive": "fields that do not go together",
    "needs": "a field that needs another beside it",
    "no-times": "a time on a chain without block times in the data",
    "range": "a number or a time out of range",
    "required": "a required field that is missing",
    "size": "too many conditions, or too long a list",
    "standard": "a token where a collection is expected, or the reverse",
    "symbol": "not a symbol",
    "twice": "a contract that is in a list twice",
    "type": "a value of the wrong type",
    "unknown-contract": "a contract that the data does not have",
    "unknown-key": "an unknown condition or field",
    "unknown-segment": "a segment that is not saved here",
    "unknown-symbol": "a symbol that no contract of the data has",
}
# Enough to correct a query by; a hostile body must not make an answer of a megabyte.
MOST = 50


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
