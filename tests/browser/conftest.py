"""One JupyterLab and one Chromium for all browser tests; each test gets notebooks of its own.

Chromium is Debian's (``apt-get install --no-install-recommends chromium fonts-dejavu-core``). Where it, or
playwright, or JupyterLab is missing, the tests are skipped and say so.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.browser import lab

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
MISSING = [name for name in ("playwright", "jupyterlab") if importlib.util.find_spec(name) is None]
Open = Callable[..., lab.Notebook]


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    reason = (
        "Chromium is not installed" if not CHROMIUM else f"{' and '.join(MISSING)} not installed"
    )
    for item in items:
        if item.path.parent.name == "browser":
            item.add_marker(pytest.mark.browser)
            if not CHROMIUM or MISSING:
                item.add_marker(pytest.mark.skip(reason=reason))


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Server]:
    with lab.running(tmp_path_factory.mktemp("lab")) as running:
        yield running


# Of the package, not of the session: playwright keeps an event loop running in the main thread, and
# tests after these may want one of their own.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=lab.CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A fresh browser profile; where the test fails, its pages are kept as pictures."""
    context = chromium.new_context(viewport={"width": 1280, "height": 1400}, locale="en-GB")
    context.set_default_timeout(20_000)
    yield context
    if request.node.stash.get(FAILED, False):
        lab.ARTEFACTS.mkdir(exist_ok=True)
        for number, page in enumerate(context.pages):
            page.screenshot(path=lab.ARTEFACTS / f"failed-{request.node.name[:60]}-{number}.png")
    context.close()


@pytest.fixture
def open_notebook(
    server: lab.Server, context: Any, request: pytest.FixtureRequest
) -> Iterator[Open]:
    """Open a notebook of the given cells; afterwards nothing may have left this machine."""
    opened: list[lab.Notebook] = []

    def open_cells(
        *cells: str,
        name: str = "",
        kernel: bool = True,
        checked: bool = True,
        application: str = "doc/tree",
    ) -> lab.Notebook:
        name = name or request.node.name.split("[")[0][:60]
        if cells:
            server.write(name, cells)
        notebook = lab.Notebook(context.new_page(), server, name).open(
            kernel=kernel, application=application
        )
        if checked:
            opened.append(notebook)
        return notebook

    yield open_cells
    try:
        for notebook in opened:
            notebook.check_nothing_left()
    finally:
        server.end_sessions()


@pytest.fixture
def signups(server: lab.Server) -> Callable[[], str]:
    """Return what tells the sign-ups that the embedded service, a notebook's own, has stored."""

    def stored() -> str:
        command = [
            sys.executable,
            "-m",
            "nbext.cli",
            "signups",
            "export",
            "--data",
            str(server.home / "nbext"),
            "--notebook",
        ]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    return stored
