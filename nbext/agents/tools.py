"""The tools that an agent is offered: a function for each, whose signature is what it takes and whose docstring what
a model reads of it.
"""

# No annotations as texts: the shapes of arguments are made from them.

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from annotated_types import Ge, Le, MaxLen, MinLen
from typing_extensions import TypedDict

import nbext
from nbext.agents.answers import ToolAnswer, rows_answer
from nbext.analysis.segments import Segment, client_of, count_common
from nbext.client import Client
from nbext.core import wire
from nbext.core.provenance import Provenance
from nbext.core.rules import LIST_KEYS, MAX_LIMIT, Rule, check_shape, one_of
from nbext.core.strict_json import below
from nbext.errors import (
    MOST_ERRORS,
    ConfigError,
    FieldError,
    InvalidSegment,
    ResponseTooLarge,
    ValidationError,
)
from nbext.notebook import schema

# All rows of an answer are read by the model.
DEFAULT_ROWS, MOST_ROWS, MOST_CHARACTERS = 20, 200, 200_000
Filters: TypeAlias = Annotated[
    dict[str, Any], Rule("type", 'filters is an object of conditions: {"token": {"token": "UNI"}}.')
]
Operator: TypeAlias = Annotated[
    wire.Operator, Rule("choice", "operator is AND or OR.", default="AND")
]


class AgentSegment(TypedDict):
    """A segment among others."""

    filters: Filters
    operator: NotRequired[Operator]


@dataclass(frozen=True)
class AgentTool:
    """One tool: the shape of its arguments, and the function that runs it, whose docstring is what a model reads."""

    shape: Any
    run: Callable[..., ToolAnswer]

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        from pydantic import TypeAdapter

        return TypeAdapter(self.shape).json_schema()

    def answer(self, client: Client, folder: Path | None, given: Mapping[str, Any]) -> ToolAnswer:
        """Check the arguments and run the tool; a ValidationError names every field that is not allowed."""
        check_shape(self.shape, given)
        if unfit := list(islice(_unfit(given, ""), MOST_ERRORS)):
            raise InvalidSegment(unfit)
        more = {"folder": folder} if self.run is _export else {}
        found = self.run(client, **given, **more)
        # A stranger's service may send rows of any width, and all that is answered is read by the model.
        if (size := len(str(found.data))) > MOST_CHARACTERS:
            raise ResponseTooLarge(
                f"The answer has {size:,} characters. Allowed: {MOST_CHARACTERS:,}. Ask for fewer rows."
            )
        return found


TOOLS: dict[str, AgentTool] = {}


def _tool(run: Callable[..., ToolAnswer]) -> Callable[..., ToolAnswer]:
    """Offer a function as a tool: its keywords are what it takes."""
    fields = {
        one.name: one.annotation if one.default is one.empty else NotRequired[one.annotation]
        for one in signature(run).parameters.values()
        if one.kind is one.KEYWORD_ONLY
    }
    # mypy reads only literal ones.
    shape = TypedDict("Arguments", fields)  # type: ignore[misc]
    shape.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
    TOOLS[run.__name__.removeprefix("_")] = AgentTool(shape, run)
    return run


def _unfit(value: Any, here: str) -> Iterator[FieldError]:
    """Yield an error for each list of wallets that names a file, which the client would read, and for each float."""
    named = value if isinstance(value, Mapping) else dict(enumerate(value))
    for key, one in named.items():
        pointer = below(here, key)
        if isinstance(one, Mapping | list):
            yield from _unfit(one, pointer)
        elif isinstance(one, float):
            # The SDK has read it, and nobody knows which digits it had.
            detail = 'Write a number with a fraction as text, as in "0.5": it would be rounded.'
            yield {"pointer": pointer, "code": "type", "detail": detail}
        elif key in LIST_KEYS and isinstance(one, str) and one.startswith("@"):
            detail = 'An agent cannot name a file. Write the addresses: ["0x..."].'
            yield {"pointer": pointer, "code": "address", "detail": detail}


def _search(client: Client, chain: Any = None, **asked: Any) -> ToolAnswer:
    """Find contracts by name, symbol or address, best first: address, chain, number of holders, whether verified or
    possible spam. type: nft (any collection, the default), erc721, erc1155 or token (ERC20). Use it when you are not
    sure of a symbol. Empty searchTerm: all, by holders.
    """
    table = client.search_nfts(asked.pop("searchTerm"), chain, **asked)
    return rows_answer(table, wire.MAX_HITS, "contracts", Provenance.of(table).cut())


