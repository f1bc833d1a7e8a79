"""Metadata of many contracts at once: a few at a time, in the order asked; one bad address spoils one row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from nbext.client.http.transport import Scope
from nbext.errors import (
    AmbiguousSymbol,
    ApiError,
    AuthError,
    NbextError,
    ProtocolError,
    QueryCancelled,
    RateLimited,
    ServerError,
    ValidationError,
)

POOL = 8
# What concerns one address. Anything else (the key, the network) would fail for the others as well.
_OWN = (ValidationError, AmbiguousSymbol, ApiError, ProtocolError)
_ALL = (AuthError, RateLimited, ServerError)

Record = dict[str, Any]


def wanted(addresses: str | Iterable[Any]) -> list[Any]:
    """Return the addresses as a list: one, a list, a Series, anything that can be gone through."""
    if isinstance(addresses, str):
        return [addresses]
    try:
        found = list(addresses)
    except TypeError:
        raise ValidationError.of(
            "address", "type", f"{type(addresses).__name__} is not allowed. Allowed: an address, or several."
        ) from None
    if not found:
        raise ValidationError.of("address", "length", "no address was given.")
    for one in found:
        # Each is looked up once, by itself as the key.
        if not isinstance(one, Hashable):
            raise ValidationError.of("address", "type", f"a {type(one).__name__} is not allowed among addresses.")
    return found


def many(ask: Callable[[Any, Scope], Record], names: Sequence[Any], *, strict: bool) -> list[Record | NbextError]:
    """Return what each name's look-up ends with, in order; a name that stands twice is asked for once.

    Raises
    ------
    NbextError
        The first error, where ``strict``, or where it would meet every address.
    """
    scope = Scope()
    distinct = list(dict.fromkeys(names))
    if len(distinct) == 1:
        found = {distinct[0]: _one(ask, distinct[0], scope, strict=strict)}
        return [found[name] for name in names]
    with ThreadPoolExecutor(POOL, thread_name_prefix="nbext-lookup") as pool:
        futures = {name: pool.submit(_one, ask, name, scope, strict=strict) for name in distinct}
        failure = _first_failure(futures.values(), scope, pool)
    if failure is not None:
        raise failure
    return [futures[name].result() for name in names]


def _first_failure(futures: Iterable[Future[Any]], scope: Scope, pool: ThreadPoolExecutor) -> NbextError | None:
    failure: NbextError | None = None
    try:
        for future in futures:
            future.result()
    except NbextError as error:
        failure = error
    except KeyboardInterrupt:
        failure = QueryCancelled("the look-ups were interrupted.")
    if failure is not None:
        pool.shutdown(wait=False, cancel_futures=True)
        # Those under way end now, and the pool's threads with them.
        scope.end()
    return failure


def _one(ask: Callable[[Any, Scope], Record], name: Any, scope: Scope, *, strict: bool) -> Record | NbextError:
    try:
        return ask(name, scope)
    except _OWN as error:
        if strict or isinstance(error, _ALL):
            raise
        return error
