"""``nbext policy``: print or change what all services of a registry store, and for how long."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from nbext.errors import ConfigError
from nbext.service import commands
from nbext.service.limits import Policy

_GIB = 1 << 30
# Option -> the field of `Policy`, how many of its units one is, its letter, and what it says.
_OPTIONS: dict[str, tuple[str, int, str, str]] = {
    "--keep-days": ("keep_days", 1, "D", "how long results are stored after their last use"),
    "--audit-days": ("audit_days", 1, "D", "how long the audit log goes back; 0 for none"),
    "--keep-gib": ("keep_bytes", _GIB, "G", "how many GiB all segments may take, with requests"),
    "--key-gib": ("key_bytes", _GIB, "G", "how many GiB of that the segments of one key may take"),
    "--lists-gib": ("list_bytes", _GIB, "G", "how many GiB all lists of wallets may take"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Describe the options of a policy."""
    for option, (field, unit, letter, text) in _OPTIONS.items():
        parser.add_argument(
            option,
            dest=field,
            type=commands.at_least_zero if field == "audit_days" else commands.above_zero,
            metavar=letter,
            help=f"{text} (default: {getattr(Policy, field) / unit:g})",
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    add_options(parser)
    commands.add_data(parser)


def given(args: argparse.Namespace, policy: Policy) -> dict[str, Any]:
    """Return the fields of ``policy`` that the arguments name, with their values; ConfigError where these clash."""
    named = {
        field: type(getattr(policy, field))(getattr(args, field) * unit)
        for field, unit, *_ in _OPTIONS.values()
        if getattr(args, field) is not None
    }
    if "keep_bytes" in named and "key_bytes" not in named:
        named["key_bytes"] = named["keep_bytes"] // 4
    new = replace(policy, **named)
    if new.key_bytes > new.keep_bytes:
        raise ConfigError(
            f"--key-gib {new.key_bytes / _GIB:g} is more than --keep-gib {new.keep_bytes / _GIB:g}, of which it is a"
            " part."
        )
    return named


def run(args: argparse.Namespace) -> int:
    """Change what is named, in the registry, and print the whole."""
    with commands.database(args) as database:
        named = given(args, database.policy)
        if named:
            database.set_policy(replace(database.policy, **named))
            commands.note(database, "policy.change", None)
        policy = database.policy
    for option, (field, unit, *_) in _OPTIONS.items():
        print(f"{option} {getattr(policy, field) / unit:g}")
    return 0
