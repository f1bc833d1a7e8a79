"""A data scientist's questions of the sample, as cells in a notebook that has asked before: how long each takes.

The answers are checked against plain pandas by `tests/end_to_end/test_answers.py`; this measures the same cells. Each
runs in one new shell, some times; a list of wallets has other strangers in it each time, so that it is sent anew.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.benchmarks.measure import Took, apart, median
from tests.benchmarks.table import Row

WHALES = """%%segment_query whales --all
{"token": {"token": "UNI", "balance": {"min": {{least}}}}, "nft": {"nft": "BAYC"},
 "transfer": {"direction": "out", "token": "USDC", "after": "30d"}}"""
LARGEST = '%segment {"token": {"token": "UNI", "balance": {"min": {{least}}}}} --top 100 --by UNI_balance -o top'
ALLOWED = '%%segment_query allowed --all\n{"wallet": {"in": {{allow.address}}}, "token": {"token": "UNI"}}'
MONTHS = """%segment {"nft": {"nft": "BAYC", "count": {"max": {{least}}}}, "columns": ["firstSeen"]} --all -o holders
pd.to_datetime(holders["firstSeen"], utc=True).dt.strftime("%Y-%m").value_counts().sort_index()"""
TOKENS = "{one: held_by(one) for one in symbols}"
HOLDERS = """def held_by(s):
    return get_ipython().run_cell_magic("segment_query", "--count",
        '{"token": {"token": {{s}}, "balance": {"min": {{least}}}}}')"""


def allowed(length: int) -> Callable[[dict[str, Any]], None]:
    """Return what makes a list of so many wallets, some of which hold UNI."""

    def make(names: dict[str, Any]) -> None:
        import pandas as pd

        strangers, members = os.urandom(20 * length).hex(), list(names["members"])
        more = ["0x" + strangers[at : at + 40] for at in range(0, 40 * (length - len(members)), 40)]
        names["allow"] = pd.DataFrame({"address": [*more, *members]})

    return make


def _nothing(names: dict[str, Any]) -> None:
    """Need nothing beside the names that all have."""


STORIES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "whales of UNI that hold BAYC and sent USDC in 30 days": (_nothing, WHALES),
    "the 100 largest holders of UNI": (_nothing, LARGEST),
    "UNI holders of an allow-list of 50,000": (allowed(50_000), ALLOWED),
    "UNI holders of an allow-list of 2,000,000": (allowed(2_000_000), ALLOWED),
    "the months in which the holders of BAYC were first seen": (_nothing, MONTHS),
    "the holders of 20 tokens, by a Python function with a cell": (_nothing, TOKENS),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stories``."""
    parser.add_argument("--rounds", type=int, default=5)


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each question."""
    with tempfile.TemporaryDirectory() as home:
        for question, took in apart(told, home, args.rounds).items():
            yield Row(f"on the sample, a cell: {question}", took)


def told(home: str, rounds: int) -> dict[str, Took]:
    """Return what each question takes, in this new process; the first round of each is not counted."""
    for name in [name for name in os.environ if name.startswith("NBEXT_")]:
        del os.environ[name]
    os.environ |= {"HOME": home, "NBEXT_DATA_DIR": f"{home}/data", "NBEXT_PROGRESS": "false"}
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()

    def run(cell: str) -> float:
        began = time.perf_counter()
        with capture_output():
            ran = shell.run_cell(cell)
        ran.raise_error()
        return time.perf_counter() - began

    run("%load_ext nbext\nimport pandas as pd\n" + HOLDERS)
    run('members = %segment {"token": {"token": "UNI"}} --all\nmembers = members["address"][::2]')
    run(
        'symbols = %nft search "" --type token --chain ethereum --limit 20\nsymbols = symbols["address"]'
    )
    found = {}
    for question, (prepare, cell) in STORIES.items():
        taken = []
        for number in range(rounds + 1):
            prepare(shell.user_ns)
            # Another query each time: the service stores the answers.
            shell.user_ns["least"] = number + 1
            taken.append(run(cell))
        found[question] = median(taken[1:])
    run("%unload_ext nbext")
    return found
