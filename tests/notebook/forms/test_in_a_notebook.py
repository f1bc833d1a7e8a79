"""What forms leave in a notebook: a line in its history, a cell to be copied, a card; over the embedded service."""

from __future__ import annotations

import html
import re
import sys

import pandas as pd
import pytest

import nbext
from tests.notebook.kernels import running_kernel

CELL = '%%segment_query segment\n{"token": {"token": "USDC"}, "nft": {"nft": "BAYC"}}'
QUERY = CELL.split("\n", 1)[1]


def ran(shell, form, name, limit):
    form.name.entry.value, form.limit.entry.value = name, str(limit)
    form.run.click()
    assert form.typed.join(5)
    assert form.runs.join(60)
    assert form.message.startswith(f"{name} holds {limit} of")
    return shell.ip.user_ns[name]


def test_a_run_of_the_builder_is_in_the_history_runs_again_and_can_be_saved(shell, monkeypatch, tmp_path):
    form = shell.value("%nbext build")
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path))
    form.top.add("token", {"token": "USDC"})
    first = ran(shell, form, "first", 5)
    form.operator.entry.value = "OR"
    form.top.add("nft", {"nft": "BAYC"})
    second = ran(shell, form, "second", 7)
    table = shell.value("%nbext history")
    assert table[["number", "operator", "filters", "limit", "returned"]].values.tolist() == [
        [1, "AND", '{"token": {"token": "USDC"}}', 5, 5],
        [2, "OR", '{"token": {"token": "USDC"}, "nft": {"nft": "BAYC"}}', 7, 7],
    ]
    assert table["segment_id"].tolist() == [one.attrs["nbext"]["segment_id"] for one in (first, second)]
    pd.testing.assert_frame_equal(shell.value("%nbext history 1"), first)
    assert "saved query 2 as wide" in shell.run("%nbext save wide 2").printed
    pd.testing.assert_frame_equal(shell.value("%%segment_query --from wide"), second)


def test_a_variable_that_holds_something_else_is_replaced_only_when_that_is_asked_for_twice(shell):
    form = shell.value("%nbext build")
    form.top.add("token", {"token": "USDC"})
    shell.run("x = 5\nimport json\nwhales = %segment $QUERY".replace("$QUERY", QUERY))
    for name, message in (
        ("x", "x holds a value already (type int). Press again to replace it."),
        ("json", "json is a module here, which the result would replace. Choose another name, such as json_wallets."),
        ("json", "json is a module here, which the result would replace. Choose another name, such as json_wallets."),
    ):
        form.name.entry.value = name
        form.run.click()
        assert form.typed.join(5)
        assert form.message == message
    assert shell.ip.user_ns["x"] == 5
    # Asked for another name meanwhile; and what the variable holds may have changed since.
    shell.ip.user_ns["x"] = 6
    form.name.entry.value = "x"
    form.run.click()
    assert form.typed.join(5)
    assert form.message == "x holds a value already (type int). Press again to replace it."
    assert len(ran(shell, form, "x", 3)) == 3
    # A table of nbext is what such a variable is for.
    assert len(ran(shell, form, "whales", 4)) == 4


def test_what_was_removed_comes_back_where_it_was(shell):
    form = shell.value("%nbext build")
    names = ["USDC", "UNI", "WBTC"]
    for name in names:
        form.top.add("token", {"token": name})
    cards = [editor.widget for editor in form.top.children]
    form.top.children[1].remove_button.click()
    assert form.filters() == {"token": [{"token": "USDC"}, {"token": "WBTC"}]}
    # What stands in its place has no button where the card had Remove: the second click of two falls there.
    assert form.top.body.children == (cards[0], form.top.gone.widget, cards[2])
    assert form.top.gone.text.value == '<span role="status">Removed: Token</span>'
    form.top.gone.undo.click()
    assert form.filters() == {"token": [{"token": name} for name in names]}
    assert form.top.body.children == tuple(cards)
    form.top.children[2].remove_button.click()
    form.top.add("nft", {"nft": "BAYC"})
    assert [editor.key for editor in form.top.children] == ["token", "token", "nft"]
    assert form.top.gone.widget not in form.top.body.children


def test_a_card_shows_the_overlap_and_how_balances_and_counts_are_spread_with_matplotlib_and_without(
    shell, monkeypatch
):
    card = shell.value(f"%segment {QUERY} --limit 10 --card")
    matched = f"{card.known['matched']:,}"
    headings = ["First rows", "Each condition alone", "How much: USDC_balance (of the 10 rows here)",
                "How much: BAYC_count (of the 10 rows here)", "The same query as a cell"]  # fmt: skip
    drawn = card.body()
    assert re.findall(r'aria-level="3">([^<]+)<', drawn) == headings
    pictures = re.findall(r'<img class="nbext-picture" src="data:image/png;base64,[^"]+" alt="([^"]+)"', drawn)
    assert [words.split(":")[0] for words in pictures] == [
        "Wallets that match each condition", "USDC per wallet", "BAYC per wallet",
    ]  # fmt: skip
    assert pictures[0].endswith(f"together: {matched}")
    assert sum(map(int, re.findall(r": (\d+) wallets", pictures[2]))) == 10
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    plain = card.body()
    assert "<img" not in plain
    assert re.findall(r'aria-level="3">([^<]+)<', plain) == headings
    assert f'<tr><td>together</td><td class="nbext-number">{matched}</td></tr>' in plain
    counted = dict(re.findall(r'<tr><td>([^<]+)</td><td class="nbext-number">([\d,]+)</td></tr>', plain))
    assert {label: counted[label] for label in re.findall(r"(\d+): \d+ wallets", pictures[2])} == dict(
        re.findall(r"(\d+): (\d+) wallets", pictures[2])
    )


