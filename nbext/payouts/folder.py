"""The folder of a payout: its files, written from the claims alone, and one wallet's proof.

claims.csv     index,address,amount: ordered by address, in the token's smallest unit
tree.json      as OpenZeppelin's ``StandardMerkleTree.load`` reads it: double-hashed leaves of address and amount
indexed.json   the older form, of a distributor's ``claim(index, address, amount, proof)``: a proof for each address
safe/          the same for Safe's airdrop app, 200 rows to a file; only where the token is named
left_out.csv   address,reason
manifest.json  the request and its data, the terms, and what they came to: sum and roots
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nbext.client.addresses import Bytes
from nbext.core import strict_json
from nbext.core.addresses import WIDTH, normalised
from nbext.core.uint256 import in_units, uint256_of
from nbext.core.untrusted_text import visible
from nbext.errors import StorageError, ValidationError
from nbext.payouts.tree import MerkleTree, abi_words, indexed_leaves, standard_leaves

FORMAT = "nbext-payout-1"
CLAIMS, MANIFEST = "claims.csv", "manifest.json"
# What Safe's app sends in one transaction.
_SAFE_ROWS = 200
# Claims whose proofs are made at a time: 3 MB of text, which stay in a core's cache.
_STEP = 2_000
_CLAIM = re.compile(r"[0-9],(0x[0-9a-f]{40}),([0-9]{1,78})\n")


@dataclass(frozen=True)
class Claims:
    """Who gets how much: amounts in the smallest unit by address, in lower case and in order."""

    amounts: Mapping[str, int]

    @cached_property
    def standard(self) -> MerkleTree:
        """The tree of ``tree.json``."""
        return MerkleTree(standard_leaves(*self._packed))

    @cached_property
    def indexed(self) -> MerkleTree:
        """The tree of ``indexed.json``."""
        return MerkleTree(indexed_leaves(*self._packed))

    @cached_property
    def _packed(self) -> tuple[Bytes, Bytes]:
        digits = "".join(self.amounts).replace("0x", "")
        addresses = np.frombuffer(bytes.fromhex(digits), np.uint8).reshape(-1, WIDTH)
        return addresses, abi_words(self.amounts.values())

    def outcome(self) -> dict[str, Any]:
        """Return what the manifest says of them."""
        return {
            "wallets": len(self.amounts),
            "sum": str(sum(self.amounts.values())),
            "root": self.standard.root,
            "indexed_root": self.indexed.root,
        }

    def csv(self) -> str:
        """Return the text of ``claims.csv``."""
        lines = [f"{at},{who},{n}\n" for at, (who, n) in enumerate(self.amounts.items())]
        return "index,address,amount\n" + "".join(lines)

    @classmethod
    def read(cls, folder: Path) -> Claims:
        """Read ``claims.csv``; StorageError where it is not as we write it."""
        text = _read(folder / CLAIMS)
        found = cls({who: uint256_of(digits) or 0 for who, digits in sorted(_CLAIM.findall(text))})
        if not found.amounts or found.csv() != text:
            detail = "it does not list claims, ordered by address"
            raise StorageError(f"{visible(folder / CLAIMS)} is damaged: {detail}.")
        return found


def write_files(
    folder: Path, claims: Claims, manifest: Mapping[str, Any], left_out: Mapping[str, str]
) -> None:
    """Write all files of a payout into an empty folder."""
    files = {
        MANIFEST: [json.dumps(manifest, indent=2, default=str)],
        CLAIMS: [claims.csv()],
        "left_out.csv": ["address,reason\n", *(f"{who},{why}\n" for who, why in left_out.items())],
        "tree.json": _standard_json(claims),
        "indexed.json": _indexed_json(claims),
    }
    if token := manifest["token"]:
        (folder / "safe").mkdir()
        # Safe's app takes amounts in the token's unit.
        lines = [
            f"erc20,{token['address']},{who},{in_units(amount, token['decimals']):f},\n"
            for who, amount in claims.amounts.items()
        ]
        head = "token_type,token_address,receiver,amount,id\n"
        files |= {
            f"safe/{start // _SAFE_ROWS + 1:04}.csv": [head, *lines[start : start + _SAFE_ROWS]]
            for start in range(0, len(lines), _SAFE_ROWS)
        }
    for name, pieces in files.items():
        # Proofs are bytes: a gigabyte of them is not made text first.
        with (folder / name).open("wb", buffering=1 << 20) as file:
            file.writelines(
                piece.encode("ascii") if isinstance(piece, str) else piece for piece in pieces
            )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what ``manifest.json`` says; StorageError where it is not that of a payout."""
    with suppress(strict_json.NotJson, KeyError, TypeError):
        found = strict_json.parse(_read(folder / MANIFEST))
        if found["format"] == FORMAT:
            return dict(found)
    raise StorageError(f"{visible(folder / MANIFEST)} is not the manifest of a payout.")


