"""Write the reference pages anew."""

from __future__ import annotations

from tests.reference import FILLED, FOLDER, PAGES, made

for name in (*PAGES, *FILLED):
    (FOLDER / name).write_text(made(name), encoding="utf-8")
    print(f"wrote {name}")
