"""The magics: each parses its line, and hands it to the function in `nbext.notebook.run` that does the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from nbext.core.untrusted_text import visible
from nbext.errors import UsageError
from nbext.notebook.line import grammars
from nbext.notebook.line.options import Args, Grammar
from nbext.notebook.results.deliver import prepare
from nbext.notebook.run import root, segment, token_nft

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from nbext.notebook.session import Session


def _magic(grammar: Grammar, run: Callable[[Session, Args, str | None], Any], *, body: bool = False) -> Any:
    """Return a magic that parses its line, shows its help, refuses a body that it does not take, and runs."""

    def magic(self: NbextMagics, line: str, cell: str | None = None) -> Any:
        if cell is not None and cell.strip() and not body:
            raise UsageError(
                f"%{grammar.magic} is not a cell magic. Write it on one line, with one percent sign: "
                f"{grammar.magic} {visible(' '.join([*line.split(), *cell.split()]))}"
            )
        args = grammar.parse(line)
        # Before the options are checked: who asks for help may have written them wrong.
        if args["help"]:
            print(grammar.help())
            return None
        prepare(grammar, args, self.session.names)
        return run(self.session, args, cell)

    magic.__name__, magic.__doc__ = grammar.magic.lstrip("%"), grammar.help()
    # IPython's own {x} and $x stay as they are: a pasted on-chain name must never run code.
    return no_var_expand(line_cell_magic(magic))


@magics_class
class NbextMagics(Magics):
    """The magics of one shell, over its session."""

    def __init__(self, shell: InteractiveShell, session: Session) -> None:
        super().__init__(shell)
        self.session = session

    segment_query = _magic(grammars.SEGMENT_QUERY, segment.run_cell, body=True)
    segment = _magic(grammars.SEGMENT, segment.run_line)
    token = _magic(grammars.TOKEN, token_nft.read_tokens)
    nft = _magic(grammars.NFT, token_nft.read_or_search_nfts)
    nbext = _magic(grammars.NBEXT, root.run)
