"""Settings: each value, and where it came from. The key is a `Secret` and is never one of them.

A value is taken from the first of: an argument (`%nbext set`, `connect(...)`), the environment
(NBEXT_NAME), ``[tool.nbext]`` in the nearest pyproject.toml, IPython's configuration, the default.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from nbext.core.constants import DEFAULT_LIMIT, MAX_LIMIT
from nbext.errors import ConfigError, did_you_mean


class Secret:
    """A text that prints as stars, and that no repr, pickle, copy or vars() gives away.

    >>> Secret("abc")
    Secret('**********')
    """

    __slots__ = ("_reveal",)
    _reveal: Callable[[], str]

    def __init__(self, value: str) -> None:
        # A closure, not an attribute: tracebacks and debuggers print attributes.
        object.__setattr__(self, "_reveal", lambda: value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Secret cannot be changed")

    def reveal(self) -> str:
        """Return the text itself: only for the header that carries it."""
        return self._reveal()

    def __repr__(self) -> str:
        return "Secret('**********')"

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
        raise TypeError("a Secret is not pickled")


@dataclass(frozen=True)
class Setting:
    """One setting: its default, its type, what it means, and what it may be."""

    name: str
    default: Any
    kind: type
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def env(self) -> str:
        """The environment variable that sets it."""
        return "NBEXT_" + self.name.upper()

    def read(self, value: Any, source: str) -> Any:
        """Return the value in the setting's type, or raise ConfigError naming what is allowed."""
        if value is None:
            return None
        try:
            read = self._typed(value)
        except (KeyError, TypeError, ValueError):
            raise ConfigError(f"{self.name} ({source}): {str(value)[:80]!r} is not {self._wanted()}.") from None
        # Written so that NaN, which compares false with everything, is refused too.
        if (self.minimum is not None and not read >= self.minimum) or (
            self.maximum is not None and not read <= self.maximum
        ):
            raise ConfigError(f"{self.name} ({source}): {read} is not {self._wanted()}.")
        if self.choices and read not in self.choices:
            near = did_you_mean(read, self.choices)
            raise ConfigError(f"{self.name} ({source}): {read[:80]!r} is not {self._wanted()}.{near}")
        return read

    def _typed(self, value: Any) -> Any:
        if self.kind is bool:
            if isinstance(value, bool):
                return value
            return {"1": True, "true": True, "yes": True, "on": True,
                    "0": False, "false": False, "no": False, "off": False}[str(value).strip().lower()]
        if self.kind is dict:
            return dict(value)
        if self.kind is int and (isinstance(value, bool) or (isinstance(value, float) and value % 1)):
            raise ValueError(value)
        return self.kind(value)

    def _wanted(self) -> str:
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        kinds = {int: "a whole number", float: "a number", bool: "true or false", dict: "a table", str: "a text"}
        if self.minimum is None or self.maximum is None:
            return kinds[self.kind]
        return f"{kinds[self.kind]} from {self.minimum:,} to {self.maximum:,}"


SETTINGS = (
    Setting("base_url", None, str, "The service to ask; none means the embedded one."),
    Setting("data_dir", None, str, "Where the embedded service keeps its data; none means the user's data folder."),
    Setting("engine", "duckdb://", str, "What the embedded service asks: duckdb://, pyspark://HOST:PORT, ..."),
    Setting("chain", "ethereum", str, "The chain of a search that names none; a segment names its own."),
    Setting("limit", DEFAULT_LIMIT, int, "Rows a segment returns where no limit is given.", 1, MAX_LIMIT),
    Setting("connect_timeout", 5.0, float, "Seconds to reach the service.", 0.01, 600),
    Setting("read_timeout", 30.0, float, "Seconds between two pieces of an answer.", 0.01, 3600),
    Setting("deadline", 60.0, float, "Seconds for one call in all.", 0.01, 86400),
    Setting("execute_deadline", 300.0, float, "Seconds for a segment to finish.", 0.01, 86400),
    Setting("download_deadline", 600.0, float, "Seconds for an export.", 0.01, 86400),
    Setting("attempts", 3, int, "How often a call is tried in all.", 1, 10),
    Setting("max_body_mb", 256, int, "Decoded megabytes of an answer held in memory.", 1, 65536),
    Setting("insecure", False, bool, "Allow a key over http:// to another machine."),
    Setting("ca_bundle", None, str, "A file of certificates to trust instead of the system's."),
    Setting("frame", "pandas", str, "What tables come as.", choices=("pandas", "polars", "arrow")),
    Setting("progress", True, bool, "Show a bar while a call takes longer than half a second."),
    Setting("images", False, bool, "Show collection images (https only) in forms."),
    Setting("remote", {}, dict, "How to read a remote service's answers: paths.id, paths.status, paths.rows, ..."),
)
_BY_NAME = {setting.name: setting for setting in SETTINGS}


