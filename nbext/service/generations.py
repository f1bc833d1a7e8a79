"""The generations of data that a service has open: the newest, and each before it until its last question has ended."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from nbext.core.chains import chain_of
from nbext.engine.query.answers import Dataset
from nbext.service.middleware import Log
from nbext.service.problems import Problem

# Seconds between two looks at the data folder, each of which is one stat.
_LOOK = 1.0
Newer = Callable[[], "Dataset | None"]


class Generations:
    """The open generations of one service.

    ``newer`` returns the dataset of the data folder when it is another than the one that it returned last, else None.
    A request or a job is lent one generation, and is answered from it to its end, whatever is served meanwhile.
    """

    def __init__(self, dataset: Dataset, newer: Newer, log: Log) -> None:
        self._newer, self._log = newer, log
        # How often each is lent. The last is the newest; that it has no new row gives it no other fingerprint.
        self._open = {dataset: 0}
        self._changing, self._looking = threading.Lock(), threading.Lock()
        # Set where the thread is to look now.
        self.woken, self._ending = threading.Event(), False
        self.thread = threading.Thread(target=self._watch, name="nbext-generations", daemon=True)

    @property
    def newest(self) -> Dataset:
        """The generation that new requests are answered from; `acquire` is for whoever asks it more than `about`."""
        return [*self._open][-1]

    def fingerprints(self) -> list[str]:
        """Return the fingerprints of all that are open."""
        return [dataset.about.fingerprint for dataset in [*self._open]]

    @contextlib.contextmanager
    def acquire(self, fingerprint: str | None = None) -> Iterator[Dataset]:
        """Lend the newest generation, or the one of that fingerprint; the problem is `not_open`."""
        with self._changing:
            found = [
                dataset
                for dataset in self._open
                if fingerprint in (None, dataset.about.fingerprint)
            ]
            if not found:
                raise not_open()
            *_, dataset = found
            self._open[dataset] += 1
        try:
            yield dataset
        finally:
            # It is closed, if it may be, by the next look: that would hold the caller of this request up.
            with self._changing:
                self._open[dataset] -= 1

    def refresh(self) -> None:
        """Serve the data folder's generation from now on, where it is another; close those that nobody asks any more.

        One that cannot be opened is reported in the log once, and tried again at each look.
        """
        with self._looking:
            dataset = None
            # Any error: the thread that looks has to go on.
            with self._log.once(
                "new data cannot be opened; the data before is served", Exception, level="error"
            ):
                if not self._ending:
                    dataset = self._newer()
            before = self.newest.about
            with self._changing:
                if dataset is not None:
                    self._open[dataset] = 0
                unused = [one for one, lent in [*self._open.items()][:-1] if not lent]
                for one in unused:
                    del self._open[one]
            about = self.newest.about
            if about.fingerprint != before.fingerprint:
                blocks = {chain_of(one.chain_id).name: one.last_block for one in about.chains}
                self._log.info(
                    "new data is served", fingerprint=about.fingerprint, last_blocks=blocks
                )
            for one in unused:
                one.close()

    def _watch(self) -> None:
        while not self._ending:
            self.woken.wait(_LOOK)
            self.woken.clear()
            self.refresh()

    def close(self) -> None:
        """Close all of them."""
        self._ending = True
        self.woken.set()
        self.thread.join(timeout=5)
        with self._looking:
            for dataset in self._open:
                dataset.close()


def not_open() -> Problem:
    """Return the problem of a segment that was to be answered from data that is not served any more."""
    return Problem(
        "expired", "The data has changed before the segment could run. Execute the segment again."
    )
