"""The end of every magic: note what was learned, say what was cut, and store, write or show the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import visible
from nbext.notebook.line.options import Args, Grammar
from nbext.notebook.results import store

if TYPE_CHECKING:
    import pandas as pd

    from nbext.notebook.session import Session


# What an option gives in place of a table.
_NO_TABLE = {"bg": "a handle, whose .result() is a DataFrame", "card": "a card", "count": "a number"}


def prepared(grammar: Grammar, args: Args, names: Mapping[str, Any]) -> Args:
    """Put Python values into the options, and check where the result is to go, before anything runs.

    Raises
    ------
    UsageError
        The name or the file cannot be used, or one option leaves another nothing to do.
    """
    _check_together(grammar, args)
    # A query may take minutes: a name that cannot be used is said before them.
    grammar.settle(args, names)
    if args["out"] is not None:
        args.options["out"] = store.checked_name(args["out"])
    if args["to"] is not None:
        store.checked_file(args["to"], overwrite=bool(args["overwrite"]))
    elif args["overwrite"] or args["raw"]:
        flag = "--overwrite" if args["overwrite"] else "--raw"
        raise grammar.error(args, f"{flag} says how --to FILE writes, and --to is not given.")
    return args


def _check_together(grammar: Grammar, args: Args) -> None:
    for option, what in _NO_TABLE.items():
        for other in ("to", "as", *_NO_TABLE):
            if args[option] and args[other] is not None and other != option:
                raise grammar.error(args, f"--{option} gives {what}: --{other} would do nothing. Use one of them.")


def hand_over(session: Session, frame: pd.DataFrame, args: Args) -> Any:
    """Store the result under a name, write it to a file, or return it to be shown."""
    session.knowledge.learn_rows(frame)
    session.seen.learn(frame)
    # Also what carries no provenance is shown as a stranger's text is.
    about = frame.attrs.setdefault("nbext", {})
    if cut := store.cut_in_words(about):
        session.say(cut)
    for warning in about.get("warnings") or []:
        session.say(f"note: {visible(warning)}")
    if args["to"] is not None:
        from nbext.client.files import writer

        overwrite, raw = bool(args["overwrite"]), bool(args["raw"])
        writer.save(frame, store.checked_file(args["to"], overwrite=overwrite), overwrite=overwrite, raw=raw)
        session.say(f"{args['to']}: {store.in_words(frame)}")
    # Converted last: files and provenance are those of the DataFrame.
    value = store.converted(frame, args["as"] or session.settings["frame"])
    if args["out"] is not None:
        store.put(session.names, args["out"], value, session.say)
        return None
    return None if args["to"] is not None else value
