"""The page of magics: what ``?`` shows, for a reader without a kernel."""

from __future__ import annotations

from nbext.notebook.line.grammars import BY_MAGIC, COMMANDS, TOUR
from nbext.notebook.line.options import HELP, Grammar
from tests.reference import table

# How each file that --to writes is read without rounding: by pandas, DuckDB and polars. A test runs the code.
READERS = {
    ".csv": (
        'pd.read_csv("whales.csv", dtype={"UNI_balance_raw": pd.ArrowDtype(pa.decimal128(38, 0))})',
        """duckdb.sql("FROM read_csv('whales.csv', types={'UNI_balance_raw': 'DECIMAL(38,0)'})")""",
        'pl.read_csv("whales.csv", schema_overrides={"UNI_balance_raw": pl.Decimal(38, 0)})',
    ),
    ".json": (
        'pd.read_json("whales.json", dtype={"UNI_balance_raw": str})',
        """duckdb.sql("FROM 'whales.json'")""",
        'pl.read_json("whales.json")',
    ),
    ".parquet": (
        'pd.read_parquet("whales.parquet", dtype_backend="pyarrow")',
        """duckdb.sql("FROM 'whales.parquet'")""",
        'pl.read_parquet("whales.parquet")',
    ),
}
_READING = (
    "\n## Exact amounts\n\n"
    "`UNI_balance_raw` is a decimal column. In pandas `sum`, `min`, `max`, `groupby(...).sum()` and `sort_values` are "
    "exact, and it compares with a `Decimal`. `nlargest`, `cumsum`, `describe`, `/ 10**18` and a comparison with an "
    "integer beyond 64 bits fail, and `median` is a float: sort, take `UNI_balance`, or take Python's integers with "
    "`.map(int)`. Where a value or the sum has more than 76 "
    "digits it is text, with a warning, and `.map(int)` comes first.\n\n"
    "A file that `--to` wrote is read back exactly as below. Without its type, the column is a float in DuckDB "
    "over CSV and in `pd.read_json`; DuckDB's `.df()` makes it float64 even with it: take `.pl()` or `.arrow()`. "
    "JSON has it as text. For more than 38 digits, read CSV with the type `str` (DuckDB: `VARCHAR`, polars: "
    "`pl.String`).\n\n"
)


def page() -> str:
    """Return the page: each magic's purpose, usage, options and examples, and the commands of ``%nbext``."""
    return (
        "# Magics\n\n"
        "Load them with `%load_ext nbext`. Options go on the first line, in any order. `--help`, or a question "
        "mark after the magic, shows the same text in a notebook.\n"
        + "".join(_section(grammar) for grammar in BY_MAGIC.values())
        + _READING
        + table(["file", "pandas", "DuckDB", "polars"], [[f"`{end}`", *(f"`{code}`" for code in codes)]
                                                         for end, codes in READERS.items()])
    )


def _section(grammar: Grammar) -> str:
    notes = "" if grammar.magic == "%nbext" else grammar.notes.replace("\n", " ") + "\n\n"
    commands = "" if grammar.magic != "%nbext" else _commands()
    examples = "\n\n".join(grammar.examples)
    options = [[f"`{option.spelling}`", option.help] for option in (*grammar.options, HELP)]
    return (
        f"\n## {grammar.magic}\n\n{grammar.purpose}\n\n    {grammar.usage}\n\n{notes}{commands}"
        f"{table(['option', 'what it does'], options)}\n```text\n{examples}\n```\n"
    )


def _commands() -> str:
    rows = [[f"`%nbext {name} {follows}`".replace(" `", "`"), line] for name, (follows, line) in COMMANDS.items()]
    steps = "".join(f"{number}. {what}: `{line}`\n" for number, (what, line) in enumerate(TOUR, 1))
    return f"Five things to try, in this order:\n\n{steps}\n" + table(["command", "what it does"], rows) + "\n"
