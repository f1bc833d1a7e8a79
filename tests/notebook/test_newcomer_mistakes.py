# ruff: noqa: E501 - whole messages, as they are shown
"""What newcomers get wrong, and the whole of what they read then: each message alone must be enough to mend it."""

from __future__ import annotations

import shutil

import pandas as pd
import pytest

import nbext
from nbext.language.conditions import CONDITIONS, GROUPS, SCOPE
from nbext.notebook.run.root import COMMANDS
from nbext.settings import SETTINGS

EVERY_CONDITION = ", ".join([*CONDITIONS, *(group.name for group in GROUPS)])
EVERY_KEY = ", ".join([EVERY_CONDITION, *(field.name for field in SCOPE)])
EVERY_SETTING = ", ".join(setting.name for setting in SETTINGS)
_PAYOUT = 'UsageError: %segment: --payout takes total, of, rule, and NAME=VALUE of cap, floor, at_least, to, each once. Example: --payout "1000000 UNI proportional cap=500"'

# name: (the cell, the error as the notebook shows it)
MISTAKES = {
    "a cell magic written with one percent sign": (
        """%segment_query {"token": {"token": "UNI"}}""",
        "UsageError: %segment_query is a cell magic. Write %%segment_query as the first line of a cell, and the filters as JSON below it. On one line: %segment {filters}",
    ),
    "a line magic written with two percent signs": (
        """%%token
ethereum USDC""",
        "UsageError: %%token is not a cell magic. Write it on one line, with one percent sign: %token ethereum USDC",
    ),
    "a cell that is empty below its first line": (
        "%%segment_query whales",
        """UsageError: %%segment_query: the cell has no filters. Write them as JSON below the first line, such as {"token": {"token": "USDC"}}""",
    ),
    "a cell of a blank line and its first line": (
        "\n%%segment_query whales",
        """UsageError: %%segment_query: the cell has no filters. Write them as JSON below the first line, such as {"token": {"token": "USDC"}}""",
    ),
    "filters on the first line": (
        """%%segment_query {"token": {"token": "UNI"}}
""",
        """UsageError: %%segment_query: write the filters on the lines below. On one line: %segment {filters}
    %%segment_query {"token": {"token": "UNI"}}
                    ^""",
    ),
    "a Python dict": (
        """%%segment_query
{'wallet': {'contract': False}}""",
        """UsageError: JSON puts keys and strings in double quotes ("), not in single quotes (').
  line 2, column 2:
    {'wallet': {'contract': False}}
     ^
  As JSON (--run-corrected runs it):
    {"wallet": {"contract": false}}""",
    ),
    "a trailing comma": (
        """%%segment_query
{
  "token": {"token": "UNI"},
}""",
        """UsageError: JSON has no trailing comma. Delete the comma before }.
  line 3, column 28:
      "token": {"token": "UNI"},
                               ^
  As JSON (--run-corrected runs it):
    {"token": {"token": "UNI"}}""",
    ),
    "a comment": (
        """%%segment_query
{"token": {"token": "UNI"}}  # the governance token""",
        """UsageError: JSON has no comments. Delete # and what follows it.
  line 2, column 30:
    {"token": {"token": "UNI"}}  # the governance token
                                 ^
  As JSON (--run-corrected runs it):
    {"token": {"token": "UNI"}}""",
    ),
    "a missing brace": (
        """%%segment_query
{"token": {"token": "UNI"}""",
        """UsageError: } is missing at the end: the { at line 2, column 1 is not closed.
  line 2, column 1:
    {"token": {"token": "UNI"}
    ^""",
    ),
    "a variable without braces": (
        """%%segment_query
{"wallet": {"in": wallets}}""",
        """UsageError: wallets is not a JSON value. Put a string in double quotes ("wallets"), a Python variable in double braces ({{wallets}}).
  line 2, column 19:
    {"wallet": {"in": wallets}}
                      ^""",
    ),
    "a variable in quotes": (
        """%%segment_query
{"wallet": {"in": "{{wallets}}"}}""",
        """UsageError: {{wallets}} is in quotes, so it would be sent as text. Remove the quotes: the Python value becomes JSON by itself.
  line 2, column 19:
    {"wallet": {"in": "{{wallets}}"}}
                      ^""",
    ),
    "a variable that does not exist": (
        """%%segment_query
{"wallet": {"in": {{walets}}}}""",
        """UsageError: 'walets' is not defined in this notebook. Did you mean 'wallets'?
  line 2, column 19:
    {"wallet": {"in": {{walets}}}}
                      ^""",
    ),
    "two conditions under one key": (
        """%%segment_query
{"token": {"token": "UNI"}, "token": {"token": "LINK"}}""",
        """UsageError: The key 'token' appears twice in one object, and only one could count. Leave one out; several conditions of one kind are a list: {"token": [..., ...]}.
  The first: line 2, column 2:
    {"token": {"token": "UNI"}, "token": {"token": "LINK"}}
     ^
  The second: line 2, column 29:
    {"token": {"token": "UNI"}, "token": {"token": "LINK"}}
                                ^""",
    ),
    "two keys of one name, one from Python": (
        """%%segment_query
{"token": {"token": "UNI"}, {{'tok' + 'en'}}: {"token": "LINK"}}""",
        """UsageError: The key 'token' appears twice in one object, and only one could count. Leave one out; several conditions of one kind are a list: {"token": [..., ...]}.
  line 2, column 29:
    {"token": {"token": "UNI"}, {{'tok' + 'en'}}: {"token": "LINK"}}
                                ^""",
    ),
    "a list that contains itself": (
        """%segment {"wallet": {"in": {{[whales.append(whales), whales][1]}}}}""",
        """InvalidSegment: /filters/wallet/in: 1 of 2 values of {{[whales.append(whales), whales][1]}} is not an address. Nothing was sent. Rows are counted from 0.
  row 1: "['0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', [...]]" is not an address. An address is 0x and 40 hex digits.
  line 1, column 13:
    {"wallet": {"in": {{[whales.append(whales), whales][1]}}}}
                ^""",
    ),
    "a list where a number belongs": (
        """%segment {"token": {"token": "UNI"}} --limit {{wallets}}""",
        """UsageError: %segment: {{wallets}} is a list, where one value belongs.
    %segment {"token": {"token": "UNI"}} --limit {{wallets}}
                                                 ^""",
    ),
    "a list in a file's name": (
        """%segment {"token": {"token": "UNI"}} --to rows_{{wallets}}.csv""",
        """UsageError: %segment: {{wallets}} is a list, where one value belongs.
    %segment {"token": {"token": "UNI"}} --to rows_{{wallets}}.csv
                                              ^""",
    ),
    "two times, on the line and in the cell": (
        """%%segment_query --as-of 30d
{"token": {"token": "UNI"}, "asOf": "3d"}""",
        'UsageError: --as-of on the line contradicts "asOf" in the cell. Write it once.',
    ),
    "a result named as JupySQL does": (
        """%%segment_query rows <<
{"token": {"token": "UNI"}}""",
        """UsageError: %%segment_query: unexpected argument '<<'. The name alone stores the result: %%segment_query rows
    %%segment_query rows <<
                         ^""",
    ),
    "a result named as JupySQL does, on a line": (
        """%segment rows << {"token": {"token": "UNI"}}""",
        """UsageError: %segment: unexpected argument '<<'. An option stores the result: %segment {...} -o rows
    %segment rows << {"token": {"token": "UNI"}}
                  ^""",
    ),
    "a hidden character in a key": (
        """%%segment_query
{"tok\u200ben": {"token": "UNI"}}""",
        """InvalidSegment: /filters/tok\\u200ben: Unknown condition 'tok\\u200ben'. Did you mean 'token'?
  line 2, column 2:
    {"tok\\u200ben": {"token": "UNI"}}
     ^""",
    ),
    "a variable as JupySQL has it": (
        """%segment {"token": {"token": "${asked}"}}""",
        """InvalidSegment: /filters/token/token: The data has no token with the symbol '${asked}' on ethereum. Write a Python value as {{asked}}, without quotes.
  line 1, column 12:
    {"token": {"token": "${asked}"}}
               ^""",
    ),
    "a misspelt condition": (
        """%%segment_query
{"tokn": {"token": "UNI"}}""",
        """InvalidSegment: /filters/tokn: Unknown condition 'tokn'. Did you mean 'token'?
  line 2, column 2:
    {"tokn": {"token": "UNI"}}
     ^""",
    ),
    "a misspelt field": (
        """%%segment_query
{"token": {"token": "UNI", "balance": {"minimum": "5"}}}""",
        """InvalidSegment: /filters/token/balance/minimum: Unknown field 'minimum' of balance. Did you mean 'min'?
  line 2, column 40:
    {"token": {"token": "UNI", "balance": {"minimum": "5"}}}
                                           ^""",
    ),
    "a symbol instead of a condition's fields": (
        """%%segment_query
{"token": "UNI"}""",
        """InvalidSegment: /filters/token: 'UNI' is not an object with the fields of "token". Write {"token": {"token": "UNI"}}.
  line 2, column 2:
    {"token": "UNI"}
     ^""",
    ),
    "a symbol typo": (
        """%%segment_query
{"token": {"token": "USCD"}}""",
        """InvalidSegment: /filters/token/token: The data has no token with the symbol 'USCD' on ethereum. Did you mean 'USDC'?
  line 2, column 12:
    {"token": {"token": "USCD"}}
               ^""",
    ),
    "an amount with too many decimals": (
        """%%segment_query
{"token": {"token": "USDC", "balance": {"min": 0.1234567}}}""",
        """InvalidSegment: /filters/token/balance/min: 0.1234567 has 7 decimals; USDC has 6. Round it: 0.123457.
  line 2, column 41:
    {"token": {"token": "USDC", "balance": {"min": 0.1234567}}}
                                            ^""",
    ),
    "a time in words": (
        """%%segment_query
{"token": {"token": "UNI", "heldSince": "last year"}}""",
        """InvalidSegment: /filters/token/heldSince: 'last year' is not a time. Write a date such as "2024-06-30" or "2024-06-30T12:00:00Z" (UTC), a span back from the last block or asOf such as "90d", "12h" or "4w", or a block number.
  line 2, column 28:
    {"token": {"token": "UNI", "heldSince": "last year"}}
                               ^""",
    ),
    "an operator among the filters": (
        """%%segment_query
{"operator": "OR", "token": {"token": "UNI"}}""",
        """InvalidSegment: /filters/operator: Unknown condition 'operator'. Allowed: """
        + EVERY_KEY
        + """. Write it on the first line (--operator), or beside the filters: {"operator": ..., "filters": {...}}.
  line 2, column 2:
    {"operator": "OR", "token": {"token": "UNI"}}
     ^""",
    ),
    "an unknown operator": (
        """%%segment_query --operator XOR
{"token": {"token": "UNI"}}""",
        """UsageError: %%segment_query: --operator: 'XOR' is not allowed. Did you mean 'OR'? Allowed: AND, OR.
    %%segment_query --operator XOR
                               ^""",
    ),
    "a limit beyond the highest": (
        """%%segment_query --limit 50,000,000
{"token": {"token": "UNI"}}""",
        """UsageError: --limit: 50000000 is not a limit. Write a whole number from 0 (count only) to 10,000,000.
    %%segment_query --limit 50,000,000
                            ^""",
    ),
    "an unknown option": (
        """%%segment_query whales --limt 5
{"token": {"token": "UNI"}}""",
        """UsageError: %%segment_query: unknown option '--limt'. Did you mean '--limit'?
    %%segment_query whales --limt 5
                           ^""",
    ),
    "a Python word as a name": (
        """%%segment_query class
{"token": {"token": "UNI"}}""",
        "UsageError: 'class' is a Python keyword. Choose another name for the result.",
    ),
    "a slip in the word search": (
        "%nft serch bored ape",
        """UsageError: %nft: unknown chain 'serch'. Did you mean: %nft search bored ape
    %nft serch bored ape
         ^""",
    ),
    "a limit of a request that is none": (
        """%%segment_query
{"filters": {"token": {"token": "UNI"}},
 "limit": "many"}""",
        """ValidationError: /limit: 'many' is not a limit. Write a whole number from 0 (count only) to 10,000,000, or "all".
  line 3, column 2:
     "limit": "many"}
     ^""",
    ),
    "an unknown chain": (
        "%token etherium USDC",
        "ValidationError: chain: Unknown chain 'etherium'. Did you mean 'ethereum'? Allowed: ethereum, optimism, bnb, gnosis, polygon, fantom, zksync, polygon-zkevm, mantle, base, arbitrum, arbitrum-nova, celo, avalanche, linea, blast, scroll, zora, sepolia, or a chain id such as 137 or eip155:137.",
    ),
    "a chain left out": (
        "%token USDC",
        """UsageError: %token: the chain is missing. Write: %token ethereum USDC
    %token USDC
           ^""",
    ),
    "address and chain the wrong way round": (
        "%token 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48 ethereum",
        """UsageError: %token: the chain goes before the address. Write: %token ethereum 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48
    %token 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48 ethereum
           ^""",
    ),
    "a slip in an address": (
        "%token ethereum 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eb48",
        "ValidationError: address: The checksum of 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eb48 does not match: a letter may be mistyped. If the digits are right, write 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48.",
    ),
    "an address that is too short": (
        "%token ethereum 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB4",
        "ValidationError: address: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB4' is not an address. An address is 0x and 40 hex digits.",
    ),
    "a collection asked for as a token": (
        "%token ethereum BAYC",
        """NotFound: The service answered 404: The data has no token with the symbol 'BAYC' on ethereum. It is an NFT collection: write "nft" in filters, /v1/nfts in a path, %nft as a magic.""",
    ),
    "symbols as a list, without a chain": (
        "%token UNI, USDC --strict",
        """UsageError: %token: the chain is missing. Write: %token ethereum UNI, USDC
    %token UNI, USDC --strict
           ^""",
    ),
    "a list that begins with its chain": (
        "%token ethereum, UNX, USDC --strict",
        "NotFound: The service answered 404: The data has no token with the symbol 'UNX' on ethereum. Did you mean 'UNI'?",
    ),
    "a name of the naming service": (
        "%nft ethereum vitalik.eth",
        "ValidationError: address: 'vitalik.eth' is an ENS name. nbext does not resolve names; give the 0x... address.",
    ),
    "a quote left open": (
        """%nft search "bored ape""",
        """UsageError: %nft: the " at column 8 of the line is not closed: " is missing.
    %nft search "bored ape
                ^""",
    ),
    "a file of another kind": (
        "%token ethereum USDC --to usdc.xlsx",
        "ValidationError: --to: usdc.xlsx: unknown file format. Allowed: .csv, .json, .parquet, .arrow.",
    ),
    "a key in a cell": (
        "%nbext login s3cret",
        "UsageError: %nbext login takes no key. Do not write a key in a cell: the notebook and its history would store it. Set NBEXT_API_KEY before you start Jupyter, or run `%nbext login` and type the key at the prompt.",
    ),
    "a misspelt command": (
        "%nbext stats",
        "UsageError: %nbext: unknown command 'stats'. Did you mean 'status'? Allowed: "
        + ", ".join(COMMANDS)
        + ".",
    ),
    "a setting of another kind": (
        "%nbext set limit many",
        "ConfigError: limit (argument): 'many' is not a whole number from 1 to 10,000,000.",
    ),
    "a comma left out": (
        """%%segment_query
{"token": {"token": "UNI"} "not": {"nft": {"nft": "BAYC"}}}""",
        """UsageError: A comma is missing before ".
  line 2, column 28:
    {"token": {"token": "UNI"} "not": {"nft": {"nft": "BAYC"}}}
                               ^""",
    ),
    "a key without quotes": (
        """%%segment_query
{token: {"token": "UNI"}}""",
        """UsageError: A key needs double quotes: "token".
  line 2, column 2:
    {token: {"token": "UNI"}}
     ^""",
    ),
    "typographic quotes": (
        """%%segment_query
{“token”: {"token": "UNI"}}""",
        """UsageError: “ is a typographic quote, as word processors write it. Use ".
  line 2, column 2:
    {“token”: {"token": "UNI"}}
     ^""",
    ),
    "a bracket closed by a brace": (
        """%%segment_query
{"any": [{"token": {"token": "UNI"}}, {"nft": {"nft": "BAYC"}}}""",
        """UsageError: } does not close the [ at line 2, column 9. Write ].
  line 2, column 63:
    {"any": [{"token": {"token": "UNI"}}, {"nft": {"nft": "BAYC"}}}
                                                                  ^""",
    ),
    "one brace too many": (
        """%%segment_query
{"token": {"token": "UNI"}}}""",
        """UsageError: There is one } too many.
  line 2, column 28:
    {"token": {"token": "UNI"}}}
                               ^""",
    ),
    "a variable with single braces": (
        """%%segment_query
{"wallet": {"in": {wallets}}}""",
        """UsageError: Write a Python value as {{wallets}}, not as {wallets}.
  line 2, column 19:
    {"wallet": {"in": {wallets}}}
                      ^""",
    ),
    "a variable as the shell writes it": (
        """%%segment_query
{"wallet": {"in": $wallets}}""",
        """UsageError: Write a Python value as {{name}}, not as $wallets.
  line 2, column 19:
    {"wallet": {"in": $wallets}}
                      ^""",
    ),
    "an expression that is not closed": (
        """%%segment_query
{"wallet": {"in": {{wallets}}""",
        """UsageError: }} is missing at the end: the { at line 2, column 12 is not closed.
  line 2, column 12:
    {"wallet": {"in": {{wallets}}
               ^""",
    ),
    "an expression that fails": (
        """%%segment_query
{"wallet": {"in": {{wallets[7]}}}}""",
        """UsageError: {{wallets[7]}} failed: IndexError: list index out of range
  line 2, column 19:
    {"wallet": {"in": {{wallets[7]}}}}
                      ^""",
    ),
    "a list for the filters": (
        """%%segment_query
[{"token": {"token": "UNI"}}]""",
        """UsageError: Filters are one JSON object, {...}, not a list.
  line 2, column 1:
    [{"token": {"token": "UNI"}}]
    ^""",
    ),
    "SQL": (
        """%%segment_query
SELECT address FROM holders""",
        """UsageError: This is SQL. Filters are JSON, such as {"token": {"token": "USDC"}}.
  line 2, column 1:
    SELECT address FROM holders
    ^""",
    ),
    "AND as a key": (
        """%%segment_query
{"AND": [{"token": {"token": "UNI"}}]}""",
        """InvalidSegment: /filters/AND: Unknown condition 'AND'. Use "all" for AND and "any" for OR.
  line 2, column 2:
    {"AND": [{"token": {"token": "UNI"}}]}
     ^""",
    ),
    "empty filters": (
        """%%segment_query
{}""",
        "InvalidSegment: /filters: The filters have no condition. Give at least one of: "
        + EVERY_CONDITION
        + ".",
    ),
    "an empty group": (
        """%%segment_query
{"any": []}""",
        """InvalidSegment: /filters/any: "any" is empty. Give at least one object with conditions.
  line 2, column 2:
    {"any": []}
     ^""",
    ),
    "a balance as a bare number": (
        """%%segment_query
{"token": {"token": "UNI", "balance": 100}}""",
        """InvalidSegment: /filters/token/balance: A balance is an object: {"min": 100}.
  line 2, column 28:
    {"token": {"token": "UNI", "balance": 100}}
                               ^""",
    ),
    "an amount as a float of Python": (
        """%%segment_query
{"token": {"token": "UNI", "balance": {"min": "1e18"}}}""",
        """InvalidSegment: /filters/token/balance/min: '1e18' is not an amount. Write the digits: "1000000000000000000", or add "unit": "raw" for the smallest unit.
  line 2, column 40:
    {"token": {"token": "UNI", "balance": {"min": "1e18"}}}
                                           ^""",
    ),
    "an amount with separators": (
        """%%segment_query
{"token": {"token": "UNI", "balance": {"min": "1,000"}}}""",
        """InvalidSegment: /filters/token/balance/min: '1,000' is not an amount. Write the digits: "1000".
  line 2, column 40:
    {"token": {"token": "UNI", "balance": {"min": "1,000"}}}
                                           ^""",
    ),
    "a payout of nothing": ("""%segment {"token": {"token": "UNI"}} --all --payout '' """, _PAYOUT),
    "a payout with two caps": (
        """%segment {"token": {"token": "UNI"}} --all --payout '10 UNI cap=5 cap=6' """,
        _PAYOUT,
    ),
    "a negative amount": (
        """%%segment_query
{"token": {"token": "UNI", "balance": {"min": "-5"}}}""",
        """InvalidSegment: /filters/token/balance/min: '-5' is not an amount. Write its digits as text, such as "1000" or "0.5".
  line 2, column 40:
    {"token": {"token": "UNI", "balance": {"min": "-5"}}}
                                           ^""",
    ),
    "a minimum above the maximum": (
        """%%segment_query
{"token": {"token": "UNI", "balance": {"min": "10", "max": "5"}}}""",
        """InvalidSegment: /filters/token/balance: min 10 is above max 5.
  line 2, column 28:
    {"token": {"token": "UNI", "balance": {"min": "10", "max": "5"}}}
                               ^""",
    ),
    "an ENS name among wallets": (
        """%%segment_query
{"wallet": {"in": ["vitalik.eth"]}}""",
        """InvalidSegment: /filters/wallet/in/0: 'vitalik.eth' is an ENS name. nbext does not resolve names; give the 0x... address.
  line 2, column 20:
    {"wallet": {"in": ["vitalik.eth"]}}
                       ^""",
    ),
    "a direction in other words": (
        """%%segment_query
{"transfer": {"token": "UNI", "direction": "sent"}}""",
        """InvalidSegment: /filters/transfer/direction: 'sent' is not allowed. Did you mean 'out'? Allowed: in, out, any, mint, burn.
  line 2, column 31:
    {"transfer": {"token": "UNI", "direction": "sent"}}
                                  ^""",
    ),
    "a collection where a token belongs": (
        """%%segment_query
{"token": {"token": "BAYC"}}""",
        """InvalidSegment: /filters/token/token: The data has no token with the symbol 'BAYC' on ethereum. It is an NFT collection: write "nft" in filters, /v1/nfts in a path, %nft as a magic.
  line 2, column 12:
    {"token": {"token": "BAYC"}}
               ^""",
    ),
    "a token where a collection belongs": (
        """%%segment_query
{"nft": {"nft": "USDC"}}""",
        """InvalidSegment: /filters/nft/nft: The data has no collection with the symbol 'USDC' on ethereum. It is a token: write "token" in filters, /v1/tokens in a path, %token as a magic.
  line 2, column 10:
    {"nft": {"nft": "USDC"}}
             ^""",
    ),
    "a chain that the data does not have": (
        """%%segment_query
{"token": {"token": "UNI", "chain": "celo"}}""",
        """InvalidSegment: /filters/token/chain: The data has nothing on celo. It has: ethereum, optimism, polygon, base, arbitrum.
  line 2, column 28:
    {"token": {"token": "UNI", "chain": "celo"}}
                               ^""",
    ),
    "a count that is not whole": (
        """%%segment_query
{"nft": {"nft": "BAYC", "count": {"min": 1.5}}}""",
        """InvalidSegment: /filters/nft/count/min: 1.5 is not a whole number. Write a number such as 2.
  line 2, column 35:
    {"nft": {"nft": "BAYC", "count": {"min": 1.5}}}
                                      ^""",
    ),
    "a segment id that is not one": (
        "%segment not/an/id",
        "ValidationError: id: 'not/an/id' is not a segment id. Ids have 1 to 128 letters, digits, - and _.",
    ),
    "a segment that does not exist": (
        "%segment sg_doesnotexist",
        "NotFound: The service answered 404: There is no segment with that id.",
    ),
    "a token where a segment is meant": (
        "%segment UNI",
        "NotFound: The service answered 404: There is no segment with that id. No variable is named 'UNI': it is taken "
        'for an id. Holders of a token: {"token": {"token": "UNI"}}, of a collection: {"nft": {"nft": "UNI"}}.',
    ),
    "filters and an id": (
        "%segment whales extra",
        """UsageError: %segment: unexpected argument 'extra'. Usage: %segment ID [--json|--csv|--card] [options]   or   %segment {FILTERS} [options]
    %segment whales extra
                    ^""",
    ),
    "a list where a segment is meant": (
        "%segment wallets",
        """UsageError: %segment: wallets is a list, not a segment's table. Python values need braces: %segment {{wallets}}
    %segment wallets
             ^""",
    ),
    "a result named like a builtin": (
        """%%segment_query list
{"token": {"token": "UNI"}}""",
        "UsageError: Python or IPython uses the name 'list'. Choose another name for the result.",
    ),
    "a result named in two ways": (
        """%%segment_query whales -o others
{"token": {"token": "UNI"}}""",
        """UsageError: %%segment_query: the result has two names, 'whales' and 'others'. Use one of them.
    %%segment_query whales -o others
                    ^""",
    ),
    "two ways to limit": (
        """%%segment_query --all --limit 5
{"token": {"token": "UNI"}}""",
        "UsageError: Use --limit or --all, not both.",
    ),
    "a limit in words": (
        """%%segment_query --limit ten
{"token": {"token": "UNI"}}""",
        """UsageError: %%segment_query: --limit takes a whole number, not 'ten'.
    %%segment_query --limit ten
                            ^""",
    ),
    "an option without its value": (
        """%%segment_query --limit
{"token": {"token": "UNI"}}""",
        """UsageError: %%segment_query: --limit needs a value: --limit N.
    %%segment_query --limit
                    ^""",
    ),
    "a file in a folder that does not exist": (
        "%token ethereum USDC --to nowhere/usdc.csv",
        "ValidationError: --to: nowhere/usdc.csv: there is no folder nowhere.",
    ),
    "raw without a file": (
        "%token ethereum USDC --raw",
        "UsageError: %token: --raw needs --to FILE.",
    ),
    "an address without 0x": (
        "%token ethereum A0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
        "ValidationError: address: 'A0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48' is not an address. Write 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48.",
    ),
    "a symbol that is not there": (
        "%token ethereum USCD",
        "NotFound: The service answered 404: The data has no token with the symbol 'USCD' on ethereum. Did you mean 'USDC'?",
    ),
    "a variable without braces on the line": (
        "%token ethereum wallets",
        "NotFound: The service answered 404: The data has no token with the symbol 'wallets' on ethereum. For the addresses in your variable, use braces: %token ethereum {{wallets}}",
    ),
    "an empty list of addresses": (
        "%token ethereum {{[]}}",
        """UsageError: %token: [] is empty. Give at least one address.
    %token ethereum {{[]}}
                    ^""",
    ),
    "a token asked for as a collection": (
        "%nft ethereum USDC",
        """NotFound: The service answered 404: The data has no collection with the symbol 'USDC' on ethereum. It is a token: write "token" in filters, /v1/tokens in a path, %token as a magic.""",
    ),
    "a search without a term": (
        "%nft search",
        "UsageError: %nft search: a search term is missing. Example: %nft search punk --chain ethereum",
    ),
    "a search of another type": (
        "%nft search ape --type nfts",
        """UsageError: %nft: --type: 'nfts' is not allowed. Did you mean 'nft'? Allowed: nft, erc721, erc1155, token.
    %nft search ape --type nfts
                           ^""",
    ),
    "more hits than a page has": (
        "%nft search ape --limit 500",
        "ValidationError: /limit: 500 is not allowed. Allowed: a whole number from 1 to 100.",
    ),
    "an unknown setting": (
        "%nbext set limits 5",
        "ConfigError: Unknown setting 'limits'. Did you mean 'limit'? Allowed: "
        + EVERY_SETTING
        + ".",
    ),
    "a setting without a value": (
        "%nbext set limit",
        "UsageError: %nbext set takes a name and a value, such as `%nbext set limit 500`. `%nbext config` lists the names.",
    ),
    "a key as a setting": (
        "%nbext set api_key s3cret",
        "UsageError: %nbext set: Do not write a key in a cell: the notebook and its history would store it. Set NBEXT_API_KEY before you start Jupyter, or run `%nbext login` and type the key at the prompt.",
    ),
    "a setting beyond its bounds": (
        "%nbext set limit 0",
        "ConfigError: limit (argument): 0 is not a whole number from 1 to 10,000,000.",
    ),
    "a Python value in single braces": (
        "%nbext set chain {wallets}",
        "UsageError: %nbext set: write a Python value as {{wallets}}, not as {wallets}.",
    ),
    "an option of another command": (
        "%nbext status -o st",
        "UsageError: %nbext status: unknown option '-o'. It is for config, history, schema, overlap, funnel, concentration, trend, retention, wallet.",
    ),
    "a saved query that does not exist": (
        """%%segment_query --from nosuch
""",
        "UsageError: No query is saved as 'nosuch'. `%nbext save NAME` saves the last query.",
    ),
    "a URL without a scheme": (
        "%nbext connect api.example.org",
        "ConfigError: base_url 'api.example.org' is not an address. Write one such as https://api.example.com or http://127.0.0.1:8000.",
    ),
    "a key sent in the clear": (
        "%nbext connect http://api.example.org",
        "ConfigError: base_url: http:// would send the key to api.example.org unencrypted. Use https://, or `%nbext set insecure true` (NBEXT_INSECURE=1) if the network is yours.",
    ),
    "a login to the embedded service": (
        "%nbext login",
        "UsageError: %nbext login: the embedded service needs no key. `%nbext connect URL` changes the service.",
    ),
    "a schema of no condition": (
        "%nbext schema tokn",
        "ValidationError: %nbext schema: 'tokn' is not allowed. Did you mean 'token'? Allowed: "
        + EVERY_KEY
        + ".",
    ),
    "a card of a number": (
        "nbext.show(3)",
        "UsageError: show needs a segment's table, such as %%segment_query returns, not 3. Run %segment ID --card for a segment that you know by its id.",
    ),
    "a whole request with a slip": (
        """%%segment_query
{"filter": {"token": {"token": "UNI"}}, "limit": 5}""",
        """InvalidSegment: /filters/filter: Unknown condition 'filter'. Allowed: """
        + EVERY_KEY
        + """. Did you mean 'filters'?
  line 2, column 2:
    {"filter": {"token": {"token": "UNI"}}, "limit": 5}
     ^
/filters/limit: Unknown condition 'limit'. Allowed: """
        + EVERY_KEY
        + """. Write it on the first line (--limit), or beside the filters: {"limit": ..., "filters": {...}}.
  line 2, column 41:
    {"filter": {"token": {"token": "UNI"}}, "limit": 5}
                                            ^""",
    ),
    "an unknown key of a request": (
        """%%segment_query
{"filters": {"token": {"token": "UNI"}}, "limits": 5}""",
        """ValidationError: /limits: unknown key of a request. Did you mean 'limit'? Allowed: operator, filters, fileType, limit.
  line 2, column 42:
    {"filters": {"token": {"token": "UNI"}}, "limits": 5}
                                             ^""",
    ),
    "an operator that is none": (
        """%%segment_query
{"filters": {"token": {"token": "UNI"}}, "operator": "XOR"}""",
        """ValidationError: /operator: 'XOR' is not allowed. Did you mean 'OR'? Allowed: AND, OR.
  line 2, column 42:
    {"filters": {"token": {"token": "UNI"}}, "operator": "XOR"}
                                             ^""",
    ),
    "an operator that is missing": (
        """%%segment_query
{"filters": {"token": {"token": "UNI"}}, "operator": null}""",
        """ValidationError: /operator: null is not allowed. Allowed: AND, OR.
  line 2, column 42:
    {"filters": {"token": {"token": "UNI"}}, "operator": null}
                                             ^""",
    ),
    "a standard for a type": (
        "%nft search ape --type erc20",
        """UsageError: %nft: --type: 'erc20' is not allowed. Did you mean 'token'? Allowed: nft, erc721, erc1155, token.
    %nft search ape --type erc20
                           ^""",
    ),
    "two limits": (
        """%%segment_query --operator OR
{"filters": {"token": {"token": "UNI"}}, "operator": "AND"}""",
        "UsageError: --operator OR on the line contradicts AND in the cell. Write it once.",
    ),
    "a count into a file": (
        """%segment {"token": {"token": "UNI"}} --count --to n.csv""",
        "UsageError: %segment: --to has no effect with --count, which returns a number. Use one of them.",
    ),
    "an explanation in the background": (
        """%segment {"token": {"token": "UNI"}} --bg --count""",
        "UsageError: %segment: --count has no effect with --bg, which returns a handle; its .result() is the table. Use one of them.",
    ),
    "an unclosed expression on the line": (
        "%token ethereum {{wallets",
        """UsageError: %token: the {{ at column 10 of the line is not closed: }} is missing.
    %token ethereum {{wallets
                    ^""",
    ),
    "a module's name for the result": (
        """%%segment_query nbext
{"token": {"token": "UNI"}}""",
        "UsageError: nbext is a module here, which the result would replace. Choose another name, such as nbext_wallets.",
    ),
    "a function's name for the result": (
        "%token ethereum UNI -o helper",
        "UsageError: helper is a function here, which the result would replace. Choose another name, such as helper_wallets.",
    ),
    "two letters that changed places": (
        """%%segment_query
{"ntf": {"nft": "BAYC"}}""",
        """InvalidSegment: /filters/ntf: Unknown condition 'ntf'. Did you mean 'nft'?
  line 2, column 2:
    {"ntf": {"nft": "BAYC"}}
     ^""",
    ),
    "a standard for a condition": (
        """%%segment_query
{"erc20": {"token": "UNI"}}""",
        """InvalidSegment: /filters/erc20: Unknown condition 'erc20'. Did you mean 'token'?
  line 2, column 2:
    {"erc20": {"token": "UNI"}}
     ^""",
    ),
    "a condition inside of another": (
        """%%segment_query
{"token": {"token": "UNI", "nft": {"nft": "BAYC"}}}""",
        """InvalidSegment: /filters/token/nft: 'nft' is a condition, not a field of token. Close "token" before it.
  line 2, column 28:
    {"token": {"token": "UNI", "nft": {"nft": "BAYC"}}}
                               ^""",
    ),
    "a comma too many": (
        """%%segment_query
{"token": {"token": "UNI"},, "nft": {"nft": "BAYC"}}""",
        """UsageError: There is one comma too many.
  line 2, column 28:
    {"token": {"token": "UNI"},, "nft": {"nft": "BAYC"}}
                               ^""",
    ),
    "a variable as an f-string writes it": (
        """%%segment_query
{"token": {"token": "{wallets}"}}""",
        """InvalidSegment: /filters/token/token: The data has no token with the symbol '{wallets}' on ethereum. Write a Python value as {{wallets}}, without quotes.
  line 2, column 12:
    {"token": {"token": "{wallets}"}}
               ^""",
    ),
    "a variable in single braces on a line": (
        "%token ethereum {wallets}",
        """UsageError: %token: write a Python value as {{wallets}}, not as {wallets}.
    %token ethereum {wallets}
                    ^""",
    ),
    "a name in place of wallets": (
        """%%segment_query
{"wallet": {"in": "whales"}}""",
        """InvalidSegment: /filters/wallet/in: 'whales' is not an address. An address is 0x and 40 hex digits.
  line 2, column 13:
    {"wallet": {"in": "whales"}}
                ^""",
    ),
    "an ENS name in place of wallets": (
        """%%segment_query
{"wallet": {"in": "vitalik.eth"}}""",
        """InvalidSegment: /filters/wallet/in: 'vitalik.eth' is an ENS name. nbext does not resolve names; give the 0x... address.
  line 2, column 13:
    {"wallet": {"in": "vitalik.eth"}}
                ^""",
    ),
    "a column that there is not": (
        """%%segment_query
{"token": {"token": "UNI"}, "columns": "wealth"}""",
        """InvalidSegment: /filters/columns: 'wealth' is not allowed. Allowed: firstSeen, lastSeen, transfers, activeDays, transferred, transferCount, firstTransfer, lastTransfer, share.
  line 2, column 29:
    {"token": {"token": "UNI"}, "columns": "wealth"}
                                ^""",
    ),
    "a bound beside the token": (
        """%%segment_query
{"token": {"token": "UNI", "min": "100"}}""",
        """InvalidSegment: /filters/token/min: Unknown field 'min' of token. Did you mean 'balance'?
  line 2, column 28:
    {"token": {"token": "UNI", "min": "100"}}
                               ^""",
    ),
    "a symbol under another name": (
        """%%segment_query
{"nft": {"collection": "BAYC"}}""",
        """InvalidSegment: /filters/nft/collection: Unknown field 'collection' of nft. Did you mean 'nft'?
  line 2, column 10:
    {"nft": {"collection": "BAYC"}}
             ^
/filters/nft: nft needs 'nft': the collection's address, or its symbol.
  line 2, column 2:
    {"nft": {"collection": "BAYC"}}
     ^""",
    ),
    "a sender": (
        """%%segment_query
{"transfer": {"token": "USDC", "from": "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"}}""",
        """InvalidSegment: /filters/transfer/from: Unknown field 'from' of transfer. Did you mean 'counterparty'?
  line 2, column 32:
    {"transfer": {"token": "USDC", "from": "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"}}
                                   ^""",
    ),
    "a bound as queries of databases have it": (
        """%%segment_query
{"token": {"token": "UNI", "balance": {"gte": 5}}}""",
        """InvalidSegment: /filters/token/balance/gte: Unknown field 'gte' of balance. Did you mean 'min'?
  line 2, column 40:
    {"token": {"token": "UNI", "balance": {"gte": 5}}}
                                           ^""",
    ),
    "a balance of NFTs": (
        """%%segment_query
{"nft": {"nft": "BAYC", "balance": {"min": 1}}}""",
        """InvalidSegment: /filters/nft/balance: Unknown field 'balance' of nft. Did you mean 'count'?
  line 2, column 25:
    {"nft": {"nft": "BAYC", "balance": {"min": 1}}}
                            ^""",
    ),
    "a count of tokens": (
        """%%segment_query
{"token": {"token": "UNI", "count": {"min": 1}}}""",
        """InvalidSegment: /filters/token/count: Unknown field 'count' of token. Did you mean 'balance'?
  line 2, column 28:
    {"token": {"token": "UNI", "count": {"min": 1}}}
                               ^""",
    ),
    "wei": (
        """%%segment_query
{"token": {"token": "UNI", "unit": "wei"}}""",
        """InvalidSegment: /filters/token/unit: 'wei' is not allowed. Did you mean 'raw'? Allowed: token, raw.
  line 2, column 28:
    {"token": {"token": "UNI", "unit": "wei"}}
                               ^""",
    ),
    "all rows as a limit": (
        """%%segment_query --limit all
{"token": {"token": "UNI"}}""",
        """UsageError: %%segment_query: --limit takes a whole number, not 'all'. Use --all for every row.
    %%segment_query --limit all
                            ^""",
    ),
    "an order as an option": (
        """%%segment_query --order-by UNI_balance
{"token": {"token": "UNI"}}""",
        """UsageError: %%segment_query: unknown option '--order-by'. Use --top N --by COLUMN.
    %%segment_query --order-by UNI_balance
                    ^""",
    ),
    "a column without top": (
        """%%segment_query --by UNI_balance
{"token": {"token": "UNI"}}""",
        "UsageError: --by needs --top: --top 100 --by UNI_balance",
    ),
    "an order by a column that is not asked for": (
        """%%segment_query
{"token": {"token": "UNI"}, "orderBy": "-firstSeen"}""",
        """InvalidSegment: /filters/orderBy: The rows have no column 'firstSeen'. Add it to "columns": ["firstSeen"].
  line 2, column 29:
    {"token": {"token": "UNI"}, "orderBy": "-firstSeen"}
                                ^""",
    ),
    "an order as SQL writes it": (
        """%%segment_query
{"token": {"token": "UNI"}, "orderBy": "UNI_balance desc"}""",
        """InvalidSegment: /filters/orderBy: 'UNI_balance desc' is not the name of a column. Write its name, with "-" in front for the largest first: "-UNI_balance".
  line 2, column 29:
    {"token": {"token": "UNI"}, "orderBy": "UNI_balance desc"}
                                ^""",
    ),
    "a collection by its name": (
        '''%nft ethereum "Bored Ape Yacht Club"''',
        """NotFound: The service answered 404: The data has no collection with the symbol 'Bored Ape Yacht Club' on ethereum. It looks like a name: find it with /v1/search, or %nft search "Bored Ape Yacht Club", and write its symbol or its address.""",
    ),
    "a saved segment that does not exist": (
        """%%segment_query
{"wallet": {"in": ["sg_nosuch"]}}""",
        """InvalidSegment: /filters/wallet/in/0: No segment 'sg_nosuch' is saved here.
  line 2, column 20:
    {"wallet": {"in": ["sg_nosuch"]}}
                       ^""",
    ),
    "a date in another order": (
        """%%segment_query
{"token": {"token": "UNI", "heldSince": "31.12.2024"}}""",
        """InvalidSegment: /filters/token/heldSince: '31.12.2024' is not a time. Write a date such as "2024-06-30" or "2024-06-30T12:00:00Z" (UTC), a span back from the last block or asOf such as "90d", "12h" or "4w", or a block number.
  line 2, column 28:
    {"token": {"token": "UNI", "heldSince": "31.12.2024"}}
                               ^""",
    ),
    "a year as a span": (
        """%%segment_query
{"token": {"token": "UNI", "heldSince": "1 year"}}""",
        """InvalidSegment: /filters/token/heldSince: '1 year' is not a time. Write "365d". The units are h, d and w.
  line 2, column 28:
    {"token": {"token": "UNI", "heldSince": "1 year"}}
                               ^""",
    ),
    "filters that are a text in a variable": (
        "%segment asked --count",
        """UsageError: %segment: asked is a text, not filters. Parse it: %segment {{json.loads(asked)}}
    %segment asked --count
             ^""",
    ),
    "a word that is no variable, before an option": (
        "%segment nowhere --count",
        """UsageError: %segment: --count has no effect on a segment that has run. Use it with filters. No variable is named 'nowhere': it is taken for an id. Holders of a token: {"token": {"token": "nowhere"}}, of a collection: {"nft": {"nft": "nowhere"}}.""",
    ),
    "a mean as a bound": (
        """%segment {"token": {"token": "USDC", "balance": {"min": {{mean}}}}}""",
        """InvalidSegment: /filters/token/balance/min: 0.3333333333333333 has 16 decimals; USDC has 6. Round it: 0.333334.
  line 1, column 41:
    {"token": {"token": "USDC", "balance": {"min": {{mean}}}}}
                                            ^""",
    ),
    "a brace too few before an option": (
        """%segment {"token": {"token": "UNI"} --count""",
        """UsageError: } is missing before --count.
  line 1, column 28:
    {"token": {"token": "UNI"} --count
                               ^""",
    ),
    "two braces too many before an option": (
        """%segment {"token": {"token": "UNI"}}}} --count""",
        """UsageError: %segment: delete }}. The filters end before it.
    %segment {"token": {"token": "UNI"}}}} --count
                                        ^""",
    ),
    "filters without their braces": (
        """%segment "token": {"token": "UNI"} --count""",
        """UsageError: %segment: the filters have no braces. Write %segment {...}
    %segment "token": {"token": "UNI"} --count
             ^""",
    ),
    "a call in a cell to be corrected": (
        """%%segment_query --run-corrected
{'wallet': {'in': ('0x1', set())}}""",
        """UsageError: set is not a JSON value. Put a string in double quotes ("set"), a Python variable in double braces ({{set}}).
  line 2, column 27:
    {"wallet": {"in": ["0x1", set[]]}}
                              ^""",
    ),
    "a symbol that two contracts have": (
        "%token ethereum RPL",
        "AmbiguousSymbol: address: 2 contracts on ethereum have the symbol 'RPL': 0xD33526068D116cE69F19A9ee46F0bd304F21A51f, 0xB4EFd85c19999D84251304bDA99E90B92300Bd93. Give the address.",
    ),
    "a capital X in an address": (
        "%token ethereum 0X1F9840A85D5AF5BF1D1762F925BDADDC4201F984",
        "ValidationError: address: '0X1F9840A85D5AF5BF1D1762F925BDADDC4201F984' is not an address. Write 0x1F9840A85D5AF5BF1D1762F925BDADDC4201F984.",
    ),
    "a hyphen in a name": (
        """%%segment_query my-whales
{"token": {"token": "UNI"}}""",
        "UsageError: 'my-whales' is not a variable name. Names use letters, digits and _, and do not start with a digit.",
    ),
}


@pytest.fixture
def notebook(home, shell):
    """A notebook of a newcomer, with a few variables and no saved query, whichever tests came before."""
    shutil.rmtree(home / "data" / "queries", ignore_errors=True)
    wallets = ["0x" + "a" * 40]
    shell.ip.user_ns.update(
        wallets=wallets,
        whales=list(wallets),
        mean=1 / 3,
        asked='{"nft": {"nft": "BAYC"}}',
        nbext=nbext,
        helper=lambda: None,
        table=pd.DataFrame({"address": wallets, "n": [1]}),
    )
    return shell


@pytest.mark.parametrize("name", MISTAKES)
def test_a_newcomers_mistake_is_answered_by_a_message_that_is_enough_and_changes_no_variable(
    notebook, name
):
    cell, expected = MISTAKES[name]
    before = {key: value for key, value in notebook.ip.user_ns.items() if not key.startswith("_")}
    assert notebook.error(cell) == expected
    after = {key: value for key, value in notebook.ip.user_ns.items() if not key.startswith("_")}
    assert after.keys() == before.keys()
    assert all(after[key] is before[key] for key in before)


def test_there_are_at_least_ninety():
    assert len(MISTAKES) >= 90
