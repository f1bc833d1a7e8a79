"""Where the key of a remote service comes from, and that it stays a secret."""

from __future__ import annotations

import sys
import time

import pytest
from keyring.errors import KeyringLocked, NoKeyringError

from nbext.errors import ConfigError
from nbext.notebook import keys
from nbext.notebook.session import current_session
from tests.keyrings import Ring

URL = "https://api.example.org"


@pytest.fixture
def nobody_types(monkeypatch):
    """A prompt that nobody answers."""

    def refuse(prompt):
        raise EOFError(prompt)

    monkeypatch.setattr("getpass.getpass", refuse)


def test_the_environment_comes_before_the_keyring(ring, monkeypatch):
    ring(Ring({("nbext", URL): "from the ring"}))
    monkeypatch.setenv("NBEXT_API_KEY", " from the environment ")
    secret, source = keys.find_key(URL)
    assert (secret.reveal(), source) == ("from the environment", "NBEXT_API_KEY")
    monkeypatch.delenv("NBEXT_API_KEY")
    secret, source = keys.find_key(URL)
    assert (secret.reveal(), source) == ("from the ring", "keyring")


class Panic(BaseException):
    """What a library in Rust raises."""


BROKEN = [
    NoKeyringError("none"),
    KeyringLocked("locked"),
    OSError("bus"),
    KeyError("x"),
    ImportError("no backend"),
    SystemExit(1),
    Panic("x"),
]


@pytest.mark.parametrize("error", BROKEN)
def test_a_keyring_that_fails_costs_one_line_of_advice_and_the_prompt_follows(
    ring, monkeypatch, capsys, error
):
    ring(Ring(error=error))
    monkeypatch.setattr("getpass.getpass", lambda prompt: "typed")
    secret, source = keys.find_key(URL)
    assert (secret.reveal(), source) == ("typed", "prompt")
    assert capsys.readouterr().out == (
        f"nbext: the keyring cannot be used ({type(error).__name__}). "
        "Set NBEXT_API_KEY, or type the key when asked.\n"
    )


def test_a_keyring_that_cannot_even_be_loaded_costs_that_line_too(monkeypatch, tmp_path, capsys):
    (tmp_path / "keyring.py").write_text("raise RuntimeError('its configuration is broken')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "keyring")
    assert keys.from_keyring(URL) is None
    assert "the keyring cannot be used (RuntimeError)" in capsys.readouterr().out


def test_where_there_is_no_keyring_nothing_is_said_of_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert keys.from_keyring(URL) is None
    assert capsys.readouterr().out == ""


def test_a_keyring_that_does_not_answer_is_left_behind(ring, monkeypatch, nobody_types, capsys):
    monkeypatch.setattr(keys, "KEYRING_SECONDS", 0.1)
    ring(Ring(seconds=20))
    start = time.monotonic()
    with pytest.raises(ConfigError) as caught:
        keys.find_key(URL)
    assert time.monotonic() - start < 10
    assert "it did not answer in time" in capsys.readouterr().out
    assert str(caught.value) == (
        f"No API key for {URL}. Set NBEXT_API_KEY before you start Jupyter, or run `%nbext login` "
        "and type the key."
    )


def test_login_keeps_the_key_where_that_is_wanted_and_logout_forgets_it(shell, ring, monkeypatch):
    kept = Ring()
    ring(kept)
    monkeypatch.setattr("getpass.getpass", lambda prompt: "s3cret")
    shell.run(f"%nbext set base_url {URL}")
    printed = shell.run("%nbext login --keep").printed
    assert printed == "nbext: key set for this session and stored in the keyring.\n"
    assert kept.kept == {("nbext", URL): "s3cret"}
    assert "s3cret" not in repr(vars(current_session()))
    assert shell.run("%nbext logout").printed == (
        "nbext: key removed from this session and the keyring. NBEXT_API_KEY is used as long as it is set.\n"
    )
    assert kept.kept == {}


@pytest.mark.slow
def test_a_typed_key_is_for_the_service_it_was_typed_for(shell, ring, monkeypatch):
    ring(Ring())
    asked = []
    monkeypatch.setattr(
        "getpass.getpass", lambda prompt: asked.append(prompt) or f"key-{len(asked)}"
    )
    session = current_session()
    first, other = "http://127.0.0.1:1", "http://127.0.0.1:2"
    used = []
    for url in (first, other, first):
        shell.run(f"%nbext set base_url {url}")
        used.append(session.connected().key.reveal())
    assert used == ["key-1", "key-2", "key-1"]
    assert asked == [f"API key for {first}: ", f"API key for {other}: "]


def test_login_without_a_remote_service_says_that_no_key_is_needed(shell):
    assert shell.error("%nbext login") == (
        "UsageError: %nbext login: the embedded service needs no key. `%nbext connect URL` changes the service."
    )


@pytest.mark.parametrize(
    "cell",
    [
        "%nbext login s3cret",
        "%nbext login --key s3cret",
        "%nbext connect https://api.example.org s3cret",
        "%nbext connect https://api.example.org --api-key=s3cret",
        "%nbext set api_key s3cret",
        "%nbext set x-api-key s3cret",
        "%token ethereum USDC --key s3cret",
        "%nft search api_key=s3cret",
        '%%segment_query --x-api-key s3cret\n{"token": {"token": "UNI"}}',
    ],
)
def test_a_key_in_a_cell_is_refused_and_not_repeated(shell, cell):
    error = shell.error(cell)
    assert "Do not write a key in a cell" in error
    assert "s3cret" not in error


@pytest.mark.parametrize("cell", ["%config Nbext.api_key = 's3cret'"])
def test_no_trait_holds_a_key(shell, cell):
    shell.run(cell)
    assert "s3cret" not in repr(current_session().settings.all())
    assert not [
        name for name in type(shell.ip.configurables[-1]).class_trait_names() if "key" in name
    ]
