# ruff: noqa: E501 - whole messages, as they are shown
"""What newcomers get wrong, and the whole of what they read then: each message alone must be enough to mend it."""

from __future__ import annotations

import pytest

from nbext.language.conditions import CONDITIONS

# name: (the cell, the error as the notebook shows it)
MISTAKES = {
    "a cell magic written with one percent sign": (
        '''%segment_query {"token": {"token": "UNI"}}''',
        "UsageError: %segment_query is a cell magic. Write %%segment_query as the first line of a cell, and the filters as JSON below it. On one line: %segment {filters}",
    ),
    "a line magic written with two percent signs": (
        '''%%token
ethereum USDC''',
        "UsageError: %%token is not a cell magic. Write it on one line, with one percent sign: %token ethereum USDC",
    ),
    "a cell that is empty below its first line": (
        "%%segment_query whales",
        '''UsageError: %%segment_query: the cell has no filters. Write them as JSON below the first line, such as {"token": {"token": "USDC"}}''',
    ),
    "filters on the first line": (
        '''%%segment_query {"token": {"token": "UNI"}}
''',
        '''UsageError: %%segment_query: write the filters on the lines below. On one line: %segment {filters}
    %%segment_query {"token": {"token": "UNI"}}
                    ^''',
    ),
    "a Python dict": (
        '''%%segment_query
{'wallet': {'contract': False}}''',
        '''UsageError: JSON puts keys and strings in double quotes ("), not in single quotes (').
  line 2, column 2:
    {'wallet': {'contract': False}}
     ^
  This is a Python dict. As JSON it is:
    {"wallet": {"contract": false}}''',
    ),
    "a trailing comma": (
        '''%%segment_query
{
  "token": {"token": "UNI"},
}''',
        '''UsageError: JSON has no trailing comma. Delete the comma before }.
  line 3, column 28:
      "token": {"token": "UNI"},
                               ^
  This is a Python dict. As JSON it is:
    {"token": {"token": "UNI"}}''',
    ),
    "a comment": (
        '''%%segment_query
{"token": {"token": "UNI"}}  # the governance token''',
        '''UsageError: JSON has no comments. Delete # and what follows it.
  line 2, column 30:
    {"token": {"token": "UNI"}}  # the governance token
                                 ^
  This is a Python dict. As JSON it is:
    {"token": {"token": "UNI"}}''',
    ),
    "a missing brace": (
        '''%%segment_query
{"token": {"token": "UNI"}''',
        '''UsageError: } is missing at the end: the { at line 2, column 1 is not closed.
  line 2, column 1:
    {"token": {"token": "UNI"}
    ^''',
    ),
    "a variable without braces": (
        '''%%segment_query
{"wallet": {"in": wallets}}''',
        '''UsageError: wallets is not a JSON value. Put a string in double quotes ("wallets"), a Python variable in double braces ({{wallets}}).
  line 2, column 19:
    {"wallet": {"in": wallets}}
                      ^''',
    ),
    "a variable in quotes": (
        '''%%segment_query
{"wallet": {"in": "{{wallets}}"}}''',
        '''UsageError: {{wallets}} is in quotes, so it would be sent as text. Remove the quotes: the Python value becomes JSON by itself.
  line 2, column 19:
    {"wallet": {"in": "{{wallets}}"}}
                      ^''',
    ),
    "a variable that does not exist": (
        '''%%segment_query
{"wallet": {"in": {{walets}}}}''',
        '''UsageError: 'walets' is not defined in this notebook. Did you mean 'wallets'?
  line 2, column 19:
    {"wallet": {"in": {{walets}}}}
                      ^''',
    ),
    "two conditions under one key": (
        '''%%segment_query
{"token": {"token": "UNI"}, "token": {"token": "LINK"}}''',
        '''UsageError: The key 'token' appears twice in one object, and only one could count. For several conditions of one kind, write a list: {"token": [..., ...]}.
  The first: line 2, column 2:
    {"token": {"token": "UNI"}, "token": {"token": "LINK"}}
     ^
  The second: line 2, column 29:
    {"token": {"token": "UNI"}, "token": {"token": "LINK"}}
                                ^''',
    ),
    "a misspelt condition": (
        '''%%segment_query
{"tokn": {"token": "UNI"}}''',
        '''InvalidSegment: /filters/tokn: Unknown condition 'tokn'. Did you mean 'token'?
  line 2, column 2:
    {"tokn": {"token": "UNI"}}
     ^''',
    ),
    "a misspelt field": (
        '''%%segment_query
{"token": {"token": "UNI", "balance": {"minimum": "5"}}}''',
        '''InvalidSegment: /filters/token/balance/minimum: Unknown field 'minimum' of balance. Did you mean 'min'?
  line 2, column 40:
    {"token": {"token": "UNI", "balance": {"minimum": "5"}}}
                                           ^''',
    ),
    "a symbol instead of a condition's fields": (
        '''%%segment_query
{"token": "UNI"}''',
        '''InvalidSegment: /filters/token: 'UNI' is not an object with the fields of "token". Write {"token": {"token": "UNI"}}.
  line 2, column 2:
    {"token": "UNI"}
     ^''',
    ),
    "a symbol typo": (
        '''%%segment_query
{"token": {"token": "USCD"}}''',
        '''InvalidSegment: /filters/token/token: The data has no token with the symbol 'USCD' on ethereum. Did you mean 'USDT'?
  line 2, column 12:
    {"token": {"token": "USCD"}}
               ^''',
    ),
    "an amount with too many decimals": (
        '''%%segment_query
{"token": {"token": "USDC", "balance": {"min": 0.1234567}}}''',
        '''InvalidSegment: /filters/token/balance/min: 0.1234567 has 7 decimals; USDC has 6.
  line 2, column 41:
    {"token": {"token": "USDC", "balance": {"min": 0.1234567}}}
                                            ^''',
    ),
    "a time in words": (
        '''%%segment_query
{"token": {"token": "UNI", "heldSince": "last year"}}''',
        '''InvalidSegment: /filters/token/heldSince: 'last year' is not a time. Write a date such as "2024-06-30" or "2024-06-30T12:00:00Z" (UTC), a span back from the data's last block such as "90d", "12h" or "4w", or a block number.
  line 2, column 28:
    {"token": {"token": "UNI", "heldSince": "last year"}}
                               ^''',
    ),
    "an operator among the filters": (
        '''%%segment_query
{"operator": "OR", "token": {"token": "UNI"}}''',
        '''InvalidSegment: /filters/operator: Unknown condition 'operator'. Allowed: ''' + ", ".join(CONDITIONS) + ''', all, any, not, chain, asOf, exclude. Write it on the first line (--operator), or beside the filters: {"operator": ..., "filters": {...}}.
  line 2, column 2:
    {"operator": "OR", "token": {"token": "UNI"}}
     ^''',
    ),
    "an unknown operator": (
        '''%%segment_query --operator XOR
{"token": {"token": "UNI"}}''',
        '''UsageError: %%segment_query: --operator takes AND or OR, not 'XOR'. Did you mean 'OR'?
    %%segment_query --operator XOR
                               ^''',
    ),
    "a limit beyond the highest": (
        '''%%segment_query --limit 5,000,000
{"token": {"token": "UNI"}}''',
        """UsageError: --limit: 5000000 is not a limit. Write a whole number from 0 (count only) to 1,000,000.
    %%segment_query --limit 5,000,000
                            ^""",
    ),
    "an unknown option": (
        '''%%segment_query whales --limt 5
{"token": {"token": "UNI"}}''',
        '''UsageError: %%segment_query: unknown option '--limt'. Did you mean '--limit'?
    %%segment_query whales --limt 5
                           ^''',
    ),
    "a Python word as a name": (
        '''%%segment_query class
{"token": {"token": "UNI"}}''',
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
 "limit": "all"}""",
        """UsageError: /limit: 'all' is not a limit. Write a whole number from 0 (count only) to 1,000,000.
  line 3, column 2:
     "limit": "all"}
     ^""",
    ),
    "an unknown chain": (
        "%token etherium USDC",
        "ValidationError: chain: Unknown chain 'etherium'. Did you mean 'ethereum'? Allowed: ethereum, optimism, bnb, gnosis, polygon, fantom, zksync, polygon-zkevm, mantle, base, arbitrum, arbitrum-nova, celo, avalanche, linea, blast, scroll, zora, sepolia, or a chain id such as 137 or eip155:137.",
    ),
    "a chain left out": (
        "%token USDC",
        '''UsageError: %token: the chain is missing. Write: %token ethereum USDC
    %token USDC
           ^''',
    ),
    "address and chain the wrong way round": (
        "%token 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48 ethereum",
        '''UsageError: %token: the chain goes before the address. Write: %token ethereum 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48
    %token 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48 ethereum
           ^''',
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
        "NotFound: The service answered 404: The data has no symbol 'BAYC' on ethereum. It is an NFT collection. Use: %nft ethereum BAYC",
    ),
    "a name of the naming service": (
        "%nft ethereum vitalik.eth",
        "ValidationError: address: 'vitalik.eth' is an ENS name. nbext does not resolve names: give the 0x address.",
    ),
    "a quote left open": (
        '''%nft search "bored ape''',
        '''UsageError: %nft: the " at column 8 of the line is not closed: " is missing.
    %nft search "bored ape
                ^''',
    ),
    "a file of another kind": (
        "%token ethereum USDC --to usdc.xlsx",
        "UsageError: --to usdc.xlsx: unknown file format. Use .csv, .json or .parquet.",
    ),
    "a key in a cell": (
        "%nbext login s3cret",
        "UsageError: %nbext login takes no key. Do not write a key in a cell: the notebook and its history would keep it. Set NBEXT_API_KEY before you start Jupyter, or run `%nbext login` and type the key at the prompt.",
    ),
    "a misspelt command": (
        "%nbext stats",
        "UsageError: %nbext: unknown command 'stats'. Did you mean 'status'? Allowed: status, connect, login, logout, set, unset, config, history, save, schema, search, signup, build, help.",
    ),
    "a setting of another kind": (
        "%nbext set limit many",
        "ConfigError: limit (argument): 'many' is not a whole number from 1 to 1,000,000.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_newcomers_mistake_is_answered_by_a_message_that_is_enough(shell, name):
    cell, expected = MISTAKES[name]
    shell.ip.user_ns["wallets"] = ["0x" + "a" * 40]
    assert shell.error(cell) == expected


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_leaves_the_notebooks_variables_as_they_were(shell, name):
    shell.ip.user_ns["wallets"] = shell.ip.user_ns["whales"] = ["0x" + "a" * 40]
    before = {key: value for key, value in shell.ip.user_ns.items() if not key.startswith("_")}
    shell.error(MISTAKES[name][0])
    assert {key: value for key, value in shell.ip.user_ns.items() if not key.startswith("_")} == before


def test_there_are_at_least_twenty():
    assert len(MISTAKES) >= 20
