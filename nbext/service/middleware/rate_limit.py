"""How often a key may ask: a moving window per key, in this process's memory."""

from __future__ import annotations

import math
import re
import time
from functools import lru_cache

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from nbext.errors import ConfigError
from nbext.service.accounts.keys import Key
from nbext.service.http.problems import Problem

_RATE = re.compile(r"\s*[1-9]\d{0,8}\s*(/|\s+per\s)\s*([1-9]\d{0,8}\s*)?[a-z]+\s*", re.IGNORECASE)


@lru_cache(maxsize=256)
def parse_rate(text: str) -> RateLimitItem:
    """Return the rate of a text such as ``600/minute`` or ``10 per second``.

    Raises
    ------
    ConfigError
        The text is not a rate.
    """
    try:
        # The library takes the first of several rates, and zeros.
        return parse(_RATE.fullmatch(text)[0])  # type: ignore[index]  # no match is no rate
    except (TypeError, ValueError):
        raise ConfigError(f"{text[:80]!r} is not a rate: write 600/minute, 10/second or 20000/day.") from None


class Rates:
    """Counts each key's requests; every service counts its own."""

    def __init__(self) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def take(self, key: Key) -> None:
        """Count one request, or raise the problem 429 with the seconds to wait."""
        if key.rate is None:
            return
        rate = parse_rate(key.rate)
        if not self._limiter.hit(rate, key.id):
            reset = self._limiter.get_window_stats(rate, key.id).reset_time
            wait = max(1, math.ceil(reset - time.time()))
            raise Problem(
                "rate-limit",
                f"This key may ask {key.rate}. Try again in {wait} s.",
                headers={"Retry-After": str(wait)},
            )
