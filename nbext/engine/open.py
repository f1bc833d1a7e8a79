"""Open a data folder on the engine that a URL names, and again when an ingest has switched it."""

from __future__ import annotations

import argparse
import contextlib
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from nbext.core.untrusted_text import quoted
from nbext.engine import storage
from nbext.errors import ConfigError, StorageError, did_you_mean

if TYPE_CHECKING:
    from nbext.engine.query.answers import Dataset
    from nbext.engine.spark.session import Spark
    from nbext.engine.storage import Generation

# Not what DuckDB takes: it reads "4" as bytes and "50%" as a part of a machine that other services share.
MEMORY_SIZE = re.compile(r"[1-9][0-9]{0,5}(MB|GB)\Z", re.IGNORECASE)
# Of an ingest: half of a laptop of 8 GB, of which little is taken where little is read.
DEFAULT_MEMORY = "4GB"
_THREADS = re.compile(r"[1-9][0-9]{0,2}\Z")
# How long a segment may run where nobody says: elsewhere each is planned, sent and collected, and the data is larger.
QUERY_SECONDS, QUERY_SECONDS_ELSEWHERE = 30.0, 300.0
# How often a service looks at a URL for a new generation: each look is a job of Spark's.
_LOOK_SECONDS = 10.0
# What Spark calls a master, by how it is written.
_MASTERS = {
    "spark://HOST:PORT": re.compile(r"spark://[^/,\s]+:\d+(,[^/,\s]+:\d+)*"),
    "local[N]": re.compile(r"local(\[(\*|\d+)(,\d+)?\])?"),
    "yarn": re.compile("yarn"),
    "k8s://https://HOST:PORT": re.compile(r"k8s://\S+"),
    "sc://HOST:PORT": re.compile(r"sc://[^/;,\s]+"),
}


def open_dataset(data_dir: Path | str, engine: str = "duckdb://") -> Dataset:
    """Open the generation that a data folder serves, or the sample where nothing was ever ingested.

    Parameters
    ----------
    data_dir
        The data folder, as `nbext ingest --data` filled it; or as text the URL that an ingest on Spark filled.
    engine
        ``duckdb://``, with options such as ``duckdb://?memory=4GB&threads=8``; or what Spark calls a master, such as
        ``spark://HOST:PORT`` or ``local[4]``, with options that begin with ``spark.``. Spark is connected to at the
        first question.

    Raises
    ------
    ConfigError
        The URL is not one of an engine, or has an option that the engine does not have.
    StorageError
        The generation is damaged or missing.
    """
    if isinstance(data_dir, str):
        return _at(data_dir, engine)[0]
    if (name := _name_of(engine)) not in _ENGINES:
        near = did_you_mean(name, [*_ENGINES, "yarn"])
        raise ConfigError(
            f"engine: {quoted(engine)} is not the URL of an engine.{near} "
            f"Allowed: duckdb://, and Spark's masters: {', '.join(_MASTERS)}."
        )
    opens, _ = _ENGINES[name]
    return opens(data_dir, engine)


def _name_of(engine: str) -> str:
    """Return the scheme of an engine's URL, or spark for what is, or begins as, a master of Spark's."""
    master = engine.partition("?")[0]
    if master.startswith(("spark:", "sc:")) or any(
        form.fullmatch(master) for form in _MASTERS.values()
    ):
        return "spark"
    scheme, mark, _ = engine.partition("://")
    return scheme.lower() if mark else ""


class Newest:
    """The generation that a data folder serves, opened again whenever an ingest has switched it.

    Attributes
    ----------
    query_seconds
        How long a segment may run on this engine, where its operator does not say.
    """

    def __init__(self, data_dir: Path | str, engine: str = "duckdb://") -> None:
        self._data_dir, self._engine = data_dir, engine
        self._switched: object = None
        # Of a URL: the session that looks for a new generation, and when it did.
        self._spark: Spark | None = None
        self._looked = 0.0
        _, self.query_seconds = _ENGINES.get(_name_of(engine), _ENGINES["duckdb"])

    def open(self) -> Dataset:
        """Open what is served now; errors as of `open_dataset`."""
        if isinstance(self._data_dir, str):
            dataset, self._spark, self._switched = _at(self._data_dir, self._engine)
            self._looked = time.monotonic()
            return dataset
        # Before the data is opened: an ingest that ends in between only makes one opening too many.
        switched = self._switch()
        dataset = open_dataset(self._data_dir, self._engine)
        self._switched = switched
        return dataset

    def newer(self) -> Dataset | None:
        """Open what is served now, where an ingest has switched it since it was opened, else return None; one stat."""
        # A folder that is gone, as of a disk that is not mounted now, is no reason to go on with the sample.
        return self.open() if self._switch() not in (None, self._switched) else None

    def _switch(self) -> object:
        """Return what is another after each switch: of ``current``, which is replaced by a new file, or of a URL."""
        if isinstance(self._data_dir, str):
            from nbext.engine.spark.place import newest

            if self._spark is None or time.monotonic() < self._looked + _LOOK_SECONDS:
                return None
            self._looked = time.monotonic()
            at = newest(self._spark.session(), self._data_dir)
            return at[0] if at else None
        try:
            found = (self._data_dir / "current").stat()
        except OSError:  # opening the data reports what is wrong with it
            return None
        return found.st_ino, found.st_mtime_ns


