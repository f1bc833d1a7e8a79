"""A payout: a segment's rows divided into claims, written to a folder, and verified by asking the request again."""

from __future__ import annotations

import argparse
import filecmp
import os
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nbext.client import frames
from nbext.client.addresses import AddressColumn, NotAddresses, texts_of
from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.atomic_files import whole_folder
from nbext.core.provenance import Provenance, warned
from nbext.core.rules import is_whole
from nbext.core.strict_json import to_json
from nbext.core.uint256 import MAX_UINT256, TooManyDecimals, to_raw, units_text
from nbext.core.untrusted_text import quoted, shown, visible
from nbext.embedded import connect
from nbext.errors import DiskFull, StorageError, ValidationError
from nbext.payouts.folder import CLAIMS, FORMAT, MANIFEST, Claims, read_manifest, write_files

if TYPE_CHECKING:
    from nbext.client import Client

# Differences and wallets that are listed; the others are counted.
_MOST = 20
_WHOLE = re.compile(r"[0-9]{1,100}")
_AMOUNT = re.compile(r"[0-9]{1,78}(\.[0-9]{1,78})?")


@warned
def payout(
    rows: pd.DataFrame,
    total: str | int,
    of: str | None = None,
    rule: str = "equal",
    *,
    cap: str | int | None = None,
    floor: str | int = 0,
    at_least: str | int = 0,
    pay_contracts: bool = False,
    to: str | os.PathLike[str] = "payout",
    client: Client | None = None,
) -> pd.DataFrame:
    """Divide a total among the wallets of a segment, and write the folder of the payout.

    The sum is exact to the smallest unit: what is left over goes to those with the largest remainders, of equals to the
    lowest address. The zero address and 0x...dead are left out, and so are wallets that the service knows to be
    contracts.

    ``manifest.json`` names the block of the answer, and the fingerprint of its data. Its ``block_hash`` says of which
    branch of the chain that block is; it is null where the service's data does not have it.

    Parameters
    ----------
    rows
        All rows of a segment, as `nbext.Client.execute_segment` returns them. Any other table with a column of
        addresses is taken too; then there is no request that ``nbext payout verify`` could ask again.
    total, cap, floor, at_least
        What all get together; what each gets at most and at least; and who is left out: wallets whose share of the
        total would be less. In the token's unit, as text or integer; without ``of`` in the smallest unit.
    of
        The token: its symbol or address on the rows' chain. Without it no files for Safe are written.
    rule
        ``equal``; ``proportional``, by the only column of amounts (``..._raw`` or ``..._count``); or the name of a
        column of whole numbers. ``UNI_balance`` is taken exactly, from ``UNI_balance_raw``.
    pay_contracts
        Pay wallets that are known to be contracts, too, such as multisigs.
    to
        The folder, which must not exist yet.

    Returns
    -------
    pandas.DataFrame
        One row per claim, ordered by address, as ``claims.csv`` has them. ``address`` str; ``amount`` float64 in the
        token's unit, where it is known; ``amount_raw`` exact, in the smallest unit.

    Raises
    ------
    ValidationError
        The rows are not all of their segment, an address is none or there twice, a weight is not a whole number, the
        total cannot be divided so, or the folder exists. Nothing was written.
    StorageError
        The folder cannot be written.
    """
    folder, client = Path(to).expanduser(), client or connect()
    if os.path.lexists(folder):
        raise _refused("/to", f"{visible(folder)} exists. Name a folder that does not exist yet.")
    # A text, such as "no", would count as true.
    if pay_contracts not in (True, False):
        raise _refused("/pay_contracts", f"{shown(pay_contracts)} is neither True nor False.")
    source, notes = _source(rows, rule, client)
    token = None if of is None else _token(client, source["chain"], of)
    unit = token["decimals"] if token else 0
    amounts = {"total": total, "cap": cap, "floor": floor, "at_least": at_least}
    raw = {name: _raw(one, name, unit) for name, one in amounts.items() if one is not None}
    weights = _weighted(rows, rule)
    contracts, said = _contracts(list(weights), client, source["chain"], paid=pay_contracts)
    reasons = dict.fromkeys(contracts, "contract") | dict.fromkeys(BURN_ADDRESSES, "burn")
    able = {one: weight for one, weight in weights.items() if one not in reasons}
    claims = Claims(shares(able, **raw, decimals=unit))
    left_out = {one: reasons.get(one, "at_least") for one in weights if one not in claims.amounts}
    manifest = {
        "format": FORMAT,
        **source,
        "token": token,
        "terms": {
            **amounts,
            "of": token and token["address"],
            "rule": rule,
            "pay_contracts": bool(pay_contracts),
        },
        **claims.outcome(),
        "notes": [*notes, said],
    }
    try:
        with whole_folder(folder) as building:
            write_files(building, claims, manifest, left_out)
    except OSError as error:
        message = f"{visible(folder)} cannot be written: {error.strerror}."
        raise DiskFull.where(error, message) from None
    return _table(claims, folder, manifest)


