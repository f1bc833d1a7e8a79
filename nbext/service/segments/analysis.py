"""From the body of a request to its plan, and what is said of segments and wallets beside their rows.

Counts, funnels, explanations and holdings are answered at once, with nothing stored; but a profile is of a segment that
only counts, with more to say: the same job, queue, limits and cancelling.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nbext.core.chains import Chain, chain_of
from nbext.core.rules import NFT_STANDARDS
from nbext.core.strict_json import canonical_json
from nbext.core.times import iso
from nbext.core.uint256 import amount_type, size_of
from nbext.core.wire import (
    EXECUTE_KEYS,
    HELD_FIELDS,
    CountsRequest,
    ExecuteRequest,
    ExplainRequest,
    Holdings,
    HoldingsRequest,
    check_places,
)
from nbext.engine.dataset import Cancel, Question
from nbext.engine.exact_columns import quotients
from nbext.engine.holdings import holdings_of, profile_of_holders
from nbext.engine.query.answers import Dataset
from nbext.engine.query.set_tree import WalletList
from nbext.errors import ValidationError
from nbext.language import language
from nbext.language.describe import first_three
from nbext.language.lookup import SHARELESS, unseen_on
from nbext.service.accounts.keys import Key
from nbext.service.segments.lists import Lists
from nbext.service.segments.store import SegmentRecord, SegmentStore

# Bodies that are remembered, and the bytes of the longest body of one.
_MOST, _LONGEST = 256, 16 << 10
# The most wallets that a funnel names.
_SAMPLE = 10
# Contracts of one profile.
MOST_CONTRACTS = 200
_DAYS, _TRANSFERS = (30, 90, 365), (2, 10, 100)


@dataclass
class PlannedBody:
    """The plan of a body, and how it was answered last: the bytes, and of which segment with its result."""

    plan: Any
    answer: bytes = b""
    segment: SegmentRecord | None = None


@dataclass(frozen=True)
class Planner:
    """Makes the plans of one caller on one generation of the data, until it is cancelled.

    ``key`` may name in a body the segments and lists that it may see; without one, all. ``known`` are the bodies that
    were planned last on that very data, as canonical JSON, whoever asked.
    """

    store: SegmentStore
    lists: Lists
    known: dict[bytes, PlannedBody]
    dataset: Dataset
    key: Key | None
    cancel: Cancel

    def plan(self, body: Any) -> Any:
        """Return the plan of an execute's body; InvalidSegment or AmbiguousSymbol where it has none.

        It may be parsed already.
        """
        # What is named may be another one tomorrow, and for another key.
        named = list[str]()

        def saved(segment_id: str) -> dict[str, Any] | None:
            named.append(segment_id)
            segment = self.store.get(segment_id, self.key)
            # Changes have the wallets of two times: no filters say which these are.
            if segment is None or "since" in segment.request:
                return None
            changed = segment.fingerprint != self.dataset.about.fingerprint
            known = {"chain": segment.facts.get("chain"), "matched": segment.matched}
            return {**segment.request, **known, "changed": changed}

        def stored(name: str) -> WalletList | None:
            named.append(name)
            return self.lists.find(name, self.key)

        query = language.parse(body) if isinstance(body, Mapping) else body
        plan = language.resolve(query, self.dataset, saved=saved, lists=stored, cancel=self.cancel)
        if isinstance(body, Mapping) and not named:
            text = canonical_json(body)
            if len(self.known) >= _MOST:
                # Not all of them: who asks a few more in turn would have each planned anew. In one step each: other
                # threads add to them, and take one out, meanwhile.
                oldest, *_ = self.known
                self.known.pop(oldest, None)
            if len(text) <= _LONGEST:
                self.known[text] = PlannedBody(plan)
        return plan

    def count(self, questions: Sequence[Any], places: Sequence[Sequence[int]]) -> list[int]:
        """Return how many wallets some of these questions have in common, for each list of places."""
        return self.dataset.answers(lambda answers: answers.counts(questions, places), self.cancel)

    def plans(self, bodies: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return the plans of many bodies, whose errors name their place under /segments."""
        queries, plans = list[Any](), list[Any]()
        # The one after those that are made.
        with _below(lambda: f"/segments/{len(queries)}"):
            queries.extend(map(language.parse, bodies))
        language.learn_times(queries, self.dataset)
        with _below(lambda: f"/segments/{len(plans)}"):
            plans.extend(map(self.plan, queries))
        return plans

    def requested(self, request: Mapping[str, Any]) -> Any:
        """Return the plan of a segment's request, or of that for its profile or its changes."""
        body = {name: request[name] for name in EXECUTE_KEYS if name in request}
        plan = self.plan(body)
        if asked := request.get("profile"):
            with _below(lambda: "/base"):
                base = asked["base"] and self.plan(asked["base"]).canonical
            profile = {**asked, "base": base and base["filters"]}
            if base:
                profile["operator"] = base["operator"]
            # Another question than the segment's, with an id of its own.
            return replace(
                plan,
                canonical={**plan.canonical, "profile": profile},
                warnings=[*plan.warnings, *_of_all_balances(_times(plan), self.dataset)],
            )
        if "since" in request:
            # Both of one chain's blocks, so that other chains are looked at when it was there.
            with _below(lambda: "/since", "/filters/asOf"):
                now, then = (
                    self.plan({**body, "filters": {**body["filters"], "asOf": at}})
                    for at in (plan.as_of["block"], request["since"])
                )
            return language.changes_plan(now, then)
        return plan


