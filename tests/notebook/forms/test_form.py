"""A form's requests: the latest alone, in turn with what changes the form, errors handed over."""

from __future__ import annotations

import re
import threading
from functools import partial
from typing import Any

from nbext.notebook.forms.form import Background, Form, Steps
from nbext.notebook.results.progress import in_background


def fresh() -> tuple[Background, list[Exception]]:
    failures: list[Exception] = []
    return Background(failures.append), failures


def test_of_many_that_wait_only_the_latest_runs():
    background, failures = fresh()
    ran: list[int] = []
    for number in range(50):
        background.schedule(lambda number=number: ran.append(number), after=0.05)
    assert background.join(5)
    assert (ran, failures) == ([49], [])


def test_what_is_asked_while_one_runs_does_not_wait_and_what_comes_of_the_earlier_is_forgotten():
    background, failures = fresh()
    started, go_on = threading.Event(), threading.Event()
    seen: list[str] = []

    def slow(name: str, error: Exception | None = None) -> Steps:
        def wait() -> str:
            started.set()
            assert go_on.wait(5)
            if error:
                raise error
            return name

        seen.append(f"{name} begins")
        seen.append((yield wait))

    for name, error in (("a", None), ("b", ValueError("late"))):
        started.clear()
        background.schedule(partial(slow, name, error))
        assert started.wait(5)
    early = [one for one in threading.enumerate() if one.name == "nbext-form"]
    background.schedule(lambda: seen.append("c"))
    assert background.join(5)
    go_on.set()
    for thread in early:
        thread.join(5)
    assert (seen, failures) == (["a begins", "b begins", "c"], [])


def test_what_a_task_yields_runs_outside_of_the_lock_and_gives_it_its_value_or_its_error():
    lock, seen = threading.RLock(), list[Any]()
    background = Background(seen.append, lock)

    def taken() -> bool:
        if is_free := lock.acquire(blocking=False):
            lock.release()
        return is_free

    def free() -> bool:
        # Of another thread: one that has the lock may take it again.
        return in_background(taken, "other").result(5)

    def refused() -> None:
        raise ValueError("no")

    def task() -> Steps:
        seen.append(free())
        seen.append((yield free))
        try:
            yield refused
        except ValueError as error:
            seen.append(str(error))
        yield refused

    background.schedule(task)
    assert background.join(5)
    assert [str(one) for one in seen] == ["False", "True", "no", "no"]


def test_a_task_that_waits_can_be_dropped_or_asked_for_at_once():
    background, _ = fresh()
    ran: list[str] = []
    for name in ("dropped", "late"):
        background.schedule(lambda name=name: ran.append(name), after=600)
        background.drop()
        assert background.join(5)
    background.schedule(lambda: ran.append("late"), after=600)
    background.schedule(lambda: ran.append("at once"))
    assert background.join(5)
    assert ran == ["at once"]


def test_an_error_is_handed_over_and_the_next_task_runs():
    background, failures = fresh()
    ran: list[str] = []
    error = ValueError("no")

    def fail() -> None:
        raise error

    background.schedule(fail)
    assert background.join(5)
    background.schedule(lambda: ran.append("next"))
    assert background.join(5)
    assert (failures, ran) == ([error], ["next"])


def test_a_snapshot_carries_its_styles_each_scoped_to_it_and_one_set_for_print():
    form = Form(None)
    form.title, form.message = "Title <b>", "state"
    drawn = form._snapshot_bundle()[0]["text/html"]
    style, _, body = drawn.partition("<style>")[2].partition("</style>")
    assert body == '<div class="nbext-title">Title &lt;b&gt;</div><p>state</p></div>'
    rules = re.sub(r"@media print \{(.*)\}", r"\1", style)
    assert "@media print {" in style
    selectors = [one for rule in re.findall(r"([^{}]+)\{", rules) for one in rule.split(",")]
    assert [one for one in selectors if not one.strip().startswith(".nbext-box")] == []
    assert not re.search(r"url\(|@import|/\*", style)
