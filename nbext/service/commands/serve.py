"""``nbext serve``: the eight operations over HTTP, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import importlib
import ipaddress
import multiprocessing
import multiprocessing.connection
import os
import re
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from typing import Any

from nbext.core.atomic_files import secret_file
from nbext.core.uint256 import whole_of
from nbext.engine.open import (
    QUERY_SECONDS,
    QUERY_SECONDS_ELSEWHERE,
    Newest,
    add_spark_conf,
    with_options,
)
from nbext.errors import ConfigError, NbextError
from nbext.service import commands
from nbext.service.commands import policy
from nbext.service.container import Container
from nbext.service.limits import Limits, Policy
from nbext.service.middleware import LOOPBACK_HOSTS, Log
from nbext.service.server import GRACE_SECONDS, Server, create_app, listen
from nbext.settings import Secret, Settings

KEY_FILE = "owner.key"
# Shorter ones can be guessed: 16 letters and digits at random are 95 bits.
_SHORTEST_KEY = 16
_ENDS = (signal.SIGTERM, signal.SIGINT)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    commands.add_data(parser, notebook=False)
    parser.add_argument(
        "--host",
        type=_host,
        default="127.0.0.1",
        help="the address to listen on (default: 127.0.0.1)",
    )
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="the port (default: any that is free)"
    )
    parser.add_argument(
        "--engine", metavar="URL", help="the engine that answers (default: duckdb://)"
    )
    add_spark_conf(parser)
    parser.add_argument(
        "--allow-host",
        type=_host,
        action="append",
        default=[],
        metavar="NAME",
        help="a name that callers may send in the Host header; repeat for several",
    )
    parser.add_argument(
        "--root-path",
        type=_path,
        metavar="PATH",
        help="the path below which a proxy serves this service, such as /nbext; links begin with it",
    )
    parser.add_argument(
        "--proxy-headers",
        type=_network,
        action="append",
        default=[],
        metavar="ADDRESS",
        help="the address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed; repeat for "
        "several",
    )
    parser.add_argument(
        "--query-seconds",
        type=commands.above_zero,
        metavar="S",
        help=f"how long a segment may run (default: {QUERY_SECONDS:g} on DuckDB, "
        f"{QUERY_SECONDS_ELSEWHERE:g} elsewhere)",
    )
    # Of a new registry; one that is there has its own.
    policy.add_options(parser)
    parser.add_argument(
        "--processes",
        type=_at_least_one,
        default=1,
        metavar="N",
        help="processes that serve on the one port (default: %(default)s)",
    )
    parser.add_argument(
        "--workers",
        type=_at_least_one,
        default=Limits.workers,
        metavar="N",
        help="segments that run at once in each process (default: %(default)s)",
    )


def _at_least_one(text: str) -> int:
    if number := whole_of(text):
        return number
    raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1.")


def _host(text: str) -> str:
    # As a place to listen on, nothing is every address of the machine.
    if not text:
        raise argparse.ArgumentTypeError("It is empty. Name a host or an address.")
    return text


def _path(text: str) -> str:
    if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", text):
        raise argparse.ArgumentTypeError(
            f"{text} is not a path such as /nbext: begin with / and end without one."
        )
    return text


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        message = f"{text} is not an IP address or network, such as 10.0.0.7 or 10.0.0.0/8."
        raise argparse.ArgumentTypeError(message) from None


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    args.policy = policy.given(args, Policy())
    key, source = _owner_key(commands.service_place(args).state)
    # Before the data is opened: a port in use is the commonest mistake, and large data takes seconds.
    listeners = _listen(args.host, args.port, args.processes)
    announce = partial(_announce, listeners[0], source, args)
    with contextlib.ExitStack() as closing:
        for listener in listeners:
            closing.callback(listener.close)
        if hasattr(signal, "SIGHUP"):
            # Here for "look at the data now"; until a service does so, and in the parent of several, it ends nothing.
            closing.enter_context(commands.handling(signal.SIGHUP, signal.SIG_IGN))
        if args.processes > 1:
            # Once, and not by all of them at the same time.
            with commands.database(args, make=True, policy=Policy(**args.policy)):
                pass
            for each in _ENDS:
                # The handler of Python's own raises KeyboardInterrupt.
                closing.enter_context(commands.handling(each, signal.default_int_handler))
            return _serve_together(args, key, listeners, announce)
        _serve(args, key, listeners[0], announce)
        return 0


def _serve(
    args: argparse.Namespace, key: Secret, listener: socket.socket, on_ready: Callable[[], None]
) -> None:
    # pyarrow loads it with its first column: beside a service's first 64 segments, these took 4.1 s, not 2.4 (medians
    # of four paired runs on a busy machine).
    importlib.import_module("pandas")
    # A thread that comes back from the engine, the registry or Arrow waits so long for Python, and a new segment comes
    # back a hundred times: with 5 ms, as Python has it, 64 callers' new segments waited 2 to 4 s in the queue.
    sys.setswitchinterval(0.0002)
    engine = with_options(
        Settings()["engine"] if args.engine is None else args.engine, args.spark_conf
    )
    place = commands.service_place(args)
    data = Newest(place.data, engine)
    limits = Limits(query_seconds=args.query_seconds or data.query_seconds, workers=args.workers)
    log = Log(sys.stderr)
    log.of_the_process()
    # Names that callers may use without --allow-host; any other name is refused, which stops DNS rebinding.
    hosts = [*LOOPBACK_HOSTS, args.host, socket.gethostname(), *args.allow_host]
    container = Container(
        data.open(),
        place.state,
        newer=data.newer,
        registry=place.registry,
        owner=key,
        limits=limits,
        policy=args.policy,
        log=log,
    )

    def ready() -> None:
        # A look through all that is imported lets nobody be answered: of 10,000 requests four, for 310 ms each.
        gc.collect()
        gc.freeze()
        if hasattr(signal, "SIGHUP"):
            # By the loop, as all that it does: a handler of Python's own may interrupt itself in the event's lock.
            asyncio.get_running_loop().add_signal_handler(
                signal.SIGHUP, container.generations.woken.set
            )
        on_ready()

    app = create_app(container, hosts=hosts, root_path=args.root_path or "", on_ready=ready)
    Server(app, proxies=args.proxy_headers).run(sockets=[listener])


def _serve_together(
    args: argparse.Namespace,
    key: Secret,
    listeners: list[socket.socket],
    on_ready: Callable[[], None],
) -> int:
    """Have a process serve on each socket until SIGTERM or Ctrl-C; return the exit code of one that is never ready.

    Each socket stays open here: who connects while its process dies waits for the next one, and is not refused.
    """
    # A fresh interpreter: a fork would copy locks that threads of libraries hold just then.
    context = multiprocessing.get_context("spawn")
    # Released by each child that is ready.
    ready = context.Semaphore(0)

    def start(place: int) -> Any:
        given = (args, key.reveal(), listeners[place], ready)
        # A daemon: a signal that comes before it is in the list must not leave this waiting for its end.
        # Its metrics have the name: one that takes another's place goes on with its series.
        child = context.Process(target=_child, args=given, daemon=True, name=str(place))
        child.start()
        return child

    children = list[Any]()
    try:
        children.extend(map(start, range(len(listeners))))
        for _ in children:
            while not ready.acquire(timeout=0.05):
                for child in children:
                    if not child.is_alive():
                        return child.exitcode or 1
        on_ready()
        while True:
            multiprocessing.connection.wait([child.sentinel for child in children])
            for place, child in enumerate(children):
                if not child.is_alive():
                    Log(sys.stderr).error(
                        "process ended", process=child.pid, exitcode=child.exitcode
                    )
                    # One that cannot start would otherwise be started for ever, as fast as the machine can.
                    time.sleep(0.5)
                    children[place] = start(place)
    except KeyboardInterrupt:
        return 0
    finally:
        for signum in _ENDS:
            signal.signal(signum, signal.SIG_IGN)
        for child in children:
            child.terminate()
        for child in children:
            child.join(GRACE_SECONDS + 15)
            child.kill()


def _child(args: argparse.Namespace, key: str, listener: socket.socket, ready: Semaphore) -> None:
    # A group of its own: the Ctrl-C of a terminal is for the parent, which ends all in order.
    if hasattr(os, "setpgrp"):  # not on Windows
        os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _serve(args, Secret(key), listener, ready.release)
    except NbextError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)


def _end_with_parent() -> None:
    # A parent that was killed can end nobody. SIGTERM from within is the same orderly end.
    parent = multiprocessing.parent_process()
    assert parent is not None, "this runs in a child only"
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _owner_key(state: Path) -> tuple[Secret, str]:
    """Return the owner's key and where it is from."""
    given = os.environ.get("NBEXT_API_KEY", "").strip()
    if not given:
        # A file that only its owner may read, and not the command line, which every user of the machine can list.
        path = state / KEY_FILE
        return Secret(secret_file(path, secrets.token_urlsafe(32))), str(path)
    if len(given) < _SHORTEST_KEY:
        raise ConfigError(
            f"NBEXT_API_KEY has {len(given)} characters. Use at least {_SHORTEST_KEY} that nobody can guess,"
            " for example from `openssl rand -hex 24`."
        )
    return Secret(given), "NBEXT_API_KEY"


