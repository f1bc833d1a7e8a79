"""Names that pretend to be others: hidden characters, mixed scripts, look-alike letters.

A session remembers those that services sent. ``pd.concat``, ``groupby`` and others drop what a table carries about
where it comes from; a table that pandas made of ours is recognised by the suspicious names in it. Ordinary names are
not remembered, so a table without a suspicious one is displayed by pandas as ever.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import visible

if TYPE_CHECKING:
    import pandas as pd

MAX_KEPT = 10_000
# Anything but plain letters, digits and marks, as a first sieve: millions of addresses do not pass it.
_SIEVE = r"[^ -~]|[$\\]"

# Scripts whose letters are taken for one another. Han, Kana or Hangul beside Latin is ordinary.
_ALIKE = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU")
# Letters of other scripts that look like a Latin one; compatibility forms (full-width, mathematical) fold by NFKC.
_LATIN_OF = str.maketrans(
    "АВЕЅІЈКМНОРСТУХЬавеѕіјкмнорстухԁԛԝһӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβεζηικνορτυχօսհ",
    "ABESIJKMHOPCTYXbabesijkmhopctyxdqwhlABEZHIKMNOPTYXabeznikvoptuxouh",
)


def flags(name: object) -> str:
    """Return what is suspicious about a name, or nothing.

    >>> flags("US\\u0414\\u0421")
    'mixed scripts: Cyrillic, Latin'
    >>> flags("\\u0405\\u041e\\u0405")
    "looks like 'SOS'"
    """
    if not isinstance(name, str) or name.isascii():
        return "hidden characters" if isinstance(name, str) and visible(name, None) != name else ""
    found = []
    if visible(name, None) != name:
        found.append("hidden characters")
    scripts = sorted({script for script in map(_script, name) if script})
    if len(scripts) > 1:
        found.append(f"mixed scripts: {', '.join(script.title() for script in scripts)}")
    folded = unicodedata.normalize("NFKC", name).translate(_LATIN_OF)
    if folded.isascii() and any(character.isalnum() for character in folded):
        found.append(f"looks like {visible(folded)!r}")
    return "; ".join(found)


def _script(character: str) -> str:
    if not character.isalpha():
        return ""
    script = unicodedata.name(character, "").partition(" ")[0]
    return script if script in _ALIKE else ""


class SuspiciousNames:
    """The suspicious names of a session, up to a bound."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __len__(self) -> int:
        return len(self._names)

    def learn(self, table: pd.DataFrame | pd.Series[Any]) -> None:
        """Remember the suspicious names among a table's strings, and among the names of its columns."""
        import pandas as pd
        import pyarrow as pa
        import pyarrow.compute as pc

        frame = table if isinstance(table, pd.DataFrame) else table.to_frame()
        names = list(frame.columns)
        for i, dtype in enumerate(frame.dtypes):
            if dtype == "str":
                texts = pa.array(frame.iloc[:, i])
                # In Arrow, and each text once: a result may have a million rows, nearly all of them plain addresses.
                names += pc.unique(texts.filter(pc.match_substring_regex(texts, _SIEVE))).to_pylist()
        for name in names:
            if len(self._names) < MAX_KEPT and isinstance(name, str) and is_suspicious(name):
                self._names.add(name)

    def contains_any(self, labels: Iterable[Any]) -> bool:
        """Return whether one of the values is a name that is remembered."""
        return any(isinstance(label, str) and label in self._names for label in labels)


def is_suspicious(text: str) -> bool:
    """Return whether a text hides something, pretends to be another, or would be displayed as maths."""
    return "$" in text or "\\" in text or visible(text, None) != text or bool(flags(text))
