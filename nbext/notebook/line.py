"""A magic's line: its words (quotes, inline JSON, ``{{python}}``, comments), and the one grammar of options for all."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from textwrap import indent
from types import MappingProxyType
from typing import Any, Literal

from nbext.core.rules import one_of
from nbext.core.uint256 import ungrouped, whole_of
from nbext.errors import UsageError, ValidationError
from nbext.notebook.cell.body import evaluated
from nbext.notebook.cell.json_source import end_of_expression, excerpt, tokens

# Any spelling that people use for a key, with or without dashes and a value.
_KEY = re.compile(
    r"(-{1,2}(x-)?(api[-_]?key|key|password|secret)(=|\Z)|(x-)?(api[-_]?)?key=)", re.IGNORECASE
)
KEY_REFUSED = (
    "Do not write a key in a cell: the notebook and its history would store it. "
    "Set NBEXT_API_KEY before you start Jupyter, or run `%nbext login` and type the key at the prompt."
)
# What people write for an option of a query, and what to write.
_CHANGES = '--changes TIME returns who joined and left since then; "heldSince" and "after" are fields of conditions'
_MEANT = {
    **dict.fromkeys(
        ("sort", "sort-by", "order", "order-by", "orderby", "desc"), "Use --top N --by COLUMN"
    ),
    **dict.fromkeys(("since", "held-since", "heldsince", "after", "from-date"), _CHANGES),
}
_WINDOWS = os.name == "nt"
# In single quotes, in double quotes, behind a backslash, or plain. On Windows a backslash is part of a path, as in
# IPython's own magics.
_PIECE = re.compile(
    r"""'([^']*)'|"([^"]*)"|([^\s'"](?:(?!\{\{)[^\s'"])*)"""
    if _WINDOWS
    else r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)|([^\s'"\\](?:(?!\{\{)[^\s'"\\])*)"""
)


@dataclass(frozen=True)
class Word:
    """One word of a line: its text without quotes, where it starts, and what it is.

    ``quoted`` words are never options or variables; ``json`` is an inline object; ``python`` an expression.
    """

    text: str
    column: int
    kind: Literal["word", "quoted", "json", "python"] = "word"


@dataclass(frozen=True)
class Option:
    """One option: its flag, one line of help, the kind of its value, and a ``short`` flag where it has one."""

    flag: str
    help: str
    # Of a moment, digits are a block.
    kind: Literal["flag", "text", "integer", "moment"] = "flag"
    metavar: str = ""
    choices: tuple[str, ...] = ()
    short: str = ""

    @cached_property
    def name(self) -> str:
        """The flag, as a Python name: ``--dry-run`` is ``dry_run``."""
        return self.flag[2:].replace("-", "_")

    @property
    def flags(self) -> list[str]:
        """The flag, and the short one."""
        return [self.flag, self.short] if self.short else [self.flag]

    @property
    def spelling(self) -> str:
        """The flags and their value, as help shows them."""
        wanted = self.metavar or "|".join(self.choices)
        return ", ".join(self.flags) + (f" {wanted}" if wanted else "")


@dataclass
class Args:
    """A parsed line: its words in order, and the options that were given with the column of each value.

    ``names`` are the variables that expressions may use, where the magic was called; ``cell`` the lines below it.
    """

    grammar: Grammar
    line: str
    words: list[Word] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)
    cell: str | None = None

    def __getitem__(self, name: str) -> Any:
        return self.options.get(name)

    def given(self, *names: str) -> list[str]:
        """Return the flags of those of some options that the line has."""
        return [f"--{name.replace('_', '-')}" for name in names if self[name] is not None]

    def error(self, message: str, word: Word | None = None) -> UsageError:
        """Return the error of the line, with a caret under the word that is at fault."""
        magic = self.grammar.magic
        text = f"{magic}: {message}"
        if word is not None and self.grammar.echo:
            text += "\n" + excerpt(self.line, word.column, magic + " ")
        return UsageError(text)


# Of the session, which knows the words to offer, and what to say of each: a grammar does not.
Completes = Callable[[Any, list[str], str], Mapping[str, str]]
HELP = Option("--help", "show this help", short="-h")


