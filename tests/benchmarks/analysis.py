"""Segments side by side, through HTTP, beside the same in DuckDB SQL by hand and in pandas; all must agree.

The lines of code are those of the sides' functions here. Ours is warm, and so are the others.

    python -m tests.benchmarks analysis --rows 10_000_000 --folder FOLDER
"""

from __future__ import annotations

import argparse
import inspect
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from nbext.core.addresses import BURN_ADDRESSES
from tests.benchmarks.generate import SECONDS_PER_BLOCK, World, add_kept_world_arguments
from tests.benchmarks.measure import timed
from tests.benchmarks.query import ours_tables, prepared
from tests.benchmarks.table import Row

SETS, POINTS = 30, 52


def overlap_ours(client: Any, tokens: list[str]) -> list[list[int]]:
    """Count what each two tokens' holders have in common."""
    import nbext

    return (
        nbext.overlap({one: {"token": {"token": one}} for one in tokens}, client=client)
        .to_numpy()
        .tolist()
    )


def overlap_sql(connection: Any, contracts: list[int], burned: list[int]) -> list[list[int]]:
    """Count them by a join of the balances with themselves."""
    held = "SELECT contract, wallet FROM balances WHERE contract IN $1 AND sort_key > 0 AND wallet NOT IN $2"
    joined = f"WITH s AS ({held}) SELECT a.contract, b.contract, count(*) FROM s a JOIN s b USING (wallet) GROUP BY ALL"
    found = {
        (a, b): number
        for a, b, number in connection.execute(joined, [contracts, burned]).fetchall()
    }
    return [[found.get((a, b), 0) for b in contracts] for a in contracts]


def overlap_pandas(balances: Any, contracts: list[int]) -> list[list[int]]:
    """Count them by sets of a table that is in memory already."""
    sets = {contract: set(wallets) for contract, wallets in balances.groupby("contract")["wallet"]}
    return [[len(sets[a] & sets[b]) for b in contracts] for a in contracts]


def trend_ours(client: Any, token: str, hours: int) -> list[tuple[int, int, int]]:
    """Count a token's holders, and add up what they hold, at each of many blocks."""
    import nbext

    table = nbext.trend(
        {"token": {"token": token}},
        every=f"{hours}h",
        since=f"{hours * (POINTS - 1)}h",
        client=client,
    )
    return list(
        zip(
            table["block"].tolist(),
            table["count"].tolist(),
            map(int, table["amount_raw"]),
            strict=True,
        )
    )


def trend_sql(
    connection: Any, contract: int, burned: list[int], blocks: list[int]
) -> list[tuple[int, int, int]]:
    """Count and add them up, block by block, in the history of balances."""
    asked = (
        "SELECT count(*), sum(hi), sum(mid), sum(lo) FROM history WHERE contract = $1 AND from_block <= $2 "
        "AND to_block > $2 AND sort_key > 0 AND wallet NOT IN $3"
    )
    found = [connection.execute(asked, [contract, block, burned]).fetchall()[0] for block in blocks]
    return [
        (block, n, (int(hi or 0) * 10**26 + int(mid or 0)) * 10**26 + int(lo or 0))
        for block, (n, hi, mid, lo) in zip(blocks, found, strict=True)
    ]


def trend_pandas(history: Any, blocks: list[int]) -> list[tuple[int, int]]:
    """Count them in a token's history that is in memory already; without what they hold, which has 38 digits."""
    stood = [
        history[(history.from_block <= block) & (history.to_block > block)] for block in blocks
    ]
    return [(block, len(rows)) for block, rows in zip(blocks, stood, strict=True)]


def one_ours(client: Any, token: str, hours: int) -> int:
    """Count a token's holders at one block: another one at each call, whose answer is not stored yet."""
    asked = {"token": {"token": token}, "asOf": f"{hours}h"}
    return client.execute_segment(asked, limit=0).attrs["nbext"]["matched"]


