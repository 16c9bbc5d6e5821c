"""Git in the sandbox: who commits, what protected files look like, worktrees, submodules, hostile settings."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.sandboxes import needs_bubblewrap

import toolgate
from toolgate.policy.profiles import render

pytestmark = needs_bubblewrap
SECRET = "TOKEN=canary-secret"


@pytest.fixture(autouse=True)
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "gitconfig"
    path.write_text("[user]\n\tname = Ada\n\temail = ada@example.com\n[core]\n\tsshCommand = touch /tmp/ran\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{role}_NAME", raising=False)
        monkeypatch.delenv(f"GIT_{role}_EMAIL", raising=False)
    return path


@pytest.fixture
async def gate(workspace: Path, tmp_path: Path) -> AsyncIterator[toolgate.Gate]:
    for name, text in render("developer").items():
        (tmp_path / name).write_text(
            text.replace(
                'decision: deny\n        reason: "it deletes files',
                'decision: ask\n        writes: true\n        reason: "it deletes files',
            )
        )
    async with toolgate.open(
        "memory://",
        workspace=workspace,
        policy=str(tmp_path / "toolgate.yaml"),
        built_in_tools=True,
        approver=lambda _approval: True,
    ) as opened:
        yield opened


def host(workspace: Path, *arguments: str) -> str:
    line = ["git", "-C", str(workspace), *arguments]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


def open_up(path: Path) -> None:
    """Let the sandbox's user, who is nobody where root runs the tests, change what is there."""
    subprocess.run(["chmod", "-R", "a+rwX", str(path)], check=True)


@pytest.fixture
def repository(workspace: Path) -> Path:
    """A repository that tracks `.env`, beside an untracked `.npmrc`."""
    host(workspace, "init", "-q", "-b", "trunk")
    host(workspace, "add", "notes.txt", "src", ".env")
    host(workspace, "commit", "-q", "-m", "first")
    (workspace / ".npmrc").write_text("canary-untracked")
    return workspace


async def run(gate: toolgate.Gate, *args: str, **more: object) -> toolgate.Result:
    return await gate.call("execute_command", {"command": "git", "args": list(args), **more})


async def ok(gate: toolgate.Gate, *args: str, **more: object) -> str:
    data = (await run(gate, *args, **more)).unwrap()
    assert data["exit_code"] == 0, data
    return str(data["stdout"])


async def test_a_commit_is_the_users(gate: toolgate.Gate, repository: Path) -> None:
    (repository / "notes.txt").write_text("new\n")
    await ok(gate, "commit", "-q", "-a", "-m", "second")
    assert host(repository, "log", "-1", "--format=%an %ae %cn %s") == "Ada ada@example.com Ada second\n"


async def test_a_repositorys_own_identity_goes_before_the_users(gate: toolgate.Gate, repository: Path) -> None:
    host(repository, "config", "user.email", "work@example.com")
    await ok(gate, "commit", "-q", "--allow-empty", "-m", "x")
    assert host(repository, "log", "-1", "--format=%an %ae") == "Ada work@example.com\n"


