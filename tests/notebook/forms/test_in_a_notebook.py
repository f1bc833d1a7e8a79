"""What forms leave in a notebook: a line in its history, a cell to be copied, a card; over the embedded service."""

from __future__ import annotations

import dataclasses
import html
import itertools
import json
import re
import threading
from typing import Any

import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient

import nbext
from nbext.core.rules import MAX_LIMIT
from nbext.errors import UsageError, ValidationError
from nbext.notebook.forms.builder.fields import hits
from nbext.notebook.forms.card import ContractCard
from tests.notebook.forms.test_forms import soon
from tests.notebook.kernels import running_kernel

CELL = '%%segment_query segment\n{"token": {"token": "USDC"}, "nft": {"nft": "BAYC"}}'
QUERY = CELL.split("\n", 1)[1]


def ran(shell, form, name, limit):
    form.name.type(name)
    form.limit.type(str(limit))
    form.run.press()
    assert form.runs.join(60)
    assert form.message.startswith(f"{name} holds {limit} of")
    return shell.ip.user_ns[name]


def all_ended():
    """Wait for what the forms ask, also where nobody wants the answer any more."""
    for thread in threading.enumerate():
        if thread.name == "nbext-form":
            thread.join(60)
            assert not thread.is_alive()


def test_a_run_of_the_builder_is_in_the_history_runs_again_and_can_be_saved(
    shell, monkeypatch, tmp_path
):
    form = shell.value("%nbext build")
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path))
    form.add("token", {"token": "USDC"})
    first = ran(shell, form, "first", 5)
    form.do({"op": "join", "id": form.edits.now.root.id})
    form.add("nft", {"nft": "BAYC"})
    second = ran(shell, form, "second", 7)
    table = shell.value("%nbext history")
    assert table[["number", "operator", "filters", "limit", "returned"]].values.tolist() == [
        [1, "AND", '{"token": {"token": "USDC"}}', 5, 5],
        [2, "OR", '{"token": {"token": "USDC"}, "nft": {"nft": "BAYC"}}', 7, 7],
    ]
    assert table["segment_id"].tolist() == [
        one.attrs["nbext"]["segment_id"] for one in (first, second)
    ]
    pd.testing.assert_frame_equal(shell.value("%nbext history 1"), first)
    assert "saved query 2 as wide" in shell.run("%nbext save wide 2").printed
    pd.testing.assert_frame_equal(shell.value("%%segment_query --from wide"), second)


@pytest.mark.slow
def test_a_variable_that_holds_something_else_is_replaced_only_when_that_is_asked_for_twice(shell):
    form = shell.value("%nbext build")
    form.add("token", {"token": "USDC"})
    shell.run("x = 5\nimport json\nwhales = %segment $QUERY".replace("$QUERY", QUERY))
    for name, message in (
        ("x", "x holds a value already (type int). Press again to replace it."),
        (
            "json",
            "json is a module here, which the result would replace. Choose another name, such as json_wallets.",
        ),
        (
            "json",
            "json is a module here, which the result would replace. Choose another name, such as json_wallets.",
        ),
    ):
        form.name.type(name)
        form.run.press()
        assert (form.name.error, form.message) == (message, "")
    form.name.type("y")
    assert form.name.error == ""
    assert shell.ip.user_ns["x"] == 5
    # Asked for another name meanwhile; and what the variable holds may have changed since.
    shell.ip.user_ns["x"] = 6
    form.name.type("x")
    form.run.press()
    assert form.name.error == "x holds a value already (type int). Press again to replace it."
    assert len(ran(shell, form, "x", 3)) == 3
    # A table of nbext is what such a variable is for.
    assert len(ran(shell, form, "whales", 4)) == 4


def test_run_goes_to_the_first_option_that_the_service_refuses(shell):
    form = nbext.segment_form({"token": {"token": "UNI"}, "asOf": "2024-02-31"})
    assert form.background.join(30)
    sent: list[Any] = []
    form.lines.tell = sent.append
    form.run.press()
    assert form.runs.join(30)
    assert form.message == "The service refused this query; the marks above show why."
    (wrong,) = form.lines.shown["tree"]["scope"]["errors"]
    assert wrong["field"] == "asOf"
    assert "February 2024 has 29 days" in wrong["detail"]
    assert form.lines.shown["opened"] == [0]
    assert sent[-1] == {"op": "goto", "goto": 0, "wrong": True}


def test_of_several_faults_the_first_line_of_the_form_has_the_focus_whatever_the_services_order(
    shell,
):
    form = nbext.segment_form({"token": [{"token": "UNI"}, {"token": "USDC"}]})
    assert form.background.join(30)
    first, second = form.edits.now.root.members
    sent: list[Any] = []
    form.lines.tell = sent.append
    faults = [
        ("/filters/token/1/balance/min", "far"),
        ("/filters/token/0/heldSince", "late"),
        ("/filters/token/0/balance/max", "near"),
        ("/filters/token/0/novel", "of no field"),
    ]

    def goes_to(faults: list[tuple[str, str]]) -> Any:
        errors = [{"pointer": at, "code": "x", "detail": said} for at, said in faults]
        form.mark(ValidationError(errors))
        form._to_first_error()
        return sent[-1]

    for count, part in ((1, second), (2, first), (4, first)):
        assert goes_to(faults[:count]) == {"op": "goto", "goto": part.id, "wrong": True}
        assert form.lines.shown["opened"] == [part.id]
    form.limit.type("none")
    form.name.type("2x")
    fields = []
    for field in (form.limit, form.name):
        field.tell = lambda message, field=field: fields.append(
            (field.shown["label"], message["op"])
        )
    form.run.press()
    assert fields == [("Variable", "show"), ("Variable", "focus")]


