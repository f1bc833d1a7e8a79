"""The options, help and examples of each magic: ``?``, ``--help``, parsing, completion and the page read them."""

from __future__ import annotations

from nbext.core.wire import FILE_TYPES, OPERATORS, SEARCH_TYPES
from nbext.notebook.line.options import Grammar, Option

_OUT = Option(("--out", "-o"), "store the result in this variable", "text", "NAME")
_TO = Option(
    ("--to",), "write the result to a .csv, .json, .parquet or .arrow file", "text", "FILE"
)
_OVERWRITE = Option(("--overwrite",), "let --to replace an existing file")
_RAW = Option(("--raw",), "with --to: do not escape text that a spreadsheet would run as a formula")
_FRAMES = ("pandas", "polars", "arrow")
_AS = Option(("--as",), "the type of table (default: the setting `frame`)", "text", choices=_FRAMES)
_PERIODS, _COHORTS = ("day", "week", "month", "quarter"), ("held", "seen")
_EXPLORE = Option(("--explore",), "show the whole table in a view that sorts, filters and sums up")
_RESULT = (_OUT, _TO, _OVERWRITE, _RAW, _AS, _EXPLORE)

_QUERY = (
    Option(("--operator",), "how the conditions combine (default AND)", "text", choices=OPERATORS),
    Option(
        ("--limit",),
        "how many rows to return, in the order of addresses; 0 only counts",
        "integer",
        "N",
    ),
    Option(
        ("--top",),
        "return the N rows with the largest --by COLUMN, of all that match",
        "integer",
        "N",
    ),
    Option(("--by",), "the column that --top ranks by, such as UNI_balance", "text", "COLUMN"),
    Option(("--all",), "return every row, up to 10,000,000"),
    Option(("--count",), "return the number of matching wallets, and no rows"),
    Option(
        ("--type",),
        "the file type that the service makes (default json)",
        "text",
        choices=FILE_TYPES,
    ),
    Option(("--dry-run",), "print the request and check it, without running it"),
    Option(("--explain",), "print the segment in words, its SQL and the engine's plan"),
    Option(("--bg",), "run in the background and return a handle: .status, .result(), .cancel()"),
    Option(("--from",), "run the query that `%nbext save NAME` saved", "text", "NAME"),
    Option(("--card",), "show the result as a card"),
    Option(
        ("--changes",),
        "return who joined, left or stayed since then: 30d, 4w, 2025-01-31",
        "text",
        "SINCE",
    ),
    Option(("--profile",), "return what the wallets hold more than others do"),
    Option(
        ("--run-corrected",),
        "read Python's dicts, comments and trailing commas as the JSON that they mean",
    ),
)

SEGMENT_QUERY = Grammar(
    "%%segment_query",
    "Run the segment whose filters are the cell, as JSON, and return its wallets as a DataFrame.",
    "%%segment_query [NAME] [options]",
    (*_QUERY, *_RESULT),
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
    '(.csv, .txt, .parquet) in the notebook\'s folder; "sg_..." a saved segment.\n'
    "A Python date is a whole day: before {{datetime.date(2025, 1, 31)}} includes the 31st. A pd.Timestamp or a\n"
    "datetime is an instant, also at midnight: {{day.date()}} is its day.\n"
    "`%nbext schema` lists the conditions and their fields.",
)

SEGMENT = Grammar(
    "%segment",
    "Read a segment by its id, export its rows, or run a segment written on the line.",
    "%segment ID [--json|--csv|--card] [options]   or   %segment {FILTERS} [options]",
    (
        Option(("--json",), "export the rows through the service's JSON"),
        Option(("--csv",), "export the rows through the service's CSV"),
        *_QUERY,
        *_RESULT,
    ),
    (
        '%segment {"token": {"token": "USDC"}} --limit 5 -o few',
        "%segment {{few.attrs['nbext']['segment_id']}}",
        "%segment {{few.attrs['nbext']['segment_id']}} --csv -o rows",
    ),
    "A cell may have several of these lines, but a notebook displays the last result only: give the others a name\n"
    "(-o NAME). --count, and --limit 0, return the number of wallets; in Python limit=0 returns a\n"
    'table without rows, whose attrs["nbext"]["matched"] is that number.',
)

_METADATA = (
    Option(
        ("--strict",),
        "fail on an address that the service does not know, instead of a row of nulls",
    ),
    Option(("--refresh",), "ask the service again, instead of its cached answer"),
    Option(
        ("--card",), "show one contract as a card: its metadata, and how many wallets hold how much"
    ),
)

TOKEN = Grammar(
    "%token",
    "Read the metadata of ERC20 tokens: one row per address or symbol, in the order given.",
    "%token CHAIN ADDRESS... [options]",
    (*_METADATA, *_RESULT),
    (
        "%token ethereum USDC",
        "%token ethereum USDC UNI -o tokens",
        "%token ethereum {{tokens['address']}}",
    ),
    "{{expression}} inserts the addresses of a list or of a column. A word without braces is a symbol or an address.",
)

NFT = Grammar(
    "%nft",
    "Read the metadata of NFT collections, or search them by name.",
    "%nft CHAIN ADDRESS... [options]   or   %nft search TERM [--chain CHAIN] [options]",
    (
        Option(("--chain",), "the chain to search (default: the setting `chain`)", "text", "CHAIN"),
        Option(("--type",), "what to search (default nft)", "text", choices=SEARCH_TYPES),
        Option(("--limit",), "how many hits to return, 1 to 100 (default 20)", "integer", "N"),
        Option(("--offset",), "how many hits to skip", "integer", "N"),
        *_METADATA,
        *_RESULT,
    ),
    (
        "%nft ethereum BAYC",
        '%nft search "bored ape"',
        "%nft search punk --chain ethereum --limit 5 -o found",
    ),
)

