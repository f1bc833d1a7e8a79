"""What people do to a data folder, step by step, and what its service answers then: a state machine for hypothesis."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import note
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from nbext import Client, cli
from nbext.core.chains import chain_of
from nbext.engine import storage
from nbext.engine.dataset import Contract
from nbext.engine.open import Newest
from nbext.errors import ConfigError, InvalidSegment, NbextError, ValidationError
from nbext.service.limits import Limits
from nbext.settings import Settings
from tests.engine.ingest import large
from tests.oracle.analyses import ANALYSES
from tests.oracle.asking import COUNTS, EDGES, IDS, Asking
from tests.oracle.files import FORMATS, Format, Sent, write
from tests.oracle.meaning import SCOPE, NotKnown, One, Oracle, is_nft
from tests.oracle.world import DEAD, GENESIS, ZERO, Held, Snapshot, Transfer, World
from tests.service.conftest import KEY, Running

STEPS = {1: 5 * 3600, 10: 7 * 3600, 8453: 2 * 3600}
# Symbols that no token list has.
CONTRACTS = [
    Contract(0, 1, f"0x{0xC0:040x}", "ERC20", "Dollar", "QUSD", 6),
    Contract(1, 1, f"0x{0xC1:040x}", "ERC20", "Wei", "QWEI", 0),
    Contract(2, 1, f"0x{0xC2:040x}", "ERC721", "Apes", "QAPE", None),
    Contract(3, 1, f"0x{0xC3:040x}", "ERC1155", "Items", "QITEM", None),
    Contract(4, 1, f"0x{0xC4:040x}", "ERC20", "Eighteen", "QBIG", 18),
    Contract(5, 10, f"0x{0xC0:040x}", "ERC20", "Other", "QOP", 18),
    Contract(6, 10, f"0x{0xC5:040x}", "ERC721", "Quests", "QQUEST", None),
    Contract(7, 8453, f"0x{0xC0:040x}", "ERC20", "Base", "QBASE", 18),
    Contract(8, 8453, f"0x{0xC3:040x}", "ERC1155", "Games", "QGAME", None),
]
WALLETS = [ZERO, DEAD, *(f"0x{number:040x}" for number in (5, 6, 7, 2**159, 0xC0))]
TIME = ("unix", "time")
# Each step is drawn by Python's own generator: what hypothesis prints of it is one number.
LUCK = st.integers(0, 2**64 - 1).map(Random)
NOBODY = "0x" + "ee" * 20


@dataclass(frozen=True)
class File:
    """A file that was ingested, and what it says."""

    path: Path
    chain: int = 0
    sent: tuple[Sent, ...] = ()
    times: frozenset[int] = frozenset()
    blocks: frozenset[int] = frozenset()
    snapshot: tuple[int, Snapshot] | None = None
    contracts: frozenset[str] = frozenset()
    # Whether its rows have no number of their log: told again in another format they may be other transfers.
    unnumbered: bool = False

    def before(self, block: int) -> File:
        """Return what is left of the file where all from a block on was replaced."""
        return replace(
            self,
            sent=tuple(one for one in self.sent if one.transfer.block < block),
            times=frozenset(one for one in self.times if one < block),
            blocks=frozenset(one for one in self.blocks if one < block),
            snapshot=self.snapshot if self.snapshot and self.snapshot[1].block < block else None,
        )


def served(machine: Any) -> bool:
    return machine.service is not None


def on(chain: int) -> list[Contract]:
    return [one for one in CONTRACTS if one.chain_id == chain]


def of_chain(one: Transfer) -> int:
    return CONTRACTS[one.contract].chain_id


class FrontDoor(RuleBasedStateMachine):
    """A data folder, its service, its client, and the files that it was given: they say what to expect."""

    # What its service answers with.
    engine: ClassVar[str] = "duckdb://"
    # Over all runs: (format, container), (condition, field, standard), and the steps that were taken.
    drawn: ClassVar[Counter[tuple[str, ...]]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="nbext-oracle-"))
        (self.folder / "pyproject.toml").write_text("")
        self.data = self.folder / "data"
        self.files: list[File] = []
        self.numbers = count(1)
        self.service: Running | None = None
        self.client: Client | None = None
        self.saved: dict[str, Any] = {}
        self.lists: dict[str, list[str]] = {}

    def teardown(self) -> None:
        if self.client is not None:
            self.client.close()
        if self.service is not None:
            self.service.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    # What the folder holds

    @property
    def world(self) -> World:
        sent = {one.transfer: one for file in self.files for one in file.sent}
        blocks = {(file.chain, block) for file in self.files for block in file.blocks}
        times = {(file.chain, block) for file in self.files for block in file.times}
        snapshots: dict[int, Snapshot] = {}
        for number, begun in (file.snapshot for file in self.files if file.snapshot):
            if number not in snapshots or begun.block > snapshots[number].block:
                snapshots[number] = begun
        chains = {chain for chain, _ in blocks}
        return World(
            [one for one in CONTRACTS if one.chain_id in chains],
            [one.transfer for one in sent.values()],
            {chain: max(block for on, block in blocks if on == chain) for chain in chains},
            {chain: STEPS[chain] * any(on == chain for on, _ in times) for chain in chains},
            frozenset(
                {one.address for one in CONTRACTS}.union(*(file.contracts for file in self.files))
            ),
            snapshots,
            frozenset(blocks - times),
            frozenset(blocks),
            [file.snapshot for file in self.files if file.snapshot],
        )

    # What is done to it

    def run(self, *words: Any) -> str:
        """Run a command of nbext, and return what it prints."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main([*map(str, words), "--data", str(self.data), "--quiet"])
        said = out.getvalue() + err.getvalue()
        note(f"nbext {' '.join(map(str, words))}\n{said}")
        assert code == 0, f"nbext {' '.join(map(str, words))}: {said}"
        if self.service is not None:
            self.service.container.generations.refresh()
        return said

    def ingest(self, file: File, *options: Any, says: str) -> None:
        said = self.run("ingest", file.path, "--chain", chain_of(file.chain).name, *options)
        if "ingested before, skipped" in said:
            return
        assert says in said, said
        assert "could not" not in said, said
        self.files.append(file)
        self.drawn["beside a base",] += storage.current_generation(self.data).delta is not None

    @initialize(
        luck=LUCK,
        timed=st.integers(0, 3),
        chains=st.sampled_from([[1], [1, 10]]),
        beside=st.booleans(),
    )
    def begin(self, luck: Random, timed: int, chains: Sequence[int], beside: bool) -> None:
        """Name the tokens, send something on one chain or on two, maybe ``beside`` what is stored, and serve it."""
        self.timed = timed > 0
        if beside:
            large.begin(self.data)
        names = write(
            self.folder / "tokens.csv",
            [
                {
                    "address": one.address,
                    "symbol": one.symbol,
                    "name": one.name,
                    "decimals": "" if one.decimals is None else one.decimals,
                    "total_supply": "",
                    "standard": one.standard,
                    "chain_id": one.chain_id,
                }
                for one in CONTRACTS
            ],
        )
        self.run("ingest", names)
        for chain in chains:
            self.send(luck, chain, 0, 12, most=12)
        newest = Newest(self.data, self.engine)
        self.service = Running(
            self.data,
            self.folder / "state",
            Limits(query_seconds=600),
            dataset=newest.open(),
            newer=newest.newer,
        )
        # However long an engine takes to begin.
        given = Settings(
            arguments={"read_timeout": 600, "deadline": 3600}, environ={}, folder=self.folder
        )
        self.client = Client(self.service.url, KEY, settings=given)

    def send(
        self, luck: Random, chain: int, first: int, last: int, *options: Any, most: int = 6
    ) -> None:
        """Ingest a file of new transfers between two blocks, in a format that has what the chain has."""
        form: Format = luck.choice([one for one in FORMATS if self.can(one, chain)])
        of = [one for one in on(chain) if one.standard in form.standards]
        if form.of_one:
            of = [luck.choice(of)]
            options = (*options, "--token", of[0].address)
        many = luck.choices(of, k=luck.randint(1, most))
        sent = [self.sent(luck, one, first, last) for one in many]
        # Nothing orders what one block has of a contract, where a row of it has no log index.
        unordered = {
            (one.contract, one.transfer.block)
            for file in self.files
            for one in file.sent
            if file.unnumbered or not form.numbered
        }
        if not form.numbered:
            sent = list({(one.contract, one.transfer.block): one for one in sent}.values())
        sent = [one for one in sent if (one.contract, one.transfer.block) not in unordered]
        if not sent:
            return
        self.write(luck, form, chain, sent, *options)

    def can(self, form: Format, chain: int) -> bool:
        known = any(one.standard in form.standards for one in on(chain))
        return known and (self.timed or not form.timed)

    def sent(self, luck: Random, contract: Contract, first: int, last: int) -> Sent:
        """Draw a transfer of a contract; a mint as often as not."""
        number = next(self.numbers)
        senders = [ZERO] * len(WALLETS) + WALLETS
        return Sent(
            Transfer(
                contract.contract,
                luck.randint(first, last),
                number,
                luck.choice(senders),
                luck.choice(WALLETS),
                luck.choice(IDS if is_nft(contract) else EDGES),
                luck.choice(COUNTS) if contract.standard == "ERC1155" else 1,
            ),
            contract,
            STEPS[contract.chain_id],
        )

    def write(
        self, luck: Random, form: Format, chain: int, sent: Sequence[Sent], *options: Any
    ) -> None:
        """Ingest transfers in a format, in one of its containers, with some of what it may have."""
        told = [
            name
            for name, word in form.may.items()
            if (self.timed if word in TIME else luck.random() < 0.5)
        ]
        container = luck.choice(form.containers)
        path = self.folder / f"{next(self.numbers)}.{container}"
        blocks = frozenset(one.transfer.block for one in sent)
        file = File(
            path,
            chain,
            tuple(sent),
            blocks if self.timed else frozenset(),
            blocks,
            unnumbered=not form.numbered,
        )
        write(path, [form.row(one, told) for one in sent])
        self.drawn["format", form.name, container] += 1
        self.ingest(file, *form.options, *options, says=f"{form.name}, {len(sent)} row")

    @precondition(served)
    @rule(luck=LUCK)
    def send_more(self, luck: Random) -> None:
        """Take in more transfers of a chain: later than all others, or among them."""
        world = self.world
        chain = luck.choice(sorted(world.last_blocks))
        last, late = world.last_blocks[chain], luck.random() < 0.5
        self.send(luck, chain, 0 if late else last, last if late else last + 8)

    @precondition(served)
    @rule(luck=LUCK)
    def send_of_another_chain(self, luck: Random) -> None:
        self.send(luck, 8453, 0, 20)

    @precondition(served)
    @rule(luck=LUCK)
    def tell_again(self, luck: Random) -> None:
        """Take in transfers once more, in another format: they are there once."""
        file = luck.choice(self.files)
        forms = [
            form
            for form in FORMATS
            if form.numbered
            if {one.contract.standard for one in file.sent} <= set(form.standards)
        ]
        if file.sent and forms and not file.unnumbered:
            self.write(luck, luck.choice(forms), file.chain, file.sent)

    @precondition(served)
    @rule(luck=LUCK)
    def reorganise(self, luck: Random) -> None:
        """Replace everything of a chain from a block on."""
        world = self.world
        chain = luck.choice(sorted(world.last_blocks))
        last = world.last_blocks[chain]
        block = luck.randint(max(0, last - 4), last)
        self.files = [file.before(block) if file.chain == chain else file for file in self.files]
        self.send(luck, chain, block, last + 2, "--replace-from", block)

    @precondition(served)
    @rule(luck=LUCK)
    def snapshot(self, luck: Random) -> None:
        """Begin a contract's balances with who held it at the end of a block."""
        world = self.world
        contract = luck.choice(world.contracts)
        chain = contract.chain_id
        before = [file.snapshot[1].block for file in self.files if file.snapshot]
        blocks = sorted(
            {one.block for one in world.transfers if of_chain(one) == chain} - set(before)
        )
        if not blocks:
            return
        block = luck.choice(blocks)
        ids = IDS if is_nft(contract) else [None]
        some = luck.sample([(who, one) for who in WALLETS[1:] for one in ids], luck.randint(1, 5))
        keys = list({one: (who, one) for who, one in some}.values())
        if contract.standard != "ERC721":
            keys = some
        amounts = {"ERC20": EDGES[1:], "ERC721": [1], "ERC1155": [1]}[contract.standard]
        held = tuple(Held(who, luck.choice(amounts), one) for who, one in keys)
        rows = [
            {
                "holder": one.wallet,
                **({} if one.token_id is None else {"token_id": str(one.token_id)}),
                "balance": str(one.amount),
                "contract_address": contract.address,
                "snapshot_block": block,
            }
            for one in held
        ]
        form = "holders by token id" if is_nft(contract) else "holders"
        container = luck.choice(["csv", "parquet"])
        path = write(self.folder / f"{next(self.numbers)}.{container}", rows)
        self.drawn["format", form, container] += 1
        file = File(
            path,
            chain,
            blocks=frozenset([block]),
            snapshot=(contract.contract, Snapshot(block, held)),
        )
        self.ingest(file, "--unit", "raw", says=f"{form}, {len(rows)} row")

    @precondition(served)
    @rule(luck=LUCK)
    def tell_times(self, luck: Random) -> None:
        """Take in the times of all blocks of a chain, up to one that may be later than all others."""
        last_blocks = self.world.last_blocks
        chain = luck.choice(sorted(last_blocks))
        blocks = frozenset(range(last_blocks[chain] + luck.randint(1, 3)))
        rows = [
            {"number": block, "timestamp": GENESIS + block * STEPS[chain]}
            for block in sorted(blocks)
        ]
        path = write(self.folder / f"{next(self.numbers)}.csv", rows)
        self.drawn["format", "blocks", "csv"] += 1
        self.ingest(File(path, chain, times=blocks, blocks=blocks), says="blocks, ")

    @precondition(served)
    @rule(some=st.sets(st.sampled_from(WALLETS), min_size=1, max_size=2))
    def tell_contracts(self, some: set[str]) -> None:
        """Say of some wallets that they are contracts."""
        rows = [{"address": one, "is_erc20": "false", "is_erc721": "false"} for one in sorted(some)]
        path = write(self.folder / f"{next(self.numbers)}.csv", rows)
        self.drawn["format", "contracts (ethereum-etl)", "csv"] += 1
        self.ingest(File(path, 1, contracts=frozenset(some)), says="contracts (ethereum-etl), ")

    @precondition(served)
    @rule(luck=LUCK)
    def remove(self, luck: Random) -> None:
        """Take a file out again, unless it is all that a chain has."""
        file = luck.choice(self.files)
        others = [one for one in self.files if one is not file]
        if any(one.chain == file.chain and one.sent for one in others):
            self.run("remove", file.path)
            self.files = others

    @precondition(served)
    @rule()
    def compact(self) -> None:
        self.run("compact")

    # What is asked of it

    def oracle(self) -> Oracle:
        return Oracle(self.world, self.saved, self.lists)

    def asking(self, luck: Random) -> Asking:
        wallets, lists = [*WALLETS, NOBODY], tuple(self.lists)
        return Asking(luck, self.world, wallets, tuple(self.saved), lists, self.drawn)

    @contextlib.contextmanager
    def about(self, asked: Any) -> Iterator[None]:
        """Say with an error what was asked, and what the service's log has of it."""
        try:
            yield
        except NbextError as error:
            said = [line for line in self.service.lines() if line["level"] != "info"]
            raise AssertionError(f"{asked}: {error} {said[-1:]}") from error

    @precondition(served)
    @rule(luck=LUCK)
    def ask(self, luck: Random) -> None:
        """Ask for the rows of a segment, in their order and in another one."""
        for _ in range(5):
            oracle, asking = self.oracle(), self.asking(luck)
            request = asking.request()
            with self.about(request):
                table = check(self.client, oracle, request, may_refuse=unsure(asking))
            if table is None or isinstance(table, NotKnown):
                continue
            if luck.random() < 0.3:
                name = luck.choice(list(table.columns))
                ordered = {**request["filters"], "orderBy": luck.choice(["", "-"]) + name}
                asking.note("", {"orderBy": name})
                with self.about(ordered):
                    check(self.client, oracle, {**request, "filters": ordered}, may_refuse=False)
            # What names a time may be asked for before that time, later.
            timeless = not any(f'"{name}"' in json.dumps(request) for name in TIMES)
            if timeless and len(self.saved) < 3:
                self.saved[table.attrs["nbext"]["segment_id"]] = request

    @precondition(served)
    @rule(luck=LUCK)
    def analyse(self, luck: Random) -> None:
        """Ask for an analysis."""
        asking, name = self.asking(luck), luck.choice(sorted(ANALYSES))
        self.drawn["analysis", name] += 1
        with self.about(name):
            try:
                ANALYSES[name](self.client, self.oracle(), asking)
            except (ConfigError, InvalidSegment, ValidationError, NotKnown) as error:
                # What is not known at one of its times is refused; so is a time where there are none.
                if not (asking.world.snapshots or asking.times or name in AT_SEVERAL):
                    raise
                note(f"{name} is refused: {error}")

    @precondition(served)
    @rule(luck=LUCK)
    def take_out(self, luck: Random) -> None:
        """Ask for the rows of a segment in every way that they can be had."""
        from tests.laws.test_answers import every_way_out_has_the_same_rows

        request = self.asking(luck).request()
        self.drawn["analysis", "export"] += 1
        with contextlib.suppress(InvalidSegment):
            every_way_out_has_the_same_rows(self, request)

    @precondition(served)
    @rule(luck=LUCK)
    def store_list(self, luck: Random) -> None:
        """Store some wallets at the service, for questions to name."""
        some = sorted(luck.sample([*WALLETS, NOBODY], luck.randint(1, 5)))
        sent = b"".join(bytes.fromhex(one[2:]) for one in some)
        kind = {"Content-Type": "application/octet-stream"}
        url = f"{self.service.url}/lists"
        answer = self.service.session.post(url, data=sent, headers=kind, timeout=60)
        assert answer.status_code == 201, answer.text
        self.lists[answer.json()["id"]] = some


