"""Answers in the shapes that vendors give, as tests and clients in public repositories show them; the values are ours.

Each case is what a service of that shape would answer to one of our operations, and the table that it means.
"""

# A row of a table stays on its line.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nbext import Client
from tests.client.faultserver import reply

A, B, C = ("0x" + two * 20 for two in ("aa", "bb", "cc"))
ADDRESSES = [A, B, C]


@dataclass
class Case:
    """Replies by request, what is called, and what its table must have, by column."""

    vendor: str
    name: str
    call: Callable[[Client], Any]
    replies: dict[str, list[Any]]
    expected: dict[str, list[Any]]
    # The profile that comes with nbext, where the answer is not read right without one.
    profile: str = "none"
    remote: dict[str, Any] = field(default_factory=dict)


def execute(client: Client) -> Any:
    return client.execute_segment({"a": 1})


def export(client: Client) -> Any:
    return client.export_json("abc")


def csv(client: Client) -> Any:
    return client.export_csv("abc")


def token(client: Client) -> Any:
    return client.tokens("ethereum", A)


def nft(client: Client) -> Any:
    return client.nfts("ethereum", A)


def search(client: Client) -> Any:
    return client.search_nfts("ape")


RUN, JSON, ONE = "POST /v1/segment/execute", "GET /v1/segment/abc/json", "GET /v1/segment/abc"
TOKEN, NFT, SEARCH = f"GET /v1/tokens/ethereum/{A}", f"GET /v1/nfts/ethereum/{A}", "POST /v1/search"
DUNE = {"execution_id": "01HKZ", "query_id": 1215383, "submitted_at": "2024-01-01T00:00:00Z"}


def dune(rows: list[Any], **more: Any) -> dict[str, Any]:
    metadata = {
        "column_names": ["address", "n"],
        "column_types": ["varchar", "bigint"],
        "row_count": len(rows),
        "total_row_count": 3,
        "result_set_bytes": 99,
        "total_result_set_bytes": 300,
        "datapoint_count": 6,
    }
    return {
        **DUNE,
        "is_execution_finished": True,
        "state": "QUERY_STATE_COMPLETED",
        "execution_ended_at": "2024-01-01T00:00:01Z",
        "result": {"rows": rows, "metadata": metadata},
        **more,
    }


ROWS = [{"address": address, "n": n} for n, address in enumerate(ADDRESSES)]
COVALENT = {
    "updated_at": "2024-01-01T00:00:00Z",
    "next_update_at": "2024-01-01T01:00:00Z",
    "quote_currency": "USD",
    "chain_id": 1,
    "chain_name": "eth-mainnet",
}
GOOD = {"error": False, "error_message": None, "error_code": None}
HOLDER = {
    "contract_decimals": 18,
    "contract_name": "Dai",
    "contract_ticker_symbol": "DAI",
    "contract_address": B,
    "logo_url": "x",
}
BLOCK = {"block_number": 17000000, "index": 50, "items_count": 50}
OPENSEA = {
    "address": A,
    "chain": "ethereum",
    "collection": "apes",
    "contract_standard": "erc721",
    "name": "Apes",
    "total_supply": 10000,
}
GRAPH = {"hasNextPage": False, "hasPreviousPage": False, "startCursor": "a", "endCursor": "b"}

