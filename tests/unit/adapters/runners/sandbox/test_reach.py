"""What the sandbox's user cannot reach by itself, and how much of the machine the calls leave to each other."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolgate.adapters.runners.sandbox import landlock, staging
from toolgate.adapters.runners.sandbox.backend import NOBODY, Backend, Files, User, sandbox_user
from toolgate.adapters.runners.sandbox.landlock import Landlock, Unconfined
from toolgate.adapters.runners.sandbox.layout import runtime_of
from toolgate.adapters.runners.sandbox.staging import Places
from toolgate.errors import SandboxError
from toolgate.ports.confinement import Confined, Finished

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has files that its sandboxes cannot reach")


@pytest.fixture
def home(workspace: Path) -> Path:
    """A home directory that only root may enter."""
    path = workspace / "home"
    path.mkdir(0o700)
    return path


def python(executable: Path, backend: Backend, *, readable: tuple[str, ...] = ()) -> Finished:
    script = "import sys, json; print(sys.prefix, json.__name__)"
    return backend.run(Confined(argv=(str(executable), "-I", "-c", script), readable=readable, timeout_s=60))


@only_root
def test_an_interpreter_below_a_closed_home_runs(backend: Backend, home: Path) -> None:
    venv.create(home / "venv", symlinks=True)
    finished = python(home / "venv" / "bin" / "python", backend)
    assert (finished.stdout.decode(), finished.stderr) == (f"{home}/venv json\n", b"")


@only_root
def test_a_link_into_a_closed_home_is_followed_there(backend: Backend, home: Path, workspace: Path) -> None:
    venv.create(home / "venv", symlinks=True)
    (workspace / "link").symlink_to(home / "venv")
    finished = python(workspace / "link" / "bin" / "python", backend)
    assert finished.stdout.decode().endswith(" json\n")


@only_root
def test_several_calls_at_once_share_a_closed_home(backend: Backend, home: Path) -> None:
    venv.create(home / "venv", symlinks=True)
    with ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(python, home / "venv" / "bin" / "python", backend) for _ in range(8)]
    assert {run.result().stdout.decode() for run in runs} == {f"{home}/venv json\n"}


@only_root
def test_the_rest_of_a_closed_home_stays_closed(backend: Backend, home: Path) -> None:
    (home / "secret").write_text("SECRET")
    (home / "given").mkdir()
    (home / "given" / "file").write_text("given")
    script = f"cat {home}/given/file; cat {home}/secret; ls {home}/.."
    finished = backend.run(Confined(argv=("/bin/sh", "-c", script), readable=(str(home / "given"),), timeout_s=60))
    assert finished.stdout.startswith(b"given")
    assert b"SECRET" not in finished.stdout
    assert (home / "secret").read_text() == "SECRET"


@only_root
def test_what_may_only_be_read_cannot_be_written_there(backend: Backend, home: Path) -> None:
    (home / "given").mkdir()
    finished = backend.run(
        Confined(argv=("/bin/touch", f"{home}/given/new"), readable=(str(home / "given"),), timeout_s=60)
    )
    assert finished.exit_code != 0
    assert not (home / "given" / "new").exists()


@only_root
def test_files_of_the_sandbox_users_own_below_a_closed_home_can_be_written(backend: Backend, home: Path) -> None:
    (home / "work").mkdir()
    shutil.chown(home / "work", NOBODY, NOBODY)
    finished = backend.run(
        Confined(argv=("/bin/touch", f"{home}/work/new"), writable=(str(home / "work"),), timeout_s=60)
    )
    assert (finished.exit_code, finished.stderr) == (0, b"")
    assert (home / "work" / "new").stat().st_uid == NOBODY


@only_root
def test_where_nothing_can_be_mounted_the_directory_in_the_way_is_named(
    home: Path, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "given").mkdir()
    failing = ["/bin/sh", "-c", "echo 'sandbox: not permitted' >&2; exit 1"]
    monkeypatch.setattr(staging, "stage_command", lambda _request: failing)
    confined = Confined(argv=("/bin/true",), readable=(str(home / "given"),), timeout_s=60)
    with pytest.raises(SandboxError, match=rf"cannot enter {home} .*not permitted.*CAP_SYS_ADMIN"):
        Landlock(sandbox_user(None, None), files).run(confined)


def test_what_anybody_can_reach_is_left_where_it_is() -> None:
    found = Places.of({"/nonexistent": False}, User(NOBODY, NOBODY))
    assert found.command([sys.executable]) == [sys.executable]
    assert found.problem is None


def test_calls_side_by_side_have_their_processes_each(backend: Backend) -> None:
    script = "for each in 1 2 3 4 5 6 7 8 9 10; do sleep 2 & done; wait; echo done"
    confined = Confined(argv=("/bin/sh", "-c", script), processes=24, timeout_s=120)
    with ThreadPoolExecutor(16) as pool:
        runs = [pool.submit(backend.run, confined) for _ in range(16)]
    assert {(run.result().stdout, run.result().stderr) for run in runs} == {(b"done\n", b"")}


def test_without_namespaces_the_limit_leaves_room_for_what_there_is(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "has_namespaces", lambda _user: False)
    confined = Confined(argv=("/bin/sh", "-c", "echo $(true)"), processes=24, timeout_s=60)
    for kind in (Landlock, Unconfined):
        assert kind(sandbox_user(None, None), files).run(confined).exit_code == 0


@pytest.fixture
def outside() -> Iterator[Path]:
    """A directory with a secret that the process can read, beside the workspace."""
    path = Path(tempfile.mkdtemp(prefix="toolgate-outside-"))
    (path / "bin").mkdir()
    (path / "lib").mkdir()
    (path / "key").write_text("CANARY")
    if os.geteuid() != 0:
        path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def hostile_program(workspace: Path, outside: Path) -> Path:
    """A program of the workspace's that prints a file from outside."""
    program = workspace / ".venv" / "bin" / "ruff"
    program.parent.mkdir(parents=True)
    (workspace / ".venv" / "lib").mkdir()
    program.write_text(f"#!/bin/sh\ncat {outside}/key; exit 3\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("way", ["home", "link", "file"])
def test_a_program_of_the_workspace_names_nothing_outside_that_it_may_read(
    backend: Backend, workspace: Path, outside: Path, way: str
) -> None:
    program = hostile_program(workspace, outside)
    home = f"{outside}/bin"
    if way != "home":
        (workspace / "base").mkdir()
        (workspace / "base" / "python3").symlink_to(outside if way == "link" else outside / "key")
        home = f"{workspace}/base"
    (workspace / ".venv" / "pyvenv.cfg").write_text(f"home = {home}\n")
    finished = backend.run(Confined(argv=(str(program),), readable=(str(workspace),), timeout_s=60))
    assert (finished.exit_code, finished.stdout) == (3, b"")


def test_the_first_line_of_a_program_of_the_workspace_grants_nothing(workspace: Path, outside: Path) -> None:
    program = hostile_program(workspace, outside)
    program.write_text(f"#!{outside}/bin/run\n")
    (outside / "bin" / "run").write_text("")
    assert runtime_of(str(program), (str(workspace),)) == ()
    assert str(outside) in runtime_of(str(program))  # where the operator named it


def test_a_virtual_environment_of_the_workspace_has_its_python(backend: Backend, workspace: Path) -> None:
    venv.create(workspace / ".venv", symlinks=True)
    finished = python(workspace / ".venv" / "bin" / "python", backend, readable=(str(workspace),))
    assert (finished.stdout.decode(), finished.stderr) == (f"{workspace}/.venv json\n", b"")
