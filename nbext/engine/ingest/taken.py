"""``nbext sources``, what was ingested: the entry of each file, how one is named, and which rows contradict others."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbext.core.chains import Chain, chain_of
from nbext.core.uint256 import Limbs, join
from nbext.core.untrusted_text import quoted, visible
from nbext.engine import storage
from nbext.engine.ingest.derive.contracts import Mistaken
from nbext.engine.ingest.derive.rows import ELEMENT
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.ingest.derive.tables import Backward
from nbext.engine.ingest.previous import TakenOut
from nbext.engine.ingest.sources import tokens
from nbext.engine.ingest.sources.files import Source, shown
from nbext.engine.ingest.stage import Stage
from nbext.engine.storage import Generation
from nbext.errors import IngestError, ValidationError
from nbext.settings import Settings, data_folder, default_data_dir

# As many digits of a checksum as are shown, and as few as name a file.
_DIGITS, _LEAST = 12, 4
_SHOWN = 3
Entry = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``nbext sources``."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=data_folder,
        help="the data folder (default: your user data folder)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the files in the order in which they were ingested: checksum, path, kind, rows, chain, time, options."""
    data = args.data or default_data_dir(Settings())
    if args.data:
        check_folder(args.data)
    print("\n".join(listed(storage.current(data))) or f"{data} has no files that were ingested.")
    return 0


def check_folder(folder: Path) -> None:
    """Refuse a folder that does not exist: a mistyped one would be taken for one without data."""
    if not folder.is_dir():
        raise ValidationError.of("data_dir", "unknown", f"{folder} does not exist.")


def same_way(
    entry: Entry, chain: Chain | None, options: SnapshotOptions, renamed: Mapping[str, str]
) -> bool:
    """Return whether a file that was ingested would be read in the same way now; what is not given changes nothing."""
    if chain is not None and entry["chain_id"] is not None and chain.id != entry["chain_id"]:
        return False
    if renamed and dict(renamed) != entry.get("map", {}):
        return False
    before = {"unit": "token", **entry["options"]} if "options" in entry else options.given()
    return all(before.get(name) == value for name, value in options.given().items())


def removable(folder: Path, previous: Generation | None, name: str) -> Entry:
    """Return the entry of the file that is so named: by path, by name, or by the first digits of its checksum.

    Raises
    ------
    ValidationError
        No file or several are so named, or it is the only one.
    """
    entries: list[Entry] = list(previous.manifest["files"]) if previous else []
    if not entries:
        raise ValidationError.of("source", "unknown", f"{folder} has no files that were ingested.")
    found = _named(entries, name)
    if len(found) != 1:
        what = (
            f"{len(found)} files are named {quoted(name)}"
            if found
            else f"no ingested file is named {quoted(name)}"
        )
        listed = "\n".join(f"  {_line(entry)}" for entry in (found or entries)[:20])
        by = "checksum" if len({one["path"] for one in found}) == 1 else "path or checksum"
        raise ValidationError.of(
            "source",
            "ambiguous" if found else "unknown",
            f"{what}. Name one of these by its {by}:\n{listed}",
        )
    entry = found[0]
    if len(entries) == 1:
        raise ValidationError.of(
            "source",
            "last",
            f"{shown(entry['path'])} is the only file of {folder}. To remove "
            "all data, stop the services on it, and delete its `generations` and `current`.",
        )
    return entry


def _named(entries: list[Entry], name: str) -> list[Entry]:
    path = Path(name).expanduser()
    full = str(path.parent.resolve() / path.name) if path.name else ""
    digits = name.lower()
    is_digits = len(digits) >= _LEAST and set(digits) <= set("0123456789abcdef")
    # A path before a name, and a name before a checksum: what is exact comes first.
    for named in (
        [e for e in entries if e["path"] == full],
        [e for e in entries if Path(e["path"]).name == name],
        [e for e in entries if is_digits and e["sha256"].startswith(digits)],
    ):
        if named:
            return named
    return []


def _line(entry: Entry) -> str:
    chain = f", {chain_of(entry['chain_id']).name}" if entry.get("chain_id") else ""
    return f"{entry['sha256'][:_DIGITS]}  {_what(entry)}{chain}"