async def test_the_processs_identity_goes_before_all(
    gate: toolgate.Gate, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Process")
    await ok(gate, "commit", "-q", "--allow-empty", "-m", "x")
    assert host(repository, "log", "-1", "--format=%an %cn") == "Process Ada\n"


async def test_without_an_identity_the_two_commands_are_named(
    gate: toolgate.Gate, repository: Path, configured: Path
) -> None:
    configured.write_text("")
    result = await run(gate, "commit", "--allow-empty", "-m", "x")
    assert "git config --global user.name" in str(result.error)
    assert "git config --global user.email" in str(result.error)
    who = {f"GIT_{role}_{what}": "x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    await ok(gate, "commit", "-q", "--allow-empty", "-m", "x", environment=who)


async def test_an_unreadable_configuration_is_an_error(gate: toolgate.Gate, repository: Path, configured: Path) -> None:
    configured.write_text("[user\n")
    assert "cannot be read" in str((await run(gate, "commit", "--allow-empty", "-m", "x")).error)


async def test_protected_files_are_neither_emptied_nor_added(gate: toolgate.Gate, repository: Path) -> None:
    (repository / "new.txt").write_text("new")
    assert await ok(gate, "status", "--short") == "?? .npmrc\n?? new.txt\n"
    assert await ok(gate, "diff") == ""
    await ok(gate, "add", "-A")
    await ok(gate, "commit", "-q", "-a", "-m", "second")
    assert host(repository, "show", "--name-only", "--format=") == "new.txt\n"
    assert host(repository, "show", "HEAD:.env") == SECRET
    assert (repository / ".npmrc").read_text() == "canary-untracked"
    assert host(repository, "status", "--short") == "?? .npmrc\n"


async def test_a_difference_is_shown(gate: toolgate.Gate, repository: Path) -> None:
    (repository / "notes.txt").write_text("changed\n")
    assert "+changed" in await ok(gate, "diff")


async def test_stash_and_its_return_leave_protected_files_alone(gate: toolgate.Gate, repository: Path) -> None:
    (repository / "notes.txt").write_text("changed\n")
    (repository / "new.txt").write_text("new")
    await ok(gate, "stash", "-u")
    assert host(repository, "status", "--short") == "?? .npmrc\n"
    await ok(gate, "stash", "pop")
    assert (repository / "notes.txt").read_text() == "changed\n"
    assert (repository / "new.txt").exists()
    assert (repository / ".env").read_text() == SECRET
    assert host(repository, "stash", "list") == ""


async def test_a_switch_takes_a_tracked_protected_file_along(gate: toolgate.Gate, repository: Path) -> None:
    host(repository, "switch", "-q", "-c", "other")
    (repository / ".env").write_text("TOKEN=other")
    host(repository, "commit", "-q", "-a", "-m", "other")
    await ok(gate, "checkout", "-q", "trunk")
    assert (repository / ".env").read_text() == SECRET
    assert host(repository, "status", "--short") == "?? .npmrc\n"


async def test_clean_leaves_protected_files(gate: toolgate.Gate, repository: Path) -> None:
    (repository / "new.txt").write_text("new")
    await ok(gate, "clean", "-f", "-d")
    assert not (repository / "new.txt").exists()
    assert (repository / ".npmrc").read_text() == "canary-untracked"


async def test_what_would_take_a_changed_protected_file_for_emptied_is_refused(
    gate: toolgate.Gate, repository: Path
) -> None:
    (repository / ".env").write_text("TOKEN=canary-changed")
    (repository / "notes.txt").write_text("changed\n")
    for line in (
        ["add", "-A"],
        ["add", "."],
        ["-C", "src", "add", "-A"],
        ["commit", "-a", "-m", "x"],
        ["commit", "-am", "x"],
        ["commit", "-m", "x", "."],
        ["stash"],
        ["stash", "-u"],
        ["checkout", "-f", "trunk"],
        ["reset", "--hard"],
        ["diff"],
        ["grep", "canary"],
        ["status", "-v"],
        ["commit", "--no-such-flag", "-a"],
        ["no-such-subcommand"],
    ):
        error = str((await run(gate, *line)).error)
        assert "'.env' differs from the index" in error, line
        assert "canary" not in error
    assert await ok(gate, "status", "--short") == " M .env\n M notes.txt\n?? .npmrc\n"
    await ok(gate, "add", "notes.txt")
    await ok(gate, "commit", "-q", "-m", "second")
    assert host(repository, "show", "--name-only", "--format=") == "notes.txt\n"
    assert "canary-changed" not in await ok(gate, "log", "-p")
    assert (repository / ".env").read_text() == "TOKEN=canary-changed"


async def test_untracked_protected_files_are_in_no_output(gate: toolgate.Gate, repository: Path) -> None:
    for line in (["grep", "--untracked", "canary"], ["log", "-p"], ["show"], ["diff", "HEAD"], ["stash", "list"]):
        data = (await run(gate, *line)).data
        assert "canary-untracked" not in str(data), line
    for line in (["add", ".npmrc"], ["add", "-f", ".npmrc"], ["show", "HEAD:.env"], ["blame", ".env"]):
        assert not (await run(gate, *line)).success, line


async def test_a_tracked_folder_of_secrets_is_whole_and_the_rest_of_it_hidden(
    gate: toolgate.Gate, repository: Path
) -> None:
    (repository / ".aws").mkdir()
    (repository / ".aws" / "config").write_text("region")
    host(repository, "add", ".aws")
    host(repository, "commit", "-q", "-m", "aws")
    (repository / ".aws" / "credentials").write_text("canary-credentials")
    await ok(gate, "add", "-A")
    assert host(repository, "diff", "--cached", "--name-only") == ""


@pytest.mark.parametrize("version", ["2", "3", "4"])
async def test_every_form_of_the_index_is_read(gate: toolgate.Gate, repository: Path, version: str) -> None:
    for number in range(20):
        (repository / "src" / f"module_{number}.py").write_text("x")
    host(repository, "add", "src")
    (repository / "later.txt").write_text("x")
    host(repository, "add", "-N", "later.txt")  # gives an entry the longer form
    host(repository, "update-index", "--index-version", version)
    assert " M .env" not in await ok(gate, "status", "--short")


async def test_an_index_in_two_files_is_refused_by_name(gate: toolgate.Gate, repository: Path) -> None:
    host(repository, "update-index", "--split-index")
    assert "--no-split-index" in str((await run(gate, "status")).error)


async def test_a_repository_with_longer_names_of_content_works(gate: toolgate.Gate, workspace: Path) -> None:
    host(workspace, "init", "-q", "--object-format=sha256")
    host(workspace, "add", "-A")
    assert await ok(gate, "status", "--short") == "A  .env\nA  notes.txt\nA  src/main.py\n"


async def test_a_file_that_git_was_told_to_overlook_stays_hidden(gate: toolgate.Gate, repository: Path) -> None:
    host(repository, "update-index", "--skip-worktree", ".env")
    (repository / ".env").write_text("TOKEN=canary-local")
    await ok(gate, "add", "-A")
    assert host(repository, "diff", "--cached", "--name-only") == ""
    assert "canary-local" not in str((await run(gate, "grep", "-e", "TOKEN")).unwrap())


async def test_a_submodule_works_and_its_secrets_stay(gate: toolgate.Gate, repository: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / ".env").write_text("INNER=canary")
    host(inner, "init", "-q")
    host(inner, "add", "-A")
    host(inner, "commit", "-q", "-m", "inner")
    host(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "part")
    host(repository, "commit", "-q", "-m", "part")
    assert await ok(gate, "status", "--short") == "?? .npmrc\n"
    (repository / "part" / "code.py").write_text("x")
    await ok(gate, "-C", "part", "add", "-A")
    await ok(gate, "commit", "-q", "-m", "code", cwd="part")
    assert host(repository / "part", "show", "--name-only", "--format=") == "code.py\n"
    assert await ok(gate, "status", "--short") == " M part\n?? .npmrc\n"


async def test_a_worktree_of_a_repository_outside_works(gate: toolgate.Gate, workspace: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir(mode=0o755)
    host(outer, "init", "-q", "-b", "trunk")
    host(outer, "commit", "-q", "--allow-empty", "-m", "first")
    host(outer, "worktree", "add", "-q", "-b", "side", str(workspace / "tree"))
    open_up(outer)
    open_up(workspace)
    (workspace / "tree" / "code.py").write_text("x")
    assert await ok(gate, "status", "--short", cwd="tree") == "?? code.py\n"
    await ok(gate, "add", "-A", cwd="tree")
    await ok(gate, "commit", "-q", "-m", "side", cwd="tree")
    assert host(outer, "show", "--name-only", "--format=%s", "side") == "side\n\ncode.py\n"


async def test_a_pointer_that_is_not_answered_opens_nothing(
    gate: toolgate.Gate, workspace: Path, tmp_path: Path
) -> None:
    strange = tmp_path / "strange"
    strange.mkdir()
    host(strange, "init", "-q")
    (workspace / "trap").mkdir()
    (workspace / "trap" / ".git").write_text(f"gitdir: {strange / '.git'}\n")
    assert "does not name" in str((await run(gate, "log", cwd="trap")).error)
    fake = workspace / "fake"
    fake.mkdir()
    (fake / "commondir").write_text(f"{strange / '.git'}\n")
    (fake / "config").write_text(f"[core]\n\tworktree = {workspace / 'trap'}\n")
    (workspace / "trap" / ".git").write_text(f"gitdir: {fake}\n")
    assert "does not name" in str((await run(gate, "log", cwd="trap")).error)
    (fake / "gitdir").write_text(f"{workspace / 'trap' / '.git'}\n")
    assert "does not name" in str((await run(gate, "log", cwd="trap")).error)
    (workspace / "trap" / ".git").unlink()
    (workspace / "trap" / ".git").symlink_to(strange / ".git")
    assert "is a link" in str((await run(gate, "log", cwd="trap")).error)


HOSTILE = (
    ("filter.evil.clean", "status"),
    ("filter.evil.smudge", "status"),
    ("filter.evil.process", "diff"),
    ("diff.evil.textconv", "diff"),
    ("merge.evil.driver", "log"),
    ("diff.external", "log"),
    ("core.fsmonitor", "status"),
    ("core.hooksPath", "status"),
    ("gpg.ssh.program", "log"),
)


@pytest.mark.parametrize("line", ["./git status", "tools/git status", ".venv/bin/git status", "PLACE/git status"])
async def test_a_file_called_git_is_not_git(gate: toolgate.Gate, repository: Path, tmp_path: Path, line: str) -> None:
    proof = tmp_path / "proof"
    for folder in (repository, repository / "tools", repository / ".venv" / "bin"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "git").write_text(f"#!/bin/sh\necho ran\ncat .env\necho $GIT_AUTHOR_NAME\necho ran > {proof}\n")
        (folder / "git").chmod(0o755)
    words = line.replace("PLACE", str(repository))
    data = (await gate.call("execute_command", {"command": words})).unwrap()
    assert (data["stdout"].split(), proof.exists()) == (["ran"], False)


@pytest.mark.parametrize(("key", "subcommand"), HOSTILE)
async def test_no_program_of_a_repository_runs(
    gate: toolgate.Gate, repository: Path, key: str, subcommand: str
) -> None:
    (repository / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    (repository / "notes.txt").write_text("changed\n")
    host(repository, "config", key, "echo canary-ran >&2; cat")
    data = (await run(gate, subcommand)).unwrap()
    assert data["exit_code"] == 0, data
    assert "canary-ran" not in str(data)


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("diff.evil.command", ["diff"]),
        ("diff.external", ["diff"]),
        ("filter.evil.clean", ["add", "notes.txt"]),
        ("url.https://evil.example/.insteadOf", ["fetch"]),
        ("http.proxy", ["fetch"]),
        ("http.https://x.example.proxy", ["push"]),
        ("credential.https://x.example.helper", ["fetch"]),
        ("remote.origin.proxy", ["fetch"]),
        ("core.sshCommand", ["fetch"]),
        ("includeIf.gitdir:/**.path", ["fetch"]),
        ("includeIf.onbranch:trunk.path", ["add", "notes.txt"]),
        ("includeIf.onbranch:trunk.path", ["diff"]),
    ],
)
async def test_a_setting_that_cannot_be_ignored_is_refused_by_name(
    gate: toolgate.Gate, repository: Path, key: str, line: list[str]
) -> None:
    host(repository, "config", key, "x")
    error = str((await run(gate, *line)).error)
    assert "is refused: the repository's configuration sets" in error
    assert key.rpartition(".")[0].lower() in error.lower()


@pytest.mark.parametrize("url", ["git@example.com:x.git", "ssh://git@example.com/x.git"])
async def test_a_remote_by_ssh_is_refused_where_there_is_no_agent(
    gate: toolgate.Gate, repository: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    host(repository, "remote", "add", "origin", url)
    for line in (["fetch"], ["push"], ["pull", "origin"]):
        assert "ssh://git@example.com is reached by ssh" in str((await run(gate, *line)).error)
    assert url in await ok(gate, "remote", "-v")
