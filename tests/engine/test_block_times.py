"""Times become blocks, and None stands where the data cannot tell."""

from __future__ import annotations

import pytest

from nbext.engine.open import open_dataset
from tests.engine.hand_made import generation

# Chain 1 has all times, chain 10 none, chain 137 some.
TIMES = {
    1: [(100, 1000), (110, 1100), (110 + 5, 1100), (200, 2000)],
    10: [(5, None), (9, None)],
    137: [(10, None), (20, 2000), (30, 3000), (40, None), (50, 5000), (60, None)],
}
CHAINS = [
    {"chain_id": 1, "first_block": 100, "last_block": 200, "last_timestamp": 2000},
    {"chain_id": 10, "first_block": 5, "last_block": 9, "last_timestamp": None},
]


@pytest.fixture(scope="module")
def clock(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("clock")
    blocks = [{"chain_id": c, "block": b, "timestamp": t} for c, rows in TIMES.items() for b, t in rows]
    generation(data_dir, {"blocks": blocks}, chains=CHAINS)
    dataset = open_dataset(data_dir)
    yield dataset.clock
    dataset.close()


@pytest.mark.parametrize(
    ("chain_id", "timestamp", "block"),
    [
        (1, 999, 99),
        (1, 1000, 100),
        (1, 1099, 100),
        (1, 1100, 115),
        (1, 1999, 115),
        (1, 10**12, 200),
        (10, 1000, None),
        (77, 1000, None),
        (137, 1999, None),
        (137, 2500, 20),
        (137, 3000, None),
        (137, 5000, None),
    ],
)
def test_a_time_is_the_last_block_at_or_before_it(clock, chain_id, timestamp, block):
    assert clock.block_at(chain_id, timestamp) == block


def test_a_block_has_the_time_that_the_data_gives_it(clock):
    assert clock.timestamp_of(1, 110) == 1100
    assert clock.timestamp_of(1, 111) is None
    assert clock.timestamp_of(10, 5) is None


def test_the_last_block_of_a_chain_comes_with_its_time(clock):
    assert clock.last(1) == (200, 2000)
    assert clock.last(10) == (9, None)
    assert clock.last(77) == (0, None)
