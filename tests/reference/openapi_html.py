"""The operations of the service on one page of HTML, which it answers at ``/docs``."""

from __future__ import annotations

from html import escape

from nbext.core import wire
from tests.reference.openapi_page import document


def page() -> str:
    """Return the page; a service puts the path below which a proxy serves it in the place of ROOT."""
    contract = document()
    title = f"{contract['info']['title']} {contract['info']['version']}"
    rows = "\n".join(
        f"<dt><code>{method.upper()} {escape(path)}</code></dt><dd>{escape(operation['description'])}</dd>"
        for path, methods in contract["paths"].items()
        for method, operation in methods.items()
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><h1>{title}</h1>\n'
        f"<p>{escape(contract['info']['description'])} The whole contract is at <code>ROOT{wire.OPENAPI}</code>, the"
        f" segment language at <code>ROOT{wire.SCHEMA}</code>.</p>\n<dl>\n{rows}\n</dl></html>\n"
    )
