"""One fetch: what is asked for, and of which nodes. Each step is an append to the data.

Ranges are read and stored, their files ingested, and then they count as covered. A step that was killed is made again
from what was stored. After a reorganisation the next step replaces what it orphaned.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from nbext.core.addresses import checksummed, looks_like_address, normalised
from nbext.core.chains import Chain, chain_of
from nbext.core.untrusted_text import quoted
from nbext.engine import storage
from nbext.engine.ingest.report import ODDITIES
from nbext.engine.ingest.run import check_memory, ingest
from nbext.engine.sample.known import KNOWN
from nbext.errors import (
    IngestError,
    NbextError,
    NodeError,
    QueryCancelled,
    StorageError,
    ValidationError,
    did_you_mean,
)
from nbext.fetch import Output, Request
from nbext.fetch.balances import Balances
from nbext.node.contracts import DEPOSIT, TRANSFERS, WITHDRAWAL, deployment, head_of, read_metadata
from nbext.node.coverage import Coverage, blocks_of, on_disk, open_coverage, union
from nbext.node.reader import RangeReader
from nbext.node.rpc import FIRST_BATCH, LAST_BLOCK, InconsistentAnswer, Node, Refusal, error_of
from nbext.settings import Secret

# Times that a node is asked for its latest block where it is behind what another one had, or has another one.
_TRIES = 5
# Blocks of which it is said beforehand what reading them costs.
_MANY = 100_000
# Seconds that what is under way may take once a fetch should end, and between two looks whether it should.
_GRACE, _TICK = 1.0, 0.2


def fetch(
    urls: Sequence[Secret],
    request: Request,
    data_dir: Path,
    output: Output,
    *,
    ending: threading.Event | None = None,
) -> None:
    """Fetch contracts' transfers into a data folder, verify balances, and follow the chain where asked to.

    Parameters
    ----------
    ending
        Set by a signal's handler: the fetch ends after what is under way, and what was read is ingested.

    Raises
    ------
    NodeError
        No node answers, its history is pruned, or its answers contradict each other. What was read before is ingested.
    ValidationError
        A contract, block or chain is not allowed.
    QueryCancelled
        It was interrupted, or ended before its last block. What was complete is ingested.
    StorageError
        Another fetch or ingest is at work on the folder.
    ConfigError
        A URL of a node is not one.
    """
    chain = chain_of(request.chain)
    check_memory(request.memory)
    if not request.contracts or "" in map(str.strip, request.contracts):
        raise ValidationError.of(
            "contract", "required", "a contract is missing. Write --contract UNI, or 0x...."
        )
    if request.follow and request.to_block.isdecimal():
        raise ValidationError.of(
            "to_block",
            "follow",
            f"--follow has no last block, and --to-block {request.to_block} "
            "is one. Leave one of them out, or write --to-block latest or finalized.",
        )
    if request.confirmations is not None and request.to_block not in ("auto", "latest"):
        raise ValidationError.of(
            "confirmations",
            "to_block",
            f"--confirmations counts from the latest block, and "
            f"--to-block {request.to_block} names another last block. Leave one of them out.",
        )
    failed: NbextError | None = None
    ending = ending or threading.Event()
    with open_coverage(data_dir, chain) as coverage:
        served = storage.current_generation(data_dir)
        lost = coverage.only_those_in(storage.files_of(served))
        # Also of another chain: it is asked more than has to be, then.
        differing = {
            address for each in (served.chains if served else ()) for address in each.differing
        }
        standards = addresses_of(request.contracts, chain, coverage.said)
        node = Node(urls, rps=request.rps)
        safe = Output(lambda line: output.say(node.redact(line)), output.progress)
        work = _Fetch(node, coverage, request, standards, differing, data_dir, safe, ending)
        threading.Thread(
            target=_end_in_time, args=(ending, node), name="nbext-fetch-end", daemon=True
        ).start()
        if lost:
            names = ", ".join(map(coverage.name_of, sorted(lost)))
            safe.say(f"Files of {names} are no longer in the data, and are read again.")
        try:
            _check_chain(node, chain, safe)
            work.run()
        except KeyboardInterrupt:
            # Not as its context: the libraries' frames hold the URL, and some tracebacks print them.
            failed = QueryCancelled(f"The fetch was interrupted. {work.kept()}")
        except Refusal as refusal:
            failed = error_of(refusal)
        except (ValidationError, OSError):
            raise
        except NbextError as error:
            failed = error
        except Exception as error:  # noqa: BLE001  whatever it is: its frames hold the URL, and what was read counts
            failed = NodeError(
                f"The fetch ended by an error that was not expected ({type(error).__name__}). What was under way is "
                "read again."
            )
        finally:
            node.close()
        if failed is not None:
            work.say_left()
            # What a node says may repeat its URL, whichever answer it is in.
            failed.args = tuple(map(node.redact, failed.args))
            raise failed


def _end_in_time(ending: threading.Event, node: Node) -> None:
    """Ask the node nothing more a moment after a fetch should end: it may be waiting for a rate limit, or an answer."""
    while not node.stopped.is_set():
        if ending.wait(_TICK):
            node.stopped.wait(_GRACE)
            node.close()


def _check_chain(node: Node, chain: Chain, output: Output) -> None:
    """Refuse a node of another chain; leave out one that does not answer, where others do."""
    answers = node.of_each("eth_chainId")
    refused = {each: answer for each, answer in answers.items() if isinstance(answer, Refusal)}
    if len(refused) == len(answers):
        raise error_of(*refused.values())
    for endpoint, refusal in refused.items():
        output.say(f"{refusal} It is left out.")
        node.endpoints.remove(endpoint)
    for endpoint in node.endpoints:
        if (found := answers[endpoint]) != chain.id:
            raise NodeError(
                f"{endpoint.name.capitalize()} has the chain id {found}, and --chain {chain.name} means {chain.id}."
            )
    # Anybody may give a chain any id.
    _check_same(node, 0, 1)


def _check_same(node: Node, number: int, tries: int) -> None:
    """Refuse nodes that have different blocks of a number for longer than a moment; one may be without it."""
    for attempt in range(tries if len(node.endpoints) > 1 else 0):
        blocks = node.of_each("eth_getBlockByNumber", hex(number), False)
        hashes = {
            endpoint.name: str(block.get("hash")).lower()
            for endpoint, block in blocks.items()
            if isinstance(block, Mapping)
        }
        if len(set(hashes.values())) <= 1:
            return
        if attempt == tries - 1:
            raise NodeError(
                f"The nodes are of different chains: block {number:,} is not the same at {', '.join(hashes)}."
            )
        node.stopped.wait(0.2 * 2**attempt)


@dataclass
class _Fetch:
    """One run of `fetch`; ``standards`` are those of contracts that the package knows.

    ``differing`` are those that said of holders other balances than the data had. ``last`` is the block to read to,
    once that is known.
    """

    node: Node
    coverage: Coverage
    request: Request
    standards: Mapping[str, str | None]
    differing: Container[str]
    data_dir: Path
    output: Output
    ending: threading.Event
    ingested: bool = False
    last: int | None = None
    firsts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        topics = (*TRANSFERS, *((DEPOSIT, WITHDRAWAL) if self.request.deposits else ()))
        self.topics = dict.fromkeys(self.standards, topics)
        self.reader = RangeReader(
            self.node,
            self.coverage,
            self.topics,
            self.request.in_flight,
            self.output.progress,
            ending=self.ending,
        )

    def run(self) -> None:
        """Read what is missing; then go on as the chain does, where asked to."""
        # Of contracts that a killed run has read too: their parts are ingested with those of this one.
        addresses = sorted({**self.coverage.in_parts(), **self.topics})
        # Of one that was destroyed the logs are there.
        fetched = self.coverage.said if self.request.from_block == "deployment" else addresses
        self.cards = read_metadata(self.node, addresses, self.standards, fetched)
        for card in self.cards:
            if card.unknown:
                self.coverage.fill_in(card)
                *_, why = card.unknown.values()
                self.output.say(
                    f"{self.coverage.name_of(card.address)}: its {' and '.join(card.unknown)} could not be read. {why} "
                    "The next fetch asks again."
                )
        is_checked = is_again = False
        while True:
            try:
                with on_disk(self.coverage.folder):
                    # Where it is not found again, blocks up to the one before are not covered.
                    self.last = last = self._last()
                    self.firsts = self.firsts or {
                        each: self._first(each, last) for each in self.topics
                    }
                    self._read(last)
                    if not is_checked:
                        self._verify(last, is_last=is_again)
                        is_checked = True
            except QueryCancelled:
                if not self.request.follow:
                    raise QueryCancelled(f"The fetch was stopped. {self.kept()}") from None
            except (NodeError, Refusal, StorageError) as why:
                is_left_out = getattr(why, "meaning", "") == "LEFT_OUT"
                if is_left_out and not is_again:
                    # An earlier fetch may have read it, of another node: this one's answers are not known yet.
                    is_again = True
                    continue
                # Of a node that left logs out all blocks are read anew each time.
                if is_left_out or not self.request.follow:
                    raise
                # A node that is away for a while, or an ingest beside it, is no reason to end: this is a service.
                error = error_of(why) if isinstance(why, Refusal) else why
                self.output.say(f"{error} Trying again in {self.request.every:g} s.")
            if not self.request.follow:
                return
            if self.ending.wait(self.request.every):
                break
        self.output.say(f"The fetch was stopped. {self.kept()}")

    def say_left(self) -> None:
        """Name the blocks that are not covered, where the last one to read is known."""
        if self.last and (left := self._left(self.last)):
            self.output.say(f"Not covered: blocks {left}.")

    def _left(self, last: int) -> str:
        """Return the ranges of blocks that are not covered yet, of any contract, in words; nothing where all are."""
        if not self.firsts:
            return _in_words([(0, last)])
        missing = self.reader.plan(self.firsts, last)
        return _in_words(union([(each.first, each.last) for each in missing]))

    def _verify(self, last: int, *, is_last: bool) -> None:
        """Say what is new, and compare balances."""
        if self.ending.is_set() and self._left(last):
            raise QueryCancelled("")
        if self.node.unchecked:
            self.output.say(
                f"The receipts of {self.node.unchecked:,} blocks were not offered: that their logs are whole is not "
                "checked."
            )
        if not self.ingested and not self.ending.is_set():
            self.output.say(
                f"Nothing new: {', '.join(map(self.coverage.name_of, self.topics))} to block {last:,}."
            )
        Balances(
            self.node, self.coverage, self.data_dir, self.topics, self.firsts, self.request.check
        ).verify(last, self.output.say, is_last=is_last)

    def kept(self) -> str:
        """Return what became of the blocks that were read, for a fetch that ends early."""
        stored = "What was complete is ingested" if self.ingested else "Nothing new was complete"
        return f"{stored}; the same command continues from there."

    def _last(self) -> int:
        """Return the block to read to."""
        stored = max(self.coverage.known(), default=0)
        for attempt in range(_TRIES):
            latest: int = self.node.call("eth_blockNumber")
            # Behind a balancer the next node may be some blocks behind the last one; a reorganised chain may be, too.
            if latest >= stored or self.reader.fork() is not None:
                break
            self.node.next_endpoint()
            if self.ending.wait(0.2 * 2**attempt):
                break
        else:
            raise NodeError(
                f"The node's latest block, {latest:,}, is before block {stored:,}, which was read earlier. "
                "It is behind.",
                meaning="BEHIND",
            )
        wanted = self.request.to_block
        last = (
            int(wanted)
            if wanted.isdecimal()
            else head_of(self.node, wanted, latest, self.request.confirmations)
        )
        if last > latest:
            raise ValidationError.of(
                "to_block", "range", f"--to-block {last:,} is after the chain's last, {latest:,}."
            )
        _check_same(self.node, last, _TRIES)
        return last

    def _first(self, address: str, last: int) -> int:
        """Return the block to read a contract from."""
        if self.request.from_block.isdecimal():
            first = int(self.request.from_block)
            if first > last:
                raise ValidationError.of(
                    "from_block",
                    "range",
                    f"--from-block {first:,} is after the last block to read, {last:,}.",
                )
            return first
        before = self.coverage.deployed.get(address)
        # Where balances differed, what was found may be wrong; of ERC1155 none that is known has to: the node may have
        # hidden the first states and logs alike. Another one has code there.
        known = None if address in self.differing else before
        found = deployment(self.node, address, self.topics[address], last, known)
        if found is None:
            found = before
        if found is None:
            # Not stored: an archive node, asked later, knows it.
            self.output.say(
                f"{self.coverage.name_of(address)}: the node does not have the old states that would show when it "
                "was deployed. An archive node does. Its logs are read from block 0 on, or from --from-block N."
            )
            return 0
        if found > last:
            self.output.say(
                f"{self.coverage.name_of(address)}: it was deployed after block {last:,}, the last to "
                "read. Write --to-block latest, or fetch it later."
            )
            return found
        self.coverage.deployed[address] = found
        return found

    def _read(self, last: int) -> None:
        """Read and ingest what is missing up to a block, in steps."""
        forks, fork = 0, self.reader.fork()
        many = sum(each.blocks for each in self.reader.plan(self.firsts, last))
        if many > _MANY:
            self.output.say(
                f"{many:,} blocks are read. What links them are their headers, so that it takes as many calls, up to "
                f"{FIRST_BATCH} of them in a request."
            )
        while True:
            if fork is not None:
                forks += 1
                if forks > _TRIES:
                    raise NodeError(
                        f"Block {fork:,} is another one each time that it is read: the node answers of two branches."
                    )
                self.coverage.drop_from(fork)
                self.output.say(
                    f"The chain was reorganised: blocks from {fork:,} on are read again and replaced."
                )
            for first, address, topics in self.coverage.missing(self.coverage.steps):
                # Also the events of what was orphaned that were not asked for now: they are taken out with it.
                asked = self.reader.topics.get(address, ())
                events = tuple(dict.fromkeys((*asked, *topics)))
                self.reader.topics = {**self.reader.topics, address: events}
                self.firsts[address] = min(first, self.firsts.get(address, first))
            try:
                is_whole = self.reader.read(self.reader.plan(self.firsts, last), last)
            except (NodeError, QueryCancelled, KeyboardInterrupt) as stopped:
                # Of a reorganisation while it was read the next turn drops the parts. Asked once: a balancer over two
                # branches says otherwise the next time, and nothing would count the turns.
                fork = self.reader.fork() if isinstance(stopped, InconsistentAnswer) else None
                if fork is None:
                    self._ingest()
                    raise
                continue
            fork = self.reader.fork()
            if fork is None:
                self._ingest()
                if is_whole or self.ending.is_set():
                    return

    def _ingest(self) -> None:
        """Ingest the parts, and count them as covered."""
        step, files = self.coverage.joined(self.cards)
        if not files:
            return
        # Arrow would hold on to what the reading needed.
        pa.default_memory_pool().release_unused()
        complete = {
            address: self.coverage.complete(address, topics)
            for address, topics in {**self.coverage.in_parts(), **self.topics}.items()
        }
        replace_from, instead = self.coverage.replaced_by(step)
        try:
            report = ingest(
                files,
                self.coverage.chain.name,
                self.data_dir,
                replace_from=replace_from,
                covered=complete,
                in_place_of=instead,
                memory=self.request.memory,
                progress=lambda step, done: self.output.progress(f"ingest: {step}", done),
            )
        except IngestError:
            # What it refuses would be a hole behind what is covered: it is read again.
            self.coverage.discard_parts()
            for path in map(Path, files):
                if path.name not in self.coverage.taken:
                    path.unlink()
            raise
        self.coverage.commit(step, files, self.cards)
        if replace_from is not None:
            self.coverage.replacing = LAST_BLOCK + 1
        if step is None:
            return
        self.ingested = True
        for address in sorted(step.contracts):
            spans = _in_words(blocks_of(address, step.read))
            self.output.say(f"{self.coverage.name_of(address)}: blocks {spans}.")
        for line in report.removed:
            self.output.say(f"replaced: {line}")
        self.output.say(
            f"{report.new:,} new transfers are ingested. Services that run on this folder serve them "
            "within two seconds."
        )
        if missing := report.odd.get("unseen"):
            self.output.say(f"{missing:,} {ODDITIES['unseen'][missing != 1]}.")
        if report.uncompacted:
            self.output.say(report.uncompacted)


def _in_words(ranges: Iterable[tuple[int, int]]) -> str:
    return " and ".join(f"{first:,} to {end:,}" for first, end in ranges)


def addresses_of(
    contracts: Sequence[str], chain: Chain, fetched: Mapping[str, Mapping[str, Any]]
) -> dict[str, str | None]:
    """Return the addresses of contracts, and the standards of those that the package knows.

    ``fetched`` is what contracts that were fetched before said of themselves, by address.

    Raises
    ------
    ValidationError
        A symbol is not known on the chain, or several contracts bear it; an address is not one.
    """
    here = [one for one in KNOWN if one.chain == chain.name]
    symbols = {one.address: one.symbol for one in here if one.symbol}
    symbols |= {address: said["symbol"] for address, said in fetched.items() if said["symbol"]}
    found: list[str] = []
    for text in contracts:
        if looks_like_address(text) or text[:2].lower() == "0x":
            found.append(normalised(text, "contract"))
            continue
        named = [address for address in symbols if symbols[address].casefold() == text.casefold()]
        if len(named) != 1:
            near = did_you_mean(text, symbols.values())
            whose = (
                f"several contracts: {', '.join(map(checksummed, named))}."
                if named
                else f"no contract on {chain.name} that nbext knows or has fetched.{near}"
            )
            raise ValidationError.of(
                "contract",
                "ambiguous" if named else "unknown",
                f"{quoted(text)} is the symbol of {whose} Write the 0x... address: anyone can give a contract any "
                "symbol.",
            )
        found += named
    standards = {one.address: one.standard for one in here}
    return {address: standards.get(address) for address in found}
