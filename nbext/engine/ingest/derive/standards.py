"""Which contracts are ERC20 and which are NFTs: told by metadata, else by the contract's whole behaviour.

An NFT's rows are chains of custody: each id is sent on by whoever received it last. An ERC20's amounts
repeat without such an order. No single value decides: a uint256 may be an amount or an id.
"""

from __future__ import annotations

from nbext.engine.ingest.stage import Stage

# Rows looked at for each contract, chosen by token id or amount so that whole chains of custody are seen.
SAMPLE = 4_000
# Of the times that a value came again, how many must have come from its last owner. Logs can be missing.
LINKED = 0.9
# Ids of collections that number their tokens are below. An amount of a token with decimals is larger, as a rule.
COUNTED = 10**6
# Larger ids, too, if so many were sent on in a later block: a deposit that is forwarded whole looks the same.
SENT_ON_LATER = 20


def classify(stage: Stage) -> None:
    """Make ``standards``: (contract, standard, told) for each contract; ``told`` says whether metadata did."""
    stage.run("""
        CREATE TABLE told AS SELECT c.rowid::INTEGER AS contract, k.standard
        FROM contract_ranks c JOIN known k USING (chain_id, address) WHERE k.standard IS NOT NULL""")
    _evidence(stage)
    stage.run(f"""
        CREATE TABLE standards AS
        SELECT contract, standard, true AS told FROM told
        UNION ALL SELECT contract, CASE WHEN {_is_nft()} THEN 'ERC721' ELSE 'ERC20' END, false FROM evidence
        UNION ALL SELECT contract, CASE WHEN bool_or(has_id) THEN 'ERC721' ELSE 'ERC20' END, false
                  FROM opened ANTI JOIN told USING (contract) ANTI JOIN evidence USING (contract) GROUP BY 1""")
    stage.drop("evidence", "told")


def _evidence(stage: Stage) -> None:
    """Make ``evidence``: for each contract that nothing is told of, how its values came and went."""
    stage.run(f"""
        CREATE TEMP TABLE weighed AS
        SELECT contract, (count(*) + {SAMPLE - 1}) // {SAMPLE} AS thin FROM arrived ANTI JOIN told USING (contract)
        GROUP BY 1""")
    stage.run("""
        CREATE TABLE evidence AS
        SELECT contract, count(*) AS n, count(prior) AS again,
            count(*) FILTER (prior = sender) AS linked,
            count(*) FILTER (prior = sender AND tx <> prior_tx) AS linked_later,
            count(*) FILTER (sender = recipient AND prior IS NOT NULL) AS still,
            count(*) FILTER (hi = 0 AND mid = 0 AND lo = 0) AS zeros,
            max(hi) AS hi, max(mid) AS mid, max(lo) AS lo, min(hi) AS least_hi
        FROM (
            SELECT a.*, lag(recipient) OVER w AS prior, lag(block) OVER w AS prior_tx, block AS tx
            FROM arrived a JOIN weighed USING (contract)
            WHERE thin = 1 OR hash(hi, mid, lo) % thin = 0
            WINDOW w AS (PARTITION BY contract, hi, mid, lo ORDER BY block, log_index))
        GROUP BY 1""")
    stage.drop("weighed")


def _is_nft() -> str:
    """Return the SQL of the verdict.

    Broken custody is an ERC20. Unbroken custody is an NFT where ids are counted or fill all 256 bits, or
    where many of them were sent on in a later block: amounts are passed on too, mostly within their transaction.
    """
    custody = f"linked >= {LINKED} * again"
    numbered = f"hi = 0 AND mid = 0 AND lo < {COUNTED}"
    return (f"({custody} AND zeros <= 1 + linked AND ({numbered} OR least_hi > 0 "
            f"OR (linked_later >= {SENT_ON_LATER} AND linked_later >= 0.3 * n)))")
