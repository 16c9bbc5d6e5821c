"""Reads that go out together: each gets its own answer, and one that fails is its own trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

import pytest

from toolgate.adapters.postgres.gathered import Gathered
from toolgate.adapters.postgres.link import Link
from toolgate.adapters.postgres.url import read
from toolgate.errors import StoreError


@pytest.fixture
def link() -> Iterator[Link]:
    """A link that connects to nothing: what is loaded here is at hand."""
    opened = Link(read("postgresql://nobody@127.0.0.1:1/none"))
    yield opened
    opened.abandon()


def decoded(row: str) -> list[str]:
    if row == "spoiled":
        raise StoreError("It cannot be opened.")
    return [row]


async def test_requests_of_one_moment_go_out_together_and_each_gets_an_answer_of_its_own(link: Link) -> None:
    loaded: list[list[str]] = []

    async def load(keys: Sequence[str]) -> Mapping[str, str]:
        loaded.append(list(keys))
        return {key: key.upper() for key in keys if key != "none"}

    reads = Gathered(link, load, decoded)
    found = await asyncio.gather(*(reads.get(key) for key in ("a", "b", "none", "a")))
    assert found == [["A"], ["B"], None, ["A"]]
    assert found[0] is not found[3]
    assert loaded == [["a", "b", "none"]]


async def test_what_is_asked_for_while_a_statement_is_under_way_waits_for_the_next(link: Link) -> None:
    loaded: list[list[int]] = []

    async def load(keys: Sequence[int]) -> Mapping[int, str]:
        loaded.append(list(keys))
        await asyncio.sleep(0.02)
        return {key: str(key) for key in keys}

    reads = Gathered(link, load, decoded)
    asking = []
    for number in range(20):
        asking.append(asyncio.create_task(reads.get(number)))
        await asyncio.sleep(0.001)
    assert await asyncio.gather(*asking) == [[str(number)] for number in range(20)]
    assert sorted(key for keys in loaded for key in keys) == list(range(20))
    assert len(loaded) < 20


async def test_a_row_that_cannot_be_read_is_the_trouble_of_whoever_asked_for_it(link: Link) -> None:
    async def load(_: Sequence[str]) -> Mapping[str, str]:
        return {"good": "good", "bad": "spoiled"}

    reads = Gathered(link, load, decoded)
    good, bad = await asyncio.gather(reads.get("good"), reads.get("bad"), return_exceptions=True)
    assert good == ["good"]
    assert isinstance(bad, StoreError)


@pytest.mark.parametrize(("error", "said"), [(StoreError("away"), "away"), (KeyError("a bug"), "KeyError")])
async def test_everybody_hears_of_a_read_that_failed_and_the_next_is_made(
    link: Link, error: Exception, said: str
) -> None:
    failures = iter([error])

    async def load(keys: Sequence[str]) -> Mapping[str, str]:
        for failure in failures:
            raise failure
        return {key: key for key in keys}

    reads = Gathered(link, load, decoded)
    for outcome in await asyncio.gather(reads.get("a"), reads.get("b"), return_exceptions=True):
        assert isinstance(outcome, StoreError)
        assert said in str(outcome)
    assert await reads.get("a") == ["a"]


async def test_whoever_left_is_passed_over(link: Link) -> None:
    async def load(keys: Sequence[str]) -> Mapping[str, str]:
        await asyncio.sleep(0.01)
        return {key: key for key in keys}

    reads = Gathered(link, load, decoded)
    leaving, staying = asyncio.create_task(reads.get("a")), asyncio.create_task(reads.get("a"))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == ["a"]
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_a_read_that_a_closing_store_has_not_begun_or_not_ended_is_answered(link: Link) -> None:
    async def load(_: Sequence[str]) -> Mapping[str, str]:
        await asyncio.Event().wait()
        return {}

    reads = Gathered(link, load, decoded)
    under_way = asyncio.create_task(reads.get("a"))
    await asyncio.sleep(0.05)
    late = asyncio.create_task(reads.get("b"))
    await asyncio.sleep(0)  # gathered, and not handed over
    link._is_ending = True
    with pytest.raises(StoreError, match="closed"):
        await late
    link._is_ending = False
    await asyncio.to_thread(link.abandon)
    with pytest.raises(StoreError, match="closed"):
        await under_way
    with pytest.raises(StoreError, match="closed"):
        await reads.get("c")
