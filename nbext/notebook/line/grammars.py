"""What each magic takes: purpose, options and examples. ``?``, ``--help``, parsing and completion read this."""

from __future__ import annotations

from nbext.core.operations import FILE_TYPES, OPERATORS, SEARCH_TYPES
from nbext.notebook.line.options import Grammar, Option

_OUT = Option(("--out", "-o"), "keep the result in this variable", "text", "NAME")
_TO = Option(("--to",), "write the result to a .csv, .json or .parquet file", "text", "FILE")
_OVERWRITE = Option(("--overwrite",), "let --to replace a file")
_RAW = Option(("--raw",), "let --to write texts that a spreadsheet would run as formulas as they are")
_FRAMES = ("pandas", "polars", "arrow")
_AS = Option(("--as",), "the kind of table (default: the setting `frame`)", "text", choices=_FRAMES)
_RESULT = (_OUT, _TO, _OVERWRITE, _RAW, _AS)

_QUERY = (
    Option(("--operator",), "how the filters' keys are joined (default AND)", "text", choices=OPERATORS),
    Option(("--limit",), "rows to keep, the first by address; 0 only counts", "integer", "N"),
    Option(("--all",), "keep every row, up to 1,000,000"),
    Option(("--count",), "only count the wallets that match"),
    Option(("--type",), "the service's file type (default json)", "text", choices=FILE_TYPES),
    Option(("--dry-run",), "show the request and check it, without running it"),
    Option(("--explain",), "show the segment in words, its SQL and the engine's plan"),
    Option(("--bg",), "run in the background; the result is a handle: .status, .result(), .cancel()"),
    Option(("--from",), "run the query saved under this name (`%nbext save NAME`)", "text", "NAME"),
    Option(("--card",), "show the result as a card"),
)

SEGMENT_QUERY = Grammar(
    "%%segment_query",
    "Run the segment whose filters are the cell, as JSON; the wallets come as a DataFrame.",
    "%%segment_query [NAME] [options]",
    (*_QUERY, *_RESULT),
    (
        '%%segment_query holders --limit 500\n{"token": {"token": "USDC", "balance": {"min": "1000"}}}',
        '%%segment_query --operator OR --count\n{"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}}',
        '%%segment_query --dry-run\n'
        '{"token": {"token": "USDC", "balance": {"min": {{str(10 ** 3)}}}}, "not": {"nft": {"nft": "BAYC"}}}',
    ),
    "NAME keeps the result in that variable; without it the result is shown. The cell is the filters, or a whole\n"
    "request ({\"operator\": ..., \"filters\": ...}). {{expression}} puts a Python value into the JSON.\n"
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
    Option(("--strict",), "an address that the service does not know is an error, not a row of nulls"),
    Option(("--refresh",), "ask anew for what was asked before"),
)

TOKEN = Grammar(
    "%token",
    "Read the metadata of ERC20 tokens: one row for each address or symbol, in the order asked.",
    "%token CHAIN ADDRESS... [options]",
    (*_METADATA, *_RESULT),
    ("%token ethereum USDC", "%token ethereum USDC UNI -o tokens", "%token ethereum {{tokens['address']}}"),
    "A word that is a Python variable holding a list or a column of addresses stands for them; {{expression}}\n"
    "always does. Quotes keep a word a word.",
)

NFT = Grammar(
    "%nft",
    "Read the metadata of NFT collections, or search them by name.",
    "%nft CHAIN ADDRESS... [options]   or   %nft search TERM [--chain CHAIN] [options]",
    (
        Option(("--chain",), "where to search (default: the setting `chain`)", "text", "CHAIN"),
        Option(("--type",), "what to search (default nft)", "text", choices=SEARCH_TYPES),
        Option(("--limit",), "hits to return, 1 to 100 (default 20)", "integer", "N"),
        Option(("--offset",), "hits to pass over", "integer", "N"),
        *_METADATA,
        *_RESULT,
    ),
    ("%nft ethereum BAYC", '%nft search "bored ape"', "%nft search punk --chain ethereum --limit 5 -o found"),
)

# subcommand -> (what follows it, what it does)
COMMANDS = {
    "status": ("", "which service answers, whose data it is, as of which block, and the versions"),
    "connect": ("[URL]", "connect to a service, or anew to the one that is set; reads pyproject.toml again"),
    "login": ("[--keep]", "type the key of a remote service at a prompt; --keep puts it into the keyring"),
    "logout": ("", "forget the key"),
    "set": ("NAME VALUE", "set a setting for this session"),
    "unset": ("NAME", "take back what was set for this session"),
    "config": ("", "every setting, its value, and where it came from"),
    "history": ("[N]", "this session's queries; with a number, run that one again"),
    "save": ("NAME [N]", "save the last query (or query N) for `%%segment_query --from NAME`"),
    "schema": ("[CONDITION]", "the conditions of the segment language, or the fields of one"),
    "search": ("[TERM]", "a form that searches collections and tokens"),
    "signup": ("", "a form that signs up for the newsletter"),
    "build": ("", "a form that builds a segment"),
    "help": ("", "this help"),
}
_ROWS = [(f"%nbext {name} {follows}".rstrip(), line) for name, (follows, line) in COMMANDS.items()]

NBEXT = Grammar(
    "%nbext",
    "See and set what the other magics use, and open forms.",
    "%nbext COMMAND",
    (
        Option(("--keep",), "with login: keep the key in the system's keyring"),
        _OUT,
    ),
    ("%nbext status", "%nbext config", "%nbext schema token"),
    "Commands:\n" + "\n".join(f"  {left:<28}{line}" for left, line in _ROWS) + "\n\n"
    "Magics: %token CHAIN ADDRESS..., %nft CHAIN ADDRESS..., %nft search TERM, %segment ID, %%segment_query.\n"
    "Each shows its options and examples by `?`, such as `%token?`.",
    # The words of `login`, `connect` and `set` could hold a key that was typed in the wrong place.
    echo=False,
)

BY_MAGIC = {grammar.magic.lstrip("%"): grammar for grammar in (SEGMENT_QUERY, SEGMENT, TOKEN, NFT, NBEXT)}
