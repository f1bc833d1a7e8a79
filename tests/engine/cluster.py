"""Spark on loopback, from the pip package: a master and two workers, each its own process; or a Connect server."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

_READY = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Registering worker"
_CONNECTED = re.compile(r"Spark Connect server started at: (\S+)")


def spark_home() -> Path:
    """Return the folder of the pip package, or skip where Spark cannot run."""
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17, and there is no java on this machine")
    return Path(pyspark.__file__).parent


@contextmanager
def cluster(folder: Path, memory: str = "1g") -> Iterator[str]:
    """Start the cluster and give its ``spark://HOST:PORT``; its processes end with the block."""
    home, log = spark_home(), folder / "master.log"
    with ExitStack() as processes:
        processes.enter_context(_daemon(home, "master.Master", log, "--port", "0"))
        url = _await(log, _READY).group(1)
        for number in (1, 2):
            words = (
                "--cores",
                "1",
                "--memory",
                memory,
                "--work-dir",
                str(folder / f"worker{number}"),
                url,
            )
            processes.enter_context(
                _daemon(home, "worker.Worker", folder / f"worker{number}.log", *words)
            )
        while log.read_text("utf-8").count(_REGISTERED) < 2:
            _await(log, re.compile(_REGISTERED))
            time.sleep(0.2)
        yield url


def kill_a_worker(folder: Path) -> None:
    """End a worker of the cluster of that folder by kill -9; its executor ends with it."""
    work = str(folder / "worker1").encode()
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            if b"org.apache.spark.deploy.worker.Worker" in words and work in words:
                os.kill(int(place.name), signal.SIGKILL)
                return
    raise AssertionError(f"no worker runs in {folder}")


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Start a server of Spark Connect on two threads and give its ``sc://HOST:PORT``; it ends with the block."""
    home, log = spark_home(), folder / "connect.log"
    conf = {
        "spark.ui.enabled": "false",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }
    words = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    with _process(
        home,
        log,
        "spark-submit",
        "--master",
        "local[2]",
        *words,
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
        "spark-internal",
    ):
        yield f"sc://{_await(log, _CONNECTED).group(1)}"


def _daemon(home: Path, kind: str, log: Path, *words: str) -> AbstractContextManager[None]:
    return _process(
        home,
        log,
        "spark-class",
        f"org.apache.spark.deploy.{kind}",
        "--host",
        "127.0.0.1",
        "--webui-port",
        "0",
        *words,
    )


@contextmanager
def _process(home: Path, log: Path, script: str, *words: str) -> Iterator[None]:
    # Both sides must run one Python: this process names its own to the executors.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(home),
        "SPARK_NO_DAEMONIZE": "1",
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(home / "bin" / script), *words],
            stdout=out,
            stderr=out,
            env=environment,
            cwd=log.parent,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(120)


def _await(log: Path, pattern: re.Pattern[str], seconds: float = 600) -> re.Match[str]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := pattern.search(log.read_text("utf-8")):
            return found
        time.sleep(0.2)
    raise AssertionError(
        f"{log.name} never said {pattern.pattern}: {log.read_text('utf-8')[-2000:]}"
    )
