"""Whose data a generation is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbext.engine.dataset import DataAbout
from nbext.engine.storage.generation import MANIFEST
from nbext.errors import StorageError

if TYPE_CHECKING:
    from nbext.engine.storage.generation import Generation


def about(generation: Generation, engine: str) -> DataAbout:
    """Return whose data a generation is, as asked through an engine.

    Raises
    ------
    StorageError
        The manifest does not say it.
    """
    manifest = generation.manifest
    try:
        return DataAbout(
            name=manifest["name"],
            synthetic=manifest["synthetic"],
            fingerprint=generation.fingerprint,
            engine=engine,
            chains=generation.chains,
        )
    except (KeyError, TypeError) as error:
        raise StorageError(f"{generation.folder / MANIFEST} is damaged: {error!r}. Take the data in again.") from None
