"""Two services on one folder, four keys, and what these do with one segment."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from nbext.engine.ingest import ingest
from tests.engine.ingest.reading_back import wallet
from tests.faults.stories import HOLDERS, facts_file, transfers_file
from tests.service.conftest import Running

ACTORS = {
    "private": ("read execute", True),
    "other private": ("read execute", True),
    "open": ("read execute", False),
    "admin": ("read execute admin", False),
}
# A segment that has not finished is as good as one that has: to execute is to ask for it.
_THERE = ("queued", "running", "completed")


class World:
    """The services, and a session for each key; ``segment`` is that of the key ``private``, another in each round."""

    def __init__(self, folder: Path) -> None:
        data = folder / "data"
        ingest([transfers_file(folder / "a.csv", 1, 40), facts_file(folder)], "ethereum", data)
        self.services = [Running(data, data / "service") for _ in range(2)]
        keys = self.services[0].container.keys
        self.sessions = {name: requests.Session() for name in ACTORS}
        for name, (scopes, private) in ACTORS.items():
            _, text = keys.add(name, scopes.split(), None, private=private)
            self.sessions[name].headers["x-api-key"] = text.reveal()
            self.sessions[name].trust_env = False
        self._limits = itertools.count(1000)
        self.body: dict[str, Any] = {}
        self.segment = ""

    def close(self) -> None:
        """End both services."""
        for session in self.sessions.values():
            session.close()
        for service in self.services:
            service.stop()

    def renew(self, state: str) -> None:
        """Have a segment of the key ``private`` that nobody else knows of: completed, or with its result deleted."""
        self.body = {"operator": "AND", "filters": HOLDERS, "limit": next(self._limits)}
        made = self.ask(0, "private", "POST", "/v1/segment/execute", json=self.body)
        assert made.status_code == 200, made.text
        self.segment = made.json()["id"]
        if state == "deleted":
            deleted = self.ask(0, "private", "DELETE", f"{self.path}?result=delete")
            assert deleted.status_code == 200, deleted.text

    @property
    def path(self) -> str:
        """The segment's path."""
        return f"/v1/segment/{self.segment}"

    def ask(self, service: int, actor: str, method: str, path: str, **more: Any) -> Any:
        """Send one request with a key."""
        url = self.services[service].url + path
        return self.sessions[actor].request(method, url, timeout=60, **more)

    def seen(self) -> dict[str, Any]:
        """Return what each key sees of the segment, once nothing runs."""
        return {actor: _said(self.ask(0, actor, "GET", self.path)) for actor in ACTORS}


def _said(answer: Any) -> Any:
    """Return what an answer says that does not depend on the moment."""
    if answer.headers["Content-Type"].startswith("text/csv"):
        return "rows", sorted(answer.text.splitlines())
    body = answer.json()
    if answer.status_code >= 400:
        # Not ready: it was asked for, and is there soon.
        return "there" if body["code"] == "not-ready" else (answer.status_code, body["code"])
    if "status" not in body:
        return answer.status_code, body
    there = body["status"] in _THERE
    return "there" if there else body["status"], body["cached"] if there else None


def execute(world: World, service: int, actor: str) -> Any:
    """Ask what the private key has asked."""
    made = world.ask(service, actor, "POST", "/v1/segment/execute", json=world.body)
    # Whose id it is; an id of its own is no other's.
    return _said(made), made.json().get("id") == world.segment


def claim(world: World, service: int, actor: str) -> Any:
    """Ask it with an Idempotency-Key: a second time it is the first one's answer."""
    headers = {"Idempotency-Key": f"claim-{world.body['limit']}"}
    made = world.ask(
        service, actor, "POST", "/v1/segment/execute", json=world.body, headers=headers
    )
    return _said(made), made.json().get("id") == world.segment


def read(world: World, service: int, actor: str) -> Any:
    """Read the segment."""
    return _said(world.ask(service, actor, "GET", world.path))


def export(world: World, service: int, actor: str) -> Any:
    """Read its rows."""
    return _said(world.ask(service, actor, "GET", f"{world.path}/csv"))


def cancel(world: World, service: int, actor: str) -> Any:
    """Cancel it."""
    return _done(world.ask(service, actor, "DELETE", world.path))


def delete(world: World, service: int, actor: str) -> Any:
    """Delete its result."""
    return _done(world.ask(service, actor, "DELETE", f"{world.path}?result=delete"))


def _done(answer: Any) -> Any:
    # How it is afterwards may be how somebody who came later left it.
    return _said(answer) if answer.status_code >= 400 else "done"


def rotate(world: World, service: int, actor: str) -> Any:
    """Give the key another text."""
    keys = world.services[service].container.keys
    _, text = keys.rotate(actor, grace=60)
    world.sessions[actor].headers["x-api-key"] = text.reveal()
    return "rotated"


def store_list(world: World, service: int, actor: str) -> Any:
    """Store a list of wallets, and read it."""
    sent = b"".join(bytes.fromhex(wallet(n)[2:]) for n in range(world.body["limit"]))
    made = world.ask(
        service,
        actor,
        "POST",
        "/lists",
        data=sent,
        headers={"Content-Type": "application/octet-stream"},
    )
    return made.status_code


Operation = Callable[[World, int, str], Any]
OPERATIONS: dict[str, Operation] = {
    one.__name__: one for one in (execute, claim, read, export, cancel, delete, rotate, store_list)
}


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """Lend a world."""
    made = World(folder)
    try:
        yield made
    finally:
        made.close()
