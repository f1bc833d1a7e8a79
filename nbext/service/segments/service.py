"""Segments from request to result: parse, enter, run, store, read, cancel."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from nbext.core.locks import ProcessLock
from nbext.core.strict_json import to_json
from nbext.core.wire import EXECUTE_KEYS
from nbext.engine.dataset import Cancel
from nbext.engine.query.answers import Dataset
from nbext.errors import QueryTimeout, ResourceLimit, StorageError
from nbext.language import language
from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import Key
from nbext.service.generations import Generations
from nbext.service.limits import Limits
from nbext.service.middleware import Log
from nbext.service.problems import Problem
from nbext.service.scheduling import Scheduler, SegmentJob
from nbext.service.segments.analysis import PlannedBody, Planner, own_id_of, profile_of
from nbext.service.segments.lists import Lists
from nbext.service.segments.results import ResultFolder, preview
from nbext.service.segments.store import (
    WITHOUT_RESULT,
    ClaimedMeanwhile,
    IdempotencyKey,
    ResultFile,
    SegmentRecord,
    SegmentStore,
)

# Reading a result notes its use at most once an hour: else each read would wait for the disk.
_TOUCH_SECONDS = 3600.0
# How often a segment is looked at that is being cancelled, and every how many seconds.
_LOOKS, _LOOK = 250, 0.02


@dataclass(frozen=True)
class Executed:
    """What execute found or began: the segment, and whether the call was a repeat.

    ``job`` is what to wait for where it runs here: by the time that the caller looks, it may have ended. ``in_words``
    puts a segment that others asked for before, in other words, into the caller's own.
    """

    segment: SegmentRecord
    replayed: bool = False
    job: SegmentJob | None = None
    in_words: Callable[[SegmentRecord], SegmentRecord] = lambda segment: segment


class SegmentService:
    """All segments of a data folder, and those that run in this process."""

    def __init__(
        self, generations: Generations, database: Database, folder: Path, limits: Limits, log: Log
    ) -> None:
        self.generations, self.limits, self._log = generations, limits, log
        self.database = database
        self.store, self.results = SegmentStore(database), ResultFolder(folder, database.id)
        self.lists = Lists(folder, database)
        self.results.claim(expected=any(self.store.results()))
        self.lists.claim(expected=False)
        # Of each generation: nothing but the data decides what a body means.
        self.planned = WeakKeyDictionary[Dataset, dict[bytes, PlannedBody]]()
        # Marks this service as alive, so that another on the same folder leaves its segments alone.
        lease = self.lease = ProcessLock(folder / "leases")
        self.scheduler = Scheduler(
            self.store,
            lease,
            self._answer,
            fingerprints=generations.fingerprints,
            limits=limits,
            log=log,
        )

    def planner(
        self, dataset: Dataset, key: Key | None, cancel: Cancel, *, private: bool = False
    ) -> Planner:
        """Return what makes the plans of a key's bodies on the data.

        Without a key, of what was asked before, which ``private`` says of whom.
        """
        if private or (key and key.private):
            # Sets and plans of its own: by how soon an answer comes, one key would learn what another has asked.
            dataset = copy(dataset)
            dataset.sets = {}
        known = self.planned.setdefault(dataset, {})
        return Planner(self.store, self.lists, known, dataset, key, cancel)

    def repeated(
        self, name: str, key: Key, body: Mapping[str, Any]
    ) -> tuple[IdempotencyKey, Executed | None]:
        """Return the Idempotency-Key of a call, and the segment that a call with the same one made before."""
        claim = self.store.claim(name, key, body)
        former = self._settled(claim.segment) if claim.segment else None
        # A call that was cut off left no result: its repeat runs anew.
        if former is None or former.status in ("cancelled", "expired"):
            return claim, None
        # Others may have asked for it in other words.
        request = {**former.request, "filters": body["filters"]}
        return claim, Executed(replace(former, request=request), replayed=True)

    def is_current(self, result: ResultFile | None) -> bool:
        """Return whether a completed segment still has the result that it had; one look into the registry."""
        # No two results have one name, and the row of one that is gone has none.
        return (
            result is not None
            and not self.store.unnamed([result.file])
            and self.results.check(result, read=False) == "here"
        )

    def execute(
        self,
        dataset: Dataset,
        plan: Any,
        body: Mapping[str, Any],
        key: Key,
        claim: IdempotencyKey | None,
    ) -> Executed:
        """Find the segment of a body and its plan on the data, or begin it."""
        fingerprint = dataset.about.fingerprint
        # Two ways to write one segment have one id: each caller gets its own words back, and what they call for.
        request = {
            **{name: plan.canonical[name] for name in EXECUTE_KEYS},
            **{name: body[name] for name in ("filters", "profile", "since") if name in body},
        }
        segment_id = own_id_of(plan, dataset, key)
        segment = self._settled(segment_id)
        if segment and segment.status not in WITHOUT_RESULT and claim is None:
            job = self.scheduler.jobs.get(segment_id)
        else:
            own = SegmentJob(segment_id, plan)
            try:
                with self.scheduler.entering(own) as job:
                    if job is own:
                        # An ingest may end while it waits for its turn.
                        lent = contextlib.ExitStack()
                        lent.enter_context(self.generations.acquire(fingerprint))
                        job.done.add_done_callback(lambda _: lent.close())
                    # As of the last block is now: of two ways to write it, the id has the one without a time.
                    filters = {**body["filters"]}
                    if "asOf" not in plan.canonical["filters"]:
                        filters.pop("asOf", None)
                    segment = self.store.enqueue(
                        segment_id,
                        {**request, "filters": filters},
                        self._facts(plan),
                        fingerprint,
                        key=key,
                        limits=self.limits,
                        most=plan.whole.most(),
                        claim=claim,
                        lost=segment.result if segment and segment.status == "expired" else None,
                    )
            except ClaimedMeanwhile:
                assert claim is not None, "without one nothing is claimed meanwhile"
                claim, former = self.repeated(claim.name, key, body)
                return former or self.execute(dataset, plan, body, key, claim)
        return Executed(segment, job=job, in_words=partial(self._worded, request, plan))

    def _worded(self, request: dict[str, Any], plan: Any, segment: SegmentRecord) -> SegmentRecord:
        facts = segment.facts
        said = self._facts(plan, facts["counted"], facts["why"])
        return replace(segment, request=request, facts=facts | said)

    def _facts(
        self, plan: Any, counted: Sequence[Sequence[int]] = (), why: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Return what an answer says of a plan; why there is no wallet in the plan's words, or else as in ``why``."""
        said = language.why_none(plan, counted) or why
        return {
            "chain": plan.chain.name,
            "chainId": plan.chain.id,
            "asOf": plan.as_of,
            "columns": list(plan.columns),
            "warnings": [*plan.warnings, *said],
            "counted": counted,
            "why": why,
            **({"since": plan.canonical["since"]} if "since" in plan.canonical else {}),
        }

    def _settled(self, segment_id: str) -> SegmentRecord | None:
        """Return the segment as it is now, or once it is cancelled: that was for whoever had asked before."""
        for _ in range(_LOOKS):
            segment = self._current(segment_id)
            if not (segment and self.scheduler.is_ending(segment)):
                break
            time.sleep(_LOOK)
        return segment

    def read(self, segment_id: str, key: Key | None, *, whole: bool = False) -> SegmentRecord:
        """Return the segment as it is now; the problem is 404 where there is none that the key may see, or any at all.

        ``key`` is None where that was asked before. The bytes of a ``whole`` result are compared.
        """
        segment = self._current(segment_id, key, whole=whole)
        if segment is None:
            raise Problem("not-found", "There is no segment with that id.")
        return segment

    def _current(
        self, segment_id: str, key: Key | None = None, *, whole: bool = False
    ) -> SegmentRecord | None:
        """Return the segment after what became of its result: lost or damaged.

        Without its file it is expired for whoever reads it, and stays as it is stored: the file may come back.
        Unavailable: nobody can tell now.
        """
        segment = self.store.get(segment_id, key)
        if segment and segment.result:
            found = self.results.check(segment.result, read=whole)
            if found == "absent":
                error = expired("The result's file is missing.")
                return replace(segment, status="expired", error=error, preview=[])
            if found == "damaged":
                self.expire([segment.result])
                return self.store.get(segment_id)
        return segment

    def result(self, segment_id: str, key: Key) -> tuple[SegmentRecord, Any]:
        """Return a completed segment and a reader of its rows.

        The problem is 404; 409 while it runs or where it ended without a result; 410 where that has been deleted.
        """
        segment = self.read(segment_id, key, whole=True)
        # One whose file is missing now is expired, and still has its result.
        if segment.result is None or segment.status != "completed":
            code, detail, error = "not-completed", f"The segment is {segment.status}", segment.error
            if error is None:
                code, detail = "not-ready", f"{detail}. Try again soon."
            elif segment.status == "expired":
                code, detail = "expired", error["detail"]
            else:
                detail = f"{detail}: {error['detail']}"
            raise Problem(code, detail, segment_id=segment.id)
        reader = self.results.open(segment.result)
        if time.time() - segment.used_at > _TOUCH_SECONDS:
            # On a full disk what is stored is still read; the next reader notes it.
            with contextlib.suppress(StorageError):
                self.store.touch(segment_id)
        return segment, reader

    def end(self, segment_id: str, key: Key, delete: bool) -> SegmentRecord:
        """Stop a segment that has not finished, wherever it runs; or ``delete`` a finished one's result.

        The problem is 404; 403 where it is another key's; 409 where it has finished, or with ``delete`` has not.
        """
        segment = self.read(segment_id, key)
        if delete and not segment.finished:
            raise Problem(
                "not-ready",
                f"The segment is {segment.status}. Cancel it first.",
                segment_id=segment.id,
            )
        if (segment.result if delete else not segment.finished) and not segment.ended_by(key):
            raise Problem(
                "not-yours",
                "This is another key's segment. Only that key, or one with the scope admin, may end it.",
            )
        if delete and segment.result:
            who = "Its owner" if segment.key_id == key.id else "An administrator"
            self.expire([segment.result], f"{who} deleted the result.")
        ended, now = delete or self.scheduler.cancel(segment_id), self.read(segment_id, None)
        if not ended:
            raise Problem(
                "finished", f"The segment has ended ({now.status}): there is nothing to cancel."
            )
        return now

    def _answer(self, job: SegmentJob) -> None:
        request = job.segment.request
        with self.generations.acquire(job.segment.fingerprint) as dataset:
            planner = self.planner(dataset, None, job.cancel, private=job.segment.private)
            if job.plan is None:
                job.plan = planner.requested(request)
            plan, facts = job.plan, self._facts(job.plan)
            answer = planner.dataset.ask(
                language.compile(plan), limit=plan.limit, cancel=job.cancel
            )
            if not answer.matched:
                # The answer itself is there: it must not be lost over its explanation.
                with contextlib.suppress(QueryTimeout, ResourceLimit):
                    # In the segment's words: whoever reads it by its id may have asked in others. As text: a computed
                    # block knows how it was written.
                    own = {name: plan.canonical[name] for name in ("operator", "filters")}
                    said = (
                        plan
                        if "since" in plan.canonical
                        else planner.plan(json.loads(to_json(own)))
                    )
                    counted = language.count_none(said, planner.count)
                    facts = self._facts(plan, why=language.why_none(said, counted))
                    facts["counted"] = counted
            if asked := request.get("profile"):
                facts["profile"] = profile_of(planner, plan, asked)
            self.scheduler.storing(job)
            with contextlib.closing(answer.stored) as rows:
                result = self.results.write(rows.schema, _heeding(job.cancel, rows.batches()))
                first = preview(rows.batches())
            job.ended = self.store.complete(
                job.id,
                self.lease.name,
                matched=answer.matched,
                returned=rows.num_rows,
                preview=first,
                result=result,
                facts=facts,
            )
            if job.ended is None:
                self.results.remove(result.file)

    def expire(self, results: Collection[ResultFile], why: str | None = None) -> None:
        """Delete results, and mark their segments as expired; without a reason they are damaged, and are set aside."""
        said = expired(why or "The result was damaged and has been set aside.")
        for segment_id, file in self.store.expire(results, said).items():
            if why:
                self.results.remove(file)
            else:
                self._log.warning("damaged result set aside", segment=segment_id)
                self.results.set_aside(file)


def expired(why: str) -> dict[str, Any]:
    """Return the error of a segment whose result is gone, and why it is."""
    return Problem("expired", f"{why} Execute the segment again for a new one.").summary


def _heeding(cancel: Cancel, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches until the job should end: of ten million rows these are converted and written for long."""
    for batch in batches:
        cancel.check()
        yield batch
