"""A JupyterLab of the tests' own: its own folders, settings and kernels, and pages that drive it."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nbformat

# Nothing may be asked of the network, whatever a page tries.
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
ARTEFACTS = Path(__file__).parents[2] / ".artefacts"
LOOPBACK = {"127.0.0.1", "localhost"}


def share() -> Path:
    """Where JupyterLab's own files are: beside its package, which need not be this environment's prefix."""
    import jupyterlab

    return Path(jupyterlab.__file__).parents[4] / "share" / "jupyter"


def _environment(home: Path) -> dict[str, str]:
    """Every folder that Jupyter and nbext write to, under one that is thrown away; no keys of the user's."""
    own = {
        "HOME": "home",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "NBEXT_DATA_DIR": "nbext",
        "MPLCONFIGDIR": "matplotlib",
    }
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("NBEXT_", "JUPYTER", "IPYTHON"))
    }
    kept |= {name: str(home / folder) for name, folder in own.items()}
    kept["JUPYTER_PATH"] = os.pathsep.join([str(home / "kernels"), str(share())])
    kept["JUPYTERLAB_DIR"] = str(share() / "lab")
    for folder in own.values():
        (home / folder).mkdir(parents=True, exist_ok=True)
    return kept


def _prepare(home: Path) -> dict[str, str]:
    environment = _environment(home)
    kernel = home / "kernels" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"})
    )
    # The news pop-up goes away only by its settings file.
    quiet = (
        home
        / "settings"
        / "@jupyterlab"
        / "apputils-extension"
        / "notification.jupyterlab-settings"
    )
    quiet.parent.mkdir(parents=True)
    quiet.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    return environment


