"""What was taken in can be listed, taken out, given again and replaced; the tables are then those of what remains."""

from __future__ import annotations

import csv
import errno
import itertools
import os
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nbext.cli import main
from nbext.engine import storage
from nbext.engine.dataset import ChainExtent
from nbext.engine.ingest import remove
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.ingest.run import compact
from nbext.errors import IngestError, ValidationError
from tests import slow
from tests.engine.ingest import large
from tests.engine.ingest.conftest import ETL, write_csv, write_parquet
from tests.engine.ingest.reading_back import Tables, everything, take, transaction, wallet
from tests.engine.ingest.replay import Log, tokens
from tests.engine.ingest.test_again import killed_at
from tests.engine.ingest.test_append import answers, contents
from tests.engine.ingest.test_files import etherscan

TIMED = [*ETL, "block_timestamp"]
SNAPSHOT = "contract_address,holder,balance"
TOKENS = "address,symbol,name,decimals"
BLOCKS = "number,timestamp,hash"


@dataclass(frozen=True)
class Given:
    """A file as it was given: its name, its header and rows, where their blocks are, and its options."""

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple, ...]
    options: SnapshotOptions | None = None
    # Its rows when it was given, where some were replaced since.
    whole: tuple[tuple, ...] | None = None

    @property
    def contents(self):
        return self.header, self.rows if self.whole is None else self.whole

    def write(self, folder):
        folder.mkdir(exist_ok=True)
        with (folder / self.name).open("w", newline="") as file:
            csv.writer(file).writerows([self.header, *self.rows])
        return folder / self.name

    def before(self, block):
        """What is left of it when everything from that block on is replaced."""
        if self.options is not None:
            beyond = self.options.block is not None and self.options.block >= block
            return replace(self, rows=() if beyond else self.rows, whole=self.contents[1])
        at = next(
            (self.header.index(name) for name in ("block_number", "number") if name in self.header),
            None,
        )
        rows = self.rows if at is None else tuple(row for row in self.rows if row[at] < block)
        return replace(self, rows=rows, whole=self.contents[1])


