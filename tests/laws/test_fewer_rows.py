"""Fewer rows never make an answer more complete: where transfers are missing, every way of asking says so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import nbext
from nbext import Client, cli
from nbext.engine.open import open_dataset
from nbext.settings import Settings
from tests.oracle.world import ZERO
from tests.service.conftest import KEY, Running

TOKEN = f"0x{0xC0:040x}"
ONE, TWO, THREE = (f"0x{number:040x}" for number in (5, 6, 7))
# Block, sender, recipient, amount: nobody sends what did not come to him.
WHOLE = [
    (1, ZERO, ONE, 10),
    (2, ONE, TWO, 6),
    (3, ZERO, ONE, 20),
    (4, TWO, THREE, 5),
    (5, ONE, THREE, 1),
]


@dataclass
class Asked:
    """A service over some transfers, and what ingest printed of them."""

    client: Client
    printed: str


@pytest.fixture
def serve(tmp_path, capsys):
    """Ingest transfers, and serve them."""
    open_now: list[Any] = []

    def make(name: str, moves: list[tuple[int, str, str, int]]) -> Asked:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "pyproject.toml").write_text("")
        ingest(folder, moves)
        service = Running(folder / "data", folder / "state", dataset=open_dataset(folder / "data"))
        client = Client(service.url, KEY, settings=Settings(environ={}, folder=folder))
        open_now.extend([client.close, service.stop])
        return Asked(client, capsys.readouterr().out)

    yield make
    for close in open_now:
        close()


def ingest(folder: Path, moves: list[tuple[int, str, str, int]]) -> None:
    rows = [
        f"{TOKEN},{sender},{recipient},{amount},0x{block:064x},{block},{block},{1_700_000_000 + 3600 * block}"
        for block, sender, recipient, amount in moves
    ]
    header = "erc20,from_address,to_address,value,transaction_hash,log_index,block_number,timestamp"
    (folder / "moves.csv").write_text("\n".join([header, *rows]) + "\n")
    words = ["ingest", str(folder / "moves.csv"), "--chain", "ethereum"]
    assert cli.main([*words, "--data", str(folder / "data"), "--quiet"]) == 0


def notes(client: Client) -> dict[str, bool]:
    """Return, for each way of asking for the token's holdings, whether it says that transfers are missing."""
    held = {"token": TOKEN, "unit": "raw"}
    asked = {
        "holders": {"token": held},
        "as of a block": {"token": held, "asOf": 2},
        "held since": {"token": {**held, "heldSince": 2}},
        "who has none": {"not": {"token": held}},
        "with a bound": {"token": {**held, "balance": {"min": "1"}}},
    }
    tables = {name: client.execute_segment(one, limit=100) for name, one in asked.items()}
    tables["of a wallet"] = nbext.wallet([ONE, TWO, THREE], client=client)
    tables["concentration"] = nbext.concentration(TOKEN, client=client)
    tables["profile"] = nbext.profile({"activity": {"transfers": {"min": 1}}}, client=client)
    tables["trend"] = nbext.trend(TOKEN, every="1h", since="1h", client=client)
    return {
        name: any(
            "are missing" in note or "below zero" in note
            for note in table.attrs["nbext"]["warnings"]
        )
        for name, table in tables.items()
    }


@pytest.mark.slow
def test_where_a_transfer_to_a_wallet_is_missing_that_it_spent_every_answer_says_so(serve):
    whole = serve("whole", WHOLE)
    assert not any(notes(whole.client).values())
    assert "below zero" not in whole.printed
    for lacks in (0, 1):
        fewer = serve(f"without-{lacks}", [*WHOLE[:lacks], *WHOLE[lacks + 1 :]])
        said = notes(fewer.client)
        assert all(said.values()), (lacks, said)
        assert "below zero" in fewer.printed
