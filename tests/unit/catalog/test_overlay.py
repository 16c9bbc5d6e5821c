"""Commands in an overlay: they run once before anybody is asked, and what they changed is applied, or taken back."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sandboxes import needs_bubblewrap

import toolgate
from toolgate.kernel.call import Status
from toolgate.kernel.output import Result

pytestmark = needs_bubblewrap
POLICY = """
version: 1
default: ask
tools:
  execute_command:
    commands: {overlay: true, unknown: ask, run_later: RUN_LATER}
    sandbox: {disk_mb: 20}
commands:
  sh: {decision: DECISION, writes: true, flags: {-c: str}, positionals: [{name: word, at_most: any}]}
  cat: {positionals: [{name: path, value: path, at_least: 1, at_most: any}]}
  mkdir: {writes: true, positionals: [{name: path, value: path, at_least: 1, at_most: any}]}
  touch: {writes: true, positionals: [{name: path, value: path, at_least: 1, at_most: any}]}
  ls: {writes: true, network: true}
  head: {network: true, positionals: [{name: path, value: path}]}
  make: {writes: true, positionals: [{name: target, at_most: any}]}
  git:
    writes: true
    subcommands:
      add: {positionals: [{name: path, value: path, at_most: any}]}
      commit: {flags: {-m: str}}
      init: {positionals: [{name: path, value: path, at_most: any}]}
  python3: {writes: true, flags: {-m: str, -c: str}, positionals: [{name: word, at_most: any}], interspersed: false}
