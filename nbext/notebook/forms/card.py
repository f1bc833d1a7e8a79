"""Cards: of a segment's table, of a token or a collection, and of a session's queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nbext.core.provenance import Provenance, retaken
from nbext.core.rules import MAX_LIMIT
from nbext.core.uint256 import units_text
from nbext.core.untrusted_text import html, visible
from nbext.errors import NbextError, UsageError
from nbext.notebook.forms.builder.filters import cell_text
from nbext.notebook.forms.distribution import Bins, bars_html, counted, holding
from nbext.notebook.forms.explorer.columns import columns_of
from nbext.notebook.forms.form import Form, Variable, message_of, notebook_client, variables
from nbext.notebook.forms.markup import (
    code_html,
    facts_html,
    facts_of,
    frame_html,
    funnel_html,
    marks_html,
    notes_html,
    number_text,
    part_of,
    text_of,
)
from nbext.notebook.results.tables import is_missing
from nbext.notebook.views.view import Box, Button, InputField, Markup, ViewPart, row

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client import Client

# Longer filters are cut on their line, with their length; the builder shows them whole.
_CUT = 240
# Types of columns that hold amounts.
_AMOUNTS = ("integer", "uint256", "float64")
PLAIN = re.compile(r"[\w:.-]+ [\w:.-]+")
FACTS = (
    ("Name", "name"),
    ("Symbol", "symbol"),
    ("Address", "checksumAddress"),
    ("Chain", "chain"),
    ("Standard", "tokenType"),
    ("Decimals", "decimals"),
    ("Total supply", "totalSupply"),
    ("Owners", "ownerCount"),
    ("Holders", "holders"),
    ("Transfers", "transfers"),
    ("Deployer", "contractDeployer"),
    ("Deployed at block", "deployedBlockNumber"),
    ("Floor price", "floorPrice"),
)


class Edit(Button):
    """Opens a query in a builder, once, in the box ``below``."""

    def __init__(self, client: Any, query: Any, tip: str, label: str = "Edit") -> None:
        super().__init__(label, self.open, classes="nbext-edit", tip=tip)
        # No box: a snapshot has nothing of a builder that changes by itself.
        self.client, self.query, self.below = client, query, ViewPart("group")

    @property
    def builder(self) -> Any:
        """The builder that is open, or None."""
        return next(iter(self.below.members), None)

    def open(self) -> None:
        """Open the builder, where it is not open yet."""
        # Imported here: most cards are only looked at.
        from nbext.notebook.forms.builder.form import SegmentForm

        if self.builder is None:
            self.below.fill(SegmentForm(self.client, self.query))


class Card(Form):
    """The card of a segment's table."""

    title = "Segment"

    def __init__(self, client: Any, frame: pd.DataFrame) -> None:
        self.known = known = Provenance.of(frame)
        if not hasattr(frame, "columns"):
            raise UsageError(
                f"show needs a segment's table, such as %%segment_query returns, not {visible(repr(frame), 60)}. "
                "Run %segment ID --card for a segment that you know by its id."
            )
        if not known.segment_id:
            raise UsageError(
                "show needs a segment's table, such as %%segment_query returns. This table does not say which segment "
                "it is: some pandas operations drop df.attrs. Show the original table, or run the query again."
            )
        super().__init__(client)
        self.hint = f"{visible(known.segment_id)} of {visible(known.service or 'the service')}"
        self.frame = frame
        self.asked = (known.filters or {}, str(known.operator or "AND"))
        words, self.steps, self.not_explained = explained(client, self.asked, known)
        self.facts = [*facts_of(frame), *[("Wallets that", words)] * bool(words)]
        name = str(known.segment_id)
        self.export = Export(self, name, partial(client.export_csv, name))
        self.edit = Edit(client, frame, "Open it in the builder")
        panel = row(*self.export.parts, self.edit, classes="nbext-panel")
        self.assemble(Markup(self.body()), panel, self.status, self.edit.below)

    def body(self) -> str:
        """Return the card without its buttons as HTML."""
        funnel = funnel_html(self.steps) + notes_html(self.not_explained)
        above = facts_html(self.facts) + section("First rows", frame_html(self.frame))
        spreads = section("Condition by condition", funnel) + "".join(self._spreads())
        return above + spreads + section("The same query as a cell", code_html(self.magic()))

    def magic(self) -> str:
        """Return the cell that runs the same query."""
        limit = self.known.limit
        # A number or nothing: of a segment that was read by its id, this is what the service answered.
        given = limit if isinstance(limit, int) and limit != self.client.settings["limit"] else None
        return cell_text("", *self.asked, given)

    def _spreads(self) -> Iterator[str]:
        """Yield how the amounts of each column are spread, over all wallets or, where not known, over the rows here."""
        is_cut = bool(part_of(self.frame))
        columns = columns_of(self.frame, "show")
        names = [column.name for column in columns]
        for column in columns:
            about, unit = column.about, column.about.get("unit")
            is_amount = column.kind == "number" and about.get("type") in _AMOUNTS
            if not is_amount or names.count(column.name) > 1:
                continue
            # These rows are the first by address, or whichever the user left.
            bins = column.bars(column.key.drop_null())
            of = f" (of the {len(self.frame):,} rows here)" if is_cut else ""
            # In the unit of a token, or of a collection's tokens.
            is_held = column.has_unit or unit == "token" or about["type"] == "integer"
            if is_cut and not self.not_explained and about.get("address") and is_held:
                # Where they cannot be counted the card shows how much is in the rows here, and says so.
                with suppress(NbextError):
                    bins, _ = counted(self.client, *self.asked, about)
                    of = f" (of all {sum(one['count'] for one in bins):,} wallets)"
            if bins:
                head = visible((not is_held and unit) or about.get("symbol") or "amount", 20)
                name = column.name.removesuffix("_raw" * column.has_unit)
                yield section(f"How much: {name}{of}", bars_html(bins, head))


