"""The magics: each parses its line, makes one call, and hands the result over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from nbext.notebook.line import grammars
from nbext.notebook.line.options import Args, Grammar
from nbext.notebook.results.deliver import prepared
from nbext.notebook.run import root, segment, token_nft
from nbext.notebook.run.addresses import wrong_form

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from nbext.notebook.session import Session

Magic = Callable[["NbextMagics", Args, str | None], Any]


def takes(grammar: Grammar, *, body: bool = False) -> Callable[[Magic], Any]:
    """Make a magic of a method: parse its line, show its help, refuse a body that it does not take."""

    def wrap(run: Magic) -> Any:
        def magic(self: NbextMagics, line: str, cell: str | None = None) -> Any:
            if cell is not None and cell.strip() and not body:
                raise wrong_form(grammar, line, cell)
            args = grammar.parse(line)
            if args["help"]:
                print(grammar.help())
                return None
            return run(self, prepared(grammar, args, self.session.names), cell)

        magic.__name__, magic.__doc__ = run.__name__, grammar.help()
        # IPython's own {x} and $x stay as they are: a pasted on-chain name must never run code.
        return no_var_expand(line_cell_magic(magic))

    return wrap


@magics_class
class NbextMagics(Magics):
    """The magics of one shell, over its session."""

    def __init__(self, shell: InteractiveShell, session: Session) -> None:
        super().__init__(shell)
        self.session = session

    @takes(grammars.SEGMENT_QUERY, body=True)
    def segment_query(self, args: Args, cell: str | None) -> Any:
        """Run the segment whose filters are the cell."""
        return segment.run_cell(self.session, args, cell)

    @takes(grammars.SEGMENT)
    def segment(self, args: Args, cell: str | None) -> Any:
        """Read or export a segment, or run the one on the line."""
        return segment.run_line(self.session, args)

    @takes(grammars.TOKEN)
    def token(self, args: Args, cell: str | None) -> Any:
        """Read the metadata of tokens."""
        return token_nft.read(self.session, grammars.TOKEN, args)

    @takes(grammars.NFT)
    def nft(self, args: Args, cell: str | None) -> Any:
        """Read the metadata of collections, or search them."""
        if args.words and args.words[0].text == "search":
            return token_nft.search(self.session, args)
        return token_nft.read(self.session, grammars.NFT, args)

    @takes(grammars.NBEXT)
    def nbext(self, args: Args, cell: str | None) -> Any:
        """Run one command of the root magic."""
        return root.run(self.session, args)
