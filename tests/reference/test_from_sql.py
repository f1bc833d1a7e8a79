"""The page "From SQL" is true: each SQL gives the wallets of the cell beside it, over the sample's transfers."""

from __future__ import annotations

import re

import duckdb
import pytest

from nbext.engine.sample.unpack import PREPARED
from nbext.engine.storage import DUCKDB
from tests.notebook.shells import loaded_shell
from tests.reference import FOLDER

PAGE = (FOLDER / "from-sql.md").read_text("utf-8")
ASKED = re.findall(
    r"^## (\d+\. .*?)\n.*?```sql\n(.*?)```.*?```python\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE
)
BURNED = {
    "0x0000000000000000000000000000000000000000",
    "0x000000000000000000000000000000000000dead",
}
# Ids and amounts of more than 38 digits are of contracts that the page does not name.
TRANSFERS = f"""
    SELECT make_timestamp(timestamp * 1000000) AS block_time, block AS block_number, log_index, c.address AS contract,
        s.address AS sender, r.address AS recipient, standard,
        CASE WHEN hi = 0 AND mid < 1000000000000
             THEN mid::HUGEINT * 100000000000000000000000000::HUGEINT + lo::HUGEINT END AS value
    FROM '{PREPARED}/transfers.parquet' JOIN '{PREPARED}/contracts.parquet' c USING (contract)
    JOIN '{PREPARED}/blocks.parquet' USING (chain_id, block)
    JOIN '{PREPARED}/wallets.parquet' s ON s.wallet = sender JOIN '{PREPARED}/wallets.parquet' r ON r.wallet = recipient
    WHERE chain_id = 1"""


@pytest.fixture(scope="module")
def sample():
    with duckdb.connect(config={**DUCKDB}) as connection:
        connection.execute(f"CREATE TABLE moved AS {TRANSFERS}")
        connection.execute(
            "CREATE VIEW erc20_transfers AS SELECT * EXCLUDE standard FROM moved "
            "WHERE standard = 'ERC20'"
        )
        connection.execute(
            "CREATE VIEW nft_transfers AS SELECT * EXCLUDE (standard, value), value AS token_id "
            "FROM moved WHERE standard <> 'ERC20'"
        )
        ((last,),) = connection.sql("SELECT max(block_time)::VARCHAR FROM moved").fetchall()
        connection.execute(f"CREATE MACRO now() AS TIMESTAMP '{last}'")
        yield connection


@pytest.fixture(scope="module")
def shell():
    with loaded_shell() as shell:
        yield shell


def test_the_page_asks_ten_questions():
    assert [question.split(".")[0] for question, _, _ in ASKED] == [
        str(number) for number in range(1, 11)
    ]


@pytest.mark.parametrize(
    ("sql", "cell"),
    [(sql, cell) for _, sql, cell in ASKED],
    ids=[question for question, _, _ in ASKED],
)
def test_a_question_in_sql_gives_the_wallets_of_its_cell(sample, shell, sql, cell):
    wallets = {
        wallet for (wallet,) in sample.sql(re.sub(r"\bnow\b", "now()", sql)).fetchall()
    } - BURNED
    assert 0 < len(wallets) < 2000
    assert set(shell.value(cell).address.str.lower()) == wallets


def test_the_page_of_what_it_does_not_do_names_an_alternative_for_each():
    rows = [
        line.strip("| ").split(" | ")
        for line in (FOLDER / "limits.md").read_text("utf-8").splitlines()
        if line.startswith("| ")
    ]
    assert len(rows) == 13
    assert all(len(row) == 3 and all(row) for row in rows)
