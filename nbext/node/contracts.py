"""What contracts log and say: Transfer logs as rows, metadata, balances, and the block of the deployment."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nbext.errors import NodeError
from nbext.node.limits import Meaning, blocks_offered
from nbext.node.rpc import Node, Refusal, error_of, quantity

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
TRANSFER_SINGLE = "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62"
TRANSFER_BATCH = "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb"
# ERC-2309: ids one after the other, minted without a Transfer each.
CONSECUTIVE_TRANSFER = "0xdeaa91b6123d068f5821d0fb0678463d1a8a6079fe8af5de3ce5e896dcf9133d"
# Wrapped ether mints and burns by these, without a Transfer.
DEPOSIT = "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c"
WITHDRAWAL = "0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65"
TRANSFERS = (TRANSFER, TRANSFER_SINGLE, TRANSFER_BATCH, CONSECUTIVE_TRANSFER)
# Events that contracts index as they like, and the bytes of those that have as many in each log, nobody's address among
# them.
_OLD = (TRANSFER, DEPOSIT, WITHDRAWAL)
_SIZES = {**dict.fromkeys(_OLD, 96), TRANSFER_SINGLE: 160, CONSECUTIVE_TRANSFER: 128}
# Which standard a log shows by its event and how many fields are indexed. Of old contracts, which index less, either
# has the same words.
_STANDARDS = {
    (TRANSFER, 2): "ERC20",
    (TRANSFER, 3): "ERC721",
    (CONSECUTIVE_TRANSFER, 3): "ERC721",
    (TRANSFER_SINGLE, 3): "ERC1155",
    (TRANSFER_BATCH, 3): "ERC1155",
}

# The data of calls; those with arguments have them as words behind.
SUPPLY = "0x18160ddd"
_BALANCE, _BALANCE_OF_ID, _OWNER = "0x70a08231", "0x00fdd58e", "0x6352211e"
# What a contract is asked about itself, in the words of messages: which standards it supports, and whether it says so
# of all there are.
_ABOUT = (
    ("name", "0x06fdde03"),
    ("symbol", "0x95d89b41"),
    ("decimals", "0x313ce567"),
    ("total supply", SUPPLY),
    *(
        ("standard", f"0x01ffc9a7{interface:<064}")
        for interface in ("80ac58cd", "d9b67a26", "ffffffff")
    ),
)
# Refusals by which a node does not have, or does not say, an old state.
_NO_STATE = (Meaning.PRUNED, Meaning.OTHER, Meaning.UNKNOWN_METHOD, Meaning.GARBAGE)
_MOST_TEXT = 1000
# Amounts of ERC1155 are stored in 64 bits, with a sign.
_MOST_ITEMS = 2**63 - 1
# Ids of one log, which are a row each: ERC-2309 advises to mint 5,000 at once.
_MOST_IDS = 100_000
# How often a deployment is looked for, and by how much fewer blocks a refused proof goes on.
_PROOFS, _FEWER = 4, 16
# Blocks of which one should have a transaction, and the types of those that a wallet signs.
_TELLING, _SIGNED = 8, frozenset(f"0x{kind}" for kind in range(5))


class Unreadable(Exception):
    """A log is not one that its event's ABI allows."""


# Who sent what to whom: sender, recipient, value, quantity, place, and the standard that the log shows. The value is
# an amount, or a token id, of which ERC1155 moves a quantity; the place is that of the id among those of a batch, which
# has one log index for all of it.
Movement = tuple[str, str, str, str | None, int, str | None]


def decode_transfer(topics: str, data: str) -> list[Movement]:
    """Return what a log says was moved; its topics are one text.

    Raises
    ------
    Unreadable
        Its topics and data are not those of the event, or an amount is more than can be stored.
    """
    event, indexed = topics[:66], len(topics) // 66 - 1
    text = topics[66:].replace("0x", "") + data[2:]
    # Ether that is wrapped or unwrapped comes from nobody, or goes to nobody.
    if event in (DEPOSIT, WITHDRAWAL):
        at = 64 * (event == WITHDRAWAL)
        text = text[:at] + "0" * 64 + text[at:]
    size, is_old = len(text) // 2, event in _OLD
    if size != _SIZES.get(event, size) or not (is_old or indexed == 3):
        raise Unreadable(f"{indexed} indexed fields and {len(data) // 2 - 1} bytes of data")
    # Old tokens index nothing, or the sender alone: the rest is in the data, in the same order. Of others the operator,
    # or the first id, is before them.
    ends = text[:128] if is_old else text[64:192]
    if not ends[:24] == ends[64:88] == "0" * 24:
        raise Unreadable("a word that is not an address where one belongs")
    sender, recipient = "0x" + ends[24:64], "0x" + ends[88:]
    standard = _STANDARDS.get((event, indexed))
    if is_old:
        return [(sender, recipient, str(int(text[128:], 16)), None, 0, standard)]
    before, *words = (int(text[at : at + 64], 16) for at in (0, *range(192, len(text) - 63, 64)))
    if event == CONSECUTIVE_TRANSFER:
        ids: Sequence[int] = range(before, words[0] + 1)
        if not 0 <= words[0] - before < _MOST_IDS:
            raise Unreadable(f"it names more than {_MOST_IDS:,} token ids, or none")
        counts: Sequence[int] = [1] * len(ids)
    elif event == TRANSFER_SINGLE:
        ids, counts = words[:1], words[1:]
    else:
        ids, counts = (_numbers(words, place) for place in (0, 1))
    if len(ids) != len(counts):
        raise Unreadable(f"{len(ids)} token ids and {len(counts)} amounts")
    # One row for each id: a row is told from the others of its log by its id, and a batch may name an id twice.
    totals: dict[int, int] = {}
    for number, count in zip(ids, counts, strict=True):
        totals[number] = totals.get(number, 0) + count
    if max(totals.values(), default=0) > _MOST_ITEMS:
        raise Unreadable("an ERC1155 amount is beyond 2**63 - 1, the largest that nbext stores")
    return [
        (sender, recipient, str(number), str(count), place, standard)
        for place, (number, count) in enumerate(totals.items())
    ]


