"""The formats that ingest knows (`formats.toml`): which one a file is of, by the names of its columns."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from nbext.core.untrusted_text import quoted, visible
from nbext.engine.ingest.files import Source

Holds = Literal["transfers", "tokens", "contracts", "blocks", "holders"]

# Any file may say which chain its rows are of: rows of another would be taken for those of --chain.
CHAIN_NAMES = ("chain_id", "chainid", "blockchain", "chain", "network")


@dataclass(frozen=True)
class Format:
    """One format of `formats.toml`, which says what these are."""

    name: str
    holds: Holds
    needs: Mapping[str, Sequence[str]]
    may: Mapping[str, Sequence[str]] = field(default_factory=dict)
    standard: str | None = None
    unit: str | None = None
    source: str | None = None

    @property
    def all(self) -> Mapping[str, Sequence[str]]:
        """The names of each column, required or not."""
        return {"chain_id": CHAIN_NAMES, "removed": ("removed",), **self.needs, **self.may}

    @property
    def needs_options(self) -> bool:
        """Return whether its rows are read by what the options say of tokens."""
        return self.holds == "holders" or (
            self.holds == "transfers" and ("amount" in self.needs or "contract" not in self.needs)
        )

    def described(self) -> str:
        """Return its columns in words, with their other names, and in brackets those that a file may lack."""
        needs, may = (["|".join(names) for names in of.values()] for of in (self.needs, self.may))
        return ", ".join(needs) + (f" [{', '.join(may)}]" if may else "")

    def columns(self, names: Iterable[str], renamed: Mapping[str, str]) -> dict[str, str] | None:
        """Return which of the file's columns holds each of ours, or None if a required one is missing."""
        own = {name.lower(): name for name in names}
        if not self.may_have(own):
            return None
        # What the user says counts, also where the file has a column of that name, or of another that would do.
        mapped = {renamed[name]: own[name] for name in own if name in renamed}
        spelled = {name: own[name] for name in own if name not in renamed} | mapped
        found = {
            ours: next(
                spelled[name] for name in (*filter(mapped.get, theirs), *theirs) if name in spelled
            )
            for ours, theirs in self.all.items()
            if not spelled.keys().isdisjoint(theirs)
        }
        return found if self.needs.keys() <= found.keys() else None

    def may_have(self, spelled: Iterable[str]) -> bool:
        """Return whether a file with these columns (lower case) may be of this format: holders have no two sides."""
        return self.holds != "holders" or not any(sides <= set(spelled) for sides in _SIDES)


# Columns of which a table of anybody's may have another: the sender of a transfer beside that of its transaction.
_ADDRESSES = ("sender", "recipient", "address", "contract")
# Of transfers, whatever else a row of them has.
_SIDES = ({"from", "to"}, {"from_address", "to_address"})


# What a quiet day's export may be.
EMPTY = Format("empty file", "tokens", {})
# Tables of anybody's own, by --map: no file resembles one of them.
OWN = "a table of transfers"


@cache
def formats() -> tuple[Format, ...]:
    """Return the formats that are recognised, in the order in which they are tried."""
    listed = tomllib.loads(Path(__file__).with_name("formats.toml").read_text("utf-8"))
    return tuple(Format(**one) for one in listed["format"])


def column_names() -> list[str]:
    """Return what a column may be renamed to."""
    return sorted({name for one in formats() for names in one.all.values() for name in names})


def recognise(
    names: Sequence[str], renamed: Mapping[str, str] = {}
) -> tuple[Format, dict[str, str]] | None:
    """Return the format of a file with these columns, and which column holds what; None if no format fits.

    ``renamed`` has the name that a known format has for a column (lower case) of this file, or the other way round.
    """
    renamed = _oriented(names, renamed)
    return next(
        (
            (kind, columns)
            for kind in formats()
            if (columns := kind.columns(names, renamed)) is not None
        ),
        None,
    )


# What stands in a row and not in a header: a number, a hex text, a time.
_VALUE = re.compile(r"0[xX][0-9a-fA-F]*|[+-]?\d[\d.,eE+-]*|\d{4}-\d\d-\d\d.*")

# An address, or the hash of a transaction or block.
_HASH = re.compile(r"0[xX]([0-9a-fA-F]{40}|[0-9a-fA-F]{64})")
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


# The coin's own transactions look like transfers of tokens: they have a sender, a recipient and a contract's address.
_OF_COINS = re.compile(r"parenttx.*|(value_(in|out)|txnfee)\(.*")


