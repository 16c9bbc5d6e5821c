"""The system calls a confined program is refused, as a filter the kernel runs.

A list of refusals, not of permissions: programs we never saw must run. What is listed reaches beyond the
sandbox, or has been a way out of one: mounts, namespaces, keys, tracing, modules, odd sockets, set-user-id files.
"""

from __future__ import annotations

import errno
import functools
import platform
import struct
from typing import NamedTuple

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERRNO = 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_SET, _JUMP_ABOVE, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_X32_BIT = 0x40000000

_NEW_NAMESPACE = 0x7E020080  # CLONE_NEW* of every kind
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: typing into somebody else's terminal
_SET_ID = 0o6000
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16

# name: (number on x86_64, number on aarch64); None where there is no such call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "sysfs": (139, None),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
# Calls that programs do without where they are missing, and whose arguments a filter cannot look into.
_MISSING: dict[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435),
    "fchmodat2": (452, 452),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "openat2": (437, 437),
}
# name: (x86_64, aarch64, the argument that is a file mode)
_MODES: dict[str, tuple[int | None, int | None, int]] = {
    "chmod": (90, None, 1),
    "fchmod": (91, 52, 1),
    "fchmodat": (268, 53, 2),
    "mkdir": (83, None, 1),
    "mkdirat": (258, 34, 2),
    "mknod": (133, None, 1),
    "mknodat": (259, 33, 2),
    "creat": (85, None, 1),
}
_CREATING: dict[str, tuple[int | None, int | None, int]] = {"open": (2, None, 1), "openat": (257, 56, 2)}
_O_CREAT = 0o100
# What processes share by a number or a name that no path leads to.
_SHARED: dict[str, tuple[int | None, int | None]] = {
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
}
_CLONE, _IOCTL, _SOCKET, _SOCKET_PAIR = (56, 220), (16, 29), (41, 198), (53, 199)
_WITHOUT_CONNECTION = 2  # a bit of SOCK_DGRAM and SOCK_RAW, of neither SOCK_STREAM nor SOCK_SEQPACKET


class Machine(NamedTuple):
    """A processor family: its place in the tables above and its audit number."""

    column: int
    audit: int


MACHINES = {"x86_64": Machine(0, 0xC000003E), "aarch64": Machine(1, 0xC00000B7)}


def machine() -> Machine | None:
    """Return the family this system runs on; None where we have no table for it."""
    return MACHINES.get({"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine()))


class _Filter:
    """Instructions in order; each rule is `if this, return that, else go on`."""

    def __init__(self) -> None:
        self.code: list[bytes] = []

    def add(self, code: int, value: int, yes: int = 0, no: int = 0) -> None:
        self.code.append(struct.pack("=HBBI", code, yes, no, value & 0xFFFFFFFF))

    def load(self, offset: int) -> None:
        self.add(_LOAD, offset)

    def refuse_if_equal(self, value: int, answer: int) -> None:
        self.add(_JUMP_EQUAL, value, 0, 1)
        self.add(_RETURN, answer)

    def argument(self, index: int) -> None:
        self.load(_ARGUMENTS_AT + 8 * index)


@functools.cache
def program(target: Machine, *, internet: bool = True, local: bool = True, shared: bool = True) -> bytes:
    """Return the filter of a machine, ready for the kernel.

    internet, local: whether such sockets can be made. They can where a network namespace or a private root
    keeps them from reaching anybody, or where a network is granted. shared: whether System V's and POSIX's objects
    can: where a namespace keeps them from anybody else.
    """
    out = _Filter()
    out.load(_ARCH_AT)
    out.add(_JUMP_EQUAL, target.audit, 1, 0)
    out.add(_RETURN, _KILL)
    out.load(_NUMBER_AT)
    if target.column == 0:
        out.add(_JUMP_ABOVE, _X32_BIT, 0, 1)
        out.add(_RETURN, _ERRNO | errno.ENOSYS)
    tables = [(_REFUSED, errno.EPERM), (_MISSING, errno.ENOSYS)]
    for table, answer in tables if shared else [*tables, (_SHARED, errno.EPERM)]:
        for numbers in table.values():
            number = numbers[target.column]
            if number is not None:
                out.refuse_if_equal(number, _ERRNO | answer)
    _refuse_bits(out, _CLONE[target.column], 0, _NEW_NAMESPACE)
    for entry in _MODES.values():
        _refuse_bits(out, entry[target.column], entry[2], _SET_ID)
    for entry in _CREATING.values():
        _refuse_creating(out, entry[target.column], entry[2])
    _refuse_values(out, _IOCTL[target.column], 1, _TERMINAL_INPUT)
    _limit_sockets(out, _SOCKET[target.column], internet=internet, local=local)
    _limit_pairs(out, _SOCKET_PAIR[target.column], local=local)
    out.add(_RETURN, _ALLOW)
    return b"".join(out.code)


def _refuse_bits(out: _Filter, number: int | None, argument: int, bits: int) -> None:
    if number is None:
        return
    out.add(_JUMP_EQUAL, number, 0, 4)
    out.argument(argument)
    out.add(_JUMP_SET, bits, 0, 1)
    out.add(_RETURN, _ERRNO | errno.EPERM)
    out.add(_RETURN, _ALLOW)


def _refuse_creating(out: _Filter, number: int | None, flags: int) -> None:
    """Refuse to create a file with a set-id bit: the mode counts only where the flags create."""
    if number is None:
        return
    out.add(_JUMP_EQUAL, number, 0, 6)
    out.argument(flags)
    out.add(_JUMP_SET, _O_CREAT, 0, 3)
    out.argument(flags + 1)
    out.add(_JUMP_SET, _SET_ID, 0, 1)
    out.add(_RETURN, _ERRNO | errno.EPERM)
    out.add(_RETURN, _ALLOW)


def _refuse_values(out: _Filter, number: int, argument: int, values: tuple[int, ...]) -> None:
    out.add(_JUMP_EQUAL, number, 0, 2 + 2 * len(values))
    out.argument(argument)
    for value in values:
        out.refuse_if_equal(value, _ERRNO | errno.EPERM)
    out.add(_RETURN, _ALLOW)


def _limit_sockets(out: _Filter, number: int, *, internet: bool, local: bool) -> None:
    families = ((_UNIX,) if local else ()) + ((_INET, _INET6) if internet else ())
    out.add(_JUMP_EQUAL, number, 0, 2 + 2 * len(families) + (4 if internet else 0))
    out.argument(0)
    for family in families:
        out.add(_JUMP_EQUAL, family, 0, 1)
        out.add(_RETURN, _ALLOW)
    if internet:
        out.add(_JUMP_EQUAL, _NETLINK, 0, 3)
        out.argument(2)
        out.add(_JUMP_EQUAL, 0, 0, 1)  # the routing table: which addresses do I have
        out.add(_RETURN, _ALLOW)
    out.add(_RETURN, _ERRNO | errno.EAFNOSUPPORT)


def _limit_pairs(out: _Filter, number: int, *, local: bool) -> None:
    """Let pairs be local ones. One without a connection can send to any other local socket: not where none is made."""
    out.add(_JUMP_EQUAL, number, 0, 4 if local else 7)
    out.argument(0)
    out.add(_JUMP_EQUAL, _UNIX, 1, 0)
    out.add(_RETURN, _ERRNO | errno.EAFNOSUPPORT)
    if not local:
        out.argument(1)
        out.add(_JUMP_SET, _WITHOUT_CONNECTION, 1, 0)
    out.add(_RETURN, _ALLOW)
    if not local:
        out.add(_RETURN, _ERRNO | errno.EAFNOSUPPORT)
