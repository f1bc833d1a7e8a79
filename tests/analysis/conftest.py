"""Services over small random chains, and the oracle that knows what every segment of them means."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from nbext import Client
from nbext.settings import Settings
from tests.engine import forms
from tests.language.tables import ZERO, Transfer, World
from tests.language.test_against_oracle import (
    AMOUNTS,
    CONTRACTS,
    IDS,
    LAST,
    SECONDS,
    WALLETS,
    minted,
)
from tests.oracle.meaning import Oracle
from tests.service.conftest import KEY, Running

EVERYONE = [*WALLETS, *(f"0x{number:040x}" for number in range(100, 120))]


def random_world(seed: int, transfers: int = 300) -> World:
    """Return a chain of some transfers, the same for the same seed."""
    draw = random.Random(seed)
    moves = []
    for index in range(transfers):
        contract = draw.choice(CONTRACTS)
        nft = contract.standard != "ERC20"
        sender = draw.choice([ZERO, *EVERYONE])
        moves.append(
            Transfer(
                contract.contract,
                draw.randint(0, LAST[contract.chain_id]),
                index,
                sender,
                # One in ten is to oneself.
                sender if draw.random() < 0.1 else draw.choice(EVERYONE),
                draw.choice(IDS if nft else AMOUNTS),
                draw.randint(0, 3) if contract.standard == "ERC1155" else 1,
            )
        )
    # In the order of the chain, so that the first of each token id is its mint.
    moves.sort(key=lambda one: (one.block, one.log_index))
    moves = [replace(one, log_index=number) for number, one in enumerate(moves)]
    return World(CONTRACTS, minted(moves) if seed % 2 else moves, LAST, SECONDS)


@pytest.fixture(scope="package", params=[1, pytest.param(2, marks=pytest.mark.slow)])
def world(request):
    return random_world(request.param)


@pytest.fixture(scope="package")
def oracle(world):
    return Oracle(world)


@pytest.fixture(scope="package")
def service(world, tmp_path_factory):
    """A service over a random chain."""
    folder = tmp_path_factory.mktemp("analysis")
    forms.generation(folder, world)
    running = Running(folder, tmp_path_factory.mktemp("state"))
    yield running
    running.stop()


@pytest.fixture(scope="package")
def client(service, tmp_path_factory):
    folder = tmp_path_factory.mktemp("client")
    (folder / "pyproject.toml").write_text("")
    with Client(service.url, KEY, settings=Settings(environ={}, folder=folder)) as made:
        yield made


@pytest.fixture(scope="package")
def stranger(service, tmp_path_factory):
    """A client that takes the same service for a stranger's."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "pyproject.toml").write_text("")
    with Client(service.url, KEY, settings=Settings(environ={}, folder=folder)) as made:
        made._service.ours = False
        yield made
