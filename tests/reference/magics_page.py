"""The page of magics: what ``?`` shows, for a reader without a kernel."""

from __future__ import annotations

from nbext.notebook.line.grammars import BY_MAGIC, COMMANDS
from nbext.notebook.line.options import HELP, Grammar
from tests.reference import table


def page() -> str:
    """Return the page: each magic's purpose, usage, options and examples, and the commands of ``%nbext``."""
    return (
        "# Magics\n\n"
        "Load them with `%load_ext nbext`. Options go on the first line, in any order. `--help`, or a question "
        "mark after the magic, shows the same text in a notebook.\n"
        + "".join(_section(grammar) for grammar in BY_MAGIC.values())
    )


def _section(grammar: Grammar) -> str:
    notes = "" if grammar.magic == "%nbext" else grammar.notes.replace("\n", " ") + "\n\n"
    commands = "" if grammar.magic != "%nbext" else _commands()
    examples = "\n\n".join(grammar.examples)
    options = [[f"`{option.spelling}`", option.help] for option in (*grammar.options, HELP)]
    return (
        f"\n## {grammar.magic}\n\n{grammar.purpose}\n\n    {grammar.usage}\n\n{notes}{commands}"
        f"{table(['option', 'what it does'], options)}\n```text\n{examples}\n```\n"
    )


def _commands() -> str:
    rows = [[f"`%nbext {name} {follows}`".replace(" `", "`"), line] for name, (follows, line) in COMMANDS.items()]
    return table(["command", "what it does"], rows) + "\n"
