"""The contracts of the data: their standards, their facts, and what the data counts of each.

A standard comes from metadata, else from the contract's whole behaviour. An NFT's rows are chains of custody: each id
is sent on by whoever received it last. An ERC20's amounts repeat without such an order. No single value decides: a
uint256 may be an amount or an id. Where the rows could be either, they are a coin's if wallets send values that they
never received, as the ids of a collection whose mints are missing, and yet no sum of amounts is below zero.
"""

from __future__ import annotations

from nbext.core.addresses import ZERO_ADDRESS
from nbext.engine.ingest.derive.duplicates import Conflict
from nbext.engine.ingest.derive.rows import DECIMAL, SPELLED, zero_rank
from nbext.engine.ingest.stage import Stage
from nbext.engine.query.amounts import carried
from nbext.engine.schema import LIMBS

# Rows looked at for each contract, chosen by token id or amount so that whole chains of custody are seen.
SAMPLE = 4_000
# A number of a value in which neighbours are far apart: the same on every engine, whose own hashes differ.
_SCATTERED = (
    "((((lo % 2147483629)::BIGINT * 2654435761 + (mid % 2147483629)::BIGINT * 40503 "
    "+ (hi % 2147483629)::BIGINT) % 4294967296) // 256)"
)
# Of the times that a value came again, how many must have come from its last owner. Logs can be missing.
LINKED = 0.9
# Ids of collections that number their tokens are below. An amount of a token with decimals is larger, as a rule.
COUNTED = 10**6
# Larger ids, too, if so many were sent on in a later block: a deposit that is forwarded whole looks the same.
SENT_ON_LATER = 20
# Values that somebody sent who never received them: of 673 collections none had so many and no sum below zero. Of a
# contract whose decimals a file states, one is enough.
NEVER_RECEIVED = 5
_SUMS = ", ".join(f"sum({limb})::{DECIMAL} AS {limb}" for limb in LIMBS)


def classify(stage: Stage) -> None:
    """Create ``standards``: (contract, standard, declared) for each contract; declared is true if a file says which."""
    stage.run("""
        CREATE TABLE declared AS SELECT c.rowid::INTEGER AS contract, k.standard
        FROM contract_ranks c JOIN known k USING (chain_id, address) WHERE k.standard IS NOT NULL""")
    _evidence(stage)
    _find_coins(stage)
    stage.run("""
        CREATE TABLE standards AS
        SELECT contract, standard, true AS declared FROM declared
        UNION ALL SELECT contract, 'ERC721', false FROM collections
        UNION ALL SELECT contract, 'ERC20', false FROM evidence ANTI JOIN collections USING (contract)
        UNION ALL SELECT contract, CASE WHEN bool_or(has_id) THEN 'ERC721' ELSE 'ERC20' END, true
                  FROM opened ANTI JOIN declared USING (contract) ANTI JOIN evidence USING (contract) GROUP BY 1""")
    stage.drop("evidence", "declared", "collections")


def restated(stage: Stage) -> list[tuple[str, str, str, bool]]:
    """Return the contracts with rows that are of another standard than before: address, then, now, and if declared."""
    if stage.previous is None:
        return []
    return stage.rows("""
        SELECT address, p.standard, s.standard, declared FROM prev.main.contracts p
        JOIN contract_ranks r USING (chain_id, address) JOIN standards s ON s.contract = r.rowid
        WHERE p.transfers IS NOT NULL AND p.standard <> s.standard ORDER BY 1""")


def mistaken_snapshot(stage: Stage) -> Conflict | None:
    """Return the error of the first snapshot of amounts of an NFT collection, or of token ids of an ERC20."""
    found = stage.rows("""
        SELECT source, address, standard, declared, has_id
        FROM (SELECT contract, bool_or(has_id) AS has_id FROM opened GROUP BY 1)
        JOIN standards USING (contract) JOIN contract_ranks r ON r.rowid = contract
        JOIN (SELECT source, chain_id, contract AS address FROM newest) USING (chain_id, address)
        WHERE has_id <> (standard <> 'ERC20') ORDER BY 1, 2 LIMIT 1""")
    if not found:
        return None
    source, address, standard, declared, has_id = found[0]
    what, needs = (
        ("token ids", "")
        if has_id
        else ("amounts", " A snapshot of an NFT collection needs a column of token ids.")
    )
    why = (
        f"these are {what} of {address}, which is {standard} "
        f"{'as a file says' if declared else 'by its transfers'}.{needs} If that is not what it "
        "is, ingest a file with address, is_erc20, is_erc721."
    )
    return stage.fault(source, why), source


