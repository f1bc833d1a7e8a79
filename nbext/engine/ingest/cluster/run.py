"""An ingest on a Spark cluster: files at URLs become the prepared tables at another, all or nothing.

The tables are built anew, of all the files given. The derivations are those of `nbext.engine.ingest.derive`; only what
an engine must do in its own way is here: ranks, repeated rows, and who works out which history.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nbext import __version__
from nbext.core.chains import Chain, chain_of
from nbext.core.uint256 import LIMB_BASE
from nbext.engine.ingest import report as counts
from nbext.engine.ingest.cluster import files
from nbext.engine.ingest.cluster.stage import SparkStage
from nbext.engine.ingest.derive import contracts, duplicates, facts, holdings, rows, tables
from nbext.engine.ingest.reading import FileTable
from nbext.engine.ingest.report import Report
from nbext.engine.ingest.stage import CONTENT, KEY
from nbext.engine.ingest.steps import create_inputs, manifest_of, take_facts
from nbext.engine.schema import SQL_TYPES, TABLES
from nbext.engine.spark.place import Place
from nbext.engine.spark.session import Spark, reason_of
from nbext.engine.storage import FORMAT
from nbext.errors import IngestError, StorageError

Progress = Callable[[str, float], None]
_CONF = {
    # Java interprets a longer method, and never compiles it: then Spark leaves its loops, and not Java its compiler.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Each statement is classes of its own. Of a million transfers, compiling them took longer than running them.
    "spark.executor.defaultJavaOptions": "-XX:CompileThresholdScaling=5",
}
# A driver plans each statement once: to compile that once more, for speed, took half of its processor time.
_PLANNING = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1"}
# Into how many pieces files are cut at least.
_CUTS = "spark.sql.files.minPartitionNum"
# Addresses are ranked by shares, those that begin with the same digits: counted first, then each is sorted alone.
_SHARE = "substr(hex(address), 1, 3)"
# Nearly no key is repeated: only where two hashes are the same are keys compared, and parsed again for that.
_HASH = f"xxhash64({KEY})"
# An address is its bytes until it is ranked: half of what its text takes, and sorted by more of it at once.
_BYTES, _TEXT = "unhex(substr({}, 3))", "'0x' || lower(hex({}))"
# Wallets that each machine has in memory, of 100 bytes at most.
_BROADCAST = 4_000_000


def ingest(
    paths: Iterable[str],
    chain: str | int | None,
    url: str,
    master: str,
    conf: Mapping[str, str],
    *,
    renamed: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Ingest files on a cluster, and have services on that URL serve the result.

    Parameters
    ----------
    paths
        Files, folders, globs and URLs that every machine of the cluster reads.
    chain
        The chain of files that do not name one; None where all do.
    url
        Where the tables are written, such as ``hdfs://host/nbext``.
    master, conf
        As of `nbext.engine.spark.session.Spark`.
    renamed, progress
        As of `nbext.engine.ingest.ingest`.

    Raises
    ------
    IngestError
        A file cannot be used, or rows contradict each other: nothing is changed then.
    StorageError
        The URL cannot be read or written, or Spark failed.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    started = time.monotonic()
    named = None if chain is None else chain_of(chain)
    # On this machine alone, the driver works on the rows, too.
    own = _CONF if master.startswith("local") else _CONF | _PLANNING
    spark = Spark(None, master, {**own, **conf})
    failure = None
    try:
        report = _ingest(
            spark.session(),
            list(paths),
            named,
            url.rstrip("/"),
            renamed=renamed or {},
            progress=progress or (lambda step, done: None),
        )
    except (PySparkException, Py4JError) as error:
        failure = StorageError(f"Spark could not ingest: {reason_of(error)}. Nothing was changed.")
    else:
        report.seconds = time.monotonic() - started
        return report
    finally:
        spark.close()
    raise failure


def _ingest(
    session: Any,
    paths: list[str],
    chain: Chain | None,
    url: str,
    *,
    renamed: Mapping[str, str],
    progress: Progress,
) -> Report:
    progress("reading", 0)
    # Files are cut by this number, and not by how many executors there are just then: their rows keep their numbers.
    if session.conf.get(_CUTS, None) is None:
        session.conf.set(_CUTS, session.sparkContext.defaultParallelism)
    listed = files.list_files(session, paths)
    groups = files.grouped(session, listed, renamed)
    place = Place(session, url)
    try:
        run = _Run(SparkStage(session, place.folder, f"{place.folder}/work"), chain, progress)
        run.read(groups, renamed)
        run.derive()
        report = run.report()
        manifest = run.manifest(report, groups)
        files.check_unchanged(session, paths, listed)
        place.remove(f"{place.folder}/work")
        place.publish(manifest)
    except BaseException:  # Ctrl-C too: nobody can be served what has no manifest
        place.withdraw()
        raise
    report.generation, report.changed = place.folder.rpartition("/")[2], True
    return report


@dataclass
class _Run:
    """The steps of one run, and what they share."""

    # A `SparkStage`; the derivations are typed for DuckDB's.
    stage: Any
    chain: Chain | None
    progress: Progress
    opened: list[FileTable] = field(default_factory=list)

    def read(self, groups: list[files.FileGroup], renamed: Mapping[str, str]) -> None:
        """Read all rows: facts about contracts and blocks, then transfers, bad ones apart and repeated ones once."""
        stage = self.stage
        create_inputs(stage)
        for number, group in enumerate(groups, 1):
            self.progress("reading", number / (len(groups) + 1))
            self.opened.append(files.open_group(stage, number, group, renamed))
        for file in self.opened:
            file.find_chain(stage, self.chain)
            take_facts(stage, file)
        facts.merge_facts(stage)
        stage.run("""
            CREATE TABLE parsed (file INTEGER, row BIGINT, chain_id BIGINT, contract BLOB, sender BLOB, recipient BLOB,
                hi DECIMAL(38,0), mid DECIMAL(38,0), lo DECIMAL(38,0), log_index BIGINT, block BIGINT, seconds BIGINT,
                count BIGINT, fault INTEGER, h BIGINT)""")
        parsed = []
        for file in self.opened:
            if file.kind.holds == "transfers":
                self.progress("reading transfers", 0)
                rows.check_columns(stage, file)
                parsed.append(_parsed(stage, file))
                stage.run(
                    f"INSERT INTO parsed SELECT * EXCLUDE (tx, low, key_index), {_HASH} FROM ({parsed[-1]})"
                )
                rows.set_bad_apart(stage, file, "parsed")
        self.progress("merging", 0)
        self._keep_one_of_each(parsed)
        self._rank()
        tables.take_blocks_of_transfers(stage)
        self._check_times()

    def _keep_one_of_each(self, parsed: Iterable[str]) -> None:
        """Create ``good``: each transfer once; refuse rows with one key and other contents."""
        stage = self.stage
        stage.run("CREATE TABLE alike AS SELECT h FROM parsed GROUP BY 1 HAVING count(*) > 1")
        if not stage.value("SELECT count(*) FROM alike"):
            stage.run("CREATE VIEW good AS SELECT * FROM parsed")
            return
        stage.run(
            f"CREATE TABLE suspects AS SELECT * FROM ({' UNION ALL '.join(parsed)}) "
            f"WHERE fault IS NULL AND {_HASH} IN (SELECT h FROM alike)"
        )
        stage.run(
            f"CREATE TABLE repeated_keys AS SELECT {KEY} FROM suspects GROUP BY {KEY} HAVING count(*) > 1"
        )
        duplicates.compare_repeated(stage, "suspects")
        self._check_contradictions()
        stage.run("CREATE VIEW good AS SELECT * FROM parsed ANTI JOIN repeated USING (file, row)")
        stage.run("INSERT INTO odd SELECT 0, 'duplicates', count(*) FROM repeated")

    def _check_contradictions(self) -> None:
        versions = self.stage.rows(f"""
            SELECT DISTINCT file, tx, low, key_index, {CONTENT} FROM suspects SEMI JOIN (
                SELECT {KEY} FROM suspects SEMI JOIN contradictions USING (file, row) LIMIT 1) USING ({KEY})
            ORDER BY file LIMIT 2""")
        if not versions:
            return
        both = [
            f"{self.opened[file - 1].source.shown}: block {block:,}, 0x{contract.hex()}, "
            f"from 0x{sender.hex()} to 0x{recipient.hex()}"
            for file, *_, contract, sender, recipient, _, _, _, block in versions
        ]
        file, tx, low, index, *_ = versions[0]
        raise IngestError(
            f"rows contradict each other: transaction 0x{tx.hex()}{low.hex()}, log {index}: {'; '.join(both)}. "
            "Nothing was changed.",
            path=self.opened[file - 1].source.name,
        )

    def _check_times(self) -> None:
        """Refuse two times or hashes of a block, and a time before an earlier block's, as one machine does."""
        if two := tables.find_two(self.stage):
            word, block = two
            what = f"block {block:,} has two {word}"
            told = self.stage.rows(
                "SELECT min(source), told FROM two WHERE block = ? GROUP BY 2 ORDER BY 1, 2 LIMIT 2",
                [block],
            )
        elif found := tables.find_backward_times(self.stage):
            one = found[0]
            what = f"block {one.block:,} has a time before that of block {one.block_before:,}"
            told = [(one.source, one.seconds), (one.source_before, one.seconds_before)]
        else:
            return
        both = [
            f"{tables.time_or_hash(one)} in {self.opened[file - 1].source.shown}"
            for file, one in told
        ]
        raise IngestError(
            f"{what}: {', '.join(both)}. Nothing was changed.",
            path=self.opened[max(file for file, _ in told) - 1].source.name,
        )

    def _rank(self) -> None:
        """Create ``wallets`` and ``contract_ranks``, and ``incoming``: the good rows by ranks."""
        stage = self.stage
        stage.run(
            "CREATE TABLE met AS SELECT sender AS address FROM good UNION SELECT recipient FROM good"
        )
        stage.run(f"""
            CREATE TABLE shares AS SELECT share, sum(n) OVER (ORDER BY share) - n AS before
            FROM (SELECT {_SHARE} AS share, count(*) AS n FROM met GROUP BY 1)""")
        stage.run(f"""
            CREATE TABLE wallets AS SELECT rowid, {_TEXT.format("address")} AS address, xxhash64(address) AS h FROM (
                SELECT (before + row_number() OVER (PARTITION BY share ORDER BY address) - 1)::INTEGER AS rowid, address
                FROM (SELECT address, {_SHARE} AS share FROM met) JOIN shares USING (share))""")
        stage.run(f"""
            CREATE TABLE contract_ranks AS
            SELECT (row_number() OVER (ORDER BY chain_id, address) - 1)::INTEGER AS rowid, chain_id, address FROM (
                SELECT chain_id, {_TEXT.format("contract")} AS address
                FROM (SELECT DISTINCT chain_id, contract FROM good) UNION SELECT chain_id, address FROM known)""")
        stage.run(
            "CREATE VIEW contract_chain AS SELECT rowid AS contract, chain_id FROM contract_ranks"
        )
        spelling = self._map_wallets()
        stage.run(f"""
            CREATE TABLE incoming AS SELECT file, row, g.chain_id, c.rowid AS contract, s.wallet AS sender,
                r.wallet AS recipient, hi, mid, lo, log_index, block, seconds, count
            FROM good g JOIN contract_ranks c ON c.chain_id = g.chain_id AND {_BYTES.format("c.address")} = g.contract
            JOIN wallet_map s ON s.spelled = {spelling.format("g.sender")}
            JOIN wallet_map r ON r.spelled = {spelling.format("g.recipient")}""")

    def _map_wallets(self) -> str:
        """Create ``wallet_map``: the rank of each address. Return the SQL by which one is looked up."""
        stage = self.stage
        wallets, distinct = stage.rows("SELECT count(*), count(DISTINCT h) FROM wallets")[0]
        key, spelling = (
            ("h", "xxhash64({})") if distinct == wallets else (_BYTES.format("address"), "{}")
        )
        found = stage.session.sql(f"SELECT {key} AS spelled, rowid AS wallet FROM wallets")
        # Where every machine has them all, no row has to travel to its wallets.
        found = found.hint("broadcast") if wallets <= _BROADCAST else found
        found.createOrReplaceTempView("wallet_map")
        return spelling

    def derive(self) -> None:
        """Fill every table of the layout."""
        stage = self.stage
        tables.create_tables(stage)
        tables.collect_blocks(stage)
        # Without snapshots: a table of the layout is there all the same.
        stage.run("CREATE TABLE placed (chain_id BIGINT, block BIGINT, seconds BIGINT)")
        stage.run("INSERT INTO out.snapshot_wallets SELECT chain_id, 0, block FROM placed")
        stage.run(
            "CREATE TABLE opened (contract INTEGER, block BIGINT, wallet INTEGER, hi DECIMAL(38,0), "
            "mid DECIMAL(38,0), lo DECIMAL(38,0), has_id BOOLEAN)"
        )
        tables.save_blocks(stage)
        tables.save_extents(stage)
        duplicates.join_previous(stage)
        contracts.classify(stage)
        rows.save_transfers(stage)
        self._derive_holdings()
        self.progress("activity", 0)
        tables.save_activity(stage)
        contracts.save_wallets(stage)
        contracts.save_contracts(stage, rows.zero_rank(stage))

    def _derive_holdings(self) -> None:
        stage, zero = self.stage, rows.zero_rank(self.stage)
        self.progress("balances", 0)
        tables.create_profile(stage)
        found = (
            f"(SELECT {tables.ROW}, count, nft, multi, first_block "
            "FROM out.transfers JOIN profile USING (contract))"
        )
        tables.derive_changes(stage, found, zero)
        tables.save_changes(stage)
        flows = tables.flowing(found, wide=True, wallets=tables.EVERYBODY)
        stage.run(f"CREATE VIEW flows AS {flows}")
        _histories(stage).createOrReplaceTempView("histories")
        stage.run(
            "INSERT INTO out.history SELECT contract, wallet, from_block, to_block, coalesce(hi, 0), coalesce(mid, 0), "
            f"lo, sort_key FROM ({tables.with_amounts('histories')})"
        )
        tables.save_balances(stage)

    def report(self) -> Report:
        """Return what was read, and every oddity."""
        stage = self.stage
        report = Report(files=self.opened)
        counts.count_rows(stage)
        counts.count_oddities(stage, report)
        for file, why, value, n in stage.rows(
            "SELECT file, why, min(value), count(*) FROM bad GROUP BY 1, 2 ORDER BY 1, 2"
        ):
            report.bad_rows += n
            shown = self.opened[file - 1].source.shown
            report.bad.append(counts.BadRow(shown, None, why, value, alike=n))
        report.tables = counts.rows_of_tables(stage)
        return report

    def manifest(self, report: Report, groups: list[files.FileGroup]) -> dict[str, Any]:
        """Return what `nbext.engine.storage` says of a generation."""
        # Their bytes are read by executors only, so none has a checksum.
        listed = [
            {
                "source": file.number,
                "path": one.url,
                "sha256": "",
                "size": one.size,
                "mtime": one.modified,
                "kind": file.kind.name,
            }
            for file, group in zip(self.opened, groups, strict=True)
            for one in group.files
        ]
        return manifest_of(self.stage, self.fingerprint(), report.tables, listed)

    def fingerprint(self) -> str:
        """Return a text that changes when any row does, whatever the order of rows and files was."""
        found = hashlib.sha256(repr((__version__, FORMAT, "spark")).encode())
        for table in ("transfers", "blocks", "contracts", "wallets"):
            hashed = self.stage.session.sql(
                f"SELECT count(*), bit_xor(h), sum(CAST(pmod(h, 4294967291) AS DECIMAL(38,0))) "
                f"FROM (SELECT xxhash64(*) AS h FROM out_{table})"
            ).collect()[0]
            found.update(repr((table, *map(str, hashed))).encode())
        return found.hexdigest()[:32]