def _what(entry: Entry) -> str:
    rows = f", {_counted(entry['rows'], 'row')}" if "rows" in entry else ""
    return f"{visible(shown(entry['path']), None)}: {entry.get('kind', 'file')}{rows}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def listed(previous: Generation | None) -> list[str]:
    """Return what was taken in, a few lines for each file, in the order in which they were ingested."""
    lines = []
    for entry in previous.manifest["files"] if previous else ():
        lines.append(
            _line(entry) + (f", ingested {entry['taken_at']}" if "taken_at" in entry else "")
        )
        lines += [
            f"    {SnapshotTaken(entry['source'], **one)}"
            for one in entry.get("snapshots", ())[:20]
        ]
        if given := {
            **({"map": entry["map"]} if "map" in entry else {}),
            **entry.get("options", {}),
        }:
            lines.append(
                f"    options: {' '.join(_option(name, value) for name, value in given.items())}"
            )
        if "replaced_from" in entry:
            lines.append(f"    its rows from block {entry['replaced_from']:,} on were replaced")
    return lines


def _option(name: str, value: Any) -> str:
    if name == "map":
        return f"--map {visible(','.join(f'{theirs}={ours}' for theirs, ours in value.items()))}"
    if name == "tokens":
        return " ".join(
            f"--token {visible(f'{symbol}={address}' if symbol else address)}"
            for symbol, address in value.items()
        )
    return f"--{name} {moment(value).replace(' UTC', 'Z').replace(' ', 'T') if name == 'date' else value}"


def moment(seconds: int) -> str:
    """Return a time as it is read."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@dataclass(frozen=True)
class SnapshotTaken:
    """What one contract's balances in a snapshot were taken as; decimals are None where amounts are raw, or token ids.

    ``seconds`` is the time that the snapshot was made at, if that and not the block was known.
    """

    source: int
    contract: str
    decimals: int | None
    block: int
    seconds: int | None

    def __str__(self) -> str:
        decimals = f", {self.decimals} decimals" if self.decimals is not None else ""
        when = (
            f"block {self.block:,}"
            if self.seconds is None
            else f"{moment(self.seconds)}, block {self.block:,} of the data"
        )
        return f"holders of {self.contract}{decimals}, at {when}"

    def entry(self) -> dict[str, Any]:
        """Return it as the manifest has it."""
        return {
            "contract": self.contract,
            "decimals": self.decimals,
            "block": self.block,
            "seconds": self.seconds,
        }


def removed(stage: Stage, out: TakenOut, chain: Chain | None) -> list[str]:
    """Return what the run took out of the generation before, a line for each source and one for a chain's blocks."""
    if not out or stage.previous is None:
        return []
    lines = [
        _what(entry) for entry in stage.previous.manifest["files"] if entry["source"] in out.sources
    ]
    if out.block is not None and chain is not None:
        transfers = stage.value("SELECT count(*) FROM prev.main.beyond")
        lines.append(
            f"{_counted(transfers, 'transfer')} of {chain.name} from block {out.block:,} on"
        )
        paths = _paths(stage, {})
        lines += [
            f"holders of {contract} at block {block:,} ({shown(paths[source])})"
            for source, contract, block in stage.rows(f"""
                      SELECT DISTINCT source, contract, block FROM before.ingest.openings
                      WHERE chain_id = {out.chain_id} AND block >= {out.block} ORDER BY 3, 1, 2""")
            if source not in out.sources
        ]
    return lines


def replaced_before(stage: Stage, out: TakenOut) -> list[str]:
    """Return a line for each file of which earlier runs replaced rows, where what may have replaced them goes."""
    if stage.previous is None or out.block is not None:
        return []
    return [
        f"{shown(entry['path'])}: its rows from block {entry['replaced_from']:,} on were replaced before, and do "
        f"not come back by themselves: ingest it again with --replace-from {entry['replaced_from']}"
        for entry in left(stage, out)
        if entry.get("replaced_from") is not None
        and any(source > entry["source"] for source in out.sources)
    ]


def left(stage: Stage, out: TakenOut) -> list[Entry]:
    """Return the entries of the files whose rows stay."""
    if stage.previous is None:
        return []
    cut: set[int] = set()
    if out.block is not None:
        beyond = f"WHERE chain_id = {out.chain_id} AND block >= {out.block}"
        cut = {
            source
            for (source,) in stage.rows(
                f"SELECT source FROM before.ingest.blocks {beyond} UNION "
                f"SELECT source FROM before.ingest.openings {beyond}"
            )
        }
    return [
        {**entry, "replaced_from": min(out.block or 0, entry.get("replaced_from", out.block or 0))}
        if entry["source"] in cut
        else entry
        for entry in stage.previous.manifest["files"]
        if entry["source"] not in out.sources
    ]