def test_what_was_removed_comes_back_where_it_was(shell):
    form = shell.value("%nbext build")
    names = ["USDC", "UNI", "WBTC"]
    for name in names:
        form.add("token", {"token": name})
    second = form.edits.now.root.members[1]
    form.do({"op": "remove", "id": second.id})
    assert form.filters() == {"token": [{"token": "USDC"}, {"token": "WBTC"}]}
    tree = form.lines.shown["tree"]
    assert tree["removed"] == {"parent": tree["root"]["id"], "place": 1, "words": "Token UNI"}
    form.do({"op": "undo"})
    assert form.filters() == {"token": [{"token": name} for name in names]}
    assert form.edits.now.root.members[1].id == second.id
    form.do({"op": "redo"})
    assert form.filters() == {"token": [{"token": "USDC"}, {"token": "WBTC"}]}
    form.do({"op": "remove", "id": form.edits.now.root.members[1].id})
    form.add("nft", {"nft": "BAYC"})
    assert form.filters() == {"token": {"token": "USDC"}, "nft": {"nft": "BAYC"}}
    assert form.lines.shown["tree"]["removed"] is None


def cells_of(body, title):
    """The texts of the rows of the table under one of a card's headings."""
    part = body.split(f">{title}<")[1].split("</table>")[0].split("<tbody>")[1]
    return [
        [html.unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall(r"<td.*?</td>", row)]
        for row in part.split("</tr>")[:-1]
    ]


NOT_BAYC = '{"token": {"token": "UNI"}, "not": {"nft": {"nft": "BAYC"}}}'


def test_a_card_says_not_and_shows_how_much_all_wallets_hold_and_not_the_first_by_address(shell):
    card = shell.value(f"%segment {NOT_BAYC} --limit 10 --card")
    whole = shell.value(f"%segment {NOT_BAYC} --all --card")
    body, known = card.body(), whole.known.matched
    alone, without = (
        shell.value(f"%segment {one} --count")
        for one in ('{"token": {"token": "UNI"}}', '{"not": {"nft": {"nft": "BAYC"}}}')
    )
    assert cells_of(body, "Condition by condition") == [
        ["hold UNI on ethereum", f"{alone:,}", "", f"{alone:,}"],
        ["do not own BAYC on ethereum", f"{without:,}", f"{alone - known:,}", f"{known:,}"],
    ]
    counted = cells_of(body, f"How much: UNI_balance (of all {known:,} wallets)")
    assert counted == cells_of(whole.body(), "How much: UNI_balance")
    assert sum(int(count.replace(",", "")) for _, _, count in counted) == known
    assert card.still_html() == f"<p>{card.hint}</p>{body}"
    owners = shell.value('%segment {"nft": {"nft": "BAYC"}} --limit 10 --card')
    amounts = shell.value('%segment {"nft": {"nft": "BAYC"}} --all')["BAYC_count"].value_counts()
    shown = cells_of(owners.body(), f"How much: BAYC_count (of all {amounts.sum():,} wallets)")
    assert [[name, int(count)] for name, _, count in shown] == [
        *([str(owned), int(amounts[owned])] for owned in range(1, 5)),
        ["5 to 9", int(amounts[5])],
    ]


def test_a_card_of_some_of_a_segments_rows_shows_how_much_all_wallets_hold(shell):
    whole = shell.value('%segment {"token": {"token": "USDC"}} --all')
    some = whole[whole["USDC_balance"] > whole["USDC_balance"].median()]
    body = nbext.show(some).body()
    shown = cells_of(body, f"How much: USDC_balance (of all {len(whole):,} wallets)")
    assert shown == cells_of(nbext.show(whole).body(), "How much: USDC_balance")
    for column in some.attrs["nbext"]["columns"][1:]:
        column.pop("address")
    body = nbext.show(some).body()
    shown = cells_of(body, f"How much: USDC_balance (of the {len(some):,} rows here)")
    assert sum(int(count.replace(",", "")) for _, _, count in shown) == len(some) < len(whole)


@pytest.mark.parametrize(
    ("denied", "words"),
    [
        ('"transfer": {"token": "USDC", "direction": "out"}', "did not send USDC on ethereum"),
        ('"transfer": {"token": "USDC"}', "did not send or receive USDC on ethereum"),
        ('"transfer": {"nft": "BAYC", "direction": "mint"}', "were not minted BAYC on ethereum"),
        ('"wallet": {"contract": true}', "not (are known to be contracts)"),
    ],
)
def test_a_condition_that_is_denied_is_denied_once_in_a_card(shell, denied, words):
    card = shell.value(f'%segment {{"token": {{"token": "UNI"}}, "not": {{{denied}}}}} --card')
    rows = cells_of(card.body(), "Condition by condition")
    assert [row[0] for row in rows] == ["hold UNI on ethereum", words]


def test_a_card_of_conditions_of_which_any_holds_counts_each_alone(shell):
    card = shell.value(f"%segment {QUERY} --operator OR --limit 3 --card")
    parts = [
        shell.value(f"%segment {one} --count")
        for one in ('{"token": {"token": "USDC"}}', '{"nft": {"nft": "BAYC"}}')
    ]
    rows = cells_of(card.body(), "Condition by condition")
    assert [row[1:] for row in rows] == [[f"{number:,}"] for number in parts]
    assert ">remain<" not in card.body()


@pytest.mark.parametrize(
    ("line", "filters"),
    [
        (
            "%token ethereum USDC",
            {"token": {"token": "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", "chain": "ethereum"}},
        ),
        (
            "%nft ethereum BAYC",
            {"nft": {"nft": "0xbc4ca0eda7647a8ab7c2061c2e118a18a936f13d", "chain": "ethereum"}},
        ),
    ],
)
def test_the_card_of_a_contract_has_its_metadata_its_holders_amounts_and_their_segment(
    shell, line, filters
):
    card = shell.value(f"{line} --card -o found")
    assert dict(card.facts)["Name"] == shell.ip.user_ns["found"]["name"][0]
    holders = shell.value(f"%segment {json.dumps(filters)} --count")
    rows = cells_of(card.body(), f"How much its {holders:,} holders have")
    assert sum(int(count.replace(",", "")) for _, _, count in rows) == holders
    # The owners that the metadata counts are one more: the card says which.
    burnt = (
        "BAYC: the burn address 0x...dEaD is a holder too, and is left out. "
        if "BAYC" in line
        else ""
    )
    assert [note.partition('"')[0] for note in card.notes] == [burnt] * bool(burnt)
    card.edit.open()
    assert card.edit.builder.filters() == filters
    assert card.still_html() == f"<p>{card.hint}</p>{card.body()}"
    assert "--card shows one contract, and 2 are asked for." in shell.error(f"{line} UNI --card")


