"""Connect to the service that the settings name: a remote one if ``base_url`` is set, else the embedded one."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

from nbext.client import Client
from nbext.settings import Secret, Settings, current, default_data_dir

__all__ = ["connect"]


def connect(
    base_url: str | None = None,
    api_key: str | Secret | None = None,
    *,
    settings: Settings | None = None,
) -> Client:
    """Return a client of the service that the settings name.

    In a notebook these are the session's, so that `%nbext set base_url URL` counts here too. Without a ``base_url``
    (argument, session, NBEXT_BASE_URL, ``[tool.nbext]``) the embedded service starts on loopback, over the data that
    ``nbext ingest`` stored, or over synthetic sample data if there is none.

    Raises
    ------
    NoService
        ``base_url`` is not set, and ``nbext[local]`` is not installed.
    ConfigError
        A setting or the key cannot be used.
    """
    settings = settings or current()
    url = base_url or settings["base_url"]
    if url:
        # Not one of the settings: those are shown, listed and read from files.
        key = api_key or os.environ.get("NBEXT_API_KEY") or ""
        return Client(url, key, settings=settings)
    # Imported here: a client of a remote service needs neither the server nor an engine installed.
    from nbext import embedded

    running = embedded.start_service(default_data_dir(settings), engine=settings["engine"])
    return Client(running.base_url, running.api_key, settings=settings, restart=running.restart)


class _Door(ModuleType):
    """This module, callable: importing it replaces the function at ``nbext.connect``, and users call that name."""

    def __call__(self, *args: Any, **options: Any) -> Client:
        return connect(*args, **options)


sys.modules[__name__].__class__ = _Door
