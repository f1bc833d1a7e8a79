"""What a file is, told by its columns and never by its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Holds = Literal["transfers", "tokens", "contracts", "blocks", "holders"]
Names = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """One schema: what it holds, and under which names a file may keep each of our columns.

    ``needs`` must all be there, ``may`` are taken where they are; of several names the first one found
    counts. ``standard`` is what the file's kind says of every contract in it.
    """

    name: str
    holds: Holds
    needs: Mapping[str, Names]
    may: Mapping[str, Names] = field(default_factory=dict)
    standard: str | None = None

    def columns(self, names: Iterable[str]) -> dict[str, str] | None:
        """Return which of the file's columns holds each of ours, or None where one is missing."""
        spelled = {name.lower(): name for name in reversed(list(names))}
        found = {
            ours: next((spelled[name] for name in theirs if name in spelled), None)
            for ours, theirs in {**self.needs, **self.may}.items()
        }
        if any(found[ours] is None for ours in self.needs):
            return None
        return {ours: theirs for ours, theirs in found.items() if theirs is not None}


_LOG = {"sender": ("from_address",), "recipient": ("to_address",), "tx": ("transaction_hash",),
        "log_index": ("log_index",), "block": ("block_number",)}
_TIMES = {"timestamp": ("block_timestamp", "timestamp"), "chain_id": ("chain_id",), "type": ("type",)}

# Ordered: the first whose columns are all there is what the file is.
KINDS = (
    Kind("token_transfers (ethereum-etl)", "transfers",
         {"contract": ("token_address",), "value": ("value",), **_LOG}, _TIMES),
    Kind("erc721_transfers (cryo)", "transfers",
         {"contract": ("erc721", "erc20"), "value": ("token_id_string", "token_id", "token_id_binary"), **_LOG},
         _TIMES, standard="ERC721"),
    Kind("erc20_transfers (cryo)", "transfers",
         {"contract": ("erc20",), "value": ("value_string", "value_binary", "value"), **_LOG},
         _TIMES, standard="ERC20"),
    Kind("tokennfttx (Etherscan)", "transfers",
         {"contract": ("contractaddress",), "sender": ("from",), "recipient": ("to",), "value": ("tokenid",),
          "tx": ("hash",), "block": ("blocknumber",)},
         {"timestamp": ("timestamp",), "tx_index": ("transactionindex",), "log_index": ("logindex",),
          "name": ("tokenname",), "symbol": ("tokensymbol",)}, standard="ERC721"),
    Kind("tokentx (Etherscan)", "transfers",
         {"contract": ("contractaddress",), "sender": ("from",), "recipient": ("to",), "value": ("value",),
          "tx": ("hash",), "block": ("blocknumber",)},
         {"timestamp": ("timestamp",), "tx_index": ("transactionindex",), "log_index": ("logindex",),
          "name": ("tokenname",), "symbol": ("tokensymbol",), "decimals": ("tokendecimal",)}, standard="ERC20"),
    Kind("contracts (ethereum-etl)", "contracts",
         {"address": ("address",), "is_erc20": ("is_erc20",), "is_erc721": ("is_erc721",)},
         {"deployed_block": ("block_number",), "deployer": ("deployer",)}),
    Kind("tokens (ethereum-etl)", "tokens",
         {"address": ("address", "contract_address"), "symbol": ("symbol",), "name": ("name",),
          "decimals": ("decimals",)},
         {"total_supply": ("total_supply",), "chain_id": ("chain_id",), "standard": ("standard",),
          "logo": ("logo", "logo_uri", "logouri")}),
    Kind("erc20_metadata (cryo)", "tokens",
         {"address": ("erc20",), "symbol": ("symbol",), "name": ("name",), "decimals": ("decimals",)},
         {"chain_id": ("chain_id",)}, standard="ERC20"),
    Kind("erc721_metadata (cryo)", "tokens",
         {"address": ("erc721", "erc20"), "symbol": ("symbol",), "name": ("name",)},
         {"chain_id": ("chain_id",)}, standard="ERC721"),
    Kind("blocks", "blocks",
         {"block": ("number", "block_number"), "timestamp": ("timestamp",)}, {"chain_id": ("chain_id",)}),
    Kind("holders by token id", "holders",
         {"address": ("owner", "holder", "address", "wallet"), "token_id": ("token_id", "tokenid")},
         {"contract": ("contract_address", "contract", "token_address"), "chain_id": ("chain_id",),
          "block": ("block_number",), "timestamp": ("snapshot_unix", "timestamp")}, standard="ERC721"),
    Kind("holders", "holders",
         {"address": ("holderaddress", "holder", "address", "owner", "wallet"), "balance": ("balance",)},
         {"contract": ("contract_address", "contract", "token_address"), "symbol": ("ticker", "symbol"),
          "chain_id": ("chain_id",), "block": ("block_number",), "timestamp": ("snapshot_unix", "timestamp")}),
)


def recognise(names: Iterable[str]) -> tuple[Kind, dict[str, str]] | None:
    """Return what a file with these columns is, and which column holds what; None where nothing fits."""
    names = list(names)
    for kind in KINDS:
        columns = kind.columns(names)
        if columns is not None:
            return kind, columns
    return None
