"""The one session of a shell: its settings, its client (made at the first call), its history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nbext.errors import ConfigError, NbextError, UsageError
from nbext.notebook import introduction, keys
from nbext.notebook.calls import call
from nbext.notebook.history import History
from nbext.notebook.knowledge import Knowledge
from nbext.notebook.progress import Bar, view_for
from nbext.notebook.queries import Query
from nbext.settings import Secret, Settings, default_data_dir

if TYPE_CHECKING:
    import pandas as pd
    from IPython.core.interactiveshell import InteractiveShell

    from nbext.client import Client

Result = TypeVar("Result")
# A change of these takes another client.
_OF_THE_CONNECTION = {
    "base_url", "data_dir", "engine", "connect_timeout", "read_timeout", "insecure", "ca_bundle", "max_body_mb",
    "attempts", "remote",
}  # fmt: skip


class Session:
    """What the magics and the forms of one shell share.

    Attributes
    ----------
    settings
        Every setting and its source.
    history
        The queries that ran.
    knowledge
        What completion may offer: it is gathered here and never asked for.
    key_source
        Where the key in use came from, in words; None before the first connection.
    """

    def __init__(self, shell: InteractiveShell, configured: Mapping[str, Any] | None = None) -> None:
        self.shell = shell
        self.settings = Settings(ipython=configured if configured is not None else {})
        self.history = History()
        self.knowledge = Knowledge()
        self.key_source: str | None = None
        self.about: dict[str, Any] | None = None
        self._client: Client | None = None
        self._typed_key: Secret | None = None

    @property
    def names(self) -> MutableMapping[str, Any]:
        """The notebook's variables."""
        names: MutableMapping[str, Any] = self.shell.user_ns
        return names

    @property
    def data_dir(self) -> Path:
        """Where saved queries are kept, and the embedded service's data."""
        return default_data_dir(self.settings)

    def say(self, line: str) -> None:
        """Print one line under the cell."""
        print(line)

    @property
    def connected(self) -> bool:
        """Whether a client is there already."""
        return self._client is not None

    @property
    def client(self) -> Client:
        """The client, connected at first use."""
        return self._client or self.connect()

    def connect(self, base_url: str | None = None) -> Client:
        """Connect to a service, by default the one that is set, and say in one line which answers.

        Raises
        ------
        NoService, ConfigError
            There is no service to ask, or no key for it.
        """
        # A slip in a URL must not leave the notebook without the service that it had.
        before = self.settings.arguments.get("base_url")
        if base_url is not None:
            self.settings.set("base_url", base_url)
            self._typed_key = None
        try:
            self._client = self.call(lambda _: self._connected(), "connecting")
        except NbextError:
            # What was set before still holds.
            self.settings.arguments["base_url"] = before
            raise
        self.say(introduction.of_service(self.about, self._client.base_url))
        return self._client

    def disconnect(self) -> None:
        """Forget the client; the next call connects anew."""
        self._client = None

    def set(self, name: str, value: Any) -> None:
        """Set a setting for this session; ``remote.paths.rows`` is one place inside of a setting."""
        name, *inside = name.split(".")
        if inside:
            value = _with_value(self.settings[name], inside, value)
        self.settings.set(name, value)
        if name in _OF_THE_CONNECTION:
            self.disconnect()

    def log_in(self, *, keep: bool = False) -> None:
        """Ask for the key of the service that is set, use it, and keep it in the keyring where that is wanted.

        Raises
        ------
        UsageError
            The embedded service is in use, which needs none.
        ConfigError
            Nothing was typed.
        """
        url = self.settings["base_url"]
        if not url:
            raise UsageError("%nbext login: the embedded service needs no key. `%nbext connect URL` chooses another.")
        self._typed_key = keys.prompt(url)
        self.disconnect()
        kept = keep and keys.keep(url, self._typed_key, self.say)
        self.say("nbext: the key is used for this session" + (" and kept in the keyring." if kept else "."))

    def log_out(self) -> None:
        """Forget the key that was typed, and the one that the keyring keeps."""
        self._typed_key = None
        self.disconnect()
        url = self.settings["base_url"]
        if url:
            keys.forget(url, self.say)
        self.say("nbext: the key is forgotten here. A key in NBEXT_API_KEY stays until that variable is unset.")

    def call(self, run: Callable[[Bar], Result], label: str) -> Result:
        """Run one call of the client, with a bar, until Ctrl-C."""
        view = view_for(self.shell, wanted=self.settings["progress"])
        return call(run, label=label, view=view)

    def ask(self, query: Query, client: Client | None = None) -> pd.DataFrame:
        """Run a query and note it in the history; an error names its places in the cell."""
        asked = client or self.client
        # Raised after the except block, so that no frame of the call hangs on it.
        located: NbextError
        try:
            frame = self.call(
                lambda bar: asked.execute_segment(
                    query.filters, query.operator, query.file_type, query.limit, progress=bar
                ),
                "segment",
            )
        except NbextError as error:
            located = query.located(error)
        else:
            self.history.add(query, frame.attrs.get("nbext", {}))
            return frame
        raise located

    def _connected(self) -> Client:
        from nbext.connect import connect

        url = self.settings["base_url"]
        key, source = None, "made for this session"
        if url:
            # Nobody is asked for a key that could not be sent.
            check_address(url, insecure=self.settings["insecure"])
            key, source = self._key_for(url)
        client = connect(url, key, settings=self.settings)
        self._learn(client)
        self.key_source = source
        return client

    def _key_for(self, url: str) -> tuple[Secret, str]:
        if self._typed_key is not None:
            return self._typed_key, "prompt"
        secret, source = keys.find(url, self.say)
        if source == "prompt":
            self._typed_key = secret
        return secret, source

    def _learn(self, client: Client) -> None:
        """Keep what the service says of itself: completion must not ask the network."""
        self.about = None
        if not client.is_ours:
            return
        self.about = client.about()
        self.knowledge.learn_service(self.about, client.schema())


def check_address(url: str, *, insecure: bool) -> None:
    """Refuse a URL that no client could use, before a key is asked for.

    Raises
    ------
    ConfigError
        The URL is none, or a key must not be sent there.
    """
    from nbext.client.origin import Origin

    Origin.of(url, insecure=insecure)


def _with_value(table: object, path: list[str], value: object) -> dict[str, Any]:
    """Return a copy of a table with a value at a path of names."""
    first, *rest = path
    copy = dict(table) if isinstance(table, Mapping) else {}
    copy[first] = _with_value(copy.get(first), rest, value) if rest else value
    return copy


_CURRENT: list[Session] = []


def current() -> Session:
    """Return the session of the shell in which nbext is loaded.

    Raises
    ------
    ConfigError
        nbext is loaded in none.
    """
    if not _CURRENT:
        raise ConfigError("nbext is not loaded here: run `%load_ext nbext` in a notebook or in IPython first.")
    return _CURRENT[-1]


def begin(session: Session) -> None:
    """Make a session the current one."""
    _CURRENT.append(session)


def end(session: Session) -> None:
    """Let a session go."""
    if session in _CURRENT:
        _CURRENT.remove(session)
    session.disconnect()