def _numbers(words: Sequence[int], place: int) -> Sequence[int]:
    """Return the array whose offset is at a place of the data."""
    offset, *_ = [*words[place:], 1]
    start, odd = divmod(offset, 32)
    length, *found = words[start:] or [1]
    if odd or length > len(found):
        raise Unreadable("an array that ends after the data")
    return found[:length]


@dataclass
class ContractMetadata:
    """What a contract says of itself; None where it says nothing, or reverts.

    ``unknown`` are the fields of which the node did not say what the contract says, each with its refusal.
    """

    address: str
    standard: str | None = None
    name: str | None = None
    symbol: str | None = None
    decimals: int | None = None
    total_supply: int | None = None
    unknown: dict[str, str] = field(default_factory=dict)


def read_metadata(
    node: Node,
    addresses: Sequence[str],
    known: Mapping[str, str | None],
    fetched: Container[str] = (),
) -> list[ContractMetadata]:
    """Return the metadata of contracts.

    Parameters
    ----------
    known
        The standards of those that do not say it themselves.
    fetched
        Those that may have been destroyed since, of which nothing is known then.

    Raises
    ------
    NodeError
        There is no contract at an address.
    """
    codes = node.batch([("eth_getCode", (address, "latest")) for address in addresses])
    calls = [(address, data) for address in addresses for _, data in _ABOUT]
    answers = iter(_said(node, calls, "latest"))
    cards = []
    for address, code in zip(addresses, codes, strict=True):
        if isinstance(code, Refusal):
            raise error_of(code, during=f"Whether {address} is a contract could not be read.")
        said = [next(answers) for _ in _ABOUT]
        if not code and address not in fetched:
            raise NodeError(
                f"There is no contract at {address} on this chain. Check the address and --chain. Of one that was "
                "destroyed --from-block N reads the logs."
            )
        if not (code and any(said)):
            # It was destroyed, or the node lags behind, and does not have it yet.
            why = f"It {'answers with nothing' if code else 'has no code'} at the latest block"
            said = [Refusal(Meaning.OTHER, why)] * len(_ABOUT)
        unknown = {
            what: str(answer)
            for (what, _), answer in zip(_ABOUT, said, strict=True)
            if isinstance(answer, Refusal) and answer.meaning is not Meaning.REVERTED
        }
        *texts, decimals, supply, is_721, is_1155, says_yes_to_all = (
            b"" if isinstance(answer, Refusal) else answer for answer in said
        )
        name, symbol = (text and node.redact(text) for text in map(_text, texts))
        standard = known.get(address)
        if standard is None and _number(says_yes_to_all) != 1:
            supported = {"ERC1155": is_1155, "ERC721": is_721}
            standard = next((each for each, raw in supported.items() if _number(raw) == 1), None)
        places, total = _number(decimals, 255), _number(supply)
        cards.append(
            ContractMetadata(address, standard, name, symbol, places, total, unknown=unknown)
        )
    return cards


def _said(node: Node, calls: Iterable[tuple[str, str]], block: str) -> list[bytes | Refusal]:
    """Return what each call of a contract returns, or the refusal: that it reverts, or that the node does not say."""
    return node.batch([("eth_call", ({"to": to, "data": data}, block)) for to, data in calls])


def balance_of(wallet: str, number: int | None = None) -> str:
    """Return the data of the call for a wallet's balance; for that of one token id of ERC1155 where it is given."""
    who = f"{int(wallet, 16):064x}"
    return f"{_BALANCE}{who}" if number is None else f"{_BALANCE_OF_ID}{who}{number:064x}"


def owner_of(number: int) -> str:
    """Return the data of the call for the owner of a token id."""
    return f"{_OWNER}{number:064x}"


