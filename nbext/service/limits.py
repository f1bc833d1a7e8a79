"""What a service allows and stores: the limits that it is started with; fixed ones are beside the code they bound."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of one service."""

    # A body is held in memory whole, before anybody knows whether it is a query.
    body_bytes: int = 1 << 20
    # How long a request's head, and its body, may take to arrive.
    arrive_seconds: float = 10.0
    # What one segment may take from all others' time; `nbext serve --query-seconds` changes it.
    query_seconds: float = 30.0
    # How long execute waits without a Prefer header, and at most with one: proxies and load balancers cut off answers
    # that take longer than a minute.
    wait_seconds: float = 20.0
    longest_wait: float = 60.0
    # How long a cancelling caller waits for the segment to stop.
    cancel_seconds: float = 5.0
    # Segments that run at once. DuckDB uses all cores for one: more are each slower, and need more memory.
    workers: int = 2
    # Threads for requests that wait for the engine or the disk, and for those that only read what is there. See
    # `Container.wait_for` for what these two numbers were measured to do.
    waiting: int = 40
    reading: int = 2
    # Segments that wait. At 30 s each, two at once, the last waits for an hour: a longer queue would help nobody.
    queue: int = 256
    # Queued and running: half of the queue, so that one key's loop cannot fill it for all others.
    per_key: int = 128
    # How long after its start a service imports the segment language, if no segment came before.
    warm_up_seconds: float = 0.0
    # How long a result is stored after its last use, and how many bytes all results may take: a full disk stops the
    # service, and whatever else the machine does.
    keep_days: float = 30.0
    keep_bytes: int = 20 << 30
