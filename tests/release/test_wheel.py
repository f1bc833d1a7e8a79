"""What a user gets from the built wheel, in environments that hold nothing else, with only loopback to talk to."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.benchmarks import install

REPO = Path(__file__).parents[2]
LOOPBACK_ONLY = Path(__file__).with_name("loopback_only.py")

pytestmark = pytest.mark.release


def run(*command: str | Path, cwd: Path, home: Path, loopback_only: bool = True) -> str:
    """Run a command with an empty home folder; return what it printed, or fail with it."""
    before = [sys.executable, str(LOOPBACK_ONLY)] if loopback_only else []
    environ = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("NBEXT_", "PYTHON", "IPYTHON", "JUPYTER", "XDG_STATE"))
    }
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
    return install.built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def bare(wheel, tmp_path_factory) -> install.Installed:
    """What `pip install nbext` brings, and no more."""
    return install.installed(wheel, "", tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="session")
def lean(bare) -> Path:
    """The interpreter of that environment."""
    return bare.python


@pytest.fixture(scope="session")
def whole(wheel, tmp_path_factory) -> Path:
    """The interpreter of an environment with the lab and what runs notebooks as tests."""
    return install.installed(wheel, "[lab,test]", tmp_path_factory.mktemp("environment")).python


def test_the_wheel_holds_the_package_its_types_and_its_licence_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "nbext/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"nbext"}


def test_the_command_is_there_and_knows_its_version(lean, tmp_path):
    assert run(lean.with_name("nbext"), "--version", cwd=tmp_path, home=tmp_path) == "nbext 0.1.0\n"


def test_the_wheel_brings_the_notebooks_that_examples_copies(lean, tmp_path):
    notebooks = sorted(path.name for path in (REPO / "notebooks").glob("*.ipynb"))
    said = run(lean.with_name("nbext"), "examples", cwd=tmp_path, home=tmp_path)
    assert said == f"nbext-examples: {len(notebooks)} notebooks. Open 01_quickstart.ipynb first.\n"
    assert sorted(path.name for path in (tmp_path / "nbext-examples").glob("*.ipynb")) == notebooks


def test_a_lean_install_is_small_and_brings_no_service(bare):
    print(
        f"{len(bare.megabytes)} packages, {bare.seconds:.0f} s, {bare.total:.0f} MB; largest: {bare.largest(10)}"
    )
    assert bare.total < 480
    assert not {"duckdb", "fastapi", "uvicorn", "matplotlib", "scipy"} & set(bare.megabytes)


def test_a_lean_install_names_the_two_choices_where_there_is_no_service(lean, tmp_path):
    script = (
        "from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance()\n"
        "s.run_line_magic('load_ext', 'nbext')\n"
        "r = s.run_cell('%token ethereum USDC')\n"
        "print(type(r.error_in_exec).__name__, 'nbext[local]' in str(r.error_in_exec))\n"
    )
    assert run(lean, "-c", script, cwd=tmp_path, home=tmp_path).splitlines()[-1] == "NoService True"


def test_a_newcomer_comes_from_a_fresh_environment_to_the_first_table_by_the_readmes_own_lines(
    tmp_path,
):
    arrived = install.newcomer(tmp_path)
    print(f"to the first DataFrame: {arrived}")
    # Its middle is there for whoever copies it, and not shown.
    assert re.search("0x0049fe2c<i>[0-9a-f]{24}</i>37ef1607", arrived.shown)
    assert "3 of 232 wallets" in arrived.shown
    assert (len(arrived.commands), len(arrived.cells)) == (4, 3)


def test_the_readmes_run_command_writes_a_page_of_the_first_notebook_with_its_chart(tmp_path):
    clone, home = install.cloned(tmp_path)
    readme = (REPO / "README.md").read_text("utf-8")
    (command,) = re.findall(r"<!-- the run command -->\n```bash\n(.*)\n```", readme)
    run("bash", "-c", command, cwd=clone, home=home, loopback_only=False)
    page = (clone / "01_quickstart.html").read_text("utf-8")
    assert "Quickstart: who holds what" in page
    assert "whales = 246 rows, 3 columns" in page
    # The page's own style has a picture too.
    assert page.split("<body", 1)[1].count("data:image/png;base64") == 1


def test_the_quickstart_runs_and_writes_only_into_the_users_folders_for_data_and_state(
    whole, tmp_path
):
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
    assert {
        "/".join(parts) for parts in ours if parts[0] not in theirs and "jupyter" not in parts
    } == {".local/state/nbext"}


@pytest.mark.long  # as they stand beside the code, they run in the README's test command
def test_every_notebook_gives_what_it_shows(whole, tmp_path):
    nbval = [
        "--nbval",
        "--nbval-sanitize-with",
        REPO / "tests/nbval.cfg",
        "--nbval-cell-timeout",
        "120",
    ]
    run(
        whole,
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        *nbval,
        REPO / "notebooks",
        cwd=tmp_path,
        home=tmp_path,
    )
