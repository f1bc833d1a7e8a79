"""Generations at a URL, as an ingest on a cluster writes them and Spark reads them.

    URL/000002-5f3a.../balances.parquet/    a folder of Parquet files for each table of `nbext.engine.schema`
    URL/000002-5f3a.../manifest.json        what they hold; written last, so that what has none is not whole

The one with the greatest number is served: object stores cannot rename a folder in one step.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from nbext.core.untrusted_text import visible
from nbext.engine.spark.session import reason_of
from nbext.engine.storage import FORMAT, KEPT, MANIFEST, Generation, parse_manifest
from nbext.errors import StorageError

_NAME = re.compile(r"(\d{6,})-[0-9a-f]{16}\Z")
# What has no manifest after a day is of a run that was killed.
_ABANDONED_SECONDS = 86_400


def generations(session: Any, url: str) -> list[tuple[int, str, str]]:
    """Return the number, the URL and the manifest's text of each whole generation, in order."""
    from pyspark.errors import PySparkException

    try:
        rows = (
            session.read.text(f"{url}/*/{MANIFEST}", wholetext=True)
            .selectExpr("value", "_metadata.file_path AS path")
            .collect()
        )
    except PySparkException as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise StorageError(f"{visible(url)} cannot be read: {reason_of(error)}") from None
        rows = []
    # Its name alone: Spark writes the rest of the path with %20 in the place of a space.
    found = [(_NAME.match(PurePosixPath(row.path).parent.name), row) for row in rows]
    return sorted((int(named[1]), f"{url}/{named[0]}", row.value) for named, row in found if named)


def newest(session: Any, url: str) -> tuple[str, Generation] | None:
    """Return the generation that is served, and the URL of its folder; None where there is none.

    Raises
    ------
    StorageError
        The URL cannot be read, or the newest manifest is damaged.
    """
    found = generations(session, url)
    if not found:
        return None
    _, folder, text = found[-1]
    return folder, parse_manifest(Path(folder), text)


class Place:
    """Where one run writes its generation: a folder of its own, which is nothing until `publish`."""

    def __init__(self, session: Any, url: str) -> None:
        self._session, self._jvm, self.url = session, session.sparkContext._jvm, url
        self._files = self._at(url).getFileSystem(session.sparkContext._jsc.hadoopConfiguration())
        earlier = generations(session, url)
        self.number = self._claimed(earlier[-1][0] + 1 if earlier else 1)
        self.earlier = [folder for _, folder, _ in earlier]
        self.folder = f"{url}/{self.number:06d}-{secrets.token_hex(8)}"

    def publish(self, manifest: Mapping[str, Any]) -> None:
        """Serve the folder from now on, and remove the generations that nobody can need.

        Raises
        ------
        StorageError
            A run that began after this one has published: its files are served.
        """
        if any(number > self.number for number, *_ in generations(self._session, self.url)):
            raise StorageError(
                f"{visible(self.url)}: an ingest that began later was served before this one ended. "
                "Nothing was changed. Ingest again, one run after the other."
            )
        whole = {"format": FORMAT, "number": self.number, **manifest, "digests": {}}
        stream = self._files.create(self._at(f"{self.folder}/{MANIFEST}"), False)
        try:
            stream.write(bytearray(json.dumps(whole, indent=1, ensure_ascii=True).encode()))
        finally:
            stream.close()
        outdated = self.earlier[: max(0, len(self.earlier) - KEPT + 1)]
        self.remove(self._claim(self.number), *outdated, *self._abandoned())

    def withdraw(self) -> None:
        """Leave nothing of a run that was not published."""
        self.remove(self.folder, self._claim(self.number))

    def remove(self, *places: str) -> None:
        """Remove files and folders, where they are there."""
        for place in places:
            self._files.delete(self._at(place), True)

    def _claimed(self, number: int) -> int:
        """Return the first number from that one on that no other run has, also none that runs just now."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

        while True:
            try:
                self._files.create(self._at(self._claim(number)), False).close()
            except Py4JJavaError as error:
                if "AlreadyExists" not in error.java_exception.getClass().getName():
                    raise
                number += 1
            else:
                return number

    def _claim(self, number: int) -> str:
        return f"{self.url}/.{number:06d}"

    def _abandoned(self) -> list[str]:
        oldest = (time.time() - _ABANDONED_SECONDS) * 1000
        return [
            str(one.getPath())
            for one in self._files.listStatus(self._at(self.url))
            if _NAME.match(one.getPath().getName())
            and one.getModificationTime() < oldest
            and not self._files.exists(self._at(f"{one.getPath()}/{MANIFEST}"))
        ]

    def _at(self, url: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(url)