def read_numbers(node: Node, address: str, asked: Sequence[str], block: int) -> list[int | None]:
    """Return what a contract says to each call at a block: a balance, a supply, or an owner's address as a number.

    None where it says nothing, as where there is no code; an owner is 0 where it reverts, as it does of ids that are
    burnt. NodeError: it reverts otherwise, or the node does not say.
    """
    found = []
    answers = _said(node, ((address, data) for data in asked), hex(block))
    for data, answer in zip(asked, answers, strict=True):
        if not isinstance(answer, Refusal):
            found.append(_number(answer))
        elif answer.meaning is Meaning.REVERTED and data.startswith(_OWNER):
            found.append(0)
        else:
            raise error_of(answer)
    return found


def deployment(
    node: Node, address: str, topics: Sequence[str], head: int, known: int | None = None
) -> int | None:
    """Return the first block in which the contract has code, the one after ``head`` where it has none by then.

    It is proved: two blocks before it have no code, and none has a log. None where that cannot be looked at: the node
    does not have the states. Some nodes answer for a state that they have pruned as if nobody had ever been there, and
    one of several behind a balancer may be such a node; and a contract that was destroyed may be made again. What was
    found earlier, ``known``, is looked at only in the block before it.

    Raises
    ------
    NodeError, Refusal
        No node answers: that says nothing of the deployment.
    """

    def has_code(block: int) -> bool:
        return bool(node.call("eth_getCode", address, hex(block)))

    end = head + 1
    try:
        if known is not None and (known == 0 or not has_code(known - 1)):
            return known
        for _ in range(_PROOFS):
            low = bisect_left(range(end), True, key=has_code)
            before = [block for block in {low - 1, low // 2} if 0 <= block < low]
            earlier = [block for block in before if has_code(block)]
            if low and not earlier:
                earlier = _logged(node, address, topics, low - 1)
            if not earlier:
                return low if low == 0 or _has_state(node, low - 1) else None
            end = min(earlier)
    except Refusal as refusal:
        if refusal.meaning not in _NO_STATE:
            raise
    return None


def _logged(node: Node, address: str, topics: Sequence[str], last: int) -> list[int]:
    """Return blocks with a log of a contract up to a block, of as many before it as the node takes at once."""
    many = last + 1
    while many:
        asked = {"fromBlock": hex(last + 1 - many), "toBlock": hex(last)}
        try:
            logs = node.call("eth_getLogs", {"address": address, **asked, "topics": [list(topics)]})
        except Refusal as refusal:
            if refusal.meaning is Meaning.GARBAGE:
                break
            many = min(blocks_offered(refusal.text) or many, many // _FEWER)
        except NodeError:
            break
        else:
            return [
                quantity(log.get("blockNumber"), "block number")
                for log in logs
                if isinstance(log, Mapping)
            ]
    return []


def _has_state(node: Node, block: int) -> bool:
    """Say whether the node has the state of a block, in which whoever sent a transaction has a nonce above its own.

    Where the blocks before have no transaction that tells, the node is believed.
    """
    for number in range(block, max(-1, block - _TELLING), -1):
        try:
            header = node.call("eth_getBlockByNumber", hex(number), False)
            sent = header.get("transactions") if isinstance(header, Mapping) else None
            if not sent:
                continue
            # The last one: chains put transactions of their own first, whose senders may have no nonce.
            last = node.call("eth_getTransactionByHash", sent[-1])
            if not isinstance(last, Mapping) or last.get("type", "0x0") not in _SIGNED:
                continue
            after: int = node.call("eth_getTransactionCount", last.get("from"), hex(number))
            return quantity(last.get("nonce"), "nonce") < after
        except Refusal as why:
            return why.meaning not in (Meaning.PRUNED, Meaning.GARBAGE)
    return True


def head_of(node: Node, wanted: str, latest: int, confirmations: int | None) -> int:
    """Return the block to read to: ``latest``, ``finalized``, or ``auto``: finalized where the node knows it."""
    if confirmations is None and wanted != "latest":
        try:
            header = node.call("eth_getBlockByNumber", "finalized", False)
            if isinstance(header, Mapping):
                return min(latest, quantity(header.get("number"), "block number"))
        except Refusal as refusal:
            if refusal.meaning is Meaning.TIMEOUT:
                raise
        if wanted == "finalized":
            raise NodeError(
                "The node does not know which block is finalized. Write --to-block latest, or a number."
            )
        confirmations = 12
    return max(0, latest - (confirmations or 0))


def _number(raw: bytes, most: int = 2**256) -> int | None:
    number = int.from_bytes(raw[:32])
    return number if len(raw) >= 32 and number <= most else None


def _text(raw: bytes) -> str | None:
    """Return a string, or the bytes32 that old tokens return; None of what is neither."""
    if len(raw) == 32:
        found = raw.rstrip(b"\0")
    else:
        start = int.from_bytes(raw[:32])
        length = int.from_bytes(raw[start : start + 32])
        if start + 32 + length > len(raw):
            return None
        found = raw[start + 32 : start + 32 + length]
    # A stranger's text: it is stored as it is, and made visible where it is shown.
    return found.decode("utf-8", "replace").replace("\0", "")[:_MOST_TEXT] or None
