"""The search form: find a collection or a token, look at it, and put it into a variable."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import ipywidgets as w

from nbext.core.chains import DEFAULT_CHAIN, chain_names, chain_of
from nbext.core.constants import MAX_SEARCH_TERM
from nbext.core.untrusted_text import html, visible
from nbext.errors import ValidationError
from nbext.notebook.forms.form import Background, Form, Snapshot
from nbext.notebook.forms.tables import Variable, count_text, is_missing, number_text, provenance, records, text_of
from nbext.notebook.forms.widgets import (
    box,
    button,
    choice_field,
    code_html,
    facts_html,
    lines_html,
    markup,
    row,
    table_html,
    text_field,
    visibility,
)  # fmt: skip

if TYPE_CHECKING:
    import pandas as pd

# A page fits on a screen above the metadata of the picked result.
PAGE = 10
# The search starts when typing pauses this long: a request per key would put the answer wanted last in line.
PAUSE = 0.4
# A search that takes longer says for how long already, and can be cancelled.
SLOW = 2.0
PLAIN = re.compile(r"[\w:.-]+ [\w:.-]+")
KINDS = (("NFT collections", "nft"), ("ERC-721", "erc721"), ("ERC-1155", "erc1155"), ("ERC-20 tokens", "token"))
HEADS = ("Name", "Symbol", "Standard", "Owners", "Marks")
MARKS = (("verified", "verified"), ("possible spam", "possibleSpam"))
LINE_HEADS = '<div class="nbext-cells nbext-heads"><span>{}</span><span>{}</span>' + (
    '<span class="nbext-number">{}</span><span>{}</span></div>'
)
FACTS = (
    ("Name", "name"), ("Symbol", "symbol"), ("Address", "checksumAddress"),
    ("Chain", "chain"), ("Standard", "tokenType"), ("Decimals", "decimals"),
    ("Total supply", "totalSupply"), ("Owners", "ownerCount"), ("Holders", "holders"), ("Transfers", "transfers"),
    ("Deployer", "contractDeployer"), ("Deployed at block", "deployedBlockNumber"), ("Floor price", "floorPrice"),
)  # fmt: skip


@dataclass(frozen=True)
class Question:
    """What is searched for."""

    term: str
    chain: str
    kind: str
    offset: int = 0


class SearchForm(Form):
    """Search collections as you type; pick one for its metadata; use it in a variable."""

    title = "Search collections and tokens"
    hint = "Type part of a name or symbol. Press Enter to search at once."

    def __init__(self, client: Any, *, term: str = "", chain: str | None = None, images: bool = False) -> None:
        super().__init__(client)
        self.images = images
        # Three, as the fields change while an answer is under way: the last one asked or about to be, the one under
        # way, and the one whose results are shown.
        self.question: Question | None = None
        self.under_way: Question | None = None
        self.answered: Question | None = None
        # Who says that a search is under way must not say it after its answer.
        self.telling = threading.Lock()
        self.results: list[dict[str, Any]] = []
        self.total: int | None = None
        self.picked: dict[str, Any] | None = None
        self._build(term, chain or DEFAULT_CHAIN.name)
        if term:
            self.search()

    def _build(self, term: str, chain: str) -> None:
        self.term = text_field("Name or symbol", term, placeholder="for example: apes", width="320px")
        self.chain = choice_field("Chain", *chain_choices(chain), width="160px")
        self.kind = choice_field("What", KINDS, "nft", width="160px")
        self.go = button("Search", self.guarded(self.search), classes="nbext-main nbext-search")
        self.stop = button("Cancel", self.guarded(self.cancel), classes="nbext-quiet nbext-cancel")
        visibility(self.stop, False)
        self.term.changed(lambda _: self._typed()).entered(self.guarded(self.search))
        for field in (self.chain, self.kind):
            field.changed(lambda _: self._typed())
        # All lines of a page at once, filled and hidden as results come: replacing widgets loses the focus of whoever
        # works by keyboard, and flickers.
        self.lines = [ResultLine(self, index) for index in range(PAGE)]
        heads = row(markup('<div class="nbext-heads" style="padding:0 12px">Name</div>'), classes="nbext-line")
        heads.children[0].layout = w.Layout(flex="0 0 36%", width="36%")
        heads.children = (*heads.children, markup(LINE_HEADS.format(*HEADS[1:])))
        self.table = box(heads, *(line.widget for line in self.lines), classes="nbext-results")
        self.back = button("Previous", self.guarded(lambda: self._turn(-PAGE)), classes="nbext-quiet nbext-small")
        self.on = button("Next", self.guarded(lambda: self._turn(PAGE)), classes="nbext-quiet nbext-small")
        self.pager = row(self.back, self.on)
        self.detail = Detail(self)
        self.assemble(
            row(self.term.widget, self.chain.widget, self.kind.widget, self.go, self.stop),
            self.status, self.table, self.pager, self.detail.widget,
        )  # fmt: skip
        self._show()

    def typed_question(self, offset: int = 0) -> Question:
        """Return what the fields ask for."""
        return Question(self.term.value.strip(), self.chain.value, self.kind.value, offset)

    def search(self) -> None:
        """Search for what the fields say, now."""
        self._schedule(self.typed_question(), after=0.0)

    def _typed(self) -> None:
        self._schedule(self.typed_question(), after=PAUSE)

    def _turn(self, step: int) -> None:
        if self.question is not None:
            self._schedule(self.typed_question(max(0, self.question.offset + step)), after=0.0)

    def _schedule(self, question: Question, *, after: float) -> None:
        self.term.error = term_error(question.term)
        if not question.term or self.term.error:
            # The results stay: an erased term is mostly a new one being typed.
            self.background.drop()
            self.question = self.under_way or self.answered
        elif question != self.question:
            self.question = question
            if self.under_way is not None:
                # The latest does not wait for the one before it, whose answer is dropped when it comes.
                self.background.drop()
                self.background = Background(self.failed)
            if question != self.under_way:
                self.background.schedule(lambda: self._run(question), after=after)
        elif after == 0.0:
            # Enter after typing: the same question, only sooner, unless it is already answered or under way.
            self.background.hurry()
        self._mark_older()

    def cancel(self) -> None:
        """Stop waiting for the answer; the results that are shown stay."""
        with self.telling:
            self.question, self.under_way = self.answered, None
        self.background.drop()
        self.background = Background(self.failed)
        self.go.disabled = False
        visibility(self.stop, False)
        self._mark_older()
        self.say("Cancelled.")

    def _tell(self, question: Question) -> None:
        began = time.monotonic()
        while self.under_way is question:
            time.sleep(SLOW / 2)
            seconds = time.monotonic() - began
            with self.telling:
                if self.under_way is question and seconds >= SLOW:
                    self.say(f"Searching {question.chain} … {seconds:.0f} s")
                    visibility(self.stop, True)

    def _run(self, question: Question) -> None:
        self.go.disabled = True
        self.say(f"Searching {question.chain} …")
        self.under_way = question
        threading.Thread(target=self._tell, args=(question,), daemon=True, name="nbext-elapsed").start()
        try:
            found = self.client.search_nfts(
                question.term, question.chain, type=question.kind, limit=PAGE, offset=question.offset
            )
        except Exception:
            if question != self.question:
                return
            # Enter on the same term tries again; without this it would count as asked already.
            self.question = None
            raise
        finally:
            with self.telling:
                if self.under_way is question:
                    self.under_way, self.go.disabled = None, False
                    visibility(self.stop, False)
        # An answer to a question that has changed meanwhile is dropped: its successor is on its way.
        if question == self.question:
            self.answered = question
            total = provenance(found).get("matched")
            self.results, self.total, self.picked = records(found), total if isinstance(total, int) else None, None
            self._show()

    def pick(self, index: int) -> None:
        """Show the metadata of one of the results."""
        if self.is_older:
            return
        self.picked = self.results[index]
        self._mark_picked()
        self.detail.load(self.picked)

    @property
    def is_older(self) -> bool:
        """Whether the results that are shown are of an earlier question than the last one."""
        return self.question != self.answered

    def _mark_older(self) -> None:
        (self.table.add_class if self.is_older else self.table.remove_class)("nbext-older")
        for line in self.lines:
            line.name.disabled = self.is_older

    def _mark_picked(self) -> None:
        for index, line in enumerate(self.lines):
            chosen = self.picked is not None and index < len(self.results) and self.results[index] is self.picked
            (line.widget.add_class if chosen else line.widget.remove_class)("nbext-picked")

    def _show(self) -> None:
        for index, line in enumerate(self.lines):
            line.show(self.results[index] if index < len(self.results) else None)
        self._mark_picked()
        self._mark_older()
        offset = self.question.offset if self.question else 0
        # A service that gives no total may have more whenever a page is full.
        more = len(self.results) == PAGE if self.total is None else offset + PAGE < self.total
        self.back.disabled, self.on.disabled = offset == 0, not more
        visibility(self.table, bool(self.results))
        visibility(self.pager, bool(self.results) and (more or offset > 0))
        self.detail.clear()
        self.say(self._summary())
        self.renew()

    def _summary(self) -> str:
        if self.question is None:
            return ""
        if not self.results:
            return f"No name or symbol on {self.question.chain} contains '{visible(self.question.term)}'."
        first, last = self.question.offset + 1, self.question.offset + len(self.results)
        return f"{first:,} to {last:,}" + (f" of {self.total:,}" if self.total is not None else "")

    def snapshot(self) -> Snapshot:
        """The last question and its results, and what was picked."""
        if self.question is None:
            text = self.message or "No search yet."
            return Snapshot(f"<p>{lines_html(text)}</p>", f"{self.title}: {visible(text)}")
        kind = next(label for label, value in KINDS if value == self.question.kind)
        asked = f"'{visible(self.question.term)}' in {kind} on {self.question.chain}"
        rows = [result_cells(result) for result in self.results]
        picked = facts_html(self.detail.facts) if self.picked is not None else ""
        text = "\n".join("  ".join(map(visible, cells)) for cells in rows)
        return Snapshot(
            f"<p>{html(asked, None)}: {html(self.message)}</p>{table_html(HEADS, rows, numbers=[3])}{picked}",
            f"{self.title}: {asked}: {visible(self.message)}\n{text}",
        )


class ResultLine:
    """One line of the results: a button with the name, and the other cells."""

    def __init__(self, form: SearchForm, index: int) -> None:
        self.name = button("", form.guarded(lambda: form.pick(index)), classes="nbext-name")
        self.cells = markup()
        self.widget = row(self.name, self.cells, classes="nbext-line")

    def show(self, result: Mapping[str, Any] | None) -> None:
        """Show a result; without one, hide the line."""
        visibility(self.widget, result is not None)
        if result is None:
            return
        name, symbol, standard, owners, _ = result_cells(result)
        # A button's label is text in every front end, so a name may go there with hidden characters shown, unescaped.
        self.name.description, self.name.tooltip = visible(name, 80), f"Show the metadata of {visible(name, 80)}"
        cells = f"<span>{html(symbol)}</span><span>{html(standard)}</span>"
        cells += f'<span class="nbext-number">{html(owners)}</span><span>{marks_html(result)}</span>'
        self.cells.value = f'<div class="nbext-cells">{cells}</div>'


class Detail:
    """The picked result: its metadata, and a name to use it by."""

    def __init__(self, form: SearchForm) -> None:
        self.form = form
        self.background = Background(form.failed)
        self.facts: list[tuple[str, object]] = []
        self.frame: pd.DataFrame | None = None
        self.text = markup()
        self.line = markup()
        self.variable = Variable("collection", width="200px")
        self.use = button("Use", form.once_typed(self._use), classes="nbext-main nbext-use")
        self.variable.field.entered(form.once_typed(self._use))
        self.bar = row(self.variable.field.widget, self.use)
        self.widget = box(self.text, self.bar, self.line, classes="nbext-panel")

    def clear(self) -> None:
        """Show nothing."""
        self.frame, self.facts = None, []
        visibility(self.widget, False)

    def load(self, result: Mapping[str, Any]) -> None:
        """Fetch the metadata of a result, and show it."""
        self.clear()
        self.background.schedule(lambda: self._load(result))

    def _load(self, result: Mapping[str, Any]) -> None:
        chain, address = str(result.get("chain") or self.form.chain.value), str(result.get("address") or "")
        look_up = self.form.client.tokens if is_token(result) else self.form.client.nfts
        frame = look_up(chain, address)
        # Another result was picked while this one's metadata was on its way.
        if result is not self.form.picked:
            return
        self.frame = frame
        metadata = (records(frame) or [{}])[0]
        self.facts = contract_facts(metadata)
        self.text.value = image_html(metadata.get("logo"), self.form.images) + facts_html(self.facts)
        self.line.value = ""
        visibility(self.widget, True)
        self.form.renew()

    def _use(self) -> None:
        if self.frame is None or self.form.picked is None:
            return
        name = self.variable.name()
        self.variable.assign(name, self.frame)
        magic = "%token" if is_token(self.form.picked) else "%nft"
        place = f"{self.form.picked.get('chain')} {self.form.picked.get('address')}"
        status, cell = f"{html(name)} is set.", ""
        # It is copied into a cell: a line break in a stranger's text begins a line of code there, and {{name}} sends
        # the service a variable of the notebook.
        if PLAIN.fullmatch(place):
            status, cell = f"{html(name)} is set. The same in a cell:", code_html(f"{name} = {magic} {place}")
        self.line.value = f'<div class="nbext-good" role="status">{status}</div>{cell}'


def contract_facts(metadata: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return what is known of a contract, each with its label."""
    return [(label, number_text(metadata[key])) for label, key in FACTS if not is_missing(metadata.get(key))]


