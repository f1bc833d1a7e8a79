"""The segment language's steps: `parse` a request, `resolve` it on some data, `compile` it to a question for an engine.

A plan has a canonical form, from which its id is made: a request that means the same, with nothing left to look up.
It has addresses for symbols, blocks for times, raw integers for amounts. To parse and resolve it on the same data gives
the same plan.

A question writes its statements when an engine asks for them: text with named values, of what DuckDB and Spark both
have.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.chains import chain_of
from nbext.core.provenance import retaken
from nbext.core.strict_json import below
from nbext.core.untrusted_text import shown, visible
from nbext.engine.dataset import MOST_VALUES, Cancel, ExactColumn, Order, Question
from nbext.errors import ValidationError, did_you_mean
from nbext.language import describe
from nbext.language.conditions import CONDITIONS
from nbext.language.conditions.condition import Condition
from nbext.language.conditions.nft import NftCondition
from nbext.language.conditions.transfer import TransferCondition
from nbext.language.describe import first_three
from nbext.language.fields import (
    BURN,
    GRAMMAR,
    MAX_CONDITIONS,
    MAX_DEPTH,
    MAX_EXPLAINED,
    ONLY_AMOUNT,
    Time,
    TimeRange,
)
from nbext.language.lookup import Context, SavedRequest, StoredLists, Unresolved, own_chain
from nbext.language.model import (
    FACTS,
    SHARE,
    TRANSFERRED,
    AllOf,
    AnyOf,
    BalanceColumn,
    FactColumn,
    MatchColumn,
    NoneOf,
    Parsed,
    ParsedCondition,
    ParsedGroup,
    ParsedQuery,
    Plan,
    PlanNode,
    SeenWallets,
    SegmentNode,
    ShownColumn,
    describe_columns,
)
from nbext.language.parse import parse

if TYPE_CHECKING:
    from nbext.core.wire import Column, FunnelCondition
    from nbext.engine.dataset import Contract
    from nbext.engine.query.answers import Dataset

__all__ = ["parse"]

Count = Callable[[Sequence[Question], Sequence[Sequence[int]]], list[int]]
# In place of a condition that could not be resolved; its error is reported, so no plan is made of it.
_UNRESOLVED = AllOf(())


def resolve(
    query: ParsedQuery,
    dataset: Dataset,
    saved: SavedRequest = lambda _: None,
    lists: StoredLists = lambda _: None,
    cancel: Cancel | None = None,
) -> Plan:
    """Return what a query means on a dataset.

    Parameters
    ----------
    saved
        Returns the request (``operator``, ``filters``, ``limit``) of a saved segment by its id, or None; beside it
        ``matched``, and ``changed`` where it was saved on other data.
    lists
        Returns a stored list of wallets by its id, or None.
    cancel
        Looked at before each condition.

    Raises
    ------
    InvalidSegment
        A contract, chain or time that the data does not hold; an amount that its token cannot have.
    AmbiguousSymbol
        Symbols that several contracts bear, with the candidates.
    QueryCancelled, QueryTimeout
    """
    resolver = _Resolver(query, dataset, saved=saved, lists=lists, cancel=cancel or Cancel())
    whole = resolver.segment()
    shown = resolver.columns()
    described = describe_columns(shown)
    order = resolver.order(described)
    resolver.report.close()
    return Plan(
        whole=whole,
        shown=shown,
        columns=described,
        order=order,
        chain=resolver.default,
        as_of=resolver.echo(),
        limit=query.limit,
        canonical=resolver.canonical(whole, order),
        words=f"wallets that {whole.words()}{describe.ordered(order)}",
        leaves=tuple(resolver.leaves),
        warnings=resolver.warnings,
    )


def learn_times(queries: Sequence[ParsedQuery], dataset: Dataset) -> None:
    """Have the times of many queries looked up at once: one by one they take longer than the queries themselves."""
    clock, spans = dataset.clock, set[int]()
    asked: dict[int, list[int]] = {}
    for query in queries:
        chain, time = own_chain(query), query.scope.as_of
        if time and (stamp := time.seconds(clock.last(chain.id)[1])) is not None:
            asked.setdefault(chain.id, []).append(stamp)
            spans.update(_spans(query.root))
    for chain_id, stamps in asked.items():
        clock.learn(chain_id, stamps)
        # Each is counted back from the block of each of these; what begins then is after the second before.
        blocks = [clock.block_at(chain_id, stamp) for stamp in stamps if spans]
        ends = [clock.moment(chain_id, one)[0] for one in blocks if one is not None]
        backs = [back + early for back in spans for early in (0, 1)]
        clock.learn(chain_id, [end - back for end in ends if end for back in backs])


def _spans(node: Parsed) -> Iterator[int]:
    if isinstance(node, ParsedGroup):
        for child in node.children:
            yield from _spans(child)
        return
    for value in node.values.values():
        both = (value.after, value.before) if isinstance(value, TimeRange) else (value,)
        yield from (one.back for one in both if isinstance(one, Time) and one.back is not None)


def balance(plan: Plan, name: str | None = None) -> tuple[Column, Question] | None:
    """Return a balance of the plan's rows, and the question for it alone: of a contract, or the first of the rows.

    None where the rows begin with no balance.

    Raises
    ------
    ValidationError
        The rows have no balance of a contract of that symbol or address, or balances of several.
    """
    held = [one for one in plan.shown if isinstance(one, BalanceColumn)]
    if name is not None:
        asked = name.strip().casefold()
        found = [
            one
            for one in held
            if asked in (one.contract.address, (one.contract.symbol or "").casefold())
        ]
        if len(found) != 1:
            some = "several balances" if found else "no balance"
            having = (
                f" They have: {first_three([describe.contract_name(one.contract) for one in held])}."
                if held
                else ""
            )
            advice = " Give its address." if found else having
            raise ValidationError.of(
                "/amounts", "unknown-symbol", f"The rows have {some} of {shown(name)}.{advice}"
            )
        held = found
    if not held:
        return None
    # What is below zero, where transfers are missing, is nobody's: it would take away from what the others hold.
    first = (replace(held[0], share_of=None, least=1),)
    described = describe_columns(first)
    return described[1], compile(replace(plan, shown=first, columns=described, order=None))


def changes_plan(now: Plan, then: Plan) -> Plan:
    """Return the plan for the wallets of a segment at either of two times, given its plans as of both.

    The rows have for each time the balances, whether the wallet matches then or not, and whether it does: ``then_...``
    and ``now_...``, each ending with ``matches``.
    """
    shown: list[ShownColumn] = []
    described: list[Column] = [{"name": "address", "type": "string"}]
    for when, plan in (("then", then), ("now", now)):
        its: list[ShownColumn] = [one for one in plan.shown if isinstance(one, BalanceColumn)]
        its.append(MatchColumn(plan.whole))
        shown += its
        described += [
            {**column, "name": f"{when}_{column['name']}"} for column in describe_columns(its)[1:]
        ]
    return replace(
        now,
        whole=SegmentNode(AnyOf((then.whole, now.whole)), now.whole.seen, ()),
        shown=tuple(shown),
        columns=described,
        order=None,
        canonical={**now.canonical, "since": then.as_of},
        words=f"{now.words}, at block {then.as_of['block']:,} or now",
        warnings=list(dict.fromkeys([*then.warnings, *now.warnings])),
    )


def parts(plan: Plan) -> list[tuple[str, Question]]:
    """Return each of the plan's conditions alone: its words and its question."""
    return [(leaf.words(), _wallets(plan, leaf)) for leaf in plan.leaves]


