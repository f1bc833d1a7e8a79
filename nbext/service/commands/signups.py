"""``nbext signups``: export the newsletter's addresses, or delete one."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import TextIO

from nbext.core.atomic_files import whole_file
from nbext.core.times import iso_ms
from nbext.core.wire import email_of
from nbext.errors import ConfigError
from nbext.service import commands
from nbext.service.accounts.signups import SignUps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the actions."""
    actions = parser.add_subparsers(dest="action", required=True)
    export = actions.add_parser(
        "export", help="write all addresses and when each consented, as CSV"
    )
    export.add_argument(
        "--to", type=Path, metavar="FILE", help="a new file (default: standard output)"
    )
    delete = actions.add_parser("delete", help="delete an address, as its owner asked")
    delete.add_argument("email")
    for action in (export, delete):
        commands.add_data(action)


def run(args: argparse.Namespace) -> int:
    """Do one action."""
    with commands.database(args) as database:
        signups = SignUps(database)
        if args.action == "export":
            _export(signups, args.to)
        elif signups.delete(email_of(args.email)):
            print(f"Deleted {args.email}.")
        else:
            raise ConfigError(f"{args.email} has not signed up.")
        commands.note(database, f"signups.{args.action}", None)
    return 0


def _export(signups: SignUps, path: Path | None) -> None:
    if path is None:
        _write(signups, sys.stdout)
    elif path.exists():
        raise ConfigError(f"{path} exists. Choose another file, or move this one away.")
    elif not path.absolute().parent.is_dir():
        raise ConfigError(f"There is no folder {path.parent}.")
    else:
        with (
            whole_file(path.absolute()) as part,
            part.open("w", encoding="utf-8", newline="") as out,
        ):
            _write(signups, out)


def _write(signups: SignUps, out: TextIO) -> None:
    rows = csv.writer(out)
    rows.writerow(["email", "consented_at"])
    for each in signups.all():
        # A spreadsheet runs a cell that begins like a formula; an address may begin with = + or -.
        harmless = "'" if each.email[:1] in "=+-@" else ""
        rows.writerow([harmless + each.email, iso_ms(each.consented_at)])
