"""The first answer in a new kernel: what `%load_ext` costs, and a query straight after it and a while after it.

Each round has a kernel and a data folder of its own; the sample is unpacked before, as on a user's second day. What a
front end waits for is measured: the seconds from sending a cell until the kernel is idle again.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator

from jupyter_client.manager import start_new_kernel

from tests.benchmarks.measure import median
from tests.benchmarks.table import Row
from tests.notebook.kernels import Kernel

LOAD = "began = time.thread_time()\n%load_ext nbext\nprint(time.thread_time() - began)"
QUERY = '%segment {"token": {"token": "UNI", "balance": {"min": "1000"}}} -o whales'
# Seconds between `%load_ext` and the query: as in one run of all cells, and as somebody types.
WAITS = (0, 2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``first``."""
    parser.add_argument("--rounds", type=int, default=5)


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for the main thread's share of loading, and one for each wait."""
    loads: list[float] = []
    answers: dict[int, list[float]] = {wait: [] for wait in WAITS}
    with tempfile.TemporaryDirectory() as cache:
        # The first is not counted: it unpacks the sample, and leaves the byte code of what it loads.
        for number in range(args.rounds + 1):
            for wait in WAITS:
                loaded, answered = in_a_new_kernel(wait, cache)
                if number:
                    loads.append(loaded)
                    answers[wait].append(answered)
    yield Row("`%load_ext` in a kernel, CPU of its main thread", median(loads))
    for wait, taken in answers.items():
        when = f"{wait} s after it" if wait else "straight after it"
        yield Row(f"the first answer of the sample, a cell {when}", median(taken))


def in_a_new_kernel(wait: float, cache: str) -> tuple[float, float]:
    """Return the seconds of the main thread that `%load_ext` took, and the seconds until a query's answer."""
    with tempfile.TemporaryDirectory() as home:
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith("NBEXT_")
        }
        environ |= {
            "HOME": home,
            "IPYTHONDIR": home,
            "XDG_CACHE_HOME": cache,
            "NBEXT_DATA_DIR": f"{home}/data",
        }
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        manager, client = start_new_kernel(env=environ)
        kernel = Kernel(manager, client)
        try:
            kernel.run("import time")
            loaded = float(kernel.run(LOAD).printed.splitlines()[-1])
            time.sleep(wait)
            answer = kernel.run(QUERY)
            assert "whales = 262 rows" in answer.printed, answer.printed or answer.error
            return loaded, answer.seconds
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
            manager.cleanup_resources()
