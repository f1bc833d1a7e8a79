"""What a service allows and stores: the limits that it is started with; fixed ones are beside the code they bound."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """What all services of a registry store, and for how long; `nbext policy` changes it, in the registry.

    A full disk stops the service, and whatever else the machine does.
    """

    # How long a result is stored after its last use, and a list of wallets.
    keep_days: float = 30.0
    # How long the audit log goes back; 0 notes nothing, for a service of one person.
    audit_days: float = 365.0
    # How many bytes all segments may take, with their requests and previews.
    keep_bytes: int = 20 << 30
    # A quarter of that for one key, so that it cannot displace the results of all others.
    key_bytes: int = 5 << 30
    # How many bytes all lists of wallets may take.
    list_bytes: int = 4 << 30


@dataclass(frozen=True)
class Bound:
    """How many of something within requests a key, and all keys together, may have of a service at once."""

    # Its name in the problems.
    what: str
    per_key: int
    in_all: int
    # Threads that are lent for it, in turn, where it does not bring its own.
    threads: int = 1


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
    reading: int = 3
    # Segments that wait. At 30 s each, two at once, the last waits for an hour: a longer queue would help nobody.
    queue: int = 256
    # Queued and running: half of the queue, so that one key's loop cannot fill it for all others.
    per_key: int = 128
    # Reading large bodies and planning segments: Python runs one thread at a time, and more only wait for each other.
    planning: Bound = Bound("requests", per_key=128, in_all=256, threads=2)
    # Counts, funnels and holdings, too: as many ask the engine at once as segments do.
    explaining: Bound = Bound("explanations", per_key=8, in_all=256, threads=2)
    # Each holds a batch of rows in memory, and a connection's buffer.
    exports: Bound = Bound("exports", per_key=16, in_all=64)
    # Each may take as much disk as the longest list, until it is stored.
    receiving: Bound = Bound("lists of wallets", per_key=2, in_all=8)
    # Bodies of more than `LARGE_BODY` bytes: read as JSON, a megabyte takes up to 30 of memory.
    large_bodies: Bound = Bound("large requests", per_key=4, in_all=16)
    # The longest list of wallets, of 20 bytes each. Ten million take 200 MB on the disk, and a second to sort.
    list_wallets: int = 10_000_000
    # A list may not send less than this for longer than ``arrive_seconds`` (bytes a second): the longest has 13
    # minutes, in which it holds its place among all that are received.
    slowest: int = 256 << 10
