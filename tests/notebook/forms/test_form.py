"""A form's requests: one at a time, the latest of those that wait, errors handed over."""

from __future__ import annotations

import re
import threading

from nbext.notebook.forms.form import Background, Form


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


def test_what_is_asked_while_one_runs_waits_and_the_latest_replaces_the_others():
    background, _ = fresh()
    started, go_on = threading.Event(), threading.Event()
    ran: list[str] = []

    def slow() -> None:
        started.set()
        go_on.wait(5)
        ran.append("slow")

    background.schedule(slow)
    assert started.wait(5)
    for name in ("a", "b", "c"):
        background.schedule(lambda name=name: ran.append(name))
    go_on.set()
    assert background.join(5)
    assert ran == ["slow", "c"]


def test_a_task_that_waits_can_be_hurried_or_dropped():
    background, _ = fresh()
    ran: list[str] = []
    background.schedule(lambda: ran.append("hurried"), after=600)
    background.hurry()
    assert background.join(5)
    background.schedule(lambda: ran.append("dropped"), after=600)
    background.drop()
    assert background.join(5)
    assert ran == ["hurried"]


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
