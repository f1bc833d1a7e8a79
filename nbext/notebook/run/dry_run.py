"""Queries that are shown instead of run: the exact request, and what the engine would do."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import visible
from nbext.errors import UsageError, ValidationError
from nbext.notebook.cell.request import Query

if TYPE_CHECKING:
    from nbext.client import Client

# Columns of a notebook's text output before its lines break.
WIDTH = 100
_JSON_HEADER = "Content-Type: application/json"


def dry_run(client: Client, query: Query) -> None:
    """Print the request as it would be sent, what the service says of it, and a curl line; the key is in neither.

    Raises
    ------
    InvalidSegment
        The service is ours, and would refuse the request.
    """
    request = client.request_for(query.filters, query.operator, query.file_type, query.limit)
    # Another service has no operation that checks a segment without running it.
    checked = "Not checked: nbext does not know this service's filters and sends them unchanged."
    if client.is_ours:
        checked = f"Valid. In words: {visible(_explanation(client, query).get('words'), None)}"
    body = shlex.quote(json.dumps(request["body"], default=str))
    print(
        f"{request['method']} {visible(request['url'])}\n{_JSON_HEADER}\nx-api-key: (not shown)\n\n"
        f"{_lines(compact(request['body']))}\n\n{checked}\n\n"
        # The key stays in the variable that the user's terminal has it in.
        f"curl -X {request['method']} {shlex.quote(request['url'])} -H '{_JSON_HEADER}' "
        f'-H "x-api-key: $NBEXT_API_KEY" -d {body}'
    )


def explain(client: Client, query: Query) -> None:
    """Print a segment in words, its SQL, and the engine's plan.

    Raises
    ------
    UsageError
        The service is not ours: it cannot explain a segment.
    """
    if not client.is_ours:
        raise UsageError("--explain: only the embedded service (or another `nbext serve`) can explain a segment.")
    explanation = _explanation(client, query)
    print(f"{visible(explanation.get('words'), None)}\n")
    for part, title in (("sql", "SQL"), ("plan", "Plan")):
        print(f"{title}\n{_lines(explanation.get(part))}\n")


def _explanation(client: Client, query: Query) -> Mapping[str, Any]:
    try:
        return client.explain(query.filters, query.operator, query.limit)
    except ValidationError as error:
        query.locate(error)
        raise


def _lines(value: Any) -> str:
    # SQL and plans are the service's text: hidden characters in them are made visible too.
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return "\n".join(visible(line, None) for line in text.splitlines())


def compact(value: Any, name: str | None = None, indent: str = "") -> str:
    """Return JSON in which what fits on a line is on one line; after its name, where it has one."""
    start = f"{indent}{json.dumps(name, ensure_ascii=False)}: " if name is not None else indent
    line = start + json.dumps(value, default=str, ensure_ascii=False)
    if len(line) <= WIDTH or not value or not isinstance(value, dict | list):
        return line
    deeper = indent + "  "
    if isinstance(value, list):
        items, (opening, closing) = [compact(item, None, deeper) for item in value], "[]"
    else:
        items, (opening, closing) = [compact(item, key, deeper) for key, item in value.items()], "{}"
    return f"{start}{opening}\n" + ",\n".join(items) + f"\n{indent}{closing}"
