"""The laws of answers, over data that was ingested and questions of every kind."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from io import BytesIO
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from nbext import Client
from nbext.errors import InvalidSegment
from tests.oracle.asking import Asking
from tests.oracle.machine import LUCK, NOBODY, WALLETS, FrontDoor
from tests.oracle.meaning import SCOPE
from tests.seed import gate_seed

ALL = 1000


def ask(client: Client, request: dict[str, Any], limit: int = ALL, **more: Any) -> pd.DataFrame:
    filters = {**request["filters"], **more}
    return client.execute_segment(filters, request["operator"], limit=limit)


def wallets(client: Client, request: dict[str, Any], **more: Any) -> list[str]:
    return ask(client, request, **more)["address"].tolist()


def parts(request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the conditions of a request, and its scope."""
    filters = request["filters"]
    scope = {key: value for key, value in filters.items() if key in SCOPE}
    return {key: value for key, value in filters.items() if key not in SCOPE}, scope


def as_of_the_last_block_is_now(machine: FrontDoor, request: dict[str, Any]) -> None:
    """As of the last block is now."""
    if "asOf" not in request["filters"]:
        (last,) = machine.world.last_blocks.values()
        then = ask(machine.client, request, asOf=last)
        pd.testing.assert_frame_equal(ask(machine.client, request), then)


def either_it_or_not_is_everyone(machine: FrontDoor, request: dict[str, Any]) -> None:
    """Who is in a segment, and who is not in it, are everyone seen, each once."""
    conditions, scope = parts(request)
    scope.pop("columns", None)
    some = wallets(machine.client, {"operator": "AND", "filters": {**scope, "all": [conditions]}})
    rest = wallets(machine.client, {"operator": "AND", "filters": {**scope, "not": conditions}})
    seen = {"activity": {"transfers": {"min": 0}}}
    everyone = wallets(machine.client, {"operator": "AND", "filters": {**scope, **seen}})
    assert sorted([*some, *rest]) == everyone


def a_limit_is_a_prefix(machine: FrontDoor, request: dict[str, Any]) -> None:
    """A limit returns the first rows of all, and says how many there are."""
    whole = ask(machine.client, request)
    for limit in (1, 2):
        first = ask(machine.client, request, limit)
        pd.testing.assert_frame_equal(first, whole.head(limit), check_dtype=False)
        about = first.attrs["nbext"]
        assert about["matched"] == len(whole)
        assert bool(about.get("truncated")) == (limit < len(whole))


def a_count_is_the_number_of_rows(machine: FrontDoor, request: dict[str, Any]) -> None:
    """What is counted alone, in a count of several, and step by step, is how many rows there are."""
    client = machine.client
    number = len(ask(client, request))
    filters, operator = request["filters"], request["operator"]
    assert ask(client, request, limit=0).attrs["nbext"]["matched"] == number
    assert client.counts([(filters, operator)], [[0]])["counts"] == [number]
    assert client.funnel(filters, operator)["steps"][-1]["remaining"] == number


def every_way_out_has_the_same_rows(machine: FrontDoor, request: dict[str, Any]) -> None:
    """A DataFrame, JSON, CSV and Arrow, and files of each, and Parquet, hold the same rows."""
    table = ask(machine.client, request)
    about = table.attrs["nbext"]
    columns = about["columns"]
    expected = [[text(value) for value in row] for row in table.itertuples(index=False)]
    path = f"/v1/segment/{about['segment_id']}"
    found = {
        "json": [list(row.values()) for row in machine.service.get(f"{path}/json").json()["data"]],
        "csv": read_csv(machine.service.get(f"{path}/csv").content),
        "arrow": read_arrow(machine.service.get(f"{path}/arrow").content),
    }
    for kind in ("csv", "json", "parquet", "arrow"):
        to = machine.folder / f"out.{kind}"
        said = machine.client.export_csv(about["segment_id"], to, overwrite=True)
        assert said["rows"].tolist() == [len(table)]
        found[f"file.{kind}"] = read_file(to)
    assert [column["name"] for column in columns] == list(table.columns)
    for kind, rows in found.items():
        assert [[text(value) for value in row] for row in rows] == expected, kind


def read_csv(content: bytes) -> list[list[Any]]:
    read = pd.read_csv(BytesIO(content), dtype=str, keep_default_na=False)
    return [list(row) for row in read.itertuples(index=False)]


def read_arrow(content: bytes) -> list[list[Any]]:
    read = pa.ipc.open_stream(content).read_all()
    return [list(row.values()) for row in read.to_pylist()]


def read_file(path: Any) -> list[list[Any]]:
    if path.suffix == ".parquet":
        return [list(row.values()) for row in pq.read_table(path).to_pylist()]
    if path.suffix == ".arrow":
        with pa.ipc.open_file(path) as file:
            return [list(row.values()) for row in file.read_all().to_pylist()]
    if path.suffix == ".csv":
        return read_csv(path.read_bytes())
    return [list(row.values()) for row in json.loads(path.read_text())]


def text(value: Any) -> str:
    """Return a value as every format can say it: numbers by their value, times as ISO-8601 in UTC, nothing as ""."""
    # A share that is not known is NaN in a DataFrame, whose column is float64.
    if pd.isna(value) or value == "":
        return ""
    if hasattr(value, "isoformat"):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, str) and not value[:1].isdigit() and value[:1] != "-":
        return value
    if isinstance(value, float) or (isinstance(value, str) and {*value} & {".", "e"}):
        if str(value).startswith("0x"):
            return str(value)
        # JSON writes a whole number without its point.
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


LAWS = (
    as_of_the_last_block_is_now,
    either_it_or_not_is_everyone,
    a_limit_is_a_prefix,
    a_count_is_the_number_of_rows,
    every_way_out_has_the_same_rows,
)


@pytest.mark.slow
def test_every_law_holds_of_any_data_and_any_question():
    @seed(gate_seed())
    @settings(
        max_examples=int(os.environ.get("LAWS_EXAMPLES") or 8),
        derandomize=False,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(luck=LUCK)
    def each(luck):
        machine = FrontDoor()
        try:
            machine.begin(luck=luck, timed=1, chains=[1], beside=False)
            for step in (machine.send_more, machine.snapshot, machine.send_more):
                step(luck=luck)
            hold(machine, luck)
        finally:
            machine.teardown()

    each()


def hold(machine: FrontDoor, luck: random.Random) -> None:
    world = replace(machine.world)
    for _ in range(6):
        request = Asking(luck, world, [*WALLETS, NOBODY]).request()
        for law in LAWS:
            try:
                law(machine, request)
            except InvalidSegment:
                # What is refused has no answer: whether it may be is the oracle's to say.
                break
            except AssertionError as error:
                raise AssertionError(f"{law.__doc__} {request}\n{error}") from error
