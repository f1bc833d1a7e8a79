"""Threads for the routes, in two lanes: a few for what is quick, many for what waits.

More threads than cores for quick work only take the interpreter from one another, and from those that run
segments: with 40 for all, callers of cached answers kept new segments waiting for seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

Result = TypeVar("Result")
_QUICK, _PATIENT = 2, 40


class ThreadPools:
    """The lanes of one service. FastAPI runs plain functions in the quick one."""

    def __init__(self) -> None:
        self._patient = CapacityLimiter(_PATIENT)
        self._has_catalog = False

    def open(self) -> None:
        """Narrow this event loop's own lane, which is the quick one."""
        to_thread.current_default_thread_limiter().total_tokens = _QUICK

    async def patient(self, work: Callable[..., Result], *values: Any) -> Result:
        """Do what waits for the disk or the engine."""
        return await to_thread.run_sync(work, *values, limiter=self._patient)

    async def catalog(self, work: Callable[..., Result], *values: Any) -> Result:
        """Do what looks contracts up: in memory, once the first look-up has fetched them from the engine."""
        found = await to_thread.run_sync(work, *values, limiter=None if self._has_catalog else self._patient)
        self._has_catalog = True
        return found
