"""What only a real kernel shows: interrupts, prompts, bars, tracebacks."""

from __future__ import annotations

import time

import pytest

from nbext.notebook.results.progress import DELAY
from tests.notebook.kernels import running_kernel
from tests.notebook.slow_service import SEGMENT, slow_service

KEY = "sk-7f3a9c-THIS-IS-THE-SECRET"
QUERY = '%%segment_query whales\n{"anything": {"the remote": "knows"}}'


@pytest.fixture(scope="module")
def service():
    with slow_service() as running:
        yield running


@pytest.fixture(scope="module")
def kernel(home, service):
    """A kernel whose remote service is slow, with its key in the environment."""
    with running_kernel(
        NBEXT_BASE_URL=service.url, NBEXT_API_KEY=KEY, NBEXT_PROGRESS="true"
    ) as made:
        made.run("whales = 'as it was'")
        made.run("%nbext connect")
        yield made


@pytest.fixture
def answers(service):
    """What the service answers; nothing after the test."""
    service.asked.clear()
    yield service.answers
    service.answers.clear()


def interrupt_after(kernel, service, path):
    def during():
        until = time.monotonic() + 20
        while not any(asked == path for _, asked in service.asked) and time.monotonic() < until:
            time.sleep(0.02)
        kernel.interrupted_at = time.monotonic()
        kernel.interrupt()

    return during


def test_ctrl_c_fails_the_cell_at_once_and_leaves_the_kernel_usable(kernel, service, answers):
    answers["POST /v1/segment/execute"] = (30, 200, SEGMENT)
    ran = kernel.run(QUERY, during=interrupt_after(kernel, service, "/v1/segment/execute"))
    # 0.5 s where the machine has nothing else to do, and 30 s where nothing is interrupted.
    assert time.monotonic() - kernel.interrupted_at < 15
    assert ran.error == "QueryCancelled: Interrupted."
    after = kernel.run("print(whales, 1 + 1)")
    assert after.printed == "as it was 2\n"


def test_ctrl_c_tells_the_service_which_segment_to_stop(kernel, service, answers):
    answers["GET /about"] = (0, 200, {"service": "nbext", "data": {}})
    answers["GET /schema"] = (0, 200, {})
    kernel.run("%nbext connect")
    answers["POST /v1/segment/execute"] = (0, 202, SEGMENT)
    answers["GET /v1/segment/seg_1"] = (30, 200, SEGMENT)
    answers["DELETE /v1/segment/seg_1"] = (0, 200, {**SEGMENT, "status": "cancelled"})
    ran = kernel.run(QUERY, during=interrupt_after(kernel, service, "/v1/segment/seg_1"))
    answers.clear()
    kernel.run("%nbext connect")
    assert ran.error == "QueryCancelled: Interrupted. Segment seg_1 was stopped."
    assert ("DELETE", "/v1/segment/seg_1") in service.asked


@pytest.mark.slow
def test_a_bar_appears_after_half_a_second_and_takes_itself_away(kernel, answers):
    record = {"chain": "ethereum", "address": "0x" + "a" * 40, "symbol": "AAA"}
    answers["GET /v1/tokens/ethereum/0x" + "a" * 40] = (1.3, 200, record)
    ran = kernel.run("%token ethereum 0x" + "a" * 40)
    assert ran.reply["status"] == "ok", ran.error
    # Nothing of any type, at first and at last: it is what strict nbval compares, which passes over updates.
    assert [content["data"] for content in ran.of("display_data")] == [{}]
    first, *_, last = (content["data"] for content in ran.of("update_display_data"))
    assert first["text/html"].startswith("<progress></progress> <small>token: waiting")
    assert last == {}
    assert len(ran.of("execute_result")) == 1


def test_a_quick_call_shows_no_bar(kernel, answers):
    answers["GET /v1/tokens/ethereum/0x" + "b" * 40] = (
        0,
        200,
        {"address": "0x" + "b" * 40, "symbol": "BBB"},
    )
    ran = kernel.run("%token ethereum 0x" + "b" * 40)
    # On a busy machine it may not have been quick.
    assert ran.of("display_data") == [] or ran.seconds > DELAY
    assert len(ran.of("execute_result")) == 1


