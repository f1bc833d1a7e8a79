"""``nbext load``: print the statements that load the served generation's tables into BigQuery or Trino."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from typing import Any

from nbext.core.untrusted_text import quoted
from nbext.engine.schema import TABLES
from nbext.errors import ValidationError
from nbext.settings import Settings, data_folder, default_data_dir

# Of an object store, as the warehouses read them; nothing in it ends a text of SQL.
_PLACE = re.compile(r"[a-z][a-z0-9]*://[^\s'\"\\`;*]+")
# What a table is read by: rows of one contract, wallet or chain then lie together.
_CLUSTERED = {"wallets": "wallet", "blocks": "chain_id, block", "activity": "chain_id, wallet"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "engine",
        metavar="URL",
        help="bigquery://PROJECT/DATASET or trino://USER@HOST:PORT/CATALOG/SCHEMA",
    )
    parser.add_argument(
        "--from",
        dest="place",
        required=True,
        metavar="URL",
        help="where the warehouse finds the Parquet files, such as gs://BUCKET/nbext",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=data_folder,
        help="the data folder (default: your user data folder)",
    )


def run(args: argparse.Namespace) -> int:
    """Write the Parquet files, and print what to copy and the statements; the warehouse itself is not connected to."""
    from nbext.engine.open import chosen, warehouse
    from nbext.engine.remote.backends import parquet_files

    if not _PLACE.fullmatch(args.place):
        raise ValidationError.of(
            "from",
            "url",
            f"{quoted(args.place)} is not the URL of a folder. Write "
            "gs://BUCKET/nbext or s3://BUCKET/nbext.",
        )
    there = warehouse(args.engine)
    if there.name == "bigquery" and not args.place.startswith("gs://"):
        raise ValidationError.of(
            "from",
            "url",
            f"{quoted(args.place)} is not a folder that BigQuery loads from. "
            "Write gs://BUCKET/nbext.",
        )
    folder = parquet_files(chosen(args.data or default_data_dir(Settings())))
    place = args.place.rstrip("/")
    print(
        f"-- First copy each file to a folder of its own, as {folder}/balances.parquet to\n"
        f"-- {place}/balances/balances.parquet. Then run:"
    )
    write = _of_bigquery if there.name == "bigquery" else _of_trino
    for statement in write(".".join(there.where.values()), place):
        sys.stdout.write(f"\n{statement};\n")
    return 0


def _of_bigquery(dataset: str, place: str) -> Iterator[str]:
    """A load reads DECIMAL(38, 0) as BIGNUMERIC: each table is made of what was loaded, with the types of queries."""
    from ibis.backends.sql.datatypes import BigQueryType

    yield f"CREATE SCHEMA IF NOT EXISTS `{dataset}`"
    for name, columns in TABLES.items():
        loaded = f"`{dataset}.{name}_loaded`"
        cast = ", ".join(
            f"CAST(`{column}` AS {_type(BigQueryType, kind)}) AS `{column}`"
            for column, kind in columns.items()
        )
        yield f"LOAD DATA OVERWRITE {loaded}\nFROM FILES (format = 'PARQUET', uris = ['{place}/{name}/*.parquet'])"
        yield (
            f"CREATE OR REPLACE TABLE `{dataset}.{name}`\nCLUSTER BY {_CLUSTERED.get(name, 'contract')}\n"
            f"AS SELECT {cast}\nFROM {loaded}"
        )
        yield f"DROP TABLE {loaded}"


def _of_trino(schema: str, place: str) -> Iterator[str]:
    """Tables of the Hive connector over the files where they are."""
    from ibis.backends.sql.datatypes import TrinoType

    named = ".".join(f'"{part}"' for part in schema.split("."))
    yield f"CREATE SCHEMA IF NOT EXISTS {named}"
    for name, columns in TABLES.items():
        typed = ", ".join(
            f'"{column}" {_type(TrinoType, kind)}' for column, kind in columns.items()
        )
        yield f'DROP TABLE IF EXISTS {named}."{name}"'
        yield (
            f'CREATE TABLE {named}."{name}" ({typed})\n'
            f"WITH (format = 'PARQUET', external_location = '{place}/{name}/')"
        )


def _type(dialect: Any, kind: str) -> str:
    import ibis

    return str(dialect.to_string(ibis.dtype(kind)))
