"""``nbext keys``: add, list and revoke the keys that the service takes."""

from __future__ import annotations

import argparse

from nbext.service.accounts.keys import DEFAULT_RATE, SCOPES, Key, KeyRing
from nbext.service.commands import folder
from nbext.service.http.responses import iso


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the actions."""
    actions = parser.add_subparsers(dest="action", required=True)
    add = actions.add_parser("add", help="make a key; it is shown once")
    add.add_argument("name", help="who it is for")
    add.add_argument(
        "--scope", action="append", metavar="SCOPE",
        help=f"what it may do: {', '.join(SCOPES)}; may be given several times (default: all)",
    )
    add.add_argument("--rate", default=DEFAULT_RATE, help="how often it may ask (default: %(default)s; none: no bound)")
    every = actions.add_parser("list", help="list the keys, without their text")
    revoke = actions.add_parser("revoke", help="end a key")
    revoke.add_argument("name", help="its name or id")
    for action in (add, every, revoke):
        folder.add_data(action)


def run(args: argparse.Namespace) -> int:
    """Do one action."""
    database = folder.database(args, make=args.action == "add")
    try:
        _ACTIONS[args.action](KeyRing(database), args)
    finally:
        database.close()
    return 0


def _add(ring: KeyRing, args: argparse.Namespace) -> None:
    rate = None if args.rate == "none" else args.rate
    key, text = ring.add(args.name, args.scope or SCOPES, rate)
    print(f"{key.name} ({key.id}) may {', '.join(sorted(key.scopes))}, {rate or 'as often as it likes'}.")
    print("Its key, shown this once:")
    print(text.reveal())


def _list(ring: KeyRing, args: argparse.Namespace) -> None:
    keys = ring.all()
    for key in keys:
        print(_line(key))
    if not keys:
        print("no keys: `nbext keys add NAME` makes one")


def _line(key: Key) -> str:
    state = f"revoked {iso(key.revoked_at)}" if key.revoked_at else "in use"
    scopes, rate = ",".join(sorted(key.scopes)), key.rate or "no rate"
    return "  ".join((key.id, key.name, scopes, rate, iso(key.created_at) or "", state))


def _revoke(ring: KeyRing, args: argparse.Namespace) -> None:
    ring.revoke(args.name)
    print(f"{args.name} is revoked; a service that runs stops taking it within a second.")


_ACTIONS = {"add": _add, "list": _list, "revoke": _revoke}
