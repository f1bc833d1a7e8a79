"""No single failure of the system makes a story end in a wrong answer, or in words that blame somebody else."""

from __future__ import annotations

import pytest

from tests.faults.stories import STORIES
from tests.faults.walk import walk
from tests.seed import gate_seed

_GATE, _ALL = 10.0, 3600.0
# Of these, which make some 450 and 700 calls, not each has been tried.
_OPEN = {
    name: pytest.mark.xfail(strict=False, reason="not each of its calls has been made to fail")
    for name in ("fetching", "following")
}
_STORIES = [pytest.param(name, marks=_OPEN.get(name, ())) for name in STORIES]


@pytest.mark.slow
@pytest.mark.parametrize("story", _STORIES)
def test_a_call_that_fails_once_changes_no_answer_and_blames_nobody(story, tmp_path):
    assert list(walk(story, tmp_path, gate_seed(), _GATE)) == []


@pytest.mark.long
@pytest.mark.parametrize("story", _STORIES)
def test_every_call_that_fails_once_changes_no_answer_and_blames_nobody(story, tmp_path):
    assert list(walk(story, tmp_path, 1, _ALL)) == []
