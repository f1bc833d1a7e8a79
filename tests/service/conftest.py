"""A real service for each test module: real HTTP on loopback over the sample data."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from nbext.engine.open import open_dataset
from nbext.service.accounts.database import Database
from nbext.service.container import Container
from nbext.service.limits import Limits
from nbext.service.middleware import LOOPBACK_HOSTS, Log
from nbext.service.server import Server, create_app, listen
from nbext.settings import Secret
from tests.service import postgres

KEY = "a-key-of-the-tests"
USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
HOLDERS = {
    "operator": "AND",
    "filters": {"token": {"token": "USDC", "balance": {"min": "1"}}},
    "limit": 50,
}


class Running:
    """A service in a thread, and a session that carries its key."""

    def __init__(
        self, data_dir: Path, state_dir: Path, limits: Limits | None = None, **options: Any
    ) -> None:
        self.log = io.StringIO()
        self.listener = listen("127.0.0.1", 0)
        self.host, self.port, *_ = self.listener.getsockname()
        self.url = f"http://{self.host}:{self.port}"
        dataset = options.pop("dataset", None) or open_dataset(data_dir)
        root_path, hosts = options.pop("root_path", ""), options.pop("hosts", LOOPBACK_HOSTS)
        self.container = Container(
            dataset, state_dir, owner=Secret(KEY), limits=limits, log=Log(self.log), **options
        )
        ready = threading.Event()
        app = create_app(self.container, root_path=root_path, hosts=hosts, on_ready=ready.set)
        self.server = Server(app, grace=2)
        self.thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self.listener]}, daemon=True
        )
        self.thread.start()
        assert ready.wait(30), "the service did not start"
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["x-api-key"] = KEY

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.session.get(self.url + path, timeout=60, **options)

    def post(self, path: str, body: Any, **options: Any) -> requests.Response:
        return self.session.post(self.url + path, json=body, timeout=60, **options)

    def delete(self, path: str, **options: Any) -> requests.Response:
        return self.session.delete(self.url + path, timeout=60, **options)

    def execute(self, body: dict[str, Any] = HOLDERS, **options: Any) -> dict[str, Any]:
        answer = self.post("/v1/segment/execute", body, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    def stop(self) -> None:
        self.session.close()
        self.server.should_exit = True
        self.thread.join(timeout=20)
        self.listener.close()
        assert not self.thread.is_alive()


def trace(database: Database, note: Callable[[str], object] | None) -> None:
    """Have each statement of a SQLite registry noted, as SQLite runs it."""
    connected = type(database)._connected

    def lent() -> Any:
        db = connected(database)
        db.set_trace_callback(note)
        return db

    # Each as it is lent: one that is lent just now would else be given back untraced.
    database._connected = lent


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def service(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(data_dir, tmp_path_factory.mktemp("state"))
    yield running
    running.stop()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | str]:
    """A registry of its own: a new SQLite file, or a new database of a real PostgreSQL."""
    if request.param == "sqlite":
        yield tmp_path / "registry.sqlite"
        return
    with postgres.new_database(request.getfixturevalue("server")) as url:
        yield url


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a PostgreSQL server that is started for the tests."""
    with postgres.server() as url:
        yield url
