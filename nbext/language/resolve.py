"""From a query to a plan: what it means on the data at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.untrusted_text import shown
from nbext.errors import ValidationError
from nbext.language.canonical import canonical, columns
from nbext.language.conditions import CONDITIONS
from nbext.language.errors import at
from nbext.language.field_types import BURN
from nbext.language.fields import MAX_CONDITIONS, MAX_DEPTH
from nbext.language.lookup import Context
from nbext.language.model import (
    AllOf,
    AnyOf,
    Node,
    NoneOf,
    Parsed,
    ParsedCondition,
    ParsedGroup,
    ParsedNot,
    Plan,
    Query,
    SeenWallets,
    Segment,
)
from nbext.language.parse import parse

if TYPE_CHECKING:
    from nbext.engine.dataset import Contract, Dataset

SavedRequest = Callable[[str], Mapping[str, Any] | None]
# In place of a condition that could not be resolved; its error is reported, so no plan is made of it.
_UNRESOLVED = AllOf(())


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
    resolver = _Resolver(query, dataset, saved=saved or (lambda _: None))
    whole = resolver.segment()
    resolver.report.close()
    return Plan(
        whole=whole,
        shown=tuple(resolver.shown.items()),
        columns=columns(list(resolver.shown)),
        chain=resolver.default,
        as_of=resolver.echo(),
        operator=query.operator,
        limit=query.limit,
        file_type=query.file_type,
        canonical=canonical(query, whole, resolver.default, resolver.canonical_time()),
        words=f"wallets that {whole.words()}",
        leaves=tuple(resolver.leaves),
        warnings=resolver.warnings,
    )


@dataclass
class _Count:
    """The conditions of a query, those of the saved segments in it counted each time that they are named."""

    conditions: int = 0


@dataclass
class _Resolver(Context):
    """Walks one query's tree."""

    saved: SavedRequest = lambda _: None
    within: tuple[str, ...] = ()  # the saved segments that this query is part of
    count: _Count = field(default_factory=_Count)
    leaves: list[Node] = field(default_factory=list)
    shown: dict[Contract, int | None] = field(default_factory=dict)

    def segment(self) -> Segment:
        """Resolve the tree, then the wallets that it sees."""
        scope = self.query.scope
        # Looked at even where no condition is on that chain: the data must hold it, and asOf be a moment of it.
        if scope.chain is not None or scope.as_of is not None:
            self.at(self.default, "/filters/chain")
        node = self.node(self.query.root, positive=True)
        seen = tuple([SeenWallets(chain.id, self.at(chain, "/filters/chain")) for chain in self.chains()])
        excluded: set[str] = set()
        for name in (BURN,) if scope.exclude is None else scope.exclude:
            excluded.update(BURN_ADDRESSES if name == BURN else (name,))
        return Segment(node, seen, tuple(sorted(excluded)))

    def node(self, asked: Parsed, *, positive: bool) -> Node:
        """Resolve a condition or a group. A positive token or nft gives the rows a column."""
        if isinstance(asked, ParsedNot):
            return NoneOf(self.node(asked.child, positive=not positive))
        if isinstance(asked, ParsedGroup):
            children = tuple([self.node(child, positive=positive) for child in asked.children])
            return AllOf(children) if asked.name == "all" else AnyOf(children)
        self.count.conditions += 1
        if self.count.conditions > MAX_CONDITIONS:
            # Once, however many more there are.
            if self.count.conditions == MAX_CONDITIONS + 1:
                detail = f"A segment has at most {MAX_CONDITIONS} conditions, those of saved segments counted."
                self.report.add(asked.pointer, "size", detail)
            return _UNRESOLVED
        # A condition that could not be resolved has reported why; the others are resolved all the same.
        leaf = CONDITIONS[asked.name].resolve(asked, self)
        if leaf is None:
            return _UNRESOLVED
        self.leaves.append(leaf)
        column = leaf.shown() if positive else None
        # The first condition on a contract decides at which block its column is looked at.
        if column:
            self.shown.setdefault(*column)
        return leaf

    def saved_segment(self, asked: ParsedCondition) -> Segment | None:
        """Resolve the saved segment that a condition names, on this data, as of this segment's time."""
        name, pointer = asked.values["id"], at(asked.pointer, "id")
        request = self.saved(name)
        if request is None:
            self.report.add(pointer, "unknown-segment", f"No segment {shown(name)} is saved here.")
            return None
        # Ids are made of contents, so a cycle cannot be written; a damaged registry could still hold one.
        if name in self.within or len(self.within) >= MAX_DEPTH:
            self.report.add(pointer, "depth", f"Saved segments are nested more than {MAX_DEPTH} deep.")
            return None
        try:
            return self._inner(request, name)
        except ValidationError as error:
            for one in error.errors:
                detail = f"The saved segment {name} is no longer valid: {one['pointer']}: {one['detail']}"
                self.report.add(pointer, one["code"], detail)
            return None

    def _inner(self, request: Mapping[str, Any], name: str) -> Segment:
        # Only these: the limit and the file type of what was saved say how to return it, not who is in it.
        query = parse({key: request[key] for key in ("operator", "filters") if key in request})
        # The count is shared: nested saved segments could multiply 200 conditions to millions.
        inner = _Resolver(
            query, self.dataset, as_of=self.as_of, saved=self.saved, within=(*self.within, name), count=self.count
        )
        segment = inner.segment()
        inner.report.close()
        self.warnings.extend(inner.warnings)
        self.used.extend(chain for chain in inner.chains() if chain not in self.used)
        # It may look at a later time than this segment does, and so hold wallets not seen yet.
        loose = any(self.at(chain, "/filters/asOf") is not None for chain in inner.chains())
        return replace(segment, loose=loose)
