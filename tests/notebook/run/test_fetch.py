"""`%nbext fetch`: the command's words in a notebook, a bar, Ctrl-C, and no URL in a cell or in what it prints."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import threading

import pytest

from nbext.core.addresses import checksummed
from tests.keyrings import Ring
from tests.node.faults import COIN, ITEMS, KEY, Chain, FaultNode
from tests.node.refusals import RANGES
from tests.notebook.kernels import running_kernel
from tests.notebook.shells import loaded_shell

CHAIN = Chain(90)
FETCH = f"%nbext fetch --contract {COIN} --to-block latest"


def shown(ran):
    """Everything that a cell sent."""
    return f"{ran.messages}{ran.reply}"


@pytest.mark.slow
def test_a_cell_fetches_shows_a_bar_and_the_next_cell_answers_from_it(tmp_path):
    slow = threading.Event()
    # Each answer so late that a bar appears.
    with (
        FaultNode(CHAIN, refuse=lambda method, params: slow.wait(0.02) or None) as server,
        running_kernel(
            NBEXT_RPC_URL=server.url, NBEXT_DATA_DIR=str(tmp_path), NBEXT_PROGRESS="true"
        ) as kernel,
    ):
        ran = kernel.run(
            f"coin = '{COIN}'\n%nbext fetch --contract {{{{coin}}}} --to-block latest --in-flight 1"
        )
        assert ran.error == ""
        assert ran.printed.splitlines() == [
            f"COIN ({checksummed(COIN)}): blocks 1 to 90.",
            f"{sum(log['address'] == COIN for logs in CHAIN.logs.values() for log in logs):,} new transfers are "
            "ingested. Services that run on this folder serve them within two seconds.",
            f"COIN ({checksummed(COIN)}): 20 of 20 balances equal the chain's at block 90.",
        ]
        assert [one["data"] for one in ran.of("display_data")] == [{}]
        drawn, *_, last = (one["data"] for one in ran.of("update_display_data"))
        assert drawn["text/plain"].startswith("fetch: ")
        # It goes, and leaves nothing of any type.
        assert last == {}
        counted = kernel.run(
            '%segment {"token": {"token": "COIN", "balance": {"min": "1"}, "unit": "raw"}} --count'
        )
        assert counted.of("execute_result")[0]["data"]["text/plain"] == str(
            sum(amount > 0 for amount in CHAIN.balances.values())
        )
    assert KEY not in shown(ran)
    assert str(server.server.server_port) not in shown(ran)


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_whole_and_the_same_line_goes_on_from_there(tmp_path):
    reached, free = threading.Event(), threading.Event()

    def refuse(method, params):
        if method == "eth_getLogs":
            first, last = (int(params[0][name], 16) for name in ("fromBlock", "toBlock"))
            if last - first >= 10:
                return RANGES[0]
            if first > 40 and not free.is_set():
                reached.set()
                free.wait(60)
        return None

    with (
        FaultNode(CHAIN, refuse=refuse) as server,
        running_kernel(
            NBEXT_RPC_URL=server.url, NBEXT_DATA_DIR=str(tmp_path), NBEXT_PROGRESS="true"
        ) as kernel,
    ):

        def stop():
            assert reached.wait(60)
            kernel.interrupt()

        ran = kernel.run(f"{FETCH} --in-flight 1", during=stop)
        assert ran.error == (
            "QueryCancelled: The fetch was interrupted. What was complete is ingested; the same "
            "command continues from there."
        )
        first = ran.printed.splitlines()[0]
        assert first.startswith(f"COIN ({checksummed(COIN)}): blocks 1 to ")
        last = int(first.rpartition(" ")[2].rstrip("."))
        assert 20 < last <= 50
        drawn = ran.of("display_data") + ran.of("update_display_data")
        texts = [one["data"].get("text/plain", "") for one in drawn]
        said = [text for text in texts if "blocks" in text]
        assert all("of 90 blocks" in text and "rows/s" in text for text in said)
        free.set()
        server.requests.clear()
        ran = kernel.run(FETCH)
        assert ran.error == ""
        assert ran.printed.splitlines()[-1].endswith(
            "20 of 20 balances equal the chain's at block 90."
        )
        assert min(first for first, _ in server.logs_asked()) == last + 1
    assert KEY not in shown(ran)


@pytest.mark.slow
def test_the_cells_of_a_notebook_see_each_new_block_of_a_fetch_that_follows_beside_it(tmp_path):
    def held():
        ran = kernel.run(
            '%segment {"token": {"token": "COIN", "balance": {"min": "1"}, "unit": "raw"}} --limit 1000 '
            "--out rows\nprint(dict(zip(rows['address'], rows['COIN_balance_raw'].map(int))))"
        )
        *notes, rows = ran.printed.splitlines()
        return notes, ast.literal_eval(rows)

    def until(words):
        for line in follower.stdout:
            if words in line:
                return
        raise AssertionError(f"{words!r} was not said: {follower.stderr.read()}")

    chain, longer = Chain(90), Chain(95)
    with FaultNode(chain) as server, running_kernel(NBEXT_DATA_DIR=str(tmp_path)) as kernel:
        words = [
            "--contract",
            COIN,
            "--to-block",
            "latest",
            "--follow",
            "--every",
            "0.1",
            "--check",
            "0",
            "--quiet",
        ]
        follower = subprocess.Popen(
            [sys.executable, "-m", "nbext.cli", "fetch", *words, "--data", str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NBEXT_RPC_URL": server.url},
        )
        try:
            for moment, told in (
                (chain, "ingested data; ethereum to block 90."),
                (longer, "new data: ethereum to block 95."),
            ):
                server.chain = moment
                until("are ingested")
                notes, rows = held()
                assert notes[0] == f"nbext: {told}"
                assert rows == {
                    wallet: amount for wallet, amount in moment.balances.items() if amount
                }
            follower.send_signal(signal.SIGTERM)
            assert follower.wait(60) == 0
        finally:
            follower.kill()
            follower.communicate(timeout=60)


@pytest.fixture
def shell(tmp_path, monkeypatch, ring):
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("NBEXT_BASE_URL", raising=False)
    monkeypatch.delenv("NBEXT_RPC_URL", raising=False)
    ring(Ring())
    with loaded_shell() as made:
        yield made


@pytest.mark.parametrize(
    "words",
    [
        f"--rpc https://node/{KEY}",
        f"--rpc=wss://node/{KEY}",
        f"https://node/{KEY}",
        f"--contract UNI --data http://{KEY}",
        f"--rpc {KEY}",
    ],
)
def test_a_url_in_a_cell_is_refused_and_not_repeated(shell, words):
    error = shell.error(f"%nbext fetch {words}")
    assert error.startswith("UsageError: %nbext fetch: Do not write a node's URL in a cell")
    assert KEY not in error


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            "--contract UNI",
            "ConfigError: No node is set. Set NBEXT_RPC_URL to its URL, or store it in the ",
        ),
        (
            "UNI",
            "UsageError: %nbext fetch: the following arguments are required: --contract. `%nbext fetch --help`",
        ),
        (
            "--contract UNI --limit 3",
            "UsageError: %nbext fetch: unrecognized arguments: --limit 3. `%nbext fetch --help`",
        ),
        (
            "--contract UNI --from-block soon",
            "UsageError: %nbext fetch: argument --from-block: 'soon' is not a block. ",
        ),
        (
            "--contract UNI --from-block 17,5",
            "UsageError: %nbext fetch: argument --from-block: '17,5' is not a block. ",
        ),
    ],
)
def test_a_wrong_line_is_refused_as_the_command_refuses_it(shell, words, error):
    assert shell.error(f"%nbext fetch {words}").startswith(error)


def test_help_lists_the_commands_options_without_one_for_the_url(shell):
    for line in ("%nbext fetch", "%nbext fetch --help"):
        said = shell.run(line).printed
        assert "--confirmations N" in said
        assert "--rpc" not in said


def test_a_fetch_that_follows_says_first_that_it_holds_the_kernel(shell, monkeypatch):
    with FaultNode(CHAIN, chain_id=10) as server:
        monkeypatch.setenv("NBEXT_RPC_URL", server.url)
        ran = shell.run(f"{FETCH} --follow")
    assert ran.printed.splitlines()[0] == (
        "--follow holds this kernel until you interrupt it. `nbext fetch --follow` in a terminal leaves it free, and "
        "its cells see each new block."
    )


def test_items_of_erc1155_are_fetched_too(shell, monkeypatch):
    with FaultNode(CHAIN) as server:
        monkeypatch.setenv("NBEXT_RPC_URL", server.url)
        said = shell.run(f"%nbext fetch --contract {ITEMS} --to-block latest").printed
    assert f"({checksummed(ITEMS)}): blocks 1 to 90." in said
