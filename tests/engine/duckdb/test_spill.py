"""What does not fit into memory spills into the data folder, and goes with the process that spilled it."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nbext.engine.dataset import Question
from nbext.engine.open import open_dataset
from nbext.errors import StorageError
from tests.engine.hand_made import generation

ENGINE = "duckdb://?memory=96MB&threads=1"


def _every_pair(sql):
    """Rank a million rows by wide texts: three times what the memory holds."""
    wide = (
        "SELECT a.wallet, repeat(b.address || a.address || c.wallet::VARCHAR, 2) AS place "
        "FROM wallets a, wallets b, wallets c"
    )
    ranked = f"SELECT wallet, row_number() OVER (ORDER BY place) AS rank FROM ({wide})"
    return sql.leaf(f"SELECT wallet FROM ({ranked}) WHERE rank = {sql.value(8)}")


WIDE = Question(_every_pair)
HOLD = """
import sys
from pathlib import Path
from nbext.engine.open import open_dataset
from tests.engine.duckdb.test_spill import ENGINE, WIDE
dataset = open_dataset(Path(sys.argv[1]), ENGINE)
dataset.ask(WIDE, limit=1)
spill = dataset._spill.folder
(spill / "left.tmp").touch()
print(spill, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def data_dir(tmp_path):
    generation(tmp_path, {})
    return tmp_path


def holder(data_dir: Path) -> tuple[subprocess.Popen[str], Path]:
    """Return a process that has spilled and goes on, and its folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(data_dir)],
        cwd=Path(__file__).parents[3],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
def test_a_question_beyond_the_memory_spills_into_the_data_folder_and_leaves_nothing_there(
    data_dir,
):
    dataset = open_dataset(data_dir, ENGINE)
    assert dataset.ask(WIDE, limit=1).matched == 1
    # DuckDB makes the folder when it first spills.
    assert [path.parent.name for path in (data_dir / "spill").iterdir() if path.is_dir()] == [
        "spill"
    ]
    dataset.close()
    assert list((data_dir / "spill").iterdir()) == []


@pytest.mark.load
def test_what_a_killed_process_spilled_goes_at_the_next_start_and_what_a_living_one_has_stays(
    data_dir,
):
    (dead, left), (living, kept) = holder(data_dir), holder(data_dir)
    try:
        assert left.parent == kept.parent == data_dir / "spill"
        assert (left / "left.tmp").exists()
        end(dead)
        dataset = open_dataset(data_dir, ENGINE)
        assert not left.exists()
        assert (kept / "left.tmp").exists()
        assert len(list((data_dir / "spill").glob("*.lease"))) == 2
        dataset.close()
    finally:
        end(dead)
        end(living)


@pytest.mark.slow
def test_data_that_may_only_be_read_spills_into_the_systems_folder(
    data_dir, tmp_path_factory, monkeypatch
):
    elsewhere = tmp_path_factory.mktemp("system")
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    (data_dir / "spill").touch()  # nobody, root neither, can make a folder where a file stands
    dataset = open_dataset(data_dir, ENGINE)
    assert dataset.ask(WIDE, limit=1).matched == 1
    assert len(list(elsewhere.glob("nbext-spill-*"))) == 1
    dataset.close()
    assert list(elsewhere.iterdir()) == []


def test_data_that_cannot_be_opened_leaves_nothing_to_spill_into(data_dir):
    (data_dir / "generations" / "000001-abcdef" / "tables.duckdb").write_bytes(b"none of DuckDB's")
    with pytest.raises(StorageError):
        open_dataset(data_dir, ENGINE)
    assert list((data_dir / "spill").iterdir()) == []
