"""From a real chain to answers: an EVM behind HTTP, `nbext fetch` as a process, and every balance as the contracts say.

The chain is that of the notebook 08_from_a_node. What the contracts store is what answers are compared with; what they
log is all that nbext reads.
"""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nbext import connect
from nbext import embedded as service
from nbext.engine import storage
from nbext.settings import Settings
from tests.seed import gate_seed

MISSING = [
    name for name in ("eth_tester", "eth", "vyper") if importlib.util.find_spec(name) is None
]
pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]
# A machine may be slow: what hangs for longer than this is a fault.
LONGEST = 600
STIR = "stir(uint256,uint256)"


def fixture_of_local():
    """The module beside the notebook: chain and contracts."""
    path = Path(__file__).parents[2] / "notebooks" / "local_chain.py"
    spec = importlib.util.spec_from_file_location("local_chain", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def local():
    """The module beside the notebook."""
    return fixture_of_local()


class Contracts:
    """A chain with a contract of each kind, and what they say of their holders."""

    def __init__(self, local, chain, rounds):
        self.local, self.chain = local, chain
        self.coins = [
            chain.deploy(source, 0) for source in (local.COIN, local.OLD_COIN, local.WRAPPED)
        ]
        self.beasts, self.items = chain.deploy(local.BEASTS), chain.deploy(local.ITEMS)
        self.stir(range(rounds))

    @property
    def all(self):
        """The addresses."""
        return [*self.coins, self.beasts, self.items]

    def stir(self, seeds):
        """Have every contract move, mint and burn; the seeds decide what."""
        for seed in seeds:
            for contract, count in zip(self.all, (100, 30, 30, 60, 12), strict=True):
                self.chain.send(contract, STIR, seed, count)
            self.chain.mine(1 + seed % 3)

    def holders(self, contract):
        """What each wallet has, as the contract says; nothing of wallets that have nothing."""
        said = {}
        for wallet in map(self.local.wallet, range(self.local.WALLETS)):
            if contract == self.items:
                said[wallet] = sum(
                    self.chain.ask(contract, "balanceOf(address,uint256)", wallet, number)
                    for number in range(12)
                )
            else:
                said[wallet] = self.chain.ask(contract, "balanceOf(address)", wallet)
        return {wallet: amount for wallet, amount in said.items() if amount}

    def owners(self):
        """The owner of each of the first 40 beasts; None of those that are burnt."""
        return [
            self.chain.ask(self.beasts, "ownerOf(uint256)", number, answer="address")
            for number in range(40)
        ]


def command(contracts, data, *more):
    """The words of `nbext fetch` for some contracts."""
    named = [word for each in contracts for word in ("--contract", each)]
    return [
        sys.executable,
        "-m",
        "nbext.cli",
        "fetch",
        *named,
        "--to-block",
        "latest",
        "--deposits",
        "--quiet",
        "--data",
        str(data),
        *more,
    ]


def fetched(chain, contracts, data, *more):
    """Fetch as a process does; return the lines that it says."""
    ran = subprocess.run(
        command(contracts, data, *more),
        env={**os.environ, "NBEXT_RPC_URL": chain.url},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.splitlines()


def answers(data, contracts):
    """What each wallet has of each contract, and who owns each of 40 beasts, as a client is answered."""
    client = connect(settings=Settings(arguments={"data_dir": str(data)}))
    found = {}
    for contract in contracts.all:
        kind = "token" if contract in contracts.coins else "nft"
        condition = {
            kind: contract,
            **({"balance": {"min": "1"}, "unit": "raw"} if kind == "token" else {}),
        }
        rows = client.execute_segment({kind: condition}, limit=1000)
        (column,) = [
            name
            for name in rows
            if name.endswith(("_raw", "_count")) or name == f"{contract}_balance"
        ]
        found[contract] = dict(zip(rows["address"], map(int, rows[column]), strict=True))
    owners = [
        client.execute_segment(
            {"nft": {"nft": contracts.beasts, "tokenIds": [str(number)]}}, limit=10
        )["address"]
        for number in range(40)
    ]
    return found, [one.iloc[0] if len(one) else None for one in owners]


def check(data, contracts):
    """Compare all that is answered with what the contracts store, and all that is stored with the chain's logs."""
    found, owners = answers(data, contracts)
    for contract in contracts.all:
        assert found[contract] == contracts.holders(contract)
        assert len(found[contract]) > 30
    assert owners == contracts.owners()
    folder = data / "fetched" / "ethereum"
    manifest = storage.current_generation(data).manifest
    # Nothing is left over of processes that were killed, and nothing there twice.
    assert sorted(
        str(path) for path in folder.iterdir() if path.name not in ("parts", ".lock")
    ) == (sorted(one["path"] for one in manifest["files"]))
    assert list((folder / "parts").iterdir()) == []
    assert manifest["tables"]["transfers"] == rows(contracts.chain)


def rows(chain):
    """How many rows the chain's logs are: one for each id of a batch."""
    ids = 0
    for log in chain.all_logs():
        words = [log["data"][at : at + 64] for at in range(2, len(log["data"]), 64)]
        # operator, from and to are topics; the ids begin after two offsets and their number.
        ids += len(set(words[3 : 3 + int(words[2], 16)])) if len(words) > 4 else 1
    return ids


@pytest.fixture(scope="module")
def settled(local):
    """Contracts on a chain that goes on no more."""
    with local.LocalChain() as chain:
        yield Contracts(local, chain, 8)


@pytest.fixture
def stop():
    """Stop the services of the test's folders."""
    folders = []
    yield folders.append
    for folder in folders:
        service.start_service(folder).stop()


def test_every_balance_and_owner_is_the_contracts(settled, tmp_path, stop):
    stop(tmp_path)
    chain = settled.chain
    lines = fetched(chain, settled.all, tmp_path)
    assert rows(chain) > 2500
    equal = f"20 of 20 balances equal the chain's at block {chain.head:,}"
    owners = f"{equal}, and 20 of 20 token ids have its owner."
    assert len([line for line in lines if line.endswith((f"{equal}.", owners))]) == 5
    assert len([line for line in lines if line.startswith("BEAST") and line.endswith(owners)]) == 1
    check(tmp_path, settled)
    client = connect(settings=Settings(arguments={"data_dir": str(tmp_path)}))
    about = client.tokens("ethereum", settled.coins)
    assert about[["name", "symbol", "decimals"]].values.tolist() == [
        ["Local Coin", "COIN", 18],
        ["Old Coin", "OLD", 18],
        ["Local Coin", "WRAP", 18],
    ]


def test_a_token_that_takes_a_fee_is_named_and_answers_about_it_warn(local, tmp_path, stop):
    stop(tmp_path)
    with local.LocalChain() as chain:
        coin = chain.deploy(local.COIN, 3)
        chain.send(coin, STIR, 1, 200)
        (line,) = [line for line in fetched(chain, [coin], tmp_path) if "balances equal" in line]
        assert "rebases, takes a fee on transfer" in line
        client = connect(settings=Settings(arguments={"data_dir": str(tmp_path)}))
        rows = client.execute_segment(
            {"token": {"token": "COIN"}, "not": {"token": {"token": coin}}}
        )
        (warning,) = [one for one in rows.attrs["nbext"]["warnings"] if "balances differed" in one]
        assert warning.endswith(
            f"balances differed from the contract's own at block {chain.head}: it changes balances "
            "without a transfer, as tokens do that rebase or take a fee. Its amounts are "
            "approximate."
        )


def test_a_reorganisation_is_followed_and_balances_are_equal_again(local, tmp_path, stop):
    stop(tmp_path)
    with local.LocalChain() as chain:
        contracts = Contracts(local, chain, 3)
        before = chain.snapshot()
        contracts.stir([10, 11])
        process = subprocess.Popen(
            command(contracts.all, tmp_path, "--follow", "--every", "0.2", "--check", "0"),
            env={**os.environ, "NBEXT_RPC_URL": chain.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = _Lines(process)
        try:
            said.until("new transfers are ingested")
            check(tmp_path, contracts)
            contracts.stir([12])
            said.until(f"to {chain.head:,}.", times=5)
            said.until("new transfers are ingested")
            orphaned = contracts.holders(contracts.coins[0])
            # In one step, as a node takes up another branch.
            with chain.at_once():
                fork = chain.revert(before)
                contracts.stir([20, 21, 22])
                chain.mine(2)
            said.until(
                f"The chain was reorganised: blocks from {fork:,} on are read again and replaced."
            )
            said.until("new transfers are ingested")
            assert contracts.holders(contracts.coins[0]) != orphaned
            check(tmp_path, contracts)
            process.send_signal(signal.SIGTERM)
            assert process.wait(LONGEST) == 0
        finally:
            process.kill()
            process.communicate(timeout=LONGEST)
        check(tmp_path, contracts)


class _Lines:
    """The lines that a process says, read as they come: a pipe that nobody reads would stop it."""

    def __init__(self, process):
        self.process = process

    def until(self, words, times=1):
        """Read lines until so many have some words; the process must not end before."""
        alarm = threading.Timer(LONGEST, self.process.kill)
        alarm.start()
        try:
            for line in self.process.stdout:
                times -= words in line
                if not times:
                    return
        finally:
            alarm.cancel()
        raise AssertionError(f"{words!r} was not said: {self.process.stderr.read()}")


def test_a_process_killed_ten_times_has_every_balance_at_last_and_leaves_nothing(
    settled, tmp_path, stop, monkeypatch
):
    chain, draw = settled.chain, random.Random(gate_seed())
    heard, calls = threading.Condition(), [0]

    def seen(method):
        with heard:
            calls[0] += 1
            heard.notify_all()

    # Many ranges, of which each kill leaves some.
    monkeypatch.setattr(chain, "most_blocks", 5)
    monkeypatch.setattr(chain, "seen", seen)
    fetched(chain, settled.all, tmp_path / "whole", "--check", "0")
    most, killed, data = calls[0], 0, tmp_path / "0"
    while killed < 10:
        calls[0] = 0
        process = subprocess.Popen(
            command(settled.all, data, "--check", "0"),
            env={**os.environ, "NBEXT_RPC_URL": chain.url},
            stdout=subprocess.DEVNULL,
        )
        # At a call, and then a moment later: while it reads, or while it ingests, which asks the node nothing.
        wanted = draw.randrange(most)
        with heard:
            while calls[0] < wanted and process.poll() is None:
                heard.wait(0.1)
        process.kill() if draw.random() < 0.5 else threading.Timer(
            draw.random() * 2, process.kill
        ).start()
        if process.wait(LONGEST) == -signal.SIGKILL:
            killed += 1
        else:
            # It came to its end before: the next ones begin anew.
            assert process.returncode == 0
            stop(data)
            check(data, settled)
            data = tmp_path / str(int(data.name) + 1)
    stop(data)
    lines = fetched(chain, settled.all, data)
    assert len([line for line in lines if "balances equal" in line]) == 5
    check(data, settled)
