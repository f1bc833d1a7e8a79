"""The page of the segment language: every group, condition, scope key and field."""

from __future__ import annotations

import json
from typing import Any

from nbext.language.conditions import CONDITIONS
from nbext.language.conditions.condition import Condition
from nbext.language.fields import GROUPS, MAX_CONDITIONS, MAX_DEPTH, MAX_LIST, SCOPE, Field
from tests.reference import table

_HEAD = """# The segment language

A segment is a JSON object of conditions. `operator` (AND, the default, or OR) joins the direct children of the
object. Every key is a child; a list under a key is several children; inside groups, several keys mean AND. Unknown
keys, empty groups and an empty object are errors, never ignored.

"""

# What the fields do not say by themselves.
RULES = (
    "Amounts are decimal texts in the token's own unit, exact to the last digit; `\"unit\": \"raw\"` takes the "
    "smallest unit, and is the only way where the data does not have a token's decimals. More decimals than the token "
    "has is an error. A float from Python counts by the digits that Python shows of it (`0.1 + 0.2` is "
    "0.30000000000000004): write a text or a Decimal. Bounds are inclusive.",
    'A bound without `min` starts above zero: `{"max": "10"}` asks for wallets that hold some and at most 10. Only an '
    'explicit `"min": 0` also matches wallets that hold none: every wallet seen that is not outside the bounds.',
    "Wallets seen are those with a transfer on a chain of the segment's conditions (up to `asOf`); a segment without "
    "such a condition has its own chain. `not` beside OR, or alone, is all wallets seen but those.",
    "Times are ISO-8601 in UTC, or spans such as `90d`, `12h` and `4w` that count back from the data's last block, or "
    "block numbers. A date without a time of day is its whole day: `after` and `heldSince` begin at its 00:00, "
    "`before` and `asOf` end with it. They do not depend on the time of day: the answer says which block it is for. "
    "`asOf` is one moment for every chain; a block number is one of the segment's own chain.",
    "A balance is the one at the end of a block: `heldSince` looks at every block from then on, and not at what "
    "came and went within one. An ERC721's owner is whoever it was last sent to; whoever sends one that the data has "
    "not seen before counts as its owner from the beginning.",
    "A transfer to oneself is one transfer. A mint comes from the zero address; a burn goes there or to 0x...dEaD.",
    "A contract is named by its address or its symbol. A symbol that several contracts have is refused with the "
    "candidates. Addresses may be written in any case; a mixed-case address must carry its right EIP-55 checksum.",
    "A condition may name its own chain, so a segment may cross chains: a wallet is the same address on each.",
    "A saved segment has its own chain, `exclude` and, where it has one, `asOf`; its limit does not matter.",
    f"At most {MAX_CONDITIONS} conditions, those of saved segments counted, groups {MAX_DEPTH} deep, {MAX_LIST:,} "
    "members of a list.",
    "Rows are ordered by address, or by the column that `orderBy` names, and then by address: a limit returns the same "
    "wallets on every engine. Amounts are ordered exactly; `UNI_balance` and `UNI_balance_raw` are one order. A wallet "
    "without the amount has 0.",
    "`columns` are of the segment's chain, or where no condition is on it, of the first condition's. `firstSeen` and "
    "`lastSeen` are times to the second in UTC: `datetime64[s, UTC]` in a DataFrame, `timestamp[s]` in Arrow, ISO-8601 "
    "in JSON and CSV. They and `activeDays` are missing for a wallet that was not seen on that chain, and come last.",
)
# What is wrong, in one word for programs.
CODES = {
    "address": "not an address",
    "ambiguous-symbol": "several contracts have the symbol; `candidates` lists them",
    "chain": "an unknown chain, or one without data",
    "checksum": "a mixed-case address whose EIP-55 checksum does not match",
    "column": "an order by a column that the rows do not have",
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
    "twice": "a contract or a column that is in a list twice",
    "type": "a value of the wrong type",
    "unknown-contract": "a contract that the data does not have",
    "unknown-list": "a list of wallets that is not stored here (any more)",
    "unknown-key": "an unknown condition or field",
    "unknown-segment": "a segment that is not saved here",
    "unknown-symbol": "a symbol that no contract of the data has",
}


def page() -> str:
    """Return the page."""
    return (
        _HEAD
        + "".join(f"* {rule}\n" for rule in RULES)
        + "\n## At the top of the object\n\n"
        + _fields(SCOPE)
        + "\n## Groups\n\n"
        + table(["group", "what it means", "example"], [[f"`{g.name}`", g.help, _code(g.examples[0])] for g in GROUPS])
        + "".join(_condition(condition) for condition in CONDITIONS.values())
        + "\n## What is refused\n\nEvery error has a JSON pointer to its place and one of these codes. "
        "All errors of a query are reported together.\n\n"
        + table(["code", "what is wrong"], [[f"`{code}`", text] for code, text in CODES.items()])
    )


def _condition(condition: type[Condition]) -> str:
    examples = "\n".join(json.dumps({condition.name: example}) for example in condition.examples)
    return (
        f"\n## {condition.name}\n\n{condition.help}\n\n{_fields(condition.fields)}{_together(condition)}"
        f"\n```json\n{examples}\n```\n"
    )


def _fields(fields: tuple[Field, ...]) -> str:
    rows = [[f"`{f.name}`{' (required)' if f.required else ''}", _meaning(f), _examples(f)] for f in fields]
    return table(["field", "what it means", "examples"], rows)


def _meaning(field: Field) -> str:
    choices = f" One of {', '.join(f'`{c}`' for c in field.choices)}." if field.choices else ""
    unit = f" Counted in {field.unit}." if field.unit and field.unit != "token" else ""
    unit = " In the token's unit." if field.unit == "token" else unit
    default = "" if field.default is None else f" Default: {_code(field.default)}."
    return f"{field.help}{choices}{unit}{default}"


def _together(condition: type[Condition]) -> str:
    lines = [f"* Not both `{one}` and `{other}`." for one, other in condition.exclusive]
    lines += [
        f"* `{name}` only beside {' or '.join(f'`{other}`' for other in others)}." for name, others in condition.needs
    ]
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def _examples(field: Field) -> str:
    return ", ".join(map(_code, field.examples))


def _code(value: Any) -> str:
    return f"`{json.dumps(value)}`"
