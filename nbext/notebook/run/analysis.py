"""The commands of ``%nbext`` that compare segments: a table and its chart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nbext.core.provenance import Provenance
from nbext.core.rules import MAX_LIMIT
from nbext.errors import ValidationError
from nbext.notebook.cell.request import query_of
from nbext.notebook.line import Args, Command, Option, Word, value_of
from nbext.notebook.results.deliver import ANALYSED, deliver
from nbext.notebook.run.background import BackgroundSegment
from nbext.notebook.run.metadata import addresses_named

if TYPE_CHECKING:
    from nbext.notebook.session import Session

_SINCE = Option("--since", "how far back they begin (default 1y)", "text", "SPAN")


def _completes(session: Session, done: list[str], typed: str) -> Mapping[str, str]:
    """Return symbols, which stand for their holders."""
    symbols, chain = session.vocabulary.symbols, session.settings["chain"]
    return symbols("token", chain, typed) | symbols("collection", chain, typed)


# A command whose words are segments.
_Analysis = partial(Command, completes=_completes, reads_words=True)


@_Analysis(
    "overlap",
    "SEGMENT...",
    "count what segments have in common, with a chart: symbols, tables, ids or {filters}",
    (
        Option("--share", "the share of the row's wallets"),
        Option("--lift", "how many times as many as by chance"),
        *ANALYSED,
    ),
    (
        "%nbext overlap BAYC MAYC AZUKI",
        "%nbext overlap BAYC MAYC AZUKI --share",
        "%nbext overlap BAYC MAYC AZUKI --lift",
        "%nbext overlap BAYC MAYC AZUKI --page overlap.html --overwrite",
    ),
)
def _overlap(session: Session, args: Args, *words: Word) -> Any:
    asked = [segment_named(session, args, word) for word in words or [None]]
    named = dict(zip((word.text for word in words), asked, strict=True))
    # Two words of one name get a number each from the names of a list.
    segments = named if len(named) == len(asked) else asked
    return _shown(session, args, "overlap", segments, share=args["share"], lift=args["lift"])


def _of_one(session: Session, args: Args, word: Word | None = None) -> Any:
    """Run the analysis of one segment that the line names; the command's own options are its arguments."""
    segment = segment_named(session, args, word)
    delivered = {option.name for option in ANALYSED}
    options = {name: value for name, value in args.options.items() if name not in delivered}
    if options.pop("no_amounts", False):
        if "amounts" in options:
            raise args.error("use --amounts or --no-amounts, not both.")
        options["amounts"] = False
    return _shown(session, args, args.grammar.magic.split()[1], segment, **options)


@Command(
    "wallet",
    "ADDRESS...",
    "list what wallets hold, now or --as-of a time, on all chains or on --chain NAME",
    (
        Option("--as-of", "a time, such as 30d or 2025-01-31, or a block", "moment", "TIME"),
        Option("--chain", "this chain alone", "text", "CHAIN"),
        *ANALYSED,
    ),
    (
        '%nbext wallet {{uni["address"][0]}} --as-of 30d --chain ethereum -o held\nheld[["symbol", "amount"]]',
    ),
    reads_words=True,
)
def _wallet(session: Session, args: Args, *words: Word) -> Any:
    if not words:
        raise args.error("name an address: %nbext wallet 0x...")
    asked = None
    if len(words) == 1:
        asked = words[0].text if words[0].text.startswith("@") else table_named(args, words[0])
    if asked is None:
        asked = [one for word in words for one in addresses_named(args, word)]
    return _shown(session, args, "wallet", asked, as_of=args["as_of"], chain=args["chain"])


