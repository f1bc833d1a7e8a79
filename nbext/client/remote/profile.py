"""What the settings say about a stranger's answers: where each thing is, as JMESPath.

    [tool.nbext.remote.paths]
    id = "job.handle"
    rows = "payload[0].owners"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbext.core.untrusted_text import quoted
from nbext.errors import ConfigError, did_you_mean

PATHS = ("id", "status", "rows", "next", "error", "url", "total")
SECTIONS = ("paths", "types")
TYPES = ("string", "integer", "uint256", "number", "boolean", "object")


class Profile:
    """The settings under ``remote``: paths into answers, and types of columns by name. A mistake is a ConfigError."""

    def __init__(self, remote: Mapping[str, Any]) -> None:
        import jmespath
        from jmespath.exceptions import JMESPathError

        for section, table in remote.items():
            if section not in SECTIONS:
                raise _unknown(f"remote.{section} is not a setting.", section, SECTIONS)
            if not isinstance(table, Mapping):
                raise ConfigError(f"remote.{section} is a table, such as {_EXAMPLES[section]}.")
        self.types: dict[str, str] = dict(remote.get("types", {}))
        for name, kind in self.types.items():
            if kind not in TYPES:
                raise _unknown(f"remote.types.{name}: {quoted(kind, 40)} is not a type.", str(kind), TYPES)
        self._paths = {}
        for name, path in remote.get("paths", {}).items():
            if name not in PATHS:
                raise _unknown(f"remote.paths.{name} is not a setting.", name, PATHS)
            try:
                self._paths[name] = jmespath.compile(str(path))
            except JMESPathError as error:
                # The first line says what; the others draw it for a terminal.
                raise ConfigError(f"remote.paths.{name}: {str(error).splitlines()[0].rstrip(':')}.") from None

    def __contains__(self, name: str) -> bool:
        return name in self._paths

    def find(self, name: str, document: Any) -> Any:
        """Return what the path of that name leads to; None without such a path, or where it leads to nothing."""
        from jmespath.exceptions import JMESPathError

        if name not in self._paths:
            return None
        try:
            return self._paths[name].search(document)
        except JMESPathError as error:
            raise ConfigError(f"remote.paths.{name} cannot be used on this answer: {error}") from None


_EXAMPLES = {"paths": 'remote.paths.id = "job.id"', "types": 'remote.types.balance = "uint256"'}


def _unknown(words: str, got: str, allowed: tuple[str, ...]) -> ConfigError:
    return ConfigError(f"{words}{did_you_mean(got, allowed)} Allowed: {', '.join(allowed)}.")


def pasteable(name: str, path: str) -> str:
    """Return the line of settings that chooses one reading."""
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'remote.paths.{name} = "{quoted}"'
