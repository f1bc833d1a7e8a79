"""A magic's line: its words (quotes, inline JSON, ``{{python}}``, comments), and the one grammar of options for all."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from types import MappingProxyType
from typing import Any, Literal

from nbext.core.uint256 import ungrouped, whole_of
from nbext.errors import UsageError, did_you_mean
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
# On Windows a backslash is part of a path, as in IPython's own magics.
_PIECE = re.compile(
    r"""'[^']*'|"[^"]*"|[^\s'"](?:(?!\{\{)[^\s'"])*"""
    if _WINDOWS
    else r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\](?:(?!\{\{)[^\s'"\\])*"""
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
    """One option: its flags, one line of help, and the kind of its value."""

    flags: tuple[str, ...]
    help: str
    # Of a moment, digits are a block.
    kind: Literal["flag", "text", "integer", "moment"] = "flag"
    metavar: str = ""
    choices: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        """The longest flag, as a Python name: ``--dry-run`` is ``dry_run``."""
        return max(self.flags, key=len).lstrip("-").replace("-", "_")

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
HELP = Option(("--help", "-h"), "show this help")


@dataclass(frozen=True)
class Grammar:
    """The words and options of one magic. ``echo`` False leaves the line out of errors: it may contain a secret.

    ``own`` are first words after which every word is that command's: no option of the magic stands there.
    ``completes`` returns what the next word may be, from those before it and what is typed of it.
    """

    magic: str
    purpose: str
    usage: str
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    notes: str = ""
    echo: bool = True
    own: Mapping[str, Callable[[], Mapping[str, str]]] = field(default_factory=dict)
    completes: Completes = lambda session, done, typed: {}

    # Cached: every line of every cell looks its flags up here.
    @cached_property
    def flags(self) -> dict[str, Option]:
        """Each flag and its option."""
        return {flag: option for option in (*self.options, HELP) for flag in option.flags}

    def help(self) -> str:
        """Return purpose, options and examples, as ``?`` and ``--help`` show them."""
        width = max(len(option.spelling) for option in (*self.options, HELP)) + 2
        parts = [self.purpose, f"Usage: {self.usage}"]
        parts += [self.notes] if self.notes else []
        rows = [f"  {option.spelling:<{width}}{option.help}" for option in (*self.options, HELP)]
        parts.append("Options:\n" + "\n".join(rows))
        if self.examples:
            shown = (
                "\n".join("  " + line for line in example.splitlines()) for example in self.examples
            )
            parts.append("Examples:\n\n" + "\n\n".join(shown))
        return "\n\n".join(parts) + "\n"

    def parse(self, line: str, names: Mapping[str, Any] = MappingProxyType({})) -> Args:
        """Read a line into words and options; `UsageError` for an option that is unknown or has a wrong value."""
        args = Args(self, line, names=names)
        words = split_line(line, self.magic)
        own = bool(words) and words[0].text in self.own
        # Wherever it stands: who asks for help may have written the rest wrong.
        if not own and any(one.kind == "word" and one.text in HELP.flags for one in words):
            words = [one for one in words[:1] if not one.text.startswith("-")]
            args.options["help"] = True
        rest = iter(words)
        for word in rest:
            # First of all, so that no other error repeats what may be a key.
            if word.kind == "word" and _KEY.match(word.text):
                raise UsageError(f"{self.magic}: {KEY_REFUSED}")
            if own:
                args.words.append(word)
            elif word.kind == "word" and word.text == "--":
                args.words.extend(rest)
            # A negative number is a word and no option.
            elif word.kind == "word" and re.match(r"-[^\d.]", word.text):
                self._take_option(args, word, rest)
            else:
                args.words.append(word)
        return args

    def _take_option(self, args: Args, word: Word, rest: Iterator[Word]) -> None:
        flag, equals, value = word.text.partition("=")
        option = self.flags.get(flag)
        if option is None:
            raise args.error(f"unknown option {flag!r}.{self._nearest(flag)}", word)
        if option.name in args.options:
            raise args.error(f"{flag} is given twice.", word)
        if option.kind == "flag":
            if equals:
                raise args.error(f"{flag} takes no value.", word)
            args.options[option.name] = True
            return
        given = Word(value, word.column + len(flag) + 1) if equals else next(rest, None)
        # A flag is never a value: `--limit --dry-run` lacks a number, and must not run.
        if given is None or (given.kind == "word" and given.text in self.flags):
            raise args.error(f"{flag} needs a value: {option.spelling}.", word)
        args.columns[option.name] = given.column
        # The value of an expression is known only when the line runs: `settle` reads it then.
        is_known = given.kind != "python" and "{{" not in given.text
        args.options[option.name] = self._value(args, option, flag, given) if is_known else given

    def settle(self, args: Args) -> None:
        """Read the options whose values are expressions as if those values had been written."""
        for name, given in args.options.items():
            if isinstance(given, Word):
                option = next(option for option in self.options if option.name == name)
                text = _text(given, args)
                args.options[name] = self._value(
                    args, option, option.flags[0], Word(text, given.column, "quoted")
                )

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
        # In any case: SQL's habit writes `or` for OR.
        for choice in option.choices:
            if choice.lower() == given.text.lower():
                return choice
        near = did_you_mean(given.text, option.choices)
        raise args.error(
            f"{flag} takes {' or '.join(option.choices)}, not {given.text!r}.{near}", given
        )


