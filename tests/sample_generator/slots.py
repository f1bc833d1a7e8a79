"""The sample's year: slots of 37 minutes that end at a fixed instant, and the block of each slot.

Every chain's blocks come at an even pace here, and nothing happens between two slots: few distinct
blocks keep the sample small. The block numbers lie near the true ones but are made up.
"""

from __future__ import annotations

from dataclasses import dataclass

END = 1_767_225_600  # 2026-01-01T00:00:00Z
SLOT_SECONDS = 2_220
LAST_SLOT = 14_205
DAY = 39  # slots, 24 hours and 3 minutes


@dataclass(frozen=True)
class Pace:
    """A chain's last block, and how many blocks it makes in one slot."""

    last_block: int
    blocks_per_slot: int


PACES = {
    "ethereum": Pace(24_136_000, 185),
    "optimism": Pace(145_800_000, 1_110),
    "polygon": Pace(81_000_000, 1_110),
    "base": Pace(40_200_000, 1_110),
    "arbitrum": Pace(416_500_000, 8_880),
}


def timestamp(slot: int) -> int:
    """Return the slot's time in seconds since 1970."""
    return END - (LAST_SLOT - slot) * SLOT_SECONDS


def block(chain: str, slot: int) -> int:
    """Return the chain's block at the slot."""
    pace = PACES[chain]
    return pace.last_block - (LAST_SLOT - slot) * pace.blocks_per_slot
