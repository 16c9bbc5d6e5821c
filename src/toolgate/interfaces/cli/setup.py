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
from toolgate.guards.state import DATABASE, POLICY, policy_folder
from toolgate.interfaces.cli.on_server import DATABASE as NAMED
from toolgate.interfaces.cli.on_server import database_here
from toolgate.interfaces.cli.policy import Projects
from toolgate.interfaces.cli.show import as_json, existing, file_of, is_postgres, store_url
from toolgate.kernel.context import DEFAULT_PROJECT
from toolgate.kernel.extras import how_to_install

if TYPE_CHECKING:
    from toolgate.adapters.runners.sandbox import Sandbox
    from toolgate.guards.edges import Edges


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
    database: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where to make the database; by default outside the folder, in your home."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write a first policy and create a database.

    The database's key is created with it. Both are kept outside the folder, out of reach of commands that run in it.
    Files that exist are left as they are.
    """
    from toolgate.adapters.sealing import load
    from toolgate.adapters.sqlite.file import is_fresh, prepare
    from toolgate.adapters.sqlite.place import workspace_database

    is_new: dict[Path, bool] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        policy = _write_policy(folder, profile, is_new)
    except OSError as error:
        raise UsageError(f"{folder} cannot be used ({error.strerror}).") from None
    file = workspace_database(folder) if database is None else file_of(database)
    is_new[file] = is_fresh(file)
    prepare(file)
    load(file.with_name(f"{file.name}.key"), create=is_new[file])
    if json:
        made = [path.name for path, new in is_new.items() if new]
        as_json({"policy": str(policy), "database": str(file), "made": made})
        return
    for path, new in is_new.items():
        typer.echo(f"{path}: {'made' if new else 'was there already'}")
    typer.echo("".join(f"{told}\n" for told in _advice(folder, policy, file)), nl=False)
    named = "" if database is None else f" {file.absolute()}"
    create = f"toolgate token create {file} YOU --kind person --project {DEFAULT_PROJECT}"
    typer.echo(f"\nNext, make yourself a token:  {create}")
    typer.echo(f"Then serve:                   cd {folder} && toolgate serve{named}")
    other = os.environ.get(NAMED)
    if other:
        typer.echo(f"\nThe variable {NAMED} is set: commands work on what it names unless they are given another.")


def _write_policy(folder: Path, profile: Profile, is_new: dict[Path, bool]) -> Path:
    """Write the files of a profile where there is no policy, and return where it is: in the folder, or outside of it
    where no sandbox could keep a command from changing it."""
    from toolgate.adapters.sqlite.place import make_place
    from toolgate.policy.profiles import render

    place = policy_folder(folder)
    if not (place / POLICY).exists() and _is_landlock_alone(folder):
        place = make_place(folder)
    is_new[place / POLICY] = not (place / POLICY).exists()
    for name, text in render(profile.value).items() if is_new[place / POLICY] else ():
        is_new[place / name] = not (place / name).exists()
        if is_new[place / name]:
            (place / name).write_text(text, encoding="utf-8")
    return place / POLICY


def _is_landlock_alone(folder: Path) -> bool:
    """Whether commands would run under landlock without namespaces, which cannot keep single files of a folder."""
    from toolgate.adapters.runners.sandbox import Sandbox
    from toolgate.adapters.runners.sandbox.backend import sandbox_user
    from toolgate.adapters.runners.sandbox.landlock import has_namespaces

    if has_namespaces(sandbox_user(str(folder), None)):
        return False
    with contextlib.closing(Sandbox()) as sandbox:
        try:
            return sandbox.choose().name == "landlock"
        except SandboxError:
            return False


def _advice(folder: Path, policy: Path, database: Path) -> Iterator[str]:
    """Say what is not where it should be, with the command that helps."""
    if database == folder / DATABASE:
        yield (
            "The database lies in the folder that commands run in: stop what uses it, and run `toolgate db move` there."
        )
    elif (folder / DATABASE).exists() and database != (folder / DATABASE).absolute():
        yield f"{folder / DATABASE} is not used: the database of this folder is {database}."
    if policy != folder / POLICY and (folder / POLICY).exists():
        yield f"{folder / POLICY} counts for nothing: the policy of this folder is {policy}."


class Finding(NamedTuple):
    """One thing that was looked at. A warning is no failure."""

    what: str
    is_fine: bool
    detail: str
    is_warning: bool = False


def doctor(
    folder: Annotated[
        Path, typer.Argument(show_default=False, help="Folder of the policy; this one by default.")
    ] = Path(),
    database: Annotated[
        str | None,
        typer.Option(
            envvar=NAMED,
            show_envvar=False,
            help=f"Path or URL of the database; by default ${NAMED}, or else the folder's own.",
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
    findings = list(_look(folder, database_here(database, folder), project_policies))
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
    if not is_postgres(database):
        advice = _advice(folder, policy_folder(folder) / POLICY, file_of(database))
        yield from (Finding("places", False, told, is_warning=True) for told in advice)
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
    place = policy_folder(folder)
    kept = "" if place == folder else f", kept in {place}"
    return Finding("policy", True, f"revision {loaded.revision[:12]}{kept}{''.join(own)}")


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
        return Finding("database", False, f"{error}{_of_gone_folders()}")
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
    return Finding("database", True, f"{_detail(found)}, in {file}")


def _of_gone_folders() -> str:
    """Name databases whose folder is gone: this one may be what it is called now."""
    from toolgate.adapters.sqlite.place import known

    gone = [one for one in known() if one.is_gone][:3]
    return "".join(f" Was this folder {one.folder}? Then run `toolgate db move {one.database}` in it." for one in gone)


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
