"""Where a result goes: a variable, a file, another kind of table, the display; and the line that says so."""

from __future__ import annotations

import builtins
import keyword
import unicodedata
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import BuiltinFunctionType, FunctionType, MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from nbext.core.provenance import Provenance
from nbext.core.rules import FILES, FRAMES
from nbext.core.untrusted_text import visible
from nbext.errors import ConfigError, UsageError
from nbext.notebook.line import Args, Option
from nbext.notebook.results.numbers import shape_in_words, size_in_words
from nbext.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client.writer import Target
    from nbext.notebook.session import Session

# IPython uses these names itself: a result under one of them would break the shell.
_TAKEN = {"In", "Out", "exit", "quit", "get_ipython", "ip", "display"}
_FILES = " or ".join((", ".join(FILES[:-1]), FILES[-1]))
OUT = Option("--out", "store the result in this variable", "text", "NAME", short="-o")
_OVERWRITE = Option("--overwrite", "let --to or --page replace an existing file")
_PAGE = Option("--page", "write the result to an HTML file that answers offline", "text", "FILE")
# Of an analysis the page has the chart.
ANALYSED = (OUT, _PAGE, _OVERWRITE)
RESULT = (
    OUT,
    Option("--to", f"write the result to a {_FILES} file", "text", "FILE"),
    _OVERWRITE,
    Option("--raw", "with --to: do not escape text that a spreadsheet would run as a formula"),
    Option(
        "--as", "the type of table (default: the setting `frame`)", "text", choices=tuple(FRAMES)
    ),
    _PAGE,
    Option("--explore", "show the whole table in a view that sorts, filters and sums up"),
)
# Cells below call it: who gives a result such a name meant another.
_CODE = {
    ModuleType: "module",
    type: "class",
    FunctionType: "function",
    BuiltinFunctionType: "function",
}
# Options that choose rows of one segment, or how they are returned.
OF_ROWS = ("limit", "top", "by", "all", "count", "type", "dry_run", "explain", "bg")
_OF_TABLES = ("to", "page", "bg", "card", "explore")
_COMPARED = (*OF_ROWS, "card", "json", "csv")
# What an option returns instead of a table of rows, and which others then have nothing to do.
_NO_TABLE = {
    "bg": ("a handle; its .result() is the table", (*_OF_TABLES, "count")),
    "card": ("a card", (*_OF_TABLES, "as", "count")),
    "count": ("a number", (*_OF_TABLES, "as")),
    "explore": ("a view of the table", (*_OF_TABLES, "as", "count")),
    "dry_run": ("the request", (*_OF_TABLES, "as", "explain")),
    "payout": (
        "the claims of a payout",
        (*_OF_TABLES, "count", "dry_run", "explain", "changes", "profile"),
    ),
    "explain": ("words and SQL", (*_OF_TABLES, "as", "dry_run")),
    "changes": ("who of all wallets joined and left", (*_COMPARED, "profile")),
    "profile": ("what its wallets hold more than others do", _COMPARED),
}


def prepare(args: Args, settings: Settings) -> None:
    """Check what the options are together, and where the result is to go, before anything runs."""
    for option, (what, others) in _NO_TABLE.items():
        useless = [one for one in others if one != option]
        for flag in args.given(*useless) if args[option] is not None else ():
            this = f"--{option.replace('_', '-')}"
            raise args.error(
                f"{flag} has no effect with {this}, which returns {what}. Use one of them."
            )
    # A query may take minutes: a name or a file that cannot be used is refused before it.
    if args["out"] is not None:
        args.options["out"] = checked_name(args["out"], args.names)
    written = [name for name in ("to", "page") if args[name] is not None]
    for name in written:
        _target(args, name)
    if "--page" in args.grammar.flags and not written and (args["overwrite"] or args["raw"]):
        file = "--to" if "--to" in args.grammar.flags else "--page"
        raise args.error(f"{'--overwrite' if args['overwrite'] else '--raw'} needs {file} FILE.")
    wanted = (args["as"] or settings["frame"]) if "--as" in args.grammar.flags else ""
    if wanted == "polars" and find_spec("polars") is None:
        raise ConfigError("--as polars: polars is not installed. Run `%pip install polars`.")


