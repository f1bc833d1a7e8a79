"""A segment as it is given, combined with others and counted; the table of an analysis, whose cells are segments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

import pandas as pd

from nbext.analysis.charts import Chart, told_apart
from nbext.core.chains import DEFAULT_CHAIN
from nbext.core.provenance import Provenance, retaken, warned
from nbext.core.rules import MAX_LIMIT, one_of
from nbext.core.untrusted_text import quoted, shown
from nbext.core.wire import EXECUTE_KEYS, MAX_COMPARED, MAX_COUNTS, OPERATORS
from nbext.errors import ConfigError, NotFound, ValidationError

if TYPE_CHECKING:
    from nbext.client import Client


# The keys of filters that are no condition; of these, which wallets match depends on the first three.
SCOPE = ("chain", "asOf", "exclude", "orderBy", "columns")
_GROUPS = ("all", "any")
_MIXED = "The data changed between two requests, and the numbers are not all of the same data. Ask again."


@dataclass(frozen=True)
class Segment:
    """A segment's filters; `open` runs it and returns its wallets."""

    filters: Mapping[str, Any]
    operator: str = "AND"
    limit: int = MAX_LIMIT
    client: Client = field(kw_only=True, repr=False, compare=False)
    # What is known of its rows, where it is given by them or by its id; of a request its limit.
    known: Provenance = field(default=Provenance(), repr=False, compare=False)

    @warned
    def open(self, limit: int | None = None) -> pd.DataFrame:
        """Return the wallets, as `nbext.Client.execute_segment` does: all of them, where no limit is given."""
        most = self.limit if limit is None else limit
        return self.client.execute_segment(self.filters, self.operator, limit=most)

    def notes(self, data: str | None) -> list[str]:
        """Return what an analysis says whose answer is of ``data``: that these are other wallets than the rows'."""
        known = self.known
        request = {
            "limit": known.limit if known.truncated else None,
            "matched": known.matched,
            "changed": None not in (known.fingerprint, data) and known.fingerprint != data,
        }
        if known.segment_id:
            return retaken(request, str(known.segment_id))
        if request["limit"] in (None, 0, "all"):
            return []
        return [f"limit {shown(known.limit)} is not used: all wallets that match are taken."]

    def member(self) -> dict[str, Any]:
        """Return the conditions as one map inside a group."""
        conditions = {key: one for key, one in self.filters.items() if key not in SCOPE}
        if one_of(self.operator, OPERATORS, "/operator") == "AND":
            return conditions
        # The list under a group is its members; under another key each element is a condition.
        several = (
            (key, one if isinstance(one, list | tuple) and key not in _GROUPS else [one])
            for key, one in conditions.items()
        )
        return {"any": [{key: each} for key, those in several for each in those]}

    def at(self, moment: Any) -> Segment:
        """Return the segment as of a time or a block."""
        return replace(self, filters={**self.filters, "asOf": moment})

    def saved(self) -> dict[str, Any]:
        """Return the condition that names this segment by its id, which our own service stores for that."""
        counted = self.client.execute_segment(self.filters, self.operator, limit=0)
        return {"segment": {"id": Provenance.of(counted).segment_id}}


