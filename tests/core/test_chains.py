import numpy as np
import pytest

from nbext.core.chains import CHAIN_TEXT, CHAINS, chain_of
from nbext.errors import ValidationError
from tests.shared_data import shared_data


@pytest.mark.parametrize(
    "name",
    ["polygon", "Polygon", " matic ", "pol", "137", 137, np.int64(137), "0x89", "eip155:137"],
)
def test_every_spelling_of_polygon_means_polygon(name):
    assert chain_of(name).name == "polygon"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Arbitrum One", "arbitrum"),
        ("BNB Chain", "bnb"),
        ("BNB Smart Chain", "bnb"),
        ("Polygon PoS", "polygon"),
        ("eth-mainnet", "ethereum"),
    ],
)
def test_a_chain_is_known_by_the_names_that_explorers_and_vendors_write(written, name):
    assert chain_of(written).name == name


def test_no_alias_means_two_chains():
    aliases = [
        a for c in CHAINS for a in {c.name, *c.aliases, str(c.id), hex(c.id), f"eip155:{c.id}"}
    ]
    assert len(aliases) == len(set(aliases))


def test_every_name_of_a_chain_is_one_that_a_path_takes():
    assert all(CHAIN_TEXT.match(a) for c in CHAINS for a in (c.name, *c.aliases, f"eip155:{c.id}"))


@pytest.mark.parametrize(
    "bad", ["", "etherum", "\x00", "99999999", None, 1.0, True, [1], "e" * 5000]
)
def test_an_unknown_chain_is_refused_with_the_chains_that_are_known(bad):
    with pytest.raises(ValidationError) as caught:
        chain_of(bad, "/filters/chain")
    (error,) = caught.value.errors
    assert (error["pointer"], error["code"]) == ("/filters/chain", "chain")
    assert "Allowed: ethereum, optimism, bnb, " in error["detail"]
    assert len(error["detail"]) < 500


def test_a_misspelt_chain_is_corrected():
    with pytest.raises(
        ValidationError, match=r"Unknown chain 'etherum'\. Did you mean 'ethereum'\?"
    ):
        chain_of("etherum")


def test_ids_and_short_names_are_those_of_the_public_chain_list():
    import pandas as pd

    listed = pd.read_parquet(shared_data("metadata/chains.parquet")).set_index("chain_id")[
        "short_name"
    ]
    for chain in CHAINS:
        if chain.id in listed.index:
            assert listed[chain.id] in (chain.name, *chain.aliases)