def contradiction(stage: Stage, opened: Mapping[int, Source], which: str) -> IngestError:
    """Return the error of rows that contradict others of the same transaction and log index, with both versions."""
    paths = _paths(stage, opened)
    found = stage.rows(
        f"SELECT file, row, source, their_row FROM contradictions WHERE {which} ORDER BY ALL"
    )
    lines = []
    for file, row, source, their_row in found[:_SHOWN]:
        here, there = _version(stage, opened, file, row), _version(stage, opened, source, their_row)
        lines += [
            f"  {shown(paths[file])}, row {row % ELEMENT:,}: {here}",
            f"    {shown(paths[source])}, row {their_row % ELEMENT:,}: {there}",
        ]
    more = f"\n  and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    inside = all(file == source for file, _, source, _ in found)
    advice = _advice(_first_block(stage), inside=inside)
    many = (
        "1 row contradicts another" if len(found) == 1 else f"{len(found):,} rows contradict others"
    )
    return IngestError(
        f"{shown(paths[found[0][0]])}: {many} with the same transaction and log index. {advice}\n"
        + "\n".join(lines)
        + more,
        path=paths[found[0][0]],
        row=found[0][1] % ELEMENT,
    )


def other_times(
    stage: Stage, opened: Mapping[int, Source], first: int, within: int | None = None
) -> IngestError:
    """Return the error of blocks that have two times, the first of which is ``first``; ``within`` one file or not."""
    paths = _paths(stage, opened)
    which = "" if within is None else f"WHERE source = {within}"
    found = stage.rows(f"""
        SELECT block, list((source, seconds) ORDER BY source, seconds) FROM (
            SELECT chain_id, block, seconds, min(source) AS source FROM two_times {which} GROUP BY 1, 2, 3)
        GROUP BY chain_id, block HAVING count(*) > 1 ORDER BY block""")
    lines = [
        f"  block {block:,}: "
        + ", ".join(f"{moment(at)} in {shown(paths[source])}" for source, at in told)
        for block, told in found[:_SHOWN]
    ]
    more = f"\n  and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    many = "1 block has two times" if len(found) == 1 else f"{len(found):,} blocks have two times"
    source = max(source for _, told in found for source, _ in told)
    return IngestError(
        f"{shown(paths[source])}: {many}. {_advice(first, inside=within is not None)}\n"
        + "\n".join(lines)
        + more,
        path=paths[source],
    )


def backward_times(
    stage: Stage, opened: Mapping[int, Source], found: list[Backward], *, inside: bool
) -> IngestError:
    """Return the error of blocks with a time before that of an earlier block; ``inside`` one file or not."""
    paths = _paths(stage, opened)
    lines = [
        f"  block {one.block_before:,}: {moment(one.seconds_before)} in {shown(paths[one.source_before])}, "
        f"block {one.block:,}: {moment(one.seconds)} in {shown(paths[one.source])}"
        for one in found
    ]
    source = max(source for one in found for source in (one.source, one.source_before))
    return IngestError(
        f"{shown(paths[source])}: a block has a time before that of an earlier block. "
        f"{_advice(found[0].block_before, inside=inside)}\n" + "\n".join(lines),
        path=paths[source],
    )


def mistaken_snapshot(stage: Stage, opened: Mapping[int, Source], found: Mistaken) -> IngestError:
    """Return the error of a snapshot of token ids of an ERC20, or of amounts of an NFT collection."""
    path = _paths(stage, opened)[found.source]
    what, needs = (
        ("token ids", "")
        if found.has_id
        else ("amounts", " A snapshot of an NFT collection needs a column of token ids.")
    )
    return IngestError(
        f"{shown(path)}: these are {what} of {found.address}, which is {found.standard} "
        f"{'as a file says' if found.declared else 'by its transfers'}.{needs} If that is not what it "
        "is, ingest a file with address, is_erc20, is_erc721.",
        path=path,
    )


def disagreements(stage: Stage, first: int, paths: Mapping[int, str]) -> list[str]:
    """Return a line for each contract whose decimals or symbol are another in a file than in one of this run's."""
    stored = stage.previous.manifest["files"] if stage.previous else ()
    named = {
        tokens.WELL_KNOWN: "the well-known tokens",
        **{entry["source"]: shown(entry["path"]) for entry in stored},
        **{number: shown(path) for number, path in paths.items()},
    }
    return [
        f"{one.address}: {one.field} {visible(one.used, 40)} as in {named[one.source]}, "
        f"not {visible(one.other, 40)} as in {named[one.other_source]}"
        for one in tokens.disagreements(stage, first)
    ]


