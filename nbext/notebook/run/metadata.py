"""``%token`` and ``%nft``: metadata by address or symbol, and the search for collections."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import looks_like_address
from nbext.core.chains import chain_of
from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import visible
from nbext.core.wire import SEARCH_TYPES
from nbext.errors import NbextError, NotFound, UsageError, ValidationError
from nbext.notebook.line.options import Args, Grammar, Option, Word, value_of
from nbext.notebook.results.deliver import RESULT, deliver, forms, put
from nbext.notebook.results.tables import failures_in_words

if TYPE_CHECKING:
    from nbext.notebook.session import Session

# The most that one search returns.
_LISTED = 100


def _tokens(session: Session, done: list[str], typed: str) -> Iterable[str]:
    vocabulary = session.vocabulary
    return vocabulary.symbols("token", done[0], typed) if done else vocabulary.chains


def _collections(session: Session, done: list[str], typed: str) -> Iterable[str]:
    if not done:
        return ["search", *session.vocabulary.chains]
    return session.vocabulary.symbols("collection", done[0], typed) if done[0] != "search" else ()


_METADATA = (
    Option(
        ("--strict",),
        "fail on an address that the service does not know, instead of a row of nulls",
    ),
    Option(("--refresh",), "ask the service again, instead of its cached answer"),
    Option(
        ("--card",), "show one contract as a card: its metadata, and how many wallets hold how much"
    ),
)

TOKEN = Grammar(
    "%token",
    "Read the metadata of ERC20 tokens: one row per address or symbol, in the order given.",
    "%token CHAIN ADDRESS... [options]",
    (*_METADATA, *RESULT),
    (
        "%token ethereum USDC",
        "%token ethereum USDC UNI -o tokens",
        "%token ethereum {{tokens['address']}}",
    ),
    "{{expression}} inserts the addresses of a list or of a column. A word without braces is a symbol or an address.",
    completes=_tokens,
)

NFT = Grammar(
    "%nft",
    "Read the metadata of NFT collections, or search them by name.",
    "%nft CHAIN ADDRESS... [options]   or   %nft search TERM [--chain CHAIN] [options]",
    (
        Option(("--chain",), "the chain to search (default: the setting `chain`)", "text", "CHAIN"),
        Option(("--type",), "what to search (default nft)", "text", choices=SEARCH_TYPES),
        Option(("--limit",), "how many hits to return, 1 to 100 (default 20)", "integer", "N"),
        Option(("--offset",), "how many hits to skip", "integer", "N"),
        *_METADATA,
        *RESULT,
    ),
    (
        "%nft ethereum BAYC",
        '%nft search "bored ape"',
        "%nft search punk --chain ethereum --limit 5 -o found",
    ),
    completes=_collections,
)


def read_tokens(session: Session, args: Args) -> Any:
    """Run ``%token``: read the metadata of ERC20 tokens."""
    return _read(session, TOKEN, args)


def read_or_search_nfts(session: Session, args: Args) -> Any:
    """Run ``%nft``: read the metadata of collections, or search them by the words after ``search``."""
    if not args.words or args.words[0].text != "search":
        return _read(session, NFT, args)
    # `search ""` lists all that there is.
    if len(args.words) == 1:
        raise UsageError(
            "%nft search: a search term is missing. Example: %nft search punk --chain ethereum"
        )
    term = " ".join(str(value_of(word, args)) for word in args.words[1:])
    limit = 20 if args["limit"] is None else args["limit"]
    chain, kind = args["chain"] or session.settings["chain"], args["type"] or "nft"
    return _search(session, args, term, chain=chain, kind=kind, limit=limit)


def _search(session: Session, args: Args, term: str, *, chain: str, kind: str, limit: int) -> Any:
    """Search contracts of a kind, and say how many others there are."""
    if args["card"]:
        raise UsageError(
            "--card shows one contract: give its chain and address, such as %nft ethereum BAYC --card"
        )
    client, offset = session.connected(), args["offset"] or 0
    with session.bar("search"):
        frame = client.search_nfts(term, chain, type=kind, limit=limit, offset=offset)
    matched, end = Provenance.of(frame).matched, offset + len(frame)
    if isinstance(matched, int) and end < matched:
        more = f'%nft search "{visible(term)}" --chain {visible(chain)} --type {kind} --limit {_LISTED} --offset {end}'
        print(f"{len(frame):,} of {matched:,}{'' if term else ', by holders'}; the next: {more}")
    return deliver(session, frame, args)


def _read(session: Session, grammar: Grammar, args: Args) -> Any:
    # Only our own service is known to list what it has; beside another, what is missing is said below.
    if [_is_chain(word.text) for word in args.words] == [True] and session.connected().is_ours:
        kind = "token" if grammar is TOKEN else "nft"
        return _search(session, args, "", chain=args.words[0].text, kind=kind, limit=_LISTED)
    chain, addresses = chain_and_addresses(grammar, args, session.settings["chain"])
    if args["card"] and len(addresses) != 1:
        raise grammar.error(
            args, f"--card shows one contract, and {len(addresses):,} are asked for."
        )
    client = session.connected()
    look_up = client.tokens if grammar is TOKEN else client.nfts
    # Of many, those that are found are an answer; of one alone, a row of nulls would hide the mistake.
    strict, refresh = bool(args["strict"]) or len(addresses) == 1, bool(args["refresh"])
    try:
        with session.bar(grammar.magic[1:]):
            frame = look_up(chain, addresses, strict=strict, refresh=refresh)
    except NotFound as error:
        if len(addresses) == 1:
            error.args = (f"{error}{_hint(session, grammar, args, chain, addresses)}",)
        raise
    if args["card"]:
        put(session, args, frame)
        return forms().show_contract(frame, is_nft=grammar is NFT, client=client)
    if failures := failures_in_words(frame):
        goes_elsewhere = args["out"] is not None or args["to"] is not None
        if goes_elsewhere or (args["as"] or session.settings["frame"]) != "pandas":
            print(failures)
        else:
            session.untold.append((frame, failures))
    return deliver(session, frame, args)


def _hint(session: Session, grammar: Grammar, args: Args, chain: str, addresses: list[str]) -> str:
    """Return what to write instead of a symbol that the service does not know."""
    # A bare word is a symbol: UNI = [...] must not change what `%token ethereum UNI` means.
    if _has_addresses(args.names.get(addresses[0])):
        name = addresses[0]
        return f" For the addresses in your variable, use braces: {grammar.magic} {chain} {{{{{name}}}}}"
    # One more question, only after an error, and only to a service that is known to answer it.
    return (
        _of_the_other_kind(session, grammar, chain, addresses)
        if session.connected().is_ours
        else ""
    )


def _of_the_other_kind(session: Session, grammar: Grammar, chain: str, addresses: list[str]) -> str:
    """Return a hint where what is not a token is a collection, or the other way round."""
    client = session.connected()
    other, look_up = (NFT, client.nfts) if grammar is TOKEN else (TOKEN, client.tokens)
    try:
        look_up(chain, addresses, strict=True)
    except NbextError:
        # Our service looks symbols up, and a text with a space is a name.
        return f' Search by name: %nft search "{addresses[0]}"' if " " in addresses[0] else ""
    kind = "an NFT collection" if other is NFT else "a token"
    return f" It is {kind}. Use: {other.magic} {chain} {addresses[0]}"


def chain_and_addresses(grammar: Grammar, args: Args, usual: str) -> tuple[str, list[str]]:
    """Return the chain and the addresses (or symbols) of a line; the ``usual`` chain is named where it is missing."""
    example = f"Example: {grammar.examples[0]}"
    if not args.words:
        raise grammar.error(
            args, f"a chain and an address are missing. Usage: {grammar.usage}. {example}"
        )
    for word in args.words:
        if word.kind == "json":
            raise grammar.error(
                args, f"write a Python value as {{{word.text}}}, not as {word.text}.", word
            )
    first, *rest = args.words
    _check_order(grammar, args, first, rest, usual)
    if not rest:
        if _is_chain(first.text):
            raise grammar.error(
                args, f"an address or a symbol is missing after the chain. {example}", first
            )
        raise grammar.error(
            args,
            f"the chain is missing. Write: {grammar.magic} {visible(usual)} {first.text}",
            first,
        )
    chain = str(value_of(first, args))
    # One list, whatever mixture of symbols, addresses and expressions was written: the order asked is kept.
    return chain, [
        one for word in rest for one in _addresses_of(grammar, args, word, value_of(word, args))
    ]


def _check_order(grammar: Grammar, args: Args, first: Word, rest: list[Word], usual: str) -> None:
    # Chain and address are swapped so often that the mended line is worth building.
    if looks_like_address(first.text) or (
        rest and _is_chain(rest[0].text) and not _is_chain(first.text)
    ):
        chain = rest[0].text if rest else visible(usual)
        mended = f"{grammar.magic} {chain} {first.text}"
        raise grammar.error(args, f"the chain goes before the address. Write: {mended}", first)
    is_search = difflib.get_close_matches(first.text.lower(), ["search"], cutoff=0.7)
    if grammar is NFT and rest and is_search and not _is_chain(first.text):
        term = args.line[rest[0].column :].strip()
        raise grammar.error(
            args, f"unknown chain {first.text!r}. Did you mean: %nft search {term}", first
        )


def _addresses_of(grammar: Grammar, args: Args, word: Word, value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, str):
            found = f"{word.text} contains {type(item).__name__} values, not addresses"
            raise grammar.error(
                args, f"{found}. An address is a string of 0x and 40 hex digits.", word
            )
    if not items:
        raise grammar.error(args, f"{word.text} is empty. Give at least one address.", word)
    # Commas between addresses are a habit from lists.
    return [
        one
        for item in items
        for one in (item.split(",") if word.kind == "word" else [item.rstrip(",")])
        if one
    ]


def _has_addresses(value: Any) -> bool:
    """Return whether a variable holds addresses: a list or a column does, a string if it is one."""
    if isinstance(value, str):
        return looks_like_address(value)
    return isinstance(value, list | tuple | set) or (
        hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1
    )


def _is_chain(text: str) -> bool:
    try:
        chain_of(text)
    except ValidationError:
        return False
    return True
