"""Which wallets joined a segment, left it or stayed since a time, with what they held then and hold now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nbext.analysis import charts
from nbext.analysis.results import Result, result
from nbext.analysis.segments import Segment, all_of, client_of, described, names_of, segment_of
from nbext.analysis.trend import SPAN, before, hours_of
from nbext.client import frames
from nbext.core.constants import MAX_LIMIT
from nbext.core.provenance import Provenance
from nbext.errors import ConfigError, ValidationError

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client import Client

STATUSES = ("joined", "left", "stayed")


def changes(segment: Any, since: str | int = "30d", *, client: Client | None = None) -> Result:
    """Return the wallets of a segment now and at an earlier time, and what happened to each in between.

    Parameters
    ----------
    segment
        Filters without ``asOf``, the table of a segment, its id, or the symbol or address of a contract.
    since
        A span before the data's last block (``12h``, ``30d``, ``4w``, ``1y``); or, as in ``asOf``, a date, a time or
        a block.
    client
        The client to ask; by default of the service that is set.

    Returns
    -------
    Result
        A row for each wallet, ordered by address: ``address`` str; ``status`` str, ``joined``, ``left`` or ``stayed``;
        and each balance or count of the segment's rows twice, ``<COLUMN>_then`` and ``<COLUMN>_now``, with the
        segment's dtypes; 0 where the wallet held none, also where it does not match. Joined less left is the change
        of the segment's count. ``attrs["nbext"]`` has the blocks, ``then`` and ``as_of`` (now), and how many wallets
        have each status. ``.segment(row)`` is all wallets with that row's status, ``.chart()`` draws the counts.

    Raises
    ------
    ValidationError
        A segment with a time of its own, a ``since`` that is no time or before the data begins, or more than
        10,000,000 wallets.
    ConfigError
        The service, which is not our own, does not say which block its answers are for.

    Source
    ------
    POST /changes. Of a service that is not our own: the segment as of both blocks, all rows; where it has balances,
    once more for the wallets that joined or left.
    """
    asked = segment_of(segment, client_of(client))
    if "asOf" in asked.filters:
        raise ValidationError.of(
            "/segment/asOf", "exclusive", "changes sets asOf itself. Leave it out."
        )
    # Wallets and balances are compared, in no other order than that of their addresses.
    kept = {key: one for key, one in asked.filters.items() if key not in ("orderBy", "columns")}
    asked = replace(asked, filters=kept)
    table, now, then, about = (_in_one if asked.client.is_ours else _in_two)(asked, since)
    about.operation, about.service = "changes", asked.client.base_url
    about.joined, about.left, about.stayed = (
        int((table["status"] == one).sum()) for one in STATUSES
    )
    about.segments = described((then, now))
    parts = {"joined": ([now], then), "left": ([then], now), "stayed": ([then, now], None)}

    def cell(row: int, _: Any) -> Segment:
        these, others = parts[str(table["status"].iloc[row])]
        return all_of(these, but=others)

    (name,) = names_of([segment], [asked], [""])
    return result(table, about, cell, {"bars": lambda made: _chart(made, name)})


def _in_one(asked: Segment, since: str | int) -> tuple[pd.DataFrame, Segment, Segment, Provenance]:
    """Return the table, the segment now and then, and what is said of them, by our own service."""
    import pandas as pd

    rows = asked.client.segment_changes(asked.filters, asked.operator, _moment(since))
    _check_size(rows)
    said = Provenance.of(rows)
    as_of = said.as_of or {}
    names = pd.Series(("left", "joined", "stayed"), dtype=frames.text_dtype())
    status = names.take(rows["then_matches"] + 2 * rows["now_matches"] - 1)
    columns = {"address": rows["address"], "status": status.reset_index(drop=True)}
    for name in (
        one.removeprefix("now_")
        for one in rows.columns
        if one.startswith("now_") and one != "now_matches"
    ):
        columns |= {f"{name}_{when}": rows[f"{when}_{name}"] for when in ("then", "now")}
    # Those about a column's values begin with its name.
    warnings = list(
        dict.fromkeys(line.removeprefix("then_").removeprefix("now_") for line in said.warnings)
    )
    about = Provenance(as_of=as_of, then=said.since, warnings=warnings)
    return pd.DataFrame(columns), *_fixed(asked, since, as_of), about


def _in_two(asked: Segment, since: str | int) -> tuple[pd.DataFrame, Segment, Segment, Provenance]:
    """Return the same by a service that compares nothing itself."""
    import pandas as pd

    as_of = Provenance.of(asked.open(1)).as_of or {}
    if type(as_of.get("block")) is not int:
        raise ConfigError(f"{asked.client.base_url} does not say which block its answers are for.")
    now, then = _fixed(asked, since, as_of)
    at = [_rows(one) for one in (then, now)]
    before, after = (pd.Index(rows["address"]) for rows in at)
    wallets = before.union(after)
    status = pd.Series("stayed", wallets, dtype=frames.text_dtype())
    status[wallets.difference(before)], status[wallets.difference(after)] = "joined", "left"
    before_that, by_now = (Provenance.of(rows) for rows in at)
    columns = {
        "address": wallets.to_series(index=pd.RangeIndex(len(wallets))),
        "status": status.reset_index(drop=True),
    }
    if len(at[1].columns) > 1:
        at = [_held(one, rows, wallets) for one, rows in zip((then, now), at, strict=True)]
        for name in at[1].columns:
            columns |= {
                f"{name}_{when}": rows[name] for when, rows in zip(("then", "now"), at, strict=True)
            }
    warnings = list(dict.fromkeys([*before_that.warnings, *by_now.warnings]))
    about = Provenance(as_of=by_now.as_of, then=before_that.as_of, warnings=warnings)
    return pd.DataFrame(columns), now, then, about


def _moment(since: str | int) -> str | int:
    """Return the time as ``asOf`` has it, which knows no years."""
    is_years = isinstance(since, str) and since.endswith("y") and SPAN.fullmatch(since)
    return f"{hours_of(str(since), '/since') // 24}d" if is_years else since


def _fixed(asked: Segment, since: str | int, as_of: Mapping[str, Any]) -> tuple[Segment, Segment]:
    """Return the segment as of the data's last block, and as of the earlier time: both fixed, whatever comes in."""
    moment: Any = since
    if isinstance(since, str) and SPAN.fullmatch(since) and as_of.get("timestamp"):
        moment = before(as_of["timestamp"], hours_of(since, "/since"))
    now, then = (
        replace(asked, filters={**asked.filters, "asOf": one}) for one in (as_of["block"], moment)
    )
    return now, then


