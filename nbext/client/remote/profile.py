"""How a stranger's answers are read, as far as the settings, or a profile that comes with nbext, say it.

    [tool.nbext.remote]
    profile = "dune"                  # one of profiles.toml; without it, the one of the service's host

    [tool.nbext.remote.paths]         # for every operation ...
    id = "job.handle"
    rows = "payload[0].owners"

    [tool.nbext.remote.search.paths]  # ... and for one
    rows = "hits"

A path is JMESPath into the answer's body, or ``header:NAME``. Of the last answer an outline is remembered: names,
types, counts, one short value of each field, how it was read, and the lines that would read it otherwise.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from nbext.client.decode import Reading, State
from nbext.client.remote.field_names import (
    MOST_FIELDS,
    MOST_VALUES,
    Place,
    bare,
    first_in,
    inside,
    is_keyed,
    last_name,
    like,
    state_of,
    vocabulary,
)
from nbext.core.untrusted_text import quoted, visible
from nbext.errors import AmbiguousAnswer, ConfigError, ProtocolError, did_you_mean
from nbext.http.body import Answer, Headers
from nbext.http.errors import one_line, redacted
from nbext.settings import Secret

# Settings, by the name of each or of the table that it is in.
Lines = Mapping[str, Any]
OPERATIONS = ("segment", "export", "search", "token", "nft", "signup")
STATES = {"done": State.COMPLETED, "failed": State.FAILED, "running": State.RUNNING}
# What may be set: of each name what is below it, or the values that it may have; [] is any value, and * any name.
TABLES = vocabulary()["settings"]
_HEADER = "header:"


class ForeignProfile:
    """How the answers of one operation are read. What it leaves out, the decoder finds by itself.

    Of ``remote``, the table of this operation comes first, then what is said for all of them, then the profile that
    comes with nbext, in the same order. A mistake is a ConfigError.

    Attributes
    ----------
    paths
        The paths that are stated, by name, as they are written.
    users
        The names of those that are the user's, and lead somewhere: not of a profile that comes with nbext.
    states
        The state of each status word that is stated, in lower case; `state_of` knows the others.
    style, parameter
        What paths.next leads to, and the parameter of the query that takes it; None where nothing is said.
    columns
        Our name of a column, by the service's; a dot leads into an object.
    types, types_by_theirs
        The type of a column, by our name; and by the service's, too: what reads a CSV needs it before it is renamed.
    idempotent
        Whether a segment may be sent again under its Idempotency-Key.
    known
        Fields that are named for this operation: whatever they say, it is of no rows that are missing.
    """

    def __init__(self, remote: Lines, operation: str = "segment") -> None:
        idempotent = {"idempotent": ("true", "false")}
        allowed = {name: {**TABLES, "known": ()} for name in OPERATIONS}
        # A sign-up is never sent twice, whatever the settings say.
        allowed["segment"] |= idempotent
        names = {"profile": ("none", *builtins()), **allowed}
        _check(remote, TABLES | idempotent | names, "remote")
        self.operation, self._remote = operation, _flat(remote)
        self.known, self.states = set[str](), dict[str, State]()
        lines = dict[str, Any]()
        for given in (_flat(builtins().get(remote.get("profile", ""), {})), self._remote):
            users = set[str]()
            for above in ("", f"{operation}."):
                here = _below(above, given)
                lines |= here
                users |= _below("paths.", here).keys()
                for name, state in STATES.items():
                    words = _listed(here.get(f"states.{name}", []))
                    self.states |= dict.fromkeys(map(str.casefold, words), state)
                self.known |= set(map(bare, _listed(here.get("known", []))))
        self.paths = {name: str(path) for name, path in _below("paths.", lines).items()}
        self.users = {name for name in users if not self.is_absent(name)}
        self.columns, self.types = _below("columns.", lines), _below("types.", lines)
        self.types_by_theirs = self.types | {
            name: self.types[ours] for name, ours in self.columns.items() if ours in self.types
        }
        self.style, self.parameter = lines.get("paging.style"), lines.get("paging.parameter")
        # `%nbext set` knows only texts.
        self.idempotent = str(lines.get("idempotent")).lower() == "true"

    def adding(self, place: str, words: Iterable[str]) -> str:
        """Return the line of settings that adds words to those that are there: a line takes the place of another."""
        given = _listed(self._remote.get(place, []))
        return _line(place, ", ".join(dict.fromkeys([*given, *words])))

    def knowing(self, fields: Iterable[str]) -> str:
        """Return the line of settings that says of fields, by their paths, that they speak of no rows."""
        names = [one_line(path.rpartition(".")[2], length=60).replace('"', "") for path in fields]
        return f"`%nbext set {self.adding(f'{self.operation}.known', names)}`"

    def is_absent(self, name: str) -> bool:
        """Say whether the settings say that no answer has such a thing: paths.url = "null"."""
        return self.paths.get(name) in ("null", "`null`")

    def silences(self, path: str) -> bool:
        """Say whether the settings say, for this operation, that a field speaks of no rows that are missing."""
        return not self.known.isdisjoint((bare(path), last_name(path)))

    def reads(self, path: str, value: Any) -> bool:
        """Say whether the settings read a field beside the rows."""
        name = path.rpartition(".")[2].strip('"')
        is_word = str(value).casefold() in self.states
        return is_word or name in re.findall(r"\w+", " ".join(self.paths.values()))

    def find(self, name: str, document: Any, headers: Headers | None = None) -> Any:
        """Return what the path of that name leads to; None without such a path, or where it leads to nothing."""
        path = self.paths.get(name, "")
        if path.startswith(_HEADER):
            return (headers or {}).get(path.removeprefix(_HEADER)) or None
        # A list of one around a table or a job is taken off before it is read.
        for one in dict.fromkeys((path, re.sub(r"(?<=\w)\[0\](?=\.)", "", path))) if path else ():
            found = _used(f"remote.paths.{name}", one, lambda parsed: parsed.search(document))
            # All of an answer is its id or its status where it is a text alone.
            is_all = name != "rows" and found is document and isinstance(found, list | Mapping)
            if found is not None and not is_all:
                return found
        return None

    def state_of(self, word: str) -> State | None:
        """Return the state of a status word: as it is stated, else as the word is known; None for any other."""
        return self.states.get(word.casefold()) or state_of(word)

    def renamed(self, record: Place) -> dict[str, Any]:
        """Return a record under our names for its columns."""
        found = {self.columns.get(name, name): value for name, value in record.items()}
        twice = len(found) < len(record)
        for path, ours in self.columns.items():
            first, *rest = path.split(".")
            value = record.get(first) if rest and path not in record else None
            for name in rest:
                value = value.get(name) if isinstance(value, Mapping) else None
            if value is not None:
                # {"address": {"hash": ...}} may become its own address.
                twice = twice or (ours in record and ours not in self.columns and ours != first)
                found[ours] = value
        if twice:
            pairs = ", ".join(f"{theirs} = {quoted(ours)}" for theirs, ours in self.columns.items())
            raise ProtocolError(f"remote.columns ({pairs}) gives two columns the same name.")
        return found


@cache
def builtins() -> dict[str, dict[str, Any]]:
    """Return the profiles that come with nbext, by name."""
    return tomllib.loads((Path(__file__).parent / "profiles.toml").read_text("utf-8"))


def with_profile(remote: Lines, host: str) -> dict[str, Any]:
    """Return the settings, checked, with the profile of the service's host where they name none."""
    for name, profile in builtins().items():
        if host in profile.get("hosts", ()):
            return {"profile": name, **remote}
    return dict(remote)


