"""``%nbext``: its commands, each with its words, options, help and examples, and the registry of all of them."""

from __future__ import annotations

import argparse
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NoReturn

from nbext import __version__
from nbext.agents import history as agents
from nbext.cli import COMMANDS as SHELL
from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import visible
from nbext.errors import ApiError, TransportError, UsageError, did_you_mean
from nbext.fetch import Output
from nbext.fetch import command as shell_fetch
from nbext.fetch.command import URL_VARIABLE, check_installed, urls_of
from nbext.notebook import schema
from nbext.notebook.line import KEY_REFUSED, Args, Command, Grammar, Option, Word, value_of
from nbext.notebook.results.deliver import OUT, forms, own_table, put
from nbext.notebook.run import analysis, metadata, query, settings
from nbext.notebook.session import (
    HISTORY_COLUMNS,
    chains_in_words,
    data_in_words,
    save_query,
    saved_query,
)
from nbext.settings import could_be_url

if TYPE_CHECKING:
    from nbext.notebook.session import Session

_PACKAGES = ("ipython", "ipywidgets", "pandas", "pyarrow", "duckdb")
_EXPANDED = re.compile(r"\{([^{}:\"]*)\}|\$([A-Za-z_]\w*)")
# Taken for commands by who looks for them here.
_ASKED_OF_A_SEGMENT = {
    "changes": '%segment {"nft": {"nft": "BAYC"}} --changes 30d, or nbext.changes("BAYC", "30d") in Python.',
    "profile": '%segment {"nft": {"nft": "BAYC"}} --profile, or nbext.profile("BAYC", base=..., least=...) in Python.',
}
_URL_REFUSED = (
    f"Do not write a node's URL in a cell: it holds your key, and the notebook would store it. Set {URL_VARIABLE} "
    f"before you start Jupyter, or store it in the system's keyring: `keyring set nbext {URL_VARIABLE}`."
)
# What a newcomer tries, in this order: each line runs as it is, on the sample.
TOUR = (
    ("what a contract is", "%token ethereum USDC UNI"),
    (
        "who holds it, as a table in `whales`",
        '%segment {"token": {"token": "UNI", "balance": {"min": "1000"}}} -o whales',
    ),
    ("what they hold more than others do", "%segment {{whales}} --profile"),
    ("the same question in a form, without JSON", "%nbext build whales"),
    ("notebooks to go on with, from an audience to your own data", "%nbext examples"),
)


