"""What the settings say about a remote's answers: where each thing stands, as JMESPath.

    [tool.nbext.remote.paths]
    id = "job.handle"
    rows = "payload[0].owners"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbext.errors import ConfigError, did_you_mean

PATHS = ("id", "status", "rows", "next", "error", "url", "total")
SECTIONS = ("paths", "types")


class Overrides:
    """The settings under ``remote``: paths into answers, and types of columns by name."""

    def __init__(self, remote: Mapping[str, Any]) -> None:
        import jmespath
        from jmespath.exceptions import JMESPathError

        for section in remote:
            if section not in SECTIONS:
                raise ConfigError(
                    f"remote.{section} is no setting.{did_you_mean(section, SECTIONS)} Allowed: {', '.join(SECTIONS)}."
                )
        self.types: dict[str, str] = dict(remote.get("types") or {})
        self._paths = {}
        for name, path in (remote.get("paths") or {}).items():
            if name not in PATHS:
                raise ConfigError(
                    f"remote.paths.{name} is no setting.{did_you_mean(name, PATHS)} Allowed: {', '.join(PATHS)}."
                )
            try:
                self._paths[name] = jmespath.compile(str(path))
            except JMESPathError as error:
                # The first line says what; the others draw it for a terminal.
                raise ConfigError(f"remote.paths.{name}: {str(error).splitlines()[0]}") from None

    def __contains__(self, name: str) -> bool:
        return name in self._paths

    def find(self, name: str, document: Any) -> Any:
        """Return what stands at the path of that name; None without such a path, or where nothing stands."""
        from jmespath.exceptions import JMESPathError

        if name not in self._paths:
            return None
        try:
            return self._paths[name].search(document)
        except JMESPathError as error:
            raise ConfigError(f"remote.paths.{name} cannot be used on this answer: {error}") from None


def pasteable(name: str, path: str) -> str:
    """Return the line of settings that chooses one reading."""
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'remote.paths.{name} = "{quoted}"'
