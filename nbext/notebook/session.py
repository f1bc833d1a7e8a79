"""The one session of a shell: settings, client, history, what it learned of the service, and the lines that say so."""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbext import __version__
from nbext.core.atomic_files import write_whole
from nbext.core.provenance import Provenance
from nbext.core.rules import is_whole
from nbext.core.untrusted_text import quoted, visible
from nbext.errors import (
    ApiError,
    ConfigError,
    NbextError,
    QueryCancelled,
    StorageError,
    TransportError,
    UsageError,
    did_you_mean,
)
from nbext.notebook import keys
from nbext.notebook.cell.request import SegmentQuery
from nbext.notebook.results.progress import Bar, in_background, view_for
from nbext.notebook.results.tables import SuspiciousNames
from nbext.notebook.schema import Vocabulary
from nbext.settings import NOTEBOOKS, Secret, Settings, default_data_dir

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from nbext.client import Client
    from nbext.client.service import LastAnswer

HISTORY_COLUMNS = [
    "number",
    "segment_id",
    "operator",
    "filters",
    "limit",
    "matched",
    "returned",
    "block",
    "seconds",
    "service",
]
# The longest that a first call, or a fork, waits: on a busy machine the libraries take ten seconds to import.
_PATIENCE = 30.0
# How long a call that came before its service takes from there to its answer, on a busy machine.
_CALL_SECONDS = 1.0
# What pandas itself chooses for a notebook.
_COLUMNS_IN_A_NOTEBOOK = 20
# Any condition does: what takes time is the language, the engine and their first statement.
_A_SEGMENT = {"wallet": {"contract": False}}
# A client reads these when it is made: where one has changed, wherever it is set, the next call makes another.
OF_THE_CONNECTION = (
    "base_url",
    "data_dir",
    "engine",
    "connect_timeout",
    "read_timeout",
    "insecure",
    "ca_bundle",
    "max_body_mb",
    "attempts",
    "remote",
)
_under_way: set[Future[None]] = set()
_QUERY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


@dataclass(frozen=True)
class PastQuery:
    """One query that ran, and its result's provenance."""

    number: int
    query: SegmentQuery
    about: Provenance


