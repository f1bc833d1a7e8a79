"""The page of magics: what ``?`` shows, for a reader without a kernel."""

from __future__ import annotations

from nbext.notebook.line import HELP, Grammar
from nbext.notebook.run.query import SEGMENT_QUERY
from nbext.notebook.run.root import COMMANDS, MAGICS, TOUR
from tests.reference import table
from tests.reference.shown import output, sample, transcript

_UNI = '%segment {"token": {"token": "UNI"}}'
_NOTHING = "0x0000000000000000000000000000000000000001"
# Cells that use each option of a magic once, in the order in which they run; the commands of %nbext have their own.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "%%segment_query": (
        *SEGMENT_QUERY.examples,
        "%%segment_query --run-corrected --count\n{'token': {'token': 'UNI'}}  # who holds UNI",
    ),
    "%segment": (
        f"{_UNI} --limit 2",
        f"{_UNI} --top 2 --by UNI_balance",
        f"{_UNI} --top 2",
        f"{_UNI} --exclude burn,0x6666e05de11085c070d5edb7838bc2bf975fb1df --count",
        f"{_UNI} --count",
        '%segment {"token": {"token": "USDC"}} --chain polygon --as-of 30d --columns firstSeen,lastSeen --limit 2',
        '%segment {"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}} --operator OR --count',
        f"{_UNI} --all -o everyone",
        '%segment {{everyone.attrs[\'nbext\'][\'segment_id\']}} -o known\nknown[["status", "chain", "matched"]]',
        "%segment {{everyone.attrs['nbext']['segment_id']}} --json -o rows",
        "%segment {{everyone.attrs['nbext']['segment_id']}} --csv -o rows",
        f"{_UNI} --limit 3 --type csv -o few",
        f"{_UNI} --all --to holders.csv",
        f"{_UNI} --all --to holders.csv --overwrite --raw",
        f"{_UNI} --limit 1 --as polars",
        f"{_UNI} --changes 30d -o moved",
        f'{_UNI} --profile -o more\nmore[["symbol", "wallets", "share", "base_share", "lift"]].head(2)',
        f'{_UNI} --all --payout "1000000 UNI proportional at_least=1" -o claims',
        f"{_UNI} --dry-run",
        f"{_UNI} --explain",
        f"job = {_UNI} --limit 3 --bg\nlen(job.result())",
        "%nbext save holders",
        "%segment --from holders --count",
        "%segment {'token': {'token': 'UNI'}} --run-corrected --count",
        f"{_UNI} --all --card",
        f"{_UNI} --all --explore",
        f"{_UNI} --all --page holders.html",
        "%segment --help",
    ),
    "%token": (
        '%token ethereum USDC UNI -o tokens\ntokens[["symbol", "name", "decimals", "holders"]]',
        "%token ethereum {{tokens['address']}} --refresh -o tokens",
        f"%token ethereum UNI {_NOTHING} -o two",
        f"%token ethereum UNI {_NOTHING} --strict",
        '%token search usd --chain ethereum --limit 2 --offset 1 -o found\nfound[["symbol", "name"]]',
        "%token ethereum USDC UNI --to tokens.csv",
        "%token ethereum USDC UNI --to tokens.csv --overwrite --raw",
        "tokens = %token ethereum USDC UNI --as arrow\ntokens.num_rows",
        "%token ethereum UNI --card",
        "%token ethereum USDC UNI --explore",
        "%token ethereum USDC UNI --page tokens.html",
        "%token --help",
    ),
    "%nft": (
        '%nft ethereum BAYC -o bayc\nbayc[["symbol", "name", "tokenType", "ownerCount"]]',
        '%nft search "bored ape" -o found\nfound[["name", "address", "ownerCount"]]',
        '%nft search usd --chain base --type token --limit 2 --offset 1 -o found\nfound[["name", "address", "symbol"]]',
        "%nft ethereum BAYC --refresh -o bayc",
        f"%nft ethereum BAYC {_NOTHING} --strict",
        "%nft ethereum BAYC MAYC --to collections.csv",
        "%nft ethereum BAYC MAYC --to collections.csv --overwrite --raw",
        "bayc = %nft ethereum BAYC --as polars\nbayc.shape",
        "%nft ethereum BAYC --card",
        "%nft ethereum BAYC MAYC --explore",
        "%nft ethereum BAYC MAYC --page collections.html",
        "%nft --help",
    ),
}
ELSEWHERE = tuple(line for command in COMMANDS.values() for line in command.elsewhere)

