"""Segments from a cell or a line: read the query, then run, count, explain, show or send it to the background."""

from __future__ import annotations

import json
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nbext.errors import UsageError
from nbext.notebook import history
from nbext.notebook.cell.request import Query, query_of
from nbext.notebook.line import grammars
from nbext.notebook.line.options import Args, Grammar, value_of
from nbext.notebook.results import store
from nbext.notebook.results.deliver import hand_over
from nbext.notebook.run import background, dry_run

if TYPE_CHECKING:
    from nbext.notebook.session import Session

# Options that say how a segment is run: they say nothing of one that was.
_OF_A_RUN = ("operator", "limit", "all", "count", "type", "dry_run", "explain", "bg", "from")


def run_cell(session: Session, args: Args, cell: str | None) -> Any:
    """Run ``%%segment_query``: the cell, or the query saved under ``--from``."""
    grammar = grammars.SEGMENT_QUERY
    if cell is None and args["from"] is None:
        raise UsageError(
            "%segment_query needs two percent signs and the first line of a cell: %%segment_query, "
            "with the filters as JSON on the lines below. On a single line: %segment {...}"
        )
    for word in args.words:
        if word.kind == "json":
            raise grammar.error(args, "the filters stand below the line, not on it; on the line: %segment {...}.", word)
    if len(args.words) > 1:
        raise grammar.error(args, f"{args.words[1].text!r} is one word too many: {grammar.usage}.", args.words[1])
    _name_from_word(grammar, args)
    text = cell or ""
    if args["from"] is not None:
        if text.strip():
            raise grammar.error(args, "--from names a saved query, and the cell holds another: use one of them.")
        text = history.saved(session.data_dir, args["from"])
    elif not text.strip():
        raise UsageError(
            "%%segment_query: the cell is empty below its first line. The filters belong there, as JSON, "
            'such as {"token": {"token": "USDC"}}'
        )
    # The magic's own line is the cell's first: places are counted as the editor counts them.
    return run(session, _query(session, "\n" + text, args), args)


def run_line(session: Session, args: Args) -> Any:
    """Run ``%segment``: an id to read or export, or filters on the line."""
    grammar = grammars.SEGMENT
    if args["from"] is not None and not args.words:
        _check_no_export(grammar, args)
        return run(session, _query(session, history.saved(session.data_dir, args["from"]), args), args)
    if len(args.words) != 1:
        what = "an id or filters are missing" if not args.words else f"{args.words[1].text!r} is one word too many"
        raise grammar.error(args, f"{what}: {grammar.usage}.", args.words[1] if args.words else None)
    word = args.words[0]
    if word.kind == "json":
        _check_no_export(grammar, args)
        return run(session, _query(session, word.text, args), args)
    value = value_of(word, args, session.names)
    if isinstance(value, dict):
        _check_no_export(grammar, args)
        return run(session, _query(session, json.dumps(value, default=_digits), args), args)
    return _read(session, args, str(value))


def _digits(fraction: Decimal) -> str:
    return format(fraction, "f")


def run(session: Session, query: Query, args: Args) -> Any:
    """Do with a query what the options say."""
    if args["dry_run"]:
        return dry_run.dry_run(session, query)
    if args["explain"]:
        return dry_run.explain(session, query)
    if args["bg"]:
        return _in_background(session, query, args)
    if query.limit == 0 and args["to"] is not None:
        raise UsageError("a limit of 0 only counts: there are no rows for --to to write.")
    frame = session.ask(query)
    if args["card"]:
        return _card(session, frame, args)
    if query.limit == 0:
        return _count(session, frame.attrs["nbext"].get("matched"), args)
    return hand_over(session, frame, args)


def _query(session: Session, text: str, args: Args) -> Query:
    return query_of(text, args, session.names, session.settings["limit"])


def _name_from_word(grammar: Grammar, args: Args) -> None:
    if not args.words:
        return
    if args["out"] is not None:
        names = f"{args.words[0].text!r} and {args['out']!r}"
        raise grammar.error(args, f"the result has two names, {names}.", args.words[0])
    args.options["out"] = store.checked_name(args.words[0].text)


def _check_no_export(grammar: Grammar, args: Args) -> None:
    for name in ("json", "csv"):
        if args[name]:
            raise grammar.error(
                args, f"--{name} exports a segment by its id; this one is run now. --to FILE.{name} writes its rows."
            )


def _card(session: Session, frame: Any, args: Args) -> Any:
    if args["out"] is not None:
        store.put(session.names, args["out"], frame, session.say)
    return forms().show(frame, client=session.client)


def _count(session: Session, matched: int | None, args: Args) -> int | None:
    if args["out"] is None:
        return matched
    store.put(session.names, args["out"], matched, session.say)
    return None


def _in_background(session: Session, query: Query, args: Args) -> background.Background | None:
    handle = background.start(session, query)
    if args["out"] is None:
        return handle
    session.names[args["out"]] = handle
    session.say(f"{args['out']} = {handle!r}; {args['out']}.result() waits for the table")
    return None


def _read(session: Session, args: Args, segment_id: str) -> Any:
    """Read a segment by its id, or export its rows."""
    for name in _OF_A_RUN:
        if args[name] is not None:
            flag = f"--{name.replace('_', '-')}"
            raise grammars.SEGMENT.error(args, f"{flag} says how filters are run; a segment with an id was run before.")
    if args["json"] and args["csv"]:
        raise grammars.SEGMENT.error(args, "--json and --csv exclude each other: the rows come once.")
    client = session.client
    if not (args["json"] or args["csv"] or args["card"]):
        return hand_over(session, session.call(lambda _: client.segment(segment_id), "segment"), args)
    export = client.export_json if args["json"] else client.export_csv
    if args["card"]:
        return _card(session, session.call(lambda bar: export(segment_id, progress=bar), "export"), args)
    if args["to"] is None or args["out"] is not None:
        return hand_over(session, session.call(lambda bar: export(segment_id, progress=bar), "export"), args)
    # Straight to the file: an export may hold more rows than the memory does.
    raw, overwrite = bool(args["raw"]), bool(args["overwrite"])
    path = store.checked_file(args["to"], overwrite=overwrite)
    written = session.call(
        lambda bar: export(segment_id, to=path, overwrite=overwrite, raw=raw, progress=bar), "export"
    )
    rows, size = int(written["rows"].iloc[0]), int(written["bytes"].iloc[0])
    session.say(f"{args['to']}: {rows:,} row{'s' * (rows != 1)}, {size:,} bytes")
    return None


def forms() -> Any:
    """Return the forms' module: ipywidgets is loaded when a form is asked for, and not before."""
    return import_module("nbext.notebook.forms")
