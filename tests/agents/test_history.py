"""What agents asked is listed in a notebook, and each question opens as a cell in which nothing of theirs can run."""

from __future__ import annotations

import json
import stat

import pytest

from nbext.agents import history as agents
from tests.notebook.shells import loaded_shell

UNI = {"token": {"token": "UNI", "balance": {"min": "1000"}}}
EVIL = "{{__import__('os').system('touch x')}} $x {x} \"'\n%%bash \u202e"


@pytest.fixture
def shell(monkeypatch, tmp_path):
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path))
    with loaded_shell() as shell:
        yield shell


def opened(shell, number):
    cells = []
    shell.ip.set_next_input = lambda text, replace: cells.append(text)
    try:
        shell.value(f"%nbext history {number} --agent")
    finally:
        del shell.ip.set_next_input
    (cell,) = cells
    return cell


def test_each_answered_question_opens_as_a_cell_that_asks_it_again(shell, tmp_path):
    questions = [
        ("count", {"filters": UNI}, "%%segment_query --limit 0\n" + json.dumps(UNI)),
        (
            "run",
            {"filters": UNI, "operator": "OR", "limit": 5},
            "%%segment_query --operator OR --limit 5\n" + json.dumps(UNI),
        ),
        ("export", {"filters": UNI, "name": "a"}, "%%segment_query\n" + json.dumps(UNI)),
        (
            "changes",
            {"filters": UNI, "since": "30d"},
            f"import nbext\n\nnbext.changes({ {'filters': UNI, 'operator': 'AND'} }, since='30d')",
        ),
        (
            "overlap",
            {"segments": [{"filters": UNI}, {"filters": UNI}]},
            f"import nbext\n\nnbext.overlap(segments={[{'filters': UNI}] * 2})",
        ),
        (
            "wallet",
            {"wallets": ["0xab"], "asOf": "30d"},
            "import nbext\n\nnbext.wallet(address=['0xab'], as_of='30d')",
        ),
        (
            "search",
            {"searchTerm": "ape", "type": "token"},
            "import nbext\n\nnbext.connect().search_nfts(term='ape', type='token')",
        ),
        ("describe", {}, "%nbext schema"),
    ]
    for tool, asked, _ in questions:
        agents.record(tmp_path, tool, asked, f"said of {tool}", opens=True)
    table = shell.value("%nbext history --agent")
    assert table[["number", "tool", "answer"]].to_numpy().tolist() == [
        [number, tool, f"said of {tool}"] for number, (tool, _, _) in enumerate(questions, 1)
    ]
    for number, (_, _, cell) in enumerate(questions, 1):
        assert opened(shell, number) == cell
    assert stat.S_IMODE((tmp_path / "agent.jsonl").stat().st_mode) == 0o600


def test_nothing_of_an_agents_text_runs_in_a_cell(shell, tmp_path):
    agents.record(tmp_path, "count", {"filters": {"token": {"token": EVIL}}}, "", opens=True)
    agents.record(tmp_path, "search", {"searchTerm": EVIL}, "", opens=True)
    segment, call = opened(shell, 1), opened(shell, 2)
    assert segment.isascii()
    assert "{{" not in segment
    assert json.loads(segment.partition("\n")[2]) == {"token": {"token": EVIL}}
    assert call.isascii()
    assert call.splitlines() == ["import nbext", "", call.splitlines()[2]]
    asked = []
    eval(call.splitlines()[2], {"nbext": Asked(asked)})
    assert asked == [{"term": EVIL}]


class Asked:
    """Notes the keywords of a call."""

    def __init__(self, asked):
        self._asked = asked

    def connect(self):
        return self

    def search_nfts(self, **words):
        self._asked.append(words)


def test_a_refused_question_a_long_one_and_a_damaged_line_do_not_open(shell, tmp_path):
    """A refused one may name a file, which a cell of the notebook would read."""
    agents.record(tmp_path, "count", {"filters": {"wallet": {"in": "@x.csv"}}}, "no", opens=False)
    agents.record(tmp_path, "count", {"filters": {"a": "x" * 100_000}}, "long", opens=True)
    with (tmp_path / "agent.jsonl").open("a") as file:
        file.write('{"torn')
    table = shell.value("%nbext history --agent")
    assert table["answer"].tolist() == ["no", "long", "This line of the history is damaged."]
    for number in (1, 2, 3):
        assert shell.error(f"%nbext history {number} --agent") == (
            f"UsageError: %nbext: question {number} was refused, or is not stored whole."
        )
    for line, flag in (("--agent --card", "--card"), ("1 --agent -o x", "--out")):
        assert shell.error(f"%nbext history {line}") == (
            f"UsageError: %nbext history: {flag} has no effect with --agent. Leave it out."
        )
    for number in (0, 4):
        assert shell.error(f"%nbext history {number} --agent") == (
            f"UsageError: %nbext: there is no question {number}. Agents asked 3."
        )


def test_the_history_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(agents, "MOST_BYTES", 10_000)
    for number in range(400):
        agents.record(tmp_path, "count", {"n": number}, "x" * 200, opens=True)
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert (len(sizes), max(sizes) < 11_000) == (2, True)
    kept = [one["asked"]["n"] for one in agents.recorded(tmp_path)]
    assert kept == list(range(400 - len(kept), 400))


def test_the_configuration_has_the_settings_of_the_notebook_and_no_key(
    shell, tmp_path, monkeypatch
):
    monkeypatch.setenv("NBEXT_API_KEY", "a-key-of-the-tests")
    shell.run("%nbext set base_url https://api.example.org")
    printed = shell.run(f"%nbext mcp {tmp_path}").printed
    shell.run("%nbext unset base_url")
    server = json.loads(printed.splitlines()[1])["nbext"]
    assert server["args"] == ["-m", "nbext.cli", "mcp", "--folder", str(tmp_path)]
    assert server["env"] == {
        "NBEXT_BASE_URL": "https://api.example.org",
        "NBEXT_DATA_DIR": str(tmp_path),
    }
    assert "a-key-of-the-tests" not in printed
    assert "claude mcp add-json nbext '{" in printed
