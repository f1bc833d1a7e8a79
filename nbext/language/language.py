"""The segment language's steps: `parse` a request, `resolve` it on some data, `compile` it to a question for an engine.

A plan has a canonical form, from which its id is made: a request that means the same, with nothing left to look up.
It has addresses for symbols, blocks for times, raw integers for amounts. To parse and resolve it on the same data gives
the same plan.

A question is a shape with slots, and the values in them. Only what DuckDB, Spark, BigQuery and Trino all have is used
in the expressions that conditions build.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.constants import MAX_COLUMN_SYMBOL
from nbext.core.untrusted_text import shown
from nbext.engine.dataset import Question, Tables
from nbext.engine.query import exact, history
from nbext.engine.query.parameters import Parameters, bound
from nbext.errors import ValidationError
from nbext.language.conditions import CONDITIONS
from nbext.language.conditions.condition import Condition
from nbext.language.describe import at, chain_name
from nbext.language.field_types import BURN
from nbext.language.fields import GRAMMAR, MAX_CONDITIONS, MAX_DEPTH
from nbext.language.json_schema import json_schema
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
)  # fmt: skip
from nbext.language.parse import parse

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.core.chains import Chain
    from nbext.core.operations import Column
    from nbext.engine.dataset import Contract, Dataset

__all__ = ["compile", "json_schema", "parse", "parts", "resolve", "segment_id"]

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
        columns=_columns(list(resolver.shown)),
        chain=resolver.default,
        as_of=resolver.echo(),
        operator=query.operator,
        limit=query.limit,
        file_type=query.file_type,
        canonical=_canonical(query, whole, resolver.default, resolver.canonical_time()),
        words=f"wallets that {whole.words()}",
        leaves=tuple(resolver.leaves),
        warnings=resolver.warnings,
    )


def compile(plan: Plan) -> Question:  # noqa: A001  the step's name; the builtin is not wanted here
    """Return the plan's question."""
    return question(plan.whole, plan.shown, plan.columns)


def parts(plan: Plan) -> list[tuple[str, Question]]:
    """Return each of the plan's conditions alone: its words and its question."""
    whole = plan.whole
    return [(leaf.words(), question(Segment(leaf, whole.seen, whole.exclude))) for leaf in plan.leaves]


def question(
    whole: Segment, shown: Sequence[tuple[Contract, int | None]] = (), columns: Sequence[Column] = ()
) -> Question:
    """Return the question for a segment's wallets, with a column of balances for each contract shown."""
    parameters = Parameters()
    # Of two conditions on one contract the later bound counts: each alone would be right.
    least = dict(whole.node.least_balances())
    segment = parameters.shape_of(whole)
    rows = parameters.shape_of(tuple((contract, at, least.get((contract.contract, at))) for contract, at in shown))
    # A column's name is an alias in the compiled text, so it belongs to the shape.
    names = tuple(column["name"] for column in columns[1:])
    return Question(
        shape=repr((segment, rows, names)),
        wallets=lambda tables, scalars: bound(segment, scalars).wallets(tables),
        columns=lambda tables, scalars: [
            _column(contract, at, needed, name, tables)
            for (contract, at, needed), name in zip(bound(rows, scalars), names, strict=True)
        ],
        values=tuple(parameters.values),
        holders=tuple(contract.holders if at is None else None for contract, at in shown),
    )


def _column(contract: Any, at: Any, least: Any, name: str, tables: Tables) -> ir.Table:
    held = history.balances(contract, at, tables)
    if least is not None:
        # Smaller balances are no matching wallet's; not to read them halves the work, or better.
        held = held.filter(held.size >= least.low.size)
    return held.select("wallet", **{name: held.size if contract.is_nft else exact.column(exact.of(held))})


def segment_id(plan: Plan, fingerprint: str) -> str:
    """Return the id of a plan on some data: the same question of the same data has the same id."""
    # Keys are not sorted: their order is the order of the columns.
    text = json.dumps([GRAMMAR, fingerprint, plan.canonical], separators=(",", ":"), ensure_ascii=True)
    digest = hashlib.sha256(text.encode("ascii")).digest()
    # 144 bits: two segments never meet, and the id still fits a line of a notebook.
    return "sg_" + base64.urlsafe_b64encode(digest[:18]).decode("ascii")


