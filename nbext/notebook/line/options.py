"""A magic's line: its words (quotes, inline JSON, ``{{python}}``, comments), and the one grammar of options for all."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from nbext.errors import UsageError, did_you_mean
from nbext.notebook.cell.body import evaluated
from nbext.notebook.cell.json_source import end_of_expression, excerpt, tokens

# Any spelling that people use for a key, with or without dashes and a value.
_KEY = re.compile(r"(-{1,2}(x-)?(api[-_]?key|key|password|secret)(=|\Z)|(x-)?(api[-_]?)?key=)", re.IGNORECASE)
KEY_REFUSED = (
    "Do not write a key in a cell: the notebook and its history would keep it. "
    "Set NBEXT_API_KEY before you start Jupyter, or run `%nbext login` and type the key at the prompt."
)
_WINDOWS = os.name == "nt"
# On Windows a backslash is part of a path, as in IPython's own magics.
_PIECE = re.compile(r"""'[^']*'|"[^"]*"|[^\s'"]+""" if _WINDOWS else r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\]+""")


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
    """One option: its flags, the kind of its value, and one line of help."""

    flags: tuple[str, ...]
    help: str
    kind: Literal["flag", "text", "integer"] = "flag"
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
    """A parsed line: its words in order, and the options that were given with the column of each value."""

    magic: str
    line: str
    words: list[Word] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.options.get(name)


HELP = Option(("--help", "-h"), "show this help")


@dataclass(frozen=True)
class Grammar:
    """The words and options of one magic. ``echo`` False leaves the line out of errors: it may contain a secret."""

    magic: str
    purpose: str
    usage: str
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    notes: str = ""
    echo: bool = True

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
            shown = ("\n".join("  " + line for line in example.splitlines()) for example in self.examples)
            parts.append("Examples:\n\n" + "\n\n".join(shown))
        return "\n\n".join(parts) + "\n"

    def parse(self, line: str) -> Args:
        """Read a line into words and options; `UsageError` for an option that is unknown or has a wrong value."""
        args = Args(self.magic, line)
        rest = iter(words(line, self.magic))
        for word in rest:
            # First of all, so that no other error repeats what may be a key.
            if word.kind == "word" and _KEY.match(word.text):
                raise UsageError(f"{self.magic}: {KEY_REFUSED}")
            if word.kind == "word" and word.text == "--":
                args.words.extend(rest)
            # A negative number is a word and no option.
            elif word.kind == "word" and re.match(r"-[^\d.]", word.text):
                self._take_option(args, word, rest)
            else:
                args.words.append(word)
        return args

    def error(self, args: Args, message: str, word: Word | None = None) -> UsageError:
        """Return the error of a line, with a caret under the word that is at fault."""
        text = f"{self.magic}: {message}"
        if word is not None and self.echo:
            text += "\n" + excerpt(args.line, word.column, self.magic + " ")
        return UsageError(text)

    def _take_option(self, args: Args, word: Word, rest: Iterator[Word]) -> None:
        flag, equals, value = word.text.partition("=")
        option = self.flags.get(flag)
        if option is None:
            raise self.error(args, f"unknown option {flag!r}.{self._nearest(flag)}", word)
        if option.name in args.options:
            raise self.error(args, f"{flag} is given twice.", word)
        if option.kind == "flag":
            if equals:
                raise self.error(args, f"{flag} takes no value.", word)
            args.options[option.name] = True
            return
        given = Word(value, word.column + len(flag) + 1) if equals else next(rest, None)
        # A flag is never a value: `--limit --dry-run` lacks a number, and must not run.
        if given is None or (given.kind == "word" and given.text in self.flags):
            raise self.error(args, f"{flag} needs a value: {option.spelling}.", word)
        args.columns[option.name] = given.column
        # The value of an expression is known only when the line runs: `settle` reads it then.
        args.options[option.name] = given if given.kind == "python" else self._value(args, option, flag, given)

    def settle(self, args: Args, names: Mapping[str, Any]) -> None:
        """Read the options whose values are expressions as if those values had been written."""
        for name, given in args.options.items():
            if isinstance(given, Word):
                option = next(option for option in self.options if option.name == name)
                text = str(value_of(given, args, names))
                args.options[name] = self._value(args, option, option.flags[0], Word(text, given.column, "quoted"))

    def _nearest(self, flag: str) -> str:
        # Compared without the dashes: they make every flag look like every other.
        bare = {name.lstrip("-"): name for name in self.flags if name.startswith("--")}
        near = difflib.get_close_matches(flag.lstrip("-").lower(), bare, n=1)
        return f" Did you mean {bare[near[0]]!r}?" if near else f" Allowed: {', '.join(bare.values())}."

    def _value(self, args: Args, option: Option, flag: str, given: Word) -> Any:
        if option.kind == "integer":
            # 10,000 and 10_000 are how people and Python write it.
            digits = given.text.replace(",", "").replace("_", "")
            if not re.fullmatch(r"-?[0-9]{1,20}", digits):
                raise self.error(args, f"{flag} takes a whole number, not {given.text!r}.", given)
            return int(digits)
        if not option.choices:
            return given.text
        # In any case: SQL's habit writes `or` for OR.
        for choice in option.choices:
            if choice.lower() == given.text.lower():
                return choice
        near = did_you_mean(given.text, option.choices)
        raise self.error(args, f"{flag} takes {' or '.join(option.choices)}, not {given.text!r}.{near}", given)


def value_of(word: Word, args: Args, names: Mapping[str, Any]) -> Any:
    """Return the JSON value of a word's expression; the text of any other word."""
    return evaluated(word.text, args.line, word.column, names) if word.kind == "python" else word.text


def words(line: str, magic: str) -> list[Word]:
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
        return Word(line[start + 2 : end - 2].strip(), start, "python"), end
    if line[start] == "{":
        end = _end_of_object(line, start)
        return Word(line[start:end], start, "json"), end
    # Pieces in and out of quotes make one word, as in a shell.
    end = start
    while end < len(line) and not line[end].isspace():
        piece = _PIECE.match(line, end)
        if piece is None and line[end] != "\\":
            raise UsageError(_unclosed(line, end, magic, line[end], line[end]))
        # A backslash that nothing follows is a character like others.
        end = piece.end() if piece else end + 1
    raw = line[start:end]
    lexer = shlex.shlex(raw, posix=True)
    # One word is given, so nothing in it separates words or begins a comment.
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = "", True, ""
    if _WINDOWS or raw.endswith("\\"):
        lexer.escape = ""
    return Word(lexer.get_token() or "", start, "quoted" if raw[0] in "'\"" else "word"), end


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
