"""A real PostgreSQL server in a folder of its own, of whichever version Debian has installed."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_NUMBER = itertools.count()


@contextmanager
def server() -> Iterator[str]:
    """Yield the URL of a new server on loopback; skip where PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed")
    programs, folder = found[-1].parent, Path(tempfile.mkdtemp(prefix="nbext-postgres-"))
    # It refuses to run as root.
    user = (
        ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        if os.getuid() == 0
        else []
    )
    if user:
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(*words: str) -> None:
        subprocess.run([*user, *words], check=True, capture_output=True, cwd=folder)

    try:
        run(
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
        run(
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
