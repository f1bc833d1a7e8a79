"""``nbext audit``: who did what with this service's segments, keys and sign-ups, as JSON lines."""

from __future__ import annotations

import argparse
import json
import time

from nbext.core.times import iso_ms
from nbext.service import commands
from nbext.service.accounts.audit import Audit
from nbext.service.accounts.keys import KeyRing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "--since",
        type=commands.span,
        metavar="SPAN",
        help="only the last 12h, 90d or 4w (default: all)",
    )
    parser.add_argument("--key", metavar="NAME", help="only what this key did, by its name or id")
    commands.add_data(parser)


def run(args: argparse.Namespace) -> int:
    """Print the log, the oldest entry first."""
    since = 0.0 if args.since is None else time.time() - args.since
    with commands.database(args) as database:
        ids = None if args.key is None else KeyRing(database).ids_of(args.key)
        for each in Audit(database).entries(since=since, key_ids=ids):
            # A stranger's address is text of ours: the server read it off the connection, or a proxy we were told of.
            print(
                json.dumps(
                    {
                        "at": iso_ms(each.at),
                        "key": each.key_id,
                        "action": each.action,
                        "target": each.target,
                        "client": each.client,
                    }
                )
            )
    return 0