def draw_logs(draw, versions):
    """Some of the chain's transfers, as they are now: a reorganisation changes their values and never their keys.

    Few of wallet(1000) may look like an NFT collection's; those of wallet(1001) never do: snapshots have its amounts.
    """
    chosen = draw(st.lists(st.sampled_from(sorted(versions)), min_size=1, max_size=6, unique=True))
    return [
        Log(
            wallet(1000 + n % 2),
            wallet(n % 4),
            wallet((n + 1 + n // 5) % 5),
            (n % 3 or n % 2) * 10**20 + versions[n],
            transaction(n + 1),
            n % 7,
            100 + n,
        )
        for n in chosen
    ]


def of_transfers(name, logs, *, timed):
    rows = [(*log, 1_600_000_000 + 12 * log.block_number) if timed else log for log in logs]
    return Given(name, tuple(TIMED if timed else ETL), tuple(map(tuple, rows)))


def draw_file(draw, name, versions, *, timed):
    # A snapshot of a date is refused where the next block has no time.
    dated = ["timed", "dated"] if timed else ["transfers", "timed"]
    kind = draw(
        st.sampled_from([*dated, "timed" if timed else "transfers", "tokens", "blocks", "snapshot"])
    )
    if kind in ("transfers", "timed"):
        return of_transfers(name, draw_logs(draw, versions), timed=kind == "timed")
    if kind == "tokens":
        decimals = draw(st.integers(0, 3))
        return Given(
            name, tuple(TOKENS.split(",")), ((wallet(1000), f"T{decimals}", "", decimals),)
        )
    if kind == "blocks":
        blocks = draw(st.lists(st.integers(98, 114), min_size=1, max_size=4, unique=True))
        rows = tuple((block, 1_600_000_000 + 12 * block, transaction(block)) for block in blocks)
        return Given(name, tuple(BLOCKS.split(",")), rows)
    rows = tuple(
        (wallet(1001 + n % 2), wallet(n), 1 + n)
        for n in draw(st.sets(st.integers(0, 9), min_size=1))
    )
    block = draw(st.integers(98, 114))
    when = {"block": block} if kind == "snapshot" else {"date": 1_600_000_000 + 12 * block + 5}
    return Given(name, tuple(SNAPSHOT.split(",")), rows, SnapshotOptions(unit="raw", **when))


def ingested(data, folder, file, **options):
    return take(data, file.write(folder), options=file.options, **options)


def fresh(folder, files):
    """Ingest these files, in their order, into a folder of their own, and return it."""
    for number, file in enumerate(files):
        # A replacement may leave the same rows of two files, which then are still two: each has a column of its own.
        rows = tuple((*row, "") for row in file.rows)
        alone = replace(file, header=(*file.header, f"only_{number}"), rows=rows)
        ingested(folder / "fresh", folder / f"fresh-{number}", alone)
    return folder / "fresh"


@dataclass
class Living:
    """A data folder to which things happen, the files that it should hold, and the transfers' versions."""

    draw: object
    folder: Path
    files: list = field(default_factory=list)
    versions: dict = field(default_factory=lambda: dict.fromkeys(range(12), 1))
    names: object = field(default_factory=lambda: (f"{n:02}.csv" for n in itertools.count()))
    # Whether every transfer comes with its block's time, so that snapshots may have a date.
    timed: bool = False

    @property
    def data(self):
        return self.folder / "data"

    def begin(self):
        self.timed = self.draw(st.booleans())
        # A file that is never taken out: the last one cannot be.
        row = (90, 1_600_000_000 + 12 * 90, "0x")
        self.files.append(Given(next(self.names), tuple(BLOCKS.split(",")), (row,)))
        ingested(self.data, self.folder, self.files[0])

    def add(self):
        new = draw_file(self.draw, next(self.names), self.versions, timed=self.timed)
        self._keep(new)
        ingested(self.data, self.folder, new)

    def _keep(self, new):
        # The same contents under another name: in another way they replace the former, else they are known.
        if not any(
            file.contents == new.contents and file.options == new.options for file in self.files
        ):
            self.files = [file for file in self.files if file.contents != new.contents] + [new]

    def remove(self):
        if len(self.files) > 1:
            gone = self.files.pop(self.draw(st.integers(1, len(self.files) - 1)))
            remove(str(self.folder / gone.name), self.data)

    def again(self):
        if old := [
            file for file in self.files if file.rows and file.options and file.options.block
        ]:
            gone = self.draw(st.sampled_from(old))
            anew = replace(gone, options=SnapshotOptions(unit="raw", block=gone.options.block + 1))
            self.files = [file for file in self.files if file is not gone] + [anew]
            ingested(self.data, self.folder, anew)

    def replace(self):
        block = self.draw(st.integers(98, 112))
        self.versions |= {
            n: version + 1 for n, version in self.versions.items() if 100 + n >= block
        }
        # What lies below may not be of another branch, and something has to be replaced.
        logs = [log for log in draw_logs(self.draw, self.versions) if log.block_number >= block]
        last = max(self.versions)
        logs = logs or [
            Log(
                wallet(1000),
                wallet(1),
                wallet(2),
                self.versions[last],
                transaction(last + 1),
                9,
                115,
            )
        ]
        new = of_transfers(next(self.names), logs, timed=self.timed)
        self.files = [
            file.before(block) for file in self.files if file.contents != new.contents
        ] + [new]
        ingested(self.data, self.folder, new, replace_from=block)

    def compact(self):
        compact(self.data)

    def kill(self):
        """Kill a run that adds transfers, or removes a file; what it was to do is done again."""
        place, nth = self.draw(
            st.sampled_from([("statement", 9), ("statement", 60), ("sync", 1), ("switch", 2)])
        )
        logs = draw_logs(self.draw, self.versions)
        new = of_transfers(next(self.names), logs, timed=self.timed)
        killed_at(place, nth, new.write(self.folder), self.data)
        self._keep(new)
        ingested(self.data, self.folder, new)


def live(draw, folder, acts):
    """Let acts happen to a data folder; return the files that a fresh ingest would have of them."""
    living = Living(draw, folder)
    living.begin()
    for _ in range(draw(st.integers(1, 5))):
        getattr(living, draw(st.sampled_from(acts)))()
    return [file for file in living.files if file.rows]


# Not made smaller: that takes hundreds of runs of ingest, and what is printed is short enough to read.
@pytest.mark.slow
@pytest.mark.parametrize("part", slow.but_the_first(range(3)))
@settings(max_examples=2, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(data=st.data())
def test_the_tables_are_those_of_a_fresh_ingest_of_what_remains_after_removals_and_replacements(
    part, data
):
    with tempfile.TemporaryDirectory() as made:
        files = live(data.draw, Path(made), ["add", "add", "remove", "again", "replace"])
        assert everything(Path(made) / "data") == everything(fresh(Path(made), files))


@pytest.mark.long
@pytest.mark.parametrize("part", range(2))  # sixty in all, on every core
@settings(
    max_examples=30,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_deltas_compactions_and_kills_between_change_no_table_and_no_answer(part, data):
    with tempfile.TemporaryDirectory() as made:
        large.begin(Path(made) / "data")
        files = live(
            data.draw,
            Path(made),
            ["add", "add", "add", "remove", "again", "replace", "compact", "kill"],
        )
        whole = fresh(Path(made), files)
        assert contents(Path(made) / "data") == contents(whole)
        assert answers(Path(made) / "data") == answers(whole)
        assert [path.name for path in (Path(made) / "data" / "generations").glob(".*")] == []


@pytest.fixture
def halves(data, tmp_path, log):
    """Two files that have a transfer in common, both ingested."""
    one, both, two = log(0, 1, 10**20), log(0, 2, 10**20), log(0, 3, 10**20)
    paths = [write_csv(tmp_path / "a.csv", [one, both]), write_csv(tmp_path / "b.csv", [both, two])]
    for path in paths:
        take(data, path)
    return paths, (one, both, two)


@pytest.mark.slow
def test_a_row_of_two_files_stays_until_both_are_removed(data, tmp_path, halves, contracts_file):
    (a, b), (one, both, two) = halves
    take(data, contracts_file)
    report = remove("a.csv", data)
    assert report.lines()[0] == f"removed: {a}: token_transfers (ethereum-etl), 2 rows"
    with Tables(data) as tables:
        assert tables.balances() == tokens([both, two]).balances
    remove(str(b), data)
    with Tables(data) as tables:
        assert (tables.balances(), len(tables.rows("SELECT * FROM wallets"))) == ({}, 0)
    take(data, a)
    with Tables(data) as tables:
        assert tables.balances() == tokens([one, both]).balances


@pytest.mark.slow
@pytest.mark.parametrize("gone", slow.but_the_first(["etherscan.csv", "etl.csv"]))
@pytest.mark.parametrize(
    "order",
    [
        ("etherscan.csv", "etl.csv"),
        pytest.param(("etl.csv", "etherscan.csv"), marks=pytest.mark.slow),
    ],
)
def test_a_transfer_that_two_exporters_tell_stays_when_one_is_removed(
    data, tmp_path, log, gone, order
):
    twice = [log(0, 1, 9, tx=5), log(0, 1, 9, tx=5)]
    etherscan(tmp_path / "etherscan.csv", [*twice, log(0, 1, 9, tx=6)])
    write_csv(tmp_path / "etl.csv", [*twice, log(0, 2, 8, tx=8)])
    for name in order:
        take(data, tmp_path / name)
    remove(gone, data)
    take(tmp_path / "fresh", next(tmp_path / name for name in order if name != gone))
    assert everything(data) == everything(tmp_path / "fresh")


@pytest.mark.slow
def test_of_transfers_that_are_matched_by_content_as_many_stay_as_one_source_has(
    data, tmp_path, log
):
    """Of three alike, one file has the first, one the second, and an export without log indexes has all."""
    alike = [log(0, 1, 9, tx=5) for _ in range(3)]
    paths = [
        write_csv(tmp_path / "a.csv", alike[:1]),
        etherscan(tmp_path / "b.csv", alike),
        write_csv(tmp_path / "c.csv", alike[1:2]),
    ]
    for path in paths:
        take(data, path)
    remove("a.csv", data)
    take(tmp_path / "fresh", *paths[1:])
    assert everything(data) == everything(tmp_path / "fresh")
    with Tables(data) as tables:
        assert tables.balances() == tokens(alike).balances


@pytest.mark.slow
def test_the_sources_are_listed_with_how_each_was_read(data, tmp_path, halves, capsys):
    holders = tmp_path / "holders.csv"
    holders.write_text(f"address,balance\n{wallet(5)},1.5\n")
    assert (
        main(
            [
                "ingest",
                str(holders),
                "--chain",
                "1",
                "--data",
                str(data),
                "--token",
                f"ABC={wallet(3000)}",
                "--token",
                wallet(1000),
                "--decimals",
                "6",
                "--block",
                "105",
                "--quiet",
            ]
        )
        == 0
    )
    assert (
        capsys.readouterr().out.splitlines()[1]
        == f"  holders of {wallet(1000)}, 6 decimals, at block 105"
    )
    assert main(["sources", "--data", str(data)]) == 0
    one, two, three = storage.current_generation(data).manifest["files"]
    assert capsys.readouterr().out.splitlines() == [
        f"{one['sha256'][:12]}  {halves[0][0]}: token_transfers (ethereum-etl), 2 rows, ethereum, "
        f"ingested {one['taken_at']}",
        f"{two['sha256'][:12]}  {halves[0][1]}: token_transfers (ethereum-etl), 2 rows, ethereum, "
        f"ingested {two['taken_at']}",
        f"{three['sha256'][:12]}  {holders}: holders, 1 row, ethereum, ingested {three['taken_at']}",
        f"    holders of {wallet(1000)}, 6 decimals, at block 105",
        f"    options: --token abc={wallet(3000)} --token {wallet(1000)} --decimals 6 --block 105",
    ]


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("2020-09-13", 1_600_041_599),
        ("2020-09-13T12:26:40Z", 1_600_000_000),
        ("2020-09-13 14:26:40+02:00", 1_600_000_000),
    ],
)
def test_a_date_is_its_end_and_a_time_is_in_utc(data, tmp_path, date, seconds):
    path = snapshot(tmp_path / "h.csv", (wallet(1), "1"))
    assert (
        main(
            [
                "ingest",
                str(path),
                "--chain",
                "1",
                "--data",
                str(data),
                "--token",
                wallet(1000),
                "--unit",
                "raw",
                "--date",
                date,
                "--quiet",
            ]
        )
        == 0
    )
    assert storage.current_generation(data).chains[0].last_timestamp == seconds


def test_a_date_that_is_none_is_refused(data, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["ingest", "h.csv", "--data", str(data), "--date", "soon"])
    assert (
        "'soon' is not a date. Write 2025-01-31 or 2025-01-31T12:00:00Z." in capsys.readouterr().err
    )


@pytest.mark.slow
@pytest.mark.parametrize("named", slow.but_the_first(["checksum", "path", "name"]))
def test_a_file_is_named_by_its_path_its_name_or_its_checksum(data, halves, named):
    path = halves[0][0]
    digest = storage.current_generation(data).manifest["files"][0]["sha256"]
    remove({"path": str(path), "name": path.name, "checksum": digest[:8].upper()}[named], data)
    assert [entry["path"] for entry in storage.current_generation(data).manifest["files"]] == [
        str(halves[0][1])
    ]


@pytest.mark.slow
def test_a_file_that_is_named_wrongly_or_not_uniquely_is_refused_with_the_candidates(
    data, tmp_path, halves, log
):
    with pytest.raises(ValidationError) as caught:
        remove("c.csv", data)
    (a, b), _ = halves
    digests = [entry["sha256"][:12] for entry in storage.current_generation(data).manifest["files"]]
    assert str(caught.value) == (
        "source: no ingested file is named 'c.csv'. Name one of these by its path or checksum:\n"
        f"  {digests[0]}  {a}: token_transfers (ethereum-etl), 2 rows, ethereum\n"
        f"  {digests[1]}  {b}: token_transfers (ethereum-etl), 2 rows, ethereum"
    )
    (tmp_path / "other").mkdir()
    take(data, write_csv(tmp_path / "other" / "a.csv", [log(0, 9, 10**20)]))
    with pytest.raises(ValidationError, match=r"source: 2 files are named 'a\.csv'"):
        remove("a.csv", data)
    remove(str(tmp_path / "other" / "a.csv"), data)
    remove("a.csv", data)


@pytest.mark.parametrize("folder", ["nothing", "empty"])
def test_where_nothing_was_ingested_nothing_can_be_removed(tmp_path, capsys, folder):
    (tmp_path / "empty").mkdir()
    assert main(["remove", "a.csv", "--data", str(tmp_path / folder)]) == 2
    assert "ValidationError: " in capsys.readouterr().err
    # A mistyped folder is not one without files.
    code = main(["sources", "--data", str(tmp_path / folder)])
    assert (code, *capsys.readouterr()) == {
        "nothing": (2, "", f"ValidationError: data_dir: {tmp_path / 'nothing'} does not exist.\n"),
        "empty": (0, f"{tmp_path / 'empty'} has no files that were ingested.\n", ""),
    }[folder]
    assert (main(["compact", "--data", str(tmp_path / folder)]) == 0) == (folder == "empty")
    assert not (tmp_path / "nothing").exists()


def snapshot(path, *rows):
    path.write_text(
        "\n".join(["address,balance", *(f"{holder},{balance}" for holder, balance in rows)]) + "\n"
    )
    return path


@pytest.mark.slow
def test_a_snapshot_that_is_given_again_with_other_options_replaces_what_it_gave(
    data, tmp_path, contracts_file
):
    take(data, contracts_file)
    path = snapshot(tmp_path / "h.csv", (wallet(1), "1.5"))
    first = SnapshotOptions(tokens={"": wallet(3000)}, decimals=6, block=100)
    report = take(data, path, options=first)
    assert report.lines()[1] == f"  holders of {wallet(3000)}, 6 decimals, at block 100"
    assert take(data, path, options=first).skipped == take(data, path).skipped == {str(path): None}
    report = take(data, path, options=replace(first, decimals=18))
    assert report.lines()[1:3] == [
        f"  holders of {wallet(3000)}, 18 decimals, at block 100",
        f"replaced: {path}: holders, 1 row",
    ]
    with Tables(data) as tables:
        assert tables.balances() == {(wallet(3000), wallet(1)): 15 * 10**17}
        assert tables.contract(wallet(3000))["decimals"] == 18
    before = everything(data)
    with pytest.raises(IngestError, match="of which block are these holders"):
        take(data, path, options=replace(first, decimals=3, block=None))
    assert everything(data) == before


@pytest.mark.slow
def test_decimals_that_are_given_go_before_those_of_an_earlier_snapshot(data, tmp_path):
    made = SnapshotOptions(tokens={"": wallet(3000)}, decimals=6, block=100)
    take(data, snapshot(tmp_path / "a.csv", (wallet(1), "1.5")), options=made)
    take(
        data,
        snapshot(tmp_path / "b.csv", (wallet(1), "2.5")),
        options=replace(made, decimals=18, block=101),
    )
    with Tables(data) as tables:
        assert tables.balances() == {(wallet(3000), wallet(1)): 25 * 10**17}
        assert tables.contract(wallet(3000))["decimals"] == 18
    remove("b.csv", data)
    with Tables(data) as tables:
        assert tables.balances() == {(wallet(3000), wallet(1)): 1_500_000}
        assert tables.contract(wallet(3000))["decimals"] == 6


@pytest.mark.slow
def test_decimals_with_which_stored_amounts_were_not_read_refuse_the_run(data, tmp_path):
    made = SnapshotOptions(tokens={"": wallet(3000)}, decimals=6, block=100)
    path = snapshot(tmp_path / "h.csv", (wallet(1), "1.5"))
    take(data, path, options=made)
    (tmp_path / "tokens.csv").write_text(f"{TOKENS}\n{wallet(3000)},T,T,18\n")
    before = everything(data)
    older = snapshot(tmp_path / "older.csv", (wallet(1), "2.5"))
    for more, options in (
        (tmp_path / "tokens.csv", None),
        (older, replace(made, decimals=18, block=99)),
    ):
        with pytest.raises(IngestError) as caught:
            take(data, more, options=options)
        assert str(caught.value) == (
            f"{path}: its amounts of {wallet(3000)} were read with 6 decimals, and would be wrong with 18, which the "
            "token has from now on. Ingest the file again in the same run with --decimals 18, or remove it first."
        )
    assert everything(data) == before
    take(data, tmp_path / "tokens.csv", path, options=replace(made, decimals=18))
    with Tables(data) as tables:
        assert tables.balances() == {(wallet(3000), wallet(1)): 15 * 10**17}
        assert tables.contract(wallet(3000))["decimals"] == 18


@pytest.mark.slow
def test_a_snapshot_stays_what_it_was_taken_as_when_the_decimals_metadata_goes(data, tmp_path):
    (tmp_path / "tokens.csv").write_text(f"{TOKENS}\n{wallet(3000)},T,T,3\n")
    take(data, tmp_path / "tokens.csv")
    take(
        data,
        snapshot(tmp_path / "h.csv", (wallet(1), "1.5")),
        options=SnapshotOptions(tokens={"": wallet(3000)}, block=100),
    )
    remove("tokens.csv", data)
    with Tables(data) as tables:
        assert tables.balances() == {(wallet(3000), wallet(1)): 1_500}
        known = tables.contract(wallet(3000))
    assert (known["decimals"], known["symbol"]) == (3, None)


def test_a_file_name_that_hides_something_is_listed_with_it_shown(data, tmp_path, log, capsys):
    take(data, write_csv(tmp_path / "a\x1b[31m.csv", [log()]))
    main(["sources", "--data", str(data)])
    assert "a\\x1b[31m.csv: token_transfers" in capsys.readouterr().out


@pytest.mark.slow
def test_a_file_that_is_given_again_for_another_chain_is_another_source(data, halves, capsys):
    a = halves[0][0]
    counted = "SELECT chain_id, transfers FROM contracts WHERE transfers > 0"
    # Once by its time and size, once by its bytes, as after a copy.
    for chain, change in (("optimism", lambda: None), ("base", lambda: os.utime(a, (1, 1)))):
        change()
        assert take(data, a, chain=chain).removed == []
        assert list(take(data, a, chain=chain).skipped) == [str(a)]
    assert list(take(data, a, chain="ethereum").skipped) == [str(a)]
    with Tables(data) as tables:
        assert tables.rows(counted) == [(1, 3), (10, 2), (8453, 2)]
    digest = storage.current_generation(data).manifest["files"][0]["sha256"][:12]
    with pytest.raises(ValidationError) as caught:
        remove("a.csv", data)
    assert str(caught.value) == (
        "source: 3 files are named 'a.csv'. Name one of these by its path, its checksum, or --chain:\n"
        + "\n".join(
            f"  {digest}  {a}: token_transfers (ethereum-etl), 2 rows, {chain}"
            for chain in ("ethereum", "optimism", "base")
        )
    )
    command = ["remove", "--data", str(data), "--quiet", "--chain", "optimism"]
    assert main([*command, "a.csv"]) == 0
    with Tables(data) as tables:
        assert tables.rows(counted) == [(1, 3), (8453, 2)]
    capsys.readouterr()
    with pytest.raises(ValidationError, match=r"has no files that were ingested for optimism\."):
        remove("a.csv", data, chain="optimism")
    remove(None, data, chain="ethereum")
    with Tables(data) as tables:
        assert tables.rows(counted) == [(8453, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("named", slow.but_the_first(["b.csv", "--all"]))
def test_a_folder_without_its_last_file_is_as_before_its_first(data, halves, named, capsys):
    (a, b), _ = halves
    command = ["remove", "--data", str(data), "--quiet"]
    if named == "b.csv":
        assert main([*command, "a.csv"]) == 0
        a = capsys.readouterr().out and None
    assert main([*command, named]) == 0
    assert capsys.readouterr().out == (
        "".join(
            f"removed: {path}: token_transfers (ethereum-etl), 2 rows\n" for path in (a, b) if path
        )
        + "The folder has no data any more: the sample is served in its place.\n"
        "Services that run on this folder serve it within two seconds, notebooks from their next cell on.\n"
    )
    assert storage.current_generation(data) is None
    assert list((data / "generations").iterdir()) == []
    assert list(storage.damage_of(data)) == []
    assert take(data, b).generation.startswith("000001-")
    with Tables(data) as tables:
        assert tables.rows("SELECT count(*) FROM transfers") == [(2,)]


@pytest.mark.parametrize("given", [[], ["a.csv", "--all"]])
def test_removing_needs_a_file_or_all(data, given, capsys):
    assert main(["remove", "--data", str(data), *given]) == 2
    assert capsys.readouterr().err == (
        "UsageError: Name a file of `nbext sources`, or write --all for every file.\n"
    )


def test_a_snapshot_without_a_block_or_a_time_asks_for_one(data, tmp_path):
    path = snapshot(tmp_path / "h.csv", (wallet(1), "1"))
    with pytest.raises(IngestError) as caught:
        take(data, path, options=SnapshotOptions(tokens={"": wallet(3000)}, unit="raw"))
    assert str(caught.value) == (
        f"{path}: of which block are these holders? The file does not say. Give it with "
        "--block N, or its day with --date 2025-01-31."
    )
    with pytest.raises(ValidationError, match="a snapshot has a block or a date"):
        SnapshotOptions(block=1, date=1)


@pytest.mark.slow
def test_a_snapshot_of_a_time_counts_the_blocks_up_to_then_that_come_later(
    data, tmp_path, log, contracts_file
):
    path = snapshot(tmp_path / "h.csv", (wallet(1), 100))
    made = SnapshotOptions(tokens={"": wallet(1000)}, unit="raw", date=1_600_000_050)
    first = write_parquet(
        tmp_path / "one.parquet", [log(2, 1, 5, block=100)], block_timestamp=[1_600_000_000]
    )
    report = take(data, contracts_file, first, path, options=made)
    assert (
        report.lines()[3]
        == f"  holders of {wallet(1000)}, at 2020-09-13 12:27:30 UTC, block 100 of the data"
    )
    # The first of these is in the snapshot already; the second came after it.
    take(
        data,
        write_parquet(
            tmp_path / "two.parquet",
            [log(2, 1, 7, block=104), log(2, 1, 9, block=105)],
            block_timestamp=[1_600_000_048, 1_600_000_060],
        ),
    )
    with Tables(data) as tables:
        assert tables.balances() == {(wallet(1000), wallet(1)): 109, (wallet(1000), wallet(2)): -9}


def test_a_snapshot_of_a_time_is_refused_where_no_block_has_one(data, tmp_path, log):
    path = snapshot(tmp_path / "h.csv", (wallet(1), 100))
    made = SnapshotOptions(tokens={"": wallet(1000)}, unit="raw", date=1_600_000_050)
    report = take(data, write_csv(tmp_path / "t.csv", [log()]), path, options=made)
    assert [str(error) for error in report.refused] == [
        f"{path}: blocks of the data around this snapshot's time have no time, so its block is unknown. "
        "Give it with --block N, or ingest a blocks file."
    ]
    assert report.new == 1


@pytest.mark.slow
def test_a_snapshot_of_a_time_is_refused_where_the_next_block_has_none(data, tmp_path, log):
    path = snapshot(tmp_path / "h.csv", (wallet(1), 100))
    times = tmp_path / "blocks.csv"
    times.write_text("number,timestamp\n100,1600000000\n102,1600000060\n")
    files = [times, write_csv(tmp_path / "t.csv", [log(block=block) for block in (100, 101, 102)])]
    for date, refused in (
        (1_599_999_999, 0),
        (1_600_000_000, 1),
        (1_600_000_059, 1),
        (1_600_000_060, 0),
    ):
        made = SnapshotOptions(tokens={"": wallet(1000)}, unit="raw", date=date)
        assert len(take(data / str(date), *files, path, options=made).refused) == refused


@pytest.mark.slow
@pytest.mark.parametrize("came", ["times are removed", "blocks without times come"])
def test_a_stored_snapshot_of_a_time_is_never_placed_by_guess(data, tmp_path, log, came):
    path = snapshot(tmp_path / "h.csv", (wallet(1), 100))
    made = SnapshotOptions(tokens={"": wallet(1000)}, unit="raw", date=1_600_000_050)
    times = tmp_path / "blocks.csv"
    times.write_text("number,timestamp\n100,1600000000\n101,1600000060\n")
    untimed = write_csv(
        tmp_path / "t.csv", [log(2, 1, 5 * 10**20, block=100), log(2, 1, 10**20, block=101)]
    )
    take(data, *([times, untimed] if came == "times are removed" else []), path, options=made)
    before = everything(data)
    with pytest.raises(IngestError) as caught:
        remove("blocks.csv", data) if came == "times are removed" else take(data, untimed)
    assert str(caught.value) == (
        f"{path}: it is a snapshot of a time, and blocks around it would have no time, so its block would be "
        "unknown. Ingest a blocks file first, or ingest the snapshot again with --block N, or remove it."
    )
    assert everything(data) == before
    take(data, path, options=replace(made, date=None, block=99))
    remove("blocks.csv", data) if came == "times are removed" else take(data, untimed)
    assert everything(data)[0]["balances"] == everything_of(tmp_path / "fresh", untimed, path, made)


def everything_of(folder, untimed, path, made):
    take(folder, untimed, path, options=replace(made, date=None, block=99))
    return everything(folder)[0]["balances"]


@pytest.mark.slow
def test_a_block_has_one_time_and_another_refuses_the_run(data, tmp_path, log):
    one, other, wrong = (tmp_path / f"{name}.csv" for name in ("one", "other", "wrong"))
    one.write_text("number,timestamp\n100,1600000000\n101,1600000060\n102,1600000120\n")
    other.write_text("number,timestamp\n101,1600000061\n102,1600000121\n103,1600000180\n")
    wrong.write_text("number,timestamp\n105,1600000300\n105,1600000301\n")
    take(data, one, write_csv(tmp_path / "t.csv", [log(block=block) for block in (100, 101, 102)]))
    before = everything(data)
    contradicting = (
        f"{other}: 2 blocks have two times. If a chain was reorganised, ingest its new blocks with --replace-from 101; "
        "if a file is wrong, take it out with `nbext remove`.\n"
        f"  block 101: 2020-09-13 12:27:40 UTC in {one}, 2020-09-13 12:27:41 UTC in {other}\n"
        f"  block 102: 2020-09-13 12:28:40 UTC in {one}, 2020-09-13 12:28:41 UTC in {other}"
    )
    for files in (
        [other],
        [write_parquet(tmp_path / "u.parquet", [log(block=101)], block_timestamp=[1_600_000_061])],
    ):
        with pytest.raises(IngestError) as caught:
            take(data, *files)
        assert files != [other] or str(caught.value) == contradicting
        assert everything(data) == before
    report = take(data, wrong, write_csv(tmp_path / "more.csv", [log(block=103)]))
    assert [str(error) for error in report.refused] == [
        f"{wrong}: 1 block has two times. Correct the file.\n"
        f"  block 105: 2020-09-13 12:31:40 UTC in {wrong}, 2020-09-13 12:31:41 UTC in {wrong}"
    ]
    # Of the other branch, from its first block on.
    branch = write_csv(tmp_path / "branch.csv", [log(block=block) for block in (101, 103)])
    take(data, other, branch, replace_from=101)
    with Tables(data) as tables:
        assert tables.rows("SELECT block, timestamp FROM blocks ORDER BY 1") == [
            (100, 1_600_000_000),
            (101, 1_600_000_061),
            (102, 1_600_000_121),
            (103, 1_600_000_180),
        ]


@pytest.mark.slow
def test_times_that_run_backwards_refuse_their_file_or_the_run(data, tmp_path, log):
    one, alone, later, between = (
        tmp_path / f"{name}.csv" for name in ("one", "alone", "later", "between")
    )
    one.write_text("number,timestamp\n100,1600000000\n110,1600000120\n120,1600000240\n")
    # Zero stands for what is missing in many an export.
    alone.write_text("number,timestamp\n200,1600001200\n210,0\n220,1600001440\n")
    later.write_text("number,timestamp\n130,1600000239\n")
    between.write_text("number,timestamp\n115,1600000240\n116,1600000241\n")
    report = take(
        data,
        one,
        alone,
        write_csv(tmp_path / "t.csv", [log(block=block) for block in (100, 110, 120)]),
    )
    assert [str(error) for error in report.refused] == [
        f"{alone}: a block has a time before that of an earlier block. Correct the file.\n"
        f"  block 200: 2020-09-13 12:46:40 UTC in {alone}, block 210: 1970-01-01 00:00:00 UTC in {alone}"
    ]
    before = everything(data)
    for path, block, lines in (
        (
            later,
            120,
            [
                f"block 120: 2020-09-13 12:30:40 UTC in {one}, block 130: 2020-09-13 12:30:39 UTC in {later}"
            ],
        ),
        (
            between,
            116,
            [
                f"block 116: 2020-09-13 12:30:41 UTC in {between}, "
                f"block 120: 2020-09-13 12:30:40 UTC in {one}"
            ],
        ),
    ):
        with pytest.raises(IngestError) as caught:
            take(data, path)
        assert str(caught.value) == "\n  ".join(
            [
                f"{path}: a block has a time before that of an earlier block. If a chain was reorganised, ingest its "
                f"new blocks with --replace-from {block}; if a file is wrong, take it out with `nbext remove`.",
                *lines,
            ]
        )
    assert everything(data) == before
    between.write_text("number,timestamp\n115,1600000120\n116,1600000240\n")
    assert take(data, between).refused == [], "blocks of one second are in order"


@pytest.mark.slow
def test_a_run_says_which_blocks_have_no_time(data, tmp_path, log):
    times = tmp_path / "blocks.csv"
    times.write_text("number,timestamp\n100,1600000000\n101,1600000060\n")
    report = take(data, times, write_csv(tmp_path / "one.csv", [log(block=100)]))
    assert report.untimed == []
    report = take(data, write_csv(tmp_path / "two.csv", [log(block=102), log(block=103)]))
    assert report.lines()[-2] == (
        "  2 of 4 blocks of ethereum (102 to 103) without a time: questions by a date "
        "around them are refused. Ingest a file with their times (number, timestamp)"
    )
    # The end of the data has no time of another block.
    assert storage.current_generation(data).chains == (ChainExtent(1, 100, 103, None),)
    times.write_text("number,timestamp\n102,1600000120\n103,1600000180\n")
    assert take(data, times).untimed == []
    assert storage.current_generation(data).chains == (ChainExtent(1, 100, 103, 1_600_000_180),)


def test_a_file_that_is_given_again_with_another_map_replaces_what_it_gave(
    data, tmp_path, log, capsys
):
    rows = [log(0, 1, 5 * 10**20), log(0, 2, 7 * 10**20)]
    path = tmp_path / "t.csv"
    path.write_text(
        "\n".join(
            [
                ",".join(ETL).replace("value", "one,two"),
                *(
                    ",".join(map(str, (*row[:3], row.value, row.value * 10, *row[4:])))
                    for row in rows
                ),
            ]
        )
        + "\n"
    )

    def given(*options):
        main(["ingest", str(path), "--chain", "1", "--data", str(data), "--quiet", *options])
        return capsys.readouterr().out.splitlines()

    given("--map", "one=value")
    assert given()[0] == given("--map", "one=value")[0] == f"{path}: ingested before, skipped"
    assert (
        given("--map", "two=value")[1]
        == f"replaced: {path}: token_transfers (ethereum-etl), 2 rows"
    )
    with Tables(data) as tables:
        assert tables.balances()[wallet(1000), wallet(2)] == 7 * 10**21
    main(["sources", "--data", str(data)])
    assert capsys.readouterr().out.splitlines()[1:] == ["    options: --map two=value"]


@pytest.fixture
def reorganised(data, tmp_path, log):
    """A file with blocks 100 to 102, ingested, and one in which the transfer of block 101 is in 102 instead."""
    rows = [log(0, n, 10**20, tx=n, index=n, block=99 + n) for n in (1, 2, 3)]
    take(data, write_csv(tmp_path / "old.csv", rows))
    moved = [rows[0], rows[1]._replace(block_number=102, value=7)]
    return rows, write_csv(tmp_path / "new.csv", moved), moved


def test_a_row_that_contradicts_a_stored_one_is_shown_beside_it_and_refuses_the_run(
    data, tmp_path, reorganised, log
):
    before = everything(data)
    with pytest.raises(IngestError) as caught:
        take(data, reorganised[1], write_csv(tmp_path / "good.csv", [log(0, 9, 1)]))
    sides = f"{wallet(1000)} from {wallet(0)} to {wallet(2)}"
    assert str(caught.value) == (
        f"{tmp_path / 'new.csv'}: 1 row contradicts another with the same transaction and log index. If a chain was "
        "reorganised, ingest its new blocks with --replace-from 101; if a file is wrong, take it out with "
        "`nbext remove`.\n"
        f"  {tmp_path / 'new.csv'}, row 2: block 102, log 2: {sides}, 7\n"
        f"    {tmp_path / 'old.csv'}, row 2: block 101, log 2: {sides}, {10**20}"
    )
    assert (caught.value.path, caught.value.row) == (str(tmp_path / "new.csv"), 2)
    assert everything(data) == before
    assert len(storage.current_generation(data).manifest["files"]) == 1


def test_two_files_of_one_run_that_contradict_each_other_refuse_it(data, tmp_path, reorganised):
    says = r"old.csv: 1 row contradicts another(.|\n)*old.csv, row 2(.|\n)*new.csv, row 2"
    with pytest.raises(IngestError, match=says):
        take(tmp_path / "fresh", tmp_path / "old.csv", reorganised[1])
    assert storage.current_generation(tmp_path / "fresh") is None


def test_a_file_that_contradicts_itself_is_refused_alone(data, tmp_path, log):
    row = log(0, 1, 5)
    path = write_csv(tmp_path / "a.csv", [row, row, row._replace(value=6), log(0, 2, 1)])
    report = take(data, path, write_csv(tmp_path / "b.csv", [log(0, 3, 1)]))
    assert report.new == 1
    assert str(report.refused[0]).startswith(
        f"{path}: 1 row contradicts another with the same transaction and log index. Correct the file.\n"
    )


@pytest.mark.slow
def test_replacing_from_a_block_on_takes_out_what_every_file_has_there(data, tmp_path, reorganised):
    rows, path, moved = reorganised
    report = take(data, path, chain="ethereum", replace_from=101)
    assert "replaced: 2 transfers of ethereum from block 101 on" in report.lines()
    with Tables(data) as tables:
        assert tables.balances() == tokens([rows[0], moved[1]]).balances
    entries = storage.current_generation(data).manifest["files"]
    assert [entry.get("replaced_from") for entry in entries] == [101, None]
    assert take(data, tmp_path / "old.csv").lines()[0] == (
        f"{tmp_path / 'old.csv'}: ingested before, skipped; its rows from block 101 on were replaced, and are not read "
        "again"
    )
    assert remove("new.csv", data).lines()[1] == (
        f"{tmp_path / 'old.csv'}: its rows from block 101 on were replaced before, and do not come back by themselves: "
        "ingest it again with --replace-from 101"
    )
    with Tables(data) as tables:
        assert tables.balances() == tokens(rows[:1]).balances
    # The first file again, whole: it is taken out before it is read.
    take(data, tmp_path / "old.csv", replace_from=100)
    with Tables(data) as tables:
        assert tables.balances() == tokens(rows).balances


def test_what_comes_before_the_block_must_agree_all_the_same(data, reorganised):
    before = everything(data)
    with pytest.raises(IngestError, match="--replace-from 101"):
        take(data, reorganised[1], replace_from=102)
    assert everything(data) == before


@pytest.mark.slow
def test_replacing_needs_the_chain_and_every_file_and_may_find_nothing(
    data, tmp_path, reorganised, log
):
    with pytest.raises(ValidationError, match="--chain ethereum --replace-from 12000000"):
        take(data, reorganised[1], chain=None, replace_from=5)
    (tmp_path / "empty.csv").touch()
    before = everything(data)
    with pytest.raises(IngestError, match="the file has no rows"):
        take(data, reorganised[1], tmp_path / "empty.csv", replace_from=101)
    assert everything(data) == before
    for folder in (data, tmp_path / "fresh"):
        assert (
            take(
                folder, write_csv(tmp_path / "other.csv", [log()]), chain="optimism", replace_from=5
            ).new
            == 1
        )


@pytest.mark.slow
def test_replacing_from_a_block_that_the_files_do_not_reach_is_refused(data, tmp_path, log):
    old = [log(0, 1, 5, block=block) for block in (100, 101, 102)]
    take(data, write_csv(tmp_path / "old.csv", old))
    before = everything(data)
    # Another branch, with transactions of its own: beside the old one each would count.
    branch = write_csv(tmp_path / "branch.csv", [log(0, 2, 7, block=block) for block in (101, 102)])
    with pytest.raises(ValidationError) as caught:
        take(data, branch, replace_from=103)
    assert str(caught.value) == (
        "replace_from: the files end at block 102, so nothing from block 103 on would be "
        "replaced. Write the first block that they replace."
    )
    with pytest.raises(ValidationError) as caught:
        take(data, branch, replace_from=102)
    assert str(caught.value) == (
        "replace_from: below block 102 the files have 1 new transfer, in blocks of which the data has others of the "
        "same contracts. To replace these, too, write --replace-from 101."
    )
    assert everything(data) == before
    take(data, branch, replace_from=101)
    with Tables(data) as tables:
        assert tables.balances() == {
            (wallet(1000), wallet(0)): -19,
            (wallet(1000), wallet(1)): 5,
            (wallet(1000), wallet(2)): 14,
        }
    # What is new below, and beside nothing, is of the same branch as anything.
    more = [log(0, 1, 5, block=100, contract=900), log(0, 3, 7, block=103)]
    report = take(data, write_csv(tmp_path / "more.csv", more), replace_from=103)
    assert (report.new, report.odd["beside_replaced"]) == (2, 1)
    # A file that is given again gives what it gave, also beside what another file has of the same block.
    again = write_csv(tmp_path / "again.csv", [log(0, 1, 9, block=100), log(0, 3, 9, block=104)])
    take(data, again)
    report = take(data, again, replace_from=104)
    assert (report.new, report.odd["beside_replaced"]) == (2, 0)


@pytest.mark.slow
def test_replacing_says_which_snapshots_go_too(data, tmp_path, log):
    take(data, write_csv(tmp_path / "t.csv", [log(0, 1, 5, block=block) for block in (100, 130)]))
    path, made = (
        snapshot(tmp_path / "h.csv", (wallet(1), 100)),
        SnapshotOptions(tokens={"": wallet(1000)}, unit="raw", block=125),
    )
    take(data, path, options=made)
    report = take(
        data, write_csv(tmp_path / "new.csv", [log(0, 1, 6, block=131)]), replace_from=120
    )
    assert report.removed == [
        "1 transfer of ethereum from block 120 on",
        f"holders of {wallet(1000)} at block 125 ({path})",
    ]
    assert f"replaced: holders of {wallet(1000)} at block 125 ({path})" in report.lines()


@pytest.mark.slow
def test_files_that_say_other_things_of_a_contract_are_named(data, tmp_path, log):
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    header = "address,symbol,name,decimals,total_supply\n"
    one.write_text(f"{header}{wallet(1000)},AAA,Alpha,18,\n{wallet(900)},BBB,Beta,6,\n")
    other.write_text(f"{header}{wallet(1000)},AAX,Alpha,6,\n{wallet(900)},bbb,B,6,\n")
    path = write_csv(tmp_path / "t.csv", [log(0, 1, 5), log(0, 2, 5)])
    assert take(data, one, path).disagreements == []
    report = take(data, other)
    assert report.disagreements == [
        f"{wallet(1000)}: decimals 6 as in {other}, not 18 as in {one}",
        f"{wallet(1000)}: symbol AAX as in {other}, not AAA as in {one}",
    ]
    assert set(report.lines()) >= {f"  {line}" for line in report.disagreements}
    assert take(data, write_csv(tmp_path / "u.csv", [log(0, 1, 5)])).disagreements == []
    assert take(tmp_path / "both", one, other, path).disagreements == report.disagreements


@pytest.mark.parametrize("decimals", [(18, 6), (6, 18)])
def test_of_what_one_file_says_of_a_contract_the_last_row_counts_and_is_counted(
    data, tmp_path, decimals
):
    header = "blockNumber,hash,from,contractAddress,to,value,tokenName,tokenSymbol,tokenDecimal\n"
    rows = [
        f"{n},0x{n:064x},{wallet(0)},{wallet(token)},{wallet(1)},5,T,T{n},{places}\n"
        for token in (1000, 1001)
        for n, places in enumerate(decimals if token == 1000 else (9, 9))
    ]
    path = tmp_path / "tokentx.csv"
    path.write_text(header + "".join(rows))
    report = take(data, path)
    assert report.odd["said_twice"] == 2
    said = "contracts of which one file says several decimals, symbols or standards: the last row counts"
    assert f"  2 {said}" in report.lines()
    with Tables(data) as tables:
        found = tables.rows("SELECT address, symbol, decimals FROM contracts WHERE holders > 0")
    assert found == [(wallet(1000), "T1", decimals[1]), (wallet(1001), "T1", 9)]
    kinds = tmp_path / "contracts.csv"
    two = f"{wallet(1000)},true,false\n{wallet(1000)},false,true\n"
    kinds.write_text(f"address,is_erc20,is_erc721\n{two}{wallet(1001)},true,false\n")
    assert take(data, kinds).odd["said_twice"] == 1
    assert take(tmp_path / "both", path, kinds).disagreements == [
        f"{wallet(1000)}: standard ERC721 as in {kinds}, not ERC20 as in {path}"
    ]


@pytest.mark.slow
def test_a_contract_that_is_taken_for_another_standard_than_before_is_named_with_what_corrects_it(
    data, tmp_path, log
):
    ids = [log(0, n % 3, n, block=100 + n) for n in range(6)] + [
        log(n % 3, 3, n, block=110 + n) for n in range(6)
    ]
    report = take(data, write_csv(tmp_path / "one.csv", ids))
    assert (
        f"    listed in {data / 'inferred-contracts.csv'}: a file with address, is_erc20, is_erc721 corrects them"
        in report.lines()
    )
    # Each is sent on by somebody who never got it: the logs between are missing.
    broken = write_csv(tmp_path / "two.csv", [log(5, 6, n, block=120 + n) for n in range(6)])
    report = take(data, broken)
    assert report.restated == [(wallet(1000), "ERC721", "ERC20", False)]
    assert (
        f"  {wallet(1000)} was ERC721, and is ERC20 now, by its transfers: if it is not, ingest a file with "
        "address, is_erc20, is_erc721"
    ) in report.lines()
    says = tmp_path / "contracts.csv"
    says.write_text(f"address,is_erc20,is_erc721\n{wallet(1000)},false,true\n")
    report = take(data, says)
    assert report.restated == [(wallet(1000), "ERC20", "ERC721", True)]
    assert f"  {wallet(1000)} was ERC20, and is ERC721 now, as a file says" in report.lines()
    with Tables(data) as tables:
        assert tables.owners() == {(wallet(1000), n): wallet(6) for n in range(6)}
    assert take(data, write_csv(tmp_path / "three.csv", [log(6, 7, 1, block=130)])).restated == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "nth"),
    slow.but_the_first([("switch", 2), ("statement", 30), ("sync", 3), ("rename", 1)]),
)
def test_a_process_killed_while_it_removes_leaves_what_was_before(
    data, tmp_path, halves, place, nth
):
    before = everything(data)
    lived = killed_at(place, nth, halves[0][0], data, work="remove")
    assert not lived
    assert everything(data) == before
    remove("a.csv", data)
    take(tmp_path / "fresh", halves[0][1])
    assert everything(data) == everything(tmp_path / "fresh")
    assert not (data / ".stage").exists()


def test_a_folder_within_a_folder_that_may_not_be_read_is_not_left_out(tmp_path, data, monkeypatch):
    inner, scandir = tmp_path / "days" / "2024", os.scandir
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        write_csv(folder / "a.csv", [])

    def refused(path):
        if os.fspath(path) == str(inner):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    # Nothing is refused to root, who may run the tests.
    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(IngestError) as told:
        take(data, inner.parent)
    assert str(told.value) == f"{inner}: the folder cannot be read: Permission denied."
    assert not (data / "current").exists()
