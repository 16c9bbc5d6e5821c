"""A runner from start to stop: check, connect, do what is signalled, and end without leaving anything unsaid."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from toolgate.errors import (
    NotAllowedError,
    NotFoundError,
    NotSignedInError,
    ToolgateError,
    UsageError,
)
from toolgate.interfaces.client.backoff import delays
from toolgate.interfaces.client.client import Client
from toolgate.interfaces.runner.asking import Prompt, ServerSaid
from toolgate.interfaces.runner.check import check_reach, findings, policy_path
from toolgate.interfaces.runner.executor import SignalExecutor
from toolgate.interfaces.runner.ledger import Ledger
from toolgate.interfaces.runner.local import LocalGate, open_local
from toolgate.interfaces.runner.notices import Kind, Notice, View
from toolgate.interfaces.runner.signals import Recall, printable, signal_of
from toolgate.interfaces.runner.state import StateFolder, default_folder
from toolgate.kernel.tool import ToolDefinition

LONGEST_S = 30.0
DELIVER_S = 5.0
"""How long a runner that stops waits for the server to take the last results."""
_HOPELESS = (NotSignedInError, NotAllowedError, NotFoundError, UsageError)
"""What the server says to somebody who should not have come, if it says so at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a runner is told on the command line."""

    server: str
    project: str
    workspace: Path
    token: str | None = None
    policy: Path | None = None
    profile: str | None = None
    state: Path | None = None
    only: tuple[str, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    private: tuple[Path, ...] = ()
    confirm: bool = False
    trust_approvals: bool = False
    grace_s: float = 10.0
    plain_http: bool = False
    ca_file: Path | None = None


class Runner:
    """One runner at work."""

    def __init__(self, options: Options, view: View, client: Client, local: LocalGate, ledger: Ledger) -> None:
        self._options = options
        self._view = view
        self._client = client
        self._local = local
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._executor = SignalExecutor(local, ledger, client, view.tell)
        self._was_welcome = False
        self._waits = delays(first_s=0.5, longest_s=LONGEST_S)

    def stop(self) -> None:
        """Stop: the first time after what runs is done, the second time at once."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def run(self) -> None:
        """Work until told to stop. Raises what the server says where it will have nothing to do with us."""
        left = await self._executor.recover()
        if left:
            self._say(Kind.CHECKED, f"{left} signals of an earlier run are reported or taken up again", left=left)
        listening = asyncio.ensure_future(self._listen())
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({listening, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if listening.done():
                listening.result()  # only an error ends it
        finally:
            for task in (listening, stopping):
                task.cancel()
            await asyncio.gather(listening, stopping, return_exceptions=True)
            await self._end()

    async def _listen(self) -> None:
        while True:
            try:
                await self._follow()
            except ToolgateError as error:
                is_hopeless = isinstance(error, _HOPELESS) or getattr(error, "is_lasting", False)
                if is_hopeless and not self._was_welcome:
                    raise await self._explained(error) from None
                self._lost(error)
            await asyncio.sleep(next(self._waits))

    async def _explained(self, error: ToolgateError) -> ToolgateError:
        """Say which projects there are where the one that is wanted is not."""
        why = await self._client.missing_project() if isinstance(error, NotFoundError) else None
        return error if why is None else NotFoundError(f"{why} Say which with --project.")

    async def _follow(self) -> None:
        names = sorted(tool.name for tool in self._local.tools)
        async with self._client.stream(tools=names, undo=True, on_lost=self._lost, on_open=self._connected) as stream:
            async for event in stream:
                try:
                    asked = signal_of(event.name, event.data)
                except UsageError as error:
                    self._say(Kind.IGNORED, str(error))
                    continue
                if isinstance(asked, Recall):
                    await self._executor.recall(asked)
                elif asked is not None:
                    await self._executor.take(asked)

    def _connected(self) -> None:
        self._was_welcome = True
        self._waits = delays(first_s=0.5, longest_s=LONGEST_S)
        self._say(Kind.CONNECTED, f"connected to {self._client.url}", project=self._options.project)

    def _lost(self, error: ToolgateError) -> None:
        self._say(Kind.DISCONNECTED, f"not connected: {printable(str(error))}", code=error.code)

    async def _end(self) -> None:
        running = self._executor.running
        self._say(Kind.STOPPING, f"stopping; {running} still running" if running else "stopping", running=running)
        draining = asyncio.ensure_future(self._executor.drain(self._options.grace_s))
        hurrying = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait({draining, hurrying}, return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)
            await self._executor.drain(0)
        hurrying.cancel()
        left = await self._executor.courier.settle(0.5 if self._hurry.is_set() else DELIVER_S)
        await self._executor.close()
        kept = f"; {left} reports are kept and go out at the next start" if left else ""
        self._say(Kind.STOPPED, f"stopped{kept}", left=left)

    def _say(self, kind: Kind, text: str, **data: object) -> None:
        self._view.tell(Notice(kind=kind, text=text, data=data))


async def serve(options: Options, view: View) -> None:
    """Run until SIGINT or SIGTERM. Raises a ToolgateError where it cannot begin."""
    workspace = options.workspace.resolve()
    if not workspace.is_dir():
        raise UsageError(f"The workspace {options.workspace} is not a folder.")
    async with Client(
        options.server,
        token=options.token,
        project=options.project,
        allow_plain_http=options.plain_http,
        ca_file=options.ca_file,
    ) as client:
        folder = options.state or default_folder(client.url, options.project, workspace)
        with (
            StateFolder(folder, server=client.url, project=options.project, workspace=workspace) as state,
            closing(Ledger(state.signals)) as ledger,
        ):
            await _serve(options, view, client, state, ledger, workspace)


async def _serve(
    options: Options, view: View, client: Client, state: StateFolder, ledger: Ledger, workspace: Path
) -> None:
    said = ServerSaid(Prompt(view))
    said.server = client if options.trust_approvals else None
    local = open_local(
        state=state,
        project=options.project,
        workspace=workspace,
        policy=policy_path(workspace, options.policy, options.profile, state),
        only=options.only or None,
        more=options.tools,
        confirm=options.confirm,
        channels=[said],
        private=options.private,
    )
    try:
        check_reach(local, state, options.private)
        for notice in await asyncio.to_thread(
            lambda: list(
                findings(local, state, workspace, confirm=options.confirm, trust=options.trust_approvals),
            )
        ):
            view.tell(notice)
        runner = Runner(options, view, client, local, ledger)
        with _signals(runner, (signal.SIGINT, signal.SIGTERM)):
            await runner.run()
    finally:
        await local.gate.aclose()


@contextlib.contextmanager
def _signals(runner: Runner, numbers: Sequence[signal.Signals]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in numbers:
        loop.add_signal_handler(number, runner.stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
