"""Settings: each value, and the source it was taken from. The key is a `Secret` and never among them.

A value is taken from the first source that has it: an argument (`%nbext set`, `connect(...)`), the environment
(NBEXT_NAME), ``[tool.nbext]`` in the nearest pyproject.toml, IPython's configuration, the default.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from configparser import ConfigParser
from dataclasses import InitVar, dataclass, field
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from nbext.core.rules import DEFAULT_LIMIT, FRAMES, MAX_BLOCK, MAX_LIMIT
from nbext.core.times import BACK, MOMENT
from nbext.core.uint256 import ungrouped, whole_of
from nbext.core.untrusted_text import quoted
from nbext.errors import ConfigError, did_you_mean


class Secret:
    """A text that prints as stars, and that no repr, pickle, copy or vars() gives away.

    ``reveal()`` returns the text itself: only for the header that carries it.

    >>> Secret("abc")
    Secret('**********')
    """

    __slots__ = ("reveal",)
    reveal: Callable[[], str]

    def __init__(self, value: str) -> None:
        # A closure, not a text: tracebacks and debuggers print attributes.
        object.__setattr__(self, "reveal", lambda: value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A Secret cannot be changed.")

    def __repr__(self) -> str:
        return "Secret('**********')"

    # Each of these would fall back to something that shows the text, or to a copy that outlives a logout.
    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.reveal() == other.reveal()

    def __hash__(self) -> int:
        return hash(("nbext.Secret", self.reveal()))

    def __bool__(self) -> bool:
        return bool(self.reveal())

    def __reduce__(self) -> NoReturn:
        raise TypeError("A Secret cannot be pickled.")


def ask_keyring(action: Callable[[Any], Any]) -> tuple[Any, str]:
    """Return what an action on the ``keyring`` package returns, or None and what went wrong: "" where it is missing."""
    if find_spec("keyring") is None:
        return None, ""
    try:
        # Here: what is read while it loads, such as its configuration, may be broken, too.
        import keyring

        return action(keyring), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  a backend is anybody's code, and one in Rust panics past Exception
        return None, type(error).__name__


@dataclass(frozen=True)
class Setting:
    """One setting: its default, what it means, and what it may be: where it has a ``maximum``, from ``minimum`` on."""

    name: str
    default: Any
    help: str
    minimum: float = 0
    maximum: float = 0
    choices: tuple[str, ...] = ()
    is_time: bool = False

    @cached_property
    def env(self) -> str:
        """The environment variable that sets it."""
        return "NBEXT_" + self.name.upper()

    @cached_property
    def kind(self) -> type:
        """The type of its values, which is that of its default; without one they are texts."""
        return str if self.default is None else type(self.default)

    def read(self, value: Any, source: str) -> Any:
        """Return the value in the setting's type, or raise ConfigError naming what is allowed."""
        if value is None:
            return None
        try:
            read = self._typed(value)
        except (KeyError, TypeError, ValueError):
            raise self._refused(quoted(value), source) from None
        # Written so that NaN, which compares false with everything, is refused too.
        if self.maximum and not self.minimum <= read <= self.maximum:
            raise self._refused(str(read), source)
        if self.choices and read not in self.choices:
            raise self._refused(quoted(read), source, did_you_mean(read, self.choices))
        return read

    def _refused(self, shown: str, source: str, hint: str = "") -> ConfigError:
        return ConfigError(f"{self.name} ({source}): {shown} is not {self._wanted()}.{hint}")

    def _typed(self, value: Any) -> Any:
        if self.kind is bool:
            return ConfigParser.BOOLEAN_STATES[str(value).strip().lower()]
        if self.kind is dict:
            # A name in place of the table is that of a profile.
            return {"profile": value} if isinstance(value, str) else dict(value)
        # int() would cut 1.5 to 1, and take True for 1.
        if self.kind is int and (
            isinstance(value, bool) or (isinstance(value, float) and value % 1)
        ):
            raise ValueError(value)
        read = self.kind(value)
        if self.is_time and not re.fullmatch(BACK, read):
            block = whole_of(ungrouped(read))
            # The pattern takes a 30th of February; the calendar does not.
            if block is None and re.fullmatch(MOMENT, read):
                datetime.fromisoformat(read.upper())
            elif block is None or block > MAX_BLOCK:
                raise ValueError(value)
        return read

    def _wanted(self) -> str:
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        kinds = {
            int: "a whole number",
            float: "a number",
            bool: "true or false",
            dict: "a table",
            str: 'a time such as "30d" or "2025-01-31", or a block' if self.is_time else "text",
        }
        if not self.maximum:
            return kinds[self.kind]
        return f"{kinds[self.kind]} from {self.minimum:,} to {self.maximum:,}"


