"""The model that is none: answers a fixed set of requests with tool calls, so that nothing else is needed to begin.

It is asked through the same loop as every other model and remembers nothing: what to do next follows from what was
said since the person's last message.
"""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from posixpath import basename, join, normpath
from typing import Any

import orjson

from toolgate.agent.history import AgentSaid, Made, Outcome, PersonSaid, ToolsSaid, parsed
from toolgate.agent.model import Hear, Question, Reply, Wanted
from toolgate.agent.requests import TEMPORARY, Request, requests_in, what_it_can
from toolgate.kernel.tool import ToolDefinition

SHOWN = 4000
"""How much of a result is put into an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A call that is to be made for a request."""

    tool: str
    arguments: dict[str, Any] | str

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else orjson.dumps(self.arguments).decode()


Done = Sequence[tuple[Made, Outcome]]
"""The calls made for one request so far, with their outcomes."""
Step = list[Act] | str
"""What a request needs next: calls, or the answer to it."""


class ScriptedModel:
    """Understands what `requests.py` lists."""

    name = "scripted"

    async def answer(self, question: Question, hear: Hear) -> Reply:
        person, done = _since(question)
        asked = requests_in(person)
        if not any(request for _, request in asked) or all(r is not None and r.kind == "help" for _, r in asked):
            return await _say(what_it_can() if asked else "Say what to do.\n\n" + what_it_can(), hear)
        plan = _Plan(question.tools)
        acts, answers = [], []
        for number, (line, request) in enumerate(asked):
            step = plan.next(request, [pair for pair in done if _number(pair[0]) == number], line)
            if isinstance(step, str):
                answers.append(step)
            else:
                acts += [(number, at, act) for at, act in enumerate(step)]
        if not acts:
            return await _say("\n\n".join(answers), hear)
        made = len(done)
        calls = tuple(
            Wanted(ref=f"{number}:{made + at}", name=act.tool, arguments=act.text) for number, at, act in acts
        )
        return Reply(calls=calls)

    async def close(self) -> None:
        """Nothing to close."""


async def _say(text: str, hear: Hear) -> Reply:
    await hear(text)
    return Reply(text=text)


def _number(made: Made) -> int:
    """Which of the person's requests a call was made for."""
    return int(made.ref.partition(":")[0])


def _since(question: Question) -> tuple[str, Done]:
    """The person's last message, and the calls made since with their outcomes."""
    text, done = "", list[tuple[Made, Outcome]]()
    calls: tuple[Made, ...] = ()
    for said in question.said:
        if isinstance(said, PersonSaid):
            text, done = said.text, []
        elif isinstance(said, AgentSaid):
            calls = said.calls
        elif isinstance(said, ToolsSaid):
            done += zip(calls, said.outcomes, strict=True)
    return text, done