@Command(
    "status",
    "",
    "print which service answers, its data and last blocks, and the versions",
    examples=("%nbext status",),
)
def _status(session: Session, args: Args) -> None:
    # Not announced: these lines say the same, and more.
    client = session.client or session.connect(announce=False)
    own, ours = "not nbext's own", True
    try:
        ours = client.is_ours
        if ours:
            # Also where nothing else was asked since an ingest.
            session.connected()
            session.ask_about(client)
    except ApiError as error:
        own = str(error).rstrip(".")
    except TransportError:
        own = "no answer"
    about = session.about or {}
    data = about.get("data") or {}
    if about:
        own = f"nbext {visible(about.get('version'))}"
    # Why it may be incomplete is said of a table of this service alone.
    last = session.history.last
    # From the metadata: importing these packages takes seconds.
    versions = [f"nbext {__version__}", f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    lines = {
        "service": f"{client.base_url} ({own})",
        "key": session.key_source,
        "engine": visible(about.get("engine")) if about else "not known",
        "data": data_in_words(data) if about else "not known",
        "chains": chains_in_words(data) if about else "not known",
        "as of": session.settings["as_of"],
        "answers": f"read by the profile {client.profile}" if client.profile != "none" else "",
        "settings": "" if ours else "; ".join(settings.remote_lines(session)),
        "last rows": "" if ours or last.service != client.base_url else " ".join(last.notes()),
        "versions": ", ".join(versions),
    }
    print("\n".join(f"{name:<10}{value}" for name, value in lines.items() if value))


@Command(
    "connect",
    "[URL]",
    "connect to a service, or again to the one that is set; rereads pyproject.toml",
    examples=("%nbext connect",),
)
def _connect(session: Session, args: Args, *words: str) -> None:
    if len(words) > 1:
        raise UsageError(f"%nbext connect takes only a URL. {KEY_REFUSED}")
    session.connect(*words)


@Command(
    "login",
    "[--keep]",
    "type the key of a remote service at a prompt; --keep stores it in the keyring",
    (Option("--keep", "store the key in the system's keyring"),),
    elsewhere=("%nbext login --keep",),
)
def _login(session: Session, args: Args, *words: str) -> None:
    if words:
        raise UsageError(f"%nbext login takes no key. {KEY_REFUSED}")
    session.log_in(keep=bool(args["keep"]))


@Command(
    "logout",
    "",
    "remove the key from this session and from the keyring",
    elsewhere=("%nbext logout",),
)
def _logout(session: Session, args: Args) -> None:
    session.log_out()


@Command(
    "history",
    "[N]",
    "list this session's queries, on a --card to edit them; with a number, run that one again",
    (
        Option("--card", "each query on a line, with a button that opens it in the builder"),
        agents.OPTION,
        OUT,
    ),
    (
        '%segment {"token": {"token": "UNI"}} -o uni',
        "%nbext save holders",
        '%nbext history -o asked\nasked[["number", "filters", "matched"]]',
        "%nbext history 1 -o again",
        "%nbext history --card",
        "%nbext history --agent",
    ),
)
def _history(session: Session, args: Args, number: str | None = None) -> Any:
    if args["agent"]:
        return agents.questions(session, args, _number(number))
    if number is not None:
        # With this line's options: `%nbext history 2 -o again` stores the new result.
        return query.run_query(session, session.history.number(_number(number)).query, args)
    import pandas as pd

    rows = session.history.rows()
    table = own_table(rows, HISTORY_COLUMNS)
    # Of another service a number may be missing, and the others stay whole: a column of both would be of floats.
    for name in ("matched", "returned", "block"):
        table[name] = pd.array([row[name] for row in rows], dtype="Int64")
    if args["card"]:
        put(session, args, table)
        from nbext.notebook.forms.card import HistoryCard

        return HistoryCard(
            session.connected(), [(one, _request(session, one["number"])) for one in rows]
        )
    if rows:
        last = rows[-1]["number"]
        print(
            f"`%nbext history {last}` runs number {last} again; `%nbext build history {last}` edits it, and "
            "`%nbext history --card` has a button for each."
        )
    return put(session, args, table)


@Command("save", "NAME [N]", "save the last query (or query N) for `%%segment_query --from NAME`")
def _save(session: Session, args: Args, name: str | None = None, number: str | None = None) -> None:
    if name is None:
        raise UsageError("%nbext save: a name is missing. Example: %nbext save whales")
    done = session.history.number(_number(number))
    save_query(session.data_dir, name, done.query)
    print(f"saved query {done.number} as {name}; `%%segment_query --from {name}` runs it")


@Command(
    "schema",
    "[CONDITION]",
    "list the conditions of the segment language, or the fields of one",
    (OUT,),
    ('%nbext schema activity -o fields\nfields["field"].tolist()',),
    completes=lambda session, done, typed: schema.keys_in_words(
        session.vocabulary.schema or {}, ["filters"]
    ),
)
def _schema(session: Session, args: Args, condition: str | None = None) -> Any:
    client = session.connected()
    published = client.schema() if client.is_ours else None
    if published is None:
        raise UsageError("%nbext schema: this service publishes no schema of its filters.")
    table = own_table(schema.rows(published, condition))
    # Sentences to read: cut at 50 characters, as pandas displays them, they say nothing.
    return put(session, args, Provenance(whole=True).attach(table))


@Command(
    "last-answer",
    "[--values]",
    "print a remote's last answer in outline, and the settings that read it otherwise",
    (Option("--values", "show one short value of each field"),),
    elsewhere=("%nbext last-answer --values",),
)
def _last_answer(session: Session, args: Args) -> None:
    # A changed setting drops the client, and what it remembered is still what there is to say.
    outline = (session.client and session.client.outline) or session.outline
    if outline is None:
        why = (
            "the answers of nbext's own service have one reading"
            if session.client and session.about
            else "no remote service has answered yet"
        )
        raise UsageError(f"%nbext last-answer: {why}.")
    print(outline.text(values=bool(args["values"])))


@Command(
    "search",
    "[TERM]",
    "open a form that searches collections and tokens",
    examples=("%nbext search ape",),
)
def _search(session: Session, args: Args, *words: str) -> Any:
    # All words are the term, as in any search box: nobody quotes there.
    return forms().search_form(" ".join(words), client=session.connected())


@Command("signup", "", "open a form that signs up for the newsletter", examples=("%nbext signup",))
def _signup(session: Session, args: Args) -> Any:
    return forms().signup_form(client=session.connected())


@Command(
    "build",
    "[SEGMENT]",
    "open a form that builds a segment: anew, or of a table, an id, `history N` or {filters}",
    examples=("%nbext build uni",),
    reads_words=True,
)
def _build(
    session: Session, args: Args, word: Word | None = None, number: Word | None = None
) -> Any:
    given: Any = None
    if word is not None and word.text == "history":
        given = _request(session, _number(str(value_of(number, args)) if number else None))
    elif number is not None:
        raise UsageError(f"%nbext build: unexpected argument {visible(number.text)!r}.")
    elif word is not None:
        given = analysis.segment_named(session, args, word)
    if isinstance(given, str) and given.startswith("sg_"):
        given = session.connected().segment(given)
    elif isinstance(given, str):
        given = saved_query(session.data_dir, given)
    return forms().segment_form(given, client=session.connected())


def _request(session: Session, number: int | None) -> dict[str, Any]:
    """Return what a builder opens of a query of the history, or of the last one."""
    done = session.history.number(number).query
    return {"operator": done.operator, "filters": done.filters, "limit": done.limit}


def _number(text: str | None) -> int | None:
    if text is not None and not text.isdecimal():
        raise UsageError(
            f"%nbext: {visible(text)!r} is not the number of a query. `%nbext history` lists them."
        )
    return None if text is None else int(text)


class _ShellParser(argparse.ArgumentParser):
    """The parser of a command that the shell has, too."""

    def error(self, message: str) -> NoReturn:
        # argparse would end the process.
        raise UsageError(f"{self.prog}: {message}. `{self.prog} --help` lists the options.")

    def flags(self) -> dict[str, str]:
        """Return the options of the command, and what completion says of each."""
        found = {flag: one.help for one in self._actions for flag in one.option_strings}
        return {
            flag: schema.help_line("option", words or "") for flag, words in sorted(found.items())
        }

    def asks_for_help(self, words: Sequence[str]) -> bool:
        """Print the command's help where a line asks for it, or lacks what it must have."""
        wanted = any(one.required for one in self._actions) and not words
        if wanted or {"-h", "--help"} & set(words):
            print(self.format_help())
            return True
        return False


def _parser(name: str, **options: Any) -> _ShellParser:
    made = _ShellParser(prog=f"%nbext {name}", add_help=False, allow_abbrev=False)
    resolve_name(SHELL[name][0]).add_arguments(made, **options)
    return made


def _of_the_shell(name: str, usage: str, example: str) -> Command:
    """Return a command of the shell as one of ``%nbext``: the notebook's data folder is what it works on."""
    place, line = SHELL[name]

    def run(session: Session, args: Args, *words: str) -> None:
        parser = _parser(name)
        if not parser.asks_for_help(words):
            resolve_name(place).run(parser.parse_args(words))

    return Command(name, usage, line, elsewhere=(example,), own=lambda: _parser(name).flags())(run)


@Command(
    "fetch",
    "--contract UNI ...",
    "fetch transfers from a node, and serve them: `%nbext fetch --help`",
    elsewhere=("%nbext fetch --contract UNI",),
    own=lambda: _parser("fetch", on_a_terminal=False).flags(),
)
def _fetch(session: Session, args: Args, *words: str) -> None:
    # Before anything else: an error about a word would repeat it.
    if any(word.startswith("--rpc") or could_be_url(word) for word in words):
        raise UsageError(f"%nbext fetch: {_URL_REFUSED}")
    parser = _parser("fetch", on_a_terminal=False)
    if parser.asks_for_help(words):
        return
    check_installed()
    from nbext.fetch.run import fetch

    request, folder = shell_fetch.request_of(parser.parse_args(words))
    if request.follow:
        _print_now(
            "--follow holds this kernel until you interrupt it. `nbext fetch --follow` in a terminal leaves it free, "
            "and its cells see each new block."
        )
    with session.bar("fetch") as bar:
        fetch(urls_of(), request, folder or session.data_dir, Output(_print_now, bar.at))


# At once: the next line may be minutes away.
_print_now = partial(print, flush=True)


@Command("help", "", "print this help", examples=("%nbext help", "%nbext --help"))
def _help(session: Session, args: Args, *words: str) -> None:
    # All of it, whatever command is named: it has each on a line.
    print(NBEXT.help())


# In the order of the help.
COMMANDS = {
    command.magic.split()[1]: command
    for command in (
        *(_status, _connect, _login, _logout),
        *settings.COMMANDS,
        *(_history, _save, _schema, _last_answer, _search, _signup, _build),
        *analysis.COMMANDS,
        _fetch,
        _of_the_shell("ingest", "FILE...", "%nbext ingest transfers.csv --chain ethereum"),
        _of_the_shell("sources", "", "%nbext sources"),
        _of_the_shell("remove", "FILE|--all", "%nbext remove --all"),
        *agents.COMMANDS,
        _of_the_shell("payout", "verify FOLDER", "%nbext payout verify payout"),
        _of_the_shell("examples", "[FOLDER]", "%nbext examples"),
        _help,
    )
}


def run_command(session: Session, args: Args) -> Any:
    """Run the command that the line names; print the help where it names none."""
    command = args.grammar
    if not isinstance(command, Command):
        if not args.words:
            print(NBEXT.help())
            return None
        name = args.words[0].text
        if name in _ASKED_OF_A_SEGMENT:
            raise args.error(f"{name} is an option of a segment: {_ASKED_OF_A_SEGMENT[name]}")
        raise args.error(
            f"unknown command {visible(name)!r}.{did_you_mean(name, COMMANDS)} Allowed: {', '.join(COMMANDS)}."
        )
    for word in args.words:
        # As IPython's own magics would expand it.
        if word.kind != "quoted" and (found := _EXPANDED.fullmatch(word.text)):
            raise args.error(
                f"write a Python value as {{{{{found[1] or found[2]}}}}}, not as {visible(word.text)}."
            )
    # Commas between words are a habit from lists.
    given = [
        replace(one, text=one.text.rstrip(",")) if one.kind == "word" else one for one in args.words
    ]
    words = given if command.reads_words else [str(value_of(one, args)) for one in args.words]
    if command.most is not None and len(words) > command.most:
        surplus = visible(args.words[command.most].text)
        raise args.error(f"unexpected argument {surplus!r}. Usage: {command.usage}")
    return command.run(session, args, *words)


def _notes() -> str:
    steps = (f"  {number}. {what}:\n       {line}" for number, (what, line) in enumerate(TOUR, 1))
    width = max(len(one.usage) for one in COMMANDS.values()) + 2
    return "\n".join(
        (
            "Five things to try, in this order:",
            *steps,
            "\nCommands:",
            *(f"  {one.usage:<{width}}{one.purpose}" for one in COMMANDS.values()),
            "\nMagics: %token CHAIN ADDRESS..., %nft CHAIN ADDRESS..., %nft search TERM, %segment ID, %%segment_query.",
            "`%token?` and the like show the options and examples of each, `%nbext overlap --help` those of a command.",
        )
    )


def _completes(session: Session, done: list[str], typed: str) -> Mapping[str, str]:
    names = {} if done else COMMANDS
    return {name: schema.help_line("command", one.purpose) for name, one in names.items()}


NBEXT = Grammar(
    "%nbext",
    "%nbext COMMAND",
    "Show and change the connection and the settings, and open forms.",
    examples=("%nbext status", "%nbext schema token", "%nbext overlap BAYC MAYC AZUKI --share"),
    notes=_notes(),
    # What was typed in the wrong place could be a key.
    echo=False,
    completes=_completes,
    commands=COMMANDS,
)
# Each magic's grammar, and the function that it runs.
MAGICS = {
    grammar.magic.lstrip("%"): (grammar, function)
    for grammar, function in (
        (query.SEGMENT_QUERY, query.run_cell),
        (query.SEGMENT, query.run_line),
        (metadata.TOKEN, metadata.read_or_search),
        (metadata.NFT, metadata.read_or_search),
        (NBEXT, run_command),
    )
}
