"""Reads the ranges that are missing, by a few threads, in the order of blocks; each is stored as it is whole."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from heapq import heappop, heappush
from itertools import pairwise, product
from typing import Any

from nbext.errors import NodeError, QueryCancelled
from nbext.node.coverage import Coverage, uncovered
from nbext.node.limits import Meaning, RangeSize, blocks_offered
from nbext.node.ranges import NEAR, TOO_MUCH, LogFilter, has_block, read_range
from nbext.node.received import Received
from nbext.node.rpc import InconsistentAnswer, Node, Refusal, error_of

# Times that a range is asked for again after answers that contradict each other.
_REPEATS = 4
# Rows of a step: what is ingested at once. Each ingest of so much may write the base anew: with 100,000 rows 1,000,000
# logs took 152 s, of which 47 were reading.
STEP_ROWS = 400_000


@dataclass
class RangeReader:
    """Reads from a node into a coverage.

    Parameters
    ----------
    topics
        The events of each contract.
    in_flight
        Requests at once.
    progress
        Called in the caller's thread with a line for people, and the share that is done, from 0 to 1.
    """

    node: Node
    coverage: Coverage
    topics: Mapping[str, Sequence[str]]
    in_flight: int = 4
    progress: Callable[[str, float], None] = field(default=lambda text, share: None)
    span: RangeSize = field(default_factory=RangeSize)
    # Set where the fetch should end after what is under way.
    ending: threading.Event = field(default_factory=threading.Event)
    rows: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def plan(self, firsts: Mapping[str, int], last: int) -> list[LogFilter]:
        """Return what is missing of each contract up to a block, in the order of blocks, those of one range as one."""
        gaps = {
            contract: uncovered(firsts[contract], last, self.coverage.covered(contract, topics))
            for contract, topics in self.topics.items()
        }
        # Those of which answers are there, of an earlier process, are ranges by themselves.
        edges = {
            edge
            for ranges in (*gaps.values(), self.coverage.received().values())
            for first, end in ranges
            for edge in (first, end + 1)
        }
        # The contracts that lack a range, by it and their events.
        lacking: dict[Any, list[str]] = {}
        for (first, after), (contract, ranges) in product(pairwise(sorted(edges)), gaps.items()):
            if any(begin <= first <= end for begin, end in ranges):
                kind = first, after - 1, tuple(self.topics[contract])
                lacking.setdefault(kind, []).append(contract)
        return [
            LogFilter(begin, end, tuple(sorted(contracts)), topics)
            for (begin, end, topics), contracts in lacking.items()
        ]

    def read(self, plan: Sequence[LogFilter], last: int) -> bool:
        """Read ranges of a plan into parts until all are, or a step has enough rows; return whether all are.

        Interrupted, it leaves what is whole.

        Raises
        ------
        NodeError
            A range cannot be read; those before it may be, and are stored.
        OSError
            A range cannot be stored.
        """
        # In the order of blocks, whatever is put back: a fetch that ends early ends at a block.
        self._plan, self._last = sorted(plan), last
        self._error: Exception | None = None
        # What an earlier process has received of ranges that are asked for otherwise now is of no use.
        for path in self.coverage.received().keys() - set(map(self.coverage.answers, plan)):
            path.unlink()
        self._ended, self._enough = False, self.rows + STEP_ROWS
        self._total, self._done = sum(wanted.blocks for wanted in plan), 0
        started, before = time.monotonic(), self.rows
        threads = [
            threading.Thread(target=self._run, name=f"nbext-fetch-{n}", daemon=True)
            for n in range(max(1, self.in_flight))
        ]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                for thread in threads:
                    thread.join(0.05)
                seconds = max(0.001, time.monotonic() - started)
                done, total = self._done, max(1, self._total)
                speed = (self.rows - before) / seconds
                text = f"{done:,} of {total:,} blocks, {self.rows:,} rows, {speed:,.0f} rows/s"
                if done:
                    text += f", {timedelta(seconds=int(seconds / done * (total - done)))} left"
                self.progress(text, done / total)
        finally:
            # No part is stored after this: a thread may wait for a node a while longer, and nobody for it.
            with self._lock:
                self._ended = True
        if self._error is not None:
            raise self._error
        return not self._plan

    def fork(self) -> int | None:
        """Return the first stored block that the chain no longer has; None where it has all of them.

        Raises
        ------
        NodeError
            None of the stored blocks are this chain's: too deep a reorganisation, or another chain.
        """
        known, parted = self.coverage.known(), self.coverage.parted
        ingested = self.coverage.ingested()
        # A process that was killed after a reorganisation has left parts of the new branch, beside what was ingested.
        for hashes in (ingested, known) if ingested != known else (known,):
            # What is stored beyond a block that is not the same may be of the chain all the same: it is not linked.
            numbers = sorted(number for number in hashes if parted is None or number <= parted)
            if numbers and not has_block(self.node, numbers[-1], hashes[numbers[-1]]):
                break
        else:
            return None
        # The chain agrees up to some number: the first that it does not have is sought.
        low = bisect_left(
            numbers[:-1], True, key=lambda number: not has_block(self.node, number, hashes[number])
        )
        # Of parts alone nothing was ingested: they are dropped.
        if low == 0 and len(numbers) > 1 and ingested:
            raise NodeError(
                f"None of the {len(numbers):,} stored blocks from {numbers[0]:,} on are the node's. It is a node of "
                "another chain, or its chain was reorganised further back. Fetch into a new folder with --data."
            )
        return numbers[low - 1] + 1 if low else numbers[0]

    def _run(self) -> None:
        """Read ranges until none is left; a thread's whole work."""
        try:
            while wanted := self._next():
                self._read(wanted)
        except Exception as error:  # noqa: BLE001  whatever it is, the range was not read: `read` raises it
            with self._lock:
                self._error, self._ended = self._error or error, True

    def _next(self) -> LogFilter | None:
        with self._lock:
            if self._ended or self.ending.is_set() or self.rows >= self._enough or not self._plan:
                return None
            wanted = heappop(self._plan)
            stop, near = wanted.last, self._last - NEAR
            # What an earlier process has answers of is read as it was.
            if not self.coverage.answers(wanted).exists():
                stop = min(stop, wanted.first + self.span.size - 1)
            # The last blocks are read by themselves: of them each is looked into.
            if wanted.first <= near < stop:
                stop = near
            if stop < wanted.last:
                heappush(self._plan, replace(wanted, first=stop + 1))
            return replace(wanted, last=stop)

    def _read(self, wanted: LogFilter) -> None:
        node = self.node
        # The whole range is asked of one node, and the next one of the next: two nodes may be at different blocks.
        node.next_endpoint()
        for attempt in range(max(_REPEATS, len(node.endpoints)) + 2):
            try:
                self._window(wanted)
            except InconsistentAnswer as error:
                if attempt >= _REPEATS:
                    raise
                node.switch_endpoint()
                node.stopped.wait(0.1 * 2**attempt if error.meaning == "BEHIND" else 0.02)
            except Refusal as refusal:
                why = refusal
                if why.meaning is not Meaning.PRUNED or attempt + 1 >= len(node.endpoints):
                    break
                node.switch_endpoint()
            else:
                return
        is_less = why.meaning in TOO_MUCH
        with self._lock:
            # Of words that nobody knows, too: a limit has any, and what is none is said of one block.
            if wanted.blocks > 1 and (is_less or why.meaning is Meaning.OTHER):
                rest = wanted.first + self.span.refused(wanted.blocks, blocks_offered(why.text))
                pieces = [replace(wanted, last=rest - 1), replace(wanted, first=rest)]
            elif is_less and len(wanted.contracts) > 1:
                pieces = [replace(wanted, contracts=(each,)) for each in wanted.contracts]
            else:
                raise error_of(
                    why, during=f"Blocks {wanted.first:,} to {wanted.last:,} could not be read."
                )
            self._total += sum(piece.blocks for piece in pieces) - wanted.blocks
            for piece in pieces:
                heappush(self._plan, piece)

    def _window(self, wanted: LogFilter) -> None:
        """Read and store a range; what was received of it before is not asked for again."""
        received = Received(self.coverage.answers(wanted))
        try:
            self._keep(wanted, received)
        except QueryCancelled:
            raise
        except Exception:
            # Another answer may do better, and another node has one.
            received.path.unlink(missing_ok=True)
            raise

    def _keep(self, wanted: LogFilter, received: Received) -> None:
        started, near_end = time.monotonic(), wanted.first > self._last - NEAR
        with self._lock:
            known = self.coverage.known()
        with self.node.recording(received):
            blocks, rows = read_range(self.node, wanted, near_end=near_end, known=known)
        # The node is asked: what was received may have been orphaned since.
        if received.is_old and not has_block(self.node, wanted.last, blocks[wanted.last][0]):
            raise InconsistentAnswer(f"Block {wanted.last:,} has changed since it was read.")
        with self._lock:
            if not self._ended or self._error is not None:
                self.coverage.keep(wanted, blocks, rows)
                self.rows += len(rows)
                self._done += wanted.blocks
                self.span.answered(wanted.blocks, len(rows), time.monotonic() - started)
