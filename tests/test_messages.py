"""What the package shows to people is plain English: turns of phrase that need a second reading are refused."""

from __future__ import annotations

import re

import pytest

from tests.messages import sentences

# What to write instead: say what is wrong, where, and the right text where it is known.
REFUSED = {
    "is none": r"\b(is|are) none\b",
    "is one word too many": r"word too many|\b(is|are) too many\b",
    "tells": r"\btells?\b|\btold\b",
    "stands for is": r"\b(stands?|stood) (in|for|at|beside|before|above|below)\b",
    "keeps itself": r"\b(is|are) kept for\b",
    "is of": r"\bis of (a|an|the|another)\b",
    "says how": r"\bsays how\b",
    "cannot be alone": r"\bthat cannot be\b",
}


def test_the_list_has_the_messages_that_people_meet_first():
    texts = [sentence.text for sentence in sentences()]
    assert len(texts) > 300
    assert any("nbext[local]" in text for text in texts)
    assert any("is not an address" in text for text in texts)


@pytest.mark.parametrize("pattern", REFUSED.values(), ids=REFUSED)
def test_no_message_uses_a_turn_of_phrase_that_needs_a_second_reading(pattern):
    assert [str(sentence) for sentence in sentences() if re.search(pattern, sentence.text)] == []
