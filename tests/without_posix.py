"""Takes away what Windows lacks, then runs the code that it is given: ``python -m tests.without_posix CODE ARGS``.

Libraries are imported first: what they use of a platform is theirs to know. Our own modules come after.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import socket
import subprocess  # noqa: F401  uses fork, before it is gone
import sys

import duckdb  # noqa: F401
import fastapi  # noqa: F401
import ipywidgets  # noqa: F401
import pandas as pd  # noqa: F401
import platformdirs  # noqa: F401
import pyarrow.parquet  # noqa: F401
import requests  # noqa: F401
import uvicorn  # noqa: F401
from IPython.core.interactiveshell import InteractiveShell  # noqa: F401

_LACKING = {
    os: "fork forkpty register_at_fork writev readv setpgrp setpgid setsid killpg getuid geteuid getgid chown "
    "mkfifo sched_getaffinity O_NOFOLLOW O_NONBLOCK O_DIRECTORY O_CLOEXEC uname nice fchmod",
    mmap: "MADV_DONTNEED PROT_READ MAP_SHARED",
    socket: "SO_REUSEPORT",
    signal: "SIGHUP SIGKILL SIGALRM SIGUSR1 SIGCHLD pthread_sigmask setitimer alarm",
}


def _refuse(*_: object, **__: object) -> None:
    raise NotImplementedError


def take_away() -> None:
    """Remove the names and modules that Windows does not have."""
    for module, names in _LACKING.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    for name in ("fcntl", "resource", "pwd", "grp", "termios", "posix"):
        sys.modules[name] = None  # type: ignore[assignment]
    asyncio.SelectorEventLoop.add_signal_handler = _refuse  # type: ignore[method-assign]


if __name__ == "__main__":
    take_away()
    exec(sys.argv[1], {"__name__": "__main__", "ARGS": sys.argv[2:]})
