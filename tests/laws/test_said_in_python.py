"""What a magic says beside its table, the same call in Python warns of; and whoever gets less than matched is told."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import nbext
from tests.notebook.conftest import home, shell

__all__ = ["home", "shell"]

UNI = {"token": {"token": "UNI"}}
BURNED = {"nft": {"nft": "BAYC"}}
NOBODY = {"token": {"token": "UNI", "balance": {"min": "1000000000"}}}
# A magic, and the call that is the same in Python.
SAME: dict[str, Callable[[nbext.Client], Any]] = {
    '%segment {"token": {"token": "UNI"}} --limit 2': lambda client: client.execute_segment(
        UNI, limit=2
    ),
    '%segment {"token": {"token": "UNI"}}': lambda client: client.execute_segment(UNI),
    '%segment {"nft": {"nft": "BAYC"}}': lambda client: client.execute_segment(BURNED),
    '%segment {"nft": {"nft": "BAYC"}} --limit 1': lambda client: client.execute_segment(
        BURNED, limit=1
    ),
    '%segment {"token": {"token": "UNI", "balance": {"min": "1000000000"}}}': lambda client: (
        client.execute_segment(NOBODY)
    ),
    '%nft search "a" --limit 1': lambda client: client.search_nfts("a", limit=1),
    '%nft search "a" --limit 3 --offset 2': lambda client: client.search_nfts(
        "a", limit=3, offset=2
    ),
    "%nbext overlap BAYC MAYC": lambda client: nbext.overlap(["BAYC", "MAYC"], client=client),
    "%nbext funnel BAYC": lambda client: nbext.funnel("BAYC", client=client),
    "%nbext concentration UNI": lambda client: nbext.concentration("UNI", client=client),
    "%nbext trend BAYC --every 13w --since 26w": lambda client: nbext.trend(
        "BAYC", every="13w", since="26w", client=client
    ),
    "%nbext retention UNI --by quarter": lambda client: nbext.retention(
        "UNI", by="quarter", client=client
    ),
    '%segment {"nft": {"nft": "BAYC"}} --profile': lambda client: nbext.profile(
        "BAYC", client=client
    ),
    '%segment {"nft": {"nft": "BAYC"}} --changes 26w': lambda client: nbext.changes(
        "BAYC", "26w", client=client
    ),
}


def said(call: Callable[[], Any]) -> list[str]:
    """Return what a call warns of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in found if issubclass(one.category, UserWarning)]


def printed(text: str) -> list[str]:
    """Return the notes and the cut among what a magic prints."""
    lines = text.splitlines()
    notes = [line.removeprefix("note: ") for line in lines if line.startswith("note: ")]
    return [*(line for line in lines if " of " in line and not line.startswith("note: ")), *notes]


@pytest.mark.slow
def test_every_note_of_a_magic_is_a_warning_in_python(shell):
    client = nbext.connect()
    silent = {}
    for magic, call in SAME.items():
        ran = shell.run(f"{magic} -o table")
        assert ran.error is None, (magic, ran.shown_error)
        told, warned = printed(ran.printed), said(lambda call=call: call(client))
        lacking = [note for note in told if not any(note.split(";")[0] in one for one in warned)]
        if lacking:
            silent[magic] = (lacking, warned)
    assert silent == {}


@pytest.mark.slow
def test_whatever_returns_less_than_matched_warns(shell):
    client = nbext.connect()
    segment = client.execute_segment(UNI, limit=2).attrs["nbext"]["segment_id"]
    less = {
        "execute_segment": lambda: client.execute_segment(UNI, limit=2),
        "execute_segment by default": lambda: client.execute_segment(UNI),
        "export_json": lambda: client.export_json(segment),
        "export_csv": lambda: client.export_csv(segment),
        "search_nfts": lambda: client.search_nfts("a", limit=1),
        "open": lambda: (
            nbext.overlap(["BAYC", "MAYC"], client=client).segment("BAYC", "MAYC").open(1)
        ),
    }
    assert [name for name, call in less.items() if not said(call)] == []
