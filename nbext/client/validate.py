"""What a caller may ask: every argument is checked before any request, and refused with what is allowed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from nbext.core import addresses, chains, constants
from nbext.core.constants import MAX_EMAIL, MAX_SEARCH_TERM, MAX_SYMBOL, SEGMENT_ID, is_whole
from nbext.core.operations import FILE_TYPES, OPERATORS, SEARCH_TYPES
from nbext.errors import ValidationError, did_you_mean


def one_of(given: object, allowed: Iterable[str], pointer: str) -> str:
    """Return the word if it is allowed, in the spelling of the interface."""
    words = list(allowed)
    if isinstance(given, str):
        for word in words:
            if given == word or (given.isascii() and given.lower() == word.lower()):
                return word
    named = repr(given[:40]) if isinstance(given, str) else repr(given) if given is None else type(given).__name__
    hint = did_you_mean(given[:40], words) if isinstance(given, str) else ""
    raise ValidationError.of(pointer, "choice", f"{named} is not allowed.{hint} Allowed: {', '.join(words)}.")


def operator_of(given: object) -> str:
    """Return AND or OR."""
    return one_of(given, OPERATORS, "/operator")


def file_type_of(given: object) -> str:
    """Return json or csv."""
    return one_of(given, FILE_TYPES, "/fileType")


def search_type_of(given: object) -> str:
    """Return nft, erc721, erc1155 or token."""
    return one_of(given, SEARCH_TYPES, "/type")


def whole_number(given: object, pointer: str, minimum: int, maximum: int) -> int:
    """Return a whole number within bounds; numpy's integers are whole numbers, True is none."""
    if is_whole(given) and minimum <= int(given) <= maximum:
        return int(given)
    named = str(given)[:40] if isinstance(given, int | float) else f"{given!r}"[:40]
    raise ValidationError.of(
        pointer, "bound", f"{named} is not allowed. Allowed: a whole number from {minimum:,} to {maximum:,}."
    )


def limit_of(given: object, *, counting: bool = False) -> int:
    """Return how many rows to keep. Zero only counts, which only our own service is known to do."""
    limit = constants.limit_of(given, least=0 if counting else 1)
    if isinstance(limit, int):
        return limit
    only = "0 only counts, and this service is not known to do that. " if is_whole(given) and given == 0 else ""
    raise ValidationError.of("/limit", "bound", only + limit)


def segment_id_of(given: object) -> str:
    """Return a segment's id."""
    if isinstance(given, str) and SEGMENT_ID.match(given):
        return given
    named = f"{given!r}"[:60] if isinstance(given, str) and len(given) <= 200 else type(given).__name__
    raise ValidationError.of(
        "id", "id", f"{named} is not a segment's id. Allowed: 1 to 128 letters, digits, - and _."
    )


def chain_of(given: object, *, ours: bool) -> str:
    """Return the chain as it goes out: our own service's name for it, or what was written to a remote."""
    text = str(given) if type(given) is int else given
    if not isinstance(text, str) or not chains.CHAIN_TEXT.match(text):
        named = f"{text[:60]!r}" if isinstance(text, str) else type(given).__name__
        raise ValidationError.of(
            "chain", "chain", f"{named} is not a chain. Allowed: {', '.join(chains.chain_names())}, or a chain id."
        )
    # A remote may know chains that we do not.
    return chains.chain_of(text).name if ours else text


def address_of(given: object) -> str:
    """Return an address in lower case; a name such as vitalik.eth is none."""
    if isinstance(given, str) and re.fullmatch(r"[\w.-]+\.eth", given):
        raise ValidationError.of(
            "address", "address", f"{given[:80]!r} is an ENS name, which is not looked up here. Write its address."
        )
    return addresses.normalised(given)


def is_symbol(given: object) -> bool:
    """Say whether the text can be a token's symbol and not a mistyped address."""
    text = given.strip().lower() if isinstance(given, str) else ""
    return (
        isinstance(given, str)
        and 0 < len(text) <= MAX_SYMBOL
        and text not in (".", "..")
        and not text.startswith("0x")
        and not text.endswith(".eth")
        and all(unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") for c in given)
        # So many hex digits are an address whose 0x was left away; so many letters and digits are one mistyped.
        and not re.fullmatch(r"[0-9a-f]{30,}|[0-9a-z]{37,}", text)
    )


def search_term_of(given: object) -> str:
    """Return the text to search for."""
    text = given if isinstance(given, str) else ""
    if not text.strip() or len(text) > MAX_SEARCH_TERM:
        detail = f"{len(text):,} characters" if text.strip() else "nothing to search for"
        raise ValidationError.of("/searchTerm", "length", f"{detail}. Allowed: 1 to {MAX_SEARCH_TERM} characters.")
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in text):
        raise ValidationError.of("/searchTerm", "characters", "a control character or half a character is not allowed.")
    return text


def email_of(given: object) -> str:
    """Return the e-mail address, in its normal form."""
    if not isinstance(given, str) or not given or len(given) > MAX_EMAIL:
        # The parser takes seconds for a long text: the length goes first.
        came = f"{len(given):,} characters" if isinstance(given, str) else type(given).__name__
        detail = f"{came}. Allowed: an e-mail address of at most {MAX_EMAIL} characters."
        raise ValidationError.of("/email", "length", detail)
    from email_validator import EmailNotValidError, validate_email

    try:
        return validate_email(given, check_deliverability=False).normalized
    except EmailNotValidError as error:
        detail = str(error)
    raise ValidationError.of("/email", "email", detail)