def changes_ours(client: Any, token: str, block: int) -> dict[str, int]:
    """Say of each holder of a token whether it joined or left since a block, with its balances."""
    import nbext

    return (
        nbext.changes({"token": {"token": token}}, block, client=client)["status"]
        .value_counts()
        .to_dict()
    )


def changes_sql(connection: Any, contract: int, burned: list[int], block: int) -> dict[str, int]:
    """Say it by an outer join of the balances now and those of the history."""
    then = "SELECT * FROM history WHERE contract = $1 AND from_block <= $2 AND to_block > $2 AND sort_key > 0"
    both = f"FROM (SELECT * FROM balances WHERE contract = $1 AND sort_key > 0) b FULL JOIN ({then}) h USING (wallet)"
    asked = (
        "SELECT address, if(h.wallet IS NULL, 'joined', if(b.wallet IS NULL, 'left', 'stayed')) AS status, b.hi, "
        f"b.mid, b.lo, h.hi, h.mid, h.lo {both} JOIN wallets USING (wallet) WHERE wallet NOT IN $3 ORDER BY ALL"
    )
    return (
        connection.execute(asked, [contract, block, burned]).df()["status"].value_counts().to_dict()
    )


def changes_pandas(history: Any, last: int, block: int) -> dict[str, int]:
    """Say it by sets of a token's history that is in memory already; without addresses and balances."""
    now, then = (
        set(history.wallet[(history.from_block <= at) & (history.to_block > at)])
        for at in (last, block)
    )
    sizes = {"joined": len(now - then), "left": len(then - now), "stayed": len(now & then)}
    return {status: number for status, number in sizes.items() if number}


def wallet_ours(client: Any, address: str) -> Any:
    """List what a wallet holds, as a table with exact amounts."""
    import nbext

    return nbext.wallet(address, client=client)


def wallet_sql(connection: Any, address: str) -> dict[str, int]:
    """List it from the balances."""
    asked = (
        "SELECT c.address, hi, mid, lo FROM balances JOIN wallets w USING (wallet) JOIN contracts c "
        "USING (contract) WHERE w.address = $1 AND sort_key > 0"
    )
    rows = connection.execute(asked, [address]).fetchall()
    return {
        contract: (int(hi) * 10**26 + int(mid)) * 10**26 + int(lo) for contract, hi, mid, lo in rows
    }


def wallet_pandas(balances: Any, wallet: int) -> set[int]:
    """List the contracts from balances that are in memory already; without amounts, which have 38 digits."""
    return set(balances.contract[balances.wallet == wallet])


def profile_ours(client: Any, token: str, least: int = 5) -> dict[str, tuple[int, float]]:
    """Say what a token's holders hold more than others do."""
    import nbext

    found = nbext.profile({"token": {"token": token}}, least=least, client=client)
    return {row.contract: (row.wallets, round(row.lift, 6)) for row in found.itertuples()}


def profile_sql(
    connection: Any, contract: int, burned: list[int], size: int
) -> dict[str, tuple[int, float]]:
    """Count the holders of every contract among all wallets, and among the token's."""
    own = "SELECT wallet FROM balances WHERE contract = $1 AND sort_key > 0 AND wallet NOT IN $2"
    asked = (
        f"WITH s AS ({own}) SELECT c.address, count(s.wallet) AS n, n / (SELECT count(*) FROM s) / (count(*) / "
        "$3) AS lift FROM balances b LEFT JOIN s USING (wallet) JOIN contracts c USING (contract) "
        "WHERE sort_key > 0 AND b.wallet NOT IN $2 GROUP BY ALL HAVING n >= 5 ORDER BY lift DESC, n DESC "
        "LIMIT 200"
    )
    found = connection.execute(asked, [contract, burned, size]).fetchall()
    return {address: (n, round(lift, 6)) for address, n, lift in found}


