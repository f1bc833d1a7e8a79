"""Look up the contracts of a generation, by address, symbol or literal text, and the times of its blocks.

The table of contracts is read once, when it is first needed, and each chain's texts are folded (case and
accents) when the chain is first searched: 100,000 contracts take about half a second then, and a search
some milliseconds afterwards.
"""

from __future__ import annotations

import threading
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from nbext.core.addresses import BURN_ADDRESSES, ZERO_ADDRESS
from nbext.core.rules import NFT_STANDARDS
from nbext.core.uint256 import Limbs, join
from nbext.engine.dataset import ChainExtent, Contract
from nbext.engine.query.amounts import amount_near, sort_key
from nbext.engine.schema import CONTRACTS

if TYPE_CHECKING:
    import pyarrow as pa

    from nbext.engine.query.sql import SqlBuilder

# `nbext.engine.query.answers.Dataset.read`.
Read = Callable[..., "pa.Table"]
# How well a term fits, from best to worst; last, where it fits only without the spaces between its words.
_EXACT_SYMBOL, _EXACT_NAME, _PREFIX, _WORD, _SUBSTRING, _SPACELESS = 1.0, 0.9, 0.8, 0.6, 0.4, 0.3
# Below every fit of a contract that is not spam: an exact symbol of spam is worth less than a loose fit.
_SPAM = 0.1
# Contracts that were looked up one by one.
_CACHED = 1_000
# Fewer times are looked up one by one; more than so many are forgotten.
_FEWEST_LEARNT, _MOST_LEARNT = 3, 10_000


