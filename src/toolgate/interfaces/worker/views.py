"""What a worker shows: a live table on a terminal, plain lines in a log, JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import orjson

from toolgate.kernel.artifact import summary_of
from toolgate.kernel.call import Call
from toolgate.kernel.output import Result

Say = Callable[[str], None]


class Lines:
    """One line for each thing that happens."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def ready(self, name: str, queues: Collection[str], concurrency: int) -> None:
        self._say(f"Working as {name} on {', '.join(sorted(queues))}, {concurrency} at a time")

    def started(self, call: Call) -> None:
        self._say(f"{_clock()}  started   {call.id}  {summary_of(call.tool_name, call.shown, width=60)}")

    def ended(self, call_id: str, result: Result | None) -> None:
        self._say(f"{_clock()}  {_word(result):<9} {call_id}  {_about(result)}".rstrip())

    def draining(self, running: int) -> None:
        self._say(f"{_clock()}  stopping: no new calls; {running} still running")

    def close(self) -> None:
        """Nothing is kept open."""


class JsonLines:
    """One JSON object for each thing that happens."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def _tell(self, event: str, **told: Any) -> None:
        at = datetime.now(UTC)
        self._say(orjson.dumps({"event": event, "at": at, **told}, option=orjson.OPT_UTC_Z).decode())

    def ready(self, name: str, queues: Collection[str], concurrency: int) -> None:
        self._tell("ready", worker=name, queues=sorted(queues), concurrency=concurrency)

    def started(self, call: Call) -> None:
        self._tell("started", call_id=call.id, project=call.project, tool=call.tool_name, attempt=call.attempt)

    def ended(self, call_id: str, result: Result | None) -> None:
        status = None if result is None else result.status.value
        self._tell("ended", call_id=call_id, status=status, error_code=None if result is None else result.error_code)

    def draining(self, running: int) -> None:
        self._tell("draining", running=running)

    def close(self) -> None:
        """Nothing is kept open."""


class Live:
    """A table of what runs now, drawn again as it changes, with the last ends below it."""

    def __init__(self, console: Any) -> None:
        from rich.live import Live as Drawing

        self._running: dict[str, tuple[str, float]] = {}
        self._ended: list[tuple[str, str]] = []
        self._title = "starting"
        self._done = 0
        self._drawing = Drawing(console=console, get_renderable=self._table, refresh_per_second=4)

    def ready(self, name: str, queues: Collection[str], concurrency: int) -> None:
        self._title = f"{name} on {', '.join(sorted(queues))}, {concurrency} at a time"
        self._drawing.start()

    def started(self, call: Call) -> None:
        self._running[call.id] = (summary_of(call.tool_name, call.shown, width=60), monotonic())

    def ended(self, call_id: str, result: Result | None) -> None:
        what, _ = self._running.pop(call_id, ("", 0.0))
        self._done += 1
        self._ended = [*self._ended, (_word(result), what)][-8:]

    def draining(self, running: int) -> None:
        self._title = f"stopping: no new calls; {running} still running"

    def close(self) -> None:
        self._drawing.stop()

    def _table(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(self._title), caption=Text(f"{self._done} done; Ctrl-C ends"), expand=True)
        for heading in ("", "what", "for"):
            table.add_column(heading)
        for what, since in self._running.values():
            table.add_row(Text("running"), Text(what), Text(f"{monotonic() - since:.0f} s"))
        for word, what in reversed(self._ended):
            table.add_row(Text(word, style="dim"), Text(what, style="dim"), "")
        return table


def _clock() -> str:
    return f"{datetime.now(UTC):%H:%M:%S}"


def _word(result: Result | None) -> str:
    return "in doubt" if result is None else result.status.value.lower()


def _about(result: Result | None) -> str:
    if result is None:
        return "the store could not be reached; it is recorded as soon as it can be"
    return "" if result.success else f"{result.error_code}: {result.error}"
