"""Connections to a PostgreSQL server that may stop answering without closing them, as one that hangs does.

No timeout of the server's own helps then, and none of the network's: the system of the server still acknowledges what
it receives. So each wait for an answer has an end here, and closes its connection at that.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event

# How long a connection may take, and the answer to a statement (seconds).
CONNECT_SECONDS = 2
ANSWER_SECONDS = 2.5


def bounded_engine(url: URL) -> Engine:
    """Return an engine whose connections and statements end in time, with an OperationalError where nobody answers."""
    # An extra, which only a registry on a server needs.
    import psycopg

    class Bounded(psycopg.Connection[Any]):
        def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
            return super().wait(self._timed(gen), *args, **options)

        def _timed(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            # psycopg resumes it a few times a second with nothing where nothing has come.
            until, come = time.monotonic() + ANSWER_SECONDS, None
            while True:
                try:
                    come = yield gen.send(come)
                except StopIteration as done:
                    return done.value
                if not come and time.monotonic() > until:
                    self.pgconn.finish()
                    raise psycopg.OperationalError("the server does not answer")

    # A server has a bound on connections: some threads wait for one. pre_ping: it may have been restarted.
    engine = create_engine(
        url,
        pool_size=8,
        max_overflow=8,
        pool_timeout=ANSWER_SECONDS,
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECT_SECONDS},
    )

    def connect(_: Any, __: Any, words: Any, options: Any) -> Bounded:
        return Bounded.connect(*words, **options)

    event.listen(engine, "do_connect", connect)
    return engine