def proof(folder: str | Path, address: str) -> dict[str, Any]:
    """Return the proof of one wallet's claim, made again from ``claims.csv`` and held to the root of the manifest.

    Returns
    -------
    dict
        ``index`` int; ``address`` str, lower case; ``amount`` str, digits in the smallest unit; ``root`` str and
        ``proof``, a list of str, for the standard tree; ``indexed_root`` and ``indexed_proof`` for the older form.

    Raises
    ------
    ValidationError
        The address is not one, or has no claim.
    StorageError
        The folder is not a payout, or its claims are not those of its roots.
    """
    folder, wanted = Path(folder), normalised(address)
    claims, manifest = Claims.read(folder), read_manifest(folder)
    if manifest != {**manifest, **claims.outcome()}:
        raise StorageError(f"{visible(folder)} is damaged: its claims are not those of its roots.")
    if wanted not in claims.amounts:
        detail = f"{wanted} has no claim in this payout. left_out.csv lists who was left out."
        raise ValidationError.of("/address", "unknown", detail)
    at = list(claims.amounts).index(wanted)
    return {
        "index": at,
        "address": wanted,
        "amount": str(claims.amounts[wanted]),
        "root": claims.standard.root,
        "proof": claims.standard.proof(at),
        "indexed_root": claims.indexed.root,
        "indexed_proof": claims.indexed.proof(at),
    }


def _read(path: Path) -> str:
    # A link to a device would be read without an end.
    if not path.is_file():
        raise StorageError(f"{visible(path)} is not there.")
    return path.read_bytes().decode("ascii", "replace")


def _standard_json(claims: Claims) -> Iterator[str | bytes]:
    yield '{"format":"standard-v1","leafEncoding":["address","uint256"],"tree":['
    # Without the comma before the first.
    yield claims.standard.elements(b", ").tobytes()[2:]
    yield '],"values":['
    rows = zip(claims.amounts.items(), claims.standard.places.tolist(), strict=True)
    yield ",".join(
        [f'{{"value":["{who}","{amount}"],"treeIndex":{place}}}' for (who, amount), place in rows]
    )
    yield "]}"


def _indexed_json(claims: Claims) -> Iterator[str | bytes]:
    tree = claims.indexed
    yield f'{{"merkleRoot":"{tree.root}","tokenTotal":"{sum(claims.amounts.values()):#x}","claims":{{'
    rows = zip(claims.amounts.items(), _proofs(tree), strict=True)
    for at, ((who, amount), proof) in enumerate(rows):
        yield f'{"]}," * (at > 0)}"{who}":{{"index":{at},"amount":"{amount:#x}","proof":'
        yield proof
    yield "]}}}"


def _proofs(tree: MerkleTree) -> Iterator[bytes]:
    """Yield each leaf's proof as JSON has it, without its end: many leaves at a time, a step up of all at once."""
    texts = tree.elements(b",")
    # No leaf is hashed with the root. At a text of nothing numpy ends a text.
    texts[0] = b""
    for start in range(0, len(tree.places), _STEP):
        found = texts[tree.beside(tree.places[start : start + _STEP])]
        # In the place of the first one's comma.
        found.view(np.uint8)[:, 0] = ord("[")
        yield from found.view(f"S{found[0].nbytes}").ravel().tolist()
