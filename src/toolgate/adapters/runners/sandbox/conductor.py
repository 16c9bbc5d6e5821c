"""Run commands that a pipe joins, inside the sandbox and without a shell. Started as a script of its own.

Its one argument is JSON: for each command its words, its variables and its redirections. The first command reads what
this script was given to read; the exit code is the last command's.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_FLAGS = {
    "read": os.O_RDONLY,
    "write": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "append": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
}


def become(command: dict[str, Any], given: int, taken: int) -> None:
    """Turn this process into a command that reads from one descriptor and writes to another."""
    os.dup2(given, 0)
    os.dup2(taken, 1)
    os.closerange(3, 256)
    name = command["argv"][0]
    try:
        for descriptor, kind, target in command["redirects"]:
            name = target
            if kind == "same":
                os.dup2(int(target), descriptor)
                continue
            opened = os.open(target, _FLAGS[kind] | os.O_CLOEXEC, 0o666)
            os.dup2(opened, descriptor)
        name = command["argv"][0]
        os.execve(name, command["argv"], {**os.environ, **command["environment"]})
    except OSError as error:
        os.write(2, f"{name}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def conduct(commands: list[dict[str, Any]]) -> int:
    """Start every command, wait for all of them, and return the exit code of the last."""
    given, started = os.dup(0), []
    for number, command in enumerate(commands):
        is_last = number == len(commands) - 1
        following, taken = (-1, os.dup(1)) if is_last else os.pipe()
        process = os.fork()
        if process == 0:
            become(command, given, taken)
        started.append(process)
        os.close(given)
        os.close(taken)
        given = following
    codes = {process: os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in started}
    code = codes[started[-1]]
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(conduct(json.loads(sys.argv[1])))
