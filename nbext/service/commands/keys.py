"""``nbext keys``: add, list, rotate and revoke the keys that the service accepts."""

from __future__ import annotations

import argparse

from nbext.core.times import iso_ms
from nbext.service import commands
from nbext.service.accounts.keys import DEFAULT_RATE, DEFAULT_SCOPES, SCOPES, Key, KeyRing
from nbext.settings import Secret


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the actions."""
    actions = parser.add_subparsers(dest="action", required=True)
    add = actions.add_parser("add", help="make a key; it is shown once")
    add.add_argument("name", help="the name of the key's owner")
    add.add_argument(
        "--scope",
        action="append",
        metavar="SCOPE",
        help=f"what the key may do: {', '.join(SCOPES)}; repeat for several (default: "
        f"{', '.join(DEFAULT_SCOPES)})",
    )
    add.add_argument(
        "--rate",
        default=DEFAULT_RATE,
        help="requests that it may send, or none (default: %(default)s)",
    )
    add.add_argument(
        "--expires",
        type=commands.span,
        metavar="SPAN",
        help="how long it is accepted: 12h, 90d or 4w (default: no end)",
    )
    add.add_argument(
        "--private",
        action="store_true",
        help="it sees only its own segments, which nobody sees but it and keys with the scope admin",
    )
    every = actions.add_parser("list", help="list the keys, without their text")
    rotate = actions.add_parser("rotate", help="give a key a new text; its segments stay its own")
    rotate.add_argument("name", help="the key's name or id")
    rotate.add_argument(
        "--grace",
        type=lambda text: 0.0 if text == "0h" else commands.span(text),
        metavar="SPAN",
        default="24h",
        help="for how long the former text is accepted, too (default: %(default)s; 0h: not at all)",
    )
    rotate.add_argument(
        "--expires",
        type=commands.span,
        metavar="SPAN",
        help="for how long the key is accepted from now on: 90d",
    )
    revoke = actions.add_parser("revoke", help="revoke a key")
    revoke.add_argument("name", help="the key's name or id")
    for action in (add, every, rotate, revoke):
        commands.add_data(action)


def run(args: argparse.Namespace) -> int:
    """Do one action."""
    with commands.database(args, make=args.action == "add") as database:
        ring, text = KeyRing(database), None
        if args.action == "list":
            _list(ring.all())
            return 0
        if args.action == "revoke":
            key = ring.revoke(args.name)
            print(f"Revoked {args.name}. Running services refuse it within a second.")
        elif args.action == "rotate":
            key, text = ring.rotate(args.name, grace=args.grace, lasts=args.expires)
            former = "is refused within a second"
            if args.grace:
                former = f"is accepted for {args.grace / 3600:g}h more"
            print(f"Rotated {key.name} ({key.id}). The former key {former}.")
        else:
            scopes, rate = args.scope or DEFAULT_SCOPES, None if args.rate == "none" else args.rate
            key, text = ring.add(args.name, scopes, rate, private=args.private, lasts=args.expires)
            print(
                f"Added {key.name} ({key.id}). Scopes: {', '.join(sorted(key.scopes))}. Rate: {rate or 'no limit'}."
            )
        if text:
            _show(key, text)
        commands.note(database, f"key.{args.action}", key.id)
    return 0


def _show(key: Key, text: Secret) -> None:
    if key.private:
        print(
            "It is private: it sees only its own segments, and only it and keys with the scope admin see them."
        )
    if not key.scopes & {"read", "execute"}:
        print(
            "It can read and execute nothing: add --scope read and --scope execute, if it is for more than that."
        )
    if key.expires_at:
        print(f"It expires {iso_ms(key.expires_at)}.")
    print("The key, which is not shown again:")
    # The only place where a key is printed: of what is stored it cannot be made again.
    print(text.reveal())


def _list(keys: list[Key]) -> None:
    for key in keys:
        state, at = key.state, key.revoked_at or key.expires_at
        if at:
            state += f"{' until' * (state == 'in use')} {iso_ms(at)}"
        if key.private:
            state = f"private, {state}"
        scopes, rate = ",".join(sorted(key.scopes)), key.rate or "no limit"
        print(key.id, key.name, scopes, rate, iso_ms(key.created_at) or "", state, sep="  ")
    if not keys:
        print("There are no keys. Make one: nbext keys add NAME")