def _canonical(query: Query, whole: Segment, chain: Chain, as_of: int | str | None) -> dict[str, Any]:
    """Return the canonical request of a resolved query."""
    assert isinstance(whole.node, AllOf | AnyOf)
    # The scope is written out in full, defaults too: the id must not change when a default does.
    filters = {**_map(whole.node.children, type(whole.node)), "chain": chain.name}
    filters |= {"exclude": list(whole.exclude)} if as_of is None else {"asOf": as_of, "exclude": list(whole.exclude)}
    return {"operator": query.operator, "filters": filters, "fileType": query.file_type, "limit": query.limit}


def _map(nodes: Sequence[Node], join: type[AllOf | AnyOf]) -> dict[str, Any]:
    """Return joined nodes as one map: several under one key as a list."""
    entries: dict[str, list[Any]] = {}
    for node in nodes:
        if isinstance(node, AllOf | AnyOf):
            key = "all" if isinstance(node, AllOf) else "any"
            value: Any = [_member(child) for child in node.children]
        elif isinstance(node, NoneOf):
            key, value = "not", _member(node.child)
        else:
            assert isinstance(node, Condition)
            key = node.name
            value = {name: one for name, one in node.canonical().items() if one is not None}
        entries.setdefault(key, []).append(value)
    # The list under a group's key is that group's members: two groups need a group around them.
    own, other = ("all", "any") if join is AllOf else ("any", "all")
    if len(entries.get(other, ())) > 1:
        groups = [{other: value} for value in entries[other]]
        entries = {own if key == other else key: [groups] if key == other else one for key, one in entries.items()}
    return {key: values[0] if len(values) == 1 else values for key, values in entries.items()}


def _member(node: Node) -> dict[str, Any]:
    """Return a node as a map inside a group, whose keys all hold."""
    return _map(node.children if isinstance(node, AllOf) else (node,), AllOf)


def _columns(contracts: Sequence[Contract]) -> list[Column]:
    """Return ``address`` and a column for each contract: ``<SYMBOL>_balance``, or ``<SYMBOL>_count`` of NFTs.

    Where two would be equal (engines compare names without regard to case), both get their chain, and
    where they still are, their address.
    """
    # Longer only where needed: "UNI_balance" is what people type, and the chain is nearly always the same.
    names, parts = list[str](), [1] * len(contracts)
    for _ in range(3):
        names = [_column_name(one, length) for one, length in zip(contracts, parts, strict=True)]
        alike = Counter(map(str.casefold, names))
        if len(alike) == len(names):
            break
        # Names that are already their own stay as they are.
        parts = [length + (alike[name.casefold()] > 1) for name, length in zip(names, parts, strict=True)]
    found: list[Column] = [{"name": "address", "type": "string"}]
    for contract, name in zip(contracts, names, strict=True):
        column: Column = {
            "name": name,
            "type": "integer" if contract.is_nft else "uint256",
            "symbol": contract.symbol,
            "chain": chain_name(contract.chain_id),
            "address": contract.address,
        }
        # A count has no decimals to be divided by.
        found.append(column if contract.is_nft else {**column, "decimals": contract.decimals})
    return found


def _column_name(contract: Contract, parts: int) -> str:
    # A symbol is a stranger's text; a column's name goes into SQL, CSV headers and Python attributes.
    symbol = re.sub(r"[^A-Za-z0-9_]", "", contract.symbol or "")[:MAX_COLUMN_SYMBOL] or contract.address[:10]
    chain = chain_name(contract.chain_id).replace("-", "_")
    kind = "count" if contract.is_nft else "balance"
    return "_".join([*(symbol, chain, contract.address)[:parts], kind])


@dataclass
class _Resolver(Context):
    """Walks one query's tree."""

    saved: SavedRequest = lambda _: None
    within: tuple[str, ...] = ()  # the saved segments that this query is part of
    counted: list[ParsedCondition] = field(default_factory=list)  # those of saved segments each time they are named
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
        self.counted.append(asked)
        if len(self.counted) > MAX_CONDITIONS:
            # Once, however many more there are.
            if len(self.counted) == MAX_CONDITIONS + 1:
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
        # The list is shared: nested saved segments could multiply 200 conditions to millions.
        within = (*self.within, name)
        inner = _Resolver(query, self.dataset, as_of=self.as_of, saved=self.saved, within=within, counted=self.counted)
        segment = inner.segment()
        inner.report.close()
        self.warnings.extend(inner.warnings)
        self.used.extend(chain for chain in inner.chains() if chain not in self.used)
        # It may look at a later time than this segment does, and so hold wallets not seen yet.
        loose = any(self.at(chain, "/filters/asOf") is not None for chain in inner.chains())
        return replace(segment, loose=loose)