@pytest.mark.parametrize(
    "line", ['%segment {"nft": {"nft": "BAYC"}} --card', "%nft ethereum BAYC --card"]
)
def test_a_card_saves_its_wallets_says_where_and_replaces_a_file_only_when_that_is_pressed(
    shell, line, tmp_path
):
    card, target = shell.value(line), tmp_path / "owners.csv"
    export = card.export

    def saved_as(path):
        export.file.type(str(path))
        export.save()
        assert card.background.join(30)
        return card.message

    saved = f"Saved {target} in {tmp_path}: 202 rows."
    assert saved_as(target) == saved
    assert len(target.read_text().splitlines()) == 203
    target.write_text("mine")
    asked = f"{target} exists. Press Save again to replace it, or give another name."
    assert (saved_as(target), target.read_text()) == (asked, "mine")
    # What is offered is offered for this name alone, and once.
    other = tmp_path / "owners.json"
    assert saved_as(other) == saved.replace(".csv", ".json")
    assert len(json.loads(other.read_text())) == 202
    assert (saved_as(target), target.read_text()) == (asked, "mine")
    assert saved_as(target) == saved
    assert len(target.read_text().splitlines()) == 203
    assert saved_as(target) == asked
    unknown = saved_as(tmp_path / "owners.xls")
    assert [one for one in (".csv", ".json", ".parquet", ".arrow") if one not in unknown] == []
    export.file.type(" ")
    with pytest.raises(nbext.errors.UsageError, match=r"Give the file a name\."):
        export.save()


def test_the_file_that_a_card_proposes_is_in_this_folder_whatever_a_contract_is_called(shell):
    found = shell.value("%token ethereum USDC")
    found["symbol"] = "../../etc/<b>x\u202e"
    card = ContractCard(nbext.connect(), found)
    assert card.export.file.value == "etcbx-holders.csv"


def test_a_search_has_no_card(shell):
    assert "--card shows one contract: give its chain and address" in shell.error(
        "%nft search ape --card"
    )


def test_a_search_finds_tokens_and_collections_and_what_is_picked_is_built_on(shell):
    form = shell.value("%nbext search u")
    assert form.background.join(30)
    kinds = [one["tokenType"] for one in form.results]
    assert kinds[:4] == ["ERC721", "ERC20", "ERC721", "ERC20"]
    both = [form.client.search_nfts("u", type=kind)["symbol"] for kind in ("nft", "token")]
    assert {one["symbol"] for one in form.results} == {*both[0], *both[1]}
    form.pick(1)
    assert form.background.join(30)
    form.card.edit.press()
    builder = form.card.edit.builder
    token = {"token": form.results[1]["address"], "chain": "ethereum"}
    assert builder.filters() == {"token": token}
    builder.background.drop()
    form.term.type("no such thing")
    form.term.enter()
    assert form.background.join(30)
    assert form.message.startswith(
        "Looked at the names and symbols of tokens and collections on ethereum: none contains 'no such thing'."
    )
    assert (form.results, form.card, form.below.members) == ([], None, ())
    assert form.message.count("No hit for 'no such thing' of the type") == 2
    # Of one kind alone: that the other has none is not said beside it.
    for term, kind in (("usdc", "ERC20"), ("bayc", "ERC721")):
        form.term.type(term)
        form.term.enter()
        assert form.background.join(30)
        assert {one["tokenType"] for one in form.results} == {kind}
        number = len(form.results)
        assert form.message == f"1 to {number} of {number}"


@pytest.mark.parametrize("term", ['a"b', "a\\", "it's", 'x" --chain polygon #'])
def test_what_to_type_instead_of_a_search_finds_the_same_also_for_a_term_with_quotes(shell, term):
    form = nbext.search_form(term, kind="token")
    assert form.background.join(30)
    assert form.results == []
    none = f"No hit for {term!r} of the type token on ethereum."
    assert none in shell.run(form.magic()).printed


@pytest.fixture(scope="module")
def kernel(home):
    with running_kernel() as made:
        yield made


@pytest.mark.slow
def test_a_front_end_without_widgets_shows_the_cell_as_text_and_gets_it_when_it_is_inserted(kernel):
    shown = kernel.run(f"import nbext\nform = nbext.segment_form({QUERY})\nform")
    assert shown.reply["status"] == "ok", shown.error
    bundles = [content["data"] for content in shown.of("display_data")]
    assert [list(bundle)[-2:] for bundle in bundles] == [["text/html", "text/plain"]] * 2
    assert bundles[-1]["text/plain"].endswith(f"\n{CELL}")
    assert f">{html.escape(CELL)}</pre>" in bundles[-1]["text/html"]
    asked = 'form.insertion.obey({"op": "press", "from": "1", "here": False})'
    inserted = kernel.run(f"form.name.type('whales')\n{asked}\nprint(form.message)")
    cell = CELL.replace("segment\n", "whales\n")
    assert inserted.reply["payload"] == [
        {"source": "set_next_input", "text": cell, "replace": False}
    ]
    assert inserted.of("update_display_data")[-1]["data"]["text/plain"].endswith(f"\n{cell}")
    assert "copy it from this form" in inserted.printed
    copied = "print(form.lines.shown['tree']['cell'])"
    changed = kernel.run(f"form.name.type('other')\n{copied}")
    assert changed.printed == f"{cell.replace('whales', 'other')}\n"


def test_the_explorer_inserts_the_cell_of_the_segment_that_its_filters_mean_and_says_what_is_none(
    kernel,
):
    inserted = kernel.run(
        'table = %segment {"nft": {"nft": "BAYC"}} --limit 5\n'
        "import nbext\nform = nbext.explore(table)\nform.find([], {1: {'min': '2'}}, 'ab')\n"
        "form.insertion.obey({'op': 'press', 'from': '1', 'here': False})\nprint(form.message)"
    )
    (payload,) = inserted.reply["payload"]
    assert payload["source"] == "set_next_input"
    assert payload["text"].startswith("%%segment_query\n{")
    assert '"min": 2' in payload["text"]
    assert "No condition asks for the search: it is not part of the segment." in inserted.printed


