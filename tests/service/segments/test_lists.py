"""Lists of wallets: sent once, named by their hash, stored like results."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import threading
import time
from base64 import urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor

import pytest

from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import Key
from nbext.service.limits import Bound, Limits, Policy
from nbext.service.problems import Problem
from nbext.service.segments.lists import Lists
from tests.service.conftest import Running

BYTES = {"Content-Type": "application/octet-stream"}
SEEN = {
    "filters": {"token": {"token": "USDC", "balance": {"min": "0"}}, "exclude": []},
    "limit": 300,
}


def sent(service, body, headers=BYTES):
    return service.session.post(f"{service.url}/lists", data=body, headers=headers, timeout=60)


def packed(addresses):
    return b"".join(bytes.fromhex(address[2:]) for address in addresses)


def lists_of(folder, **policy):
    lists = Lists(folder, Database(folder / "registry.sqlite", policy=Policy(**policy)))
    lists.claim(expected=False)
    return lists


def stored_in(lists):
    return sorted(path.name for path in lists.folder.iterdir() if path.name != "registry-id")


def id_of(addresses):
    digest = hashlib.sha256(packed(sorted({address.lower() for address in addresses}))).digest()
    return "ls_" + urlsafe_b64encode(digest[:18]).decode()


@pytest.fixture(scope="module")
def wallets(service):
    rows = service.get(service.execute(SEEN)["links"]["json"]).json()["data"]
    return [row["address"] for row in rows]


def test_a_list_is_named_by_its_addresses_in_order_and_each_once(service, wallets):
    strangers = ["0x" + os.urandom(20).hex() for _ in range(50)]
    addresses = [*wallets, *strangers, *wallets[:40]]
    random.Random(1).shuffle(addresses)
    answer = sent(service, packed(addresses))
    expected = {"id": id_of(addresses), "wallets": 350}
    assert (answer.status_code, answer.json()) == (201, expected)
    assert answer.headers["Location"] == f"/lists/{expected['id']}"
    assert sent(service, packed(sorted(set(addresses)))).json() == expected
    assert service.get(f"/lists/{expected['id']}").json() == expected
    stored = service.container.segments.lists.folder / expected["id"]
    assert stored.read_bytes() == packed(sorted(set(addresses)))
    assert [path.name for path in stored.parent.iterdir() if path.suffix == ".part"] == []


def test_a_segment_of_a_list_is_that_of_its_addresses(service, wallets):
    some = wallets[::3]
    found = sent(service, packed([*some, "0x" + "ab" * 20])).json()["id"]
    for more in ({}, {"contract": False}):
        for around in (lambda one: one, lambda one: {"not": one, "token": {"token": "USDC"}}):
            by_list = around({"wallet": {"list": found, **more}})
            inline = around({"wallet": {"in": [*some, "0x" + "ab" * 20], **more}})
            answers = [
                service.execute({"filters": filters, "limit": 10_000})
                for filters in (by_list, inline)
            ]
            rows = [service.get(answer["links"]["json"]).json()["data"] for answer in answers]
            assert rows[0] == rows[1] != []
            assert answers[0]["id"] != answers[1]["id"]


def test_another_list_is_another_segment(service, wallets):
    ids = [sent(service, packed(wallets[:size])).json()["id"] for size in (3, 4)]
    answers = [
        service.execute({"filters": {"wallet": {"list": one}, "exclude": []}}) for one in ids
    ]
    assert [answer["counts"]["matched"] for answer in answers] == [3, 4]
    assert len({answer["id"] for answer in answers}) == 2
    again = service.execute({"filters": {"wallet": {"list": ids[0]}, "exclude": []}})
    assert again["cached"]
    assert again["id"] == answers[0]["id"]


def test_explain_names_the_list_and_how_many_are_in_it(service, wallets):
    found = sent(service, packed(wallets[:5])).json()["id"]
    told = service.post(
        "/explain", {"filters": {"wallet": {"list": found}, "exclude": []}, "parts": True}
    ).json()
    assert told["words"] == f"wallets that are in a list of 5 wallets ({found}); burn addresses too"
    assert told["canonical"]["filters"]["wallet"] == {"list": found}
    assert f"-- 1: the 5 wallets of the list {found}" in told["sql"]
    assert told["parts"] == [{"words": f"are in a list of 5 wallets ({found})", "matched": 5}]


def test_a_list_that_is_gone_is_said_so(service, wallets):
    found = sent(service, packed(wallets[:6])).json()["id"]
    (service.container.segments.lists.folder / found).unlink()
    assert service.get(f"/lists/{found}").status_code == 404
    answer = service.post("/v1/segment/execute", {"filters": {"wallet": {"list": found}}})
    assert (answer.status_code, answer.json()["errors"]) == (
        422,
        [
            {
                "pointer": "/filters/wallet/list",
                "code": "unknown-list",
                "detail": f"No list {found} is stored here: lists are deleted when they are not used. "
                "Send it to POST /lists.",
            }
        ],
    )


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"", BYTES, 422, "invalid"),
        (b"x" * 21, BYTES, 422, "invalid"),
        (b"x" * 20, {"Content-Type": "application/json"}, 415, "media-type"),
        (b"x" * 20, {**BYTES, "Content-Encoding": "gzip"}, 415, "media-type"),
        (b"x" * 20, {**BYTES, "x-api-key": "another"}, 401, "key-unknown"),
    ],
)
def test_what_is_no_list_is_refused_and_leaves_nothing(service, body, headers, status, code):
    before = sorted(service.container.segments.lists.folder.iterdir())
    answer = sent(service, body, headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert sorted(service.container.segments.lists.folder.iterdir()) == before


@pytest.mark.slow
def test_a_list_is_bounded_whether_its_length_is_declared_or_not(data_dir, tmp_path):
    bound = Bound("lists of wallets", per_key=2, in_all=4)
    service = Running(
        data_dir, tmp_path, Limits(list_wallets=3, arrive_seconds=1.0, receiving=bound)
    )
    try:
        answers = [
            sent(service, b"x" * 80),
            sent(service, iter([b"x" * 40, b"y" * 40])),
            sent(service, os.urandom(60)),
        ]
        assert [answer.status_code for answer in answers] == [413, 413, 201]
        assert answers[0].json()["detail"] == "The body is longer than 60 bytes."

        def dripping():
            for _ in range(60):
                time.sleep(0.1)
                yield b"x"

        assert sent(service, dripping()).status_code == 408
        taken = service.container.receiving.taken
        with taken("owner"), taken("other"):
            assert sent(service, os.urandom(60)).status_code == 201
            with taken("owner"):
                assert sent(service, os.urandom(60)).json()["code"] == "too-many-at-once"
            with taken("other"), taken("another"):
                assert sent(service, os.urandom(60)).json()["code"] == "busy"
        assert sent(service, os.urandom(60)).status_code == 201
    finally:
        service.stop()


def test_lists_are_deleted_when_unused_or_without_room_and_changed_ones_are_not_served(tmp_path):
    lists = lists_of(tmp_path, keep_days=2, list_bytes=100)

    def stored(addresses):
        with lists.room() as part:
            part.write_bytes(addresses)
            return lists.store(part).id

    def aged(name, days):
        os.utime(lists.folder / name, (time.time() - days * 86_400,) * 2)

    first, second = (stored(os.urandom(40)) for _ in range(2))
    with pytest.raises(Problem, match="in use take 80 of 100 bytes"):
        stored(os.urandom(40))
    assert stored_in(lists) == sorted([first, second]), "each was used within the hour"
    aged(first, 1)
    third = stored(os.urandom(40))
    assert lists.find(first) is None, "the least recently used gave way to the third"
    aged(second, 3)
    aged(third, 1)
    assert lists.find(second), "asking for it is using it"
    lists.trim(aged=True)
    assert stored_in(lists) == sorted([second, third])
    aged(third, 3)
    lists.trim()
    assert stored_in(lists) == sorted([second, third]), "the clock may be wrong"
    lists.trim(aged=True)
    assert stored_in(lists) == [second]
    (lists.folder / second).write_bytes(b"x" * 40)
    assert lists_of(tmp_path).find(second) is None
    assert (
        stored_in(lists),
        [path.name for path in lists.folder.with_name("aside").iterdir()],
    ) == ([], [second])


def test_of_two_lists_that_arrive_together_one_has_the_last_room(tmp_path, monkeypatch):
    lists, both = lists_of(tmp_path, list_bytes=60), threading.Barrier(2)
    trim = lists.trim

    def together(**options):
        trim(**options)
        # Where both are here at once, each has found room.
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(2)

    def stored(number):
        with lists.room() as part:
            part.write_bytes(bytes([number]) * 20 + bytes([9]) * 20)
            try:
                return lists.store(part).wallets
            except Problem as problem:
                return problem.code

    monkeypatch.setattr(lists, "trim", together)
    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(stored, (1, 2))) == {2, "quota"}
    assert len(stored_in(lists)) == 1


def test_a_key_has_a_share_and_no_list_of_the_hour_gives_way_to_another_keys(tmp_path):
    lists = lists_of(tmp_path, list_bytes=400)
    ada, bob, eve = (Key(name * 12, name, private=name == "e") for name in "abe")

    def stored(key):
        with lists.room() as part:
            part.write_bytes(os.urandom(40))
            return lists.store(part, key).id

    first, second = stored(ada), stored(ada)
    with pytest.raises(Problem, match="This key's lists that are in use take 80 of 100 bytes"):
        stored(ada)
    others = [stored(bob), stored(eve)]
    assert [bool(lists.find(name, ada)) for name in (first, second, *others)] == [1, 1, 1, 0]
    assert [bool(lists.find(name, eve)) for name in (first, *others)] == [0, 0, 1]
    # After a while its own oldest gives way, and nobody else's.
    for path in lists.folder.glob(f"{first}.*"):
        os.utime(path, (time.time() - 86_400,) * 2)
    third = stored(ada)
    assert [bool(lists.find(name)) for name in (first, second, third, *others)] == [0, 1, 1, 1, 1]


def test_sorting_in_blocks_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("nbext.service.segments.lists._BLOCK", 7)
    lists, draw = lists_of(tmp_path), random.Random(3)
    for length in (1, 2, 7, 8, 15, 200):
        for kinds in (1, 2, 40, 10_000):
            rows = [draw.randrange(kinds).to_bytes(20, "big")[::-1] for _ in range(length)]
            with lists.room() as part:
                part.write_bytes(b"".join(rows))
                found = lists.store(part)
            assert found.path.read_bytes() == b"".join(sorted(set(rows)))
            assert found.wallets == len(set(rows))


def test_a_private_keys_list_is_its_own_and_the_service_runs_its_segments(service, wallets):
    add = service.container.keys.add
    private, open_ = (
        {"x-api-key": add(name, private=name == "eve")[1].reveal()} for name in ("eve", "ada")
    )
    hers = sent(service, packed(wallets[:7]), BYTES | private).json()["id"]
    theirs = sent(service, packed(wallets[:8]), BYTES | open_).json()["id"]
    seen = [
        service.get(f"/lists/{one}", headers=who).status_code
        for who in (private, open_)
        for one in (hers, theirs)
    ]
    assert seen == [200, 404, 404, 200]
    body = {"filters": {"wallet": {"list": hers}, "exclude": []}}
    assert service.execute(body, headers=private)["counts"]["matched"] == 7
    assert (
        service.post("/v1/segment/execute", body, headers=open_).json()["errors"][0]["code"]
        == "unknown-list"
    )
