"""Names that hide or pretend, as services sent them: a table that pandas made of ours is known again by them.

``pd.concat``, ``groupby`` and others drop what a table carries about where it comes from. Names without
anything strange are not kept, so a table without such a name is shown by pandas as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import visible
from nbext.notebook.display.suspicious_names import flags

if TYPE_CHECKING:
    import pandas as pd

MAX_KEPT = 10_000
# Anything but plain letters, digits and marks, as a first sieve: millions of addresses do not pass it.
_SIEVE = r"[^ -~]|[$\\]"


class Seen:
    """The strange names of a session, up to a bound."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __len__(self) -> int:
        return len(self._names)

    def learn(self, table: pd.DataFrame | pd.Series[Any]) -> None:
        """Keep the strange names among a table's texts, and among the names of its columns."""
        import pandas as pd

        for text in _texts(table if isinstance(table, pd.DataFrame) else table.to_frame()):
            if len(self._names) < MAX_KEPT and is_strange(text):
                self._names.add(text)

    def holds_any(self, labels: Iterable[Any]) -> bool:
        """Say whether one of the values is a name that was kept."""
        return any(isinstance(label, str) and label in self._names for label in labels)


def is_strange(text: str) -> bool:
    """Say whether a text hides something, pretends to be another, or would be shown as maths."""
    return "$" in text or "\\" in text or visible(text, None) != text or bool(flags(text))


def _texts(frame: pd.DataFrame) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    yield from (name for name in frame.columns if isinstance(name, str))
    for i, dtype in enumerate(frame.dtypes):
        if dtype == "str":
            texts = pa.array(frame.iloc[:, i])
            yield from pc.unique(texts.filter(pc.match_substring_regex(texts, _SIEVE))).to_pylist()
