"""The page of the segment language: every group, condition, scope key and field."""

from __future__ import annotations

import json
from typing import Any

from nbext.language.conditions import CONDITIONS, GROUPS, SCOPE
from nbext.language.conditions.condition import Condition
from nbext.language.fields import MAX_CONDITIONS, MAX_DEPTH, MAX_LIST, Field
from tests.notebook.shells import Shell
from tests.reference import table
from tests.reference.shown import output, sample, transcript

_HEAD = """# The segment language

A segment is a JSON object of conditions. `operator` (AND, the default, or OR) joins the direct children of the
object. Every key is a child; a list under a key is several children; inside groups, several keys mean AND. Unknown
keys, empty groups and an empty object are errors, never ignored.

Each example is whole: `%segment EXAMPLE --count` gives the number of wallets beside it, over the sample.

"""

# What the fields do not say by themselves.
RULES = (
    'Amounts are decimal texts in the token\'s own unit, exact to the last digit; `"unit": "raw"` takes the '
    "smallest unit, and is the only way where the data does not have a token's decimals. More decimals than the token "
    "has is an error. A float from Python counts by the digits that Python shows of it (`0.1 + 0.2` is "
    "0.30000000000000004): write a text or a Decimal. Bounds are inclusive.",
    'A bound without `min` starts above zero: `{"max": "10"}` asks for wallets that hold some and at most 10. Only an '
    'explicit `"min": 0` also matches wallets that hold none: every wallet seen that is not outside the bounds. '
    "What transfers moved, `amount` and `total`, starts at zero: a transfer of nothing is one.",
    "Wallets seen are those that the data shows (up to `asOf`) on a chain of the segment's conditions: by a transfer, "
    "by a holder snapshot, or as an NFT's owner from the beginning. A segment without such a condition has its own "
    "chain. A `not` that stands alone, or in an OR, means: every wallet seen that does not match it.",
    "Times are ISO-8601 in UTC, or spans such as `90d`, `12h` and `4w` that count back from the data's last block, "
    "or from `asOf` where there is one, or block numbers. A date without a time of day is its whole day: `after` "
    "and `heldSince` begin at its 00:00, "
    "`before` and `asOf` end with it. A window that begins over an hour before the data does is answered from its "
    "first block on, with a note. They do not depend on the time of day: the answer says which block it is for. "
    "`asOf` is one moment for every chain; a block number is one of the segment's own chain: that of its `chain`; "
    "without it Ethereum, or where every condition names another, the first of these.",
    "A balance is the one at the end of a block: `heldSince` looks at every block from then on, and not at what "
    "came and went within one. An ERC721's owner is whoever it was last sent to; whoever sends one that the data has "
    "not seen before, or more of an ERC1155's id than came to them, counts as its owner from the beginning. Apart from "
    "that, `asOf` answers as if the data ended there.",
    "A contract whose balances begin with a holder snapshot has none before its block: `asOf` and `heldSince` there "
    "are errors, for `distinct` before the snapshot of any of the chain's collections. A snapshot that names a wallet "
    "has seen it at its block, as a transfer does.",
    "A date needs block times: where the blocks around it have none in the data, it is an error, and a block number is "
    "not.",
    "A transfer to oneself is one transfer. A mint comes from the zero address; a burn goes there or to 0x...dEaD.",
    "A contract is named by its address or its symbol. A symbol that several contracts have is refused with the "
    "candidates. Addresses may be written in any case; a mixed-case address must carry its right EIP-55 checksum.",
    "A condition may name its own chain, so a segment may cross chains: a wallet is the same address on each.",
    "A saved segment has its own chain, `exclude` and, where it has one, `asOf`; its limit does not matter.",
    f"At most {MAX_CONDITIONS} conditions, those of saved segments counted, groups {MAX_DEPTH} deep; a list has at "
    + f"most {MAX_LIST:,} members, "
    + ", ".join(
        f"`{field.name}` {field.most:,}"
        for condition in CONDITIONS.values()
        for field in condition.fields
        if field.most != MAX_LIST
    )
    + ".",
    "Rows are ordered by address, or by the column that `orderBy` names, and then by address: a limit returns the same "
    "wallets on every engine. Amounts are ordered exactly; `UNI_balance` and `UNI_balance_raw` are one order. A wallet "
    "without the amount has 0. `amount` stands for the only amount of the rows: a balance, a count of NFTs or "
    "`transferred`.",
    "`columns` describe a wallet on one chain: the segment's own, or, where no condition is on that one, the chain of "
    "the first condition. `firstSeen` and `lastSeen` are times to the second in UTC: `datetime64[s, UTC]` in a "
    "DataFrame, `timestamp[s]` in Arrow, ISO-8601 in JSON and CSV. They and `activeDays` are missing for a wallet that "
    "was not seen on that chain, and come last. A time is missing, too, where its block has none in the data; a note "
    "says that there are such blocks.",
    "Of the one transfer condition that is under no `not`, `transferred` is the sum of what the transfers that fit it "
    "moved (an amount as a balance is: `transferred` and `transferred_raw`; of NFTs the exact number alone), "
    "`transferCount` their number, and `firstTransfer` and `lastTransfer` are their times, missing where there is "
    "none. `transfers` is the number of all transfers on the chain.",
    "`share` adds `UNI_share` for each balance: the exact amount divided by the token's `totalSupply`, as the nearest "
    "float64. A supply is known where a file or a node states it, or where the contract was deployed within the data. "
    "As of an earlier time it is what wallets held then, and known only where what they hold at the end is "
    "`totalSupply`. Where it is not known, or less than what wallets hold, shares are missing, and a note says why.",
)
# Every field and key in a segment that matches wallets of the sample.
EXAMPLES: dict[str, tuple[dict[str, Any], ...]] = {
    "top": (
        {"token": {"token": "USDC"}, "chain": "base"},
        {"token": {"token": "UNI"}, "asOf": "2025-06-30"},
        {"token": {"token": "UNI"}, "asOf": "30d"},
        {"token": {"token": "UNI"}, "asOf": 23_000_000},
        {"nft": {"nft": "BAYC"}, "exclude": []},
        {"nft": {"nft": "BAYC"}, "exclude": ["burn", "0x004dba03a664da9956360e4f3be73995389012ea"]},
    ),
    "groups": (
        {"all": [{"token": {"token": "UNI"}}, {"nft": {"nft": "BAYC"}}]},
        {"any": [{"token": {"token": "UNI"}}, {"nft": {"nft": "BAYC"}}]},
        {"token": {"token": "UNI"}, "not": {"nft": {"nft": "BAYC"}}},
        {"token": {"token": "UNI"}, "not": [{"nft": {"nft": "BAYC"}}, {"nft": {"nft": "AZUKI"}}]},
    ),
    "token": (
        {"token": {"token": "UNI"}},
        {
            "token": {
                "token": "0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984",
                "balance": {"min": "1000"},
            }
        },
        {"token": {"token": "UNI", "balance": {"max": "10"}}},
        {"token": {"token": "UNI", "balance": {"min": 0, "max": "10"}}},
        {"token": {"token": "USDC", "balance": {"min": "1000000000"}, "unit": "raw"}},
        {"token": {"token": "USDC", "chain": "base"}},
        {"token": {"token": "UNI", "balance": {"min": "1000"}, "heldSince": "90d"}},
        {"token": {"token": "UNI", "balance": {"min": "1000"}, "heldSince": "2025-06-01"}},
    ),
    "nft": (
        {"nft": {"nft": "BAYC"}},
        {"nft": {"nft": "0xBC4CA0EdA7647A8aB7C2061c2E118A18a936f13D", "count": {"min": 2}}},
        {"nft": {"nft": "BAYC", "tokenIds": [1, 2, "3"]}},
        {"nft": {"nft": "BAYC", "heldSince": "90d"}},
        {"nft": {"nft": "OKGO", "chain": "base"}},
    ),
    "collections": (
        {"collections": {"of": ["BAYC", "MAYC", "AZUKI"]}},
        {"collections": {"of": ["BAYC", "MAYC", "AZUKI"], "atLeast": 2}},
        {"collections": {"distinct": {"min": 5}}},
        {"collections": {"distinct": {"min": 2}, "chain": "polygon"}},
    ),
    "transfer": (
        {"transfer": {"token": "USDC"}},
        {
            "transfer": {
                "direction": "in",
                "token": "USDC",
                "total": {"min": "10000"},
                "after": "90d",
            }
        },
        {
            "transfer": {
                "direction": "out",
                "token": "USDC",
                "amount": {"min": "10000"},
                "before": "2025-06-30",
            }
        },
        {
            "transfer": {
                "direction": "in",
                "token": "USDC",
                "amount": {"min": "10000000000"},
                "unit": "raw",
            }
        },
        {"transfer": {"direction": "any", "token": "USDC", "count": {"min": 0, "max": 0}}},
        {"transfer": {"direction": "mint", "nft": "AZUKI", "count": {"min": 2}}},
        {"transfer": {"direction": "burn", "nft": "BAYC"}},
        {
            "transfer": {
                "direction": "in",
                "nft": "BAYC",
                "counterparty": "0x0000000000000000000000000000000000000000",
            }
        },
        {"transfer": {"count": {"min": 5}, "chain": "base"}},
    ),
    "activity": (
        {"activity": {"first": {"after": "90d"}}},
        {"activity": {"last": {"before": "180d"}}},
        {"activity": {"transfers": {"min": 10}}},
        {"activity": {"activeDays": {"min": 5}}},
        {
            "activity": {
                "first": {"before": "2025-06-30"},
                "transfers": {"min": 10},
                "chain": "base",
            }
        },
    ),
    "wallet": (
        {"wallet": {"in": ["0x00135e660b15338441c860dbc249773a1d9d7625"]}},
        {"wallet": {"contract": True}},
        {"token": {"token": "UNI"}, "wallet": {"contract": False}},
    ),
}
# These need something from the cells before them: rows in an order, a segment's id, a list's.
CELLS = {
    "top": (
        '%segment {"token": {"token": "UNI"}, "orderBy": "-UNI_balance", "columns": ["firstSeen", "transfers"]} '
        "--limit 2 -o largest\n"
        'largest[["address", "UNI_balance", "firstSeen", "transfers"]]',
        '%segment {"token": {"token": "UNI"}, "columns": ["share"], "orderBy": "-amount"} --limit 2',
        '%segment {"transfer": {"direction": "in", "token": "USDC", "after": "90d"}, "orderBy": "-amount", '
        '"columns": ["transferred", "transferCount", "lastTransfer"]} --limit 2',
    ),
    "wallet": (
        '%segment {"token": {"token": "UNI"}} --all -o uni',
        '%segment {"wallet": {"in": {{uni.address}}}, "nft": {"nft": "BAYC"}} --count',
        '%segment {"wallet": {"in": {{uni.address}}}} --dry-run',
        '%segment {"wallet": {"list": "ls_Rpn3GYeFIiyIS6GiUHDp2Ses"}, "nft": {"nft": "BAYC"}} --count',
    ),
    "segment": (
        '%segment {"token": {"token": "UNI"}} --all -o uni',
        '%segment {"segment": {"id": {{uni.attrs["nbext"]["segment_id"]}}}, "nft": {"nft": "BAYC"}} --count',
    ),
}
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
    "no-times": "a time where the data has no block times: on a whole chain, or for the blocks around it",
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
    with sample() as shell:
        return (
            _HEAD
            + "".join(f"* {rule}\n" for rule in RULES)
            + f"\n## At the top of the object\n\n{_fields(SCOPE)}{_shown(shell, 'top')}"
            + "\n## Groups\n\n"
            + table(["group", "what it means"], [[f"`{g.name}`", g.help] for g in GROUPS])
            + _shown(shell, "groups")
            + "".join(_condition(condition, shell) for condition in CONDITIONS.values())
            + "\n## What is refused\n\nEvery error has a JSON pointer to its place and one of these codes. "
            "All errors of a query are reported together.\n\n"
            + table(
                ["code", "what is wrong"], [[f"`{code}`", text] for code, text in CODES.items()]
            )
        )


