"""How a runner shows what it does: a live screen, plain lines, or one JSON object per line."""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TextIO

import orjson

from toolgate.interfaces.runner.notices import Kind, Notice, View
from toolgate.interfaces.runner.signals import printable

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.live import Live

LAST = 10
"""How many results a screen keeps in sight."""
_BRIEF = frozenset({Kind.PROGRESS})


class Lines:
    """One plain line for each notice."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout

    def tell(self, notice: Notice) -> None:
        if notice.kind is Kind.STARTED and not notice.data.get("began"):
            return
        self._out.write(line_of(notice) + "\n")
        self._out.flush()

    def pause(self) -> None:
        """A question simply follows the lines before it."""

    def resume(self) -> None:
        """And lines follow the question."""

    def close(self) -> None:
        """Nothing is held."""


class JsonLines(Lines):
    """One JSON object for each notice."""

    def tell(self, notice: Notice) -> None:
        self._out.write(orjson.dumps(notice.as_json(), default=str).decode() + "\n")
        self._out.flush()


def line_of(notice: Notice) -> str:
    """Return a notice as one line of text."""
    parts = [f"{notice.at.astimezone():%H:%M:%S}", f"{notice.kind.value:12}"]
    if notice.tool_name is not None:
        parts.append(f"{notice.tool_name} {_short(notice.tool_id)}")
    if (status := notice.data.get("status")) is not None:
        parts.append(str(status))
    return " ".join([*parts, *([notice.text] if notice.text else [])])


def _short(tool_id: str | None) -> str:
    return f"[{printable(tool_id or '', 128)[-8:]}]"


@dataclass(slots=True)
class _Row:
    """A call at work, as the screen shows it."""

    tool_name: str
    doing: str
    since: float
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class _Done:
    at: datetime
    tool_name: str
    tool_id: str
    ended: str
    detail: str
    arguments: str


class Screen:
    """A live screen: connection, what runs, what ran last, counts."""

    def __init__(self, title: str, *, out: TextIO | None = None) -> None:
        from rich.console import Console

        self._console = Console(file=out, highlight=False, markup=False, emoji=False)
        self._title = title
        self._connection = "connecting"
        self._rows: dict[str, _Row] = {}
        self._done: deque[_Done] = deque(maxlen=LAST)
        self._counts: Counter[str] = Counter()
        self._said = ""
        self._questions = 0
        self._live: Live | None = None
        self._start()

    def _start(self) -> None:
        from rich.live import Live

        self._live = Live(get_renderable=self._draw, console=self._console, refresh_per_second=4, transient=True)
        self._live.start()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def tell(self, notice: Notice) -> None:
        self._note(notice)
        if notice.kind in (Kind.CHECKED, Kind.STOPPING, Kind.STOPPED, Kind.REFUSED, Kind.IGNORED):
            self._console.print(line_of(notice))

    def _note(self, notice: Notice) -> None:
        kind, tool_id = notice.kind, notice.tool_id or ""
        if kind in (Kind.CONNECTED, Kind.DISCONNECTED):
            self._connection = notice.text or kind.value
        elif kind is Kind.SIGNAL:
            self._rows[tool_id] = _Row(notice.tool_name or "", "taken", time.monotonic())
        elif kind is Kind.ENDED:
            self._end(notice)
        elif kind in (Kind.DELIVERED, Kind.REFUSED, Kind.KEPT, Kind.IGNORED):
            self._counts[kind.value] += 1
        elif (row := self._rows.get(tool_id)) is not None:
            _follow(row, notice)
        if kind not in _BRIEF:
            self._said = line_of(notice)

    def _end(self, notice: Notice) -> None:
        row = self._rows.pop(notice.tool_id or "", None)
        status = str(notice.data.get("status"))
        self._counts[status.lower()] += 1
        self._done.appendleft(
            _Done(
                notice.at,
                notice.tool_name or "",
                _short(notice.tool_id),
                status,
                notice.text,
                "" if row is None else row.arguments,
            )
        )

    def _draw(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        style = "green" if self._connection.startswith("connected") else "yellow"
        head = Text.assemble((self._title, "bold"), "  ", (self._connection, style))
        counts = "  ".join(f"{name} {count}" for name, count in sorted(self._counts.items())) or "nothing yet"
        parts: list[RenderableType] = [head, Text(counts, style="dim")]
        running = Table(box=None, pad_edge=False, expand=True, show_header=False)
        for name, width in (("tool", 18), ("for", 7), ("state", 26)):
            running.add_column(name, width=width, no_wrap=True)
        running.add_column("arguments", ratio=1, no_wrap=True)
        for row in self._rows.values():
            took = f"{time.monotonic() - row.since:.0f} s"
            running.add_row(Text(row.tool_name, style="bold"), took, Text(row.doing, style="cyan"), Text(row.arguments))
        parts.append(running if self._rows else Text("idle: waiting for the server", style="dim"))
        parts += [_done_line(done) for done in self._done]
        if self._said:
            parts.append(Text(self._said, style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*parts)

    def pause(self) -> None:
        self._questions += 1
        self._stop()

    def resume(self) -> None:
        self._questions -= 1
        if self._questions == 0:
            self._start()

    def close(self) -> None:
        self._stop()


def _follow(row: _Row, notice: Notice) -> None:
    if notice.kind is Kind.STARTED:
        if notice.data.get("began"):
            row.doing = "running"
        elif notice.data.get("arguments") is not None:
            row.arguments = printable(orjson.dumps(notice.data["arguments"], default=str).decode())
    elif notice.kind is Kind.ASKING:
        row.doing = "you are asked"
    elif notice.kind is Kind.PROGRESS:
        fraction = notice.data.get("progress")
        row.doing = " ".join([*([f"{fraction:.0%}"] if isinstance(fraction, float) else []), notice.text]) or "running"
    elif notice.kind in (Kind.RECALLED, Kind.LOST):
        row.doing = "stopping" if notice.kind is Kind.RECALLED else "not waited for"


def _done_line(done: _Done) -> RenderableType:
    from rich.text import Text

    style = {"COMPLETED": "green", "UNKNOWN": "bold red"}.get(done.ended, "yellow")
    return Text.assemble(
        (f"{done.at.astimezone():%H:%M:%S} ", "dim"),
        f"{done.tool_name} {done.tool_id} ",
        (done.ended, style),
        f" {done.detail or done.arguments}",
        no_wrap=True,
        overflow="ellipsis",
    )


def view_for(title: str, *, json: bool, plain: bool) -> View:
    """Return the view that suits: a screen where somebody looks, lines elsewhere."""
    if json:
        return JsonLines()
    if plain or not sys.stdout.isatty():
        return Lines()
    return Screen(title)
