"""The line that says which service answers, and whose data it has: at %load_ext, and at the first call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbext import __version__
from nbext.core.untrusted_text import visible
from nbext.errors import ConfigError
from nbext.settings import Settings, default_data_dir


def at_load(settings: Settings) -> str:
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


def of_service(about: Mapping[str, Any] | None, base_url: str, *, answered: bool) -> str:
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
