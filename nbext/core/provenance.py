"""Where a table comes from: what ``attrs["nbext"]`` of each table of ours says.

There it is a plain dict of plain values: pandas copies and compares it and writes it into Parquet as JSON, and a pickle
of the table opens where nbext is not installed. `Provenance.attach` alone writes it, and `Provenance.of` reads it.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, dataclass_transform

from nbext.core.rules import MAX_LIMIT
from nbext.core.untrusted_text import visible
from nbext.errors import ValidationError

# Ten conditions in words; whatever a stranger's service sends, a note stays short enough to be read.
MAX_NOTE = 1_500
_MORE = '; limit="all" fetches all, limit=0 counts'


class _Table(Protocol):
    @property
    def attrs(self) -> dict[Any, Any]: ...


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=_Table)


class AnswerWarning(UserWarning):
    """What the reader of an answer should know: that a limit cut rows off, and every note that a magic prints."""


def _warning_text(
    before: Callable[..., str], message: object, category: type[Warning], *place: Any, **line: Any
) -> str:
    # A plain script that imports IPython runs no shell.
    ours = issubclass(category, AnswerWarning) and sys.modules["IPython"].get_ipython()
    return f"{message}\n" if ours else before(message, category, *place, **line)


# There the path before the words would be of a file that a cell became.
if "IPython" in sys.modules:
    warnings.formatwarning = functools.partial(_warning_text, warnings.formatwarning)


@dataclass_transform(kw_only_default=True)
class _Said:
    """Keeps what it was given, and nothing else, among its own attributes; the class has those of the rest."""

    def __init__(self, **said: Any) -> None:
        vars(self).update(said)

    def __bool__(self) -> bool:
        return bool(vars(self))


class Provenance(_Said):
    """What is known of a table; each attribute is a key of ``attrs["nbext"]``, and None or empty where it is missing.

    Attributes
    ----------
    operation
        What made the table: a method of the client, ``export`` for rows that were read by a segment's id, or an
        analysis.
    service
        The address of the service.
    warnings
        What the reader of the table should know.
    fingerprint
        That of the data, where nbext's own service answered a segment.
    segment_id, status
        The segment's id, and the service's own word for its state.
    operator, filters, limit, chain
        The segment that was asked for; of one that was read by its id, as the service answers it.
    as_of
        ``block`` and ``timestamp`` of the data that the answer is of; ``hash`` of that block, where the data has it.
    matched, returned, truncated
        How many rows match, how many are here, and whether a limit cut the rest off.
    columns
        ``name`` and ``type`` of each column, and of amounts ``unit``, ``symbol``, ``decimals``, ``address``, ``chain``.
    seconds, cached
        How long it took, and whether the service had the answer already.
    lists
        The lists of wallets that the filters name by id: each id with its words.
    since, then
        Of changes: the earlier block and its time.
    joined, left, stayed
        Of changes: how many wallets have each status.
    term
        What a search looked for.
    segments
        The ``operator`` and ``filters`` of each segment that an analysis compared.
    gini
        Of a concentration: the Gini coefficient.
    amounts
        Of a trend: the symbol of the contract whose amounts are added up.
    wallets
        Of a profile: how many wallets the segment has; of holdings: the addresses that were asked for, or the id of
        their list.
    chains
        Of holdings: ``chain``, ``block`` and ``timestamp`` of each chain.
    base, base_words, least, activity
        Of a profile: how many wallets the base has, the base in words, how many wallets had to hold a contract, and how
        many of both sides are young, active, or have many transfers.
    payout
        Of a payout: its ``folder``, and what its manifest says.
    whole
        Whether the display cuts no text.
    """

    operation: str | None = None
    service: str | None = None
    warnings: Sequence[str] = ()
    fingerprint: str | None = None
    segment_id: str | None = None
    status: str | None = None
    operator: str | None = None
    filters: Mapping[str, Any] | None = None
    limit: int | None = None
    chain: str | None = None
    as_of: Mapping[str, Any] | None = None
    matched: int | None = None
    returned: int | None = None
    truncated: bool = False
    columns: Sequence[Mapping[str, Any]] = ()
    seconds: float | None = None
    cached: bool = False
    lists: Mapping[str, str] | None = None
    since: Mapping[str, Any] | None = None
    then: Mapping[str, Any] | None = None
    joined: int = 0
    left: int = 0
    stayed: int = 0
    term: str | None = None
    segments: Sequence[Mapping[str, Any]] = ()
    gini: float | None = None
    amounts: str | None = None
    wallets: int | Sequence[str] | None = None
    chains: Sequence[Mapping[str, Any]] = ()
    base: int | None = None
    base_words: str | None = None
    least: int | None = None
    activity: Mapping[str, Any] | None = None
    payout: Mapping[str, Any] | None = None
    whole: bool = False

    @classmethod
    def of(cls, table: Any) -> Provenance:
        """Return what a table says of itself; of a table of others, or any other value, that nothing is known."""
        # attrs are the user's to change: what is no key of ours is passed over.
        attrs = getattr(table, "attrs", None)
        said = attrs.get("nbext") if isinstance(attrs, dict) else None
        known = said.items() if isinstance(said, dict) else ()
        return cls(
            **{key: one for key, one in known if key in cls.__annotations__ and one is not None}
        )

    def described(self) -> dict[str, Mapping[str, Any]]:
        """Return what is said of each column by its name; of a stranger's answer, anything but objects is left out."""
        return {str(one.get("name")): one for one in self.columns if isinstance(one, Mapping)}

    def cut(self, more: str = _MORE) -> str | None:
        """Say how many rows are here, and then ``more``, where a limit cut the rest off; else None."""
        # Who only counted is told the number; who asks for the rows of what was counted, that there are none.
        counted = self.limit == 0 and self.operation != "export"
        if not self.truncated or counted or self.operation == "segment":
            return None
        if self.matched is None or self.returned is None:
            return "The limit cut off rows; a larger one returns more."
        if self.operation == "search_nfts":
            return f"{self.returned:,} of {self.matched:,} hits; a larger offset returns the next"
        some = f"{self.returned:,} of {self.matched:,} wallets"
        # An export has what its segment kept: no limit would fetch more.
        if self.operation != "execute_segment":
            return some
        if self.returned >= MAX_LIMIT:
            return f"{some}; {MAX_LIMIT:,} is the most. For the others narrow the query, for example by a balance"
        return f"{some}{more}"

    def has_all_of(self, table: Any) -> bool:
        """Whether a table has as many rows as it came with: pandas copies this to what is made of some of them.

        A file that they were written to is one row itself.
        """
        return "file" in table or self.returned in (None, len(table))

    def check_whole(self, table: Any, pointer: str) -> None:
        """Refuse, as a ValidationError, a table that has only some of its segment's rows, and does not stand for it."""
        if not self.has_all_of(table):
            detail = (
                f"The table has {len(table):,} rows, and its segment's had {self.returned:,}. Give its id for the "
                'segment, or {"wallet": {"in": table}} for the wallets in the table.'
            )
            raise ValidationError.of(pointer, "rows", detail)

    def notes(self) -> list[str]:
        """Return the warnings as they are shown: nothing in them hides, and none is endless."""
        return [visible(one, MAX_NOTE) for one in self.warnings]

    def attach(self, table: T) -> T:
        """Write it into the table's ``attrs``; return the table."""
        table.attrs["nbext"] = dict(vars(self))
        return table


