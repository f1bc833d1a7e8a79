"""Made-up contracts of the kind that wallets get unasked: hostile names, borrowed symbols.

None of them exists. Their addresses are hashes, their names hold what is found in real ones: HTML,
dollar signs, text that runs from right to left, formulas, braces, letters that look like others.
"""

from __future__ import annotations

from nbext.core.addresses import checksummed
from nbext.engine.sample.known import Known
from tests.sample_generator.cast import address


def _spam(chain: str, standard: str, symbol: str, name: str, decimals: int | None = None) -> Known:
    return Known(
        chain, checksummed(address(f"spam {chain} {symbol}")), standard, symbol, name, decimals
    )


# Each symbol is one that no well-known contract of its chain bears, so that none becomes ambiguous.
SPAM = (
    _spam("ethereum", "ERC721", "<b>GIFT</b>", "<img src=x onerror=alert(1)> Claim your gift"),
    _spam("ethereum", "ERC721", "$GIFT$", "$5,000 at https://gift.invalid and $WIN more$"),
    # Not hostile but extreme: all of its 2^256 - 1 units exist.
    _spam("ethereum", "ERC20", "MAX", "Largest Possible Supply", 18),
    _spam("polygon", "ERC1155", "\u202eCDSU\u202c", "\u202edrawer eerf\u202c \u200fclaim"),
    _spam("polygon", "ERC721", "BAYC", "BoredApeYachtClub"),
    # Reads as a missing value where a reader is careless.
    _spam("polygon", "ERC20", "NA", "NA", 0),
    _spam("base", "ERC20", "U\u0405DC", "U\u0405D Coin", 6),
    _spam("optimism", "ERC721", "{{key}}", "{key} $HOME `id` %token"),
    _spam(
        "arbitrum", "ERC20", '=1+"1"', '=HYPERLINK("https://gift.invalid";"a | b")\n**bold** _x_', 0
    ),
)