# How each file that --to writes is read without rounding: by pandas, DuckDB, polars and Spark. A test runs the code.
READERS = {
    ".csv": (
        'pd.read_csv("whales.csv", dtype={"UNI_balance_raw": pd.ArrowDtype(pa.decimal128(38, 0))})',
        """duckdb.sql("FROM read_csv('whales.csv', types={'UNI_balance_raw': 'DECIMAL(38,0)'})")""",
        'pl.read_csv("whales.csv", schema_overrides={"UNI_balance_raw": pl.Decimal(38, 0)})',
        'spark.read.csv("whales.csv", header=True, schema="address STRING, UNI_balance DOUBLE, '
        'UNI_balance_raw DECIMAL(38,0)")',
    ),
    ".json": (
        'pd.read_json("whales.json", dtype={"UNI_balance_raw": str})',
        """duckdb.sql("FROM 'whales.json'")""",
        'pl.read_json("whales.json")',
        'spark.read.json("whales.json", multiLine=True)',
    ),
    ".parquet": (
        'pd.read_parquet("whales.parquet", dtype_backend="pyarrow")',
        """duckdb.sql("FROM 'whales.parquet'")""",
        'pl.read_parquet("whales.parquet")',
        'spark.read.parquet("whales.parquet")',
    ),
}
_READING = (
    "\n## Exact amounts\n\n"
    "`UNI_balance_raw` is a column of exact integers, of any size.\n\n"
    "| what pandas does with it | |\n|---|---|\n"
    "| exactly | `+`, `-`, `*`, `//`, `%`, comparisons, `isin`, `cumsum`, `diff`, `sum`, `min`, `max`, `rank`, "
    "`sort_values`, `groupby(...).sum()` |\n"
    "| as floats | `/`, `mean`, `median`, `quantile`, `std`; of groups all but `quantile` |\n"
    "| as Python's integers | one value, `for`, `tolist`, `map`, `apply`; of all `astype(object)` |\n"
    "| up to 64 bits | `astype(int)` |\n"
    "| as Decimals, which compute with 28 digits | `np.asarray`, `np.dot`: begin with `.astype(object)` |\n"
    "| refused | `nlargest` and `nsmallest`: write `.sort_values().head()`; `describe()`, `plot.hist`, "
    "`interpolate` and `np.log`: take `UNI_balance`, or `.astype(float)`; `prod`: take "
    "`.astype(object)`; `cumsum` and `rank` of groups: write `.transform(lambda one: one.cumsum())` |\n\n"
    "A column that pandas itself has read from a file is one of Arrow's decimals: begin with `.map(int)`. Where a "
    "value or the sum has more than 76 digits the column is text, with a warning, and `.map(int)` comes first, too.\n\n"
    "A file that `--to` wrote is read back exactly as below. Without its type, the column is a float in DuckDB "
    "over CSV and in `pd.read_json`; DuckDB's `.df()` makes it float64 even with it: take `.pl()` or `.arrow()`. "
    "JSON has it as text. For more than 38 digits, read CSV with the type `str` (DuckDB: `VARCHAR`, polars: "
    "`pl.String`, Spark: `STRING`).\n\n"
)


def cells(magic: str) -> tuple[str, ...]:
    """Return the cells that show what a magic does."""
    if magic == "%nbext":
        return tuple(cell for command in COMMANDS.values() for cell in command.examples)
    return EXAMPLES[magic]


def page() -> str:
    """Return the page: each magic's purpose, usage, options and examples, and the commands of ``%nbext``."""
    return (
        "# Magics\n\n"
        "Load them with `%load_ext nbext`. Options go on the first line, in any order. `--help`, or a question "
        "mark after the magic, shows the same text in a notebook. Below its options is an example of each, with what "
        "it shows over the sample; `...` ends what is longer. A form, a card, a chart and `--explore` show pictures: "
        "the notebook 04_forms has them.\n"
        + "".join(_section(grammar) for grammar, _ in MAGICS.values())
        + _READING
        + table(
            ["file", "pandas", "DuckDB", "polars", "Spark"],
            [[f"`{end}`", *(f"`{code}`" for code in codes)] for end, codes in READERS.items()],
        )
    )


def _section(grammar: Grammar) -> str:
    notes = "" if grammar.magic == "%nbext" else grammar.notes.replace("\n", " ") + "\n\n"
    commands = "" if grammar.magic != "%nbext" else _commands()
    options = [
        [f"`{of}{option.spelling}`", option.help]
        for of, one in (
            *((f"{one.magic} ", one) for one in grammar.commands.values()),
            ("", grammar),
        )
        for option in one.options
    ]
    options.append([f"`{HELP.spelling}`", HELP.help])
    return (
        f"\n## {grammar.magic}\n\n{grammar.purpose}\n\n    {grammar.usage}\n\n{notes}{commands}"
        f"{table(['option', 'what it does'], options)}\n{_examples(grammar.magic)}"
    )


def _examples(magic: str) -> str:
    with sample() as shell:
        shown = transcript((cell, output(shell, cell)) for cell in cells(magic))
    if magic == "%%segment_query":
        return (
            f"{shown}\nIts other options are those of `%segment`, which has an example of each.\n"
        )
    if magic != "%nbext":
        return shown
    return (
        f"{shown}\nThese need a key, a service of somebody else or a node, and show nothing here:\n\n"
        + transcript((line, "") for line in ELSEWHERE)
    )


def _commands() -> str:
    rows = [[f"`{one.usage}`", one.purpose] for one in COMMANDS.values()]
    steps = "".join(f"{number}. {what}: `{line}`\n" for number, (what, line) in enumerate(TOUR, 1))
    return (
        f"Five things to try, in this order:\n\n{steps}\n"
        + table(["command", "what it does"], rows)
        + "\n"
    )
