"""From a query to a plan: what it means on the data at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.untrusted_text import shown
from nbext.errors import ValidationError
from nbext.language.canonical import canonical
from nbext.language.columns import columns
from nbext.language.context import Scope
from nbext.language.describe import in_words
from nbext.language.errors import Report, at
from nbext.language.field_types import BURN
from nbext.language.fields import MAX_CONDITIONS, MAX_DEPTH
from nbext.language.lookup import Names
from nbext.language.model import (
    Acting,
    All,
    Amounts,
    Asked,
    Being,
    Blocks,
    Holding,
    Joined,
    Leaf,
    Moving,
    Negated,
    Node,
    Not,
    Owning,
    Plan,
    Query,
    Range,
    Saved,
    Seen,
    Some,
    Span,
)
from nbext.language.parse import parse

if TYPE_CHECKING:
    from nbext.core.chains import Chain
    from nbext.engine.dataset import Contract, Dataset

SavedRequest = Callable[[str], Mapping[str, Any] | None]
# Stands where a condition could not be resolved; its error is already noted, so no plan is made of it.
_NOTHING = Being(among=None, contract=None)


def resolve(query: Query, dataset: Dataset, saved: SavedRequest | None = None) -> Plan:
    """Return what a query means on a dataset.

    Parameters
    ----------
    saved
        Returns the request (``operator``, ``filters``) of a saved segment by its id, or None.

    Raises
    ------
    InvalidSegment
        A contract, chain or time that the data does not hold; an amount that its token cannot have.
    AmbiguousSymbol
        Symbols that several contracts bear, with the candidates.
    """
    report = Report()
    resolver = _Resolver(Scope(query, Names(dataset, report)), saved or (lambda _: None))
    whole = resolver.whole()
    report.close()
    return resolver.plan(whole)


@dataclass
class _Count:
    """The conditions of a query, those of the saved segments in it counted each time that they stand there."""

    conditions: int = 0


@dataclass
class _Resolver:
    """Walks one query's tree."""

    scope: Scope
    saved: SavedRequest
    within: tuple[str, ...] = ()  # the saved segments that this query is part of
    count: _Count = field(default_factory=_Count)
    leaves: list[Leaf] = field(default_factory=list)
    shown: list[tuple[Contract, int | None]] = field(default_factory=list)

    def whole(self) -> Saved:
        """Resolve the tree, then the wallets that it sees."""
        query = self.scope.query
        if query.scope.chain is not None or query.scope.as_of is not None:
            self.scope.at(self.scope.default, "/filters/chain")
        node = self.node(query.root, positive=True)
        seen = tuple(Seen(chain.id, self.scope.at(chain, "/filters/chain")) for chain in self.scope.chains())
        return Saved(node, seen, _excluded(query.scope.exclude))

    def node(self, asked: Asked | Joined | Negated, *, positive: bool) -> Node:
        """Resolve a condition or a group. A positive token or nft gives the rows a column."""
        if isinstance(asked, Negated):
            return Not(self.node(asked.child, positive=not positive))
        if isinstance(asked, Joined):
            children = tuple(self.node(child, positive=positive) for child in asked.children)
            return All(children) if asked.by == "all" else Some(children)
        self.count.conditions += 1
        if self.count.conditions > MAX_CONDITIONS:
            if self.count.conditions == MAX_CONDITIONS + 1:
                detail = f"more than {MAX_CONDITIONS} conditions in one segment, those of saved segments counted."
                self.scope.report.add(asked.pointer, "size", detail)
            return _NOTHING
        leaf: Leaf = getattr(self, asked.name)(asked)
        self.leaves.append(leaf)
        if positive and isinstance(leaf, Holding) and leaf.contract not in [one for one, _ in self.shown]:
            self.shown.append((leaf.contract, leaf.at))
        return leaf

    def plan(self, whole: Saved) -> Plan:
        """Put together what was resolved."""
        scope, query = self.scope, self.scope.query
        return Plan(
            whole=whole,
            shown=tuple(self.shown),
            columns=columns([contract for contract, _ in self.shown]),
            chain=scope.default,
            as_of=scope.echo(),
            operator=query.operator,
            limit=query.limit,
            file_type=query.file_type,
            canonical=canonical(query, whole, scope.default, scope.canonical_time()),
            words=in_words(whole),
            leaves=tuple(self.leaves),
            warnings=scope.warnings,
        )

    def token(self, asked: Asked) -> Leaf:
        """Resolve a condition ``token``."""
        return self._holding(asked, "token")

    def nft(self, asked: Asked) -> Leaf:
        """Resolve a condition ``nft``."""
        return self._holding(asked, "nft")

    def _holding(self, asked: Asked, name: str) -> Leaf:
        chain = self.scope.chain(asked)
        if chain is None or (contract := self.scope.contract(asked, name, chain)) is None:
            return _NOTHING
        if name == "token":
            within = self.scope.amounts(asked, "balance", contract)
        else:
            counts = self.scope.counts(asked, "count")
            within = Amounts(counts.low, counts.high, counts.none_too)
        self.scope.trivial(asked, "balance" if name == "token" else "count", within)
        ids = tuple(sorted(set(asked.values.get("tokenIds") or ())))
        return Holding(contract, within, ids, self.scope.at(chain, asked.pointer), self.scope.since(asked, chain))

    def collections(self, asked: Asked) -> Leaf:
        """Resolve a condition ``collections``."""
        chain = self.scope.chain(asked)
        if chain is None:
            return _NOTHING
        moment = self.scope.at(chain, asked.pointer)
        if "distinct" in asked.values:
            return Owning(chain.id, (), self.scope.counts(asked, "distinct"), moment)
        contracts = self.scope.contracts(asked, "of", chain)
        least, pointer = asked.values["atLeast"], at(asked.pointer, "atLeast")
        if least > len(asked.values["of"]):
            detail = f"{least:,} is out of range: the list has {len(contracts):,} collections."
            self.scope.report.add(pointer, "range", detail)
        return Owning(chain.id, contracts, Range(least, None, none_too=False), moment)

    def transfer(self, asked: Asked) -> Leaf:
        """Resolve a condition ``transfer``."""
        chain = self.scope.chain(asked)
        if chain is None:
            return _NOTHING
        name = "nft" if "nft" in asked.values else "token"
        contract = self.scope.contract(asked, name, chain)
        if contract is None and name in asked.values:
            return _NOTHING
        if "counterparty" in asked.values and asked.values["direction"] in ("mint", "burn"):
            detail = f"a {asked.values['direction']} has no counterparty: the other side is the burn address."
            self.scope.report.add(at(asked.pointer, "counterparty"), "exclusive", detail)
        span = Span(asked.values.get("after"), asked.values.get("before"))
        return Moving(
            chain.id,
            asked.values["direction"],
            contract,
            tuple(sorted(set(asked.values.get("counterparty", ())))),
            self._moved(asked, "amount", contract),
            self._moved(asked, "total", contract),
            self._number(asked),
            self.window(span, chain, asked.pointer),
        )

    def window(self, span: Span, chain: Chain, pointer: str) -> Blocks:
        """Return the blocks whose transfers are looked at: up to the segment's time, window or none."""
        blocks, end = self.scope.blocks(span, chain, pointer), self.scope.at(chain, pointer)
        return Blocks(None, end) if span == Span() else blocks

    def _moved(self, asked: Asked, name: str, contract: Contract | None) -> Amounts | None:
        """Return bounds of what transfers moved; without min, nothing moved will do, as transfers of 0 do."""
        if name not in asked.values:
            return None
        return replace(self.scope.amounts(asked, name, contract, low=0), none_too=False)

    def _number(self, asked: Asked) -> Range:
        """Return the bounds of how many transfers: none will do where a bound of 0 is asked for, and none above."""
        bounds = [asked.values[name].min for name in ("count", "total") if name in asked.values]
        none_too = 0 in bounds and not any(bounds)
        counts = self.scope.counts(asked, "count", low=0 if none_too else 1)
        return Range(counts.low, counts.high, none_too)

    def activity(self, asked: Asked) -> Leaf:
        """Resolve a condition ``activity``."""
        chain = self.scope.chain(asked)
        if chain is None:
            return _NOTHING
        days = at(asked.pointer, "activeDays")
        if "activeDays" in asked.values:
            self.scope.names.timed(chain, days, "Days cannot be counted.")
        first, last = (
            self.scope.blocks(asked.values.get(name) or Span(), chain, at(asked.pointer, name))
            for name in ("first", "last")
        )
        numbers = {name: self.scope.counts(asked, name) for name in ("transfers", "activeDays") if name in asked.values}
        bounds = [asked.values[name].min for name in numbers]
        none_too = 0 in bounds and not any(bounds) and not {"first", "last"} & asked.values.keys()
        return Acting(
            chain.id, first, last, numbers.get("transfers"), numbers.get("activeDays"), none_too,
            self.scope.at(chain, asked.pointer),
        )  # fmt: skip

    def wallet(self, asked: Asked) -> Leaf:
        """Resolve a condition ``wallet``."""
        among = asked.values.get("in")
        return Being(among and tuple(sorted(set(among))), asked.values.get("contract"))

    def segment(self, asked: Asked) -> Leaf:
        """Resolve a condition ``segment``: the saved request, on this data, as of this segment's time."""
        name, pointer = asked.values["id"], at(asked.pointer, "id")
        request = self.saved(name)
        if request is None:
            self.scope.report.add(pointer, "unknown-segment", f"no segment {shown(name)} is saved here.")
            return _NOTHING
        # Ids are made of contents, so a cycle cannot be written; a damaged registry could still hold one.
        if name in self.within or len(self.within) >= MAX_DEPTH:
            self.scope.report.add(pointer, "depth", f"saved segments are nested more than {MAX_DEPTH} deep.")
            return _NOTHING
        try:
            return self._again(request, name)
        except ValidationError as error:
            for one in error.errors:
                detail = f"the saved segment {name} no longer holds: {one['pointer']}: {one['detail']}"
                self.scope.report.add(pointer, one["code"], detail)
            return _NOTHING

    def _again(self, request: Mapping[str, Any], name: str) -> Saved:
        query = parse({key: request[key] for key in ("operator", "filters") if key in request})
        report = Report()
        scope = Scope(query, Names(self.scope.names.dataset, report), self.scope.as_of)
        inner = _Resolver(scope, self.saved, (*self.within, name), self.count)
        whole = inner.whole()
        report.close()
        self.scope.warnings.extend(scope.warnings)
        self.scope.used.extend(chain for chain in scope.chains() if chain not in self.scope.used)
        # It may look at a later time than this segment does, and so hold wallets not seen yet.
        loose = any(self.scope.at(chain, "/filters/asOf") is not None for chain in scope.chains())
        return Saved(whole.node, whole.seen, whole.exclude, name, loose)


def _excluded(given: tuple[str, ...] | None) -> tuple[str, ...]:
    names = (BURN,) if given is None else given
    return tuple(sorted({one for name in names for one in (BURN_ADDRESSES if name == BURN else (name,))}))
