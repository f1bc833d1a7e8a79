"""The fixtures of the service's tests."""

from __future__ import annotations

from tests.service.conftest import data_dir, server

__all__ = ["data_dir", "server"]