class Catalog:
    """The contracts of a generation. Safe to use from several threads."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._lock = threading.Lock()
        # Each condition of every query looks its contract up: out of the table that takes longer than to compile it.
        self._one = lru_cache(_CACHED)(lambda row: self._contracts([row])[0])
        # What wallets hold now of a contract together, once that was asked.
        self._held: dict[int, int] = {}

    def contract(self, chain_id: int, address: str) -> Contract | None:
        """Return the contract at that (lower-case) address, or None."""
        row = self._chain(chain_id).row_of_address.get(address)
        return None if row is None else self._one(row)

    def rows(self, numbers: Any) -> pa.Table:
        """Return what is known of contracts, a column for each field of `Contract`; ``total_supply`` is digits.

        As objects, ten thousand take eighty times as long.
        """
        return self._table.take(self.places[numbers])

    def supplies(self, stated: Mapping[int, int], at: int | None) -> dict[int, int]:
        """Return the totalSupply of contracts of one chain at a block, by number, where it is known.

        ``stated`` has what files say of each.
        """
        self._held |= self._sums(list(stated.keys() - self._held.keys()), None)
        now = self._held
        if at is None:
            return {number: one for number, one in stated.items() if now[number] <= one}
        # What wallets hold now is all of it: so it was at any block, and no mint is missing.
        return self._sums([number for number, one in stated.items() if now[number] == one], at)

    def _sums(self, numbers: Sequence[int], at: int | None) -> dict[int, int]:
        """Return what wallets hold of contracts together at a block, the zero address left out."""
        if not numbers:
            return {}

        def write(sql: SqlBuilder) -> str:
            wallets = f"wallet NOT IN {sql.wallets_at([ZERO_ADDRESS])}"
            return (
                f"SELECT contract, sum(hi) AS hi, sum(mid) AS mid, sum(lo) AS lo FROM {sql.held(at)} "
                f"WHERE contract IN {sql.listed(numbers, 'contract')} AND {wallets} GROUP BY contract"
            )

        sums = {
            row.pop("contract"): join(Limbs(*map(int, row.values())))
            for row in self._read(write).to_pylist()
        }
        # Below zero where transfers are missing.
        return {number: max(0, sums.get(number, 0)) for number in numbers}

    def by_symbol(self, chain_id: int, symbol: str, *, nft: bool) -> Sequence[Contract]:
        """Return the contracts with the symbol (any case): verified ones first, spam last."""
        rows = self._chain(chain_id).rows_of_symbol.get((symbol.strip().casefold(), nft), [])
        return list(map(self._one, rows))

    def symbols(self, chain_id: int, *, nft: bool) -> Sequence[str]:
        """Return the symbols known on that chain, each once, in alphabetical order."""
        return self._chain(chain_id).symbols[nft]

    def lacking(self, chain_id: int) -> Mapping[str, int]:
        """Return how many of the chain's contracts have balances ``below_zero``, and how many token ids ``unseen``."""
        return self._chain(chain_id).lacking

    def search(
        self, chain_id: int, term: str, *, standards: Sequence[str], limit: int, offset: int
    ) -> tuple[int, Sequence[tuple[Contract, float]]]:
        """Return how many contracts match the literal text, and one page of them, best first, with how well each fits.

        An exact symbol ranks before an exact name, a prefix, a whole word and any other place; case and
        accents do not matter, and neither do spaces where nothing else fits ("bored ape" finds BoredApeYachtClub);
        spam ranks last, and the verified first among equals. An address finds its contract. An empty term matches
        every contract; those with the most holders come first.
        """
        folded, chain = folded_text(term), self._chain(chain_id)
        # A lone accent folds to nothing, and asks for no contract.
        hits = chain.hits(folded, frozenset(standards)) if folded or not term.strip() else []
        page = hits[offset : offset + limit]
        contracts = self._contracts([row for _, row in page])
        return len(hits), list(zip(contracts, (score for score, _ in page), strict=True))

    def _contracts(self, rows: Sequence[int]) -> list[Contract]:
        found: list[dict[str, Any]] = self._table.take(rows).to_pylist() if rows else []
        for row in found:
            # Stored as text, since it can have 78 digits.
            row["total_supply"] = row["total_supply"] and int(row["total_supply"])
        return [Contract(**row) for row in found]

    def _chain(self, chain_id: int) -> _ChainIndex:
        # From Python 3.12 on cached_property does not lock: two first questions at once would index the table twice.
        with self._lock:
            return self._chains.get(chain_id, _NOTHING)

    @cached_property
    def places(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The place of each contract by chain and address, at its number."""
        numbers = self._table["contract"].to_numpy()
        places = np.zeros(numbers.max(initial=0) + 1, np.int64)
        places[numbers] = np.arange(len(numbers))
        return places

    @cached_property
    def _table(self) -> pa.Table:
        return self._read(_all_contracts)

    @cached_property
    def _chains(self) -> dict[int, _ChainIndex]:
        rows: defaultdict[int, list[int]] = defaultdict(list)
        for row, chain_id in enumerate(self._table["chain_id"].to_pylist()):
            rows[chain_id].append(row)
        return {chain_id: _ChainIndex(self._table, of_chain) for chain_id, of_chain in rows.items()}


@dataclass(frozen=True)
class _ChainIndex:
    """The texts of one chain's contracts, each list made when it is first needed."""

    table: pa.Table | None
    rows: Sequence[int]

    @cached_property
    def row_of_address(self) -> dict[str, int]:
        return dict(zip(self._column("address"), self.rows, strict=True))

    @cached_property
    def rows_of_symbol(self) -> dict[tuple[str, bool], list[int]]:
        found: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
        for symbol, standard, row in zip(
            self._column("symbol"), self._column("standard"), self.rows, strict=True
        ):
            if symbol is not None:
                found[symbol.strip().casefold(), standard in NFT_STANDARDS].append(row)
        # Sorted here, once: a symbol is looked up by every condition of every query.
        for rows in found.values():
            rows.sort(key=lambda row: self._order[row])
        return found

    @cached_property
    def symbols(self) -> dict[bool, list[str]]:
        found: dict[bool, set[str]] = {True: set(), False: set()}
        for symbol, standard in zip(self._column("symbol"), self._column("standard"), strict=True):
            if symbol:
                found[standard in NFT_STANDARDS].add(symbol)
        return {nft: sorted(symbols) for nft, symbols in found.items()}

    @cached_property
    def lacking(self) -> dict[str, int]:
        return {name: sum(map(bool, self._column(name))) for name in ("below_zero", "unseen")}

    @cached_property
    def _texts(self) -> list[tuple[str, str, str, int]]:
        columns = (self._column(name) for name in ("symbol", "name", "standard"))
        return [
            (folded_text(symbol or ""), folded_text(name or ""), standard, row)
            for symbol, name, standard, row in zip(*columns, self.rows, strict=True)
        ]

    @cached_property
    def _order(self) -> dict[int, tuple[bool, bool, int, str]]:
        """Of each contract whether it is spam, and what it comes by among its equals."""
        columns = (self._column(name) for name in ("spam", "verified", "holders", "address"))
        return {
            row: (bool(spam), not verified, -(holders or 0), address)
            for spam, verified, holders, address, row in zip(*columns, self.rows, strict=True)
        }

    def hits(self, term: str, standards: frozenset[str]) -> list[tuple[float, int]]:
        """Return (score, row) of every contract that the folded term fits, best first; all, where it is empty."""
        addressed, spaceless = self.row_of_address.get(term), term.replace(" ", "")
        found = [
            (_EXACT_SYMBOL if row == addressed or not term else _score(term, symbol, name), row)
            for symbol, name, standard, row in self._texts
            if standard in standards
            and (term in symbol or row == addressed or spaceless in name.replace(" ", ""))
        ]
        scored = [(score * _SPAM if self._order[row][0] else score, row) for score, row in found]
        # All of them come by their holders, whether they are verified or not. By their score spam is apart already.
        first = 0 if term else 2
        return sorted(scored, key=lambda hit: (-hit[0], self._order[hit[1]][first:]))

    def _column(self, name: str) -> Iterable[Any]:
        return [] if self.table is None else self.table[name].take(self.rows).to_pylist()


_NOTHING = _ChainIndex(None, ())


def folded_text(text: str) -> str:
    """Return the text without case and accents, for comparing.

    >>> folded_text("Pokémon ")
    'pokemon'
    """
    if text.isascii():
        return text.strip().lower()
    # Apart from its accent a letter can be compared; NFKD also unites full-width and styled letters with plain ones.
    decomposed = unicodedata.normalize("NFKD", text)
    return (
        "".join(char for char in decomposed if not unicodedata.combining(char)).casefold().strip()
    )


def _score(term: str, symbol: str, name: str) -> float:
    if term == symbol:
        return _EXACT_SYMBOL
    if term == name:
        return _EXACT_NAME
    if symbol.startswith(term) or name.startswith(term):
        return _PREFIX
    if f" {term} " in f" {name} ":
        return _WORD
    return _SUBSTRING if term in symbol or term in name else _SPACELESS


def _all_contracts(sql: SqlBuilder) -> str:
    dead = sql.wallets_at([BURN_ADDRESSES[1]])
    balances, history = sql.table("balances"), sql.table("history")
    large, wide = (sql.value(sort_key(least)) for least in (10**28, 2**63))
    columns = ", ".join(f"c.{one.name}" for one in fields(Contract) if one.name in CONTRACTS)
    # Read with the contracts, once: no row of them says it, and each generation's balances do. What has no balance of
    # 29 digits has no sum of 39: that would take 10 billion wallets.
    return f"""
        SELECT {columns}, coalesce(burned, 0) AS burned, coalesce(near, 0) AS size, coalesce(ids, 0) AS ids
        FROM contracts AS c
        LEFT JOIN (SELECT contract, sort_key AS burned FROM {balances}
            WHERE wallet IN {dead}) AS d ON d.contract = c.contract
        LEFT JOIN (SELECT contract, sum({amount_near("sort_key")}) AS near FROM (
            SELECT contract, sort_key FROM {balances} WHERE sort_key >= {large} OR sort_key <= -{large} UNION ALL
            SELECT contract, sort_key FROM {history} WHERE sort_key >= {wide} AND contract IN (
                SELECT contract FROM contracts WHERE standard <> 'ERC20')
            ) AS s GROUP BY contract) AS l ON l.contract = c.contract
        LEFT JOIN (SELECT contract, CAST(sum(lo) AS BIGINT) AS ids FROM {balances} WHERE contract IN (
                SELECT contract FROM contracts WHERE unseen > 0 AND standard = 'ERC721')
            GROUP BY contract) AS i ON i.contract = c.contract
        ORDER BY c.chain_id, c.address"""


# A block's time, in seconds since 1970, and its hash.
Moment = tuple[int | None, str | None]


class Clock:
    """The clock of a generation; the table of blocks is asked, never loaded."""

    def __init__(self, read: Read, chains: Iterable[ChainExtent]) -> None:
        self._read = read
        self._chains = {chain.chain_id: chain for chain in chains}
        # What was looked up; nothing of a generation ever changes.
        self._blocks: dict[tuple[int, int], int] = {}
        self._moments: dict[tuple[int, int], Moment] = {}
        self._untimed: dict[int, tuple[int, int]] = {}

    def last(self, chain_id: int) -> tuple[int, int | None]:
        """Return the chain's last block and its time; (0, None) for a chain that the data does not have."""
        chain = self._chains.get(chain_id)
        return (chain.last_block, chain.last_timestamp) if chain else (0, None)

    def untimed(self, chain_id: int) -> tuple[int, int]:
        """Return how many blocks of the chain have no time, and how many blocks there are."""
        if chain_id not in self._untimed:
            (found,) = self._blocks_of(
                chain_id, "count(*) AS blocks, count(*) - count(timestamp) AS untimed"
            )
            self._untimed[chain_id] = (found["untimed"], found["blocks"])
        return self._untimed[chain_id]

    def block_at(self, chain_id: int, timestamp: int) -> int | None:
        """Return the last block at or before the time.

        Before the data begins that is the block before its first. None where the data does not
        say: the chain has no times, or the blocks around that moment have none.
        """
        if (learnt := self._blocks.get((chain_id, timestamp))) is not None:
            return learnt
        # That block and the one after it; before the data begins its first two.
        rows = self._blocks_of(
            chain_id,
            "block, timestamp, hash",
            lambda sql: (
                "WHERE block >= coalesce((SELECT max(block) FROM "
                f"{sql.table('blocks', chain_id=chain_id)} AS t WHERE timestamp <= "
                f"{sql.value(timestamp)}), -1) ORDER BY block LIMIT 2"
            ),
        )
        known = [
            row
            for row in rows[:1]
            if row["timestamp"] is not None and row["timestamp"] <= timestamp
        ]
        after = rows[len(known) :]
        # A block without a time may lie before or after the asked one: half of the answers would be wrong.
        if not rows or (after and after[0]["timestamp"] is None):
            return None
        before = {"block": rows[0]["block"] - 1, "timestamp": None, "hash": None}
        last = known[0] if known else before
        self._learnt(chain_id, timestamp, last)
        return int(last["block"])

    def moment(self, chain_id: int, block: int) -> Moment:
        """Return the block's time in seconds since 1970, and its hash; None where the data has none."""
        chain = self._chains.get(chain_id)
        if chain and block == chain.last_block:
            return chain.last_timestamp, chain.last_hash
        if (learnt := self._moments.get((chain_id, block))) is not None:
            return learnt
        found = self._blocks_of(
            chain_id, "timestamp, hash", lambda sql: f"WHERE block = {sql.value(block)}"
        )
        return (found[0]["timestamp"], found[0]["hash"]) if found else (None, None)

    def newest(self, chain_id: int, block: int) -> int:
        """Return the last block at or before a block that the data knows of, or that block where it knows of none."""
        if (chain_id, block) in self._moments:
            return block
        (found,) = self._blocks_of(
            chain_id, "max(block) AS newest", lambda sql: f"WHERE block <= {sql.value(block)}"
        )
        return block if found["newest"] is None else int(found["newest"])

    def learn(self, chain_id: int, timestamps: Sequence[int]) -> None:
        """Look up the blocks at many times at once: `block_at` and `moment` then know them."""
        unknown = sorted(one for one in set(timestamps) if (chain_id, one) not in self._blocks)
        # Where blocks have no times, what `block_at` answers depends on the block after each, too.
        if len(unknown) < _FEWEST_LEARNT or self.untimed(chain_id)[0]:
            return
        rows = self._blocks_of(
            chain_id,
            "until, block, timestamp, hash",
            # The last block until each time that is after the time before it: each block is in one of these spans, so
            # no more rows are joined than there are blocks.
            lambda sql: (
                "JOIN (SELECT until, max(block) AS newest FROM "
                f"{sql.table('blocks', chain_id=chain_id)} AS t "
                "JOIN (SELECT until, coalesce(lag(until) OVER (ORDER BY until), -1) AS start "
                f"FROM {sql.listed(unknown, 'until')}) AS asked "
                "ON timestamp > start AND timestamp <= until GROUP BY until) AS found ON block = newest"
            ),
        )
        found = {row["until"]: row for row in rows}
        before = None
        for one in unknown:
            # Where no block is after the time before it, the same block is the last.
            before = found.get(one, before)
            if before is not None:
                self._learnt(chain_id, one, before)

    def _learnt(self, chain_id: int, timestamp: int, last: Mapping[str, Any]) -> None:
        if len(self._blocks) > _MOST_LEARNT:
            self._blocks, self._moments = {}, {}
        self._blocks[chain_id, timestamp] = last["block"]
        self._moments[chain_id, last["block"]] = last["timestamp"], last["hash"]

    def _blocks_of(
        self, chain_id: int, columns: str, rest: Callable[[SqlBuilder], str] = lambda _: ""
    ) -> list[dict[str, Any]]:
        """Return some columns of the blocks of a chain, of those that the rest of the statement takes."""
        found: list[dict[str, Any]] = self._read(
            lambda sql: (
                f"SELECT {columns} FROM {sql.table('blocks', chain_id=chain_id)} AS b {rest(sql)}"
            )
        ).to_pylist()
        return found