@dataclass(frozen=True)
class Grammar:
    """The words and options of one magic, or of one of its ``commands``, whose name goes before all words.

    ``echo`` False leaves the line out of errors: it may contain a secret.
    ``own`` says that somebody else reads the options, so that all words are taken as they are; it returns what
    completion says of each. ``completes`` returns what the next word may be, from those before it and what is typed
    of it.
    """

    magic: str
    usage: str
    purpose: str
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    notes: str = ""
    echo: bool = True
    own: Callable[[], Mapping[str, str]] | None = None
    completes: Completes = lambda session, done, typed: {}
    commands: Mapping[str, Command] = field(default_factory=dict)

    # Cached: every line of every cell looks its flags up here.
    @cached_property
    def flags(self) -> dict[str, Option]:
        """Each flag and its option."""
        return {flag: option for option in (*self.options, HELP) for flag in option.flags}

    def help(self) -> str:
        """Return purpose, options and examples, as ``?`` and ``--help`` show them."""
        width = max(len(option.spelling) for option in (*self.options, HELP)) + 2
        rows = [f"  {option.spelling:<{width}}{option.help}" for option in (*self.options, HELP)]
        options = "\n".join(["Options:", *rows])
        examples = ["Examples:", *(indent(one, "  ") for one in self.examples)]
        parts = [self.purpose, f"Usage: {self.usage}", self.notes, options]
        parts += examples if self.examples else []
        return "\n\n".join(filter(None, parts)) + "\n"

    def parse(self, line: str, names: Mapping[str, Any] = MappingProxyType({})) -> Args:
        """Read a line into words and options; `UsageError` for an option that is unknown or has a wrong value."""
        words = split_line(line, self.magic)
        place = self.command_at([word.text for word in words])
        grammar = self if place is None else self.commands[words.pop(place).text]
        return grammar._parsed(Args(grammar, line, names=names), words, self)

    def command_at(self, words: Sequence[str]) -> int | None:
        """Return which word names a command: the first; after an option, the first one that is a command's name."""
        named = [place for place, word in enumerate(words) if word in self.commands]
        return named[0] if named and (named[0] == 0 or words[0].startswith("-")) else None

    def _parsed(self, args: Args, words: list[Word], above: Grammar) -> Args:
        # Wherever it stands: who asks for help may have written the rest wrong.
        if not self.own and any(one.kind == "word" and one.text in HELP.flags for one in words):
            args.options["help"] = True
            return args
        # First of all, so that no other error repeats what may be a key.
        if any(one.kind == "word" and _KEY.match(one.text) for one in words):
            raise UsageError(f"{self.magic}: {KEY_REFUSED}")
        rest = iter(words)
        for word in rest:
            # Nor is an option looked up where no command of that name is.
            if self.own or self.commands:
                args.words.append(word)
            elif word.kind == "word" and word.text == "--":
                args.words.extend(rest)
            # A negative number is a word and no option.
            elif word.kind == "word" and re.match(r"-[^\d.]", word.text):
                flag, equals, value = word.text.partition("=")
                option = self.flags.get(flag)
                if option is None:
                    takers = [name for name, one in above.commands.items() if flag in one.flags]
                    hint = f" It is for {', '.join(takers)}." if takers else self._nearest(flag)
                    raise args.error(f"unknown option {flag!r}.{hint}", word)
                if option.name in args.options:
                    raise args.error(f"{flag} is given twice.", word)
                if option.kind == "flag":
                    if equals:
                        raise args.error(f"{flag} takes no value.", word)
                    args.options[option.name] = True
                    continue
                given = Word(value, word.column + len(flag) + 1) if equals else next(rest, None)
                # A flag is never a value: `--limit --dry-run` lacks a number, and must not run.
                if given is None or (given.kind == "word" and given.text in self.flags):
                    raise args.error(f"{flag} needs a value: {option.spelling}.", word)
                args.columns[option.name] = given.column
                known = Word(_text(given, args), given.column, "quoted")
                args.options[option.name] = self._value(args, option, flag, known)
            else:
                args.words.append(word)
        return args

    def _nearest(self, flag: str) -> str:
        # Compared without the dashes: they make every flag look like every other.
        bare = {name.lstrip("-"): name for name in self.flags if name.startswith("--")}
        given = flag.lstrip("-").lower()
        if given in _MEANT and "changes" in bare:
            return f" {_MEANT[given]}."
        near = difflib.get_close_matches(given, bare, n=1)
        return (
            f" Did you mean {bare[near[0]]!r}?"
            if near
            else f" Allowed: {', '.join(bare.values())}."
        )

    def _value(self, args: Args, option: Option, flag: str, given: Word) -> Any:
        # 10,000 and 10_000 are how people and Python write it.
        digits = ungrouped(given.text)
        if option.kind == "moment" and (block := whole_of(digits)) is not None:
            return block
        if option.kind == "integer":
            if not re.fullmatch(r"-?[0-9]{1,20}", digits):
                all_rows = (
                    " Use --all for every row."
                    if given.text == "all" and "--all" in self.flags
                    else ""
                )
                raise args.error(
                    f"{flag} takes a whole number, not {given.text!r}.{all_rows}", given
                )
            return int(digits)
        if not option.choices:
            return given.text
        try:
            return one_of(given.text, option.choices, flag)
        except ValidationError as error:
            detail = str(error)
        raise args.error(detail, given)


