"""EVM addresses: 0x and 40 hex digits, lower case inside, EIP-55 when shown with a checksum."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from hashlib import sha256

from nbext.core.untrusted_text import shown
from nbext.errors import ValidationError

# Tokens are minted from it; nobody has its key, nor that of 0x...dead, to which people send what they destroy.
ZERO_ADDRESS = "0x" + "0" * 40
BURN_ADDRESSES = (ZERO_ADDRESS, "0x" + "0" * 36 + "dead")
# A list of wallets is stored and sent as the 20 bytes of each address.
WIDTH = 20
LIST_ID_PATTERN = "ls_[A-Za-z0-9_-]{24}"
ENS_NAME = re.compile(r"[\w.-]{1,255}\.eth")
# For all of a text: Python's $ is also before a line break at its end, Arrow's is not.
ADDRESS_PATTERN = "^0x[0-9a-fA-F]{40}$"
_HEX = re.compile(ADDRESS_PATTERN)


def checksummed(address: str) -> str:
    """Return the address with its EIP-55 checksum, which is in the case of its letters.

    >>> checksummed("0xd8da6bf26964af9d7eed9e03e53415d37aa96045")
    '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045'
    """
    # Imported here: loading the extension needs no hash, and hashlib's sha3_256 is not Ethereum's keccak.
    from Crypto.Hash import keccak

    digits = address[2:].lower()
    digest = keccak.new(digest_bits=256, data=digits.encode()).hexdigest()
    spelled = "0x"
    for digit, half_byte in zip(digits, digest, strict=False):
        # As texts: "8" to "9" and "a" to "f" are what is not below "8".
        spelled += digit.upper() if half_byte >= "8" else digit
    return spelled


def looks_like_address(text: str) -> bool:
    """Say whether the text has the form of an address, whatever its checksum."""
    return _HEX.fullmatch(text) is not None


def list_id(pieces: Iterable[bytes | memoryview]) -> str:
    """Return the id of a list of wallets: the hash of its addresses' bytes, in order and each once."""
    digest = sha256()
    for piece in pieces:
        digest.update(piece)
    # 144 bits, as in a segment's id: two lists never meet.
    return "ls_" + base64.urlsafe_b64encode(digest.digest()[:18]).decode("ascii")


def normalised(text: object, pointer: str = "address") -> str:
    """Return the address in lower case, or raise ValidationError: in mixed case it must carry its EIP-55 checksum."""
    if isinstance(text, str) and ENS_NAME.fullmatch(text):
        # Resolving it would need a node, and its owner can point it elsewhere tomorrow.
        name = f"{shown(text)} is an ENS name."
        detail = f"{name} nbext does not resolve names; give the 0x... address."
        raise ValidationError.of(pointer, "address", detail)
    if not isinstance(text, str) or not looks_like_address(text):
        # What a spreadsheet or a database without the prefix holds, or one that writes all in capitals.
        digits = text.removeprefix("0X") if isinstance(text, str) else ""
        what = (
            f"Write 0x{digits}."
            if looks_like_address(f"0x{digits}")
            else "An address is 0x and 40 hex digits."
        )
        raise ValidationError.of(pointer, "address", f"{shown(text)} is not an address. {what}")
    digits = text[2:]
    # One case throughout carries no checksum: explorers, files and SQL write addresses so.
    if digits not in (digits.lower(), digits.upper()) and text != checksummed(text):
        raise ValidationError.of(
            pointer,
            "checksum",
            f"The checksum of {text} does not match: a letter may be mistyped. "
            f"If the digits are right, write {checksummed(text)}.",
        )
    return text.lower()
