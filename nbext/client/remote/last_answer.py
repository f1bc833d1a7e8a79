"""What the last answer looked like: its fields, how it was read, and the settings that would read it otherwise.

Of the answer itself a bounded outline is kept: names, types, counts, and one short value of each field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from nbext.client.decode import Reading
from nbext.client.remote import content
from nbext.client.remote.field_names import IDS, STATUSES, bare, path_to
from nbext.client.remote.profile import ForeignProfile, pasteable
from nbext.client.remote.tables import is_keyed
from nbext.core.strict_json import NotJson
from nbext.core.untrusted_text import quoted, visible
from nbext.errors import ProtocolError
from nbext.http.body import Answer
from nbext.http.errors import redacted
from nbext.settings import Secret

# An outline is for reading: of a list some items are looked at, and of deep or wide answers the beginning.
MOST_FIELDS, MOST_VALUES, MOST_ITEMS, MOST_DEPTH, LONGEST_VALUE = 150, 20_000, 50, 8, 60
_PLAIN_HEADERS = re.compile(
    r"date|server|via|vary|age|etag|connection|keep-alive|set-cookie|content-(type|length|encoding|language)|"
    r"transfer-encoding|cache-control|expires|last-modified|strict-transport-security|cf-.*|x-(xss|frame|powered).*|"
    r"x-content-type-options|access-control-.*|alt-svc|nel|report-to|p3p|.*security-policy",
    re.IGNORECASE,
)


@dataclass
class OutlineField:
    """One field: its path (JMESPath, or ``header:NAME``), the types of its values, how many, and one of them."""

    path: str
    kinds: dict[str, None] = field(default_factory=dict)
    size: int = 0
    value: str = ""

    @property
    def name(self) -> str:
        """The field's own name, without case and separators."""
        return bare(re.sub(r'\[\]|"', "", self.path).rpartition(".")[2].removeprefix("header:"))

    @property
    def is_list(self) -> bool:
        """Whether it holds items: a list, or an object whose names are data."""
        return bool({"list", "keyed object"} & self.kinds.keys())

    @property
    def kind(self) -> str:
        """The types, in words, with the number of items."""
        return " or ".join(self.kinds) + (f" of {self.size:,}" if self.is_list else "")


@dataclass
class LastAnswer:
    """An answer's outline; `text` shows it."""

    operation: str
    title: str
    fields: list[OutlineField] = field(default_factory=list)
    read_as: list[str] = field(default_factory=list)

    def text(self, *, values: bool = False) -> str:
        """Return the outline, how it was read and what would read it otherwise; with ``values``, one of each field."""
        width = min(60, max((len(one.path) for one in self.fields), default=0))
        lines = [
            f"{one.path:<{width}}  {one.kind}{f'  {one.value}' if values else ''}".rstrip()
            for one in self.fields
        ]
        if len(self.fields) == MOST_FIELDS:
            lines.append("... (the answer has more fields)")
        others = [f"  %nbext set {line}" for role in ROLES for line in self.lines(role)[:3]]
        return "\n".join(
            [
                self.title,
                *(visible(line, 200) for line in lines),
                "",
                "Read as:",
                *(f"  {line}" for line in self.read_as or ["nothing"]),
                *(["", "Lines that would read it otherwise:", *others] if others else []),
            ]
        )

    def lines(self, role: str) -> list[str]:
        """Return the lines of settings that would take fields of this answer for a role, the likeliest first."""
        ranked = [(_rank(role, one), one.path) for one in self.fields]
        # Only a job has an id that must be found at all costs.
        least = 2 if role == "id" and self.operation != "segment" else 1
        paths = [path for rank, path in sorted(ranked, key=lambda pair: -pair[0]) if rank >= least]
        return [pasteable(role, path, self.operation) for path in paths]

    def advice(self, roles: Sequence[str]) -> str:
        """Return the line of settings for each role that a field of this answer may have, as one sentence."""
        found = [(role, line) for role in roles for line in self.lines(role)[:1]]
        choices = "; or, ".join(f"if {_WORDS[role]}: `%nbext set {line}`" for role, line in found)
        return f"{choices[:1].upper()}{choices[1:]}." if choices else ""


_WORDS = {
    "rows": "these are its rows",
    "id": "this is its id",
    "url": "its rows are there",
    "poll": "its state is asked for there",
}


def outlined(
    answer: Answer,
    operation: str,
    reading: Reading | None,
    profile: ForeignProfile,
    key: Secret,
    *,
    failure: str = "",
) -> LastAnswer:
    """Return the outline of an answer, as it was read or as the ``failure`` says that it was not."""
    # What follows ? may be a signature that opens a file.
    url, kind = answer.url.split("?", 1)[0], visible(answer.content_type or "no content type", 60)
    found = LastAnswer(operation, "")
    document = None if reading is None else reading.document
    if reading is not None and reading.table is not None:
        names = reading.table.column_names
        row = reading.table.slice(0, 1).to_pylist() or [dict.fromkeys(names, "")]
        found.fields = [one for one in _fields(row, key) if one.path.startswith("[].")]
    else:
        if document is None:
            with suppress(ProtocolError, NotJson, RecursionError):
                document = content.of_document(answer).document
        found.fields = [] if document is None else _fields(document, key)
    size = f", {len(answer.body):,} bytes" if answer.body else ""
    if not found.fields and answer.body:
        # Of what could not be read only the beginning is here.
        size, value = "", _value(answer.body[:200].decode("utf-8", "replace"), key)
        found.fields = [OutlineField("(beginning)", {"text": None}, value=value)]
    found.title = (
        f"{visible(redacted(url, key), 120)}: {answer.status}, {kind}{size}, read as {operation}"
    )
    found.fields += _headers(answer.headers, key)
    found.read_as = [failure] if reading is None else list(_read_as(reading, profile, found.fields))
    # Names are a stranger's text, too.
    found.title, found.read_as = redacted(found.title, key), redacted(found.read_as, key)
    for one in found.fields:
        one.path = redacted(one.path, key)
    return found


