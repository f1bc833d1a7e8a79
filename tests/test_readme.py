"""Every code line of the README runs, in the README's order, on the synthetic sample and example files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nbext.notebook.results.tables import as_text
from notebooks.example_files import write_example_files
from tests.benchmarks import table
from tests.notebook.shells import loaded_shell

REPO = Path(__file__).parents[1]
README = (REPO / "README.md").read_text("utf-8")
# Each needs a new environment: the release job runs the first and the last, the gate the test command.
ELSEWHERE = re.compile(
    r"<!-- the (run command|test command|install line) -->\n```bash\n.*?```\n", re.DOTALL
)
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", ELSEWHERE.sub("", README), re.DOTALL)
CELLS = [code for language, code in BLOCKS if language == "python"]
COMMANDS = [line for language, code in BLOCKS if language == "bash" for line in code.splitlines()]
FIGURES = re.findall(r"\d[\d.,]* (?:ms|s)\b", README.split("## How fast")[1].split("## More")[0])


def test_what_needs_a_new_environment_is_where_the_gate_and_the_release_job_look_for_it():
    assert [match[1] for match in ELSEWHERE.finditer(README)] == [
        "run command",
        "test command",
        "install line",
    ]


def test_the_set_up_commands_are_within_the_first_two_screens():
    assert README.index("<!-- the test command -->") < README.index("## What you can ask")
    assert README[: README.index("## What you can ask")].count("\n") < 80


def test_every_cell_of_the_readme_runs(tmp_path, monkeypatch):
    # One of them writes a folder.
    monkeypatch.chdir(tmp_path)
    with loaded_shell() as shell:
        for cell in CELLS:
            ran = shell.run(cell)
            assert ran.error is None, f"{cell}\n{ran.shown_error}"
        assert shell.value("rows['address'].tolist() == segment['address'].tolist()")


def test_the_first_table_is_what_its_cells_give():
    shown = re.findall(r"^\| (0x\w{8}…\w{8}) \| ([\d,.]+) \|$", README, re.MULTILINE)
    assert len(shown) == 3
    with loaded_shell() as shell:
        shell.value(CELLS[0])
        shell.value(CELLS[1])
        lines = as_text(shell.value(CELLS[2])).splitlines()
    assert [tuple(line.split()) for line in lines[1:]] == shown


def test_the_figures_are_those_that_the_benchmarks_wrote():
    assert len(FIGURES) == 11
    assert [figure for figure in FIGURES if figure not in table.written()] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_runs(command, tmp_path):
    write_example_files(tmp_path / "chain-data")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = os.environ | {"NBEXT_DATA_DIR": str(tmp_path / "data"), "PATH": path}
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=tmp_path,
        env=environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as running:
        if command.startswith("nbext serve"):
            # A service says in its first line where it answers, and ends orderly when it is asked to.
            assert re.search(r"http://127\.0\.0\.1:\d+", running.stdout.readline())
            running.terminate()
        told = running.stdout.read()
    # The example files hold one bad row on purpose: ingest leaves it out, says so, and its exit code says so too.
    assert running.returncode == (1 if "1 bad row skipped:" in told else 0), told


def test_every_block_of_code_is_of_a_kind_that_is_run():
    assert {language for language, _ in BLOCKS} == {"python", "bash"}


@pytest.mark.slow
def test_the_first_page_links_to_the_notebooks_from_where_it_is_written(tmp_path):
    command = re.search(r"\.venv/bin/jupyter (nbconvert .*)", README)[1].replace("--execute ", "")
    words = command.replace("--output-dir .", f"--output-dir {tmp_path}").split()
    jupyter = [sys.executable, "-m", "jupyter", *words]
    subprocess.run(jupyter, cwd=REPO, check=True, capture_output=True)
    page = (tmp_path / "01_quickstart.html").read_text("utf-8")
    links = re.findall(r'href="([^"#:]+\.ipynb)"', page)
    assert [Path(link).name for link in links] == ["02_audience.ipynb", "03_holders.ipynb"]
    assert all((tmp_path / link).is_file() for link in links)


def test_every_page_and_picture_that_the_readme_links_to_is_there():
    links = re.findall(r"\]\(((?!https?:)[^)#]+)", README)
    assert links
    assert [link for link in links if not (REPO / link).is_file()] == []
