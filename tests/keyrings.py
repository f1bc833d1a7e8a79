"""A keyring in memory, in the place of the system's."""

from __future__ import annotations

import time

from keyring.backend import KeyringBackend


class Ring(KeyringBackend):
    """A keyring in memory, whose mood a test chooses."""

    priority = 1

    def __init__(self, kept=None, error=None, seconds=0.0):
        self.kept, self.error, self.seconds = dict(kept or {}), error, seconds

    def _mood(self):
        time.sleep(self.seconds)
        if self.error:
            raise self.error

    def get_password(self, service, username):
        self._mood()
        return self.kept.get((service, username))

    def set_password(self, service, username, password):
        self._mood()
        self.kept[service, username] = password

    def delete_password(self, service, username):
        self._mood()
        del self.kept[service, username]