def scope_of(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of filters beside the conditions that decide which wallets match."""
    return {key: filters[key] for key in SCOPE[:3] if key in filters}


@dataclass(frozen=True)
class CommonCounts:
    """What was counted, and what the service says of each segment: its words and the block it was asked at."""

    counts: list[int]
    words: list[str]
    as_of: list[Mapping[str, Any]]
    # Of each segment, with nothing left to look up: a block is one of its own chain, which it may not name itself.
    scopes: list[dict[str, Any]]
    # Those whose wallets are seen, of all segments.
    chains: list[str]
    # Whether all look at the same chains, times and wallets: who is in none of a "not" was seen there.
    alike: bool
    warnings: list[str]
    # What each segment's wallets hold together, where that was asked for and is known.
    held: list[Mapping[str, Any] | None]
    # Which data each answer was of.
    data: set[str | None]

    def about(self, operation: str, segments: Sequence[Segment]) -> Provenance:
        """Return the provenance of a table of these counts."""
        first = self.as_of[0]
        return Provenance(
            operation=operation,
            service=segments[0].client.base_url,
            warnings=[*self.warnings, *[_MIXED] * (len(self.data) > 1)],
            as_of=dict(first) if all(one == first for one in self.as_of) else None,
            segments=requests_of(segments),
        )


def share_columns(names: Iterable[str]) -> list[dict[str, Any]]:
    """Describe columns as shares, which tables show as per cent."""
    return [{"name": name, "type": "float64", "unit": "share"} for name in names]


def requests_of(segments: Iterable[Segment]) -> list[dict[str, Any]]:
    """Return the request of each segment, as a table says it: plain values, whatever was given."""
    bodies = [
        one.client.request_for(one.filters, one.operator, limit=1)["body"] for one in segments
    ]
    return [{name: body[name] for name in ("operator", "filters")} for body in bodies]


def client_of(given: Client | None, of: Any = None, *, does: str = "") -> Client:
    """Return the given client, that of a segment, or one of the service that is set.

    A ConfigError where the service is not our own, the only one that ``does`` something: nobody else is known to take
    conditions that are joined, or another time.
    """
    from nbext.embedded import connect

    client = given or (of.client if isinstance(of, Segment) else connect())
    if does and not client.is_ours:
        raise ConfigError(
            f"{client.base_url} is not nbext's own service, the only one that {does}."
        )
    return client


def segment_of(given: Any, client: Client, pointer: str = "/segment") -> Segment:
    """Return what stands for a segment: filters, a request, a segment's table, its id, a symbol or an address."""
    if isinstance(given, Segment):
        if given.client.base_url != client.base_url:
            of = f"It is of {given.client.base_url}, and {client.base_url} is asked."
            raise ValidationError.of(pointer, "service", of)
        return given
    if isinstance(given, str) and given.startswith("sg_"):
        # Its own filters: a condition that names it would hide its chain, its time and its amounts.
        given = client.segment(given)
    elif Provenance.of(given).operation == "segment":
        # A description of a segment, in one row.
        given = None
    about = Provenance.of(given)
    if about.since is not None:
        detail = "Changes have the wallets of two times. Give the filters of their segment."
        raise ValidationError.of(pointer, "type", detail)
    if isinstance(about.filters, Mapping):
        about.check_whole(given, pointer)
        return Segment(about.filters, about.operator or "AND", client=client, known=about)
    if isinstance(given, str):
        given = _held(given, client, pointer)
    if isinstance(given, Mapping):
        if isinstance(given.get("filters"), Mapping):
            for key in given:
                one_of(key, EXECUTE_KEYS, pointer)
            operator = one_of(given.get("operator") or "AND", OPERATORS, f"{pointer}/operator")
            known = Provenance(limit=given.get("limit"), truncated=True)
            return Segment(given["filters"], operator, client=client, known=known)
        return Segment(given, client=client)
    detail = (
        "A segment is given as filters, as the table of one, as its id, or as a symbol or an address; "
        'wallets of your own as {"wallet": {"in": [...]}}.'
    )
    raise ValidationError.of(pointer, "type", detail)


def _held(name: str, client: Client, pointer: str) -> dict[str, Any]:
    """Return the filters for the holders of a collection or a token, on the chain of the settings."""
    found, chain = [], client.settings["chain"]
    scope = {} if chain == DEFAULT_CHAIN.name else {"chain": chain}
    for key, read in (("nft", client.nfts), ("token", client.tokens)):
        try:
            read(chain, name, strict=True)
        except NotFound:
            continue
        found.append({key: {key: name}, **scope})
    if len(found) == 1:
        return found[0]
    either = (
        f'{quoted(name)} is a token and a collection. Write {{"token": ...}} or {{"nft": ...}}.'
    )
    nothing = f"There is no token and no collection {quoted(name)} on {chain}."
    raise ValidationError.of(pointer, "unknown-symbol", either if found else nothing)


def all_of(
    segments: Sequence[Segment], *, but: Sequence[Segment] = (), alike: bool = False
) -> Segment:
    """Return the segment of the wallets that are in all of some segments, and in none of others.

    ``alike``: they are known to look at the same chains, times and wallets.
    """
    asked = [*segments, *but]
    if alike or len(asked) == 1:
        members, scope = [one.member() for one in asked], scope_of(asked[0].filters)
    else:
        # Each means the same wherever it is named: it has its own time, chain and exclusions.
        members, scope = [one.saved() for one in asked], {"exclude": []}
    first = len(segments)
    members[first:] = [{"not": one} for one in members[first:]]
    return Segment({"all": members, **scope}, client=asked[0].client)


def count_common(
    segments: Sequence[Segment],
    together: Sequence[Sequence[int]],
    *,
    amounts: bool | str = False,
    pointer: str = "",
) -> CommonCounts:
    """Return how many wallets some segments have in common, for each of ``together``: places among them.

    Those of ``~place``, after the first, are left out.
    ``amounts``: also what each segment's wallets hold together, of one contract or of the first.
    ``pointer``: where each segment was given, with its place; an error is one of the filters alone without it.
    """
    counts, said, data = list[int](), dict[int, Mapping[str, Any]](), set[str | None]()
    for part in _parts(together):
        used = sorted(_used(part))
        numbers = {place: number for number, place in enumerate(used)}
        numbers |= {~place: ~number for place, number in numbers.items()}
        try:
            answer = segments[0].client.counts(
                [(segments[place].filters, segments[place].operator) for place in used],
                [[numbers[place] for place in places] for places in part],
                amounts=amounts,
            )
        except ValidationError as error:
            # The service numbers those of a request, and what is wrong with one it says alone.
            if found := re.match("/segments/([0-9]+)", error.errors[0]["pointer"]):
                error = error.below(pointer.format(used[int(found[1])]), found[0])
            raise error from None
        data.add(of := answer["fingerprint"])
        counts += answer["counts"]
        said |= zip(used, answer["segments"], strict=True)
    each = [said[place] for place in range(len(segments))]
    scopes = [(one["chains"], scope_of(one["canonical"]["filters"])) for one in each]
    notes = [*(one["warnings"] for one in each), *(one.notes(of) for one in segments)]
    return CommonCounts(
        counts,
        [one["words"].removeprefix("wallets that ") for one in each],
        [one["asOf"] for one in each],
        [scope for _, scope in scopes],
        list(dict.fromkeys(chain for one in each for chain in one["chains"])),
        all(one == scopes[0] for one in scopes),
        _once([note for one in notes for note in one]),
        [one.get("held") for one in each],
        data,
    )


def _once(notes: Sequence[str]) -> list[str]:
    """Return notes that say the same of several names as one note, with the names before it.

    >>> _once(["BAYC: it is new.", "MAYC: it is new.", "All is well."])
    ['BAYC, MAYC: it is new.', 'All is well.']
    """
    names: dict[str, dict[str, None]] = {}
    for note in notes:
        name, colon, said = note.partition(": ") if ": " in note else ("", "", note)
        names.setdefault(f"{colon}{said}", {})[name] = None
    return [", ".join(found) + said for said, found in names.items()]


def _parts(together: Sequence[Sequence[int]]) -> Iterator[list[Sequence[int]]]:
    """Yield counts, as many as one request may ask for."""
    part: list[Sequence[int]] = []
    used: set[int] = set()
    for places in together:
        if part and (len(part) == MAX_COUNTS or len(used | _used([places])) > MAX_COMPARED):
            yield part
            part, used = [], set()
        part.append(places)
        used |= _used([places])
    yield part


def _used(together: Sequence[Sequence[int]]) -> set[int]:
    return {~place if place < 0 else place for places in together for place in places}


def _symbol(filters: Mapping[str, Any]) -> str | None:
    """Return the symbol or address of filters that name one contract and nothing else."""
    for kind in ("token", "nft"):
        one = filters.get(kind)
        if len(filters) == 1 and isinstance(one, Mapping) and list(one) == [kind]:
            return str(one[kind])
    return None


def names_of(
    given: Iterable[Any], segments: Sequence[Segment], words: Sequence[str] = ("",)
) -> list[str]:
    """Return a name for each segment: the symbol that was given, its words, or its filters; each name once."""
    return told_apart(
        (one if isinstance(one, str) else said or _symbol(segment.filters))
        or json.dumps(segment.filters, default=str, ensure_ascii=False)
        for one, segment, said in zip(given, segments, words, strict=True)
    )


class Result(pd.DataFrame):
    """A table whose cells are segments. What pandas makes of it is a plain DataFrame.

    ``attrs["nbext"]`` says which service and block it is of, and the filters of the segments that were compared.
    """

    # pandas keeps attributes that are named here out of the columns.
    _metadata: ClassVar[list[str]] = ["_labels", "_cells", "_drawn"]
    # As they were answered: a row that was moved in place would open the wallets of another one.
    _labels: pd.Index[Any]
    _cells: Callable[[int, Any], Segment | None]
    _drawn: Mapping[str, Callable[[], Chart]]

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        # A client, which the cells have, is not pickled.
        return pd.DataFrame.copy, (self.copy(),)

    def segment(self, row: Any, column: Any = None) -> Segment:
        """Return the segment of a cell, by the labels of its row and column: ``.filters``, and ``.open()`` for wallets.

        Raises
        ------
        ValidationError
            There is no such cell, or it counts no wallets.
        """
        place = self._labels.get_indexer(pd.Index([row]))[0]
        if place < 0 or (column is not None and column not in self.columns):
            raise ValidationError.of(
                "", "cell", f"The table has no cell {quoted(row)}, {quoted(column)}."
            )
        found = self._cells(int(place), column)
        if found is None:
            detail = f"The column {quoted(column)} counts no wallets: choose another one."
            if column is None:
                detail = f"Name the column, too: {', '.join(map(quoted, self.columns[:20]))}."
            raise ValidationError.of("", "cell", detail)
        return found

    def chart(self, kind: str | None = None) -> Chart:
        """Return the table's chart, whose marks are segments; ``kind`` chooses where there are several."""
        kinds = self._drawn
        chart = kinds[next(iter(kinds)) if kind is None else one_of(kind, kinds, "/kind")]()
        return replace(chart, of_cell=chart.of_cell or self._cells)


def result(
    table: pd.DataFrame,
    about: Provenance,
    cells: Callable[[int, Any], Segment | None],
    charts: Mapping[str, Callable[[Result], Chart]],
) -> Result:
    """Return a table with its provenance, what is behind its cells, and its charts."""
    made = about.attach(Result(table))
    made._labels, made._cells = table.index, cells
    made._drawn = {name: partial(draw, made) for name, draw in charts.items()}
    return made