def shares(
    weights: Mapping[str, int],
    total: int,
    cap: int | None = None,
    floor: int = 0,
    at_least: int = 0,
    *,
    decimals: int = 0,
) -> dict[str, int]:
    """Return the amount of each wallet: in proportion, but for those at the cap or at the floor.

    Wallets whose share, before any cap and floor, is less than ``at_least`` are left out. Units that are left over go
    to those of whom most of a unit was cut off; of equals to the first. All are in the smallest unit; messages have
    them with the token's ``decimals``.

    Raises
    ------
    ValidationError
        The total cannot be divided so, or someone would get nothing.
    """
    if least := at_least * sum(weights.values()):
        weights = {one: part for one, part in weights.items() if part * total >= least}
    most, count = total if cap is None else cap, len(weights)
    each = (units_text(one, decimals) for one in (floor, most, total))
    detail = "{:,} wallets with {} to {} each do not get {} together.".format(count, *each)
    impossible = ValidationError.of("/total", "range", detail)
    if not count or floor > most or floor * count > total:
        raise impossible
    # Of Python's integers: exact, however large.
    given, amounts = np.array(list(weights.values()), object), np.full(count, floor, object)
    left, free = total, np.arange(count)
    while True:
        rest = given[free]
        whole = int(rest.sum()) or 1
        parts = rest * left
        over, under = parts - most * whole, floor * whole - parts
        high, low = over > 0, under > 0
        if not (high.any() or low.any()):
            break
        # Who is above the cap by more than others lack to the floor stays above it, whatever those are given.
        is_over = over[high].sum() >= under[low].sum()
        bound, amount = (high, most) if is_over else (low, floor)
        amounts[free[bound]] = amount
        left -= amount * int(bound.sum())
        free = free[~bound]
    if left and not rest.any():
        raise impossible
    amounts[free] = parts // whole
    remainders = (parts % whole).tolist()
    # Sorting is stable: of equal remainders the first ones come first.
    ranked = sorted(range(len(free)), key=remainders.__getitem__, reverse=True)
    amounts[free[ranked[: total - amounts.sum()]]] += 1
    if empty := count - np.count_nonzero(amounts):
        detail = f"{empty:,} of {count:,} wallets would get less than one smallest unit, which is nothing."
        detail += " Leave them out with at_least, or give a floor."
        raise ValidationError.of("/rows", "range", detail)
    return dict(zip(weights, amounts.tolist(), strict=True))


def verify_payout(folder: str | os.PathLike[str], client: Client | None = None) -> str:
    """Ask the request of a payout again, make the payout of its answer, and compare the two folders.

    Where the data has changed since, the request is asked as of the payout's block, which must have the hash that it
    had, where both are known.

    Returns
    -------
    str
        A line for people, that all is as it should be.

    Raises
    ------
    StorageError
        An amount, the sum, a root or a file differs, and the message has which; or nothing can be asked again.
    ValidationError
        The payout cannot be made again, such as from a column that the service does not have.
    """
    folder, client = Path(folder), client or connect()
    said, found = read_manifest(folder), Claims.read(folder).amounts
    try:
        request, terms, at, data = (said[one] for one in ("request", "terms", "as_of", "data"))
        # The client would read a file whose name a stranger wrote into the request.
        if request is None or b'"@' in to_json(request):
            raise StorageError(f"{visible(folder)} has no request that can be asked again.")
        # And nothing else, such as a file to write.
        request = {name: request[name] for name in ("filters", "operator", "limit")}
        again = client.execute_segment(**request)
        # A stranger's service may say the time of its answer alone.
        block = (at or {}).get("block")
        if block is not None and (Provenance.of(again).as_of or {}).get("block") != block:
            request["filters"] = {"asOf": block, **request["filters"]}
            again = client.execute_segment(**request)
        with TemporaryDirectory() as scratch:
            other = Path(scratch) / "payout"
            payout(again, **terms, to=other, client=client)
            fresh, claims = read_manifest(other), Claims.read(other).amounts
            files = _unlike(folder, other)
    except (AttributeError, KeyError, TypeError) as error:
        raise StorageError(f"{visible(folder / MANIFEST)} is damaged: {error!r}.") from None
    # Other data, and each answer of another service, have other ids.
    is_other = client.data != data or data is None
    free = ["notes", *["request", "id", "data"] * is_other]
    moved = " The data has changed since, and was asked as of then"
    free += ["as_of"] * (is_other and block is None)
    if None in (said.get("block_hash"), fresh["block_hash"]):
        free += ["block_hash"] * is_other
        moved += ", by the number of the block: no answer has its hash"
    elif said["block_hash"] != fresh["block_hash"]:
        moved += ": that block has another hash now, as the chain was reorganised"
    fresh |= {name: said.get(name) for name in free}
    moved = f"{moved}." * (client.data != data)
    differences = [*_changes(MANIFEST, said, fresh), *files, *_changes(CLAIMS, found, claims)]
    if differences:
        first = f"{visible(folder)} has {len(differences):,} differences from what its request gives.{moved}"
        raise StorageError("\n  ".join([first, *differences[:_MOST]]))
    return f"{visible(folder)}: {len(claims):,} claims, their sum and their root are what the request gives.{moved}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what ``nbext payout`` takes."""
    parser.add_argument("action", choices=("verify",), help="ask the request again, and compare")
    parser.add_argument("folder", help="the folder that nbext.payout wrote")


