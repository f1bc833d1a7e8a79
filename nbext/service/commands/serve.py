"""``nbext serve``: the eight operations over HTTP, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import math
import os
import secrets
import socket
import sys
from pathlib import Path

from nbext.core.atomic_files import secret_file
from nbext.engine.open import open_dataset
from nbext.errors import ConfigError
from nbext.service import commands
from nbext.service.app import create_app
from nbext.service.limits import Limits
from nbext.service.middleware import LOOPBACK_HOSTS, Log
from nbext.service.server import Server, address_of, listen
from nbext.settings import Secret, Settings

KEY_FILE = "owner.key"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    commands.add_data(parser)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port (default: any that is free)")
    parser.add_argument("--engine", metavar="URL", help="the engine that answers (default: duckdb://)")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME",
        help="a name that callers may send in the Host header; repeat for several",
    )
    parser.add_argument("--query-seconds", type=_above_zero, default=Limits.query_seconds, metavar="S",
                        help="how long a segment may run (default: %(default)g)")
    parser.add_argument("--keep-days", type=_above_zero, default=Limits.keep_days, metavar="D",
                        help="how long results are stored after their last use (default: %(default)g)")
    parser.add_argument("--workers", type=_at_least_one, default=Limits.workers, metavar="N",
                        help="segments that run at once (default: %(default)s)")


def _above_zero(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0.")
    return number


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1.")
    return number


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    data = commands.data_dir(args)
    limits = Limits(query_seconds=args.query_seconds, keep_days=args.keep_days, workers=args.workers)
    key, source = _owner_key(commands.state_dir(args))
    # Before the data is opened: a port in use is the commonest mistake, and large data takes seconds.
    listener = _listen(args.host, args.port)
    dataset = open_dataset(data, args.engine or Settings()["engine"])
    # Names that callers may use without --allow-host; any other name is refused, which stops DNS rebinding.
    hosts = [*LOOPBACK_HOSTS, args.host, socket.gethostname(), *args.allow_host]
    app = create_app(dataset, commands.state_dir(args), owner=key, hosts=hosts, limits=limits, log=Log(sys.stderr))
    Server(app, on_ready=lambda: _announce(listener, source)).run(sockets=[listener])
    return 0


def _owner_key(state: Path) -> tuple[Secret, str]:
    given = os.environ.get("NBEXT_API_KEY", "").strip()
    if given:
        return Secret(given), "NBEXT_API_KEY"
    # A file that only its owner may read, and not the command line, which every user of the machine can list.
    path = state / KEY_FILE
    return Secret(secret_file(path, secrets.token_urlsafe(32))), str(path)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"Cannot listen on {host} port {port}: {reason}. Choose another --port.") from None


def _announce(listener: socket.socket, source: str) -> None:
    host, port = address_of(listener)
    # An IPv6 address needs brackets to be a URL that can be copied.
    shown = f"[{host}]" if ":" in host else host
    # One line on standard output, flushed: supervisors and tests wait for it.
    print(f"nbext serves on http://{shown}:{port} (key: {source})", flush=True)
