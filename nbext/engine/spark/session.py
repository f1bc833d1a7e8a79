"""A Spark session with the tables of a generation, and the Parquet files that it reads them from.

The files are in a folder that all of Spark's machines see. Of a generation that one machine ingested they are written
once, when they are first needed: Spark does not read a DuckDB file.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from nbext.core.atomic_files import made_folder
from nbext.engine.layers import attach
from nbext.engine.query.set_tree import Sql
from nbext.engine.schema import SQL_TYPES, TABLES, sql_literal
from nbext.engine.storage import DUCKDB
from nbext.errors import ConfigError, SegmentFailed, StorageError

if TYPE_CHECKING:
    import pyarrow as pa

    from nbext.engine.storage import Generation

FOLDER = "parquet"
# Options of Spark that hold where nobody gives others.
_DEFAULTS = {
    "spark.ui.enabled": "false",  # its page listens on all addresses
    "spark.log.level": "ERROR",
    # A task in a generated loop does not see that it was cancelled, and would hold its core for ever. Its executor ends
    # instead; tasks of other questions there are run again.
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": "10s",
    "spark.ui.showConsoleProgress": "false",  # in a notebook its bars would land in whichever cell runs, line upon line
}


class Spark:
    """A Spark session; starts, or connects, when it is first asked. Safe to use from several threads.

    Parameters
    ----------
    tables
        Returns the URL of the folder that has ``<table>.parquet`` for every table; asked when they are first needed.
        None: the session has none yet.
    master
        What Spark calls the cluster: ``spark://HOST:PORT``, ``yarn``, ``local[*]`` for this machine; ``sc://HOST:PORT``
        is a server of Spark Connect.
    conf
        Spark's own options. Those of ``spark-defaults.conf`` hold where none is given.
    """

    # A process has one Spark context, and each generation that is open a session of its own on it: the tables of a
    # newer one must not take the place of those that a statement reads just now.
    _sessions = 0
    _starting = threading.Lock()

    def __init__(
        self, tables: Callable[[], str] | None, master: str, conf: Mapping[str, str]
    ) -> None:
        self._tables = tables
        self._master, self._conf, self._connects = master, conf, master.startswith("sc:")
        self._lock = threading.Lock()
        self._started: Any = None

    def fetch(self, sql: Sql, job: str) -> pa.Table:
        """Run a statement to its end, in a job group or under a tag, so that `stop` ends it and no other question's."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            session = self.session()
            if self._connects:
                session.clearTags()  # of the statement that this thread ran before
                session.addTag(job)
            else:
                session.sparkContext.setJobGroup(job, "nbext", interruptOnCancel=True)
            frames = {name: session.createDataFrame(table) for name, table in sql.tables.items()}
            # Spark has other marks of values and of lists.
            text = sql.text.replace("$", ":").replace("unnest(", "explode(")
            # Each in braces, as a DataFrame that the statement reads: a view's name would be seen by other questions.
            for name in frames:
                text = text.replace(name, f"{{{name}}}")
            return session.sql(text, dict(sql.values), **frames).toArrow()
        except (PySparkException, Py4JError) as error:
            failure = SegmentFailed(f"Spark could not answer: {reason_of(error)}")
        raise failure

    def stop(self, job: str) -> None:
        """End the tasks of a job group, and those that it would start yet: Spark may still be planning."""
        if self._started is not None and self._connects:
            self._started.interruptTag(job)
        elif self._started is not None:
            # Python's own cancelJobGroup ends what runs now, and a job that begins after it would run to its end.
            self._started.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(job)

    def close(self) -> None:
        """End the session, and Spark with the last one."""
        with self._lock, Spark._starting:
            if self._started is not None:
                Spark._sessions -= not self._connects
                if self._connects or not Spark._sessions:
                    self._started.stop()
                self._started = None

    def session(self) -> Any:
        """Return Spark's session with the tables, started when it is first needed."""
        # Two first questions at once would both start Spark and register the tables.
        with self._lock:
            if self._started is None:
                self._started = self._start()
            return self._started

    def _start(self) -> Any:
        session: Any
        folder = self._tables() if self._tables else None
        try:
            from pyspark.sql import SparkSession

            with Spark._starting:
                if self._connects:
                    # SparkSession's own builder would have the whole process use Connect from then on.
                    from pyspark.sql.connect.session import SparkSession as Connected

                    session = (
                        Connected.builder.remote(self._master).config(map=dict(self._conf)).create()
                    )
                else:
                    if self._master.startswith("local"):
                        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
                    builder = SparkSession.builder.master(self._master).appName("nbext")
                    session = (
                        builder.config(map={**_DEFAULTS, **self._conf}).getOrCreate().newSession()
                    )
                    Spark._sessions += 1
        except ImportError:
            raise ConfigError('Spark needs its client: pip install "nbext[spark]"') from None
        # Days are UTC days on every engine, wherever the cluster is.
        session.conf.set("spark.sql.session.timeZone", "UTC")
        if folder:
            register(session, folder)
        return session


def reason_of(error: Exception) -> str:
    """Return what Spark says first: of Java's traces the line after the one that says where Python called it."""
    lines = [
        line.lstrip(": ")
        for line in str(error).splitlines()
        if not line.startswith("An error occurred")
    ]
    return (lines or [str(error)])[0][:500].rstrip(".")


def register(session: Any, folder: str) -> None:
    """Have a session's statements read the tables in the folder of a generation."""
    for name in TABLES:
        session.read.parquet(f"{folder}/{name}.parquet").createOrReplaceTempView(name)


def beside(generation: Generation) -> Callable[[], str]:
    """Return what writes a local generation's Parquet files beside it, where they are not, and returns their URL."""
    # With its scheme: a cluster's own file system may be another one.
    return lambda: f"file://{parquet_files(generation).absolute()}"


def parquet_files(generation: Generation) -> Path:
    """Return the folder with ``<table>.parquet`` for every table, made where it is absent or damaged.

    Raises
    ------
    StorageError
        The folder of the generation cannot be written.
    """
    folder = generation.folder / FOLDER
    try:
        made_folder(folder, generation.fingerprint, lambda building: _write(generation, building))
    except (OSError, duckdb.Error) as error:
        raise StorageError(
            f"the Parquet files of {generation.folder} cannot be written: {error}"
        ) from None
    return folder


def _write(generation: Generation, building: Path) -> None:
    with duckdb.connect(":memory:", config={**DUCKDB}) as connection:
        attach(connection.execute, generation, "generation")
        for name, columns in TABLES.items():
            # Each type is named: DuckDB writes a HUGEINT, were there one, as DOUBLE without a word.
            cast = ", ".join(
                f'"{column}"::{SQL_TYPES[kind]} AS "{column}"' for column, kind in columns.items()
            )
            target = sql_literal(building / f"{name}.parquet")
            # Every table is sorted by its first columns, but where a delta follows its base.
            order = ", ".join(list(columns)[:4])
            rows = f"generation.{name}" + f" ORDER BY {order}" * (generation.delta is not None)
            connection.execute(f"COPY (SELECT {cast} FROM {rows}) TO {target} (FORMAT parquet)")
