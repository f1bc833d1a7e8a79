"""The key of a remote service: from the environment, the system's keyring, or a prompt; always a `Secret`."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from typing import Protocol

from nbext.errors import ConfigError
from nbext.settings import Secret

KEY_VARIABLE = "NBEXT_API_KEY"
_KEYRING_NAME = "nbext"
# A locked or broken keyring may wait for a window that nobody sees.
KEYRING_SECONDS = 1.5


class Keyring(Protocol):
    """What is asked of the ``keyring`` package."""

    def get_password(self, service: str, username: str) -> str | None:
        """Return the password kept for a name, or None."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep a password under a name."""

    def delete_password(self, service: str, username: str) -> None:
        """Forget the password of a name."""


def find(base_url: str, say: Callable[[str], None]) -> tuple[Secret, str]:
    """Return the key for a service, and where it came from.

    Raises
    ------
    ConfigError
        There is none, and nobody to ask.
    """
    # The environment first: it is what a server or a job sets, and never waits.
    if value := os.environ.get(KEY_VARIABLE, "").strip():
        return Secret(value), KEY_VARIABLE
    if secret := from_keyring(base_url, say):
        return secret, "keyring"
    return prompt(base_url), "prompt"


def prompt(base_url: str) -> Secret:
    """Ask for the key without showing it.

    Raises
    ------
    ConfigError
        Nothing was typed, or the notebook has nobody at its keyboard.
    """
    from getpass import GetPassWarning, getpass

    try:
        with warnings.catch_warnings():
            # Where the terminal cannot hide what is typed, nothing is asked.
            warnings.simplefilter("error", GetPassWarning)
            secret = Secret(getpass(f"API key for {base_url}: ").strip())
    except (NotImplementedError, EOFError, OSError, RuntimeError, GetPassWarning):
        secret = Secret("")
    if not secret:
        raise ConfigError(
            f"there is no API key for {base_url}. Set {KEY_VARIABLE} before starting Jupyter, or run "
            "`%nbext login` where you can type."
        )
    return secret


def from_keyring(base_url: str, say: Callable[[str], None]) -> Secret | None:
    """Return the key that the system's keyring keeps for a service; None, with a line of advice, where it fails."""
    found: list[Secret] = []

    def look(keyring: Keyring) -> None:
        value = keyring.get_password(_KEYRING_NAME, base_url)
        if value:
            found.append(Secret(value.strip()))

    _with_keyring(look, say)
    return found[0] if found else None


def keep(base_url: str, secret: Secret, say: Callable[[str], None]) -> bool:
    """Keep the key in the system's keyring; False where there is none that takes it."""
    return _with_keyring(lambda keyring: keyring.set_password(_KEYRING_NAME, base_url, secret.reveal()), say)


def forget(base_url: str, say: Callable[[str], None]) -> bool:
    """Take the key out of the system's keyring; False where it held none."""

    def delete(keyring: Keyring) -> None:
        if keyring.get_password(_KEYRING_NAME, base_url) is not None:
            keyring.delete_password(_KEYRING_NAME, base_url)

    return _with_keyring(delete, say)


def _with_keyring(action: Callable[[Keyring], None], say: Callable[[str], None]) -> bool:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return False
    trouble: list[str] = ["it did not answer in time"]

    def run() -> None:
        try:
            action(keyring)
            trouble.clear()
        except (KeyringError, OSError, RuntimeError, ValueError) as error:
            trouble[:] = [type(error).__name__]

    # In a thread, because backends over D-Bus have no time limit of their own.
    thread = threading.Thread(target=run, name="nbext-keyring", daemon=True)
    thread.start()
    thread.join(KEYRING_SECONDS)
    if trouble:
        say(f"nbext: the keyring cannot be used ({trouble[0]}); set {KEY_VARIABLE}, or type the key when asked.")
    return not trouble