def _parsed(stage: Any, file: FileTable) -> str:
    """Return the SQL of a file's rows, with addresses as bytes, and where a row is bad the number of its reason."""
    texts = rows.row_texts(stage, file)
    # No pattern: what is not hexadecimal is NULL.
    named = ", ".join(
        f"CASE WHEN length({side}_text) = 42 AND lower(left({side}_text, 2)) = '0x' "
        f"THEN {_BYTES.format(f'{side}_text')} END AS {side}"
        for side in ("contract", "sender", "recipient")
    )
    return rows.parsed_rows(file, f"SELECT *, {named}, value_text AS digits FROM ({texts})")


def _histories(stage: Any) -> Any:
    """Return the rows of ``history`` of the view ``flows``, worked out side by side.

    A task is a share of a bucket, as on one machine; its flows come to it in no order. Tasks are in order wherever
    several are worked out one after another, and so are the rows of each: no file needs to be sorted.
    """
    tasks: list[range] = []
    buckets = []
    for bucket, shares in tables.shares_of(stage).items():
        buckets.append((bucket.first, bucket.last, len(tasks), len(shares), bucket.wide))
        tasks += shares
    stage.session.createDataFrame(
        buckets, "first int, last int, task int, shares int, upper boolean"
    ).createOrReplaceTempView("buckets")
    # A flow goes to the shares of both its wallets; NOBODY's is the first, which follows no such wallet.
    wallets = max((one.stop for one in tasks), default=1)
    of_side = "b.task + int(greatest(({} + 1L) * shares - 1, 0) DIV {})"
    sides = ", ".join(of_side.format(side, wallets) for side in ("sender", "recipient"))
    shared = stage.session.sql(f"""
        SELECT flows.contract, block, log_index, sender, recipient, if(upper, hi, NULL) AS hi,
            if(upper, mid, NULL) AS mid, lo, tasks.task
        FROM flows JOIN (SELECT * FROM profile JOIN buckets ON contract BETWEEN first AND last) b USING (contract)
        LATERAL VIEW explode(if(shares = 1, array(b.task), array_distinct(array({sides})))) tasks AS task""")
    columns = ", ".join(
        f"{name} {SQL_TYPES[kind]}"
        for name, kind in TABLES["history"].items()
        if name != "sort_key"
    )
    with by_value():
        return shared.groupBy("task").applyInArrow(partial(_history, tasks), columns)


@contextmanager
def by_value() -> Iterator[None]:
    """Have functions travel with all that they call: the cluster's machines have NumPy and Arrow, and need no nbext."""
    from pyspark import cloudpickle

    package = sys.modules["nbext"]
    cloudpickle.register_pickle_by_value(package)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(package)  # type: ignore[no-untyped-call]


def _history(tasks: list[range], key: tuple[Any, ...], flows: pa.Table) -> pa.Table:
    """Return the history of one task, on one of the cluster's machines.

    Where one limb is enough, the others are null: Java makes objects of each number, but none of a null.
    """
    wallets = tasks[key[0].as_py()]
    if not flows["hi"].null_count:
        return holdings.history(flows, wallets)
    found = holdings.history(flows.drop_columns(["hi", "mid"]), wallets)
    lo = found["lo"]
    enough = pc.and_(pc.greater_equal(lo, 0), pc.less(lo, Decimal(LIMB_BASE)))
    upper = pc.if_else(enough, None, found["hi"])
    return pa.table([*found.columns[:4], upper, upper, lo], found.column_names)
