"""Tasks as a new user tries them: the first natural try works, or its message names what does."""

from __future__ import annotations

import re

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.notebook.shells import loaded_shell

UNI = '{"token": {"token": "UNI"}}'
ADA, BOB = (f"0x{name:0>40}" for name in ("ada", "b0b"))
# What was tried; the cell; and what is in what it shows, in the order in which they run.
TASKS = (
    (
        "all rows in Python: a cut is said, with what to write",
        "import enum, pathlib, warnings\nimport nbext\nclient = nbext.connect()\n"
        "with warnings.catch_warnings(record=True, action='always') as told:\n"
        f"    client.execute_segment({UNI})\nprint(told[0].message)",
        '1,000 of 1,002 wallets; limit="all" fetches all',
    ),
    (
        "all rows by None, as in other libraries",
        f"whales = client.execute_segment({UNI}, limit=None)\nlen(whales)",
        "1002",
    ),
    (
        "all rows to a file, without --all",
        f"%segment {UNI} --to uni.csv",
        "1,000 of 1,002 wallets; --limit 0 counts, --all fetches\nuni.csv: 1,000 rows",
    ),
    ("an address book as a path", "%segment {{uni}} --count", "'uni' is not defined"),
    (
        "a colleague's list, pasted on one line",
        f'list(nbext.addresses("{ADA}, vitalik.eth,  {BOB} "))',
        f"['{ADA}',\n '{BOB}']",
    ),
    (
        "a list in a file, to leave out",
        f'pathlib.Path("allow.csv").write_text("name,address\\nada, {ADA}\\nada again,{ADA}\\n\\n")\n'
        '%segment {"token": {"token": "UNI"}, "not": {"wallet": {"in": "@allow.csv"}}} --count',
        "1002",
    ),
    (
        "the same list beside the conditions",
        '%segment {"token": {"token": "UNI"}, "exclude": "@allow.csv"} --count',
        "1002",
    ),
    (
        "the same list as who sent",
        '%segment {"transfer": {"token": "UNI", "direction": "in", "counterparty": "@allow.csv"}} --count',
        "0",
    ),
    (
        "the same list as a path of Python's",
        'allow = pathlib.Path("allow.csv")\n%segment {"wallet": {"in": {{allow}}}} --count',
        "]: 0",  # whichever number the cell has
    ),
    (
        "each wallet's share",
        '%segment {"token": {"token": "UNI"}, "columns": ["share"]} --limit 1',
        "share",
    ),
    (
        "who received, and how much",
        '%segment {"transfer": {"token": "UNI", "direction": "in"}, "columns": ["transferred"]} --limit 1',
        "transferred",
    ),
    ("what two of them hold", 'nbext.wallet(whales["address"].head(2))["address"].nunique()', "2"),
    ("an exact mean", 'whales["UNI_balance_raw"].head(2).mean() / 10**18', "994.5"),
    ("exact arithmetic", '(whales["UNI_balance_raw"] + 1).dtype', "decimal128(38, 0)"),
    ("a misspelt collection", "%nft search azuky", "Near: 'AZUKI'"),
    ("another", "%nft search bayk", "Near: 'BAYC'"),
    ("two words, misspelt", '%nft search "bored aep"', "Near: "),
    ("a search among tokens", "%token search usd --limit 1", "USDC"),
    ("as of a block, on the line", f"%segment {UNI} --as-of 24100000 --count", "999"),
    (
        "the largest",
        f"%segment {UNI} --top 3 --by UNI_balance",
        "3 of 1,002 wallets, those with the largest",
    ),
    ("the largest, by the only amount", f"%segment {UNI} --top 3", "3 of 1,002 wallets"),
    (
        "a trend from a day before the data",
        "%nbext trend UNI --since 2024-12-01 --every 30d",
        "this is all of it",
    ),
    ("weekly cohorts of a year", "%nbext retention UNI --by week", 'Write by="month"'),
    (
        "a token from an enum",
        "class Token(str, enum.Enum):\n    UNI = 'UNI'\n"
        '%segment {"token": {"token": {{Token.UNI}}}} --count',
        "1002",
    ),
    (
        "a condition from a variable, twice",
        'kind = "token"\n%segment {"token": {"token": "UNI"}, {{kind}}: {"token": "LINK"}}',
        "The key 'token' appears twice in one object",
    ),
    (
        "a name that its function has not set",
        "def ask(flag):\n    if flag:\n        name = 'LINK'\n"
        '    %segment {"token": {"token": {{name}}}}\nname = "UNI"\nask(False)',
        "'name' is a variable of ask, which has given it no value",
    ),
    ("an option beside another", f"%segment {UNI} --dry-run -o x", "nothing is stored"),
    ("another", f"%segment {UNI} --explain --bg", "--bg has no effect with --explain"),
    ("a list as a file's name", f'%segment {UNI} --to {{{{["a.csv"]}}}}', "is a list, where one"),
    ("help, late", f"%segment {UNI} --top 3 -h", "Usage: %segment ID"),
    ("as in JupySQL", f"%%segment_query res <<\n{UNI}", "%%segment_query res"),
    ("another", '%%segment_query\n{"token": {"token": "${v}"}}', "{{v}}, without quotes"),
    (
        "a huge exponent",
        '%%segment_query\n{"token": {"token": "UNI", "balance": {"min": 1e300000000}}}',
        "a number has too many digits",
    ),
    (
        "a table of payments of one's own",
        'pathlib.Path("paid.csv").write_text("src,dst,qty,day,txid\\n'
        f'{ADA},{BOB},1.5,31/12/2025,0x{"f" * 64}\\n")\n'
        "%nbext ingest paid.csv --chain base --token USDC --map from=src,to=dst,amount=qty,time=day,hash=txid "
        "--dry-run",
        "add --date-format",
    ),
    (
        "with its token in the map",
        "%nbext ingest paid.csv --chain base --map from=src,to=dst,amount=qty,time=day,hash=txid,token=USDC",
        "given by --token UNI",
    ),
    (
        "with its dates",
        "%nbext ingest paid.csv --chain base --token USDC --map from=src,to=dst,amount=qty,time=day,hash=txid "
        "--date-format %d/%m/%Y",
        "1 row read: 1 ERC20 transfer",
    ),
    ("what is there", "%nbext sources", "paid.csv: a table of transfers, by time, 1 row, base"),
    ("who was paid", '%segment {"token": {"token": "USDC"}, "chain": "base"} --count', "1"),
    ("and back", "%nbext remove --all", "the sample is served in its place"),
    ("on the sample again", f"%segment {UNI} --count", "1002"),
)


@pytest.fixture
def shell(tmp_path_factory, monkeypatch):
    # Not tmp_path, which is removed before IPython ends its history.
    home = tmp_path_factory.mktemp("home")
    monkeypatch.chdir(home)
    for name in ("IPYTHONDIR", "NBEXT_DATA_DIR"):
        monkeypatch.setenv(name, str(home / name))
    for name in ("NBEXT_BASE_URL", "NBEXT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with loaded_shell() as made:
        yield made
    InteractiveShell.clear_instance()


@pytest.mark.slow
def test_the_first_natural_try_works_or_its_message_names_what_does(shell):
    failed = []
    for task, cell, expected in TASKS:
        ran = shell.run(cell)
        shown = re.sub(r"\x1b\[[0-9;]*m", "", ran.printed + ran.shown_error)
        if expected not in shown:
            failed.append(f"{task}:\n{cell}\n-> {shown[-600:]}")
    assert not failed, "\n\n".join(failed)
