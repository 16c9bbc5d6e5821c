"""Keep one program and everything it starts: confine it, wait for it, and leave nothing of it alive.

Run as a program: `supervisor.py DESCRIPTOR`, from which it reads JSON. It becomes the parent of every orphan below it,
so a grandchild that left its session is found and killed too. When the control pipe closes, it kills all and ends: also
when whoever started it is gone. The status pipe tells the program's exit code, or why it was not started. Standard
library only: it starts with `-I -S`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import struct
import sys
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_SUBREAPER, _NO_NEW_PRIVILEGES, _SECCOMP, _FILTER, _DUMPABLE, _DIE_WITH_PARENT = 36, 38, 22, 2, 4, 1
_NEW_USER, _NEW_PROCESSES, _NEW_SHARED, _NEW_MOUNTS = 0x10000000, 0x20000000, 0x08000000, 0x00020000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_HERE, _CLONE, _WHOLE_TREE, _FROM_DESCRIPTOR, _READ_ONLY = -100, 1, 0x8000, 0x14, 1
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CAPABILITIES = 0x20080522  # the version of what says which
_PATH_BENEATH = 1
_ALL_FILES = (1 << 16) - 1
_ALL_TCP = 3
_ALL_SCOPES = 3
_WHOLE = 800
"""As many letters as a pipe takes in one piece, whatever they are."""
FAILED = "!"
"""What comes before a reason instead of an exit code: the program was not started."""
_FOR_FILES = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def landlock_version() -> int:
    """Return the version of landlock this kernel speaks; 0 where it has none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, 1)))


def _landlock(grants: list[tuple[str, int]], *, network: bool) -> None:
    """Give up every file but the granted ones, signals to strangers and, without a network, TCP."""
    attributes = struct.pack("=QQQ", _ALL_FILES, 0 if network else _ALL_TCP, _ALL_SCOPES)
    rules = _check(_libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0), "landlock")
    for path, access in grants:
        try:
            target = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError):
            continue  # what this user cannot reach needs no rule
        allowed = access if os.path.isdir(path) else access & _FOR_FILES
        rule = struct.pack("=Qi", allowed, target)
        _check(_libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0), f"landlock rule for {path}")
        os.close(target)
    _check(_libc.syscall(_RESTRICT_SELF, rules, 0), "landlock")
    os.close(rules)


def _seccomp(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))

    filled = Program(len(program) // 8, program)
    _check(_libc.prctl(_SECCOMP, _FILTER, ctypes.byref(filled), 0, 0), "seccomp")


def _separate() -> None:
    """Enter a user namespace with nothing but this user in it, and let what is started next be first in its own.

    Processes are counted in the one, so for this run alone, and the kernel ends the other with its first process. With
    them goes what processes share: memory, messages and semaphores.
    """
    uid, gid = os.getuid(), os.getgid()
    _check(_libc.prctl(_DUMPABLE, 1, 0, 0, 0), "own its process's files")  # not so since the user was changed
    _check(_libc.unshare(_NEW_USER | _NEW_PROCESSES | _NEW_SHARED | _NEW_MOUNTS), "namespaces")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "wb", buffering=0) as file:
            file.write(text.encode("ascii"))


def _protect(writable: list[str], kept: list[str]) -> None:
    """Make all mounts read-only but for what may be written, and what is kept in there read-only, too.

    Landlock judges neither modes nor times, owners and attributes: they could be changed of every file of the user's.
    """
    trees = [(path, _tree(path)) for path in writable if os.path.exists(path)]
    _make_read_only("/")
    for path, tree in trees:
        _place(tree, path)
    for path in kept:
        if os.path.exists(path):  # what went away is granted to nobody
            _place(_tree(path), path)
            _make_read_only(path)


def _tree(path: str) -> int:
    flags = _CLONE | _WHOLE_TREE | os.O_CLOEXEC
    return _check(_libc.syscall(_OPEN_TREE, _HERE, os.fsencode(path), flags), f"open {path}")


