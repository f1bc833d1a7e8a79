"""The commands of ``%nbext``, one function each."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from nbext import __version__
from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import visible
from nbext.errors import ConfigError, UsageError, did_you_mean
from nbext.notebook.completion import schema
from nbext.notebook.line import grammars
from nbext.notebook.line.options import KEY_REFUSED, Args, value_of
from nbext.notebook.results.deliver import put
from nbext.notebook.run import analysis, examples, fetch
from nbext.notebook.run.segment import forms
from nbext.notebook.run.segment import run as run_query
from nbext.notebook.session import (
    HISTORY_COLUMNS,
    chains_in_words,
    check_address,
    data_in_words,
    save_query,
    saved_query,
)
from nbext.settings import setting_named

if TYPE_CHECKING:
    import pandas as pd

    from nbext.notebook.session import Session

# The commands that return a table, which an option may store; and for an option the commands that take it.
_TABLES = ("config", "history", "schema")
_TAKEN = {
    "login": {"keep"},
    "last-answer": {"values"},
    **{name: {"out"} for name in _TABLES},
    "history": {"out", "card"},
    "overlap": {"out", "share", "lift"},
    "funnel": {"out"},
    "concentration": {"out"},
    "trend": {"out", "every", "since", "amounts", "no_amounts"},
    "retention": {"out", "by", "cohort", "since"},
    "wallet": {"out", "as_of", "chain"},
    "examples": {"overwrite"},
}
_TAKERS = {
    "out": "config, history, schema and the commands that compare segments return a table to store",
    "share": "overlap returns shares",
    "lift": "overlap returns lifts",
    "every": "trend has points",
    "since": "trend and retention begin at a time",
    "amounts": "trend adds up balances",
    "no_amounts": "trend adds up balances",
    "by": "retention has periods",
    "cohort": "retention has cohorts",
    "as_of": "wallet reads balances at a time",
    "chain": "wallet reads balances of one chain",
    "keep": "login stores a key",
    "overwrite": "examples writes files",
    "card": "history is shown as a card",
    "values": "last-answer shows an answer's values",
}
_ASKED_OF_A_SEGMENT = {
    "changes": '%segment {"nft": {"nft": "BAYC"}} --changes 30d, or nbext.changes("BAYC", "30d") in Python.',
    "profile": '%segment {"nft": {"nft": "BAYC"}} --profile, or nbext.profile("BAYC", base=..., least=...) in Python.',
}
_EXPANDED = re.compile(r"\{([^{}:\"]*)\}|\$([A-Za-z_]\w*)")
_PACKAGES = ("ipython", "ipywidgets", "pandas", "pyarrow", "duckdb", "ibis-framework")
# A client reads these when it is made: a change of one needs another client.
_OF_THE_CONNECTION = {
    "base_url",
    "data_dir",
    "engine",
    "connect_timeout",
    "read_timeout",
    "insecure",
    "ca_bundle",
    "max_body_mb",
    "attempts",
    "remote",
}


def run(session: Session, args: Args, cell: str | None) -> Any:
    """Run the command that the first word names."""
    name = args.words[0].text if args.words else "help"
    if name in _ASKED_OF_A_SEGMENT:
        raise UsageError(f"%nbext: {name} is an option of a segment: {_ASKED_OF_A_SEGMENT[name]}")
    if name not in _COMMANDS:
        raise UsageError(
            f"%nbext: unknown command {visible(name)!r}.{did_you_mean(name, _COMMANDS)} "
            f"Allowed: {', '.join(_COMMANDS)}."
        )
    _refuse_options(name, args)
    command, most = _COMMANDS[name]
    # Segments may be tables, which are no text.
    of_segments = command in (analysis.overlap, analysis.of_one, _build)
    words = [word.text if of_segments else str(value_of(word, args)) for word in args.words[1:]]
    if most is not None and len(words) > most:
        usage = f"%nbext {name} {grammars.COMMANDS[name][0]}".rstrip()
        raise UsageError(
            f"%nbext {name}: unexpected argument {visible(words[most])!r}. Usage: {usage}"
        )
    value = command(session, args, words)
    return (
        value if name not in _TABLES or args["card"] or value is None else put(session, args, value)
    )


def _refuse_options(name: str, args: Args) -> None:
    """Refuse options that the command does not take, and a value that IPython's own magics would expand."""
    for option in args.options.keys() - _TAKEN.get(name, set()) - {"help"}:
        flag = f"--{option.replace('_', '-')}"
        raise UsageError(f"%nbext {name} has no option {flag}. Only {_TAKERS[option]}.")
    for word in args.words[1:]:
        if word.kind != "quoted" and (found := _EXPANDED.fullmatch(word.text)):
            inner = found[1] or found[2]
            raise UsageError(
                f"%nbext {name}: write a Python value as {{{{{inner}}}}}, not as {visible(word.text)}."
            )


