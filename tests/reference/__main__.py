"""Write the reference pages anew."""

from __future__ import annotations

from tests.reference import FOLDER, PAGES, made

for name in PAGES:
    (FOLDER / name).write_text(made(name), encoding="utf-8")
    print(f"wrote {name}")
