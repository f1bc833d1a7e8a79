"""The names and words that services use, which are in words.toml, and what they say of a state, and of an error.

A name is compared without case, ``_``, ``-`` and spaces.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from nbext.client.decode import State
from nbext.core.addresses import looks_like_address
from nbext.http.errors import words

T = TypeVar("T")
# An object of an answer: any values by name.
Place = Mapping[str, Any]
# A path has quotes around a name that has any of the others.
_SEPARATORS = str.maketrans("", "", '_- .@$:"')


def bare(name: str) -> str:
    """Return the name without case and separators.

    >>> bare("Segment_ID"), bare("nextPageToken")
    ('segmentid', 'nextpagetoken')
    """
    # Beyond a hundred characters no name is one of ours, and a stranger's may have a million.
    return name[:100].lower().translate(_SEPARATORS)


def last_name(path: str) -> str:
    """Return the last name of a path, as `bare` has it."""
    return bare(path.rpartition(".")[2])


# No object that wraps others, and no record, was seen with so many names: a million take a minute to look at a dozen
# times.
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
    if isinstance(value, Decimal) and abs(value) < 10**18 and value == int(value):
        return int(value)
    return value if type(value) is int else None


def truth_of(value: Any) -> bool | None:
    """Return a truth value, also one that is sent as text; None for anything else.

    >>> truth_of(False), truth_of("true"), truth_of(1), truth_of("maybe")
    (False, True, None, None)
    """
    return {"true": True, "false": False}.get(shape_of(value))


def is_address(value: Any) -> bool:
    """Say whether a value is the text of an address."""
    return isinstance(value, str) and looks_like_address(value)


def has_address(record: Place) -> bool:
    """Say whether a record has an address, whatever its name."""
    return any(map(is_address, record.values()))


def by_bare(place: Place, most: int = MOST_NAMES) -> dict[str, Any]:
    """Return the values of an object, or of its first ``most`` names, by their names as `bare` has them."""
    return {bare(name): value for name, value in islice(place.items(), most)}


@cache
def vocabulary() -> Mapping[str, Any]:
    """Return words.toml: tables of names and words, each with a vendor that uses it."""
    return tomllib.loads((Path(__file__).parent / "words.toml").read_text("utf-8"))


@cache
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


@cache
def like(*tables: str) -> re.Pattern[str]:
    """Return an expression that matches, in whole, the names of some tables of words.toml."""
    return re.compile("|".join(sorted(names(*tables))))


@lru_cache(4096)
def kind_named(subject: str, plain: str) -> str:
    """Return the first table under a subject of words.toml, such as ``signs``, that has a name; nothing without one."""
    return next(
        (kind for kind in vocabulary()[subject] if like(f"{subject}.{kind}").fullmatch(plain)), ""
    )


def says(kind: str, value: Any) -> str:
    """Return what a field of a kind says with its value, as the tables under ``says`` in words.toml have it.

    >>> says("more", "true"), says("more", 0), says("taken", [])
    ('more', '', 'refused')
    """
    return str(vocabulary()["says"].get(kind, {}).get(shape_of(value), ""))


def shape_of(value: Any) -> str:
    """Return what kind of value a field has: the first pattern under ``shapes`` in words.toml that is like it.

    >>> shape_of("yes"), shape_of("1,234"), shape_of("1" * 20), shape_of("/next"), shape_of(Decimal("0.5"))
    ('true', 'number', 'text', 'link', 'fraction')
    """
    number = number_of(value)
    plain = (
        bool(value) if isinstance(value, list | Mapping) else value if number is None else number
    )
    shapes: Mapping[str, str] = vocabulary()["shapes"]
    return next(name for name in shapes if is_like(shapes[name], f"{type(value).__name__} {plain}"))


def is_like(pattern: str, value: Any) -> bool:
    """Say whether a value, as a text in any case, is like a pattern."""
    return re.fullmatch(f"(?is){pattern}", str(value)[:1000]) is not None


IDS, STATUSES = names("ids"), names("statuses")
WRAPPERS, RESULTS, COLUMNS, ECHOES = map(names, ("wrappers", "results", "columns", "echoes"))
ROWS, NOT_ROWS = names("results", "rows"), names("columns", "not_rows")


def places(
    document: Any,
    enter: Callable[[str, str, Any], bool] = lambda _path, name, _: bare(name) in WRAPPERS,
    *,
    deep: int = 3,
    most: int = 1_000,
) -> Iterator[tuple[str, Place]]:
    """Return the document's objects that wrap others, outermost first, each with its path.

    A stranger may send a million objects inside of each other; no answer was seen with more than a dozen wrappers.
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


