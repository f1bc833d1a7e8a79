"""The client for whichever service is set: a remote one where there is a base_url, else the embedded one."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

from nbext.client import Client
from nbext.settings import Secret, Settings, default_data_dir

__all__ = ["connect"]


def connect(
    base_url: str | None = None, api_key: str | Secret | None = None, *, settings: Settings | None = None
) -> Client:
    """Return a client for the service that is set.

    Without a base_url (argument, NBEXT_BASE_URL, ``[tool.nbext]``) the embedded service is started on
    loopback, over the user's own data where ``nbext ingest`` left some, else over synthetic sample data.

    Raises
    ------
    NoService
        There is no base_url, and ``nbext[local]`` is not installed.
    ConfigError
        A setting or the key cannot be used.
    """
    settings = settings or Settings()
    url = base_url or settings["base_url"]
    if url:
        key = api_key or os.environ.get("NBEXT_API_KEY") or ""
        return Client(url, key, settings=settings)
    from nbext import embedded

    running = embedded.start(default_data_dir(settings), engine=settings["engine"])
    return Client(running.base_url, running.api_key, settings=settings, restart=running.restart)


class _Door(ModuleType):
    """This module. Importing it puts it at ``nbext.connect``, where users call the function."""

    def __call__(self, *args: Any, **options: Any) -> Client:
        return connect(*args, **options)


sys.modules[__name__].__class__ = _Door
