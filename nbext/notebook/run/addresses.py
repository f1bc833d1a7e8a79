"""The words of ``%token`` and ``%nft``: a chain, and addresses that may come out of Python variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nbext.core.addresses import looks_like_address
from nbext.core.chains import chain_of
from nbext.core.untrusted_text import visible
from nbext.errors import UsageError, ValidationError
from nbext.notebook.line.options import Args, Grammar, value_of


def chain_and_addresses(grammar: Grammar, args: Args, names: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the chain and the addresses (or symbols) of a line, in the order written.

    Raises
    ------
    UsageError
        The chain or the addresses are missing, they stand the wrong way round, or a variable holds
        something else than texts.
    """
    if not args.words:
        raise grammar.error(args, f"a chain and an address belong here: {grammar.usage}. {_example(grammar)}")
    first, *rest = args.words
    # The two are swapped so often that the mended line is worth building.
    if looks_like_address(first.text) or (rest and _is_chain(rest[0].text) and not _is_chain(first.text)):
        chain = rest[0].text if rest else "ethereum"
        raise grammar.error(
            args, f"the chain stands first, then the address: {grammar.magic} {chain} {first.text}", first
        )
    if not rest:
        if _is_chain(first.text):
            raise grammar.error(args, f"an address or a symbol is missing after the chain. {_example(grammar)}", first)
        raise grammar.error(
            args, f"the chain is missing, it stands first: {grammar.magic} ethereum {first.text}", first
        )
    chain = str(value_of(first, args, names))
    # One list, whatever mixture of symbols, addresses and variables was written: the order asked is kept.
    addresses: list[str] = []
    for word in rest:
        if word.kind == "python" or (word.kind == "word" and _holds_addresses(names.get(word.text))):
            value = value_of(replace(word, kind="python"), args, names)
        else:
            value = word.text
        addresses += _texts(grammar, args, word, value)
    return chain, addresses


def _texts(grammar: Grammar, args: Args, word: Any, value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, str):
            raise grammar.error(
                args,
                f"{word.text} holds {type(item).__name__}, not addresses: they are texts, 0x and 40 hex digits.",
                word,
            )
    if not items:
        raise grammar.error(args, f"{word.text} is empty: there is no address to ask for.", word)
    # Commas between addresses are a habit from lists.
    return [item.rstrip(",") for item in items]


def _holds_addresses(value: Any) -> bool:
    """Say whether a variable stands for addresses: a list or a column does, a text only if it is an address."""
    # USDC = "..." must not take the symbol USDC away, so a text counts only where it can be nothing else.
    if isinstance(value, str):
        return looks_like_address(value)
    return isinstance(value, list | tuple | set) or (hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1)


def _is_chain(text: str) -> bool:
    try:
        chain_of(text)
    except ValidationError:
        return False
    return True


def _example(grammar: Grammar) -> str:
    return f"Such as: {grammar.examples[0]}"


def wrong_form(grammar: Grammar, line: str, cell: str) -> UsageError:
    """Build the error of a line magic that was written with two percent signs."""
    return UsageError(
        f"%{grammar.magic} is not a cell magic: everything stands on its line. Write one percent sign: "
        f"{grammar.magic} {visible(' '.join([*line.split(), *cell.split()]))}"
    )