class Server:
    """A running Jupyter server: its address, its token, its folder, and the folder of its notebooks."""

    def __init__(self, url: str, token: str, home: Path, environment: dict[str, str]) -> None:
        self.url, self.token, self.environment = url, token, environment
        self.home, self.root = home, home / "notebooks"

    def write(self, name: str, cells: Sequence[str]) -> str:
        """Write a notebook of code cells; return its path for the browser."""
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in cells]
        )
        notebook.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        nbformat.write(notebook, self.root / f"{name}.ipynb")
        return f"{name}.ipynb"

    def write_saved(self, name: str, notebook: dict[str, Any]) -> None:
        """Write a notebook as it was saved."""
        (self.root / f"{name}.ipynb").write_text(json.dumps(notebook), "utf-8")

    def read(self, name: str) -> dict[str, Any]:
        """The saved notebook."""
        return json.loads((self.root / f"{name}.ipynb").read_text("utf-8"))

    def api(self, path: str, method: str = "GET") -> Any:
        """Ask the server itself."""
        request = urllib.request.Request(
            f"{self.url}api/{path}", method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def end_sessions(self) -> None:
        """End every kernel, so that tests do not share memory or processors with those before them."""
        for session in self.api("sessions"):
            self.api(f"sessions/{session['id']}", "DELETE")


@contextmanager
def running(home: Path) -> Iterator[Server]:
    """Start JupyterLab on a free port of loopback; end it, kernels included."""
    root, token = home / "notebooks", secrets.token_hex(16)
    root.mkdir(parents=True)
    environment = _prepare(home)
    command = [
        *(
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--ip=127.0.0.1",
            "--port=0",
            "--allow-root",
        ),
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly",
        f"--IdentityProvider.token={token}",
        # Sixty fields of 20 kB each are more than the server passes on in a second; what is over, it drops.
        "--ZMQChannelsWebsocketConnection.limit_rate=False",
        f"--ServerApp.root_dir={root}",
    ]
    with (home / "server.log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=root)
        try:
            yield _wait_for(process, home, token, environment)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(
    process: subprocess.Popen[bytes], home: Path, token: str, environment: dict[str, str]
) -> Server:
    end = time.monotonic() + 90
    while time.monotonic() < end and process.poll() is None:
        for found in (home / "runtime").glob("jpserver-*.json"):
            try:
                server = Server(json.loads(found.read_text())["url"], token, home, environment)
                server.api("status")
            except (OSError, ValueError):
                continue
            return server
        time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not start:\n{(home / 'server.log').read_text()[-3000:]}")


@contextmanager
def voila(server: Server, name: str, template: str = "lab") -> Iterator[str]:
    """Serve one notebook with Voila, in the same folders and kernels; yield its address."""
    port = _free_port()
    command = [
        sys.executable,
        "-m",
        "voila",
        f"{name}.ipynb",
        "--no-browser",
        f"--port={port}",
        "--Voila.ip=127.0.0.1",
    ]
    command.append(f"--template={template}")
    with _serving(server, command, port, server.root):
        yield f"http://127.0.0.1:{port}/"


@contextmanager
def marimo(server: Server, path: Path) -> Iterator[str]:
    """Serve one marimo notebook as an application; yield its address."""
    port = _free_port()
    command = [
        sys.executable,
        "-m",
        "marimo",
        "run",
        str(path),
        "--headless",
        "--no-token",
        f"--port={port}",
    ]
    with _serving(server, command, port, server.home):
        yield f"http://127.0.0.1:{port}/"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def _serving(server: Server, command: Sequence[str], port: int, folder: Path) -> Iterator[None]:
    """Run a server of its own in the folders of this one, once its port is open."""
    with (server.home / f"{port}.log").open("w") as log:
        process = subprocess.Popen(
            command, env=server.environment, stdout=log, stderr=log, cwd=folder
        )
        try:
            _wait_for_port(process, port, server.home / f"{port}.log")
            yield
        finally:
            process.terminate()
            process.wait(20)


def _wait_for_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"It did not start:\n{log.read_text()[-3000:]}")


_READY = """async withKernel => {
    const app = window.jupyterapp;
    if (!app) return false;
    await app.restored;
    const panel = app.shell.currentWidget;
    if (!panel || !panel.context) return false;
    await panel.context.ready;
    if (!withKernel) return true;
    await panel.sessionContext.ready;
    const kernel = panel.sessionContext.session && panel.sessionContext.session.kernel;
    if (!kernel) return false;
    await kernel.info;
    // A kernel that answers may not be heard yet: what it displays before the server listens is lost for good.
    const asked = kernel.requestExecute({code: "print()", store_history: false});
    let heard = false;
    asked.onIOPub = message => { heard = heard || message.header.msg_type === "stream"; };
    await Promise.race([asked.done, new Promise(resolve => setTimeout(resolve, 2000))]);
    return heard;
}"""


def leaving(urls: Sequence[str]) -> list[str]:
    """Those of the addresses that are not on this machine."""
    outside = [url for url in urls if urlsplit(url).scheme not in ("data", "blob", "about")]
    return [url for url in outside if urlsplit(url).hostname not in LOOPBACK]


def expect(seen: Any) -> Any:
    """What a page or a part of it comes to be, waited for as long as for anything else.

    ``count``, ``all_inner_texts`` and ``is_visible`` answer at once: right after an action they may be too early.
    """
    from playwright.sync_api import expect as waited

    waited.set_options(timeout=20_000)
    return waited(seen)


class Notebook:
    """One notebook, open in a page; every request and every dialog of the page is kept."""

    def __init__(self, page: Any, server: Server, name: str) -> None:
        self.page, self.server, self.name = page, server, name
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self._dialog)

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def open(self, *, kernel: bool = True, application: str = "doc/tree") -> Notebook:
        """Open it, and wait until its kernel answers and is heard (or, without one, until its cells are there)."""
        self.page.goto(
            f"{self.server.url}{application}/{self.name}.ipynb?reset&token={self.server.token}"
        )
        self._wait_until_ready(kernel=kernel)
        return self

    def _wait_until_ready(self, *, kernel: bool) -> None:
        # Asked again and again: wait_for_function takes the promise itself for a yes.
        end = time.monotonic() + 60
        while not self._ready(kernel):
            assert time.monotonic() < end, "JupyterLab did not open the notebook within a minute"
            self.page.wait_for_timeout(100)

    def _ready(self, kernel: bool) -> bool:
        from playwright.sync_api import Error

        try:
            return bool(self.page.evaluate(_READY, kernel))
        except Error:  # JupyterLab may go to another address while it resets itself
            return False

    def command(self, name: str) -> None:
        """Run one of JupyterLab's commands; it resolves when the command has finished."""
        self.page.evaluate("name => window.jupyterapp.commands.execute(name)", name)

    def run_all(self) -> None:
        """Run every cell."""
        self.command("notebook:run-all-cells")

    def run_cell(self, index: int) -> None:
        """Run one cell; the next becomes the active one."""
        self.page.evaluate(
            "i => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = i }", index
        )
        self.command("notebook:run-cell")

    def restart(self) -> None:
        """Restart the kernel, and wait until it answers."""
        self.page.evaluate(
            "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
        )
        self._wait_until_ready(kernel=True)

    def sources(self) -> list[str]:
        """The cells' texts, as the open notebook holds them."""
        return self.page.evaluate(
            "() => [...window.jupyterapp.shell.currentWidget.content.widgets].map(c => c.model.sharedModel.source)"
        )

    def wait_for_cells(self, count: int) -> None:
        """Wait until the notebook has so many cells."""
        cells = "count => window.jupyterapp.shell.currentWidget.content.widgets.length >= count"
        self.page.wait_for_function(cells, arg=count)

    def output(self, index: int) -> str:
        """What the outputs of one cell show as text; far from sight JupyterLab does not lay them out."""
        scroll = "i => window.jupyterapp.shell.currentWidget.content.scrollToItem(i)"
        self.page.evaluate(scroll, index)
        self.page.wait_for_timeout(200)
        cell = self.page.locator(".jp-Notebook-cell").nth(index)
        return "\n".join(cell.locator(".jp-OutputArea-output").all_inner_texts()).strip()

    def save(self) -> dict[str, Any]:
        """Save it; return what the file then holds."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.save()")
        return self.server.read(self.name)

    def screenshot(self, name: str) -> Path:
        """Keep a picture among the artefacts."""
        ARTEFACTS.mkdir(exist_ok=True)
        path = ARTEFACTS / f"{name}.png"
        self.page.screenshot(path=path)
        return path

    def check_nothing_left(self) -> None:
        """Nothing was asked of any machine but this one, no dialog opened, and no planted script ran."""
        assert leaving(self.requests) == [], "requests left loopback"
        assert self.dialogs == [], "a dialog opened"
        assert self.page.evaluate("() => window.pwned === undefined"), (
            "a script out of the data ran"
        )
