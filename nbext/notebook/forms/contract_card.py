"""The card of a token or a collection: its metadata, how many wallets hold how much, and the segment of its holders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbext.core.rules import MAX_LIMIT
from nbext.core.untrusted_text import visible
from nbext.errors import NbextError, UsageError
from nbext.notebook.forms.bins import Bins
from nbext.notebook.forms.builder.filters import cell_text
from nbext.notebook.forms.card import Edit, Export, section
from nbext.notebook.forms.distribution import bars_html, counted
from nbext.notebook.forms.form import Form, Snapshot, message_of
from nbext.notebook.forms.search import contract_facts, image_html, marks_html
from nbext.notebook.forms.tables import is_missing, records, text_of
from nbext.notebook.forms.widgets import code_html, facts_html, lines_html, markup, row

if TYPE_CHECKING:
    import pandas as pd


class ContractCard(Form):
    """The card of the one contract of a table of metadata; of a collection, ``is_nft``."""

    def __init__(self, client: Any, frame: pd.DataFrame, *, is_nft: bool) -> None:
        if len(frame) != 1:
            raise UsageError(f"A card shows one contract; this table has {len(frame):,} rows.")
        super().__init__(client)
        self.contract, self.is_nft = records(frame)[0], is_nft
        self.title = "Collection" if is_nft else "Token"
        name, symbol = (text_of(self.contract.get(key)) for key in ("name", "symbol"))
        self.hint = visible(f"{name or 'No name'} ({symbol})" if symbol else name or "No name")
        self.facts = contract_facts(self.contract)
        self.bins, self.notes = self._counted()
        self.export = Export(self, f"{symbol or name or 'contract'}-holders", self._write)
        self.edit = Edit(self, self.filters(), "Build on its holders", self.widget)
        panel = row(*self.export.widgets, self.edit.widget, classes="nbext-panel")
        self.assemble(markup(self.body()), panel, self.status)

    def _write(self, kind: str, path: str, overwrite: bool) -> pd.DataFrame:
        written: pd.DataFrame = self.client.execute_segment(
            self.filters(), file_type=kind, limit=MAX_LIMIT, to=path, overwrite=overwrite
        )
        return written

    def filters(self) -> dict[str, Any]:
        """Return the filters of its holders' segment."""
        kind = "nft" if self.is_nft else "token"
        return {
            kind: {
                kind: text_of(self.contract.get("address")),
                "chain": text_of(self.contract.get("chain")),
            }
        }

    def _counted(self) -> tuple[Bins, list[str]]:
        """Return how much its holders have and what is to be said of that, or why it is unknown."""
        if not self.client.is_ours:
            return [], ["Only nbext's own service counts how much the holders have."]
        decimals = None if self.is_nft else self.contract.get("decimals")
        if not self.is_nft and is_missing(decimals):
            return [], ["Its decimals are unknown, and so are its amounts."]
        column = {**self.contract, "decimals": None if decimals is None else int(decimals)}
        try:
            bins, notes = counted(self.client, self.filters(), "AND", [column])
        except NbextError as error:
            return [], [message_of(error)]
        return bins[0], notes

    def body(self) -> str:
        """Return the card without its buttons as HTML."""
        images = bool(self.client.settings["images"])
        holders = sum(count for _, count in self.bins)
        unit = (
            "tokens"
            if self.is_nft
            else visible(text_of(self.contract.get("symbol")) or "amount", 20)
        )
        notes = "".join(f'<p class="nbext-note">{lines_html(note)}</p>' for note in self.notes)
        bars = bars_html(self.bins, unit) if self.bins else ""
        spread = section(f"How much its {holders:,} holders have", bars + notes) if bars else notes
        cell = section(
            "Its holders as a cell", code_html(cell_text("holders", self.filters(), "AND", None))
        )
        marks = f"<p>{marks_html(self.contract)}</p>"
        return f"{image_html(self.contract.get('logo'), images)}{facts_html(self.facts)}{marks}{spread}{cell}"

    def snapshot(self) -> Snapshot:
        """Return the card itself, without its button."""
        facts = "\n".join(f"{name}: {visible(value)}" for name, value in self.facts)
        return Snapshot(self.body(), f"{self.title} {self.hint}\n{facts}")
