"""The commands of %nbext: settings that are tables, words too many, and connecting that is interrupted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbext.embedded
from nbext.notebook.run.root import COMMANDS
from nbext.notebook.run.settings import entries_of, table_of
from nbext.notebook.session import current_session

TABLES = st.recursive(
    st.text(max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from(["a", "b", "c.d", ""]), inner, min_size=1, max_size=3
    ),
    max_leaves=8,
).filter(lambda value: isinstance(value, dict))


@settings(max_examples=10)
@given(TABLES)
def test_a_table_is_the_same_after_it_was_read_as_entries(table):
    assert table_of(entries_of(table)) == table


@pytest.mark.parametrize(
    "command",
    [one for one in COMMANDS.values() if one.most is not None],
    ids=lambda command: command.magic,
)
def test_a_word_too_many_is_named_with_the_usage(shell, command):
    words = " ".join(["1"] * (command.most or 0) + ["surplus"])
    assert shell.error(f"{command.magic} {words}") == (
        f"UsageError: {command.magic}: unexpected argument 'surplus'. Usage: {command.usage}"
    )


def test_connecting_that_is_interrupted_keeps_the_service(shell, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    shell.run("%nbext connect")
    before = current_session().client
    monkeypatch.setattr(nbext.embedded, "embedded", interrupted)
    assert shell.error("%nbext connect") == "QueryCancelled: Interrupted while connecting."
    assert current_session().client is before
    assert current_session().settings["base_url"] is None
