"""How the benchmarks measure: medians of rounds, peaks of memory, and work in a process of its own."""

from __future__ import annotations

import multiprocessing
import re
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Took:
    """What one side took: the median seconds of its rounds, and its peak of memory where that was measured."""

    seconds: float
    rounds: int = 1
    megabytes: float | None = None


def timed(work: Callable[[], Any], rounds: int) -> tuple[Took, Any]:
    """Return what some rounds took, and the last result; one round before them warms up."""
    result, taken = work(), []
    for _ in range(rounds):
        started = time.perf_counter()
        result = work()
        taken.append(time.perf_counter() - started)
    return Took(statistics.median(taken), rounds), result


def median(taken: list[float]) -> Took:
    """Return the median of seconds that were taken elsewhere, a round each."""
    return Took(statistics.median(taken), len(taken))


def apart(work: Callable[..., T], *args: Any) -> T:
    """Return what work gives in a new process: nothing is loaded there, and its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def high_water() -> float:
    """Return the most memory that this process has held, in megabytes."""
    # Not getrusage: a new process starts there with the peak of the one that started it.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("utf-8"))
    assert peak is not None
    return int(peak[1]) / 1000