SETTINGS = (
    Setting("base_url", None, "URL of the service. Without one, the embedded service answers."),
    Setting(
        "data_dir",
        None,
        "Folder of the embedded service's data. Without one, the user's data folder.",
    ),
    Setting(
        "engine", "duckdb://", "Engine of the embedded service: duckdb://, spark://HOST:PORT, ..."
    ),
    Setting(
        "chain",
        "ethereum",
        "Chain of a search or a symbol in an analysis that names none. A segment, %token and %nft name their own.",
    ),
    Setting(
        "as_of",
        None,
        "Time that segments are asked as of, or block of their chain, where neither they nor an analysis set one.",
        is_time=True,
    ),
    Setting(
        "limit", DEFAULT_LIMIT, "Rows that a segment returns when no limit is given.", 1, MAX_LIMIT
    ),
    Setting("connect_timeout", 5.0, "Seconds to wait for a connection to the service.", 0.01, 600),
    Setting("read_timeout", 30.0, "Seconds to wait for the next piece of an answer.", 0.01, 3600),
    Setting("deadline", 60.0, "Seconds for one call, retries included.", 0.01, 86400),
    Setting("execute_deadline", 300.0, "Seconds to wait for a segment to finish.", 0.01, 86400),
    Setting(
        "download_deadline",
        600.0,
        "Seconds for an export, all pages and retries included.",
        0.01,
        86400,
    ),
    Setting("attempts", 3, "Number of times to try a call before giving up.", 1, 10),
    Setting(
        "max_body_mb",
        256,
        "Largest answer to hold in memory, in megabytes after decoding.",
        1,
        65536,
    ),
    Setting("insecure", False, "Allow sending the key over http:// to another machine."),
    Setting("ca_bundle", None, "File of CA certificates to trust instead of the system's."),
    Setting("frame", "pandas", "Library of the tables that calls return.", choices=tuple(FRAMES)),
    Setting("progress", True, "Show a progress bar when a call takes longer than half a second."),
    Setting("warm_up", True, "Prepare the first call in the background after %load_ext."),
    Setting("images", False, "Show collection images in forms (https only)."),
    Setting(
        "remote", {}, "How to read a remote service's answers: a profile's name, or paths.rows, ..."
    ),
)
BY_NAME = {setting.name: setting for setting in SETTINGS}


def setting_named(name: str) -> Setting:
    """Return the setting, or raise ConfigError with the nearest name."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise ConfigError(
            f"Unknown setting {quoted(name)}.{did_you_mean(name, BY_NAME)} Allowed: {', '.join(BY_NAME)}."
        ) from None


@dataclass
class Settings:
    """All settings, each with its source.

    >>> Settings(arguments={"limit": 5})["limit"]
    5
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    ipython: Mapping[str, Any] = field(default_factory=dict)
    environ: InitVar[Mapping[str, str] | None] = None
    # Of the start: os.chdir in a cell moves neither the project's file nor a data folder.
    folder: Path = field(default_factory=Path.cwd)

    def __post_init__(self, environ: Mapping[str, str] | None) -> None:
        # Only our variables, and never the key's: repr() and vars() show attributes. The process's own environment is
        # read at each look-up instead, so that os.environ["NBEXT_LIMIT"] = "5" in a cell has effect.
        self._environ = environ and {
            setting.env: environ.get(setting.env, "") for setting in SETTINGS
        }
        for name in self.arguments:
            setting_named(name)
        self.reread()

    def __getitem__(self, name: str) -> Any:
        return self.where(name)[0]

    def where(self, name: str) -> tuple[Any, str]:
        """Return a setting's value, and the name of the source it was taken from."""
        # Several times in each call: no function of ours is entered for a setting that has its default.
        setting = BY_NAME.get(name) or setting_named(name)
        variables = os.environ if self._environ is None else self._environ
        for source, value in (
            ("argument", self.arguments.get(name)),
            (setting.env, variables.get(setting.env) or None),
            (str(self._pyproject_path), self._pyproject.get(name)),
            ("IPython configuration", self.ipython.get(name)),
        ):
            if value is not None:
                return setting.read(value, source), source
        return setting.default, "default"

    def set(self, name: str, value: Any) -> None:
        """Set a value for this session, or raise ConfigError where it is not allowed."""
        read = setting_named(name).read(value, "argument")
        if name == "data_dir" and read and isinstance(place := data_place(read), Path):
            read = str(place.absolute())
        self.arguments[name] = read

    def unset(self, name: str) -> None:
        """Drop the value set for this session, so that the next source counts again."""
        setting_named(name)
        self.arguments.pop(name, None)

    def reread(self) -> None:
        """Read the nearest pyproject.toml again, or raise ConfigError and go on with what was read before."""
        path = next(
            (
                path
                for place in (self.folder, *self.folder.parents)
                if (path := place / "pyproject.toml").is_file()
            ),
            None,
        )
        table: Any = {}
        if path is not None:
            try:
                tool = tomllib.loads(path.read_text("utf-8")).get("tool", {})
            except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
                raise ConfigError(f"{path} cannot be read: {error}") from None
            table = tool.get("nbext", {}) if isinstance(tool, dict) else {}
        if not isinstance(table, dict):
            raise ConfigError(
                f"{path}: [tool.nbext] must be a table of settings, not {type(table).__name__}."
            )
        for name in table:
            if name in ("api_key", "key"):
                # Project files are committed and shared.
                raise ConfigError(
                    f"{path}: a key does not belong in a file. Set NBEXT_API_KEY or use `%nbext login`."
                )
            setting_named(name)
        self._pyproject, self._pyproject_path = table, path

    def all(self) -> dict[str, tuple[Any, str]]:
        """Return every setting's value and source, in the order of the table above."""
        return {setting.name: self.where(setting.name) for setting in SETTINGS}