@dataclass(frozen=True)
class Command(Grammar):
    """A command of ``%nbext``, as a decorator of the function that runs it: begun with its name and its words.

    ``examples`` are cells that run over the sample, and ``elsewhere`` those that need a key, another service or a
    node. ``run`` is called with the session, the line and each word after the name: as text, or where the command
    ``reads_words`` itself, because they may be tables, as `Word`.
    """

    elsewhere: tuple[str, ...] = ()
    reads_words: bool = False
    # The decorated function.
    run: Callable[..., Any] = print

    def __call__(self, run: Callable[..., Any]) -> Command:
        """Return the command that a function runs."""
        magic = f"%nbext {self.magic}"
        # Words of `login`, `connect` and `set` could hold a key that was typed in the wrong place.
        return replace(
            self, magic=magic, usage=f"{magic} {self.usage}".rstrip(), echo=False, run=run
        )

    @property
    def most(self) -> int | None:
        """How many words the function takes; None where it has its own words for too many."""
        words = list(signature(self.run).parameters.values())[2:]
        return None if any(one.kind is one.VAR_POSITIONAL for one in words) else len(words)


def value_of(word: Word, args: Args) -> Any:
    """Return the JSON value of a word's expression; the text of any other word, with its expressions' values."""
    if word.kind == "python":
        return evaluated(word.text, args.line, word.column, args.names)
    return _text(word, args) if word.kind == "word" else word.text


def _text(word: Word, args: Args) -> str:
    """Return a word in which each ``{{expression}}`` is its value, no list or object: ``out_{{token}}.parquet``."""
    text = f"{{{{{word.text}}}}}" if word.kind == "python" else word.text
    pieces, end = [], 0
    while (start := text.find("{{", end)) >= 0:
        close = end_of_expression(text, start)
        if close is None:
            message = f"{{{{ in {text!r} does not begin a Python expression that ends in }}}}."
            raise args.error(message, word)
        source = text[start + 2 : close - 2].strip()
        value = evaluated(source, args.line, word.column, args.names)
        if isinstance(value, list | dict):
            kind = "a list" if isinstance(value, list) else "an object"
            raise args.error(f"{{{{{source}}}}} is {kind}, where one value belongs.", word)
        pieces += [text[end:start], str(value)]
        end = close
    return "".join([*pieces, text[end:]])


def split_line(line: str, magic: str) -> list[Word]:
    """Split a magic's line into words."""
    found: list[Word] = []
    position = 0
    while position < len(line):
        if line[position].isspace():
            position += 1
            continue
        # A comment, as in Python; inside of a word it is a character like others.
        if line[position] == "#":
            break
        word, position = _next_word(line, position, magic)
        found.append(word)
    # A semicolon at the end is a habit from Python and from SQL.
    if found and found[-1].kind == "word" and found[-1].text.endswith(";"):
        last = found.pop()
        found += [Word(last.text[:-1], last.column)] if len(last.text) > 1 else []
    return found


def _next_word(line: str, start: int, magic: str) -> tuple[Word, int]:
    if line.startswith("{{", start):
        if "}}" not in line[start:]:
            raise UsageError(_unclosed(line, start, magic, "{{", "}}"))
        # An expression that is not Python is reported when it is evaluated.
        end = end_of_expression(line, start) or line.index("}}", start) + 2
        # What follows at once belongs to it: {{folder}}/out.csv. Two expressions side by side are two words.
        if line[end : end + 1].strip() in ("", ";") or line.startswith("{{", end):
            return Word(line[start + 2 : end - 2].strip(), start, "python"), end
    if line[start] == "{" and not line.startswith("{{", start):
        end = _end_of_object(line, start)
        return Word(line[start:end], start, "json"), end
    # Pieces in and out of quotes make one word, as in a shell.
    text, end = "", start
    while end < len(line) and not line[end].isspace():
        # The quotes and the spaces of an expression are Python's.
        if line.startswith("{{", end) and (close := end_of_expression(line, end)):
            text, end = text + line[end:close], close
            continue
        piece = _PIECE.match(line, end)
        if piece is None and line[end] != "\\":
            raise UsageError(_unclosed(line, end, magic, line[end], line[end]))
        # A backslash that nothing follows is a character like others.
        plain, end = (piece[piece.lastindex or 0], piece.end()) if piece else (line[end], end + 1)
        # In double quotes a backslash escapes them and itself alone, as in a shell.
        escapes = piece and piece.lastindex == 2 and not _WINDOWS
        text += re.sub(r'\\(["\\])', r"\1", plain) if escapes else plain
    return Word(text, start, "quoted" if line[start] in "'\"" else "word"), end


def _unclosed(line: str, position: int, magic: str, opened: str, wanted: str) -> str:
    return (
        f"{magic}: the {opened} at column {position + 1} of the line is not closed: {wanted} is missing.\n"
        + excerpt(line, position, magic + " ")
    )


def _end_of_object(line: str, start: int) -> int:
    """Return where the object that starts here ends; the line's end where it is not closed."""
    depth = 0
    for token in tokens(line[start:]):
        if token.kind == "mark":
            depth += (token.text in "{[") - (token.text in "}]")
            if depth == 0:
                return start + token.start + 1
    return len(line)
