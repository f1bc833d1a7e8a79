"""Newsletter sign-ups: one row per address, with the time of consent. Nothing is ever sent from here."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from nbext.core.constants import MAX_EMAIL
from nbext.errors import ValidationError
from nbext.service.accounts.database import Database
from nbext.service.accounts.schema import signups


@dataclass(frozen=True)
class SignUp:
    """One address and when its owner consented, in seconds since 1970."""

    email: str
    consented_at: float


def normalised(given: object) -> str:
    """Return the address as it is stored, or raise ValidationError that says what is wrong with it."""
    if not isinstance(given, str):
        raise ValidationError.of("/email", "type", "An e-mail address is a string.")
    # email-validator takes seconds on a megabyte: the length is checked first.
    if len(given) > MAX_EMAIL:
        detail = (
            f"An e-mail address has at most {MAX_EMAIL} characters; this one has {len(given):,}."
        )
        raise ValidationError.of("/email", "length", detail)
    # It takes 30 ms to load, and most services never record an address.
    from email_validator import EmailNotValidError, validate_email

    try:
        return validate_email(given, check_deliverability=False).normalized
    except EmailNotValidError as error:
        raise ValidationError.of("/email", "email", str(error)) from None


class SignUps:
    """The addresses that were recorded."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, given: object) -> str:
        """Store an address and return it as it is stored; a repeat leaves the first consent and looks the same."""
        email = normalised(given)
        # The same answer whether it was there or not: else anyone with a key could ask who reads the newsletter.
        row = {"address": email.casefold(), "email": email, "consented_at": time.time()}
        with contextlib.suppress(IntegrityError), self._database.write() as db:
            db.execute(insert(signups), row)
        return email

    def all(self) -> Iterator[SignUp]:
        """Yield every sign-up, the oldest first."""
        with self._database.read() as db:
            for row in db.execute(
                select(signups).order_by(signups.c.consented_at, signups.c.address)
            ):
                yield SignUp(row.email, row.consented_at)

    def delete(self, email: str) -> bool:
        """Delete an address; False where it was not recorded."""
        with self._database.write() as db:
            return (
                db.execute(delete(signups).where(signups.c.address == email.casefold())).rowcount
                > 0
            )
