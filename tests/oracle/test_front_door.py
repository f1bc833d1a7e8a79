"""What a service answers after any steps through the front door is what the oracle says."""

from __future__ import annotations

import os
import tomllib
from importlib import resources
from itertools import combinations

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import get_state_machine_test

from nbext.language.conditions import CONDITIONS
from tests.engine.cluster import spark_home
from tests.oracle.analyses import ANALYSES
from tests.oracle.asking import Asking
from tests.oracle.files import FORMATS
from tests.oracle.machine import FrontDoor
from tests.oracle.meaning import GROUPS, SCOPE
from tests.seed import gate_seed

# Formats whose rows are names, snapshots or spans of ids in other words, which tests/engine/ingest and tests/node have.
OTHERS = {
    "tokens (ethereum-etl)",
    "tokens.erc20 (Dune)",
    "tokens.nft (Dune)",
    "erc20_metadata (cryo)",
    "erc721_metadata (cryo)",
    "token list",
    "tokenholderlist (Etherscan)",
    "token holders (Moralis, Covalent)",
    "claims of a Merkle distribution",
    "token_transfers of consecutive ids (nbext)",
    # Seconds are the blocks of these, and no file with block numbers may be beside them: test_own_tables holds both.
    "a table of transfers, by time",
    "a table of transfers by token id, by time",
}
# What no contract stands in, or only those of one standard.
STANDARDS = {
    "token": {"ERC20"},
    "nft": {"ERC721", "ERC1155"},
    "transfer": {"ERC20", "ERC721", "ERC1155"},
}
# Fields of a condition of which only one is given.
APART = {
    "collections": [{"of", "distinct"}, {"atLeast", "distinct"}],
    "transfer": [{"token", "nft"}, {"nft", "unit"}],
    "wallet": [{"in", "list"}],
}
EXAMPLES = int(os.environ.get("ORACLE_EXAMPLES") or 12)


class OfSpark(FrontDoor):
    """The same, answered by Spark."""

    # As few shares as there are threads: each costs as much as the rows of a walk.
    engine = "local[2]?spark.sql.shuffle.partitions=2"


def walk(door: type[FrontDoor], examples: int) -> None:
    """Walk through a door so many times."""
    # Shrinking takes minutes, and the steps are printed as they are.
    walked = get_state_machine_test(
        door,
        settings=settings(
            max_examples=examples,
            stateful_step_count=20,
            derandomize=False,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    seed(gate_seed())(walked)()


@pytest.mark.slow
def test_every_answer_after_any_steps_through_the_front_door_is_the_oracles():
    walk(FrontDoor, EXAMPLES)
    if EXAMPLES >= 100:
        assert never_drawn() == set()


@pytest.mark.long
@pytest.mark.spark
def test_every_answer_of_spark_after_any_steps_through_the_front_door_is_the_oracles():
    spark_home()
    walk(OfSpark, 15)


def never_drawn() -> set[tuple[str, ...]]:
    """Return what no step has drawn: fields of each standard that they can be of, pairs of them, formats, analyses."""
    drawn = FrontDoor.drawn
    fields = {
        (name, field.name, standard)
        for name, condition in CONDITIONS.items()
        for field in condition.fields
        for standard in STANDARDS.get(name, {""})
        if not (name == "transfer" and field.name in ("token", "unit") and standard != "ERC20")
        if not (name == "transfer" and field.name == "nft" and standard == "ERC20")
    }
    scope = {("", name, "") for name in (*GROUPS, *SCOPE)}
    pairs = {
        ("pair", name, *sorted((one.name, other.name)))
        for name, condition in CONDITIONS.items()
        for one, other in combinations(condition.fields, 2)
        if {one.name, other.name} not in APART.get(name, [])
    }
    formats = {("format", one.name, container) for one in FORMATS for container in one.containers}
    asked = {("analysis", name) for name in (*ANALYSES, "export")}
    done = {*fields, *scope, *pairs, *formats, *asked, ("beside a base",)}
    return {one for one in done if not drawn[one]}


def test_every_format_and_every_condition_has_its_place_in_the_oracle():
    found = resources.files("nbext") / "engine" / "ingest" / "formats.toml"
    known = {one["name"] for one in tomllib.loads(found.read_text())["format"]}
    others = {"blocks", "contracts (ethereum-etl)", "holders", "holders by token id"}
    assert known == {one.name for one in FORMATS} | others | OTHERS
    drawn = {name.removeprefix("draw_") for name in vars(Asking) if name.startswith("draw_")}
    assert drawn == set(CONDITIONS)
