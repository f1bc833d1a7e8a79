from __future__ import annotations

import pytest

from nbext import Client
from nbext.settings import Settings
from tests.client.faultserver import FaultServer

KEY = "k3y-that-must-not-show-0123456789"


@pytest.fixture
def server():
    """A server that answers as the test says."""
    found = FaultServer()
    yield found
    found.close()


@pytest.fixture
def settings(tmp_path):
    """Settings that see nothing of the machine the test runs on."""
    (tmp_path / "pyproject.toml").write_text("")

    def make(**arguments):
        return Settings(arguments=arguments, environ={}, folder=tmp_path)

    return make


@pytest.fixture
def client(server, settings):
    """A client of that server."""
    return Client(server.url, KEY, settings=settings())
