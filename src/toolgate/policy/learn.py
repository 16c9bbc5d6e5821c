"""The narrowest change of a policy that would have allowed a command line nobody's grammar knows.

It is that line to the letter, under the command's `lines:`. What runs other programs or code that is written in the
line is never proposed. Nothing is written here: what comes back is a diff, and what the policy would then say.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from toolgate.errors import UsageError
from toolgate.guards.argv import Parsed
from toolgate.guards.grammar import Command, ExactLine
from toolgate.guards.programs import CommandTable
from toolgate.guards.unknown import STARTERS, asked_word
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import Mode
from toolgate.kernel.policy import Word
from toolgate.kernel.ruling import look
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.amend import Addition, add_line
from toolgate.policy.compile import FilePolicy
from toolgate.policy.examples import a_call
from toolgate.policy.explain import Question, explain
from toolgate.policy.loader import revise_policy
from toolgate.policy.targets import CommandTarget

WRAPPERS = STARTERS | frozenset(
    "at batch busybox bwrap chroot chrt csh dbus-run-session doas entr fakeroot find fish flock gdb ksh ltrace "
    "mksh npx nsenter numactl perf pipx pkexec prlimit rsync run-parts runuser screen script setarch ssh "
    "start-stop-daemon strace su systemd-run tar taskset tcsh tmux toybox unshare uvx valgrind xvfb-run".split()
)
"""Programs that run another program, or a shell, by what their arguments or their input say."""
INTERPRETERS = frozenset(
    "awk bc bun deno ed emacs ex expect gawk groovy guile jshell julia lua luajit mawk node nodejs octave osascript "
    "perl php psql pypy python R Rscript ruby sbcl scala sed sqlite swift tclsh ts-node tsx vi vim".split()
)
"""Programs that run code: what is written in their arguments or their input is code."""
_CODE_FLAGS = re.compile(
    r"-[A-Za-z0-9]*[ceEprRx]|--(?:eval|execute|expression|print|run|command|code|source)(?:=.*)?\Z"
)
_PROGRAM_FLAGS = re.compile(
    r"--?[a-z0-9-]*(?:askpass|command|editor|engine|exec|ext-?diff|filter|hook|launcher|pager|plugin|program|shell|"
    r"wrapper)[a-z0-9-]*(?:=.*)?\Z"
)
"""Flags that name a program, or code to load, by what they are usually called."""
_STARTING_WORDS = {
    "git": frozenset("-c --config-env bisect difftool filter-branch foreach mergetool".split()),
    "npm": frozenset("exec x".split()),
    "uv": frozenset("run tool".split()),
}
"""Words that have a program start others, which it or its configuration names."""
_INLINE = frozenset("awk gawk mawk sed bc ed ex expect psql sqlite".split())
"""Those of them that take code as an argument without any flag, or as their input."""
_VERSION = re.compile(r"[-.]?[0-9][0-9.]*\Z")
_LINKER = re.compile(r"ld(?:-linux.*|\.so.*)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change of the policy's files. `then` is what the changed policy says of the same call, `because` why.

    `revision` names the policy as it is, `revised` as it then is.
    """

    texts: dict[str, str]
    diff: str
    lines: tuple[str, ...]
    then: Word
    because: str
    revision: str
    revised: str

    def as_json(self) -> dict[str, Any]:
        """Return the proposal for programs."""
        return {
            "files": sorted(self.texts),
            "diff": self.diff,
            "lines": list(self.lines),
            "then": self.then.value,
            "because": self.because,
            "policy_revision": self.revision,
            "revised": self.revised,
        }


def question_about(call: Call, tools: Mapping[str, ToolDefinition]) -> Question:
    """Return a recorded call as a question; UsageError where nothing may be learned from it."""
    tool = tools.get(call.tool_name)
    if tool is None:
        raise UsageError(f"There is no tool '{call.tool_name}' here; name yours with --tools MODULE:NAME.")
    if call.hides:
        raise UsageError("The arguments of this call hold what is masked; it must not stand in a policy file.")
    if call.shown is None or call.arguments == b"null":
        raise UsageError("The arguments of this call were forgotten, so nothing can be learned from it.")
    if call.status in (Status.DENIED, Status.REJECTED):
        raise UsageError(
            f"This call was denied ({call.reason or 'no reason was given'}); only what was allowed is learned."
        )
    return Question(tool=tool, arguments=orjson.loads(call.arguments), context=call.context, mode=Mode.NORMAL)


def propose(policy: FilePolicy, question: Question) -> Proposal:
    """Return the narrowest change that has the policy know a call's unknown commands, and no other.

    Raises UsageError, with the reason, where there is none to learn or where it must not be learned.
    """
    unknown = [parsed for parsed in _commands(policy, question) if parsed.unknown]
    if not unknown:
        raise UsageError("There is nothing to learn: the policy has a grammar for every command of this call.")
    for parsed in unknown:
        why = _never(policy.table, parsed) or _starts(policy, parsed)
        if why is not None:
            raise UsageError(
                f"{_shown(parsed)[:200]} cannot be remembered: {why}. A person is asked each time instead."
            )
    texts = _texts(policy, unknown)
    revised = revise_policy(policy, texts)
    try:
        left = next((parsed.unknown for parsed in _commands(revised, question) if parsed.unknown), None)
        if left is not None:
            raise UsageError(f"No line under `commands:` would allow this as it was written: {left}")
        explanation = explain(revised, question)
    finally:
        revised.close()
    asked = [one.reason for one in explanation.ruling.judgement.verdicts if one.word is explanation.ruling.word]
    return Proposal(
        texts=texts,
        diff="".join(_diff(policy, name, text) for name, text in texts.items()),
        lines=tuple(dict.fromkeys(_shown(parsed) for parsed in unknown)),
        then=explanation.ruling.word,
        because="; ".join(asked) or explanation.decided_by(),
        revision=policy.revision,
        revised=revised.revision,
    )