def _wallets(plan: Plan, node: PlanNode) -> Question:
    """Return the question for the wallets of a part of a plan, of those that the whole segment sees."""
    whole = SegmentNode(node, plan.whole.seen, plan.whole.exclude)
    return compile(replace(plan, whole=whole, shown=(), columns=[], order=None))


def count_none(plan: Plan, count: Count) -> list[list[int]]:
    """Return how many wallets match each condition that must hold: alone, and together with those before it.

    Of one condition, or of some of which any would do, the answer says it all: no numbers.
    """
    nodes = _explained(plan)
    if len(nodes) < 2:
        return []
    steps = funnel_steps(replace(plan, whole=replace(plan.whole, node=AllOf(nodes))), count)
    return [[step["alone"], step["remaining"]] for step in steps]


def why_none(plan: Plan, counted: Sequence[Sequence[int]]) -> list[str]:
    """Return which of the conditions of a plan leave no wallet, in two lines; ``counted`` is of `count_none`."""
    words = [visible(node.words(), 120) for node in _explained(plan)]
    # Two plans of one canonical form may group their conditions in two ways.
    if not counted or len(words) != len(counted):
        return []
    remaining = [both for _, both in counted]
    end = next((number for number, both in enumerate(remaining) if not both), len(words))
    each = "; ".join(f"{alone:,} {one}" for one, (alone, _) in zip(words, counted, strict=True))
    left = ", then ".join(f"{both:,}" for both in remaining[: end + 1])
    last = f': nobody is left with "{words[end]}"' if end < len(words) else ""
    return [
        f"No wallet matches. Each condition alone: {each}.",
        f"Together, in this order: {left}{last}.",
    ]


