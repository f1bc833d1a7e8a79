"""Questions of a data scientist on the sample, each as the cells that ask it, and its answer from plain pandas."""

from __future__ import annotations

import os

import duckdb
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.uint256 import LIMB_BASE
from nbext.engine.sample.unpack import ensure_sample
from tests.notebook.shells import loaded_shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    home = tmp_path_factory.mktemp("home")
    for name in ("IPYTHONDIR", "NBEXT_DATA_DIR"):
        patch.setenv(name, str(home / name))
    for name in ("NBEXT_BASE_URL", "NBEXT_API_KEY"):
        patch.delenv(name, raising=False)
    with loaded_shell() as made:
        yield made
    InteractiveShell.clear_instance()
    patch.undo()


class Sample:
    """The sample's own tables, read by pandas."""

    def __init__(self, folder):
        with duckdb.connect(str(ensure_sample(folder) / "tables.duckdb"), read_only=True) as tables:
            read = {
                name: tables.execute(f"SELECT * FROM {name}").df()
                for name in ("contracts", "blocks")
            }
            self.amounts = {
                # As text: pandas would read the limbs as floats.
                name: tables.execute(
                    f"SELECT * REPLACE (hi::VARCHAR AS hi, mid::VARCHAR AS mid, lo::VARCHAR AS lo) FROM {name}"
                ).df()
                for name in ("balances", "transfers")
            }
            read |= {
                name: tables.execute(f"SELECT * FROM {name}").df()
                for name in ("wallets", "activity")
            }
        self.contracts, self.blocks, self.activity = (
            read["contracts"],
            read["blocks"],
            read["activity"],
        )
        self.address = read["wallets"].set_index("wallet")["address"]

    def contract(self, symbol):
        known = self.contracts.query("chain_id == 1 and symbol == @symbol")
        return int(known.sort_values("verified", ascending=False)["contract"].iloc[0])

    def held(self, symbol):
        """What each wallet holds of a contract, in its smallest unit, by address; burn addresses left out."""
        own = self.amounts["balances"].query(
            "contract == @number", local_dict={"number": self.contract(symbol)}
        )
        raw = [
            (int(hi) * LIMB_BASE + int(mid)) * LIMB_BASE + int(lo)
            for hi, mid, lo in zip(own["hi"], own["mid"], own["lo"], strict=True)
        ]
        held = pd.Series(raw, self.address[own["wallet"]], dtype=object)
        return held[(held > 0) & ~held.index.isin(BURN_ADDRESSES)].sort_index()

    def senders(self, symbol, days):
        """The wallets that sent some of a token in the data's last days."""
        blocks = self.blocks.query("chain_id == 1")
        since = blocks[blocks["timestamp"] >= blocks["timestamp"].max() - days * 86_400][
            "block"
        ].min()
        own = self.amounts["transfers"].query(
            "contract == @number and block >= @since",
            local_dict={"number": self.contract(symbol), "since": since},
        )
        return set(self.address[own["sender"]])


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return Sample(tmp_path_factory.mktemp("sample"))


# The sample has none in 30 days: an empty answer has its columns all the same.
@pytest.mark.parametrize(("days", "some"), [(30, False), (365, True)])
def test_whales_of_uni_that_hold_bayc_and_sent_usdc_in_some_days(shell, sample, days, some):
    shell.ip.user_ns["since"] = f"{days}d"
    shell.value("""%%segment_query whales --all
{"token": {"token": "UNI", "balance": {"min": "1000"}}, "nft": {"nft": "BAYC"},
 "transfer": {"direction": "out", "token": "USDC", "after": {{since}}}}""")
    uni, bayc = sample.held("UNI"), sample.held("BAYC")
    expected = uni[
        (uni >= 1000 * 10**18)
        & uni.index.isin(bayc.index)
        & uni.index.isin(sample.senders("USDC", days))
    ]
    found = shell.ip.user_ns["whales"].set_index("address")
    assert bool(len(expected)) == some
    assert [int(raw) for raw in found["UNI_balance_raw"]] == list(expected)
    assert list(found.index) == list(expected.index)
    assert list(found["BAYC_count"]) == list(bayc[expected.index])


def test_the_100_largest_holders_of_uni(shell, sample):
    shell.value('%segment {"token": {"token": "UNI"}} --top 100 --by UNI_balance -o top')
    uni = sample.held("UNI")
    expected = sorted(zip(-uni.astype(object), uni.index, strict=True))[:100]
    found = shell.ip.user_ns["top"]
    assert [
        (-int(raw), one)
        for raw, one in zip(found["UNI_balance_raw"], found["address"], strict=True)
    ] == expected


@pytest.mark.parametrize("length", [50_000, pytest.param(2_000_000, marks=pytest.mark.load)])
def test_an_allow_list_of_any_length(shell, sample, length):
    uni = sample.held("UNI")
    strangers = os.urandom(20 * length).hex()
    members = list(uni.index[::2])
    more = ["0x" + strangers[at * 40 : at * 40 + 40] for at in range(length - len(members))]
    shell.ip.user_ns["allow"] = pd.DataFrame({"address": [*more, *members]})
    shell.value(
        '%%segment_query allowed --all\n{"wallet": {"in": {{allow.address}}}, "token": {"token": "UNI"}}'
    )
    found = shell.ip.user_ns["allowed"]
    assert list(found["address"]) == members
    assert [int(raw) for raw in found["UNI_balance_raw"]] == list(uni[members])


def test_the_month_in_which_the_holders_of_a_collection_were_first_seen(shell, sample):
    shell.value('%segment {"nft": {"nft": "BAYC"}, "columns": ["firstSeen"]} --all -o holders')
    months = shell.value(
        "pd = __import__('pandas')\n"
        "seen = pd.to_datetime(holders['firstSeen'], utc=True)\n"
        "seen.dt.strftime('%Y-%m').value_counts().sort_index()"
    )
    seen = sample.activity.query("chain_id == 1").set_index("wallet")["first_block"]
    times = sample.blocks.query("chain_id == 1").set_index("block")["timestamp"]
    wallets = pd.Series(sample.address.index, sample.address)[sample.held("BAYC").index]
    expected = (
        pd.to_datetime(times[seen[wallets]], unit="s", utc=True)
        .dt.strftime("%Y-%m")
        .value_counts()
        .sort_index()
    )
    assert months.to_dict() == expected.to_dict()


@pytest.mark.slow
def test_the_same_query_for_20_tokens_in_a_function(shell, sample):
    own = sample.contracts.query(
        "chain_id == 1 and standard == 'ERC20' and holders > 0 and symbol.str.isalnum()"
    )
    symbols = [one for one, number in own["symbol"].value_counts().items() if number == 1][:20]
    shell.ip.user_ns["symbols"] = symbols
    shell.value("""def holders(s):
    return get_ipython().run_cell_magic("segment_query", "--count", '{"token": {"token": {{s}}}}')""")
    counts = shell.value("{one: holders(one) for one in symbols}")
    assert len(symbols) == 20
    assert counts == {one: len(sample.held(one)) for one in symbols}
