"""`nbext load` prints what loads every table, with its types, and refuses what no warehouse reads."""

from __future__ import annotations

import pytest
import sqlglot

from nbext import cli
from nbext.engine.schema import TABLES
from nbext.engine.storage import current
from tests.engine import hand_made


@pytest.fixture
def data(tmp_path):
    hand_made.generation(tmp_path, {"contracts": [hand_made.contract(1, symbol="NEW", holders=1)]})
    return tmp_path


def loaded(capsys, data, *words):
    """Return the comment and the statements that are printed."""
    assert cli.main(["load", *words, "--data", str(data)]) == 0
    first, *statements = capsys.readouterr().out.split("\n\n")
    return first, statements


def test_bigquery_loads_each_table_and_gives_it_the_types_of_queries(capsys, data):
    comment, statements = loaded(
        capsys, data, "bigquery://project/nbext", "--from", "gs://bucket/nbext/"
    )
    folder = current(data).folder / "parquet"
    assert comment == (
        f"-- First copy each file to a folder of its own, as {folder}/balances.parquet to\n"
        "-- gs://bucket/nbext/balances/balances.parquet. Then run:"
    )
    assert {path.stem for path in folder.iterdir()} == set(TABLES)
    assert statements[:4] == [
        "CREATE SCHEMA IF NOT EXISTS `project.nbext`;",
        "LOAD DATA OVERWRITE `project.nbext.wallets_loaded`\n"
        "FROM FILES (format = 'PARQUET', uris = ['gs://bucket/nbext/wallets/*.parquet']);",
        "CREATE OR REPLACE TABLE `project.nbext.wallets`\nCLUSTER BY wallet\n"
        "AS SELECT CAST(`wallet` AS INT64) AS `wallet`, CAST(`address` AS STRING) AS `address`, "
        "CAST(`is_contract` AS BOOL) AS `is_contract`\nFROM `project.nbext.wallets_loaded`;",
        "DROP TABLE `project.nbext.wallets_loaded`;",
    ]
    assert len(statements) == 1 + 3 * len(TABLES)
    for (name, columns), made in zip(TABLES.items(), statements[2::3], strict=True):
        table = sqlglot.parse_one(made, dialect="bigquery")
        assert table.find(sqlglot.exp.Table).name == name
        assert [each.alias for each in table.expression.selects] == list(columns)


def test_trino_has_each_table_over_the_files_where_they_are(capsys, data):
    _, statements = loaded(
        capsys, data, "trino://me@host:8080/lake/nbext", "--from", "s3://bucket/nbext"
    )
    assert statements[:3] == [
        'CREATE SCHEMA IF NOT EXISTS "lake"."nbext";',
        'DROP TABLE IF EXISTS "lake"."nbext"."wallets";',
        'CREATE TABLE "lake"."nbext"."wallets" ("wallet" INTEGER, "address" VARCHAR, "is_contract" BOOLEAN)\n'
        "WITH (format = 'PARQUET', external_location = 's3://bucket/nbext/wallets/');",
    ]
    assert len(statements) == 1 + 2 * len(TABLES)
    for (name, columns), made in zip(TABLES.items(), statements[2::2], strict=True):
        table = sqlglot.parse_one(made, dialect="trino")
        assert table.find(sqlglot.exp.Table).name == name
        assert [each.name for each in table.this.expressions] == list(columns)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["duckdb://", "--from", "gs://b"],
            "ConfigError: engine: 'duckdb://' is not a warehouse. Write "
            "bigquery://PROJECT/DATASET or trino://USER@HOST:PORT/CATALOG/SCHEMA.",
        ),
        (
            ["local[2]", "--from", "gs://b"],
            "ConfigError: engine: 'local[2]' is not a warehouse. Write "
            "bigquery://PROJECT/DATASET or trino://USER@HOST:PORT/CATALOG/SCHEMA.",
        ),
        (
            ["bigquery://p", "--from", "gs://b"],
            "ConfigError: engine: 'bigquery://p' is incomplete. Write bigquery://PROJECT/DATASET.",
        ),
        (
            ["bigquery://p/d", "--from", "s3://b"],
            "ValidationError: from: 's3://b' is not a folder that BigQuery loads "
            "from. Write gs://BUCKET/nbext.",
        ),
        (
            ["trino://h/lake/nbext", "--from", "/srv/files"],
            "ValidationError: from: '/srv/files' is not the URL of a folder."
            " Write gs://BUCKET/nbext or s3://BUCKET/nbext.",
        ),
        (
            ["trino://h/lake/nbext", "--from", "s3://b/'; DROP"],
            'ValidationError: from: "s3://b/\'; DROP" is not the URL of '
            "a folder. Write gs://BUCKET/nbext or s3://BUCKET/nbext.",
        ),
    ],
)
def test_what_no_warehouse_reads_is_refused(capsys, data, words, message):
    assert cli.main(["load", *words, "--data", str(data)]) == 2
    assert capsys.readouterr().err == f"{message}\n"
