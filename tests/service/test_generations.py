"""A service that runs while data is ingested: what it answers from, before, between and after."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import duckdb
import pytest
import requests

from nbext import Client
from nbext.engine import storage
from nbext.engine.dataset import Cancel
from nbext.engine.ingest import ingest, remove
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.open import Newest, open_dataset
from nbext.language import language
from nbext.service.accounts.keys import Key
from nbext.service.limits import Limits
from nbext.settings import Settings
from tests.engine.ingest import large
from tests.service.conftest import KEY, Running
from tests.service.process import serve
from tests.service.segments.test_segments import Slow

TOKEN = f"0x{7:040x}"
HEADER = "token_address,from_address,to_address,value,transaction_hash,log_index,block_number\n"


def add(data: Path, day: int) -> None:
    """Ingest a day: as many new holders as it has as a number, at block 100 times it."""
    rows = [
        f"{TOKEN},0x{0:040x},0x{day * 100 + n:040x},{10**20},0x{day * 100 + n:064x},0,{day * 100}\n"
        for n in range(day)
    ]
    path = data.parent / f"{data.name}-{day}.csv"
    path.write_text(HEADER + "".join(rows))
    ingest([path], "ethereum", data)


def holders(limit: int = 100) -> dict[str, Any]:
    return {"filters": {"token": {"token": TOKEN, "unit": "raw"}}, "limit": limit}


def eventually(true: Callable[[], Any]) -> None:
    until = time.monotonic() + 300
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def last_block(service: Any) -> int:
    return service.get("/about").json()["data"]["chains"][0]["lastBlock"]


@pytest.fixture
def data(request, tmp_path):
    if hasattr(request, "param"):
        large.begin(tmp_path / "data")
    add(tmp_path / "data", 1)
    return tmp_path / "data"


@pytest.fixture
def live(data, tmp_path):
    newest = Newest(data)
    running = Running(data, tmp_path / "state", dataset=newest.open(), newer=newest.newer)
    yield running
    running.stop()


def test_new_data_is_served_by_itself_under_new_ids_and_the_log_and_the_metrics_say_so(live, data):
    first = live.execute(holders())
    add(data, 2)
    eventually(lambda: last_block(live) == 200)
    second = live.execute(holders())
    assert [(one["counts"]["matched"], one["asOf"]["block"]) for one in (first, second)] == [
        (1, 100),
        (3, 200),
    ]
    assert first["id"] != second["id"]
    assert live.get(f"/v1/segment/{first['id']}").json()["counts"]["matched"] == 1, (
        "the answer before stays readable"
    )
    assert live.get(f"/v1/tokens/ethereum/{TOKEN}").json()["holders"] == 3
    fingerprint = storage.current_generation(data).fingerprint
    assert live.get("/about").headers["x-nbext-data"] == fingerprint
    assert (
        f'nbext_data{{fingerprint="{fingerprint}",name="ingested data"}} 1.0'
        in live.get("/metrics").text
    )
    (line,) = [line for line in live.lines() if line["event"] == "new data is served"]
    assert (line["fingerprint"], line["last_blocks"]) == (fingerprint, {"ethereum": 200})


@pytest.mark.slow
def test_a_service_ends_though_new_data_is_being_opened_and_does_not_come_to_an_end(
    data, tmp_path, monkeypatch
):
    opening, go = Event(), Event()

    def newer() -> None:
        opening.set()
        assert go.wait(120)

    monkeypatch.setattr("nbext.service.server._CLOSE_SECONDS", 0.2)
    running = Running(data, tmp_path / "state", newer=newer)
    try:
        assert opening.wait(30)
        running.stop()
    finally:
        go.set()
    # What was left to end with the process does so, here by itself.
    eventually(lambda: not running.container.generations.thread.is_alive())


@pytest.mark.slow
def test_the_sample_gives_way_to_data_of_ones_own_and_comes_back_once_that_is_removed(tmp_path):
    newest = Newest(tmp_path / "data")
    running = Running(
        tmp_path / "data", tmp_path / "state", dataset=newest.open(), newer=newest.newer
    )
    try:
        sample = {"filters": {"token": {"token": "USDC"}}, "limit": 0}
        assert running.execute(sample)["counts"]["matched"] > 0
        assert running.get("/readyz").json()["data"] == "sample"
        add(tmp_path / "data", 1)
        eventually(lambda: running.get("/readyz").json()["data"] == "ingested")
        assert running.execute(holders())["counts"]["matched"] == 1
        assert running.execute(sample)["counts"]["matched"] == 0
        for gone in ("data-1.csv", None):
            remove(gone, tmp_path / "data")
            eventually(lambda: running.get("/readyz").json()["data"] == "sample")
            assert running.execute(sample)["counts"]["matched"] > 0
            add(tmp_path / "data", 1)
            eventually(lambda: running.get("/readyz").json()["data"] == "ingested")
            assert running.execute(holders())["counts"]["matched"] == 1
    finally:
        running.stop()


@pytest.mark.slow
def test_what_began_before_new_data_ends_on_the_old_and_what_begins_after_it_does_not_wait(
    data, tmp_path
):
    newest = Newest(data)
    slow = Slow(newest.open())
    running = Running(data, tmp_path / "state", Limits(workers=1), dataset=slow, newer=newest.newer)
    try:
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(running.execute, holders(limit)) for limit in (10, 20)]
            # Both are in the queue; the second has not begun.
            assert slow.asked.acquire(timeout=30)
            eventually(lambda: running.container.segments.store.queued() == 1)
            for day in (2, 3):  # the second takes the files of the first away
                add(data, day)
                running.container.generations.refresh()
            assert len(list((data / "generations").iterdir())) == storage.KEPT
            assert running.container.generations.fingerprints().count(slow.about.fingerprint) == 1
            slow.go.set()
            counts = [
                (one.result()["counts"]["matched"], one.result()["asOf"]["block"])
                for one in waiting
            ]
        assert counts == [(1, 100), (1, 100)]
        after = running.execute(holders(10))
        assert (after["counts"]["matched"], after["asOf"]["block"]) == (6, 300)
        running.container.generations.refresh()
        assert running.container.generations.fingerprints() == [
            storage.current_generation(data).fingerprint
        ]
    finally:
        slow.go.set()
        running.stop()


@pytest.mark.slow
def test_two_calls_of_one_idempotency_key_are_one_segment_though_the_data_changed_between_them(
    live, data
):
    segments, generations, key = live.container.segments, live.container.generations, Key("a", "a")
    # Both look before either has made a segment.
    claims = [segments.repeated("one", key, holders())[0] for _ in range(2)]
    told = []
    for day, claim in enumerate(claims, 2):
        with generations.acquire() as dataset:
            plan = segments.planner(dataset, key, Cancel()).plan(holders())
            told.append(segments.execute(dataset, plan, holders(), key, claim))
        add(data, day)
        generations.refresh()
    made = told[0].segment.id
    assert [(each.segment.id, each.replayed) for each in told] == [(made, False), (made, True)]


@pytest.mark.slow
def test_a_generation_that_is_lent_is_asked_though_its_files_are_removed(live, data):
    """On Linux a file that is open or mapped stays readable when its name is removed; DuckDB holds its files open."""
    generations = live.container.generations
    with generations.acquire() as old:
        folder = storage.current_generation(data).folder
        for day in (2, 3, 4):
            add(data, day)
            generations.refresh()
        assert not folder.exists()
        assert old.catalog.contract(1, TOKEN).holders == 1
        segments = live.container.segments
        plan = segments.planner(old, None, Cancel()).plan(holders())
        assert old.ask(language.compile(plan), limit=10).rows["address"].to_pylist() == [
            f"0x{100:040x}"
        ]
        assert len(generations.fingerprints()) == 2
    generations.refresh()
    assert len(generations.fingerprints()) == 1


@pytest.mark.slow
def test_data_that_cannot_be_opened_is_said_once_and_the_data_before_is_served(live, data):
    generations = live.container.generations
    add(data, 2)
    eventually(lambda: last_block(live) == 200)
    manifest = storage.current_generation(data).folder / "manifest.json"
    whole = manifest.read_text()
    manifest.write_text("{")
    os.utime(data / "current")
    for _ in range(3):
        generations.refresh()
    assert live.execute(holders())["counts"]["matched"] == 3
    (line,) = [line for line in live.lines() if line["level"] == "error"]
    assert (line["event"], line["error"]) == (
        "new data cannot be opened; the data before is served",
        "StorageError",
    )
    manifest.write_text(whole)
    generations.refresh()
    add(data, 3)
    eventually(lambda: last_block(live) == 300)


@pytest.mark.slow
@pytest.mark.parametrize("data", ["large"], indirect=True)
def test_data_that_cannot_be_opened_does_not_keep_the_service_from_the_next(live, data):
    add(data, 2)
    eventually(lambda: last_block(live) == 200)
    served = storage.current_generation(data)
    building = shutil.copytree(served.folder, data / "generations" / ".building-again")
    with duckdb.connect(str(building / served.delta.name), read_only=True) as connection:
        found = connection.execute(
            "SELECT min(block_id) FROM pragma_storage_info('ingest.places') WHERE block_id >= 0"
        )
        place = 3 * 4096 + found.fetchall()[0][0] * 2**18
    whole = served.delta.read_bytes()
    (building / served.delta.name).write_bytes(
        whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
    )
    (building / storage.MANIFEST).unlink()
    manifest = {key: value for key, value in served.manifest.items() if key != "number"}
    published = storage.publish(data, building, manifest)
    eventually(
        lambda: any(line["event"].startswith("new data cannot be opened") for line in live.lines())
    )
    published.delta.write_bytes(whole)
    add(data, 3)
    eventually(lambda: last_block(live) == 300)


def test_damaged_data_is_said_to_who_asks_and_to_the_operator(data, tmp_path):
    tables = storage.current_generation(data).tables
    with duckdb.connect(str(tables), read_only=True) as connection:
        found = connection.execute(
            "SELECT min(block_id) FROM pragma_storage_info('history') WHERE block_id >= 0"
        )
        block = 3 * 4096 + found.fetchall()[0][0] * 2**18
    with tables.open("r+b") as file:
        file.seek(block)
        byte = file.read(1)[0]
        file.seek(block)
        file.write(bytes([byte ^ 1]))
    running = Running(data, tmp_path / "state", dataset=open_dataset(data))
    try:
        held = {"filters": {"token": {"token": TOKEN, "unit": "raw", "heldSince": 100}}}
        answer = running.post("/v1/segment/execute", held)
        assert (answer.status_code, answer.json()["detail"]) == (
            500,
            "A stored file is damaged: `nbext check` says which. The operator's log has this request's id.",
        )
        # In the segment itself, or already where its words are made.
        (line,) = [line for line in running.lines() if "cause" in line]
        # DuckDB 1 says first that it is an error of input.
        assert (
            line["cause"]
            .replace("IO Error: ", "")
            .startswith("The chain data is damaged: Corrupt database file: computed checksum")
        )
        assert line["cause"].endswith(
            f"{block}. Restore the data folder from a copy, or ingest the files into a new one."
        )
        # Also where no segment failed, but the request itself.
        assert running.post("/counts", {"segments": [held], "counts": [[0]]}).status_code == 500
        failed = [line for line in running.lines() if line["event"] == "request failed"]
        assert {each["cause"] for each in failed} == {line["cause"]}
    finally:
        running.stop()


@pytest.mark.slow
def test_an_answer_about_every_contract_says_that_balances_begin_with_a_snapshot(data, tmp_path):
    path = tmp_path / "holders.csv"
    path.write_text(f"address,balance\n0x{5:040x},7\n")
    ingest(
        [path], "ethereum", data, options=SnapshotOptions(tokens={"": TOKEN}, unit="raw", block=150)
    )
    add(data, 2)
    running = Running(data, tmp_path / "state", dataset=open_dataset(data))
    try:
        line = (
            "Balances of 1 contract begin with a snapshot of holders, the last of block 150: nothing is known "
            "before."
        )
        everybody = {"activity": {"transfers": {"min": 0}}, "asOf": 149}
        for asked in (149, 150):
            lines = [line] if asked == 149 else []
            with Client(running.url, KEY, settings=Settings(environ={})) as client:
                held = client.holdings([f"0x{5:040x}"], as_of=asked)
            beside = (
                "1 of 1 contracts: shares of the supply are not known."
                if len(held)
                else f"0x{5:040x}: no holdings in this data."
            )
            assert held.attrs["nbext"]["warnings"] == [*lines, beside]
            profile = running.post("/profile", {"filters": {**everybody, "asOf": asked}}).json()
            assert [one for one in profile["warnings"] if one == line] == lines
    finally:
        running.stop()


def test_a_data_folder_that_is_gone_is_not_the_sample(live, data):
    # As a disk that is not mounted now.
    (data / "current").unlink()
    live.container.generations.refresh()
    assert live.execute(holders())["counts"]["matched"] == 1


@pytest.mark.parametrize("engine", ["local[2]", "duckdb://"])
def test_each_engine_follows_what_is_ingested(data, engine):
    newest = Newest(data, engine)
    newest.open().close()
    os.utime(data / "current")
    newest.newer().close()
    assert newest.newer() is None


@pytest.mark.parametrize(
    ("engine", "seconds"), [("duckdb://?threads=1", 30), ("DuckDB://", 30), ("local[2]", 300)]
)
def test_how_long_a_segment_may_run_depends_on_the_engine_that_answers(data, engine, seconds):
    assert Newest(data, engine).query_seconds == seconds


def asking(service: Any, until: Event, found: list[tuple[int, int]]) -> None:
    """Ask without a pause, over a connection of its own; put each answer's status and last block at its end."""
    with requests.Session() as session:
        session.headers["x-api-key"] = service.key
        number = 0
        while not until.is_set() or number % 2:
            number += 1
            token = {"token": TOKEN, "unit": "raw", "balance": {"max": str(10**20 + number)}}
            body = {"filters": {"token": token}, "limit": 5}
            answer = session.post(service.url + "/v1/segment/execute", json=body, timeout=120)
            while answer.status_code == 202:  # not finished within its time in the request
                answer = session.get(service.url + answer.headers["Location"], timeout=120)
            found.append((answer.status_code, answer.json().get("asOf", {}).get("block", 0)))


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", pytest.param("2", marks=pytest.mark.load)])
def test_no_request_is_dropped_while_data_arrives_and_a_hang_up_signal_ends_nothing(
    data, processes
):
    with serve(data, "--processes", processes) as running:
        running.process.send_signal(signal.SIGHUP)
        enough = Event()
        answers: list[list[tuple[int, int]]] = [[], [], []]
        with ThreadPoolExecutor(3) as pool:
            callers = [pool.submit(asking, running, enough, found) for found in answers]
            try:
                eventually(lambda: all(answers))
                for day in (2, 3, 4):
                    add(data, day)
                    running.process.send_signal(signal.SIGHUP)
                    blocks = set()

                    def all_serve(block: int, blocks: set[int] = blocks) -> bool:
                        # Each of a few connections is of one of the processes.
                        blocks.clear()
                        for _ in range(12):
                            about = requests.get(
                                running.url + "/about",
                                headers={"x-api-key": running.key},
                                timeout=60,
                            )
                            blocks.add(about.json()["data"]["chains"][0]["lastBlock"])
                        return blocks == {block}

                    eventually(lambda day=day: all_serve(day * 100))
            finally:
                enough.set()
            for one in callers:
                one.result()
        assert {status for each in answers for status, _ in each} == {200}
        assert {block for each in answers for _, block in each} >= {100, 400}
        if processes == "1":
            assert all(
                [block for _, block in each] == sorted(block for _, block in each)
                for each in answers
            )
        assert running.end(signal.SIGTERM) == 0


