"""A notebook that asks, sees new data arrive, and asks again, without a restart."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from nbext.engine.ingest import remove
from nbext.notebook.session import current_session
from tests.notebook.kernels import running_kernel
from tests.notebook.shells import loaded_shell
from tests.service.process import serve

A, B, TOKEN = ("0x" + digits * 20 for digits in ("aa", "bb", "cc"))
HEADER = "token_address,from_address,to_address,value,transaction_hash,log_index,block_number\n"
COUNT = '%segment {"token": {"token": "UNI"}} --count'
HOLDERS = '%segment {"nft": {"nft": "' + TOKEN + '"}} --count'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("NBEXT_BASE_URL", raising=False)
    return tmp_path


def ingest(folder, *rows: str) -> None:
    """Ingest transfers as one does: by the command, in a process of its own."""
    path = folder / f"{len(rows)}.csv"
    path.write_text(HEADER + "".join(rows))
    command = [
        sys.executable,
        "-m",
        "nbext.cli",
        "ingest",
        str(path),
        "--chain",
        "ethereum",
        "--data",
    ]
    subprocess.run([*command, str(folder / "data")], check=True, capture_output=True)


def transfer(number: int, sender: str, recipient: str) -> str:
    return (
        f"{TOKEN},{sender},{recipient},{number},0x{number:02x}{'0' * 62},1,{18_000_000 + number}\n"
    )


def test_the_next_cell_answers_from_data_that_was_ingested_meanwhile_and_says_so(folder):
    zero = "0x" + "0" * 40
    with loaded_shell() as shell:
        assert shell.value(COUNT) == 1_002
        ingest(folder, transfer(1, zero, A))
        first = shell.run(HOLDERS)
        note = "nbext: new data: ethereum to block 18,000,001. The synthetic sample is not served any more."
        assert (first.value, first.printed.splitlines()[0]) == (1, note)
        ingest(folder, transfer(1, zero, A), transfer(2, zero, B))
        second = shell.run(HOLDERS)
        assert (second.value, second.printed.splitlines()[0]) == (
            2,
            "nbext: new data: ethereum to block 18,000,002.",
        )
        again = shell.run(HOLDERS)
        assert (again.value, "new data" in again.printed) == (2, False)
        remove(None, folder / "data")
        back = shell.run(COUNT)
        note = (
            "nbext: new data: ethereum to block 24,136,000, optimism to block 145,800,000, polygon to block "
            "81,000,000, base to block 40,200,000, arbitrum to block 416,500,000. "
            "It is the synthetic sample: the data before was removed."
        )
        assert (back.value, back.printed.splitlines()[0]) == (1_002, note)
        ingest(folder, transfer(1, zero, A))
        assert (shell.value(HOLDERS), shell.value(COUNT)) == (1, 0)


def test_rows_that_were_stored_before_the_data_changed_say_so(folder):
    zero, note = "0x" + "0" * 40, "note: These rows were stored before the data changed. "
    with loaded_shell() as shell:
        ingest(folder, transfer(1, zero, A))
        shell.run(HOLDERS.replace("--count", "-o rows"))
        name = shell.ip.user_ns["rows"].attrs["nbext"]["segment_id"]
        for way in (
            "--csv -o stored",
            "--json -o stored",
            f"--csv --to {folder}/stored.csv --overwrite",
        ):
            assert note not in shell.run(f"%segment {name} {way}").printed
        ingest(folder, transfer(1, zero, A), transfer(2, zero, B))
        for way in (
            "--csv -o stored",
            "--json -o stored",
            f"--csv --to {folder}/stored.csv --overwrite",
        ):
            assert note in shell.run(f"%segment {name} {way}").printed
        assert shell.ip.user_ns["stored"]["address"].tolist() == [A]
        assert note not in shell.run(HOLDERS).printed


@pytest.mark.slow
def test_status_shows_the_new_data_and_completion_forgets_the_symbols_of_the_old(folder):
    with loaded_shell() as shell:
        shell.run("%token ethereum UNI")
        ingest(folder, transfer(1, "0x" + "0" * 40, A))
        said = shell.run("%nbext status").printed
        assert "nbext: new data: ethereum to block 18,000,001." in said
        assert "data      ingested data\nchains    ethereum to block 18,000,001\n" in said
        assert current_session().vocabulary.symbols("token", "ethereum") == {}


@pytest.mark.slow
def test_a_service_of_ours_elsewhere_that_serves_new_data_is_noticed_by_its_answers(
    folder, monkeypatch
):
    data = folder / "data"
    ingest(folder, transfer(1, "0x" + "0" * 40, A))
    with serve(data) as running, loaded_shell() as shell:
        monkeypatch.setenv("NBEXT_BASE_URL", running.url)
        monkeypatch.setenv("NBEXT_API_KEY", running.key)
        assert shell.value(HOLDERS) == 1
        ingest(folder, transfer(1, "0x" + "0" * 40, A), transfer(2, "0x" + "0" * 40, B))
        until, printed, found = time.monotonic() + 60, "", 1
        while found == 1:
            assert time.monotonic() < until
            cell = shell.run(HOLDERS)
            printed, found = printed + cell.printed, cell.value
        # With the first answer of the new data, though that came before anybody could ask; or with the one before,
        # while which it came.
        assert printed.splitlines().count("nbext: new data: ethereum to block 18,000,002.") == 1
        assert "new data" not in shell.run(HOLDERS).printed


@pytest.mark.slow
def test_what_was_looked_up_before_is_of_the_new_data_too(folder):
    ingest(folder, transfer(1, "0x" + "0" * 40, A))
    look_up = f"%nft ethereum {TOKEN}"
    with loaded_shell() as shell:
        for number, wallet in ((1, None), (2, B)):
            if wallet:
                ingest(
                    folder, transfer(1, "0x" + "0" * 40, A), transfer(2, "0x" + "0" * 40, wallet)
                )
            for _ in range(2):
                found = shell.value(look_up)
                assert found["asOfBlock"].item() == 18_000_000 + number


@pytest.mark.slow
def test_a_notebook_asks_ingests_and_asks_again_without_a_restart(folder):
    """As people do it: the command in a cell of the notebook itself."""
    zero = "0x" + "0" * 40
    for number in (1, 2):
        rows = [
            transfer(n, zero, wallet)
            for n, wallet in zip(range(1, number + 1), (A, B), strict=False)
        ]
        (folder / f"day{number}.csv").write_text(HEADER + "".join(rows))
    holders = '%%segment_query wallets\n{"nft": {"nft": "' + TOKEN + '"}}'
    cells = [
        f"!{sys.executable} -m nbext.cli ingest {folder}/day{number}.csv --chain ethereum"
        for number in (1, 2)
    ]
    with running_kernel() as notebook:
        assert notebook.run('%segment {"token": {"token": "UNI"}} --count').error == ""
        for number, cell in enumerate(cells, start=1):
            ingested = notebook.run(cell)
            assert (
                "Services that run on this folder serve it within two seconds" in ingested.printed
            )
            asked = notebook.run(holders)
            assert (asked.error, asked.printed.splitlines()[0].partition(". ")[0].rstrip(".")) == (
                "",
                f"nbext: new data: ethereum to block 18,000,00{number}",
            )
            assert notebook.run("print(len(wallets))").printed == f"{number}\n"


def test_a_card_of_rows_from_before_the_data_came_says_that_its_conditions_are_counted_now(folder):
    zero = "0x" + "0" * 40
    held = '{"nft": {"nft": "' + TOKEN + '"}, "activity": {"transfers": {"min": 1}}}'
    ingest(folder, transfer(1, zero, A), transfer(2, zero, B))
    with loaded_shell() as shell:
        shell.run(f"import nbext\n%segment {held} --limit 1 -o rows")
        before = shell.value("nbext.show(rows).body()")
        assert ("was saved on other data" in before, "(of all 2 wallets)" in before) == (
            False,
            True,
        )
        ingest(folder, *(transfer(number, zero, f"0x{number:040x}") for number in range(3, 6)))
        shell.run(COUNT)
        segment = shell.value('rows.attrs["nbext"]["segment_id"]')
        now = shell.value("nbext.show(rows).body()")
        note = f"{segment} was saved on other data: all wallets that match now are taken."
        # How many have how much is of the rows, which are of the data before.
        assert (note in now, "(of the 1 rows here)" in now) == (True, True)
