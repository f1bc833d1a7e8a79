"""What may stand in paths and queries; each is checked here and told in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Path, Query

from nbext.core.operations import IDEMPOTENCY_HEADER
from nbext.service.segments.exports import DEFAULT_PAGE, MAX_PAGE

SegmentId = Annotated[
    str, Path(alias="id", pattern="^[A-Za-z0-9_-]{1,128}$", description="A segment's id, as execute answered it.")
]
ChainText = Annotated[
    str,
    Path(
        pattern="^[A-Za-z0-9][A-Za-z0-9:_-]{0,63}$", examples=["ethereum"],
        description="A chain: its name, an alias, its EIP-155 id, or a CAIP-2 identifier such as eip155:1.",
    ),
]


def _contract(example: str) -> Any:
    return Path(
        min_length=1, max_length=256, examples=[example],
        description="A contract's address (0x and 40 hex digits; mixed case carries its EIP-55 checksum), or a symbol.",
        json_schema_extra={
            "anyOf": [{"pattern": "^0x[0-9a-f]{40}$"}, {"pattern": "^0x[0-9A-F]{40}$"}, {"pattern": "^[^0].*$"}]
        },
    )


TokenText = Annotated[str, _contract("USDC")]
CollectionText = Annotated[str, _contract("BAYC")]
PageLimit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="Rows of this page.")]
PageOffset = Annotated[int, Query(ge=0, le=2**53, description="Rows before this page.")]
Prefer = Annotated[
    str | None, Header(description="``wait=N`` (RFC 7240): seconds that the caller waits for the segment to finish.")
]
IdempotencyKey = Annotated[
    str | None,
    # Told in the operation's words: no schema can say that a key goes with one body.
    Header(alias=IDEMPOTENCY_HEADER, include_in_schema=False),
]
PAGE = DEFAULT_PAGE
