"""What a long call tells while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Progress:
    """One report of a call that takes its time.

    Attributes
    ----------
    phase
        ``running``: the service works; ``fetching``: the answer is on its way.
    status
        The service's own word for where the segment stands, or ``""``.
    segment_id
        The segment, where it is known already.
    seconds
        Since the call began.
    done, total
        Bytes that came and, where the service said, how many will; ``total`` is None otherwise.
    """

    phase: Literal["running", "fetching"]
    status: str = ""
    segment_id: str | None = None
    seconds: float = 0.0
    done: int = 0
    total: int | None = None


Reporter = Callable[[Progress], None]


def no_report(_: Progress) -> None:
    """Tell nobody."""