def retaken(request: Mapping[str, Any], name: str) -> list[str]:
    """Return that a saved segment has other wallets now than its rows had, in a line, where that is so."""
    # A stranger may say anything of its segment.
    limit, matched = (
        one if type(one) is int else None for one in map(request.get, ("limit", "matched"))
    )
    changed = request.get("changed")
    is_cut = limit and (matched is None or matched > limit)
    ways = [*[f"with limit {limit or 0:,}"] * bool(is_cut), *["on other data"] * bool(changed)]
    if not ways:
        return []
    count = "" if changed or matched is None else f"{matched:,} "
    now = "now " if changed else ""
    return [f"{name} was saved {' and '.join(ways)}: all {count}wallets that match {now}are taken."]


def warned(call: Callable[P, R]) -> Callable[P, R]:
    """Have what is to be known of an answer warn a caller outside of nbext; ours show it in their own way."""

    @functools.wraps(call)
    def told(*args: P.args, **options: P.kwargs) -> R:
        answer = call(*args, **options)
        if not str(sys._getframe(1).f_globals.get("__name__")).startswith("nbext."):
            about = Provenance.of(answer)
            for note in filter(None, [about.cut(), *about.notes()]):
                warnings.warn(note, AnswerWarning, stacklevel=2)
        return answer

    return told