def own_id_of(plan: Any, dataset: Dataset, key: Key | None) -> str:
    """Return the id of a plan's segment; a private key's is its own: nobody learns that others ask the same."""
    of = dataset.about.fingerprint
    return language.segment_id(plan, f"{of} {key.id}" if key and key.private else of)


@contextlib.contextmanager
def _below(place: Callable[[], str], of: str = "") -> Iterator[None]:
    """Put the place in the request of the segment that could not be made before an error's pointers."""
    try:
        yield
    except ValidationError as error:
        raise error.below(place(), of) from None


def counts_of(planner: Planner, asked: CountsRequest) -> dict[str, Any]:
    """Return how many wallets some segments have in common, and what each holds where that is asked."""
    check_places(asked)
    together, amounts = asked["counts"], asked.get("amounts", False)
    # Amounts are those of rows, with what is said of these.
    plans = planner.plans(
        [{**segment, "limit": 1 if amounts else 0} for segment in asked["segments"]]
    )
    questions = [language.compile(plan) for plan in plans]
    known: dict[tuple[int, ...], int] = {}
    segments = [_heading(plan) | ({"held": None} if amounts else {}) for plan in plans]
    name = amounts if isinstance(amounts, str) else None
    columns = {
        place: one
        for place, plan in enumerate(plans)
        if amounts and (one := language.balance(plan, name))
    }
    totals = planner.dataset.answers(
        lambda answers: answers.totals([question for _, question in columns.values()]),
        planner.cancel,
    )
    for (place, (column, _)), (matched, total) in zip(columns.items(), totals, strict=True):
        known[(place,)] = matched
        decimals = column.get("decimals", 0)
        segments[place]["held"] = {
            "symbol": column.get("symbol"),
            "decimals": decimals,
            # Reading a text rounds once, as a segment's amounts are rounded.
            "amount": None if decimals is None else float(f"{total}e-{decimals}"),
            "amountRaw": str(total),
        }
    rest = [places for places in map(tuple, together) if places not in known]
    if rest:
        known |= zip(rest, planner.count(questions, rest), strict=True)
    return {
        "counts": [known[tuple(places)] for places in together],
        "segments": segments,
        "fingerprint": planner.dataset.about.fingerprint,
    }


def _heading(plan: Any) -> dict[str, Any]:
    return {
        "words": plan.words,
        "canonical": plan.canonical,
        "asOf": plan.as_of,
        "chains": [chain_of(one.chain_id).name for one in plan.whole.seen],
        "warnings": plan.warnings,
    }


def funnel_of(planner: Planner, asked: ExecuteRequest) -> dict[str, Any]:
    """Return each condition of a segment that must hold, counted alone and with those before it; and a few wallets."""
    plan = planner.plan(asked)
    steps = language.funnel_steps(plan, planner.count)
    few = min(plan.limit, _SAMPLE)
    # Without wallets it would be counted once more.
    found = (
        planner.dataset.ask(language.compile(plan), limit=few, cancel=planner.cancel)
        if few
        else None
    )
    heading = _heading(plan)
    if "exclude" not in asked["filters"]:
        heading["warnings"] = language.funnel_notes(plan)
    return {
        **heading,
        "steps": steps,
        "sample": found.rows["address"].to_pylist() if found else [],
        "fingerprint": planner.dataset.about.fingerprint,
    }


