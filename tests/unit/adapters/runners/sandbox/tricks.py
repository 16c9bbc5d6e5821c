"""Tricks that a program in a writable sandbox tries, each by its name. Standard library only: it runs inside.

`tricks()` gives name and action. Run as a program, it tries each in a process of its own and prints what came back as
JSON. An action returns what it read, or REACHED where it got what nobody should get; most are judged from outside, by
what they left behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import shutil
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

REACHED = "REACHED"
Trick = tuple[str, Callable[[], Any]]
LIBC = ctypes.CDLL(None, use_errno=True)

KEPT = (
    "team/toolgate.yaml",
    "gate/rules.txt",
    "linked.txt",
    "app/repo/.git/config",
    "app/repo/.git/HEAD",
    "bare/config",
)
"""What can be read and must stay as it is."""
SECRETS = ("app/conf/.env", "app/.ssh/id", "gate/state", "secret.txt", "app/real.txt", "keys/server.pem")
FOLDERS = ("team", "gate", "app", "app/conf", "app/.ssh", "app/repo", "app/repo/.git", "app/repo/.git/hooks", "bare")


def put(path: str, flags: int = os.O_WRONLY) -> None:
    descriptor = os.open(path, flags, 0o644)
    os.write(descriptor, b"evil")
    os.close(descriptor)


def won(act: Callable[..., Any], *given: Any) -> str:
    """Do what must not work; what happens to have the number of this process is itself."""
    act(*given)
    return "itself" if os.getpid() in given else REACHED


def get(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(4096).decode(errors="replace")


def scratch(content: str = "evil") -> str:
    """Return a new file in a place that may be written."""
    path = f"free/scratch-{os.getpid()}"
    with open(path, "w") as file:
        file.write(content)
    return path


def write_mapped(path: str) -> None:
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as area:
        area[:4] = b"evil"


def write_through_read_only(path: str) -> None:
    opened = os.open(path, os.O_RDONLY)
    put(f"/proc/self/fd/{opened}")


def write_through_path_descriptor(path: str) -> None:
    opened = os.open(path, os.O_PATH)
    put(f"/proc/self/fd/{opened}", os.O_WRONLY | os.O_TRUNC)


def write_from_folder(path: str) -> None:
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    descriptor = os.open(os.path.basename(path), os.O_WRONLY | os.O_TRUNC, dir_fd=folder)
    os.write(descriptor, b"evil")


def exchange(one: str, other: str) -> None:
    if LIBC.renameat2(-100, one.encode(), -100, other.encode(), 2):
        raise OSError


def whiteout(path: str) -> None:
    if LIBC.renameat2(-100, path.encode(), -100, f"free/w-{os.getpid()}".encode(), 4):
        raise OSError


def link_unnamed(path: str) -> None:
    opened = os.open("free", os.O_TMPFILE | os.O_WRONLY, 0o644)
    os.write(opened, b"evil")
    os.unlink(path)
    os.link(f"/proc/self/fd/{opened}", path, follow_symlinks=True)


def copy_range(path: str) -> None:
    with open(scratch(), "rb") as source, open(path, "r+b") as target:
        os.copy_file_range(source.fileno(), target.fileno(), 4)


def send_file(path: str) -> None:
    with open(scratch(), "rb") as source, open(path, "r+b") as target:
        os.sendfile(target.fileno(), source.fileno(), 0, 4)


def clone_file(path: str) -> None:
    with open(scratch(), "rb") as source, open(path, "r+b") as target:
        fcntl.ioctl(target.fileno(), 0x40049409, source.fileno())


def punch(path: str) -> None:
    with open(path, "r+b") as file:
        if LIBC.fallocate(file.fileno(), 3, ctypes.c_long(0), ctypes.c_long(4)):
            raise OSError


def other_case(path: str) -> None:
    put(os.path.join(os.path.dirname(path), os.path.basename(path).swapcase()))


def link_and_write(path: str) -> None:
    name = f"free/link-{os.getpid()}"
    os.link(path, name)
    put(name)


def symlink_and_write(path: str) -> None:
    name = f"free/sym-{os.getpid()}"
    os.symlink(os.path.abspath(path), name)
    put(name, os.O_WRONLY | os.O_TRUNC)


def parent_link(path: str) -> None:
    name = f"free/parent-{os.getpid()}"
    os.symlink(os.path.abspath(os.path.dirname(path) or "."), name)
    os.replace(scratch(), f"{name}/{os.path.basename(path)}")


def remove_tree(path: str) -> None:
    shutil.rmtree(os.path.dirname(path) or "linked.txt")


CHANGES: dict[str, Callable[[str], Any]] = {
    "write": put,
    "append": lambda path: put(path, os.O_WRONLY | os.O_APPEND),
    "truncate by open": lambda path: put(path, os.O_WRONLY | os.O_TRUNC),
    "truncate": lambda path: os.truncate(path, 0),
    "read and write": lambda path: put(path, os.O_RDWR),
    "unlink": os.unlink,
    "rename away": lambda path: os.rename(path, f"free/away-{os.getpid()}"),
    "rename over": lambda path: os.replace(scratch(), path),
    "exchange": lambda path: exchange(scratch(), path),
    "whiteout": whiteout,
    "hard link": link_and_write,
    "symbolic link": symlink_and_write,
    "through a linked folder": parent_link,
    "chmod": lambda path: os.chmod(path, 0o777),
    "chown": lambda path: os.chown(path, 0, 0),
    "set times": lambda path: os.utime(path, (1, 1)),
    "set an attribute": lambda path: os.setxattr(path, "user.evil", b"1"),
    "map": write_mapped,
    "reopen a read-only descriptor": write_through_read_only,
    "reopen a path descriptor": write_through_path_descriptor,
    "from its folder": write_from_folder,
    "by the process's root": lambda path: put(f"/proc/self/root{os.path.abspath(path)}"),
    "by the process's directory": lambda path: put(f"/proc/self/cwd/{path}"),
    "by a thread's root": lambda path: put(f"/proc/thread-self/root{os.path.abspath(path)}"),
    "by the first process's root": lambda path: put(f"/proc/1/root{os.path.abspath(path)}"),
    "link an unnamed file": link_unnamed,
    "copy a range": copy_range,
    "send a file": send_file,
    "clone a file": clone_file,
    "punch a hole": punch,
    "another letter case": other_case,
    "with dots": lambda path: put(f"free/../{path}"),
    "with slashes": lambda path: put(path.replace("/", "///")),
    "remove its folder": remove_tree,
}


def read_mapped(path: str) -> str:
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as area:
        return area[:].decode()


def read_linked(path: str) -> str:
    name = f"free/read-{os.getpid()}"
    os.link(path, name)
    return get(name)


def read_symlinked(path: str) -> str:
    name = f"free/readsym-{os.getpid()}"
    os.symlink(os.path.abspath(path), name)
    return get(name)


def read_moved(path: str) -> str:
    name = f"free/moved-{os.getpid()}"
    os.rename(path, name)
    return get(name)


def read_after_move_of_folder(path: str) -> str:
    name = f"free/folder-{os.getpid()}"
    os.rename(os.path.dirname(path) or ".", name)
    return get(f"{name}/{os.path.basename(path)}")


def read_after_exchange(path: str) -> str:
    name = scratch()
    exchange(path, name)
    return get(name)


def read_copied(path: str) -> str:
    name = f"free/copy-{os.getpid()}"
    shutil.copytree(os.path.dirname(path) or "keys", name)
    return " ".join(get(os.path.join(name, each)) for each in os.listdir(name))


def read_from_folder(path: str) -> str:
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    os.fchdir(folder)
    return get(os.path.basename(path))


def read_path_descriptor(path: str) -> str:
    return get(f"/proc/self/fd/{os.open(path, os.O_PATH)}")


def read_by_handle(path: str) -> str:
    handle = struct.pack("=Ii", 128, 0) + bytes(128)
    buffer, mount = ctypes.create_string_buffer(handle), ctypes.c_int()
    if LIBC.name_to_handle_at(-100, path.encode(), buffer, ctypes.byref(mount), 0):
        raise OSError
    opened = LIBC.open_by_handle_at(os.open(".", os.O_RDONLY), buffer, 0)
    return get(f"/proc/self/fd/{opened}")


def first(act: Callable[..., Any], path: str, *given: Any) -> str:
    """Read a file after something was done, whether that worked or not."""
    with contextlib.suppress(OSError):
        act(*given)
    return get(path)


def replace_by_link(path: str) -> None:
    os.rename(path, f"{path}-old")
    os.symlink("/tmp", path)


READS: dict[str, Callable[[str], Any]] = {
    "read": get,
    "map": read_mapped,
    "hard link": read_linked,
    "symbolic link": read_symlinked,
    "move": read_moved,
    "move its folder": read_after_move_of_folder,
    "exchange": read_after_exchange,
    "copy its folder": read_copied,
    "from its folder": read_from_folder,
    "path descriptor": read_path_descriptor,
    "handle": read_by_handle,
    "chmod first": lambda path: first(os.chmod, path, path, 0o777),
    "unlink what covers it": lambda path: first(os.unlink, path, path),
    "remove what covers its folder": lambda path: first(os.rmdir, path, os.path.dirname(path)),
    "unmount what covers it": lambda path: first(LIBC.umount2, path, path.encode(), 2),
    "by the process's root": lambda path: get(f"/proc/self/root{os.path.abspath(path)}"),
    "by the process's directory": lambda path: get(f"/proc/self/cwd/{path}"),
    "by the first process's root": lambda path: get(f"/proc/1/root{os.path.abspath(path)}"),
    "by its parent's root": lambda path: get(f"/proc/{os.getppid()}/root{os.path.abspath(path)}"),
    "another letter case": lambda path: get(path.swapcase()),
    "with dots": lambda path: get(f"free/./../{path}"),
}
FOLDER_TRICKS: dict[str, Callable[[str], Any]] = {
    "rename": lambda path: os.rename(path, f"{path}-old"),
    "rename to another folder": lambda path: os.rename(path, f"free/was-{os.getpid()}"),
    "exchange": lambda path: exchange(path, "free"),
    "replace by a link": replace_by_link,
    "remove": os.rmdir,
    "remove all": shutil.rmtree,
    "add a policy": lambda path: put(f"{path}/toolgate.yaml", os.O_WRONLY | os.O_CREAT),
}


def outside(place: dict[str, Any]) -> Iterator[Trick]:
    """What lies beside the workspace, and belongs to whoever wants it."""
    folder, secret = place["outside"], place["outside_secret"]
    for name, act in READS.items():
        yield f"outside: {name}", partial(act, secret)
    for name, act in CHANGES.items():
        if name != "remove its folder":
            yield f"outside: change: {name}", partial(act, f"{folder}/target")
    yield "outside: add a file", lambda: put(f"{folder}/new", os.O_WRONLY | os.O_CREAT)
    yield "outside: add a folder", lambda: os.mkdir(f"{folder}/new")
    yield "outside: list", lambda: f"{REACHED} {os.listdir(folder)}"
    yield "outside: go there and read", lambda: read_from_folder(secret)
    yield "outside: through dots", lambda: get(f"{'../' * 20}{secret[1:]}")
    yield "outside: through a relative link", lambda: read_symlinked(f"{'../' * 20}{secret[1:]}")
    for path in place["host_files"]:
        yield f"host: read {path}", partial(get, path)


def syscalls(place: dict[str, Any]) -> Iterator[Trick]:
    """System calls that reach beyond a sandbox, asked for by number."""
    for name, number in place["syscalls"].items():

        def ask(number: int = number) -> str:
            result = LIBC.syscall(number, 0, 0, 0, 0, 0, 0)
            denied = ctypes.get_errno() in (1, 38)
            return "refused" if result < 0 and denied else f"{REACHED} {result} {ctypes.get_errno()}"

        yield f"system call: {name}", ask


def sockets(place: dict[str, Any]) -> Iterator[Trick]:
    def send(family: int, kind: int, address: Any) -> None:
        with socket.socket(family, kind) as one:
            one.settimeout(1)
            one.connect(address)
            one.send(b"escaped")

    for kind, port in (("stream", place["tcp"]), ("datagram", place["udp"])):
        number = socket.SOCK_STREAM if kind == "stream" else socket.SOCK_DGRAM
        for host in ("127.0.0.1", "localhost", "0.0.0.0", "127.1.2.3", "::1", "::ffff:127.0.0.1"):
            internet = socket.AF_INET6 if ":" in host else socket.AF_INET
            yield f"socket: {kind} to {host}", partial(send, internet, number, (host, port))
    yield "socket: abstract", lambda: send(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{place['abstract']}")
    yield "socket: a pair, by path", lambda: _send_from_pair(f"{place['socket_path']}-datagrams")
    yield "socket: by path", lambda: send(socket.AF_UNIX, socket.SOCK_STREAM, place["socket_path"])
    for name, family in (
        ("packet", 17),
        ("vsock", 40),
        ("bluetooth", 31),
        ("kernel crypto", 38),
        ("key", 15),
        ("can", 29),
        ("tipc", 30),
        ("xdp", 44),
        ("rds", 21),
        ("ax25", 3),
        ("appletalk", 5),
        ("x25", 9),
        ("qipcrtr", 42),
        ("smc", 43),
    ):
        yield f"socket: {name}", partial(won, socket.socket, family, socket.SOCK_RAW)
    for name, protocol in (("audit", 9), ("uevent", 15), ("netfilter", 12), ("xfrm", 6), ("generic", 16), ("diag", 4)):
        yield f"socket: netlink {name}", partial(won, socket.socket, 16, 3, protocol)
    yield "socket: raw", partial(won, socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)


def _send_from_pair(path: str) -> None:
    one, _other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"escaped", path)


def processes(place: dict[str, Any]) -> Iterator[Trick]:
    pid = place["victim"]
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGUSR1, signal.SIGHUP):
        yield f"signal: {number.name} to a stranger", partial(won, os.kill, pid, number)
    yield "signal: to its group", partial(won, os.killpg, pid, 15)
    yield "signal: to the gate", partial(won, os.kill, place["gate"], 0)
    yield "signal: by descriptor", lambda: won(signal.pidfd_send_signal, os.pidfd_open(pid), 15)
    for name in ("environ", "mem", "maps", "auxv", "stack", "syscall"):
        yield f"process: read {name} of a stranger", partial(get, f"/proc/{pid}/{name}")
        yield f"process: read {name} of the gate", partial(get, f"/proc/{place['gate']}/{name}")
    for name in ("fd/0", "fd/1", "fd/3", "cwd/secret", f"root{place['outside_secret']}", "exe"):
        yield f"process: reach {name} of the gate", partial(_no_program, f"/proc/{place['gate']}/{name}")
    yield "process: write memory", lambda: put(f"/proc/{pid}/mem")
    yield "process: renice", partial(won, os.setpriority, os.PRIO_PROCESS, pid, 5)
    yield "process: scheduling", partial(won, os.sched_setaffinity, pid, {0})
    yield "process: become root", partial(won, os.setuid, 0)
    yield "process: become root's group", partial(won, os.setgid, 0)
    yield "process: take groups", partial(won, os.setgroups, [0])
    yield "process: variables", lambda: json.dumps(dict(os.environ))


def _no_program(path: str) -> str:
    return get(path).replace("\x7fELF", "")


def kernel(place: dict[str, Any]) -> Iterator[Trick]:
    """Files of the kernel's that change the machine, device nodes, set-id files, and what processes share."""
    mark = place["mark"]
    for path in (
        "kernel/core_pattern kernel/modprobe kernel/hostname kernel/domainname kernel/sysrq vm/overcommit_memory "
        "net/ipv4/ip_forward fs/binfmt_misc/register kernel/yama/ptrace_scope user/max_user_namespaces"
    ).split():
        yield f"kernel: open {path}", partial(won, os.open, f"/proc/sys/{path}", os.O_WRONLY)
    for path in ("/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/fuse"):
        yield f"kernel: open {path}", partial(won, os.open, path, os.O_RDWR)
    for path in ("/sys/fs/cgroup/cgroup.procs", "/sys/kernel/uevent_helper", "/sys/power/state"):
        yield f"kernel: write {path}", partial(won, os.open, path, os.O_WRONLY)
    for name, kind, device in (("block", 0o60000, (8, 0)), ("memory", 0o20000, (1, 1)), ("kmsg", 0o20000, (1, 11))):
        yield f"node: {name}", partial(won, os.mknod, f"free/node-{name}", kind | 0o666, os.makedev(*device))
    for mode in (0o4755, 0o2755, 0o6755):
        yield f"set-id: chmod {mode:o}", partial(os.chmod, scratch(), mode)
        yield f"set-id: fchmod {mode:o}", partial(os.fchmod, os.open(scratch(), os.O_RDONLY), mode)
        yield (
            f"set-id: create {mode:o}",
            partial(os.open, f"free/set-{mode:o}", os.O_CREAT | os.O_WRONLY, mode),
        )
        yield f"set-id: node {mode:o}", partial(os.mknod, f"free/setnode-{mode:o}", mode | 0o100000)
        yield f"set-id: folder {mode:o}", partial(os.mkdir, f"free/setdir-{mode:o}", mode)
    yield "set-id: a copy of a shell", lambda: os.chmod(shutil.copy("/bin/sh", "free/sh"), 0o4755)
    yield "capability: on a file", lambda: os.setxattr(scratch(), "security.capability", bytes(20))
    yield "ipc: shared memory", lambda: LIBC.shmget(place["key"], 4096, 0o1666)
    yield "ipc: messages", lambda: LIBC.msgget(place["key"], 0o1666)
    yield "ipc: semaphores", lambda: LIBC.semget(place["key"], 1, 0o1666)
    yield "ipc: named memory", lambda: put(f"/dev/shm/toolgate-trick-{mark}", os.O_CREAT | os.O_WRONLY)
    yield (
        "ipc: named queue",
        lambda: LIBC.mq_open(f"/toolgate-trick-{mark}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None),
    )
    yield "ipc: somebody's shared memory", lambda: _attach(place["shared_memory"])
    yield "ipc: remove somebody's shared memory", lambda: LIBC.shmctl(place["shared_memory"], 0, None)
    yield "temporary: in the machine's", lambda: put(f"/tmp/toolgate-trick-{mark}", os.O_CREAT | os.O_WRONLY)
    yield "temporary: in the other one", lambda: put(f"/var/tmp/toolgate-trick-{mark}", os.O_CREAT | os.O_WRONLY)
    for folder in ("/etc", "/usr", "/", "/home", "/dev"):
        yield f"system: add to {folder}", partial(put, f"{folder}/toolgate-trick-{mark}", os.O_CREAT | os.O_WRONLY)


def _attach(number: int) -> str:
    LIBC.shmat.restype = ctypes.c_void_p
    at = LIBC.shmat(number, None, 0)
    return "refused" if at in (None, ctypes.c_void_p(-1).value) else ctypes.string_at(at, 32).decode(errors="replace")


def _leave_beyond() -> None:
    """Leave a process that waits for a signal, with no ties to who started it."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.alarm(0)
            signal.pause()
        os._exit(0)


def tricks(place: dict[str, Any]) -> Iterator[Trick]:
    """Yield every trick; `place` says where things are."""
    for path in KEPT:
        for name, act in CHANGES.items():
            yield f"{path}: {name}", partial(act, path)
    for path in SECRETS:
        for name, act in READS.items():
            yield f"{path}: {name}", partial(act, path)
    for path in FOLDERS:
        for name, act in FOLDER_TRICKS.items():
            yield f"{path}: folder: {name}", partial(act, path)
    for family in (outside, syscalls, sockets, processes, kernel):
        yield from family(place)
    yield "stay behind", _leave_beyond


def attempt(act: Callable[[], Any]) -> str:
    """Return what an action gave, from a process of its own."""
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            said = str(act())
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is the answer
            said = f"{type(error).__name__}: {error}"
        with contextlib.suppress(OSError):
            os.write(told, said.encode(errors="replace")[:4096])
        os._exit(0)
    os.close(told)
    os.waitpid(child, 0)
    os.set_blocking(ready, False)
    with contextlib.suppress(BlockingIOError):
        return os.read(ready, 4096).decode(errors="replace")
    return ""


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    os.chdir(given["workspace"])
    json.dump({name: attempt(act) for name, act in tricks(given)}, sys.stdout)
