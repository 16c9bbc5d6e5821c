"""What a runner finds out before it connects, and what it refuses to begin with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.sandboxes import needs_sandbox
from tests.unit.interfaces.runner.stage import POLICY

import toolgate
from toolgate.adapters.runners.sandbox.probes import ProbeReport
from toolgate.adapters.runners.sandbox.sandbox import Sandbox
from toolgate.errors import PolicyError, UsageError
from toolgate.interfaces.runner.check import check_reach, findings, policy_path
from toolgate.interfaces.runner.local import LocalGate, open_local
from toolgate.interfaces.runner.state import StateFolder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@contextmanager
def opened(workspace: Path, *, state: Path | None = None, **options: Any) -> Iterator[tuple[LocalGate, StateFolder]]:
    folder = state or workspace.parent / "state"
    with StateFolder(folder, server="http://localhost:1", project="demo", workspace=workspace) as at:
        if "policy" not in options:
            options["policy"] = policy_path(workspace, None, None, at)
        local = open_local(state=at, project="demo", workspace=workspace, **options)
        try:
            yield local, at
        finally:
            local.gate.close()


def told(workspace: Path, **options: Any) -> str:
    shown = {name: options.pop(name, False) for name in ("confirm", "trust")}
    with opened(workspace, **options) as (local, state):
        return "\n".join(notice.text for notice in findings(local, state, workspace, **shown))


def test_without_a_policy_nothing_begins(workspace: Path) -> None:
    with pytest.raises(UsageError, match=r"no policy.*toolgate init.*--policy.*--profile"), opened(workspace):
        pytest.fail("it opened")


def test_a_policy_is_named_or_built_in_but_not_both(workspace: Path) -> None:
    with StateFolder(workspace.parent / "s", server="x", project="p", workspace=workspace) as state:
        with pytest.raises(UsageError, match="not both"):
            policy_path(workspace, workspace, "readonly", state)
        with pytest.raises(UsageError, match="no policy at"):
            policy_path(workspace, workspace / "missing.yaml", None, state)
        assert (policy_path(workspace, None, "readonly", state) / "toolgate.yaml").is_file()


def test_a_policy_that_is_wrong_is_not_used(workspace: Path) -> None:
    (workspace / "toolgate.yaml").write_text("tools: {read_file: {decision: perhaps}}")
    with pytest.raises(PolicyError, match="decision"), opened(workspace):
        pytest.fail("it opened")


def test_it_says_what_a_server_may_do(workspace: Path) -> None:
    (workspace / "toolgate.yaml").write_text(POLICY)
    said = told(workspace, only=["read_file", "edit_file", "delete_file"])
    assert "where no rule speaks: deny" in said
    assert "allow: read_file" in said
    assert "ask: edit_file" in said
    assert "deny: delete_file" in said
    assert "sandbox: not needed" in said
    assert "toolgate inbox" in said
    assert "ask: read_file, edit_file" in told(workspace, only=["read_file", "edit_file"], confirm=True)
    assert "a person's yes at the server counts" in told(workspace, only=["edit_file"], trust=True)


@needs_sandbox
def test_a_sandbox_that_holds_is_named(workspace: Path) -> None:
    with StateFolder(workspace.parent / "p", server="x", project="p", workspace=workspace) as state:
        policy = policy_path(workspace, None, "developer", state)
    said = told(workspace, policy=policy, only=["execute_command"])
    assert "holds" in said
    assert "by its arguments: execute_command" in said


def test_without_a_sandbox_its_tools_are_not_offered(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = ProbeReport(backend="x", problem="nothing confines here")
    monkeypatch.setattr(Sandbox, "report", lambda _self, _name: broken)
    (workspace / "toolgate.yaml").write_text(POLICY)
    said = told(workspace, only=["read_file", "execute_command"])
    assert "not offered, since no sandbox holds: execute_command" in said
    with pytest.raises(UsageError, match="No tool is left"):
        told(workspace, only=["execute_command"])


@pytest.mark.parametrize("inside", ["state", "policy", "token"])
def test_what_must_be_out_of_reach_of_a_server_is(workspace: Path, inside: str) -> None:
    policy = workspace / "rules.yaml" if inside == "policy" else workspace.parent / "rules.yaml"
    policy.write_text(POLICY)
    state = workspace / "state" if inside == "state" else None
    private = [workspace / "token"] if inside == "token" else []
    with opened(workspace, policy=policy, state=state) as (local, at), pytest.raises(UsageError, match="workspace"):
        check_reach(local, at, private)


def test_what_the_policy_protects_is_out_of_reach(workspace: Path) -> None:
    (workspace / "toolgate.yaml").write_text(POLICY + 'protected: ["state/**", "token"]\n')
    with opened(workspace, state=workspace / "state") as (local, at):
        check_reach(local, at, [workspace / "token"])


def test_a_tool_that_is_not_there_or_runs_elsewhere_is_not_offered(workspace: Path) -> None:
    (workspace / "toolgate.yaml").write_text(POLICY)
    with pytest.raises(UsageError, match=r"no tool `fly`.*read_file"), opened(workspace, only=["fly"]):
        pytest.fail("it opened")
    far = toolgate.ToolDefinition("far", {}, lambda _given: toolgate.ToolOutput.ok(), placement="client")
    with pytest.raises(UsageError, match="runs elsewhere"), opened(workspace, more=[far]):
        pytest.fail("it opened")
    mine = toolgate.ToolDefinition("read_file", {}, lambda _given: toolgate.ToolOutput.ok())
    with pytest.raises(UsageError, match="built in already"), opened(workspace, more=[mine]):
        pytest.fail("it opened")
