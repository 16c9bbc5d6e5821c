"""What is to run in a sandbox, and how that ended. Tools describe it; the sandbox runner does it.

A hook that is a `Confinable` is not called: the runner asks it for a plan, runs the plan in a sandbox, and lets
it turn the end into an output. Any other hook of a sandboxed tool runs in a child process as a whole.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol, runtime_checkable

from toolgate.kernel.pin import Program

MEBIBYTE = 1 << 20
TooMuch = Literal["", "names", "bytes", "disk"]
Ending = Literal["exited", "timeout", "memory", "disk", "cancelled"]
DISK_BYTES = 8192 * MEBIBYTE
"""How much a program writes to the disk at most, where nobody says otherwise."""
OVERLAY_BYTES = 512 * MEBIBYTE
"""The same for a run in an overlay, which is kept in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A connection that was vetted. path, authority: what to ask for there, and of whom, in the request's own words."""

    socket: socket.socket
    path: str
    authority: str


class Reach(Protocol):
    """What a command reaches of the network, one connection at a time."""

    @property
    def sees_this_machine(self) -> bool:
        """Whether services of this machine are among it."""
        ...

    def name(self, url: str) -> tuple[str, int]:
        """Return the host and port that a URL names; raises ToolgateError for one that is odd."""
        ...

    def open(self, url: str) -> Opened:
        """Return a connection to the host of a URL; raises ToolgateError, which says why, for one that is refused."""
        ...


SECRET_FILE = "/tmp/.toolgate-secret"
"""Where a program finds its secret, in the `/tmp` of its own sandbox."""

AGENT_SOCKET = "/tmp/.toolgate-agent"
"""Where a program that may use the user's ssh agent finds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """What one program is given to read and nobody else sees. words: what of it is masked in its output."""

    content: bytes = field(repr=False)
    words: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """A program to run in a sandbox.

    argv: the program's absolute path and its arguments. cwd: where it starts.
    readable, writable: what it sees of the host's files, at the same place. hidden: what it does not, although
    it lies within those; locked: what it cannot change. tools: directories with programs that it may start by name,
    first on its `PATH`. programs: what it starts that somebody else than root could have replaced.
    environment: all the variables it gets besides. network: whether it has this machine's.
    reach: what it may connect to, from a network of its own and through a proxy.
    makes_repositories: it is Git itself, asked to make one; no other program may. secret: what it finds in
    SECRET_FILE, for a program that runs alone and has a reach. files: what it finds besides, in folders of its `/tmp`,
    and agent: the user's ssh agent, which it may have sign at AGENT_SOCKET; both for a program that has a reach.
    timeout_s: from the start to the last byte of output. output_bytes: how much of each stream is kept.
    memory_bytes, processes, temporary_bytes: what it may use; `/tmp` is private and of that size. disk_bytes: how much
    it may write in all where it may write; None for DISK_BYTES, or OVERLAY_BYTES in an overlay.
    temporary: a directory that the programs of one line have as their `/tmp`, one after the other.
    """

    argv: tuple[str, ...]
    cwd: str = "/tmp"  # the sandbox's own
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    programs: tuple[Program, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    network: bool = False
    reach: Reach | None = None
    makes_repositories: bool = False
    secret: Secret | None = None
    files: tuple[tuple[str, bytes], ...] = ()
    agent: str | None = None
    stdin: bytes = b""
    timeout_s: float = 30.0
    output_bytes: int = 1_000_000
    memory_bytes: int = 2048 * MEBIBYTE
    processes: int = 256
    temporary_bytes: int = 256 * MEBIBYTE
    temporary: str | None = None
    disk_bytes: int | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """What it sees of the host's files."""
        return (*self.readable, *self.writable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedCall:
    """A Python function to run in a sandbox, by its module and name, with keyword arguments that can be pickled."""

    module: str
    name: str
    arguments: Mapping[str, Any]
    network: bool = False
    timeout_s: float = 30.0
    memory_bytes: int = 1024 * MEBIBYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Piped:
    """One command of a line, with its redirections: a descriptor, what is done (`read`, `write`, `append`, `same`) and
    the file, or the other descriptor."""

    confined: Confined
    redirects: tuple[tuple[int, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedStep:
    """Commands that a pipe joins, run always (`;`), after a success (`&&`) or after a failure (`||`).

    directory: instead of commands, one that must be there, or the line ends (`cd`).
    """

    connector: Literal["&&", "||", ";"]
    piped: tuple[Piped, ...] = ()
    directory: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedLine:
    """A line of commands. Those that may do different things run in sandboxes of their own."""

    steps: tuple[ConfinedStep, ...]
    timeout_s: float = 30.0
    output_bytes: int = 1_000_000

    @property
    def writable(self) -> tuple[str, ...]:
        """What some command of it may write."""
        found = (path for step in self.steps for piped in step.piped for path in piped.confined.writable)
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlaid:
    """A program or a line to run over a copy-on-write layer of all that it may write: nothing reaches the disk."""

    planned: Confined | ConfinedLine


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """Nothing is to run: `conclude` does the work itself, alone in the folders that it writes in."""

    writable: tuple[str, ...] = ()
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One entry of a layer: a file with its content, a link with its target, a folder, a name that is `gone`, or what
    is none of these.

    path: from its root on, as bytes. is_whole: nothing of the folder that was at its place is left. same_as: the entry
    before it that is the same file (a hard link). has_attributes: it has extended attributes or access lists.
    """

    root: str
    path: bytes
    kind: Literal["file", "link", "folder", "gone", "other"]
    mode: int = 0
    mtime_ns: int = 0
    content: bytes = field(default=b"", repr=False)
    target: bytes = b""
    is_whole: bool = False
    same_as: bytes | None = None
    has_attributes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """What a run in an overlay left: how it ended, and all that it wrote.

    kept: for each program that could write, what it could not touch, and whether it was Git making a repository.
    too_much: why nothing is told of what it wrote.
    """

    finished: Finished
    written: tuple[Written, ...] = ()
    kept: tuple[tuple[tuple[str, ...], bool], ...] = ()
    too_much: TooMuch = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A host that a program asked for: the bytes that went either way, and why it was refused where it was."""

    host: str
    port: int
    bytes: int = 0
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a confined program ended. A program that was stopped has the exit code -1.

    run_later: the files it created, changed or deleted that run later, outside the sandbox.
    network: what it connected to, or tried to, in the order in which it first did.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    ending: Ending = "exited"
    duration_s: float = 0.0
    backend: str = ""
    run_later: tuple[str, ...] = ()
    network: tuple[Reached, ...] = ()


Plan = Confined | ConfinedCall | ConfinedLine | Overlaid | InPlace


@runtime_checkable
class Confinable(Protocol):
    """A hook that plans what runs in the sandbox instead of running there itself."""

    def plan(self, given: Any) -> Plan:
        """Return what is to run; raise for arguments that are refused. Runs outside the sandbox, before it."""
        ...

    def conclude(self, given: Any, finished: Finished | Any) -> Any:
        """Return the hook's value from a program's end, what a layer holds, or a function's value.

        Runs outside the sandbox, after it: what it is given may be hostile.
        """
        ...