def _listen(host: str, port: int, processes: int) -> list[socket.socket]:
    """Return a socket for each process. Linux gives each its share of the connections; elsewhere all have one."""
    if processes > 1 and not hasattr(socket, "SO_REUSEPORT"):
        raise ConfigError("Windows cannot share a port among --processes: leave the option out.")
    shared = processes > 1 and sys.platform == "linux"
    try:
        if shared and port:
            # Those that share a port may be strangers to each other: another service's would take half of the callers.
            listen(host, port).close()
        first = listen(host, port, shared=shared)
        port = first.getsockname()[1]
        return [
            first,
            *(listen(host, port, shared=True) if shared else first for _ in range(processes - 1)),
        ]
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"Cannot listen on {host} port {port}: {reason}. Choose another --port."
        ) from None


def _announce(listener: socket.socket, source: str, args: argparse.Namespace) -> None:
    data = commands.service_place(args).data
    if isinstance(data, Path) and not (data / "current").exists():
        # A mistyped --data answers every question, with wallets that nobody has.
        Log(sys.stderr).warning("the synthetic sample is served: --data has no ingested data")
    host, port, *_ = listener.getsockname()
    # An IPv6 address needs brackets to be a URL that can be copied.
    shown = f"[{host}]" if ":" in host else host
    # One line on standard output, flushed: supervisors and tests wait for it.
    print(f"nbext serves on http://{shown}:{port} (key: {source})", flush=True)
