"""What two keys do with one segment at once ends as if one of them had come first."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

from tests.seed import gate_seed
from tests.service.schedules.operations import ACTORS, OPERATIONS, World, world
from tests.service.schedules.pausing import Pausing

_GATE, _ALL = 50.0, 7200.0
# Two operations with the key of each, what the segment is before, and whether one service has both.
Pair = tuple[tuple[str, str], tuple[str, str], str, bool]
DONE = [(name, actor) for name in OPERATIONS for actor in ACTORS]
PAIRS: list[Pair] = list(product(DONE, DONE, ("completed", "deleted"), (True, False)))


def wrong(made: World, pausing: Pausing, pair: Pair) -> Iterator[str]:
    """Yield each schedule of a pair whose outcome is that of neither order."""
    (first, by), (second, other), state, together = pair
    database = made.services[0].container.database

    def one() -> Any:
        return OPERATIONS[first](made, 0, by)

    def two() -> Any:
        return OPERATIONS[second](made, 0 if together else 1, other)

    # A key that repeats itself may be told that its answer was there.
    if (first, by) == (second, other) and first == "claim":
        return
    made.renew(state)
    in_order = one(), two(), made.seen()
    made.renew(state)
    later, sooner = two(), one()
    serial = [in_order, (sooner, later, made.seen())]
    for number in count(1):
        made.renew(state)
        found = pausing.at(number, database, one, two)
        if found is None:
            return
        outcome = (*found, made.seen())
        # What is cancelled before it has run is in neither order: each operation of one runs to its end.
        if {first: found[0], second: found[1]}.get("cancel") == "done":
            continue
        if not any(matches(outcome, one_order) for one_order in serial):
            yield f"{pair}, stopped at {number}: {outcome} is none of {serial}"


def matches(found: Any, expected: Any) -> bool:
    """Return whether an outcome is one of a serial order, but that what was asked for may not have finished yet.

    Then a reader is told so instead of the rows, a deletion is refused, and whoever asks is not told that it was there.
    """
    if found == "there":
        return expected != (404, "not-found")
    if isinstance(found, dict):
        return all(matches(found[actor], expected[actor]) for actor in found)
    if isinstance(found, tuple) and isinstance(expected, tuple):
        if "there" in (found[0], expected[0]):
            return found[0] == expected[0] and found[1] in (False, None, expected[1])
        return len(found) == len(expected) and all(map(matches, found, expected))
    return found == expected


def outsiders_see(made: World, pair: Pair) -> list[str]:
    """Return which keys see a private segment that they never asked for."""
    asked = {actor for name, actor in pair[:2] if name in {"execute", "claim"}}
    return [
        actor
        for actor, seen in made.seen().items()
        if actor not in {"private", "admin", *asked} and seen != (404, "not-found")
    ]


def walk(folder: Path, seed: int, seconds: float) -> list[str]:
    """Return what is wrong with pairs in a random order, until the time is up."""
    pairs = random.Random(seed).sample(PAIRS, len(PAIRS))
    end, faults, done = time.monotonic() + seconds, [], 0
    with Pausing() as pausing, world(folder) as made:
        for pair in pairs:
            if time.monotonic() > end:
                break
            done += 1
            faults += wrong(made, pausing, pair)
            faults += [f"{pair}: {actor} sees it" for actor in outsiders_see(made, pair)]
    print(f"{done} of {len(pairs)} pairs, seed {seed}")
    return faults


@pytest.mark.slow
def test_two_operations_at_once_end_as_one_after_the_other(tmp_path):
    assert walk(tmp_path, gate_seed(), _GATE) == []


@pytest.mark.long
def test_all_pairs_of_operations_at_once_end_as_one_after_the_other(tmp_path):
    assert walk(tmp_path, 1, _ALL) == []
