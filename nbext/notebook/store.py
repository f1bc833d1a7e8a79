"""Where a result goes: a variable, a file, another kind of table; and the line that says so."""

from __future__ import annotations

import builtins
import csv
import keyword
import os
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbext.errors import ConfigError, StorageError, UsageError
from nbext.notebook.escape import visible

if TYPE_CHECKING:
    import pandas as pd

# What IPython keeps under these names must not be lost.
_TAKEN = {"In", "Out", "exit", "quit", "get_ipython", "ip", "display"}
FORMATS = (".csv", ".json", ".parquet")
# What a spreadsheet would take for a formula when a cell begins with it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\x00", "＝", "＋", "－", "＠")  # fmt: skip


def checked_name(name: str) -> str:
    """Return the name if a result may be stored under it.

    Raises
    ------
    UsageError
        Not an identifier, or a name of Python's or of IPython's.
    """
    if not name.isidentifier():
        raise UsageError(
            f"'{visible(name)}' cannot name a variable: letters, digits and _, not beginning with a digit."
        )
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise UsageError(f"{name!r} is a word of Python itself; choose another name for the result.")
    if hasattr(builtins, name) or name in _TAKEN or name.startswith("_"):
        raise UsageError(f"{name!r} belongs to Python or IPython; choose another name for the result.")
    return name


def put(names: MutableMapping[str, Any], name: str, value: Any, say: Callable[[str], None]) -> None:
    """Store a result under a checked name and say so."""
    names[name] = value
    say(f"{name} = {in_words(value)}")


def in_words(value: Any) -> str:
    """Return how large a result is, in words."""
    shape = getattr(value, "shape", None)
    if shape is None or len(shape) != 2:
        return visible(value)
    rows, columns = shape
    return f"{rows:,} row{'s' * (rows != 1)}, {columns} column{'s' * (columns != 1)}"


def cut_in_words(about: dict[str, Any]) -> str | None:
    """Return what a limit cut off, or None where it cut nothing."""
    if not about.get("truncated"):
        return None
    matched, returned = about.get("matched"), about.get("returned")
    if matched is None or returned is None:
        return "the service says that the limit cut rows off; --limit takes more."
    # An export holds what its segment kept: there is nothing to fetch by it.
    how = "; --limit 0 counts, --all fetches" if about.get("operation") == "execute_segment" else ""
    return f"{returned:,} of {matched:,} wallets{how}"


def converted(frame: pd.DataFrame, kind: str) -> Any:
    """Return the table as ``pandas``, ``polars`` or ``arrow``.

    Raises
    ------
    ConfigError
        That library is not installed, or there is no such kind.
    """
    if kind == "pandas":
        return frame
    if kind not in ("polars", "arrow"):
        raise ConfigError(f"frame: {visible(kind)!r} is not one of pandas, polars, arrow.")
    import pyarrow as pa

    # Provenance goes along as metadata of the schema, where pandas puts what it knows.
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if kind == "arrow":
        return table
    try:
        import polars
    except ImportError:
        raise ConfigError("--as polars: polars is not installed. Run `%pip install polars`.") from None
    return polars.from_arrow(table)


def checked_file(to: str, *, overwrite: bool) -> Path:
    """Return the path of a file to be written.

    Raises
    ------
    UsageError
        Its ending names no format, its folder is missing, or it exists and may not be overwritten.
    """
    path = Path(to).expanduser()
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"--to {visible(to)}: the file's ending says its format: {', '.join(FORMATS)}.")
    # A link could lead a result anywhere.
    if path.is_dir() or path.is_symlink():
        raise UsageError(f"--to {visible(to)} is a {'link' if path.is_symlink() else 'folder'}; name a file.")
    if not path.parent.is_dir():
        raise UsageError(f"--to {visible(to)}: there is no folder {visible(path.parent)}.")
    if path.exists() and not overwrite:
        raise UsageError(f"--to {visible(to)}: the file exists. --overwrite replaces it.")
    return path


def write(frame: pd.DataFrame, path: Path, *, raw: bool = False) -> None:
    """Write a table to .csv, .json or .parquet, whole or not at all.

    In .csv a text that a spreadsheet would run as a formula gets a leading ``'``; ``raw`` leaves it.

    Raises
    ------
    StorageError
        The file cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        if path.suffix.lower() == ".csv":
            table = frame if raw else frame.map(_harmless)
            # All texts in quotes: a bare carriage return would end the row for some readers.
            table.to_csv(draft, index=False, encoding="utf-8", quoting=csv.QUOTE_NONNUMERIC)
        elif path.suffix.lower() == ".json":
            frame.to_json(draft, orient="records", date_format="iso")
        else:
            frame.to_parquet(draft, index=False)
        draft.replace(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        draft.unlink(missing_ok=True)


def _harmless(value: Any) -> Any:
    return "'" + value if isinstance(value, str) and value.startswith(_FORMULA) else value
