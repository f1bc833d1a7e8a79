"""A real IPython shell in this process, in which nbext is loaded: for what needs no kernel's messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


@dataclass
class Ran:
    """What became of a cell: its value, what it printed, its error as it is shown."""

    value: Any
    printed: str
    error: BaseException | None

    @property
    def shown_error(self) -> str:
        """The error as the notebook shows it, or nothing."""
        if self.error is None:
            return ""
        assert hasattr(self.error, "_render_traceback_"), repr(self.error)
        return "\n".join(self.error._render_traceback_())


class Shell:
    """One shell; ``run`` runs a cell as a notebook would."""

    def __init__(self) -> None:
        self.ip = InteractiveShell.instance()

    def run(self, cell: str) -> Ran:
        with capture_output() as captured:
            result = self.ip.run_cell(cell)
        return Ran(result.result, captured.stdout, result.error_before_exec or result.error_in_exec)

    def value(self, cell: str) -> Any:
        ran = self.run(cell)
        assert ran.error is None, ran.shown_error
        return ran.value

    def error(self, cell: str) -> str:
        ran = self.run(cell)
        assert ran.error is not None, ran
        return ran.shown_error


@contextmanager
def loaded_shell() -> Iterator[Shell]:
    """The process's shell with nbext in it; afterwards nbext and the test's names are taken out again."""
    shell = Shell()
    names = set(shell.ip.user_ns)
    with capture_output():
        shell.ip.run_line_magic("load_ext", "nbext")
    try:
        yield shell
    finally:
        with capture_output():
            shell.ip.run_line_magic("unload_ext", "nbext")
        shell.ip.config.pop("Nbext", None)  # what a test's %config left
        for name in set(shell.ip.user_ns) - names:
            del shell.ip.user_ns[name]
