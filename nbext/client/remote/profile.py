"""How a stranger's answers are read, as far as the settings, or a profile that comes with nbext, say it.

    [tool.nbext.remote]
    profile = "dune"                  # one of profiles.toml; without it, the one of the service's host

    [tool.nbext.remote.paths]         # for every operation ...
    id = "job.handle"
    rows = "payload[0].owners"

    [tool.nbext.remote.search.paths]  # ... and for one
    rows = "hits"

A path is JMESPath into the answer's body, or ``header:NAME``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from nbext.client.decode import State
from nbext.client.remote.field_names import bare, state_of
from nbext.core.untrusted_text import quoted
from nbext.errors import AmbiguousAnswer, ConfigError, ProtocolError, did_you_mean
from nbext.http.errors import one_line

OPERATIONS = ("segment", "export", "search", "token", "nft", "signup")
PATHS = ("rows", "id", "status", "next", "error", "total", "url", "poll")
STATES = {"done": State.COMPLETED, "failed": State.FAILED, "running": State.RUNNING}
PAGING = ("style", "parameter")
# What paths.next holds is a value for the query's parameter; or there is no such thing, and pages are counted.
STYLES = ("cursor", "page", "offset")
TYPES = ("string", "integer", "uint256", "number", "boolean", "object")
_TABLES: Final[dict[str, tuple[str, ...]]] = {
    "paths": PATHS,
    "states": tuple(STATES),
    "paging": PAGING,
    "columns": (),
    "types": (),
}
_HEADER = "header:"
_NOWHERE = ("null", "`null`")
_EXAMPLES = {
    "states": 'states.done = "FINI"',
    "paging": 'paging.style = "page"',
    "columns": 'columns.ticker = "symbol"',
    "types": 'types.n = "uint256"',
}


class ForeignProfile:
    """How the answers of one operation are read. What it leaves out, the decoder finds by itself.

    Of ``remote``, the table of this operation comes first, then what is said for all of them, then the profile that
    comes with nbext, in the same order. A mistake is a ConfigError.

    Attributes
    ----------
    paths
        The paths that are stated, by name, as they are written.
    own, users
        The names of those that are stated for this operation alone, and of those that are the user's, and not of a
        profile that comes with nbext.
    states
        The state of each status word that is stated, in lower case; `state_of` knows the others.
    style, parameter
        What paths.next leads to (`STYLES`), and the parameter of the query that takes it; None where nothing is said.
    columns
        Our name of a column, by the service's; a dot leads into an object.
    types
        The type of a column, by our name.
    idempotent
        Whether a segment may be sent again under its Idempotency-Key.
    known
        Fields that are named for this operation: whatever they say, it is of no rows that are missing.
    """

    def __init__(self, remote: Mapping[str, Any], operation: str = "segment") -> None:
        _check(remote)
        builtin = builtins().get(remote.get("profile", ""), {})
        self.operation, self._remote = operation, remote
        self.own, self.users, self.known = set[str](), set[str](), set[str]()
        self.states: dict[str, State] = {}
        merged = {name: dict[str, Any]() for name in _TABLES}
        for table, layer in (
            (builtin, builtin),
            (builtin, builtin.get(operation, {})),
            (remote, remote),
            (remote, remote.get(operation, {})),
        ):
            for name in _TABLES:
                merged[name] |= _flat(layer.get(name, {}))
            stated = layer.get("paths", {}).keys()
            self.own = self.own - stated if layer is table else self.own | stated
            self.users |= stated if table is remote else set()
            for name, words in layer.get("states", {}).items():
                self.states |= dict.fromkeys(_words(words), STATES[name])
            self.known |= {bare(word) for word in _words(layer.get("known", []))}
        self.paths = {name: str(path) for name, path in merged["paths"].items()}
        self.columns, self.types, paging = merged["columns"], merged["types"], merged["paging"]
        self.style, self.parameter = paging.get("style"), paging.get("parameter")
        idempotent = remote.get(operation, {}).get("idempotent", remote.get("idempotent"))
        # `%nbext set` knows only texts.
        self.idempotent = str(idempotent).lower() == "true"

    def adding(self, place: str, words: Iterable[str]) -> str:
        """Return the line of settings that adds words to those that are there: a line takes the place of another."""
        value: Any = self._remote
        for name in place.split("."):
            value = value.get(name, []) if isinstance(value, Mapping) else []
        every = ", ".join(dict.fromkeys([*_listed(value), *words]))
        return f"remote.{place} = {json.dumps(every, ensure_ascii=False)}"

    def is_absent(self, name: str) -> bool:
        """Say whether the settings say that no answer has such a thing: paths.url = "null"."""
        return self.paths.get(name) in _NOWHERE

    def silences(self, path: str) -> bool:
        """Say whether the settings say, for this operation, that a field speaks of no rows that are missing."""
        return bool(self.known) and bool({bare(path), bare(path.rpartition(".")[2])} & self.known)

    def reads(self, path: str, value: Any) -> bool:
        """Say whether the settings read a field beside the rows."""
        name = path.rpartition(".")[2].strip('"')
        is_word = isinstance(value, str) and value.casefold() in self.states
        return is_word or any(name in re.findall(r"\w+", text) for text in self.paths.values())

    def find(self, name: str, document: Any, headers: Mapping[str, str] | None = None) -> Any:
        """Return what the path of that name leads to; None without such a path, or where it leads to nothing."""
        path = self.paths.get(name, "")
        if path.startswith(_HEADER):
            return (headers or {}).get(path.removeprefix(_HEADER)) or None
        return _searched(f"remote.paths.{name}", path, document) if path else None

    @property
    def types_by_theirs(self) -> dict[str, str]:
        """The types of columns by the service's names: what reads a CSV needs them before they are renamed."""
        return self.types | {
            name: self.types[ours] for name, ours in self.columns.items() if ours in self.types
        }

    def state_of(self, word: str) -> State | None:
        """Return the state of a status word: as it is stated, else as the word is known; None for any other."""
        return self.states.get(word.casefold()) or state_of(word)

    def renamed(self, record: Mapping[str, Any]) -> dict[str, Any]:
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