def explanation_of(planner: Planner, asked: ExplainRequest) -> dict[str, Any]:
    """Return what a segment would do: its id, words, canonical form, statement and plan of the engine."""
    dataset, cancel = planner.dataset, planner.cancel
    parts = asked.pop("parts", False)
    plan = planner.plan(asked)
    question = language.compile(plan)
    explained = {
        "id": own_id_of(plan, dataset, planner.key),
        **_heading(plan),
        **dataset.answers(lambda answers: answers.explained(question, plan.limit), cancel),
    }
    if parts:
        (explained["matched"],) = planner.count([question], [[0]])
        explained["parts"] = [
            {"words": words, "matched": dataset.ask(question, limit=0, cancel=cancel).matched}
            for words, question in language.parts(plan)
        ]
    return explained


def wallet_holdings(planner: Planner, body: HoldingsRequest) -> bytes:
    """Return what some wallets hold, on one chain or on all, now or at ``asOf``, as an Arrow IPC stream."""
    dataset, named = planner.dataset, body["wallets"]
    chains = [chain_of(extent.chain_id) for extent in dataset.about.chains]
    if "chain" in body:
        chains = [chain_of(body["chain"], "/chain")]
    scope = {name: value for name, value in body.items() if name in ("chain", "asOf")}
    key, listed = ("in", named) if named[0].startswith("0x") or named[1:] else ("list", named[0])
    # As a segment of what is seen on these chains: so addresses, times and their errors are those of segments.
    filters = {"wallet": {key: listed}, "exclude": [], **_seen_on(chains, least=1), **scope}
    with _below(lambda: "", "/filters"), _below(lambda: "/wallets", f"/filters/wallet/{key}"):
        plan = planner.plan({"filters": filters, "limit": 0})
    asked = _times(plan)
    # Of the wallets alone: whom these chains have not seen holds nothing on them.
    wallets = plan.leaves[0]
    found, contracts, below = holdings_of(
        dataset, Question(wallets.wallets), asked, cancel=planner.cancel
    )
    supplies = dict[int, int]()
    stated = contracts.select(["chain_id", "contract", "total_supply"]).drop_null().to_pylist()
    for chain, block in asked.items():
        digits = {
            one["contract"]: int(one["total_supply"]) for one in stated if one["chain_id"] == chain
        }
        supplies |= dataset.catalog.supplies(digits, block)
    notes = [*plan.warnings, *_of_all_balances(asked, dataset)]
    if below:
        notes.append(
            f"Balances below zero are left out: {below:,}, of the zero address or where transfers are missing."
        )
    if shareless := len(contracts) - len(supplies):
        notes.append(f"{shareless:,} of {len(contracts):,} contracts: {SHARELESS}.")
    holding = found["address"].unique()
    if without := wallets.most() - len(holding):
        nothing = sorted(set(wallets.among or ()).difference(holding.to_pylist()))
        names = first_three(nothing) or f"{without:,} of {wallets.most():,} wallets"
        notes.append(f"{names}: no holdings in this data.")
    said: Holdings = {
        "asOf": plan.as_of,
        "chains": [
            {
                "chain": chain_of(one).name,
                "block": end,
                "timestamp": iso(dataset.clock.moment(one, end)[0]),
            }
            for one, at in asked.items()
            for end in [dataset.clock.last(one)[0] if at is None else at]
        ],
        "warnings": notes,
    }
    return _arrow_of(found, contracts, supplies, said)


def _arrow_of(
    found: pa.Table, contracts: pa.Table, supplies: Mapping[int, int], said: Holdings
) -> bytes:
    """Return holdings with the columns of `HELD_FIELDS`; a row has the place of its contract."""
    amounts, place = found["amount"].combine_chunks(), found["contract"]
    counted = pc.is_in(contracts["standard"], pa.array(NFT_STANDARDS))
    decimals = pc.if_else(counted, 0, contracts["decimals"]).take(place).to_pylist()
    units = [None if places is None else 10**places for places in decimals]
    supply = [supplies.get(one) for one in contracts["contract"].to_pylist()]
    columns = {
        "amount": quotients(amounts, units),
        "share": quotients(amounts, [supply[one] for one in place.to_pylist()]),
        "address": found["address"],
        "amount_raw": amounts.cast(amount_type(size_of(amounts))),
    }
    known = contracts.take(place)
    columns |= {**_named(known), "verified": known["verified"]}
    # Each text goes out once.
    rows = pa.table(
        {
            name: columns[name].dictionary_encode() if kind == "string" else columns[name]
            for name, kind in HELD_FIELDS.items()
        }
    ).replace_schema_metadata({"nbext": canonical_json(said)})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as out:
        out.write_table(rows, max_chunksize=65_536)
    return bytes(sink.getvalue())


