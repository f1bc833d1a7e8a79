"""``%load_ext nbext`` and ``%unload_ext nbext``: everything that is put into a shell, and taken out again."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from nbext.errors import UsageError
from nbext.notebook import banner, session
from nbext.notebook.completion import matcher
from nbext.notebook.config import ConfiguredValues, Nbext
from nbext.notebook.display import tables
from nbext.notebook.magics import NbextMagics

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_EMPTY_CELL = re.compile(r"%%(segment_query|segment|token|nft|nbext)\b")


@dataclass
class Loaded:
    """What one shell got, so that all of it can go again."""

    session: session.Session
    magics: NbextMagics
    matcher: Any
    formatters: tables.Formatters
    configurable: Any
    replaced: dict[tuple[str, str], Any] = field(default_factory=dict)


_LOADED: WeakKeyDictionary[InteractiveShell, Loaded] = WeakKeyDictionary()


def load(shell: InteractiveShell) -> None:
    """Put the magics, completion, display and configuration into a shell, once.

    Raises
    ------
    UsageError
        There is no IPython shell to put them into.
    """
    if getattr(shell, "register_magics", None) is None:
        raise UsageError(
            "%load_ext nbext works in IPython and in Jupyter. In a script use nbext.connect(), which returns a client."
        )
    if shell in _LOADED:
        return
    # Its parent is the shell, whose configuration holds the profile's and the command line's.
    configurable = Nbext(parent=shell)
    made = session.Session(shell, ConfiguredValues(configurable))
    magics = NbextMagics(shell, made)
    loaded = Loaded(made, magics, matcher.matcher(made), tables.install(shell, made.seen), configurable)
    # Somebody may have a %token of their own: it comes back when ours goes.
    for kind, names in magics.magics.items():
        for name in names:
            loaded.replaced[kind, name] = shell.magics_manager.magics[kind].get(name)
    shell.register_magics(magics)
    shell.Completer.custom_matchers.append(loaded.matcher)
    configurables: list[Any] = shell.configurables
    configurables.append(configurable)
    shell.input_transformers_cleanup.insert(0, with_a_body)
    _LOADED[shell] = loaded
    session.begin(made)
    print(banner.at_load(made.settings))


def unload(shell: InteractiveShell) -> None:
    """Take all of it out again, and put back what stood in its places."""
    # Twice, or never loaded, is no error: %reload_ext does not ask.
    loaded = _LOADED.pop(shell, None)
    if loaded is None:
        return
    for (kind, name), old in loaded.replaced.items():
        if old is None:
            shell.magics_manager.magics[kind].pop(name, None)
        else:
            shell.magics_manager.magics[kind][name] = old
    places: tuple[tuple[list[Any], Any], ...] = (
        (shell.Completer.custom_matchers, loaded.matcher),
        (cast("list[Any]", shell.configurables), loaded.configurable),
        (cast("list[Any]", shell.configurables), loaded.magics),  # IPython's Magics puts itself there
        (shell.input_transformers_cleanup, with_a_body),
    )
    for things, ours in places:
        if ours in things:
            things.remove(ours)
    shell.magics_manager.registry.pop(type(loaded.magics).__name__, None)
    loaded.formatters.remove()
    session.end(loaded.session)


def with_a_body(lines: list[str]) -> list[str]:
    """Give a cell of ours that is only its first line a blank second one.

    IPython refuses such a cell before the magic sees it, with an error that ``pytest --nbval-lax`` does
    not notice; the magic itself can say what is missing.
    """
    if lines and _EMPTY_CELL.match(lines[0]) and not "".join(lines[1:]):
        return [lines[0].rstrip("\n") + "\n", "\n"]
    return lines
