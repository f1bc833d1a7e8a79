"""``%token`` and ``%nft``: metadata by address or symbol, and the search for collections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbext.errors import NbextError, NotFound, UsageError
from nbext.notebook.line import grammars
from nbext.notebook.line.options import Args, Grammar, value_of
from nbext.notebook.results.deliver import hand_over
from nbext.notebook.run.addresses import chain_and_addresses

if TYPE_CHECKING:
    from nbext.notebook.session import Session


def read(session: Session, grammar: Grammar, args: Args) -> Any:
    """Read the metadata of the addresses on the line, one row for each."""
    chain, addresses = chain_and_addresses(grammar, args, session.names)
    client = session.client
    look_up = client.tokens if grammar is grammars.TOKEN else client.nfts
    # Of many, those that are found are an answer; of one alone, a row of nulls would hide the mistake.
    strict, refresh = bool(args["strict"]) or len(addresses) == 1, bool(args["refresh"])
    missing: NotFound
    try:
        frame = session.call(lambda _: look_up(chain, addresses, strict=strict, refresh=refresh), grammar.magic[1:])
    except NotFound as error:
        missing = error
    else:
        return hand_over(session, frame, args)
    missing.args = (f"{missing}{_of_the_other_kind(session, grammar, chain, addresses)}",)
    raise missing


def search(session: Session, args: Args) -> Any:
    """Search collections, or tokens, by the words after ``search``."""
    term = " ".join(str(value_of(word, args, session.names)) for word in args.words[1:])
    if not term:
        raise UsageError("%nft search: a term is missing. Such as: %nft search punk --chain ethereum")
    client, chain = session.client, args["chain"] or session.settings["chain"]
    limit = 20 if args["limit"] is None else args["limit"]
    frame = session.call(
        lambda _: client.search_nfts(term, chain, type=args["type"] or "nft", limit=limit, offset=args["offset"] or 0),
        "search",
    )
    return hand_over(session, frame, args)


def _of_the_other_kind(session: Session, grammar: Grammar, chain: str, addresses: list[str]) -> str:
    """Say so where what is no token is a collection, or the other way round."""
    client = session.client
    # One more question, only after an error, and only to a service that is known to answer it.
    if not client.is_ours or len(addresses) != 1:
        return ""
    other, look_up = (grammars.NFT, client.nfts) if grammar is grammars.TOKEN else (grammars.TOKEN, client.tokens)
    try:
        look_up(chain, addresses, strict=True)
    except NbextError:
        return ""
    kind = "an NFT collection" if other is grammars.NFT else "a token"
    return f" It is {kind}: {other.magic} {chain} {addresses[0]}"