def _named(contracts: pa.Table) -> dict[str, Any]:
    """Return the columns that say what contracts are, under the names of answers."""
    chains = contracts["chain_id"].combine_chunks().dictionary_encode()
    names = pa.array([chain_of(one).name for one in chains.dictionary.to_pylist()], pa.string())
    return {
        "chain": names.take(chains.indices),
        "contract": contracts["address"],
        "symbol": contracts["symbol"],
        "name": contracts["name"],
        "tokenType": contracts["standard"],
        "possibleSpam": contracts["spam"],
    }


def _seen_on(chains: Iterable[Chain], least: int = 0) -> dict[str, Any]:
    """Return the filter of wallets that the data has seen on any of these chains, in so many transfers."""
    transfers = {"transfers": {"min": least}}
    return {"any": [{"activity": {**transfers, "chain": chain.name}} for chain in chains]}


def _times(plan: Any) -> dict[int, int | None]:
    """Return the block that a plan looks at on each chain; None for the last."""
    return {one.chain_id: one.at for one in plan.whole.seen}


def _of_all_balances(asked: Mapping[int, int | None], dataset: Dataset) -> list[str]:
    """Return what an answer lacks that looks at the balances of all contracts, in lines."""
    lines = dataset.about.unknown_at(asked)
    for chain in asked:
        if number := dataset.catalog.lacking(chain)["below_zero"]:
            lines.append(
                f"{chain_of(chain).name}: transfers of {number:,} contract{'s' * (number != 1)} are missing: some of "
                "their balances are below zero at some block, which no wallet can have, and are left out there."
            )
        lines += unseen_on(dataset.catalog, chain_of(chain))
    return lines


def profile_of(planner: Planner, plan: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the profile of a plan beside that of ``asked["base"]``."""
    known = plan.canonical["filters"]
    scope = {name: known[name] for name in ("chain", "asOf", "exclude") if name in known}
    seen = _seen_on(chain_of(one.chain_id) for one in plan.whole.seen)
    base = planner.plan(asked["base"] or {"filters": {**seen, **scope}, "limit": 0})
    parts = _parts(planner, plan, scope)
    both = language.compile(plan), language.compile(base)
    # Of a part the condition alone: whom a side leaves out, it leaves out with every part.
    questions = [*both, *(Question(one.leaves[0].wallets) for one in parts)]
    least = asked["least"]
    number, found = profile_of_holders(
        planner.dataset,
        *both,
        _times(plan),
        least=least,
        most=MOST_CONTRACTS,
        cancel=planner.cancel,
    )
    pairs = [[side, 2 + place] for place in range(len(parts)) for side in (0, 1)]
    wallets, of_base, *counts = planner.count(questions, [[0], [1], *pairs])
    return {
        "wallets": wallets,
        "base": of_base,
        "baseWords": base.words,
        "least": least,
        "contracts": number,
        "holdings": pa.table(
            {**_named(found), "wallets": found["wallets"], "base": found["base"]}
        ).to_pylist(),
        "activity": [
            {
                "words": part.words.removeprefix("wallets that "),
                "filters": part.canonical["filters"],
                "wallets": inside,
                "base": beside,
            }
            for part, inside, beside in zip(parts, counts[::2], counts[1::2], strict=True)
        ],
    }


def _parts(planner: Planner, plan: Any, scope: Mapping[str, Any]) -> list[Any]:
    """Return plans of how old and how active wallets are on one chain, as far as the data goes back."""
    clock, chain = planner.dataset.clock, chain_of(plan.whole.seen[0].chain_id)
    end, starts = clock.moment(chain.id, plan.as_of["block"])[0], list[str]()
    for start in [] if end is None else [end - days * 86_400 for days in _DAYS]:
        # With no block before it the window is all of the data, of which every wallet would be young.
        before = clock.block_at(chain.id, start - 1)
        if before is not None and clock.moment(chain.id, before)[0] is not None:
            starts.append(iso(start))
    asked: list[dict[str, Any]] = [
        {key: {"after": start}} for key in ("first", "last") for start in starts
    ]
    asked += [{"transfers": {"min": least}} for least in _TRANSFERS]
    parts = ({"activity": {**one, "chain": chain.name}, **scope} for one in asked)
    return [planner.plan({"filters": part}) for part in parts]
