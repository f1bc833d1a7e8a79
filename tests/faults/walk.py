"""Tells a story once for each call that may fail, and collects what should not have come of it."""

from __future__ import annotations

import random
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbext.errors import ApiError, AuthError, NbextError, NotFound, SegmentExpired, ValidationError
from tests.faults.failing import CODES, Failing
from tests.faults.stories import STORIES, Tell, left_aside

# Each says that somebody or something else is to blame than the failure.
_BLAMING = (NotFound, SegmentExpired, AuthError, ValidationError)
_WORDS = ("damaged", "not found", "does not exist", "is no ", "internal error", "unexpected")


def walk(name: str, folder: Path, seed: int, seconds: float) -> Iterator[str]:
    """Yield what is wrong, a line for each call; calls in a random order, until the time is up.

    What a failure broke for good is set up anew, so that each line is of its own call.
    """
    draw, end = random.Random(seed), time.monotonic() + seconds
    numbers: list[int] | None = None
    told, opened = 0, 0
    while numbers is None or (numbers and time.monotonic() < end):
        story, opened = folder / f"story-{opened}" / "told", opened + 1
        story.mkdir(parents=True)
        with _open(name, story) as (failing, fresh, tell, look):
            fresh()
            with failing.armed():
                seen = tell()
            expected = seen, look()
            if numbers is None:
                numbers = draw.sample(range(len(failing.calls)), len(failing.calls))
            lasting: list[str] = []
            while numbers and not lasting and time.monotonic() < end:
                number, told = numbers.pop(), told + 1
                fresh()
                wrong = _with_one_failure(failing, tell, look, expected, number, draw.choice(CODES))
                failed = dict(enumerate(failing.calls)).get(number, "no more")
                lasting = _again(
                    tell, look, expected, fresh if name in _MADE_ONCE else lambda: None
                )
                wrong += lasting + [f"{left} is left" for left in left_aside(story)]
                yield from (f"{name}, call {number} ({failed}): {each}" for each in wrong)
    print(f"{name}: {told} of {told + len(numbers)} calls failed, seed {seed}")


@contextmanager
def _open(name: str, folder: Path) -> Iterator[tuple[Failing, Tell, Tell, Tell]]:
    with warnings.catch_warnings(), Failing(folder) as failing, STORIES[name](folder) as told:
        warnings.simplefilter("ignore")
        yield failing, *told


# Stories whose end is a new thing: a second telling without ``fresh`` is refused.
_MADE_ONCE = {"backing_up", "signing_up", "ingesting", "appending", "fetching", "following"}


def _with_one_failure(
    failing: Failing, tell: Tell, look: Tell, expected: object, number: int, code: int
) -> list[str]:
    try:
        with failing.armed(number, code):
            found = tell()
    except NbextError as error:
        return _blames(error)
    except Exception as error:  # noqa: BLE001 - whatever is no error of ours
        place = traceback.extract_tb(error.__traceback__)[-1]
        return [f"{error!r} is no error of ours ({place.filename}:{place.lineno})"]
    found = found, look()
    return [] if found == expected else [f"another answer: {found!r} != {expected!r}"]


def _blames(error: NbextError) -> list[str]:
    text = f"{type(error).__name__}: {error}"
    internal = isinstance(error, ApiError) and error.problem.get("code") == "internal"
    if isinstance(error, _BLAMING) or internal or any(word in text for word in _WORDS):
        return [f"told as {text}"]
    return []


def _again(tell: Tell, look: Tell, expected: object, fresh: Tell) -> list[str]:
    fresh()
    try:
        found = tell(), look()
    except Exception as error:  # noqa: BLE001 - each is a fault
        return [f"told again: {error!r}"]
    return [] if found == expected else [f"told again: {found!r} != {expected!r}"]
