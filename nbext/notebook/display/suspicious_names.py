"""Names that pretend to be others: hidden characters, mixed scripts, look-alike letters."""

from __future__ import annotations

import unicodedata

from nbext.core.untrusted_text import visible

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
