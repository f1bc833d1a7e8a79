"""A process that used the embedded service ends as if it had not."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_process_that_used_the_service_ends_quietly(tmp_path):
    script = (
        "import pathlib, nbext.embedded, requests\n"
        f"running = nbext.embedded.start_service(pathlib.Path({str(tmp_path)!r}))\n"
        "answer = requests.get(running.base_url + '/about', headers={'x-api-key': running.api_key.reveal()})\n"
        "print(answer.status_code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("200\n", "", 0)
