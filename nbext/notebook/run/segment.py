"""Segments, from a cell or a line: read the query, then run, count, explain or show it, or read one by its id."""

from __future__ import annotations

import json
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nbext.errors import UsageError, ValidationError
from nbext.notebook import history
from nbext.notebook.cell.request import Query, query_of
from nbext.notebook.line import grammars
from nbext.notebook.line.options import Args, value_of
from nbext.notebook.results import deliver
from nbext.notebook.run import background, dry_run

if TYPE_CHECKING:
    from nbext.notebook.session import Session

# These options change how a query runs: they mean nothing for a segment that has run.
_OF_A_RUN = ("operator", "limit", "all", "count", "type", "dry_run", "explain", "bg", "from")


def run_cell(session: Session, args: Args, cell: str | None) -> Any:
    """Run ``%%segment_query``: the cell, or the query saved under ``--from``."""
    grammar, text, saved = grammars.SEGMENT_QUERY, cell or "", args["from"]
    if cell is None and saved is None:
        raise UsageError(
            "%segment_query is a cell magic. Write %%segment_query as the first line of a cell, and the filters "
            "as JSON below it. On one line: %segment {filters}"
        )
    for place, word in enumerate(args.words):
        if word.kind == "json":
            raise grammar.error(args, "write the filters on the lines below. On one line: %segment {filters}", word)
        if place:
            raise grammar.error(args, f"unexpected argument {word.text!r}. Usage: {grammar.usage}", word)
        if args["out"] is not None:
            both = f"{word.text!r} and {args['out']!r}"
            raise grammar.error(args, f"the result has two names, {both}. Use one of them.", word)
        args.options["out"] = deliver.checked_name(word.text)
    if saved is not None:
        if text.strip():
            raise grammar.error(args, "--from runs a saved query, but the cell has filters too. Use one of them.")
        text = history.saved(session.data_dir, saved)
    elif not text.strip():
        raise UsageError(
            "%%segment_query: the cell has no filters. Write them as JSON below the first line, "
            'such as {"token": {"token": "USDC"}}'
        )
    # The magic's own line is the cell's first: lines are counted as the editor counts them.
    return run(session, query_of("\n" + text, args, session.names, session.settings["limit"]), args)


def run_line(session: Session, args: Args, cell: str | None) -> Any:
    """Run ``%segment``: an id to read or export, or filters on the line."""
    grammar = grammars.SEGMENT
    if len(args.words) > 1:
        message = f"unexpected argument {args.words[1].text!r}. Usage: {grammar.usage}"
        raise grammar.error(args, message, args.words[1])
    if args.words:
        word = args.words[0]
        value = word.text if word.kind == "json" else value_of(word, args, session.names)
        if word.kind != "json" and not isinstance(value, dict):
            return _read(session, args, str(value))
        text = value if isinstance(value, str) else json.dumps(value, default=_digits)
    elif args["from"] is not None:
        text = history.saved(session.data_dir, args["from"])
    else:
        raise grammar.error(args, f"a segment id or filters are missing. Usage: {grammar.usage}")
    for name in ("json", "csv"):
        if args[name]:
            instead = f"To write the rows of this query, use --to FILE.{name}."
            raise grammar.error(args, f"--{name} exports a segment by its id. {instead}")
    return run(session, query_of(text, args, session.names, session.settings["limit"]), args)


def _digits(fraction: Decimal) -> str:
    # As text, because a bare number with these digits would be read as a float.
    return format(fraction, "f")


def run(session: Session, query: Query, args: Args) -> Any:
    """Run a query as the options say, and deliver its result."""
    if args["dry_run"] or args["explain"]:
        (dry_run.dry_run if args["dry_run"] else dry_run.explain)(session.connected(), query)
        return None
    if args["bg"]:
        return _in_background(session, query, args)
    if query.limit == 0 and args["to"] is not None:
        raise UsageError("--to has no rows to write: a limit of 0 only counts.")
    client = session.connected()
    try:
        with session.bar("segment") as bar:
            frame = client.execute_segment(
                query.filters, query.operator, query.file_type, query.limit, progress=bar
            )
    except ValidationError as error:
        query.locate(error)
        raise
    session.history.add(query, frame.attrs.get("nbext", {}))
    if args["card"]:
        return _card(session, frame, args)
    if query.limit == 0:
        return _count(session, frame.attrs["nbext"].get("matched"), args)
    return deliver.deliver(session, frame, args)


def _card(session: Session, frame: Any, args: Args) -> Any:
    if args["out"] is not None:
        deliver.put(session.names, args["out"], frame)
    return forms().show(frame, client=session.client)


def _count(session: Session, matched: int | None, args: Args) -> int | None:
    if args["out"] is None:
        return matched
    deliver.put(session.names, args["out"], matched)
    return None


def _in_background(session: Session, query: Query, args: Args) -> background.Background | None:
    handle = background.start(session, query)
    name = args["out"]
    if name is None:
        return handle
    session.names[name] = handle
    print(f"{name} = {handle!r}; {name}.result() waits for the table")
    return None


def _read(session: Session, args: Args, segment_id: str) -> Any:
    """Read a segment by its id, or export its rows."""
    grammar, to = grammars.SEGMENT, args["to"]
    for name in _OF_A_RUN:
        if args[name] is not None:
            flag = f"--{name.replace('_', '-')}"
            raise grammar.error(args, f"{flag} has no effect on a segment that has run. Use it with filters.")
    if args["json"] and args["csv"]:
        raise grammar.error(args, "use --json or --csv, not both.")
    client = session.connected()
    if not (args["json"] or args["csv"] or args["card"]):
        with session.bar("segment"):
            row = client.segment(segment_id)
        return deliver.deliver(session, row, args)
    export = client.export_json if args["json"] else client.export_csv
    if to is None or args["out"] is not None or args["card"]:
        with session.bar("export") as bar:
            frame = export(segment_id, progress=bar)
        return _card(session, frame, args) if args["card"] else deliver.deliver(session, frame, args)
    # Straight to the file: an export may have more rows than fit into memory.
    raw, overwrite = bool(args["raw"]), bool(args["overwrite"])
    path = deliver.checked_file(to, overwrite=overwrite)
    with session.bar("export") as bar:
        written = export(segment_id, to=path, overwrite=overwrite, raw=raw, progress=bar)
    rows, size = int(written["rows"].iloc[0]), int(written["bytes"].iloc[0])
    print(f"{to}: {rows:,} row{'s' * (rows != 1)}, {size:,} bytes")
    return None


def forms() -> Any:
    """Return the forms' module, imported only now: ipywidgets would make %load_ext slow."""
    return import_module("nbext.notebook.forms")
