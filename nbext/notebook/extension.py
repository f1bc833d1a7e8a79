"""``%load_ext nbext`` and ``%unload_ext nbext``: what is put into a shell, magics and ``%config Nbext`` included."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from IPython.core import interactiveshell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from traitlets import Bool, CaselessStrEnum, Dict, Float, Int, TraitError, TraitType, Unicode
from traitlets.config import Configurable

from nbext.core.untrusted_text import visible
from nbext.errors import ConfigError, UsageError
from nbext.notebook import completion
from nbext.notebook.line import Args, Grammar
from nbext.notebook.results import tables
from nbext.notebook.results.deliver import prepare
from nbext.notebook.run import root
from nbext.notebook.session import Session, loaded_line
from nbext.settings import SETTINGS, Setting, Settings

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_EMPTY_CELL = re.compile(rf"%%({'|'.join(root.MAGICS)})\b")
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
_TRAITS: dict[type, type[TraitType[Any, Any]]] = {
    bool: Bool,
    int: Int,
    float: Float,
    dict: Dict,
    str: Unicode,
}


def _trait(setting: Setting) -> TraitType[Any, Any]:
    """Return a trait of the setting's type that shows the effective value, wherever it is set."""
    base = CaselessStrEnum if setting.choices else _TRAITS[setting.kind]

    class Effective(base):  # type: ignore[misc, valid-type]  # the base is chosen from the table above
        def get(self, obj: Any, cls: Any = None) -> Any:
            # While traitlets loads a configuration it reads what it has just set, to check and to set it again: the
            # value in effect would be taken for the configured one.
            if obj.settings is None or obj._cross_validation_lock:
                return super().get(obj, cls)
            return obj.settings[setting.name]

        def set(self, obj: Any, value: Any) -> None:
            super().set(obj, value)
            obj.values[setting.name] = obj._trait_values[setting.name]

        def validate(self, obj: Any, value: Any) -> Any:
            # First the type, which the trait refuses by its name, then the bounds, which the setting knows.
            typed = super().validate(obj, value)
            try:
                return setting.read(typed, "%config")
            except ConfigError as error:
                raise TraitError(str(error)) from None

    arguments: dict[str, Any] = {"values": list(setting.choices)} if setting.choices else {}
    made = Effective(
        default_value=setting.default, allow_none=True, help=setting.help, **arguments
    ).tag(config=True)
    # %config prints the class's name as the type.
    Effective.__name__ = base.__name__
    return cast("TraitType[Any, Any]", made)


class Nbext(Configurable):
    """Settings of nbext: the values in effect. Assigning here ranks below %nbext set, the environment and files."""

    settings: Settings | None = None
    # One trait per setting, so that the two lists cannot differ. The key is not a setting, and so not a trait.
    vars().update({setting.name: _trait(setting) for setting in SETTINGS})

    def __init__(self, **options: Any) -> None:
        # What was assigned here, by IPython's files or %config: `Settings` reads it as one of its places.
        self.values: dict[str, Any] = {}
        super().__init__(**options)


class Names(dict[str, Any]):
    """Names and values; ``lost`` are variables of functions that have none here, each with what to say of it."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        super().__init__(names)
        self.lost: dict[str, str] = {}

    def lose(self, names: Iterable[str], words: str) -> None:
        """Refuse names, in words about each: there may be another value under one, which is not meant."""
        for name in names:
            self.pop(name, None)
            self.lost[name] = words.format(name)

    def find(self, names: Mapping[str, Any]) -> None:
        """Add names that are known."""
        self.update(names)
        for name in names:
            self.lost.pop(name, None)


def names_at_the_call(notebook: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Return the names of the function that calls a magic, in front of its module's or the notebook's."""
    # Not IPython's needs_local_scope, which gives a cell magic the notebook's names inside of a function too.
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != interactiveshell.__file__:
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename == interactiveshell.__file__:
        frame = frame.f_back
    # A comprehension is a function of its own up to Python 3.11, which runs at once where it stands.
    comprehensions = []
    while frame is not None and frame.f_code.co_name in _COMPREHENSIONS:
        comprehensions.append(frame.f_locals)
        frame = frame.f_back
    # A cell's own frame has the notebook's names themselves, which need no copy.
    is_cell = frame is None or frame.f_locals is notebook
    if is_cell and not comprehensions:
        return notebook
    names = Names(notebook if frame is None else frame.f_globals)
    if frame is not None and not is_cell:
        _add_own(names, frame)
    for one in reversed(comprehensions):
        names.find(one)
    return names


def _add_own(names: Names, frame: FrameType) -> None:
    """Add the variables of a function; those that have no value, or are of a function around it, are lost.

    A function that only a magic's text names a variable in is no closure of it: Python does not keep the variable, and
    whoever calls the function now need not be who made it.
    """
    own = frame.f_code
    around = _written_around(own) if "<locals>" in own.co_qualname else []
    elsewhere = (
        "{0!r} is a variable of %s, and its value is not known inside of another function. "
        "Pass it to that function as an argument, such as the default {0}={0}."
    )
    # Code of which nobody has the text may name anything.
    if around is None:
        names.lose(list(names), elsewhere % own.co_name)
    for outer in reversed(around or []):
        names.lose((*outer.co_varnames, *outer.co_cellvars), elsewhere % outer.co_name)
    names.lose(
        (*own.co_varnames, *own.co_cellvars),
        f"{{!r}} is a variable of {own.co_name}, which has given it no value.",
    )
    names.find(frame.f_locals)


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


