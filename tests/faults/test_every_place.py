"""No single failure of the system makes a story end in a wrong answer, or in words that blame somebody else."""

from __future__ import annotations

import pytest

from tests.faults.stories import STORIES
from tests.faults.walk import walk
from tests.seed import gate_seed

_GATE, _ALL = 10.0, 3600.0


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES)
def test_a_call_that_fails_once_changes_no_answer_and_blames_nobody(story, tmp_path):
    assert list(walk(story, tmp_path, gate_seed(), _GATE)) == []


@pytest.mark.long
@pytest.mark.parametrize("story", STORIES)
def test_every_call_that_fails_once_changes_no_answer_and_blames_nobody(story, tmp_path):
    assert list(walk(story, tmp_path, 1, _ALL)) == []