def _fields(document: Any, key: Secret) -> list[OutlineField]:
    found: dict[str, OutlineField] = {}
    for path, value in islice(_inside("", document), MOST_VALUES):
        if path not in found and len(found) > MOST_FIELDS:
            continue
        one = found.setdefault(path, OutlineField(path or "@"))
        is_text = not isinstance(value, list | Mapping | None)
        kind = "keyed object" if is_keyed(value) else _KINDS.get(type(value), "number")
        one.kinds[kind] = None
        one.size = max(one.size, len(value) if one.is_list and not is_text else 0)
        one.value = one.value or (_value(value, key) if is_text else "")
    # The whole answer is a line of its own only where it is rows, or a single value.
    fields = [one for path, one in found.items() if path or "object" not in one.kinds]
    return fields[:MOST_FIELDS]


_KINDS: dict[type, str] = {
    str: "text",
    bool: "boolean",
    int: "integer",
    list: "list",
    dict: "object",
    type(None): "null",
}


def _inside(path: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the path of a value and of all in it, with what is there; an object's names may be data."""
    yield path, value
    items: list[tuple[str, Any]] = []
    if isinstance(value, list):
        items = [(f"{path}[]", item) for item in value[:MOST_ITEMS]]
    elif isinstance(value, Mapping):
        here = (f"{path}.*" if path else "*") if is_keyed(value) else None
        some = islice(value.items(), MOST_FIELDS)
        items = [(here or path_to(path, str(name)), item) for name, item in some]
    for where, item in items if depth < MOST_DEPTH else ():
        yield from _inside(where, item, depth + 1)


def _headers(headers: Mapping[str, str], key: Secret) -> list[OutlineField]:
    return [
        OutlineField(
            f"header:{visible(redacted(name, key), 60)}", {"text": None}, value=_value(value, key)
        )
        for name, value in list(headers.items())[:100]
        if not _PLAIN_HEADERS.fullmatch(name)
    ][:20]


def _value(value: object, key: Secret) -> str:
    # The key goes before anything is cut.
    return quoted(redacted(str(value)[:5000], key), LONGEST_VALUE)


def _read_as(
    reading: Reading, profile: ForeignProfile, fields: Sequence[OutlineField]
) -> Iterator[str]:
    """Yield a line for each thing that was found, with the setting that it is from."""

    def at(role: str) -> str:
        return f"  (remote.paths.{role} = {profile.paths[role]})" if role in profile.paths else ""

    if reading.rows is not None:
        paths = [one.path for one in fields if _rank("rows", one) and one.size == reading.rows]
        where = at("rows") or (f"  ({paths[0]})" if len(paths) == 1 else "")
        yield f"rows    {reading.rows:,}{where}"
    if reading.id is not None:
        yield f"id      {quoted(reading.id)}{at('id')}"
    if reading.word is not None or reading.state is not None:
        state = reading.state.value if reading.state else "not known"
        word = "" if reading.word is None else f"{quoted(reading.word)}, which is "
        yield f"status  {word}{state}{at('status')}"
    if reading.url is not None:
        yield f"url     where the rows are{at('url')}"
    for name, number in reading.stated.items():
        yield f"{name:<7} {number:,}{at('total')}"


# What the names of fields say: those of the role itself, and those that may well be it, in a few languages.
_NAMES = {
    "id": (
        IDS,
        r"(id|uuid|key|handle|ref|reference|ticket|token|number|nummer|nr|no|job|run|kennung|code)$",
    ),
    "status": (STATUSES, r"stat|state|phase|progress|zustand|estado|etat"),
    "next": ((), r"next|cursor|continu|marker|after|more|bookmark"),
    "total": ((), r"total|count|size|anzahl"),
}
_NO_ID = rf"{_NAMES['next'][1]}|{_NAMES['total'][1]}|percent|progress|date|time|stamp|seconds|version|at$|ms$"
ROLES = ("rows", *_NAMES, "url", "poll")


def _rank(role: str, one: OutlineField) -> int:
    """Return how likely a field is what a role asks for; 0 where it cannot be."""
    if role == "rows":
        return int(one.is_list and "[]" not in one.path)
    is_single = {"text", "integer", "number", "boolean"} & one.kinds.keys()
    is_odd = role == "id" and ("boolean" in one.kinds or re.search(_NO_ID, one.name))
    if not is_single or is_odd or re.search(r"\[\]|\*", one.path):
        return 0
    if role in ("url", "poll"):
        # Names that speak of a state are likelier where it is asked for, and others where the rows are.
        is_address = re.match(r"'(https?:/)?/", one.value) is not None
        of_state = re.search("stat|poll|monitor|operation", one.name) is not None
        return is_address * (1 + (of_state is (role == "poll")))
    exact, pattern = _NAMES[role]
    if one.name in exact or re.search(pattern, one.name):
        return 3 if one.name in exact else 2
    # In a language that nobody here knows, an id still looks like one: "T-9", 4711, "operations/7".
    looks_like_id = re.fullmatch(r"'?(?=.*\d)[\w.:-][\w.:/-]{0,80}'?", one.value)
    return int(role == "id" and looks_like_id is not None)
