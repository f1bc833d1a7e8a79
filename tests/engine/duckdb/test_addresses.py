"""Addresses in a file of fixed width are those of the table, or there is no file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nbext.core.atomic_files import is_intact
from nbext.engine import storage
from nbext.engine.duckdb import dataset as duck
from nbext.engine.duckdb.files import FOLDER, Addresses
from nbext.engine.open import open_dataset
from tests.engine import forms

TEXTS = [f"0x{n:040x}" for n in range(1000, 0, -1)]


def columns(*lengths):
    start = 0
    for length in lengths:
        # A slice of a longer column, as engines hand them over.
        yield pa.array(["x", *TEXTS[start : start + length]]).slice(1)
        start += length


def is_made(addresses):
    return addresses.of(np.array([], np.int32)) is not None


def test_addresses_are_looked_up_in_any_order_and_again_after_opening(tmp_path):
    wallets = np.array([999, 0, 400, 399, 0], np.int32)
    # Of the second the file is there.
    for texts in (columns(400, 0, 600), []):
        addresses = Addresses(tmp_path, "one")
        assert not is_made(addresses)
        addresses.make(texts, 1000)
        assert is_made(addresses)
        assert addresses.of(wallets).to_pylist() == [TEXTS[wallet] for wallet in wallets]
        assert addresses.of(np.array([], np.int32)).to_pylist() == []
    assert [path.name for path in tmp_path.iterdir()] == [FOLDER]


@pytest.mark.parametrize(
    ("texts", "number"),
    [(TEXTS[:5], 6), ([*TEXTS[:5], "0x1"], 6), ([TEXTS[0] + "0", TEXTS[1][:-1]], 2)],
)
def test_columns_that_are_not_all_the_addresses_leave_no_file(tmp_path, texts, number):
    addresses = Addresses(tmp_path, "one")
    addresses.make([pa.array(texts)], number)
    assert not is_made(addresses)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_has_no_file(tmp_path):
    addresses = Addresses(tmp_path / "absent", "one")
    addresses.make(columns(5), 5)
    assert not is_made(addresses)


def test_an_address_that_changed_on_the_disk_is_found_by_the_check_and_never_answered(
    tmp_path, monkeypatch
):
    forms.generation(tmp_path)
    monkeypatch.setattr(duck, "MANY_WALLETS", 1)
    served = storage.current_generation(tmp_path)
    folder = served.folder / FOLDER

    def answered():
        dataset = open_dataset(tmp_path)
        dataset._preparing.result()
        assert is_made(dataset._addresses)
        found = dataset.ask(forms.question("token", dataset), limit=100).rows
        dataset.close()
        return found

    def flip(path):
        path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])

    def make_of_another_generation(path):
        number = path.stat().st_size // 42
        texts = pa.array([f"0x{n:040x}" for n in range(number)])
        for one in folder.iterdir():
            one.unlink()
        folder.rmdir()
        Addresses(served.folder, "another").make([texts], number)

    expected = answered()
    for name in ("addresses.txt", "sha256"):
        for change in (flip, lambda path: path.unlink(), make_of_another_generation):
            if change is make_of_another_generation and name == "sha256":
                continue
            change(folder / name)
            assert list(storage.damage_of(tmp_path)) == [
                f"chain data: {folder} has other bytes than were written. Start the services on the data folder "
                "again: they make it anew."
            ]
            assert answered() == expected
            assert is_intact(folder, served.fingerprint)
            assert list(storage.damage_of(tmp_path)) == []


def test_answers_are_the_same_with_the_file_and_without(tmp_path, monkeypatch):
    forms.generation(tmp_path)
    without = open_dataset(tmp_path)
    expected = without.ask(forms.question("token", without), limit=100).rows
    assert not is_made(without._addresses)
    without.close()
    monkeypatch.setattr(duck, "MANY_WALLETS", 1)
    dataset = open_dataset(tmp_path)
    dataset._preparing.result()
    assert is_made(dataset._addresses)
    assert dataset.ask(forms.question("token", dataset), limit=100).rows == expected
    dataset.close()
