"""What each wallet held of each contract, and when, in expressions: for engines that have windows, and no arrays.

The same rows as those of `nbext.engine.ingest.derive.holdings`, which is faster on one machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ibis

from nbext.core.uint256 import Limbs
from nbext.engine.query.amounts import LIMB_TYPE, carried, digits_of, limbs_of, sort_key_of_digits
from nbext.engine.schema import FOREVER, HISTORY, LIMBS

if TYPE_CHECKING:
    import ibis.expr.types as ir

FLOWS = {
    "contract": "int32",
    "block": "int64",
    "log_index": "int64",
    "sender": "int32",
    "recipient": "int32",
    **dict.fromkeys(LIMBS, LIMB_TYPE),
}


def running_sums(flows: ir.Table) -> ir.Table:
    """Return what each wallet held after each log that moved something, as limbs not in normal form."""
    changes = ibis.union(
        *(
            flows.select(
                "contract",
                "block",
                "log_index",
                wallet=flows[side],
                **{limb: flows[limb] * sign for limb in LIMBS},
            )
            for side, sign in (("recipient", 1), ("sender", -1))
        )
    ).filter(ibis._.wallet >= 0)
    changes = changes.group_by("contract", "wallet", "block", "log_index").agg(
        **{limb: changes[limb].sum() for limb in LIMBS}
    )
    moments = ibis.window(group_by=["contract", "wallet"], order_by=["block", "log_index"])
    until = ibis.window(
        group_by=["contract", "wallet"],
        order_by=["block", "log_index"],
        preceding=None,
        following=0,
    )
    return changes.select(
        "contract",
        "wallet",
        "log_index",
        from_block=changes.block,
        to_block=changes.block.lead().over(moments).fill_null(FOREVER),
        **{limb: changes[limb].sum().over(until) for limb in LIMBS},
    )


def in_normal_form(rows: ir.Table) -> ir.Table:
    """Return the sums in normal form."""
    return rows.mutate(**carried(limbs_of(rows))._asdict())


def magnitudes(rows: ir.Table) -> ir.Table:
    """Return the settled rows with the limbs of their amounts without a sign."""
    opposite = carried(Limbs(*(-limb for limb in limbs_of(rows))))
    return rows.mutate(
        **{
            f"abs_{name}": ibis.ifelse(rows.hi < 0, limb, rows[name])
            for name, limb in opposite._asdict().items()
        }
    )


def spelled(rows: ir.Table) -> ir.Table:
    """Return the rows with the decimal digits of their amounts."""
    return rows.mutate(digits=digits_of(limbs_of(rows, "abs_")))


def sized(rows: ir.Table) -> ir.Table:
    """Return the rows of ``history``, and ``log_index``."""
    size = sort_key_of_digits(rows.digits)
    return rows.mutate(size=ibis.ifelse(rows.hi < 0, -size, size)).select(*HISTORY, "log_index")


# Each is a statement of its own, over the one before: in one, the text of a carried limb would stand in it forty times.
STEPS = (running_sums, in_normal_form, magnitudes, spelled, sized)


def current_balances(rows: ir.Table) -> ir.Table:
    """Return the rows of ``balances``: what wallets hold at the end, other than nothing."""
    limbs: Limbs = limbs_of(rows)
    held = (limbs.hi != 0) | (limbs.mid != 0) | (limbs.lo != 0)
    return rows.filter(rows.to_block == FOREVER, held).select("contract", "wallet", *LIMBS, "size")
