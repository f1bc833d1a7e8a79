"""What may stand in paths and queries; each is checked here and told in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Path, Query

from nbext.service.exports import DEFAULT_PAGE, MAX_PAGE
from nbext.wire.operations import IDEMPOTENCY_HEADER

SegmentId = Annotated[
    str, Path(alias="id", pattern="^[A-Za-z0-9_-]{1,128}$", description="A segment's id, as execute answered it.")
]
ChainText = Annotated[
    str,
    Path(
        pattern="^[A-Za-z0-9][A-Za-z0-9:_-]{0,63}$",
        description="A chain: its name, an alias, its EIP-155 id, or a CAIP-2 identifier such as eip155:1.",
    ),
]
AddressOrSymbol = Annotated[
    str,
    Path(
        min_length=1, max_length=256,
        description="A contract's address (0x and 40 hex digits; mixed case carries its EIP-55 checksum), or a symbol.",
    ),
]
PageLimit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="Rows of this page.")]
PageOffset = Annotated[int, Query(ge=0, le=2**53, description="Rows before this page.")]
Prefer = Annotated[
    str | None, Header(description="``wait=N`` (RFC 7240): seconds that the caller waits for the segment to finish.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(alias=IDEMPOTENCY_HEADER, description="The same key with the same body is one segment, for 24 hours."),
]
PAGE = DEFAULT_PAGE
