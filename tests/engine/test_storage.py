"""Generations: switched in one step, refused when damaged, pruned when nobody can need them."""

from __future__ import annotations

import json

import pytest

from nbext.engine import storage
from nbext.engine.dataset import ChainExtent
from nbext.errors import StorageError


def build(data_dir, fingerprint):
    folder = storage.begin(data_dir)
    (folder / storage.TABLES_FILE).write_bytes(b"tables")
    chains = [{"chain_id": 1, "first_block": 5, "last_block": 9, "last_timestamp": None}]
    return storage.publish(data_dir, folder, {"fingerprint": fingerprint, "chains": chains})


def test_a_folder_without_data_has_no_generation(tmp_path):
    assert storage.current(tmp_path) is None


def test_what_was_published_is_what_is_served(tmp_path):
    published = build(tmp_path, "ab12" * 8)
    served = storage.current(tmp_path)
    assert served == published
    assert served.folder.name == "000001-" + "ab12" * 4
    assert served.tables.read_bytes() == b"tables"
    assert served.chains == (ChainExtent(1, 5, 9, None),)
    assert served.manifest["format"] == 1


def test_the_two_newest_generations_are_kept(tmp_path):
    for fingerprint in ("aaaa", "bbbb", "cccc"):
        build(tmp_path, fingerprint)
    assert sorted(p.name for p in (tmp_path / "generations").iterdir()) == ["000002-bbbb", "000003-cccc"]
    assert storage.current(tmp_path).number == 3


def test_what_a_killed_build_left_behind_is_cleared_away(tmp_path):
    build(tmp_path, "aaaa")
    orphan = tmp_path / "generations" / "000002-dddd"
    orphan.mkdir()
    (tmp_path / "generations" / ".building-1").mkdir()
    assert storage.current(tmp_path).number == 1
    build(tmp_path, "bbbb")
    assert sorted(p.name for p in (tmp_path / "generations").iterdir()) == ["000001-aaaa", "000002-bbbb"]


@pytest.mark.parametrize("text", ["../../etc", "", "000001-zzzz/..", "latest"])
def test_a_pointer_that_names_no_generation_is_refused(tmp_path, text):
    (tmp_path / "current").write_text(text)
    with pytest.raises(StorageError, match="is not the name of a generation"):
        storage.current(tmp_path)


def test_a_damaged_manifest_is_refused_with_its_path(tmp_path):
    folder = build(tmp_path, "aaaa").folder
    (folder / "manifest.json").write_text("{")
    with pytest.raises(StorageError, match=r"manifest\.json cannot be read"):
        storage.current(tmp_path)


def test_a_manifest_of_a_later_format_is_refused(tmp_path):
    folder = build(tmp_path, "aaaa").folder
    (folder / "manifest.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(StorageError, match="reads format 1"):
        storage.current(tmp_path)
