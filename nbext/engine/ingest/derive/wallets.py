"""Addresses become ranks: each distinct spelling is looked at once, and rows are joined by it."""

from __future__ import annotations

from nbext.core.addresses import ZERO_ADDRESS
from nbext.engine.ingest.sources.reading import Opened
from nbext.engine.ingest.sources.tokens import ADDRESS
from nbext.engine.ingest.stage import Stage


def begin(stage: Stage) -> None:
    """Create the tables of spellings."""
    stage.run("CREATE TABLE spelled (address VARCHAR)")
    stage.run("CREATE TABLE spelled_contracts (chain_id BIGINT, address VARCHAR)")


def collect(stage: Stage, file: Opened, chain: int) -> None:
    """Add the addresses of a transfers file, as they are spelled there."""
    sides = " UNION ALL ".join(
        f"SELECT {file.text(side)} AS address FROM {file.relation}"
        for side in ("sender", "recipient")
    )
    # The first file, often the only one, is spared the join with nothing.
    met = (
        ""
        if stage.value("SELECT count(*) FROM spelled") == 0
        else "ANTI JOIN spelled USING (address)"
    )
    stage.run(f"INSERT INTO spelled SELECT DISTINCT address FROM ({sides}) {met}")
    stage.run(
        f"INSERT INTO spelled_contracts SELECT DISTINCT {chain}, {file.text('contract')} FROM {file.relation}"
    )


def rank(stage: Stage) -> None:
    """Create ``wallets`` and ``contract_ranks`` (rank and address) and the maps from a spelling to its rank."""
    valid = ADDRESS.format("address")
    before = "UNION SELECT address FROM prev.main.wallets" if stage.previous else ""
    # The spellings are distinct already: only addresses from elsewhere need a union.
    address = "address" if _all_lower(stage) else "DISTINCT lower(address) AS address"
    met = f"SELECT {address} FROM spelled WHERE {valid}"
    if stage.previous or stage.value("SELECT count(*) FROM openings"):
        met = f"({met}) UNION (SELECT address FROM openings {before})"
    stage.run(f"CREATE TABLE wallets AS SELECT address FROM ({met}) ORDER BY address")
    before = "UNION SELECT chain_id, address FROM prev.main.contracts" if stage.previous else ""
    stage.run(f"""
        CREATE TABLE contract_ranks AS SELECT chain_id, address FROM (
            SELECT chain_id, lower(address) AS address FROM spelled_contracts WHERE {valid}
            UNION SELECT chain_id, contract FROM openings UNION SELECT chain_id, address FROM known {before}
        ) ORDER BY 1, 2""")
    map_wallets(stage, "wallets")
    map_contracts(stage)
    stage.drop("spelled", "spelled_contracts")


def map_contracts(stage: Stage) -> None:
    """Create ``contract_map``: the number of each spelling of a contract's address."""
    stage.run(
        "CREATE TABLE contract_map AS SELECT DISTINCT s.chain_id, s.address, c.rowid::INTEGER AS contract "
        "FROM spelled_contracts s JOIN contract_ranks c "
        "ON c.chain_id = s.chain_id AND c.address = lower(s.address)"
    )


def map_wallets(stage: Stage, numbered: str) -> None:
    """Create ``wallet_map``: the number of each spelling of an address, of a table with that number as rowid."""
    # A row's place in a sorted table is its rank, which is cheaper than a window over all addresses. Spellings are
    # looked up by their 64-bit hashes, in a quarter of the memory and of the time, unless two have the same hash.
    distinct = stage.value("SELECT count(DISTINCT hash(address)) = count(*) FROM spelled")
    stage.run(f"CREATE MACRO spelling(address) AS {'hash(address)' if distinct else 'address'}")
    if _all_lower(stage):
        stage.run(
            "CREATE TABLE wallet_map AS SELECT spelling(address) AS spelled, rowid::INTEGER AS wallet "
            f"FROM {numbered}"
        )
    else:
        stage.run(
            "CREATE TABLE wallet_map AS SELECT spelling(s.address) AS spelled, w.rowid::INTEGER AS wallet "
            f"FROM spelled s JOIN {numbered} w ON lower(s.address) = w.address"
        )


def _all_lower(stage: Stage) -> bool:
    return bool(
        stage.value("SELECT coalesce(bool_and(address = lower(address)), true) FROM spelled")
    )


def zero(stage: Stage) -> int:
    """Return the rank of the zero address, or one that no wallet has where the data does not name it."""
    rank = stage.value("SELECT rowid FROM wallets WHERE address = ?", [ZERO_ADDRESS])
    # -1 is NOBODY, who sends what was there before the data begins; the zero address must not be taken for it.
    return -2 if rank is None else int(rank)


