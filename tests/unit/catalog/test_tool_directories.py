"""The project's own tools and a person's tool directories, really run in each sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.sandboxes import needs_bubblewrap, needs_sandbox

import toolgate

pytestmark = needs_sandbox
BACKENDS = [pytest.param("bubblewrap", marks=needs_bubblewrap), "landlock"]
POLICY = """
version: 1
tool_directories:
  ["${WORKSPACE}/.venv/bin", HOME/.cargo/bin, HOME/.pyenv/shims, "HOME/.nvm/versions/node/*/bin", HOME/bin]
tools:
  execute_command:
    commands: {unknown: ask}
    sandbox: {backend: BACKEND}
commands:
  python3:
    from_workspace: true
    flags: {-c: {value: str, ends: true, spares: script}}
    positionals: [{name: script, value: path, at_least: 1}, {name: argument, value: str, at_most: any}]
  look: {from_workspace: true}
  put: {from_workspace: true, writes: true}
  start: {writes: true, positionals: [{name: word, at_most: any}]}
  cargo: {switches: --version}
  node: {switches: --version}
  script-of-node: {}
  pyenv-tool: {}
  sh: {positionals: [{name: script, value: path}]}
  cat: {}
  git: {subcommands: {status: {}}}
"""


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def home(workspace: Path) -> Iterator[Path]:
    """A person's home with the shapes that version managers have."""
    found = workspace.parent / f"{workspace.name}-home"
    found.mkdir(mode=0o755)
    proxied = '#!/bin/sh\nexec "$RUSTUP_HOME/toolchains/stable/bin/cargo" "$CARGO_HOME"\n'
    program(found / ".cargo" / "bin" / "cargo", proxied)
    program(found / ".rustup" / "toolchains" / "stable" / "bin" / "cargo", '#!/bin/sh\necho "cargo of $1"\n')
    (found / ".cargo" / "credentials.toml").write_text("canary-secret")
    shim = f'#!/bin/sh\nexport PYENV_ROOT="{found}/.pyenv"\nexec "{found}/.pyenv/libexec/pyenv" exec pyenv-tool\n'
    program(found / ".pyenv" / "shims" / "pyenv-tool", shim)
    program(found / ".pyenv" / "libexec" / "pyenv", '#!/bin/sh\nexec "$PYENV_ROOT/versions/3/bin/$2"\n')
    program(found / ".pyenv" / "versions" / "3" / "bin" / "pyenv-tool", "#!/bin/sh\necho managed\n")
    node = found / ".nvm" / "versions" / "node"
    program(node / "v9.0.0" / "bin" / "node", "#!/bin/sh\necho nine\n")
    program(node / "v20.1.0" / "bin" / "node", '#!/bin/sh\n. "$(dirname "$0")/../lib/said"\n')
    program(node / "v20.1.0" / "lib" / "said", "echo twenty\n")
    program(node / "v20.1.0" / "bin" / "script-of-node", "#!/usr/bin/env node\n")
    yield found
    shutil.rmtree(found)


@pytest.fixture(params=BACKENDS)
async def gate(request: pytest.FixtureRequest, workspace: Path, home: Path) -> AsyncIterator[toolgate.Gate]:
    policy = home / "policy.yaml"
    policy.write_text(POLICY.replace("HOME", str(home)).replace("BACKEND", request.param))
    async with toolgate.open(
        "memory://", workspace=workspace, policy=policy, built_in_tools=True, approver=lambda _: False
    ) as opened:
        yield opened


async def said(gate: toolgate.Gate, line: str) -> str:
    data = (await gate.call("execute_command", {"command": line})).unwrap()
    return str(data["stdout"]) + str(data["stderr"])


async def test_python_is_the_workspaces_virtual_environment(gate: toolgate.Gate, workspace: Path) -> None:
    venv.create(workspace / ".venv", symlinks=True)
    (package,) = (workspace / ".venv" / "lib").glob("python3*/site-packages")
    (package / "only_here.py").write_text("WORD = 'of the project'\n")
    (workspace / "check.py").write_text("import only_here, sys\nprint(only_here.WORD, sys.prefix)\n")
    assert await said(gate, "python3 check.py") == f"of the project {os.path.realpath(workspace)}/.venv\n"
    assert "of the project" in await said(gate, ".venv/bin/python3 check.py")
    (workspace / "run.sh").write_text("python3 check.py\n")  # what a Makefile does
    assert "of the project" in await said(gate, "sh run.sh | cat")


async def test_a_program_of_the_workspace_has_no_more_rights_than_its_grammar(
    gate: toolgate.Gate, workspace: Path
) -> None:
    for name in ("look", "put"):
        program(workspace / ".venv" / "bin" / name, f"#!/bin/sh\necho x > src/made-by-{name}\ncat .env\n")
    for folder in (workspace, workspace / "src"):
        folder.chmod(0o777)
    assert "canary" not in await said(gate, "look") + await said(gate, "put")
    assert not (workspace / "src" / "made-by-look").exists()
    assert (workspace / "src" / "made-by-put").exists()


@pytest.fixture
def repository(workspace: Path) -> Path:
    subprocess.run(["git", "init", "-q", workspace], check=True)
    return workspace


async def test_git_never_starts_what_lies_in_the_workspace(gate: toolgate.Gate, repository: Path) -> None:
    program(repository / ".venv" / "bin" / "git", "#!/bin/sh\necho planted\n")
    program(repository / ".venv" / "bin" / "git-frob", "#!/bin/sh\necho planted\n")
    assert "planted" not in await said(gate, "git status")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cargo --version", "cargo of HOME/.cargo\n"),
        ("pyenv-tool", "managed\n"),
        ("node --version", "twenty\n"),
        ("script-of-node", "twenty\n"),
    ],
)
async def test_what_version_managers_start_is_there(gate: toolgate.Gate, home: Path, line: str, expected: str) -> None:
    assert await said(gate, line) == expected.replace("HOME", str(home))


async def test_a_tool_directory_outside_cannot_be_written_and_shows_no_secrets(gate: toolgate.Gate, home: Path) -> None:
    home.chmod(0o777)
    for folder in (home / ".cargo", home / ".cargo" / "bin", home / "bin"):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
    text = f"#!/bin/sh\ncat {home}/.cargo/credentials.toml\necho x > {home}/.cargo/bin/planted\necho x > {home}/bin/y\n"
    program(home / "bin" / "start", text)
    assert "canary" not in await said(gate, "start")
    assert not (home / ".cargo" / "bin" / "planted").exists()
    assert not (home / "bin" / "y").exists()