def _explained(plan: Plan) -> tuple[PlanNode, ...]:
    node = plan.whole.node
    return node.children[:MAX_EXPLAINED] if isinstance(node, AllOf) else ()


def funnel_steps(plan: Plan, count: Count) -> list[FunnelCondition]:
    """Return the conditions that must all hold, in order, counted; ``count`` is `Answers.counts`.

    ``filters`` of each is a map of a request, with nothing left to look up.
    """
    whole = plan.whole
    nodes = whole.node.children if isinstance(whole.node, AllOf) else (whole.node,)
    places = range(len(nodes))
    questions = [_wallets(plan, node) for node in nodes]
    counts = count(
        questions, [*([place] for place in places), *(range(place + 1) for place in places)]
    )
    return [
        {"words": node.words(), "filters": _member(node), "alone": alone, "remaining": remaining}
        for node, alone, remaining in zip(nodes, counts, counts[len(nodes) :], strict=False)
    ]


def funnel_notes(plan: Plan) -> list[str]:
    """Return a plan's notes, and which of its conditions the burn address would match alone."""
    node = plan.whole.node
    alone = _burn_notes(AnyOf(node.children)) if isinstance(node, AllOf) else []
    return list(dict.fromkeys([*plan.warnings, *alone]))


def _burn_notes(node: PlanNode, *, without: bool = True) -> list[str]:
    # Counts of holders elsewhere have the burn address among them, and then differ by one.
    names = first_three(list(dict.fromkeys(node.burned())))
    what = (
        'left out. "exclude": [] includes it.'
        if without
        else 'counted: "exclude" names only others. {"not": {"wallet": {"in": ...}}} leaves out both.'
    )
    return [f"{names}: the burn address 0x...dEaD is a holder too, and is {what}"] * bool(names)


