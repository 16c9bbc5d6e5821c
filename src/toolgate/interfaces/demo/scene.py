"""Where the demo plays: a folder, a server, a runner and a post office, started for real and gone without a trace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from toolgate import bootstrap
from toolgate.errors import UsageError
from toolgate.interfaces.demo import janitor
from toolgate.interfaces.demo.post_office import PostOffice
from toolgate.interfaces.demo.story import AT_THE_RUNNER, CATCHER, FILES, PERSON, PROJECT, RUNNER, policy
from toolgate.interfaces.server.tokens import new_token
from toolgate.kernel.context import PrincipalKind
from toolgate.policy.profiles import commands
from toolgate.ports.directory import Ability, Account

START_S = 60.0
"""How long the server and the runner may take to begin on a busy machine."""
SESSION_S = 4 * 3600.0
TOOLS = "toolgate.interfaces.demo.tools:TOOLS"
Said = Callable[[str, str], None]


@dataclass(kw_only=True)
class Scene:
    """Everything that runs, and where it is."""

    folder: Path
    office: PostOffice
    url: str = ""
    token: str = field(default="", repr=False)
    sandbox: str = ""
    missing: list[str] = field(default_factory=list)
    """Tools that are not there because no sandbox holds."""

    @property
    def workspace(self) -> Path:
        return self.folder / "shop"

    @property
    def database(self) -> Path:
        return self.folder / "server" / "toolgate.db"

    @property
    def has_sandbox(self) -> bool:
        return not self.missing

    def files(self) -> dict[str, str]:
        """What is in the workspace now."""
        found = [path for path in sorted(self.workspace.rglob("*")) if path.is_file()]
        return {path.relative_to(self.workspace).as_posix(): path.read_text(encoding="utf-8") for path in found}

    async def login_link(self) -> str:
        """The address that signs a browser in, once."""
        from toolgate.interfaces.server.sessions import login_link  # loads half of the server

        directory = bootstrap.directory(self._store)
        try:
            now = datetime.now(UTC)
            return self.url + await login_link(directory, PERSON, now=now, session_s=SESSION_S)
        finally:
            await directory.close()

    @property
    def _store(self) -> str:
        return f"sqlite:///{self.database}"

    def _build(self) -> None:
        """Write the workspace and both copies of the policy."""
        self.folder.mkdir(mode=0o755)  # the sandbox is another user where this one is root
        for name, text in FILES.items():
            path = self.workspace / name
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for place in ("server", "laptop"):
            (self.folder / place).mkdir(mode=0o700)
            (self.folder / place / "toolgate.yaml").write_text(policy(self.office.port), encoding="utf-8")
            (self.folder / place / "toolgate.commands.yaml").write_text(commands("developer"), encoding="utf-8")

    async def _make_accounts(self) -> str:
        """Make an account for you and one for the runner; return the runner's token."""
        directory, now = bootstrap.directory(self._store), datetime.now(UTC)
        try:
            for name, kind in ((PERSON, PrincipalKind.PERSON), (RUNNER, PrincipalKind.RUNNER)):
                await directory.put_account(Account(name=name, kind=kind, roles={PROJECT: frozenset()}))
            # Without the ability to run calls: those are the runner's.
            abilities = frozenset({Ability.READ, Ability.ASK, Ability.DECIDE})
            self.token, mine = new_token(PERSON, now=now, lifetime_s=SESSION_S, label="demo", abilities=abilities)
            text, its = new_token(RUNNER, now=now, lifetime_s=SESSION_S, label="demo")
            for token in (mine, its):
                await directory.put_token(token)
            return text
        finally:
            await directory.close()


@asynccontextmanager
async def open_scene(said: Said, *, port: int = 0) -> AsyncIterator[Scene]:
    """Start everything; whatever happens then, nothing is left of it."""
    with _cleaned() as tell, PostOffice() as office:
        folder = Path(tempfile.gettempdir()) / f"{janitor.PREFIX}{secrets.token_hex(6)}"
        tell(f"folder {folder}")
        scene = Scene(folder=folder, office=office)
        scene._build()
        said("workspace", str(scene.workspace))
        runner_token = await scene._make_accounts()
        async with _running(scene, tell, port, runner_token):
            said("server", scene.url)
            said("runner", f"{RUNNER}; sandbox: {scene.sandbox}")
            yield scene


@contextlib.contextmanager
def _cleaned() -> Any:
    """Have the janitor clean up, also where this process is killed; yields how to tell it of something."""
    command = [sys.executable, "-I", janitor.__file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True) as cleaning:
        assert cleaning.stdin is not None
        pipe = cleaning.stdin

        def tell(line: str) -> None:
            pipe.write(line + "\n")
            pipe.flush()

        yield tell  # leaving closes the pipe and waits for it


@asynccontextmanager
async def _running(scene: Scene, tell: Callable[[str], None], port: int, runner_token: str) -> AsyncIterator[None]:
    """Run the server and the runner. The janitor ends them."""
    # Both at once: the runner tries again until the server is there.
    port = port or _free_port()
    scene.url = f"http://127.0.0.1:{port}"
    server = await _start(
        scene, tell, "serve", "--database", scene._store, "--policy", str(scene.folder / "server"), "--port", str(port),
        "--workspace", str(scene.workspace), "--tools", TOOLS,
        environment={CATCHER: scene.office.url},
    )  # fmt: skip
    only = [word for name in AT_THE_RUNNER for word in ("--only", name)]
    runner = await _start(
        scene, tell, "runner", "--server", scene.url, "--project", PROJECT, "--workspace", str(scene.workspace),
        "--policy", str(scene.folder / "laptop"), "--state", str(scene.folder / "laptop" / "state"),
        "--trust-approvals", "--json", *only,
        environment={"TOOLGATE_TOKEN": runner_token},
    )  # fmt: skip
    await _line(server, scene, "serve")
    while (said := orjson.loads(await _line(runner, scene, "runner")))["event"] != "connected":
        scene.sandbox = said.get("sandbox", scene.sandbox)
        scene.missing = said.get("not_offered", scene.missing)
    emptying = [asyncio.ensure_future(_empty(process)) for process in (server, runner)]
    try:
        yield
    finally:
        for task in emptying:
            task.cancel()
        await asyncio.gather(*emptying, return_exceptions=True)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


async def _start(
    scene: Scene, tell: Callable[[str], None], *arguments: str, environment: Mapping[str, str]
) -> asyncio.subprocess.Process:
    """Start a command of `toolgate`, out of reach of this terminal's Ctrl-C and of the settings of this shell."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("TOOLGATE_")}
    with (scene.folder / f"{arguments[0]}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "toolgate", *arguments,
            cwd=scene.workspace, env={**own, **environment}, start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=log,
        )  # fmt: skip
    tell(f"pid {process.pid}")
    return process


async def _line(process: asyncio.subprocess.Process, scene: Scene, what: str) -> str:
    """The next line a process prints; UsageError with its last words where it ended instead."""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            line = (await process.stdout.readline()).decode()
    except TimeoutError:
        raise UsageError(f"`toolgate {what}` did not begin within {START_S:.0f} s; is this machine busy?") from None
    if not line:
        said = (scene.folder / f"{what}.log").read_text(encoding="utf-8", errors="replace").strip()
        raise UsageError(f"`toolgate {what}` ended: {said.splitlines()[-1] if said else 'with no output'}")
    return line


async def _empty(process: asyncio.subprocess.Process) -> None:
    """Read what a process says, so that it never waits for a reader."""
    assert process.stdout is not None
    while await process.stdout.readline():
        pass
