"""EVM addresses: 0x and 40 hex digits, lower case inside, EIP-55 when shown with a checksum."""

from __future__ import annotations

import re

from nbext.errors import ValidationError

BURN_ADDRESSES = (
    "0x0000000000000000000000000000000000000000",
    "0x000000000000000000000000000000000000dead",
)
_HEX = re.compile(r"0x[0-9a-fA-F]{40}\Z")


def checksummed(address: str) -> str:
    """Return the address in its EIP-55 spelling.

    >>> checksummed("0xd8da6bf26964af9d7eed9e03e53415d37aa96045")
    '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045'
    """
    from Crypto.Hash import keccak

    digits = address[2:].lower()
    digest = keccak.new(digest_bits=256, data=digits.encode()).hexdigest()
    return "0x" + "".join(
        d.upper() if int(h, 16) >= 8 else d for d, h in zip(digits, digest, strict=False)
    )


def looks_like_address(text: str) -> bool:
    """Say whether the text has an address's form, whatever its checksum."""
    return _HEX.match(text) is not None


def normalised(text: object, pointer: str = "address") -> str:
    """Return the address in lower case.

    Any one case is taken as it is; a mixed-case address must carry its right EIP-55 checksum.

    Raises
    ------
    ValidationError
        Not a string, not 0x and 40 hex digits, or a checksum that does not match.
    """
    if not isinstance(text, str) or not looks_like_address(text):
        shown = repr(text if isinstance(text, str) and len(text) <= 80 else type(text).__name__)
        if isinstance(text, str) and len(text) > 80:
            shown = f"a text of {len(text)} characters"
        raise ValidationError.of(
            pointer, "address", f"not an address: {shown}. An address is 0x and 40 hex digits."
        )
    digits = text[2:]
    if digits not in (digits.lower(), digits.upper()) and text != checksummed(text):
        raise ValidationError.of(
            pointer,
            "checksum",
            f"the checksum of {text} does not match; a letter may be mistyped. "
            f"The same digits would be written {checksummed(text)}.",
        )
    return text.lower()
