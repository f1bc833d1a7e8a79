"""What nodes and providers answer to too much, word by word as their users have reported it."""

from __future__ import annotations

from typing import Any, NamedTuple

from nbext.node.limits import Meaning


class Refused(NamedTuple):
    """One refusal: who words it so, the HTTP status, the JSON-RPC code, the message, its meaning, what it offers."""

    who: str
    status: int
    code: int
    message: str
    meaning: Meaning
    offered: int | None = None
    data: Any = None


# Of ranges; {first}, {last} and {limit} are filled in by the server.
RANGES = (
    Refused(
        "geth behind Infura", 200, -32005, "query returned more than 10000 results", Meaning.LESS
    ),
    Refused(
        "Infura with an offer",
        200,
        -32005,
        "query returned more than 10000 results. Try with this block range [0x64, 0xc7].",
        Meaning.LESS,
        100,
    ),
    Refused("Infura by blocks", 200, -32602, "range 1000000 exceeds limit of 50", Meaning.LESS, 50),
    Refused(
        "Alchemy",
        400,
        -32602,
        "Log response size exceeded. You can make eth_getLogs requests with up to a 2K "
        "block range and no limit on the response size, or you can request any block range with a cap of 10K logs "
        "in the response. Based on your parameters and the response size limit, this block range should work: "
        "[0x64, 0xc7]",
        Meaning.LESS,
        100,
    ),
    Refused(
        "Alchemy, free",
        400,
        -32600,
        "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 "
        "block range. Based on your parameters, this block range should work: [0x1180fca, 0x1180fd3]. Upgrade to "
        "PAYG for expanded block range.",
        Meaning.LESS,
        10,
    ),
    Refused(
        "Alchemy, slow",
        400,
        -32000,
        "Query timeout exceeded. Consider reducing your block range. Based on your "
        "parameters and the response size limit, this block range should work: [0x5223c98, 0x5223cc9]",
        Meaning.LESS,
        50,
    ),
    Refused(
        "QuickNode", 413, -32614, "eth_getLogs is limited to a 10,000 range", Meaning.LESS, 10_000
    ),
    Refused("QuickNode, five", 200, -32614, "eth_getLogs is limited to a 5 range", Meaning.LESS, 5),
    Refused("Ankr", 200, -32600, "block range is too wide", Meaning.LESS),
    Refused(
        "Cloudflare",
        400,
        -32047,
        "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800",
        Meaning.LESS,
        800,
    ),
    Refused(
        "reth by results",
        200,
        -32602,
        "query exceeds max results 20000, retry with the range 100-149",
        Meaning.LESS,
        50,
    ),
    Refused(
        "reth by blocks", 200, -32602, "query exceeds max block range 100000", Meaning.LESS, 100_000
    ),
    Refused(
        "erigon",
        200,
        -32000,
        "query block range exceeds server limit, decrease the block range",
        Meaning.LESS,
    ),
    Refused(
        "nethermind",
        200,
        -32005,
        "Too many logs requested. Max logs per response is 20000.",
        Meaning.LESS,
    ),
    Refused("bnb", 200, -32000, "exceed maximum block range: 5000", Meaning.LESS, 5000),
    Refused("publicnode", 200, -32701, "exceed maximum block range: 50000", Meaning.LESS, 50_000),
    Refused("1rpc", 200, -32602, "eth_getLogs is limited to 0 - 50 blocks range", Meaning.LESS, 50),
    Refused(
        "drpc",
        200,
        35,
        "ranges over 10000 blocks are not supported on freetier",
        Meaning.LESS,
        10_000,
    ),
    Refused(
        "Tenderly",
        200,
        -32602,
        "invalid params",
        Meaning.LESS,
        50,
        {"payload": "range 9009594 is bigger than range limit 50"},
    ),
    Refused(
        "Chainstack",
        200,
        -32000,
        "Block range limit exceeded. See more details at the provider's site",
        Meaning.LESS,
    ),
    Refused(
        "polygon",
        200,
        -32005,
        "requested too many blocks from 0 to 5000000, maximum is set to 1024",
        Meaning.LESS,
        1024,
    ),
    Refused("geth's own size", 200, -32003, "response too large", Meaning.LESS),
    Refused("nodereal", 200, -32005, "limit exceeded", Meaning.LESS),
    Refused("a proxy", 413, 0, "<html>413 Request Entity Too Large</html>", Meaning.LESS),
    Refused("a slow node", 200, -32000, "query timeout exceeded", Meaning.TIMEOUT),
    Refused("geth's timeout", 200, -32002, "request timed out", Meaning.TIMEOUT),
    Refused("erigon's timeout", 200, -32000, "context deadline exceeded", Meaning.TIMEOUT),
    Refused("a gateway", 504, 0, "<html>504 Gateway Time-out</html>", Meaning.TIMEOUT),
)
# What passes by waiting, or by asking another.
PASSING = (
    Refused("any", 429, 0, "<html>Too Many Requests</html>", Meaning.RATE),
    Refused(
        "Infura", 429, -32005, "daily request count exceeded, request rate limited", Meaning.RATE
    ),
    Refused(
        "Alchemy",
        429,
        429,
        "Your app has exceeded its compute units per second capacity. If you have retries "
        "enabled, you can safely ignore this message.",
        Meaning.RATE,
    ),
    Refused(
        "QuickNode",
        200,
        -32007,
        "15/second request limit reached - reduce calls per second or upgrade your account",
        Meaning.RATE,
    ),
    Refused(
        "Ankr",
        200,
        -32090,
        "Too many requests, reason: call rate limit exhausted, retry in 10s",
        Meaning.RATE,
    ),
    Refused("Cloudflare", 500, -32603, "Internal error", Meaning.BUSY),
    Refused("a proxy", 502, 0, "<html>Bad Gateway</html>", Meaning.BUSY),
    Refused("a restart", 503, 0, "", Meaning.BUSY),
    Refused(
        "reth, ahead", 200, -32602, "block range extends beyond current head block", Meaning.BEHIND
    ),
    Refused("geth", 200, -32000, "unknown block", Meaning.BEHIND),
    Refused("geth, header", 200, -32000, "header not found", Meaning.BEHIND),
    Refused(
        "nethermind",
        200,
        -32001,
        "One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found.",
        Meaning.BEHIND,
    ),
    Refused("a gateway in two words", 429, -32005, "too many", Meaning.RATE),
)
# What neither passes nor gets better by less.
FINAL = (
    Refused("geth 1.16", 200, 4444, "pruned history unavailable", Meaning.PRUNED),
    Refused(
        "geth, state",
        200,
        -32000,
        "missing trie node ef7df5d88cb1614dc3f143879a653cd90717ee42e967c5fabbcd7505a968 (path )",
        Meaning.PRUNED,
    ),
    Refused(
        "erigon",
        200,
        -32000,
        "seek with txNum=1962853355 but data before txNum=2662500000 is not available",
        Meaning.PRUNED,
    ),
    Refused("nethermind", 200, -32002, "No state available for block 0x1234", Meaning.PRUNED),
    Refused("Ankr", 200, -32000, "requested data requires archive access", Meaning.PRUNED),
    Refused("bnb", 200, -32000, "pebble: not found", Meaning.PRUNED),
    Refused(
        "any",
        200,
        -32601,
        "the method eth_getLogs does not exist/is not available",
        Meaning.UNKNOWN_METHOD,
    ),
    Refused("a gateway", 200, -32000, "eth_getLogs is not whitelisted", Meaning.UNKNOWN_METHOD),
    Refused("Infura", 401, -32002, "rejected due to project ID settings", Meaning.DENIED),
    Refused(
        "Ankr",
        403,
        -32000,
        "Unauthorized: You must authenticate your request with an API key",
        Meaning.DENIED,
    ),
    Refused("geth", 200, 3, "execution reverted", Meaning.REVERTED),
    Refused("nethermind", 200, -32015, "VM execution error.", Meaning.REVERTED),
    Refused(
        "geth", 200, -32602, "invalid argument 0: json: cannot unmarshal hex string", Meaning.OTHER
    ),
)