CASES = [
    Case(
        "dune",
        "rows at once",
        execute,
        {RUN: [reply(dune(ROWS))]},
        {"address": ADDRESSES, "n": [0, 1, 2]},
    ),
    Case(
        "dune",
        "poll until it is done",
        execute,
        {
            RUN: [reply({"execution_id": "01HKZ", "state": "QUERY_STATE_PENDING"})],
            "GET /v1/segment/01HKZ": [
                reply({**DUNE, "is_execution_finished": False, "state": "QUERY_STATE_EXECUTING"}),
                reply(dune(ROWS)),
            ],
        },
        {"address": ADDRESSES},
    ),
    Case(
        "dune",
        "two pages by next_uri",
        export,
        {
            ONE: [reply({}, 404)],
            JSON: [reply(dune(ROWS[:2], next_offset=2, next_uri="/v1/segment/abc/json?offset=2"))],
            JSON + "?offset=2": [reply(dune(ROWS[2:]))],
        },
        {"address": ADDRESSES},
    ),
    Case(
        "dune",
        "CSV with x-dune-next-uri",
        csv,
        {
            ONE: [reply({}, 404)],
            "GET /v1/segment/abc/csv": [
                reply(
                    f"address,n\n{A},0\n".encode(),
                    content_type="text/csv",
                    **{"x-dune-next-uri": "/v1/segment/abc/csv?offset=1"},
                )
            ],
            "GET /v1/segment/abc/csv?offset=1": [
                reply(f"address,n\n{B},1\n".encode(), content_type="text/csv")
            ],
        },
        {"address": [A, B]},
    ),
    Case(
        "covalent",
        "holders in two pages",
        export,
        {
            ONE: [reply({}, 404)],
            JSON: [
                reply(
                    {
                        "data": {
                            **COVALENT,
                            "items": [{**HOLDER, "address": A}],
                            "pagination": {
                                "has_more": True,
                                "page_number": 0,
                                "page_size": 1,
                                "total_count": None,
                            },
                        },
                        **GOOD,
                    }
                )
            ],
            JSON + "?page-number=1": [
                reply(
                    {
                        "data": {
                            **COVALENT,
                            "items": [{**HOLDER, "address": C}],
                            "pagination": {
                                "has_more": False,
                                "page_number": 1,
                                "page_size": 1,
                                "total_count": None,
                            },
                        },
                        **GOOD,
                    }
                )
            ],
            JSON + "?page_number=1": [
                reply({"error": True, "error_message": "unknown parameter", "error_code": 400}, 400)
            ],
            JSON + "?page=1": [
                reply({"error": True, "error_message": "unknown parameter", "error_code": 400}, 400)
            ],
        },
        {"address": [A, C], "contract_ticker_symbol": ["DAI", "DAI"]},
    ),
    Case(
        "covalent",
        "one token",
        token,
        {
            TOKEN: [
                reply(
                    {
                        "data": {
                            **COVALENT,
                            "items": [{**HOLDER, "contract_address": A}],
                            "pagination": None,
                        },
                        **GOOD,
                    }
                )
            ]
        },
        {"address": [A], "name": ["Dai"], "symbol": ["DAI"], "decimals": [18], "logo": ["x"]},
    ),
    Case(
        "alchemy",
        "owners by pageKey",
        export,
        {
            ONE: [reply({}, 404)],
            JSON: [reply({"owners": [A, B], "pageKey": "k2"})],
            JSON + "?pageKey=k2": [reply({"owners": [C], "pageKey": None})],
        },
        {"address": ADDRESSES},
    ),
    Case(
        "alchemy",
        "a token by JSON-RPC",
        token,
        {
            TOKEN: [
                reply(
                    {
                        "jsonrpc": "2.0",
                        "id": 1,
                        "result": {
                            "decimals": 6,
                            "logo": None,
                            "name": "USD Coin",
                            "symbol": "USDC",
                        },
                    }
                )
            ]
        },
        {"decimals": [6], "symbol": ["USDC"]},
    ),
    Case(
        "alchemy",
        "a collection",
        nft,
        {
            NFT: [
                reply(
                    {
                        "address": A,
                        "name": "Apes",
                        "symbol": "APE",
                        "totalSupply": "10000",
                        "tokenType": "ERC721",
                        "contractDeployer": B,
                        "deployedBlockNumber": 12287507,
                        "openSeaMetadata": {"floorPrice": 9.5},
                        "isSpam": None,
                    }
                )
            ]
        },
        {
            "address": [A],
            "totalSupply": [10000],
            "tokenType": ["ERC721"],
            "deployedBlockNumber": [12287507],
        },
    ),
    Case(
        "moralis",
        "owners by cursor",
        export,
        {
            ONE: [reply({}, 404)],
            JSON: [
                reply(
                    {
                        "cursor": "c2",
                        "page": 1,
                        "page_size": 2,
                        "result": [{"owner_address": A}, {"owner_address": B}],
                    }
                )
            ],
            JSON + "?cursor=c2": [
                reply({"cursor": None, "page": 2, "page_size": 2, "result": [{"owner_address": C}]})
            ],
        },
        {"owner_address": ADDRESSES},
    ),
    Case(
        "moralis",
        "a token in a list of one",
        token,
        {
            TOKEN: [
                reply(
                    [
                        {
                            "address": A,
                            "name": "Kylin",
                            "symbol": "KYL",
                            "decimals": "18",
                            "logo": "x",
                            "thumbnail": "y",
                            "block_number": "1",
                            "validated": 1,
                            "possible_spam": False,
                        }
                    ]
                )
            ]
        },
        {"address": [A], "decimals": [18], "possibleSpam": [False], "thumbnail": ["y"]},
    ),
    Case(
        "blockscout",
        "holders by next_page_params",
        export,
        {
            ONE: [reply({}, 404)],
            JSON: [
                reply(
                    {"items": [{"address": {"hash": A}, "value": "3"}], "next_page_params": BLOCK}
                )
            ],
            JSON + "?block_number=17000000&index=50&items_count=50": [
                reply({"items": [{"address": {"hash": B}, "value": "2"}], "next_page_params": None})
            ],
        },
        {"value": ["3", "2"]},
    ),
    Case(
        "blockscout",
        "a token",
        token,
        {
            TOKEN: [
                reply(
                    {
                        "address_hash": A,
                        "circulating_market_cap": None,
                        "decimals": "18",
                        "holders_count": "6",
                        "icon_url": None,
                        "name": "Demo",
                        "symbol": "DM",
                        "total_supply": "8000000000000000000000",
                        "type": "ERC-20",
                    }
                )
            ]
        },
        {
            "address": [A],
            "decimals": [18],
            "holders": [6],
            "totalSupply": [8000000000000000000000],
            "type": ["ERC-20"],
        },
    ),
    Case(
        "etherscan",
        "a list",
        export,
        {
            ONE: [reply({}, 404)],
            JSON: [
                reply(
                    {
                        "status": "1",
                        "message": "OK",
                        "result": [{"TokenHolderAddress": A, "TokenHolderQuantity": "34956"}],
                    }
                )
            ],
        },
        {"TokenHolderAddress": [A], "TokenHolderQuantity": ["34956"]},
    ),
    Case(
        "etherscan",
        "a token",
        token,
        {
            TOKEN: [
                reply(
                    {
                        "status": "1",
                        "message": "OK",
                        "result": [
                            {
                                "contractAddress": A,
                                "tokenName": "Demo",
                                "symbol": "DM",
                                "divisor": "18",
                                "tokenType": "ERC20",
                                "totalSupply": "100",
                            }
                        ],
                    }
                )
            ]
        },
        {"address": [A], "name": ["Demo"], "decimals": [18], "totalSupply": [100]},
    ),
    Case(
        "etherscan",
        "nothing found",
        search,
        {SEARCH: [reply({"status": "0", "message": "No records found", "result": []})]},
        {"name": []},
    ),
    Case(
        "opensea",
        "a contract",
        nft,
        {NFT: [reply(OPENSEA)]},
        {
            "address": [A],
            "name": ["Apes"],
            "tokenType": ["erc721"],
            "totalSupply": [10000],
            "collection": ["apes"],
        },
    ),
    Case(
        "opensea",
        "nfts by next",
        export,
        {
            ONE: [reply({}, 404)],
            JSON: [reply({"nfts": [{"identifier": "1", "contract": A}], "next": "LXBrPTE="})],
            JSON + "?cursor=LXBrPTE%3D": [
                reply({"nfts": [{"identifier": "1", "contract": A}], "next": "LXBrPTE="})
            ],
            JSON + "?next=LXBrPTE%3D": [
                reply({"nfts": [{"identifier": "2", "contract": A}], "next": None})
            ],
        },
        {"identifier": ["1", "2"]},
    ),
    Case(
        "graphql",
        "a connection",
        search,
        {
            SEARCH: [
                reply(
                    {
                        "data": {
                            "collections": {
                                "edges": [{"node": {"address": A, "name": "Apes"}, "cursor": "a"}],
                                "pageInfo": GRAPH,
                                "totalCount": 1,
                            }
                        }
                    }
                )
            ]
        },
        {"address": [A], "name": ["Apes"]},
    ),
    Case(
        "thegraph",
        "a list by name",
        export,
        {
            ONE: [reply({}, 404)],
            JSON: [
                reply(
                    {"data": {"accounts": [{"id": A, "balance": "10"}, {"id": B, "balance": "5"}]}}
                )
            ],
        },
        {"id": [A, B], "balance": ["10", "5"]},
    ),
    Case(
        "jsonapi",
        "resources in two pages",
        export,
        {
            ONE: [reply({}, 404)],
            JSON: [
                reply(
                    {
                        "data": [{"type": "wallets", "id": "1", "attributes": {"address": A}}],
                        "links": {"self": "/x", "next": "/v1/segment/abc/json?page%5Bnumber%5D=2"},
                        "meta": {"total": 2},
                    }
                )
            ],
            JSON + "?page%5Bnumber%5D=2": [
                reply(
                    {
                        "data": [{"type": "wallets", "id": "2", "attributes": {"address": B}}],
                        "links": {"self": "/y", "next": None},
                        "meta": {"total": 2},
                    }
                )
            ],
        },
        {"address": [A, B], "id": ["1", "2"]},
    ),
    Case(
        "jsonapi",
        "a job",
        execute,
        {
            RUN: [
                reply(
                    {"data": {"type": "jobs", "id": "j-1", "attributes": {"status": "queued"}}}, 202
                )
            ],
            "GET /v1/segment/j-1": [
                reply({"data": {"type": "jobs", "id": "j-1", "attributes": {"status": "finished"}}})
            ],
            "GET /v1/segment/j-1/json": [
                reply({"data": [{"type": "wallets", "id": "1", "attributes": {"address": A}}]})
            ],
        },
        {"address": [A]},
    ),
    Case(
        "simplehash",
        "collections by next_cursor and next",
        search,
        {
            SEARCH: [
                reply(
                    {
                        "next_cursor": None,
                        "next": None,
                        "previous": None,
                        "collections": [
                            {
                                "collection_id": "c1",
                                "name": "Apes",
                                "image_url": "x",
                                "distinct_owner_count": 5,
                                "spam_score": 10,
                            }
                        ],
                    }
                )
            ]
        },
        {"name": ["Apes"], "imageUrl": ["x"], "ownerCount": [5]},
    ),
    Case(
        "reservoir",
        "tokens by continuation",
        export,
        {
            ONE: [reply({}, 404)],
            JSON: [
                reply(
                    {"tokens": [{"token": {"contract": A, "tokenId": "1"}}], "continuation": "n2"}
                )
            ],
            JSON + "?continuation=n2": [
                reply(
                    {"tokens": [{"token": {"contract": A, "tokenId": "2"}}], "continuation": None}
                )
            ],
        },
        {"token": [{"contract": A, "tokenId": "1"}, {"contract": A, "tokenId": "2"}]},
    ),
    Case(
        "coingecko",
        "keyed by address",
        search,
        {SEARCH: [reply({A: {"name": "Apes", "usd": 3}, B: {"name": "Bees", "usd": 1}})]},
        {"address": [A, B], "name": ["Apes", "Bees"], "usd": [3, 1]},
    ),
    Case(
        "elasticsearch",
        "hits",
        search,
        {
            SEARCH: [
                reply(
                    {
                        "took": 1,
                        "timed_out": False,
                        "hits": {
                            "total": {"value": 1, "relation": "eq"},
                            "hits": [
                                {
                                    "_index": "n",
                                    "_id": "1",
                                    "_score": 1.5,
                                    "_source": {"address": A, "name": "Apes"},
                                }
                            ],
                        },
                    }
                )
            ]
        },
        {"address": [A], "name": ["Apes"]},
    ),
]