class HistoryCard(Form):
    """The queries of a session, the last one first."""

    title = "History"

    def __init__(
        self, client: Any, queries: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
    ) -> None:
        """Take of each query its row of the history, and what a builder opens of it."""
        super().__init__(client)
        many = "query" if len(queries) == 1 else "queries"
        self.hint = f"{len(queries):,} {many}, the last one first"
        self.edits: list[Edit] = []
        self.facts, lines = list[tuple[Any, str]](), list[Box]()
        for shown, asked in reversed(queries):
            either = f"{visible(shown['operator'])} " * (shown["operator"] != "AND")
            matched = number_text(shown["matched"])
            said = f" · {visible(matched)} matched" * bool(matched)
            fact = shown["number"], f"{either}{visible(shown['filters'], _CUT)}{said}"
            self.facts.append(fact)
            edit = Edit(client, asked, f"Open query {fact[0]} in the builder")
            self.edits.append(edit)
            asked_for = row(Markup(facts_html([fact]), "nbext-asked"), edit)
            lines.append(Box(asked_for, edit.below, classes="nbext-section"))
        self.assemble(*lines, self.status)

    def magic(self) -> str:
        """Return the line that runs the last query again."""
        return f"%nbext history {self.facts[0][0]}" if self.facts else ""


class Export:
    """A button that saves wallets to the file that a field names, in the background; its ending says the format.

    ``write`` takes the path and whether a file there may be replaced, and returns what was written.
    """

    def __init__(self, form: Form, name: str, write: Callable[..., pd.DataFrame]) -> None:
        self.form, self.write = form, write
        # The name may be a stranger's: it must not lead to another folder.
        stem = re.sub(r"[^A-Za-z0-9_-]", "", name)[:80]
        self.file = InputField("File", f"{stem or 'wallets'}.csv", width="320px", entered=self.save)
        self.parts = (self.file, Button("Save", self.save, classes="nbext-save"))

    def save(self) -> None:
        """Save all wallets."""
        path = self.file.value.strip()
        if not path:
            raise UsageError("Give the file a name.")
        self.form.save(path, self._written)

    def _written(self, path: str, overwrite: bool) -> str:
        written = self.write(to=path, overwrite=overwrite)
        rows, folder = int(written["rows"].iloc[0]), Path(path).expanduser().absolute().parent
        of = ", cut by the limit" if Provenance.of(written).truncated else ""
        return f"Saved {path} in {folder}: {rows:,} row{'s' * (rows != 1)}{of}."


def explained(
    client: Any, asked: tuple[Mapping[str, Any], str], known: Provenance
) -> tuple[str, list[Mapping[str, Any]], list[str]]:
    """Return a segment in words, the counts of its conditions, and why these are unknown or of other data."""
    if not client.is_ours:
        why = ["Only nbext's own service counts the wallets that match each condition alone."]
        return "", [], why
    # The table is there whatever the service says now: a card without this part is better than none.
    try:
        found = client.funnel(*asked)
        steps = found["steps"]
        if len(steps) < 2:
            # Of conditions of which any holds: nothing is left over from one to the next.
            parts = client.explain(*asked, known.limit, parts=True).get("parts") or []
            steps = [{**part, "alone": part.get("matched")} for part in parts]
    except NbextError as error:
        return "", [], message_of(error).splitlines()
    words = str(found["words"]).removeprefix("wallets that ")
    changed = known.fingerprint not in (None, found.get("fingerprint"))
    return words, steps, retaken({"changed": changed}, str(known.segment_id))


def section(title: str, body: str) -> str:
    """Return a part of the card under its heading, or nothing for an empty part."""
    heading = f'<div class="nbext-label" role="heading" aria-level="3">{html(title)}</div>'
    return f'<div class="nbext-section">{heading}{body}</div>' if body else ""


