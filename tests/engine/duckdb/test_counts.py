"""What questions have in common, counted in one request, is what their answers' wallets have in common."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import cache
from operator import methodcaller

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbext.engine.dataset import Cancel, Order, Question
from nbext.engine.duckdb.dataset import CursorEngine
from nbext.engine.open import open_dataset
from nbext.engine.query import answers, bitmaps
from nbext.engine.query.set_tree import in_all, spelled_out
from nbext.errors import QueryCancelled, ResourceLimit
from nbext.language import language
from tests import slow
from tests.engine import forms

# The wallets of a form do not depend on how its rows are ordered.
NAMES = [name for name in forms.FORMS if not name.startswith("order_by")]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counts")
    forms.generation(folder)
    opened = open_dataset(folder)
    # It asks, too, until it is ready: tests here count what is asked.
    opened._preparing.result()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def wallets(dataset):
    return cache(
        lambda name: set(
            dataset.ask(forms.question(name, dataset), limit=1000).rows["address"].to_pylist()
        )
    )


@st.composite
def asked(draw):
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
    places = st.lists(st.integers(0, len(names) - 1), min_size=1, max_size=len(names), unique=True)
    together = draw(st.lists(places, min_size=1, max_size=12))
    # After the first, some are left out.
    return names, [
        [first, *(draw(st.sampled_from([one, ~one])) for one in rest)] for first, *rest in together
    ]


@pytest.mark.parametrize("part", slow.but_the_first(range(4)))
@settings(max_examples=10)
@given(asked=asked(), few=st.sampled_from([1, 6, 20_000]))
def test_counts_are_those_of_the_sets_of_wallets_be_they_ids_or_bits(
    dataset, wallets, part, asked, few
):
    names, together = asked
    questions = [forms.question(name, dataset) for name in names]
    dataset.sets.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bitmaps, "_FEW", few)
        counts = dataset.answers(methodcaller("counts", questions, together))
    assert counts == [
        len(
            set.intersection(*(wallets(names[one]) for one in places if one >= 0)).difference(
                *(wallets(names[~one]) for one in places if one < 0)
            )
        )
        for places in together
    ]
    whole = Question(lambda sql: in_all([one.wallets(sql) for one in questions]))
    assert dataset.ask(whole, limit=0).matched == len(set.intersection(*map(wallets, names)))
    dataset.sets.clear()


@pytest.fixture
def read(dataset, monkeypatch):
    """The statements that are read from now on, of a dataset that was asked nothing yet."""
    found, fetch = [], CursorEngine.fetch
    monkeypatch.setattr(
        CursorEngine, "fetch", lambda *asked: found.append(asked[1]) or fetch(*asked)
    )
    dataset.sets.clear()
    return found


def test_a_set_that_several_questions_share_is_read_once(dataset, read, monkeypatch):
    question = forms.question("all_any_not", dataset)
    dataset.answers(methodcaller("counts", [question] * 5, [[0, 1, 2, 3, 4]]))
    once = len(read)
    assert once == len({repr(one) for one in read}) > 1
    dataset.ask(Question(lambda sql: in_all([question.wallets(sql)] * 5)), limit=0)
    dataset.answers(methodcaller("counts", [question], [[0]]))
    assert len(read) == once
    read[:] = []
    # Where there is no room for what is shared, it is read again.
    monkeypatch.setattr(answers, "_KEPT", 0)
    dataset.sets.clear()
    dataset.answers(methodcaller("counts", [question] * 5, [[place] for place in range(5)]))
    assert len(read) == 5 * once
    assert dataset.sets == {}


def test_a_set_and_the_small_column_of_its_rows_are_one_statement_and_as_such_explained(
    read, tmp_path
):
    filters = {
        "token": {"token": "UNI"},
        "nft": {"nft": "BAYC"},
        "not": {"token": {"token": "DAI"}},
    }
    with contextlib.closing(open_dataset(tmp_path)) as sample:
        sample._preparing.result()
        plan = language.resolve(language.parse({"filters": {**filters, "exclude": []}}), sample)
        read.clear()
        answer = sample.ask(language.compile(plan), limit=plan.limit)
        rows = [one for one in read if "address" not in one.text]
        shown = sample.answers(methodcaller("explained", language.compile(plan), plan.limit))
        read.clear()
        # What was read with its column is known without it, too.
        assert sample.ask(language.compile(plan), limit=0).matched == answer.matched
        count = methodcaller("counts", [language.compile(plan)], [[0]])
        assert (sample.answers(count), read) == ([answer.matched], [])
        sample.sets.clear()
        # Without rows nothing is read of a set but its wallets.
        assert sample.ask(language.compile(plan), limit=0).matched == answer.matched > 0
    assert [one.text.partition(" FROM ")[0] for one in rows] == [
        "SELECT wallet, hi, mid, lo",
        "SELECT wallet, CASE WHEN sort_key < 100000000000000000 THEN sort_key ELSE lo END AS number",
        "SELECT wallet",
    ]
    assert [shown["sql"].count(spelled_out(one)) for one in rows] == [1, 1, 1]
    assert "-- 1, UNI_balance_raw\n" in shown["sql"]
    assert [one.text.partition(" FROM ")[0] for one in read] == ["SELECT wallet"] * 3


def test_the_sets_that_were_used_last_are_kept_as_long_as_there_is_room(dataset, read, monkeypatch):
    def count(number):
        where = "SELECT wallet FROM wallets WHERE wallet < "
        below = Question(lambda sql: sql.leaf(where + sql.value(number)))
        return dataset.ask(below, limit=0).matched

    monkeypatch.setattr(answers, "_KEPT", 2 * answers._SET)
    assert [count(number) for number in (1, 2, 1, 3, 1, 3, 2)] == [1, 2, 1, 3, 1, 3, 2]
    assert [one.values["v0"] for one in read] == [1, 2, 3, 2]
    # Those of many wallets count as what they take, and a long statement does.
    monkeypatch.setattr(answers, "_SET", 0)
    monkeypatch.setattr(answers, "_KEPT", sum(map(len, dataset.sets)) + 4 * (3 + 2))
    read[:] = []
    assert [count(number) for number in (3, 2, 1, 2, 1, 3)] == [3, 2, 1, 2, 1, 3]
    assert [one.values["v0"] for one in read] == [1, 3]


def test_a_request_for_counts_ends_when_it_is_cancelled_and_when_it_needs_too_much_memory(
    dataset, monkeypatch
):
    question, cancel = forms.question("token", dataset), Cancel()
    cancel.asked.set()
    with pytest.raises(QueryCancelled):
        dataset.answers(methodcaller("counts", [question], [[0]]), cancel)
    monkeypatch.setattr(answers, "_COUNTED_AT_ONCE", 1)
    with pytest.raises(ResourceLimit, match="Compare fewer of them"):
        dataset.answers(methodcaller("counts", [question, question], [[0, 1]]))
    assert (
        dataset.answers(methodcaller("counts", [question, question], [[0], [1]]))
        == [dataset.ask(question, limit=0).matched] * 2
    )


def test_the_rows_of_a_small_column_are_read_once_whichever_wallets_are_returned(
    dataset, read, monkeypatch
):
    question = forms.question("token", dataset)
    question = replace(question, columns=[replace(one, holders=100) for one in question.columns])
    from_the_end = replace(question, order=Order(None, descending=True))
    whole = dataset.ask(question, limit=1000).rows
    assert 5 < whole.num_rows < 1000
    assert len(question.columns) == sum("hi, mid, lo" in one.text for one in read) > 0
    read[:] = []
    assert dataset.ask(question, limit=5).rows == whole.slice(0, 5)
    assert dataset.ask(from_the_end, limit=5).rows.to_pylist() == whole.to_pylist()[:-6:-1]
    assert not any("hi, mid, lo" in one.text for one in read)
    # A large one is read for the wallets that are returned alone.
    monkeypatch.setattr(answers, "_READ_WHOLE", 0)
    assert dataset.ask(question, limit=5).rows == whole.slice(0, 5)
    assert len(question.columns) == sum("hi, mid, lo" in one.text for one in read)


def test_a_large_column_of_wallets_far_apart_is_kept_when_it_is_asked_for_again_and_drives_nothing_out(
    dataset, read, monkeypatch
):
    question = forms.question("token", dataset)
    question = replace(question, columns=[replace(one, holders=100) for one in question.columns])
    whole = dataset.ask(question, limit=1000).rows
    dataset.sets.clear()
    monkeypatch.setattr(answers, "_READ_WHOLE", 0)
    monkeypatch.setattr(answers, "_DENSE", 0)
    for tables in (["nbext_returned"], []):
        read[:] = []
        assert dataset.ask(question, limit=5).rows == whole.slice(0, 5)
        columns = [one for one in read if "hi, mid, lo" in one.text]
        assert [list(one.tables) for one in columns] == [tables]
    # Its upper limbs are zero, which takes no memory: 4 bytes a wallet, and 16 an amount.
    ((size, kept),) = [one for text, one in dataset.sets.items() if text == repr(columns[0])]
    assert size < 24 * kept.num_rows
    read[:] = []
    assert dataset.ask(question, limit=1000).rows == whole
    assert [one.text for one in read if "address" not in one.text] == []
    # Where all that is kept has to be smaller than the column, what was read before it stays.
    monkeypatch.setattr(answers, "_SET", 0)
    monkeypatch.setattr(answers, "_KEPT", size - 1)
    dataset.sets.clear()
    dataset.sets["a set"] = 0, None
    dataset.answers(methodcaller("_kept", columns[0]))
    assert list(dataset.sets) == ["a set"]
