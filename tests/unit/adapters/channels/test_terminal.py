"""A person at a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import toolgate
from toolgate.adapters.channels.terminal import TerminalChannel
from toolgate.kernel.approval import Approval
from toolgate.ports.channel import Answer, Decision
from toolgate.testing.conformance.rows import an_approval
from toolgate.testing.patience import PATIENCE_S, until


class Person:
    """Types lines into a terminal and sees what is written there."""

    def __init__(self) -> None:
        self.hand, terminal = pty.openpty()
        self.reader = os.fdopen(terminal, "r", closefd=False)
        self.writer = os.fdopen(terminal, "w", closefd=False)
        self._terminal = terminal
        self._seen = bytearray()
        self._watcher = threading.Thread(target=self._watch, name="watcher", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        while True:
            try:
                self._seen += os.read(self.hand, 4096)
            except OSError:
                return

    @property
    def seen(self) -> str:
        return self._seen.decode(errors="replace")

    def types(self, *lines: str) -> None:
        os.write(self.hand, "".join(f"{line}\n" for line in lines).encode())

    def leaves(self) -> None:
        os.write(self.hand, b"\x04")

    def close(self) -> None:
        self.writer.close()
        self.reader.close()
        os.close(self._terminal)
        self._watcher.join(PATIENCE_S)
        os.close(self.hand)


@pytest.fixture
def person() -> Iterator[Person]:
    person = Person()
    yield person
    person.close()


def channel(person: Person) -> TerminalChannel:
    return TerminalChannel(by="ann", reader=person.reader, writer=person.writer)


async def ask(person: Person, *lines: str, **fields: Any) -> Answer | None:
    person.types(*lines)
    return await asyncio.wait_for(channel(person).ask(an_approval(**fields)), PATIENCE_S)


async def test_a_yes_is_theirs(person: Person) -> None:
    answer = await ask(person, "a", arguments={"path": "x"})
    assert answer is not None
    assert (answer.decision, answer.by.name) == (Decision.APPROVE, "ann")
    await until(lambda: "Run write?" in person.seen and "\x1b[1m" in person.seen)


async def test_a_no_takes_its_reason(person: Person) -> None:
    answer = await ask(person, "what", "d", "", "d", "too risky", requires_reason=True)
    assert answer is not None
    assert (answer.decision, answer.reason) == (Decision.DENY, "too risky")
    await until(lambda: "Press a, d, x or s." in person.seen and "needs a reason" in person.seen)


async def test_what_is_hidden_must_be_expanded_before_approving(person: Person) -> None:
    arguments = {"text": "y" * 3000 + "MIDDLE" + "y" * 3000}
    answer = await ask(person, "a", "x", "a", arguments=arguments)
    assert answer is not None
    await until(lambda: "Press x to see all of it" in person.seen and "MIDDLE" in person.seen)


async def test_a_skipped_question_is_left_to_others(person: Person) -> None:
    assert await ask(person, "s") is None


async def test_a_person_who_leaves_answers_nothing(person: Person) -> None:
    person.leaves()
    assert await asyncio.wait_for(channel(person).ask(an_approval()), PATIENCE_S) is None


async def test_where_there_is_no_terminal_nobody_is_asked() -> None:
    assert await TerminalChannel(by="ann", reader=io.StringIO("a\n"), writer=io.StringIO()).ask(an_approval()) is None
    assert TerminalChannel()._by.name


async def test_questions_come_one_at_a_time_and_a_cancelled_one_is_not_put(person: Person) -> None:
    asked = channel(person)
    first = asyncio.ensure_future(asked.ask(an_approval("a1")))
    await until(lambda: person.seen.count("Run write?") == 1)
    second = asyncio.ensure_future(asked.ask(an_approval("a2")))
    await asyncio.sleep(0)
    second.cancel()
    person.types("a")
    assert (await first) is not None
    assert person.seen.count("Run write?") == 1


async def test_a_gate_asks_at_the_terminal(person: Person) -> None:
    @toolgate.tool(risk_level="medium")
    async def send(to: str) -> str:
        return f"sent to {to}"

    async with toolgate.open("memory://", tools=[send], approver=[channel(person)]) as gate:
        person.types("a")
        result = await gate.call("send", {"to": "bob"})
        assert (result.data, result.approved_by) == ("sent to bob", "ann")


def test_plain_letters_go_where_there_is_no_colour() -> None:
    from toolgate.adapters.channels.terminal import Conversation
    from toolgate.kernel.artifact import artifact_of
    from toolgate.kernel.context import Principal

    written = io.StringIO()
    approval: Approval = an_approval()
    answer = Conversation(artifact_of(approval), Principal(name="ann"), io.StringIO("d\nno\n"), written).hold()
    assert answer is not None
    assert "\x1b" not in written.getvalue()