class ContractCard(Form):
    """The card of the one contract of a table of metadata."""

    def __init__(self, client: Any, frame: pd.DataFrame, images: bool | None = None) -> None:
        if len(frame) != 1:
            raise UsageError(f"A card shows one contract; this table has {len(frame):,} rows.")
        super().__init__(client)
        self.frame, self.images = frame, client.settings["images"] if images is None else images
        rows: list[Any] = frame.to_dict("records")
        self.contract = contract = rows[0]
        self.is_nft = is_nft = Provenance.of(frame).operation == "nfts"
        self.title = "Collection" if is_nft else "Token"
        name, symbol = (text_of(contract.get(key)) for key in ("name", "symbol"))
        self.hint = visible((name or "No name") + f" ({symbol})" * bool(symbol))
        self.facts = contract_facts(contract)
        self.bins: Bins = []
        self.notes: list[str] = []
        asked, decimals = self.filters(), None if is_nft else contract.get("decimals")
        if not client.is_ours:
            self.notes = ["Only nbext's own service counts how much the holders have."]
        elif not is_nft and is_missing(decimals):
            self.notes = ["Its decimals are unknown, and so are its amounts."]
        else:
            column = {**contract, "decimals": None if decimals is None else int(decimals)}
            try:
                self.bins, self.notes = counted(client, asked, "AND", column)
            except NbextError as error:
                self.notes = [message_of(error)]
        write = partial(client.execute_segment, asked, file_type="csv", limit=MAX_LIMIT)
        self.export = Export(self, f"{symbol or name or 'contract'}-holders", write)
        self.edit = Edit(client, asked, "Build on its holders", "Build from this")
        self.line = Markup()
        self.variable = Variable("collection" if is_nft else "token", entered=self.take)
        self.use = Button("Use", self.take, classes="nbext-main nbext-use")
        metadata = row(self.variable, self.use, self.edit, classes="nbext-panel")
        below = (self.status, self.line, self.edit.below)
        self.assemble(Markup(self.body()), metadata, row(*self.export.parts), *below)

    def take(self) -> None:
        """Put the metadata into the variable."""
        if (name := self.variable.name()) is None:
            return
        variables()[name] = self.frame
        place = f"{self.contract.get('chain')} {self.contract.get('address')}"
        said, self.line.value = f"{name} is set.", ""
        # It is copied into a cell: a line break in a stranger's text begins a line of code there, and {{name}} sends
        # the service a variable of the notebook.
        if PLAIN.fullmatch(place) and name.isidentifier():
            said += " The same in a cell:"
            self.line.value = code_html(f"{name} = {'%nft' if self.is_nft else '%token'} {place}")
        self.say(said, "good")

    def filters(self) -> dict[str, Any]:
        """Return the filters of its holders' segment."""
        return holding("nft" if self.is_nft else "token", self.contract)

    def body(self) -> str:
        """Return the card without its buttons as HTML."""
        symbol = text_of(self.contract.get("symbol")) or "amount"
        unit = "tokens" if self.is_nft else visible(symbol, 20)
        below = notes_html(self.notes)
        if self.bins:
            title = f"How much its {sum(one['count'] for one in self.bins):,} holders have"
            below = section(title, bars_html(self.bins, unit) + below)
        below += section("Its holders as a cell", code_html(self.magic()))
        picture = image_html(self.contract.get("logo"), self.images)
        return f"{picture}{facts_html(self.facts)}<p>{marks_html(self.contract)}</p>{below}"

    def magic(self) -> str:
        """Return the cell that finds its holders."""
        return cell_text("holders", self.filters(), "AND", None)


def contract_facts(metadata: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return what is known of a contract, each with its label."""
    known = {key: value for key, value in metadata.items() if not is_missing(value)}
    supply, decimals = known.get("totalSupply"), known.get("decimals")
    if isinstance(decimals, int) and str(supply).isdecimal():
        exact = f" ({supply} in the smallest unit)" if decimals else ""
        known["totalSupply"] = units_text(str(supply), decimals) + exact
    return [(label, number_text(known[key])) for label, key in FACTS if key in known]


def image_html(url: object, allowed: bool) -> str:
    """Return a picture where pictures are switched on and the address is plain https; else nothing is loaded."""
    if not allowed or not isinstance(url, str):
        return ""
    try:
        parts = urlsplit(url)
        loads = parts.scheme == "https" and bool(parts.hostname) and parts.username is None
    except ValueError:
        return ""
    # A browser reads a backslash as a slash and drops line breaks, so what it loads is not what was checked here.
    if not loads or visible(url, None) != url or "\\" in url:
        return ""
    return f'<img src="{html(url, None)}" alt="" width="64" height="64" referrerpolicy="no-referrer" loading="lazy">'


def show(segment: pd.DataFrame, *, client: Client | None = None) -> Card:
    """Return a segment's card: counts, conditions in words, first rows, exports, and what each condition matches.

    Parameters
    ----------
    segment
        The table of a segment that was run; its ``attrs`` name the segment.
    client
        The client to use; by default the notebook's.

    Raises
    ------
    UsageError
        The table does not say which segment it is.
    """
    return Card(notebook_client(client), segment)
