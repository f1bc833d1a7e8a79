"""How much one key may have at once, and in which order the keys' work is done."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from nbext.engine.dataset import Cancel
from nbext.errors import QueryTimeout
from nbext.service.http.problems import Problem
from nbext.service.scheduling import FairScheduler, Quota


def turns(threads=1, per_key=100):
    return FairScheduler(Quota("requests", per_key=per_key, in_all=200), threads=threads)


def test_keys_take_turns_however_many_requests_each_sends():
    async def main() -> list[str]:
        done: list[str] = []
        some = turns()
        many = [
            some.run("busy", lambda _, n=n: done.append(f"busy {n}"), Cancel(), 9)
            for n in range(50)
        ]
        asked = [asyncio.ensure_future(one) for one in many]
        await asyncio.sleep(0)
        for key in "ab":
            asked.append(
                asyncio.ensure_future(
                    some.run(key, lambda _, key=key: done.append(key), Cancel(), 9)
                )
            )
        await asyncio.gather(*asked)
        return done

    done = asyncio.run(main())
    assert done[:4] == ["busy 0", "busy 1", "a", "b"], (
        "the first was begun and the second granted nothing yet"
    )
    assert done[4:] == [f"busy {number}" for number in range(2, 50)]


def test_one_key_never_has_all_threads():
    async def main() -> int:
        most, now, lock = 0, 0, threading.Lock()

        def work(cancel: Cancel) -> None:
            nonlocal most, now
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.01)
            with lock:
                now -= 1

        some = turns(threads=3)
        await asyncio.gather(*(some.run("busy", work, Cancel(), 9) for _ in range(20)))
        return most

    assert asyncio.run(main()) == 1


def test_the_time_of_work_begins_with_its_turn():
    async def main() -> None:
        some = turns()
        first = some.run("a", lambda _: (time.sleep(0.1), time.monotonic()), Cancel(), 9)
        second = some.run("b", lambda cancel: cancel.deadline, Cancel(), 9)
        (_, ended), deadline = await asyncio.gather(first, second)
        assert deadline >= ended + 9
        with pytest.raises(QueryTimeout):
            await some.run("a", lambda cancel: (time.sleep(0.2), cancel.check()), Cancel(), 0.1)

    asyncio.run(main())


def test_who_hangs_up_while_waiting_leaves_the_queue_to_the_others():
    async def main() -> list[str]:
        done: list[str] = []
        some, go = turns(per_key=2), threading.Event()
        first = asyncio.ensure_future(some.run("a", lambda _: go.wait(20), Cancel(), 9))
        gone = asyncio.ensure_future(some.run("a", lambda _: done.append("gone"), Cancel(), 9))
        await asyncio.sleep(0.05)
        with pytest.raises(Problem) as caught:
            await some.run("a", lambda _: done.append("refused"), Cancel(), 9)
        assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "2"})
        gone.cancel()
        await asyncio.sleep(0)
        last = asyncio.ensure_future(some.run("a", lambda _: done.append("last"), Cancel(), 9))
        go.set()
        await asyncio.gather(first, last)
        return done

    assert asyncio.run(main()) == ["last"]


def test_a_share_is_free_again_and_leaves_nothing_behind():
    share = Quota("exports", per_key=1, in_all=2)
    with share.taken("a"), share.taken("b"):
        for key, status, code in (("a", 429, "too-many-at-once"), ("c", 503, "busy")):
            with pytest.raises(Problem) as caught, share.taken(key):
                pass
            assert (
                caught.value.status,
                caught.value.code,
                caught.value.headers["Retry-After"],
            ) == (status, code, "2")
    with share.taken("a"):
        pass
    assert not share._taken