def check_replaced(stage: Stage, block: int, first: int, anew: list[int]) -> int:
    """Refuse files of which --replace-from would replace nothing, or whose rows contradict what it leaves.

    Below its block they may have rows of another branch, which would stand beside the stored ones. Returns how many new
    rows are below it. ``first`` is the run's first file; ``anew`` are those that were not ingested before: the others
    give again what they gave.
    """
    last = stage.value("SELECT max(block) FROM times WHERE source >= ?", [first])
    if last is None or last < block:
        ends = "have no block" if last is None else f"end at block {last:,}"
        raise ValidationError.of(
            "replace_from",
            "range",
            f"the files {ends}, so nothing from block {block:,} on "
            "would be replaced. Write the first block that they replace.",
        )
    if stage.previous is None:
        return 0
    many, start = stage.rows(
        """
        SELECT count(*), min(block) FROM (SELECT r.chain_id, address, block FROM incoming JOIN contract_ranks r
            ON r.rowid = contract WHERE list_contains(?, file) AND block < ?)
        SEMI JOIN (SELECT chain_id, address, block FROM prev.main.transfers JOIN prev.main.contracts USING (contract))
            USING (chain_id, address, block)""",
        [anew, block],
    )[0]
    if many:
        raise ValidationError.of(
            "replace_from",
            "range",
            f"below block {block:,} the files have {_counted(many, 'new transfer')}, in "
            "blocks of which the data has others of the same contracts. To replace these, too, write --replace-from "
            f"{start}.",
        )
    return int(
        stage.value(
            "SELECT count(*) FROM incoming WHERE list_contains(?, file) AND block < ?",
            [anew, block],
        )
    )


def _advice(block: int, *, inside: bool) -> str:
    return (
        "Correct the file."
        if inside
        else f"If a chain was reorganised, ingest its new blocks with --replace-from {block}; "
        "if a file is wrong, take it out with `nbext remove`."
    )


def _paths(stage: Stage, opened: Mapping[int, Source]) -> dict[int, str]:
    """Return the paths of the files by their numbers: of this run, and of those before."""
    stored = stage.previous.manifest["files"] if stage.previous else ()
    return {entry["source"]: entry["path"] for entry in stored} | {
        n: source.name for n, source in opened.items()
    }


def _version(stage: Stage, opened: Mapping[int, Source], source: int, row: int) -> str:
    """Return the contents of a row, of this run or of the generation before, in words."""
    columns = "block, log_index, c.address, s.address, r.address, hi, mid, lo"
    if source in opened:
        found = stage.rows(
            f"""
            SELECT {columns}, count FROM incoming JOIN contract_ranks c ON c.rowid = contract
            JOIN wallets s ON s.rowid = sender JOIN wallets r ON r.rowid = recipient
            WHERE file = ? AND row = ?""",
            [source, row],
        )[0]
    else:
        found = stage.rows(
            f"""
            SELECT {columns}, given FROM prev.main.transfers t JOIN prev.main.contracts c ON c.contract = t.contract
            JOIN prev.main.wallets s ON s.wallet = sender JOIN prev.main.wallets r ON r.wallet = recipient
            WHERE source = ? AND row = ?""",
            [source, row],
        )[0]
    block, log_index, contract, sender, recipient, hi, mid, lo, count = found
    value = join(Limbs(int(hi), int(mid), int(lo)))
    many = f", {count:,} of them" if count is not None else ""
    return f"block {block:,}, log {log_index:,}: {contract} from {sender} to {recipient}, {value}{many}"


def _first_block(stage: Stage) -> int:
    """Return the first block of any row that contradicts another, or is contradicted."""
    sides = [
        "SELECT block FROM incoming SEMI JOIN (FROM contradictions SELECT file, row UNION ALL "
        "FROM contradictions SELECT source AS file, their_row AS row) USING (file, row)"
    ]
    if stage.previous:
        sides.append(
            "SELECT block FROM prev.main.transfers "
            "SEMI JOIN (SELECT source, their_row AS row FROM contradictions) USING (source, row)"
        )
    return int(stage.value(f"SELECT min(block) FROM ({' UNION ALL '.join(sides)})"))