@pytest.fixture(scope="module")
def kernel(home):
    with running_kernel() as made:
        yield made


def test_a_front_end_without_widgets_shows_the_cell_as_text_and_gets_it_when_it_is_inserted(kernel):
    shown = kernel.run(f"import nbext\nform = nbext.segment_form({QUERY})\nform")
    assert shown.reply["status"] == "ok", shown.error
    bundles = [content["data"] for content in shown.of("display_data")]
    assert [list(bundle)[-2:] for bundle in bundles] == [["text/html", "text/plain"]] * 2
    assert bundles[-1]["text/plain"].endswith(f"\n{CELL}")
    assert f">{html.escape(CELL)}</pre>" in bundles[-1]["text/html"]
    inserted = kernel.run("form.name.entry.value = 'whales'\nform.insert.click()\nprint(form.message)")
    cell = CELL.replace("segment\n", "whales\n")
    assert inserted.reply["payload"] == [{"source": "set_next_input", "text": cell, "replace": False}]
    assert inserted.of("update_display_data")[-1]["data"]["text/plain"].endswith(f"\n{cell}")
    assert "click the text of the cell in this form and copy it" in inserted.printed


def test_a_card_shows_each_amount_once_in_its_tokens_unit(shell):
    table = shell.value('%segment {"token": {"token": "USDC", "balance": {"min": "1000"}}} --limit 3')
    body = nbext.show(table).body()
    assert "200,000" in re.findall(r"<td[^>]*>([^<]+)</td>", body)
    assert re.findall(r"<th[^>]*>([^<]+)</th>", body)[-2:] == ["address", "USDC_balance (USDC)"]
    assert re.findall(r">How much: (\w+)", body) == ["USDC_balance"]
    assert "exact amounts are in the columns ..._raw of the variable" in body
    alone = nbext.show(table[["address", "USDC_balance"]]).body()
    assert "..._raw" not in alone


def test_a_card_of_a_table_that_was_changed_shows_what_it_can(shell):
    table = shell.value('%segment {"token": {"token": "USDC"}} --limit 3')
    assert "How much" not in nbext.show(table.assign(USDC_balance="much")).body()
    assert "How much" not in nbext.show(pd.concat([table, table], axis=1).__finalize__(table)).body()


def test_the_cell_of_a_form_asks_for_as_many_rows_as_the_form(shell):
    shell.run("%nbext set limit 3")
    try:
        form = shell.value("%nbext build")
        form.top.add("token", {"token": "USDC"})
        assert form.cell() == '%%segment_query segment\n{"token": {"token": "USDC"}}'
        assert len(ran(shell, form, "mine", 3)) == len(shell.value(form.cell().replace(" mine", ""))) == 3
        form.limit.entry.value = "5"
        assert form.cell().startswith("%%segment_query mine --limit 5\n")
        card = shell.value('%segment {"token": {"token": "USDC"}} --limit 4 --card')
        assert card.cell() == '%%segment_query --limit 4\n{"token": {"token": "USDC"}}'
        assert nbext.segment_form(card.frame).limit.value == "4"
    finally:
        shell.run("%nbext unset limit")


@pytest.mark.parametrize(("field", "given"), [("name", "class"), ("name", "1a"), ("limit", "1e3")])
def test_a_cell_that_would_say_something_else_is_not_inserted(shell, field, given):
    form = shell.value("%nbext build")
    form.top.add("token", {"token": "USDC"})
    getattr(form, field).entry.value = given
    form.insert.click()
    assert "appears below" not in form.message
    assert form.message or form.limit.error


@pytest.mark.parametrize("filters", [
    {"nft": {"nft": "BAYC"}, "exclude": []}, {"nft": {"nft": "BAYC"}, "asOf": None},
    {"token": {"token": "UNI"}, "nft": []}, {"token": {"token": "UNI"}, "not": []}, {"not": "x"},
    {"all": {"token": {"token": "UNI"}}}, {"any": [None]},
])  # fmt: skip
def test_nothing_of_a_query_is_lost_or_fails_when_it_is_opened(shell, filters):
    assert nbext.segment_form(filters).filters() == filters


def test_the_builder_offers_the_columns_that_the_filters_give_the_rows(shell):
    asked = {"token": {"token": "UNI"}, "columns": ["firstSeen"], "orderBy": "-UNI_balance"}
    form = nbext.segment_form(asked)
    assert form.filters() == asked
    order, columns = (form.scope.inputs[name].fields[""].entry for name in ("orderBy", "columns"))
    assert dict(order.options) == {
        "(address)": "", "address, largest first": "-address",
        "UNI_balance, largest first": "-UNI_balance", "UNI_balance, smallest first": "UNI_balance",
        "firstSeen, largest first": "-firstSeen", "firstSeen, smallest first": "firstSeen",
    }  # fmt: skip
    columns.value = ("firstSeen", "transfers")
    order.value = "-transfers"
    assert form.filters() == {**asked, "columns": ["firstSeen", "transfers"], "orderBy": "-transfers"}
    # What is chosen stays, although the rows no longer have it: the service says so beside the field.
    columns.value = ()
    assert form.filters() == {"token": {"token": "UNI"}, "orderBy": "-transfers"}
    form.background.drop()
