"""``%token`` and ``%nft``: metadata by address or symbol, and the search for collections."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import looks_like_address
from nbext.core.chains import chain_names
from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import visible
from nbext.core.wire import DEFAULT_HITS, MAX_HITS, SEARCH_TYPES
from nbext.errors import NotFound, UsageError
from nbext.notebook.line import Args, Grammar, Option, Word, value_of
from nbext.notebook.results.deliver import RESULT, deliver, put
from nbext.notebook.schema import Kind, help_line, name_of_chain

if TYPE_CHECKING:
    from nbext.notebook.session import Session


def _completes(kind: Kind, session: Session, done: list[str], typed: str) -> Mapping[str, str]:
    if not done:
        return {
            "search": help_line("command", "search by name or symbol"),
            **session.vocabulary.chains,
        }
    return session.vocabulary.symbols(kind, done[0], typed) if done[0] != "search" else {}


_SEARCH = (
    Option("--chain", "the chain to search (default: the setting `chain`)", "text", "CHAIN"),
    Option(
        "--limit",
        f"how many hits to return, 1 to {MAX_HITS} (default {DEFAULT_HITS})",
        "integer",
        "N",
    ),
    Option("--offset", "how many hits to skip", "integer", "N"),
)
_METADATA = (
    Option(
        "--strict", "fail on an address that the service does not know, instead of a row of nulls"
    ),
    Option("--refresh", "ask the service again, instead of its cached answer"),
    Option(
        "--card", "show one contract as a card: its metadata, and how many wallets hold how much"
    ),
)

TOKEN = Grammar(
    "%token",
    "%token CHAIN ADDRESS... [options]   or   %token search TERM [--chain CHAIN] [options]",
    "Read the metadata of ERC20 tokens: one row per address or symbol, in the order given.",
    (*_SEARCH, *_METADATA, *RESULT),
    (
        "%token ethereum USDC",
        "%token ethereum USDC UNI -o tokens",
        "%token ethereum {{tokens['address']}}",
    ),
    "{{expression}} inserts the addresses of a list or of a column. A word without braces is a symbol or an address.",
    completes=partial(_completes, "token"),
)

NFT = Grammar(
    "%nft",
    "%nft CHAIN ADDRESS... [options]   or   %nft search TERM [--chain CHAIN] [options]",
    "Read the metadata of NFT collections, or search them by name.",
    (
        *_SEARCH,
        Option("--type", "what to search (default nft)", "text", choices=SEARCH_TYPES),
        *_METADATA,
        *RESULT,
    ),
    (
        "%nft ethereum BAYC",
        '%nft search "bored ape"',
        "%nft search punk --chain ethereum --limit 5 -o found",
    ),
    completes=partial(_completes, "collection"),
)


def read_or_search(session: Session, args: Args) -> Any:
    """Run ``%token`` or ``%nft``: read metadata, or search collections by the words after ``search``."""
    is_search, magic = args.words and args.words[0].text == "search", args.grammar.magic
    # Only our own service is known to list what it has; beside another, what is missing is said below.
    lists = [_is_chain(word.text) for word in args.words] == [True] and session.connected().is_ours
    if not (is_search or lists):
        return _read(session, args)
    # `search ""` lists all that there is.
    if is_search and len(args.words) == 1:
        raise UsageError(
            f"{magic} search: a search term is missing. Example: {magic} search punk --chain ethereum"
        )
    if args["card"]:
        raise UsageError(
            "--card shows one contract: give its chain and address, such as %nft ethereum BAYC --card"
        )
    if given := args.given("strict", "refresh", *([] if is_search else ["chain"])):
        raise args.error(f"{given[0]} has no effect on a search. Leave it out.")
    if is_search:
        term = " ".join(str(value_of(word, args)) for word in args.words[1:])
        chain = args["chain"] or session.settings["chain"]
    else:
        term, chain = "", args.words[0].text
    kind = args["type"] or ("token" if args.grammar is TOKEN else "nft")
    limit = (DEFAULT_HITS if is_search else MAX_HITS) if args["limit"] is None else args["limit"]
    client, offset = session.connected(), args["offset"] or 0
    with session.bar("search"):
        frame = client.search_nfts(term, chain, type=kind, limit=limit, offset=offset)
    matched, end = Provenance.of(frame).matched, offset + len(frame)
    if matched is not None and end < matched:
        of = "" if args.grammar is TOKEN else f" --type {kind}"
        more = f'{magic} search "{visible(term)}" --chain {visible(chain)}{of} --limit {MAX_HITS} --offset {end}'
        print(f"{len(frame):,} of {matched:,}{'' if term else ', by holders'}; the next: {more}")
    return deliver(session, frame, args)


def _read(session: Session, args: Args) -> Any:
    chain, addresses = chain_and_addresses(args, args["chain"] or session.settings["chain"])
    is_one = len(addresses) == 1
    if given := args.given("chain", "type", "limit", "offset"):
        raise args.error(
            f"{given[0]} is for a search: {args.grammar.magic} search TERM {given[0]} ..."
        )
    if args["card"] and not is_one:
        raise args.error(f"--card shows one contract, and {len(addresses):,} are asked for.")
    client = session.connected()
    look_up = client.nfts if args.grammar is NFT else client.tokens
    # Of many, those that are found are an answer; of one alone, a row of nulls would hide the mistake.
    strict, refresh = bool(args["strict"]) or is_one, bool(args["refresh"])
    try:
        with session.bar(args.grammar.magic[1:]):
            frame = look_up(chain, addresses, strict=strict, refresh=refresh)
    except NotFound as error:
        if is_one:
            error.args = (f"{error}{_hint(args, chain, addresses[0])}",)
        raise
    if args["card"]:
        put(session, args, frame)
        # Not above: ipywidgets would make %load_ext slow.
        from nbext.notebook.forms.card import ContractCard

        return ContractCard(client, frame)
    return deliver(session, frame, args)


def _hint(args: Args, chain: str, name: str) -> str:
    """Return what to write instead of a symbol that the service does not know, where a variable has that name."""
    # A bare word is a symbol: UNI = [...] must not change what `%token ethereum UNI` means.
    value = args.names.get(name)
    is_column = hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1
    is_address = isinstance(value, str) and looks_like_address(value)
    if not (is_column or is_address or isinstance(value, list | tuple | set)):
        return ""
    magic = args.grammar.magic
    return f" For the addresses in your variable, use braces: {magic} {chain} {{{{{name}}}}}"


def chain_and_addresses(args: Args, usual: str) -> tuple[str, list[str]]:
    """Return the chain and the addresses (or symbols) of a line; the ``usual`` chain is named where it is missing."""
    grammar, example = args.grammar, f"Example: {args.grammar.examples[0]}"
    if not args.words:
        raise args.error(f"a chain and an address are missing. Usage: {grammar.usage}. {example}")
    for word in args.words:
        if word.kind == "json":
            raise args.error(f"write a Python value as {{{word.text}}}, not as {word.text}.", word)
    first, *rest = args.words
    # Commas between words are a habit from lists.
    is_chain = _is_chain(first.text.rstrip(","))
    # Chain and address are swapped so often that the mended line is worth building.
    if looks_like_address(first.text) or (rest and _is_chain(rest[0].text) and not is_chain):
        chain = rest[0].text if rest else visible(usual)
        mended = f"{grammar.magic} {chain} {first.text}"
        raise args.error(f"the chain goes before the address. Write: {mended}", first)
    is_search = difflib.get_close_matches(first.text.lower(), ["search"], cutoff=0.7)
    if rest and is_search and not is_chain:
        term = args.line[rest[0].column :].strip()
        mended = f"{grammar.magic} search {term}"
        raise args.error(f"unknown chain {first.text!r}. Did you mean: {mended}", first)
    if not rest and is_chain:
        raise args.error(f"an address or a symbol is missing after the chain. {example}", first)
    if not rest or (first.kind == "word" and "," in first.text and not is_chain):
        mended = f"{grammar.magic} {visible(usual)} {' '.join(word.text for word in args.words)}"
        raise args.error(f"the chain is missing. Write: {mended}", first)
    chain = str(value_of(first, args)).rstrip(",")
    # One list, whatever mixture of symbols, addresses and expressions was written: the order asked is kept.
    return chain, [one for word in rest for one in addresses_named(args, word)]


def addresses_named(args: Args, word: Word) -> list[str]:
    """Return the addresses or symbols of a word: its own, or those of an expression's text, list or column."""
    value = value_of(word, args)
    items = value if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, str):
            found = f"{word.text} contains {type(item).__name__} values, not addresses"
            raise args.error(f"{found}. An address is a string of 0x and 40 hex digits.", word)
    if not items:
        raise args.error(f"{word.text} is empty. Give at least one address.", word)
    return [
        one
        for item in items
        for one in (item.split(",") if word.kind == "word" else [item.rstrip(",")])
        if one
    ]


def _is_chain(text: str) -> bool:
    return name_of_chain(text) in chain_names()
