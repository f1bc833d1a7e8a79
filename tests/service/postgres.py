"""A real PostgreSQL server in a folder of its own, of whichever version Debian has installed."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

_NUMBER = itertools.count()


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed")
    return found[-1].parent


def _user() -> list[str]:
    # It refuses to run as root.
    drop = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    return drop if os.getuid() == 0 else []


@contextmanager
def server() -> Iterator[str]:
    """Yield the URL of a new server on loopback; skip where PostgreSQL is not installed."""
    programs, folder = _programs(), Path(tempfile.mkdtemp(prefix="nbext-postgres-"))
    user = _user()
    if user:
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def do(*words: str) -> None:
        subprocess.run([*user, *words], check=True, capture_output=True, cwd=folder)

    try:
        do(
            str(programs / "initdb"),
            "-D",
            f"{folder}/data",
            "-U",
            "nbext",
            "--auth=trust",
            "-E",
            "UTF8",
        )
        options = (
            f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
        )
        do(
            str(programs / "pg_ctl"),
            "start",
            "-w",
            "-D",
            f"{folder}/data",
            "-o",
            options,
            "-l",
            f"{folder}/log",
        )
        yield f"postgresql://nbext@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run(
            [*user, str(programs / "pg_ctl"), "stop", "-m", "immediate", "-D", f"{folder}/data"],
            check=False,
            capture_output=True,
            cwd=folder,
        )
        shutil.rmtree(folder)


def restart(url: str) -> None:
    """Restart a server at once, as after a crash: its connections break, its port and data stay."""
    folder = Path(run(url, "SHOW data_directory"))
    subprocess.run(
        [
            *_user(),
            str(_programs() / "pg_ctl"),
            "restart",
            *("-w", "-m", "immediate", "-D", str(folder), "-l", str(folder.parent / "log")),
        ],
        check=True,
        capture_output=True,
        cwd=folder.parent,
    )


def processes(url: str) -> list[int]:
    """Return the ids of a server's processes, its own first."""
    folder = Path(run(url, "SHOW data_directory"))
    first = int((folder / "postmaster.pid").read_text().split()[0])
    return [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]


@contextmanager
def stopped(url: str) -> Iterator[None]:
    """Have a server give no answer, and go on afterwards."""
    pids = processes(url)

    def send(number: int) -> None:
        for pid in pids:
            # A worker of the server's own, or of a connection that was closed, may have ended meanwhile.
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    send(signal.SIGSTOP)
    try:
        yield
    finally:
        send(signal.SIGCONT)


@contextmanager
def new_database(url: str) -> Iterator[str]:
    """Yield the URL of an empty database of that server."""
    name = f"nbext_{os.getpid()}_{next(_NUMBER)}"
    run(url, f"CREATE DATABASE {name}")
    try:
        yield url.rpartition("/")[0] + f"/{name}"
    finally:
        run(url, f"DROP DATABASE {name} WITH (FORCE)")


def run(url: str, statement: str) -> Any:
    """Run a statement on a server, outside of any transaction; return the first value that it finds."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        found = db.execute(statement)
        return found.fetchone()[0] if found.description else None