COMMANDS = (
    _overlap,
    _Analysis(
        "funnel",
        "SEGMENT",
        "count each condition of a segment alone, and with those before it",
        ANALYSED,
        ('%nbext funnel {"token": {"token": "UNI"}, "not": {"nft": {"nft": "BAYC"}}}',),
    )(_of_one),
    _Analysis(
        "concentration",
        "TOKEN",
        "show how much the largest holders of a token or a collection have",
        ANALYSED,
        ('%nbext concentration UNI -o shares\nshares[["wallets", "amount", "share"]]',),
    )(_of_one),
    _Analysis(
        "trend",
        "SEGMENT",
        "count a segment through time: --every 1w --since 1y",
        (
            Option("--every", "the time between two points (default 1w)", "text", "SPAN"),
            _SINCE,
            Option(
                "--amounts",
                "add up what is held of this token (default: of the only one)",
                "text",
                "TOKEN",
            ),
            Option("--no-amounts", "only count"),
            *ANALYSED,
        ),
        (
            "%nbext trend UNI --every 26w --since 1y --no-amounts",
            '%nbext trend {"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}} --every 26w --amounts UNI -o held\n'
            'held[["at", "count", "amount"]]',
        ),
    )(_of_one),
    _Analysis(
        "retention",
        "SEGMENT",
        "share of each cohort that matches later: --by month --cohort held --since 1y",
        (
            Option(
                "--by",
                "the period (default month)",
                "text",
                choices=("day", "week", "month", "quarter"),
            ),
            Option(
                "--cohort",
                "first held, or first seen (default held)",
                "text",
                choices=("held", "seen"),
            ),
            _SINCE,
            *ANALYSED,
        ),
        ("%nbext retention UNI --by quarter --cohort held --since 1y",),
    )(_of_one),
    _wallet,
)


def of_query(session: Session, args: Args, segment: Any) -> Any:
    """Return what ``--changes`` or ``--profile`` asks for of a segment: its filters and operator, or its id."""
    if args["profile"]:
        return _shown(session, args, "profile", segment)
    return _shown(session, args, "changes", segment, since=args["changes"])


def segment_named(session: Session, args: Args, word: Word | None) -> Any:
    """Return what a word stands for: the table of that name, filters on the line, a symbol, an address or an id."""
    if word is None:
        raise args.error("name a segment: a symbol, a table, an id, or {filters}.")
    if (table := table_named(args, word)) is not None:
        return table
    if word.kind == "json":
        # The options are the analysis's own: --by of a retention is no order of rows.
        return query_of(word.text, replace(args, options={}), MAX_LIMIT).segment
    return value_of(word, args)


def table_named(args: Args, word: Word) -> Any:
    """Return the table that a word is the name of, or None; another variable of that name is refused."""
    named = args.names.get(word.text) if word.kind in ("word", "python") else None
    name, magic, message = word.text, args.grammar.magic, None
    if hasattr(named, "columns"):
        return named
    braces = f"Python values need braces: {magic} {{{{{name}}}}}"
    if word.kind == "word" and isinstance(named, list | tuple | set | dict):
        message = f"{name} is a {type(named).__name__}, not a segment's table. {braces}"
    elif word.kind == "word" and isinstance(named, str) and named.startswith("sg_"):
        message = f"{name} is a variable with an id. {braces}"
    elif isinstance(named, str) and named.lstrip().startswith("{"):
        # Not read as the line is: in a text from elsewhere, {{...}} would run.
        message = f"{name} is a text, not filters. Parse it: {magic} {{{{json.loads({name})}}}}"
    elif isinstance(named, BackgroundSegment):
        message = f"{name} is a background run. Its table is {name}.result()."
    if message:
        raise args.error(message, word)
    return None


def _shown(session: Session, args: Args, name: str, asked: Any, **options: Any) -> Any:
    """Run an analysis and deliver its table, as that of a query; display its chart where it is not only stored."""
    analysis, client = getattr(import_module("nbext"), name), session.connected()
    with session.bar(name):
        table = analysis(asked, client=client, **options)
    if name == "changes":
        about = Provenance.of(table)
        counts = f"{about.joined:,} joined, {about.left:,} left, {about.stayed:,} stayed"
        then, now = (f"{(moment or {})['block']:,}" for moment in (about.then, about.as_of))
        print(f"{counts} from block {then} to {now}")
    if args["out"] is None and len(table):
        from IPython.display import display

        try:
            display(table.chart())  # type: ignore[no-untyped-call]  # IPython's own
        except ValidationError as error:
            # What was counted, perhaps for minutes, is returned all the same.
            print(f"note: no chart: {error.errors[0]['detail']}")
    return deliver(session, table, args)
