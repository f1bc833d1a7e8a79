"""The search form: find a collection or a token, look at it, and put it into a variable."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nbext.client.validate import search_term_of
from nbext.core.chains import chain_names
from nbext.core.provenance import Provenance
from nbext.core.rules import ERC20
from nbext.core.uint256 import ungrouped, whole_of
from nbext.core.untrusted_text import html, visible
from nbext.notebook.forms.card import ContractCard
from nbext.notebook.forms.form import Form, Steps, notebook_client, what_is_wrong
from nbext.notebook.forms.markup import cells_html, marks_html, marks_of, number_text, text_of
from nbext.notebook.results.deliver import own_table
from nbext.notebook.results.tables import as_text
from nbext.notebook.schema import name_of_chain
from nbext.notebook.views.view import Box, Button, InputField, Markup, ViewPart, row

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client import Client

# As many as the eye runs over; the 700th of 1,000 results is on page 14.
PAGE = 50
# A cell of the results has room for no more.
CUT = 80
# The search starts when typing pauses this long: a request per key would put the answer wanted last in line.
PAUSE = 0.4
EVERYTHING = "all"
KINDS = {
    EVERYTHING: "tokens and collections",
    "nft": "NFT collections",
    "erc721": "ERC-721",
    "erc1155": "ERC-1155",
    "token": "ERC-20 tokens",
}
HEADS = ("Name", "Symbol", "Standard", "Owners", "Marks")


@dataclass(frozen=True)
class SearchQuestion:
    """What is searched for."""

    term: str
    chain: str
    kind: str
    offset: int = 0

    def in_words(self) -> str:
        """Return the question as a reader reads it: a part of a name or symbol, and where it is looked for."""
        return f"'{visible(self.term)}' in {KINDS[self.kind]} on {self.chain}"


NOTHING = SearchQuestion("", "", EVERYTHING)


class SearchForm(Form):
    """Search tokens and collections as you type; pick one for its metadata; use it in a variable, or build on it."""

    title = "Search collections and tokens"
    hint = "Type part of a name or symbol. Press Enter to search at once."
    unsaid = "No search yet."

    def __init__(self, client: Any, term: str, chain: str, kind: str, images: bool | None) -> None:
        super().__init__(client)
        self.images = images
        # Two: the one that is asked last, whose answer may be under way, failed or cancelled, and the one whose results
        # are shown. The table says which that is where the fields say another.
        self.asked = self.answered = NOTHING
        # Whether an answer is under way, or about to be asked for.
        self.waits = False
        self.results: list[dict[str, Any]] = []
        self.total: int | None = None
        self.notes: list[str] = []
        # Rows on a page: a service may give fewer than it is asked for.
        self.size = PAGE
        self.picked: dict[str, Any] | None = None
        typed = partial(self.search, PAUSE)
        self.term = InputField(
            "Name or symbol",
            term,
            examples="for example: apes",
            width="320px",
            changed=typed,
            entered=self.search,
        )
        first = name_of_chain(chain)
        names = dict.fromkeys([*chain_names(), first])
        chains = [(one, visible(one, 40)) for one in names]
        self.chain = InputField("Chain", first, choices=chains, changed=typed)
        self.kind = InputField("What", kind, choices=KINDS.items(), changed=typed)
        self.go = Button("Search", self.search, classes="nbext-main nbext-search")
        self.table = Markup(classes="nbext-results", do=self.do)
        self.page = InputField("Page", "1", width="80px", entered=self.to_page)
        self.pages_said = ViewPart("html", value="", classes="nbext-note nbext-pages")
        self.back = Button(
            "Previous", lambda: self._ask_from((self.offset - 1) // self.size * self.size)
        )
        # After the last one that is shown: nothing is skipped, however few came.
        self.next = Button("Next", lambda: self._ask_from(self.offset + len(self.results)))
        self.pager = row(self.page, self.pages_said, self.back, self.next)
        # The card of what is picked.
        self.below = Box()
        fields = row(self.term, self.chain, self.kind, self.go)
        self.assemble(fields, self.status, self.table, self.pager, self.below)
        self._tell()
        self.search()

    @property
    def card(self) -> Any:
        """The card of what is picked, once it is read, or None."""
        return next(iter(self.below.members), None)

    @property
    def frame(self) -> pd.DataFrame | None:
        """The metadata of what is picked."""
        return getattr(self.card, "frame", None)

    def search(self, after: float = 0.0) -> None:
        """Search for what the fields say, in ``after`` seconds if nothing else is typed; by default now."""
        question = self.question
        check = partial(search_term_of, takes_all=lambda: True)
        self.term.error = what_is_wrong(check, question.term)
        if question.term and not self.term.error:
            self._ask(question, after)
        elif self.waits:
            # The results stay: an erased term is mostly a new one being typed.
            self.cancel()
            self._tell()
        else:
            self._draw()

    @property
    def question(self) -> SearchQuestion:
        """What the fields say."""
        return SearchQuestion(self.term.value.strip(), self.chain.value, self.kind.value)

    def _other(self) -> str:
        """Return the question that the results answer, where the fields say another."""
        asked = self.answered
        is_other = asked.term and replace(asked, offset=0) != self.question
        return asked.in_words() if is_other else ""

    def do(self, asked: Mapping[str, Any]) -> None:
        """Pick the result that is pressed in the page; a key there turns the page."""
        if asked["op"] == "press":
            self.pick(int(asked["at"]))
        else:
            {"PageDown": self.next, "PageUp": self.back}[asked["key"]].press()

    def to_page(self) -> None:
        """Turn to the page whose number is typed, or to the last one."""
        if page := whole_of(ungrouped(self.page.value.strip())):
            self._ask_from(self.size * (min(page, self.pages or page) - 1))
        else:
            self._draw()

    def _ask_from(self, offset: int) -> None:
        # Of the question whose results are shown: what is typed beside them may be another one.
        if self.answered.term and not self.waits:
            self._ask(replace(self.answered, offset=max(0, offset)))

    def _ask(self, question: SearchQuestion, after: float = 0.0) -> None:
        # Enter after typing: the same question, only sooner, unless it is already answered or under way.
        known = question == self.answered or self.status.shown["running"]
        if question != self.asked or not known:
            self.asked, self.waits = question, True
            # What runs is forgotten: Enter is to hurry this one.
            self.status.show(running=False)
            self.background.schedule(partial(self._run, question), after=after)
        self._draw()

    def cancel(self) -> None:
        """Stop waiting for the answer; the results that are shown stay."""
        super().cancel()
        self._ended()

    def _ended(self) -> None:
        self.waits = False
        if self.card is None:
            # It was still being read.
            self.picked = None
        self._draw()

    def _run(self, question: SearchQuestion) -> Steps:
        self.say(f"Searching {question.chain} …", running=True)
        try:
            found, total, notes = yield partial(self._fetch, question)
        except Exception:
            # Enter on the same term tries again, and so does turning to the same page.
            self._ended()
            raise
        self.answered = question
        self.results, self.total, self.notes = found, total, notes
        if question.offset == 0:
            self.size = len(self.results) if self.results and self.has_more else PAGE
        self.below.fill()
        self._ended()
        self._tell()
        self.renew()

    def _fetch(
        self, asked: SearchQuestion, limit: int = PAGE
    ) -> tuple[list[Any], int | None, list[str]]:
        """Return a question's results, how many there are, and what is to be known of them."""
        if asked.kind != EVERYTHING:
            found = self.client.search_nfts(
                asked.term, asked.chain, type=asked.kind, limit=limit, offset=asked.offset
            )
            known = Provenance.of(found)
            return found.to_dict("records"), known.matched, known.notes()
        each = [self._fetch(replace(asked, kind=kind), PAGE // 2) for kind in ("nft", "token")]
        parts, notes = [rows for rows, _, _ in each], list[str]()
        for label, (rows, total, said) in zip(("collections", "tokens"), each, strict=True):
            # That there is none of one kind is no news beside the other kind's.
            notes += said if total != 0 or not any(parts) else []
            if rows and total != len(rows):
                of = "" if total is None else f" of {total:,}"
                notes.append(f"The first {len(rows)}{of} {label} are here. Narrow What for all.")
        # The best of both first.
        mixed = [one for pair in itertools.zip_longest(*parts) for one in pair if one is not None]
        return mixed, len(mixed), notes

    def pick(self, index: int) -> None:
        """Show the metadata of one of the results."""
        # What is pressed in rows of an earlier question comes too late.
        if self.waits:
            return
        self.picked = result = self.results[index]
        self.asked = self.answered
        # Another chain may be chosen by now.
        place = str(result.get("chain") or self.answered.chain), str(result.get("address") or "")
        self._draw()
        self.below.fill()

        def made() -> ContractCard:
            standard = str(result.get("tokenType")).upper()
            look_up = self.client.tokens if standard == ERC20 else self.client.nfts
            return ContractCard(self.client, look_up(*place), self.images)

        def load() -> Steps:
            self.below.fill((yield made))
            self._tell()
            self.renew()

        self.say("Reading what is known of it …", running=True)
        self.background.schedule(load)

    @property
    def offset(self) -> int:
        """How many results lie before those that are shown."""
        return self.answered.offset

    @property
    def has_more(self) -> bool:
        """Whether results follow those that are shown: without a total, as long as any came."""
        return bool(self.results) and (
            self.total is None or self.offset + len(self.results) < self.total
        )

    @property
    def pages(self) -> int | None:
        """How many pages there are; None where the service does not say how many results."""
        return None if self.total is None else max(1, -(-self.total // self.size))

    def _draw(self) -> None:
        self.table.value = self._table_html()
        self.page.value = str(self.offset // self.size + 1)
        self.pages_said.value = f"of {self.pages:,}" if self.pages else ""
        # Not off while an answer is under way, when they do nothing: a button that is switched off loses the focus.
        self.back.show(disabled=not self.offset)
        self.next.show(disabled=not self.has_more)
        self.pager.show(hidden=not self.offset and not self.has_more)

    def _table_html(self) -> str:
        """Return the results as a table; each name is a button."""
        rows = []
        for at, result in enumerate(self.results):
            name, *cells, owners = (html(text, CUT) for text in result_cells(result)[:4])
            state = ' aria-pressed="true"' * (result is self.picked)
            state += ' aria-disabled="true"' * self.waits
            about = f'class="nbext-name" title="{name}" data-at="{at}"{state}'
            button = f'<button type="button" {about}>{name}</button>'
            words = "".join(f'<td title="{cell}">{cell}</td>' for cell in cells)
            number = f'<td class="nbext-number">{owners}</td>'
            rows.append(f"<td>{button} {marks_html(result)}</td>{words}{number}")
        if not rows:
            return ""
        # The words of the marks stand beside the name.
        *texts, number = HEADS[:4]
        heads = "".join(f'<th scope="col">{head}</th>' for head in texts)
        heads += f'<th scope="col" class="nbext-number">{number}</th>'
        other = html(self._other(), None)
        note = other and f'<div class="nbext-note">{other}</div>'
        return note + cells_html(heads, rows)

    def _tell(self) -> None:
        self.asked = self.answered
        self.say("\n".join([self._summary(), *self.notes]))

    def _summary(self) -> str:
        asked = self.answered
        if not asked.term:
            return ""
        count = "" if self.total is None else f"{self.total:,}"
        if not self.results:
            before = f"{asked.offset:,}"
            if self.total is not None and self.total > asked.offset:
                after = f" after the first {before}" if asked.offset else ""
                return f"The service says that {count} match, and sent none{after}."
            if asked.offset:
                return f"No more results: {f'there are {count}' if count else f'{before} came before'}."
            where = f"the names and symbols of {KINDS[asked.kind]} on {asked.chain}"
            return f"Looked at {where}: none contains '{visible(asked.term)}'."
        here = f"{asked.offset + 1:,} to {asked.offset + len(self.results):,}"
        if not count:
            return f"{here}. The service does not say how many there are."
        why = f". The service sent {len(self.results)} of the {PAGE} asked for; Next shows those after them."
        return f"{here} of {count}" + why * (self.has_more and len(self.results) < PAGE)

    def state(self) -> str:
        """Return the last question, and what is said of its results."""
        return f"{self.asked.in_words()}: {self.message}" if self.asked.term else super().state()

    def printed(self) -> str:
        """Return the results as a table."""
        rows = [result_cells(result) for result in self.results]
        table = as_text(own_table(rows, list(HEADS))) if self.answered.term else ""
        return "\n".join(filter(None, [self._other(), table]))

    def magic(self) -> str:
        """Return the magics that search for what the fields say."""
        kind, chain = self.kind.value, visible(self.chain.value)
        of = f" --type {kind}" if kind.startswith("erc") else ""
        magics = {EVERYTHING: ("%token", "%nft"), "token": ("%token",)}.get(kind, ("%nft",))
        # Quotes and backslashes in it are written as JSON and a magic's line both have them.
        term = json.dumps(visible(self.term.value.strip() or "TERM"), ensure_ascii=False)
        return "\n".join(f"{magic} search {term} --chain {chain}{of}" for magic in magics)


def result_cells(result: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """Return a result as the texts of its line, in the order of HEADS."""
    name = text_of(result.get("name")) or text_of(result.get("address")) or "No name"
    marks = ", ".join(words[2:] for _, words in marks_of(result))
    standard, owners = text_of(result.get("tokenType")), number_text(result.get("ownerCount"))
    return name, text_of(result.get("symbol")), standard, owners, marks


def search_form(
    term: str = "",
    *,
    chain: str | None = None,
    kind: str = "all",
    images: bool | None = None,
    client: Client | None = None,
) -> SearchForm:
    """Return a form that searches tokens and collections, shows their metadata and assigns it to a variable.

    Parameters
    ----------
    term
        What to search for at once.
    chain
        The chain to begin with; by default that of the settings.
    kind
        What to look for to begin with: ``all``, ``nft`` (any collection), ``erc721``, ``erc1155`` or ``token``.
    images
        Load the picture of what is picked, from https addresses only: its server then sees this machine's address.
        By default the setting ``images``.
    client
        The client to use; by default the notebook's.
    """
    client = notebook_client(client)
    return SearchForm(client, term, chain or client.settings["chain"], kind, images)
