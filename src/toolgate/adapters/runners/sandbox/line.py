"""Run a line of commands step by step: which step follows is decided here, outside every sandbox.

Commands that a pipe joins share a sandbox where they may do the same things. Where they may not, each has its own and
is given what the one before it wrote: nobody gains a right by standing beside somebody who has it.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from toolgate.adapters.runners.sandbox import conductor, layout
from toolgate.errors import SandboxError
from toolgate.ports.confinement import MEBIBYTE, Confined, ConfinedLine, ConfinedStep, Finished, Piped, Reached

MAX_BETWEEN_BYTES = 16 * MEBIBYTE
"""How much one sandbox hands to the next."""
Run = Callable[[Confined], Finished]


def run_line(
    line: ConfinedLine,
    run: Run,
    again: Callable[[], object],
    is_folder: Callable[[str], bool] = os.path.isdir,
    *,
    scratch: str | None = None,
) -> Finished:
    """Return how a line ended: the output of all that ran, and the exit code of what ran last.

    again: plans the same line anew. What a step that writes leaves behind is looked at before the next one begins.
    is_folder: whether there is a folder at a path, as the line's commands see it. scratch: what its commands have as
    their `/tmp`, those that may share one.
    """
    started_at = time.monotonic()
    found = Finished(exit_code=0, stdout=b"", stderr=b"")
    for number in range(len(line.steps)):
        step = line.steps[number]
        if step.connector == ("&&" if found.exit_code else "||"):
            continue
        if step.directory is not None:
            found = replace(found, exit_code=0)
            if not is_folder(step.directory):
                missing = f"cd: {step.directory} is not a directory; nothing after it ran\n".encode()
                return replace(found, exit_code=1, stderr=found.stderr + missing)
            continue
        left_s = line.timeout_s - (time.monotonic() - started_at)
        if left_s <= 0:
            return replace(found, exit_code=-1, ending="timeout")
        shared = replace(step, piped=tuple(_sharing(piped, scratch) for piped in step.piped))
        found = _step(shared, line, found, left_s, run)
        if found.ending != "exited":
            break
        if number + 1 < len(line.steps) and any(piped.confined.writable for piped in step.piped):
            line = _same(line, again())
    return replace(found, duration_s=time.monotonic() - started_at)


def words_of(line: ConfinedLine) -> Iterator[str]:
    """Yield every word of a line, and every file that it redirects to."""
    for piped in (piped for step in line.steps for piped in step.piped):
        yield from piped.confined.argv
        yield from (target for _, _, target in piped.redirects)


def _sharing(piped: Piped, scratch: str | None) -> Piped:
    """Return a command with the `/tmp` of its line: never one with a network, or Git, which has more than others.

    Git that writes nothing has it where its output goes there. Git that writes may change its repository's own files:
    a link that an earlier command left in `/tmp` would lead its output into them.
    """
    one = piped.confined
    is_git = os.path.basename(one.argv[0]) == "git"
    is_more = one.network or one.reach is not None or (is_git and (bool(one.writable) or not piped.redirects))
    if scratch is None or is_more or one.secret:
        return piped
    return replace(piped, confined=replace(one, temporary=scratch))


def _same(line: ConfinedLine, anew: object) -> ConfinedLine:
    if not isinstance(anew, ConfinedLine) or len(anew.steps) != len(line.steps):
        raise SandboxError(
            "The line means something else since it began; the rest of it did not run.", may_have_run=True
        )
    return anew


def _step(step: ConfinedStep, line: ConfinedLine, so_far: Finished, left_s: float, run: Run) -> Finished:
    groups = [list(group) for _, group in itertools.groupby(step.piped, key=_rights)]
    handed = b""
    for number, group in enumerate(groups):
        is_last = number == len(groups) - 1
        room = line.output_bytes if is_last else MAX_BETWEEN_BYTES
        ended = run(replace(_together(group), stdin=handed, timeout_s=left_s, output_bytes=room))
        ended = replace(ended, network=_joined(so_far.network, ended.network))
        stderr = so_far.stderr + ended.stderr
        if not is_last and len(ended.stdout) >= MAX_BETWEEN_BYTES:
            stderr += b"the output between two commands is too large; nothing after it ran\n"
            return replace(ended, exit_code=1, stdout=so_far.stdout, stderr=stderr)
        if is_last or ended.ending != "exited":
            return replace(ended, stdout=so_far.stdout + ended.stdout, stderr=stderr)
        handed, so_far = ended.stdout, replace(so_far, stderr=stderr, network=ended.network)
    raise AssertionError("a step has at least one command")  # pragma: no cover


def _joined(one: Sequence[Reached], other: Sequence[Reached]) -> tuple[Reached, ...]:
    """Return what two runs reached together, each host once."""
    found: dict[tuple[str, int, str | None], Reached] = {}
    for each in (*one, *other):
        key = (each.host, each.port, each.refused)
        found[key] = replace(each, bytes=each.bytes + (found[key].bytes if key in found else 0))
    return tuple(found.values())


def _rights(piped: Piped) -> tuple[object, ...]:
    """What a command may do. Neighbours in a pipe with the same rights share a sandbox."""
    one = piped.confined
    files = one.readable, one.writable, one.hidden, one.locked, one.cwd
    return *files, one.network, one.reach, one.makes_repositories, one.secret, one.agent, one.temporary


def _together(group: Sequence[Piped]) -> Confined:
    """Return the one program that runs a group: the command itself, where it is alone and plain."""
    first = group[0].confined
    if len(group) == 1 and not group[0].redirects:
        return first
    commands = [
        {
            "argv": list(piped.confined.argv),
            "environment": layout.environment_of(piped.confined),
            "redirects": [list(each) for each in piped.redirects],
        }
        for piped in group
    ]
    runtimes = [path for piped in group for path in layout.runtimes_of(piped.confined)]
    return replace(
        first,
        argv=(sys.executable, "-I", "-S", "-c", _script(), json.dumps(commands)),
        readable=tuple(dict.fromkeys((*first.readable, *layout.interpreter_paths(), *runtimes))),
        programs=tuple(dict.fromkeys(program for piped in group for program in piped.confined.programs)),
        environment={},
    )


@functools.cache
def _script() -> str:
    with open(conductor.__file__, encoding="utf-8") as file:
        return file.read()
