"""What the service says of itself."""

from __future__ import annotations

from typing import Any

from nbext import __version__
from nbext.core.chains import chain_of
from nbext.core.operations import OPENAPI, SCHEMA
from nbext.engine.dataset import ChainExtent, DataAbout
from nbext.language.fields import GRAMMAR
from nbext.service.http.times import iso_block


def about(data: DataAbout) -> dict[str, Any]:
    """Return the answer of /about."""
    return {
        "service": "nbext",
        "version": __version__,
        "grammar": GRAMMAR,
        "engine": data.engine,
        "data": {
            "name": data.name,
            "synthetic": data.synthetic,
            "fingerprint": data.fingerprint,
            "chains": [_extent(each) for each in data.chains],
        },
        "links": {"schema": SCHEMA, "openapi": OPENAPI},
    }


def _extent(extent: ChainExtent) -> dict[str, Any]:
    return {
        "chain": chain_of(extent.chain_id).name,
        "chainId": extent.chain_id,
        "firstBlock": extent.first_block,
        "lastBlock": extent.last_block,
        "lastTimestamp": iso_block(extent.last_timestamp),
    }
