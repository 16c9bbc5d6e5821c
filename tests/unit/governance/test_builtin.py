"""The built-in tools behind a layer, from request to result; and commands by themselves."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from toolgate import governance
from toolgate.errors import UsageError
from toolgate.governance import ModeManager, ToolExecutionLayer, TraceContext, execute_shell_command_sandboxed

FILE = """
tools:
  write_file:
    allowed_in_modes: ["NORMAL"]
    allowed_paths: ["${WORKSPACE}/notes/**"]
"""


@pytest.fixture
def layer(tmp_path: Path) -> Any:
    (tmp_path / "notes").mkdir()
    (tmp_path / "a.txt").write_text("alpha")
    config = governance.load_governance(FILE, workspace=tmp_path)
    with ToolExecutionLayer(governance.builtin_registry(tmp_path), config, ModeManager()) as made:
        yield made


def test_an_orchestrator_reads_writes_and_is_told_what_it_may_not(
    layer: ToolExecutionLayer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trace = TraceContext.new_trace()
    with caplog.at_level(logging.INFO, logger="toolgate.calls"):
        read = layer.execute_tool("read_file", {"path": "a.txt"}, trace)
        written = layer.execute_tool("write_file", {"path": "notes/b.txt", "content": "beta"}, trace)
        refused = layer.execute_tool("write_file", {"path": "b.txt", "content": "beta"}, trace)
    assert (read.success, "alpha" in str(read.output)) == (True, True)
    assert written.success, written.error
    assert (tmp_path / "notes" / "b.txt").read_text() == "beta"
    assert refused.error == "Permission denied: Path b.txt not in allowed paths"
    assert not (tmp_path / "b.txt").exists()
    told = [record.getMessage() for record in caplog.records if record.name == "toolgate.calls"]
    assert told.count("tool_call_completed") == 2
    assert told[-1] == "tool_call_blocked"


def test_the_workspace_of_the_registry_is_where_paths_begin(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    registry = governance.builtin_registry(workspace=tmp_path)
    configs: list[Any] = ["tools: {}", {"tools": {}}, governance.load_governance(FILE)]
    for config in configs:
        with ToolExecutionLayer(registry, config, ModeManager()) as made:
            result = made.execute_tool("read_file", {"path": "a.txt"})
            listed = made.execute_tool("list_directory", {"path": "."})
            outside = made.execute_tool("read_file", {"path": "/etc/hostname"})
        assert (result.success, "alpha" in str(result.output)) == (True, True), result.error
        assert "a.txt" in str(listed.output)
        assert not outside.success


def test_the_governance_file_follows_the_workspace_of_the_registry(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    file = tmp_path / "rules.yaml"
    file.write_text(FILE)
    registry = governance.builtin_registry(tmp_path)
    loaded = governance.load_governance(file)
    file.write_text("tools: {}")  # what was loaded holds, not what the file says by now
    with ToolExecutionLayer(registry, loaded, ModeManager()) as made:
        assert made.execute_tool("write_file", {"path": "notes/b.txt", "content": "beta"}).success
        assert not made.execute_tool("write_file", {"path": "b.txt", "content": "beta"}).success
        assert made.governance.tools["write_file"]["allowed_paths"] == [f"{tmp_path}/notes/**"]
    given = {"path": "notes/a", "content": "x"}
    assert governance.check_permissions("write_file", given, "NORMAL", loaded, registry=registry).allowed
    assert governance.validate_arguments("write_file", given, loaded, registry=registry).valid


def test_two_workspaces_that_differ_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    config = governance.load_governance("tools: {}", workspace=other)
    with pytest.raises(UsageError, match="Give both the same workspace"):
        ToolExecutionLayer(governance.builtin_registry(tmp_path), config, ModeManager())


def test_what_leads_out_of_the_workspace_is_refused(layer: ToolExecutionLayer, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/etc")
    for path in ("../x", "/etc/passwd", "out/passwd"):
        result = layer.execute_tool("read_file", {"path": path}, TraceContext())
        assert not result.success
        assert "root:" not in str(result)


def test_the_checks_mean_the_built_in_tools_where_no_registry_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    config = governance.load_governance(FILE, workspace=tmp_path)
    given = {"path": "notes/a", "content": "x"}
    assert governance.check_permissions("write_file", given, "NORMAL", config).allowed
    assert not governance.check_permissions("write_file", given, "LOCKDOWN", config).allowed
    assert not governance.validate_arguments("write_file", {"path": "a", "content": "x"}, config).valid


def test_the_catalog_is_document_003s() -> None:
    found = {
        one.name: (one.category, one.risk_level, one.requires_sandbox)
        for one in governance.builtin_registry().list_tools()
    }
    assert {
        "read_file": ("read_only", "low", False),
        "list_directory": ("read_only", "low", False),
        "write_file": ("system_write", "high", False),
        "delete_file": ("system_write", "high", False),
        "system_metrics_snapshot": ("read_only", "low", False),
        "check_process_health": ("read_only", "low", False),
        "read_system_logs": ("read_only", "medium", False),
        "web_search": ("network", "medium", False),
        "fetch_url": ("network", "medium", True),
        "run_linter": ("read_only", "low", True),
        "run_tests": ("read_only", "medium", True),
        "git_status": ("read_only", "low", False),
    }.items() <= found.items()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_command_says_what_it_wrote_and_how_it_ended(folder: Path) -> None:
    assert execute_shell_command_sandboxed(["echo", "a  b", "$HOME"]) == {
        "stdout": "a  b $HOME\n",
        "stderr": "",
        "exit_code": 0,
    }
    ended = execute_shell_command_sandboxed(["sh", "-c", "echo no >&2; touch made; exit 3"])
    assert (ended["exit_code"], ended["stderr"].splitlines()[0]) == (3, "no")
    assert not (folder / "made").exists()
    assert execute_shell_command_sandboxed(["no-such-program"])["exit_code"] == 127


def test_a_command_that_takes_too_long_is_killed_with_all_it_started(folder: Path) -> None:
    ended = execute_shell_command_sandboxed(["sh", "-c", "setsid sleep 3600 & sleep 3600"], timeout=1)
    assert ended == {"stdout": "", "stderr": "Command timed out", "exit_code": -1}


@pytest.mark.parametrize(("command", "timeout"), [("ls -l", 1), ([], 1), ([1], 1), (["ls"], 0), (["ls"], -1)])
def test_what_is_no_command_is_refused(command: Any, timeout: float) -> None:
    with pytest.raises(UsageError):
        execute_shell_command_sandboxed(command, timeout)
