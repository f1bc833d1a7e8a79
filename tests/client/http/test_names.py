"""The look-up of a host's name obeys deadlines and Ctrl-C, with a resolver that never answers."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time

import pytest

NAMESERVER = "127.0.0.77"
# Half a minute for each of three tries: far beyond what these tests wait.
RESOLV = f"nameserver {NAMESERVER}\noptions timeout:30 attempts:3\n"
ASK = """
import sys
from nbext import Client
from nbext.settings import Settings
client = Client("https://nobody-answers.example.com", "k3y", settings=Settings({"deadline": float(sys.argv[1])}))
print("asking", flush=True)
try:
    client.tokens("ethereum", "0x" + "1" * 40)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
print([thread.name for thread in __import__("threading").enumerate()])
"""


@pytest.fixture
def silent_resolver(tmp_path):
    """How to start Python where the only nameserver takes questions and answers none."""
    (tmp_path / "resolv.conf").write_text(RESOLV)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "ask.py").write_text(ASK)
    mount = f"mount --bind {tmp_path}/resolv.conf /etc/resolv.conf"
    if subprocess.run(
        ["unshare", "-m", "sh", "-c", mount], capture_output=True, check=False
    ).returncode:
        pytest.skip("a name space of mounts of one's own is not allowed here")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nameserver:
        try:
            nameserver.bind((NAMESERVER, 53))
        except OSError:
            pytest.skip("port 53 cannot be taken here")
        run, started = f"{mount} && exec {sys.executable} ask.py", []

        def start(deadline):
            command = ["unshare", "-m", "sh", "-c", f"{run} {deadline}"]
            pipe = subprocess.PIPE
            started.append(
                subprocess.Popen(
                    command, stdout=pipe, stderr=subprocess.STDOUT, text=True, cwd=tmp_path
                )
            )
            return started[-1]

        yield start
        for process in started:
            process.kill()
            process.communicate()
        nameserver.settimeout(20)
        # The question did arrive: it was the answer that was waited for.
        assert b"nobody-answers" in nameserver.recv(512)


@pytest.mark.slow
def test_a_name_that_nobody_resolves_ends_at_the_deadline(silent_resolver):
    asking = silent_resolver(1)
    told, _ = asking.communicate(timeout=25)
    assert told.splitlines()[1] == (
        "DeadlineExceeded: https://nobody-answers.example.com did not answer within 1 s."
    )
    assert asking.returncode == 0


@pytest.mark.slow
def test_an_interrupt_ends_the_look_up_of_a_name(silent_resolver):
    asking = silent_resolver(600)
    assert asking.stdout.readline() == "asking\n"
    time.sleep(0.5)
    asking.send_signal(signal.SIGINT)
    told, _ = asking.communicate(timeout=25)
    assert told.splitlines()[0] == "QueryCancelled: Interrupted."