def _status(session: Session, args: Args, words: list[str]) -> None:
    # Not announced: these lines say the same, and more.
    client = session.client or session.connect(announce=False)
    # Also where nothing else was asked since an ingest.
    if client.is_ours:
        session.connected()
        session.ask_about(client)
    about = session.about or {}
    data = about.get("data") or {}
    own = (
        f"nbext {visible(about.get('version'))}"
        if about
        else "not nbext's own"
        if client.answered
        else "no answer"
    )
    lines = {
        "service": f"{client.base_url} ({own})",
        "key": session.key_source,
        "engine": visible(about.get("engine")) if about else "not known",
        "data": data_in_words(data) if about else "not known",
        "chains": chains_in_words(data) if about else "not known",
        "answers": f"read by the profile {client.profile}" if client.profile != "none" else "",
        "versions": _versions(),
    }
    print("\n".join(f"{name:<10}{value}" for name, value in lines.items() if value))


def _connect(session: Session, args: Args, words: list[str]) -> None:
    if len(words) > 1:
        raise UsageError(f"%nbext connect takes only a URL. {KEY_REFUSED}")
    session.connect(words[0] if words else None)


def _login(session: Session, args: Args, words: list[str]) -> None:
    if words:
        raise UsageError(f"%nbext login takes no key. {KEY_REFUSED}")
    session.log_in(keep=bool(args["keep"]))


def _set(session: Session, args: Args, words: list[str]) -> None:
    # Before anything else: an error about the value would repeat it.
    if words and words[0].lower().replace("-", "_") in ("key", "api_key", "apikey", "x_api_key"):
        raise UsageError(f"%nbext set: {KEY_REFUSED}")
    # Errors print a line of settings as a file has it: remote.paths.rows = "data.owners"
    words = [word for word in words if word != "="]
    if len(words) != 2:
        raise UsageError(
            "%nbext set takes a name and a value, such as `%nbext set limit 500`. `%nbext config` lists the names."
        )
    set_setting(session, words[0], words[1])
    print(f"{words[0]} = {visible(words[1] if '.' in words[0] else session.settings[words[0]])}")
    if words[0] == "chain":
        print(f"note: {setting_named('chain').help}")
    # A slip in the path would be answered by the sample, as if it were the data.
    if words[0] == "data_dir" and not session.data_dir.is_dir():
        folder = visible(session.data_dir)
        print(
            f"note: {folder} does not exist yet. The sample is served until `nbext ingest --data {folder}` fills it."
        )


def _unset(session: Session, args: Args, words: list[str]) -> None:
    if len(words) != 1:
        raise UsageError("%nbext unset takes the name of a setting, such as `%nbext unset limit`.")
    unset_setting(session, words[0])
    name = words[0].partition(".")[0]
    value, source = session.settings.where(name)
    print(f"{name} = {visible('none' if value in (None, {}) else value)} ({visible(source)})")


def _config(session: Session, args: Args, words: list[str]) -> Any:
    return _table(
        [
            {"setting": name, "value": "" if value is None else str(value), "source": source}
            for name, (value, source) in session.settings.all().items()
        ]
    )


