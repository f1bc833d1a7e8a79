"""Operation 3: sign up for the newsletter."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from nbext.core.operations import SIGN_UP
from nbext.errors import ValidationError, did_you_mean
from nbext.service.accounts.signups import normalised
from nbext.service.container import Container, FromContainer, Subscriber
from nbext.service.http.bodies import JsonBody
from nbext.service.http.responses import json_answer

router = APIRouter(tags=["newsletter"])


@router.post(SIGN_UP)
async def sign_up(key: Subscriber, body: JsonBody, container: FromContainer) -> Response:
    """Record an address for the newsletter, once; a repeat gets the same answer. Nothing is sent from here."""
    for name in body.keys() - {"email"}:
        raise ValidationError.of(
            f"/{name}", "unknown-key", f"unknown field {name[:80]!r}.{did_you_mean(name, ['email'])}"
        )
    if "email" not in body:
        raise ValidationError.of("/email", "required", "a sign-up needs an e-mail address")
    email = await container.threadpools.patient(_recorded, body["email"], container)
    return json_answer({"email": email, "status": "recorded", "delivered": False}, 202)


def _recorded(given: object, container: Container) -> str:
    email = normalised(given)
    container.signups.record(email)
    return email