def test_a_chart_is_live_beside_its_picture_and_what_is_pressed_opens_with_the_cell_of_its_segment(
    kernel,
):
    chart = "nbext.overlap(['BAYC', 'MAYC']).chart()"
    shown = kernel.run(f"import nbext\n{chart}")
    live, picture = [content["data"] for content in shown.of("display_data")]
    assert next(iter(live)) == "application/vnd.jupyter.widget-view+json"
    assert live["text/html"] == (
        "<style>body.jp-Notebook .nbext-unrun { display: none }</style>"
        '<small class="nbext-unrun">(run the cell for the live view)</small>'
    )
    assert list(picture) == ["application/vnd.vegalite.v5+json", "text/plain", "image/png"]
    pressed = kernel.run(
        f"live = {chart}.live()\nlive.press({{'at': 1}})\nassert live.background.join(60)\n"
        "live.below.members[0].insertion.obey({'from': '1', 'here': False})\n"
        "print(live.message, live.below.members[0].frame.columns.tolist())"
    )
    assert "120 rows ['address', 'BAYC_count', 'MAYC_count']\n" in pressed.printed
    (inserted,) = pressed.reply["payload"]
    assert inserted["text"] == (
        '%%segment_query\n{"all": [{"nft": {"nft": "BAYC"}}, {"nft": {"nft": "MAYC"}}]}'
    )
    assert inserted["source"] == "set_next_input"


@pytest.mark.parametrize("fails", [False, True])
def test_of_two_marks_that_are_pressed_the_later_stays_whatever_comes_of_the_earlier_after_it(
    shell, fails
):
    live = nbext.overlap(["BAYC", "MAYC"]).chart().live()
    real, started, go_on = live.chart.of_cell, threading.Event(), threading.Event()

    def slow(*cell):
        if cell == live.chart.cells[0]:
            started.set()
            assert go_on.wait(30)
            if fails:
                raise UsageError("The first one failed.")
        return real(*cell)

    live.chart = dataclasses.replace(live.chart, of_cell=slow)
    live.press({"at": 0})
    assert started.wait(10)
    live.press({"at": 1})
    assert live.background.join(60)
    shown, said = live.below.members, live.message
    assert (shown[0].shown["title"], said.split(":")[0]) == (live.marks[1], live.marks[1])
    go_on.set()
    all_ended()
    assert (live.below.members, live.message) == (shown, said)


def test_a_card_shows_each_amount_once_in_its_tokens_unit(shell):
    table = shell.value(
        '%segment {"token": {"token": "USDC", "balance": {"min": "1000"}}} --limit 3'
    )
    body = nbext.show(table).body()
    assert "200,000" in re.findall(r"<td[^>]*>([^<]+)</td>", body)
    rows = body.split("First rows")[1].split("</thead>")[0]
    assert re.findall(r"<th[^>]*>([^<]+)</th>", rows) == ["address", "USDC_balance"]
    assert re.findall(r">How much: (\w+)", body) == ["USDC_balance"]
    assert "exact amounts: USDC_balance_raw" in body
    alone = nbext.show(table[["address", "USDC_balance"]]).body()
    assert "_raw" not in alone


def test_a_card_counts_all_wallets_of_holdings_alone_and_names_the_unit_of_other_amounts(
    shell, caplog
):
    token = shell.value('%segment {"token": {"token": "UNI"}, "columns": ["share"]} --limit 10')
    sent = shell.value(
        '%segment {"transfer": {"nft": "BAYC"}, "columns": ["transferred"]} --limit 10'
    )
    unknown = token[["address", "UNI_balance_raw"]].copy()
    for column in unknown.attrs["nbext"]["columns"][1:]:
        column["decimals"] = None
    caplog.set_level("DEBUG", "nbext")
    everyone = f"(of all {token.attrs['nbext']['matched']:,} wallets)"
    for table, parts, asked in (
        (
            token,
            [("UNI_balance", everyone, "UNI"), ("UNI_share", "(of the 10 rows here)", "share")],
            ["ok"],
        ),
        (token[["address", "UNI_balance_raw"]], [("UNI_balance", everyone, "UNI")], ["ok"]),
        (unknown, [("UNI_balance_raw", "(of the 10 rows here)", "raw")], []),
        (sent, [("transferred", "(of the 10 rows here)", "BAYC")], []),
    ):
        card = nbext.show(table)
        caplog.clear()
        shown = re.findall(r">How much: (\w+) ([^<]+)<.*?<th[^>]*>([^<]+)</th>", card.body())
        assert (sorted(shown), re.findall(r"POST /counts: (\w+)", caplog.text)) == (parts, asked)


def test_a_card_of_a_table_that_was_changed_shows_what_it_can(shell):
    table = shell.value('%segment {"token": {"token": "USDC"}} --limit 3')
    # Of all wallets the service counts; of these rows nothing can be said.
    assert re.findall(
        r">How much: ([^<]+)<", nbext.show(table.assign(USDC_balance="much")).body()
    ) == [f"USDC_balance (of all {table.attrs['nbext']['matched']:,} wallets)"]
    assert (
        "How much" not in nbext.show(pd.concat([table, table], axis=1).__finalize__(table)).body()
    )


def test_the_cell_of_a_form_asks_for_as_many_rows_as_the_form(shell):
    shell.run("%nbext set limit 3")
    try:
        form = shell.value("%nbext build")
        form.add("token", {"token": "USDC"})
        assert form.cell() == '%%segment_query segment\n{"token": {"token": "USDC"}}'
        assert (
            len(ran(shell, form, "mine", 3))
            == len(shell.value(form.cell().replace(" mine", "")))
            == 3
        )
        form.limit.type("5")
        assert form.cell().startswith("%%segment_query mine --limit 5\n")
        card = shell.value('%segment {"token": {"token": "USDC"}} --limit 4 --card')
        assert card.magic() == '%%segment_query --limit 4\n{"token": {"token": "USDC"}}'
        assert nbext.segment_form(card.frame).limit.value == "4"
    finally:
        shell.run("%nbext unset limit")