def _place(tree: int, path: str) -> None:
    done = _libc.syscall(_MOVE_MOUNT, tree, b"", _HERE, os.fsencode(path), _FROM_DESCRIPTOR)
    _check(done, f"mount {path}")
    os.close(tree)


def _make_read_only(path: str) -> None:
    asked = struct.pack("=QQQQ", _READ_ONLY, 0, 0, 0)
    done = _libc.syscall(_MOUNT_SETATTR, _HERE, os.fsencode(path), _WHOLE_TREE, asked, len(asked))
    _check(done, f"protect {path}")


def _drop_capabilities() -> None:
    """Give up what the first user of a namespace may do there: it opens what the user's own permissions do not."""
    header, none = struct.pack("=Ii", _CAPABILITIES, 0), bytes(24)
    _check(_libc.capset(header, none), "capabilities")


def _stand_by() -> None:
    """Go on in a child; this process stays behind to end as that does, and to die with its own parent."""
    _check(_libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0), "die with parent")
    child = os.fork()
    if child == 0:
        return
    for stream in (0, 1, 2):
        os.close(stream)
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == child:
            os._exit(_exit_code(status))


def _exit_code(status: int) -> int:
    """Return an exit code as a shell has it: 128 and the signal for what a signal ended."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _become(asked: dict[str, Any]) -> None:
    """Turn this process into the confined program; never returns."""
    os.setsid()
    if asked["apart"]:
        _separate()
        _protect(asked["writable"], asked["kept"])
        _stand_by()
        _stand_by()  # the first of a namespace must collect the others' ends, and signals pass it by
        _drop_capabilities()
    _check(_libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0), "die with parent")
    for name, value in asked["limits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (value, value))
    os.chdir(asked["cwd"])
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
    if asked["grants"] is not None:
        _landlock(asked["grants"], network=asked["network"])
    if asked["seccomp"] is not None:
        _seccomp(bytes.fromhex(asked["seccomp"]))
    os.execve(asked["argv"][0], asked["argv"], asked["environment"])


def _what(error: OSError | ValueError) -> str:
    """Say in one line what went wrong."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _descendants() -> list[int]:
    found, waiting = [], [os.getpid()]
    while waiting:
        try:
            # As bytes: this user may not be able to load a codec from the interpreter's own directory.
            with open(f"/proc/{waiting[0]}/task/{waiting.pop(0)}/children", "rb") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            continue
        found += children
        waiting += children
    return found


def _kill_all() -> None:
    """Kill whatever is left, again and again: a process may start another while we look."""
    while True:
        for pid in _descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _change_user(user: list[int] | None) -> None:
    if user is not None:
        uid, gid = user
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)


def main(request: int) -> None:
    with open(request, "rb") as file:
        asked = json.loads(file.read())
    if "trial" in asked:
        _change_user(asked["user"])
        _separate()
        _protect([], [])
        return
    for number in (asked["control"], asked["status"]):
        os.set_inheritable(number, False)  # the program has neither
    _check(_libc.prctl(_SUBREAPER, 1, 0, 0, 0), "subreaper")
    _change_user(asked["user"])
    child = os.fork()
    if child == 0:
        try:
            _become(asked)
        except (OSError, ValueError) as error:
            os.write(asked["status"], f"{FAILED}{_what(error)[:_WHOLE]}\n".encode(errors="replace"))
            os._exit(1)
    for stream in (0, 1, 2):  # the pipes end when the program's own ends do
        os.close(stream)
    watched = os.pidfd_open(child)
    ready = select.poll()  # not select: a number may be above 1,023
    for number in (watched, asked["control"]):
        ready.register(number, select.POLLIN)
    told = [number for number, _ in ready.poll()]
    code = -1
    if watched in told:
        _, status = os.waitpid(child, 0)
        code = _exit_code(status)
    _kill_all()
    os.write(asked["status"], str(code).encode())
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