@dataclass
class History:
    """The queries of one session, the first being number 1."""

    runs: list[PastQuery] = field(default_factory=list)
    # Of the last table, whichever call it is of.
    last: Provenance = field(default_factory=Provenance)

    def add(self, query: SegmentQuery, result: Any) -> None:
        """Add a query, and its result's provenance."""
        # Imported here: a query that ran has loaded the client.
        from nbext.client.filters import remembered

        # Without the addresses of its lists: a session would hold all that it ever asked by.
        body = query.body and replace(query.body, value=None)
        self.last = about = Provenance.of(result)
        filters, sent = query.filters, about.filters
        if isinstance(sent, dict) and "asOf" in sent:
            # The notebook may be pinned to that time, and tomorrow to another.
            filters = {"asOf": sent["asOf"], **filters}
        light = replace(query, filters=remembered(filters), body=body)
        self.runs.append(PastQuery(len(self.runs) + 1, light, about))

    def number(self, number: int | None) -> PastQuery:
        """Return the query of a number, or the last one."""
        if not self.runs:
            raise UsageError("%nbext: no query has run in this session yet.")
        wanted = len(self.runs) if number is None else number
        if not 1 <= wanted <= len(self.runs):
            raise UsageError(
                f"%nbext: there is no query {wanted}. This session has queries 1 to {len(self.runs)}."
            )
        return self.runs[wanted - 1]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per query: its request, its id, the rows that matched and were returned, the block of the
        data that they hold at, and the seconds.
        """
        return [
            {
                "number": one.number,
                "operator": one.query.operator,
                # Filters from Python may contain Decimals, which json cannot write.
                "filters": json.dumps(one.query.filters, default=str),
                "limit": one.query.limit,
                # Another service may say anything, or nothing, of its answer.
                "matched": _whole(one.about.matched),
                "returned": _whole(one.about.returned),
                "block": _whole(one.about.as_of.get("block"))
                if isinstance(one.about.as_of, dict)
                else None,
                "segment_id": one.about.segment_id,
                "seconds": one.about.seconds,
                "service": one.about.service,
            }
            for one in self.runs
        ]


class WarmUp:
    """What the first call would wait for, done in the background once ``%load_ext`` has returned.

    One thread imports the libraries, starts the embedded service, has it prepare a segment, and gives ``learn`` a
    client for the words that completion offers. It prints nothing. What fails here fails again in the first call,
    which reports it. Four hazards of such a thread are met: a library that looks at who imports it
    (`_import_pandas`), a cell that imports a part of one meanwhile (`imported`), a fork while a module is being
    imported (`_wait_for_imports`), and Python that ends meanwhile (`_is_wanted`).
    """

    def __init__(self, shell: object, settings: Settings, learn: Callable[[Client], None]) -> None:
        self._shell, self._settings, self._learn = shell, settings, learn
        self._ready, self._cancelled, self._is_awaited = threading.Event(), False, False
        self._client: Client | None = None
        # Two threads that import a package, each from another of its modules, fail on each other's half.
        self.imported = threading.Event()
        # No daemon: Python ends after its work.
        future = in_background(self._run, "nbext-warm-up", daemon=False)
        _under_way.add(future)
        future.add_done_callback(_under_way.discard)
        future.add_done_callback(lambda _: self._ready.set())

    def wait(self) -> None:
        """Return once the service has started, or cannot: importing the same modules beside it would gain nothing."""
        self._is_awaited = True
        self._ready.wait(_PATIENCE)

    def cancel(self) -> None:
        """Skip the steps that have not begun."""
        self._cancelled = True

    def _run(self) -> None:
        # A quarter of the time to import these libraries is spent looking for garbage in what they have just made.
        collecting = gc.isenabled()
        gc.disable()
        try:
            try:
                if self._is_wanted():
                    _import_pandas(self._shell)
                    import_module("nbext.embedded")
            finally:
                self.imported.set()
            if self._is_wanted():
                self._start()
            if self._is_wanted():
                self._ask()
        finally:
            if collecting:
                gc.enable()

    def _is_wanted(self) -> bool:
        # The main thread counts as ended as soon as Python begins to end, which then waits for the step under way.
        return not self._cancelled and threading.main_thread().is_alive()

    def _start(self) -> None:
        # A remote service is not ours to wake, and a cluster's engine is asked when somebody asks it.
        if self._settings["base_url"] or not self._settings["engine"].startswith("duckdb"):
            return
        from nbext.embedded import embedded

        self._client = embedded(self._settings)
        self._ready.set()

    def _ask(self) -> None:
        # Python runs one thread at a time: what is prepared beside the call that waits makes it wait longer.
        until = time.monotonic() + (_CALL_SECONDS if self._is_awaited else 0)
        while time.monotonic() < until and self._is_wanted():
            time.sleep(0.05)
        if self._client is not None and self._is_wanted():
            self._learn(self._client)
            self._client.explain(_A_SEGMENT, limit=1, parts=True)


def _import_pandas(shell: object) -> None:
    """Import pandas so that it displays tables as it does where a cell imports it."""
    if "pandas" in sys.modules:
        return
    import pandas as pd

    # pandas looks for get_ipython among the builtins, where IPython has it only while a cell runs. Imported between two
    # cells it takes the kernel for a terminal, and cuts the columns of every table to that width.
    if hasattr(shell, "kernel") and pd.get_option("display.max_columns") == 0:
        pd.set_option("display.max_columns", _COLUMNS_IN_A_NOTEBOOK)


def _wait_for_imports() -> None:
    """Wait for the imports under way: a forked child would wait for ever for a thread that it does not have."""
    wait_for(list(_under_way), _PATIENCE)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_wait_for_imports, after_in_child=_under_way.clear)


class Session:
    """What the magics and the forms of one shell share."""

    def __init__(self, shell: InteractiveShell, settings: Settings | None = None) -> None:
        self.shell = shell
        self.settings = settings or Settings()
        self._client: Client | None = None
        self._made_with: list[Any] = []
        # Of the last answer of a client that was dropped, for `%nbext last-answer`.
        self.outline: LastAnswer | None = None
        self.history = History()
        # Gathered from answers: completion itself asks nobody.
        self.vocabulary = Vocabulary()
        self.suspicious = SuspiciousNames()
        # What our own service says of itself and its data; None for another service.
        self.about: dict[str, Any] | None = None
        self.key_source: str | None = None
        self._connecting = threading.RLock()
        self._warm_up: WarmUp | None = None
        # By the service they were typed for: a key is never sent to another.
        self._typed_keys: dict[str, Secret] = {}

    @property
    def names(self) -> MutableMapping[str, Any]:
        """The notebook's variables."""
        # Read anew each time: IPython replaces the namespace, for example in an embedded shell.
        names: MutableMapping[str, Any] = self.shell.user_ns
        return names

    @property
    def client(self) -> Client | None:
        """The client; None before the first call, and once a setting of its connection has changed."""
        if self._client is not None and self._made_with != self._connection():
            self.disconnect()
        return self._client

    def _connection(self) -> list[Any]:
        return [self.settings[name] for name in OF_THE_CONNECTION]

    @property
    def data_dir(self) -> Path:
        """The folder of saved queries and of the embedded service's data."""
        return default_data_dir(self.settings)

    def bar(self, label: str) -> Bar:
        """Return a progress bar for one call, drawn as this shell can show it."""
        return Bar(label, view_for(self.shell, wanted=self.settings["progress"]))

    def connected(self) -> Client:
        """Return the client; the first call connects it, which may start the embedded service.

        Where our own service serves other data than at the call before, a line says which.
        """
        # Two threads that make the first call connect once, and say so once.
        with self._connecting:
            client = self.client
            if client is None:
                return self.connect()
            if self._other_data():
                self.ask_about(client)
            return client

    def _other_data(self) -> bool:
        """Say whether our own service serves other data than it said last, as far as is known without asking it."""
        client = self.client
        if client is None or self.about is None:
            return False
        served = client.data
        if not self.settings["base_url"]:
            from nbext import embedded

            served = embedded.refresh(self.data_dir, self.settings["engine"])
        return served not in (None, _data_of(self.about).get("fingerprint"))

    def ask_about(self, client: Client) -> None:
        """Ask our own service which data it serves; a line says it where that is other data than before."""
        about = client.about()
        data, before = _data_of(about), _data_of(self.about or about)
        self.about = about
        # An answer out of the client's cache may have named the data before: then nothing has changed.
        if data.get("fingerprint") != before.get("fingerprint"):
            self.vocabulary.learn_service(client, about, self.vocabulary.schema)
            sample = {
                (True, False): " The synthetic sample is not served any more.",
                (False, True): " It is the synthetic sample: the data before was removed.",
            }.get((bool(before.get("synthetic")), bool(data.get("synthetic"))), "")
            print(f"nbext: new data: {chains_in_words(data)}.{sample}")

    def connect(self, base_url: str | None = None, *, announce: bool = True) -> Client:
        """Connect to a service, by default the one that is set, and ``announce`` in one line which one answers."""
        before = self.settings.arguments.get("base_url")
        if base_url is not None:
            self.settings.set("base_url", base_url)
        try:
            self.settings.reread()
            # Before the bar, which would be drawn over a prompt for it.
            key = self._key()
            with self.bar("connecting"):
                if self._warm_up is not None:
                    self._warm_up.wait()
                client = self.unasked_client(key)
                self.about, trouble = None, None
                try:
                    if client.is_ours:
                        # Learned now, because completion must not wait for the network.
                        self.about = client.about()
                        self.vocabulary.learn_service(client, self.about, client.schema())
                except (ApiError, TransportError) as error:
                    # The notebook keeps a service that may answer later, or with another key.
                    trouble = error
        except (NbextError, KeyboardInterrupt) as error:
            # A typing error in a URL must not leave the notebook without the service that it had.
            self.settings.arguments["base_url"] = before
            # Here and not in the client's own edge, because there is no client yet.
            if isinstance(error, KeyboardInterrupt):
                raise QueryCancelled("Interrupted while connecting.") from None
            raise
        if self.about is None:
            # Those of the service before, such as the one that was warmed up, are not this one's.
            self.vocabulary = Vocabulary()
        self._client = client
        if not announce:
            return client
        where, data = _without_userinfo(client.base_url), _data_of(self.about or {})
        if isinstance(trouble, ApiError):
            print(f"nbext: {trouble}")
        elif trouble:
            print(f"nbext: {where} does not answer. The next call tries again.")
        elif not self.about:
            print(f"nbext: connected to {where}. Its data and its filters are its own.")
        else:
            print(f"nbext: {data_in_words(data)}; {chains_in_words(data)}.")
        return client

    def begin(self) -> None:
        """Make this the current session, and prepare its first call in the background, unless the settings say no."""
        NOTEBOOKS.append(self)
        # A setting that cannot be read is an error of the first call.
        with suppress(ConfigError):
            if self.settings["warm_up"]:
                self._warm_up = WarmUp(self.shell, self.settings, self._learn)

    def _learn(self, client: Client) -> None:
        if self.settings["base_url"]:
            # Another service was named meanwhile.
            return
        self.vocabulary.learn_service(client, client.about(), client.schema())
        self.vocabulary.fetch("token", self.settings["chain"])
        self.vocabulary.fetch("collection", self.settings["chain"])

    def before_cell(self, _: Any = None) -> None:
        """Wait for the libraries that are being imported, of which the cell may import a part."""
        if self._warm_up:
            self._warm_up.imported.wait(_PATIENCE)

    def after_cell(self, _: Any) -> None:
        """Print which data is new since the last cell."""
        # A service elsewhere says with an answer that it is of other data: with that cell, and not with the next.
        with suppress(NbextError):
            if (client := self.client) and self.settings["base_url"] and self._other_data():
                self.ask_about(client)

    def disconnect(self) -> None:
        """Drop the client; the next call connects again."""
        self.outline = self._client.outline if self._client is not None else self.outline
        self._client = self.vocabulary.client = None

    def end(self) -> None:
        """Make the session before this one current; drop the client, and what is being prepared for it."""
        if self in NOTEBOOKS:
            NOTEBOOKS.remove(self)
        self.disconnect()
        if self._warm_up is not None:
            self._warm_up.cancel()

    def log_in(self, *, keep: bool = False) -> None:
        """Ask for the key of the service that is set and use it; ``keep`` stores it in the keyring too."""
        url = self.settings["base_url"]
        if not url:
            raise UsageError(
                "%nbext login: the embedded service needs no key. `%nbext connect URL` changes the service."
            )
        secret = self._typed_keys[url] = keys.prompt(url)
        self.disconnect()
        stored = keep and keys.keep(url, secret)
        print(
            "nbext: key set for this session" + (" and stored in the keyring." if stored else ".")
        )

    def log_out(self) -> None:
        """Remove the key from this session and from the keyring."""
        self._typed_keys.clear()
        self.disconnect()
        if url := self.settings["base_url"]:
            keys.forget_key(url)
        print(
            "nbext: key removed from this session and the keyring. NBEXT_API_KEY is used as long as it is set."
        )

    def unasked_client(self, key: Secret | None = None) -> Client:
        """Return a new client of the service that is set; a remote service is not asked anything for it."""
        from nbext.embedded import connect, embedded

        self._made_with, key = self._connection(), key or self._key()
        url = self.settings["base_url"]
        return connect(url, key, settings=self.settings) if url else embedded(self.settings)

    def _key(self) -> Secret | None:
        """Return the key of the service that is set, asking for it at last; None of the embedded one."""
        url = self.settings["base_url"]
        key, source = None, "made for this session"
        if url:
            # Checked first: nobody is asked for a key that could not be sent.
            from nbext.http.base_url import Origin

            Origin.of(url, insecure=self.settings["insecure"])
            typed = self._typed_keys.get(url)
            key, source = (typed, "prompt") if typed else keys.find_key(url)
            if source == "prompt":
                self._typed_keys[url] = key
        self.key_source = source
        return key


