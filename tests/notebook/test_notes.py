"""One table of what an answer says of itself: each note, in every way that the question can be asked."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import nbext
from nbext import cli
from nbext.client import Client
from nbext.core.untrusted_text import html
from nbext.errors import ValidationError
from nbext.notebook.forms.card import Card
from tests.notebook.shells import Shell, loaded_shell

ZERO, ONE, TWO, TOKEN = (f"0x{number:040x}" for number in (0, 5, 6, 0xC0))
HEADER = "token_address,from_address,to_address,value,transaction_hash,log_index,block_number,block_timestamp\n"

# Each note's beginning, and the question that it belongs to.
SAMPLE: dict[str, tuple[str, dict[str, Any]]] = {
    "cut": ("1,000 of 1,002 wallets", {"token": {"token": "UNI"}}),
    "left out": ("BAYC: the burn address", {"nft": {"nft": "BAYC"}}),
    "no window": (
        "/filters/transfer: no block of the data",
        {"transfer": {"token": "UNI", "after": "2035-01-01"}},
    ),
    "everybody": (
        "/filters/token/balance/min: 0 without max",
        {"token": {"token": "UNI", "balance": {"min": "0"}}},
    ),
    "nobody": (
        "No wallet matches. Each condition",
        {"token": {"token": "UNI", "balance": {"min": "999999999"}}, "nft": {"nft": "BAYC"}},
    ),
}
OWN: dict[str, tuple[str, dict[str, Any]]] = {
    "missing": (f"{TOKEN} on ethereum: transfers are missing", {"token": {"token": TOKEN}}),
    "wide": ("0x00000000_balance_raw or its sum", {"token": {"token": TOKEN}}),
}
_COUNTED = ("overlap", "funnel", "trend", "%nbext overlap")
NOT_SAID: dict[str, tuple[str, ...]] = {
    # A limit cuts neither a count nor an analysis, which is of all wallets. The card has "cut by the limit" beside
    # its rows.
    "cut": (
        *_COUNTED,
        *("count", "count in Python", "changes", "--changes", "concentration"),
        *("profile", "--profile", "card"),
    ),
    # Without rows there is nothing to measure, which is an error.
    "no window": ("concentration",),
    # The count in each cell says it; which condition leaves nobody is what a funnel is for.
    "nobody": (*_COUNTED, "changes", "--changes"),
    # A table without the column has nothing to say of it.
    "wide": (*_COUNTED, "count", "count in Python", "profile", "--profile"),
}


def in_python(
    client: Client, filters: dict[str, Any], folder: Path
) -> dict[str, Callable[[], Any]]:
    run = client.execute_segment
    segment_id = run(filters).attrs["nbext"]["segment_id"]
    return {
        "rows in Python": lambda: run(filters),
        "count in Python": lambda: run(filters, limit=0),
        "file in Python": lambda: run(filters, to=folder / "a.csv", overwrite=True),
        "export": lambda: client.export_csv(segment_id),
        "overlap": lambda: nbext.overlap([filters], client=client),
        "funnel": lambda: nbext.funnel(filters, client=client),
        "trend": lambda: nbext.trend(filters, every="1d", since="1d", client=client),
        "changes": lambda: nbext.changes(filters, "1d", client=client),
        "profile": lambda: nbext.profile(filters, client=client),
        "concentration": lambda: nbext.concentration(filters, client=client),
    }


def by_magics(filters: dict[str, Any], folder: Path) -> dict[str, str]:
    text = json.dumps(filters)
    return {
        "rows": f"t = %segment {text}",
        "named": f"%segment {text} -o t",
        "polars": f"t = %segment {text} --as polars",
        "count": f"t = %segment {text} --count",
        "file": f"%segment {text} --to {folder / 'b.csv'} --overwrite",
        "parquet": f"%segment {text} --type csv --to {folder / 'b.parquet'} --overwrite",
        "background": f"%segment {text} --bg -o job\nt = job.result(60)",
        "%nbext overlap": f"%nbext overlap {text} -o t",
        "--changes": f"%segment {text} --changes 1d -o t",
        "--profile": f"%segment {text} --profile -o t",
    }


def ways_that_say(
    shell: Shell, client: Client, said: str, filters: dict[str, Any], folder: Path
) -> dict[str, bool]:
    """Return each way of asking, and whether it says a note; in Python each note is one warning of a call."""
    ways = {}
    for way, ask in in_python(client, filters, folder).items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", nbext.AnswerWarning)
            with suppress(ValidationError):
                ask()
        notes = [str(one.message) for one in caught]
        assert len(notes) == len(set(notes)), way
        ways[way] = any(note.startswith(said) for note in notes)
    for way, cell in by_magics(filters, folder).items():
        lines = shell.run(cell).printed.splitlines()
        ways[way] = any(line.removeprefix("note: ").startswith(said) for line in lines)
    ways["card"] = html(said) in Card(client, client.execute_segment(filters)).body()
    return ways


def ingest(folder: Path) -> None:
    moves = ((1, ZERO, ONE, 10**60), (2, ZERO, TWO, 1), (3, TWO, ONE, 5))
    rows = [
        f"{TOKEN},{sender},{recipient},{amount},0x{block:064x},{block},{block},{1_700_000_000 + 86_400 * block}\n"
        for block, sender, recipient, amount in moves
    ]
    (folder / "moves.csv").write_text(HEADER + "".join(rows))
    made = cli.main(
        ["ingest", str(folder / "moves.csv"), "--data", str(folder / "data"), "--chain", "ethereum"]
    )
    assert made == 0


@pytest.mark.slow
@pytest.mark.parametrize("notes", [SAMPLE, OWN], ids=["sample", "own"])
def test_each_note_is_said_in_every_way_that_its_question_is_asked(notes, tmp_path, monkeypatch):
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path / "data"))
    if notes is OWN:
        ingest(tmp_path)
    with loaded_shell() as shell:
        client = nbext.connect()
        for name, (said, filters) in notes.items():
            ways = ways_that_say(shell, client, said, filters, tmp_path)
            silent = {way for way, is_said in ways.items() if not is_said}
            assert (name, silent) == (name, set(NOT_SAID.get(name, ())))
