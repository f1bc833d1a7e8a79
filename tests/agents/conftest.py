"""One server for all tests of the agents' tools, driven by the official client over stdin and stdout."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import contextmanager

import pytest

from tests.agents.ask import connected
from tests.client.faultserver import FaultServer


class Agent:
    """A server of its own, asked from the test's thread; ``log`` is what it wrote to stderr."""

    def __init__(self, data, folder=None, **variables):
        self.data, self.folder, self.log = data, folder, data / "stderr"
        self._options = [] if folder is None else ["--folder", str(folder)]
        self._variables = {"NBEXT_DATA_DIR": str(data), **variables}
        self._ready: Future = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()))
        self._thread.start()
        self._client, self._loop, self._over = self._ready.result(60)

    async def _live(self):
        over = asyncio.Event()
        try:
            async with connected(*self._options, log=self.log, **self._variables) as client:
                self._ready.set_result((client, asyncio.get_running_loop(), over))
                await over.wait()
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    def end(self):
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(60)

    def start(self, work):
        """Run a coroutine of the client's, and return its future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def tools(self):
        return self.start(self._client.list_tools()).result(120).tools

    def call(self, tool, **asked):
        """Return the whole answer of a tool."""
        return self.start(self._client.call_tool(tool, asked)).result(120)

    def ask(self, tool, **asked):
        """Return what a tool answers as data."""
        answer = self.call(tool, **asked)
        assert not answer.is_error, answer.content[0].text
        return answer.structured_content

    def refused(self, tool, **asked):
        """Return the error of a tool as data."""
        answer = self.call(tool, **asked)
        assert answer.is_error, answer.content[0].text
        return answer.structured_content


@contextmanager
def living(*args, **options):
    agent = Agent(*args, **options)
    try:
        yield agent
    finally:
        agent.end()


@pytest.fixture(scope="session")
def elsewhere():
    """A server that nobody may ask: it is the proxy of every request that does not stay on this machine, too."""
    found = FaultServer()
    yield found
    found.close()
    assert found.requests == []


@pytest.fixture(scope="session")
def agent(tmp_path_factory, elsewhere):
    """An agent that may write to a folder, over the sample."""
    place = tmp_path_factory.mktemp("agent")
    for name in ("data", "files", "home"):
        (place / name).mkdir()
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), elsewhere.url)
    with living(
        place / "data", place / "files", HOME=str(place / "home"), no_proxy="127.0.0.1", **proxies
    ) as agent:
        yield agent
