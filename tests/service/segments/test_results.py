"""Big exports: the first bytes come before the last row is made, and memory stays small."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv

from nbext.engine.query.rows import BATCH
from nbext.errors import QueryCancelled
from nbext.service.segments import results
from nbext.service.segments.results import ResultFolder, sha256_of
from tests.service.conftest import HOLDERS

ROWS = 3 * BATCH + 5


@pytest.fixture(scope="module")
def big(service, tmp_path_factory):
    """A segment of several batches, with the greatest amount there is, a null and a count."""
    segment = service.container.segments.store.get(service.execute(HOLDERS)["id"])
    columns = [*segment.facts["columns"], {"name": "BAYC_count", "type": "integer"}]
    floats = [10.0 ** (number % 300 - 250) / 3 for number in range(ROWS)]
    table = pa.table(
        {
            "address": [f"0x{number:040x}" for number in range(ROWS)],
            "USDC_balance": pa.array(
                floats, pa.float64(), mask=[number % 7 == 0 for number in range(ROWS)]
            ),
            "USDC_balance_raw": [
                str(2**256 - 1 - number) if number % 7 else None for number in range(ROWS)
            ],
            "BAYC_count": pa.array(
                [number if number % 5 else None for number in range(ROWS)], pa.int64()
            ),
        }
    )
    folder = ResultFolder(tmp_path_factory.mktemp("big"), "registry")
    folder.claim(expected=False)
    kept = folder.write(table.schema, table.to_batches(max_chunksize=BATCH))
    return (
        replace(segment, facts={**segment.facts, "columns": columns}, returned=ROWS),
        folder.open(kept),
        table,
    )


def test_json_is_exact_to_the_last_digit_and_page_after_page_whole(big):
    segment, reader, table = big
    rows, offset = [], 0
    while offset is not None:
        page = json.loads(b"".join(results.json_page(segment, reader, "/rows", 20_000, offset)))
        rows += page["data"]
        offset = offset + 20_000 if page["page"]["next"] else None
    assert rows == table.to_pylist()


def test_csv_is_exact_and_leaves_out_what_is_null(big):
    segment, reader, table = big
    text = b"".join(results.csv(segment, reader))
    assert text.splitlines()[1] == f"0x{'0' * 40},,,".encode()
    types = arrow_csv.ConvertOptions(
        column_types={
            "USDC_balance": pa.float64(),
            "USDC_balance_raw": pa.string(),
            "BAYC_count": pa.int64(),
        },
        strings_can_be_null=True,
        null_values=[""],
    )
    assert (
        arrow_csv.read_csv(io.BytesIO(text), convert_options=types).to_pylist() == table.to_pylist()
    )


def test_arrow_is_the_table_itself(big):
    segment, reader, table = big
    assert pa.ipc.open_stream(b"".join(results.arrow(segment, reader))).read_all() == table


@pytest.mark.parametrize("form", [results.csv, results.arrow])
def test_the_first_rows_go_out_before_the_last_are_read(big, form):
    segment, reader, _ = big

    class Watched:
        schema, num_record_batches, read = reader.schema, reader.num_record_batches, 0

        def get_batch(self, number):
            Watched.read = max(Watched.read, number + 1)
            return reader.get_batch(number)

    pieces = form(segment, Watched())
    assert len(next(pieces) + next(pieces)) > 0
    assert Watched.read <= 2 < reader.num_record_batches


def test_a_page_reads_only_the_batches_that_it_needs(big):
    segment, reader, table = big
    page = results.json_page(segment, reader, "/rows", 3, BATCH - 1)
    rows = json.loads(b"".join(page))["data"]
    assert rows == table.slice(BATCH - 1, 3).to_pylist()


def test_the_digest_of_a_file_is_its_bytes_sha_256(tmp_path):
    (tmp_path / "file").write_text("first\n")
    assert (
        sha256_of(tmp_path / "file")
        == "b640e840b19d378660b32fb51ae18d67dccb4a8596a29e7bd72c1b2ae5928f41"
    )


def test_what_fails_while_it_is_written_leaves_no_file(tmp_path):
    folder = ResultFolder(tmp_path, "registry")
    folder.claim(expected=False)
    before, rows = list(folder.folder.iterdir()), pa.table({"address": ["0x"]})

    def batches():
        yield from rows.to_batches()
        raise QueryCancelled("cancelled")

    with pytest.raises(QueryCancelled):
        folder.write(rows.schema, batches())
    assert list(folder.folder.iterdir()) == before
