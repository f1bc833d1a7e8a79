"""Each analysis of chains drawn at random says what the oracle says, which adds up every transfer: on both engines.

The chains have ERC20, ERC721 and ERC1155, burns, transfers to oneself and of nothing, and amounts of 256 bits; half of
them begin after some of their tokens were minted.
"""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from nbext import Client, profile
from nbext.engine.open import open_dataset
from nbext.service.limits import Limits
from nbext.settings import Settings
from tests.analysis import (
    test_changes,
    test_funnel,
    test_overlap,
    test_profile,
    test_retention,
    test_trend,
    test_wallet,
)
from tests.analysis.conftest import random_world
from tests.analysis.test_overlap import segments
from tests.engine import forms
from tests.engine.cluster import cluster
from tests.language.test_against_oracle import PHASES, WALLETS
from tests.oracle.meaning import Oracle
from tests.seed import gate_seed
from tests.service.conftest import KEY, Running

# A seed and a number of transfers: printed where a test fails.
CHAINS = st.tuples(st.integers(0, 2**32 - 1), st.sampled_from([1, 10, 40, 300]))
# What is asked of each chain: the arguments of the tests that ask it of the two chains of this folder.
ASKED = {
    "wallet": (
        test_wallet.test_each_row_is_the_oracles_balance_of_that_wallet,
        {
            "wallets": st.lists(st.sampled_from(WALLETS), min_size=1, max_size=4, unique=True),
            "as_of": test_wallet.MOMENTS,
            "chain": st.sampled_from([None, "eth", "optimism"]),
        },
    ),
    "changes": (
        test_changes.test_each_wallet_is_in_the_oracles_sets_of_both_times,
        {"asked": segments(most=1), "hours": st.integers(0, 55)},
    ),
    "profile": (
        test_profile.test_each_contract_is_held_by_as_many_as_the_oracle_says,
        {"asked": segments(most=2), "least": st.integers(1, 3)},
    ),
    "retention": (
        test_retention.test_each_share_is_that_of_the_oracles_sets,
        {"asked": segments(most=1), "cohort": st.sampled_from(["held", "seen"])},
    ),
    "trend": (
        test_trend.test_each_point_is_the_oracles_as_of_that_time,
        {"asked": segments(most=1), "every": st.integers(1, 9)},
    ),
    "funnel": (
        test_funnel.test_the_last_row_is_the_segment_and_each_cell_opens_as_its_number,
        {"asked": segments(most=1)},
    ),
    "overlap": (
        test_overlap.test_each_cell_is_the_oracles_and_opens_as_that_many_wallets,
        {"asked": segments()},
    ),
}


@contextmanager
def served(world, folder, engine="duckdb://"):
    """A client of a service over a chain, and the oracle of that chain."""
    for name in ("data", "state", "client"):
        (folder / name).mkdir()
    (folder / "client" / "pyproject.toml").write_text("")
    forms.generation(folder / "data", world)
    # Spark answers its first question after half a minute where other work runs beside it.
    running = Running(
        folder / "data",
        folder / "state",
        Limits(query_seconds=600),
        dataset=open_dataset(folder / "data", engine),
    )
    try:
        with Client(
            running.url, KEY, settings=Settings(environ={}, folder=folder / "client")
        ) as client:
            yield client, Oracle(world)
    finally:
        running.stop()


def check(name, chains, examples, serve):
    """Ask of drawn chains, each of which ``serve`` serves."""
    test, arguments = ASKED[name]

    @seed(gate_seed())
    @settings(
        max_examples=examples,
        phases=PHASES,
        derandomize=False,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(chain=chains, asked=st.fixed_dictionaries(arguments))
    def each(chain, asked):
        with serve(chain) as (client, oracle):
            test.hypothesis.inner_test(client, oracle, **asked)

    each()


@pytest.mark.parametrize(
    "examples",
    [pytest.param(3, marks=pytest.mark.slow), pytest.param(50, marks=pytest.mark.long)],
    ids=["a few", "many"],
)
@pytest.mark.parametrize("name", ASKED)
def test_each_analysis_of_a_chain_is_the_oracles(name, examples, tmp_path_factory):
    check(
        name,
        CHAINS,
        examples,
        lambda chain: served(random_world(*chain), tmp_path_factory.mktemp("chain")),
    )


def test_contracts_that_a_segment_holds_by_the_same_ratio_have_the_same_lift(tmp_path_factory):
    never = {
        "direction": "burn",
        "token": "usdc",
        "unit": "raw",
        "amount": {"min": 0},
        "total": {"min": 2**127},
    }
    scope = {"asOf": "2023-11-14", "exclude": []}
    asked = [
        {"filters": {"not": {"transfer": [never]}, **scope}},
        {"filters": {"activity": {"transfers": {"min": 1}}, **scope}},
    ]
    with served(random_world(16118, 300), tmp_path_factory.mktemp("chain")) as (client, oracle):
        test_profile.test_each_contract_is_held_by_as_many_as_the_oracle_says.hypothesis.inner_test(
            client, oracle, asked=asked, least=2
        )
        lifts = profile(asked[0], base=asked[1], least=2, client=client)["lift"].tolist()
    assert lifts == [1.0744047619047619, 0.9895833333333334, 0.7916666666666666, 0.7916666666666666]


@pytest.fixture(scope="module")
def on_spark(tmp_path_factory):
    """A client and an oracle of one chain: Spark takes seconds to open another."""
    with cluster(tmp_path_factory.mktemp("cluster")) as url:
        # What waits for a few rows waits longest for tasks without any.
        options = "spark.sql.shuffle.partitions=1&spark.default.parallelism=1"
        with served(
            random_world(3, 60), tmp_path_factory.mktemp("chain"), f"{url}?{options}"
        ) as both:
            yield both


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "examples"),
    [
        *((name, 1) for name in ("changes", "profile")),
        *(pytest.param(name, 15, marks=pytest.mark.long) for name in ASKED),
    ],
)
def test_each_analysis_of_a_chain_on_spark_is_the_oracles(name, examples, on_spark):
    @contextmanager
    def again(_):
        yield on_spark

    check(name, st.none(), examples, again)
