"""The one session of a shell: settings, client, history, what it learned of the service, and the lines that say so."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbext import __version__
from nbext.core.atomic_files import write_whole
from nbext.core.chains import chain_names
from nbext.core.untrusted_text import quoted, visible
from nbext.errors import ConfigError, NbextError, QueryCancelled, StorageError, UsageError, did_you_mean
from nbext.notebook import keys
from nbext.notebook.cell.request import Query
from nbext.notebook.results.progress import Bar, view_for
from nbext.notebook.results.tables import SuspiciousNames
from nbext.settings import Secret, Settings, default_data_dir

if TYPE_CHECKING:
    import pandas as pd
    from IPython.core.interactiveshell import InteractiveShell

    from nbext.client import Client

# More are not remembered: nobody reads a longer list, and every answer is searched for new ones.
_MAX_SYMBOLS = 2_000
HISTORY_COLUMNS = ["number", "segment_id", "operator", "filters", "limit", "matched", "returned", "seconds", "service"]
_QUERY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


@dataclass
class Vocabulary:
    """The words to offer; filled by a connection and by answers, read by completion."""

    # All chains, those of the service's data first; the schema of a request, None where the service publishes none;
    # and the address of each token and collection in answers.
    chains: tuple[str, ...] = field(default_factory=chain_names)
    schema: Mapping[str, Any] | None = None
    symbols: dict[str, str] = field(default_factory=dict)

    def learn_service(self, about: Mapping[str, Any], schema: Mapping[str, Any] | None) -> None:
        """Remember the service's schema, and its chains before all others."""
        held = [str(chain.get("chain")) for chain in (about.get("data") or {}).get("chains") or []]
        self.chains = tuple(dict.fromkeys([*held, *chain_names()]))
        self.schema = schema

    def learn_rows(self, frame: pd.DataFrame) -> None:
        """Remember the symbols and addresses of an answer's rows."""
        if not {"symbol", "address"} <= set(frame.columns):
            return
        for symbol, address in zip(frame["symbol"], frame["address"], strict=True):
            if isinstance(symbol, str) and isinstance(address, str) and len(self.symbols) < _MAX_SYMBOLS:
                self.symbols[symbol] = address


@dataclass(frozen=True)
class Run:
    """One query that ran, and its result's provenance."""

    number: int
    query: Query
    about: Mapping[str, Any]


@dataclass
class History:
    """The queries of one session, the first being number 1."""

    runs: list[Run] = field(default_factory=list)

    def add(self, query: Query, about: Mapping[str, Any]) -> None:
        """Add a query, and its result's provenance."""
        # A copy: the user may change the table, and its attrs with it.
        self.runs.append(Run(len(self.runs) + 1, query, dict(about)))

    def number(self, number: int | None) -> Run:
        """Return the query of a number, or the last one."""
        if not self.runs:
            raise UsageError("%nbext: no query has run in this session yet.")
        wanted = len(self.runs) if number is None else number
        if not 1 <= wanted <= len(self.runs):
            raise UsageError(f"%nbext: there is no query {wanted}. This session has queries 1 to {len(self.runs)}.")
        return self.runs[wanted - 1]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per query: its request, its id, the rows that matched and were returned, and the seconds."""
        return [
            {
                "number": one.number,
                "operator": one.query.operator,
                # Filters from Python may contain Decimals, which json cannot write.
                "filters": json.dumps(one.query.filters, default=str),
                "limit": one.query.limit,
                **{name: one.about.get(name) for name in ("segment_id", "matched", "returned", "seconds", "service")},
            }
            for one in self.runs
        ]


class Session:
    """What the magics and the forms of one shell share."""

    def __init__(self, shell: InteractiveShell, settings: Settings | None = None) -> None:
        self.shell = shell
        self.settings = settings or Settings()
        # None before the first call: `connected` makes one.
        self.client: Client | None = None
        self.history = History()
        # Gathered from answers: completion itself asks nobody.
        self.vocabulary = Vocabulary()
        self.suspicious = SuspiciousNames()
        # What our own service says of itself and its data; None for another service.
        self.about: dict[str, Any] | None = None
        self.key_source: str | None = None
        # By the service they were typed for: a key is never sent to another.
        self._typed_keys: dict[str, Secret] = {}

    @property
    def names(self) -> MutableMapping[str, Any]:
        """The notebook's variables."""
        # Read anew each time: IPython replaces the namespace, for example in an embedded shell.
        names: MutableMapping[str, Any] = self.shell.user_ns
        return names

    @property
    def data_dir(self) -> Path:
        """The folder of saved queries and of the embedded service's data."""
        return default_data_dir(self.settings)

    def bar(self, label: str) -> Bar:
        """Return a progress bar for one call, drawn as this shell can show it."""
        return Bar(label, view_for(self.shell, wanted=self.settings["progress"]))

    def connected(self) -> Client:
        """Return the client; the first call connects it, which may start the embedded service."""
        return self.client or self.connect()

    def connect(self, base_url: str | None = None) -> Client:
        """Connect to a service, by default the one that is set, and print in one line which one answers."""
        before = self.settings.arguments.get("base_url")
        if base_url is not None:
            self.settings.set("base_url", base_url)
        try:
            self.settings.reread()
            with self.bar("connecting"):
                client = self._new_client()
        except (NbextError, KeyboardInterrupt) as error:
            # A typing error in a URL must not leave the notebook without the service that it had.
            self.settings.arguments["base_url"] = before
            # Here and not in the client's own edge, because there is no client yet.
            if isinstance(error, KeyboardInterrupt):
                raise QueryCancelled("Interrupted while connecting.") from None
            raise
        self.client = client
        print(connected_line(self.about, client.base_url, answered=client.answered))
        return client

    def disconnect(self) -> None:
        """Drop the client; the next call connects again."""
        self.client = None

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
        print("nbext: key set for this session" + (" and stored in the keyring." if stored else "."))

    def log_out(self) -> None:
        """Remove the key from this session and from the keyring."""
        self._typed_keys.clear()
        self.disconnect()
        if url := self.settings["base_url"]:
            keys.forget(url)
        print("nbext: key removed from this session and the keyring. NBEXT_API_KEY is used as long as it is set.")

    def _new_client(self) -> Client:
        from nbext.connect import connect

        url = self.settings["base_url"]
        key, source = None, "made for this session"
        if url:
            # Checked first: nobody is asked for a key that could not be sent.
            check_address(url, insecure=self.settings["insecure"])
            if url in self._typed_keys:
                key, source = self._typed_keys[url], "prompt"
            else:
                key, source = keys.find(url)
                if source == "prompt":
                    self._typed_keys[url] = key
        client = connect(url, key, settings=self.settings)
        self.key_source, self.about = source, None
        if client.is_ours:
            # Learned now, because completion must not wait for the network.
            self.about = client.about()
            self.vocabulary.learn_service(self.about, client.schema())
        return client


