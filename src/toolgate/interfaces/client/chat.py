"""Chat and events over the network: messages to the agent, and the streams everything is heard by."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from toolgate.errors import ServerError
from toolgate.interfaces.client.base import Part
from toolgate.interfaces.client.connection import given
from toolgate.interfaces.client.stream import EventStream
from toolgate.wire.chat import (
    ChatRunAnswer,
    ChatRunList,
    ChatRunRecord,
    ConversationList,
    MessageAnswer,
    MessageList,
    RunWord,
)
from toolgate.wire.schemas import EventList, EventRecord


class Chat(Part):
    """What is said and what happens."""

    async def send(self, content: str, *, session_id: str | None = None) -> MessageAnswer:
        """Send a message to the agent, which answers on the stream."""
        body = given(content=content, session_id=session_id)
        return await self._connection.ask(MessageAnswer, "POST", self._path("chat", "messages"), body=body)

    async def conversations(self, *, before: str | None = None, limit: int | None = None) -> ConversationList:
        """A page of your conversations, the last one written to first; its `next` is the `before` of the next page."""
        path, query = self._path("chat", "conversations"), given(before=before, limit=limit)
        return await self._connection.ask(ConversationList, "GET", path, query=query, repeats=True)

    async def messages(self, session_id: str, *, after: int | None = None, limit: int | None = None) -> MessageList:
        """A page of a conversation's messages, oldest first; its `next` is the `after` of the next page."""
        path = self._path("chat", "conversations", session_id, "messages")
        query = given(after=after, limit=limit)
        return await self._connection.ask(MessageList, "GET", path, query=query, repeats=True)

    async def chat_runs(
        self,
        *,
        session_id: str | None = None,
        status: RunWord | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> ChatRunList:
        """A page of the agent's runs on your messages, newest first; its `next` is the `before` of the next page."""
        query = given(session_id=session_id, status=status, before=before, limit=limit)
        return await self._connection.ask(ChatRunList, "GET", self._path("chat", "runs"), query=query, repeats=True)

    async def chat_run(self, run_id: str) -> ChatRunRecord:
        """One run of the agent."""
        path = self._path("chat", "runs", run_id)
        return (await self._connection.ask(ChatRunAnswer, "GET", path, repeats=True)).run

    async def cancel_run(self, run_id: str) -> ChatRunRecord:
        """End a run of the agent and the calls it waits for."""
        path = self._path("chat", "runs", run_id, "cancel")
        return (await self._connection.ask(ChatRunAnswer, "POST", path, body={})).run

    def stream(
        self,
        *,
        after: int | None = None,
        session_id: str | None = None,
        tools: Sequence[str] | None = None,
        undo: bool = False,
        listen: bool | None = None,
        on_lost: Callable[[ServerError], None] | None = None,
        on_open: Callable[[], None] | None = None,
    ) -> EventStream:
        """Follow the project: questions, results and chat; with `tools`, signals to run calls here, too.

        With `tools` (names, or `*`) this connection runs calls of those tools; one that can undo says `undo`. Without,
        it only listens, unless `listen` is False: then it is sent the calls of its own account that no runner takes,
        and must run them. `on_lost` hears why a connection was lost, `on_open` that there is one.
        """
        listens = not tools if listen is None else listen
        names = ",".join(tools) if tools else None
        query = given(session_id=session_id, tools=names, undo=undo or None, listen=listens or None)
        path = self._path("chat", "stream")
        return EventStream(self._connection, path, query, after=after, on_lost=on_lost, on_open=on_open)

    def follow(self, *, after: int | None = None, on_lost: Callable[[ServerError], None] | None = None) -> EventStream:
        """Follow every event of the project under its own name with its exact body; runs nothing."""
        return EventStream(self._connection, self._path("events"), {}, after=after, on_lost=on_lost)

    def inbox(self, *, after: int | None = None, on_lost: Callable[[ServerError], None] | None = None) -> EventStream:
        """Follow the project as an approver: open questions as cards, then every event."""
        return EventStream(self._connection, self._path("inbox"), {}, after=after, on_lost=on_lost)

    async def events(
        self, *, after: int | None = None, call_id: str | None = None, limit: int | None = None
    ) -> EventList:
        """A page of events in order; its `next` is the `after` of the next page."""
        query = given(after=after, tool_id=call_id, limit=limit)
        return await self._connection.ask(EventList, "GET", self._path("events"), query=query, repeats=True)

    async def history(self, *, after: int | None = None, call_id: str | None = None) -> AsyncIterator[EventRecord]:
        """Every event so far, page by page."""
        while True:
            page = await self.events(after=after, call_id=call_id, limit=1000)
            for event in page.events:
                yield event
            if page.next is None:
                return
            after = page.next
