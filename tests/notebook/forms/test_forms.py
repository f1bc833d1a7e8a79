"""Forms without a browser, over real HTTP: one request for each action, errors inside, nothing secret in a widget."""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import nbext
from nbext.client import Client
from nbext.core.untrusted_text import visible
from nbext.notebook.forms.card import ContractCard
from nbext.notebook.forms.form import Form
from tests.browser import hostile as service

KEY = "key-5d1f0a"
ADDRESS = "someone@example.org"


@pytest.fixture
def hostile() -> Iterator[service.Hostile]:
    with service.running() as running:
        yield running


@pytest.fixture
def client(hostile: service.Hostile) -> Client:
    return nbext.connect(hostile.url, KEY)


def soon(true: Callable[[], Any]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end, "not within ten seconds"
        time.sleep(0.02)


def enter(field: Any) -> None:
    """Press Enter in a field, as the front end tells it."""
    field.enter()


def filled(client: Client) -> Any:
    form = nbext.signup_form(client=client)
    form.email.type(ADDRESS)
    form.consent.type(True)
    return form


def states(form: Form) -> str:
    """Every trait of a form's widget that a front end, and so a saved notebook, may get."""
    return str(form.widget.get_state())


def test_clicks_and_enters_while_the_service_is_slow_send_one_sign_up(client, hostile):
    form = filled(client)
    for _ in range(3):
        form.go.press()
        enter(form.email)
    assert form.go.shown["disabled"]
    form.go.press()
    enter(form.email)
    soon(lambda: "Thank you" in form.message)
    form.go.press()
    enter(form.email)
    assert form.background.join(5)
    assert hostile.of("/v1/signup/newsletter") == [{"email": ADDRESS}]
    assert (form.email.value, form.consent.value) == ("", False)


@pytest.mark.slow
def test_an_address_that_is_typed_while_another_is_sent_stays_and_can_be_signed_up(client, hostile):
    form = filled(client)
    real, go_on = client.sign_up, threading.Event()
    client.sign_up = lambda address: (go_on.wait(10), real(address))
    form.go.press()
    form.email.type("other@example.org")
    go_on.set()
    soon(lambda: "Thank you" in form.message)
    assert form.background.join(5)
    assert (form.email.value, form.consent.value) == ("other@example.org", True)
    form.go.press()
    assert form.background.join(5)
    assert (form.email.value, form.consent.value) == ("", False)
    assert hostile.of("/v1/signup/newsletter") == [
        {"email": ADDRESS},
        {"email": "other@example.org"},
    ]


def test_two_forms_send_one_sign_up_each(client, hostile):
    forms = [filled(client), filled(client)]
    for form in forms:
        form.go.press()
    for form in forms:
        soon(lambda form=form: "Thank you" in form.message)
    assert len(hostile.of("/v1/signup/newsletter")) == 2


def test_after_a_sign_up_neither_widgets_nor_outputs_hold_the_address(client):
    form = filled(client)
    form.go.press()
    soon(lambda: "Thank you" in form.message)
    for place in (states(form), str(form._repr_mimebundle_()), form.still_html(), form.text()):
        assert ADDRESS not in place


def test_an_error_that_echoes_the_address_is_shown_without_it(client):
    form = filled(client)
    form.email.type("refused@example.org")
    form.go.press()
    soon(lambda: "the address is refused" in form.message)
    assert "refused@example.org" not in form.status.shown["text"] + form.still_html() + form.text()


def test_what_is_typed_is_never_in_the_state_that_a_notebook_may_save(client):
    form = filled(client)
    assert form.email.value == ADDRESS
    assert ADDRESS not in states(form) + form.still_html() + form.text()


def test_an_error_is_escaped_once_where_html_is_made_of_it_and_nowhere_else(client, hostile):
    said = hostile.names[2]
    form = nbext.segment_form({"token": {"token": "refused"}, "nft": [{"nft": "x"}]}, client=client)
    line = form.edits.now.root.members[0]
    soon(lambda: form.errors)
    with form.lock:  # until all of the answer is shown
        pass
    wrong = [{"part": line.id, "field": "token", "key": "", "detail": visible(said)}]
    first, second = form.lines.shown["tree"]["root"]["members"]
    assert (form.errors, first["errors"], second["errors"]) == (wrong, wrong, [])
    unknown = f"/filters/{hostile.names[0]}: {hostile.names[4]}"
    assert form.message == unknown
    assert (form.status.shown["text"], form.status.shown["state"]) == (unknown, "bad")
    assert form.text().splitlines()[0] == f"Segment builder: {unknown}"
    assert f"<p>{html.escape(unknown)}</p>" in form.still_html()


def test_the_addresses_own_words_are_never_live_html_in_the_sign_up_form(client):
    form = filled(client)
    form.email.type("<img src=x onerror=alert(1)>@example.org")
    enter(form.email)
    assert form.email.error
    assert "\u202e" not in form.email.error


WRONG = ("a@b", "a b@example.org", "x" * 250 + "@example.org", "a@example.org, b@example.org")


@pytest.mark.parametrize("address", WRONG)
def test_what_is_no_address_is_said_beside_the_field_and_never_sent(client, hostile, address):
    form = filled(client)
    form.email.type(address)
    enter(form.email)
    assert form.email.error
    assert form.background.join(5)
    assert hostile.of("/v1/signup/newsletter") == []


def test_without_consent_nothing_is_sent(client, hostile):
    form = filled(client)
    form.consent.type(False)
    enter(form.email)
    assert form.go.shown["disabled"]
    assert "agree" in form.message
    assert hostile.of("/v1/signup/newsletter") == []


def test_typing_fast_asks_once_and_enter_on_the_same_question_asks_no_more(client, hostile):
    form = nbext.search_form(kind="nft", client=client)
    for length in range(1, 6):
        form.term.type("apes!"[:length])
    enter(form.term)
    soon(lambda: form.results)
    enter(form.term)
    form.go.press()
    assert form.background.join(5)
    assert [body["searchTerm"] for body in hostile.of("/v1/search")] == ["apes!"]


def test_a_term_that_is_too_long_or_holds_nul_is_refused_beside_the_field(client, hostile):
    form = nbext.search_form(kind="nft", client=client)
    for term in ("x" * 257, "a\x00b"):
        form.term.type(term)
        enter(form.term)
        assert form.term.error
    assert form.background.join(5)
    assert hostile.of("/v1/search") == []


@pytest.mark.slow
def test_a_service_that_is_gone_is_said_in_the_form_and_may_be_asked_again(client, hostile):
    form = nbext.search_form(kind="nft", client=client)
    real, form.client = form.client, nbext.connect("http://127.0.0.1:9", KEY)
    form.term.type("ape")
    enter(form.term)
    soon(lambda: form.status.shown["state"] == "bad")
    form.client = real
    enter(form.term)
    soon(lambda: form.results)
    assert form.status.shown["state"] != "bad"


def test_a_form_that_is_closed_while_the_service_is_slow_fails_nowhere(client):
    form = filled(client)
    failures: list[Exception] = []
    form.background.failed = failures.append
    form.go.press()
    form.widget.close()
    assert form.background.join(10)
    assert failures == []


def test_no_widget_takes_a_password_and_none_holds_the_key(client):
    table = client.execute_segment({"token": {"token": "x"}})
    forms = [
        nbext.search_form("ape", kind="nft", client=client),
        nbext.signup_form(client=client),
        nbext.segment_form({"token": {"token": "x"}}, client=client),
        nbext.show(table, client=client),
    ]
    for form in forms:
        assert form.background.join(10)
        held = states(form) + form.still_html() + form.text() + repr(form)
        assert KEY not in held
        assert "PasswordModel" not in held


def test_every_form_gives_html_and_text_beside_the_widget(client):
    table = client.execute_segment({"token": {"token": "x"}})
    for form in (
        nbext.search_form(kind="nft", client=client),
        nbext.signup_form(client=client),
        nbext.show(table, client=client),
    ):
        assert list(form._repr_mimebundle_()) == [
            "application/vnd.jupyter.widget-view+json",
            "text/html",
            "text/plain",
        ]
        assert form.still_html().startswith("<")
        assert form.title in form.text()


@pytest.mark.slow
def test_a_refused_query_is_marked_beside_the_field_and_the_mark_goes_when_it_is_mended(client):
    form = nbext.segment_form({"token": {"token": "refused"}}, client=client)
    line = form.edits.now.root.members[0]
    soon(lambda: "h0stile02" in str(form.errors))
    form.do({"op": "set", "id": line.id, "field": "token", "value": "fine"})
    assert form.errors == []
    soon(lambda: form.matched == service.COUNT)


def test_a_service_without_a_schema_gets_no_builder_but_a_word_of_advice(hostile):
    hostile._schema = lambda *_: (404, {"title": "Not found", "status": 404})
    with pytest.raises(nbext.errors.ConfigError, match="publishes no schema"):
        nbext.segment_form(client=nbext.connect(hostile.url, KEY))


def test_what_a_schema_says_at_length_is_not_sent_to_the_page_with_each_field(client):
    form = nbext.segment_form({"token": {"token": "x"}}, client=client)
    token = form.lines.shown["spec"]["conditions"]["token"]["fields"][0]
    told = ["name", "label", "help", "shape", "required", "keys", "picks", "choices", "examples"]
    assert (list(token), token["picks"]) == (told, "token")


def test_show_wants_a_segments_table(client):
    import pandas as pd

    with pytest.raises(nbext.errors.UsageError, match="does not say which segment"):
        nbext.show(pd.DataFrame({"address": []}), client=client)


def test_a_card_draws_amounts_and_conditions_without_a_picture_and_names_literally(client, hostile):
    table = client.execute_segment({"token": {"token": "x"}}).head(3)
    body = nbext.show(table, client=client).body()
    assert "<img" not in body
    assert '<td class="nbext-bin">0 to 0.1</td>' in body
    assert (
        f'<td class="nbext-step">{html.escape(visible(hostile.names[2], 400))}<div class="nbext-bar"'
        in body
    )


def test_a_newer_question_is_answered_although_the_one_before_it_failed(client, hostile):
    form = nbext.search_form(kind="nft", client=client)
    real, started = client.search_nfts, threading.Event()

    def slow_then_fails(*_: Any, **__: Any) -> None:
        started.set()
        time.sleep(0.3)
        raise nbext.errors.ServerError("gone", status=503)

    client.search_nfts = slow_then_fails
    form.term.type("first")
    enter(form.term)
    assert started.wait(5)
    client.search_nfts = real
    form.term.type("second")
    enter(form.term)
    soon(lambda: form.results)
    assert form.status.shown["state"] != "bad"


@pytest.mark.slow
def test_the_latest_term_does_not_wait_for_a_slow_one_and_earlier_rows_cannot_be_picked_meanwhile(
    client, hostile
):
    form = nbext.search_form("first", kind="nft", client=client)
    soon(lambda: form.results)
    real, started, go_on = client.search_nfts, threading.Event(), threading.Event()

    def slow(term: str, *rest: Any, **options: Any) -> Any:
        if term != "slow":
            return real(term, *rest, **options)
        started.set()
        go_on.wait(20)
        return real("late", *rest, **options)

    client.search_nfts = slow
    form.term.type("slow")
    enter(form.term)
    assert started.wait(5)
    assert (form.next.shown["disabled"], 'aria-disabled="true"' in form.table.value) == (True, True)
    for late in ({"op": "press", "at": "0"}, {"op": "key", "key": "PageDown"}):
        form.do(late)
    form.page.type("2")
    enter(form.page)
    assert (form.picked, form.asked.term) == (None, "slow")
    soon(lambda: form.status.shown["running"])
    assert (form.message, form.status.shown["running"]) == ("Searching ethereum …", True)
    form.term.type("latest")
    enter(form.term)
    soon(lambda: (form.answered.term, form.message) == ("latest", "1 to 40 of 40"))
    assert not form.waits
    go_on.set()
    soon(lambda: "late" in [body["searchTerm"] for body in hostile.of("/v1/search")])
    time.sleep(0.2)
    assert (form.message, form.answered.term) == ("1 to 40 of 40", "latest")
    form.pick(0)
    assert form.picked is form.results[0]


def test_enter_hurries_what_was_typed_while_an_earlier_search_is_under_way(client, monkeypatch):
    # A pause that no test sees the end of.
    monkeypatch.setattr("nbext.notebook.forms.search.PAUSE", 3600.0)
    form = nbext.search_form(kind="nft", client=client)
    real, started, go_on = client.search_nfts, threading.Event(), threading.Event()

    def slow(term: str, *rest: Any, **options: Any) -> Any:
        if term == "slow":
            started.set()
            go_on.wait(20)
        return real(term, *rest, **options)

    client.search_nfts = slow
    form.term.type("slow")
    enter(form.term)
    assert started.wait(5)
    form.term.type("latest")
    enter(form.term)
    soon(lambda: (form.answered.term, form.message) == ("latest", "1 to 40 of 40"))
    go_on.set()


def test_a_search_that_is_cancelled_leaves_the_results_before_it_and_may_be_asked_again(
    client, hostile
):
    form = nbext.search_form("first", kind="nft", client=client)
    soon(lambda: form.results)
    real, started, go_on = client.search_nfts, threading.Event(), threading.Event()

    def slow(*asked: Any, **options: Any) -> Any:
        started.set()
        go_on.wait(20)
        return real(*asked, **options)

    client.search_nfts = slow
    form.term.type("second")
    enter(form.term)
    assert started.wait(5)
    form.status.obey({"op": "cancel"})
    assert (form.message, form.waits) == ("Cancelled.", False)
    go_on.set()
    soon(lambda: len(hostile.of("/v1/search")) == 2)
    time.sleep(0.2)
    assert (form.message, form.answered.term) == ("Cancelled.", "first")
    enter(form.term)
    soon(lambda: (form.answered.term, form.message) == ("second", "1 to 40 of 40"))


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
def test_results_that_are_left_say_of_which_search_they_are_after_a_later_one_failed_or_was_cancelled(
    client, hostile, ending
):
    form = nbext.search_form("first", kind="nft", client=client)
    first, second = (f"{term} in NFT collections on ethereum" for term in ("'first'", "'second'"))
    # The results are there before they are shown.
    soon(lambda: form.state() == f"{first}: 1 to 40 of 40")
    assert form.printed()[:4] == "Name"
    plain = form.table.value
    real, started, go_on = client.search_nfts, threading.Event(), threading.Event()

    def slow(*_: Any, **__: Any) -> Any:
        started.set()
        go_on.wait(20)
        raise nbext.errors.ServerError("gone", status=503)

    client.search_nfts = slow
    form.term.type("second")
    form.chain.type("base")
    form.chain.type("ethereum")
    enter(form.term)
    assert started.wait(5)
    if ending == "failed":
        go_on.set()
    else:
        form.status.obey({"op": "cancel"})
        go_on.set()
    said = {"failed": "gone", "cancelled": "Cancelled."}[ending]
    soon(lambda: form.state() == f"{second}: {said}")
    caption = '<div class="nbext-note">&#x27;first&#x27; in NFT collections on ethereum</div>'
    assert form.table.value.startswith(caption)
    assert form.printed().startswith(f"{first}\nName")
    client.search_nfts = real
    enter(form.term)
    soon(lambda: form.state() == f"{second}: 1 to 40 of 40")
    assert form.table.value == plain
    # Of what is no question, too.
    form.term.type("")
    assert form.table.value == caption.replace("first", "second") + plain


def test_what_is_picked_is_looked_up_on_the_chain_that_was_searched_and_not_on_one_chosen_since(
    client, hostile
):
    form = nbext.search_form("first", kind="nft", client=client)
    soon(lambda: form.results)
    for result in form.results:
        del result["chain"]
    looked_up: list[tuple[str, str]] = []

    def nfts(*asked: str) -> Any:
        looked_up.append(asked)
        raise nbext.errors.ServerError("gone", status=503)

    client.nfts = nfts
    # Chosen, and not searched yet.
    form.chain.type("base")
    form.cancel()
    form.pick(0)
    soon(lambda: looked_up)
    assert looked_up == [("ethereum", form.results[0]["address"])]


def searched(hostile: service.Hostile) -> list[tuple[Any, ...]]:
    return [
        (body["searchTerm"], body.get("offset", 0), body["limit"])
        for body in hostile.of("/v1/search")
    ]


def turned(form: Any, to: Any) -> tuple[str, list[int]]:
    """Press a button of the pager, or type a number; return the form's words, and the numbers of its results."""
    if isinstance(to, int | str):
        form.page.type(str(to))
        form.page.enter()
    else:
        to.press()
    assert form.background.join(10)
    return form.message, [int(result["address"], 16) for result in form.results]


def test_the_700th_of_a_thousand_results_is_on_page_14_and_turning_ends_at_the_last_page(
    client, hostile
):
    hostile.found = 1000
    form = nbext.search_form("x", kind="nft", client=client)
    assert form.background.join(10)
    assert (form.message, form.pages, form.page.value) == ("1 to 50 of 1,000", 20, "1")
    assert turned(form, 14) == ("651 to 700 of 1,000", [*range(651, 701)])
    assert turned(form, form.back) == ("601 to 650 of 1,000", [*range(601, 651)])
    assert turned(form, "1,000") == ("951 to 1,000 of 1,000", [*range(951, 1001)])
    assert (form.page.value, form.next.shown["disabled"]) == ("20", True)
    for nothing in ("x", "0", "²", "9" * 30):
        form.page.type(nothing)
        form.page.enter()
        assert form.page.value == "20"
    form.do({"op": "press", "at": "49"})
    assert form.picked is form.results[49]
    assert 'data-at="49" aria-pressed="true"' in form.table.value
    assert searched(hostile) == [("x", 0, 50), ("x", 650, 50), ("x", 600, 50), ("x", 950, 50)]


def test_of_more_tokens_and_collections_than_fit_a_page_the_form_says_that_they_are_the_first(
    client, hostile
):
    hostile.found = 1000
    form = nbext.search_form("x", client=client)
    assert form.background.join(10)
    first = "The first 25 of 1,000 {} are here. Narrow What for all."
    assert form.message.splitlines() == [
        "1 to 50 of 50",
        first.format("collections"),
        first.format("tokens"),
    ]
    assert searched(hostile) == [("x", 0, 25)] * 2


def test_a_page_is_turned_of_the_results_that_are_shown_and_not_of_what_is_typed_beside_them(
    client, hostile
):
    hostile.found = 120
    form = nbext.search_form("first", kind="nft", client=client)
    assert form.background.join(10)
    form.term.type("x" * 257)
    assert turned(form, form.next)[0] == "51 to 100 of 120"
    assert form.term.error
    form.term.type("")
    assert turned(form, form.next) == ("101 to 120 of 120", [*range(101, 121)])
    form.term.type("second")
    turned(form, form.back)
    assert searched(hostile) == [
        ("first", 0, 50),
        ("first", 50, 50),
        ("first", 100, 50),
        ("second", 0, 50),
    ]


def test_a_service_that_sends_fewer_than_a_page_is_said_to_and_none_of_its_results_is_skipped(
    client, hostile
):
    hostile.found, hostile.most = 90, 20
    form = nbext.search_form("x", kind="nft", client=client)
    assert form.background.join(10)
    why = " of 90. The service sent 20 of the 50 asked for; Next shows those after them."
    assert (form.message, form.pages) == (f"1 to 20{why}", 5)
    assert turned(form, form.next) == (f"21 to 40{why}", [*range(21, 41)])
    assert turned(form, 4) == (f"61 to 80{why}", [*range(61, 81)])
    assert turned(form, form.next) == ("81 to 90 of 90", [*range(81, 91)])
    assert form.next.shown["disabled"]
    assert turned(form, form.back) == (f"61 to 80{why}", [*range(61, 81)])


def test_where_the_service_does_not_say_how_many_there_are_the_form_says_so_and_goes_on_to_the_last(
    client, hostile
):
    hostile.found, hostile.ours = 60, False
    form = nbext.search_form("x", kind="nft", client=client)
    assert form.background.join(10)
    unknown, sent = ". The service does not say how many there are.", "The service sent 60 hits:"
    # What it sends as a supply is a hostile text.
    supply = (
        "A value of totalSupply is not a whole number, or it or its sum has more than 76 digits: "
        "it is text, which sorts 9 after 10. .map(int) makes numbers of it."
    )
    first, second = (
        f"1 to 50{unknown}\n{supply}\n{sent} 50 are here.",
        f"51 to 60{unknown}\n{supply}\n{sent} 10 are here, after the first 50.",
    )
    assert (form.message, form.pages, form.next.shown["disabled"]) == (first, None, False)
    assert turned(form, form.next) == (second, [*range(51, 61)])
    none = f"No more results: 60 came before.\n{supply}\n{sent} none is here, after the first 60."
    assert turned(form, form.next) == (none, [])
    assert form.next.shown["disabled"]
    assert turned(form, form.back) == (second, [*range(51, 61)])
    assert turned(form, form.back) == (first, [*range(1, 51)])
    # What no service takes is said, and not asked for as another page.
    said, shown = turned(form, "9" * 30)
    assert said.endswith("is not allowed. Allowed: a whole number from 0 to 1,000,000.")
    assert (shown, form.page.value, form.status.shown["state"]) == ([*range(1, 51)], "1", "bad")


def test_a_total_of_which_no_row_came_is_not_called_nothing_found(client, hostile):
    hostile.most = 0
    form = nbext.search_form("x", kind="nft", client=client)
    assert form.background.join(10)
    assert form.message == "The service says that 40 match, and sent none."


@pytest.mark.slow
def test_a_page_that_could_not_be_fetched_leaves_the_one_before_and_may_be_asked_for_again(
    client, hostile
):
    hostile.found = 100
    form = nbext.search_form("x", kind="nft", client=client)
    assert form.background.join(10)
    real, form.client = form.client, nbext.connect("http://127.0.0.1:9", KEY)
    turned(form, form.next)
    assert form.status.shown["state"] == "bad"
    assert (form.waits, form.page.value) == (False, "1")
    form.client = real
    assert turned(form, form.next) == ("51 to 100 of 100", [*range(51, 101)])


def test_what_was_said_of_the_results_is_said_again_once_what_was_picked_is_read_or_a_term_erased(
    client, hostile
):
    hostile.found = 1000
    form = nbext.search_form("x", client=client)
    assert form.background.join(10)
    said = form.message
    assert "Narrow What for all." in said
    form.pick(0)
    assert form.background.join(10)
    assert (form.message, form.card is None) == (said, False)
    form.term.type("xx")
    form.term.type("")
    assert form.message == said


def test_a_term_that_was_erased_and_typed_again_is_searched(client, hostile):
    form = nbext.search_form(kind="nft", client=client)
    for term in ("ape", "", "ape"):
        form.term.type(term)
    soon(lambda: form.message.startswith("1 to"))
    asked = len(hostile.of("/v1/search"))
    form.term.type("")
    form.term.type("ape")
    form.go.press()
    assert form.background.join(10)
    assert len(hostile.of("/v1/search")) == asked == 1
    assert form.message.startswith("1 to")


def test_an_error_that_echoes_the_address_as_it_was_sent_is_shown_without_it(client):
    form = filled(client)
    form.email.type("refused@Example.ORG")
    form.go.press()
    soon(lambda: form.message and form.message != "Sending …")
    assert "the address" in form.message
    assert "example.org" not in form.message.lower()


def test_an_error_that_echoes_the_sent_address_is_shown_without_it_although_another_one_is_typed_by_then(
    client,
):
    form = filled(client)
    form._sent = "refused@example.org"
    form.failed(nbext.errors.ServerError("refused@example.org is refused", status=503))
    assert form.message == "the address is refused"
    assert form.email.value == ADDRESS


def test_a_cell_to_be_copied_has_no_option_and_no_line_of_a_strangers(client):
    table = client.execute_segment({"token": {"token": "x"}})
    table.attrs["nbext"] |= {"operator": "OR --to x.csv\n!id", "limit": "5 --to x.csv"}
    assert nbext.show(table, client=client).magic() == '%%segment_query\n{"token": {"token": "x"}}'


@pytest.mark.parametrize("unknown", [None, float("nan"), ""])
def test_the_holders_of_a_contract_whose_chain_is_unknown_are_asked_for_without_one(
    client, unknown
):
    found = client.nfts("ethereum", f"0x{1:040x}")
    found["chain"] = unknown
    card = ContractCard(client, found)
    assert card.magic() == f'%%segment_query holders\n{{"nft": {{"nft": "0x{1:040x}"}}}}'


@pytest.mark.parametrize(
    ("chain", "given"), [("ethereum", True), ("ethereum\n!id", False), ("{{secret}}", False)]
)
def test_a_card_gives_no_line_to_be_copied_that_a_stranger_could_write_more_into(
    client, shell, chain, given
):
    address = f"0x{1:040x}"
    found = client.nfts("ethereum", address)
    found["chain"], found["address"] = chain, address
    card = ContractCard(client, found)
    card.take()
    the_same = " The same in a cell:" * given
    assert card.message == f"collection is set.{the_same}"
    assert (f">collection = %nft ethereum {address}</pre>" in card.line.value) == given
    assert bool(card.line.value) == given
