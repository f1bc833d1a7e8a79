"""The one session of a shell: its settings, its client (made at the first call), its history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from nbext.errors import ConfigError, NbextError, UsageError, did_you_mean
from nbext.notebook import banner, keys, nested
from nbext.notebook.cell.request import Query
from nbext.notebook.completion.vocabulary import Knowledge
from nbext.notebook.display.seen import Seen
from nbext.notebook.history import History
from nbext.notebook.results.progress import Bar, view_for
from nbext.notebook.run.calls import call
from nbext.settings import Secret, Settings, default_data_dir, setting_named

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
    seen
        The strange names that services sent: tables that show one are shown literally.
    key_source
        Where the key in use came from, in words; None before the first connection.
    """

    def __init__(self, shell: InteractiveShell, configured: Mapping[str, Any] | None = None) -> None:
        self.shell = shell
        self.settings = Settings(ipython=configured if configured is not None else {})
        self.history = History()
        self.knowledge = Knowledge()
        self.seen = Seen()
        self.key_source: str | None = None
        self.about: dict[str, Any] | None = None
        self._client: Client | None = None
        # By the service they were typed for: none is ever sent to another.
        self._typed_keys: dict[str, Secret] = {}

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
        try:
            self.settings.reread()
            self._client = self.call(lambda _: self._connected(), "connecting")
        except NbextError:
            # What was set before still holds.
            self.settings.arguments["base_url"] = before
            raise
        self.say(banner.of_service(self.about, self._client.base_url, answered=self._client.answered))
        return self._client

    def disconnect(self) -> None:
        """Forget the client; the next call connects anew."""
        self._client = None

    def set(self, name: str, value: Any) -> None:
        """Set a setting for this session; ``remote.paths.rows`` is one place inside of a setting.

        Raises
        ------
        ConfigError
            There is no such setting or place, or it does not take the value. What was set before still holds.
        """
        name, *inside = name.split(".")
        setting = setting_named(name)
        if inside:
            if setting.kind is not dict:
                raise ConfigError(f"{name} is one value: nothing stands inside of it.")
            value = nested.with_value(self.settings[name], inside, value)
        self._check(name, setting.read(value, "argument"))
        self.settings.set(name, value)
        self._changed(name)

    def unset(self, name: str) -> None:
        """Take back what was set for this session; what the other places say of the setting holds again.

        Raises
        ------
        ConfigError
            There is no such setting, or nothing stands at that place of it.
        """
        name, *inside = name.split(".")
        table = self.settings.arguments.get(name) or {}
        if inside and nested.at(table, inside) is None:
            self._refuse_place(setting_named(name).name, ".".join([name, *inside]))
        self.settings.unset(name)
        if inside:
            below = self.settings[name]
            under = nested.at(below, inside)
            left = nested.without(table, inside) if under is None else nested.with_value(table, inside, under)
            if left != below:
                self.settings.set(name, left)
        self._changed(name)

    def _refuse_place(self, name: str, place: str) -> NoReturn:
        known = list(nested.places(self.settings.arguments.get(name, {}), name))
        held = f"Set here: {', '.join(known)}." if known else f"Nothing of {name} is."
        raise ConfigError(f"{place} is not set in this session.{did_you_mean(place, known)} {held}")

    def _check(self, name: str, value: Any) -> None:
        """Refuse now what the next call would stumble over."""
        from nbext.client.remote.profile import Profile

        if name == "base_url" and value:
            check_address(value, insecure=self.settings["insecure"])
        elif name == "remote":
            Profile(value)

    def _changed(self, name: str) -> None:
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
        secret = self._typed_keys[url] = keys.prompt(url)
        self.disconnect()
        kept = keep and keys.keep(url, secret, self.say)
        self.say("nbext: the key is used for this session" + (" and kept in the keyring." if kept else "."))

    def log_out(self) -> None:
        """Forget the key that was typed, and the one that the keyring keeps."""
        self._typed_keys.clear()
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
        if url in self._typed_keys:
            return self._typed_keys[url], "prompt"
        secret, source = keys.find(url, self.say)
        if source == "prompt":
            self._typed_keys[url] = secret
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
    from nbext.client.http.base_url import Origin

    Origin.of(url, insecure=insecure)


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