@pytest.mark.parametrize(
    ("field", "given"), [("name", "class"), ("name", "1a"), ("limit", "1e3"), ("limit", "1,5")]
)
def test_a_cell_that_would_say_something_else_is_not_inserted(shell, field, given):
    form = shell.value("%nbext build")
    form.add("token", {"token": "USDC"})
    getattr(form, field).type(given)
    form.insertion.obey({"op": "press", "from": "1", "here": False})
    assert (form.message, bool(form.name.error or form.limit.error)) == ("", True)


@pytest.mark.parametrize(
    "filters",
    [
        {"nft": {"nft": "BAYC"}, "exclude": []},
        {"nft": {"nft": "BAYC"}, "asOf": None},
        {"token": {"token": "UNI"}, "nft": []},
        {"token": {"token": "UNI"}, "not": []},
        {"not": "x"},
        {"all": {"token": {"token": "UNI"}}},
        {"any": [None]},
    ],
)
def test_nothing_of_a_query_is_lost_or_fails_when_it_is_opened(shell, filters):
    assert nbext.segment_form(filters).filters() == filters


def test_the_builder_offers_the_columns_that_the_filters_give_the_rows(shell):
    asked = {"token": {"token": "UNI"}, "columns": ["firstSeen"], "orderBy": "-UNI_balance"}
    form = nbext.segment_form(asked)
    assert form.filters() == asked
    sent: list[Any] = []
    form.lines.tell = sent.append

    def offered(term):
        form.do({"op": "search", "term": term, "kinds": ["column"], "number": 1, "from": 1})
        assert form.searches.join(10)
        return {one["value"]: one["label"] for one in sent[-1]["found"]}

    assert offered("") == {
        "-address": "address, largest first",
        "-UNI_balance": "UNI_balance, largest first",
        "UNI_balance": "UNI_balance, smallest first",
        "-firstSeen": "firstSeen, largest first",
        "firstSeen": "firstSeen, smallest first",
    }
    assert list(offered("-uni")) == ["-UNI_balance"]
    assert list(offered("small")) == ["UNI_balance", "firstSeen"]
    form.do({"op": "set", "id": 0, "field": "columns", "value": "firstSeen, transfers"})
    form.do({"op": "set", "id": 0, "field": "orderBy", "value": "-transfers"})
    assert form.filters() == {
        **asked,
        "columns": ["firstSeen", "transfers"],
        "orderBy": "-transfers",
    }
    # What is chosen stays, although the rows no longer have it: the service says so beside the field.
    form.do({"op": "set", "id": 0, "field": "columns", "value": ""})
    assert "-transfers" not in offered("")
    scope = form.lines.shown["tree"]["scope"]
    assert (scope["fields"], scope["words"]) == ({"orderBy": "-transfers"}, "order by -transfers")
    assert form.filters() == {"token": {"token": "UNI"}, "orderBy": "-transfers"}
    form.background.drop()


SEGMENT = {"token": {"token": "UNI", "balance": {"min": "1000"}}, "not": {"nft": {"nft": "BAYC"}}}
EITHER = {**SEGMENT, "any": [{"nft": {"nft": "AZUKI"}}, {"nft": {"nft": "MAYC"}}]}


def test_the_builder_counts_each_line_by_itself_and_what_each_removes_and_what_remains(shell):
    form = nbext.segment_form(EITHER)
    assert form.background.join(30)
    token, nft, group = form.edits.now.root.members
    azuki, mayc = group.members
    counted = form.lines.shown["counted"]
    found = form.client.funnel(EITHER)["steps"]
    alone, remaining = ([step[name] for step in found] for name in ("alone", "remaining"))
    removes = [f"{before - after:,}" for before, after in itertools.pairwise(remaining)]
    assert cells_of(form.funnel.value, "Wallets that") == [
        ["hold at least 1,000 UNI on ethereum", f"{alone[0]:,}", "", f"{remaining[0]:,}"],
        ["do not own BAYC on ethereum", f"{alone[1]:,}", removes[0], f"{remaining[1]:,}"],
        [
            "own AZUKI on ethereum or own MAYC on ethereum",
            f"{alone[2]:,}",
            removes[1],
            f"{remaining[2]:,}",
        ],
    ]
    bayc, *each = [
        form.client.execute_segment({"nft": {"nft": one}}, limit=0).attrs["nbext"]["matched"]
        for one in ("BAYC", "AZUKI", "MAYC")
    ]
    assert counted["lines"] == {
        str(token.id): f"{alone[0]:,}",
        str(nft.id): f"not {bayc:,}",
        str(group.id): f"{alone[2]:,}",
        str(azuki.id): f"{each[0]:,}",
        str(mayc.id): f"{each[1]:,}",
    }
    assert (counted["stale"], form.matched) == (False, remaining[2])
    few = re.findall("<code>(.*?)</code>", form.sample.value)
    assert few == [*form.client.execute_segment(EITHER, limit=3)["address"]] != []
    form.do({"op": "negate", "id": token.id})
    assert form.lines.shown["counted"] == {**counted, "stale": True}
    assert form.counting.shown["text"] == f"{remaining[2]:,} before the change. Counting …"
    # Of the conditions before, but for the wallets.
    assert (form.sample.value, bool(form.funnel.value)) == ("", True)
    form.background.drop()


def test_another_condition_beside_a_line_is_in_a_group_of_both_where_their_surroundings_join_all(
    shell,
):
    form = nbext.segment_form({"nft": {"nft": "BAYC"}, "token": {"token": "UNI"}})
    (line,) = (one for one in form.edits.now.root.members if one.key == "nft")
    sent: list[Any] = []
    form.lines.tell = sent.append

    def asked_for() -> int:
        form.do({"op": "either", "id": line.id, "from": "view"})
        assert sent[-1] == {"to": "view", "op": "goto", "goto": sent[-1]["goto"]}
        return sent[-1]["goto"]

    form.do({"op": "set", "id": asked_for(), "field": "nft", "value": "MAYC"})
    either = [{"nft": {"nft": name}} for name in ("BAYC", "MAYC")]
    assert form.filters() == {"any": either, "token": {"token": "UNI"}}
    form.do({"op": "set", "id": asked_for(), "field": "nft", "value": "AZUKI"})
    either.insert(1, {"nft": {"nft": "AZUKI"}})
    assert form.filters() == {"any": either, "token": {"token": "UNI"}}
    form.background.drop()


