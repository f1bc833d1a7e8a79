"""Open a data folder on the engine that a URL names, and again when an ingest has switched it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, urlsplit

from nbext.core.untrusted_text import quoted
from nbext.engine import storage
from nbext.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from nbext.engine.dataset import Dataset
    from nbext.engine.remote.backends import Warehouse
    from nbext.engine.storage import Generation

# Not what DuckDB takes: it reads "4" as bytes and "50%" as a part of a machine that other services share.
MEMORY_SIZE = re.compile(r"\d{1,6}(MB|GB)\Z", re.IGNORECASE)
_THREADS = re.compile(r"[1-9]\d{0,2}\Z")
# How long a segment may run where nobody says: elsewhere each is planned, sent and collected, and the data is larger.
QUERY_SECONDS, QUERY_SECONDS_ELSEWHERE = 30.0, 300.0
# What Spark calls a master, by how it is written.
_MASTERS = {
    "spark://HOST:PORT": re.compile(r"spark://[^/,\s]+:\d+(,[^/,\s]+:\d+)*"),
    "local[N]": re.compile(r"local(\[(\*|\d+)(,\d+)?\])?"),
    "yarn": re.compile("yarn"),
    "k8s://https://HOST:PORT": re.compile(r"k8s://\S+"),
    "sc://HOST:PORT": re.compile(r"sc://[^/;,\s]+"),
}


def open_dataset(data_dir: Path, engine: str = "duckdb://") -> Dataset:
    """Open the generation that a data folder serves, or the sample where nothing was ever ingested.

    Parameters
    ----------
    data_dir
        The data folder, as `nbext ingest --data` filled it.
    engine
        ``duckdb://``, with options such as ``duckdb://?memory=4GB&threads=8``; what Spark calls a master, such as
        ``spark://HOST:PORT`` or ``local[4]``, with options that begin with ``spark.``;
        ``bigquery://PROJECT/DATASET``; ``trino://USER@HOST:PORT/CATALOG/SCHEMA``. All but DuckDB connect at the
        first question.

    Raises
    ------
    ConfigError
        The URL is not one of an engine, or has an option that the engine does not have.
    StorageError
        The generation is damaged or missing.
    """
    if _kind(engine) == "spark":
        return _spark(data_dir, engine)
    url = _url(engine)
    return _ENGINES[url.scheme](data_dir, url)


def warehouse(engine: str) -> Warehouse:
    """Return the warehouse of a URL, not connected; errors as of `open_dataset`."""
    if _kind(engine) in ("duckdb", "spark"):
        raise ConfigError(f"engine: {quoted(engine)} is not a warehouse. Write bigquery://PROJECT/DATASET or "
                          "trino://USER@HOST:PORT/CATALOG/SCHEMA.")
    return _warehouse(_url(engine))


def _url(engine: str) -> SplitResult:
    try:
        url = urlsplit(engine)
        _ = url.port
    except ValueError as error:
        raise ConfigError(f"engine: {quoted(engine)} is not a URL: {error}.") from None
    if url.scheme not in _ENGINES or "://" not in engine:
        near = did_you_mean(url.scheme, [*_ENGINES, "spark", "yarn"])
        raise ConfigError(
            f"engine: {quoted(engine)} is not the URL of an engine.{near} "
            f"Allowed: {', '.join(f'{scheme}://' for scheme in _ENGINES)}, and Spark's masters: {', '.join(_MASTERS)}."
        )
    return url


def _kind(engine: str) -> str:
    """Return the scheme of an engine's URL, or spark for what is, or begins as, a master of Spark's."""
    master = engine.partition("?")[0]
    if master.startswith(("spark:", "sc:")) or any(form.fullmatch(master) for form in _MASTERS.values()):
        return "spark"
    return engine.partition(":")[0]


class Newest:
    """The generation that a data folder serves, opened again whenever an ingest has switched it.

    Attributes
    ----------
    query_seconds
        How long a segment may run on this engine, where its operator does not say.
    """

    def __init__(self, data_dir: Path, engine: str = "duckdb://") -> None:
        self._data_dir, self._engine = data_dir, engine
        self._switched: tuple[int, int] | None = None
        # What a warehouse answers from is loaded by its operator: here only a local engine's tables are replaced.
        self._follows = _kind(engine) in ("duckdb", "spark")
        self.query_seconds = QUERY_SECONDS if _kind(engine) == "duckdb" else QUERY_SECONDS_ELSEWHERE

    def open(self) -> Dataset:
        """Open what is served now; errors as of `open_dataset`."""
        # Before the data is opened: an ingest that ends in between only makes one opening too many.
        switched = self._switch()
        dataset = open_dataset(self._data_dir, self._engine)
        self._switched = switched
        return dataset

    def newer(self) -> Dataset | None:
        """Open what is served now, where an ingest has switched it since it was opened, else return None; one stat."""
        # A folder that is gone, as of a disk that is not mounted now, is no reason to go on with the sample.
        return self.open() if self._follows and self._switch() not in (None, self._switched) else None

    def _switch(self) -> tuple[int, int] | None:
        """Return what is another after each switch of ``current``, which is replaced by a new file."""
        try:
            found = (self._data_dir / "current").stat()
        except OSError:  # opening the data reports what is wrong with it
            return None
        return found.st_ino, found.st_mtime_ns


def chosen(data_dir: Path) -> Generation:
    """Return the generation that a data folder serves now, or else the sample."""
    found = storage.current(data_dir)
    if found is not None:
        return found
    from nbext.engine.sample.unpack import ensure_sample

    return storage.read(ensure_sample(data_dir))


def _options(url: SplitResult, **allowed: re.Pattern[str]) -> dict[str, str]:
    options = dict(parse_qsl(url.query, keep_blank_values=True))
    for name, value in options.items():
        if name not in allowed:
            raise ConfigError(
                f"engine: {url.scheme}:// has no option {name!r}.{did_you_mean(name, allowed)} "
                f"Allowed: {', '.join(allowed) or 'none'}."
            )
        if not allowed[name].match(value):
            raise ConfigError(f"engine: {name}={quoted(value, 40)} is not valid. Write memory=4GB or threads=8.")
    return options


def _duckdb(data_dir: Path, url: SplitResult) -> Dataset:
    from nbext.engine.duckdb.dataset import MEMORY, DuckDataset

    if url.netloc or url.path not in ("", "/"):
        raise ConfigError("engine: duckdb:// has no path. Set the data folder with data_dir.")
    options = _options(url, memory=MEMORY_SIZE, threads=_THREADS)
    threads = int(options["threads"]) if "threads" in options else None
    found = chosen(data_dir)
    return DuckDataset(found, data_dir=data_dir, memory=options.get("memory", MEMORY), threads=threads)


def _spark(data_dir: Path, engine: str) -> Dataset:
    from nbext.engine.remote.backends import Spark
    from nbext.engine.remote.dataset import RemoteDataset

    master, _, query = engine.partition("?")
    if not any(form.fullmatch(master) for form in _MASTERS.values()):
        # What comes after a semicolon may be a token: Spark takes that from SPARK_CONNECT_AUTHENTICATE_TOKEN, too.
        raise ConfigError(f"engine: {quoted(master.partition(';')[0])} is not complete, or more than that. Write "
                          "spark://HOST:PORT or sc://HOST:PORT.")
    conf = dict(parse_qsl(query, keep_blank_values=True))
    for name in conf:
        if not name.startswith("spark."):
            raise ConfigError(f"engine: Spark has no option {quoted(name, 40)}: its options begin with spark., such as "
                              "spark.executor.memory=2g.")
    found = chosen(data_dir)
    return RemoteDataset(found, Spark(found, master, conf))


def _elsewhere(data_dir: Path, url: SplitResult) -> Dataset:
    from nbext.engine.remote.dataset import RemoteDataset

    return RemoteDataset(chosen(data_dir), _warehouse(url))


def _warehouse(url: SplitResult) -> Warehouse:
    from nbext.engine.remote.backends import bigquery, trino

    _options(url)
    if url.scheme == "bigquery":
        return bigquery(url.netloc, *_path(url, 1, "bigquery://PROJECT/DATASET"))
    catalog, schema = _path(url, 2, "trino://USER@HOST:PORT/CATALOG/SCHEMA")
    return trino(url.hostname or "", url.port or 8080, url.username or "nbext", catalog, schema)


def _path(url: SplitResult, parts: int, form: str) -> list[str]:
    named = [part for part in url.path.split("/") if part]
    _needs(url, bool(url.hostname) and len(named) == parts, form)
    return named


def _needs(url: SplitResult, met: bool, form: str) -> None:
    if not met:
        raise ConfigError(f"engine: {quoted(url.geturl())} is incomplete. Write {form}.")


# Each is imported when its URL is opened: Ibis' backends and Spark take up to seconds.
_ENGINES = {"duckdb": _duckdb, "bigquery": _elsewhere, "trino": _elsewhere}