def _history(session: Session, args: Args, words: list[str]) -> Any:
    if words:
        # With this line's options: `%nbext history 2 -o again` stores the new result.
        return run_query(session, session.history.number(_number(words[0])).query, args)
    rows = session.history.rows()
    # Of another service a number may be missing, and the others stay whole.
    table = _table(rows, columns=HISTORY_COLUMNS).astype(
        dict.fromkeys(("matched", "returned", "block"), "Int64")
    )
    if args["card"]:
        put(session, args, table)
        queries = [(one, _query(session, one["number"])) for one in rows]
        return forms().show_history(queries, client=session.connected())
    if rows:
        number = rows[-1]["number"]
        print(
            f"`%nbext history {number}` runs number {number} again; `%nbext build history {number}` edits it, and "
            "`%nbext history --card` has a button for each."
        )
    return table


def _save(session: Session, args: Args, words: list[str]) -> None:
    if not words:
        raise UsageError("%nbext save: a name is missing. Example: %nbext save whales")
    done = session.history.number(_number(words[1]) if len(words) > 1 else None)
    save_query(session.data_dir, words[0], done.query)
    print(f"saved query {done.number} as {words[0]}; `%%segment_query --from {words[0]}` runs it")


def _schema(session: Session, args: Args, words: list[str]) -> Any:
    # The vocabulary learns the schema from the connection.
    session.connected()
    if session.vocabulary.schema is None:
        raise UsageError("%nbext schema: this service publishes no schema of its filters.")
    table = _table(schema.rows(session.vocabulary.schema, words[0] if words else None))
    # Sentences to read: cut at 50 characters, as pandas displays them, they say nothing.
    return Provenance(whole=True).attach(table)


def _last_answer(session: Session, args: Args, words: list[str]) -> None:
    # A changed setting drops the client, and what it remembered is still what there is to say.
    outline = (session.client and session.client.outline) or session.outline
    if outline is None:
        ours = session.client is not None and session.client.answered and session.client.is_ours
        why = (
            "the answers of nbext's own service have one reading"
            if ours
            else "no remote service has answered yet"
        )
        raise UsageError(f"%nbext last-answer: {why}.")
    print(outline.text(values=bool(args["values"])))


def _build(session: Session, args: Args, words: list[str]) -> Any:
    return forms().segment_form(_built_of(session, args, words), client=session.connected())


def _built_of(session: Session, args: Args, words: list[str]) -> Any:
    """Return what a builder opens: a table, filters, a query of the history or a saved one, a segment of an id."""
    if not words:
        return None
    if words[0] == "history":
        number = str(value_of(args.words[2], args)) if len(words) > 1 else None
        return _query(session, _number(number) if number else None)
    if len(words) > 1:
        raise UsageError(f"%nbext build: unexpected argument {visible(words[1])!r}.")
    given = analysis.segment(session, args, args.words[1])
    if not isinstance(given, str):
        return given
    if given.startswith("sg_"):
        (row,) = session.connected().segment(given).to_dict("records")
        return {name: row[name] for name in ("operator", "filters", "limit")}
    return saved_query(session.data_dir, given)


def _query(session: Session, number: int | None) -> dict[str, Any]:
    """Return what a builder opens of a query of the history, or of the last one."""
    done = session.history.number(number).query
    return {"operator": done.operator, "filters": done.filters, "limit": done.limit}


def _examples(session: Session, args: Args, words: list[str]) -> None:
    print(
        examples.copied(words[0] if words else examples.FOLDER, overwrite=bool(args["overwrite"]))
    )


