"""The search form: find a collection or a token, look at it, and put it into a variable."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nbext.core.chains import DEFAULT_CHAIN, chain_names, chain_of
from nbext.core.provenance import Provenance
from nbext.core.rules import MAX_SEARCH_TERM
from nbext.core.uint256 import units_text
from nbext.core.untrusted_text import html, visible
from nbext.errors import ValidationError
from nbext.notebook.forms.builder import Edit
from nbext.notebook.forms.form import Background, Form, Snapshot
from nbext.notebook.forms.markup import (
    code_html,
    facts_html,
    lines_html,
    number_text,
    records,
    text_of,
)
from nbext.notebook.forms.variable import Variable
from nbext.notebook.results.deliver import own_table
from nbext.notebook.results.tables import as_text, is_missing, rows_html
from nbext.notebook.views.view import Box, Button, InputField, Markup, ViewPart, row

if TYPE_CHECKING:
    import pandas as pd

# As many as the eye runs over; the 700th of 1,000 results is on page 14.
PAGE = 50
# A cell of the results has room for no more; its whole text is in the title.
CUT = 80
# The last that a service of ours takes.
MAX_OFFSET = 2**31
# The search starts when typing pauses this long: a request per key would put the answer wanted last in line.
PAUSE = 0.4
PLAIN = re.compile(r"[\w:.-]+ [\w:.-]+")
EVERYTHING = "all"
KINDS = (
    ("tokens and collections", EVERYTHING),
    ("NFT collections", "nft"),
    ("ERC-721", "erc721"),
    ("ERC-1155", "erc1155"),
    ("ERC-20 tokens", "token"),
)
LABELS = {value: label for label, value in KINDS}
HEADS = ("Name", "Symbol", "Standard", "Owners", "Marks")
# Words, never colour alone.
MARKS = (("verified", "good", "✓ verified"), ("possibleSpam", "bad", "⚠ possible spam"))
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


@dataclass(frozen=True)
class SearchQuestion:
    """What is searched for."""

    term: str
    chain: str
    kind: str
    offset: int = 0


class SearchForm(Form):
    """Search tokens and collections as you type; pick one for its metadata; use it in a variable, or build on it."""

    title = "Search collections and tokens"
    hint = "Type part of a name or symbol. Press Enter to search at once."

    def __init__(
        self,
        client: Any,
        *,
        term: str = "",
        chain: str | None = None,
        kind: str = EVERYTHING,
        images: bool = False,
    ) -> None:
        super().__init__(client)
        self.images = images
        # Three, as the fields change while an answer is under way: the last one asked or about to be, the one under
        # way, and the one whose results are shown.
        self.question: SearchQuestion | None = None
        self.under_way: SearchQuestion | None = None
        self.answered: SearchQuestion | None = None
        self.results: list[dict[str, Any]] = []
        self.total: int | None = None
        self.notes: list[str] = []
        # Rows on a page: a service may give fewer than it is asked for.
        self.size = PAGE
        self.picked: dict[str, Any] | None = None
        self.term = InputField(
            "Name or symbol", term, placeholder="for example: apes", width="320px"
        )
        names, first = chain_choices(chain or DEFAULT_CHAIN.name)
        self.chain = InputField("Chain", first, choices=names, width="160px")
        self.kind = InputField("What", kind, choices=KINDS, width="190px")
        self.go = Button("Search", self.search, classes="nbext-main nbext-search")
        self.stop = Button("Cancel", self.cancel, classes="nbext-cancel nbext-late")
        self.stop.hide(True)
        self.term.entered(self.search)
        for field in (self.term, self.chain, self.kind):
            field.changed(lambda: self.search(PAUSE))
        self.table = ViewPart("results", self.do)
        self.detail = Detail(self)
        fields = (self.term, self.chain, self.kind, self.go, self.stop)
        self.assemble(row(*fields), self.status, self.table, self.detail.group)
        self._show()
        if term:
            self.search()

    @property
    def frame(self) -> pd.DataFrame | None:
        """The metadata of what is picked."""
        return self.detail.frame

    def search(self, after: float = 0.0) -> None:
        """Search for what the fields say, in ``after`` seconds if nothing else is typed; by default now."""
        question = SearchQuestion(self.term.value.strip(), self.chain.value, self.kind.value)
        self.term.error = term_error(question.term)
        if question.term and not self.term.error:
            self._ask(question, after=after)
            return
        # The results stay: an erased term is mostly a new one being typed.
        self.background.drop()
        self.question = self.under_way or self.answered
        self._draw()

    def do(self, asked: Mapping[str, Any]) -> None:
        """Do what a message of the page asks for: pick a result, or turn to the page after, before or of a number."""
        # What is pressed in rows of an earlier question comes too late.
        if self.is_older or self.answered is None:
            return
        offset, op = self.answered.offset, asked.get("op")
        if op == "pick":
            self.pick(int(asked["at"]))
            return
        if op == "next":
            # After the last one that is shown: nothing is skipped, however few came.
            offset += len(self.results)
        elif op == "back":
            offset = (offset - 1) // self.size * self.size
        elif op == "page":
            page = int(asked["page"])
            offset = self.size * (min(page, self.pages or page) - 1)
        else:
            return
        # Of the question whose results are shown: what is typed beside them may be another one.
        self._ask(replace(self.answered, offset=min(max(0, offset), MAX_OFFSET)), after=0.0)

    def _ask(self, question: SearchQuestion, *, after: float) -> None:
        if question != self.question:
            self.question = question
            if self.under_way is not None:
                self.drop_request()
            if question != self.under_way:
                self.background.schedule(lambda: self._run(question), after=after)
        elif after == 0.0:
            # Enter after typing: the same question, only sooner, unless it is already answered or under way.
            self.background.hurry()
        self._draw()

    def cancel(self) -> None:
        """Stop waiting for the answer; the results that are shown stay."""
        self.question, self.under_way = self.answered, None
        self.drop_request()
        # Before the button that has the focus is hidden: else the focus is nowhere.
        self.term.focus()
        self.stop.hide(True)
        self._draw()
        self.say("Cancelled.")

    def _run(self, question: SearchQuestion) -> None:
        self.say(f"Searching {question.chain} …", running=True)
        self.under_way = question
        self.stop.hide(False)
        try:
            found, total, notes = self._fetch(question)
        except Exception:
            if question != self.question:
                return
            # Enter on the same term tries again, and so does turning to the same page; without this either would count
            # as asked already.
            shown = self.answered
            self.question = (
                shown if shown and replace(question, offset=shown.offset) == shown else None
            )
            self._draw()
            raise
        finally:
            if self.under_way is question:
                self.under_way = None
                self.stop.hide(True)
        # An answer to a question that has changed meanwhile is dropped: its successor is on its way.
        if question == self.question:
            self.answered = question
            self.results, self.picked = found, None
            self.total, self.notes = total, notes
            if question.offset == 0:
                self.size = len(self.results) if self.results and self.has_more else PAGE
            self._show()

    def _fetch(
        self, asked: SearchQuestion, limit: int = PAGE
    ) -> tuple[list[Any], int | None, list[str]]:
        """Return a question's results, how many there are, and what is to be known of them."""
        if asked.kind != EVERYTHING:
            found = self.client.search_nfts(
                asked.term, asked.chain, type=asked.kind, limit=limit, offset=asked.offset
            )
            known = Provenance.of(found)
            total = known.matched if isinstance(known.matched, int) else None
            return records(found), total, known.notes()
        parts, notes = [], []
        for kind, label in (("nft", "collections"), ("token", "tokens")):
            rows, total, said = self._fetch(replace(asked, kind=kind), PAGE // 2)
            notes += said
            if rows and total != len(rows):
                of = "" if total is None else f" of {total:,}"
                notes.append(f"The first {len(rows)}{of} {label} are here. Narrow What for all.")
            parts.append(rows)
        # The best of both first.
        mixed = [one for pair in itertools.zip_longest(*parts) for one in pair if one is not None]
        return mixed, len(mixed), notes

    def pick(self, index: int) -> None:
        """Show the metadata of one of the results."""
        if self.is_older:
            return
        self.picked = self.results[index]
        self._draw()
        self.detail.load(self.picked)

    @property
    def has_more(self) -> bool:
        """Whether results follow those that are shown: without a total, as long as any came."""
        offset = self.answered.offset if self.answered else 0
        return bool(self.results) and (
            self.total is None or offset + len(self.results) < self.total
        )

    @property
    def pages(self) -> int | None:
        """How many pages there are; None where the service does not say how many results."""
        return None if self.total is None else max(1, -(-self.total // self.size))

    @property
    def is_older(self) -> bool:
        """Whether the results that are shown are of an earlier question than the last one."""
        return self.question != self.answered

    def _draw(self) -> None:
        offset = self.answered.offset if self.answered else 0
        self.table.show(
            rows=[shown_cells(result) for result in self.results],
            start=offset,
            total=self.total,
            page=offset // self.size + 1,
            pages=self.pages,
            more=self.has_more,
            older=self.is_older,
            picked=next(
                (at for at, result in enumerate(self.results) if result is self.picked), None
            ),
        )

    def _show(self) -> None:
        self._draw()
        self.detail.clear()
        self.say("\n".join([self._summary(), *self.notes]))
        self.renew()

    def _summary(self) -> str:
        asked = self.answered
        if asked is None:
            return ""
        count = f"{self.total:,}" if self.total is not None else ""
        if not self.results:
            before = f"{asked.offset:,}"
            if self.total is not None and self.total > asked.offset:
                after = f" after the first {before}" if asked.offset else ""
                return f"The service says that {count} match, and sent none{after}."
            if asked.offset:
                return f"No more results: {f'there are {count}' if count else f'{before} came before'}."
            where = f"the names and symbols of {LABELS[asked.kind]} on {asked.chain}"
            return f"Looked at {where}: none contains '{visible(asked.term)}'."
        here = f"{asked.offset + 1:,} to {asked.offset + len(self.results):,}"
        if self.total is None:
            return f"{here}. The service does not say how many there are."
        short = self.has_more and len(self.results) < PAGE
        why = f". The service sent {len(self.results)} of the {PAGE} asked for; Next shows those after them."
        return f"{here} of {count}" + (why if short else "")

    def snapshot(self) -> Snapshot:
        """The last question and its results, and what was picked."""
        if self.question is None:
            text = self.message or "No search yet."
            return Snapshot(f"<p>{lines_html(text)}</p>", f"{self.title}: {visible(text)}")
        shown = self.answered or self.question
        asked = f"'{visible(shown.term)}' in {LABELS[shown.kind]} on {shown.chain}"
        table = own_table([result_cells(result) for result in self.results], list(HEADS))
        picked = facts_html(self.detail.facts) if self.picked is not None else ""
        return Snapshot(
            f"<p>{html(asked, None)}: {html(self.message)}</p>{rows_html(table)}{picked}",
            f"{self.title}: {asked}: {visible(self.message)}\n{as_text(table)}",
        )

    def magic(self) -> str:
        """Return the magics that search for what the fields say."""
        kind, chain = self.kind.value, visible(self.chain.value)
        of = f" --type {kind}" if kind.startswith("erc") else ""
        magics = {EVERYTHING: ("%token", "%nft"), "token": ("%token",)}.get(kind, ("%nft",))
        term = visible(self.term.value.strip() or "TERM")
        return "\n".join(f'{magic} search "{term}" --chain {chain}{of}' for magic in magics)


class Detail:
    """The picked result: its metadata, and a name to use it by."""

    def __init__(self, form: SearchForm) -> None:
        self.form = form
        self.background = Background(form.failed)
        self.facts: list[tuple[str, object]] = []
        self.frame: pd.DataFrame | None = None
        self.text = Markup()
        self.line = Markup()
        self.variable = Variable("collection", width="200px")
        self.variable.field.entered(self.take)
        self.use = Button("Use", self.take, classes="nbext-main nbext-use")
        self.build = Edit(form.client, None, "Build a segment on its holders", "Build from this")
        bar = row(self.variable.field, self.use, self.build)
        self.group = Box(self.text, bar, self.line, self.build.below, classes="nbext-panel")

    def clear(self) -> None:
        """Show nothing."""
        self.frame, self.facts = None, []
        self.build.below.fill()
        self.group.hide(True)

    def load(self, result: Mapping[str, Any]) -> None:
        """Fetch the metadata of a result, and show it."""
        self.clear()
        form = self.form
        kind = "token" if is_token(result) else "nft"
        self.build.query = {kind: {kind: result.get("address"), "chain": result.get("chain")}}

        def run() -> None:
            look_up = form.client.tokens if is_token(result) else form.client.nfts
            chain, address = result.get("chain") or form.chain.value, result.get("address") or ""
            frame = look_up(str(chain), str(address))
            # Another result was picked while this one's metadata was on its way.
            if result is not form.picked:
                return
            self.frame = frame
            metadata = (records(frame) or [{}])[0]
            self.facts = contract_facts(metadata)
            picture = image_html(metadata.get("logo"), form.images)
            self.text.value = picture + facts_html(self.facts)
            self.line.value = ""
            self.group.hide(False)
            form.renew()

        self.background.schedule(run)

    def take(self) -> None:
        """Put the metadata that is shown into the variable."""
        picked = self.form.picked
        if self.frame is None or picked is None or (name := self.variable.name()) is None:
            return
        self.variable.assign(name, self.frame)
        magic = "%token" if is_token(picked) else "%nft"
        place = f"{picked.get('chain')} {picked.get('address')}"
        status, cell = f"{html(name)} is set.", ""
        # It is copied into a cell: a line break in a stranger's text begins a line of code there, and {{name}} sends
        # the service a variable of the notebook.
        if PLAIN.fullmatch(place) and name.isidentifier():
            status += " The same in a cell:"
            cell = code_html(f"{name} = {magic} {place}")
        self.line.value = f'<div class="nbext-good" role="status">{status}</div>{cell}'


def contract_facts(metadata: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return what is known of a contract, each with its label."""
    known = {key: value for key, value in metadata.items() if not is_missing(value)}
    supply, decimals = known.get("totalSupply"), known.get("decimals")
    if isinstance(decimals, int) and str(supply).isdecimal():
        exact = f" ({supply} in the smallest unit)" if decimals else ""
        known["totalSupply"] = units_text(str(supply), decimals) + exact
    return [(label, number_text(known[key])) for label, key in FACTS if key in known]


def is_token(result: Mapping[str, Any]) -> bool:
    """Return whether a search result is an ERC20 token rather than a collection."""
    return str(result.get("tokenType")).upper() == "ERC20"


def result_cells(result: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """Return a result as the texts of its line, in the order of HEADS."""
    name = text_of(result.get("name")) or text_of(result.get("address")) or "No name"
    marks = ", ".join(words[2:] for _, words in marks_of(result))
    standard, owners = text_of(result.get("tokenType")), number_text(result.get("ownerCount"))
    return name, text_of(result.get("symbol")), standard, owners, marks


def marks_of(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the marks of a result: the kind of each, and its words."""
    return [
        (kind, words)
        for key, kind, words in MARKS
        if not is_missing(result.get(key)) and result[key]
    ]


def shown_cells(result: Mapping[str, Any]) -> list[Any]:
    """Return a result's texts as the page draws them, hidden characters shown; then its marks."""
    return [*(visible(text, CUT) for text in result_cells(result)[:4]), marks_of(result)]


def marks_html(result: Mapping[str, Any]) -> str:
    """Return the marks of a result."""
    return " ".join(
        f'<span class="nbext-mark nbext-mark-{kind}">{words}</span>'
        for kind, words in marks_of(result)
    )


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
