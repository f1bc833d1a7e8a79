"""The commands of ``%nbext`` that list and change settings; a setting that is a table is changed entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import visible
from nbext.errors import ConfigError, UsageError, did_you_mean
from nbext.notebook.line import KEY_REFUSED, Args, Command
from nbext.notebook.results.deliver import OUT, own_table, put
from nbext.notebook.schema import help_line
from nbext.settings import BY_NAME, setting_named

if TYPE_CHECKING:
    from nbext.notebook.session import Session


def _completes(session: Session, done: list[str], typed: str) -> Mapping[str, str]:
    """Return the names of settings, and after one the values that it may have."""
    if not done:
        return {name: help_line("setting", one.help) for name, one in BY_NAME.items()}
    setting = BY_NAME.get(done[0])
    if setting is None:
        return {}
    if setting.name == "chain":
        return session.vocabulary.chains
    values = ("true", "false") if setting.kind is bool else setting.choices
    return dict.fromkeys(values, help_line("value", setting.help))


@Command(
    "set",
    "NAME VALUE",
    "set a setting for this session",
    examples=(
        "%nbext set limit 3",
        '%nbext config -o settings\nsettings[settings["setting"] == "limit"]',
        "%nbext unset limit",
    ),
    completes=_completes,
)
def _set(session: Session, args: Args, *words: str) -> None:
    # Before anything else: an error about the value would repeat it.
    if words and words[0].lower().replace("-", "_") in ("key", "api_key", "apikey", "x_api_key"):
        raise UsageError(f"%nbext set: {KEY_REFUSED}")
    # Errors print a line of settings as a file has it: remote.paths.rows = "data.owners"
    given = [word for word in words if word != "="]
    if len(given) != 2:
        raise UsageError(
            "%nbext set takes a name and a value, such as `%nbext set limit 500`. `%nbext config` lists the names."
        )
    place, value = given
    _change(session, place, value)
    print(f"{place} = {visible(value if '.' in place else session.settings[place])}")
    if place == "chain":
        print(f"note: {setting_named('chain').help}")
    if place == "base_url" and (lines := remote_lines(session)):
        print(
            f"note: answers from there are read by the lines that are set: {'; '.join(lines)}. "
            "`%nbext unset remote` forgets those of this session."
        )
    # A slip in the path would be answered by the sample, as if it were the data.
    if place == "data_dir" and not session.data_dir.is_dir():
        folder = visible(session.data_dir)
        print(
            f"note: {folder} does not exist yet. The sample is served until `nbext ingest --data {folder}` fills it."
        )


def _change(session: Session, place: str, value: Any) -> None:
    """Set a setting, or an entry of one that is a table; a `ConfigError` leaves what was set before."""
    name, *rest = place.split(".")
    setting, path = setting_named(name), tuple(rest)
    if setting.kind is dict and not path:
        # The name of a profile, beside what else is set.
        path = ("profile",)
    if path:
        if setting.kind is not dict:
            raise ConfigError(f"{name} is a single value: it has no entry {'.'.join(path)!r}.")
        entries = entries_of(session.settings[name])
        kept = {key: old for key, old in entries.items() if key[: len(path)] != path}
        value = table_of(kept | {path: value})
    read = setting.read(value, "argument")
    # Checked here, because the next call would fail far from the line that is wrong.
    if name == "base_url" and read:
        from nbext.http.base_url import Origin

        Origin.of(read, insecure=session.settings["insecure"])
    elif name == "remote":
        from nbext.client.service import check_remote

        check_remote(read)
    session.settings.set(name, value)


@Command(
    "unset",
    "NAME",
    "remove a setting from this session",
    completes=lambda session, done, typed: {} if done else _completes(session, done, typed),
)
def _unset(session: Session, args: Args, *words: str) -> None:
    if len(words) != 1:
        raise UsageError("%nbext unset takes the name of a setting, such as `%nbext unset limit`.")
    name, *rest = words[0].split(".")
    setting, path = setting_named(name), tuple(rest)
    here = session.settings.arguments.get(name)
    entries = entries_of(here) if setting.kind is dict and here else {}
    left = {key: value for key, value in entries.items() if key[: len(path)] != path}
    if path and len(left) == len(entries):
        known = [".".join([name, *key]) for key in entries]
        others = f"Set here: {', '.join(known)}." if known else f"No entry of {name} is set."
        raise ConfigError(
            f"{words[0]} is not set in this session.{did_you_mean(words[0], known)} {others}"
        )
    session.settings.unset(name)
    if path:
        # Files, environment and defaults apply again.
        below = entries_of(session.settings[name])
        left |= {key: value for key, value in below.items() if key[: len(path)] == path}
        # What equals the file's own table need not be set here: the file's next change then takes effect.
        if left != below:
            session.settings.set(name, table_of(left))
    value, source = session.settings.where(name)
    print(f"{name} = {visible('none' if value in (None, {}) else value)} ({visible(source)})")


@Command("config", "", "list every setting, its value and its source", (OUT,))
def _config(session: Session, args: Args) -> Any:
    rows = [
        {"setting": name, "value": "" if value is None else str(value), "source": source}
        for name, (value, source) in session.settings.all().items()
    ]
    return put(session, args, own_table(rows))


COMMANDS = (_set, _unset, _config)


def remote_lines(session: Session) -> list[str]:
    """Return the lines of settings that a stranger's answers are read by."""
    entries = entries_of(session.settings["remote"])
    return [f"remote.{'.'.join(path)} = {visible(value, 80)}" for path, value in entries.items()]


def entries_of(table: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """Return the values of a table of tables by their paths: easier to add to and to take from than the nesting."""
    found: dict[tuple[str, ...], Any] = {}
    for name, value in table.items():
        inner = entries_of(value) if isinstance(value, Mapping) else {(): value}
        found |= {(name, *path): each for path, each in inner.items()}
    return found


def table_of(entries: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """Return the table of tables that has these values; no table in it is empty."""
    table: dict[str, Any] = {}
    for (*above, name), value in entries.items():
        inner = table
        for each in above:
            # A value in the place of a table gives way: the setting's own check then says what belongs there.
            inner[each] = inner[each] if isinstance(inner.get(each), dict) else {}
            inner = inner[each]
        inner[name] = value
    return table
