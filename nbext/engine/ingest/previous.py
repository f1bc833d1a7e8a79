"""The generation before, as ``prev``: without what a run takes out.

The layout that ingest reads again, beside the tables of `nbext.engine.schema`; a source is a file that was ingested:

    transfers          also has source and row, which name the row, and given, the count that the row had
    ingest.keys        chain_id tx low key_index, of each transfer, with its source and row
    ingest.repeats     whole rows that repeat a transfer: it stays when one of the two sources is removed
    ingest.blocks      the blocks that a source names, with their times
    ingest.openings    the balances of every snapshot, also of those that a newer one replaces
    ingest.facts       what a source says of a contract; ``seq`` has its number (`sources.tokens`)

Where nothing is taken out of it, its file is ``prev`` as it is. Else ``prev`` is views of it, and
``prev.ingest.again`` has the rows that are to be decided again, because what they repeated may be gone.
"""

from __future__ import annotations

from dataclasses import dataclass

from nbext.engine.ingest.sources.tokens import OF_A_FILE
from nbext.engine.ingest.stage import Stage

# Of ingest.repeats: the columns of a row that is read (`derive.rows`), but why it could not be parsed, and its time.
REPEATED = (
    "source, row, chain_id, contract, sender, recipient, hi, mid, lo, tx, low, key_index, log_index, block, "
    "given"
)
_KEY = "chain_id, tx, low, key_index"


@dataclass(frozen=True)
class TakenOut:
    """What a run takes out of the generation before: whole sources, and everything of a chain from a block on."""

    sources: frozenset[int] = frozenset()
    chain_id: int | None = None
    block: int | None = None

    def __bool__(self) -> bool:
        return bool(self.sources) or self.block is not None

    def kept(self, block: str | None = None, on_chain: str | None = None) -> str:
        """Return the SQL of whether a row stays; ``block`` is its block, if it has one, ``on_chain`` its chain."""
        gone = [f"source IN ({self._numbers()})"] if self.sources else []
        if block and self.block is not None:
            gone.append(
                f"coalesce({on_chain or f'chain_id = {self.chain_id}'} AND {block} >= {self.block}, false)"
            )
        return f"NOT ({' OR '.join(gone)})" if gone else "true"

    def kept_facts(self) -> str:
        """Return the SQL of whether a fact stays."""
        return f"seq // {OF_A_FILE} NOT IN ({self._numbers()})" if self.sources else "true"

    def _numbers(self) -> str:
        return ", ".join(map(str, sorted(self.sources)))


def take_out(stage: Stage, out: TakenOut) -> None:
    """Create ``prev`` of what is ``before``: without what is taken out, and ``prev.ingest.again``."""
    stage.run("ATTACH ':memory:' AS prev")
    stage.run("CREATE SCHEMA prev.ingest")
    on_chain = (
        f"contract IN (SELECT contract FROM before.main.contracts WHERE chain_id = {out.chain_id})"
    )
    transfers = f"(SELECT * FROM before.main.transfers WHERE {out.kept('block', on_chain)})"
    repeats = f"(SELECT * FROM before.ingest.repeats WHERE {out.kept('block')})"
    keys = f"(SELECT * FROM before.ingest.keys WHERE {out.kept()})"
    beyond = "false" if out.block is None else f"{on_chain} AND block >= {out.block}"
    stage.run(
        f"CREATE TABLE prev.main.beyond AS SELECT source, row FROM before.main.transfers "
        f"WHERE {out.kept()} AND {beyond}"
    )
    # What repeats a transfer by its contents alone is decided together with all rows of these contents: which of them
    # stay depends on how many there are.
    story = "contract, sender, recipient, hi, mid, lo, block"
    stage.run(
        f"CREATE TABLE prev.main.undecided AS SELECT source, row FROM {transfers} "
        f"SEMI JOIN (SELECT * FROM {repeats} ANTI JOIN {keys} USING ({_KEY})) USING ({story})"
    )
    stage.run(f"""
        CREATE TABLE prev.ingest.again AS SELECT {REPEATED} FROM {repeats}
        UNION ALL SELECT {REPEATED} FROM {transfers} JOIN prev.main.undecided USING (source, row)
        JOIN {keys} USING (source, row)""")
    stage.run(
        f"CREATE VIEW prev.main.transfers AS SELECT * FROM {transfers} "
        "ANTI JOIN prev.main.undecided USING (source, row)"
    )
    stage.run(
        f"CREATE VIEW prev.ingest.keys AS SELECT * FROM {keys} "
        "ANTI JOIN (FROM prev.main.undecided UNION ALL FROM prev.main.beyond) USING (source, row)"
    )
    stage.run(f"CREATE VIEW prev.ingest.repeats AS SELECT * FROM {repeats} WHERE false")
    for table in ("blocks", "openings"):
        stage.run(
            f"CREATE VIEW prev.ingest.{table} AS SELECT * FROM before.ingest.{table} "
            f"WHERE {out.kept('block')}"
        )
    stage.run(
        f"CREATE VIEW prev.ingest.facts AS SELECT * FROM before.ingest.facts WHERE {out.kept_facts()}"
    )
    _keep_used_addresses(stage)


def _keep_used_addresses(stage: Stage) -> None:
    moved = "SELECT {0} FROM prev.main.transfers UNION SELECT {0} FROM prev.ingest.again"
    stage.run(
        "CREATE TABLE prev.main.contracts AS SELECT * FROM before.main.contracts "
        f"SEMI JOIN ({moved.format('contract')}) USING (contract)"
    )
    sides = " UNION ".join(moved.format(f"{side} AS wallet") for side in ("sender", "recipient"))
    stage.run(
        f"CREATE TABLE prev.main.wallets AS SELECT * FROM before.main.wallets SEMI JOIN ({sides}) USING (wallet)"
    )
