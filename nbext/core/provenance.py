"""Where a table comes from: what ``attrs["nbext"]`` of each table of ours says.

There it is a plain dict of plain values: pandas copies and compares it and writes it into Parquet as JSON, and a pickle
of the table opens where nbext is not installed. `Provenance.attach` alone writes it, and `Provenance.of` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar, dataclass_transform


class _Table(Protocol):
    @property
    def attrs(self) -> dict[Any, Any]: ...


T = TypeVar("T", bound=_Table)


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
    segment_id, status
        The segment's id, and the service's own word for its state.
    operator, filters, limit, chain
        The segment that was asked for; as the service answers it, where it does.
    as_of
        ``block`` and ``timestamp`` of the data that the answer is of.
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
        Of a profile: how many wallets the segment has; of holdings: the addresses that were asked for.
    chains
        Of holdings: ``chain``, ``block`` and ``timestamp`` of each chain.
    base, base_words, least, activity
        Of a profile: how many wallets the base has, the base in words, how many wallets had to hold a contract, and how
        many of both sides are young, active, or have many transfers.
    whole
        Whether the display cuts no text.
    """

    operation: str | None = None
    service: str | None = None
    warnings: Sequence[str] = ()
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

    def attach(self, table: T) -> T:
        """Write it into the table's ``attrs``; return the table."""
        table.attrs["nbext"] = dict(vars(self))
        return table
