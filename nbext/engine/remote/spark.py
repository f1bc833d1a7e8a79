"""Spark: a cluster that reads the generation's Parquet twin from a folder that all its machines see."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nbext.engine.remote.parquet_copy import twin
from nbext.engine.schema import TABLES
from nbext.errors import ConfigError, SegmentFailed

if TYPE_CHECKING:
    import pyarrow as pa

    from nbext.engine.storage.generation import Generation


class Spark:
    """A Spark session as an `nbext.engine.remote.dataset.Backend`.

    Parameters
    ----------
    generation
        The generation; its Parquet twin is written beside it when the session is first needed.
    master
        What Spark calls the cluster: ``spark://HOST:PORT``, or ``local[*]`` for this machine.
    """

    name = "pyspark"
    where: Mapping[str, str] = {}

    def __init__(self, generation: Generation, master: str) -> None:
        self._generation = generation
        self._master = master
        self._lock = threading.Lock()
        self._started: Any = None

    def fetch(self, sql: str, job: str) -> pa.Table:
        """Run a statement in a job group of its own, so that `stop` ends it alone."""
        from pyspark.errors import PySparkException

        session = self._session()
        try:
            session.sparkContext.setJobGroup(job, "nbext", interruptOnCancel=True)
            return session.sql(sql).toArrow()
        except PySparkException as error:
            failure = SegmentFailed(f"Spark could not answer: {str(error).splitlines()[0]}")
        raise failure

    def stop(self, job: str) -> None:
        """End the tasks of a job group."""
        if self._started is not None:
            self._started.sparkContext.cancelJobGroup(job)

    def plan(self, sql: str) -> str:
        """Return Spark's plan of a statement."""
        rows = self._session().sql(f"EXPLAIN {sql}").collect()
        return str(rows[0][0])

    def close(self) -> None:
        """Stop the session."""
        with self._lock:
            if self._started is not None:
                self._started.stop()
                self._started = None

    def _session(self) -> Any:
        with self._lock:
            if self._started is None:
                self._started = self._start()
            return self._started

    def _start(self) -> Any:
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise ConfigError('pyspark:// needs Spark\'s client: pip install "nbext[spark]"') from None
        folder = twin(self._generation)
        builder = SparkSession.builder.master(self._master).appName("nbext")
        session = (
            builder.config("spark.ui.enabled", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.log.level", "ERROR")
            # In a notebook its bars would land in whichever cell runs, line upon line.
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
        for name in TABLES:
            session.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)
        return session
