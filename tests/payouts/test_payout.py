"""From a segment to a folder that anybody can verify: over HTTP, on the sample."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import nbext
from nbext import Client, cli
from nbext.engine.ingest import ingest
from nbext.errors import StorageError, ValidationError
from nbext.payouts.payout import verify_payout
from nbext.settings import Settings
from tests.analysis.conftest import random_world
from tests.engine import forms
from tests.service.conftest import KEY, Running

UNI = {"token": {"token": "UNI", "balance": {"min": "1000"}}}
ONE, TWO, THREE = (f"0x{digit * 40}" for digit in "123")
DEAD = "0x000000000000000000000000000000000000dEaD"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    found = Running(tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("state"))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def client(running, tmp_path_factory):
    folder = tmp_path_factory.mktemp("client")
    (folder / "pyproject.toml").write_text("")
    with Client(running.url, KEY, settings=Settings(environ={}, folder=folder)) as made:
        yield made


@pytest.fixture(scope="module")
def rows(client):
    return client.execute_segment(UNI, limit="all")


@pytest.fixture
def pay(client, tmp_path):
    """Return a function that makes a payout in a folder of this test."""

    def make(given, *args, **options):
        return nbext.payout(given, *args, **{"to": tmp_path / "drop", "client": client, **options})

    return make


@pytest.fixture(scope="module")
def made(rows, client, tmp_path_factory):
    """A payout, for those who only look at it or copy it."""
    folder = tmp_path_factory.mktemp("made") / "drop"
    terms = {"cap": "20000", "floor": "10.5", "at_least": "1"}
    nbext.payout(rows, "1000000", "UNI", "proportional", **terms, to=folder, client=client)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "copy")


def said(folder):
    return json.loads((folder / "manifest.json").read_text())


def frame(**columns):
    return pd.DataFrame({"address": [ONE, TWO, THREE], **columns})


def test_a_payout_is_of_all_wallets_but_contracts_and_its_sum_is_exact(rows, client, pay, tmp_path):
    claims = pay(rows, "1000000.000000000000000001", "UNI", "proportional")
    contracts = client.execute_segment({"all": [UNI, {"wallet": {"contract": True}}]}, limit="all")
    left_out = contracts["address"].tolist()
    kept = rows[~rows["address"].isin(left_out)]
    assert len(left_out) == 4
    assert claims["address"].tolist() == kept["address"].tolist()
    total = 10**24 + 1
    amounts = [int(one) for one in claims["amount_raw"]]
    weights = [int(one) for one in kept["UNI_balance_raw"]]
    assert sum(amounts) == total
    assert all(
        abs(amount * sum(weights) - weight * total) < sum(weights)
        for amount, weight in zip(amounts, weights, strict=True)
    )
    assert claims["amount"].tolist() == [amount / 10**18 for amount in amounts]
    lines = (tmp_path / "drop/left_out.csv").read_text().splitlines()
    assert lines == ["address,reason", *(f"{one},contract" for one in left_out)]
    assert claims.attrs["nbext"]["warnings"][-1] == (
        f"4 known contracts are left out: {', '.join(left_out)}. A contract that the data does not know as one is paid."
    )


def test_weights_by_address_and_filters_are_no_rows(pay):
    for given in ({ONE: 3, TWO: 4}, UNI):
        with pytest.raises(ValidationError, match="/rows: Expected addresses, got dict"):
            pay(given, 10)


def test_a_contract_is_left_out_whichever_chain_of_the_data_has_seen_it(client, pay):
    elsewhere = client.execute_segment({"wallet": {"contract": True}, "chain": "optimism"})
    here = client.execute_segment({"wallet": {"contract": True}})
    only = sorted({*elsewhere["address"]} - {*here["address"]})
    assert len(only) == 1
    assert pay(pd.DataFrame({"address": [ONE, *only]}), 10)["address"].tolist() == [ONE]


def test_the_files_say_the_same_of_each_wallet(made):
    names = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()}
    safe = {"safe/0001.csv", "safe/0002.csv"}
    assert names == safe | {
        "claims.csv",
        "left_out.csv",
        "tree.json",
        "indexed.json",
        "manifest.json",
    }
    claims = [line.split(",") for line in (made / "claims.csv").read_text().splitlines()]
    assert claims.pop(0) == ["index", "address", "amount"]
    assert [int(row[0]) for row in claims] == list(range(len(claims)))
    owed = {address: int(amount) for _, address, amount in claims}
    tree, indexed = (
        json.loads((made / name).read_text()) for name in ("tree.json", "indexed.json")
    )
    assert {one: int(amount) for one, amount in (each["value"] for each in tree["values"])} == owed
    assert {one: int(claim["amount"], 16) for one, claim in indexed["claims"].items()} == owed
    assert int(indexed["tokenTotal"], 16) == sum(owed.values()) == 10**24
    assert (tree["tree"][0], indexed["merkleRoot"]) == (
        said(made)["root"],
        said(made)["indexed_root"],
    )
    pages = [(made / name).read_text().splitlines() for name in sorted(safe)]
    assert {page[0] for page in pages} == {"token_type,token_address,receiver,amount,id"}
    assert [len(page) - 1 for page in pages] == [200, len(claims) - 200]
    sent = [line.split(",") for page in pages for line in page[1:]]
    token = said(made)["token"]["address"]
    assert {(row[0], row[1], row[4]) for row in sent} == {("erc20", token, "")}
    assert {row[2]: int(Decimal(row[3]).scaleb(18)) for row in sent} == owed
    assert max(owed.values()) == 20_000 * 10**18
    assert min(owed.values()) >= 105 * 10**17


def test_one_wallets_proof_is_that_of_the_files(made):
    address = (made / "claims.csv").read_text().splitlines()[43].split(",")[1]
    found = nbext.proof(made, "0x" + address[2:].upper())
    claim = json.loads((made / "indexed.json").read_text())["claims"][address]
    tree = json.loads((made / "tree.json").read_text())
    place = next(each["treeIndex"] for each in tree["values"] if each["value"][0] == address)
    path = []
    while place:
        path.append(tree["tree"][place + 1 if place % 2 else place - 1])
        place = (place - 1) // 2
    assert found == {
        "index": 42,
        "address": address,
        "amount": str(int(claim["amount"], 16)),
        "root": said(made)["root"],
        "proof": path,
        "indexed_root": said(made)["indexed_root"],
        "indexed_proof": claim["proof"],
    }
    with pytest.raises(ValidationError, match="has no claim in this payout"):
        nbext.proof(made, ONE)
    with pytest.raises(ValidationError, match="checksum"):
        nbext.proof(made, "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96046")


def test_a_payout_is_verified_by_asking_its_request_again(made, running, monkeypatch, capsys):
    monkeypatch.setenv("NBEXT_BASE_URL", running.url)
    monkeypatch.setenv("NBEXT_API_KEY", KEY)
    assert cli.main(["payout", "verify", str(made)]) == 0
    assert capsys.readouterr().out == (
        f"{made}: {said(made)['wallets']} claims, their sum and their root are what the request gives.\n"
    )


def changed(name, before, after):
    def change(folder):
        text = (folder / name).read_text()
        assert before in text
        (folder / name).write_text(text.replace(before, after, 1))

    return change


@pytest.mark.slow
def test_whatever_is_changed_in_a_folder_is_named(folder, client, running, monkeypatch, capsys):
    lines = (folder / "claims.csv").read_text().splitlines(keepends=True)
    _, first, amount = lines[1].strip().split(",")
    more = str(int(amount) + 1)
    root = said(folder)["root"]
    table = {
        f"claims.csv: {first} is {more}, the request gives {amount}": changed(
            "claims.csv", amount, more
        ),
        f"claims.csv: {first} is null, the request gives {amount}": lambda folder: (
            folder / "claims.csv"
        ).write_text(
            lines[0] + "".join(f"{at},{line.split(',', 1)[1]}" for at, line in enumerate(lines[2:]))
        ),
        "claims.csv is damaged": changed("claims.csv", lines[1], ""),
        "claims.csv is not there": lambda folder: (folder / "claims.csv").unlink(),
        "tree.json is changed": changed("tree.json", amount, more),
        "indexed.json is changed": changed("indexed.json", f"{int(amount):#x}", "0x1"),
        "left_out.csv is changed": lambda folder: (folder / "left_out.csv").unlink(),
        "safe/0002.csv is changed": changed("safe/0002.csv", "0x", "0X"),
        "safe/0003.csv is changed": lambda folder: shutil.copy(
            folder / "safe/0001.csv", folder / "safe/0003.csv"
        ),
        f"manifest.json: root is '0x{'0' * 64}', the request gives '{root}'": changed(
            "manifest.json", root, "0x" + "0" * 64
        ),
        "manifest.json: sum is '1', the request gives '1000000000000000000000000'": changed(
            "manifest.json", f'"{10**24}"', '"1"'
        ),
        "manifest.json: token is an object": changed(
            "manifest.json", '"decimals": 18', '"decimals": 6'
        ),
        "manifest.json: as_of is an object, the request gives an object": changed(
            "manifest.json", '"block": 24136000', '"block": 24135999'
        ),
        f"manifest.json: block_hash is '0x{'1' * 64}', the request gives null": changed(
            "manifest.json", '"block_hash": null', f'"block_hash": "0x{"1" * 64}"'
        ),
        "manifest.json: id is 'sg_x'": changed("manifest.json", said(folder)["id"], "sg_x"),
        "manifest.json is damaged": changed("manifest.json", '"terms"', '"worms"'),
        "manifest.json is not the manifest of a payout": changed("manifest.json", '"data"', '"id"'),
        "is not the manifest of a payout": changed("manifest.json", "payout-1", "payout-9"),
        "no request that can be asked": changed(
            "manifest.json", '"exclude": [', '"exclude": "@/etc/passwd", "x": ['
        ),
    }
    for expected, change in table.items():
        copy = shutil.copytree(folder, folder.parent / "changed")
        change(copy)
        with pytest.raises(StorageError) as caught:
            verify_payout(copy, client)
        assert expected in str(caught.value)
        shutil.rmtree(copy)
    changed("claims.csv", amount, more)(folder)
    with pytest.raises(StorageError, match="its claims are not those of its roots"):
        nbext.proof(folder, first)
    monkeypatch.setenv("NBEXT_BASE_URL", running.url)
    monkeypatch.setenv("NBEXT_API_KEY", KEY)
    assert cli.main(["payout", "verify", str(folder)]) == 2
    assert f"{first} is {more}, the request gives {amount}" in capsys.readouterr().err


def test_rows_that_are_not_all_of_their_segment_are_refused(client, rows, pay, tmp_path):
    few = client.execute_segment(UNI, limit=10)
    another = rows.assign(address=[ONE, *rows["address"][1:]])
    another.attrs = rows.attrs
    richer = rows.assign(UNI_balance_raw=[1, *rows["UNI_balance_raw"][1:]])
    richer.attrs = rows.attrs
    for given in (few, rows.head(10), another, richer):
        with pytest.raises(ValidationError) as caught:
            pay(given, "1000", "UNI", "proportional")
        (error,) = caught.value.errors
        assert error["pointer"] == "/rows"
        assert ("10 of 262 wallets" if given is few else "are not the 262") in error["detail"]
    assert not (tmp_path / "drop").exists()


def test_the_largest_of_a_segment_are_paid_and_that_is_said(client, pay, tmp_path):
    top = client.execute_segment({**UNI, "orderBy": "-UNI_balance"}, limit=10)
    claims = pay(top, "1000", "UNI", pay_contracts=True)
    assert sorted(claims["address"]) == sorted(top["address"])
    assert "10 of 262 wallets, the first by -UNI_balance" in said(tmp_path / "drop")["notes"]
    assert "10 claims" in verify_payout(tmp_path / "drop", client)


def test_a_column_that_was_computed_here_is_paid_by_and_cannot_be_verified(
    client, rows, pay, tmp_path
):
    given = rows.assign(points=range(1, len(rows) + 1))
    claims = pay(given, 10**6, rule="points")
    assert sum(claims["amount_raw"]) == 10**6
    assert (
        "The service has no 'points': `nbext payout verify` cannot check amounts."
        in claims.attrs["nbext"]["warnings"]
    )
    assert not (tmp_path / "drop/safe").exists()
    with pytest.raises(ValidationError, match="'points' names 0 columns of amounts"):
        verify_payout(tmp_path / "drop", client)


def test_rows_of_no_segment_are_paid_and_that_is_said(client, pay, tmp_path):
    claims = pay(frame(points=[1, 2, 3]), "0.06", "UNI", "points")
    assert [int(one) for one in claims["amount_raw"]] == [n * 10**16 for n in (1, 2, 3)]
    assert claims.attrs["nbext"]["warnings"][0] == (
        "The rows are not of a segment: `nbext payout verify` has no request to ask again."
    )
    with pytest.raises(StorageError, match="no request that can be asked again"):
        verify_payout(tmp_path / "drop", client)


def test_burn_addresses_and_small_shares_are_left_out_and_listed(pay, tmp_path):
    given = pd.DataFrame(
        {"address": [ONE, DEAD, "0x" + "0" * 40, TWO, THREE], "n": [1, 9, 9, 10, 89]}
    )
    claims = pay(given, 1000, rule="n", at_least=100)
    assert claims["address"].tolist() == [TWO, THREE]
    assert [int(one) for one in claims["amount_raw"]] == [101, 899]
    assert (tmp_path / "drop/left_out.csv").read_text() == (
        f"address,reason\n0x{'0' * 40},burn\n{DEAD.lower()},burn\n{ONE},at_least\n"
    )


def test_what_cannot_be_paid_is_refused_by_its_field(pay, rows, tmp_path):
    vitalik = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"
    twice = pd.DataFrame({"address": [vitalik, ONE, vitalik.lower()]})
    numbers = {
        "a float": [1.0, 2.0, 3.0],
        "NaN": [1, math.nan, 3],
        "below zero": [1, -2, 3],
        "no number": ["1", "2", "many"],
        "a truth": [True, False, True],
        "nothing": [1, None, 3],
        "a fraction": [Decimal(1), Decimal("0.5"), Decimal(3)],
        "not finite": [Decimal(1), Decimal("NaN"), Decimal("Infinity")],
    }
    table = [
        ("/rows", "is there twice", {"rows": twice}),
        ("/rows", "mistyped", {"rows": pd.DataFrame({"address": [vitalik[:-1] + "6"]})}),
        ("/rows", "is an ENS name", {"rows": pd.DataFrame({"address": ["vitalik.eth"]})}),
        ("/rows", "blank", {"rows": pd.DataFrame({"address": [ONE, None]})}),
        ("/rows", "which has the addresses?", {"rows": pd.DataFrame({"a": [1], "b": [2]})}),
        ("/rows", "has no rows", {"rows": pd.DataFrame({"address": []}, dtype=str)}),
        ("/rows", "less than one smallest unit", {"total": 2}),
        ("/rows", "less than one smallest unit", {"total": 0}),
        ("/total", "is not an amount", {"total": 1e6}),
        ("/total", "is not an amount", {"total": "1e6"}),
        ("/total", "is not an amount", {"total": "1,000"}),
        ("/total", "is not an amount", {"total": "-5"}),
        ("/total", "is not an amount", {"total": True}),
        ("/total", "more than 0 decimals", {"total": "1.5"}),
        ("/total", "more than 18 decimals", {"total": "0." + "0" * 18 + "1", "of": "UNI"}),
        ("/total", "256 bits", {"total": 2**256}),
        ("/cap", "is not an amount", {"cap": 0.5}),
        ("/total", "with 9 to 5 each", {"cap": 5, "floor": 9}),
        ("/total", "with 0 to 5 each", {"cap": 5}),
        (
            "/total",
            "with 0 to 0.5 each do not get 1,000 together",
            {"of": "UNI", "total": 1000, "cap": "0.5"},
        ),
        ("/total", "with 90 to 100 each", {"floor": 90}),
        ("/total", "0 wallets", {"at_least": 99}),
        ("/pay_contracts", "'no' is neither True nor False", {"pay_contracts": "no"}),
        ("address", "not an address", {"of": ""}),
        ("/rule", "'point' names 0 columns", {"rule": "point"}),
        ("/rule", "names 0 columns", {"rule": "proportional"}),
        *(
            ("/rule", "is a whole number from 0", {"rule": "n", "rows": frame(n=one)})
            for one in numbers.values()
        ),
    ]
    for pointer, detail, given in table:
        asked = {"rows": frame(), "total": 100, **given}
        with pytest.raises(ValidationError) as caught:
            pay(asked.pop("rows"), asked.pop("total"), **asked)
        (error,) = caught.value.errors
        assert (error["pointer"], detail in error["detail"]) == (pointer, True), (detail, error)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_as_it_is(pay, rows, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "there").mkdir()
    for name in ("file", "gone", "there"):
        with pytest.raises(ValidationError, match="Name a folder that does not exist yet"):
            pay(rows, "1000", "UNI", to=tmp_path / name)
    with pytest.raises(StorageError, match="cannot be written: No such file or directory"):
        pay(rows, "1000", "UNI", to=tmp_path / "no/folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "gone", "there"]


def test_a_payout_is_verified_at_its_block_where_the_data_has_grown_since(client, tmp_path):
    world = random_world(1)
    # A chain as it is known up to its sixth block, and then to its end.
    early = [one for one in world.transfers if one.block <= 6]
    grown = replace(
        world,
        transfers=early,
        last_blocks={one: min(last, 6) for one, last in world.last_blocks.items()},
    )
    said = []
    for name, one in (("early", grown), ("late", world)):
        forms.generation(tmp_path / name, one, name.encode().hex())
        running = Running(tmp_path / name, tmp_path / f"state-{name}")
        with Client(running.url, KEY, settings=client.settings) as each:
            rows = each.execute_segment({"token": {"token": "USDC"}}, limit="all")
            if name == "early":
                nbext.payout(
                    rows, 10**30, rule="USDC_balance", floor=1, to=tmp_path / "drop", client=each
                )
            said.append((rows["USDC_balance_raw"].tolist(), verify_payout(tmp_path / "drop", each)))
        running.stop()
    (before, same), (after, moved) = said
    assert before != after
    assert moved == (
        f"{same} The data has changed since, and was asked as of then, by the number of the block: "
        "no answer has its hash."
    )


@pytest.mark.slow
def test_a_payout_names_the_hash_of_its_block_by_which_a_reorganisation_is_found(client, tmp_path):
    def served(name, last, branch="", *, late):
        """Return a client of data up to a block, and the hash of block 102 there; of no branch it has none."""
        token, tx = THREE, (f"0x{n:064x}" for n in range(9))
        rows = [
            f"{token},{'0x' + '0' * 40},{ONE},5,{next(tx)},{n},{n}" for n in range(100, last + 1)
        ]
        files = {
            "transfers": "token_address,from_address,to_address,value,transaction_hash,log_index,block_number"
        }
        files = {"t": "\n".join([files["transfers"], *rows]), "b": "number,timestamp,hash\n"}
        hashes = {n: f"0x{n}{branch * (n == 102)}".ljust(66, "a") for n in range(100, last + 1)}
        files["b"] += "".join(
            f"{n},{1_700_000_000 + n + late},{hashes[n] if branch else ''}\n" for n in hashes
        )
        for file, text in files.items():
            (tmp_path / f"{name}-{file}.csv").write_text(text)
        ingest([tmp_path / f"{name}-{file}.csv" for file in files], "ethereum", tmp_path / name)
        running = Running(tmp_path / name, tmp_path / f"{name}-state")
        return running, Client(running.url, KEY, settings=client.settings), hashes[102]

    found = {}
    for name, last, branch in (
        ("made", 102, "b"),
        ("grown", 103, "b"),
        ("reorganised", 103, "c"),
        ("unknown", 103, ""),
        ("of other times", 103, ""),
    ):
        running, each, of_block = served(name, last, branch, late=name == "of other times")
        with each:
            if name == "made":
                rows = each.execute_segment({"token": {"token": THREE}}, limit="all")
                at = {"block": 102, "timestamp": "2023-11-14T22:15:02Z", "hash": of_block}
                assert rows.attrs["nbext"]["as_of"] == at
                nbext.payout(rows, 7, to=tmp_path / "drop", client=each)
                manifest, before = said(tmp_path / "drop"), of_block
                assert (manifest["as_of"], manifest["block_hash"]) == (
                    {"block": 102, "timestamp": "2023-11-14T22:15:02Z"},
                    of_block,
                )
            try:
                found[name] = verify_payout(tmp_path / "drop", each)
            except StorageError as error:
                found[name] = str(error)
        running.stop()
    same = found["made"]
    moved = " The data has changed since, and was asked as of then"
    assert found == {
        "made": f"{tmp_path}/drop: 1 claims, their sum and their root are what the request gives.",
        "grown": f"{same}{moved}.",
        "reorganised": f"{tmp_path}/drop has 1 differences from what its request gives.{moved}: that block has "
        "another hash now, as the chain was reorganised.\n  manifest.json: block_hash is "
        f"'{before}', the request gives '{'0x102c'.ljust(66, 'a')}'",
        "unknown": f"{same}{moved}, by the number of the block: no answer has its hash.",
        "of other times": f"{tmp_path}/drop has 1 differences from what its request gives.{moved}, by the number of "
        "the block: no answer has its hash.\n  manifest.json: as_of is an object, the request gives an object",
    }


def test_a_payout_to_one_wallet_has_a_root_without_a_proof(pay, tmp_path):
    pay([ONE], np.int64(7), pay_contracts=np.bool_(False))
    found = nbext.proof(tmp_path / "drop", ONE)
    assert (found["amount"], found["proof"], found["indexed_proof"]) == ("7", [], [])
    assert json.loads((tmp_path / "drop/indexed.json").read_text()) == {
        "merkleRoot": found["indexed_root"],
        "tokenTotal": "0x7",
        "claims": {ONE: {"index": 0, "amount": "0x7", "proof": []}},
    }
    assert said(tmp_path / "drop")["terms"]["total"] == "7"


def test_a_link_to_a_device_is_not_read(folder, client):
    (folder / "claims.csv").unlink()
    (folder / "claims.csv").symlink_to("/dev/zero")
    with pytest.raises(StorageError, match="is not there"):
        nbext.proof(folder, ONE)
    with pytest.raises(StorageError, match="is not there"):
        verify_payout(folder, client)


def test_a_manifest_cannot_have_files_written(folder, client, tmp_path):
    manifest = said(folder)
    for part, why in (("request", "manifest.json: request is an object"), ("terms", "is damaged")):
        changes = {**manifest[part], "to": str(tmp_path / "stolen.csv"), "overwrite": True}
        (folder / "manifest.json").write_text(json.dumps({**manifest, part: changes}))
        with pytest.raises(StorageError, match=why):
            verify_payout(folder, client)
    assert not (tmp_path / "stolen.csv").exists()


def test_of_another_service_it_is_said_that_contracts_are_not_known(running, client, tmp_path):
    with Client(running.url, KEY, settings=client.settings) as stranger:
        stranger._service.ours = False
        rows = stranger.execute_segment(UNI, limit=1000)
        claims = nbext.payout(rows, 10**6, to=tmp_path / "drop", client=stranger)
        assert len(claims) == len(rows) == 262
        assert claims.attrs["nbext"]["warnings"][-1] == (
            "The service does not say which wallets are contracts: they are paid, too."
        )
        assert "262 claims" in verify_payout(tmp_path / "drop", stranger)
        # One that says the time of its answers, and no block, cannot be asked as of then.
        own = {"data": None, "as_of": {"timestamp": "2025-01-01T00:00:00Z"}}
        manifest = {**said(tmp_path / "drop"), **own}
        (tmp_path / "drop/manifest.json").write_text(json.dumps(manifest))
        assert "262 claims" in verify_payout(tmp_path / "drop", stranger)