def profile_pandas(balances: Any, contract: int, size: int) -> dict[int, tuple[int, float]]:
    """Count them in balances that are in memory already."""
    own = balances.wallet[balances.contract == contract]
    n, every = (
        balances.contract[balances.wallet.isin(own)].value_counts(),
        balances.contract.value_counts(),
    )
    found = (n[n >= 5] / len(own) / (every / size)).dropna().nlargest(200)
    return {number: (int(n[number]), round(lift, 6)) for number, lift in found.items()}


def retention_ours(client: Any, token: str, days: int) -> list[int]:
    """Count each day's new holders that still hold a token at the end of that day and of each later."""
    import nbext

    table = nbext.retention({"token": {"token": token}}, "day", since=f"{days}d", client=client)
    counts = table.drop(columns="wallets").mul(table["wallets"], axis=0)
    return counts.stack().dropna().round().astype("int64").tolist()


def retention_sql(
    connection: Any, contract: int, burned: list[int], blocks: list[int]
) -> list[int]:
    """Count them by joins of the history with the ends of the days and with each wallet's first."""
    held = (
        "SELECT wallet, i FROM history JOIN (SELECT unnest($3) AS block, generate_subscripts($3, 1) AS i) ON "
        "from_block <= block AND to_block > block WHERE contract = $1 AND sort_key > 0 AND wallet NOT IN $2"
    )
    asked = (
        f"WITH m AS ({held}), f AS (SELECT wallet, min(i) AS c FROM m GROUP BY wallet) "
        "SELECT c, i, count(*) FROM m JOIN f USING (wallet) GROUP BY ALL"
    )
    found = {
        (c, i): number
        for c, i, number in connection.execute(asked, [contract, burned, blocks]).fetchall()
    }
    ends = range(1, len(blocks) + 1)
    return [
        found.get((c, i), 0)
        for c in ends
        for i in ends
        if i >= c and any(found.get((c, at)) for at in ends)
    ]


def retention_pandas(history: Any, blocks: list[int]) -> list[int]:
    """Count them by sets of a token's history that is in memory already."""
    sets = [
        set(history.wallet[(history.from_block <= at) & (history.to_block > at)]) for at in blocks
    ]
    cohorts = [one.difference(*sets[:place]) for place, one in enumerate(sets)]
    return [
        len(cohort & later)
        for place, cohort in enumerate(cohorts)
        if cohort
        for later in sets[place:]
    ]


def of_times(
    client: Any, tables: Any, of: tuple[str, int], burned: list[int], args: Any
) -> Iterator[Row]:
    """Yield the rows of the largest token through time, and of one query as of one time beside it."""
    token, contract = of
    chain = client.about()["data"]["chains"][0]
    hours = (chain["lastBlock"] - chain["firstBlock"]) * SECONDS_PER_BLOCK // 3600 // POINTS
    # Fewer than three million rows are too short a time for so many points.
    if not hours:
        return
    ours, found = timed(lambda: trend_ours(client, token, hours), args.rounds)
    blocks, rows = [block for block, _, _ in found], f"of {args.rows:,} transfers"
    sql, by_sql = timed(lambda: trend_sql(tables, contract, burned, blocks), args.rounds)
    history = tables.execute(
        "SELECT from_block, to_block FROM history WHERE contract = $1 AND sort_key > 0 AND "
        "wallet NOT IN $2",
        [contract, burned],
    ).df()
    pandas, by_pandas = timed(lambda: trend_pandas(history, blocks), args.rounds)
    assert found == by_sql, "the trends differ"
    assert [(block, number) for block, number, _ in found] == by_pandas, "the trends differ"
    yield Row(
        f"trend of {POINTS} points, counts and sums, {rows} ({lines_of(trend_ours)})",
        ours,
        {
            f"DuckDB SQL ({lines_of(trend_sql)})": sql,
            f"pandas, already in memory, counts alone ({lines_of(trend_pandas)})": pandas,
        },
    )
    counted, _ = timed(lambda: counts_ours(client, token, hours), args.rounds)
    another = count(hours)
    one, _ = timed(lambda: one_ours(client, token, next(another)), 3 * args.rounds)
    yield Row(f"the same, counts alone, {rows}", counted, {"one query as of one time": one})


