"""Real segments past the time, the memory and the disk that a real service gives them: it goes on."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.service import heavy
from tests.service.process import Process, serve

EXECUTE = "/v1/segment/execute"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heavy")
    heavy.make(folder)
    return folder


def run(process: Process, body: object) -> object:
    return process.session.post(
        process.url + EXECUTE, json=body, headers={"Prefer": "wait=60"}, timeout=90
    )


def goes_on(process: Process, data: Path, answer, code: str) -> None:
    """The problem names nothing of the machine; the segment is read as failed; the next one is answered."""
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (
        {"query-timeout": 504, "resource-limit": 507}[code],
        code,
    )
    read = process.session.get(
        f"{process.url}/v1/segment/{problem['segment_id']}", timeout=60
    ).json()
    assert (read["status"], read["error"]["code"], read["counts"]["matched"]) == (
        "failed",
        code,
        None,
    )
    light = run(process, heavy.LIGHT)
    assert (light.status_code, light.json()["counts"]) == (200, {"matched": 15, "returned": 15})
    assert process.process.poll() is None
    for told in (answer.text, read["error"]["detail"], process.log.read_text("utf-8")):
        assert not [word for word in (str(data), "SELECT", "spill", "Traceback") if word in told]


@pytest.mark.load
def test_a_segment_past_the_time_limit_is_504_while_others_are_served(data):
    with serve(
        data, "--query-seconds", "8", "--engine", "duckdb://?threads=1", key="a-key-of-the-tests"
    ) as process:
        # What the first segment imports is no part of the comparison.
        assert run(process, heavy.LIGHT).status_code == 200
        with ThreadPoolExecutor(1) as pool:
            heavy_one = pool.submit(run, process, heavy.HEAVY)
            assert (
                process.session.get(
                    f"{process.url}/v1/tokens/ethereum/LIGHT", timeout=60
                ).status_code
                == 200
            )
            assert run(process, {**heavy.LIGHT, "limit": 7}).status_code == 200
            assert not heavy_one.done()
            answer = heavy_one.result(timeout=90)
        goes_on(process, data, answer, "query-timeout")
        assert process.end(signal.SIGTERM) == 0


@pytest.mark.slow
def test_a_segment_past_the_memory_limit_is_507(data):
    with serve(
        data, "--engine", "duckdb://?memory=16MB&threads=1", key="a-key-of-the-tests"
    ) as process:
        goes_on(process, data, run(process, heavy.HEAVY), "resource-limit")
        assert process.end(signal.SIGTERM) == 0


@pytest.mark.slow
def test_a_segment_for_which_the_disk_has_no_room_is_507(data):
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "prlimit"):
        pytest.skip("only Linux limits the files of another process")
    with serve(
        data, "--engine", "duckdb://?memory=64MB&threads=1", key="a-key-of-the-tests"
    ) as process:
        # Beside a full disk the one way to have the system refuse to write what is spilled.
        resource.prlimit(
            process.process.pid, resource.RLIMIT_FSIZE, (4 << 20, resource.RLIM_INFINITY)
        )
        goes_on(process, data, run(process, heavy.HEAVY), "resource-limit")
        assert process.end(signal.SIGTERM) == 0
    assert list((data / "spill").iterdir()) == []


@pytest.mark.load
def test_a_segment_in_whose_run_the_service_was_killed_twice_fails_and_takes_no_other_service_down(
    tmp_path,
):
    heavy.make(tmp_path)
    options, path = ("--engine", "duckdb://?threads=1"), ""
    for _ in range(2):
        with serve(tmp_path, *options, key="a-key-of-the-tests") as process:
            if not path:
                asked = {"json": heavy.HEAVY, "headers": {"Prefer": "respond-async"}, "timeout": 60}
                path = process.session.post(process.url + EXECUTE, **asked).headers["Location"]
            # The gauge is this process's own: the registry has the segment as running in the one before.
            while (
                "nbext_segments_running 1.0"
                not in process.session.get(f"{process.url}/metrics", timeout=60).text
            ):
                read = process.session.get(process.url + path, timeout=60).json()
                assert read["status"] in ("queued", "running")
    with serve(tmp_path, *options, key="a-key-of-the-tests") as process:
        # The caretaker takes it over, and nobody who reads it.
        while (read := process.session.get(process.url + path, timeout=60).json())["status"] in (
            "queued",
            "running",
        ):
            pass
        why = "It crashed the service twice, and is not run again. Narrow it."
        assert (read["status"], read["error"]["code"], read["error"]["detail"]) == (
            "failed",
            "resource-limit",
            why,
        )
        assert run(process, heavy.LIGHT).json()["counts"]["matched"] == 15