TOOLS["search"] = AgentTool(wire.SearchRequest, _search)


@_tool
def _describe(
    client: Client,
    *,
    condition: Annotated[str, Rule("type", "condition is a name, such as token.")] = "",
) -> ToolAnswer:
    """Describe the language of filters. Without condition: the conditions, and the chains of the data with their
    blocks. With one, or asOf, orderBy, columns, ...: its fields, what they mean and may be, with examples. Call it
    before you use a condition for the first time.
    """
    served = client.schema()
    if served is None:
        raise ConfigError(
            "This service publishes no schema of its filters. Its own documentation describes them."
        )
    meanings = {row["condition"]: row["meaning"] for row in schema.rows(served, None)}
    if not condition:
        chains = client.about()["data"]["chains"] if client.is_ours else None
        data = {"conditions": meanings, "chains": chains}
        return ToolAnswer("The conditions of filters. Name one to see its fields.", data)
    name = one_of(condition, meanings, "/condition")
    # Groups and what is written beside the conditions have no definition of their own.
    found = served.get("$defs", {}).get(name) or schema.keys(served, ["filters"])[name]
    return ToolAnswer(meanings[name], {"schema": found})


@_tool
def _count(client: Client, *, filters: Filters, operator: Operator = "AND") -> ToolAnswer:
    """Count the wallets that match filters, exactly: matched is the number, words what the filters mean; check them.
    filters is an object of conditions that must all hold:
    {"token": {"token": "UNI", "balance": {"min": "1000"}}, "not": {"nft": {"nft": "BAYC"}}}.
    Conditions and their fields: token: token, chain, balance, unit, heldSince; nft: nft, chain, count, tokenIds,
    heldSince; collections: of, atLeast, distinct, chain; transfer: direction, token, nft, chain, counterparty, amount,
    total, count, unit, after, before; activity: first, last, transfers, activeDays, chain; wallet: in, list, contract;
    segment: id. Groups: all, any, not. Beside them: chain, asOf, exclude, orderBy, columns.
    direction is in, out, any, mint or burn. all and any take a list of such objects; not takes one, or a list: none of
    them holds. A list under a key is several conditions that must all
    hold. operator OR, beside filters, joins its keys by or. Amounts are texts in the token's unit, bounds inclusive;
    times are UTC: a date in before and asOf is the end of its day, in after and heldSince its beginning.
    """
    counts = "counts without rows; the tool run works with any"
    asked = [Segment(filters, operator, client=client_of(client, does=counts))]
    found = count_common(asked, [[0]])
    (matched,), (words,) = found.counts, found.words
    data = {"matched": matched, "words": words}
    return ToolAnswer(f"{matched:,} wallets {words}".strip(), data, found.about("count", asked))


@_tool
def _run(
    client: Client,
    *,
    filters: Filters,
    operator: Operator = "AND",
    limit: Annotated[
        int,
        Ge(1),
        Le(MOST_ROWS),
        Rule(
            "range",
            f"limit is a whole number from 1 to {MOST_ROWS}. count only counts, export writes all rows.",
            default=DEFAULT_ROWS,
        ),
    ] = DEFAULT_ROWS,
) -> ToolAnswer:
    """Return the first wallets that match filters (as count takes them), at most 200, how many match, and segmentId.
    Each balance is there twice: X_balance rounded, X_balance_raw exact, as text in the smallest unit. Order: by
    address, or "orderBy": "-UNI_balance" inside filters for the largest first. {"segment": {"id": segmentId}} is these
    wallets as a condition.
    """
    table = client.execute_segment(filters, operator, limit=limit)
    about = Provenance.of(table)
    more = f"; limit goes to {MOST_ROWS}, export, where it is offered, writes all"
    answer = rows_answer(table, limit, "wallets are here", about.cut(more))
    if about.matched is not None:
        answer.said = f"{about.matched:,} wallets match; {answer.said}"
    answer.data |= {
        "matched": about.matched,
        "segmentId": about.segment_id,
        "columns": about.columns,
    }
    return answer


