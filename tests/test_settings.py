"""Each setting is taken from the first place that has it, checked, and says where it came from."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import nbext
from nbext.errors import ConfigError
from nbext.settings import NOTEBOOKS, SETTINGS, Secret, Settings, current, default_data_dir


@pytest.fixture
def settings(tmp_path):
    """Settings that see nothing of the machine the test runs on."""
    (tmp_path / "pyproject.toml").write_text("")
    return lambda pyproject="", **places: (
        (tmp_path / "pyproject.toml").write_text(pyproject),
        Settings(**{"environ": {}, "folder": tmp_path, **places}),
    )[1]


def test_every_setting_has_a_default_that_it_would_take_itself(settings):
    for name, (_, source) in settings().all().items():
        assert source == "default", name
    for setting in SETTINGS:
        assert setting.read(setting.default, "default") == setting.default


def test_the_places_are_asked_in_the_order_argument_environment_pyproject_ipython_default(settings):
    pyproject = "[tool.nbext]\nlimit = 3\n"
    everywhere = {
        "arguments": {"limit": 1},
        "environ": {"NBEXT_LIMIT": "2"},
        "ipython": {"limit": 4},
    }
    found = []
    for absent in ([], ["arguments"], ["arguments", "environ"]):
        here = {k: v for k, v in everywhere.items() if k not in absent}
        found.append(settings(pyproject, **here).where("limit"))
    assert [value for value, _ in found] == [1, 2, 3]
    assert [source for _, source in found][:2] == ["argument", "NBEXT_LIMIT"]
    assert found[2][1].endswith("pyproject.toml")
    assert settings(ipython={"limit": 4}).where("limit") == (4, "IPython configuration")
    assert settings().where("limit") == (1000, "default")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("limit", "ten", "limit (argument): 'ten' is not a whole number from 1 to 10,000,000."),
        ("limit", 0, "limit (argument): 0 is not a whole number from 1 to 10,000,000."),
        ("limit", True, "limit (argument): 'True' is not a whole number from 1 to 10,000,000."),
        ("limit", 1.5, "limit (argument): '1.5' is not a whole number from 1 to 10,000,000."),
        ("deadline", "nan", "deadline (argument): nan is not a number from 0.01 to 86,400."),
        ("insecure", "maybe", "insecure (argument): 'maybe' is not true or false."),
        (
            "frame",
            "polar",
            "frame (argument): 'polar' is not one of pandas, polars, arrow. Did you mean 'polars'?",
        ),
        *(
            (
                "as_of",
                value,
                f'as_of (argument): {value!r} is not a time such as "30d" or "2025-01-31", or a block.',
            )
            for value in (
                *("nonsense", "2025-01", "30 days", "-5d", "0x10"),
                # None of these is in the calendar, or a block.
                *("2025-02-30", "2025-13-01", "0000-01-01", "1,2,,", "1,2", "9" * 40, str(2**62)),
            )
        ),
        ("limt", 5, "Unknown setting 'limt'. Did you mean 'limit'? Allowed: "),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_with_what_is(settings, name, value, message):
    with pytest.raises(ConfigError) as caught:
        settings().set(name, value)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "value",
    [
        "30d",
        "4w",
        "2025-01-31",
        "2025-01-31T12:00:00Z",
        "24000000",
        "24,000,000",
        "0",
        str(2**62 - 1),
    ],
)
def test_a_time_is_set_as_the_segment_language_writes_it(settings, value):
    made = settings()
    made.set("as_of", value)
    assert made["as_of"] == value


def test_a_key_in_a_file_is_refused_without_showing_it(settings):
    with pytest.raises(ConfigError) as caught:
        settings('[tool.nbext]\napi_key = "s3cr3t"\n')
    assert "a key does not belong in a file" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


def test_an_unknown_name_in_pyproject_is_an_error_and_not_ignored(settings):
    with pytest.raises(ConfigError, match="Unknown setting 'base_ulr'"):
        settings('[tool.nbext]\nbase_ulr = "http://127.0.0.1:1"\n')


@pytest.mark.parametrize("pyproject", ["tool = 5", "[tool]\nnbext = 5"])
def test_a_pyproject_without_a_table_of_ours_is_an_error_or_says_nothing(settings, pyproject):
    if pyproject == "tool = 5":
        assert settings(pyproject)["limit"] == 1000
        return
    with pytest.raises(ConfigError, match=r"\[tool.nbext\] must be a table of settings, not int\."):
        settings(pyproject)


def test_what_was_set_is_taken_back(settings):
    found = settings("[tool.nbext]\nlimit = 3\n")
    found.set("limit", 5)
    found.unset("limit")
    assert found["limit"] == 3
    found.unset("limit")
    with pytest.raises(ConfigError, match=r"Unknown setting 'limt'\. Did you mean 'limit'\?"):
        found.unset("limt")


def test_a_pyproject_is_read_again_and_a_broken_one_changes_nothing(settings, tmp_path):
    found = settings("[tool.nbext]\nlimit = 3\n")
    (tmp_path / "pyproject.toml").write_text("[tool.nbext]\nlimit = 4\n")
    found.reread()
    assert found["limit"] == 4
    (tmp_path / "pyproject.toml").write_text("[tool.nbext\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        found.reread()
    assert found["limit"] == 4


def test_data_stays_in_the_users_data_folder_unless_another_is_named(settings, tmp_path):
    assert (
        default_data_dir(settings(environ={"NBEXT_DATA_DIR": str(tmp_path / "d")}))
        == tmp_path / "d"
    )
    assert default_data_dir(settings()).name == "nbext"


def test_neither_repr_nor_attributes_show_the_environment_which_holds_the_key():
    settings = Settings(environ={"NBEXT_API_KEY": "s3cret"})
    assert "s3cret" not in repr(settings) + repr(vars(settings))


def test_a_secret_cannot_be_changed():
    key = Secret("one")
    with pytest.raises(AttributeError, match="cannot be changed"):
        key.reveal = lambda: "another"
    assert key.reveal() == "one"


def test_the_settings_of_the_notebook_that_was_loaded_last_are_the_current_ones():
    first, last = (
        SimpleNamespace(settings=Settings(arguments={"limit": limit}, environ={}))
        for limit in (1, 2)
    )
    NOTEBOOKS.extend((first, last))
    try:
        assert current() is last.settings
        NOTEBOOKS.remove(last)
        assert current() is first.settings
    finally:
        NOTEBOOKS.remove(first)


def test_the_settings_that_connect_is_given_come_before_the_current_ones():
    here, given = (
        Settings(arguments={"base_url": f"http://127.0.0.1:{port}"}, environ={}) for port in (8, 9)
    )
    NOTEBOOKS.append(SimpleNamespace(settings=here))
    try:
        urls = [nbext.connect(api_key="k", settings=one).base_url for one in (given, None)]
    finally:
        NOTEBOOKS.pop()
    assert urls == ["http://127.0.0.1:9", "http://127.0.0.1:8"]
