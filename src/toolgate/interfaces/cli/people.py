"""`toolgate show`, `approve`, `deny` and `edit`: one question, one answer."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.backend import backend_on, full_id
from toolgate.interfaces.cli.duration import seconds_of
from toolgate.interfaces.cli.session import ApprovalId, By, Database, Json, Project, Role
from toolgate.interfaces.cli.show import as_json, printable, question_json

if TYPE_CHECKING:
    from toolgate.kernel.approval import Approval
    from toolgate.kernel.artifact import Piece
    from toolgate.kernel.grant import Remember
    from toolgate.kernel.output import Result

Reason = Annotated[str | None, typer.Option("--reason", help="Why; some tools require one for a rejection.")]
Digest = Annotated[
    str | None,
    typer.Option("--digest", help="The digest that `toolgate show` printed; refused if it is not the call's."),
]
Uses = Annotated[
    int | None, typer.Option("--remember", help="Allow the same call this many more times without asking.")
]
Network = Annotated[
    bool, typer.Option("--network", help="Also give the command a network, in this one call. It is never remembered.")
]
Behalf = Annotated[
    str | None,
    typer.Option(
        "--on-behalf-of",
        metavar="NAME",
        help="Whose vote it is, if it was delegated to you; on a database --role is theirs.",
    ),
]
For = Annotated[str, typer.Option("--for", help="How long --remember is valid, such as 30m or 12h.")]


def show(
    database: Database,
    approval_id: ApprovalId,
    full: Annotated[bool, typer.Option("--full", help="Show long values in full.")] = False,
    part: Annotated[
        str | None,
        typer.Option("--part", metavar="NAME", help="Show only this part, in pieces: arguments, change, ..."),
    ] = None,
    offset: Annotated[
        int, typer.Option("--offset", metavar="CHARACTERS", help="Where the piece of --part begins.")
    ] = 0,
    project: Project = None,
    json: Json = False,
) -> None:
    """Show one approval with everything you need to decide it.

    What is too long for a screen can be read in pieces, with --part and the --offset that each piece names.
    """
    from toolgate.kernel.artifact import artifact_of
    from toolgate.kernel.surfaces import to_plain, to_terminal

    if offset and part is None:
        raise UsageError("--offset says where a piece of a part begins; name the part with --part.")
    with backend_on(database, project=project) as backend:
        approval = backend.approval(full_id(backend, approval_id))
    if part is not None:
        _show_piece(artifact_of(approval).piece(part, offset=offset), json)
        return
    if json:
        as_json(question_json(approval))
        return
    draw = to_terminal if sys.stdout.isatty() else to_plain
    typer.echo(draw(artifact_of(approval), full=full))


def _show_piece(piece: Piece, json: bool) -> None:
    from toolgate.kernel.surfaces import draw_lines

    if piece.offset > piece.characters:
        has = f"has {piece.characters:,} characters"
        raise UsageError(f"The part {piece.name} {has}; no piece of it begins at {piece.offset:,}.")
    if json:
        as_json(piece._asdict())
        return
    end = piece.offset + len(piece.text)
    typer.echo(f"{piece.title}: characters {piece.offset:,} to {end:,} of {piece.characters:,}, {piece.lines:,} lines")
    for warning in piece.warnings:
        typer.echo(f"! WARNING: {warning}")
    typer.echo(draw_lines(piece.text, piece.style, colour=sys.stdout.isatty()))
    if piece.next is not None:
        left = piece.characters - piece.next
        typer.echo(f"! {left:,} characters follow; go on with --part {piece.name} --offset {piece.next}")


def approve(
    database: Database,
    approval_id: ApprovalId,
    by: By = None,
    role: Role = None,
    reason: Reason = None,
    digest: Digest = None,
    remember: Uses = None,
    remember_for: For = "1h",
    on_behalf_of: Behalf = None,
    network: Network = False,
    project: Project = None,
    json: Json = False,
) -> None:
    """Approve a call.

    If part of it is too long to be shown at once, read it with `toolgate show --full` and give the --digest that
    is shown there.
    """
    from toolgate.ports.channel import Decision

    with backend_on(database, project=project, by=by, roles=role) as backend:
        asked = backend.approval(full_id(backend, approval_id))
        _must_have_seen(asked, digest)
        kept = _remember(remember, remember_for)
        if network:
            if kept is not None or on_behalf_of is not None:
                raise typer.BadParameter("--network is for one call, with your own vote: leave the others out.")
            answered = backend.approve_with_network(asked, reason=reason, digest=digest)
        else:
            answered = backend.decide(
                asked, Decision.APPROVE, reason=reason, digest=digest, remember=kept, on_behalf_of=on_behalf_of
            )
        _tell(answered, json)


def deny(
    database: Database,
    approval_id: ApprovalId,
    by: By = None,
    role: Role = None,
    reason: Reason = None,
    digest: Digest = None,
    on_behalf_of: Behalf = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Reject a call, for good."""
    from toolgate.ports.channel import Decision

    with backend_on(database, project=project, by=by, roles=role) as backend:
        asked = backend.approval(full_id(backend, approval_id))
        answered = backend.decide(asked, Decision.DENY, reason=reason, digest=digest, on_behalf_of=on_behalf_of)
        _tell(answered, json)