TIMES = (*SCOPE, "heldSince", "after", "before")
# These look at times before the last block, which heldSince may lie after.
AT_SEVERAL = ("changes", "trend", "retention")


def unsure(asking: Asking) -> bool:
    """Say whether a question may be refused: it asks for a time, and the data has blocks without one."""
    return asking.times and bool(asking.world.untimed)


def check(client: Client, oracle: Oracle, request: dict[str, Any], *, may_refuse: bool) -> Any:
    """Compare an answer with the oracle's: which wallets, in which order, with what in each column."""
    asked = One(oracle, request)
    try:
        expected = asked.wallets()
    except NotKnown as error:
        with pytest.raises(InvalidSegment):
            client.execute_segment(**request, limit=1000)
        return error
    try:
        table = client.execute_segment(**request, limit=1000)
    except InvalidSegment:
        if may_refuse:
            return None
        raise
    about = table.attrs["nbext"]
    found = table["address"].tolist()
    wrong = {"lacks": sorted({*expected} - {*found}), "adds": sorted({*found} - {*expected})}
    assert not any(wrong.values()), f"{request} {wrong}"
    assert about["matched"] == len(expected), request
    differ = [
        both
        for both in zip(plain(table), asked.rows(about["columns"], 1000), strict=True)
        if both[0] != both[1]
    ]
    assert not differ, f"{request}\n{differ[:3]}"
    return table


def plain(table: Any) -> list[dict[str, Any]]:
    """Return a table's rows as Python values: exact amounts as integers, times in UTC, what is missing as None."""
    return [
        {name: value_of(name, value) for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def value_of(name: str, value: Any) -> Any:
    if pd.isna(value):
        return None
    if name in ("firstSeen", "lastSeen", "firstTransfer", "lastTransfer"):
        return value.to_pydatetime()
    return int(value) if name.endswith("_raw") else value
