"""The script of a page answers a question as the explorer does: random tables, each asked the same of both."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nbext
from nbext.client import frames
from tests.seed import gate_seed

SCRIPT = Path(__file__).parents[2] / "views" / "answers.js"
ROWS, QUESTIONS = 40, 150
NUMBERS = ["0", "1", "0.5", "-5", "1e3", "1,000", "< 1", "<0", "-0.25", "+7", ".5", "0,5", "<", "x"]
TIMES = [
    *("2025-01-31", "2025-02-01T12:00:00Z", "< 2025-02-10", "2025-02-01 12:00", "soon"),
    *("2025-01-31T12:00:00.250001Z", "< 2025-01-31T12:00:00.250002Z", "2025-01-30"),
    *("2025-02-01T12:00:00+05:30", "< 2025-02-01T00:00", "2021-03-04", "2025-1-1"),
    *("2025-W05-5", "20250131", "2025-01-31T12", "2025-02-01t12:00:00z"),
    *("2025-02-29", "0999-01-01", "< 0001-06-01"),
]
# Within a day, in microseconds: its first and last, and some of one thousandth of a second.
MOMENTS = [0, 1, 43_200_000_000, *(43_200_250_001, 43_200_250_002), 86_399_999_999]
# Not the largest: whether they add up to infinity on the way depends on their order.
LIMITS = [float("inf"), float("-inf"), 0.0, 5e-324]
LONG = "x" * 250
TEXTS = [
    *("K", "\\u200B", LONG, f"={LONG}", f"={LONG}y", "(", "s"),
    "a",
    "A",
    "=a",
    "=b",
    "==b",
    "ß",
    "É",
    "true",
    "=true",
    "x,",
    "none of them",
]


def some_table(draw):
    def column(value):
        return [None if draw.random() < 0.1 else value() for _ in range(ROWS)]

    def days(first, many):
        return pd.Timestamp(first) + pd.Timedelta(days=draw.randrange(many))

    raw = column(lambda: str(draw.choice([0, 1, 10**18, 2**256 - 1, draw.randrange(10**20)])))
    table = pd.DataFrame(
        {
            "raw": frames.typed_column(raw, "uint256"),
            "whole": pd.array(column(lambda: draw.choice([0, -5, draw.randrange(10**6)])), "Int64"),
            "mean": pd.array(
                column(lambda: draw.choice([0.1, draw.gauss(0, 9), *LIMITS])), "Float64"
            ),
            "delta": pd.Series(column(lambda: draw.randrange(-(10**30), 10**30)), dtype="object"),
            "price": column(lambda: draw.randrange(-2, 10**20) + Decimal(draw.randrange(99)) / 100),
            "name": column(lambda: draw.choice(["a", "A", "=b", "aa", "ß", "é", "x,y", "b"])),
            "flag": pd.array(column(lambda: draw.random() < 0.5), "boolean"),
            "time": pd.to_datetime(
                column(lambda: days("2025-01-01", 90) + pd.Timedelta(seconds=draw.randrange(9999)))
            ),
            # Beside whole numbers, nearer than floats are to one another.
            "dust": [
                draw.randrange(9) + Decimal(draw.choice([0, 1, -1])) / 10**18 for _ in range(ROWS)
            ],
            "odd": column(
                lambda: draw.choice(["\u200bk", "\u212a", "\u017f", LONG, LONG + "y", "x(", "ab"])
            ),
            "old": np.array(
                column(
                    lambda: draw.choice(
                        ["0001-01-01", "0300-05-05T12:00", "0999-12-31", "2025-02-01"]
                    )
                ),
                dtype="datetime64[us]",
            ),
            "day": pd.to_datetime(column(lambda: days("2020-01-01", 900))),
            "moment": pd.to_datetime(
                column(lambda: days("2025-01-30", 3) + pd.Timedelta(draw.choice(MOMENTS), "us"))
            ),
        }
    )
    about = {"name": "raw", "type": "uint256", "unit": "raw", "decimals": 18, "symbol": "X"}
    table.attrs["nbext"] = {"columns": [about]}
    return table


def some_question(draw, columns):
    filters = {}
    for at in draw.sample(range(len(columns)), draw.choice([0, 1, 1, 2])):
        kind = columns[at].kind
        if kind in ("number", "time"):
            sides = draw.choice([["min"], ["max"], ["min", "max"]])
            filters[at] = {
                side: draw.choice(TIMES if kind == "time" else NUMBERS) for side in sides
            }
        else:
            filters[at] = {"text": draw.choice(TEXTS)}
    places = draw.sample(range(len(columns)), draw.choice([0, 1, 2]))
    order = [[at, draw.choice(["ascending", "descending"])] for at in places]
    return {"order": order, "filters": filters, "search": draw.choice(["", "", "a", "=b", "B"])}


def compared(answer):
    """Leave out the digits of sums of floats."""
    for one in answer["summaries"]:
        if one.get("sum", "").startswith("about"):
            one["sum"] = "about"
    return answer


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")
def test_a_page_answers_each_question_as_the_explorer_does():
    draw = random.Random(gate_seed())
    table = some_table(draw)
    made = nbext.explore(table)
    columns = [one.described() | one.values() for one in made.columns]
    questions = [some_question(draw, made.columns) for _ in range(QUESTIONS)]
    expected = []
    for one in questions:
        made.find(**one)
        answer = {
            "count": len(made.rows),
            "wrong": sorted(made.errors),
            "rows": made.shown_rows(0, ROWS),
            "summaries": [made.summary(at) for at in range(len(columns))],
        }
        expected.append(compared(json.loads(json.dumps(answer))))
    asked = json.dumps({"columns": columns, "total": ROWS, "questions": questions})
    # As `npm test` runs the scripts: their folder says no type of module.
    command = ["node", "--experimental-default-type=module", SCRIPT]
    ran = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    for question, answer, mine in zip(questions, json.loads(ran.stdout), expected, strict=True):
        assert compared(answer) == mine, question
    assert len({one["count"] for one in expected}) > 5
