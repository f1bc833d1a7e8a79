"""The commands of ``%nbext``, one function each."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from nbext import __version__
from nbext.core.untrusted_text import visible
from nbext.errors import UsageError, did_you_mean
from nbext.notebook import banner, history
from nbext.notebook.completion import schema
from nbext.notebook.line import grammars
from nbext.notebook.line.options import KEY_REFUSED, Args, value_of
from nbext.notebook.run.segment import forms
from nbext.notebook.run.segment import run as run_query

if TYPE_CHECKING:
    import pandas as pd

    from nbext.notebook.session import Session

_PACKAGES = ("ipython", "ipywidgets", "pandas", "pyarrow", "duckdb", "ibis-framework")


def run(session: Session, args: Args) -> Any:
    """Run the command that the first word names.

    Raises
    ------
    UsageError
        There is no such command, or it takes other words.
    """
    name = args.words[0].text if args.words else "help"
    command = _COMMANDS.get(name)
    if command is None:
        raise UsageError(
            f"%nbext: unknown command {visible(name)!r}.{did_you_mean(name, _COMMANDS)} "
            f"Allowed: {', '.join(_COMMANDS)}."
        )
    return command(session, args, [str(value_of(word, args, session.names)) for word in args.words[1:]])


def _status(session: Session, args: Args, words: list[str]) -> None:
    _at_most(words, 0, "status")
    client = session.client
    # Asked anew: an ingest may have switched the data since the connection.
    if client.is_ours:
        session.about = client.about()
    about = session.about or {}
    data = about.get("data") or {}
    own = f"nbext {visible(about.get('version'))}" if about else "not nbext's own" if client.answered else "no answer"
    lines = {
        "service": f"{client.base_url} ({own})",
        "key": session.key_source,
        "engine": visible(about.get("engine")) if about else "not known",
        "data": banner.data_in_words(data) if about else "not known",
        "chains": banner.chains_in_words(data) if about else "not known",
        "versions": _versions(),
    }
    session.say("\n".join(f"{name:<10}{value}" for name, value in lines.items()))


def _connect(session: Session, args: Args, words: list[str]) -> None:
    if len(words) > 1:
        raise UsageError(f"%nbext connect takes a URL and nothing else: {KEY_REFUSED}")
    session.connect(words[0] if words else None)


def _login(session: Session, args: Args, words: list[str]) -> None:
    if words:
        raise UsageError(f"%nbext login takes no key: {KEY_REFUSED}")
    session.log_in(keep=bool(args["keep"]))


def _logout(session: Session, args: Args, words: list[str]) -> None:
    _at_most(words, 0, "logout")
    session.log_out()


def _set(session: Session, args: Args, words: list[str]) -> None:
    # Before anything else: an error about the value would repeat it.
    if words and words[0].lower().replace("-", "_") in ("key", "api_key", "apikey", "x_api_key"):
        raise UsageError(f"%nbext set: {KEY_REFUSED}")
    # As an error's line of settings has it: remote.paths.rows = "data.owners"
    words = [word for word in words if word != "="]
    if len(words) != 2:
        raise UsageError(
            "%nbext set takes a name and a value, such as `%nbext set limit 500`. `%nbext config` lists the names."
        )
    session.set(words[0], words[1])
    session.say(f"{words[0]} = {visible(words[1] if '.' in words[0] else session.settings[words[0]])}")


def _unset(session: Session, args: Args, words: list[str]) -> None:
    if len(words) != 1:
        raise UsageError("%nbext unset takes the name of a setting, such as `%nbext unset limit`.")
    session.unset(words[0])
    name = words[0].partition(".")[0]
    value, source = session.settings.where(name)
    session.say(f"{name} = {visible('none' if value in (None, {}) else value)} ({visible(source)})")


def _config(session: Session, args: Args, words: list[str]) -> Any:
    _at_most(words, 0, "config")
    return _literal([
        {"setting": name, "value": "" if value is None else str(value), "source": source}
        for name, (value, source) in session.settings.all().items()
    ])


def _history(session: Session, args: Args, words: list[str]) -> Any:
    _at_most(words, 1, "history")
    if words:
        return run_query(session, session.history.number(_number(words[0])).query, args)
    return _literal(session.history.rows(), columns=history.COLUMNS)


def _save(session: Session, args: Args, words: list[str]) -> None:
    if not words:
        raise UsageError("%nbext save: a name is missing. Such as: %nbext save whales")
    _at_most(words, 2, "save")
    ran = session.history.number(_number(words[1]) if len(words) > 1 else None)
    history.save(session.data_dir, words[0], ran.query)
    session.say(f"saved query {ran.number} as {words[0]}; `%%segment_query --from {words[0]}` runs it")


def _schema(session: Session, args: Args, words: list[str]) -> Any:
    _at_most(words, 1, "schema")
    # The schema comes with the connection.
    _ = session.client
    if session.knowledge.schema is None:
        raise UsageError("%nbext schema: this service's filters are its own; it does not publish their schema here.")
    return _literal(schema.rows(session.knowledge.schema, words[0] if words else None))


def _search(session: Session, args: Args, words: list[str]) -> Any:
    return forms().search_form(" ".join(words), client=session.client)


def _signup(session: Session, args: Args, words: list[str]) -> Any:
    _at_most(words, 0, "signup")
    return forms().signup_form(client=session.client)


def _build(session: Session, args: Args, words: list[str]) -> Any:
    _at_most(words, 0, "build")
    return forms().segment_form(client=session.client)


def _help(session: Session, args: Args, words: list[str]) -> None:
    session.say(grammars.NBEXT.help())


_COMMANDS: dict[str, Callable[[Session, Args, list[str]], Any]] = {
    "status": _status,
    "connect": _connect,
    "login": _login,
    "logout": _logout,
    "set": _set,
    "unset": _unset,
    "config": _config,
    "history": _history,
    "save": _save,
    "schema": _schema,
    "search": _search,
    "signup": _signup,
    "build": _build,
    "help": _help,
}


def _literal(rows: list[dict[str, Any]], columns: list[str] | None = None) -> pd.DataFrame:
    """Return rows as a table that is shown as a service's are: nothing in it hides or runs."""
    import pandas as pd

    table = pd.DataFrame(rows, columns=columns)
    table.attrs["nbext"] = {}
    return table


def _at_most(words: list[str], count: int, command: str) -> None:
    if len(words) > count:
        follows = grammars.COMMANDS[command][0]
        raise UsageError(f"%nbext {command} takes {follows or 'nothing'} after it.")


def _number(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"%nbext: a query's number is one of `%nbext history`, not {visible(text)!r}.")
    return int(text)


def _versions() -> str:
    found = [f"nbext {__version__}", f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
