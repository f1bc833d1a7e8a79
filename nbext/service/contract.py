"""The contract of the service, as OpenAPI 3.1 and as a page: ``python -m tests.reference`` makes both of the routes.

It is not made by FastAPI when somebody asks, so that each change of it can be read.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from starlette.requests import Request

from nbext.core.untrusted_text import visible
from nbext.errors import ValidationError

_FILE = Path(__file__).parents[1] / "reference" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(_FILE.read_text("utf-8"))
# Its operations on one page: no script, no style, nothing from elsewhere. A service has its own path for ROOT.
PAGE = _FILE.with_suffix(".html").read_text("utf-8")


def check_parameters(request: Request) -> None:
    """Refuse what the operation does not take, or is sent twice: a caller would take other rows for those it meant."""
    if sent := Counter(name for name, _ in request.query_params.multi_items()):
        operation = DOCUMENT["paths"][request.scope["route"].path][request.method.lower()]
        names = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
        if wrong := [name for name in sent if name not in names or sent[name] > 1]:
            detail = f"There is no such parameter, or it is sent twice. Allowed: {', '.join(names) or 'none'}."
            raise ValidationError.of(visible(wrong[0], 80), "parameter", detail)
