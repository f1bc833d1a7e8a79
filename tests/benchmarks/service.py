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
# The first is run with one process and with two on PostgreSQL; the second on SQLite and on PostgreSQL.
TESTS = (
    "test_ten_thousand_mixed_requests_from_64_connections_are_all_answered_in_bounded_memory",
    "test_two_processes_answer_1_6_times_as_many_requests_as_one_on_two_free_cores",
)
HEADING = re.compile(r"^_+ test_\w+\[(.+)\] _+$", re.MULTILINE)
PRINTED = re.compile(r"^(\d+) requests in \d+ s: (median .*)$", re.MULTILINE)
GAINED = re.compile(r"^one process [\d.]+ a second.*$", re.MULTILINE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield the figures of the load tests, which fail where one request does; on PostgreSQL where it is installed."""
    named = [f"tests/service/test_load.py::{test}" for test in TESTS]
    words = ["-m", "pytest", "-q", "-rP", "-m", "load", "-p", "no:cacheprovider", *named]
    ran = subprocess.run(
        [sys.executable, *words], cwd=REPO, capture_output=True, text=True, check=False
    )
    _, *told = HEADING.split(ran.stdout)
    if ran.returncode or not told:
        raise RuntimeError(ran.stdout + ran.stderr)
    for where, text in zip(told[::2], told[1::2], strict=True):
        if printed := PRINTED.search(text):
            asked = f"{int(printed[1]):,} requests of all eight operations over 64 connections, no error"
            yield Row(f"{asked}: {where}", printed[2])
        elif gained := GAINED.findall(text):
            # The last attempt is the one that had the machine to itself.
            yield Row(
                f"explanations of forty conditions, eight at once: one process and two on {where}",
                gained[-1],
            )
