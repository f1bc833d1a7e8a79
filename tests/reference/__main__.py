"""Write the reference pages anew."""

from __future__ import annotations

from tests.reference import FOLDER, pages

for name, text in pages().items():
    (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"wrote {name}")