ASK = """
import sys, nbext
client = nbext.connect()
print(client.execute_segment({"token": {"token": sys.argv[1], "unit": "raw"}}, limit=5)["address"].tolist())
"""


@pytest.mark.slow
def test_a_data_folder_that_may_only_be_read_is_asked(data, tmp_path):
    """What the service itself stores is among the user's own files then."""
    command = [sys.executable, "-c", ASK, TOKEN]
    if os.geteuid() == 0:
        if sys.platform != "linux" or not shutil.which("unshare"):
            pytest.skip("root writes everywhere, and this platform has no mounts of one's own")
        mount = f"mount --bind {data} {data} && mount -o remount,ro,bind {data} {data}"
        command = ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh", *command]
    else:
        for path in (data, *data.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
    before = sorted(data.rglob("*"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NBEXT_")}
    own = {
        "NBEXT_DATA_DIR": str(data),
        "XDG_STATE_HOME": str(tmp_path / "own"),
        "HOME": str(tmp_path),
    }
    ran = subprocess.run(
        command, env=kept | own, capture_output=True, text=True, timeout=120, check=False
    )
    for path in (data, *data.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    if "mount:" in ran.stderr:
        pytest.skip("this machine lends no mounts")
    assert ran.stdout == f"['0x{100:040x}']\n"
    note = f"<string>:4: AnswerWarning: {TOKEN} on ethereum: it is read as a token by its transfers"
    assert (ran.stderr.startswith(note), ran.stderr.count("\n")) == (True, 1)
    assert sorted(data.rglob("*")) == before
    assert (tmp_path / "own").is_dir()


def test_a_dataset_is_opened_once_and_looked_at_with_one_stat(live, data, monkeypatch):
    opened = []
    monkeypatch.setattr(
        "nbext.engine.open.open_dataset",
        lambda *given: opened.append(given) or open_dataset(*given),
    )
    for _ in range(20):
        live.container.generations.refresh()
    assert opened == []
