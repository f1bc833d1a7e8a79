"""What wallets hold: contract by contract, what a segment holds together, and beside what others hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nbext.engine.dataset import Cancel
from nbext.engine.exact_columns import exact_amounts
from nbext.engine.schema import LIMBS

if TYPE_CHECKING:
    from nbext.engine.dataset import Question
    from nbext.engine.query.answers import Dataset

    Numbers = np.ndarray[tuple[int], np.dtype[Any]]


def holdings_of(
    dataset: Dataset,
    wallets: Question,
    at: Mapping[int, int | None],
    *,
    cancel: Cancel | None = None,
) -> tuple[pa.Table, pa.Table, int]:
    """Return what wallets hold on some chains, the contracts of it, and how many balances below zero are left out.

    A row has ``address``, the place of its ``contract`` among the contracts, and ``amount``, exact. Rows are by wallet
    and chain, spam last, and otherwise what most wallets hold first: nobody asked for spam. The contracts are as
    `nbext.engine.catalog.Catalog.rows` has them.

    ``at`` is the block of each chain at the end of which balances are read; None: the data's last. More than 500,000
    rows are a ResourceLimit; other errors as of `nbext.engine.query.answers.Dataset.ask`.
    """
    addresses, found = dataset.answers(lambda answers: answers.held_by(wallets, at), cancel)
    held = found.filter(pc.greater(found["sort_key"], 0)).combine_chunks()
    numbers, place = np.unique(held["contract"].to_numpy(), return_inverse=True)
    contracts = dataset.catalog.rows(numbers)
    by_order = np.lexsort(
        (
            dataset.catalog.places[numbers],
            pc.negate(pc.fill_null(contracts["holders"], 0)),
            pc.fill_null(contracts["spam"], False),
            contracts["chain_id"],
        )
    )
    contracts, place = contracts.take(by_order), np.argsort(by_order)[place]
    order = np.lexsort((place, held["wallet"].to_numpy()))
    held, place = held.take(order), place[order]
    amounts = exact_amounts(held.select(LIMBS).to_struct_array().combine_chunks())
    rows = {"address": addresses.take(held["wallet"]), "contract": place, "amount": amounts}
    return pa.table(rows), contracts, found.num_rows - held.num_rows


def profile_of_holders(
    dataset: Dataset,
    segment: Question,
    base: Question,
    at: Mapping[int, int | None],
    *,
    least: int,
    most: int,
    cancel: Cancel | None = None,
) -> tuple[int, pa.Table]:
    """Return how many contracts at least so many wallets of a segment hold, and those with the highest lift.

    These are as `nbext.engine.catalog.Catalog.rows` has them, with how many ``wallets`` of the segment hold each, and
    of the ``base``.

    ``at`` as of `holdings_of`. Errors as `nbext.engine.query.answers.Dataset.ask`.
    """
    counts = dataset.answers(lambda answers: answers.holders(segment, base, at), cancel)
    contracts = np.flatnonzero(counts[0] >= max(1, least))
    wallets, others = (each[contracts] for each in counts)
    # Of the same sets, the lift is this ratio times a constant; what the base does not hold at all comes last.
    ratio = np.divide(wallets, others, out=np.zeros(len(others)), where=others > 0)
    first = np.lexsort((dataset.catalog.places[contracts], -wallets, -ratio))[:most]
    found = dataset.catalog.rows(contracts[first])
    found = found.append_column("wallets", pa.array(wallets[first]))
    return len(contracts), found.append_column("base", pa.array(others[first]))
