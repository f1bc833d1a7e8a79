"""On a disk that is really full, what is stored is read, and what would be stored is refused; also after kill -9."""

from __future__ import annotations

import signal

import pytest

from nbext.cli import main
from tests.full_disk import fill
from tests.service.conftest import HOLDERS
from tests.service.process import Process, serve

pytestmark = pytest.mark.load


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
    "healthz": (200, None),
    "readyz": (503, "unready"),
    "token": (200, None),
    "segment": (200, None),
    "rows": (200, None),
    "execute": (507, "disk-full"),
    "sign-up": (507, "disk-full"),
}


def test_a_service_on_a_full_disk_serves_what_it_has_also_after_it_was_killed(small_disk):
    data = small_disk / "data"
    with serve(data) as process:
        segment = process.session.post(
            f"{process.url}/v1/segment/execute", json=HOLDERS, timeout=60
        ).json()["id"]
        filler = fill(small_disk)
        assert asked(process, segment) == FULL
        process.end(signal.SIGKILL)
    with serve(data) as process:
        assert "Traceback" not in process.log.read_text()
        again = asked(process, segment)
        # The reserve's room lets it open, and may take a small row.
        assert {
            name: again[name] for name in ("healthz", "readyz", "token", "segment", "rows")
        } == {name: FULL[name] for name in ("healthz", "readyz", "token", "segment", "rows")}
        assert {again[name][0] for name in ("execute", "sign-up")} <= {200, 202, 507}
        filler.unlink()
        there = asked(process, segment)
        assert (there["execute"][0], there["sign-up"][0]) == (200, 202)
        assert process.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("command", [["keys", "list"], ["policy", "--keep-gib", "5"], ["check"]])
def test_an_operators_command_runs_on_a_full_disk_whose_service_has_ended(
    small_disk, command, capsys
):
    data = small_disk / "data"
    with serve(data) as process:
        assert process.end(signal.SIGTERM) == 0
    fill(small_disk)
    assert main([*command, "--data", str(data)]) == 0, capsys.readouterr()
