"""The service's log: one JSON object a line, on the stream it is given.

No key, e-mail address, path, statement or body is ever handed to it: callers pass codes, ids and times.
"""

from __future__ import annotations

from functools import cached_property
from types import TracebackType
from typing import Any, TextIO

_LEVELS = ("info", "warning", "error")


class Log:
    """Writes events to a stream by structlog, with a chain of processors of its own.

    The application that embeds the service keeps its own structlog settings. structlog loads a console
    renderer that takes a third of a second: it is imported when there is a first line to write.
    """

    def __init__(self, stream: TextIO, *, level: str = "info") -> None:
        self._stream, self._least = stream, _LEVELS.index(level)

    def info(self, event: str, **values: Any) -> None:
        """Write that something ordinary happened."""
        if self._least == 0:
            self._logger.info(event, **values)

    def warning(self, event: str, **values: Any) -> None:
        """Write that something went wrong that the service could deal with."""
        if self._least <= 1:
            self._logger.warning(event, **values)

    def error(self, event: str, **values: Any) -> None:
        """Write that a request failed by a fault of the service."""
        self._logger.error(event, **values)

    @cached_property
    def _logger(self) -> Any:
        import structlog

        processors = (
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            structlog.processors.JSONRenderer(sort_keys=True),
        )
        bound = structlog.make_filtering_bound_logger(0)
        return structlog.wrap_logger(structlog.WriteLogger(self._stream), processors=processors, wrapper_class=bound)


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
