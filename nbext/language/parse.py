"""From a request's JSON to a `ParsedQuery`: strict, and with all errors at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal

from nbext.core.rules import DEFAULT_LIMIT, limit_of
from nbext.core.strict_json import below
from nbext.core.untrusted_text import shown
from nbext.core.wire import EXECUTE_KEYS
from nbext.errors import InvalidSegment, ValidationError
from nbext.language.conditions import CONDITIONS, FILE_TYPE, GROUP, OPERATOR, SCOPE_KEY
from nbext.language.conditions.condition import Condition
from nbext.language.describe import ErrorReport
from nbext.language.fields import MAX_CONDITIONS, MAX_DEPTH, is_saved, read_field
from nbext.language.model import Parsed, ParsedCondition, ParsedGroup, ParsedQuery, QueryScope

By = Literal["all", "any"]
MAP_KEYS = (*CONDITIONS, *GROUP)


def parse(body: object) -> ParsedQuery:
    """Read the body of an execute request.

    Raises
    ------
    InvalidSegment
        With every error found: ``pointer`` into the body, ``code``, ``detail``.
    """
    parser = _Parser()
    report = parser.report
    if not isinstance(body, Mapping):
        detail = (
            f"A segment request is an object with {', '.join(EXECUTE_KEYS)}, not {shown(body)}."
        )
        raise InvalidSegment.of("", "type", detail)
    for key in body:
        if key not in EXECUTE_KEYS:
            report.unknown(below("", key), key, "field {} of a segment request", EXECUTE_KEYS)
    # Each is read even after an error in another: one answer names them all.
    operator, file_type = (
        read_field(field, body.get(field.name, field.default), f"/{field.name}", report)
        for field in (OPERATOR, FILE_TYPE)
    )
    limit = 0
    try:
        limit = limit_of(body.get("limit", DEFAULT_LIMIT))
    except ValidationError as error:
        report.take(error)
    children, scope = parser.filters(body)
    report.close()
    by: By = "all" if operator == "AND" else "any"
    return ParsedQuery(operator, ParsedGroup(by, _flat(by, children)), scope, limit, file_type)


@dataclass
class _Parser:
    """Reads one body. It goes on after an error: all of them are reported together."""

    report: ErrorReport = field(default_factory=ErrorReport)
    conditions: int = 0

    def filters(self, body: Mapping[str, Any]) -> tuple[tuple[Parsed, ...], QueryScope]:
        filters = body.get("filters")
        if not isinstance(filters, Mapping):
            code, detail = "type", f"Filters are an object of conditions, not {shown(filters)}."
            if "filters" not in body:
                detail = 'Filters are missing. Write "filters": {...} with at least one condition.'
                code = "required"
            self.report.add("/filters", code, detail)
            return (), QueryScope()
        rest = {key: value for key, value in filters.items() if key not in SCOPE_KEY}
        scope = {
            key: read_field(SCOPE_KEY[key], value, below("/filters", key), self.report)
            for key, value in filters.items()
            if key in SCOPE_KEY
        }
        # A scope key alone asks for nothing: filters need a condition beside it.
        if not rest:
            detail = f"The filters have no condition. Give at least one of: {', '.join(MAP_KEYS)}."
            self.report.add("/filters", "empty-group", detail)
        children = tuple(self.map(rest, "/filters", 0, (*MAP_KEYS, *SCOPE_KEY)))
        return children, QueryScope(*map(scope.get, SCOPE_KEY))

    def map(
        self, members: Mapping[str, Any], pointer: str, depth: int, allowed: tuple[str, ...]
    ) -> Iterator[Parsed]:
        """Read the children of a map: one for each key, or for each member of a key's list."""
        # Before going down: a hostile body must not reach Python's own limit.
        if depth > MAX_DEPTH:
            self.report.add(pointer, "depth", f"Groups are nested more than {MAX_DEPTH} deep.")
            return
        for key, value in members.items():
            here = below(pointer, key)
            # Keys of a body are strings, but a dict from Python may have others: they are unknown, not a fault here.
            if key in GROUP:
                yield from self.group(str(key), value, here, depth)
            elif key in CONDITIONS and isinstance(value, list | tuple):
                if not value:
                    detail = f'"{key}" is an empty list. Give at least one condition.'
                    self.report.add(here, "empty-group", detail)
                # One more than allowed is reported; a body may hold a million of them.
                for index, one in enumerate(value[: MAX_CONDITIONS + 1]):
                    yield self.condition(CONDITIONS[str(key)], one, below(here, index))
            elif key in CONDITIONS:
                yield self.condition(CONDITIONS[str(key)], value, here)
            elif key in SCOPE_KEY:
                detail = f"{shown(key)} is allowed at the top of the filters, not inside a group."
                if key == "asOf":
                    detail += (
                        " For the wallets of another time run them as of then, and name that: "
                        '{"segment": {"id": "sg_..."}}.'
                    )
                self.report.add(here, "unknown-key", detail)
            elif str(key).lower() in ("and", "or"):
                # They are what operator takes, so people write them as keys; no key is spelled nearly so.
                detail = f'Unknown condition {shown(key)}. Use "all" for AND and "any" for OR.'
                self.report.add(here, "unknown-key", detail)
            else:
                self.report.unknown(here, key, "condition {}", allowed)

    def group(self, key: str, value: Any, pointer: str, depth: int) -> Iterator[Parsed]:
        """Read ``all``, ``any`` (a list of maps) or ``not`` (a map, or a list of them)."""
        if key == "not" and isinstance(value, Mapping):
            yield ParsedGroup("not", (self.conjunction(value, pointer, depth),))
            return
        if not isinstance(value, list | tuple):
            also = ", or one such object" * (key == "not")
            detail = f'"{key}" is a list of objects with conditions: [{{...}}, {{...}}]{also}, not {shown(value)}.'
            self.report.add(pointer, "type", detail)
            return
        if not value:
            self.report.add(
                pointer,
                "empty-group",
                f'"{key}" is empty. Give at least one object with conditions.',
            )
        # Each member has at least one condition, or an error: more of them than conditions are allowed are not read.
        if len(value) > MAX_CONDITIONS:
            detail = f'"{key}" has {len(value):,} members. A segment has at most {MAX_CONDITIONS} conditions.'
            self.report.add(pointer, "size", detail)
            value = value[:MAX_CONDITIONS]
        members = tuple(
            self.conjunction(one, below(pointer, index), depth) for index, one in enumerate(value)
        )
        if key == "not":
            yield from (ParsedGroup("not", (member,)) for member in members)
        # An empty group is reported above; joined it would be a segment that every wallet is in.
        elif members:
            yield _join("all" if key == "all" else "any", members)

    def conjunction(self, members: Any, pointer: str, depth: int) -> Parsed:
        """Read a map inside a group: its keys all hold."""
        if not isinstance(members, Mapping):
            detail = f'{shown(members)} is not an object with conditions, such as {{"token": {{"token": "UNI"}}}}.'
            self.report.add(pointer, "type", detail)
            return ParsedGroup("all", ())
        if not members:
            self.report.add(
                pointer, "empty-group", "The object is empty. Give at least one condition."
            )
        return _join("all", tuple(self.map(members, pointer, depth + 1, MAP_KEYS)))

    def condition(self, condition: type[Condition], value: Any, pointer: str) -> Parsed:
        """Read one condition; each saved segment in its list of wallets becomes the condition that asks for it."""
        asked = self.fields(condition, value, pointer)
        among = asked.values.get("in") or () if asked.kinds.get("in") == "wallets" else ()
        saved = {one: index for index, one in enumerate(among) if is_saved(one)}
        if not saved:
            return asked
        for _ in saved:
            self.count(pointer)
        addresses = tuple(one for one in among if one not in saved)
        beside = {name: one for name, one in asked.values.items() if name != "in"}
        here, alone = below(pointer, "in"), isinstance(value["in"], str)
        # Without kinds: its value is what the pointer points to, and no object with fields.
        either: list[Parsed] = [
            ParsedCondition("segment", {"id": one}, here if alone else below(here, index), {})
            for one, index in saved.items()
        ]
        either += [replace(asked, values={"in": addresses})] if addresses else []
        return _join(
            "all",
            (_join("any", tuple(either)), *([replace(asked, values=beside)] if beside else [])),
        )

    def fields(self, condition: type[Condition], value: Any, pointer: str) -> ParsedCondition:
        """Read the fields of one condition."""
        self.count(pointer)
        if not isinstance(value, Mapping):
            # A contract in the place of a condition is the commonest slip: it is shown as it is written right.
            takes_it = isinstance(value, str) and condition.fields[0].kind in (
                "token",
                "collection",
            )
            example = {condition.fields[0].name: value} if takes_it else condition.examples[0]
            text = json.dumps({condition.name: example}, ensure_ascii=False)
            detail = f'{shown(value)} is not an object with the fields of "{condition.name}". Write {text}.'
            self.report.add(pointer, "type", detail)
            return ParsedCondition(condition.name, {}, pointer, {})
        fields = {field.name: field for field in condition.fields}
        values: dict[str, Any] = {}
        for key, one in value.items():
            here = below(pointer, key)
            if key in fields:
                values[key] = read_field(fields[key], one, here, self.report)
            elif key in MAP_KEYS:
                detail = f"{shown(key)} is a condition, not a field of {condition.name}."
                self.report.add(
                    here, "unknown-key", f'{detail} Close "{condition.name}" before it.'
                )
            else:
                self.report.unknown(here, key, f"field {{}} of {condition.name}", fields)
        # After an unknown key, "asks for nothing" would be noise: the key was meant to ask.
        self.together(condition, values, pointer, all_known=len(values) == len(value))
        kinds = {name: one.kind for name, one in fields.items()}
        # What is not given is filled in here, so that a default and its spelling out have one canonical form.
        defaults = {name: one.default for name, one in fields.items() if one.default is not None}
        return ParsedCondition(condition.name, {**defaults, **values}, pointer, kinds)

    def count(self, pointer: str) -> None:
        """Count a condition; one too many is said once, and those after it are still read for their errors."""
        self.conditions += 1
        if self.conditions == MAX_CONDITIONS + 1:
            self.report.add(pointer, "size", f"A segment has at most {MAX_CONDITIONS} conditions.")

    def together(
        self, condition: type[Condition], given: Mapping[str, Any], pointer: str, *, all_known: bool
    ) -> None:
        """Check that a condition has the fields that it needs, and none that do not go together."""
        required = [one for one in condition.fields if one.required]
        for one in required:
            if one.name not in given:
                what = one.help[:1].lower() + one.help[1:]
                self.report.add(pointer, "required", f"{condition.name} needs {one.name!r}: {what}")
        if not required and not all_known:
            return
        for name, other in condition.exclusive:
            if name in given and other in given:
                self.report.add(
                    pointer, "exclusive", f"{condition.name} takes {name!r} or {other!r}, not both."
                )
        for name, others in condition.needs:
            if name in given and not any(other in given for other in others):
                wanted = " or ".join(repr(other) for other in others)
                self.report.add(
                    below(pointer, name), "needs", f"{name!r} needs {wanted} beside it."
                )
        if not required and not given.keys() - condition.idle:
            names = ", ".join(
                field.name for field in condition.fields if field.name not in condition.idle
            )
            self.report.add(
                pointer,
                "empty",
                f"{condition.name} has nothing to match. Give at least one of: {names}.",
            )


def _join(by: By, members: tuple[Parsed, ...]) -> Parsed:
    # A group of one is its member: it must not get an id of its own.
    flat = _flat(by, members)
    return flat[0] if len(flat) == 1 else ParsedGroup(by, flat)


def _flat(by: By, members: tuple[Parsed, ...]) -> tuple[Parsed, ...]:
    """Return members in one normal form, so that what means the same is written the same.

    A group inside one of its own kind is spliced in, and children under one key are put together.
    """
    by_key: dict[str, list[Parsed]] = {}
    for member in members:
        spliced = (
            member.children if isinstance(member, ParsedGroup) and member.name == by else (member,)
        )
        for child in spliced:
            by_key.setdefault(child.name, []).append(child)
    return tuple(chain.from_iterable(by_key.values()))