# Each command, and how many words may follow it; None where the command has its own words for too many.
_COMMANDS: dict[str, tuple[Callable[[Session, Args, list[str]], Any], int | None]] = {
    "status": (_status, 0),
    "connect": (_connect, None),
    "login": (_login, None),
    "logout": (lambda session, args, words: session.log_out(), 0),
    "set": (_set, None),
    "unset": (_unset, None),
    "config": (_config, 0),
    "history": (_history, 1),
    "save": (_save, 2),
    "schema": (_schema, 1),
    "last-answer": (_last_answer, 0),
    # All words are the term, as in any search box: nobody quotes there.
    "search": (
        lambda session, args, words: forms().search_form(
            " ".join(words), client=session.connected()
        ),
        None,
    ),
    "signup": (lambda session, args, words: forms().signup_form(client=session.connected()), 0),
    "build": (_build, 2),
    "overlap": (analysis.overlap, None),
    "funnel": (analysis.of_one, 1),
    "concentration": (analysis.of_one, 1),
    "trend": (analysis.of_one, 1),
    "retention": (analysis.of_one, 1),
    "wallet": (analysis.wallet, None),
    "fetch": (fetch.run, None),
    "examples": (_examples, 1),
    "help": (lambda session, args, words: print(grammars.NBEXT.help()), None),
}


def set_setting(session: Session, name: str, value: Any) -> None:
    """Set a setting for this session; ``remote.paths.rows`` is one entry of a setting that is a table.

    A `ConfigError` leaves what was set before.
    """
    name, *rest = name.split(".")
    setting, path = setting_named(name), tuple(rest)
    if setting.kind is dict and isinstance(value, str) and not path:
        # The name of a profile, beside what else is set.
        path = ("profile",)
    if path:
        if setting.kind is not dict:
            raise ConfigError(f"{name} is a single value: it has no entry {'.'.join(path)!r}.")
        entries = _entries(session.settings[name])
        value = _as_table(
            {key: old for key, old in entries.items() if key[: len(path)] != path} | {path: value}
        )
    read = setting.read(value, "argument")
    # Checked here, because the next call would fail far from the line that is wrong.
    if name == "base_url" and read:
        check_address(read, insecure=session.settings["insecure"])
    elif name == "remote":
        from nbext.client.service import check_remote

        check_remote(read)
    session.settings.set(name, value)
    if name in _OF_THE_CONNECTION:
        session.disconnect()


def unset_setting(session: Session, name: str) -> None:
    """Remove a setting, or one entry of it, from this session: files, environment and defaults apply again."""
    name, *rest = name.split(".")
    setting, path = setting_named(name), tuple(rest)
    here = session.settings.arguments.get(name)
    entries = _entries(here) if setting.kind is dict and here else {}
    gone = [key for key in entries if key[: len(path)] == path]
    if path and not gone:
        place, known = ".".join([name, *path]), [".".join([name, *key]) for key in entries]
        others = f"Set here: {', '.join(known)}." if known else f"No entry of {name} is set."
        raise ConfigError(
            f"{place} is not set in this session.{did_you_mean(place, known)} {others}"
        )
    session.settings.unset(name)
    if path:
        below = _entries(session.settings[name])
        left = {key: value for key, value in entries.items() if key not in gone}
        left |= {key: value for key, value in below.items() if key[: len(path)] == path}
        # What equals the file's own table need not be set here: the file's next change then takes effect.
        if left != below:
            session.settings.set(name, _as_table(left))
    if name in _OF_THE_CONNECTION:
        session.disconnect()


def _entries(table: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """Return the values of a table of tables by their paths: easier to add to and to take from than the nesting."""
    found: dict[tuple[str, ...], Any] = {}
    for name, value in table.items():
        inner = _entries(value) if isinstance(value, Mapping) else {(): value}
        found |= {(name, *path): each for path, each in inner.items()}
    return found


def _as_table(entries: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
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


def _table(rows: list[dict[str, Any]], columns: list[str] | None = None) -> pd.DataFrame:
    """Return rows as a table that is displayed as a service's are: nothing in it hides or runs."""
    import pandas as pd

    # The mark by which the display knows it: saved filters may contain names from a chain.
    return Provenance().attach(pd.DataFrame(rows, columns=columns))


def _number(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(
            f"%nbext: {visible(text)!r} is not the number of a query. `%nbext history` lists them."
        )
    return int(text)


def _versions() -> str:
    # From the metadata: importing these packages takes seconds.
    found = [f"nbext {__version__}", f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