def run(args: argparse.Namespace) -> int:
    """Verify a folder, and print that it is as it should be."""
    print(verify_payout(args.folder))
    return 0


def _source(rows: pd.DataFrame, rule: str, client: Client) -> tuple[dict[str, Any], list[str]]:
    """Return which request gives the rows, and notes; ValidationError where they are not all that it gives now."""
    about = Provenance.of(rows)
    notes = ["The rows are not of a segment: `nbext payout verify` has no request to ask again."]
    request: dict[str, Any] | None = None
    if about.filters and about.operation in ("execute_segment", "export"):
        request = {
            "filters": about.filters,
            "operator": about.operator or "AND",
            "limit": about.limit or "all",
        }
        if client.is_ours:
            # With what symbols and the end of the data stand for: addresses, amounts and blocks.
            said = client.explain(**request)["canonical"]
            request = {name: said[name] for name in request}
        again = client.execute_segment(**request)
        about = Provenance.of(again)
        notes, cut = about.notes(), about.cut("")
        if cut and "orderBy" not in request["filters"]:
            raise _refused(
                "/rows",
                f'{cut}. A payout needs them all (limit="all", on a line --all), or those of a --top N.',
            )
        if cut:
            notes.append(f"{cut}, the first by {request['filters']['orderBy']}")
        # A column that was computed here cannot be asked for.
        asked = "equal" if rule in rows and rule not in again else rule
        if _weighted(rows, asked) != _weighted(again, asked):
            raise _refused(
                "/rows",
                f"These {len(rows):,} rows are not the {len(again):,} that their segment returns now. Run it again; "
                'to pay a part of its wallets, make a segment of them: {"wallet": {"in": {{rows}}}}.',
            )
        if asked != rule:
            notes.append(
                f"The service has no {quoted(rule)}: `nbext payout verify` cannot check amounts."
            )
    as_of = dict(about.as_of or {})
    return {
        "request": request,
        "id": about.segment_id,
        "chain": about.chain or client.settings["chain"],
        # Once: it is compared only where both are known.
        "block_hash": as_of.pop("hash", None),
        "as_of": as_of,
        "data": client.data if request else None,
    }, notes


def _token(client: Client, chain: str, of: str) -> dict[str, Any]:
    (found,) = client.tokens(chain, of, strict=True).to_dict("records")
    if not is_whole(found["decimals"]):
        raise _refused(
            "/of",
            f"The decimals of {quoted(of)} are not known. Leave it out, for amounts in smallest units.",
        )
    return {"address": found["address"], "decimals": int(found["decimals"])}


def _raw(given: Any, name: str, decimals: int) -> int:
    """Return an amount in the smallest unit."""
    text = str(given) if is_whole(given) else given
    try:
        if isinstance(text, str) and _AMOUNT.fullmatch(text):
            raw = to_raw(Decimal(text), decimals)
            if raw <= MAX_UINT256:
                return raw
        detail = 'Write its digits as a text: "1000.5". 256 bits hold it.'
    except TooManyDecimals:
        detail = f"It has more than {decimals} decimals."
    raise _refused(f"/{name}", f"{shown(given)} is not an amount. {detail}")


