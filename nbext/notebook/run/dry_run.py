"""Queries that are shown instead of run: the exact request, and what the engine would do."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import visible
from nbext.errors import NbextError, UsageError
from nbext.notebook.cell.request import Query

if TYPE_CHECKING:
    from nbext.notebook.session import Session

# Columns of a notebook's text output before its lines break.
WIDTH = 100
_JSON_HEADER = "Content-Type: application/json"


def dry_run(session: Session, query: Query) -> None:
    """Print the request as it would be sent, what the service says of it, and a curl line; the key is in neither.

    Raises
    ------
    InvalidSegment
        The service is ours, and would not take it.
    """
    client = session.client
    request = client.request_for(query.filters, query.operator, query.file_type, query.limit)
    # A remote has no operation that checks without running.
    checked = "Not checked: this service's grammar is not known here; it takes the filters as they are."
    if client.is_ours:
        checked = f"Allowed. In words: {visible(_explained(session, query).get('words'), None)}"
    session.say(
        f"{request['method']} {visible(request['url'])}\n{_JSON_HEADER}\nx-api-key: (not shown)\n\n"
        f"{_lines(compact(request['body']))}\n\n{checked}\n\n{_curl(request)}"
    )


def explain(session: Session, query: Query) -> None:
    """Print a segment in words, the SQL that it becomes, and the engine's plan.

    Raises
    ------
    UsageError
        The service is not ours: it cannot tell.
    """
    if not session.client.is_ours:
        raise UsageError("--explain: only the embedded service (or another `nbext serve`) can explain a segment.")
    told = _explained(session, query)
    session.say(f"{visible(told.get('words'), None)}\n")
    for part, title in (("sql", "SQL"), ("plan", "Plan")):
        session.say(f"{title}\n{_lines(told.get(part))}\n")


def _explained(session: Session, query: Query) -> Mapping[str, Any]:
    client = session.client
    located: NbextError
    try:
        return client.explain(query.filters, query.operator, query.limit)
    except NbextError as error:
        located = query.located(error)
    raise located


def _lines(value: Any) -> str:
    # SQL and plans are the service's text: what hides in them is shown too.
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return "\n".join(visible(line, None) for line in text.splitlines())


def compact(value: Any, name: str | None = None, indent: str = "") -> str:
    """Return JSON, after its name where it has one, in which what fits on a line stands on one."""
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


def _curl(request: Mapping[str, Any]) -> str:
    """Return a command for a terminal; the key stays in the variable that holds it there."""
    body = shlex.quote(json.dumps(request["body"], default=str))
    return (
        f"curl -X {request['method']} {shlex.quote(request['url'])} -H '{_JSON_HEADER}' "
        f'-H "x-api-key: $NBEXT_API_KEY" -d {body}'
    )
