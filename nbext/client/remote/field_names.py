"""The names and words that services use, which are in words.toml: for ids, states, addresses, rows and counts.

A name is compared without case, ``_``, ``-`` and spaces.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from nbext.client.decode import State
from nbext.core.addresses import looks_like_address

_SEPARATORS = str.maketrans("", "", "_- .@$:")


def bare(name: str) -> str:
    """Return the name without case and separators.

    >>> bare("Segment_ID"), bare("nextPageToken")
    ('segmentid', 'nextpagetoken')
    """
    # Beyond a hundred characters no name is one of ours, and a stranger's may have a million.
    return name[:100].lower().translate(_SEPARATORS)


# A stranger may send a million objects inside of each other; no answer was seen with more than a dozen wrappers.
MOST_PLACES = 1_000
# Nor has any object that wraps others, or any record, so many names: a million take a minute to look at a dozen times.
MOST_NAMES = 10_000


def number_of(value: Any) -> int | None:
    """Return a whole number, also one that is sent as text or with a fraction of 0; None for anything else.

    >>> number_of(25), number_of("25"), number_of("1,234"), number_of(True), number_of("x")
    (25, 25, 1234, None, None)
    >>> number_of(Decimal("25.0")), number_of(Decimal("25.5"))
    (25, None)
    """
    if isinstance(value, str) and re.fullmatch(
        r"[0-9]{1,3}(,[0-9]{3}){1,5}|[0-9]{1,18}", value.strip()
    ):
        return int(value.replace(",", ""))
    if (
        isinstance(value, Decimal)
        and value.is_finite()
        and abs(value) < 10**18
        and value == int(value)
    ):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def truth_of(value: Any) -> bool | None:
    """Return a truth value, also one that is sent as text; None for anything else.

    >>> truth_of(False), truth_of("true"), truth_of(1), truth_of("maybe")
    (False, True, None, None)
    """
    if isinstance(value, str):
        return {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def is_address(value: Any) -> bool:
    """Say whether a value is the text of an address."""
    return isinstance(value, str) and looks_like_address(value)


def name_set(text: str) -> frozenset[str]:
    """Return names, which mostly are compared by `bare`, written with spaces between."""
    return frozenset(text.split())


def by_bare(place: Mapping[str, Any], most: int = MOST_NAMES) -> dict[str, Any]:
    """Return the values of an object, or of its first ``most`` names, by their names as `bare` has them."""
    return {bare(name): value for name, value in islice(place.items(), most)}


@cache
def vocabulary() -> Mapping[str, Any]:
    """Return words.toml: tables of names and words, each with a vendor that uses it."""
    return tomllib.loads((Path(__file__).parent / "words.toml").read_text("utf-8"))


def names(*tables: str) -> frozenset[str]:
    """Return the names in some tables of words.toml, such as ``states.running``.

    >>> sorted(names("states.timed_out"))
    ['timedout', 'timeout']
    """
    found = list[str]()
    for table in tables:
        place = vocabulary()
        for name in table.split("."):
            place = place[name]
        found += place
    return frozenset(found)


def like(table: str) -> re.Pattern[str]:
    """Return an expression that matches, in whole, the names of a table of words.toml."""
    return re.compile("|".join(sorted(names(table))))


IDS, STATUSES = names("ids"), names("statuses")
# Where the rows are; a plain address beside a job that still runs is where its state is.
PLAIN_URLS, POLLED_AT = names("plain_urls"), like("polled_at_like")
_RESULTS_AT = like("results_at_like")
WRAPPERS, RESULTS, COLUMNS, ECHOES = map(names, ("wrappers", "results", "columns", "echoes"))
ROWS, NOT_ROWS = names("results", "rows"), names("columns", "not_rows")


def is_url(plain: str) -> bool:
    """Say whether a field of that name holds the address of the rows."""
    return plain in PLAIN_URLS or (
        _RESULTS_AT.fullmatch(plain) is not None and not POLLED_AT.fullmatch(plain)
    )


def places(
    document: Any,
    enter: Callable[[str, str, Any], bool] = lambda _path, name, _: bare(name) in WRAPPERS,
    *,
    deep: int = 3,
    most: int = MOST_PLACES,
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the document's objects that wrap others, outermost first, each with its path.

    ``enter`` says of a path, a name and the object there whether to look into it; ``deep`` and ``most`` bound that.
    """
    todo: deque[tuple[str, Any, int]] = deque([("", document, 0)])
    for _ in range(most):
        if not todo:
            return
        path, place, depth = todo.popleft()
        if not isinstance(place, Mapping) or len(place) > MOST_NAMES:
            continue
        yield path, place
        todo += [
            (path_to(path, name), value, depth + 1)
            for name, value in place.items()
            if depth < deep and isinstance(value, Mapping) and enter(path, name, value)
        ]


