"""The same questions to several engines: rows and seconds of each, for comparison.

rows, seconds = ask("duckdb://", {"hold 1,000 UNI": {...}})
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from nbext.embedded import embedded
from nbext.settings import Settings

# The sample is small: two partitions do, where Spark would take 200.
_SPARK = "--conf spark.sql.shuffle.partitions=2 pyspark-shell"


def missing() -> list[str]:
    """Return what Spark needs and this machine lacks, in words."""
    lacks = (
        []
        if importlib.util.find_spec("pyspark")
        else ['pyspark is not installed: pip install "nbext[spark]"']
    )
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        lacks.append("Java is missing: Spark 4 needs Java 17")
    return lacks


def ask(
    engine: str, questions: Mapping[str, Any]
) -> tuple[dict[str, pd.DataFrame], dict[str, float]]:
    """Return each question's rows and seconds, on a fresh copy of the sample: a stored segment would come back."""
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_SUBMIT_ARGS=_SPARK)
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rows, seconds = {}, {}
    with _stderr_to(Path(folder) / "engine.log"):
        client = embedded(Settings({"engine": engine, "data_dir": folder}))
        for name, filters in questions.items():
            begun = time.perf_counter()
            rows[name] = client.execute_segment(filters, limit=10_000)
            seconds[name] = time.perf_counter() - begun
    return rows, seconds


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Send what this process, and those that it starts, write to stderr into a file: Spark writes much."""
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
