"""The stories: what somebody does from beginning to end, and what they see of it."""

from __future__ import annotations

import csv
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import nbext
from nbext import Client, cli
from nbext.core.atomic_files import PART
from nbext.engine.ingest import ingest
from nbext.errors import NbextError
from nbext.fetch import Output, Request
from nbext.fetch.run import fetch
from nbext.notebook.forms.signup import THANKS
from nbext.settings import Secret
from tests.engine.ingest import large
from tests.engine.ingest.reading_back import Tables, transaction, wallet
from tests.engine.ingest.test_append import contents
from tests.keyrings import Ring
from tests.node.faults import COIN, Chain, FaultNode
from tests.notebook.shells import loaded_shell
from tests.service.conftest import KEY, Running

# A story is three of these: ``fresh`` makes the world as it was, ``tell`` returns what somebody sees of it, and
# ``look`` what is stored then.
Tell = Callable[[], Any]
Story = Callable[[Path], Any]
HOLDERS = {"token": {"token": wallet(1000), "balance": {"min": "1"}, "unit": "raw"}}
_COLUMNS = [
    "token_address",
    "from_address",
    "to_address",
    "value",
    "transaction_hash",
    "log_index",
    "block_number",
]


def _nothing() -> None:
    """Nothing is stored that the story does not show."""


def transfers_file(path: Path, first: int, last: int) -> Path:
    """Write a transfer of each block: wallets 1 to 7 get what the next one sends on."""
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(_COLUMNS)
        for block in range(first, last):
            sender = 0 if block % 3 else block % 7 + 1
            amount = 5 if sender else 10**19
            row = [wallet(1000), wallet(sender), wallet((block + 1) % 7 + 1), amount]
            out.writerow([*row, transaction(block), block, block])
    return path


def facts_file(folder: Path) -> Path:
    path = folder / "tokens.csv"
    path.write_text(f"address,symbol,name,decimals,total_supply\n{wallet(1000)},A,A,18,\n")
    return path


def _holdings(data: Path) -> Any:
    with Tables(data) as tables:
        return tables.balances(), tables.history(), tables.transfers()


def _taken(files: list[Path], data: Path) -> None:
    # A file that cannot be read is named, and the others are taken in: told, as the command's exit code is.
    for refused in ingest(files, "ethereum", data).refused:
        raise refused


@contextmanager
def ingesting(folder: Path) -> Iterator[tuple[Tell, Tell, Tell]]:
    """Two files become a data folder."""
    files, data = [transfers_file(folder / "a.csv", 1, 40), facts_file(folder)], folder / "data"

    def tell() -> Any:
        return _taken(files, data)

    yield lambda: shutil.rmtree(data, ignore_errors=True), tell, lambda: _holdings(data)


@contextmanager
def appending(folder: Path) -> Iterator[tuple[Tell, Tell, Tell]]:
    """A day is added beside the base of a data folder."""
    ready, data = large.begin(folder.parent / "ready"), folder / "data"
    ingest([transfers_file(folder / "a.csv", 1, 400), facts_file(folder)], "ethereum", ready)
    day = transfers_file(folder / "b.csv", 400, 410)

    def fresh() -> None:
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(ready, data)

    def tell() -> Any:
        return _taken([day], data)

    yield fresh, tell, lambda: contents(data)


@contextmanager
def _service(folder: Path) -> Iterator[tuple[Running, Client]]:
    data = folder / "data"
    ingest([transfers_file(folder / "a.csv", 1, 40), facts_file(folder)], "ethereum", data)
    running = Running(data, data / "service")
    try:
        with nbext.connect(running.url, KEY) as client:
            yield running, client
    finally:
        running.stop()


def _rows(table: Any) -> list[Any]:
    return table.astype(str).values.tolist()


@contextmanager
def querying(folder: Path) -> Iterator[tuple[Tell, Tell, Tell]]:
    """A segment that nobody asked for before is executed and read."""
    with _service(folder) as (_, client):
        limits = iter(range(1000, 1_000_000))
        limit = [0]

        def fresh() -> None:
            limit[0] = next(limits)

        yield fresh, lambda: _rows(client.execute_segment(HOLDERS, limit=limit[0])), _nothing


def _exported(client: Client) -> str:
    return client.execute_segment(HOLDERS).attrs["nbext"]["segment_id"]


@contextmanager
def exporting(folder: Path) -> Iterator[tuple[Tell, Tell, Tell]]:
    """The rows of a stored segment are read, described and written to a file."""
    with _service(folder) as (_, client):
        segment, target = _exported(client), folder / "out.csv"

        def tell() -> Any:
            rows = _rows(client.export_json(segment))
            client.export_csv(segment, to=target, overwrite=True)
            return rows, client.segment(segment)["status"].tolist()

        yield lambda: target.unlink(missing_ok=True), tell, target.read_text


