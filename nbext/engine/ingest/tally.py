"""Counting: rows as they were taken, oddities, gaps, bad rows, and the fingerprint of the result."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

from nbext import __version__
from nbext.core.chains import CHAINS
from nbext.engine.ingest.report import SHOWN, BadRow, Gap, Report
from nbext.engine.ingest.stage import Stage
from nbext.engine.ingest.transfers.wallets import zero
from nbext.engine.schema import TABLES
from nbext.engine.storage.generation import FORMAT

# A gap is this many times the usual distance between two blocks that the data knows.
_WIDE = 10
_HALF = 2**127


def count_rows(stage: Stage) -> None:
    """Keep how many rows of each contract were read, before repeated ones are left out."""
    null = zero(stage)
    stage.run(f"""
        CREATE TABLE read AS SELECT contract, count(*) AS n,
            count(*) FILTER (sender = recipient) AS self_transfers, count(*) FILTER (sender = {null}) AS mints,
            count(*) FILTER (recipient = {null}) AS burns, count(*) FILTER (hi = 0 AND mid = 0 AND lo = 0) AS zeros,
            count(*) FILTER ({_huge()}) AS huge
        FROM incoming GROUP BY 1""")


def _huge() -> str:
    limit = (_HALF // 10**52, _HALF // 10**26 % 10**26, _HALF % 10**26)
    return f"hi > 0 OR mid > {limit[1]} OR (mid = {limit[1]} AND lo >= {limit[2]}::HUGEINT)"


def count_oddities(stage: Stage, report: Report) -> None:
    """Fill the report's counts from the rows read and from the finished tables."""
    nft = "standard <> 'ERC20'"
    counted = stage.rows(f"""
        SELECT coalesce(sum(n) FILTER (NOT {nft}), 0)::BIGINT, coalesce(sum(n) FILTER ({nft}), 0)::BIGINT,
            count(*) FILTER (NOT {nft}), count(*) FILTER ({nft}), coalesce(sum(self_transfers), 0)::BIGINT,
            coalesce(sum(zeros) FILTER (NOT {nft}), 0)::BIGINT, coalesce(sum(mints), 0)::BIGINT,
            coalesce(sum(burns), 0)::BIGINT, coalesce(sum(huge), 0)::BIGINT, count(*) FILTER (NOT told)
        FROM read JOIN standards USING (contract)""")[0]
    report.erc20, report.nft, report.erc20_contracts, report.nft_contracts = counted[:4]
    names = ("self_transfers", "zero_values", "mints", "burns", "huge_values", "inferred")
    report.odd.update(zip(names, counted[4:], strict=True))
    report.odd["unknown_decimals"] = stage.value("""
        SELECT count(*) FROM out.contracts SEMI JOIN read USING (contract)
        WHERE standard = 'ERC20' AND decimals IS NULL""")
    report.odd.update(stage.rows("SELECT what, sum(n)::BIGINT FROM odd GROUP BY 1 HAVING sum(n) > 0 ORDER BY 1"))
    _gaps(stage, report)


def _gaps(stage: Stage, report: Report) -> None:
    found = stage.rows(f"""
        WITH steps AS (SELECT chain_id, block, block - lag(block) OVER (PARTITION BY chain_id ORDER BY block) AS step
                       FROM out.blocks),
             usual AS (SELECT chain_id, median(step) AS step FROM steps GROUP BY 1)
        SELECT s.chain_id, s.block - s.step + 1, s.block - 1 FROM steps s JOIN usual u USING (chain_id)
        WHERE s.step > {_WIDE} * u.step AND chain_id IN (SELECT chain_id FROM incoming UNION SELECT chain_id FROM times)
        ORDER BY s.step DESC, 1, 2""")
    names = {chain.id: chain.name for chain in CHAINS}
    report.gap_count = len(found)
    largest = sorted(found[:SHOWN])
    report.gaps = [Gap(names.get(chain, str(chain)), first, last) for chain, first, last in largest]


def write_lists(stage: Stage, report: Report, folder: Path, paths: dict[int, str]) -> None:
    """Write the bad rows and the contracts classified by behaviour to files beside the data."""
    report.bad_rows = stage.value("SELECT count(*) FROM bad")
    bad = stage.rows("SELECT file, row, why, value FROM bad ORDER BY file, row")
    if bad:
        rows = [BadRow(paths[file], row, why, value) for file, row, why, value in bad]
        report.bad, report.bad_path = rows[:SHOWN], str(folder / "bad-rows.csv")
        _write(folder / "bad-rows.csv", ("file", "row", "why", "value"),
               [(b.path, b.row, b.why, b.value) for b in rows])
    inferred = stage.rows("SELECT chain_id, address, s.standard FROM standards s JOIN contract_ranks r "
                          "ON r.rowid = contract WHERE NOT told ORDER BY 1, 2")
    if inferred:
        report.inferred_path = str(folder / "inferred-contracts.csv")
        _write(folder / "inferred-contracts.csv", ("chain_id", "address", "taken_as"), inferred)


def _write(path: Path, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def table_rows(stage: Stage) -> dict[str, int]:
    """Return how many rows each table of the layout has."""
    return {table: int(stage.value(f"SELECT count(*) FROM out.{table}")) for table in TABLES}


def fingerprint(stage: Stage) -> str:
    """Return a text that changes when any row does, whatever order rows and files came in.

    The tables not hashed here are made of these by this version's code.
    """
    found = hashlib.sha256(repr((__version__, FORMAT)).encode())
    for table in ("transfers", "blocks", "contracts", "ingest.openings"):
        row = stage.rows(f"SELECT count(*), bit_xor(hash(t)), sum(hash(t) % 4294967291) FROM out.{table} t")[0]
        found.update(repr((table, row)).encode())
    found.update(repr(stage.rows("SELECT count(*), bit_xor(hash(address)) FROM wallets")).encode())
    return found.hexdigest()[:32]
