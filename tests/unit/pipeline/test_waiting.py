from __future__ import annotations

import asyncio
import threading

from toolgate.kernel.call import Status
from toolgate.kernel.output import result_of
from toolgate.pipeline.waiting import Waiters
from toolgate.ports.bus import Hint
from toolgate.testing.conformance.rows import a_call

KEY = ("default", "c1")
HINT = Hint(*KEY, Status.APPROVED)


async def test_everybody_who_waits_for_a_call_is_woken() -> None:
    waiters = Waiters()
    futures = [waiters.add(KEY), waiters.add(KEY)]
    other = waiters.add(("default", "c2"))
    assert waiters.wake(HINT)
    await asyncio.gather(*futures)
    assert not other.done()


async def test_nobody_is_woken_where_nobody_waits() -> None:
    assert not Waiters().wake(HINT)


async def test_one_who_left_is_not_woken() -> None:
    waiters = Waiters()
    left, stayed = waiters.add(KEY), waiters.add(KEY)
    assert waiters.discard(KEY, left)
    assert KEY in waiters
    assert waiters.wake(HINT)
    await stayed
    assert not left.done()


async def test_leaving_tells_whether_a_wake_up_was_sent() -> None:
    waiters = Waiters()
    future = waiters.add(KEY)
    waiters.wake(HINT)
    assert not waiters.discard(KEY, future)
    last = waiters.add(KEY)
    other = waiters.add(KEY)
    assert waiters.discard(KEY, last)
    assert not waiters.discard(KEY, last)
    assert waiters.discard(KEY, other)
    assert KEY not in waiters


async def test_a_wake_up_of_one_who_gave_up_does_no_harm() -> None:
    waiters = Waiters()
    future = waiters.add(KEY)
    future.cancel()
    assert waiters.wake(HINT)
    await asyncio.sleep(0)
    assert future.cancelled()


async def test_all_can_be_woken_at_once_from_another_thread() -> None:
    waiters = Waiters()
    futures = [waiters.add(("default", str(number))) for number in range(5)]
    threading.Thread(target=waiters.wake_all).start()
    await asyncio.gather(*futures)
    assert ("default", "1") not in waiters


def test_one_whose_loop_is_gone_counts_as_nobody() -> None:
    waiters = Waiters()

    async def wait() -> None:
        waiters.add(KEY)

    asyncio.run(wait())
    assert KEY in waiters
    assert not waiters.wake(HINT)


async def test_a_result_is_given_to_one_of_those_who_wait_and_the_others_look_for_themselves() -> None:
    waiters, result = Waiters(), result_of(a_call(status=Status.COMPLETED))
    gone = asyncio.new_event_loop()
    first, second = waiters.add(KEY), waiters.add(KEY)
    waiters._waiting[KEY].insert(0, gone.create_future())
    gone.close()  # whoever waited there hears nothing any more
    waiters.wake_one(KEY, result)
    assert (await first, await second) == (result, None)
    waiters.wake_one(KEY, result)
    assert KEY not in waiters