# The session of each notebook that has the extension loaded, the last one last: `nbext.connect()` takes its settings,
# so that `%nbext set base_url URL` and a client made in Python name one service.
NOTEBOOKS: list[Any] = []


def current() -> Settings:
    """Return the settings of the notebook, where the extension is loaded; else new ones, of the other sources."""
    return NOTEBOOKS[-1].settings if NOTEBOOKS else Settings()


def default_data_dir(settings: Settings) -> Path:
    """Return the folder for data: the setting, or the user's data folder of this platform.

    Raises
    ------
    ConfigError
        The setting is a URL.
    """
    if settings["data_dir"]:
        return settings.folder / data_folder(settings["data_dir"])
    import platformdirs

    return Path(platformdirs.user_data_dir("nbext", appauthor=False))


def service_folder(data_dir: Path | str, *, notebook: bool = False) -> Path:
    """Return the folder of what a service stores: in its data folder; where that is read-only or a URL, the user's.

    A ``notebook``'s own service has one of the user's, whatever the data folder is.
    """
    if isinstance(data_dir, Path) and not notebook:
        inside = data_dir / "service"
        if not data_dir.exists() or os.access(inside if inside.exists() else data_dir, os.W_OK):
            return inside
    import platformdirs

    place = str(data_dir.resolve()) if isinstance(data_dir, Path) else data_dir
    kind = "embedded" if notebook else "service"
    name = f"{kind}-{sha256(place.encode()).hexdigest()[:12]}"
    return Path(platformdirs.user_state_dir("nbext", appauthor=False)) / name


# https://..., https:/..., user:password@..., localhost:8545, host.example/v3/...; but not the network 10.0.0.0/8
_URL = re.compile(
    r"""(?<![^\s'"=])['"]?(?!(?:\d+\.){3}\d+/\d\d?(?![^\s.,'"]))"""
    r"""(?:[^\s'"=]*(?:://|:[^\s@/]+@)|(?:https?|wss?):|localhost[:/]|"""
    r"""[\w-]+(?:\.[\w-]+)*\.(?:[A-Za-z]{2,}|\d+)[:/?])\S*""",
    re.IGNORECASE,
)


def could_be_url(text: str) -> bool:
    """Say whether a text has what could be a URL, with or without its scheme: a node's holds a provider's key.

    >>> [could_be_url(text) for text in ("node.example/v3/a-key", "10.0.0.7/v3", "10.0.0.7/83/v3", "10.0.0.7:8545")]
    [True, True, True, True]
    >>> [could_be_url(text) for text in ("./node.example/v3", "eip155:137", "10.0.0.7", "such as 10.0.0.0/8.")]
    [False, False, False, False]
    """
    return _URL.search(text) is not None


def without_urls(text: str) -> str:
    """Return a message without what in it could be a URL.

    >>> without_urls("unrecognized arguments: https://node.example/v3/a-key --quiet")
    'unrecognized arguments: (a URL, not shown) --quiet'
    """
    return _URL.sub("(a URL, not shown)", text)


def data_place(text: str) -> Path | str:
    """Return the path of a data folder, or as text the URL that a cluster's ingest writes to."""
    if not text:  # as a path it would be the current folder
        raise ConfigError("The data folder has an empty name. Give one, such as /srv/nbext.")
    # Two letters at least: C:/ is a drive.
    return text if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", text) else Path(text).expanduser()


def data_folder(given: str | os.PathLike[str]) -> Path:
    """Return the path of a data folder; ConfigError for a URL, which would become a folder called ``s3:``."""
    place = data_place(os.fspath(given))
    if isinstance(place, str):
        raise ConfigError(
            f"{quoted(place)} is a URL. The data folder is a path on this machine, such as /srv/nbext."
        )
    return place