@_tool
def _explain(client: Client, *, filters: Filters, operator: Operator = "AND") -> ToolAnswer:
    """Say in words what filters mean, and count each of their conditions alone."""
    found = client_of(client, does="explains a segment").explain(filters, operator, parts=True)
    # All of one answer: of two, the second may be of data that came meanwhile.
    data = {name: found[name] for name in ("matched", "words", "canonical", "parts")}
    data["words"] = data["words"].removeprefix("wallets that ")
    about = Provenance(as_of=found["asOf"], warnings=found["warnings"])
    return ToolAnswer(f"{data['matched']:,} wallets {data['words']}", data, about)


@_tool
def _funnel(client: Client, *, filters: Filters, operator: Operator = "AND") -> ToolAnswer:
    """Count each condition of filters alone, and together with those before it: how many each takes away."""
    table = nbext.funnel(Segment(filters, operator, client=client), client=client)
    return rows_answer(table, MOST_ROWS, "conditions")


@_tool
def _overlap(
    client: Client,
    *,
    segments: Annotated[
        list[
            Annotated[
                AgentSegment,
                Rule(
                    "type",
                    'A segment is an object: {"filters": {...}}, with "operator": "OR" or not.',
                ),
            ]
        ],
        MinLen(2),
        MaxLen(12),
        Rule("size", "segments is a list of 2 to 12 objects with filters."),
    ],
) -> ToolAnswer:
    """Count what 2 to 12 segments have in common: counts[i][j] is how many wallets are in both segments i and j,
    counts[i][i] in segment i.
    """
    table = nbext.overlap(segments, client=client)
    data = {"segments": list(table.index), "counts": table.to_numpy().tolist()}
    return ToolAnswer(f"{len(table)} segments compared.", data, Provenance.of(table))


@_tool
def _changes(
    client: Client,
    *,
    filters: Filters,
    since: Annotated[str | int, Rule("type", "since is a time: 30d, 2025-01-31, or a block.")],
    operator: Operator = "AND",
) -> ToolAnswer:
    """Compare a segment now with an earlier time: how many wallets joined, left and stayed, and the first that joined
    or left. since: 30d, 2025-01-31 (the end of that day), or a block. filters without asOf.
    """
    table = nbext.changes(Segment(filters, operator, client=client), since, client=client)
    about = Provenance.of(table)
    changed = table[table["status"] != "stayed"]
    answer = rows_answer(changed, DEFAULT_ROWS, "wallets that joined or left")
    counts = {name: getattr(about, name) for name in ("joined", "left", "stayed")}
    answer.said = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    answer.data |= {**counts, "then": about.then}
    return answer


def _wallet(client: Client, wallets: list[str], chain: Any = None, **asked: Any) -> ToolAnswer:
    """List all that 1 to 1,000 wallets hold, now or asOf a time, on all chains or one."""
    table = nbext.wallet(wallets, as_of=asked.get("asOf"), chain=chain, client=client)
    return rows_answer(table, MOST_ROWS, "holdings")


TOOLS["wallet"] = AgentTool(wire.HoldingsRequest, _wallet)


@_tool
def _export(
    client: Client,
    folder: Path,
    *,
    filters: Filters,
    name: Annotated[
        str,
        Rule(
            "name",
            "name has 1 to 64 letters, digits, - and _, and begins with a letter or digit: no folder, no ending.",
            core={"type": "str", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"},
            type="string",
        ),
    ],
    operator: Operator = "AND",
    format: Annotated[  # noqa: A002  # as people call it
        Literal["csv", "json", "parquet", "arrow"],
        Rule("choice", "format is csv, json, parquet or arrow.", default="csv"),
    ] = "csv",
) -> ToolAnswer:
    """Write all wallets of a segment to a new file in the folder that the person chose. name has no folder and no
    ending; a file that exists is never replaced.
    """
    # Looked at each time: by now it may be a link that leads elsewhere.
    if folder.resolve() != folder:
        raise ConfigError("The folder of `nbext mcp --folder` has moved.")
    path = folder / f"{name}.{format}"
    # Also a link that leads nowhere.
    if os.path.lexists(path):
        detail = f"The folder has a file {path.name} already. Choose another name."
        raise ValidationError.of("/name", "exists", detail)
    table = client.execute_segment(filters, operator, limit=MAX_LIMIT, to=path)
    answer = rows_answer(table, 1, "file", Provenance.of(table).cut(""))
    (written,) = answer.data.pop("rows")
    answer.said = f"{written['rows']:,} rows are in {path.name}."
    answer.data |= {**written, "file": path.name}
    return answer