@contextmanager
def listing(folder: Path) -> Iterator[tuple[Tell, Tell, Tell]]:
    """A list of wallets is kept by the service, and asked for by its name."""
    with _service(folder) as (_, client):
        numbers = iter(range(1, 1_000_000))
        named: list[list[str]] = [[]]

        def fresh() -> None:
            start = 10_000 * next(numbers)
            named[0] = [wallet(n) for n in (*range(1, 5), *range(start, start + 1_100))]

        def tell() -> Any:
            asked = {"all": [HOLDERS, {"wallet": {"in": named[0]}}]}
            return client.execute_segment(asked)["address"].tolist()

        yield fresh, tell, _nothing


@contextmanager
def backing_up(folder: Path) -> Iterator[tuple[Tell, Tell, Tell]]:
    """What a service stores is copied while it runs, and the copy is read."""
    with _service(folder) as (_, client):
        segment, target = _exported(client), folder / "copy"

        def tell() -> Any:
            words = ["backup", str(target), "--data", str(folder / "data")]
            with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()) as wrong:
                code = cli.main(words)
            if code:
                raise NbextError(wrong.getvalue())
            return printed.getvalue()

        def look() -> Any:
            stored = target / "service" / "results"
            return sorted(path.name for path in stored.iterdir()), client.segment(segment)[
                "status"
            ][0]

        yield lambda: shutil.rmtree(target, ignore_errors=True), tell, look


def _fetched(node: FaultNode, data: Path, **request: Any) -> list[str]:
    lines: list[str] = []
    asked = Request(**{"contracts": (COIN,), "to_block": "latest", "in_flight": 1, **request})
    fetch([Secret(node.url)], asked, data, Output(lines.append))
    return lines


@contextmanager
def fetching(folder: Path) -> Iterator[tuple[Tell, Tell, Tell]]:
    """A contract's transfers are read from a node."""
    data = folder / "data"
    with FaultNode(Chain(20)) as node:
        yield (
            lambda: shutil.rmtree(data, ignore_errors=True),
            lambda: _fetched(node, data)[-1],
            lambda: _holdings(data),
        )


@contextmanager
def following(folder: Path) -> Iterator[tuple[Tell, Tell, Tell]]:
    """A chain grows while it is followed."""
    data = folder / "data"
    short, grown = Chain(20), Chain(24)
    with FaultNode(short) as node:

        def fresh() -> None:
            shutil.rmtree(data, ignore_errors=True)
            node.chain = short

        def tell() -> Any:
            ending = threading.Event()

            def say(line: str) -> None:
                if "balances equal" in line:
                    node.chain = grown
                if "to 24" in line or "Nothing new" in line:
                    ending.set()

            asked = Request((COIN,), to_block="latest", in_flight=1, follow=True, every=0.01)
            # What hangs for so long is a fault; a machine that is busy is none.
            patience = threading.Timer(600, ending.set)
            patience.start()
            try:
                fetch([Secret(node.url)], asked, data, Output(say), ending=ending)
            finally:
                patience.cancel()

        yield fresh, tell, lambda: _holdings(data)


@contextmanager
def logging_in(folder: Path) -> Iterator[tuple[Tell, Tell, Tell]]:
    """A key is typed and stored in the keyring, and a cell asks with it."""
    import getpass

    import keyring

    before, prompt, ring = keyring.get_keyring(), getpass.getpass, Ring()
    with _service(folder) as (running, _), loaded_shell() as shell:
        keyring.set_keyring(ring)
        getpass.getpass = lambda text: KEY
        try:

            def tell() -> Any:
                shown = []
                for cell in (
                    f"%nbext connect {running.url}",
                    "%nbext login --keep",
                    f"%token ethereum {wallet(1000)}",
                ):
                    ran = shell.run(cell)
                    if ran.error is not None:
                        raise ran.error
                    shown.append(ran.value)
                return shown[-1]["symbol"].tolist()

            yield ring.kept.clear, tell, lambda: sorted(ring.kept.values())
        finally:
            keyring.set_keyring(before)
            getpass.getpass = prompt


@contextmanager
def signing_up(folder: Path) -> Iterator[tuple[Tell, Tell, Tell]]:
    """A form sends an address; what it says is what the service has."""
    with _service(folder) as (running, client):
        numbers = iter(range(1_000_000))
        address = [""]

        def fresh() -> None:
            address[0] = f"someone{next(numbers)}@example.org"

        def tell() -> Any:
            form = nbext.signup_form(client=client)
            form.email.type(address[0])
            form.consent.type(True)
            form.send()
            assert form.background.join(30)
            if form.message != THANKS:
                raise NbextError(form.message)

        def look() -> Any:
            return [one.email for one in running.container.signups.all()].count(address[0])

        yield fresh, tell, look


STORIES: dict[str, Story] = {
    story.__name__: story
    for story in (
        exporting,
        querying,
        listing,
        backing_up,
        signing_up,
        logging_in,
        ingesting,
        appending,
        fetching,
        following,
    )
}


def left_aside(folder: Path) -> list[str]:
    """Return the names of files that somebody began to write and nobody finished."""
    return sorted(path.name for path in folder.rglob(f"*{PART}"))
