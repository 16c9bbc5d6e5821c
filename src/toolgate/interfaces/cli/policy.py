"""`toolgate policy`: check a policy, test it, and explain what it says of a call.

Exit codes: 0 fine; 1 the policy is wrong, a test fails or something differs; 2 the question cannot be answered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import orjson
import typer

from toolgate.errors import PolicyError, ToolgateError, UsageError
from toolgate.interfaces.cli.examples import EXAMPLES
from toolgate.interfaces.cli.help import Command
from toolgate.interfaces.cli.show import as_json

if TYPE_CHECKING:
    from toolgate.kernel.tool import ToolDefinition
    from toolgate.policy.compile import FilePolicy
    from toolgate.policy.explain import Explanation, Question

TROUBLE = 2
app = typer.Typer(no_args_is_help=True)
F = TypeVar("F", bound=Callable[..., None])

File = Annotated[Path, typer.Argument(help="A policy file, or a folder with toolgate.yaml.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonOfCalls = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line with --calls.")]
Workspace = Annotated[
    Path | None, typer.Option(help="What ${WORKSPACE} and relative paths mean; this folder by default.")
]
Projects = Annotated[
    Path | None,
    typer.Option(
        envvar="TOOLGATE_PROJECT_POLICIES",
        show_envvar=False,
        help="Folder with policies of single projects, PROJECT.yaml each.",
    ),
]
Tools = Annotated[str | None, typer.Option(help="Your own tools, such as my_app.tools:TOOLS.")]
Calls = Annotated[Path | None, typer.Option(help="File of calls, one JSON object per line; - is standard input.")]


def answering(command: F) -> F:
    """Make every error of ours one line and exit code 2, so that 1 always means an answer."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except ToolgateError as error:
            typer.echo(f"toolgate: {error}", err=True)
            raise typer.Exit(TROUBLE) from None

    return run  # type: ignore[return-value]  # the same signature, which typer reads


def load(path: Path, workspace: Path | None, projects: Path | None = None) -> FilePolicy:
    """Return the policy of a file, with those of single projects."""
    from toolgate.policy.loader import load_policy

    return load_policy(path, workspace=workspace, projects=projects)


def known_tools(policy: FilePolicy, where: str | None) -> Mapping[str, ToolDefinition]:
    """Return the tools that calls may name: the built-in ones as the policy finds them, and those at `module:name`."""
    from toolgate.bootstrap import tools_at
    from toolgate.catalog import built_in_tools

    return {**{tool.name: tool for tool in built_in_tools(policy.edges)}, **tools_at(where)}


def lines_of(path: Path) -> Iterator[Any]:
    """Yield the JSON value of every line that is not empty; UsageError names the line that is none."""
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _json_of(line, f"{path}:{number}")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None


def _json_of(text: str | bytes, what: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{what} is not JSON: {error}.") from None


def as_line(value: Any) -> None:
    """Print one JSON object on one line."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_UTC_Z).decode())


@app.callback()
def policy() -> None:
    """Check, test, explain and compare policies."""


@app.command(cls=Command, epilog=EXAMPLES["policy check"])
@answering
def check(file: File, workspace: Workspace = None, project_policies: Projects = None, json: Json = False) -> None:
    """Check a policy file and run its examples.

    Exit code 1 if anything is wrong with it.
    """
    try:
        found = load(file, workspace, project_policies)
    except PolicyError as error:
        if not error.problems:
            raise
        if json:
            as_json({"ok": False, "problems": [problem._asdict() for problem in error.problems]})
        else:
            typer.echo(str(error))
        raise typer.Exit(1) from None
    counts = {name: sum(len(getattr(one, name)) for one in found.documents) for name in ("tools", "categories")}
    counts["commands"] = len(found.commands)
    files = [document.name for document in found.documents]
    if json:
        revisions = {project: own.revision for project, own in found.projects.items()}
        told = {"ok": True, "revision": found.revision, "files": files, "default": found.default.value, **counts}
        as_json({**told, "projects": revisions})
        return
    typer.echo(f"{', '.join(files)}: valid, revision {found.revision}")
    said = ", ".join(f"{number} {name}" for name, number in counts.items())
    typer.echo(f"{said}; by default: {found.default}")
    for project, own in found.projects.items():
        typer.echo(f"project {project}: valid, revision {own.revision}")


@app.command(cls=Command, epilog=EXAMPLES["policy explain"])
@answering
def explain(
    file: File,
    call: Annotated[
        str | None, typer.Option(help='One call, such as {"tool": "pay", "arguments": {"amount": 5}}.')
    ] = None,
    calls: Calls = None,
    tools: Tools = None,
    workspace: Workspace = None,
    project_policies: Projects = None,
    json: JsonOfCalls = False,
) -> None:
    """Explain what a policy decides about a call.

    Shows the verdict, what each rule says, the approval level and who may approve. Nothing runs.
    """
    from toolgate.policy.explain import question_of

    found = load(file, workspace, project_policies)
    known = known_tools(found, tools)
    if (call is None) == (calls is None):
        raise UsageError("Give one call with --call, or many with --calls FILE.")
    if calls is not None:
        for data in lines_of(calls):
            explanation = explained(found, question_of(data, known))
            if json:
                as_line(explanation.as_json())
            else:
                typer.echo(f"{explanation.ruling.word:5}  {explanation.question.tool.name}  {explanation.decided_by()}")
        return
    explanation = explained(found, question_of(_json_of(call or "", "--call"), known))
    if json:
        as_json(explanation.as_json())
    else:
        _tell(explanation)


def explained(policy: FilePolicy, question: Question) -> Explanation:
    """What the policy of the project that a call is made in says of it."""
    from toolgate.policy.explain import explain

    return explain(policy.in_project(question.context.project), question)


def _tell(explanation: Explanation) -> None:
    told = explanation.as_json()
    typer.echo(f"{told['verdict'].upper()}  {told['tool']}: {told['decided_by']}")
    if told["level"] is not None:
        sure = "" if told["confidence"] is None else f", confidence {told['confidence']}"
        typer.echo(f"level {told['level']}, risk {told['risk']}{sure}")
    if told["approval"] is not None:
        typer.echo(f"asked: {told['approval']['who']}, within {told['approval']['timeout_s']:g} s")
    for rule in told["rules"]:
        typer.echo(f"  {rule['says']:5}  {rule['rule']}: {rule['reason']}  [{rule['where']}]")
    for limit in told["rates"]:
        typer.echo(f"  limit  {limit['limit']} in {limit['window_s']:g} s per {limit['per']}  [{limit['section']}]")
    if told["silent"]:
        typer.echo(f"  silent: {', '.join(told['silent'])}")
