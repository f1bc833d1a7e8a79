"""What the wallets of a segment hold together of the first contract that its rows show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbext.core.uint256 import Limbs, join
from nbext.engine.query.amounts import limb_sums

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import ibis.expr.types as ir
    import pyarrow as pa

    from nbext.engine.dataset import Question, Tables
    from nbext.engine.profile import Members
    from nbext.engine.query.statements import Build


def build(question: Question, members: Members) -> Build:
    """Build the sum of a question's first column over some wallets: limbs, not in normal form."""

    def sums(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
        column = question.columns(tables, scalars)[0]
        held = column.semi_join(members(tables, scalars), "wallet")
        return held.agg(**limb_sums(held[column.columns[-1]]))

    return sums


def total_of(found: pa.Table) -> int:
    """Return the sum of what was fetched."""
    (row,) = found.to_pylist()
    return sum_of(row)


def sum_of(row: Mapping[str, Any]) -> int:
    """Return the sum of a row of limbs."""
    return join(Limbs(*(row[limb] or 0 for limb in Limbs._fields)))