def compile(plan: Plan) -> Question:  # noqa: A001  the step's name; the builtin is not wanted here
    """Return the question for a plan's wallets, with the columns that are shown, in the order of the rows."""
    whole, described = plan.whole, plan.columns
    # Of two conditions on one contract the later bound counts: each alone would be right.
    least = dict(whole.node.least_balances())
    # The engine reads exact columns alone.
    names = [column["name"] for column in described[1:] if column["type"] != "float64"]
    columns = []
    for name, one in zip(names, plan.shown, strict=True):
        if isinstance(one, MatchColumn):
            columns.append(ExactColumn(name, one.kind, one.values))
            continue
        holders, asked = None, one
        if isinstance(one, BalanceColumn):
            holders = one.contract.holders if one.at is None else None
            asked = replace(one, least=least.get((one.contract.contract, one.at), one.least))
        columns.append(
            ExactColumn(
                name,
                asked.kind,
                asked.values,
                sort_keys=asked.sort_keys if asked.kind == "amount" else None,
                holders=holders or MOST_VALUES,
                size=one.contract.size if one.contract else 0.0,
            )
        )
    # What each column of floats is divided from, an exact one, and by what.
    floats = {
        column["name"]: (f"{column['name']}_raw", 10 ** (column["decimals"] or 0))
        if column["unit"] == "token"
        else (following["name"], int(column["supply"] or 0))
        for column, following in pairwise(described)
        if column["type"] == "float64"
    }
    order = _order(plan.order or "address", described)
    return Question(wallets=whole.wallets, columns=columns, order=order, floats=floats)


def _order(order: str, described: Sequence[Column]) -> Order:
    name = order.removeprefix("-")
    before = list(takewhile(lambda column: column["name"] != name, described))
    exact = sum(column["type"] != "float64" for column in before[1:])
    return Order(exact if before else None, name != order)


def segment_id(plan: Plan, fingerprint: str) -> str:
    """Return the id of a plan on some data: the same question of the same data has the same id."""
    # Keys are not sorted: their order is the order of the columns.
    text = json.dumps(
        [GRAMMAR, fingerprint, plan.canonical], separators=(",", ":"), ensure_ascii=True
    )
    digest = hashlib.sha256(text.encode("ascii")).digest()
    # 144 bits: two segments never meet, and the id still fits a line of a notebook.
    return "sg_" + base64.urlsafe_b64encode(digest[:18]).decode("ascii")


def _map(nodes: Sequence[PlanNode], join: type[AllOf | AnyOf]) -> dict[str, Any]:
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
        entries = {
            own if key == other else key: [groups] if key == other else one
            for key, one in entries.items()
        }
    return {key: values[0] if len(values) == 1 else values for key, values in entries.items()}


def _member(node: PlanNode) -> dict[str, Any]:
    """Return a node as a map inside a group, whose keys all hold."""
    return _map(node.children if isinstance(node, AllOf) else (node,), AllOf)


