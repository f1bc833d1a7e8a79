"""The commands of %nbext: settings that are tables, words too many, and connecting that is interrupted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbext.connect
from nbext.notebook.line.grammars import COMMANDS
from nbext.notebook.run import root
from nbext.notebook.session import current_session

TABLES = st.recursive(
    st.text(max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from(["a", "b", "c.d", ""]), inner, min_size=1, max_size=3
    ),
    max_leaves=8,
).filter(lambda value: isinstance(value, dict))


@given(TABLES)
def test_a_table_is_the_same_after_it_was_read_as_entries(table):
    assert root._as_table(root._entries(table)) == table


def test_every_command_of_the_help_is_there_and_no_other():
    assert set(root._COMMANDS) == set(COMMANDS)


@pytest.mark.parametrize(
    "command", [name for name, (_, most) in root._COMMANDS.items() if most is not None]
)
def test_a_word_too_many_is_named_with_the_usage(shell, command):
    _, most = root._COMMANDS[command]
    usage = f"%nbext {command} {COMMANDS[command][0]}".rstrip()
    words = " ".join(["1"] * (most or 0) + ["surplus"])
    assert shell.error(f"%nbext {command} {words}") == (
        f"UsageError: %nbext {command}: unexpected argument 'surplus'. Usage: {usage}"
    )


def test_connecting_that_is_interrupted_keeps_the_service(shell, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    shell.run("%nbext connect")
    before = current_session().client
    monkeypatch.setattr(nbext.connect, "connect", interrupted)
    assert shell.error("%nbext connect") == "QueryCancelled: Interrupted while connecting."
    assert current_session().client is before
    assert current_session().settings["base_url"] is None
