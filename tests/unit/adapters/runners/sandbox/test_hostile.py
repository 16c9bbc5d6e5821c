"""Hundreds of tricks in one writable sandbox: what is kept stays as it is, secrets unread, and nothing gets out."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.unit.adapters.runners.sandbox import tricks

from toolgate.adapters.runners.sandbox import landlock, seccomp
from toolgate.adapters.runners.sandbox import sandbox as owner
from toolgate.adapters.runners.sandbox.backend import NOBODY, Files, User, sandbox_user
from toolgate.adapters.runners.sandbox.bubblewrap import Bubblewrap
from toolgate.adapters.runners.sandbox.landlock import Landlock
from toolgate.adapters.runners.sandbox.sandbox import Sandbox
from toolgate.errors import SandboxError
from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
from toolgate.guards.hidden import kept_in
from toolgate.ports.confinement import Confined

CANARY, POLICY = "canary-8d02", "version: 1\n"
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.shmat.restype = ctypes.c_void_p
REMOVE = 0
AT_LEAST = 600
HOST_FILES = ("/etc/shadow", "/etc/hostname", "/root/.bashrc", "/proc/1/environ", "/var/log/dpkg.log")


class Seen(NamedTuple):
    """What a file is, but for when it was read."""

    content: bytes | str
    mode: int
    owner: tuple[int, int]
    changed: tuple[int, int]
    inode: int
    attributes: tuple[str, ...]


def seen(path: Path) -> Seen:
    status = path.lstat()
    content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
    return Seen(
        content,
        status.st_mode,
        (status.st_uid, status.st_gid),
        (status.st_mtime_ns, status.st_nlink),
        status.st_ino,
        tuple(os.listxattr(path, follow_symlinks=False)),
    )


def everything(folder: Path) -> dict[str, Seen]:
    return {str(path): seen(path) for path in (folder, *folder.rglob("*"))}


class Place(NamedTuple):
    """A workspace with what is kept in it, what lies beside it, and what the tricks are told of them."""

    workspace: Path
    outside: Path
    told: dict[str, Any]
    heard: list[socket.socket]
    victim: subprocess.Popen[bytes]


def furnish(workspace: Path) -> None:
    for folder in ("app/conf", "app/.ssh", "team", "free", "gate", "keys", "app/repo/.git/hooks", "bare"):
        (workspace / folder).mkdir(parents=True)
    for folder in ("objects", "refs", "hooks"):
        (workspace / "bare" / folder).mkdir()
    for name in ("app/conf/.env", "app/.ssh/id", "app/real.txt", "gate/state", "keys/server.pem"):
        (workspace / name).write_text(CANARY)
    for name in ("team/toolgate.yaml", "gate/rules.txt"):
        (workspace / name).write_text(POLICY)
    (workspace / "app/.envrc").symlink_to("real.txt")
    for name in ("app/repo/.git/config", "app/repo/.git/HEAD", "bare/config", "bare/HEAD"):
        (workspace / name).write_text("[core]\n")
    os.link(workspace / "team/toolgate.yaml", workspace / "linked.txt")
    os.link(workspace / "app/conf/.env", workspace / "secret.txt")


def listening(family: int, kind: int, address: Any) -> socket.socket:
    made = socket.socket(family, kind)
    made.bind(address)
    if kind == socket.SOCK_STREAM:
        made.listen()
    made.setblocking(False)
    return made


def segment() -> int:
    """Return shared memory that everybody may attach, with the canary in it."""
    number = int(LIBC.shmget(0, 4096, 0o1666))
    at = LIBC.shmat(number, None, 0)
    ctypes.memmove(at, CANARY.encode(), len(CANARY))
    LIBC.shmdt(ctypes.c_void_p(at))
    return number


@pytest.fixture
def place(user: User) -> Iterator[Place]:
    with ExitStack() as stack:
        base = Path(tempfile.mkdtemp(prefix="toolgate-hostile-"))
        stack.callback(shutil.rmtree, base)
        workspace, outside = base / "workspace", base / "outside"
        outside.mkdir()
        furnish(workspace)
        for name in ("secret", "target"):
            (outside / name).write_text(CANARY)
        abstract, path = f"toolgate-{uuid.uuid4().hex}", outside / "listening"
        heard = [
            listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            listening(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}"),
            listening(socket.AF_UNIX, socket.SOCK_STREAM, str(path)),
            listening(socket.AF_UNIX, socket.SOCK_DGRAM, f"{path}-datagrams"),
        ]
        for made in heard:
            stack.enter_context(made)
        shared = segment()
        stack.callback(LIBC.shmctl, shared, REMOVE, None)
        for each in (base, *base.rglob("*")):
            if not each.is_symlink() and each.parent != outside and each not in (base, outside):
                each.chmod(0o755 if each.is_dir() else 0o644)
            elif not each.is_symlink():
                each.chmod(0o777)
            os.chown(each, *user, follow_symlinks=False)
        as_user = {"user": user.uid, "group": user.gid} if os.geteuid() == 0 else {}
        environment = {"TOKEN": CANARY}
        victim = subprocess.Popen(["/bin/sleep", "600"], env=environment, start_new_session=True, **as_user)  # type: ignore[call-overload]  # a table of options
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        column = 0 if seccomp.machine() == seccomp.MACHINES["x86_64"] else 1
        calls = {name: numbers[column] for name, numbers in seccomp._REFUSED.items() if numbers[column] is not None}
        told = {
            "workspace": str(workspace),
            "outside": str(outside),
            "outside_secret": str(outside / "secret"),
            "host_files": HOST_FILES,
            "syscalls": calls,
            "tcp": heard[0].getsockname()[1],
            "udp": heard[1].getsockname()[1],
            "abstract": abstract,
            "socket_path": str(path),
            "victim": victim.pid,
            "gate": os.getpid(),
            "shared_memory": shared,
            "mark": uuid.uuid4().hex,
            "key": uuid.uuid4().int & 0x7FFFFFFF,
        }
        yield Place(workspace, outside, told, heard, victim)


@pytest.fixture(params=["nobody", "another"])
def user(request: pytest.FixtureRequest) -> User:
    """Who runs inside: for root two others, for anybody else the very user that the gate is."""
    if os.geteuid() != 0:
        return sandbox_user(None, None)
    return User(NOBODY, NOBODY) if request.param == "nobody" else User(12_345, 12_345)


def perform(backend: Bubblewrap | Landlock, place: Place) -> dict[str, str]:
    """Try every trick in one sandbox that may write in the whole workspace; return what each gave."""
    tree = place.workspace
    with Workspace(str(tree)) as workspace:
        policy, private = (str(tree / "gate/rules.txt"),), (str(tree / "gate/state"),)
        kept = kept_in(Edges(workspace=workspace, policy_files=policy, private_files=private))
    script = Path(tricks.__file__).read_text(encoding="utf-8")
    finished = backend.run(
        Confined(
            argv=("/usr/bin/python3", "-I", "-c", script, json.dumps(place.told)),
            cwd=str(tree),
            writable=(str(tree),),
            hidden=kept.hidden,
            locked=kept.locked,
            timeout_s=120,
            output_bytes=8_000_000,
        )
    )
    assert finished.exit_code == 0, finished.stderr.decode()[-2000:]
    told: dict[str, str] = json.loads(finished.stdout)
    return told


def left_behind(place: Place) -> list[str]:
    """Return what the tricks left on this machine."""
    spoken = [str(each.getsockname()) for each in place.heard if has_heard(each)]
    tables = [
        name
        for name in ("shm", "msg", "sem")
        for line in Path(f"/proc/sysvipc/{name}").read_text().splitlines()[1:]
        if int(line.split()[0]) == place.told["key"]
    ]
    mark = place.told["mark"]
    places = ("/tmp", "/var/tmp", "/dev/shm", "/etc", "/usr", "/", "/home")
    files = [path for folder in places if os.path.lexists(path := f"{folder}/toolgate-trick-{mark}")]
    queue = ["queue"] if LIBC.mq_unlink(f"/toolgate-trick-{mark}".encode()) == 0 else []
    alive = [pid for pid in os.listdir("/proc") if pid.isdigit() and has_argument(pid, mark)]
    return [*spoken, *tables, *files, *queue, *alive]


def has_heard(listening: socket.socket) -> bool:
    try:
        if listening.type == socket.SOCK_DGRAM:
            listening.recv(16)
        else:
            listening.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def has_argument(pid: str, mark: str) -> bool:
    try:
        return int(pid) != os.getpid() and mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def set_id(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if not path.is_dir() and path.lstat().st_mode & 0o6000]


@pytest.mark.parametrize("kind", [Bubblewrap, Landlock])
def test_no_trick_reads_writes_or_reaches_what_it_must_not(
    kind: type[Bubblewrap | Landlock], user: User, place: Place, files: Files
) -> None:
    backend = kind(user, files)
    kept = [place.workspace / name for name in (*tricks.KEPT, *tricks.SECRETS)]
    before, beside = {path: seen(path) for path in kept}, everything(place.outside)
    told = perform(backend, place)
    assert len(told) >= AT_LEAST
    reached = {name: said for name, said in told.items() if CANARY in said or tricks.REACHED in said}
    assert reached == {}
    changed = {path for path in kept if not path.exists() or seen(path) != before[path]}
    assert changed == set()
    assert everything(place.outside) == beside
    assert not any((place.workspace / "app/repo/.git/hooks").iterdir())
    assert set_id(place.workspace) == []
    assert left_behind(place) == []
    assert place.victim.poll() is None
    assert Path(f"/proc/{place.victim.pid}/stat").read_text().split()[2] == "S"
    assert os.getpriority(os.PRIO_PROCESS, place.victim.pid) == os.getpriority(os.PRIO_PROCESS, 0)


@contextmanager
def steered(place: Place) -> Iterator[tuple[Sandbox, Confined]]:
    """A sandbox of a gate whose policy lies in the workspace, and a run that may write there."""
    workspace = Workspace(str(place.workspace))
    edges = Edges(workspace=workspace, policy_files=(str(place.workspace / "gate/rules.txt"),))
    kept = kept_in(edges)
    tree = str(place.workspace)
    confined = Confined(
        argv=("/bin/true",), cwd=tree, writable=(tree,), hidden=kept.hidden, locked=kept.locked, timeout_s=60
    )
    with workspace, closing(Sandbox(lambda: edges)) as sandbox:
        yield sandbox, confined


def test_without_namespaces_landlock_lets_nothing_write_beside_the_gates_own_files(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with steered(place) as (sandbox, confined):
        assert sandbox.run(confined, backend="landlock").exit_code == 0
        for module in (landlock, owner):
            monkeypatch.setattr(module, "has_namespaces", lambda _user: False)
        with pytest.raises(SandboxError, match=rf"Nothing ran: .*`mv {place.workspace}/gate/rules\.txt PLACE`"):
            sandbox.run(confined, backend="landlock")
        reading = replace(confined, writable=(), readable=confined.writable)
        assert sandbox.run(reading, backend="landlock").exit_code == 0
        free = replace(confined, writable=(f"{place.workspace}/free",), cwd="/tmp")
        assert sandbox.run(free, backend="landlock").exit_code == 0
