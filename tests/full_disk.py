"""A small file system of a test's own, and how it is filled."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def mounted(disk: Path) -> Iterator[Path]:
    """A file system of 60 MB in this folder; the test is skipped where none can be mounted."""
    if sys.platform != "linux" or os.geteuid() or not shutil.which("mount"):
        pytest.skip("only root on Linux can mount a small disk")
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", disk]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"no disk can be mounted: {done.stderr.decode().strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def fill(disk: Path, *, free: int = 0) -> Path:
    """Fill the disk but for so many bytes; return the file that does."""
    path = disk / "fill"
    handle = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        with contextlib.suppress(OSError):
            while True:
                os.write(handle, b"x" * 4096)
        if free:
            os.ftruncate(handle, max(os.fstat(handle).st_size - free, 0))
    finally:
        os.close(handle)
    return path