def chosen(data_dir: Path) -> Generation:
    """Return the generation that a data folder serves now, or else the sample."""
    found = storage.current_generation(data_dir)
    if found is not None:
        return found
    from nbext.engine.sample.unpack import ensure_sample

    return storage.read_generation(ensure_sample(data_dir))


def _duckdb(data_dir: Path, engine: str) -> Dataset:
    from nbext.engine.duckdb.dataset import MEMORY, DuckDataset

    try:
        url = urlsplit(engine)
    except ValueError as error:
        raise ConfigError(f"engine: {quoted(engine)} is not a URL: {error}.") from None
    if url.netloc or url.path not in ("", "/"):
        raise ConfigError("engine: duckdb:// has no path. Set the data folder with data_dir.")
    options, allowed = _options(url.query), {"memory": MEMORY_SIZE, "threads": _THREADS}
    for name, value in options.items():
        if name not in allowed:
            raise ConfigError(
                f"engine: duckdb:// has no option {name!r}.{did_you_mean(name, allowed)} "
                f"Allowed: {', '.join(allowed)}."
            )
        if not allowed[name].match(value):
            raise ConfigError(
                f"engine: {name}={quoted(value, 40)} is not valid. Write memory=4GB or threads=8."
            )
    return DuckDataset(
        chosen(data_dir),
        data_dir=data_dir,
        memory=options.get("memory", MEMORY),
        threads=int(options.get("threads", 0)),
    )


def _spark(data_dir: Path, engine: str) -> Dataset:
    from nbext.engine.spark.dataset import SparkDataset
    from nbext.engine.spark.session import Spark, beside

    found, given = chosen(data_dir), master_and_options(engine)
    return SparkDataset(found, Spark(beside(found), *given))


def _at(url: str, engine: str) -> tuple[Dataset, Spark, str]:
    """Return the dataset at a URL, its session, and the folder that it reads."""
    from nbext.engine.spark.dataset import SparkDataset
    from nbext.engine.spark.place import newest
    from nbext.engine.spark.session import Spark, register

    if _name_of(engine) != "spark":
        raise ConfigError(
            f"data_dir: {quoted(url)} is a URL, which only Spark reads. Write --engine spark://HOST:PORT."
        )
    master, conf = master_and_options(engine)
    spark = Spark(None, master, conf)
    with contextlib.ExitStack() as failing:
        failing.callback(spark.close)
        found = newest(spark.session(), url.rstrip("/"))
        if found is None:
            raise StorageError(
                f"{quoted(url)} has no data. Write it there first: nbext ingest --engine {master} "
                f"--data {url} PATH..."
            )
        folder, generation = found
        register(spark.session(), folder)
        failing.pop_all()
    return SparkDataset(generation, spark), spark, folder


def master_and_options(engine: str) -> tuple[str, dict[str, str]]:
    """Return what Spark calls its master, and the options, of an engine's URL; ConfigError where it is no Spark's."""
    master, _, query = engine.partition("?")
    if not any(form.fullmatch(master) for form in _MASTERS.values()):
        # What comes after a semicolon may be a token: Spark takes that from SPARK_CONNECT_AUTHENTICATE_TOKEN, too.
        raise ConfigError(
            f"engine: {quoted(master.partition(';')[0])} is not the address of a Spark master. Write "
            "spark://HOST:PORT or sc://HOST:PORT."
        )
    conf = _options(query)
    for name in conf:
        if not name.startswith("spark."):
            raise ConfigError(
                f"engine: Spark has no option {quoted(name, 40)}: its options begin with spark., such as "
                "spark.executor.memory=2g."
            )
    return master, conf


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in options:
            raise ConfigError(f"engine: {quoted(name, 40)} is given twice.")
        options[name] = value
    return options


def add_spark_conf(parser: argparse.ArgumentParser) -> None:
    """Declare ``--spark-conf``."""
    parser.add_argument(
        "--spark-conf",
        type=_option,
        action="append",
        default=[],
        metavar="K=V",
        help="an option of Spark's, such as spark.executor.memory=2g; repeat for several",
    )


def with_options(engine: str, options: Sequence[tuple[str, str]]) -> str:
    """Return an engine's URL with the options of ``--spark-conf``."""
    return engine + (("&" if "?" in engine else "?") + urlencode(options) if options else "")


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name.startswith("spark.") and equals):
        raise argparse.ArgumentTypeError(
            f"{text} is not an option of Spark's, such as spark.executor.memory=2g."
        )
    return name, value


# An engine's name -> what opens a data folder on it, and how long a segment may run. Each is imported when its URL is
# opened: Spark takes seconds.
_ENGINES = {"duckdb": (_duckdb, QUERY_SECONDS), "spark": (_spark, QUERY_SECONDS_ELSEWHERE)}