def counts_ours(client: Any, token: str, hours: int) -> Any:
    """Count a token's holders at each of many blocks."""
    import nbext

    return nbext.trend(
        {"token": {"token": token}},
        every=f"{hours}h",
        since=f"{hours * (POINTS - 1)}h",
        amounts=False,
        client=client,
    )


def lines_of(side: Callable[..., Any]) -> str:
    """Return how many lines a side's function has, its first and its docstring not counted."""
    return f"{len(inspect.getsource(side).splitlines()) - 2} lines"


def of_wallets(
    client: Any, tables: Any, of: tuple[str, int], burned: list[int], args: Any
) -> Iterator[Row]:
    """Yield the rows of one large token: changes, a profile and retention; and of the wallet that holds most."""
    import pandas as pd

    token, contract = of
    from_block, last = tables.execute("SELECT min(block), max(block) FROM blocks").fetchall()[0]
    block, rows = (from_block + last) // 2, f"of {args.rows:,} transfers"

    history = tables.execute(
        "SELECT wallet, from_block, to_block FROM history WHERE contract = $1 AND sort_key > 0 AND "
        "wallet NOT IN $2",
        [contract, burned],
    ).df()
    sides: dict[str, Callable[[], Any]] = {
        lines_of(changes_ours): lambda: changes_ours(client, token, block),
        f"DuckDB SQL ({lines_of(changes_sql)})": lambda: changes_sql(
            tables, contract, burned, block
        ),
        f"pandas, already in memory, numbers alone ({lines_of(changes_pandas)})": lambda: (
            changes_pandas(history, last, block)
        ),
    }
    took = {title: timed(side, args.rounds) for title, side in sides.items()}
    (of_us, (ours, found)), *others = took.items()
    assert all(other == found for _, (_, other) in others), "the changes differ"
    yield Row(
        f"changes over half of the time {rows} ({of_us})",
        ours,
        {title: seconds for title, (seconds, _) in others},
    )
    balances = tables.execute(
        "SELECT contract, wallet FROM balances WHERE sort_key > 0 AND wallet NOT IN $1", [burned]
    ).df()
    most = "SELECT wallet FROM balances WHERE wallet NOT IN $1 GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
    wallet, address = tables.execute(
        f"SELECT wallet, address FROM wallets WHERE wallet = ({most})", [burned]
    ).fetchall()[0]
    held, table = timed(lambda: wallet_ours(client, address), args.rounds)
    found = dict(zip(table["contract"], map(int, table["amount_raw"]), strict=True))
    by_hand, by_sql = timed(lambda: wallet_sql(tables, address), args.rounds)
    alone, contracts = timed(lambda: wallet_pandas(balances, wallet), args.rounds)
    assert found == by_sql, "the holdings differ"
    assert len(contracts) == len(found), "the holdings differ"
    yield Row(
        f"what the wallet with most contracts holds {rows} ({lines_of(wallet_ours)})",
        held,
        {
            f"DuckDB SQL, to Python's integers ({lines_of(wallet_sql)})": by_hand,
            f"pandas, already in memory, without amounts ({lines_of(wallet_pandas)})": alone,
        },
    )
    size = tables.execute(
        "SELECT count(*) FROM activity WHERE wallet NOT IN $1", [burned]
    ).fetchall()[0][0]
    found, another = profile_ours(client, token), count(6)
    # One that was made is stored: another least number is another profile.
    seconds, _ = timed(lambda: profile_ours(client, token, next(another)), args.rounds)
    sql, by_sql = timed(lambda: profile_sql(tables, contract, burned, size), args.rounds)
    assert sorted(one for _, one in found.values()) == sorted(one for _, one in by_sql.values()), (
        "the profiles differ"
    )
    pandas, by_pandas = timed(lambda: profile_pandas(balances, contract, size), args.rounds)
    assert sorted(lift for _, lift in by_pandas.values()) == sorted(
        lift for _, lift in by_sql.values()
    )
    yield Row(
        f"a profile {rows} ({lines_of(profile_ours)})",
        seconds,
        {
            f"DuckDB SQL, contracts alone ({lines_of(profile_sql)})": sql,
            f"pandas, already in memory, contracts alone ({lines_of(profile_pandas)})": pandas,
        },
    )
    days = min(12, (last - from_block) * SECONDS_PER_BLOCK // 86_400 - 1)
    # Fewer than a million rows are too short a time.
    if days < 3:
        return
    # Warm, and not yet answered.
    retention_ours(client, token, days - 1)
    seconds, found = timed(lambda: retention_ours(client, token, days), 1)
    held, ends = {"token": {"token": token}}, list[int]()
    end = pd.Timestamp(client.execute_segment(held, limit=0).attrs["nbext"]["as_of"]["timestamp"])
    for day in range(days, -1, -1):
        scope = {"asOf": str((end - pd.Timedelta(days=day)).date())} if day else {}
        ends.append(
            client.execute_segment({**held, **scope}, limit=0).attrs["nbext"]["as_of"]["block"]
        )
    sql, by_sql = timed(lambda: retention_sql(tables, contract, burned, ends), args.rounds)
    pandas, by_pandas = timed(lambda: retention_pandas(history, ends), args.rounds)
    assert found == by_sql == by_pandas, "the retentions differ"
    yield Row(
        f"retention over {days} days {rows} ({lines_of(retention_ours)})",
        seconds,
        {
            f"DuckDB SQL ({lines_of(retention_sql)})": sql,
            f"pandas, already in memory ({lines_of(retention_pandas)})": pandas,
        },
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``analysis``."""
    add_kept_world_arguments(parser)
    parser.add_argument("--rounds", type=int, default=3)


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for the overlap of 30 segments, and one for a trend of 52 points where the data is long enough."""
    import duckdb

    from nbext import Client
    from nbext.settings import Settings
    from tests.service.conftest import KEY, Running

    world = World(args.rows, seed=args.seed)
    _, data_dir = prepared(args, world)
    tokens = [world.contract_address(rank) for rank in range(60) if not world.is_collection(rank)][
        :SETS
    ]
    with (
        tempfile.TemporaryDirectory() as state,
        duckdb.connect(str(ours_tables(data_dir)), read_only=True) as tables,
    ):
        running = Running(data_dir, Path(state))
        client = Client(running.url, KEY, settings=Settings(environ={}, folder=Path(state)))
        ids = dict(tables.execute("SELECT address, contract FROM contracts").fetchall())
        contracts = [ids[token] for token in tokens]
        burned = [
            row[0]
            for row in tables.execute(
                "SELECT wallet FROM wallets WHERE address IN $1", [list(BURN_ADDRESSES)]
            ).fetchall()
        ]
        held = tables.execute(
            "SELECT contract, wallet FROM balances WHERE contract IN $1 AND sort_key > 0 "
            "AND wallet NOT IN $2",
            [contracts, burned],
        ).df()
        try:
            ours, found = timed(lambda: overlap_ours(client, tokens), args.rounds)
            sql, by_sql = timed(lambda: overlap_sql(tables, contracts, burned), args.rounds)
            pandas, by_pandas = timed(lambda: overlap_pandas(held, contracts), 1)
            assert found == by_sql == by_pandas, "the overlaps differ"
            sides = {
                f"DuckDB SQL ({lines_of(overlap_sql)})": sql,
                f"pandas, already in memory ({lines_of(overlap_pandas)})": pandas,
            }
            title = (
                f"overlap of {SETS} segments of {args.rows:,} transfers ({lines_of(overlap_ours)})"
            )
            yield Row(title, ours, sides)
            yield from of_wallets(client, tables, (tokens[1], contracts[1]), burned, args)
            yield from of_times(client, tables, (tokens[0], contracts[0]), burned, args)
        finally:
            client.close()
            running.stop()