def _check(given: Lines, allowed: Lines, above: str) -> None:
    """Refuse a setting that nobody knows, or a value that it cannot have."""
    for name, value in given.items():
        place, others = f"{above}.{name}", allowed.get("*")
        if name not in allowed and others is None:
            line = first_in(_flat({name: value}))
            raise _unknown(f"{above}.{line} is not a setting.", name, allowed)
        may = allowed.get(name, others)
        if isinstance(value, Mapping):
            # `%nbext set remote.columns.owner.id address` makes two tables.
            inside = may if isinstance(may, Mapping) else {} if others is None else allowed
            _check(value, inside, place)
        elif isinstance(may, Mapping):
            example = vocabulary()["examples"].get(name, 'paths.rows = "data.items"')
            raise ConfigError(f"{place} is a table, such as {place}.{example}.")
        elif may and str(value).lower() not in may:
            raise _unknown(f"{place}: {quoted(value, 40)} is not allowed.", str(value), may)
        elif above.endswith(".paths") and not str(value).startswith(_HEADER):
            _used(place, str(value), lambda _: None)


def _used(place: str, path: str, use: Callable[[Any], Any]) -> Any:
    """Return what is made of a path; a ConfigError where it is none, or does not fit the answer."""
    from jmespath import compile as parsed
    from jmespath.exceptions import JMESPathError

    try:
        return use(parsed(path))
    except JMESPathError as error:
        # The first line says what; the others draw it for a terminal.
        raise ConfigError(f"{place}: {str(error).splitlines()[0].rstrip(':')}.") from None


