"""Reads the ranges that are missing, by a few threads, in the order of blocks; each is stored as it is whole."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

from nbext.errors import NodeError, QueryCancelled
from nbext.node.coverage import Coverage, uncovered
from nbext.node.limits import Meaning, RangeSize, blocks_offered
from nbext.node.ranges import (
    NEAR,
    TOO_MUCH,
    LogFilter,
    RangeTask,
    read_header,
    read_range,
)
from nbext.node.rpc import InconsistentAnswer, Node, Refusal

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

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def plan(self, firsts: Mapping[str, int], last: int) -> deque[RangeTask]:
        """Return what is missing of each contract up to a block, in the order of blocks, those of one range as one."""
        gaps = {
            contract: uncovered(firsts[contract], last, self.coverage.covered(contract, topics))
            for contract, topics in self.topics.items()
            if firsts[contract] <= last
        }
        # Those of which answers are there, of an earlier process, are ranges by themselves.
        received = [(first, end) for _, first, end in self.coverage.received()]
        edges = sorted(
            {
                edge
                for ranges in (*gaps.values(), received)
                for first, end in ranges
                for edge in (first, end + 1)
            }
        )
        plan: deque[RangeTask] = deque()
        for first, after in pairwise(edges):
            by_topics: dict[tuple[str, ...], list[str]] = {}
            for contract, ranges in gaps.items():
                if any(begin <= first and after - 1 <= end for begin, end in ranges):
                    by_topics.setdefault(tuple(self.topics[contract]), []).append(contract)
            plan += [
                (LogFilter(tuple(sorted(contracts)), topics), first, after - 1)
                for topics, contracts in by_topics.items()
            ]
        return plan

    def read(self, plan: deque[RangeTask], last: int) -> None:
        """Read ranges of a plan into parts until it is empty, or a step has enough rows.

        What is left stays in the plan. Interrupted, it leaves what is whole.

        Raises
        ------
        NodeError
            A range cannot be read; those before it may be, and are stored.
        OSError
            A range cannot be stored.
        """
        self._plan, self._last = plan, last
        self._error: Exception | None = None
        # What an earlier process has received of ranges that are asked for otherwise now is of no use.
        self._received = set(self.coverage.received())
        for task in self._received.difference(plan):
            self.coverage.receiving(*task).forget()
        self._ended, self._enough = False, self.rows + STEP_ROWS
        self._total, self._done = sum(end - first + 1 for _, first, end in plan), 0
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
                self.progress(*self._said(seconds, self.rows - before))
        finally:
            # No part is stored after this: a thread may wait for a node a while longer, and nobody for it.
            with self._lock:
                self._ended = True
        if self._error is not None:
            raise self._error

    def fork(self) -> int | None:
        """Return the first stored block that the chain no longer has; None where it has all of them.

        Raises
        ------
        NodeError
            None of the stored blocks are this chain's: too deep a reorganisation, or another chain.
        """
        hashes, parted = self.coverage.known(), self.coverage.parted
        # What is stored beyond a block that is not the same may be of the chain all the same: it is not linked to it.
        numbers = sorted(number for number in hashes if parted is None or number <= parted)
        if not numbers or self._has(numbers[-1], hashes):
            return None
        low, high = (
            0,
            len(numbers) - 1,
        )  # the chain agrees up to some number: the first that it does not have is sought
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._has(numbers[middle], hashes) else (low, middle)
        # Of parts alone nothing was ingested: they are dropped.
        if low == 0 and len(numbers) > 1 and self.coverage.hashes:
            raise NodeError(
                f"None of the {len(numbers):,} stored blocks from {numbers[0]:,} on are the node's. It is a node of "
                "another chain, or its chain was reorganised further back. Fetch into a new folder with --data."
            )
        return numbers[low - 1] + 1 if low else numbers[0]

    def _has(self, number: int, hashes: Mapping[int, str]) -> bool:
        try:
            return read_header(self.node, number).hash == hashes[number]
        except InconsistentAnswer as error:
            if error.meaning != "BEHIND":
                raise
            # The node has no such block: its chain is shorter now.
            return False

    def _run(self) -> None:
        """Read ranges until none is left; a thread's whole work."""
        while (task := self._next()) is not None:
            try:
                self._read(*task)
            except Exception as error:  # noqa: BLE001  whatever it is, the range was not read: `read` raises it
                with self._lock:
                    self._plan.appendleft(task)
                    self._error, self._ended = self._error or error, True

    def _next(self) -> RangeTask | None:
        with self._lock:
            if self._ended or self.ending.is_set() or self.rows >= self._enough or not self._plan:
                return None
            wanted, first, end = self._plan.popleft()
            # The last blocks are read by themselves: of them every header is asked for.
            size = self.span.size
            stop = end if (wanted, first, end) in self._received else min(end, first + size - 1)
            if first <= self._last - NEAR < stop:
                stop = self._last - NEAR
            if stop < end:
                self._plan.appendleft((wanted, stop + 1, end))
            return wanted, first, stop

    def _read(self, wanted: LogFilter, first: int, end: int) -> None:
        span, node = self.span, self.node
        # The whole range is asked of one node, and the next one of the next: two nodes may be at different blocks.
        node.next_endpoint()
        for attempt in range(max(_REPEATS, len(node.endpoints)) + 2):
            started = time.monotonic()
            try:
                rows = self._window(wanted, first, end)
                break
            except InconsistentAnswer as error:
                if attempt >= _REPEATS:
                    raise
                node.switch_endpoint()
                node.stopped.wait(0.1 * 2**attempt if error.meaning == "BEHIND" else 0.02)
                continue
            except Refusal as refusal:
                why = refusal
            if why.meaning is Meaning.PRUNED and attempt + 1 < len(node.endpoints):
                node.switch_endpoint()
                continue
            is_less = why.meaning in TOO_MUCH
            # Of words that nobody knows, too: a limit has any, and what is none is said of one block.
            if first < end and (is_less or why.meaning is Meaning.OTHER):
                rest = first + span.refused(end - first + 1, blocks_offered(why.text))
                self._instead([(wanted, first, rest - 1), (wanted, rest, end)])
                return
            if is_less and len(wanted.contracts) > 1:
                self._instead(
                    [(LogFilter((each,), wanted.topics), first, end) for each in wanted.contracts]
                )
                return
            raise why.as_error(during=f"Blocks {first:,} to {end:,} could not be read.")
        span.answered(end - first + 1, rows, time.monotonic() - started)

    def _window(self, wanted: LogFilter, first: int, end: int) -> int:
        """Read and store a range, and return how many rows it has; what was received before is not asked for again."""
        node, received = self.node, self.coverage.receiving(wanted, first, end)
        try:
            with node.recording(received):
                window = read_range(node, wanted, first, end, near_end=first > self._last - NEAR)
            if received.is_old:
                self._recheck(end, window.blocks[end][0])
            with self._lock:
                if not self._ended or self._error is not None:
                    self.coverage.keep(window, wanted)
                    self.rows += len(window.rows)
                    self._done += end - first + 1
        except QueryCancelled:
            raise
        except Exception:
            # Another answer may do better, and another node has one.
            received.forget()
            raise
        return len(window.rows)

    def _recheck(self, last: int, found: str) -> None:
        if not self._has(last, {last: found}):
            raise InconsistentAnswer(f"Block {last:,} has changed since it was read.")

    def _instead(self, tasks: Sequence[RangeTask]) -> None:
        """Read these in place of one that was refused, in the order of blocks: several threads may have had theirs."""
        with self._lock:
            blocks = [end - first + 1 for _, first, end in tasks]
            self._total += sum(blocks) - (tasks[-1][2] - tasks[0][1] + 1)
            in_order = sorted([*self._plan, *tasks], key=lambda task: task[1])
            self._plan.clear()
            self._plan.extend(in_order)

    def _said(self, seconds: float, rows: int) -> tuple[str, float]:
        """Return a line for people of what was read in a time, and a share from 0 to 1."""
        done, total = self._done, max(1, self._total)
        text = f"{done:,} of {total:,} blocks, {self.rows:,} rows, {rows / seconds:,.0f} rows/s"
        if done:
            text += f", {timedelta(seconds=int(seconds / done * (total - done)))} left"
        return text, done / total
