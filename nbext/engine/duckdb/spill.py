"""Where questions that outgrow memory spill: a folder for each dataset, which a crash leaves to the next start."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path

from nbext.engine.storage.process_lock import Lease

FOLDER = "spill"


class Spill:
    """A folder of its own for one dataset; what ended processes left beside it is removed.

    Parameters
    ----------
    data_dir
        The data folder. Where it may only be read, the folder is one of the system's temporary ones.
    """

    def __init__(self, data_dir: Path) -> None:
        place = data_dir / FOLDER
        self._lease: Lease | None = None
        try:
            self._lease = Lease(place)
        except (OSError, sqlite3.OperationalError):
            self.folder = Path(tempfile.mkdtemp(prefix="nbext-spill-"))
            return
        self.folder = place / self._lease.name
        for name in {*self._lease.others(), *(path.name for path in place.iterdir() if path.is_dir())}:
            if not self._lease.is_alive(name):
                shutil.rmtree(place / name, ignore_errors=True)

    def release(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lease:
            self._lease.release()
