"""`toolgate init` and `toolgate doctor`: begin, and find out what is wrong."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from toolgate.errors import PolicyHeldError, SandboxError, ToolgateError, UsageError
from toolgate.interfaces.cli.on_server import DATABASE as NAMED
from toolgate.interfaces.cli.on_server import DEFAULT_DATABASE as DATABASE
from toolgate.interfaces.cli.policy import Projects
from toolgate.interfaces.cli.show import as_json, existing, file_of, is_postgres, store_url
from toolgate.kernel.context import DEFAULT_PROJECT
from toolgate.kernel.extras import how_to_install

if TYPE_CHECKING:
    from toolgate.adapters.runners.sandbox import Sandbox
    from toolgate.guards.edges import Edges

POLICY = "toolgate.yaml"


class Profile(StrEnum):
    """The policies that come with Toolgate."""

    DEVELOPER = "developer"
    READONLY = "readonly"
    LOCKED = "locked"


def init(
    folder: Annotated[
        Path, typer.Argument(show_default=False, help="The folder; this one by default. Created if it does not exist.")
    ] = Path(),
    profile: Annotated[
        Profile,
        typer.Option(
            help="developer: reading and testing is allowed, changes are asked about. readonly: nothing is changed. "
            "locked: reading is asked about, the rest refused."
        ),
    ] = Profile.DEVELOPER,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write a first policy and create a database.

    The database's key is created with it. Files that exist are left as they are.
    """
    from toolgate.adapters.sealing import load
    from toolgate.adapters.sqlite.file import prepare
    from toolgate.policy.profiles import render

    try:
        folder.mkdir(parents=True, exist_ok=True)
        policy, database = folder / POLICY, folder / DATABASE
        is_new = {POLICY: not policy.exists()}
        for name, text in render(profile.value).items() if is_new[POLICY] else ():
            is_new[name] = not (folder / name).exists()
            if is_new[name]:
                (folder / name).write_text(text, encoding="utf-8")
        is_new[DATABASE] = not database.exists()
    except OSError as error:
        raise UsageError(f"{folder} cannot be used ({error.strerror}).") from None
    prepare(database)
    load(database.with_name(DATABASE + ".key"), create=is_new[DATABASE])
    if json:
        as_json(
            {"policy": str(policy), "database": str(database), "made": [name for name, new in is_new.items() if new]}
        )
        return
    for name, new in is_new.items():
        typer.echo(f"{folder / name}: {'made' if new else 'was there already'}")
    create = f"toolgate token create {database} YOU --kind person --project {DEFAULT_PROJECT}"
    typer.echo(f"\nNext, make yourself a token:  {create}")
    typer.echo(f"Then serve:                   cd {folder} && toolgate serve")
    other = os.environ.get(NAMED)
    if other:
        typer.echo(f"\nThe variable {NAMED} is set: commands work on what it names unless they are given another.")


class Finding(NamedTuple):
    """One thing that was looked at. A warning is no failure."""

    what: str
    is_fine: bool
    detail: str
    is_warning: bool = False


