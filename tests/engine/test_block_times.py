"""Times become blocks, and None stands where the data cannot tell."""

from __future__ import annotations

import itertools
import random

import pytest

from nbext.engine.open import open_dataset
from nbext.errors import InvalidSegment
from nbext.language import language
from tests.engine.hand_made import contract, generation

# Chain 1 has all times, chain 10 none, chain 137 some.
TIMES = {
    1: [(100, 1000), (110, 1100), (110 + 5, 1100), (200, 2000)],
    10: [(5, None), (9, None)],
    137: [(10, None), (20, 2000), (30, 3000), (40, None), (50, 5000), (60, None)],
}
# Of some blocks: 110 has one, and 115, at the same time, has none.
HASHES = {(1, 110): f"0x{110:064x}", (1, 200): f"0x{200:064x}", (10, 5): f"0x{5:064x}"}
CHAINS = [
    {
        "chain_id": 1,
        "first_block": 100,
        "last_block": 200,
        "last_timestamp": 2000,
        "last_hash": f"0x{200:064x}",
    },
    {"chain_id": 10, "first_block": 5, "last_block": 9, "last_timestamp": None},
    {"chain_id": 137, "first_block": 10, "last_block": 60, "last_timestamp": None},
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("clock")
    blocks = [
        {"chain_id": c, "block": b, "timestamp": t, "hash": HASHES.get((c, b))}
        for c, rows in TIMES.items()
        for b, t in rows
    ]
    contracts = [contract(0, chain_id=137, symbol="POL", decimals=18, transfers=1, holders=0)]
    generation(data_dir, {"blocks": blocks, "contracts": contracts}, chains=CHAINS)
    opened = open_dataset(data_dir)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def clock(dataset):
    return dataset.clock


@pytest.mark.parametrize(
    ("chain_id", "timestamp", "block"),
    [
        (1, 999, 99),
        (1, 1000, 100),
        (1, 1099, 100),
        (1, 1100, 115),
        (1, 1999, 115),
        (1, 10**12, 200),
        (10, 1000, None),
        (77, 1000, None),
        (137, 1999, None),
        (137, 2500, 20),
        (137, 3000, None),
        (137, 5000, None),
    ],
)
def test_a_time_is_the_last_block_at_or_before_it(clock, chain_id, timestamp, block):
    assert clock.block_at(chain_id, timestamp) == block


@pytest.mark.slow
def test_whichever_times_are_missing_a_block_is_named_only_where_all_others_are_surely_before_or_after(
    tmp_path,
):
    chance, chains = random.Random(14), {}
    for chain_id in range(1, 41):
        numbers = sorted(chance.sample(range(100, 120), chance.randint(1, 6)))
        seconds = itertools.accumulate((chance.randint(0, 2) for _ in numbers), initial=1000)
        chains[chain_id] = [
            (block, time if chance.random() < 0.6 else None)
            for block, time in zip(numbers, seconds, strict=False)
        ]
    rows = [
        {"chain_id": chain_id, "block": block, "timestamp": time, "hash": None}
        for chain_id, blocks in chains.items()
        for block, time in blocks
    ]
    generation(
        tmp_path,
        {"blocks": rows},
        chains=[
            {
                "chain_id": chain_id,
                "first_block": blocks[0][0],
                "last_block": blocks[-1][0],
                "last_timestamp": last,
            }
            for chain_id, blocks in chains.items()
            for _, last in blocks[-1:]
        ],
    )
    dataset = open_dataset(tmp_path)
    answered = 0
    for chain_id, blocks in chains.items():
        for moment in range(998, 1013):
            until = [
                block
                for block, _ in blocks
                if any(
                    time is not None and time <= moment for later, time in blocks if later >= block
                )
            ]
            after = [
                block
                for block, _ in blocks
                if any(
                    time is not None and time > moment
                    for earlier, time in blocks
                    if earlier <= block
                )
            ]
            sure = len(until) + len(after) == len(blocks)
            expected = (until[-1] if until else blocks[0][0] - 1) if sure else None
            assert dataset.clock.block_at(chain_id, moment) == expected, (blocks, moment)
            answered += sure
    dataset.close()
    assert 100 < answered < 500, "some are answered, and some are not"


def test_a_block_has_the_time_and_the_hash_that_the_data_gives_it(clock):
    assert clock.moment(1, 110) == (1100, f"0x{110:064x}")
    assert clock.moment(1, 115) == (1100, None)
    assert clock.moment(1, 111) == (None, None)
    assert clock.moment(1, 200) == (2000, f"0x{200:064x}")
    assert clock.moment(10, 5) == (None, f"0x{5:064x}")
    assert clock.moment(10, 9) == (None, None)


def test_the_last_block_of_a_chain_comes_with_its_time(clock):
    assert clock.last(1) == (200, 2000)
    assert clock.last(10) == (9, None)
    assert clock.last(77) == (0, None)


@pytest.mark.parametrize("chain_id", [1, 10, 77, 137])
def test_many_times_are_looked_up_at_once_and_are_what_each_alone_is(clock, chain_id, monkeypatch):
    times = [999, 1000, 1050, 1099, 1100, 1101, 1999, 2000, 2500, 3000, 5000, 10**12]
    alone = [clock.block_at(chain_id, time) for time in times]
    moments = [clock.moment(chain_id, block) for block in alone if block is not None]
    monkeypatch.setattr(clock, "_blocks", {})
    monkeypatch.setattr(clock, "_moments", {})
    clock.learn(chain_id, times[::-1])
    assert [clock.block_at(chain_id, time) for time in times] == alone
    assert [clock.moment(chain_id, block) for block in alone if block is not None] == moments
    if chain_id == 1:
        # The one before the data begins, too, once it was asked; a block has its own time, whichever of equal ones was
        # asked for.
        assert clock._blocks.keys() == {(1, time) for time in times}
        read = []
        monkeypatch.setattr(clock, "_read", lambda *asked: read.append(asked))
        assert [clock.block_at(1, time) for time in times] == alone
        clock.learn(1, times)
        assert read == []


def test_what_the_clock_has_learnt_is_bounded(clock, monkeypatch):
    monkeypatch.setattr("nbext.engine.catalog._MOST_LEARNT", 4)
    monkeypatch.setattr(clock, "_blocks", {})
    clock.learn(1, range(1200, 1210))
    clock.learn(1, range(1300, 1305))
    assert sorted(time for _, time in clock._blocks) == [1300, 1301, 1302, 1303, 1304]


def test_the_blocks_without_a_time_are_counted(clock):
    assert [clock.untimed(chain_id) for chain_id in (1, 10, 77, 137)] == [
        (0, 4),
        (2, 2),
        (0, 0),
        (3, 6),
    ]


AROUND = (
    "The data of polygon has no time for some blocks around {!r}. Give a block number instead, or ingest a file "
    "with the times of its blocks."
)
LAST = (
    "The data of polygon has no time for the last block. Give a block number instead, or ingest a file with the "
    "times of its blocks."
)


@pytest.mark.parametrize(
    ("filters", "pointer", "detail"),
    [
        (
            {"activity": {"first": {"after": "1970-01-01T01:30:00Z"}}},
            "/activity/first/after",
            AROUND,
        ),
        (
            {"activity": {"last": {"before": "1970-01-01T01:30:00Z"}}},
            "/activity/last/before",
            AROUND,
        ),
        (
            {"transfer": {"token": "POL", "before": "1970-01-01T00:30:00Z"}},
            "/transfer/before",
            AROUND,
        ),
        (
            {"not": {"transfer": {"token": "POL", "after": "2024-06-01"}}},
            "/not/transfer/after",
            AROUND,
        ),
        (
            {"token": {"token": "POL", "heldSince": "1970-01-01T00:10:00Z"}},
            "/token/heldSince",
            AROUND,
        ),
        ({"token": {"token": "POL"}, "asOf": "1970-01-01T01:00:00Z"}, "/asOf", AROUND),
        ({"transfer": {"token": "POL", "after": "2d"}}, "/transfer/after", LAST),
        (
            {"activity": {"activeDays": {"min": 1}}},
            "/activity/activeDays",
            "The data has times of 3 of 6 blocks for polygon. Days cannot be counted.",
        ),
        (
            {"token": {"token": "POL"}, "columns": ["activeDays"]},
            "/columns",
            'The data has times of 3 of 6 blocks for polygon. Leave out "activeDays".',
        ),
    ],
)
def test_a_time_where_blocks_have_none_is_an_error_and_never_a_guess(
    dataset, filters, pointer, detail
):
    with pytest.raises(InvalidSegment) as caught:
        language.resolve(
            language.parse({"filters": {**filters, "chain": "polygon"}}), dataset, {}.get
        )
    (error,) = caught.value.errors
    text = next(iter(str(filters).rsplit("'", 2)[1:2]))
    assert error == {
        "pointer": f"/filters{pointer}",
        "code": "no-times",
        "detail": detail.format(text),
    }


def test_where_the_blocks_around_a_time_have_theirs_it_is_answered(dataset):
    window = {"token": "POL", "after": 10, "before": "1970-01-01T00:41:40Z"}
    asked = language.parse({"filters": {"transfer": window, "chain": "polygon"}})
    plan = language.resolve(asked, dataset, {}.get)
    assert plan.canonical["filters"]["transfer"]["before"] == 20
    # The last block has no time: the answer does not borrow another's.
    assert plan.as_of == {"block": 60, "timestamp": None}


def test_a_column_of_times_is_said_to_lack_those_of_blocks_without_one(dataset):
    filters = {"token": {"token": "POL"}, "chain": "polygon", "columns": ["lastSeen", "transfers"]}
    body = {"operator": "AND", "filters": filters, "fileType": "json", "limit": 1}
    plan = language.resolve(language.parse(body), dataset)
    assert plan.warnings == [
        "3 of 6 blocks of polygon have no time: lastSeen is missing where it is one of them."
    ]


def test_a_span_counts_from_the_last_block_until_as_of_that_the_data_knows_of(dataset):
    def window(as_of):
        filters = {"activity": {"first": {"after": "1h"}, "chain": "ethereum"}, "asOf": as_of}
        plan = language.resolve(language.parse({"filters": filters}), dataset)
        return plan.canonical["filters"]["activity"]["first"]["after"]

    # Block 150 is none of the data's, whose last until then is 115, at 1100.
    assert window(150) == window(115) == 100
    with pytest.raises(InvalidSegment, match="has no time for asOf"):
        language.resolve(
            language.parse(
                {
                    "filters": {
                        "activity": {"first": {"after": "1h"}},
                        "chain": "polygon",
                        "asOf": 45,
                    }
                }
            ),
            dataset,
        )