def first_named(named: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the value of the first of the names that there is; None without any."""
    return next((named[name] for name in names if name in named), None)


def fields_of(
    found: Iterable[tuple[str, Mapping[str, Any]]],
) -> Iterator[tuple[str, str, Any]]:
    """Yield the path, the name without case and separators, and the value of each field of some `places`."""
    for path, place in found:
        for name, value in place.items():
            yield path_to(path, name), bare(name), value


def path_to(path: str, name: str) -> str:
    """Return a JMESPath to a name below a path."""
    # JMESPath takes JSON's escapes, so that nothing in a stranger's name hides or runs where the path is shown.
    quoted = name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else json.dumps(name)
    return f"{path}.{quoted}" if path else quoted


_STATE_OF = {word: state for state in State for word in names(f"states.{state.name.lower()}")}
_NOT_YET, _NEUTRAL = names("states.not_yet"), names("states.neutral", "states.completed")


def state_of(word: str) -> State | None:
    """Return the state of a status word; None for one that nobody knows, or that has another word beside "done".

    >>> state_of("JOB_STATE_SUCCEEDED"), state_of("Canceled"), state_of("not ready")
    (<State.COMPLETED: 'completed'>, <State.CANCELLED: 'cancelled'>, <State.RUNNING: 'running'>)
    >>> state_of("warming-up"), state_of("half done"), state_of("99% complete")
    (None, None, None)
    """
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W_]|%", word[:200])
    *before, last = [part.lower() for part in parts] or [""]
    state = _STATE_OF.get("".join([*before[-1:], last])) or _STATE_OF.get(last)
    if state is not None and _NOT_YET & set(before):
        return State.RUNNING
    return None if state is State.COMPLETED and not _NEUTRAL.issuperset(before) else state


def to_ours(record: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return a contract's record under our names for its fields; the service's other fields stay as they are.

    ``fields`` are our names with their types. Of two fields that could be one of ours neither is renamed.
    """
    new: dict[str, str] = {}
    plain = {name: bare(name) for name in record if name not in fields}
    for ours, kind in fields.items():
        others = vocabulary()["same"].get(ours, ())
        exact = [name for name in plain if plain[name] == ours.lower()]
        found = [
            name
            for name in exact or [name for name in plain if plain[name] in others]
            if name not in new and _may_be(record[name], ours, kind)
        ]
        if len(found) == 1 and ours not in record:
            new[found[0]] = ours
    renamed = {new.get(name, name): value for name, value in record.items()}
    for name, value in renamed.items():
        # The digits of a whole number, where the column is known to have such.
        is_text = fields.get(name) == "integer" and isinstance(value, str)
        if is_text and re.fullmatch(r"0|[1-9][0-9]{0,17}", value):
            renamed[name] = int(value)
    return renamed


def _may_be(value: Any, ours: str, kind: str) -> bool:
    if ours == "tokenType":
        return isinstance(value, str) and bare(value).startswith(("erc", "bep", "spl"))
    if kind in ("integer", "uint256"):
        return value is None or str(value).isdecimal() or number_of(value) is not None
    of_kind = {"string": str, "boolean": bool}.get(kind, object)
    return value is None or (isinstance(value, of_kind) and not isinstance(value, list | Mapping))
