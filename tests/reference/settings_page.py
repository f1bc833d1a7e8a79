"""The page of settings."""

from __future__ import annotations

from nbext.settings import SETTINGS, Setting
from tests.reference import table


def page() -> str:
    """Return the page: where values come from, and one row for each setting."""
    return (
        "# Settings\n\n"
        "A setting's value comes from the first of these places that has one:\n\n"
        "1. an argument: `%nbext set NAME VALUE`, `%nbext connect URL`, or `nbext.connect(...)` in Python; "
        "`%nbext unset NAME` removes it;\n"
        "2. the environment: `NBEXT_` and the setting's name in capitals;\n"
        "3. the table `[tool.nbext]` of the nearest `pyproject.toml`; `%nbext connect` reads it again;\n"
        "4. IPython's configuration: `c.Nbext.NAME = VALUE` in `ipython_config.py`;\n"
        "5. the default.\n\n"
        "`%nbext config` shows each value and the place it came from. The API key is not a setting: it comes from "
        "`%nbext login`, from the environment variable `NBEXT_API_KEY`, from the system's keyring, or from a prompt, "
        "and a key in a settings file is refused.\n\n"
        + table(
            ["name", "what it is", "allowed", "default", "environment"],
            [[f"`{s.name}`", s.help, _allowed(s), _default(s), _variable(s)] for s in SETTINGS],
        )
    )


def _allowed(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(setting.choices)
    kind = {str: "text", int: "whole number", float: "number", bool: "true, false", dict: "table"}[setting.kind]
    return kind if setting.minimum is None else f"{kind}, {setting.minimum:,} to {setting.maximum:,}"


def _variable(setting: Setting) -> str:
    # A table does not fit into an environment variable.
    return "" if setting.kind is dict else f"`{setting.env}`"


def _default(setting: Setting) -> str:
    return "none" if setting.default in (None, {}) else f"`{str(setting.default).lower()}`"