def _flat(table: Lines, above: str = "") -> dict[str, Any]:
    """Return a table's values by their dotted names: `%nbext set remote.columns.owner.id address` makes two tables."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        found |= (
            _flat(value, f"{above}{name}.")
            if value and isinstance(value, Mapping)
            else {above + name: value}
        )
    return found


def _below(above: str, lines: Lines) -> dict[str, Any]:
    """Return the values whose names begin so, by the rest of their names."""
    return {name[len(above) :]: lines[name] for name in lines if name.startswith(above)}


def _listed(given: Any) -> list[str]:
    """Return words: a list, or a text of several with commas between; a service may use numbers or booleans."""
    words = given if isinstance(given, list) else str(given).split(",")
    return [str(word).strip() for word in words]


def _unknown(words: str, got: str, allowed: Iterable[str]) -> ConfigError:
    named = ", ".join(allowed) or "nothing"
    return ConfigError(f"{words}{did_you_mean(got, allowed)} Allowed: {named}.")


def _line(place: str, value: str) -> str:
    """Return the line of settings that says so: of one reading for the operation whose answer it was."""
    return f"remote.{place} = {json.dumps(value, ensure_ascii=False)}"


def ambiguous(name: str, candidates: list[str], operation: str = "export") -> AmbiguousAnswer:
    """Return the error that asks which of several fields is the answer's ``name``."""
    line = _line(f"{operation}.paths.{name}", candidates[0])
    # Names of fields are a stranger's text too.
    named = ", ".join(one_line(path, length=80) for path in candidates[:6])
    many = f"{len(candidates)} candidates" if len(candidates) > 1 else "one candidate"
    return AmbiguousAnswer(
        f"The answer has {many} for its {name}: {named}. "
        f"Choose one with `%nbext set {line}`, or with that line under [tool.nbext] in pyproject.toml.",
        candidates=candidates,
        setting=line,
    )


@dataclass(frozen=True)
class OutlineField:
    """One field: its path (JMESPath, or ``header:NAME``), its values' types and how many items, and one value."""

    path: str
    kind: str
    value: str = ""


@dataclass(frozen=True)
class LastAnswer:
    """An answer's outline; `text` shows it."""

    operation: str
    title: str
    fields: list[OutlineField]
    read_as: list[str]

    def text(self, *, values: bool = False) -> str:
        """Return the outline, how it was read and what would read it otherwise; with ``values``, one of each field."""
        width = min(60, max((len(one.path) for one in self.fields), default=0))
        lines = [self.title]
        for one in self.fields:
            value = f"  {one.value}" if values else ""
            lines.append(visible(f"{one.path:<{width}}  {one.kind}{value}".rstrip(), 200))
        if len(self.fields) >= MOST_FIELDS:
            lines.append("... (the answer has more fields)")
        roles = vocabulary()["roles"]
        others = [f"  %nbext set {line}" for role in roles for line in self.lines(role)[:3]]
        lines += ["", "Read as:", *(f"  {line}" for line in self.read_as or ["nothing"])]
        lines += ["", "Lines that would read it otherwise:", *others] if others else []
        return "\n".join(lines)

    def lines(self, role: str) -> list[str]:
        """Return the lines of settings that would take fields of this answer for a role, the likeliest first."""
        # Only a job has an id that must be found at all costs.
        least = 2 if role == "id" and self.operation != "segment" else 1
        likely = [one for one in self.fields if _rank(role, one) >= least]
        likely.sort(key=lambda one: -_rank(role, one))
        return [_line(f"{self.operation}.paths.{role}", one.path) for one in likely]

    def advice(self, roles: Sequence[str]) -> str:
        """Return the line of settings for each role that a field of this answer may have, as one sentence."""
        found = [(role, line) for role in roles for line in self.lines(role)[:1]]
        means = vocabulary()["means"]
        choices = "; or, ".join(f"if {means[role]}: `%nbext set {line}`" for role, line in found)
        return f"{choices[:1].upper()}{choices[1:]}." if choices else ""