def _oriented(names: Iterable[str], renamed: Mapping[str, str]) -> dict[str, str]:
    """Return a known name for each of a file's columns that --map names, on whichever side of its =."""
    own, ours = {name.lower() for name in names}, column_names()
    return {
        right if turned else left: left if turned else right
        for left, right in renamed.items()
        for turned in [left in ours and (right not in ours or (left not in own and right in own))]
    }


def recognised(
    source: Source, names: list[str], renamed: Mapping[str, str]
) -> tuple[Format, dict[str, str]]:
    if any(_OF_COINS.fullmatch(name.strip().lower()) for name in names):
        raise source.fault(
            "these are transactions of the chain's own coin, not transfers of tokens. "
            'On the address\'s page, download those of the tab "Token Transfers".'
        )
    renamed = _oriented(names, renamed)
    if missing := renamed.keys() - {name.lower() for name in names}:
        theirs = min(missing)
        raise source.fault(
            _separated(names)
            or f"it has no column {quoted(theirs)}, which --map names. Found: {_shown(names)}."
            f"{token_advice(renamed[theirs])}"
        )
    found = recognise(names, renamed)
    if found is None:
        # Columns that --map names anew hide others of that name.
        now = [renamed.get(name.lower(), name) for name in names]
        raise source.fault(_closest(now, mapped=bool(renamed)))
    kind, columns = found
    for ours, name in columns.items():
        plain = name.lower()
        if plain == "row":
            raise source.fault(
                f"--map names {quoted(name)}, by which nbext numbers the rows. Rename the column."
            )
        # Beside a column that --map names, those that it does not name do not count.
        beside = (
            renamed if plain in renamed else {one.lower(): one.lower() for one in names} | renamed
        )
        # Other formats have an address in several columns, and it is the same in all.
        fitting = kind.all[ours] if kind.needs_options and ours in _ADDRESSES else [beside[plain]]
        alike = [quoted(one) for one in names if beside.get(one.lower()) in fitting]
        if len(alike) > 1:
            raise source.fault(
                f"columns {' and '.join(alike)} could each be its {ours}. Rename all but one."
            )
    return found


def _shown(names: list[str]) -> str:
    return visible(", ".join(names[:20]), 300)


def token_advice(ours: str) -> str:
    """Return what to write where --map names a column of tokens that a file does not have."""
    one_token = ours in (
        "token",
        "contract",
        "contract_address",
        "contractaddress",
        "token_address",
    )
    return " The one token of a whole file is given by --token UNI." if one_token else ""


def _separated(names: list[str]) -> str | None:
    """Return that a file's columns are not separated by commas, where that is so."""
    mark = next((one for one in _SEPARATORS if len(names) == 1 and one in names[0]), None)
    return (
        mark and f"its columns are separated by {_SEPARATORS[mark]}. nbext reads CSV with commas."
    )


def _closest(names: list[str], *, mapped: bool) -> str:
    """Return what a file lacks of the format that it resembles most; of one that is ``mapped``, of any at all."""
    spelled, found = {name.lower() for name in names}, _shown(names)
    # A header of addresses, hashes and numbers is the first row: no format has such a column.
    if names and (
        all(_VALUE.fullmatch(name.strip()) for name in names)
        or any(_HASH.fullmatch(name.strip()) for name in names)
    ):
        return (
            f"the file has no header: its first line is {found}. Write the columns' names above it."
        )
    if separated := _separated(names):
        return separated
    if any(name != name.strip() for name in names) and recognise([name.strip() for name in names]):
        return f"there are spaces around the names of its columns, {found}. Write them, and the rows, without."
    lacking = [
        (kind, [other[0] for other in kind.needs.values() if spelled.isdisjoint(other)])
        for kind in formats()
        if kind.may_have(spelled) and (mapped or not kind.name.startswith(OWN))
    ]
    kind, missing = min(lacking, key=lambda each: len(each[1]) / len(each[0].needs))
    columns = " and ".join(f'"{column}"' for column in missing)
    # Any CSV has a column called "address" or "name": most of a format's columns make a resemblance.
    if len(missing) * 2 < len(kind.needs):
        return (
            f"this looks like {kind.name}, but has no column {columns}. Found: {found}. "
            f"If one of them holds it, map it: --map theirs={missing[0]}."
        )
    nearest = f"no known format has these columns: {found}. The nearest is {kind.name}, which also needs {columns}"
    if len(missing) == len(kind.needs):
        plain = next(one for one in formats() if one.name == OWN)
        needed = " and ".join(f'"{other[0]}"' for other in plain.needs.values())
        nearest = (
            f"no known format has any of these columns: {found}. Transfers, for one, need {needed}"
        )
    return (
        f"{nearest}. If they are there by other names, map them: --map theirs=ours. `nbext ingest --help` lists "
        "all formats."
    )