def is_token(result: Mapping[str, Any]) -> bool:
    """Return whether a search result is an ERC20 token rather than a collection."""
    return str(result.get("tokenType")).upper() == "ERC20"


def result_cells(result: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """Return a result as the texts of its line, in the order of HEADS."""
    name = text_of(result.get("name")) or text_of(result.get("address")) or "No name"
    marks = ", ".join(word for word, key in MARKS if is_true(result, key))
    standard, owners = text_of(result.get("tokenType")), count_text(result.get("ownerCount"))
    return name, text_of(result.get("symbol")), standard, owners, marks


def is_true(result: Mapping[str, Any], key: str) -> bool:
    """Return whether a field is known to be true."""
    return not is_missing(result.get(key)) and bool(result[key])


def marks_html(result: Mapping[str, Any]) -> str:
    """Return the marks of a result: words, never colour alone."""
    good = '<span class="nbext-mark nbext-mark-good">✓ verified</span>' if is_true(result, "verified") else ""
    bad = '<span class="nbext-mark nbext-mark-bad">⚠ possible spam</span>' if is_true(result, "possibleSpam") else ""
    return f"{good} {bad}"


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


def chain_choices(chain: str) -> tuple[list[tuple[str, str]], str]:
    """Return the chains to choose from and the one to begin with, which may be a remote service's own name."""
    names = list(chain_names())
    try:
        chain = chain_of(chain).name
    except ValidationError:
        names.append(chain)
    return [(visible(name, 40), name) for name in names], chain


def term_error(term: str) -> str:
    """Return what is wrong with a search term, or an empty text."""
    if len(term) > MAX_SEARCH_TERM:
        return f"{len(term):,} characters; a search term has at most {MAX_SEARCH_TERM}."
    return "A search term cannot contain a NUL character." if "\x00" in term else ""
