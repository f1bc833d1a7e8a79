"""A service that is asked, broken, restarted and moved in time, in any order, and what must hold of it all the while.

Each request may meet a call to the system that fails, and as many after it as make a while of it: a file's, the
registry's, the clock's. What was acknowledged is there, nobody reads what was private, no answer has other rows, and
once the faults end the service works without a restart.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import requests
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from nbext.engine.query.answers import Dataset
from tests.faults.failing import CODES, Failing
from tests.service.conftest import HOLDERS, Running
from tests.service.segments.test_segments import eventually

KEYS = ("open", "other", "secret")
QUESTIONS = [{**HOLDERS, "limit": limit} for limit in (1, 3, 7, 20)]
# What a request may be told that met a failure: it may be tried again, and nobody is to blame.
_NOT_NOW = {"registry", "unavailable", "disk-full", "busy", "stopping", "too-many-at-once"}
# A result is stored for 30 days: no two of these are so far from each other.
_DAYS = (-14, -1, 0, 1, 14)
_SQL = ("SQLite", "PostgreSQL")


def _failing(*names: str | tuple[str, ...]) -> st.SearchStrategy[Any]:
    """Draw which call fails, of those of one of these names, how many of them with it, and with what; or none."""
    return st.integers(0, 4).flatmap(
        lambda number: (
            st.tuples(
                st.sampled_from((0, 0, 0, 1, 2, 4)),
                st.sampled_from((1, 1, 4, 60)),
                st.sampled_from((*names, _SQL, "clock")),
                st.sampled_from(CODES),
            )
            if number
            else st.none()
        )
    )


_STORING = _failing("open", "fsync", "replace", "stat", "arrow", "")
_READING = _failing("stat", "stat", "arrow", "open")
Registry = Callable[[Path], Any]


@contextmanager
def in_sqlite(folder: Path) -> Iterator[Path]:
    """Lend the path of a registry that is a file."""
    yield folder / "service" / "registry.sqlite"


class BrokenService(RuleBasedStateMachine):
    """One service, three keys, of which ``secret`` is private, and what each of them was promised."""

    # Set by `of`: the data, which all services ask one after the other and none closes, what each question's rows are,
    # and where the registry is.
    dataset: Dataset
    rows: list[list[Any]]
    registry: Registry
    # How many were begun.
    runs = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).runs += 1
        self.open = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="nbext-broken-"))
        self.open.callback(shutil.rmtree, self.folder)
        self.open.enter_context(warnings.catch_warnings())
        # A connection that a failure cut off is nobody's to close.
        warnings.simplefilter("ignore")
        self.place = self.open.enter_context(type(self).registry(self.folder))
        # Not the sockets of whoever asks: what these do when they fail is the client's.
        self.failing = self.open.enter_context(Failing(self.folder, sockets=False))
        self.service = self._started()
        self.texts = {
            name: self.service.container.keys.add(name, rate=None, private=name == "secret")[1]
            for name in KEYS
        }
        # Segment -> which question it is and whether it is the private key's, from the first 200 or 202 on.
        self.promised: dict[str, tuple[int, bool]] = {}
        # Those that were deleted, and those of which nobody was told how a call ended that may have changed them.
        self.deleted: set[str] = set()
        self.unsure: set[str] = set()
        self.signed: set[str] = set()

    def _started(self) -> Running:
        return Running(
            self.folder, self.folder / "service", registry=self.place, dataset=type(self).dataset
        )

    def teardown(self) -> None:
        """Hold what was promised, with the faults ended and the clock right."""
        try:
            self.failing.clock_off = 0.0
            self._works()
        finally:
            self.service.stop()
            self.open.close()

    def _armed(self, failing: Any) -> Any:
        place, times, name, code = failing or (None, 1, "", CODES[0])
        return self.failing.armed(place, code, times=times, of=name)

    def _ask(
        self, key: str, method: str, path: str, failing: Any = None, **options: Any
    ) -> requests.Response | None:
        """Return the answer, or None where a failure is told as what may pass."""
        headers = {"x-api-key": self.texts[key].reveal(), **options.pop("headers", {})}
        session = requests.Session()
        session.trust_env = False
        with session, self._armed(failing):
            answer = session.request(
                method, self.service.url + path, headers=headers, timeout=60, **options
            )
        problem = answer.headers["Content-Type"] == "application/problem+json"
        if failing and problem and answer.json()["code"] in _NOT_NOW:
            return None
        return answer

    @rule(key=st.sampled_from(KEYS), number=st.integers(0, len(QUESTIONS) - 1), failing=_STORING)
    def execute(self, key: str, number: int, failing: Any) -> None:
        """Ask a question; what is accepted is promised."""
        answer = self._ask(key, "POST", "/v1/segment/execute", failing, json=QUESTIONS[number])
        what = number, key == "secret"
        if answer is None:
            self.unsure |= {each for each in self.deleted if self.promised[each] == what}
            return
        told = answer.json()
        assert answer.status_code in (200, 202), told
        assert self.promised.setdefault(told["id"], what) == what
        self.deleted.discard(told["id"])
        self.unsure.discard(told["id"])
        if answer.status_code == 200:
            assert told["preview"] == self.rows[number][:10]

    @rule(pick=st.integers(0, 20), exports=st.booleans(), failing=_READING)
    def read(self, pick: int, exports: bool, failing: Any) -> None:
        """Read and export a segment that somebody was promised, by each key: one of both looks meets the failure."""
        if self.promised:
            segment = sorted(self.promised)[pick % len(self.promised)]
            for key in KEYS:
                self._read(key, segment, *((None, failing) if exports else (failing, None)))

    def _read(self, key: str, segment: str, failing: Any = None, exporting: Any = None) -> None:
        number, private = self.promised[segment]
        path = f"/v1/segment/{segment}"
        seen = self._ask(key, "GET", path, failing, headers={"Prefer": "wait=30"})
        rows = self._ask(key, "GET", f"{path}/json", exporting)
        if private != (key == "secret"):
            for answer in (seen, rows):
                assert answer is None or answer.status_code == 404, answer.text
            return
        ends = {"expired"} if segment in self.deleted else {"completed"}
        # One that was deleted, and could not be made again, has failed.
        ends |= {"expired", "completed", "failed"} if segment in self.unsure else set()
        if seen is not None:
            assert (seen.status_code, seen.json().get("status") in ends) == (200, True), seen.text
        if rows is not None and rows.status_code == 200:
            assert rows.json()["data"] == self.rows[number]
        elif rows is not None:
            told = rows.json()["code"], "failed" in ends, "expired" in ends
            assert told in {
                ("expired", False, True),
                ("expired", True, True),
                ("not-completed", True, True),
            }, rows.text

    @rule(key=st.sampled_from(KEYS), pick=st.integers(0, 20), failing=_failing("unlink", "stat"))
    def delete(self, key: str, pick: int, failing: Any) -> None:
        """Delete a result; of another key's nothing is deleted."""
        if not self.promised:
            return
        segment = sorted(self.promised)[pick % len(self.promised)]
        answer = self._ask(key, "DELETE", f"/v1/segment/{segment}?result=delete", failing)
        if answer is None:
            self.unsure.add(segment)
        elif answer.status_code == 200:
            # One that failed has no result to delete, and stays as it is: it is as unsure as before.
            self.deleted.add(segment)
        else:
            assert answer.status_code in (403, 404, 409), answer.text

    @rule(number=st.integers(0, 3), failing=_failing())
    def sign_up(self, number: int, failing: Any) -> None:
        """Sign up for the newsletter."""
        email = f"someone{number}@example.org"
        asked = {"json": {"email": email}}
        answer = self._ask("open", "POST", "/v1/signup/newsletter", failing, **asked)
        if answer is not None:
            assert answer.status_code == 202, answer.text
            self.signed.add(email)

    @rule(failing=_failing("stat", "scandir", "unlink", "open"), days=st.sampled_from(_DAYS))
    def care(self, failing: Any, days: int) -> None:
        """Have the service look after its folder, with the clock set to another day."""
        self.failing.clock_off = days * 86_400.0
        maintenance = self.service.container.maintenance
        with self._armed(failing):
            for name in ("_clean", "_make_room"):
                maintenance._do(name, getattr(maintenance, name))

    @rule(failing=_failing("unlink", "stat", "open"))
    def restart(self, failing: Any) -> None:
        """Stop the service, which may meet failures, and start it again."""
        with self._armed(failing):
            self.service.stop()
        self.service = self._started()

    def _works(self) -> None:
        # On a busy machine a probe may get no answer in its time.
        eventually(lambda: self.service.get("/readyz").status_code == 200, 120)
        for segment in self.promised:
            for key in KEYS:
                self._read(key, segment)
        for key in KEYS:
            for number in range(len(QUESTIONS)):
                self.execute(key, number, None)
        emails = {each.email for each in self.service.container.signups.all()}
        assert self.signed <= emails
        failed = [line for line in self.service.lines() if line["event"] == "thread ended"]
        assert failed == []


def of(
    dataset: Dataset, rows: list[list[Any]], registry: Registry = in_sqlite
) -> type[BrokenService]:
    """Return the machine over a dataset, whose questions have these rows."""
    told = {"dataset": dataset, "rows": rows, "registry": staticmethod(registry)}
    return type("BrokenServiceOfThat", (BrokenService,), told)