@dataclass(frozen=True)
class Command:
    """A command of ``%nbext``, as a decorator of the function that runs it.

    ``usage`` has its words, ``examples`` cells that run over the sample, and ``elsewhere`` those that need a key,
    another service or a node. ``run`` is called with the session, the line and each word after the name: as text, or
    where the command ``reads_words`` itself, because they may be tables, as `Word`. ``flags`` are those of a command
    whose words are all its own.
    """

    name: str
    usage: str
    help: str
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    completes: Completes = lambda session, done, typed: {}
    reads_words: bool = False
    flags: Callable[[], Mapping[str, str]] | None = None
    # The decorated function.
    run: Callable[..., Any] = print

    def __call__(self, run: Callable[..., Any]) -> Command:
        """Return the command that a function runs."""
        return replace(self, run=run)

    @property
    def most(self) -> int | None:
        """How many words the function takes; None where it has its own words for too many."""
        words = list(signature(self.run).parameters.values())[2:]
        return None if any(one.kind is one.VAR_POSITIONAL for one in words) else len(words)


def value_of(word: Word, args: Args) -> Any:
    """Return the JSON value of a word's expression; the text of any other word, with its expressions' values."""
    if word.kind == "python":
        return evaluated(word.text, args.line, word.column, args.names)
    return _interpolated(word, args) if word.kind == "word" else word.text


def _text(word: Word, args: Args, source: str | None = None) -> str:
    """Return a word with the values of its expressions, or the value of one expression: no list or object."""
    if source is None and word.kind != "python":
        return _interpolated(word, args)
    value = evaluated(source or word.text, args.line, word.column, args.names)
    if isinstance(value, list | dict):
        kind = "a list" if isinstance(value, list) else "an object"
        raise args.error(f"{{{{{source or word.text}}}}} is {kind}, where one value belongs.", word)
    return str(value)


def _interpolated(word: Word, args: Args) -> str:
    """Return a word in which each ``{{expression}}`` is its value: ``out_{{token}}.parquet``."""
    pieces, end = [], 0
    while (start := word.text.find("{{", end)) >= 0:
        close = end_of_expression(word.text, start)
        if close is None:
            message = f"{{{{ in {word.text!r} does not begin a Python expression that ends in }}}}."
            raise args.error(message)
        source = word.text[start + 2 : close - 2].strip()
        pieces += [word.text[end:start], _text(word, args, source)]
        end = close
    return "".join([*pieces, word.text[end:]])


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
    text, plain, end = "", start, start
    while end < len(line) and not line[end].isspace():
        # The quotes and the spaces of an expression are Python's.
        if line.startswith("{{", end) and (close := end_of_expression(line, end)):
            text, plain, end = text + _unquoted(line[plain:end]) + line[end:close], close, close
            continue
        piece = _PIECE.match(line, end)
        if piece is None and line[end] != "\\":
            raise UsageError(_unclosed(line, end, magic, line[end], line[end]))
        # A backslash that nothing follows is a character like others.
        end = piece.end() if piece else end + 1
    kind: Literal["word", "quoted"] = "quoted" if line[start] in "'\"" else "word"
    return Word(text + _unquoted(line[plain:end]), start, kind), end


def _unquoted(raw: str) -> str:
    """Return a part of one word without its quotes and escapes."""
    lexer = shlex.shlex(raw, posix=True)
    # One word is given, so nothing in it separates words or begins a comment.
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = "", True, ""
    if _WINDOWS or raw.endswith("\\"):
        lexer.escape = ""
    return lexer.get_token() or ""


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
