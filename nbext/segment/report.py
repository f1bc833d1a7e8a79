"""Errors of one request, gathered so that all are reported together, each with a JSON pointer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbext.errors import AmbiguousSymbol, FieldError, InvalidSegment, ValidationError

# Enough to mend a query by; a hostile body must not make an answer of a megabyte.
MOST = 50


@dataclass
class Report:
    """The errors found so far."""

    errors: list[FieldError] = field(default_factory=list)
    candidates: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, pointer: str, code: str, detail: str) -> None:
        """Note one error."""
        if len(self.errors) < MOST:
            self.errors.append({"pointer": pointer, "code": code, "detail": detail})

    def take(self, error: ValidationError) -> None:
        """Note the errors that a reader raised."""
        for one in error.errors:
            self.add(one["pointer"], one["code"], one["detail"])

    def ambiguous(self, pointer: str, detail: str, candidates: list[Mapping[str, Any]]) -> None:
        """Note a symbol that several contracts bear."""
        self.add(pointer, "ambiguous-symbol", detail)
        self.candidates.extend(candidates)

    def close(self) -> None:
        """Raise what was found, or return.

        Raises
        ------
        AmbiguousSymbol
            Symbols that several contracts bear are all that is wrong.
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
    return f"{pointer}/{plain(str(key)).replace('~', '~0').replace('/', '~1')}"


def plain(text: str) -> str:
    """Return a text short enough for a message, without lone surrogates, which no JSON encoder takes."""
    short = text if len(text) <= 80 else text[:77] + "..."
    return short.encode("utf-8", "backslashreplace").decode()


def shown(value: object) -> str:
    """Return a value as an error message shows it."""
    if isinstance(value, str):
        return repr(plain(value))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    # A number of a million digits would take its time to be written.
    if isinstance(value, int) and value.bit_length() > 300:
        return "a number of more than 90 digits"
    return plain(str(value))
