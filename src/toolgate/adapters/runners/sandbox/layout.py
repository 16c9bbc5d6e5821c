"""What a confined program sees of this machine besides its workspace: system directories and its own runtime."""

from __future__ import annotations

import functools
import glob
import os
import pwd
import re
import stat
import sys

from toolgate.ports.confinement import Confined

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SETTINGS = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki",
)
NETWORK_SETTINGS = ("/etc/resolv.conf", "/etc/hosts", "/etc/services", "/etc/gai.conf")
PATH = "/usr/local/bin:/usr/bin:/bin"
BASE_ENVIRONMENT = {"PATH": PATH, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb"}


def within(path: str, directory: str) -> bool:
    """Whether a path is a directory or lies beneath it, by name."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def runtimes_of(confined: Confined) -> tuple[str, ...]:
    """Return what a run needs of this machine: its program's runtime, and its tool directories with theirs."""
    found = [*runtime_of(confined.argv[0], confined.given)]
    for directory in confined.tools:
        if not any(within(directory, root) for root in confined.given):
            found += [directory, *_managed(directory)]
        python = os.path.join(directory, "python")
        found += runtime_of(python, confined.given) if os.path.exists(python) else ()
    return tuple(dict.fromkeys(found))


def environment_of(confined: Confined) -> dict[str, str]:
    """Return the variables a run has: where its programs are, and what tool directories need; then its own."""
    named: dict[str, str] = {}
    for directory in (*confined.tools, os.path.dirname(confined.argv[0])):
        top = os.path.dirname(directory)
        if directory.endswith("/.cargo/bin"):
            named |= {"CARGO_HOME": top, "RUSTUP_HOME": os.path.join(os.path.dirname(top), ".rustup")}
        if directory.endswith("/.pyenv/shims"):
            named["PYENV_ROOT"] = top
    return named | {"PATH": os.pathsep.join((*confined.tools, PATH))} | dict(confined.environment)


def _managed(directory: str) -> list[str]:
    """Return what the programs of a version manager start, and no settings, caches of tokens or keys beside them."""
    top = os.path.dirname(directory)
    found: list[str] = []
    if directory.endswith("/.cargo/bin"):
        found = [directory, os.path.join(top, "registry"), os.path.join(os.path.dirname(top), ".rustup")]
    elif directory.endswith("/.pyenv/shims") or re.search(r"/\.nvm/versions/[^/]+/[^/]+/bin\Z", directory):
        found = [top]
    return [path for path in found if os.path.isdir(path)]


def runtime_of(executable: str, given: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the directories a program outside the system's own needs to run: its prefix and its interpreter's.

    `given` is what the run may use anyway. A program in there may come from whom it confines, with its links, its
    first line and its `pyvenv.cfg`: what these name is left out, unless it is a Python that was installed elsewhere.
    """
    found: list[str] = []
    for path in dict.fromkeys((executable, os.path.realpath(executable), *_interpreters(executable))):
        if not any(within(path, system) for system in SYSTEM) and os.path.exists(path):
            prefix = _prefix(path)
            found += [prefix, *_base_of(prefix), *_managed(os.path.dirname(path))]
    roots = [*given, *map(os.path.realpath, given)]
    if any(within(path, root) for path in (executable, os.path.realpath(executable)) for root in roots):
        found = [path for path in found if not any(within(path, root) for root in roots) and _is_python(path)]
    return tuple(dict.fromkeys(found))


def _is_python(prefix: str) -> bool:
    """Whether a directory holds a whole Python, as no virtual environment does."""
    library = os.path.join(glob.escape(prefix), "lib", "python3*", "os.py")
    return os.path.realpath(prefix) not in _homes() and bool(glob.glob(library))


def python_paths() -> tuple[str, ...]:
    """Return what this interpreter needs to import what this process can import.

    A home or temporary directory on the search path is left out: it holds much more than modules.
    """
    found = [*interpreter_paths()]
    found += [path for path in map(os.path.abspath, filter(None, sys.path)) if os.path.exists(path)]
    return _outermost([path for path in found if os.path.realpath(path) not in _homes()])


@functools.cache
def interpreter_paths() -> tuple[str, ...]:
    """Return what this interpreter needs to start."""
    return _outermost([*runtime_of(sys.executable), sys.prefix, sys.base_prefix])


def _outermost(paths: list[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for path in sorted(dict.fromkeys(paths), key=len):
        if not any(within(path, other) for other in (*kept, *SYSTEM)):
            kept.append(path)
    return tuple(kept)


def _prefix(path: str) -> str:
    """`prefix/bin/program` needs `prefix`, if that is a place for programs; anything else only itself."""
    directory = os.path.dirname(path)
    prefix = os.path.dirname(directory)
    is_tree = os.path.basename(directory) in ("bin", "sbin") and os.path.isdir(os.path.join(prefix, "lib"))
    is_tree = is_tree and os.path.basename(prefix) != ".local"  # it holds keyrings and histories, too
    return prefix if is_tree and os.path.realpath(prefix) not in _homes() else path


@functools.cache
def _homes() -> frozenset[str]:
    homes = {*(entry.pw_dir for entry in pwd.getpwall()), os.path.expanduser("~")}
    named = {os.path.realpath(path) for home in homes for path in (home, os.path.join(home, ".local"))}
    return frozenset(named | {"/", "/home", "/tmp", "/opt", "/var"})


def _interpreters(executable: str) -> list[str]:
    """Return the interpreter named in a script's first line, and what it is a link to."""
    try:
        with open(executable, "rb") as file:
            first = file.readline(512)
    except OSError:
        return []
    if not first.startswith(b"#!"):
        return []
    words = first[2:].decode(errors="replace").split()
    return [words[0], os.path.realpath(words[0])] if words and os.path.isabs(words[0]) else []


def _base_of(prefix: str) -> list[str]:
    """Return the Python under a virtual environment."""
    try:
        with open(os.path.join(prefix, "pyvenv.cfg"), encoding="utf-8") as file:
            lines = dict(line.split("=", 1) for line in file.read().splitlines() if "=" in line)
    except (OSError, UnicodeDecodeError):
        return []
    home = next((value.strip() for key, value in lines.items() if key.strip() == "home"), "")
    real = os.path.realpath(os.path.join(home, "python3")) if home else ""
    candidates = [_prefix(os.path.join(home, "python3")), _prefix(real)] if home else []
    return [path for path in candidates if path and not any(within(path, system) for system in SYSTEM)]


def blocker(path: str, uid: int, gid: int) -> str | None:
    """Return the directory on the way to a path, or the path itself, that a user cannot enter or read.

    The way is the path's own first, then that of what its links lead to.
    """
    return blocker_by_name(path, uid, gid) or blocker_by_name(os.path.realpath(path), uid, gid)


def blocker_by_name(path: str, uid: int, gid: int) -> str | None:
    """Return the same for the way that the path's own names take."""
    current = "/"
    names = [name for name in path.split("/") if name]
    for index in range(len(names) + 1):
        try:
            status = os.stat(current)
        except OSError:
            return current
        is_last = index == len(names)
        wanted = (0o5 if stat.S_ISDIR(status.st_mode) else 0o4) if is_last else 0o1
        if not _may(status, uid, gid, wanted):
            return current
        if not is_last:
            current = os.path.join(current, names[index])
    return None


def _may(status: os.stat_result, uid: int, gid: int, wanted: int) -> bool:
    if uid == 0:
        return True
    if status.st_uid == uid:
        return (status.st_mode >> 6) & wanted == wanted
    if status.st_gid == gid:
        return (status.st_mode >> 3) & wanted == wanted
    return status.st_mode & wanted == wanted
