"""The service's log: one JSON object a line, on the stream it is given.

No key, e-mail address, path, statement or body is ever handed to it: callers pass codes, ids and times.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, TextIO

import structlog

# An own chain of processors: the application that embeds the service keeps its own structlog settings.
_PROCESSORS = (
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    structlog.processors.JSONRenderer(sort_keys=True),
)


def make_log(stream: TextIO, *, level: str = "info") -> Any:
    """Return a logger that writes lines of JSON to the stream."""
    import logging

    bound = structlog.make_filtering_bound_logger(logging.getLevelName(level.upper()))
    return structlog.wrap_logger(structlog.WriteLogger(stream), processors=_PROCESSORS, wrapper_class=bound)


def place_of(error: BaseException) -> str:
    """Return where an error arose, as module and line: what an operator needs, without the error's text."""
    at = error.__traceback__
    place = ""
    while at is not None:
        place = _line(at) if at.tb_frame.f_globals.get("__name__", "").startswith("nbext") else place
        at = at.tb_next
    return place


def _line(at: TracebackType) -> str:
    return f"{at.tb_frame.f_globals['__name__']}:{at.tb_frame.f_code.co_name}:{at.tb_lineno}"