def setting_named(name: str) -> Setting:
    """Return the setting, or raise ConfigError with the nearest name."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ConfigError(
            f"unknown setting {name!r}.{did_you_mean(name, _BY_NAME)} Allowed: {', '.join(_BY_NAME)}."
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
    folder: Path | None = None

    def __post_init__(self, environ: Mapping[str, str] | None) -> None:
        variables = os.environ if environ is None else environ

        # A closure, not an attribute: the environment holds the key, and repr() and vars() show attributes.
        def variable(name: str) -> str | None:
            return variables.get(name)

        self._variable = variable
        for name in self.arguments:
            setting_named(name)
        self.reread()

    def __getitem__(self, name: str) -> Any:
        return self.where(name)[0]

    def where(self, name: str) -> tuple[Any, str]:
        """Return a setting's value and the words that say where it came from."""
        setting = setting_named(name)
        places = (
            ("argument", self.arguments),
            (setting.env, {name: self._variable(setting.env) or None}),
            (str(self._pyproject_path), self._pyproject),
            ("IPython configuration", self.ipython),
        )
        for source, values in places:
            if values.get(name) is not None:
                return setting.read(values[name], source), source
        return setting.default, "default"

    def set(self, name: str, value: Any) -> None:
        """Set a value for this session; it is checked first."""
        self.arguments[name] = setting_named(name).read(value, "argument")

    def unset(self, name: str) -> None:
        """Let go what was set for this session: the next place that has a value holds again."""
        setting_named(name)
        self.arguments.pop(name, None)

    def reread(self) -> None:
        """Read the nearest pyproject.toml again; one that cannot be used leaves what was read before."""
        self._pyproject, self._pyproject_path = _nearest_pyproject(self.folder or Path.cwd())

    def all(self) -> dict[str, tuple[Any, str]]:
        """Return every setting's value and source, in the order of the table above."""
        return {setting.name: self.where(setting.name) for setting in SETTINGS}


def _nearest_pyproject(folder: Path) -> tuple[Mapping[str, Any], Path | None]:
    for place in (folder, *folder.parents):
        path = place / "pyproject.toml"
        if path.is_file():
            try:
                tool = tomllib.loads(path.read_text("utf-8")).get("tool", {})
            except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
                raise ConfigError(f"{path} cannot be read: {error}") from None
            table = tool.get("nbext", {}) if isinstance(tool, dict) else {}
            if not isinstance(table, dict):
                raise ConfigError(f"{path}: tool.nbext is a table of settings, [tool.nbext], and nothing else.")
            for name in table:
                if name in ("api_key", "key"):
                    raise ConfigError(f"{path}: a key does not belong in a file. Use NBEXT_API_KEY or `%nbext login`.")
                setting_named(name)
            return table, path
    return {}, None


def default_data_dir(settings: Settings) -> Path:
    """Return the folder for data: the setting, or the user's data folder of this platform."""
    if settings["data_dir"]:
        return Path(settings["data_dir"]).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("nbext", appauthor=False))
