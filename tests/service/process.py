"""``nbext serve`` as a process of its own, for tests that end, kill or load it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

KEY = "a-key-of-the-tests"
LINE = re.compile(r"nbext serves on (http://\S+) \(key: (.+)\)\n")


class Process:
    """One ``nbext serve``."""

    def __init__(self, data: Path, *options: str, key: str | None = None) -> None:
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith("NBEXT_")
        }
        self.log = data / "serve.log"
        data.mkdir(exist_ok=True)
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "nbext.cli", "serve", "--data", str(data), *options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environ | ({"NBEXT_API_KEY": key} if key else {}),
            )
        began = time.monotonic()
        found = LINE.fullmatch(self.process.stdout.readline())
        assert found, self.log.read_text()
        self.seconds = time.monotonic() - began
        self.url, self.source = found.groups()
        self.key = key or (data / "service" / "owner.key").read_text().strip()
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["x-api-key"] = self.key

    def end(self, how: int = signal.SIGTERM) -> int:
        self.session.close()
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        return code


@contextmanager
def serve(data: Path, *options: str, key: str | None = None) -> Iterator[Process]:
    process = Process(data, *options, key=key)
    try:
        yield process
    finally:
        process.end(signal.SIGKILL)
