"""The container recipe of the team page, done line by line, under a layer over this machine that keeps what is written.

No daemon and no image is needed. A fresh environment stands for the base image's Python; all else is the
recipe's own words, done by root and then by the user that it names, on a root that may only be read.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.benchmarks.install import REPO, cloned

pytestmark = pytest.mark.release
TEAM = REPO / "nbext" / "reference" / "team.md"
(RECIPE,) = re.findall(r"```dockerfile\n(.*?)```", TEAM.read_text("utf-8"), re.DOTALL)
LINES = [tuple(line.split(" ", 1)) for line in RECIPE.splitlines()]
PYTHON = Path(sys._base_executable).resolve()
PATH = "/image/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
LAYER = """set -e
mount -t tmpfs tmpfs "$ROOM"
mkdir "$ROOM/written" "$ROOM/work" "$ROOM/image"
mount -t overlay overlay -o "lowerdir=/,upperdir=$ROOM/written,workdir=$ROOM/work" "$ROOM/image"
mount --rbind /proc "$ROOM/image/proc"
mount --rbind /dev "$ROOM/image/dev"
"""


@dataclass
class Recipe:
    """Turns the recipe's lines into the lines of a shell script that does the same in the layer."""

    clone: Path
    port: str
    user: str = "root"
    volume: str = ""
    health: str = ""

    def script(self) -> str:
        does: dict[str, Callable[[str], list[str]]] = {
            "FROM": self._from,
            "COPY": self._copy,
            "RUN": self._run,
            "USER": self._user,
            "VOLUME": self._volume,
            "EXPOSE": self._expose,
            "HEALTHCHECK": self._health,
            "ENTRYPOINT": self._entry_point,
        }
        return LAYER + "\n".join(
            line for name, rest in LINES for line in does[name](rest.replace("8080", self.port))
        )

    def _from(self, rest: str) -> list[str]:
        assert re.fullmatch(r"python:3\.1[1-9]-slim", rest)
        # The base image's Python may be used by everyone.
        closed = [path for path in PYTHON.parents if not path.stat().st_mode & 1]
        return [
            *(f'chmod o+x "$ROOM/image{path}"' for path in closed),
            f'chroot "$ROOM/image" {PYTHON} -m venv /image',
        ]

    def _copy(self, rest: str) -> list[str]:
        source, target = rest.split()
        assert source == "."
        return [f'cp -r {self.clone} "$ROOM/image{target}"']

    def _run(self, rest: str) -> list[str]:
        return [f'chroot "$ROOM/image" env PATH={PATH} /bin/sh -c {shlex.quote(rest)} >&2']

    def _user(self, rest: str) -> list[str]:
        self.user = rest
        return []

    def _volume(self, rest: str) -> list[str]:
        self.volume = rest
        return [f'cp -a "$ROOM/image{rest}" "$ROOM/volume"']

    def _expose(self, rest: str) -> list[str]:
        assert rest == self.port
        return []

    def _health(self, rest: str) -> list[str]:
        self.health = rest.removeprefix("CMD ")
        return []

    def _entry_point(self, rest: str) -> list[str]:
        command = shlex.join(json.loads(rest))
        return [
            'mount -o remount,ro "$ROOM/image"',
            'mount -t tmpfs tmpfs "$ROOM/image/tmp"',
            f'mount --bind "$ROOM/volume" "$ROOM/image{self.volume}"',
            f'exec chroot --userspec={self.user} "$ROOM/image" env -i PATH={PATH} HOME=/home/{self.user} {command}',
        ]


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A place for the layer; skipped where none can be made."""
    if sys.platform != "linux" or os.geteuid() or not shutil.which("unshare"):
        pytest.skip("only root on Linux can lay an image over this machine")
    place = tmp_path / "room"
    place.mkdir()
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", LAYER],
        env=os.environ | {"ROOM": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode:
        pytest.skip(f"no file system can be laid over another here: {tried.stderr.strip()}")
    return place


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return Recipe(cloned(tmp_path)[0], str(free.getsockname()[1]))


@pytest.fixture
def container(recipe: Recipe, room: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """What the recipe's entry point runs, once it says where it serves."""
    mine = ("NBEXT_", "PYTHON", "VIRTUAL_ENV")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
    log = tmp_path / "log"
    with (
        log.open("w") as told,
        subprocess.Popen(
            ["unshare", "--mount", "bash", "-c", recipe.script()],
            env=environ | {"ROOM": str(room)},
            stdout=subprocess.PIPE,
            stderr=told,
            text=True,
        ) as running,
    ):
        try:
            serves = (
                f"nbext serves on http://0.0.0.0:{recipe.port} (key: /data/service/owner.key)\n"
            )
            assert running.stdout.readline() == serves, log.read_text("utf-8")
            yield running
        finally:
            running.kill()


def test_the_container_recipe_serves_as_its_own_user_on_a_root_that_may_only_be_read(
    recipe, container
):
    inside = Path(f"/proc/{container.pid}/root")
    check = ["sh", "-c", recipe.health]
    as_user = ["chroot", f"--userspec={recipe.user}", str(inside), "env", "-i", f"PATH={PATH}"]
    assert subprocess.run([*as_user, *check], check=False).returncode == 0
    assert "\nUid:\t0" not in Path(f"/proc/{container.pid}/status").read_text("ascii")
    assert (inside / "data/service/owner.key").stat().st_uid == (inside / "data").stat().st_uid != 0
    assert subprocess.run(
        ["chroot", str(inside), "touch", "/written"], capture_output=True, check=False
    ).returncode
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(
            f"http://127.0.0.1:{recipe.port}/v1/tokens/ethereum/USDC", timeout=20
        )
    container.send_signal(signal.SIGTERM)
    assert container.wait(timeout=20) == 0
    assert subprocess.run(check, capture_output=True, check=False).returncode, (
        "nobody is there to be healthy"
    )
