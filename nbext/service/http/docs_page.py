"""The contract as one page of HTML: no script, no font, nothing from elsewhere."""

from __future__ import annotations

import json
from html import escape
from typing import Any

# The page needs no key, and these name what the data holds; SegmentRequest tells the same without.
_OF_THE_DATA = ("ExecuteRequest", "ExplainRequest")
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24 }
code, pre { font: 14px/1.45 ui-monospace, monospace } pre { background: #f4f5f7; padding: .75rem; overflow-x: auto }
h2 { margin-top: 2.5rem; border-top: 1px solid #d8dce1; padding-top: 1rem }
td, th { text-align: left; padding: .2rem 1rem .2rem 0 }
td, th { vertical-align: top } details { margin: .5rem 0 }
@media (prefers-color-scheme: dark) {
  body { background: #16181c; color: #e4e6ea } pre { background: #23262c } h2 { border-color: #3a3f47 }
}
"""


def page(document: dict[str, Any]) -> str:
    """Return the page of an OpenAPI document."""
    operations = "".join(
        _operation(method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    title = f"{document['info']['title']} {document['info']['version']}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f"<h1>{escape(title)}</h1><p>Every request carries its key in the <code>x-api-key</code> header. Errors are "
        f"problem objects (RFC 9457). The whole contract is at <code>/openapi.json</code>.</p>{operations}"
        f"<h2>Shapes</h2>{_shapes(document['components']['schemas'])}"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    answers = "".join(
        f"<tr><td><code>{status}</code></td><td>{escape(answer['description'])}</td></tr>"
        for status, answer in operation["responses"].items()
    )
    return (
        f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation.get('description', ''))}</p>"
        f"{_parameters(operation)}{_body(operation)}<details><summary>Answers</summary><table>{answers}</table></details>"
    )


def _parameters(operation: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{each['in']}</td>"
        f"<td>{escape(each.get('description', ''))}</td></tr>"
        for each in operation.get("parameters", [])
    )
    return f"<table>{rows}</table>" if rows else ""


def _body(operation: dict[str, Any]) -> str:
    if "requestBody" not in operation:
        return ""
    content = operation["requestBody"]["content"]["application/json"]
    return _pre(content["examples"]["example"]["value"])


def _shapes(shapes: dict[str, Any]) -> str:
    return "".join(_shape(name, shape) for name, shape in shapes.items() if name not in _OF_THE_DATA)


def _shape(name: str, shape: dict[str, Any]) -> str:
    return f"<details><summary><code>{escape(name)}</code></summary>{_pre(shape)}</details>"


def _pre(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"