def _contracts(
    wallets: list[str], client: Client, chain: str, *, paid: bool
) -> tuple[list[str], str]:
    """Return the contracts to leave out, as far as the service knows, and what is to be said of that."""
    if not client.is_ours:
        return [], "The service does not say which wallets are contracts: they are paid, too."
    # On each chain of the data: one that the rows' chain has not seen is known all the same.
    seen = [
        {"activity": {"transfers": {"min": 0}, "chain": one["chain"]}}
        for one in client.about()["data"]["chains"]
    ]
    filters = {
        "wallet": {"in": wallets, "contract": True},
        "any": seen,
        "exclude": [],
        "chain": chain,
    }
    found = client.execute_segment(filters, limit="all")["address"].tolist()
    done = "paid" if paid else "left out"
    return [] if paid else found, (
        f"{len(found):,} known contracts are {done}{': ' * bool(found)}{', '.join(found[:_MOST])}. "
        "A contract that the data does not know as one is paid."
    )


def _weighted(rows: pd.DataFrame, rule: str) -> dict[str, int]:
    """Return the weight of each wallet, by address; ValidationError where that is not clear."""
    try:
        addresses = texts_of(AddressColumn.of(rows).all("rows", blanks=False).tobytes())
    except NotAddresses as error:
        raise _refused("/rows", str(error)) from None
    values = [1] * len(addresses) if rule == "equal" else list(rows[_column(rows, rule)])
    weights = dict[str, int]()
    for address, value in zip(addresses, values, strict=True):
        # What is no integer has other texts than digits; sums of balances may be larger than one balance.
        weight = _WHOLE.fullmatch(str(value))
        if weight is None:
            raise _refused(
                "/rule",
                f"{address} has {visible(repr(value), 80)}. A weight is a whole number from 0, and no float.",
            )
        if address in weights:
            raise _refused("/rows", f"{address} is there twice. Add up its rows: it has one claim.")
        weights[address] = int(weight[0])
    if not weights:
        raise _refused("/rows", "The table has no rows.")
    return dict(sorted(weights.items()))


def _column(rows: pd.DataFrame, rule: str) -> Any:
    """Return the name of the column of the weights."""
    names = list(getattr(rows, "columns", []))
    if rule == "proportional":
        found = [name for name in names if str(name).endswith(("_raw", "_count"))]
    else:
        exact = f"{rule}_raw"
        found = [name for name in names if name == (exact if exact in names else rule)]
    if len(found) != 1:
        allowed = ", ".join(map(quoted, ["equal", "proportional", *names[:_MOST]]))
        detail = f"{quoted(rule)} names {len(found)} columns of amounts, and must name one."
        raise _refused("/rule", f"{detail} Allowed: {allowed}.")
    return found[0]


def _unlike(folder: Path, expected: Path) -> list[str]:
    """Return a line for each file, but the manifest, that a folder has, lacks or has otherwise."""
    names = {
        path.relative_to(one).as_posix()
        for one in (folder, expected)
        for path in one.rglob("[!.]*")
        if not path.is_dir() and path.name != MANIFEST
    }
    _, others, absent = filecmp.cmpfiles(folder, expected, names, shallow=False)
    return [
        f"{visible(name)} is changed, missing, or no file of it" for name in sorted(others + absent)
    ]


def _changes(name: str, had: Mapping[str, Any], gives: Mapping[str, Any]) -> list[str]:
    return [
        f"{name}: {visible(key)} is {shown(had.get(key))}, the request gives {shown(gives.get(key))}"
        for key in sorted(had.keys() | gives.keys())
        if had.get(key) != gives.get(key)
    ]


def _table(claims: Claims, folder: Path, manifest: Mapping[str, Any]) -> pd.DataFrame:
    amounts = list(claims.amounts.values())
    table = pd.DataFrame({"address": list(claims.amounts)})
    if token := manifest["token"]:
        # Divided as integers: rounded once.
        table["amount"] = [amount / 10 ** token["decimals"] for amount in amounts]
    table["amount_raw"] = frames.typed_column(amounts, "uint256")
    return Provenance(
        operation="payout", warnings=manifest["notes"], payout={"folder": str(folder), **manifest}
    ).attach(table)


def _refused(pointer: str, detail: str) -> ValidationError:
    return ValidationError.of(pointer, "payout", detail)