@dataclass
class _Resolver(Context):
    """Walks one query's tree."""

    within: tuple[str, ...] = ()  # the saved segments that this query is part of
    cancel: Cancel = field(default_factory=Cancel)
    counted: list[ParsedCondition] = field(
        default_factory=list
    )  # those of saved segments each time they are named
    leaves: list[Condition] = field(default_factory=list)
    positive: list[Condition] = field(default_factory=list)

    def segment(self) -> SegmentNode:
        """Resolve the tree, then the wallets that it sees."""
        scope = self.query.scope
        # Looked at even where no condition is on that chain: the data must hold it, and asOf be a moment of it.
        if scope.chain is not None or scope.as_of is not None:
            self.at(self.default, "/filters/chain")
        node = self.node(self.query.root, positive=True)
        seen = tuple(
            [SeenWallets(chain.id, self.at(chain, "/filters/chain")) for chain in self.chains()]
        )
        excluded: set[str] = set()
        for name in (BURN,) if scope.exclude is None else scope.exclude:
            excluded.update(BURN_ADDRESSES if name == BURN else (name,))
        without = BURN_ADDRESSES[1] in excluded
        # A list that is written out says so itself, where it has the burn address or is empty.
        if not self.within and excluded and without == (scope.exclude is None):
            self.warnings += _burn_notes(node, without=without)
        return SegmentNode(node, seen, tuple(sorted(excluded)))

    def node(self, asked: Parsed, *, positive: bool) -> PlanNode:
        """Resolve a condition or a group. A positive token or nft gives the rows a column."""
        if isinstance(asked, ParsedGroup):
            positive ^= asked.name == "not"
            children = tuple([self.node(child, positive=positive) for child in asked.children])
            if asked.name == "not":
                return NoneOf(*children)
            return AllOf(children) if asked.name == "all" else AnyOf(children)
        self.counted.append(asked)
        if len(self.counted) > MAX_CONDITIONS:
            # Once, however many more there are.
            if len(self.counted) == MAX_CONDITIONS + 1:
                detail = f"A segment has at most {MAX_CONDITIONS} conditions, those of saved segments counted."
                self.report.add(asked.pointer, "size", detail)
            return _UNRESOLVED
        self.cancel.check()
        # A condition that could not be resolved has reported why; the others are resolved all the same.
        try:
            leaf = CONDITIONS[asked.name].resolve(asked, self)
        except Unresolved:
            return _UNRESOLVED
        self.leaves.append(leaf)
        if positive:
            self.positive.append(leaf)
        return leaf

    def columns(self) -> tuple[ShownColumn, ...]:
        """Return the columns of the rows: balances, then the facts that were asked for."""
        asked = self.query.scope.columns or ()
        shown: dict[Contract, int | None] = {}
        # The first condition on a contract decides at which block its column is looked at.
        for leaf in self.positive:
            if column := leaf.shown():
                shown.setdefault(*column)
            if self.query.limit and isinstance(leaf, NftCondition) and leaf.ids:
                owned = describe.contract_name(leaf.contract)
                self.warn(
                    f"{owned}: the count in a row is of all token ids; tokenIds choose only the wallets."
                )
        balances = [
            BalanceColumn(
                contract, at, share_of=self.supply(contract, at) if SHARE in asked else None
            )
            for contract, at in shown.items()
        ]
        if SHARE in asked and not balances:
            self._needed(SHARE, "a token or nft condition that holds of the wallets")
        facts = [self.fact(name) for name in asked if name != SHARE]
        return (*balances, *filter(None, facts))

    def fact(self, name: str) -> FactColumn | None:
        """Return a column of the wallets' activity, or of the transfer condition; None after an error was reported."""
        days = name == "activeDays"
        if name in TRANSFERRED:
            is_sum = name == "transferred"
            found = [one for one in self.positive if isinstance(one, TransferCondition)]
            if len(found) != 1 or is_sum > bool(found[0].contract):
                of = ', with "token" or "nft"' * is_sum
                self._needed(name, f"one transfer condition that holds of the wallets{of}")
                return None
            chain, contract = chain_of(found[0].chain_id), found[0].contract
            column = FactColumn(name, chain.id, found[0].summed, contract if is_sum else None)
        else:
            chain = self.chains()[0]
            moment = self.at(chain, "/filters/columns")
            column = FactColumn(
                name, chain.id, lambda sql: sql.activity(moment, chain.id, days=days)
            )
        if column.kind in ("time", "number") and chain.id in self.extents:
            advice = f'Leave out "{name}".'
            untimed, blocks = self.dataset.clock.untimed(chain.id)
            if self.timed(chain, "/filters/columns", advice, every=days) and untimed:
                of = f"{untimed:,} of {blocks:,} blocks of {chain.name} have no time"
                self.warn(f"{of}: {name} is missing where it is one of them.")
        return column

    def _needed(self, column: str, what: str) -> None:
        # A condition that could not be looked up is no missing one.
        if all(one["pointer"] == "/filters/columns" for one in self.report.errors):
            self.report.add("/filters/columns", "needs", f'"{column}" needs {what}.')

    def order(self, described: Sequence[Column]) -> str | None:
        """Return the order of the rows as `Plan.order`."""
        written = self.query.scope.order_by
        # Columns that could not be looked up are no reason to refuse an order by them.
        if written is None or self.report.errors:
            return None
        name, descending = written.removeprefix("-"), written.startswith("-")
        names = [column["name"] for column in described]
        # Two columns of one order, which has one canonical form.
        amounts = {
            f"{column['name']}_raw": column["name"]
            for column in described
            if column.get("unit") == "token"
        }
        found = amounts.get(name, name)
        several = {
            amounts.get(column["name"], column["name"])
            for column in described
            if "symbol" in column and column.get("unit") != SHARE
        }
        if name == ONLY_AMOUNT and len(several) == 1:
            (found,) = several
        if found not in names:
            near = "" if name == ONLY_AMOUNT else did_you_mean(name, names)
            more = near or f" Allowed: {', '.join(names)}."
            if name in FACTS and name not in (self.query.scope.columns or ()):
                more = f' Add it to "columns": {json.dumps([name])}.'
            what = f"{len(several)} amounts" if name == ONLY_AMOUNT else f"no column {shown(name)}"
            self.report.add("/filters/orderBy", "column", f"The rows have {what}.{more}")
            return None
        return "-" * descending + found if descending or found != "address" else None

    def canonical(self, whole: SegmentNode, order_by: str | None) -> dict[str, Any]:
        """Return the canonical request of the resolved query."""
        assert isinstance(whole.node, AllOf | AnyOf)
        query, as_of = self.query, self.canonical_time()
        # The scope is written out in full, defaults too: the id must not change when a default does.
        filters = {**_map(whole.node.children, type(whole.node)), "chain": self.default.name}
        filters |= {} if as_of is None else {"asOf": as_of}
        filters["exclude"] = list(whole.exclude)
        # Not written out where they are not given: what was asked before they existed keeps its id.
        filters |= {"columns": list(query.scope.columns)} if query.scope.columns else {}
        filters |= {"orderBy": order_by} if order_by else {}
        return {
            "operator": query.operator,
            "filters": filters,
            "fileType": query.file_type,
            "limit": query.limit,
        }

    def saved_segment(self, asked: ParsedCondition) -> SegmentNode:
        """Resolve the saved segment that a condition names, on this data, as of this segment's time."""
        name, pointer = (
            asked.values["id"],
            below(asked.pointer, "id") if asked.kinds else asked.pointer,
        )
        request = self.saved(name)
        if request is None:
            self.report.add(pointer, "unknown-segment", f"No segment {shown(name)} is saved here.")
            raise Unresolved
        # Ids are made of contents, so a cycle cannot be written; a damaged registry could still hold one.
        if name in self.within or len(self.within) >= MAX_DEPTH:
            self.report.add(
                pointer, "depth", f"Saved segments are nested more than {MAX_DEPTH} deep."
            )
            raise Unresolved
        try:
            # Only these: the limit and the file type of what was saved say how to return it, not who is in it.
            query = parse({key: request[key] for key in ("operator", "filters") if key in request})
            inner = _Resolver(
                query,
                self.dataset,
                as_of=self.as_of,
                as_of_chain=self.as_of_chain,
                saved=self.saved,
                lists=self.lists,
                within=(*self.within, name),
                cancel=self.cancel,
                # Shared: nested saved segments could multiply 200 conditions to millions.
                counted=self.counted,
            )
            segment = inner.segment()
            inner.report.close()
        except ValidationError as error:
            for one in error.errors:
                detail = f"The saved segment {name} is no longer valid: {one['pointer']}: {one['detail']}"
                self.report.add(pointer, one["code"], detail)
            raise Unresolved from None
        for line in (*retaken(request, name), *inner.warnings):
            self.warn(line)
        self.used.extend(chain for chain in inner.chains() if chain not in self.used)
        # It may look at a later time than this segment does, and so hold wallets not seen yet.
        loose = any(self.at(chain, "/filters/asOf") is not None for chain in inner.chains())
        return replace(segment, loose=loose)