def _condition(condition: type[Condition], shell: Shell) -> str:
    fields = f"{_fields(condition.fields)}{_together(condition)}"
    return f"\n## {condition.name}\n\n{condition.help}\n\n{fields}{_shown(shell, condition.name)}"


def _shown(shell: Shell, name: str) -> str:
    """Return the examples of a part of the language, with what they give."""
    rows = [
        [f"`{json.dumps(example)}`", _count(shell, example)] for example in EXAMPLES.get(name, ())
    ]
    counts = "\n" + table(["example", "wallets"], rows) if rows else ""
    cells = [(cell, output(shell, cell)) for cell in CELLS.get(name, ())]
    return counts + ("\n" + transcript(cells) if cells else "")


def _count(shell: Shell, example: dict[str, Any]) -> str:
    return f"{shell.value(f'%segment {json.dumps(example)} --count'):,}"


def _fields(fields: tuple[Field, ...]) -> str:
    rows = [
        [f"`{f.name}`{' (required)' if f.required else ''}", _meaning(f), _examples(f)]
        for f in fields
    ]
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
        f"* `{name}` only beside {' or '.join(f'`{other}`' for other in others)}."
        for name, others in condition.needs
    ]
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def _examples(field: Field) -> str:
    return ", ".join(map(_code, field.examples))


def _code(value: Any) -> str:
    return f"`{json.dumps(value)}`"
