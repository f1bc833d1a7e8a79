"""``nbext keys``: add, list and revoke the keys that the service accepts."""

from __future__ import annotations

import argparse

from nbext.service import commands
from nbext.service.accounts.keys import DEFAULT_RATE, SCOPES, Key, KeyRing
from nbext.service.http.bodies import iso_ms


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the actions."""
    actions = parser.add_subparsers(dest="action", required=True)
    add = actions.add_parser("add", help="make a key; it is shown once")
    add.add_argument("name", help="the name of the key's owner")
    add.add_argument(
        "--scope", action="append", metavar="SCOPE",
        help=f"what the key may do: {', '.join(SCOPES)}; repeat for several (default: all)",
    )
    add.add_argument("--rate", default=DEFAULT_RATE, help="requests that it may send, or none (default: %(default)s)")
    every = actions.add_parser("list", help="list the keys, without their text")
    revoke = actions.add_parser("revoke", help="revoke a key")
    revoke.add_argument("name", help="the key's name or id")
    for action in (add, every, revoke):
        commands.add_data(action)


def run(args: argparse.Namespace) -> int:
    """Do one action."""
    with commands.database(args, make=args.action == "add") as database:
        _ACTIONS[args.action](KeyRing(database), args)
    return 0


def _add(ring: KeyRing, args: argparse.Namespace) -> None:
    rate = None if args.rate == "none" else args.rate
    key, text = ring.add(args.name, args.scope or SCOPES, rate)
    print(f"Added {key.name} ({key.id}). Scopes: {', '.join(sorted(key.scopes))}. Rate: {rate or 'no limit'}.")
    print("The key, which is not shown again:")
    # The only place where a key is printed: of what is stored it cannot be made again.
    print(text.reveal())


def _list(ring: KeyRing, args: argparse.Namespace) -> None:
    keys = ring.all()
    for key in keys:
        print(_line(key))
    if not keys:
        print("There are no keys. Make one: nbext keys add NAME")


def _line(key: Key) -> str:
    state = f"revoked {iso_ms(key.revoked_at)}" if key.revoked_at else "in use"
    scopes, rate = ",".join(sorted(key.scopes)), key.rate or "no limit"
    return "  ".join((key.id, key.name, scopes, rate, iso_ms(key.created_at) or "", state))


def _revoke(ring: KeyRing, args: argparse.Namespace) -> None:
    ring.revoke(args.name)
    print(f"Revoked {args.name}. Running services refuse it within a second.")


_ACTIONS = {"add": _add, "list": _list, "revoke": _revoke}