def doctor(
    folder: Annotated[
        Path, typer.Argument(show_default=False, help="Folder of the database and the policy; this one by default.")
    ] = Path(),
    database: Annotated[
        str | None,
        typer.Option(
            envvar=NAMED,
            show_envvar=False,
            help=f"Path or URL of the database; by default ${NAMED}, or else {DATABASE} in the folder.",
        ),
    ] = None,
    project_policies: Projects = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check that the server can run here, and say what to fix.

    Looks at Python, libraries, policy, database and sandbox. Exit code 1 if the server cannot run.
    """
    if folder.is_file() or ":/" in str(folder):
        raise UsageError(f"`doctor` takes a folder, and {str(folder)!r} is not one. Name a database with --database.")
    findings = list(_look(folder, database or str(folder / DATABASE), project_policies))
    if json:
        as_json(
            {
                "ok": all(one.is_fine or one.is_warning for one in findings),
                "findings": [one._asdict() for one in findings],
            }
        )
    else:
        for one in findings:
            mark = "ok" if one.is_fine else "warning" if one.is_warning else "PROBLEM"
            typer.echo(f"{mark:8} {one.what}: {one.detail}")
    if any(not one.is_fine and not one.is_warning for one in findings):
        raise typer.Exit(1)


def _look(folder: Path, database: str, projects: Path | None) -> Iterator[Finding]:
    yield Finding("Python", sys.version_info >= (3, 11), platform.python_version())
    yield _extras()
    policy, found = _policy(folder, projects), _database(database)
    yield policy
    yield found
    if found.is_fine or found.is_warning:
        yield _accounts(database)
        if policy.is_fine:
            yield from _held(folder, database, projects)
            yield from _programs(database)
    yield from _sandbox(folder, database, projects)


def _edges(folder: Path, database: str, projects: Path | None) -> Callable[[], Edges]:
    """Return what calls will be confined by: the policy's edges, or the folder alone where it cannot be read."""
    from toolgate.confines import PolicyEdges
    from toolgate.policy.loader import load_policy

    try:
        policy = load_policy(folder, workspace=folder, projects=projects)
    except ToolgateError:  # that was said already
        policy = None
    return PolicyEdges(folder, _url(database), policy)


def _url(database: str) -> str:
    return database if is_postgres(database) else f"sqlite:///{file_of(database).absolute()}"


def _sandbox(folder: Path, database: str, projects: Path | None) -> Iterator[Finding]:
    """Try every backend with escape probes, as calls will use it, and name what is out of its user's reach."""
    from toolgate.adapters.runners.sandbox import Sandbox

    edges = _edges(folder, database, projects) if folder.is_dir() else None
    with contextlib.closing(Sandbox(edges)) as sandbox:
        reports = [sandbox.report(name) for name in ("bubblewrap", "landlock")]
        for report in reports:
            yield Finding(f"sandbox {report.backend}", report.holds, report.summary, is_warning=True)
        if not any(report.holds for report in reports):
            detail = "no sandbox works here: commands and sandboxed tools do not run"
            yield Finding("sandbox", False, detail, is_warning=True)
            return
        yield from _reach(sandbox, folder)
        problem = sandbox.overlay_problem(str(folder.resolve()) if folder.exists() else None)
        detail = problem or "commands that write can run in an overlay (`commands: {overlay: true}`)"
        yield Finding("sandbox overlay", problem is None, detail, is_warning=True)


def _reach(sandbox: Sandbox, folder: Path) -> Iterator[Finding]:
    """Try whether the sandbox's user can use this interpreter and the workspace, and write there where calls may."""
    from toolgate.adapters.runners.sandbox.layout import interpreter_paths
    from toolgate.ports.confinement import Confined

    tries = {"interpreter": Confined(argv=(sys.executable, "-I", "-S", "-c", ""), readable=interpreter_paths())}
    roots = sandbox.readable()
    if folder.exists():
        path = str(folder.resolve())
        try:
            hidden = sandbox.hidden()
        except SandboxError as error:
            yield Finding("sandbox workspace", False, str(error), is_warning=True)
            return
        tries["workspace"] = Confined(argv=("/bin/ls", path), readable=roots or (path,), hidden=hidden)
        tries["writing"] = Confined(argv=("/bin/true",), cwd=path, writable=roots or (path,), hidden=hidden)
    for what, confined in tries.items():
        try:
            finished = sandbox.run(confined)
        except SandboxError as error:
            yield Finding(f"sandbox {what}", False, str(error), is_warning=True)
            continue
        if finished.exit_code != 0:
            said = finished.stderr.decode(errors="replace").strip()
            yield Finding(f"sandbox {what}", False, said, is_warning=True)


def _extras() -> Finding:
    from importlib.util import find_spec

    missing = [name for name in ("starlette", "uvicorn", "websockets", "pydantic_settings") if find_spec(name) is None]
    detail = f"missing {', '.join(missing)}: {how_to_install('server')}" if missing else "installed"
    return Finding("server libraries", not missing, detail)


def _policy(folder: Path, projects: Path | None) -> Finding:
    from toolgate.policy.loader import find_policy, load_policy

    try:
        find_policy(folder)
    except ToolgateError as error:
        return Finding("policy", False, str(error))
    try:
        loaded = load_policy(folder, projects=projects)
    except ToolgateError as error:
        return Finding("policy", False, str(error))
    own = [f"; project {project} {policy.revision[:12]}" for project, policy in loaded.projects.items()]
    return Finding("policy", True, f"revision {loaded.revision[:12]}{''.join(own)}")


def _held(folder: Path, database: str, projects: Path | None) -> Iterator[Finding]:
    """Say that no gate can start here, where a person must look at the policy first."""
    from toolgate.bootstrap import held_policy
    from toolgate.policy.loader import PolicySource

    try:
        held = asyncio.run(held_policy(store_url(database), PolicySource(folder, projects=projects)))
    except ToolgateError as error:
        yield Finding("held policy", False, str(error))
        return
    if held is not None:
        yield Finding("held policy", False, str(PolicyHeldError(held.revision, held.files)))


def _programs(database: str) -> Iterator[Finding]:
    """Name the programs that are not what they were when they were pinned."""
    from toolgate.bootstrap import pinned_programs
    from toolgate.guards.pins import look_again

    async def changed() -> list[str]:
        async with pinned_programs(store_url(database)) as pins:
            both = ((pin.program, look_again(pin.program)) for pin in pins.book.pins.values())
            return [then.path for then, now in both if now is not None and now.identity != then.identity]

    try:
        found = asyncio.run(changed())
    except ToolgateError as error:
        yield Finding("programs", False, str(error))
        return
    if found:
        named = ", ".join(found[:5]) + (f" and {len(found) - 5:,} more" if len(found) > 5 else "")
        detail = f"{named} changed since first used: a person is asked before they run. See `toolgate programs list`"
        yield Finding("programs", False, detail, is_warning=True)


def _database(database: str) -> Finding:
    try:
        found = _status(database)
    except ToolgateError as error:
        return Finding("database", False, str(error))
    if found["revision"] != found["needed"]:
        return Finding("database", False, f"schema {found['revision']}: run `toolgate db upgrade`")
    if is_postgres(database):
        return _on_postgres(found)
    from toolgate.adapters.sqlite.file import exposed

    file = Path(file_of(database))
    key = Path(f"{file}.key")
    if key.exists() and key.stat().st_mode & 0o077:
        return Finding("database", False, f"{key.name} can be read by others: run `chmod 600 {key}`")
    if open_to_all := exposed(file):
        named = " ".join(map(str, open_to_all))
        return Finding("database", False, f"it can be read by others: run `chmod 600 {named}`", is_warning=True)
    return Finding("database", True, _detail(found))


def _detail(found: dict[str, Any]) -> str:
    brakes = f", {found['brakes']:,} brakes pulled: see `toolgate mode`" if found["brakes"] else ""
    return f"schema {found['revision']}, {found['bytes']:,} bytes, mode {found['mode']}{brakes}"


def _accounts(database: str) -> Finding:
    """Whether each account and token counts: a row that nobody here wrote, or an older one, does not."""
    from toolgate.bootstrap import account_differences

    try:
        found = account_differences(database if is_postgres(database) else str(file_of(database)))
    except ToolgateError as error:  # a key file that cannot be used
        return Finding("accounts", False, str(error), True)
    if not found:
        return Finding("accounts", True, "each account and token is as it was last changed")
    named = ", ".join(f"{one.kind} {one.id[:64]!r}" for one in found[:5])
    more = f" and {len(found) - 5:,} more" if len(found) > 5 else ""
    detail = f"{named}{more} count as absent, or say something else than the record. `toolgate audit verify` says why"
    return Finding("accounts", False, f"{detail}; `toolgate db upgrade` takes over those from before marks", True)


def _on_postgres(found: dict[str, Any]) -> Finding:
    detail = _detail(found)
    told = found.get("role_warning")
    return Finding("database", told is None, detail if told is None else f"{detail}. {told}", is_warning=True)


def _status(database: str) -> dict[str, Any]:
    if is_postgres(database):
        from toolgate.adapters.postgres.upkeep import status_of as status_on_server

        return status_on_server(database)
    from toolgate.adapters.sqlite.upkeep import status_of

    return status_of(existing(database))
