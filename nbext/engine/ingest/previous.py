"""The generation before, as ``prev``: in today's layout, and without what a run takes out.

The layout that ingest reads again, beside the tables of `nbext.engine.schema`; a source is a file that was ingested:

    transfers          also has source and row, which name the row, and given, the count that the row had
    ingest.keys        chain_id tx low key_index, of each transfer, with its source and row
    ingest.repeats     whole rows that repeat a transfer: it stays when one of the two sources is removed
    ingest.blocks      the blocks that a source names, with their times
    ingest.openings    the balances of every snapshot, also of those that a newer one replaces
    ingest.facts       what a source says of a contract; ``seq`` has its number (`sources.tokens`)

Where nothing is taken out of a generation of today's layout, its file is ``prev`` as it is. Else ``prev`` is views of
it, and ``prev.ingest.again`` has the rows that are to be decided again, because what they repeated may be gone.
"""

from __future__ import annotations

from dataclasses import dataclass

from nbext.engine.ingest.sources.tokens import OF_A_FILE
from nbext.engine.ingest.stage import Stage, quoted
from nbext.engine.storage import FORMAT, Generation

# Of ingest.repeats: the columns of a row that is read (`derive.rows`), but why it could not be parsed, and its time.
REPEATED = (
    "source, row, chain_id, contract, sender, recipient, hi, mid, lo, tx, low, key_index, log_index, block, "
    "given"
)
_OPENING = "chain_id, contract, address, block, hi, mid, lo, has_id"
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


def attached_as(previous: Generation | None, out: TakenOut) -> str:
    """Return the name that the generation's own file is to be attached under."""
    return "prev" if previous and previous.written == FORMAT and not out else "before"


def present(stage: Stage, out: TakenOut) -> None:
    """Create ``prev``, unless it is the generation's own file."""
    previous = stage.previous
    if previous is None or attached_as(previous, out) == "prev":
        return
    stage.run("ATTACH ':memory:' AS prev")
    stage.run("CREATE SCHEMA prev.ingest")
    if not out:
        for table, sql in _today(previous).items():
            stage.run(f"CREATE VIEW prev.{table} AS {sql}")
        for table in ("wallets", "contracts"):
            stage.run(f"CREATE VIEW prev.main.{table} AS SELECT * FROM before.main.{table}")
        return
    _take_out(stage, {table: f"({sql})" for table, sql in _today(previous).items()}, out)


def _today(previous: Generation) -> dict[str, str]:
    """Return the SQL of each of a generation's tables in today's layout; of old ones, all rows are of source 0."""
    tables = (
        "main.transfers",
        "ingest.keys",
        "ingest.repeats",
        "ingest.blocks",
        "ingest.openings",
        "ingest.facts",
    )
    held = {table: f"SELECT * FROM before.{table}" for table in tables}
    if previous.written == FORMAT:
        return held
    untold = "0 AS source, NULL::BIGINT AS row"
    keys = "SELECT * FROM before.ingest.keys"
    if (previous.folder / "keys").is_dir():  # of format 1: half of each hash
        files = quoted(previous.folder / "keys")
        keys = f"SELECT chain_id, tx, NULL::UUID AS low, key_index FROM read_parquet({files} || '/*.parquet')"
    return held | {
        "main.transfers": f"SELECT *, {untold}, count AS given FROM before.main.transfers",
        "ingest.keys": f"SELECT {_KEY}, {untold} FROM ({keys})",
        "ingest.repeats": f"SELECT {untold}, 0::BIGINT AS chain_id, contract, sender, recipient, hi, mid, lo, "
        "NULL::UUID AS tx, NULL::UUID AS low, log_index AS key_index, log_index, block, "
        "count AS given FROM before.main.transfers WHERE false",
        "ingest.blocks": "SELECT 0 AS source, chain_id, block, timestamp AS seconds FROM before.main.blocks",
        "ingest.openings": f"SELECT 0 AS source, {_OPENING}, NULL::BIGINT AS seconds FROM before.ingest.openings",
    }


def _take_out(stage: Stage, held: dict[str, str], out: TakenOut) -> None:
    """Create ``prev`` without what is taken out, and ``prev.ingest.again`` of what is to be decided again."""
    on_chain = (
        f"contract IN (SELECT contract FROM before.main.contracts WHERE chain_id = {out.chain_id})"
    )
    transfers = f"(SELECT * FROM {held['main.transfers']} WHERE {out.kept('block', on_chain)})"
    repeats = f"(SELECT * FROM {held['ingest.repeats']} WHERE {out.kept('block')})"
    keys = f"(SELECT * FROM {held['ingest.keys']} WHERE {out.kept()})"
    beyond = "false" if out.block is None else f"{on_chain} AND block >= {out.block}"
    stage.run(
        f"CREATE TABLE prev.main.beyond AS SELECT source, row FROM {held['main.transfers']} "
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
            f"CREATE VIEW prev.ingest.{table} AS SELECT * FROM {held[f'ingest.{table}']} "
            f"WHERE {out.kept('block')}"
        )
    stage.run(
        f"CREATE VIEW prev.ingest.facts AS SELECT * FROM {held['ingest.facts']} WHERE {out.kept_facts()}"
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
