"""The contracts of the data: what is known of each, and what the data counts of it."""

from __future__ import annotations

from nbext.core.uint256 import LIMB_BASE
from nbext.engine.ingest.stage import Stage
from nbext.engine.ingest.transfers.wallets import ZERO


def save_contracts(stage: Stage, zero: int) -> None:
    """Fill ``out.contracts``.

    ``holders`` are wallets with a balance above zero, the zero address left out. ``total_supply`` is what
    metadata told, or what was minted and not burned where the data reaches back to the deployment.
    """
    stage.run(f"""
        CREATE TABLE held AS SELECT contract, count(*) AS holders FROM out.balances
        WHERE hi >= 0 AND wallet <> {zero} GROUP BY 1""")
    stage.run("CREATE TABLE moved AS SELECT contract, count(*) AS transfers FROM out.transfers GROUP BY 1")
    _supplies(stage, zero)
    stage.run("""
        INSERT INTO out.contracts
        SELECT r.rowid::INTEGER AS contract, r.chain_id, r.address, coalesce(s.standard, k.standard), name, symbol,
            decimals, logo, verified, spam, deployer, deployed_block,
            coalesce(k.total_supply, p.total_supply),
            CASE WHEN d.contract IS NOT NULL THEN coalesce(holders, 0) END,
            CASE WHEN d.contract IS NOT NULL THEN coalesce(transfers, 0) END
        FROM contract_ranks r LEFT JOIN known k USING (chain_id, address)
        LEFT JOIN standards s ON s.contract = r.rowid LEFT JOIN profile d ON d.contract = r.rowid
        LEFT JOIN held h ON h.contract = r.rowid
        LEFT JOIN moved m ON m.contract = r.rowid LEFT JOIN supplies p ON p.contract = r.rowid
        ORDER BY 1""")
    stage.drop("held", "moved", "supplies")


def _supplies(stage: Stage, zero: int) -> None:
    """Make ``supplies``: what left the zero address and did not come back, of contracts seen from their start."""
    stage.run("CREATE TABLE supplies (contract INTEGER, total_supply VARCHAR)")
    sums = stage.rows(f"""
        SELECT contract, sum(b.hi::HUGEINT), sum(b.mid::HUGEINT), sum(b.lo::HUGEINT)
        FROM out.balances b JOIN contract_ranks r ON r.rowid = contract JOIN known k USING (chain_id, address)
        JOIN extents e USING (chain_id)
        WHERE k.deployed_block >= e.first_block AND wallet <> {zero} GROUP BY 1""")
    totals = [(contract, hi * LIMB_BASE * LIMB_BASE + mid * LIMB_BASE + lo) for contract, hi, mid, lo in sums]
    if totals:
        stage.connection.executemany("INSERT INTO supplies VALUES (?, ?)", [(c, str(n)) for c, n in totals if n >= 0])


def save_wallets(stage: Stage) -> None:
    """Fill ``out.wallets``. A wallet is a contract where the data names it as one, else unknown."""
    stage.run(f"""
        INSERT INTO out.wallets
        SELECT w.rowid::INTEGER, w.address, CASE WHEN c.address IS NOT NULL THEN true WHEN w.address = '{ZERO}'
            THEN false END
        FROM wallets w LEFT JOIN (SELECT DISTINCT address FROM contract_ranks) c USING (address) ORDER BY 1""")
