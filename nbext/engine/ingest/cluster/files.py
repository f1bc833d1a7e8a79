"""The files at the given paths, in groups of equal columns; each group's rows as one table of text.

Only what the first line or the footer of a file says comes to the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbext.core.untrusted_text import quoted, visible
from nbext.engine.ingest import formats
from nbext.engine.ingest.cluster.stage import SparkStage
from nbext.engine.ingest.files import SUFFIXES, URL, Source
from nbext.engine.ingest.reading import FileTable
from nbext.errors import IngestError

# The names of columns, and their types in Spark's words.
Columns = tuple[tuple[str, str], ...]
# Spark reads a file by its name: what its first bytes are, only its executors see.
_FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".ndjson": "json",
    ".ndjson.gz": "json",
    ".jsonl": "json",
    ".jsonl.gz": "json",
}
_AT_ONCE = 8
# A row of a CSV file that has other than the header's number of fields.
_RAGGED = "_nbext_ragged"
_TYPES = {"string": "VARCHAR", "binary": "BLOB", "int": "INTEGER", "timestamp_ntz": "TIMESTAMP"}


@dataclass(frozen=True)
class Listed:
    """One file: its URL, its size in bytes, and when it was changed, in seconds since 1970."""

    url: str
    size: int
    modified: int

    @property
    def form(self) -> str:
        """What Spark reads the file as; nothing where it does not."""
        name = self.url.lower()
        return next((form for suffix, form in _FORMATS.items() if name.endswith(suffix)), "")


@dataclass(frozen=True)
class _Named(Source):
    """A group as the source of its rows, for messages."""

    text: str = ""

    @property
    def name(self) -> str:
        return self.text

    @property
    def shown(self) -> str:
        return self.text


@dataclass(frozen=True)
class FileGroup:
    """Files of one format and equal columns, and the types of these."""

    form: str
    columns: Columns
    files: tuple[Listed, ...]

    @property
    def shown(self) -> str:
        """The group in words."""
        first, more = visible(self.files[0].url), len(self.files) - 1
        return first if not more else f"{first} and {more:,} more of its columns"


def list_files(session: Any, paths: Iterable[str]) -> list[Listed]:
    """Return the files that paths, folders, globs and URLs name, each once, sorted by URL.

    Raises
    ------
    IngestError
        One names no file, or a file that Spark does not read.
    """
    from pyspark.errors import PySparkException

    found: dict[str, Listed] = {}
    for path in paths:
        # With its scheme: a cluster's own file system may be another one.
        url = path if URL.match(path) else f"file://{Path(path).expanduser().absolute()}"
        try:
            rows = (
                session.read.format("binaryFile")
                .option("recursiveFileLookup", "true")
                .load(url)
                .selectExpr("path", "length", "unix_seconds(modificationTime)")
                .collect()
            )
        except PySparkException:
            rows = []
        # A folder may have other things beside data; what one machine would read is read, or refused.
        named = [Listed(*row) for row in rows]
        read = [one for one in named if one.form]
        other = [
            one.url for one in named if not one.form and (one.url.endswith(SUFFIXES) or not read)
        ]
        if other or not named:
            what = f"on a cluster nbext reads {', '.join(_FORMATS)}" if other else "no such file"
            raise IngestError(f"{visible((other or [path])[0])[:200]}: {what}.", path=path[:200])
        found |= {one.url: one for one in read}
    return [found[url] for url in sorted(found)]


def check_unchanged(session: Any, paths: Iterable[str], files: Iterable[Listed]) -> None:
    """Raise IngestError if one of the listed files was written to since: its rows may be of two states."""
    now = set(list_files(session, paths))
    for file in files:
        if file not in now:
            raise IngestError(
                f"{visible(file.url)}: the file changed while it was being read. Ingest it again.",
                path=file.url,
            )


def grouped(session: Any, files: Iterable[Listed], renamed: Mapping[str, str]) -> list[FileGroup]:
    """Return the files in groups, in the order of their first files.

    Only transfers are grouped, those of each chain: of two facts that of the later file counts.

    Raises
    ------
    IngestError
        A file is empty or damaged.
    """
    files = list(files)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        kinds = list(pool.map(lambda file: _kind(session, file, renamed), files))
    groups: dict[tuple[str, Columns, str], list[Listed]] = {}
    for file, (found, apart) in zip(files, kinds, strict=True):
        groups.setdefault((file.form, found, apart), []).append(file)
    return [FileGroup(form, found, tuple(members)) for (form, found, _), members in groups.items()]


def _kind(session: Any, file: Listed, renamed: Mapping[str, str]) -> tuple[Columns, str]:
    """Return a file's columns, and the text that files of one group share: the chain of their first rows."""
    columns = _columns(session, file)
    known = formats.recognise([name for name, _ in columns], renamed)
    if not known or known[0].holds != "transfers":
        return columns, file.url
    if "chain_id" not in known[1]:
        return columns, ""
    rows = _rows(session, FileGroup(file.form, columns, (file,)), dict(columns))
    first = rows.select(f"`{known[1]['chain_id']}`").first()
    return columns, str(first and first[0])