# command -> (its arguments, what it does)
COMMANDS = {
    "status": ("", "print which service answers, its data and last blocks, and the versions"),
    "connect": (
        "[URL]",
        "connect to a service, or again to the one that is set; rereads pyproject.toml",
    ),
    "login": (
        "[--keep]",
        "type the key of a remote service at a prompt; --keep stores it in the keyring",
    ),
    "logout": ("", "remove the key from this session and from the keyring"),
    "set": ("NAME VALUE", "set a setting for this session"),
    "unset": ("NAME", "remove a setting from this session"),
    "config": ("", "list every setting, its value and its source"),
    "history": (
        "[N]",
        "list this session's queries, on a --card to edit them; with a number, run that one again",
    ),
    "save": ("NAME [N]", "save the last query (or query N) for `%%segment_query --from NAME`"),
    "schema": ("[CONDITION]", "list the conditions of the segment language, or the fields of one"),
    "last-answer": (
        "[--values]",
        "print a remote's last answer in outline, and the settings that read it otherwise",
    ),
    "search": ("[TERM]", "open a form that searches collections and tokens"),
    "signup": ("", "open a form that signs up for the newsletter"),
    "build": (
        "[SEGMENT]",
        "open a form that builds a segment: anew, or of a table, an id, `history N` or {filters}",
    ),
    "overlap": (
        "SEGMENT...",
        "count what segments have in common, with a chart: symbols, tables, ids or {filters}",
    ),
    "funnel": ("SEGMENT", "count each condition of a segment alone, and with those before it"),
    "concentration": ("TOKEN", "show how much the largest holders of a token or a collection have"),
    "trend": ("SEGMENT", "count a segment through time: --every 1w --since 1y"),
    "retention": (
        "SEGMENT",
        "share of each cohort that matches later: --by month --cohort held --since 1y",
    ),
    "wallet": (
        "ADDRESS...",
        "list what wallets hold, now or --as-of a time, on all chains or on --chain NAME",
    ),
    "fetch": (
        "--contract UNI ...",
        "fetch transfers from a node, and serve them: `%nbext fetch --help`",
    ),
    "examples": ("[FOLDER]", "copy the example notebooks to a folder (default: nbext-examples)"),
    "help": ("", "print this help"),
}
# What a newcomer tries, in this order: each line runs as it is, on the sample.
TOUR = (
    ("what a contract is", "%token ethereum USDC UNI"),
    (
        "who holds it, as a table in `whales`",
        '%segment {"token": {"token": "UNI", "balance": {"min": "1000"}}} -o whales',
    ),
    ("what they hold more than others do", "%segment {{whales}} --profile"),
    ("the same question in a form, without JSON", "%nbext build whales"),
    ("notebooks to go on with, from an audience to your own data", "%nbext examples"),
)
_STEPS = "\n".join(
    f"  {number}. {what}:\n       {line}" for number, (what, line) in enumerate(TOUR, 1)
)
_ROWS = [(f"%nbext {name} {follows}".rstrip(), line) for name, (follows, line) in COMMANDS.items()]
_WIDTH = max(len(left) for left, _ in _ROWS) + 2

NBEXT = Grammar(
    "%nbext",
    "Show and change the connection and the settings, and open forms.",
    "%nbext COMMAND",
    (
        Option(("--keep",), "with login: store the key in the system's keyring"),
        Option(("--values",), "with last-answer: show one short value of each field"),
        Option(("--share",), "with overlap: the share of the row's wallets"),
        Option(
            ("--every",), "with trend: the time between two points (default 1w)", "text", "SPAN"
        ),
        Option(
            ("--since",),
            "with trend and retention: how far back they begin (default 1y)",
            "text",
            "SPAN",
        ),
        Option(
            ("--amounts",),
            "with trend: add up what is held of this token (default: of the only one)",
            "text",
            "TOKEN",
        ),
        Option(("--no-amounts",), "with trend: only count"),
        Option(("--by",), "with retention: the period (default month)", "text", choices=_PERIODS),
        Option(
            ("--cohort",),
            "with retention: first held, or first seen (default held)",
            "text",
            choices=_COHORTS,
        ),
        Option(
            ("--as-of",),
            "with wallet: a time, such as 30d or 2025-01-31, or a block",
            "text",
            "TIME",
        ),
        Option(("--chain",), "with wallet: this chain alone", "text", "CHAIN"),
        Option(("--lift",), "with overlap: how many times as many as by chance"),
        Option(("--overwrite",), "with examples: replace files that differ"),
        Option(
            ("--card",),
            "with history: each query on a line, with a button that opens it in the builder",
        ),
        _OUT,
    ),
    ("%nbext status", "%nbext schema token", "%nbext overlap BAYC MAYC AZUKI --share"),
    f"Five things to try, in this order:\n{_STEPS}\n\n"
    "Commands:\n" + "\n".join(f"  {left:<{_WIDTH}}{line}" for left, line in _ROWS) + "\n\n"
    "Magics: %token CHAIN ADDRESS..., %nft CHAIN ADDRESS..., %nft search TERM, %segment ID, %%segment_query.\n"
    "`%token?` and the like show the options and examples of each.",
    # The words of `login`, `connect` and `set` could hold a key that was typed in the wrong place.
    echo=False,
    commands=("fetch",),
)

BY_MAGIC = {
    grammar.magic.lstrip("%"): grammar for grammar in (SEGMENT_QUERY, SEGMENT, TOKEN, NFT, NBEXT)
}
