"""Generations: switched in one step, refused when damaged, pruned when nobody can need them."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from nbext.engine import storage
from nbext.engine.dataset import ChainExtent
from nbext.errors import StorageError

REST = {
    "name": "made up",
    "synthetic": True,
    "created_at": "2026-01-01T00:00:00Z",
    "tables": {},
    "files": [],
}


def build(data_dir, fingerprint):
    folder = storage.create_building(data_dir)
    (folder / storage.TABLES_FILE).write_bytes(b"tables")
    chains = [{"chain_id": 1, "first_block": 5, "last_block": 9, "last_timestamp": None}]
    return storage.publish(data_dir, folder, {**REST, "fingerprint": fingerprint, "chains": chains})


def test_a_folder_without_data_has_no_generation(tmp_path):
    assert storage.current_generation(tmp_path) is None


def test_what_was_published_is_what_is_served(tmp_path):
    published = build(tmp_path, "ab12" * 8)
    served = storage.current_generation(tmp_path)
    assert served == published
    assert served.folder.name == "000001-" + "ab12" * 4
    assert served.tables.read_bytes() == b"tables"
    assert served.chains == (ChainExtent(1, 5, 9, None),)
    assert served.manifest["format"] == storage.FORMAT
    assert served.manifest["digests"] == {"tables.duckdb": hashlib.sha256(b"tables").hexdigest()}


def test_a_folder_without_its_pointer_was_not_copied_whole_and_nothing_of_it_is_removed(tmp_path):
    build(tmp_path, "aaaa")
    (tmp_path / "current").unlink()
    says = (
        f"{tmp_path} is not whole: it has 000001-aaaa in 'generations', and no file 'current', which says what is "
        "served. Restore the data folder from a copy, or ingest the files into a new one."
    )
    for _ in range(2):
        with pytest.raises(StorageError) as caught:
            storage.current_generation(tmp_path)
        assert str(caught.value) == says
        with pytest.raises(StorageError) as caught:
            build(tmp_path, "bbbb")
        assert str(caught.value) == says
    assert list(storage.damage_of(tmp_path)) == [f"chain data: {says}"]
    assert (tmp_path / "generations" / "000001-aaaa" / "tables.duckdb").is_file()


def test_a_first_generation_that_was_never_served_is_none(tmp_path, monkeypatch):
    # As by a process that is killed, or on a disk that is full, before what it built is served.
    write, killed = storage.write_whole, False

    def fails_at_the_switch(path, text, **kwargs):
        if path.name == "current" and text.startswith("000001-"):
            raise KeyboardInterrupt if killed else OSError("No space left on device")
        write(path, text, **kwargs)

    monkeypatch.setattr(storage, "write_whole", fails_at_the_switch)
    with pytest.raises(OSError, match="No space"):
        build(tmp_path, "aaaa")
    assert [path.name for path in tmp_path.rglob("*")] == ["generations"]
    killed = True
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, "aaaa")
    assert storage.current_generation(tmp_path) is None
    monkeypatch.undo()
    build(tmp_path, "bbbb")
    assert [path.name for path in (tmp_path / "generations").iterdir()] == ["000001-bbbb"]


def test_the_two_newest_generations_are_kept(tmp_path):
    for fingerprint in ("aaaa", "bbbb", "cccc"):
        build(tmp_path, fingerprint)
    assert sorted(p.name for p in (tmp_path / "generations").iterdir()) == [
        "000002-bbbb",
        "000003-cccc",
    ]
    assert storage.current_generation(tmp_path).number == 3


def test_what_a_killed_build_left_behind_is_cleared_away(tmp_path):
    build(tmp_path, "aaaa")
    orphan = tmp_path / "generations" / "000002-dddd"
    orphan.mkdir()
    (tmp_path / "generations" / ".building-1").mkdir()
    assert storage.current_generation(tmp_path).number == 1
    build(tmp_path, "bbbb")
    assert sorted(p.name for p in (tmp_path / "generations").iterdir()) == [
        "000001-aaaa",
        "000002-bbbb",
    ]


@pytest.mark.parametrize("text", ["../../etc", "", "000001-zzzz/..", "latest"])
def test_a_pointer_that_names_no_generation_is_refused(tmp_path, text):
    (tmp_path / "current").write_text(text)
    with pytest.raises(StorageError, match="is not the name of a generation"):
        storage.current_generation(tmp_path)


def test_a_damaged_manifest_is_refused_with_its_path(tmp_path):
    folder = build(tmp_path, "aaaa").folder
    (folder / "manifest.json").write_text("{")
    with pytest.raises(
        StorageError, match=r"manifest\.json is damaged: its SHA-256 is not the one in .*current"
    ):
        storage.current_generation(tmp_path)
    point(tmp_path, folder)
    with pytest.raises(StorageError, match=r"manifest\.json cannot be read: JSONDecodeError"):
        storage.current_generation(tmp_path)


def point(data, folder):
    """Have the pointer name a manifest as it is."""
    digest = hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
    (data / "current").write_text(f"{folder.name} {digest}\n")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 7}, "has format 7, of another version of nbext; this one reads format 8. "),
        (
            {"format": "2"},
            "has format '2', of another version of nbext; this one reads format 8. "
            "Use that version, or ingest the files into a new data folder.",
        ),
        ({"chains": [{"chain_id": 1}]}, "cannot be read: TypeError"),
        ({"chains": [1]}, "cannot be read: AttributeError"),
        ({"fingerprint": ...}, "cannot be read: KeyError('fingerprint')"),
        ({"digests": None}, "cannot be read: TypeError"),
    ],
)
def test_a_manifest_that_is_damaged_or_of_another_format_is_one_clear_error(tmp_path, change, says):
    path = build(tmp_path, "aaaa").folder / "manifest.json"
    changed = json.loads(path.read_text()) | change
    path.write_text(json.dumps({name: one for name, one in changed.items() if one is not ...}))
    point(tmp_path, path.parent)
    with pytest.raises(StorageError, match=re.escape(str(path)) + ".*" + re.escape(says)):
        storage.current_generation(tmp_path)