def edit(
    database: Database,
    approval_id: ApprovalId,
    arguments: Annotated[
        str | None,
        typer.Option("--arguments", help="The new arguments as JSON, or @FILE; opens your editor by default."),
    ] = None,
    by: By = None,
    role: Role = None,
    reason: Reason = None,
    digest: Digest = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Approve a call with changed arguments.

    A masked value that you leave as it is keeps its real value.
    """
    with backend_on(database, project=project, by=by, roles=role) as backend:
        asked = backend.approval(full_id(backend, approval_id))
        _must_have_seen(asked, digest)
        changed = edited(asked.arguments) if arguments is None else read_words(arguments)
        if changed is None:
            raise UsageError("Nothing was changed; use `toolgate approve` to approve it as it is.")
        _tell(backend.edit(asked, changed, reason=reason, digest=digest or asked.digest), json)


def edited(arguments: Any) -> str | None:
    """Open the editor on arguments and return what was saved; None where nothing was."""
    import click
    import orjson

    if not (sys.stdin.isatty() or os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        raise UsageError("There is no terminal to open an editor on; give the new arguments with --arguments.")
    before = orjson.dumps(arguments, option=orjson.OPT_INDENT_2).decode() + "\n"
    try:
        after = click.edit(before, extension=".json")
    except click.ClickException as error:
        raise UsageError(f"The editor did not work ({error}); set EDITOR, or give --arguments.") from error
    return None if after is None or after == before else after


def read_words(given: str) -> str:
    """What was typed, or the text of `@FILE`."""
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The arguments cannot be read from {given[1:]}: {error}.") from error


def _must_have_seen(asked: Approval, digest: str | None) -> None:
    from toolgate.kernel.artifact import artifact_of

    if digest is None and artifact_of(asked).must_expand:
        raise UsageError(
            "Part of what would run is too long to be shown at first. Look at all of it with "
            "`toolgate show APPROVAL --full`, and repeat with the --digest it shows."
        )


def _remember(uses: int | None, age: str) -> Remember | None:
    from toolgate.kernel.grant import Remember

    return None if uses is None else Remember(uses=uses, seconds=seconds_of(age))


def _tell(result: Result, json: bool) -> None:
    if json:
        told = {"call_id": result.call_id, "status": result.status.value, "approval_id": result.approval_id}
        as_json({**told, "approved_by": result.approved_by, "error": result.error})
    else:
        more = f": {result.error}" if result.error else ""
        typer.echo(f"{printable(result.tool_name)} ({result.call_id}) is {result.status} now{printable(more)}")
