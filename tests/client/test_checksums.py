"""Checksums of many addresses at a time are those of one at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nbext.client.addresses import checksums_match
from nbext.core.addresses import checksummed

ADDRESSES = st.lists(
    st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex()), min_size=1, max_size=20
)


def matching(texts):
    digits = np.frombuffer("".join(text[2:] for text in texts).encode(), np.uint8).reshape(-1, 40)
    return checksums_match(digits).tolist()


@given(addresses=ADDRESSES, at=st.integers(2, 41))
def test_the_case_of_each_letter_counts(addresses, at):
    right = [checksummed(one) for one in addresses]
    wrong = [one[:at] + one[at].swapcase() + one[at + 1 :] for one in right]
    assert matching(right) == [True] * len(right)
    assert matching(wrong) == [one == other for one, other in zip(right, wrong, strict=True)]
