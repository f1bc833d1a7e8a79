"""Whether to ask again, when, and how often in all."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from enum import Enum

from nbext.errors import ApiError, ConnectionFailed, DeadlineExceeded, NbextError, TruncatedResponse

FIRST_PAUSE, LONGEST_PAUSE, LONGEST_RETRY_AFTER = 0.5, 8.0, 60.0


class Repeat(Enum):
    """What may be asked again.

    ``ALWAYS``: reading, or writing under an Idempotency-Key that the service is known to honour.
    ``IF_REFUSED``: a segment on a service that may not honour the key; gateways' answers count as refusals.
    ``NEVER_TWICE``: a sign-up; only what surely did not happen.
    """

    # 408, 425 and 500 are in the first set alone: such a request may have run.
    ALWAYS = frozenset({408, 425, 429, 500, 502, 503, 504})
    IF_REFUSED = frozenset({429, 502, 503, 504})
    NEVER_TWICE = frozenset({429})

    def allows(self, error: NbextError, *, sent: bool) -> bool:
        """Say whether a call that ended so, after its bytes were sent or not, may be asked again."""
        if isinstance(error, ApiError):
            return error.status in self.value
        if not isinstance(error, ConnectionFailed | TruncatedResponse | DeadlineExceeded):
            return False
        return self is Repeat.ALWAYS or not sent


class Budget:
    """A bucket that retries empty and good answers slowly fill: many callers of a sick service make no storm."""

    # A hundred retries at once, and then one for each ten good answers.
    SIZE, RETRY, SUCCESS = 500.0, 5.0, 0.5

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = self.SIZE

    def spend(self) -> bool:
        """Take a retry's worth; False where too little is left."""
        with self._lock:
            if self._left < self.RETRY:
                return False
            self._left -= self.RETRY
            return True

    def earn(self) -> None:
        """Give a little back after a call that ended well."""
        with self._lock:
            self._left = min(self.SIZE, self._left + self.SUCCESS)


def pause(attempt: int, headers: Mapping[str, str]) -> float:
    """Return the seconds to wait after the attempt (1 is the first): Retry-After, else our own backoff."""
    asked = retry_after(headers)
    if asked is not None:
        return asked
    # Jitter keeps many callers from coming back all at once.
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that Retry-After asks for, up to a minute; None where it is absent or makes no sense."""
    text = headers.get("Retry-After", "").strip()
    if not text:
        return None
    if re.fullmatch(r"[0-9]{1,9}", text):
        seconds = float(text)
    else:
        try:
            # Against the service's own clock: this machine's may be minutes off.
            moment = parsedate_to_datetime(text)
            seconds = moment.timestamp() - parsedate_to_datetime(headers.get("Date", "")).timestamp()
        except (TypeError, ValueError, OverflowError):
            return None
    return seconds if 0 <= seconds <= LONGEST_RETRY_AFTER else None
