"""One object for the whole process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from toolgate.doors.process import ProcessWide


def test_it_is_made_once_for_all_threads() -> None:
    made: list[list[int]] = []

    def make() -> list[int]:
        made.append([])
        return made[-1]

    wide = ProcessWide(make)
    assert made == []
    with ThreadPoolExecutor(8) as pool:
        got = [pool.submit(wide.get) for _ in range(64)]
    assert len(made) == 1
    assert all(one.result() is made[0] for one in got)


def test_another_takes_its_place_and_the_one_before_is_returned() -> None:
    wide: ProcessWide[list[str]] = ProcessWide(list)
    first, other = wide.get(), ["other"]
    assert wide.put(other) is first
    assert wide.get() is other
    assert wide.put(None) is other
    assert wide.get() == []
