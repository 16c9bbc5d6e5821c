"""Conversations and runs of a single process, gone when it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from toolgate.errors import ConflictError
from toolgate.ports.threads import Conversation, Message, Run, RunQuery, RunStatus

Key = tuple[str, str, str]


class MemoryThreads:
    """Keeps every guarantee of the Threads port but durability. `is_alive` says which owners still live."""

    def __init__(self, is_alive: Callable[[str], bool] = lambda _owner: True) -> None:
        self._is_alive = is_alive
        self._lock = threading.Lock()
        self._runs: dict[tuple[str, str], Run] = {}
        self._conversations: dict[Key, Conversation] = {}
        self._messages: dict[Key, list[Message]] = {}
        self._message_ids: set[tuple[str, str]] = set()

    async def save(self, run: Run, *, messages: Sequence[Message] = (), title: str | None = None) -> list[Message]:
        key, thread = (run.project, run.id), (run.project, run.account, run.conversation_id)
        with self._lock:
            known = self._runs.get(key)
            if (0 if known is None else known.version) != run.version - 1:
                raise ConflictError(f"Run {run.id[:64]} was changed by somebody else.")
            if known is None and any(_shares_thread(run, one) for one in self._runs.values()):
                raise ConflictError("Another run of this conversation is still open.")
            ids = {(one.project, one.id) for one in messages}
            if not ids.isdisjoint(self._message_ids):
                raise ConflictError(f"A message of run {run.id[:64]} exists already.")
            self._message_ids |= ids
            self._runs[key] = run
            conversation = self._conversations.get(thread) or Conversation(
                project=run.project,
                account=run.account,
                id=run.conversation_id,
                title=title or "",
                size=0,
                created_at=run.created_at,
                updated_at=run.updated_at,
            )
            kept = [replace(one, position=conversation.size + at) for at, one in enumerate(messages, 1)]
            self._messages.setdefault(thread, []).extend(kept)
            size = conversation.size + len(kept)
            self._conversations[thread] = replace(conversation, size=size, updated_at=run.updated_at)
            return kept

    async def run(self, project: str, run_id: str) -> Run | None:
        return self._runs.get((project, run_id))

    async def runs(self, query: RunQuery) -> list[Run]:
        found = sorted(self._runs.values(), key=_age, reverse=True)
        return [one for one in found if _fits(one, query)][: query.limit]

    async def orphans(self, *, limit: int = 100) -> list[Run]:
        running = sorted((one for one in self._runs.values() if one.status is RunStatus.RUNNING), key=_age)
        return [one for one in running if one.owner is None or not self._is_alive(one.owner)][:limit]

    async def conversation(self, project: str, account: str, id: str) -> Conversation | None:
        return self._conversations.get((project, account, id))

    async def conversations(
        self, project: str, account: str, *, before: Conversation | None = None, limit: int = 100
    ) -> list[Conversation]:
        own = [one for one in self._conversations.values() if (one.project, one.account) == (project, account)]
        own.sort(key=lambda one: (one.updated_at, one.id), reverse=True)
        seen = None if before is None else (before.updated_at, before.id)
        return [one for one in own if seen is None or (one.updated_at, one.id) < seen][:limit]

    async def messages(
        self, project: str, account: str, conversation_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[Message]:
        found = self._messages.get((project, account, conversation_id), [])
        return found[after : after + limit]

    async def close(self) -> None:
        """Nothing to close."""


def _shares_thread(run: Run, other: Run) -> bool:
    """Whether the other one is open in the same conversation."""
    same = (run.project, run.account, run.conversation_id) == (other.project, other.account, other.conversation_id)
    return same and not other.status.is_final


def _age(run: Run) -> tuple[object, ...]:
    return run.created_at, run.project, run.id


def _fits(run: Run, query: RunQuery) -> bool:
    wanted = (
        (query.project, run.project),
        (query.account, run.account),
        (query.conversation_id, run.conversation_id),
    )
    if any(value is not None and value != own for value, own in wanted):
        return False
    if query.statuses is not None and run.status not in query.statuses:
        return False
    return query.before is None or (run.created_at, run.project, run.id) < (
        query.before.created_at,
        query.before.project,
        query.before.id,
    )