def save_query(folder: Path, name: str, query: SegmentQuery) -> None:
    """Save a query under a name, for ``%%segment_query --from NAME``."""
    path = _query_path(folder, name)
    from nbext.client.filters import remembered

    # The request, not the cell: the variables of its {{expressions}} are gone in the next session.
    filters = remembered(query.filters, by_id=True)
    request = {
        "operator": query.operator,
        "filters": filters,
        "fileType": query.file_type,
        "limit": query.limit,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(request, default=str, indent=2))
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from None


def saved_query(folder: Path, name: str) -> str:
    """Return the request saved under a name, as JSON text."""
    path = _query_path(folder, name)
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        names = saved_names(folder)
        known = (
            f" Saved: {', '.join(names)}." if names else " `%nbext save NAME` saves the last query."
        )
        raise UsageError(
            f"No query is saved as {name!r}.{did_you_mean(name, names)}{known}"
        ) from None
    except (OSError, UnicodeDecodeError):
        raise StorageError(f"{path} cannot be read. Delete it and save the query again.") from None


def saved_names(folder: Path) -> list[str]:
    """Return the names under which queries are saved."""
    return sorted(file.stem for file in (folder / "queries").glob("*.json"))


def _query_path(folder: Path, name: str) -> Path:
    # The name becomes a file's: it must not lead out of the folder.
    if not _QUERY_NAME.match(name):
        raise UsageError(
            f"{quoted(name)} is not a name for a query. Names use letters, digits, _ and -, at most 64."
        )
    return folder / "queries" / f"{name}.json"