def _magic(grammar: Grammar, run: Callable[[Session, Args], Any]) -> Any:
    """Return a magic that parses its line, shows its help, refuses a body that it does not take, and runs."""

    def magic(self: NbextMagics, line: str, cell: str | None = None) -> Any:
        if cell is not None and cell.strip() and not grammar.magic.startswith("%%"):
            raise UsageError(
                f"%{grammar.magic} is not a cell magic. Write it on one line, with one percent sign: "
                f"{grammar.magic} {visible(' '.join([*line.split(), *cell.split()]))}"
            )
        # In the cell that loads the extension, too.
        self.session.before_cell()
        args = grammar.parse(line, names_at_the_call(self.session.names))
        if args["help"]:
            print(args.grammar.help())
            return None
        args.cell = cell
        # A file that cannot be read changes nothing; `%nbext connect` says so.
        with suppress(ConfigError):
            self.session.settings.reread()
        prepare(args, self.session.settings)
        return run(self.session, args)

    magic.__name__, magic.__doc__ = grammar.magic.lstrip("%"), grammar.help()
    # IPython's own {x} and $x stay as they are: a pasted on-chain name must never run code.
    return no_var_expand(line_cell_magic(magic))


@magics_class
class NbextMagics(Magics):
    """The magics of one shell, over its session."""

    vars().update({name: _magic(*one) for name, one in root.MAGICS.items()})

    def __init__(self, shell: InteractiveShell, session: Session) -> None:
        super().__init__(shell)
        self.session = session


# What takes out of each shell all that was put into it.
_LOADED: WeakKeyDictionary[InteractiveShell, ExitStack] = WeakKeyDictionary()


def load(shell: InteractiveShell) -> None:
    """Put the magics, completion, display and configuration into a shell, once."""
    if getattr(shell, "register_magics", None) is None:
        raise UsageError(
            "%load_ext nbext works in IPython and in Jupyter. In a script use nbext.connect(), which returns a client."
        )
    if shell in _LOADED:
        return
    try:
        # Its parent is the shell, whose configuration has the profile's and the command line's values.
        configurable = Nbext(parent=shell)
    except TraitError as error:
        raise ConfigError(f"IPython's configuration of nbext: {error}") from None
    configurable.settings = Settings(ipython=configurable.values)
    session = Session(shell, configurable.settings)
    magics = NbextMagics(shell, session)
    undo = _LOADED[shell] = ExitStack()
    undo.callback(session.end)
    tables.display_literally(shell, session.suspicious, undo)
    # Where a widget can draw, and the picture in it can be made.
    if getattr(shell, "kernel", None) is not None and find_spec("vl_convert"):
        shown: Any = shell.display_formatter.ipython_display_formatter  # type: ignore[union-attr]
        shown.for_type_by_name(
            "nbext.analysis.charts", "Chart", lambda chart: chart.live()._ipython_display_()
        )
        undo.callback(shown.pop, "nbext.analysis.charts.Chart", None)
    # A user may have a %token of their own: unloading brings it back.
    for kind, names in magics.magics.items():
        of_kind = shell.magics_manager.magics[kind]
        undo.callback(of_kind.update, {name: of_kind[name] for name in names if name in of_kind})
        for name in names:
            undo.callback(of_kind.pop, name, None)
    shell.register_magics(magics)
    undo.callback(shell.magics_manager.registry.pop, type(magics).__name__, None)
    # IPython's Magics puts itself among the configurables.
    configurables: list[Any] = shell.configurables
    undo.callback(_remove, configurables, magics)
    for things, ours in (
        (shell.Completer.custom_matchers, completion.matcher(session)),
        (configurables, configurable),
        (shell.input_transformers_cleanup, with_a_body),
    ):
        things.append(ours)
        undo.callback(_remove, things, ours)
    for event, does in (
        ("pre_run_cell", session.before_cell),
        ("post_run_cell", session.after_cell),
    ):
        shell.events.register(event, does)
        undo.callback(shell.events.unregister, event, does)
    session.begin()
    print(loaded_line(session.settings))


def unload(shell: InteractiveShell) -> None:
    """Take all of it out again, and put back what was there before."""
    # Unloading twice, or without loading, is no error: %reload_ext does not ask.
    if (undo := _LOADED.pop(shell, None)) is not None:
        undo.close()


def _remove(things: list[Any], ours: Any) -> None:
    if ours in things:
        things.remove(ours)


def with_a_body(lines: list[str]) -> list[str]:
    """Add a blank second line to a cell of ours that is only its first line."""
    # IPython refuses such a cell before the magic sees it, with an error that ``pytest --nbval-lax`` does not notice;
    # the magic itself can say what is missing.
    if lines and _EMPTY_CELL.match(lines[0]) and not "".join(lines[1:]):
        return [lines[0].rstrip("\n") + "\n", "\n"]
    return lines