@pytest.mark.parametrize("status", [401, 404, 500])
def test_no_traceback_of_any_mode_shows_the_key(kernel, answers, status):
    answers["GET /v1/tokens/ethereum/0x" + "c" * 40] = (
        0,
        status,
        {"detail": "no such key: THE KEY", "code": "x"},
    )
    kernel.run("%nbext set attempts 1")
    for mode in ("Verbose", "Context", "Plain"):
        kernel.run(f"%xmode {mode}")
        ran = kernel.run("%token ethereum 0x" + "c" * 40)
        assert ran.reply["status"] == "error"
        assert ran.error.count("\n") <= 1
        assert "***" in ran.error or status == 404
        assert KEY not in str(ran.messages) + str(ran.reply)
    kernel.run("%xmode Context")


def test_what_the_service_says_is_text_in_an_error_and_hides_nothing(kernel, answers):
    said = "<b>2 < 3</b> & 'so' \x1b[31m\u202e &lt;"
    answers["GET /v1/tokens/ethereum/0x" + "e" * 40] = (0, 400, {"detail": said})
    ran = kernel.run("%token ethereum 0x" + "e" * 40)
    assert (
        ran.error
        == "BadRequest: The service answered 400: <b>2 < 3</b> & 'so' \\x1b[31m\\u202e &lt;"
    )


@pytest.mark.parametrize(
    "cell",
    [
        "import nbext.notebook.session as s\nsession = s.current_session()\nclient = session.client\nclient",
        "display(client, session, vars(session), client.settings, session.settings.all())",
        "[repr(x) for x in (client, session, vars(session), vars(client), vars(session.settings), dir(client))]",
        "%whos",
        "%nbext config",
        "%nbext status",
        "%config Nbext",
        '%%segment_query --dry-run\n{"token": {"token": "UNI"}}',
        "%xmode Verbose\nclient.no_such_attribute",
        "def broken(c, s):\n    raise RuntimeError(c)\nbroken(client, session)",
    ],
)
def test_no_display_of_client_session_or_settings_shows_the_key(kernel, cell):
    ran = kernel.run(cell)
    assert KEY not in str(ran.messages) + str(ran.reply)


def test_nbext_traceback_shows_the_stack_without_values(kernel):
    kernel.run("import os; os.environ['NBEXT_TRACEBACK'] = '1'")
    ran = kernel.run("%token ethereum 0x" + "d" * 40)
    kernel.run("del os.environ['NBEXT_TRACEBACK']")
    assert "Traceback (most recent call last)" in ran.error
    assert KEY not in ran.error


def test_a_warning_about_an_answer_is_its_words_alone_and_another_has_its_place(kernel):
    ran = kernel.run(
        "import nbext, warnings\n"
        "warnings.warn('2 of 9 wallets', nbext.AnswerWarning)\nwarnings.warn('another')"
    )
    ours, other = ran.printed.splitlines()[:2]
    assert ours == "2 of 9 wallets"
    assert other.endswith(".py:3: UserWarning: another")


def test_an_empty_cell_is_an_error_that_tools_notice(kernel):
    ran = kernel.run("%%segment_query")
    assert ran.reply["ename"] == "UsageError"
    assert ran.error.startswith("UsageError: %%segment_query: the cell has no filters.")
    assert ran.printed == ""


def test_completion_answers_through_the_kernel(kernel):
    assert kernel.complete("%token ether") == ["ethereum"]
    assert "--dry-run" in kernel.complete("%%segment_query --d")


def test_a_key_is_asked_for_at_a_prompt_that_hides_it(kernel, service, answers):
    answers["GET /v1/tokens/ethereum/0x" + "e" * 40] = (
        0,
        200,
        {"address": "0x" + "e" * 40, "symbol": "EEE"},
    )
    kernel.run("import os; del os.environ['NBEXT_API_KEY']")
    silent = kernel.run("%nbext login")
    assert silent.error == (
        f"ConfigError: No API key for {service.url}. Set NBEXT_API_KEY before you start Jupyter, or run `%nbext login` "
        "and type the key."
    )
    typed = kernel.run("%nbext login", answer="typed-" + KEY)
    assert typed.asked == [{"prompt": f"API key for {service.url}: ", "password": True}]
    assert typed.printed == "nbext: key set for this session.\n"
    ran = kernel.run("%token ethereum 0x" + "e" * 40)
    assert ran.reply["status"] == "ok", ran.error
    assert KEY not in str(typed.messages) + str(typed.reply) + str(ran.messages)
    assert "prompt" in kernel.run("%nbext status").printed
    kernel.run("%nbext logout")
    assert "No API key" in kernel.run("%token ethereum 0x" + "e" * 40).error
