"""What a user gets from the built wheel, in environments that hold nothing else, with only loopback to talk to."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
LOOPBACK_ONLY = Path(__file__).with_name("loopback_only.py")

pytestmark = pytest.mark.release


def run(*command: str | Path, cwd: Path, home: Path, loopback_only: bool = True) -> str:
    """Run a command with an empty home folder; return what it printed, or fail with it."""
    before = [sys.executable, str(LOOPBACK_ONLY)] if loopback_only else []
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("NBEXT_", "PYTHON", "IPYTHON", "JUPYTER"))}
    done = subprocess.run(
        [*before, *map(str, command)],
        cwd=cwd,
        # A bar would come or go with the machine's speed.
        env=environ | {"HOME": str(home), "NBEXT_PROGRESS": "false"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """Build the wheel as it would be published."""
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--outdir", out, REPO, cwd=out, home=out, loopback_only=False)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def environment(wheel, tmp_path_factory):
    """Return a function that installs the wheel, with the extras that are asked for, in a new environment."""

    def install(extras: str) -> Path:
        folder = tmp_path_factory.mktemp("environment")
        venv.create(folder, with_pip=True)
        wanted = f"nbext{extras} @ {wheel.as_uri()}"
        run(folder / "bin/python", "-m", "pip", "install", "-q", wanted, cwd=folder, home=folder, loopback_only=False)
        return folder / "bin/python"

    return install


@pytest.fixture(scope="session")
def lean(environment) -> Path:
    """The interpreter of an environment with `pip install nbext` and no more."""
    return environment("")


@pytest.fixture(scope="session")
def whole(environment) -> Path:
    """The interpreter of an environment with the lab and what runs notebooks as tests."""
    return environment("[lab,test]")


def test_the_wheel_holds_the_package_its_types_and_its_licence_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "nbext/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"nbext"}


def test_the_command_is_there_and_knows_its_version(lean, tmp_path):
    assert run(lean.with_name("nbext"), "--version", cwd=tmp_path, home=tmp_path) == "nbext 0.1.0\n"


def test_a_lean_install_names_the_two_choices_where_there_is_no_service(lean, tmp_path):
    script = (
        "from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance()\n"
        "s.run_line_magic('load_ext', 'nbext')\n"
        "r = s.run_cell('%token ethereum USDC')\n"
        "print(type(r.error_in_exec).__name__, 'nbext[local]' in str(r.error_in_exec))\n"
    )
    assert run(lean, "-c", script, cwd=tmp_path, home=tmp_path).splitlines()[-1] == "NoService True"


def test_the_quickstart_runs_and_writes_only_into_the_users_data_folder(whole, tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    (work / "quickstart.ipynb").write_bytes((REPO / "notebooks/01_quickstart.ipynb").read_bytes())
    execute = [whole.with_name("jupyter"), "nbconvert", "--execute", "--to", "markdown", "--stdout"]
    shown = run(*execute, "quickstart.ipynb", cwd=work, home=home)
    assert "synthetic" in shown
    assert [p.name for p in work.iterdir()] == ["quickstart.ipynb"]
    # IPython and Jupyter keep their own history and runtime folders; all else is ours.
    ours = {p.relative_to(home).parts[:3] for p in home.rglob("*") if p.is_file()}
    theirs = {".ipython", ".jupyter", ".cache", "share/jupyter", "etc"}
    assert {"/".join(parts) for parts in ours if parts[0] not in theirs and "jupyter" not in parts} == {
        ".local/share/nbext"
    }


def test_every_notebook_gives_what_it_shows(whole, tmp_path):
    nbval = ["--nbval", "--nbval-sanitize-with", REPO / "tests/nbval.cfg", "--nbval-cell-timeout", "120"]
    run(whole, "-m", "pytest", "-q", "-c", os.devnull, *nbval, REPO / "notebooks", cwd=tmp_path, home=tmp_path)
