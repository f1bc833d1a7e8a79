"""``%token`` and ``%nft``: metadata by address or symbol, and the search for collections."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import looks_like_address
from nbext.core.chains import chain_of
from nbext.errors import NbextError, NotFound, UsageError, ValidationError
from nbext.notebook.line import grammars
from nbext.notebook.line.options import Args, Grammar, Word, value_of
from nbext.notebook.results.deliver import deliver

if TYPE_CHECKING:
    from nbext.notebook.session import Session


def read_tokens(session: Session, args: Args, cell: str | None) -> Any:
    """Run ``%token``: read the metadata of ERC20 tokens."""
    return _read(session, grammars.TOKEN, args)


def read_or_search_nfts(session: Session, args: Args, cell: str | None) -> Any:
    """Run ``%nft``: read the metadata of collections, or search them by the words after ``search``."""
    if not args.words or args.words[0].text != "search":
        return _read(session, grammars.NFT, args)
    term = " ".join(str(value_of(word, args, session.names)) for word in args.words[1:])
    if not term:
        raise UsageError("%nft search: a search term is missing. Example: %nft search punk --chain ethereum")
    client, chain = session.connected(), args["chain"] or session.settings["chain"]
    limit = 20 if args["limit"] is None else args["limit"]
    with session.bar("search"):
        frame = client.search_nfts(term, chain, type=args["type"] or "nft", limit=limit, offset=args["offset"] or 0)
    return deliver(session, frame, args)


def _read(session: Session, grammar: Grammar, args: Args) -> Any:
    chain, addresses = chain_and_addresses(grammar, args, session.names)
    client = session.connected()
    look_up = client.tokens if grammar is grammars.TOKEN else client.nfts
    # Of many, those that are found are an answer; of one alone, a row of nulls would hide the mistake.
    strict, refresh = bool(args["strict"]) or len(addresses) == 1, bool(args["refresh"])
    try:
        with session.bar(grammar.magic[1:]):
            frame = look_up(chain, addresses, strict=strict, refresh=refresh)
    except NotFound as error:
        # One more question, only after an error, and only to a service that is known to answer it.
        if client.is_ours and len(addresses) == 1:
            error.args = (f"{error}{_of_the_other_kind(session, grammar, chain, addresses)}",)
        raise
    return deliver(session, frame, args)


def _of_the_other_kind(session: Session, grammar: Grammar, chain: str, addresses: list[str]) -> str:
    """Return a hint where what is not a token is a collection, or the other way round."""
    client = session.connected()
    other, look_up = (grammars.NFT, client.nfts) if grammar is grammars.TOKEN else (grammars.TOKEN, client.tokens)
    try:
        look_up(chain, addresses, strict=True)
    except NbextError:
        return ""
    kind = "an NFT collection" if other is grammars.NFT else "a token"
    return f" It is {kind}. Use: {other.magic} {chain} {addresses[0]}"


def chain_and_addresses(grammar: Grammar, args: Args, names: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the chain and the addresses (or symbols) of a line, in the order written."""
    example = f"Example: {grammar.examples[0]}"
    if not args.words:
        raise grammar.error(args, f"a chain and an address are missing. Usage: {grammar.usage}. {example}")
    first, *rest = args.words
    _check_order(grammar, args, first, rest)
    if not rest:
        if _is_chain(first.text):
            raise grammar.error(args, f"an address or a symbol is missing after the chain. {example}", first)
        raise grammar.error(args, f"the chain is missing. Write: {grammar.magic} ethereum {first.text}", first)
    chain = str(value_of(first, args, names))
    # One list, whatever mixture of symbols, addresses and variables was written: the order asked is kept.
    addresses: list[str] = []
    for word in rest:
        if word.kind == "python" or (word.kind == "word" and _has_addresses(names.get(word.text))):
            value = value_of(replace(word, kind="python"), args, names)
        else:
            value = word.text
        addresses += _addresses_of(grammar, args, word, value)
    return chain, addresses


def _check_order(grammar: Grammar, args: Args, first: Word, rest: list[Word]) -> None:
    # Chain and address are swapped so often that the mended line is worth building.
    if looks_like_address(first.text) or (rest and _is_chain(rest[0].text) and not _is_chain(first.text)):
        chain = rest[0].text if rest else "ethereum"
        mended = f"{grammar.magic} {chain} {first.text}"
        raise grammar.error(args, f"the chain goes before the address. Write: {mended}", first)
    is_search = difflib.get_close_matches(first.text.lower(), ["search"], cutoff=0.7)
    if grammar is grammars.NFT and rest and is_search and not _is_chain(first.text):
        term = args.line[rest[0].column :].strip()
        raise grammar.error(args, f"unknown chain {first.text!r}. Did you mean: %nft search {term}", first)


def _addresses_of(grammar: Grammar, args: Args, word: Word, value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, str):
            found = f"{word.text} contains {type(item).__name__} values, not addresses"
            raise grammar.error(args, f"{found}. An address is a string of 0x and 40 hex digits.", word)
    if not items:
        raise grammar.error(args, f"{word.text} is empty. Give at least one address.", word)
    # Commas between addresses are a habit from lists.
    return [item.rstrip(",") for item in items]


def _has_addresses(value: Any) -> bool:
    """Return whether a variable means addresses: a list or a column does, a string only if it is an address."""
    # USDC = "..." must not take the symbol USDC away, so a string counts only where it can be nothing else.
    if isinstance(value, str):
        return looks_like_address(value)
    return isinstance(value, list | tuple | set) or (hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1)


def _is_chain(text: str) -> bool:
    try:
        chain_of(text)
    except ValidationError:
        return False
    return True