"""
Run = Callable[..., Awaitable[Result]]
Opened = Callable[..., Awaitable[tuple[toolgate.Gate, Run]]]


class Person:
    """Says yes, after whatever happens `before` that; keeps the questions."""

    def __init__(self) -> None:
        self.questions: list[toolgate.Approval] = []
        self.before: Callable[[], object] = list

    def __call__(self, approval: toolgate.Approval) -> bool:
        self.questions.append(approval)
        self.before()
        return True


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def opened(workspace: Path, person: Person) -> AsyncIterator[Opened]:
    policy = workspace.parent / f"{workspace.name}.yaml"
    gates: list[toolgate.Gate] = []

    async def make(decision: str = "allow", run_later: str = "report", **changed: str) -> tuple[toolgate.Gate, Run]:
        text = POLICY.replace("DECISION", decision).replace("RUN_LATER", run_later)
        for old, new in changed.items():
            text = text.replace(f"{old}:", f"{new}:")
        policy.write_text(text)
        gate = toolgate.open("memory://", workspace=workspace, policy=policy, built_in_tools=True, approver=person)
        gates.append(gate)

        async def run(script: str, **more: Any) -> Result:
            return await gate.call("execute_command", {"command": "sh", "args": ["-c", script], **more})

        return gate, run

    yield make
    for gate in gates:
        await gate.aclose()
    policy.unlink()


def tree(workspace: Path) -> dict[str, str]:
    """What there is, without the secret: files with their text, links with their target."""
    found = {}
    for path in sorted(workspace.rglob("*")):
        if path.name == ".env" or ".git" in path.parts:
            continue
        name = str(path.relative_to(workspace))
        found[name] = f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text() if path.is_file() else "/"
    return found


async def test_a_command_that_runs_unasked_changes_what_it_changed_in_its_overlay(
    opened: Opened, workspace: Path
) -> None:
    _, run = await opened()

    result = await run(
        "echo four >> notes.txt; rm -r src; mkdir src; echo n > src/new.py; mkdir -p a/b; echo deep > a/b/c; "
        "ln -s notes.txt link; chmod 755 notes.txt; ln notes.txt other; echo said; echo wrong >&2; exit 3"
    )

    assert result.status is Status.COMPLETED
    assert (result.data["stdout"], result.data["stderr"], result.data["exit_code"]) == ("said\n", "wrong\n", 3)
    assert tree(workspace) == {
        "a": "/",
        "a/b": "/",
        "a/b/c": "deep\n",
        "link": "-> notes.txt",
        "notes.txt": "one\ntwo\nthree\nfour\n",
        "other": "one\ntwo\nthree\nfour\n",
        "src": "/",
        "src/new.py": "n\n",
    }
    assert stat.S_IMODE((workspace / "notes.txt").stat().st_mode) == 0o755
    assert os.path.samefile(workspace / "notes.txt", workspace / "other")


async def test_undo_takes_back_everything_a_command_changed(opened: Opened, workspace: Path) -> None:
    gate, run = await opened()
    before = tree(workspace)
    modes = {path: path.stat().st_mode for path in workspace.rglob("*")}

    result = await run("echo x >> notes.txt; rm -r src; mkdir -p a/b; echo y > a/b/c; ln notes.txt z; chmod 700 .")
    undone = await gate.undo(result.call_id)

    assert undone.success, undone.error
    assert tree(workspace) == before
    assert {path: path.stat().st_mode for path in workspace.rglob("*")} == modes


async def test_undo_is_refused_where_a_file_was_edited_since(opened: Opened, workspace: Path) -> None:
    gate, run = await opened()
    result = await run("echo x > notes.txt")
    (workspace / "notes.txt").write_text("by a person")

    undone = await gate.undo(result.call_id)

    assert (undone.status, undone.error_code) == (Status.FAILED, "undo_conflict")
    assert (workspace / "notes.txt").read_text() == "by a person"
    forced = await gate.undo(result.call_id, force=True)
    assert forced.success
    assert (workspace / "notes.txt").read_text() == "one\ntwo\nthree\n"


async def test_a_person_sees_the_diff_before_anything_reaches_the_workspace(
    opened: Opened, workspace: Path, person: Person
) -> None:
    gate, run = await opened("ask")
    seen: list[dict[str, str]] = []
    before = tree(workspace)
    person.before = lambda: seen.append(tree(workspace))

    result = await run("echo four >> notes.txt; date +%N > stamp; cat stamp")

    assert result.success, result.error
    assert seen == [before]
    (question,) = person.questions
    assert question.undoable
    assert question.preview["changes"] == ["change notes.txt, 19 bytes", "create stamp, 10 bytes"]
    assert question.preview["exit_code"] == 0
    assert "--- a/notes.txt\n+++ b/notes.txt\n@@ -1,3 +1,4 @@\n one\n two\n three\n+four\n" in question.preview["diff"]
    stamp = (workspace / "stamp").read_text()
    assert f"+{stamp}" in question.preview["diff"], "it did not run a second time"
    assert result.data["stdout"] == stamp
    assert question.digest != ""
    call = await gate.get(result.call_id)
    assert call is not None


async def test_an_edit_from_a_process_without_the_tool_applies_no_change_of_the_old_line(
    workspace: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(POLICY.replace("DECISION", "ask").replace("RUN_LATER", "report"))
    seen: list[toolgate.Approval] = []

    def approve_the_second(approval: toolgate.Approval) -> bool | None:
        seen.append(approval)
        return True if len(seen) > 1 else None

    async with toolgate.open(
        "memory://", workspace=workspace, policy=policy, built_in_tools=True, approver=approve_the_second
    ) as gate:
        asked = await gate.call("execute_command", {"command": "sh -c 'echo a > a'"}, wait=False)
        held = gate.registry.find("execute_command")
        assert held is not None
        gate.registry.discard("execute_command")
        await gate.approvals.edit(str(asked.approval_id), {"command": "sh -c 'echo b > b'"}, by="ann")
        gate.register(held)

        result = await gate.wait(asked.call_id)

    assert result.success, result.error
    assert [one.preview["changes"] for one in seen] == [["create a, 2 bytes"], ["create b, 2 bytes"]]
    assert (workspace / "b").read_text() == "b\n"
    assert not (workspace / "a").exists()


async def test_nothing_is_applied_where_a_touched_file_was_edited_meanwhile(
    opened: Opened, workspace: Path, person: Person
) -> None:
    _, run = await opened("ask")
    person.before = lambda: (workspace / "notes.txt").write_text("edited")

    result = await run("echo x > notes.txt; echo y > new.txt")

    assert result.status is Status.FAILED
    assert "'notes.txt' changed since the command ran; nothing was applied" in (result.error or "")
    assert (workspace / "notes.txt").read_text() == "edited"
    assert not (workspace / "new.txt").exists()
    assert len(person.questions) == 1


async def test_a_file_that_nobody_touched_may_be_edited_meanwhile(
    opened: Opened, workspace: Path, person: Person
) -> None:
    _, run = await opened("ask")
    person.before = lambda: (workspace / "src" / "main.py").write_text("edited")

    result = await run("echo x > new.txt")

    assert result.success, result.error
    assert (workspace / "new.txt").read_text() == "x\n"


async def test_a_folder_that_somebody_put_a_file_into_is_not_deleted(
    opened: Opened, workspace: Path, person: Person
) -> None:
    _, run = await opened("ask")
    person.before = lambda: (workspace / "src" / "kept.txt").write_text("a person's")

    result = await run("rm -r src")

    assert result.status is Status.FAILED
    assert (workspace / "src" / "kept.txt").read_text() == "a person's"
    assert (workspace / "src" / "main.py").exists()


async def test_a_changed_file_that_runs_later_has_a_person_asked(
    opened: Opened, workspace: Path, person: Person
) -> None:
    _, run = await opened(run_later="ask")

    quiet = await run("echo x > plain.txt")
    asked = await run("echo all: > Makefile")

    assert quiet.success
    assert asked.success
    (question,) = person.questions
    assert "It changed 1 file that runs later: Makefile" in "; ".join(question.reasons)
    assert (workspace / "Makefile").read_text() == "all:\n"


async def test_a_changed_file_that_runs_later_is_never_applied_where_the_policy_denies_it(
    opened: Opened, workspace: Path, person: Person
) -> None:
    _, run = await opened("ask", run_later="deny")
    (workspace / "Justfile").symlink_to("notes.txt")

    for script in ("mkdir -p .github/workflows; echo x > .github/workflows/ci.yml", "echo evil >> notes.txt"):
        result = await run(f"{script}; echo y > plain.txt")

        assert result.status is Status.DENIED
        assert "run_later: deny" in (result.error or "")
        assert not (workspace / "plain.txt").exists()
    assert person.questions == []


async def test_a_report_names_files_that_run_later(opened: Opened, workspace: Path) -> None:
    _, run = await opened()

    result = await run("echo x > conftest.py; echo y > plain.py")

    assert result.data["run_later"] == ["conftest.py"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("mkfifo pipe", "a device, a pipe or a socket"),
        ("printf x > \"$(printf 'bad\\377')\"", "not UTF-8"),
        ("i=0; while [ $i -lt 10100 ]; do : > f$i; i=$((i+1)); done", "more files than a change set"),
        ("head -c 25000000 /dev/zero > big", "it wrote more than it may"),
        ("mkdir -p x/.git/hooks; echo evil > x/.git/hooks/post-checkout", "steers programs"),
        ("echo evil > .bashrc", "steers programs"),
        ("echo 'version: 1' > toolgate.yaml", "steers programs"),
        ("mkdir -p bare/objects bare/refs; echo ref > bare/HEAD", "steers programs"),
        ("mkdir TOOLGATE.yml", "steers programs"),
    ],
)
async def test_what_may_never_be_applied_is_refused_before_anybody_is_asked(
    opened: Opened, workspace: Path, person: Person, script: str, why: str
) -> None:
    _, run = await opened("ask")
    before = tree(workspace)

    result = await run(f"{script} 2>/dev/null; echo y > plain.txt")

    assert result.status in (Status.FAILED, Status.DENIED)
    assert "Nothing was applied" in (result.error or "")
    assert why in (result.error or "")
    assert tree(workspace) == before
    assert person.questions == []


async def test_secrets_are_as_hidden_in_an_overlay_as_elsewhere(opened: Opened, workspace: Path) -> None:
    _, run = await opened()

    result = await run("cat .env; mv .env moved; cp .env copy; cat moved copy; rm -f .env")

    assert "canary" not in str(result.data)
    assert (workspace / ".env").read_text() == "TOKEN=canary-secret"


async def test_a_file_outside_that_a_hard_link_or_a_link_leads_to_stays_as_it_is(
    opened: Opened, workspace: Path
) -> None:
    _, run = await opened()
    outside = workspace.parent / f"{workspace.name}-outside"
    os.link(outside, workspace / "hard")
    (workspace / "soft").symlink_to(outside)

    result = await run("echo evil > hard; echo evil > soft; echo evil >> ../x; true")

    assert result.success, result.error
    assert outside.read_text() == "canary-outside"
    assert (workspace / "hard").read_text() == "evil\n"


async def test_a_folder_that_became_a_link_meanwhile_leads_nothing_out(
    opened: Opened, workspace: Path, person: Person, tmp_path: Path
) -> None:
    _, run = await opened("ask")
    target = tmp_path / "target"
    target.mkdir()

    def swap() -> None:
        (workspace / "src").rename(workspace / "away")
        (workspace / "src").symlink_to(target)

    person.before = swap
    result = await run("echo x > src/new.py")

    assert result.status is Status.FAILED
    assert list(target.iterdir()) == []


async def test_a_line_makes_a_folder_and_goes_on_in_it(opened: Opened, workspace: Path) -> None:
    gate, _ = await opened()

    result = await gate.call("execute_command", {"command": "mkdir build && cd build && touch made"})

    assert result.success, result.error
    assert (workspace / "build" / "made").exists()
    lost = await gate.call("execute_command", {"command": "mkdir again && cd nowhere && touch made"})
    assert lost.data["exit_code"] == 1
    assert (workspace / "again").is_dir()


async def test_what_only_reads_runs_without_an_overlay(opened: Opened) -> None:
    gate, _ = await opened()

    result = await gate.call("execute_command", {"command": "cat", "args": ["notes.txt"]})

    assert result.data["stdout"] == "one\ntwo\nthree\n"
    assert "overlay" not in result.data
    undone = await gate.undo(result.call_id)
    assert undone.error_code == "undo_failed"


@pytest.mark.parametrize("line", ["ls", "head notes.txt && touch made", "head notes.txt | sh -c 'cat > made'"])
async def test_what_writes_and_has_a_network_is_refused(opened: Opened, person: Person, line: str) -> None:
    gate, _ = await opened()

    result = await gate.call("execute_command", {"command": line})

    assert result.status is Status.DENIED
    assert "an overlay run has no network" in (result.error or "")
    assert (result.error or "").startswith(f"'{line.split()[0]}' is refused")
    assert person.questions == []


async def test_a_stopped_command_applies_nothing(opened: Opened, workspace: Path) -> None:
    _, run = await opened()

    result = await run("echo x > made; sleep 20", timeout=1)

    assert result.status is Status.FAILED
    assert "timed out; nothing was applied" in (result.error or "")
    assert not (workspace / "made").exists()


async def test_git_commits_in_an_overlay(opened: Opened, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.com")
    git(workspace, "init", "-q", "-b", "main")
    gate, _ = await opened()

    result = await gate.call("execute_command", {"command": "git add notes.txt && git commit -m first"})

    assert result.data["exit_code"] == 0, result
    assert git(workspace, "log", "--format=%an %s") == (0, "Ann first\n")
    assert git(workspace, "fsck", "--strict")[0] == 0
    await gate.undo(result.call_id)
    assert git(workspace, "log")[0] != 0


def git(workspace: Path, *words: str) -> tuple[int, str]:
    """Run Git outside, and return its exit code and what it said."""
    done = subprocess.run(["git", "-C", workspace, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


async def test_a_link_of_the_same_line_leads_no_output_of_git_into_its_repository(
    opened: Opened, workspace: Path
) -> None:
    gate, _ = await opened()
    await gate.call("execute_command", {"command": "git", "args": ["init"]})
    plant = "python3 -c \"import os; os.symlink('.git/commondir', 'out')\""

    result = await gate.call("execute_command", {"command": f"{plant} && git add notes.txt > out"})

    assert ".git/commondir', which steers" in str(result.error)
    assert not (workspace / ".git" / "commondir").exists()


async def test_git_makes_a_repository_in_an_overlay(opened: Opened, workspace: Path) -> None:
    gate, _ = await opened()

    result = await gate.call("execute_command", {"command": "git", "args": ["init", "new"]})

    assert result.data["exit_code"] == 0, result
    assert (workspace / "new" / ".git" / "HEAD").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
async def test_make_builds_once_in_an_overlay(opened: Opened, workspace: Path) -> None:
    gate, _ = await opened()
    (workspace / "Makefile").write_text("out: notes.txt\n\tcp notes.txt out\n")

    first = await gate.call("execute_command", {"command": "make"})
    second = await gate.call("execute_command", {"command": "make"})

    assert "cp notes.txt out" in first.data["stdout"]
    assert "up to date" in second.data["stdout"], "the times of what it made are kept"
    assert second.data["overlay"] == "no changes"


async def test_where_only_landlock_works_an_overlay_is_refused(workspace: Path, tmp_path: Path, person: Person) -> None:
    policy = tmp_path / "policy.yaml"
    text = POLICY.replace("DECISION", "ask").replace("RUN_LATER", "report")
    policy.write_text(text.replace("disk_mb: 20", "backend: landlock"))

    async with toolgate.open(
        "memory://", workspace=workspace, policy=policy, built_in_tools=True, approver=person
    ) as gate:
        result = await gate.call("execute_command", {"command": "touch", "args": ["x"]})

    assert result.status is Status.FAILED
    assert "needs bubblewrap" in (result.error or "")
    assert not (workspace / "x").exists()
    assert person.questions == []
