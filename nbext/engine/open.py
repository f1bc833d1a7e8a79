"""Open a data folder on the engine that a URL names."""

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
    from nbext.engine.storage import Generation

# Not what DuckDB takes: it reads "4" as bytes and "50%" as a part of a machine that other services share.
MEMORY_SIZE = re.compile(r"\d{1,6}(MB|GB)\Z", re.IGNORECASE)
_THREADS = re.compile(r"[1-9]\d{0,2}\Z")


def open_dataset(data_dir: Path, engine: str = "duckdb://") -> Dataset:
    """Open the generation that a data folder serves, or the sample where nothing was ever ingested.

    Parameters
    ----------
    data_dir
        The data folder, as `nbext ingest --data` filled it.
    engine
        ``duckdb://``, with options such as ``duckdb://?memory=4GB&threads=8``; ``pyspark://HOST:PORT`` or
        ``pyspark://local``; ``bigquery://PROJECT/DATASET``; ``trino://USER@HOST:PORT/CATALOG/SCHEMA``. All but
        DuckDB connect at the first question.

    Raises
    ------
    ConfigError
        The URL is not one of an engine, or has an option that the engine does not have.
    StorageError
        The generation is damaged or missing.
    """
    try:
        url = urlsplit(engine)
        _ = url.port
    except ValueError as error:
        raise ConfigError(f"engine: {quoted(engine)} is not a URL: {error}.") from None
    if url.scheme not in _ENGINES or "://" not in engine:
        raise ConfigError(
            f"engine: {quoted(engine)} is not the URL of an engine.{did_you_mean(url.scheme, _ENGINES)} "
            f"Allowed: {', '.join(f'{scheme}://' for scheme in _ENGINES)}."
        )
    return _ENGINES[url.scheme](data_dir, url)


def _generation(data_dir: Path) -> Generation:
    chosen = storage.current(data_dir)
    if chosen is not None:
        return chosen
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
    return DuckDataset(_generation(data_dir), data_dir=data_dir, memory=options.get("memory", MEMORY), threads=threads)


def _spark(data_dir: Path, url: SplitResult) -> Dataset:
    from nbext.engine.remote.backends import Spark
    from nbext.engine.remote.dataset import RemoteDataset

    _options(url)
    chosen = _generation(data_dir)
    if url.netloc == "local":
        return RemoteDataset(chosen, Spark(chosen, "local[*]"))
    _needs(url, bool(url.hostname and url.port), "pyspark://HOST:PORT, or pyspark://local")
    return RemoteDataset(chosen, Spark(chosen, f"spark://{url.netloc}"))


def _bigquery(data_dir: Path, url: SplitResult) -> Dataset:
    from nbext.engine.remote.backends import bigquery
    from nbext.engine.remote.dataset import RemoteDataset

    _options(url)
    parts = _path(url, 1, "bigquery://PROJECT/DATASET")
    return RemoteDataset(_generation(data_dir), bigquery(url.netloc, *parts))


def _trino(data_dir: Path, url: SplitResult) -> Dataset:
    from nbext.engine.remote.backends import trino
    from nbext.engine.remote.dataset import RemoteDataset

    _options(url)
    catalog, schema = _path(url, 2, "trino://USER@HOST:PORT/CATALOG/SCHEMA")
    found = trino(url.hostname or "", url.port or 8080, url.username or "nbext", catalog, schema)
    return RemoteDataset(_generation(data_dir), found)


def _path(url: SplitResult, parts: int, form: str) -> list[str]:
    named = [part for part in url.path.split("/") if part]
    _needs(url, bool(url.hostname) and len(named) == parts, form)
    return named


def _needs(url: SplitResult, met: bool, form: str) -> None:
    if not met:
        raise ConfigError(f"engine: {quoted(url.geturl())} is incomplete. Write {form}.")


# Each is imported when its URL is opened: Ibis' backends and Spark take up to seconds.
_ENGINES = {"duckdb": _duckdb, "pyspark": _spark, "bigquery": _bigquery, "trino": _trino}