class _Plan:
    """What each kind of request needs, with the tools there are."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._kinds: dict[str, Callable[[Request, Done], Step]] = {
            "read": self._read,
            "list": self._list,
            "tests": self._tests,
            "run": self._run,
            "replace": self._replace,
            "clean": self._clean,
            "tool": self._tool,
            "help": lambda _request, _done: what_it_can(),
        }

    def next(self, request: Request | None, done: Done, line: str) -> Step:
        if request is None:
            return f"I do not understand `{line[:200]}`.\n\n{what_it_can()}"
        return self._kinds[request.kind](request, done)

    def _missing(self, *names: str) -> str | None:
        if any(name in self._tools for name in names):
            return None
        return f"I would need the tool `{'` or `'.join(names)}` for this, and you may not use it here."

    def _read(self, request: Request, done: Done) -> Step:
        path = request.parts[0]
        if not done:
            return self._missing("read_file") or [Act(tool="read_file", arguments={"path": path})]
        outcome = done[-1][1]
        if outcome.is_error:
            return _failed(f"I could not read {path}", outcome)
        content = _content(outcome.value)
        return f"{path} has {_count(len(content.splitlines()), 'line')}:\n\n```\n{_cut(content.rstrip())}\n```"

    def _list(self, request: Request, done: Done) -> Step:
        path = request.parts[0] or "."
        if not done:
            return self._missing("list_directory") or [Act(tool="list_directory", arguments={"path": path})]
        outcome = done[-1][1]
        if outcome.is_error:
            return _failed(f"I could not list {path}", outcome)
        names = [f"- {name}{'/' if is_folder else ''}" for name, is_folder in _entries(outcome.value)]
        return f"{path} has {_count(len(names), 'entry', 'entries')}:\n\n" + _cut("\n".join(names))

    def _tests(self, _request: Request, done: Done) -> Step:
        if "run_tests" in self._tools and not done:
            return [Act(tool="run_tests", arguments={})]
        return self._command("pytest", ["-q"], done, "the tests")

    def _run(self, request: Request, done: Done) -> Step:
        try:
            words = shlex.split(request.parts[0])
        except ValueError as error:
            return f"I cannot take `{request.parts[0]}` apart: {error}."
        if not words:
            return "Say which command to run."
        return self._command(words[0], words[1:], done, f"`{request.parts[0]}`")

    def _command(self, command: str, args: list[str], done: Done, what: str) -> Step:
        if not done:
            return self._missing("execute_command") or [
                Act(tool="execute_command", arguments={"command": command, "args": args})
            ]
        outcome = done[-1][1]
        if outcome.is_error:
            return _failed(f"I could not run {what}", outcome)
        return _ran(what, outcome.value)

    def _replace(self, request: Request, done: Done) -> Step:
        old, new, path = request.parts
        if "edit_file" in self._tools:
            if not done:
                given = {"path": path, "old_text": old, "new_text": new, "replace_all": True}
                return [Act(tool="edit_file", arguments=given)]
            return self._replaced(request, done[-1][1], None)
        if not done:
            return self._missing("read_file") or [Act(tool="read_file", arguments={"path": path})]
        found = done[0][1]
        if found.is_error:
            return _failed(f"I could not read {path}", found)
        content = _content(found.value)
        if len(done) > 1:
            return self._replaced(request, done[1][1], content.count(old))
        if old not in content:
            return f"{path} does not have `{old}` in it, so I changed nothing."
        changed = {"path": path, "content": content.replace(old, new)}
        return self._missing("write_file") or [Act(tool="write_file", arguments=changed)]

    def _replaced(self, request: Request, outcome: Outcome, count: int | None) -> Step:
        old, new, path = request.parts
        if outcome.is_error:
            return _failed(f"I did not change {path}", outcome)
        times = "" if count is None else f" {_count(count, 'time')}"
        return f"I replaced `{old}` with `{new}`{times} in {path}."

    def _clean(self, request: Request, done: Done) -> Step:
        folder = request.parts[0]
        if not done:
            return self._missing("list_directory") or [Act(tool="list_directory", arguments={"path": folder})]
        listing = done[0][1]
        if listing.is_error:
            return _failed(f"I could not list {folder}", listing)
        junk = [name for name, is_folder in _entries(listing.value) if not is_folder and _is_temporary(name)]
        if not junk:
            return f"There is nothing temporary in {folder}; I deleted nothing."
        if len(done) == 1:
            return self._delete([_beneath(folder, name) for name in junk])
        lines = [_deleted(made, outcome) for made, outcome in done[1:]]
        gone = sum(_did(outcome) for _, outcome in done[1:])
        return f"I deleted {gone} of {len(junk)} temporary files in {folder}:\n\n" + "\n".join(lines)

    def _delete(self, paths: list[str]) -> Step:
        if "delete_file" in self._tools:
            return [Act(tool="delete_file", arguments={"path": path}) for path in paths]
        return self._missing("delete_file", "execute_command") or [
            Act(tool="execute_command", arguments={"command": "rm", "args": ["--", path]}) for path in paths
        ]

    def _tool(self, request: Request, done: Done) -> Step:
        name, given = request.parts
        if not done:
            return [Act(tool=name, arguments=given or "{}")]
        outcome = done[-1][1]
        if outcome.is_error:
            return _failed(f"`{name}` did not succeed", outcome)
        return f"`{name}` returned:\n\n```\n{_cut(outcome.text)}\n```"


def _content(value: Any) -> str:
    """The text of a file, however the tool that read it returns it."""
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        return str(value["content"])
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _entries(value: Any) -> list[tuple[str, bool]]:
    """What is in a folder: names, and which of them are folders, however the tool that listed it returns them."""
    found = value.get("entries", value.get("files", [])) if isinstance(value, dict) else value
    entries = []
    for one in found if isinstance(found, list) else []:
        if isinstance(one, dict):
            entries.append((str(one.get("name", one.get("path", ""))), one.get("type") == "directory"))
        elif isinstance(one, str):
            entries.append((one.rstrip("/"), one.endswith("/")))
    return entries


def _is_temporary(name: str) -> bool:
    return any(fnmatch.fnmatchcase(basename(name), pattern) for pattern in TEMPORARY)


def _beneath(folder: str, name: str) -> str:
    return name if normpath(name).startswith(normpath(folder) + "/") else join(folder, name)


def _deleted(made: Made, outcome: Outcome) -> str:
    given = parsed(made.arguments)
    path = given.get("path") or given["args"][-1]
    if outcome.is_error:
        return f"- {path}: {_why(outcome)}"
    return f"- {path}" if _did(outcome) else f"- {path}: the command failed: {_cut(str(outcome.value.get('stderr')))}"


def _did(outcome: Outcome) -> bool:
    """Whether a call succeeded and, where it was a command, the command did too."""
    code = outcome.value.get("exit_code", 0) if isinstance(outcome.value, dict) else 0
    return not outcome.is_error and code == 0


def _ran(what: str, value: Any) -> str:
    if not isinstance(value, dict):
        return f"I ran {what}:\n\n```\n{_cut(_content(value))}\n```"
    code = value.get("exit_code", value.get("returncode"))
    passed = value.get("passed")
    said = (
        "".join(str(value.get(name) or "") for name in ("stdout", "stderr", "output")) or orjson.dumps(value).decode()
    )
    ended = "" if code is None else f"; exit code {code}"
    if passed is not None:
        ended = "; they passed" if passed else "; they did not pass"
    return f"I ran {what}{ended}:\n\n```\n{_cut(said.strip())}\n```"


def _why(outcome: Outcome) -> str:
    value = outcome.value if isinstance(outcome.value, dict) else {}
    if "answer" in value:
        return f"{outcome.status}; the answer was: {value['answer']}"
    return f"{outcome.status}: {value.get('error', outcome.text)}"


def _failed(what: str, outcome: Outcome) -> str:
    return f"{what}. It was {_why(outcome)}"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}\n... ({len(text) - SHOWN:,} more characters)"
