"""Loading and unloading: light, once, and without traces."""

from __future__ import annotations

import subprocess
import sys

import pytest
from IPython.utils.capture import capture_output

import nbext
from nbext import settings
from nbext.errors import UsageError
from nbext.notebook.session import current_session
from tests.notebook.shells import loaded_shell

MAGICS = ("nbext", "nft", "segment", "segment_query", "token")
MEASURE = """
import sys, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
start = time.process_time()
shell.run_line_magic("load_ext", "nbext")
spent = time.process_time() - start
heavy = {"pandas", "fastapi", "duckdb", "requests", "ipywidgets", "pyarrow"} & set(sys.modules)
start = time.process_time()
import pandas
print(f"{spent / (time.process_time() - start):.3f} {sorted(heavy)}")
"""


def snapshot(shell):
    return {
        "magics": {kind: dict(names) for kind, names in shell.ip.magics_manager.magics.items()},
        "matchers": list(shell.ip.Completer.custom_matchers),
        "configurables": list(shell.ip.configurables),
        "transformers": list(shell.ip.input_transformers_cleanup),
        "formatters": {
            mime: dict(formatter.deferred_printers)
            for mime, formatter in shell.ip.display_formatter.formatters.items()
        },
    }


def test_loading_takes_little_time_and_nothing_heavy(home):
    lines = [
        subprocess.run(
            [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True, cwd=home
        ).stdout.splitlines()
        for _ in range(3)
    ]
    assert {line[-1].partition(" ")[2] for line in lines} == {"[]"}
    # Measured against importing pandas, which is twice as much: seconds depend on the machine.
    assert min(float(line[-1].partition(" ")[0]) for line in lines) < 0.8


def test_loading_says_in_one_line_which_service_answers_and_whose_data_it_is(home):
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True, cwd=home
    )
    assert done.stdout.splitlines()[0] == (
        f"nbext {nbext.__version__}: the embedded service answers, on synthetic sample data "
        "(`nbext ingest` loads your own). Start with `%nbext help`."
    )
    assert done.stderr == ""


def test_a_remote_service_is_named_without_what_could_be_a_password(home, monkeypatch, shell):
    monkeypatch.setenv("NBEXT_BASE_URL", "https://user:s3cret@api.example.org/v2?key=s3cret")
    shell.run("%unload_ext nbext")
    assert shell.run("%load_ext nbext").printed == (
        f"nbext {nbext.__version__}: the service is https://api.example.org/v2, not contacted yet. "
        "Start with `%nbext help`.\n"
    )


def test_unloading_leaves_the_shell_as_it_was(shell):
    shell.run("%unload_ext nbext")
    before = snapshot(shell)
    shell.run("%load_ext nbext")
    assert snapshot(shell) != before
    shell.run("%unload_ext nbext")
    assert snapshot(shell) == before


def test_loading_again_and_reloading_change_nothing(shell):
    before = snapshot(shell)
    nbext.load_ipython_extension(shell.ip)
    assert snapshot(shell) == before
    shell.run("%reload_ext nbext")
    after = snapshot(shell)
    assert {name: len(things) for name, things in after.items()} == {
        n: len(t) for n, t in before.items()
    }
    assert set(MAGICS) <= set(after["magics"]["line"])


def test_a_magic_of_the_user_comes_back_when_ours_goes(shell):
    shell.run("%unload_ext nbext")
    shell.ip.register_magic_function(lambda line: "mine", "line", "token")
    shell.run("%load_ext nbext")
    assert shell.run("%token").error is not None
    shell.run("%unload_ext nbext")
    assert shell.value("%token") == "mine"
    del shell.ip.magics_manager.magics["line"]["token"]


def test_unloading_twice_is_harmless(shell):
    nbext.unload_ipython_extension(shell.ip)
    nbext.unload_ipython_extension(shell.ip)


def test_outside_ipython_the_error_says_what_to_use():
    with pytest.raises(UsageError) as caught:
        nbext.load_ipython_extension(None)
    assert str(caught.value) == (
        "%load_ext nbext works in IPython and in Jupyter. In a script use nbext.connect(), which returns a client."
    )