def check_address(url: str, *, insecure: bool) -> None:
    """Refuse an invalid URL, or one to which no key may be sent, before a key is asked for."""
    from nbext.client.http.base_url import Origin

    Origin.of(url, insecure=insecure)


def save_query(folder: Path, name: str, query: Query) -> None:
    """Save a query under a name, for ``%%segment_query --from NAME``."""
    path = _query_path(folder, name)
    # The request, not the cell: the variables of its {{expressions}} are gone in the next session.
    request = {"operator": query.operator, "filters": query.filters, "fileType": query.file_type, "limit": query.limit}
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
        names = sorted(file.stem for file in path.parent.glob("*.json"))
        known = f" Saved: {', '.join(names)}." if names else " `%nbext save NAME` saves the last query."
        raise UsageError(f"No query is saved as {name!r}.{did_you_mean(name, names)}{known}") from None
    except (OSError, UnicodeDecodeError):
        raise StorageError(f"{path} cannot be read. Delete it and save the query again.") from None


def _query_path(folder: Path, name: str) -> Path:
    # The name becomes a file's: it must not lead out of the folder.
    if not _QUERY_NAME.match(name):
        raise UsageError(f"{quoted(name)} is not a name for a query. Names use letters, digits, _ and -, at most 64.")
    return folder / "queries" / f"{name}.json"


# Two shells of one process each have a session; the forms use the last one that was loaded.
_CURRENT: list[Session] = []


def current() -> Session | None:
    """Return the session of the shell in which nbext is loaded, or None where it is loaded in none."""
    return _CURRENT[-1] if _CURRENT else None


def begin(session: Session) -> None:
    """Make a session the current one."""
    _CURRENT.append(session)


def end(session: Session) -> None:
    """Remove a session."""
    if session in _CURRENT:
        _CURRENT.remove(session)
    session.disconnect()


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
    whose = f"your data in {folder}" if own else "synthetic sample data (`nbext ingest` loads your own)"
    return f"nbext {__version__}: the embedded service starts at the first call, on {whose}. Start with `%nbext help`."


def connected_line(about: Mapping[str, Any] | None, base_url: str, *, answered: bool) -> str:
    """Return the line that the first call prints: what the service says of its data."""
    if not answered:
        return f"nbext: {_without_userinfo(base_url)} does not answer. The next call tries again."
    if not about:
        return f"nbext: connected to {_without_userinfo(base_url)}. Its data and its filters are its own."
    data = about.get("data") or {}
    return f"nbext: {data_in_words(data)}; {chains_in_words(data)}."


def data_in_words(data: Mapping[str, Any]) -> str:
    """Return the name of the data, marked where it is synthetic."""
    name = visible(data.get("name"))
    return name if not data.get("synthetic") or "synthetic" in name.lower() else f"{name} (synthetic)"


def chains_in_words(data: Mapping[str, Any]) -> str:
    """Return each chain of the data, with its last block."""
    chains = data.get("chains") or []
    words = [f"{visible(chain.get('chain'))} to block {_number(chain.get('lastBlock'))}" for chain in chains]
    return ", ".join(words) or "no chain yet"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else visible(value)


def _without_userinfo(url: str) -> str:
    """Return a URL without its query and what is before an @, which might be a password."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return visible(scheme + separator + host.rpartition("@")[2] + slash + path.partition("?")[0])
