"""The key of a remote service: from the environment, the system's keyring, or a prompt; always a `Secret`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nbext.errors import ConfigError
from nbext.notebook.results.progress import in_background
from nbext.settings import Secret, ask_keyring

KEY_VARIABLE = "NBEXT_API_KEY"
_KEYRING_NAME = "nbext"
# A locked or broken keyring may wait for a window that nobody sees: the cell must not wait with it.
KEYRING_SECONDS = 1.5


def find_key(base_url: str, *, ask: bool = True) -> tuple[Secret, str]:
    """Return the key for a service, and where it was found; `ConfigError` where there is none and nobody to ask.

    Where it is not to ``ask``, an empty one.
    """
    # The environment first: servers and jobs set it, and reading it never waits.
    if value := os.environ.get(KEY_VARIABLE, "").strip():
        return Secret(value), KEY_VARIABLE
    if secret := from_keyring(base_url):
        return secret, "keyring"
    return prompt(base_url) if ask else Secret(""), "prompt"


def prompt(base_url: str) -> Secret:
    """Ask for the key without showing it; `ConfigError` where nothing is typed, or nobody is at the keyboard."""
    from getpass import GetPassWarning, getpass

    try:
        with warnings.catch_warnings():
            # getpass only warns where the terminal cannot hide what is typed: then the key must not be typed at all.
            warnings.simplefilter("error", GetPassWarning)
            secret = Secret(getpass(f"API key for {base_url}: ").strip())
    except (NotImplementedError, EOFError, OSError, RuntimeError, GetPassWarning):
        secret = Secret("")
    if not secret:
        raise ConfigError(
            f"No API key for {base_url}. Set {KEY_VARIABLE} before you start Jupyter, or run `%nbext login` "
            "and type the key."
        )
    return secret


def from_keyring(base_url: str) -> Secret | None:
    """Return a service's key from the system's keyring; None where it has none or fails, which is printed."""
    value = _in_keyring(lambda keyring: keyring.get_password(_KEYRING_NAME, base_url))
    return Secret(value.strip()) if value else None


def keep(base_url: str, secret: Secret) -> bool:
    """Store the key in the system's keyring; False where there is no usable keyring."""
    return bool(
        _in_keyring(
            lambda keyring: keyring.set_password(_KEYRING_NAME, base_url, secret.reveal()) or True
        )
    )


def forget_key(base_url: str) -> None:
    """Delete the key from the system's keyring."""
    # Deleting what is not there fails in some backends, without a common error for it.
    if from_keyring(base_url):
        _in_keyring(lambda keyring: keyring.delete_password(_KEYRING_NAME, base_url))


def _in_keyring(action: Callable[[Any], Any]) -> Any:
    """Return what an action on the ``keyring`` package returns; None where that is missing or cannot be used."""
    # In a thread, because backends over D-Bus have no time limit of their own.
    future = in_background(lambda: ask_keyring(action), "nbext-keyring")
    answer, trouble = None, "it did not answer in time"
    with suppress(TimeoutError):
        answer, trouble = future.result(KEYRING_SECONDS)
    if trouble:
        print(
            f"nbext: the keyring cannot be used ({trouble}). Set {KEY_VARIABLE}, or type the key when asked."
        )
    return answer