def test_a_saved_query_is_found_by_name_and_added_as_a_group_or_refused_where_its_chain_is_another(
    shell,
):
    shell.run("%%segment_query\n" + json.dumps(EITHER))
    shell.run("%nbext save either")
    shell.run('%%segment_query\n{"token": {"token": "UNI"}, "chain": "ethereum"}')
    shell.run("%nbext save there")
    form = nbext.segment_form()
    sent: list[Any] = []
    form.lines.tell = lambda message, _=(): sent.append(message)
    form.do({"op": "search", "term": "EITH", "kinds": ["saved"], "number": 1, "from": 1})
    assert form.searches.join(10)
    found = {"kind": "saved", "value": "either", "label": "either", "name": "a saved query"}
    assert sent[-1]["found"] == [found]
    form.do({"op": "add", "key": "saved", "value": "either"})
    assert form.filters() == EITHER
    form.do({"op": "add", "key": "saved", "value": "either"})
    assert form.filters() == {**EITHER, "all": _listed(EITHER)}
    with pytest.raises(
        UsageError,
        match=r"there was saved with other settings .* \(chain: ethereum\): .*build there`",
    ):
        form.do({"op": "add", "key": "saved", "value": "there"})
    form.do({"op": "undo"})
    form.do({"op": "undo"})
    form.do({"op": "add", "key": "saved", "value": "there"})
    assert form.filters() == {"token": {"token": "UNI"}, "chain": "ethereum"}
    form.background.drop()


def _listed(filters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{key: value} for key, value in filters.items()]


UNI, BAYC, MAYC, AZUKI = (
    {"token": {"token": "UNI"}},
    *({"nft": {"nft": name}} for name in ("BAYC", "MAYC", "AZUKI")),
)


@pytest.mark.parametrize(
    ("filters", "lines"),
    [
        ({"all": [UNI, BAYC], **MAYC}, [("", {**UNI, **BAYC}), ("", UNI), ("", BAYC), ("", MAYC)]),
        (
            {"any": [UNI], "nft": [MAYC["nft"], AZUKI["nft"]]},
            [("", UNI), ("", UNI), ("", MAYC), ("", AZUKI)],
        ),
        (
            {"not": [BAYC, {"not": MAYC}], **UNI},
            [("not ", BAYC), ("not ", {"not": MAYC}), ("not ", MAYC), ("", UNI)],
        ),
        (
            {**BAYC, "any": [{"all": [MAYC, UNI]}]},
            [("", BAYC), ("", {**MAYC, **UNI}), ("", {**MAYC, **UNI}), ("", MAYC), ("", UNI)],
        ),
        ({"token": UNI["token"], "asOf": "90d"}, [("", {**UNI, "asOf": "90d"})]),
    ],
)
def test_each_line_and_group_is_counted_by_itself_wherever_it_is(shell, filters, lines):
    form = nbext.segment_form(filters)
    assert form.background.join(30)
    matched = [
        form.client.execute_segment(each, limit=0).attrs["nbext"]["matched"] for _, each in lines
    ]
    wanted = [f"{words}{count:,}" for (words, _), count in zip(lines, matched, strict=True)]
    _, *parts = form.edits.now.root.walk()
    counted = form.lines.shown["counted"]["lines"]
    assert counted == {str(part.id): one for part, one in zip(parts, wanted, strict=True)}
    assert 0 < min(matched) < max(matched) or len(lines) == 1


def test_each_of_more_lines_than_one_request_counts_is_counted(shell):
    bounds = [f"{bound}" for bound in range(1, 151)]
    form = nbext.segment_form(
        {"all": [{"token": {"token": "UNI", "balance": {"min": bound}}} for bound in bounds]}
    )
    assert form.background.join(60)
    held = form.client.execute_segment(UNI, limit=MAX_LIMIT)["UNI_balance"]
    alone = [f"{(held >= float(bound)).sum():,}" for bound in bounds]
    _, group, *parts = form.edits.now.root.walk()
    assert form.lines.shown["counted"]["lines"] == {
        str(group.id): alone[-1],
        **{str(part.id): one for part, one in zip(parts, alone, strict=True)},
    }
    assert len({alone[0], alone[127], alone[-1]}) == 3


def test_the_json_beside_the_lines_changes_them_and_what_is_no_json_changes_nothing(shell):
    form = nbext.segment_form(SEGMENT)
    form.json.type('{"operator": "OR", "filters": {"nft": [{"nft": "A"}, {"nft": "B"}]}}')
    assert (form.filters(), form.question[1]) == ({"nft": [{"nft": "A"}, {"nft": "B"}]}, "OR")
    for value in ('{"nft": ', '{"limt": 8, "filters": {"nft": {"nft": "A"}}}'):
        form.json.type(value)
        assert form.json.error.startswith("Not used: ")
        # What is half typed stays as it is.
        assert form.json.value == value
    assert form.filters() == {"nft": [{"nft": "A"}, {"nft": "B"}]}
    form.do({"op": "undo"})
    assert (form.filters(), form.question[1], form.json.error) == (SEGMENT, "AND", "")
    assert json.loads(form.json.value) == SEGMENT
    # Of a whole request, its limit too.
    form.json.type('{"limit": 7, "filters": {"nft": {"nft": "A"}}}')
    assert (form.filters(), form.limit.value) == ({"nft": {"nft": "A"}}, "7")
    form.background.drop()


def test_a_view_that_typed_json_again_before_the_first_was_read_is_told_of_the_later_last(shell):
    form = nbext.segment_form(SEGMENT)
    told: list[Any] = []
    form.widget.send = told.append
    form.widget._handle_custom_msg({"op": "begin", "from": "1"}, [])
    typed = ['{"nft":{"nft":"A"}}', '{"nft":{"nft":"A"},']
    for value in typed:
        asked = {"op": "typed", "part": form.json.id, "value": value, "from": "1"}
        form.widget._handle_custom_msg(asked, [])
    form.background.drop()
    # What the page keeps for when the lines are left; of what comes ``by`` itself it takes nothing.
    kept = [
        one["changes"]["value"]
        for one in told
        if one.get("part") == form.json.id and one.get("by") != "1" and "value" in one["changes"]
    ]
    assert kept == [typed[0], '{"nft": {"nft": "A"}}', typed[1]]
    assert form.json.value == typed[1]


