"""A descriptor is closed once, by whoever comes first, and its number is nobody's afterwards."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from toolgate.guards.descriptor import Descriptor, pipe


def test_closing_again_leaves_the_next_owner_of_the_number_alone() -> None:
    reading, writing = pipe()
    number = reading.number
    reading.close()
    other = Descriptor(os.open("/dev/null", os.O_RDONLY))
    assert other.number == number  # the system gives the lowest that is free
    reading.close()
    with reading, writing:
        pass
    os.fstat(other.number)
    other.close()


def test_a_closed_one_has_no_number() -> None:
    reading, writing = pipe()
    with reading, writing:
        assert reading.is_open
    assert not reading.is_open
    with pytest.raises(OSError, match="was closed") as caught:
        _ = reading.number
    assert caught.value.errno == errno.EBADF


def test_many_threads_close_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []
    monkeypatch.setattr("toolgate.guards.descriptor.os.close", closed.append)
    descriptors = [Descriptor(10_000 + number) for number in range(500)]
    together = threading.Barrier(4)

    def close_all() -> None:
        together.wait()
        for descriptor in descriptors:
            descriptor.close()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(close_all) for _ in range(4)]:
            done.result()
    monkeypatch.undo()
    ours = [number for number in closed if number >= 10_000]  # something else may be closed meanwhile
    assert sorted(ours) == [10_000 + number for number in range(500)]


def test_a_number_is_forgotten_even_where_closing_fails() -> None:
    number = os.open("/dev/null", os.O_RDONLY)
    os.close(number)
    stale = Descriptor(number)
    with pytest.raises(OSError, match="Bad file descriptor"):
        stale.close()
    stale.close()