def _rows(asked: Segment) -> pd.DataFrame:
    rows = asked.open(MAX_LIMIT)
    _check_size(rows)
    return rows


def _check_size(rows: pd.DataFrame) -> None:
    if Provenance.of(rows).truncated:
        raise ValidationError.of(
            "/segment", "size", f"changes compares at most {MAX_LIMIT:,} wallets."
        )


def _held(asked: Segment, rows: pd.DataFrame, wallets: pd.Index) -> pd.DataFrame:
    """Return the balances of all the wallets at a segment's block, whether they match it or not."""
    import pandas as pd

    if len(rows) < len(wallets):
        listed = {"wallet": {"in": wallets.tolist()}}
        # The segment's conditions give the rows their columns; beside the list, they leave nobody out.
        everyone = {"all": [listed, {"any": [asked.member(), listed]}], **asked.scope()}
        rows = _rows(replace(asked, filters=everyone, operator="AND"))
    rows, text = rows.set_index("address"), frames.text_dtype()
    # A wallet that had not been seen by then has no row. Amounts of more than 76 digits are text.
    columns = {
        name: one.reindex(wallets, fill_value="0" if one.dtype == text else 0)
        for name, one in rows.items()
    }
    return pd.DataFrame(columns).reset_index(drop=True)


def _chart(made: Result, name: str) -> charts.Chart:
    about = Provenance.of(made)
    blocks = " to ".join(f"{when['block']:,}" for when in (about.then, about.as_of) if when)
    title = f"{charts.cut(name)}: wallets that changed, block {blocks}"
    return charts.bars(STATUSES, [about.joined, about.left, about.stayed], title, about)
