"""What every adapter of the Threads port must do."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from toolgate.errors import ConflictError
from toolgate.kernel.context import Context
from toolgate.ports.threads import OPEN, Message, Role, Run, RunQuery, RunStatus, Threads, Usage
from toolgate.testing.clock import NOON
from toolgate.testing.patience import until

LATER = NOON + timedelta(seconds=1, microseconds=5)


def a_run(id: str = "r1", **fields: Any) -> Run:
    context = Context(principal="agent:ann", user="ann", roles=frozenset({"dev"}), project="p", run_id=id)
    known: dict[str, Any] = {
        "project": "p",
        "id": id,
        "account": "ann",
        "conversation_id": "s1",
        "message_id": "m1",
        "context": context,
        "created_at": NOON,
        "updated_at": NOON,
        "owner": "nobody-alive",
    }
    return Run(**(known | fields))


def a_message(id: str = "m1", **fields: Any) -> Message:
    known: dict[str, Any] = {
        "project": "p",
        "id": id,
        "account": "ann",
        "conversation_id": "s1",
        "run_id": "r1",
        "role": Role.PERSON,
        "content": b'{"text":"the key is hunter2"}',
        "shown": {"text": "the key is ***"},
        "created_at": NOON,
    }
    return Message(**(known | fields))


class ThreadsConformance:
    """Subclass it with a fixture `threads` that gives empty threads and closes them; no owner counts as alive there."""

    async def test_a_run_and_its_messages_are_kept_as_they_are(self, threads: Threads) -> None:
        run = a_run()
        kept = await threads.save(run, messages=[a_message(), a_message("m2", role=Role.AGENT)], title="the key")
        assert kept == [a_message(position=1), a_message("m2", role=Role.AGENT, position=2)]
        assert await threads.run("p", "r1") == run
        assert await threads.messages("p", "ann", "s1") == kept
        assert await threads.messages("p", "ann", "s1", after=1, limit=1) == kept[1:]
        found = await threads.conversation("p", "ann", "s1")
        assert found is not None
        assert (found.title, found.size, found.created_at, found.updated_at) == ("the key", 2, NOON, NOON)
        assert await threads.run("q", "r1") is None

    async def test_a_run_changes_only_from_the_version_that_was_read(self, threads: Threads) -> None:
        run = a_run()
        await threads.save(run, messages=[a_message()])
        usage = Usage(input_tokens=3, output_tokens=4, cost=0.25)
        waiting = replace(
            run.next(LATER),
            status=RunStatus.WAITING,
            owner=None,
            steps=1,
            waiting=("r1.1.0",),
            usage=usage,
            worked_s=0.5,
        )
        await threads.save(waiting, messages=[a_message("m2", role=Role.AGENT)])
        assert await threads.run("p", "r1") == waiting
        for stale in (run, run.next(LATER), replace(waiting, version=5)):
            with pytest.raises(ConflictError):
                await threads.save(stale, messages=[a_message("m3")])
        assert [one.id for one in await threads.messages("p", "ann", "s1")] == ["m1", "m2"]
        done = replace(waiting.next(LATER), status=RunStatus.FAILED, error="no", ended_at=LATER, waiting=())
        await threads.save(done)
        assert await threads.run("p", "r1") == done

    async def test_one_of_many_takes_a_waiting_run(self, threads: Threads) -> None:
        run = a_run(status=RunStatus.WAITING, owner=None)
        await threads.save(run)
        tries = [threads.save(replace(run.next(LATER), status=RunStatus.RUNNING, owner=f"o{n}")) for n in range(8)]
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(not isinstance(one, ConflictError) for one in outcomes) == 1

    async def test_a_message_that_is_there_already_changes_nothing(self, threads: Threads) -> None:
        run = a_run()
        await threads.save(run, messages=[a_message()])
        with pytest.raises(ConflictError):
            await threads.save(run.next(LATER), messages=[a_message()])
        assert await threads.run("p", "r1") == run

    async def test_conversations_belong_to_one_account(self, threads: Threads) -> None:
        await threads.save(a_run(), messages=[a_message()], title="ann's")
        other = a_run("r2", account="bob")
        await threads.save(other, messages=[a_message("m2", account="bob", run_id="r2")], title="bob's")
        assert [one.id for one in await threads.messages("p", "ann", "s1")] == ["m1"]
        assert [one.title for one in await threads.conversations("p", "bob")] == ["bob's"]
        assert await threads.conversation("q", "ann", "s1") is None

    async def test_conversations_are_listed_by_when_they_were_last_written_to(self, threads: Threads) -> None:
        for number in range(3):
            run = a_run(f"r{number}", conversation_id=f"s{number}")
            await threads.save(replace(run, updated_at=NOON + timedelta(seconds=number)))
        first = await threads.run("p", "r0")
        assert first is not None
        await threads.save(first.next(NOON + timedelta(seconds=9)))
        listed = await threads.conversations("p", "ann", limit=2)
        assert [one.id for one in listed] == ["s0", "s2"]
        assert [one.id for one in await threads.conversations("p", "ann", before=listed[-1])] == ["s1"]

    async def test_runs_are_found_by_what_is_asked(self, threads: Threads) -> None:
        for number, status in enumerate((RunStatus.RUNNING, RunStatus.WAITING, RunStatus.COMPLETED)):
            at = NOON + timedelta(seconds=number)
            run = a_run(f"r{number}", conversation_id=f"s{number}", status=status, created_at=at)
            await threads.save(run)
        await threads.save(a_run("r9", account="bob", created_at=NOON + timedelta(seconds=9)))

        async def ids(**wanted: Any) -> list[str]:
            return [run.id for run in await threads.runs(RunQuery(**wanted))]

        assert await ids() == ["r9", "r2", "r1", "r0"]
        assert await ids(statuses=OPEN, account="ann") == ["r1", "r0"]
        assert await ids(conversation_id="s2", project="p") == ["r2"]
        assert await ids(project="q") == []
        second = await threads.run("p", "r2")
        assert await ids(before=second, limit=1) == ["r1"]

    async def test_a_conversation_has_one_open_run_at_a_time(self, threads: Threads) -> None:
        first = a_run()
        await threads.save(first, messages=[a_message()])
        with pytest.raises(ConflictError):
            await threads.save(a_run("r2"), messages=[a_message("m2")])
        assert await threads.run("p", "r2") is None
        await threads.save(a_run("r3", conversation_id="s2"))
        await threads.save(replace(first.next(LATER), status=RunStatus.COMPLETED))
        tries = [threads.save(a_run(f"r{number}")) for number in range(4, 10)]
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(not isinstance(one, ConflictError) for one in outcomes) == 1

    async def test_a_run_of_a_dead_owner_is_an_orphan(self, threads: Threads) -> None:
        await threads.save(a_run("r1"))
        await threads.save(a_run("r2", status=RunStatus.WAITING, owner=None, conversation_id="s2"))
        await threads.save(a_run("r3", status=RunStatus.COMPLETED, conversation_id="s3"))
        await until(threads.orphans, within_s=20)  # a database that just started gives everybody time to come back
        assert [run.id for run in await threads.orphans()] == ["r1"]
        assert await threads.orphans(limit=0) == []