def _evidence(stage: Stage) -> None:
    """Create ``evidence``: for each contract without metadata, how its values moved."""
    stage.run(f"""
        CREATE TABLE evidence AS
        SELECT contract, count(*) AS n, count(prior) AS again,
            count(*) FILTER (prior = sender) AS linked,
            count(*) FILTER (prior = sender AND tx <> prior_tx) AS linked_later,
            count(*) FILTER (hi = 0 AND mid = 0 AND lo = 0) AS zeros,
            count(*) FILTER (prior IS NULL AND sender <> {zero_rank(stage)}) AS never_received,
            max(hi) AS hi, max(mid) AS mid, max(lo) AS lo, min(hi) AS least_hi
        FROM (
            SELECT a.*, lag(recipient) OVER w AS prior, lag(block) OVER w AS prior_tx, block AS tx
            FROM arrived a JOIN (SELECT contract, (count(*) + {SAMPLE - 1}) // {SAMPLE} AS thin
                                 FROM arrived ANTI JOIN declared USING (contract) GROUP BY 1) USING (contract)
            WHERE thin = 1 OR {_SCATTERED} % thin = 0
            WINDOW w AS (PARTITION BY contract, hi, mid, lo ORDER BY block, log_index))
        GROUP BY 1""")


def _find_coins(stage: Stage) -> None:
    """Create ``collections``: the contracts whose rows are chains of custody, and that are no coins all the same.

    The first blocks are summed up, which are enough: of a collection, an id that is sent soon is more than its sender
    was sent.
    """
    stage.run(f"""
        CREATE TABLE chains AS SELECT contract,
            never_received >= CASE WHEN decimals IS NULL THEN {NEVER_RECEIVED} ELSE 1 END AS doubtful
        FROM evidence JOIN contract_ranks r ON r.rowid = contract LEFT JOIN known USING (chain_id, address)
        WHERE {_is_nft()}""")
    stage.run(f"""
        CREATE TABLE beginnings AS SELECT * FROM (
            SELECT a.*, rank() OVER (PARTITION BY contract ORDER BY block) AS place
            FROM arrived a SEMI JOIN (SELECT contract FROM chains WHERE doubtful) USING (contract))
        WHERE place <= {SAMPLE} AND sender <> recipient""")
    sides = f"""
        SELECT contract, block, recipient AS wallet, hi, mid, lo FROM beginnings
        UNION ALL SELECT contract, block, sender, -hi, -mid, -lo FROM beginnings WHERE sender <> {zero_rank(stage)}"""
    running = ", ".join(f"(sum({limb}) OVER w)::{DECIMAL} AS {limb}" for limb in LIMBS)
    sums = f"""(
        SELECT contract, {running} FROM (
            SELECT contract, block, wallet, {_SUMS} FROM ({sides}) GROUP BY contract, block, wallet)
        WINDOW w AS (PARTITION BY contract, wallet ORDER BY block)) AS sums"""
    stage.run(f"""
        CREATE TABLE collections AS SELECT contract FROM chains WHERE NOT doubtful
        UNION ALL SELECT DISTINCT contract FROM ({carried(sums, "contract")}) WHERE hi < 0""")
    stage.drop("chains", "beginnings")


def _is_nft() -> str:
    """Return the SQL of the verdict.

    Broken custody is an ERC20. Unbroken custody is an NFT where ids are counted or fill all 256 bits, or
    where many of them were sent on in a later block: amounts are passed on too, mostly within their transaction.
    """
    custody = f"linked >= {LINKED} * again"
    numbered = f"hi = 0 AND mid = 0 AND lo < {COUNTED}"
    return (
        f"({custody} AND zeros <= 1 + linked AND ({numbered} OR least_hi > 0 "
        f"OR (linked_later >= {SENT_ON_LATER} AND linked_later >= 0.3 * n)))"
    )


