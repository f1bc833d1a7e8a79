"""nbext runs where the names that only POSIX systems have are absent, as on Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import requests

ROOT = Path(__file__).parents[1]
ROWS = (
    "token_address,from_address,to_address,value,transaction_hash,log_index,block_number,block_timestamp\n"
    f"0x{1:040x},0x{0:040x},0x{2:040x},5,0x{7:064x},0,100,1600000000\n"
)
IN_A_NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "nbext")
shell.run_cell_magic("segment_query", "kept --limit 2", '{"token": {"token": "UNI"}}')
print(len(shell.user_ns["kept"]), "rows")
"""
# The system's name is set last: pathlib looks at it.
A_PORT = """
import os, socket
from nbext.service.server import listen
os.name = ARGS[0]
print(listen("127.0.0.1", 0).getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR))
"""
IN_A_SHELL = "from nbext.cli import main; raise SystemExit(main(ARGS))"


def command(code: str, *words: object) -> list[str]:
    return [sys.executable, "-m", "tests.without_posix", code, *map(str, words)]


def run(tmp_path: Path, code: str, *words: object) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "share")}
    return subprocess.run(
        command(code, *words), capture_output=True, text=True, cwd=ROOT, env=env, check=False
    )


@pytest.mark.slow
def test_a_notebook_loads_the_extension_and_asks_a_question(tmp_path):
    ran = run(tmp_path, IN_A_NOTEBOOK)
    assert (ran.returncode, ran.stdout.splitlines()[-1:]) == (0, ["2 rows"]), ran.stderr


@pytest.mark.slow
def test_files_are_ingested_and_then_served(tmp_path):
    (tmp_path / "transfers.csv").write_text(ROWS)
    data = tmp_path / "data"
    words = ("ingest", tmp_path / "transfers.csv", "--chain", "ethereum", "--data", data)
    ingested = run(tmp_path, IN_A_SHELL, *words)
    assert ingested.returncode == 0, ingested.stderr
    env = {**os.environ, "NBEXT_API_KEY": "k" * 32}
    serving = command(IN_A_SHELL, "serve", "--port", 0, "--data", data)
    with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env) as service:
        try:
            url = next(word for word in service.stdout.readline().split() if "://" in word)
            answer = requests.post(
                f"{url}/v1/segment/execute",
                headers={"x-api-key": "k" * 32, "Prefer": "wait=30"},
                json={
                    "filters": {"nft": {"nft": f"0x{1:040x}"}},
                    "limit": 10,
                    "operator": "AND",
                    "fileType": "json",
                },
                timeout=60,
            ).json()
        finally:
            service.terminate()
    assert (answer.get("counts"), service.returncode) == ({"matched": 1, "returned": 1}, 0), answer


@pytest.mark.slow
def test_several_processes_on_one_port_are_refused_in_one_line(tmp_path):
    ran = run(tmp_path, IN_A_SHELL, "serve", "--processes", 2, "--data", tmp_path / "data")
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (
        2,
        "ConfigError: Windows cannot share a port among --processes: leave the option out.",
    )


@pytest.mark.slow
def test_a_port_is_not_shared_with_another_service_on_windows_nor_waited_for_elsewhere(tmp_path):
    # There that option has two services listen on one port.
    found = {name: run(tmp_path, A_PORT, name) for name in ("nt", "posix")}
    assert {name: ran.stdout for name, ran in found.items()} == {"nt": "0\n", "posix": "1\n"}, found