def test_each_magic_shows_its_help_by_a_question_mark_and_by_help(shell):
    for name in MAGICS:
        assert shell.run(f"%{name} --help").printed.startswith(
            shell.ip.find_line_magic(name).__doc__
        )
    with capture_output() as captured:
        shell.ip.run_cell("%token?")
    assert "Examples:" in captured.stdout


def test_settings_come_from_ipythons_configuration_and_config_magic(shell):
    session = current_session()
    assert session.settings.where("limit") == (1000, "default")
    shell.run("%config Nbext.limit = 7")
    assert session.settings.where("limit") == (7, "IPython configuration")
    shell.run("%nbext set limit 9")
    assert session.settings.where("limit") == (9, "argument")
    assert "api_key" not in shell.run("%config Nbext").printed


def test_config_shows_each_setting_with_its_type_and_the_value_in_effect(shell, monkeypatch):
    monkeypatch.setenv("NBEXT_DEADLINE", "55")
    shell.run("%nbext set limit 9")
    shell.run("%config Nbext.limit = 7")
    shown = shell.run("%config Nbext").printed
    for name, kind, value in [
        ("limit", "Int", "9"),
        ("deadline", "Float", "55.0"),
        ("chain", "Unicode", "'ethereum'"),
        ("frame", "CaselessStrEnum", "'pandas'"),
        ("insecure", "Bool", "False"),
        ("base_url", "Unicode", "None"),
        ("remote", "key-1", "{}"),
    ]:
        line, *rest = shown[shown.index(f"Nbext.{name}=") :].splitlines()
        assert f"<{kind}>" in line
        assert f"Current: {value}" in "".join(rest[:4])
    shell.run("%nbext unset limit")
    assert "Current: 7" in shell.run("%config Nbext").printed


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        (
            "limit = 'many'",
            "The 'limit' trait of a Nbext instance expected an int, not the str 'many'.",
        ),
        (
            "insecure = 'maybe'",
            "The 'insecure' trait of a Nbext instance expected a boolean, not the str 'maybe'.",
        ),
        ("limit = 0", "0 is not a whole number from 1 to 10,000,000."),
        ("frame = 'excel'", "The 'frame' trait of a Nbext instance expected any of"),
    ],
)
def test_a_value_of_another_type_is_refused_by_the_traits_name(shell, caplog, line, refused):
    before = current_session().settings.all()
    shell.run(f"%config Nbext.{line}")
    assert refused in caplog.text
    assert current_session().settings.all() == before


def test_a_wrong_value_in_ipythons_files_is_named_when_loading(shell):
    shell.run("%unload_ext nbext")
    shell.ip.config.Nbext.limit = "many"
    assert shell.error("%load_ext nbext") == (
        "ConfigError: IPython's configuration of nbext: The 'limit' trait of a Nbext instance expected an int, "
        "not the str 'many'."
    )
    shell.ip.config.pop("Nbext")
    assert shell.run("%load_ext nbext").error is None


def test_a_wrong_setting_is_named_when_loading_and_what_lists_them_all(
    shell, monkeypatch, tmp_path
):
    (tmp_path / "pyproject.toml").write_text('[tool.nbext]\ndata_dir = "s3://b/nbext"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NBEXT_DATA_DIR")
    shell.run("%unload_ext nbext")
    printed = shell.run("%load_ext nbext").printed
    assert printed.startswith(f"nbext {nbext.__version__}: ")
    assert printed.endswith(" `%nbext config` lists every setting.\n")
    assert "'s3://b/nbext' is a URL" in printed


def test_looking_at_a_session_starts_nothing(shell):
    assert current_session().client is None
    shell.run("%nbext config")
    shell.run("%nbext set limit 5")
    assert current_session().client is None


def test_a_client_made_in_python_asks_the_service_that_the_session_names(monkeypatch):
    monkeypatch.delenv("NBEXT_BASE_URL", raising=False)
    with loaded_shell() as shell:
        shell.run("%nbext set base_url http://127.0.0.1:9")
        shell.run("%nbext set limit 7")
        client = shell.value("import nbext\nnbext.connect(api_key='a-key')")
        assert (client.base_url, client.settings["limit"]) == ("http://127.0.0.1:9", 7)
        assert nbext.connect("http://127.0.0.1:8", "a-key").base_url == "http://127.0.0.1:8"
    # Without the extension only the other sources count.
    assert settings.current()["base_url"] is None
