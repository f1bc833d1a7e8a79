"""What was ingested: the entry of each file, how one is named, and what a run takes out or replaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nbext.core.chains import Chain, chain_of
from nbext.core.times import iso, utc_text
from nbext.core.untrusted_text import quoted, visible
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.ingest.files import short_path
from nbext.engine.ingest.stage import Stage, TakenOut
from nbext.engine.storage import Generation, files_of
from nbext.errors import ValidationError

# As many digits of a checksum as are shown, and as few as name a file.
_DIGITS, _LEAST = 12, 4
Entry = Mapping[str, Any]


def check_folder(folder: Path) -> None:
    """Refuse a folder that does not exist: a mistyped one would be taken for one without data."""
    if not folder.is_dir():
        raise ValidationError.of("data_dir", "unknown", f"{folder} does not exist.")


def is_of(entry: Entry, chain: Chain | None) -> bool:
    """Return whether a file was ingested for a chain; for any where None is named, or where its rows name theirs."""
    return chain is None or entry["chain_id"] in (None, chain.id)


def same_way(entry: Entry, options: SnapshotOptions, renamed: Mapping[str, str]) -> bool:
    """Return whether a file that was ingested would be read in the same way now; what is not given changes nothing."""
    if any(entry.get(name) != value for name, value in read_how(options, renamed).items()):
        return False
    before = {"unit": "token", **entry["options"]} if "options" in entry else options.given()
    return all(before.get(name) == value for name, value in options.given().items())


def read_how(options: SnapshotOptions, renamed: Mapping[str, str]) -> dict[str, Any]:
    """Return what was said of a file's columns, as the manifest has it."""
    said = {"map": dict(renamed), "date_format": options.date_format}
    return {name: value for name, value in said.items() if value}


def removable(
    folder: Path, previous: Generation | None, name: str | None, chain: Chain | None
) -> list[Entry]:
    """Return the entry of the file that is so named: by path, by name, or by the first digits of its checksum.

    Without a name all files are returned, without a chain those of all chains.

    Raises
    ------
    ValidationError
        No file or several are so named.
    """
    entries = [entry for entry in files_of(previous) if is_of(entry, chain)]
    if not entries:
        of = f" for {chain.name}" if chain else ""
        raise ValidationError.of(
            "source", "unknown", f"{folder} has no files that were ingested{of}."
        )
    if name is None:
        return entries
    found = _named(entries, name)
    if len(found) != 1:
        problem = (
            f"{len(found)} files are named {quoted(name)}"
            if found
            else f"no ingested file is named {quoted(name)}"
        )
        listed = "\n".join(f"  {_line(entry)}" for entry in (found or entries)[:20])
        by = "path, its checksum, or --chain" if found else "path or checksum"
        raise ValidationError.of(
            "source",
            "ambiguous" if found else "unknown",
            f"{problem}. Name one of these by its {by}:\n{listed}",
        )
    return found


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
    chain = f", {chain_of(entry['chain_id']).name}" if entry["chain_id"] else ""
    return f"{entry['sha256'][:_DIGITS]}  {what(entry)}{chain}"


def what(entry: Entry) -> str:
    """Return an entry in words: its file, the file's kind and its rows."""
    path = visible(short_path(entry["path"]), None)
    return f"{path}: {entry['kind']}, {how_many(entry['rows'], 'row')}"


def how_many(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is one."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def source_lines(previous: Generation | None) -> list[str]:
    """Return what was taken in, a few lines for each file, in the order in which they were ingested."""
    lines = []
    for entry in files_of(previous):
        lines.append(f"{_line(entry)}, ingested {entry['taken_at']}")
        lines += [
            f"    {SnapshotTaken(entry['source'], **one)}"
            for one in entry.get("snapshots", ())[:20]
        ]
        said = {name: entry[name] for name in ("map", "date_format") if name in entry}
        if given := {**said, **entry.get("options", {})}:
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
    if name == "date_format":
        return f"--date-format {quoted(value)}"
    return f"--{name} {iso(value) if name == 'date' else value}"


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
            else f"{utc_text(self.seconds)}, block {self.block:,} of the data"
        )
        return f"holders of {self.contract}{decimals}, at {when}"

    def entry(self) -> dict[str, Any]:
        """Return it as the manifest has it."""
        return {name: value for name, value in asdict(self).items() if name != "source"}


def removed(stage: Stage, out: TakenOut) -> list[str]:
    """Return what the run took out of the generation before, a line for each source and one for a chain's blocks."""
    lines = [what(entry) for entry in stage.files if entry["source"] in out.sources]
    if out.block is not None:
        transfers = how_many(stage.value("SELECT count(*) FROM prev.main.beyond"), "transfer")
        lines.append(f"{transfers} of {chain_of(out.chain_id).name} from block {out.block:,} on")
        lines += [
            f"holders of {contract} at block {block:,} ({stage.shown(source)})"
            for source, contract, block in stage.rows(f"""
                      SELECT DISTINCT source, contract, block FROM before.ingest.openings
                      WHERE chain_id = {out.chain_id} AND block >= {out.block} AND {out.kept()}
                      ORDER BY 3, 1, 2""")
        ]
    return lines


def replaced_before(stage: Stage, out: TakenOut) -> list[str]:
    """Return a line for each file of which earlier runs replaced rows, where what may have replaced them goes."""
    if out.block is not None:
        return []
    return [
        f"{short_path(entry['path'])}: its rows from block {entry['replaced_from']:,} on were replaced before, and do "
        f"not come back by themselves: ingest it again with --replace-from {entry['replaced_from']}"
        for entry in left(stage, out)
        if entry.get("replaced_from") is not None
        and any(source > entry["source"] for source in out.sources)
    ]


def left(stage: Stage, out: TakenOut) -> list[Entry]:
    """Return the entries of the files whose rows stay."""
    entries = [entry for entry in stage.files if entry["source"] not in out.sources]
    if out.block is None:
        return entries
    beyond = f"WHERE chain_id = {out.chain_id} AND block >= {out.block}"
    cut = {
        source
        for (source,) in stage.rows(
            f"SELECT source FROM before.ingest.blocks {beyond} UNION "
            f"SELECT source FROM before.ingest.openings {beyond}"
        )
    }
    return [
        {**entry, "replaced_from": min(out.block, entry.get("replaced_from", out.block))}
        if entry["source"] in cut
        else entry
        for entry in entries
    ]


def check_replaced(stage: Stage, block: int, anew: list[int]) -> int:
    """Refuse files of which --replace-from would replace nothing, or whose rows contradict what it leaves.

    Below its block they may have rows of another branch, which would stand beside the stored ones. Returns how many new
    rows are below it. ``anew`` are the files that were not ingested before: the others give again what they gave.
    """
    last = stage.value("SELECT max(block) FROM times WHERE source >= ?", [stage.first])
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
            f"below block {block:,} the files have {how_many(many, 'new transfer')}, in "
            "blocks of which the data has others of the same contracts. To replace these, too, write --replace-from "
            f"{start}.",
        )
    return int(
        stage.value(
            "SELECT count(*) FROM incoming WHERE list_contains(?, file) AND block < ?",
            [anew, block],
        )
    )
