"""The magics: each parses its line, makes one call, and hands the result over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from nbext.errors import UsageError
from nbext.notebook import commands, grammars, running
from nbext.notebook.addresses import chain_and_addresses, wrong_form
from nbext.notebook.hand_over import hand_over, prepared
from nbext.notebook.options import Args, Grammar

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from nbext.notebook.session import Session

Magic = Callable[["NbextMagics", Args, str | None], Any]


def takes(grammar: Grammar, *, body: bool = False) -> Callable[[Magic], Any]:
    """Make a magic of a method: parse its line, show its help, refuse a body that it does not take."""

    def wrap(run: Magic) -> Any:
        def magic(self: NbextMagics, line: str, cell: str | None = None) -> Any:
            if cell is not None and cell.strip() and not body:
                raise wrong_form(grammar, line)
            args = grammar.parse(line)
            if args["help"]:
                print(grammar.help())
                return None
            return run(self, prepared(grammar, args), cell)

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
        return running.run_cell(self.session, args, cell)

    @takes(grammars.SEGMENT)
    def segment(self, args: Args, cell: str | None) -> Any:
        """Read or export a segment, or run the one on the line."""
        return running.run_line(self.session, args)

    @takes(grammars.TOKEN)
    def token(self, args: Args, cell: str | None) -> Any:
        """Read the metadata of tokens."""
        chain, addresses = chain_and_addresses(grammars.TOKEN, args, self.session.names)
        client = self.session.client
        strict, refresh = bool(args["strict"]), bool(args["refresh"])
        frame = self.session.call(lambda _: client.tokens(chain, addresses, strict=strict, refresh=refresh), "token")
        return hand_over(self.session, frame, args)

    @takes(grammars.NFT)
    def nft(self, args: Args, cell: str | None) -> Any:
        """Read the metadata of collections, or search them."""
        if args.words and args.words[0].text == "search":
            return self._search(args)
        chain, addresses = chain_and_addresses(grammars.NFT, args, self.session.names)
        client = self.session.client
        strict, refresh = bool(args["strict"]), bool(args["refresh"])
        frame = self.session.call(lambda _: client.nfts(chain, addresses, strict=strict, refresh=refresh), "nft")
        return hand_over(self.session, frame, args)

    @takes(grammars.NBEXT)
    def nbext(self, args: Args, cell: str | None) -> Any:
        """Run one command of the root magic."""
        return commands.run(self.session, args)

    def _search(self, args: Args) -> Any:
        term = " ".join(word.text for word in args.words[1:])
        if not term:
            raise UsageError("%nft search: a term is missing. Such as: %nft search punk --chain ethereum")
        client, chain = self.session.client, args["chain"] or self.session.settings["chain"]
        limit = 20 if args["limit"] is None else args["limit"]
        frame = self.session.call(
            lambda _: client.search_nfts(
                term, chain, type=args["type"] or "nft", limit=limit, offset=args["offset"] or 0
            ),
            "search",
        )
        return hand_over(self.session, frame, args)
