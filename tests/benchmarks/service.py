"""The service under load: what the load test printed when it ran, which asks 64 connections' 10,000 requests."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.table import Row

REPO = Path(__file__).parents[2]
TEST = "test_ten_thousand_mixed_requests_from_64_connections_are_all_answered_in_bounded_memory"
PRINTED = re.compile(r"^(\d+) requests in \d+ s: (median .*)$", re.MULTILINE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield the figures of the load test, which fails where one request does."""
    test = ["-m", "pytest", "-q", "-rP", "-m", "load", "-p", "no:cacheprovider", f"tests/service/test_load.py::{TEST}"]
    ran = subprocess.run([sys.executable, *test], cwd=REPO, capture_output=True, text=True, check=False)
    printed = PRINTED.search(ran.stdout)
    if ran.returncode or not printed:
        raise RuntimeError(ran.stdout + ran.stderr)
    yield Row(f"{int(printed[1]):,} requests of all eight operations over 64 connections, no error", printed[2])