def save_contracts(stage: Stage, zero: int) -> None:
    """Fill ``out.contracts``.

    ``holders`` are wallets with a balance above zero, the zero address left out. ``total_supply`` is
    the metadata's, or what was minted and not burned where the data reaches back to the deployment.
    """
    sum_supplies(stage, zero)
    count_unseen(stage, zero)
    stage.run(f"""
        INSERT INTO out.contracts
        SELECT r.rowid::INTEGER AS contract, r.chain_id, r.address, coalesce(s.standard, k.standard), name, symbol,
            decimals, logo, verified, spam, deployer, deployed_block,
            coalesce(k.total_supply, p.total_supply),
            CASE WHEN d.contract IS NOT NULL THEN coalesce(holders, 0) END,
            CASE WHEN d.contract IS NOT NULL THEN coalesce(transfers, 0) END, NOT s.declared, coalesce(ids, 0),
            coalesce(below_zero, 0)
        FROM contract_ranks r LEFT JOIN known k USING (chain_id, address)
        LEFT JOIN standards s ON s.contract = r.rowid LEFT JOIN profile d ON d.contract = r.rowid
        LEFT JOIN (SELECT contract, count(*) AS holders FROM out.balances
                   WHERE hi >= 0 AND wallet <> {zero} GROUP BY 1) h ON h.contract = r.rowid
        LEFT JOIN (SELECT contract, count(*) AS transfers FROM out.transfers GROUP BY 1) m ON m.contract = r.rowid
        LEFT JOIN supplies p ON p.contract = r.rowid LEFT JOIN unseen u ON u.contract = r.rowid
        LEFT JOIN ({below_zero(zero, "out.history")}) b ON b.contract = r.rowid
        ORDER BY 1""")
    stage.drop("supplies", "unseen")


def below_zero(zero: int, history: str) -> str:
    """Return the SQL of how many wallets of a contract have a balance below zero at the end of some block.

    Transfers are missing there, also where later ones hide it. The zero address pays for every mint.
    """
    return (
        f"SELECT contract, count(DISTINCT wallet) AS below_zero FROM {history} "
        f"WHERE sort_key < 0 AND from_block < to_block AND wallet <> {zero} GROUP BY contract"
    )


def count_unseen(stage: Stage, zero: int, now: str = "out.", which: str = "") -> None:
    """Create ``unseen``: of how many token ids of a contract somebody had more than anybody was seen to be sent.

    They are held from the contract's first block on, in which others are minted, or shown by its snapshot.
    """
    stage.run(f"""
        CREATE TABLE beginning AS
        SELECT contract, min(block) AS block FROM {now}nft_changes {which} GROUP BY contract""")
    stage.run(f"""
        CREATE TABLE unseen AS SELECT contract, count(*) AS ids FROM (
            SELECT contract, hi, mid, lo FROM (
                SELECT contract, id_hi AS hi, id_mid AS mid, id_lo AS lo, change AS n
                FROM {now}nft_changes SEMI JOIN beginning USING (contract, block)
                UNION ALL SELECT contract, hi, mid, lo, -count
                FROM {now}transfers SEMI JOIN beginning USING (contract, block) ANTI JOIN opened USING (contract)
                WHERE sender = {zero}
                UNION ALL SELECT contract, hi, mid, lo, -1 FROM opened SEMI JOIN beginning USING (contract, block))
            GROUP BY contract, hi, mid, lo HAVING sum(n) > 0)
        GROUP BY contract""")
    stage.drop("beginning")


def sum_supplies(stage: Stage, zero: int, balances: str = "out.balances") -> None:
    """Create ``supplies``: what left the zero address and did not come back, of contracts seen from their start."""
    sums = f"""(
        SELECT contract, {_SUMS}
        FROM {balances} b JOIN contract_ranks r ON r.rowid = contract JOIN known k USING (chain_id, address)
        JOIN extents e USING (chain_id)
        WHERE k.deployed_block >= e.first_block AND wallet <> {zero} GROUP BY 1) AS sums"""
    # Below zero where the data misses mints: then the supply is unknown, not negative.
    stage.run(
        f"CREATE TABLE supplies AS SELECT contract, {SPELLED} AS total_supply "
        f"FROM ({carried(sums, 'contract')}) WHERE hi >= 0"
    )


def save_wallets(stage: Stage) -> None:
    """Fill ``out.wallets``. A wallet is a contract where the data names it as one, else unknown."""
    stage.run(f"""
        INSERT INTO out.wallets
        SELECT w.rowid::INTEGER, w.address, CASE WHEN c.address IS NOT NULL THEN true WHEN w.address = '{ZERO_ADDRESS}'
            THEN false END
        FROM wallets w LEFT JOIN (SELECT DISTINCT address FROM contract_ranks) c USING (address) ORDER BY 1""")
