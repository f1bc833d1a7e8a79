"""A pytest plugin that notes which tests run which lines: ``pytest -p tests.mutation.contexts``.

``CONTEXTS`` names a folder; each process of the run leaves there what coverage.py saw, with the tests as its
contexts, and how long each test took. It sees no processes that tests start.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import coverage
import pytest

PACKAGE = Path(__file__).parents[2] / "nbext"


class Contexts:
    """Traces the package's lines, and tells coverage.py which test is running."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.coverage = coverage.Coverage(
            data_file=str(folder / ".coverage"),
            data_suffix=True,
            include=[f"{PACKAGE}/*"],
            config_file=False,
            messages=False,
        )
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Count what runs from here on for this test, its fixtures with it."""
        self.coverage.switch_context(item.nodeid)
        return (yield)

    def pytest_runtest_logreport(self, report):
        """Add up what a test's setup, call and teardown take."""
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self):
        """Leave both in the folder."""
        self.coverage.stop()
        self.coverage.save()
        (self.folder / f"seconds-{os.getpid()}.json").write_text(json.dumps(self.seconds), "utf-8")


def pytest_configure(config):
    """Trace in the processes that run tests: with ``-n`` these are the workers."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Contexts(Path(os.environ["CONTEXTS"])))