def forget_unused(stage: Stage) -> None:
    """Remove the addresses that only bad rows named from the ranks, so that those rows leave no trace."""
    before = "UNION SELECT address FROM prev.main.wallets" if stage.previous else ""
    used = f"""
        SELECT address FROM wallets w WHERE EXISTS (SELECT 1 FROM incoming WHERE sender = w.rowid)
            OR EXISTS (SELECT 1 FROM incoming WHERE recipient = w.rowid)
        UNION SELECT address FROM openings {before}"""
    wallets = _closed_ranks(stage, "wallets", used, "address")
    before = "UNION SELECT chain_id, address FROM prev.main.contracts" if stage.previous else ""
    used = f"""
        SELECT chain_id, address FROM contract_ranks c WHERE EXISTS (SELECT 1 FROM incoming WHERE contract = c.rowid)
        UNION SELECT chain_id, contract FROM openings UNION SELECT chain_id, address FROM known {before}"""
    contracts = _closed_ranks(stage, "contract_ranks", used, "chain_id, address")
    # Mostly good rows use the bad rows' addresses too, and no rank moves.
    if wallets or contracts:
        stage.run("""
            CREATE OR REPLACE TABLE incoming AS SELECT i.* REPLACE (c.now AS contract, s.now AS sender,
                r.now AS recipient) FROM incoming i
            JOIN contract_ranks_moves c ON c.old = contract JOIN wallets_moves s ON s.old = sender
            JOIN wallets_moves r ON r.old = recipient""")
    stage.drop("wallets_moves", "contract_ranks_moves")


def _closed_ranks(stage: Stage, table: str, used: str, key: str) -> bool:
    """Rank the used rows of a table again; create the map from old ranks to new, and return whether any moved."""
    stage.run(f"CREATE TABLE kept AS SELECT {key} FROM ({used}) ORDER BY {key}")
    stage.run(
        f"CREATE TABLE {table}_moves AS SELECT t.rowid::INTEGER AS old, k.rowid::INTEGER AS now "
        f"FROM {table} t JOIN kept k USING ({key})"
    )
    moved = stage.value(f"SELECT (SELECT count(*) FROM {table}) > (SELECT count(*) FROM kept)")
    stage.drop(table)
    stage.run(f"ALTER TABLE kept RENAME TO {table}")
    return bool(moved)


def open_snapshots(stage: Stage) -> None:
    """Create ``opened``, the newest snapshots' balances by rank, and store all snapshots for later runs."""
    stage.run("""
        CREATE TABLE opened AS SELECT c.rowid::INTEGER AS contract, n.block, w.rowid::INTEGER AS wallet,
            o.hi, o.mid, o.lo, o.has_id
        FROM openings o JOIN newest n USING (source, chain_id, contract)
        JOIN contract_ranks c ON c.chain_id = o.chain_id AND c.address = o.contract
        JOIN wallets w ON w.address = o.address""")
    stage.run("CREATE TABLE out.ingest.openings AS SELECT * FROM openings ORDER BY ALL")
    stage.run(
        "CREATE TABLE contract_chain AS SELECT rowid::INTEGER AS contract, chain_id FROM contract_ranks"
    )


def join_previous(stage: Stage) -> None:
    """Create ``arrived``: the new transfers and those of the generation before, by this run's ranks."""
    new = (
        "SELECT contract, block, log_index, sender, recipient, hi, mid, lo, file AS source, row, count AS given "
        "FROM incoming"
    )
    if not stage.previous:
        stage.run(f"CREATE VIEW arrived AS {new}")
        return
    stage.run(
        "CREATE TABLE wallet_moves AS SELECT p.wallet AS old, w.rowid::INTEGER AS now "
        "FROM prev.main.wallets p JOIN wallets w USING (address)"
    )
    stage.run(
        "CREATE TABLE contract_moves AS SELECT p.contract AS old, c.rowid::INTEGER AS now "
        "FROM prev.main.contracts p JOIN contract_ranks c USING (chain_id, address)"
    )
    stage.run(f"""
        CREATE VIEW arrived AS {new} UNION ALL
        SELECT c.now, block, log_index, s.now, r.now, hi, mid, lo, source, row, given FROM prev.main.transfers t
        JOIN contract_moves c ON c.old = t.contract JOIN wallet_moves s ON s.old = t.sender
        JOIN wallet_moves r ON r.old = t.recipient""")