def test_build_opens_a_table_an_id_a_query_of_the_history_a_saved_one_and_filters_on_the_line(
    shell,
):
    shell.run(f"%segment {json.dumps(SEGMENT)} --limit 3 -o whales")
    shell.run("%nbext save mine")
    known = shell.ip.user_ns["whales"].attrs["nbext"]["segment_id"]
    number = len(shell.value("%nbext history"))
    shell.run(f"number = {number}")
    for line in (
        "whales",
        "{{whales}}",
        known,
        f"history {number}",
        "history {{number}}",
        "mine",
        json.dumps(SEGMENT),
    ):
        form = shell.value(f"%nbext build {line}")
        assert (form.filters(), form.question[1]) == (SEGMENT, "AND"), line
        form.background.drop()
    assert "No query is saved as 'nothing'" in str(shell.run("%nbext build nothing").error)
    card = nbext.show(shell.ip.user_ns["whales"])
    card.edit.open()
    assert card.edit.builder.filters() == SEGMENT
    assert list(card.members[-1].members) == [card.edit.builder]


def test_build_opens_filters_with_lists_of_wallets_a_long_stored_one_by_its_id(shell):
    shell.run('%segment {"token": {"token": "UNI"}} --all -o holders')
    addresses = list(shell.ip.user_ns["holders"]["address"])
    for few in ("holders.address[:5]", "set(holders.address[:5])"):
        form = shell.value('%nbext build {"wallet": {"in": {{' + few + "}}}}")
        assert form.filters() == {"wallet": {"in": addresses[:5]}}
        assert form.json.error == ""
        form.background.drop()
    holders = shell.ip.user_ns["holders"]
    for column in (holders, holders["address"]):
        form = nbext.segment_form({"wallet": {"in": column}})
        assert form.filters() == {"wallet": {"in": addresses}}
        form.background.drop()
    shell.run('%segment {"wallet": {"in": {{holders.address}}}} --limit 3')
    form = shell.value(f"%nbext build history {len(shell.value('%nbext history'))}")
    (stored,) = form.filters()["wallet"].items()
    assert stored[0] == "list"
    assert stored[1].startswith("ls_")
    table = form.client.execute_segment(form.filters(), limit=0)
    assert table.attrs["nbext"]["matched"] == len(addresses)
    form.background.drop()


def test_the_card_of_the_history_has_every_query_and_opens_each_below_its_own_line(shell):
    before = len(shell.value("%nbext history"))
    shell.run(f"%segment {json.dumps(SEGMENT)} --limit 3")
    shell.run('%segment {"token": {"token": "UNI"}} --operator OR --limit 0')
    card = shell.value("%nbext history --card -o asked")
    asked = shell.ip.user_ns["asked"]
    assert list(asked["number"]) == list(range(1, before + 3))
    assert [number for number, _ in card.facts] == list(range(before + 2, 0, -1))
    matched = [
        shell.value(f"%segment {json.dumps(one)} --count")
        for one in ({"token": {"token": "UNI"}}, SEGMENT)
    ]
    lines = [
        f'{before + 2}: OR {{"token": {{"token": "UNI"}}}} · {matched[0]:,} matched',
        f"{before + 1}: {json.dumps(SEGMENT)} · {matched[1]:,} matched",
    ]
    assert card.text().splitlines()[1:3] == lines
    for number, words in (line.split(": ", 1) for line in lines):
        row = f'<tr><th scope="row">{number}</th><td>{html.escape(words)}</td></tr>'
        assert row in card.still_html()
    for edit, line, filters in zip(
        card.edits, card.members, ({"token": {"token": "UNI"}}, SEGMENT), strict=False
    ):
        edit.open()
        edit.open()
        assert edit.builder.filters() == filters
        assert list(line.members[-1].members) == [edit.builder]
        edit.builder.background.drop()
    assert card.edits[0].builder.question[1] == "OR"
    assert "%nbext config: unknown option '--card'. It is for history." in shell.error(
        "%nbext config --card"
    )


def test_segments_and_lists_are_picked_by_name_and_a_variables_wallets_are_stored_once(shell):
    shell.run(f"%segment {json.dumps(SEGMENT)} --limit 3 -o whales")
    table = shell.ip.user_ns["whales"]
    shell.ip.user_ns |= {
        "few": table["address"].tolist(),
        "many": {f"0x{number:040x}" for number in range(1500)},
    }
    picked = {one["label"]: one["value"] for one in hits(None, "segment", "", None)}
    assert (
        picked[f"whales ({table.attrs['nbext']['matched']:,} wallets)"]
        == table.attrs["nbext"]["segment_id"]
    )
    assert {"few (3 wallets)": "$few", "many (1,500 wallets)": "$many"}.items() <= {
        one["label"]: one["value"] for one in hits(None, "list", "", None)
    }.items()
    form = nbext.segment_form({"wallet": {"list": "ls_ExampleExampleExampleExa"}})
    (line,) = form.edits.now.root.members
    form.do({"op": "list", "id": line.id, "value": "few"})
    soon(lambda: "in" in form.filters()["wallet"])
    assert form.filters() == {"wallet": {"in": table["address"].tolist()}}
    form.do({"op": "list", "id": line.id, "value": "many"})
    soon(lambda: "list" in form.filters()["wallet"])
    assert re.fullmatch(r"ls_[\w-]{24}", form.filters()["wallet"]["list"])
    assert form.background.join(30)
    assert form.errors == []


def test_wallets_that_are_picked_come_although_something_else_is_looked_for_meanwhile(
    shell, monkeypatch
):
    shell.ip.user_ns["few"] = ["0x" + "1" * 40]
    form = nbext.segment_form({"wallet": {"list": "ls_ExampleExampleExampleExa"}})
    (line,) = form.edits.now.root.members
    real, asked, go_on = form.client.search_nfts, threading.Event(), threading.Event()

    def slow(*words, **options):
        asked.set()
        assert go_on.wait(30)
        return real(*words, **options)

    monkeypatch.setattr(form.client, "search_nfts", slow)
    look = {"op": "search", "kinds": ["token"], "number": 1, "from": "1"}
    form.do({**look, "term": "U"})
    assert asked.wait(10)
    form.do({"op": "list", "id": line.id, "value": "few"})
    form.do({**look, "term": "UN"})
    go_on.set()
    soon(lambda: form.filters() == {"wallet": {"in": shell.ip.user_ns["few"]}})
    assert form.searches.join(30)
    form.background.drop()