def current_session() -> Session | None:
    """Return the session of the shell in which nbext is loaded, or None where it is loaded in none."""
    # Two shells of one process each have a session; the forms use the last one that was loaded.
    return NOTEBOOKS[-1] if NOTEBOOKS else None


def loaded_line(settings: Settings) -> str:
    """Return the line that ``%load_ext`` prints, from the settings alone: nothing is started for it."""
    try:
        url = settings["base_url"]
        if url:
            return (
                f"nbext {__version__}: the service is {_without_userinfo(url)}, not contacted yet. "
                "Start with `%nbext help`."
            )
        folder = default_data_dir(settings)
        # The file that ingest leaves; to open the data would load half of the service.
        own = (folder / "current").is_file()
    except ConfigError as error:
        return f"nbext {__version__}: {error} `%nbext config` lists every setting."
    whose = (
        f"your data in {folder}" if own else "synthetic sample data (`nbext ingest` loads your own)"
    )
    return (
        f"nbext {__version__}: the embedded service answers, on {whose}. Start with `%nbext help`."
    )


def data_in_words(data: Mapping[str, Any]) -> str:
    """Return the name of the data, marked where it is synthetic."""
    name = visible(data.get("name"))
    return (
        name if not data.get("synthetic") or "synthetic" in name.lower() else f"{name} (synthetic)"
    )


def _data_of(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a service says of its data; whoever calls himself nbext may say anything."""
    data = about.get("data")
    return data if isinstance(data, Mapping) else {}


def chains_in_words(data: Mapping[str, Any]) -> str:
    """Return each chain of the data, with its last block."""
    words = []
    for chain in data.get("chains") or []:
        last = chain.get("lastBlock")
        block = f"{last:,}" if isinstance(last, int) else visible(last)
        words.append(f"{visible(chain.get('chain'))} to block {block}")
    return ", ".join(words) or "no chain yet"


def _whole(value: Any) -> int | None:
    return value if is_whole(value) and abs(value) < 2**63 else None


def _without_userinfo(url: str) -> str:
    """Return a URL without its query and what is before an @, which might be a password."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return visible(scheme + separator + host.rpartition("@")[2] + slash + path.partition("?")[0])
