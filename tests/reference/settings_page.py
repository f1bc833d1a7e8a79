"""The page of settings."""

from __future__ import annotations

from nbext.settings import SETTINGS, Setting
from tests.reference import table
from tests.reference.shown import output, sample, transcript

# A value of each that somebody sets.
VALUES = {
    "base_url": "https://api.example.com",
    "data_dir": "chain-data",
    "engine": "spark://10.0.0.5:7077",
    "chain": "base",
    "as_of": "24000000",
    "limit": "500",
    "connect_timeout": "10",
    "read_timeout": "60",
    "deadline": "120",
    "execute_deadline": "900",
    "download_deadline": "3600",
    "attempts": "5",
    "max_body_mb": "1024",
    "insecure": "true",
    "ca_bundle": "company-ca.pem",
    "frame": "polars",
    "progress": "false",
    "warm_up": "false",
    "images": "true",
    "remote": "dune",
}
# What a value does, and where it comes from.
_CELLS = (
    "%nbext set limit 2",
    '%segment {"token": {"token": "UNI"}} -o uni',
    '%nbext config -o settings\nsettings[settings["setting"] == "limit"]',
    "%nbext unset limit",
    "%nbext set limit none",
)


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
            ["name", "what it is", "allowed", "default", "example"],
            [
                [
                    f"`{s.name}`",
                    s.help,
                    _allowed(s),
                    _default(s),
                    f"`%nbext set {s.name} {VALUES[s.name]}`",
                ]
                for s in SETTINGS
            ],
        )
        + "\nThe environment has no `remote`, which is a table: [its entries](remote.md#the-settings).\n\n"
        + _shown()
    )


def _shown() -> str:
    with sample() as shell:
        return transcript((cell, output(shell, cell)) for cell in _CELLS)


def _allowed(setting: Setting) -> str:
    if setting.is_time:
        return "time, or block"
    if setting.choices:
        return ", ".join(setting.choices)
    kind = {str: "text", int: "whole number", float: "number", bool: "true, false", dict: "table"}[
        setting.kind
    ]
    return f"{kind}, {setting.minimum:,} to {setting.maximum:,}" if setting.maximum else kind


def _default(setting: Setting) -> str:
    return "none" if setting.default in (None, {}) else f"`{str(setting.default).lower()}`"
