from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.interfaces.server.house import House, P, execute

from toolgate.client import Client
from toolgate.errors import ConflictError
from toolgate.interfaces.demo import deciding
from toolgate.interfaces.demo.deciding import AtTheTerminal, ByItself, InTheBrowser, Keyboard
from toolgate.interfaces.demo.narrator import Terminal
from toolgate.interfaces.demo.story import Advice


@pytest.fixture
async def ann(house: House) -> AsyncIterator[Client]:
    async with Client(house.url, token=house.tokens["ann"], project="demo") as client:
        yield client


@pytest.fixture
def typing() -> Iterator[tuple[Keyboard, int]]:
    """A keyboard, and where to type."""
    there, here = os.pipe()
    yield Keyboard(there), here
    os.close(there)
    os.close(here)


async def asked(house: House, client: Client) -> Any:
    answer = await house.client("bot").post(f"{P}/tools/execute", json=execute("pay", {"amount": 5}, wait=False))
    return await client.approvals.artifact(answer.json()["approval_id"])


async def test_lines_are_read_as_they_are_typed(typing: tuple[Keyboard, int], tmp_path: Path) -> None:
    keyboard, here = typing
    os.write(here, b"one\ntw")
    assert await keyboard.line() == "one"
    reading = asyncio.ensure_future(keyboard.line())
    await asyncio.sleep(0)
    os.write(here, b"o\n")
    assert await reading == "two"
    (tmp_path / "typed").write_text("last")
    with (tmp_path / "typed").open("rb") as file:
        from_file = Keyboard(file.fileno())
        assert [await from_file.line(), await from_file.line()] == ["last", None]


async def test_an_answer_at_the_terminal_is_asked_for_until_it_is_one(
    house: House, ann: Client, typing: tuple[Keyboard, int], capsys: pytest.CaptureFixture[str]
) -> None:
    keyboard, here = typing
    artifact = await asked(house, ann)
    os.write(here, b'what?\ne\nnonsense\ne\n{}\nwhy not\ne\n{"amount": 4}\nless will do\n')
    await AtTheTerminal(ann, Terminal(), keyboard).decide(artifact)
    assert (await ann.wait(artifact.card.tool_id)).data == {"paid": 4, "password": ""}
    shown = capsys.readouterr().out
    assert '"amount": 5' in shown
    assert "That is not a JSON object." in shown
    assert "amount" in shown.split("not so:")[2]


@pytest.mark.parametrize(("typed", "status"), [(b"a\nfine\n", "COMPLETED"), (b"r\n\n", "REJECTED")])
async def test_yes_and_no_at_the_terminal(
    house: House, ann: Client, typing: tuple[Keyboard, int], typed: bytes, status: str
) -> None:
    keyboard, here = typing
    artifact = await asked(house, ann)
    os.write(here, typed + b"\nno\n")
    terminal = AtTheTerminal(ann, Terminal(), keyboard)
    await terminal.decide(artifact)
    assert (await ann.wait(artifact.card.tool_id)).status == status
    assert await terminal.wants_undo()
    assert not await terminal.wants_undo()


async def test_who_is_late_at_the_terminal_is_not_asked_again(
    house: House, ann: Client, typing: tuple[Keyboard, int]
) -> None:
    keyboard, here = typing
    artifact = await asked(house, ann)
    await ann.approvals.reject(artifact.card.approval_id, "too much")
    os.write(here, b"a\nfine\n")
    await AtTheTerminal(ann, Terminal(), keyboard).decide(artifact)
    with pytest.raises(ConflictError):
        await ByItself(ann, Terminal()).decide(artifact)


async def test_a_keyboard_nobody_sits_at_ends_it(house: House, ann: Client, tmp_path: Path) -> None:
    (tmp_path / "typed").touch()
    with (tmp_path / "typed").open("rb") as file, pytest.raises(EOFError):
        await AtTheTerminal(ann, Terminal(), Keyboard(file.fileno())).decide(await asked(house, ann))


async def test_advised_arguments_are_taken_with_an_empty_line(
    house: House, ann: Client, typing: tuple[Keyboard, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    keyboard, here = typing
    monkeypatch.setattr(
        deciding, "advice", lambda *_about: Advice(answer="edit", reason="less", arguments={"amount": 2})
    )
    artifact = await asked(house, ann)
    os.write(here, b"e\n\nless\n")
    await AtTheTerminal(ann, Terminal(), keyboard).decide(artifact)
    assert (await ann.wait(artifact.card.tool_id)).data == {"paid": 2, "password": ""}


async def test_the_browser_decides_and_the_terminal_only_tells(
    house: House, ann: Client, typing: tuple[Keyboard, int], capsys: pytest.CaptureFixture[str]
) -> None:
    keyboard, here = typing
    artifact = await asked(house, ann)
    browser = InTheBrowser(Terminal(), keyboard)
    await browser.decide(artifact)
    assert (await ann.approvals.get(artifact.card.approval_id)).status == "pending"
    assert "pay waits for you" in capsys.readouterr().out
    os.write(here, b"\n\n")
    assert await browser.wants_undo()
    await browser.leave()
