"""A segment at many blocks: what one reading of the history counts and adds up is what each block's question does."""

from __future__ import annotations

from operator import methodcaller

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nbext.engine.duckdb.dataset import CursorEngine
from nbext.engine.open import open_dataset
from nbext.engine.query import bitmaps as bits
from nbext.engine.query.bitmaps import Series, series_of
from nbext.language import language
from tests import slow
from tests.engine import forms
from tests.engine.cluster import cluster

# Those without a time of their own. The wallets of a form do not depend on how its rows are ordered.
NAMES = [
    name
    for name, filters in forms.FORMS.items()
    if "asOf" not in filters and "orderBy" not in filters
]
# These ask more of a block than what stood at it: they are answered block by block.
ONE_BY_ONE = {
    "collections_at_least",
    "collections_distinct",
    "transfer_in",
    "transfer_out",
    "transfer_any",
    "transfer_mint",
    "transfer_burn",
    "transfer_counterparty",
    "transfer_total",
    "seven_of_nine",
    "activity_first",
    "activity_last",
    "activity_transfers",
    "exclude_nothing",
}
# A span counts back from the block that is asked: a series has one block since which wallets held, that of the last.
SINCE = {"5d": forms.LAST - 5 * 24, "4d": forms.LAST - 4 * 24}
# Blocks after those since which some of the forms ask.
LATE = range(150, forms.LAST)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    forms.generation(folder)
    return folder


@pytest.fixture(scope="module")
def dataset(data_dir):
    opened = open_dataset(data_dir)
    yield opened
    opened.close()


def plan_of(name, dataset, block):
    filters = {
        key: {**one, "heldSince": SINCE[one["heldSince"]]} if "heldSince" in one else one
        for key, one in forms.FORMS[name].items()
    }
    request = {"operator": "AND", "filters": {**filters, "asOf": block}, "limit": 0}
    return language.resolve(
        language.parse(request), dataset, saved={"stored": forms.STORED}.get, lists=forms.LISTS.get
    )


def questions_of(name, dataset, blocks):
    return [language.compile(plan_of(name, dataset, block)) for block in blocks]


def check(name, dataset, blocks):
    questions = questions_of(name, dataset, blocks)
    places = [[place] for place in range(len(questions))]
    assert dataset.answers(methodcaller("counts", questions, places)) == [
        dataset.ask(one, limit=0).matched for one in questions
    ]
    if "address" in dict(enumerate(plan_of(name, dataset, blocks[0]).columns)).get(1, {}):
        assert dataset.answers(methodcaller("totals", questions)) == [
            dataset.answers(methodcaller("totals", [one]))[0] for one in questions
        ]


@pytest.mark.parametrize(
    "name",
    slow.but_the_first(["transfer_in", *(name for name in NAMES if name not in ONE_BY_ONE)], 7),
)
@settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(data=st.data(), searched=st.booleans())
def test_many_blocks_are_answered_as_each_alone(dataset, name, data, searched):
    known = LATE if "since" in name else range(forms.LAST)
    blocks = data.draw(st.lists(st.sampled_from(known), min_size=3, max_size=9))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bits, "_LOOKED_UP", -1 if searched else 8_000_000)
        patch.setattr(bits, "_AT_A_TIME", 2)
        check(name, dataset, blocks)


def test_what_stood_at_many_blocks_is_one_question_for_all_of_them(dataset):
    asked = {
        name: list(series_of(questions_of(name, dataset, LATE[::20]), None, columns=False))
        for name in NAMES
    }
    assert {name: len(found) for name, found in asked.items()} == {
        name: name not in ONE_BY_ONE for name in NAMES
    }


def test_no_statement_is_run_for_a_block_of_its_own(dataset, monkeypatch):
    blocks = range(80)
    questions, read, fetch = questions_of("token_min", dataset, blocks), [], CursorEngine.fetch
    monkeypatch.setattr(
        CursorEngine, "fetch", lambda *asked: read.append(asked[1]) or fetch(*asked)
    )
    counts = dataset.answers(methodcaller("counts", questions, [[place] for place in blocks]))
    assert len(read) <= 2, "the wallets left out, once for each 64 blocks"
    assert counts[0] < counts[40] < counts[79]


def test_questions_that_differ_in_more_than_their_block_are_no_series(dataset):
    other, *questions = [
        *questions_of("token_min", dataset, [170]),
        *questions_of("token", dataset, LATE[:5]),
    ]
    (found,) = series_of([other, *questions, questions[0]], None, columns=True)
    assert found == Series(questions[0], tuple(LATE[:5]), ((1, 6), (2,), (3,), (4,), (5,)))
    assert list(series_of(questions[:2], None, columns=True)) == []


@pytest.mark.spark
def test_spark_counts_and_adds_up_many_blocks_as_duckdb_does(data_dir, dataset, tmp_path_factory):
    late, early = [150, 151, 171, 200], [0, 60, 110, 125, 125, 160]
    with cluster(tmp_path_factory.mktemp("cluster")) as url:
        on_spark = open_dataset(data_dir, url)
        try:
            for name in ("token_held_since", "all_any_not"):
                blocks = late if "since" in name else early
                questions = [questions_of(name, one, blocks) for one in (dataset, on_spark)]
                places = [
                    *([place] for place in range(len(blocks))),
                    *([0, place] for place in (1, 2, 3)),
                ]
                assert dataset.answers(
                    methodcaller("counts", questions[0], places)
                ) == on_spark.answers(methodcaller("counts", questions[1], places)), name
                if name.startswith("token"):
                    assert dataset.answers(
                        methodcaller("totals", questions[0])
                    ) == on_spark.answers(methodcaller("totals", questions[1])), name
        finally:
            on_spark.close()
