"""``nbext schema [CONDITION]``: print the JSON Schema of segment requests, or of one condition."""

from __future__ import annotations

import argparse
import json

from nbext.errors import UsageError, did_you_mean
from nbext.language.fields import CONDITION
from nbext.language.json_schema import DRAFT, condition_schema, json_schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("condition", nargs="?", metavar="CONDITION", help=f"one of: {', '.join(CONDITION)}")


def run(args: argparse.Namespace) -> int:
    """Print the schema as JSON.

    Raises
    ------
    UsageError
        There is no condition of that name.
    """
    name = args.condition
    if name is not None and name not in CONDITION:
        raise UsageError(
            f"unknown condition {name[:80]!r}.{did_you_mean(name, CONDITION)} Allowed: {', '.join(CONDITION)}."
        )
    schema = json_schema() if name is None else {"$schema": DRAFT, **condition_schema(CONDITION[name])}
    print(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0