def _shown(parsed: Parsed) -> str:
    """Return a command as somebody would type it, with its variables."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in sorted(parsed.environment.items())]
    return " ".join((*variables, shlex.join((parsed.command, *parsed.argv[1:]))))


def _commands(policy: FilePolicy, question: Question) -> tuple[Parsed, ...]:
    stance = policy.stance(question.tool)
    call = a_call(question.tool, question.arguments, question.context)
    facts = look(call, question.tool, stance, question.arguments, mode=question.mode, now=call.created_at)
    target: CommandTarget | None = facts.found.get("commands")
    if target is None:
        raise UsageError(
            f"The policy does not judge the commands of '{question.tool.name}': it has no rule `commands`."
        )
    if not target.parsed:
        raise UsageError(f"No line under `commands:` would allow this call: {target.refused}")
    return target.parsed


def _never(commands: CommandTable, parsed: Parsed) -> str | None:
    """Why a command must not be remembered whatever a person said of it once; None where it may be."""
    name, args = parsed.command, parsed.argv[1:]
    base = _VERSION.sub("", name)
    known = commands.get(name)
    if base in WRAPPERS or _LINKER.match(name) or (known is not None and _wraps(known)):
        return f"`{name}` runs other programs that its arguments or its input name"
    if base in INTERPRETERS:
        why = _runs_code(base, args, parsed.has_input)
        if why is not None:
            return f"`{name}` {why}"
    if (commands.find(name) if known is None else known.executable) != parsed.executable:
        return f"{parsed.executable} is no program of a trusted directory, and what it is may change"
    if commands.is_own(parsed.executable) and not (known is not None and known.from_workspace):
        return f"{parsed.executable} is a program of the workspace, and commands may change what it is"
    asked = None if known is None else asked_word(known, args)
    if asked is not None:
        return f"the policy has a person asked about `{asked}`, whatever stands beside it"
    return None


def _starts(policy: FilePolicy, parsed: Parsed) -> str | None:
    """Why a command may start programs that are not the same tomorrow; an interpreter's own script is none of them."""
    base, args = _VERSION.sub("", parsed.command), parsed.argv[1:]
    words = _STARTING_WORDS.get(base, frozenset())
    named = next((word for word in args if word in words or _PROGRAM_FLAGS.match(word)), None)
    if named is not None:
        return f"`{named}` has it start another program, or load code"
    # Words as well as paths: a workspace beneath /tmp has names that no path is told of.
    named_paths = () if base in INTERPRETERS else (*(use.path for use in parsed.paths), *args)
    own = next((path for path in named_paths if _is_own_program(policy, path)), None)
    return None if own is None else f"it names {own}, a program of the workspace, and what that is may change"


def _is_own_program(policy: FilePolicy, path: str) -> bool:
    """Whether a path, from a root of the workspace or by itself, is a program there."""
    found = [os.path.join(root.path, path) for root in policy.workspace.roots]
    return any(os.path.isfile(one) and os.access(one, os.X_OK) and policy.table.is_own(one) for one in found)


def _wraps(command: Command) -> bool:
    """Whether a command runs another one that its arguments name, by some way its grammar knows."""
    return (
        command.runs is not None
        or any(flag.executes for flag in command.flags)
        or any(map(_wraps, command.subcommands))
    )


def _runs_code(base: str, args: tuple[str, ...], has_input: bool) -> str | None:
    if base in _INLINE:
        return "takes code as its arguments or its input"
    flag = next((word for word in args if _CODE_FLAGS.match(word)), None)
    if flag is not None:
        return f"runs code that is written in the line ({flag})"
    if has_input or not any(not word.startswith("-") for word in args):
        return "runs whatever code its input is"
    return None


def _texts(policy: FilePolicy, unknown: list[Parsed]) -> dict[str, str]:
    """Return the new text of every file that changes: each command's own, or the first that has commands."""
    texts: dict[str, str] = {}
    with_commands = [document for document in policy.documents if document.commands]
    first = (with_commands or policy.documents)[0]
    owners = {name: document for document in with_commands for name in document.commands}
    added: set[tuple[str, ExactLine | None]] = set()
    for parsed in unknown:
        line = ExactLine(
            args=parsed.argv[1:],
            environment=tuple(sorted(parsed.environment.items())),
            input=parsed.has_input,
            writes=parsed.writes,
        )
        document = owners.get(parsed.command, first)
        if (parsed.command, line) in added:
            continue
        is_new = parsed.command not in owners and (parsed.command, None) not in added
        addition = Addition(parsed.command, line, parsed.limits.timeout_s if is_new else None)
        texts[document.name] = add_line(texts.get(document.name, document.text), addition)
        added |= {(parsed.command, None), (parsed.command, line)}
    return texts


def _diff(policy: FilePolicy, name: str, text: str) -> str:
    old = next(document.text for document in policy.documents if document.name == name)
    shown = os.path.basename(name)
    lines = difflib.unified_diff(_lines(old), _lines(text), f"a/{shown}", f"b/{shown}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Split at line ends alone; a text has other characters that some would take for them."""
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [line for line in text.split("\n")[-1:] if line]
