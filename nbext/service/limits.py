"""What a service allows and stores: one place for every limit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of one service.

    Attributes
    ----------
    body_bytes
        The longest body that is read.
    arrive_seconds
        How long a request's head, and its body, may take to arrive.
    query_seconds
        How long a segment may run.
    wait_seconds, longest_wait
        How long execute waits without a Prefer header, and at most with one.
    cancel_seconds
        How long a cancelling caller waits for the segment to stop.
    workers, queue, per_key
        Segments that run at once, that wait, and that one key may have queued or running.
    waiting, reading
        Threads for requests that wait for the engine or the disk, and for those that only read what is there.
    warm_up_seconds
        How long after its start a service imports the segment language, if no segment came before.
    keep_days, keep_bytes
        How long a result is stored after its last use, and how many bytes all results may take.
    """

    body_bytes: int = 1 << 20
    arrive_seconds: float = 10.0
    # What one segment may take from all others' time; `nbext serve --query-seconds` changes it.
    query_seconds: float = 30.0
    wait_seconds: float = 20.0
    # Proxies and load balancers cut off answers that take longer than a minute.
    longest_wait: float = 60.0
    cancel_seconds: float = 5.0
    # DuckDB uses all cores for one segment: more at once are each slower, and need more memory.
    workers: int = 2
    # See `Container.wait_for` for what these two numbers were measured to do.
    waiting: int = 40
    reading: int = 2
    # At 30 s each, two at once, the last of these waits for an hour: a longer queue would help nobody.
    queue: int = 256
    per_key: int = 128
    warm_up_seconds: float = 0.0
    keep_days: float = 30.0
    # A full disk stops the service, and whatever else the machine does.
    keep_bytes: int = 20 << 30
