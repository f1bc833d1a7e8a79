"""Where a result goes: a variable, a file, another kind of table; and the line that says so."""

from __future__ import annotations

import builtins
import keyword
import unicodedata
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import visible
from nbext.errors import ConfigError, UsageError

if TYPE_CHECKING:
    import pandas as pd

# What IPython keeps under these names must not be lost.
_TAKEN = {"In", "Out", "exit", "quit", "get_ipython", "ip", "display"}
FORMATS = (".csv", ".json", ".parquet")


def checked_name(name: str) -> str:
    """Return the name, as Python spells it, if a result may be stored under it.

    Raises
    ------
    UsageError
        Not an identifier, or a name of Python's or of IPython's.
    """
    if not name.isidentifier():
        raise UsageError(
            f"'{visible(name)}' cannot name a variable: letters, digits and _, not beginning with a digit."
        )
    name = unicodedata.normalize("NFKC", name)  # as Python itself reads names
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
    from nbext.client.frames import to_arrow

    if kind not in ("polars", "arrow"):
        raise ConfigError(f"frame: {visible(kind)!r} is not one of pandas, polars, arrow.")
    table = to_arrow(frame)
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