def _columns(session: Any, file: Listed) -> Columns:
    from pyspark.errors import PySparkException

    reader = session.read.option("header", "true").option("primitivesAsString", "true")
    if file.form == "csv":
        # As many lines as Spark looks at for a header are read, and not the whole file.
        reader = reader.option("inferSchema", "false")
    try:
        found = tuple(getattr(reader, file.form)(file.url).dtypes)
    except PySparkException as error:
        raise IngestError(
            f"{visible(file.url)}: it cannot be read: {str(error).splitlines()[0][:200]}",
            path=file.url,
        ) from None
    if not found:
        raise IngestError(f"{visible(file.url)}: the file is empty.", path=file.url)
    return found


def open_group(
    stage: SparkStage, number: int, group: FileGroup, renamed: Mapping[str, str]
) -> FileTable:
    """Return a group's rows as a table of the stage: the columns that its format has, and ``row``.

    Raises
    ------
    IngestError
        No known format has these columns, its rows cannot be read on a cluster, or there are none.
    """
    types = dict(group.columns)
    first = group.files[0]
    source = _Named(
        Path(first.url), sum(file.size for file in group.files), first.modified, group.shown
    )
    kind, columns = formats.recognised(source, list(types), renamed)
    _check(source, kind, columns, types)
    rows = _rows(stage.session, group, types)
    table, read = f"text_{number}", f"read_{number}"
    taken = [f"`{theirs}` AS `{ours}`" for ours, theirs in columns.items()]
    # A transfer's number tells it from others; of facts, which are few, it is the row's place.
    number_of, few = "monotonically_increasing_id()", kind.holds != "transfers"
    if few:
        number_of = f"row_number() OVER (ORDER BY {number_of})"
    csv = _RAGGED in rows.columns
    numbered = rows.selectExpr(
        *taken,
        f"{number_of} AS row",
        f"`{_RAGGED}` IS NOT NULL AS ragged" if csv else "false AS ragged",
    )
    # Text is stored as columns, and facts with their places. Parquet's own columns are read as fast again, and its
    # files are cut in the same places each time, so that rows have the same numbers.
    if few or group.form != "parquet":
        stage.save(read, numbered)
    else:
        numbered.createOrReplaceTempView(read)
    count = stage.value(f"SELECT count(*) FROM {read}")
    if not count:
        raise source.fault("a header but no rows.")
    if csv:
        stage.run(
            f"INSERT INTO bad SELECT {number}, row, 'another number of fields than the header has', NULL "
            f"FROM {read} WHERE ragged"
        )
    stage.run(f"CREATE VIEW {table} AS SELECT * FROM {read} WHERE NOT ragged")
    own = {
        ours: _TYPES.get(types[theirs], types[theirs].upper()) for ours, theirs in columns.items()
    }
    return FileTable(number, source, kind, {ours: ours for ours in columns}, table, own, count)


def _check(
    source: Source, kind: formats.Format, columns: Mapping[str, str], types: Mapping[str, str]
) -> None:
    """Refuse what needs an order of rows or Python: explorers' exports, batches in lists, holders' snapshots."""
    lacks = kind.holds == "transfers" and not {"contract", "log_index", "block"} <= columns.keys()
    if kind.holds == "holders" or lacks or columns.keys() & {"ids", "standard", "amount"}:
        raise source.fault(
            f"{kind.name} is not read on a cluster. Ingest it on one machine, "
            "or export the transfers with their log indexes."
        )
    value = columns.get("value")
    if value is not None and types[value] == "binary":
        raise source.fault(
            f"column {quoted(value)} holds bytes. On a cluster amounts are text or integers."
        )


def _rows(session: Any, group: FileGroup, types: Mapping[str, str]) -> Any:
    urls = [file.url for file in group.files]
    if group.form == "parquet":
        return session.read.parquet(*urls)
    described = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in types)
    if group.form == "json":
        return session.read.schema(described).json(urls)
    # The header of each file is compared with the first one's. Only a quoted field may have quotes in it.
    return (
        session.read.schema(f"{described}, `{_RAGGED}` STRING")
        .option("header", "true")
        .option("enforceSchema", "false")
        .option("columnNameOfCorruptRecord", _RAGGED)
        .option("escape", '"')
        # Else a row's fields are counted only as far as they are read.
        .option("columnPruning", "false")
        # Names may have lines of their own: then a file is one task, and cannot be split.
        .option("multiLine", "name" in map(str.lower, types))
        .csv(urls)
    )