def outlined(
    answer: Answer, reading: Reading, profile: ForeignProfile, key: Secret, failure: str
) -> LastAnswer:
    """Return the outline of an answer, as it was read, or as the ``failure`` says that it was not."""
    document, at = reading.document, ""
    if reading.table is not None:
        # Of its rows the first one speaks for all.
        rows = reading.table.slice(0, 1).to_pylist()
        document, at = rows[0] if rows else dict.fromkeys(reading.table.column_names, ""), "[]"
    # What follows ? may be a signature that opens a file.
    url, kind = answer.url.split("?", 1)[0], visible(answer.content_type or "no content type", 60)
    size = f", {len(answer.body):,} bytes" if answer.body else ""
    fields = list(_fields(() if document is None else inside(at, document), key))
    if not fields and answer.body:
        # Of what could not be read only the beginning is here.
        beginning = answer.body[:200].decode("utf-8", "replace")
        size, fields = "", [OutlineField("(beginning)", "text", _value(beginning, key))]
    headers = [
        (f"header:{visible(name, 60)}", value)
        for name, value in answer.headers.items()
        if not like("plain_headers_like").fullmatch(name.lower())
    ]
    fields += _fields(headers[:20], key)
    read_as = [failure] if failure else list(_read_as(reading, profile, fields))
    # Names are a stranger's text, too.
    title = f"{visible(redacted(url, key), 120)}: {answer.status}, {kind}{size}, read as {profile.operation}"
    return LastAnswer(profile.operation, redacted(title, key), fields, redacted(read_as, key))


def _fields(found: Iterable[tuple[str, Any]], key: Secret) -> Iterator[OutlineField]:
    """Yield a field for each path, with what is known of all its values."""
    seen = dict[str, list[Any]]()
    for path, value in islice(found, MOST_VALUES):
        if path in seen or len(seen) <= MOST_FIELDS:
            seen.setdefault(path, []).append(value)
    for path, values in seen.items():
        kinds = dict.fromkeys(
            "keyed object"
            if is_keyed(one)
            else vocabulary()["kinds"].get(type(one).__name__, "number")
            for one in values
        )
        sizes = [len(one) for one in values if isinstance(one, list) or is_keyed(one)]
        texts = [one for one in values if not isinstance(one, list | Mapping | None)]
        of = f" of {max(sizes):,}" if sizes else ""
        # The whole answer is a line of its own only where it is rows, or a single value.
        if path or "object" not in kinds:
            named, value = redacted(path or "@", key), _value(texts[0], key) if texts else ""
            yield OutlineField(named, " or ".join(kinds) + of, value)


def _value(value: object, key: Secret) -> str:
    # The key goes before anything is cut.
    return quoted(redacted(str(value)[:5000], key), 60)


def _read_as(
    reading: Reading, profile: ForeignProfile, fields: Sequence[OutlineField]
) -> Iterator[str]:
    """Yield a line for each thing that was found, with the setting that it is from."""

    def at(role: str) -> str:
        return f"  (remote.paths.{role} = {profile.paths[role]})" if role in profile.paths else ""

    if reading.rows is not None:
        of = f" of {reading.rows:,}"
        paths = [one.path for one in fields if _rank("rows", one) and one.kind.endswith(of)]
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


def _rank(role: str, one: OutlineField) -> int:
    """Return how likely a field is what a role asks for; 0 where it cannot be."""
    name = last_name(one.path).removeprefix("header")
    line = f"{one.path} {name} = {one.value} {one.kind}"
    ranks = vocabulary()["roles"][role]
    return first_in((rank for rank, pattern in ranks if re.fullmatch(pattern, line)), 0)
