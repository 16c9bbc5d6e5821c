"""`toolgate chat`: talk to a server's agent in the terminal; questions come where the answer would.

It follows the inbox stream, which is never given calls to run: a terminal that only talks must not take them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from toolgate.errors import ToolgateError
from toolgate.interfaces.cli.calling import CaFile, InProject, PlainHttp, Server, TokenFile
from toolgate.interfaces.cli.inbox import Choice, answer
from toolgate.interfaces.cli.show import printable, question_json
from toolgate.kernel.context import DEFAULT_PROJECT

if TYPE_CHECKING:
    from toolgate.interfaces.cli.backend_remote import RemoteBackend
    from toolgate.interfaces.client import StreamEvent, SyncClient, SyncStream
    from toolgate.kernel.approval import Approval
    from toolgate.wire.chat import ChatRunRecord

ANSWERS = "[a]pprove  [d]eny  [e]dit  [r]espond  e[x]pand  [s]kip > "
_CHOICES = {"a": Choice.APPROVE, "d": Choice.DENY, "e": Choice.EDIT, "r": Choice.RESPOND}
_ENDED = frozenset({"completed", "stopped", "failed", "cancelled"})
_MARKS = {"completed": "done", "failed": "failed", "rejected": "refused", "awaiting_approval": "waits"}


def chat(
    server: Server,
    message: Annotated[str | None, typer.Argument(help="One message; without it, a conversation starts.")] = None,
    project: InProject = DEFAULT_PROJECT,
    session: Annotated[str | None, typer.Option("--session", help="Continue this conversation.")] = None,
    token_file: TokenFile = None,
    plain_http: PlainHttp = False,
    ca_file: CaFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line, for each event.")] = False,
) -> None:
    """Talk to a server's agent, and answer what it asks.

    With MESSAGE: print the answer, and exit with 1 if the agent failed or was stopped.
    """
    from toolgate.interfaces.cli.backend_remote import RemoteBackend, client_at
    from toolgate.interfaces.cli.on_server import Remote

    with client_at(server, Remote(server, token_file, plain_http, ca_file), project) as client:
        view: View = JsonView() if json else TextView(is_asking=sys.stdin.isatty() and sys.stdout.isatty())
        with client.inbox(on_lost=view.lost) as stream:
            talk = Talk(client, RemoteBackend(client), stream, view, session)
            talk.listen()
            if message is not None:
                if not talk.say(message):
                    raise typer.Exit(1)
                return
            _converse(talk)


def _converse(talk: Talk) -> None:
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "")
        except (EOFError, KeyboardInterrupt):
            typer.echo()
            return
        if line.strip() in ("/quit", "/exit"):
            return
        if line.strip():
            try:
                talk.say(line)
            except KeyboardInterrupt:
                talk.stop()


class View(Protocol):
    """Where a conversation is shown."""

    def told(self, event: StreamEvent) -> None: ...

    def ended(self, run: ChatRunRecord, answer: str | None) -> None: ...

    def asked(self, approval: Approval, backend: RemoteBackend) -> None: ...

    def lost(self, error: ToolgateError) -> None: ...


@dataclass
class Talk:
    """One conversation. A run whose end was missed while the connection was lost is looked up."""

    client: SyncClient
    backend: RemoteBackend
    stream: SyncStream
    view: View
    session: str | None
    run_id: str = ""
    asked: set[str] = field(default_factory=set)

    def listen(self) -> None:
        """Begin to follow; what was asked before is for the inbox."""
        for event in self.stream:
            if event.name == "stream.ready":
                return

    def say(self, message: str) -> bool:
        """Send a message and show everything until its run has ended; say whether that was a good end."""
        sent = self.client.send(message, session_id=self.session)
        self.session, self.run_id = sent.session_id, sent.run_id or ""
        run: ChatRunRecord | None = None
        while run is None:
            event = next(self.stream)
            self._hear(event)
            if event.name in ("inbox.mode", "stream.ready") or _is_last(event, self.run_id):
                run = self._ended()
        self.view.ended(run, self._answer(run))
        return run.status == "completed"

    def stop(self) -> None:
        """End what the agent is at."""
        if self.run_id:
            self.client.cancel_run(self.run_id)

    def _ended(self) -> ChatRunRecord | None:
        run = self.client.chat_run(self.run_id)
        return run if run.status in _ENDED else None

    def _answer(self, run: ChatRunRecord) -> str | None:
        """The last thing the agent said in the run."""
        said, after = None, 0
        while True:
            page = self.client.messages(run.session_id, after=after, limit=1000)
            for one in page.messages:
                if one.run_id == run.run_id and one.role == "agent" and one.content:
                    said = one.content
            if page.next is None:
                return said
            after = page.next

    def _hear(self, event: StreamEvent) -> None:
        if event.name == "inbox.card":
            approval_id = str(event.data.get("approval_id"))
            is_ours = event.data.get("run_id") == self.run_id and event.data.get("status") == "pending"
            if is_ours and approval_id not in self.asked:
                self.asked.add(approval_id)
                self.view.asked(self.backend.approval(approval_id), self.backend)
        elif event.name.startswith("chat.") and event.data.get("run_id") == self.run_id:
            self.view.told(event)


def _is_last(event: StreamEvent, run_id: str) -> bool:
    ends = event.name == "chat.error" or (event.name == "chat.message" and bool(event.data.get("final")))
    return ends and event.data.get("run_id") == run_id


class TextView:
    """For people: the answer as it comes, one line per call, and questions where somebody can answer them."""

    def __init__(self, *, is_asking: bool) -> None:
        self._is_asking = is_asking
        self._pieces = ""

    def told(self, event: StreamEvent) -> None:
        data = event.data
        if event.name == "chat.delta":
            piece = lines(data.get("delta", ""))
            self._pieces += str(data.get("delta", ""))
            typer.echo(piece, nl=False)
        elif event.name == "chat.message" and not data.get("final"):
            self._finish(str(data.get("content") or ""))
        elif event.name == "chat.tool":
            word, name = printable(data.get("status")), printable(data.get("tool_name"))
            typer.echo(f"  {_MARKS.get(word, word)}: {name} ({printable(data.get('tool_id'))})")
        elif event.name in ("chat.error", "chat.retry"):
            self._finish("")
            typer.echo(f"! {printable(data.get('error'))}", err=True)

    def ended(self, run: ChatRunRecord, answer: str | None) -> None:
        self._finish(answer or "")
        if run.status != "completed":
            more = f": {run.error}" if run.error else ""
            typer.echo(printable(f"The run {run.status}{more}"), err=True)

    def _finish(self, text: str) -> None:
        """Show a whole message, unless its pieces were shown already."""
        shown, self._pieces = self._pieces, ""
        if shown:
            typer.echo()
        if text and shown.strip() != text.strip():
            typer.echo(lines(text))

    def asked(self, approval: Approval, backend: RemoteBackend) -> None:
        from toolgate.kernel.artifact import artifact_of
        from toolgate.kernel.surfaces import to_plain, to_terminal

        self._finish("")
        artifact = artifact_of(approval)
        typer.echo((to_terminal if sys.stdout.isatty() else to_plain)(artifact))
        if not self._is_asking:
            typer.echo(f"Approval {approval.id} waits for somebody: `toolgate approve --server URL {approval.id}`.")
            return
        self._question(approval, backend)

    def _question(self, approval: Approval, backend: RemoteBackend) -> None:
        """Ask until there is an answer; one that comes second is told what was decided."""
        from toolgate.kernel.artifact import artifact_of
        from toolgate.kernel.surfaces import to_terminal

        expanded = not artifact_of(approval).must_expand
        while True:
            key = input(ANSWERS).strip().lower()[:1]
            choice = _CHOICES.get(key)
            if key == "s":
                return
            if key == "x":
                expanded = True
                typer.echo(to_terminal(artifact_of(approval), full=True))
            elif choice in (Choice.APPROVE, Choice.EDIT) and not expanded:
                typer.echo("Part of it is hidden. Press x to see all of it first.")
            elif choice is not None:
                try:
                    words = _words(choice, approval)
                    if words is not None:
                        typer.echo(answer(backend, choice, approval, words=words))
                        return
                except ToolgateError as error:
                    typer.echo(printable(str(error)))
                    if getattr(error, "decided", None):
                        return

    def lost(self, error: ToolgateError) -> None:
        typer.echo(f"! {printable(str(error))} Reconnecting...", err=True)


def _words(choice: Choice, approval: Approval) -> str | None:
    if choice is Choice.EDIT:
        from toolgate.interfaces.cli.people import edited

        return edited(approval.arguments)
    return input("Tell the agent: " if choice is Choice.RESPOND else "Reason (may be empty): ")


def lines(text: object) -> str:
    """What somebody else wrote: its lines, and nothing that steers a terminal."""
    return "\n".join(printable(line) for line in str(text).split("\n"))


class JsonView:
    """For programs: one object per line. Questions are told, not answered."""

    def told(self, event: StreamEvent) -> None:
        self._line(event.name, event.data)

    def ended(self, run: ChatRunRecord, answer: str | None) -> None:
        self._line("ended", {**run.model_dump(mode="json"), "answer": answer})

    def asked(self, approval: Approval, backend: RemoteBackend) -> None:
        self._line("asked", question_json(approval))

    def lost(self, error: ToolgateError) -> None:
        self._line("lost", {"error": str(error)})

    def _line(self, event: str, data: dict[str, Any]) -> None:
        import orjson

        typer.echo(orjson.dumps({"event": event, **data}, option=orjson.OPT_UTC_Z).decode())