def deliver(session: Session, frame: pd.DataFrame, args: Args) -> Any:
    """Store the result under a name, write it to a file, or return it to be displayed."""
    if args["card"]:
        put(session, args, frame)
        return forms().show(frame, client=session.client)
    if {"symbol", "address"} <= set(frame.columns):
        session.vocabulary.learn_rows(frame)
    session.suspicious.learn(frame)
    session.history.last = print_notes(frame, args)
    if args["to"] is not None:
        _target(args, "to").save(frame)
        print(f"{args['to']}: {size_in_words(frame)}")
    if args["page"] is not None:
        forms().page(frame, args["page"], overwrite=bool(args["overwrite"]))
        print(f"{args['page']}: {size_in_words(frame)}")
    # Converted last: files and provenance are made from the DataFrame.
    value = converted(frame, args, session.settings)
    if args["explore"]:
        put(session, args, value)
        return forms().explore(frame, client=session.client)
    written = args["to"] or args["page"]
    return None if written and args["out"] is None else put(session, args, value)


def converted(frame: pd.DataFrame, args: Args, settings: Settings) -> Any:
    """Return a table as the type that the line or the setting ``frame`` names."""
    module, _, name = (FRAMES[args["as"] or settings["frame"]] or "").partition(":")
    return getattr(import_module(module), name)(frame) if name else frame


def file_of(args: Args) -> dict[str, Any]:
    """Return what a client is given to write straight to the file of a line; nothing where the table is needed too."""
    # Straight to the file: there may be more rows than fit into memory.
    if args["to"] is None or args["out"] is not None or args["card"] or args["page"]:
        return {}
    return {"to": args["to"], **_ways(args)}


def _target(args: Args, name: str) -> Target:
    """Return the file that an option names, if it may be written."""
    # Not above: %load_ext would load the client.
    from nbext.client.writer import target_of

    endings = FILES if name == "to" else (".html",)
    return target_of(args[name], **_ways(args), endings=endings, option=f"--{name}")


def _ways(args: Args) -> dict[str, bool]:
    return {name: bool(args[name]) for name in ("overwrite", "raw")}


def print_file(written: pd.DataFrame, args: Args) -> None:
    """Print what is in a file that the rows of a query were written to, and what its reader should know of them."""
    columns = print_notes(written, args).columns
    print(f"{args['to']}: {shape_in_words(written['rows'].iloc[0], len(columns))}")


def print_notes(answer: pd.DataFrame, args: Args) -> Provenance:
    """Print what a limit cut off, and what an answer's provenance says that its reader should know; return that."""
    about = Provenance.of(answer)
    if cut := cut_in_words(about, args):
        print(cut)
    for note in about.notes():
        print(f"note: {note}")
    return about


def checked_name(name: str, names: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return the name, as Python spells it, if a result may be stored under it; ``names`` are those in use."""
    if not name.isidentifier():
        raise UsageError(
            f"'{visible(name)}' is not a variable name. Names use letters, digits and _, and do not start with a digit."
        )
    name = unicodedata.normalize("NFKC", name)  # as Python itself reads names
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise UsageError(f"{name!r} is a Python keyword. Choose another name for the result.")
    if hasattr(builtins, name) or name in _TAKEN or name.startswith("_"):
        raise UsageError(
            f"Python or IPython uses the name {name!r}. Choose another name for the result."
        )
    for kind, what in _CODE.items():
        if isinstance(names.get(name), kind):
            raise UsageError(
                f"{name} is a {what} here, which the result would replace. Choose another name, such as {name}_wallets."
            )
    return name


def put(session: Session, args: Args, value: Any) -> Any:
    """Store a result under the name that the line gives and print its size; return it where no name is given."""
    if args["out"] is None:
        return value
    session.names[args["out"]] = value
    print(f"{args['out']} = {size_in_words(value)}")
    return None


def own_table(rows: Sequence[Any], columns: list[str] | None = None) -> pd.DataFrame:
    """Return rows as a table that is displayed as a service's are: nothing in it hides or runs."""
    import pandas as pd

    # The mark by which the display knows it: saved filters may contain names from a chain.
    return Provenance().attach(pd.DataFrame(rows, columns=columns))


def forms() -> Any:
    """Return the package, whose forms are imported only when one is asked for: they would make %load_ext slow."""
    return import_module("nbext")


def cut_in_words(about: Provenance, args: Args) -> str | None:
    """Return what a limit cut off, or None where it cut nothing."""
    if about.operation == "search_nfts":  # which says itself how the next hits are asked for
        return None
    if args["top"] is None:
        return about.cut("; --limit 0 counts, --all fetches")
    by = visible(args["by"] or "amount")
    return about.cut(f", those with the largest {by}; a larger --top returns more")