def test_a_group_is_taken_apart_unless_not_applies_to_it(shell):
    form = nbext.segment_form(
        {"not": {"any": [{"nft": {"nft": "BAYC"}}, {"nft": {"nft": "MAYC"}}]}}
    )
    (group,) = form.edits.now.root.members
    with pytest.raises(UsageError, match="NOT applies to the whole group"):
        form.do({"op": "unwrap", "id": group.id})
    form.do({"op": "negate", "id": group.id})
    form.do({"op": "unwrap", "id": group.id})
    assert form.filters() == {"nft": [{"nft": "BAYC"}, {"nft": "MAYC"}]}
    form.do({"op": "duplicate", "id": group.members[0].id})
    assert form.filters() == {"nft": [{"nft": "BAYC"}, {"nft": "BAYC"}, {"nft": "MAYC"}]}
    with pytest.raises(UsageError, match="gone already"):
        form.do({"op": "unwrap", "id": group.id})
    form.background.drop()


def test_a_run_that_is_cancelled_before_it_has_an_id_ends_at_once_and_its_rows_come_to_nothing(
    shell, monkeypatch
):
    form = nbext.segment_form(SEGMENT)
    assert form.background.join(30)
    named = threading.Event()
    real = form.client.execute_segment

    def slow(*asked, progress, **options):
        def late(report):
            assert named.wait(10)
            progress(report)

        return real(*asked, progress=late, **options)

    monkeypatch.setattr(form.client, "execute_segment", slow)
    form.name.type("never")
    form.run.press()
    (run,) = (one for one in threading.enumerate() if one.name == "nbext-background")
    form.cancel()
    assert (form.message, form.run.shown["disabled"]) == ("Cancelled.", False)
    named.set()
    run.join(30)
    assert (form.message, "never" in shell.ip.user_ns) == ("Cancelled.", False)
    monkeypatch.undo()
    form.run.press()
    assert form.runs.join(30)
    assert form.message.startswith("never holds")


@pytest.mark.slow
def test_a_count_and_a_run_that_failed_are_each_retried_by_themselves(shell):
    form = nbext.segment_form(SEGMENT)
    assert form.background.join(30)
    real, form.client = form.client, nbext.connect("http://127.0.0.1:9", "key")
    form.name.type("late")
    form.do({"op": "negate", "id": form.edits.now.root.members[0].id})
    assert form.background.join(30)
    form.run.press()
    assert form.runs.join(30)
    assert form.lines.shown["counted"] == {"stale": True}
    not_counted = {"text": "Not counted.", "running": False, "again": True}
    assert not_counted.items() <= form.counting.shown.items()
    form.client = real
    form.counting.obey({"op": "again"})
    assert form.background.join(30)
    assert (form.matched is not None, "late" in shell.ip.user_ns) == (True, False)
    form.run.press()
    assert form.runs.join(30)
    assert form.message.startswith("late holds")


@pytest.mark.slow
def test_the_latest_count_does_not_wait_for_a_slow_one_and_a_cancelled_one_is_dropped(
    shell, monkeypatch
):
    form = nbext.segment_form(SEGMENT)
    assert form.background.join(30)
    real, asked, go_on = form.client.funnel, threading.Event(), threading.Event()

    def slow(filters, *more, **options):
        asked.set()
        assert "not" in filters or go_on.wait(30)
        return real(filters, *more, **options)

    monkeypatch.setattr(form.client, "funnel", slow)
    denied = form.edits.now.root.members[1].id
    form.do({"op": "negate", "id": denied})
    assert asked.wait(10)
    form.do({"op": "negate", "id": denied})
    assert form.background.join(30)
    matched = form.matched
    assert (matched is not None, form.lines.shown["counted"]["stale"]) == (True, False)
    asked.clear()
    form.do({"op": "negate", "id": denied})
    assert asked.wait(10)
    assert form.counting.shown["running"]
    form.counting.obey({"op": "cancel"})
    not_counted = {"text": "Not counted.", "running": False, "again": True}
    assert not_counted.items() <= form.counting.shown.items()
    go_on.set()
    all_ended()
    assert (form.matched, form.counting.shown["text"]) == (None, "Not counted.")


def test_after_a_change_the_rows_of_the_run_before_are_marked(shell):
    form = nbext.segment_form(SEGMENT)
    ran(shell, form, "before", 5)
    rows, said = form.result.value, "These rows are of the query before it changed."
    assert said not in rows
    form.add("nft", {"nft": "MAYC"})
    marked = f'<p class="nbext-note">{said}</p>{rows}'
    assert form.result.value == marked
    # What a notebook shows without its kernel has the changed query above these rows.
    assert form.still_html().endswith(marked)
    form.do({"op": "undo"})
    assert form.result.value == rows
    form.background.drop()


def test_rows_of_a_query_that_was_changed_while_it_ran_are_marked(shell):
    form = nbext.segment_form(SEGMENT)
    form.limit.type("5")
    with form.lock:
        form.run.press()
        form.add("nft", {"nft": "MAYC"})
        assert form.result.value == ""
    assert form.runs.join(60)
    assert "These rows are of the query before it changed." in form.result.value
    form.background.drop()


@pytest.mark.slow
def test_three_forms_leave_twelve_kilobytes_of_state_in_a_notebook_and_no_row(home):
    sources = (
        "import nbext\nform = nbext.search_form('ape')\n_ = form.background.join(30)\nform",
        "form = nbext.segment_form({'token': {'token': 'UNI'}})\n_ = form.background.join(30)\nform",
        "rows = form.client.execute_segment({'token': {'token': 'UNI'}})\nnbext.explore(rows)",
    )
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, sources)))
    NotebookClient(notebook, timeout=120).execute()
    state = json.dumps(notebook.metadata["widgets"])
    assert state.count('"nbext.notebook.views.view.View"') == 3
    assert len(state) < 12_000
    assert not re.search(r"0x[0-9a-f]{40}|BoredApe", state)