def with_profile(remote: Mapping[str, Any], host: str) -> dict[str, Any]:
    """Return the settings, checked, with the profile of the service's host where they name none."""
    known = next(
        (name for name, profile in builtins().items() if host in profile.get("hosts", ())), None
    )
    return {**({"profile": known} if known else {}), **remote}


def _check(remote: Mapping[str, Any]) -> None:
    """Refuse a setting that nobody knows, or a value that it cannot have."""
    for line, value in _flat(remote).items():
        first, _, rest = line.partition(".")
        operation = first if first in OPERATIONS else ""
        table, _, name = (rest if operation else line).partition(".")
        place = f"remote.{line}"
        # A sign-up is never sent twice, whatever the settings say.
        others: tuple[str, ...] = ("known",) if operation else ()
        others += ("idempotent",) if operation in ("", "segment") else ()
        tables = (*_TABLES, *others, *(() if operation else ("profile", *OPERATIONS)))
        if table and (table not in tables or (name and table not in _TABLES)):
            raise _unknown(f"{place} is not a setting.", table, tables)
        if not name and table not in ("profile", *others) and value != {}:
            example = _EXAMPLES.get(table, 'paths.rows = "data.items"')
            start = f"remote.{operation}." if operation else "remote."
            raise ConfigError(f"{place} is a table, such as {start}{example}.")
        if name and name not in (_TABLES[table] or (name,)):
            raise _unknown(f"{place} is not a setting.", name, _TABLES[table])
        if table == "paths" and name:
            _check_path(place, str(value))
        allowed = {
            "style": STYLES,
            "types": TYPES,
            "idempotent": ("true", "false"),
            "profile": ("none", *builtins()),
        }.get(name if table == "paging" else table)
        if allowed and value != {} and str(value).lower() not in allowed:
            raise _unknown(f"{place}: {quoted(value, 40)} is not allowed.", str(value), allowed)


def _check_path(place: str, path: str) -> None:
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        jmespath.compile("@" if path.startswith(_HEADER) else path)
    except JMESPathError as error:
        # The first line says what; the others draw it for a terminal.
        raise ConfigError(f"{place}: {str(error).splitlines()[0].rstrip(':')}.") from None


def _searched(place: str, path: str, document: Any) -> Any:
    from jmespath import search
    from jmespath.exceptions import JMESPathError

    try:
        return search(path, document)
    except JMESPathError as error:
        raise ConfigError(f"{place} cannot be used on this answer: {error}") from None


def _flat(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return a table's values by their dotted names: `%nbext set remote.columns.owner.id address` makes two tables."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        found |= (
            _flat(value, f"{above}{name}.")
            if value and isinstance(value, Mapping)
            else {above + name: value}
        )
    return found


def _words(given: Any) -> list[str]:
    return [word.casefold() for word in _listed(given)]


def _listed(given: Any) -> list[str]:
    """Return words: a list, or a text of several with commas between; a service may use numbers or booleans."""
    words = given if isinstance(given, list) else str(given).split(",")
    return [str(word).strip() for word in words]


def _unknown(words: str, got: str, allowed: tuple[str, ...]) -> ConfigError:
    return ConfigError(f"{words}{did_you_mean(got, allowed)} Allowed: {', '.join(allowed)}.")


def pasteable(name: str, path: str, operation: str = "export") -> str:
    """Return the line of settings that chooses one reading, for the operation whose answer it was."""
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'remote.{operation}.paths.{name} = "{quoted}"'


def ambiguous(name: str, candidates: list[str], operation: str = "export") -> AmbiguousAnswer:
    """Return the error that asks which of several fields is the answer's ``name``."""
    line = pasteable(name, candidates[0], operation)
    # Names of fields are a stranger's text too.
    named = ", ".join(one_line(path, length=80) for path in candidates[:6])
    many = f"{len(candidates)} candidates" if len(candidates) > 1 else "one candidate"
    return AmbiguousAnswer(
        f"The answer has {many} for its {name}: {named}. "
        f"Choose one with `%nbext set {line}`, or with that line under [tool.nbext] in pyproject.toml.",
        candidates=candidates,
        setting=line,
    )
