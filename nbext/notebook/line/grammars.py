"""The options, help and examples of each magic: ``?``, ``--help``, parsing, completion and the page read them."""

from __future__ import annotations

from nbext.core.operations import FILE_TYPES, OPERATORS, SEARCH_TYPES
from nbext.notebook.line.options import Grammar, Option

_OUT = Option(("--out", "-o"), "store the result in this variable", "text", "NAME")
_TO = Option(("--to",), "write the result to a .csv, .json or .parquet file", "text", "FILE")
_OVERWRITE = Option(("--overwrite",), "let --to replace an existing file")
_RAW = Option(("--raw",), "with --to: do not escape text that a spreadsheet would run as a formula")
_FRAMES = ("pandas", "polars", "arrow")
_AS = Option(("--as",), "the type of table (default: the setting `frame`)", "text", choices=_FRAMES)
_RESULT = (_OUT, _TO, _OVERWRITE, _RAW, _AS)

_QUERY = (
    Option(("--operator",), "how the conditions combine (default AND)", "text", choices=OPERATORS),
    Option(("--limit",), "how many rows to return, in the order of addresses; 0 only counts", "integer", "N"),
    Option(("--all",), "return every row, up to 1,000,000"),
    Option(("--count",), "return the number of matching wallets, and no rows"),
    Option(("--type",), "the file type that the service makes (default json)", "text", choices=FILE_TYPES),
    Option(("--dry-run",), "print the request and check it, without running it"),
    Option(("--explain",), "print the segment in words, its SQL and the engine's plan"),
    Option(("--bg",), "run in the background and return a handle: .status, .result(), .cancel()"),
    Option(("--from",), "run the query that `%nbext save NAME` saved", "text", "NAME"),
    Option(("--card",), "show the result as a card"),
)

SEGMENT_QUERY = Grammar(
    "%%segment_query",
    "Run the segment whose filters are the cell, as JSON, and return its wallets as a DataFrame.",
    "%%segment_query [NAME] [options]",
    (*_QUERY, *_RESULT),
    (
        '%%segment_query holders --limit 500\n{"token": {"token": "USDC", "balance": {"min": "1000"}}}',
        '%%segment_query --operator OR --count\n{"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}}',
        '%%segment_query --dry-run\n'
        '{"token": {"token": "USDC", "balance": {"min": {{str(10 ** 3)}}}}, "not": {"nft": {"nft": "BAYC"}}}',
    ),
    "NAME stores the result in that variable; without it the result is displayed. The cell is the filters, or a whole\n"
    "request ({\"operator\": ..., \"filters\": ...}). {{expression}} inserts a Python value as JSON.\n"
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
)

_METADATA = (
    Option(("--strict",), "fail on an address that the service does not know, instead of a row of nulls"),
    Option(("--refresh",), "ask the service again, instead of its cached answer"),
)

TOKEN = Grammar(
    "%token",
    "Read the metadata of ERC20 tokens: one row per address or symbol, in the order given.",
    "%token CHAIN ADDRESS... [options]",
    (*_METADATA, *_RESULT),
    ("%token ethereum USDC", "%token ethereum USDC UNI -o tokens", "%token ethereum {{tokens['address']}}"),
    "A variable that contains a list or a column of addresses means those addresses, and so does {{expression}}.\n"
    "A word in quotes is never a variable.",
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
    ("%nft ethereum BAYC", '%nft search "bored ape"', "%nft search punk --chain ethereum --limit 5 -o found"),
)

# command -> (its arguments, what it does)
COMMANDS = {
    "status": ("", "print which service answers, its data and last blocks, and the versions"),
    "connect": ("[URL]", "connect to a service, or again to the one that is set; rereads pyproject.toml"),
    "login": ("[--keep]", "type the key of a remote service at a prompt; --keep stores it in the keyring"),
    "logout": ("", "remove the key from this session and from the keyring"),
    "set": ("NAME VALUE", "set a setting for this session"),
    "unset": ("NAME", "remove a setting from this session"),
    "config": ("", "list every setting, its value and its source"),
    "history": ("[N]", "list this session's queries; with a number, run that one again"),
    "save": ("NAME [N]", "save the last query (or query N) for `%%segment_query --from NAME`"),
    "schema": ("[CONDITION]", "list the conditions of the segment language, or the fields of one"),
    "search": ("[TERM]", "open a form that searches collections and tokens"),
    "signup": ("", "open a form that signs up for the newsletter"),
    "build": ("", "open a form that builds a segment"),
    "help": ("", "print this help"),
}
_ROWS = [(f"%nbext {name} {follows}".rstrip(), line) for name, (follows, line) in COMMANDS.items()]

NBEXT = Grammar(
    "%nbext",
    "Show and change the connection and the settings, and open forms.",
    "%nbext COMMAND",
    (
        Option(("--keep",), "with login: store the key in the system's keyring"),
        _OUT,
    ),
    ("%nbext status", "%nbext config", "%nbext schema token"),
    "Commands:\n" + "\n".join(f"  {left:<28}{line}" for left, line in _ROWS) + "\n\n"
    "Magics: %token CHAIN ADDRESS..., %nft CHAIN ADDRESS..., %nft search TERM, %segment ID, %%segment_query.\n"
    "`%token?` and the like show the options and examples of each.",
    # The words of `login`, `connect` and `set` could hold a key that was typed in the wrong place.
    echo=False,
)

BY_MAGIC = {grammar.magic.lstrip("%"): grammar for grammar in (SEGMENT_QUERY, SEGMENT, TOKEN, NFT, NBEXT)}
