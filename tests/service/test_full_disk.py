"""On a disk that is really full, what is stored is read, and what would be stored is refused; also after kill -9."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.conftest import HOLDERS
from tests.service.process import Process, serve

pytestmark = pytest.mark.load


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 60 MB of its own; skipped where none can be mounted."""
    if sys.platform != "linux" or os.geteuid() or not shutil.which("mount"):
        pytest.skip("only root on Linux can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", disk]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", disk], check=True)


def fill(disk: Path) -> Path:
    path = disk / "fill"
    handle = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(handle, b"x" * 4096)
    except OSError:
        os.close(handle)
    return path


def asked(process: Process, segment_id: str) -> dict[str, tuple[int, str | None]]:
    def told(answer) -> tuple[int, str | None]:
        problem = answer.headers["content-type"] == "application/problem+json"
        return answer.status_code, answer.json()["code"] if problem else None

    get, post, url = process.session.get, process.session.post, process.url
    execute, sign_up = f"{url}/v1/segment/execute", f"{url}/v1/signup/newsletter"
    return {
        "healthz": told(get(f"{url}/healthz", timeout=60)),
        "readyz": told(get(f"{url}/readyz", timeout=60)),
        "token": told(get(f"{url}/v1/tokens/ethereum/USDC", timeout=60)),
        "segment": told(get(f"{url}/v1/segment/{segment_id}", timeout=60)),
        "rows": told(get(f"{url}/v1/segment/{segment_id}/csv", timeout=60)),
        "execute": told(post(execute, json={**HOLDERS, "limit": 7}, timeout=60)),
        "sign-up": told(post(sign_up, json={"email": "a@b.co"}, timeout=60)),
    }


FULL = {
    "healthz": (200, None), "readyz": (503, "unready"), "token": (200, None), "segment": (200, None),
    "rows": (200, None), "execute": (507, "disk-full"), "sign-up": (507, "disk-full"),
}


def test_a_service_on_a_full_disk_serves_what_it_has_also_after_it_was_killed(small_disk):
    data = small_disk / "data"
    with serve(data) as process:
        segment = process.session.post(f"{process.url}/v1/segment/execute", json=HOLDERS, timeout=60).json()["id"]
        filler = fill(small_disk)
        assert asked(process, segment) == FULL
        process.end(signal.SIGKILL)
    with serve(data) as process:
        assert "Traceback" not in process.log.read_text()
        again = asked(process, segment)
        # The reserve's room lets it open, and may take a small row.
        assert {name: again[name] for name in ("healthz", "readyz", "token", "segment", "rows")} == {
            name: FULL[name] for name in ("healthz", "readyz", "token", "segment", "rows")
        }
        assert {again[name][0] for name in ("execute", "sign-up")} <= {200, 202, 507}
        filler.unlink()
        there = asked(process, segment)
        assert (there["execute"][0], there["sign-up"][0]) == (200, 202)
        assert process.end(signal.SIGTERM) == 0
