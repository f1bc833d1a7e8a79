"""The names that the expressions of a magic may use: those that Python itself would find where the magic stands.

A function that only a magic's text names a variable in is no closure of it: Python does not keep the variable. Its
value is read from the enclosing function's frame while that runs; where it is lost, the name is refused, because the
notebook may have another value under it.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Iterator, MutableMapping
from types import CodeType, FrameType
from typing import Any

from IPython.core import interactiveshell


class Names(dict[str, Any]):
    """Names and values; ``lost`` are those that only an enclosing function knew, with that function's name."""

    def __init__(self, names: MutableMapping[str, Any]) -> None:
        super().__init__(names)
        self.lost: dict[str, str] = {}

    def add(self, code: CodeType, frames: list[FrameType] | None) -> None:
        """Add a function's variables, from the frames of its calls: they hide the names outside of it.

        None says that nobody knows which variables there are.
        """
        for name in (*code.co_varnames, *code.co_cellvars) if frames is not None else list(self):
            self.pop(name, None)
            self.lost[name] = code.co_name
        for name, value in frames[0].f_locals.items() if frames else ():
            # Which of several calls made the inner function, nobody can say.
            if all(
                name in frame.f_locals and frame.f_locals[name] is value for frame in frames or ()
            ):
                self[name] = value
                self.lost.pop(name, None)


def names_at_the_call(notebook: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Return the names of the function that calls a magic, those of the functions around it, then the notebook's."""
    # Not IPython's needs_local_scope, which gives a cell magic the notebook's names inside of a function too.
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != interactiveshell.__file__:
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename == interactiveshell.__file__:
        frame = frame.f_back
    # A cell's own frame has the notebook's names themselves, which need no copy.
    if frame is None or frame.f_locals is notebook:
        return notebook
    names = Names(notebook)
    for code, frames in reversed(list(_around(frame))):
        names.add(code, frames)
    names.update(frame.f_locals)
    for name in frame.f_locals:
        names.lost.pop(name, None)
    return names


def _around(frame: FrameType) -> Iterator[tuple[CodeType, list[FrameType] | None]]:
    """Yield the functions around the one of a frame, the innermost first, each with the frames of its calls."""
    code = frame.f_code
    while "<locals>" in code.co_qualname:
        frames = [one for one in _callers(frame) if _contains(one.f_code, code)]
        if not frames:
            written = _written_around(code)
            # Code of which nobody has the text may name anything.
            yield from [(code, None)] if written is None else ((one, []) for one in written)
            return
        code = frames[0].f_code
        yield code, frames


def _callers(frame: FrameType) -> Iterator[FrameType]:
    above = frame.f_back
    while above is not None:
        yield above
        above = above.f_back


def _contains(outer: CodeType, inner: CodeType) -> bool:
    """Return whether a function contains another, at once or in a class: a class's names are not its methods'."""
    if not outer.co_flags & inspect.CO_OPTIMIZED:
        return False
    return any(one is inner or _contains_in_class(one, inner) for one in outer.co_consts)


def _contains_in_class(value: object, inner: CodeType) -> bool:
    if not isinstance(value, CodeType) or value.co_flags & inspect.CO_OPTIMIZED:
        return False
    return any(one is inner or _contains_in_class(one, inner) for one in value.co_consts)


def _written_around(code: CodeType) -> list[CodeType] | None:
    """Return the functions around a function, the innermost first, from the text of its cell or file; None without."""
    text = "".join(linecache.getlines(code.co_filename))
    try:
        module = compile(
            text, code.co_filename, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
        )
    except (SyntaxError, ValueError):
        return None
    return _path(module, code)


def _path(outer: CodeType, code: CodeType) -> list[CodeType] | None:
    for one in outer.co_consts:
        if not isinstance(one, CodeType):
            continue
        if (one.co_qualname, one.co_firstlineno) == (code.co_qualname, code.co_firstlineno):
            return []
        if (found := _path(one, code)) is not None:
            # The names of a class are not those of its methods.
            return [*found, one] if one.co_flags & inspect.CO_OPTIMIZED else found
    return None
