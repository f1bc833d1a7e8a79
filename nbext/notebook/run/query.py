"""Segments, from a cell or a line: run, count or explain a query, show its request, or read one by its id."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import visible
from nbext.core.wire import FILE_TYPES, OPERATORS
from nbext.errors import AuthError, NotFound, TransportError, UsageError
from nbext.notebook.cell.body import Body, laid_out
from nbext.notebook.cell.request import ON_LINE, SegmentQuery, query_of
from nbext.notebook.line import Args, Grammar, Option, value_of
from nbext.notebook.results import deliver
from nbext.notebook.results.deliver import RESULT
from nbext.notebook.results.numbers import rows_in_words
from nbext.notebook.run import analysis, background
from nbext.notebook.schema import variables_in_words
from nbext.notebook.session import Session, saved_query

if TYPE_CHECKING:
    from nbext.client import Client

# Columns of a notebook's text output before its lines break.
WIDTH = 100
# The arguments of `nbext.payout` that --payout takes, by their place and by their names.
_TERMS, _NAMED = ("total", "of", "rule"), ("cap", "floor", "at_least", "to")
_JSON_HEADER = "Content-Type: application/json"
_QUERY = (
    Option("--operator", "how the conditions combine (default AND)", "text", choices=OPERATORS),
    Option(
        "--limit",
        "how many rows to return, in the order of addresses; 0 only counts",
        "integer",
        "N",
    ),
    Option(
        "--top",
        "return the N rows with the largest amount, or --by COLUMN, of all that match",
        "integer",
        "N",
    ),
    Option(
        "--by",
        "the column that --top ranks by, where the rows have several amounts",
        "text",
        "COLUMN",
    ),
    Option("--chain", "the chain that is asked (default ethereum)", "text", "CHAIN"),
    Option("--as-of", "ask as of a time, such as 30d or 2025-01-31, or a block", "moment", "TIME"),
    Option("--columns", "what else to return of each wallet, by commas", "text", "COLUMN,..."),
    Option(
        "--exclude",
        "wallets never to return, by commas (default burn; [] leaves out nobody)",
        "text",
        "WALLET,...",
    ),
    Option("--all", "return every row, up to 10,000,000"),
    Option("--count", "return the number of matching wallets, and no rows"),
    Option(
        "--type", "the file type that the service makes (default json)", "text", choices=FILE_TYPES
    ),
    Option("--dry-run", "print the request and check it, without running it"),
    Option("--explain", "print the segment in words, its SQL and the engine's plan"),
    Option("--bg", "run in the background and return a handle: .status, .result(), .cancel()"),
    Option("--from", "run the query that `%nbext save NAME` saved", "text", "NAME"),
    Option("--card", "show the result as a card"),
    Option(
        "--changes",
        "return who joined, left or stayed since then: 30d, 4w, 2025-01-31, or a block",
        "moment",
        "SINCE",
    ),
    Option("--profile", "return what the wallets hold more than others do"),
    Option(
        "--payout",
        'divide a total among the wallets and write a folder: "1000000 UNI proportional cap=500 to=drop"; also floor=, '
        "at_least=, and by default equal shares in the folder payout",
        "text",
        '"TOTAL [TOKEN [RULE]] [NAME=VALUE ...]"',
    ),
    Option(
        "--run-corrected",
        "read Python's dicts, comments and trailing commas as the JSON that they mean",
    ),
)

SEGMENT_QUERY = Grammar(
    "%%segment_query",
    "%%segment_query [NAME] [options]",
    "Run the segment whose filters are the cell, as JSON, and return its wallets as a DataFrame.",
    (*_QUERY, *RESULT),
    (
        '%%segment_query --operator OR --count\n{"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}}',
        '%%segment_query largest --top 100 --by UNI_balance\n{"token": {"token": "UNI"}}',
        "%%segment_query --dry-run\n"
        '{"token": {"token": "USDC", "balance": {"min": {{str(10 ** 3)}}}}, "not": {"nft": {"nft": "BAYC"}}}',
    ),
    "NAME stores the result in that variable; without it the result is displayed. The cell is the filters, or a whole\n"
    'request ({"operator": ..., "filters": ...}). {{expression}} inserts a Python value as JSON; in a function\n'
    "it finds the function's variables first, then the notebook's. NAME and -o always store in the notebook: inside\n"
    "a function write rows = %segment {...}, or return get_ipython().run_cell_magic(...).\n"
    '{"wallet": {"in": {{allow.address}}}} takes a column, a set or a table of any length; "@allow.csv" a file\n'
    '(.csv, .txt, .json, .parquet, .arrow) in the notebook\'s folder; "sg_..." a saved segment.\n'
    "A Python date is a whole day: before {{datetime.date(2025, 1, 31)}} includes the 31st. A pd.Timestamp or a\n"
    "datetime is an instant, also at midnight: {{day.date()}} is its day.\n"
    "`%nbext schema` lists the conditions and their fields.",
)


def _tables_of_segments(session: Session, done: list[str], typed: str) -> Mapping[str, str]:
    # The id of a table's segment is 40 letters that nobody types; the table's name stands for it.
    tables = {} if done else variables_in_words(session.names)
    return {
        name: words
        for name, words in tables.items()
        if "nbext" in getattr(session.names[name], "attrs", {})
    }


SEGMENT = Grammar(
    "%segment",
    "%segment ID [--json|--csv|--card] [options]   or   %segment {FILTERS} [options]",
    "Read a segment by its id, export its rows, or run a segment written on the line.",
    (
        Option("--json", "export the rows through the service's JSON"),
        Option("--csv", "export the rows through the service's CSV"),
        *_QUERY,
        *RESULT,
    ),
    (
        '%segment {"token": {"token": "USDC"}} --limit 5 -o few',
        "%segment {{few.attrs['nbext']['segment_id']}}",
        "%segment {{few.attrs['nbext']['segment_id']}} --csv -o rows",
    ),
    "A cell may have several of these lines, but a notebook displays the last result only: give the others a name\n"
    "(-o NAME). --count, and --limit 0, return the number of wallets; in Python limit=0 returns a\n"
    'table without rows, whose attrs["nbext"]["matched"] is that number.',
    completes=_tables_of_segments,
)


def run_cell(session: Session, args: Args) -> Any:
    """Run ``%%segment_query``: the cell, or the query saved under ``--from``."""
    text, saved = args.cell or "", args["from"]
    if args.cell is None and saved is None:
        raise UsageError(
            "%segment_query is a cell magic. Write %%segment_query as the first line of a cell, and the filters "
            "as JSON below it. On one line: %segment {filters}"
        )
    for place, word in enumerate(args.words):
        if word.kind == "json":
            raise args.error(
                "write the filters on the lines below. On one line: %segment {filters}", word
            )
        if place:
            usage = f"Usage: {args.grammar.usage}"
            if word.text == "<<":
                usage = (
                    f"The name alone stores the result: {args.grammar.magic} {args.words[0].text}"
                )
            raise args.error(f"unexpected argument {word.text!r}. {usage}", word)
        if args["out"] is not None:
            both = f"{word.text!r} and {args['out']!r}"
            raise args.error(f"the result has two names, {both}. Use one of them.", word)
        args.options["out"] = deliver.checked_name(word.text, args.names)
    if saved is not None:
        if text.strip():
            raise args.error(
                "--from runs a saved query, but the cell has filters too. Use one of them."
            )
        text = saved_query(session.data_dir, saved)
    elif not text.strip():
        raise UsageError(
            "%%segment_query: the cell has no filters. Write them as JSON below the first line, "
            'such as {"token": {"token": "USDC"}}'
        )
    # The magic's own line is the cell's first: lines are counted as the editor counts them.
    return run_query(session, query_of("\n" + text, args, session.settings["limit"]), args)


def run_line(session: Session, args: Args) -> Any:
    """Run ``%segment``: an id to read or export, or filters on the line."""
    if len(args.words) > 1:
        surplus = args.words[1].text
        if args.words[0].kind == "json" and not surplus.strip("}]"):
            raise args.error(f"delete {surplus}. The filters end before it.", args.words[1])
        if args.words[0].text.endswith(":"):
            raise args.error("the filters have no braces. Write %segment {...}", args.words[0])
        usage = f"Usage: {args.grammar.usage}"
        if surplus == "<<":
            usage = (
                f"An option stores the result: {args.grammar.magic} {{...}} -o {args.words[0].text}"
            )
        raise args.error(f"unexpected argument {surplus!r}. {usage}", args.words[1])
    if args.words:
        word = args.words[0]
        table = analysis.table_named(args, word)
        is_text = word.kind == "json" or table is not None
        value = word.text if is_text else value_of(word, args)
        if word.kind == "word" and word.text.startswith("["):
            raise args.error("Filters are one JSON object, {...}, not a list.", word)
        if word.kind == "word" and "}}--" in word.text:
            raise args.error("a space is missing before the option.", word)
        if word.kind != "json" and not isinstance(value, dict):
            return _read(session, args, str(value) if table is None else table)
        if args["from"] is not None:
            raise args.error(
                "--from runs a saved query, but the line has filters too. Use one of them.", word
            )
        # The text of a value from Python is only to point at mistakes in: it need not hold a million addresses.
        text = value if isinstance(value, str) else Body(value, json.dumps(value, default=str))
    elif args["from"] is not None:
        text = saved_query(session.data_dir, args["from"])
    else:
        raise args.error(f"a segment id or filters are missing. Usage: {args.grammar.usage}")
    if given := args.given("json", "csv"):
        instead = f"To write the rows of this query, use --to FILE.{given[0].lstrip('-')}."
        raise args.error(f"{given[0]} exports a segment by its id. {instead}")
    return run_query(session, query_of(text, args, session.settings["limit"]), args)


def run_query(session: Session, query: SegmentQuery, args: Args) -> Any:
    """Run a query as the options say, and deliver its result."""
    if args["changes"] is not None or args["profile"]:
        with query.located():
            return analysis.of_query(session, args, query.segment)
    if args["dry_run"] or args["explain"]:
        if args["out"] is not None:
            raise args.error(
                f"{visible(args['out'])}: nothing is stored, because nothing runs. Leave the name out."
            )
        show = print_request if args["dry_run"] else print_explanation
        return show(session.connected(), query)
    if args["bg"]:
        return background.start_segment(session, query, args)
    client = session.connected()
    to_file, terms = deliver.file_of(args), _payout_terms(args)
    if query.limit == 0 and not to_file and (args["to"] or args["page"]):
        raise UsageError("A limit of 0 only counts: there are no rows to write to a file.")
    with session.bar("segment") as bar:
        frame = query.run(client, **to_file, progress=bar)
    session.history.add(query, frame)
    if terms:
        from nbext.payouts.payout import payout

        frame = payout(frame, **terms, client=client)
        made = Provenance.of(frame).payout or {}
        print(f"{visible(made['folder'])}: {made['wallets']:,} claims, root {made['root']}")
    if to_file:
        return deliver.print_file(frame, args)
    if query.limit == 0 and not args["card"]:
        return deliver.put(session, args, deliver.print_notes(frame, args).matched)
    return deliver.deliver(session, frame, args)


def _payout_terms(args: Args) -> dict[str, Any]:
    """Return the arguments of `nbext.payout` that ``--payout`` has: the first three without their names."""
    if args["payout"] is None:
        return {}
    words = args["payout"].split()
    named = dict(word.split("=", 1) for word in words if "=" in word)
    terms = [word for word in words if "=" not in word]
    # A name that is there twice would lose one of its values.
    once = len(words) == len(terms) + len(named)
    if not (once and 0 < len(terms) <= len(_TERMS)) or named.keys() - _NAMED:
        raise args.error(
            f"--payout takes {', '.join(_TERMS)}, and NAME=VALUE of {', '.join(_NAMED)}, each once. "
            'Example: --payout "1000000 UNI proportional cap=500"'
        )
    return dict(zip(_TERMS, terms, strict=False)) | named


def _read(session: Session, args: Args, given: Any) -> Any:
    """Read a segment by its id or by its table, or export its rows."""
    # These change how a query runs, and mean nothing for a segment that has run.
    if flags := args.given(
        "operator", *deliver.OF_ROWS, "from", "run_corrected", *ON_LINE, "payout"
    ):
        raise args.error(
            f"{flags[0]} has no effect on a segment that has run. Use it with filters."
            f"{_taken_for_an_id(args, given)}"
        )
    if args["changes"] is not None or args["profile"]:
        return analysis.of_query(session, args, given)
    if args["json"] and args["csv"]:
        raise args.error("use --json or --csv, not both.")
    try:
        client = session.connected()
        if not (args["json"] or args["csv"] or args["card"]):
            with session.bar("segment"):
                row = client.segment(given)
            if args["to"] is not None:
                print("note: this is the segment's description. Add --csv to write its rows.")
            return deliver.deliver(session, row, args)
        export = client.export_json if args["json"] else client.export_csv
        to_file = deliver.file_of(args)
        with session.bar("export") as bar:
            made = export(given, **to_file, progress=bar)
        if not to_file:
            return deliver.deliver(session, made, args)
        session.history.last = deliver.print_notes(made, args)
        print(
            f"{args['to']}: {rows_in_words(made['rows'].iloc[0])}, {made['bytes'].iloc[0]:,} bytes"
        )
    except NotFound as error:
        said = f"{error}{_taken_for_an_id(args, given)}"
        raise NotFound(said, status=error.status, problem=error.problem) from None
    return None


def _taken_for_an_id(args: Args, word: Any) -> str:
    """Return a sentence for a word that may be meant as a variable's name, or as a token's."""
    if (
        not isinstance(word, str)
        or not word.isidentifier()
        or word.startswith("sg_")
        or word in args.names
    ):
        return ""
    return (
        f" No variable is named {word!r}: it is taken for an id. Holders of a token: "
        f'{{"token": {{"token": "{word}"}}}}, of a collection: {{"nft": {{"nft": "{word}"}}}}.'
    )


def print_request(client: Client, query: SegmentQuery) -> None:
    """Print the request as it would be sent, what the service says of it, and a curl line; the key is in neither."""
    request = client.request_for(*query.request)
    # Another service has no operation that checks a segment without running it.
    checked = "Not checked: nbext does not know this service's filters and sends them unchanged."
    try:
        if client.is_ours:
            checked = f"Valid. In words: {visible(_explanation(client, query).get('words'), None)}"
    except (AuthError, TransportError) as error:
        checked = f"Not checked: {visible(error)}"
    body = shlex.quote(json.dumps(request["body"], default=str))
    listed = "".join(
        f"The service stores the list: {visible(one)}.\n" for one in request["lists"].values()
    )
    print(
        f"{request['method']} {visible(request['url'])}\n{_JSON_HEADER}\nx-api-key: (not shown)\n\n"
        f"{_lines(laid_out(request['body'], WIDTH))}\n\n{listed}{checked}\n\n"
        # The key stays in the variable that the user's terminal has it in.
        f"curl -X {request['method']} {shlex.quote(request['url'])} -H '{_JSON_HEADER}' "
        f'-H "x-api-key: $NBEXT_API_KEY" -d {body}'
    )


def print_explanation(client: Client, query: SegmentQuery) -> None:
    """Print a segment in words, its SQL, and the engine's plan, which only a service of ours can give."""
    if not client.is_ours:
        raise UsageError(
            "--explain: only the embedded service (or another `nbext serve`) can explain a segment."
        )
    explanation = _explanation(client, query)
    print(f"{visible(explanation.get('words'), None)}\n")
    for part, title in (("sql", "SQL"), ("plan", "Plan")):
        print(f"{title}\n{_lines(explanation[part])}\n")


def _explanation(client: Client, query: SegmentQuery) -> Mapping[str, Any]:
    with query.located():
        return client.explain(query.filters, query.operator, query.limit)


def _lines(text: str) -> str:
    # SQL and plans are the service's text: hidden characters in them are made visible too.
    return "\n".join(visible(line, None) for line in text.splitlines())