def is_keyed(value: Any) -> bool:
    """Say whether an object's names are addresses or numbers, each of one record or of one value."""
    if not isinstance(value, Mapping) or not value or not all(map(_HEX_KEY.fullmatch, value)):
        return False
    items = list(value.values())
    return are_records(items) or not any(isinstance(item, Mapping | list) for item in items)


_HEX_KEY = re.compile(r"([a-z][\w-]{0,30}:)?0x[0-9a-fA-F]{4,64}|[0-9]{1,78}")


def are_records(value: Sequence[Any]) -> bool:
    """Say whether a list has objects, and nothing else."""
    return bool(value) and all(isinstance(item, Mapping) for item in value)


def first_in(values: Iterable[T], otherwise: Any = None) -> T | Any:
    """Return the first of some values; ``otherwise`` where there is none."""
    return next(iter(values), otherwise)


def first_named(named: Place, table: str) -> Any:
    """Return the value of the first name of a table of words.toml that there is; None without any."""
    return first_in(named[name] for name in vocabulary()[table] if name in named)


def fields_of(document: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield the path, the name without case and separators, and the value of each field of the `places`."""
    for path, place in places(document):
        for name, value in place.items():
            yield path_to(path, name), bare(name), value


def path_to(path: str, name: str) -> str:
    """Return a JMESPath to a name below a path."""
    # JMESPath takes JSON's escapes, so that nothing in a stranger's name hides or runs where the path is shown.
    quoted = name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else json.dumps(name)
    return f"{path}.{quoted}" if path else quoted


_STATE_OF = {word: state for state in State for word in names(f"states.{state.name.lower()}")}


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
    if state is not None and not names("states.not_yet").isdisjoint(before):
        return State.RUNNING
    neutral = names("states.neutral", "states.completed")
    return None if state is State.COMPLETED and not neutral.issuperset(before) else state


def to_ours(record: Place, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return a contract's record under our names for its fields; the service's other fields stay as they are.

    ``fields`` are our names with their types. Of two fields that could be one of ours neither is renamed.
    """
    new, rules = dict[str, str](), vocabulary()["may_be"]
    plain = {name: bare(name) for name in record if name not in fields}
    for ours, kind in fields.items():
        others = vocabulary()["same"].get(ours, ())
        # As Python writes a value, which tells a text from a number.
        rule = rules.get(ours) or rules.get(kind) or rules["any"]
        exact = [name for name in plain if plain[name] == ours.lower()]
        found = [
            name
            for name in exact or [name for name in plain if plain[name] in others]
            if name not in new and is_like(rule, repr(record[name]))
        ]
        if len(found) == 1 and ours not in record:
            new[found[0]] = ours
    renamed = {new.get(name, name): value for name, value in record.items()}
    for name, value in renamed.items():
        # The digits of a whole number, where the column is known to have such.
        if fields.get(name) == "integer":
            is_hex = isinstance(value, str) and re.fullmatch("0[xX][0-9a-fA-F]{1,15}", value)
            number = int(value, 16) if is_hex else number_of(value)
            renamed[name] = value if number is None else number
    return renamed


_OF_THE_CALL = names("states.of_the_call")


def status_of(
    document: Any, chosen: Any, known: Callable[[str], State | None]
) -> tuple[str | None, State | None]:
    """Return the service's own word and the state of the job that an answer speaks of.

    What says that it is not done outranks what says it is. A word without a state is one that nobody knows.

    ``chosen`` is what the settings point to, and ``known`` the state of a word, as they and `state_of` have it.
    """
    if chosen is not None:
        spelled = status_text(chosen) or str(chosen).lower()
        by_truth = _states("by_flags", [("done", chosen)])
        return spelled, known(spelled) or first_in(by_truth)
    pairs = [(plain, value) for _, plain, value in fields_of(document)]
    texts = [status_text(value) for name, value in pairs if name in STATUSES]
    # The innermost speaks of the job; an outer "success" of the call.
    spoken = sorted(filter(None, texts), key=lambda text: text.lower() not in _OF_THE_CALL)
    word = spoken[-1] if spoken else None
    state, is_calls = known(word) if word else None, (word or "").lower() in _OF_THE_CALL
    said = {state, *_states("by_flags", pairs)}
    if word is None or is_calls:
        said |= _states("by_shares", pairs)
        ends = [value for name, value in pairs if name in names("ends")]
        # "completedAt": null, and nothing else that speaks of the state.
        said |= {State.RUNNING} if ends and not any(ends) and said == {None} else set()
    order = (*ENDED_BADLY, State.RUNNING, State.COMPLETED)
    return word, first_in(one for one in order if one in said)


ENDED_BADLY = (State.FAILED, State.TIMED_OUT, State.CANCELLED, State.EXPIRED)


def status_text(value: Any) -> str | None:
    """Return a status as text: also of ``{"name": ...}``, and of a number that is not the status of HTTP."""
    for _ in range(3):
        if isinstance(value, Mapping):
            value = first_named(by_bare(value, 50), "status_in_an_object")
    number = number_of(value)
    text = value if isinstance(value, str) else "" if number is None else str(number)
    return None if re.fullmatch(r"\s*|[2-5]\d\d", text) else text


def _states(rules: str, pairs: Sequence[tuple[str, Any]]) -> set[State]:
    """Return the states that fields speak of by some rules: for each state tables of names, and patterns of values."""
    return {
        State(state)
        for state, patterns in vocabulary()["states_said"][rules].items()
        for table, pattern in patterns.items()
        for name, value in pairs
        if fits(table, pattern, name, _percent_of(value))
    }


def _percent_of(value: Any) -> Any:
    """Return a progress of steps in percent: {"done": 3, "total": 10}; any other value as it is."""
    named = by_bare(value, 50) if isinstance(value, Mapping) else {}
    done, total = number_of(first_named(named, "steps_done")), number_of(named.get("total"))
    return value if done is None or not total else f"{100 * done // total}%"


def fits(table: str, pattern: str, plain: str, value: Any) -> bool:
    """Say whether a name is in a table of words.toml, and its value, as a text in any case, like a pattern."""
    return like(table).fullmatch(plain) is not None and is_like(pattern, value)


def says_whole(plain: str, value: Any) -> bool:
    """Say whether a field of that name is one that the rules here read, and says that the job or the call is whole."""
    # The first table that has the name decides; any other name may have a time.
    rules, is_time = vocabulary()["whole"].items(), r"\d{4}-\d\d-\d\d([T ]\d\d:.*)?"
    rule = next((rule for table, rule in rules if like(table).fullmatch(plain)), is_time)
    is_state = plain in STATUSES | names("outcomes") and state_of(str(value)) is not None
    is_harmless = kind_named("signs", plain) in names("harmless_kinds") or is_state
    return is_harmless or is_like(rule, value)


_ERRORS, _MESSAGES, _CODES = names("errors"), names("messages"), names("codes")
_ABOUT_ERRORS = names("errors", "messages", "about_errors")


def error_in(document: Any, *, receipt: bool = False) -> str | None:
    """Return the words of an error that came under a status of success, or None.

    A ``receipt`` says little, and that is no error: a message alone, or no data.
    """
    if isinstance(document, list):
        few = document[:20]
        is_error = are_records(few) and all(
            one.keys() & {"code", "errorcode", "error"} and _is_message(one)
            for one in map(by_bare, few)
        )
        return said(few) if is_error else None
    found = (
        _error_of(by_bare(place), top=not path, receipt=receipt) for path, place in places(document)
    )
    return first_in(filter(None, found))


def error_in_rows(records: Sequence[Place]) -> str | None:
    """Return the words of an error that came as a row: alone, or where the rows break off; None without one."""
    # Of a million rows of the same names the first speaks for all.
    odd = (record for record in records if record.keys() != records[0].keys())
    some = map(by_bare, [*records[:1], *islice(odd, 1000)])
    errors = (
        _error_of(named, top=False, receipt=True)
        for named in some
        if 0 < len(named) <= 4 and named.keys() <= _ERRORS | _MESSAGES | _CODES
    )
    return first_in(filter(None, errors))


def _error_of(named: Place, *, top: bool, receipt: bool) -> str | None:
    """Return the words of the error that an object speaks of; None of any other object."""
    # Rows beside an error are not its words.
    beside = {
        name: value
        for name, value in named.items()
        if not (isinstance(value, list) and name in ROWS) and name not in _ERRORS
    }
    # Many services send "error": null, or an empty list of errors, with every good answer.
    rules = vocabulary()["failures"]
    for name in vocabulary()["errors"]:
        if has_error(name, named.get(name)):
            return said(named[name]) or said(beside) or str(named[name])[:200]
    is_error = (
        any(_is_failure(rule, named) for rule in rules["anywhere"] + (rules["top"] if top else []))
        # An id beside the word is a job's: its failure has an error of its own.
        or (not IDS & named.keys() and _is_failure(rules["word"], named))
        or (top and not receipt and _is_message(named))
    )
    if not is_error:
        return None
    result = named.get("result")
    is_word = _is_failure(rules["word"], {"result": result})
    more = result[:300] if isinstance(result, str) and not is_word else ""
    found = dict.fromkeys(filter(None, (said(beside), more)))
    return ": ".join(found) or "the service says that it failed, but not why"


def has_error(name: str, value: Any, rule: str = "errors") -> bool:
    """Say whether a field is of an error, and has one, by a ``rule`` of words.toml: of an object, or of a column."""
    return _is_failure(vocabulary()["failures"][rule], {bare(name): value})


def _is_failure(rule: Mapping[str, str], named: Place) -> bool:
    """Say whether an object has a field for each part of a rule: of a table's name, and like its pattern."""
    return all(
        any(fits(table, pattern, name, value) for name, value in named.items())
        for table, pattern in rule.items()
    )


def _is_message(named: Place) -> bool:
    """Say whether an object has a message, and no data: {"code": 7, "message": ...}, {"data": null, "message": ...}."""
    # No rows are data, unless a code says that it failed.
    failed = named.get("code", named.get("errorcode")) not in (None, 0, "0", 200, "200", "ok", "OK")
    empty: tuple[Any, ...] = (None, "", {}, [] if failed else None)
    some = {name: value for name, value in named.items() if value not in empty}
    # What has a name, and no code, is a thing with a description.
    is_thing = "name" in some and not {"code", "errorcode"} & some.keys()
    is_data = is_thing or {"data", "result"} & some.keys() or not some.keys() <= _ABOUT_ERRORS
    texts = [some.get(name) for name in ("message", "msg", "detail", "reason")]
    return not is_data and any(isinstance(text, str) for text in texts)


def prose_in(header: Sequence[str]) -> str | None:
    """Return the text of a CSV without a row whose first line names no columns: "Internal error, try later".

    >>> prose_in(["Internal error", " try later"]), prose_in(["address"]), prose_in(["id", "amount"])
    ('Internal error, try later', None, None)
    """
    plain = {bare(name) for name in header}
    are_names = len(header) > 1 and all(re.fullmatch(r"[A-Za-z_][\w.-]*", name) for name in header)
    if plain & names("ids", "column_names") or (are_names and not plain <= _ABOUT_ERRORS):
        return None
    return ",".join(header)


def said(value: Any) -> str:
    """Return what an error says, in its own words, in whichever fields and at whatever depth they are."""
    found = islice(inside("", value, MOST_DEPTH - 4), MOST_VALUES)
    texts = (
        f"{path[:-2]}: {text[:200]}" if path.endswith("[]") and len(path) > 2 else text[:200]
        for path, text in found
        if isinstance(text, str)
    )
    return words(value) or "; ".join(islice(texts, 5))[:400]


# Of a list some items are looked at, and of deep or wide answers the beginning.
MOST_FIELDS, MOST_VALUES, MOST_ITEMS, MOST_DEPTH = 150, 20_000, 50, 8


def inside(path: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
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
        yield from inside(where, item, depth + 1)
