"""Whose data a generation is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbext.engine.dataset import DataAbout

if TYPE_CHECKING:
    from nbext.engine.generation import Generation


def about(generation: Generation, engine: str) -> DataAbout:
    """Return whose data a generation is, as asked through an engine."""
    manifest = generation.manifest
    return DataAbout(
        name=manifest["name"],
        synthetic=manifest["synthetic"],
        fingerprint=generation.fingerprint,
        engine=engine,
        chains=generation.chains,
    )
