"""Settings out of IPython's configuration: ``c.Nbext.limit = 500``, or ``%config Nbext.limit = 500``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from traitlets import Any as AnyTrait
from traitlets.config import Configurable

from nbext.settings import SETTINGS


def _configurable() -> type[Configurable]:
    """Build the class with one trait per setting, so that the two lists cannot differ. The key is none of them."""
    traits = {setting.name: AnyTrait(None, allow_none=True, help=setting.help).tag(config=True) for setting in SETTINGS}
    return type("Nbext", (Configurable,), {"__doc__": "Settings of nbext; unset ones are None.", **traits})


Nbext = _configurable()


class ConfiguredValues(Mapping[str, Any]):
    """The values that are set now, read anew each time: ``%config`` changes them while the session runs."""

    def __init__(self, configurable: Configurable) -> None:
        self._configurable = configurable

    def __getitem__(self, name: str) -> Any:
        # None is "not set" here: the next place in the order of settings is asked.
        value = getattr(self._configurable, name, None) if name in _NAMES else None
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in _NAMES if getattr(self._configurable, name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


_NAMES = tuple(setting.name for setting in SETTINGS)
