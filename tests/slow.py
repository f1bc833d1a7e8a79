"""Which values of a parameter the README's test command leaves to the gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def but_the_first(values: Sequence[Any], quick: int = 1) -> list[Any]:
    """The values, all but the first of them marked as slow; a plain tuple is the values of several parameters."""
    rest = [value if type(value) is tuple else (value,) for value in values[quick:]]
    return [*values[:quick], *(pytest.param(*value, marks=pytest.mark.slow) for value in rest)]
