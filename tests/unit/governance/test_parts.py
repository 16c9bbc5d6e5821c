"""Definitions, registry, modes, traces, the file, and the checks by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from toolgate import governance, tool
from toolgate.errors import DefinitionError, PolicyError, UsageError
from toolgate.governance import Mode, ModeManager, ToolDefinition, ToolParameter, ToolResult, TraceContext


def read_file(**options: Any) -> ToolDefinition:
    fields: dict[str, Any] = {
        "name": "read_file",
        "description": "Reads a file",
        "category": "read_only",
        "parameters": [
            ToolParameter(name="path", type="string", description="Which"),
            ToolParameter(name="max_size_mb", type="number", description="Most", default=10),
        ],
        "risk_level": "low",
        "allowed_modes": ["NORMAL", "LOCKDOWN"],
    }
    return ToolDefinition(**{**fields, **options})


def registry(*definitions: ToolDefinition) -> governance.ToolRegistry:
    made = governance.ToolRegistry()
    for one in definitions or (read_file(),):
        made.register(one, lambda **given: given)
    return made


def test_the_fields_of_a_definition_are_checked() -> None:
    assert read_file(risk_level="HIGH").risk_level == "high"
    for wrong in (
        {"risk_level": "extreme"},
        {"allowed_modes": ["SLEEPY"]},
        {"allowed_modes": "NORMAL"},
        {"timeout_seconds": 0},
        {"rate_limit_per_hour": 0},
        {"unknown": 1},
        {"parameters": [ToolParameter(name="a", type="string", description="")] * 2},
    ):
        with pytest.raises(ValidationError):
            read_file(**wrong)
    with pytest.raises(ValidationError):
        ToolParameter(name="a", type="integer", description="")  # type: ignore[arg-type]


def test_the_defaults_are_document_003s() -> None:
    made = read_file()
    assert (made.requires_approval, made.requires_sandbox, made.timeout_seconds) == (False, False, 30)
    assert made.rate_limit_per_hour is None
    assert ToolResult(tool_name="a", success=False, output={}, error="x").latency_ms == 0.0


def test_parameters_become_a_schema_and_a_tool_becomes_parameters() -> None:
    schema = read_file().input_schema()
    assert (schema["required"], schema["additionalProperties"]) == (["path"], False)
    assert schema["properties"]["max_size_mb"] == {"type": "number", "description": "Most", "default": 10}

    @tool(effects="read", category="maths", allowed_modes=("NORMAL",))
    def add(a: int, names: list[str], deep: dict[str, int], b: float = 2.0) -> float:
        """Add numbers."""
        return a + b

    made = registry()
    made.register(add)
    found = made.get_tool("add")
    assert found is not None
    kinds = {one.name: (one.type, one.required) for one in found[0].parameters}
    assert kinds == {
        "a": ("number", True),
        "names": ("array", True),
        "deep": ("object", True),
        "b": ("number", False),
    }
    assert (found[0].description, found[0].category) == ("Add numbers.", "maths")


def test_a_registry_finds_lists_and_filters() -> None:
    made = registry(read_file(), read_file(name="other", category="network", allowed_modes=["ALERT"]))
    found = made.get_tool("read_file")
    assert found is not None
    assert found[0] == read_file()
    assert found[1](path="a") == {"path": "a"}
    assert made.get_tool("none") is None
    assert [one.name for one in made.list_tools(Mode.LOCKDOWN)] == ["read_file"]
    assert [one.name for one in made.list_tools("lockdown")] == ["read_file"]
    assert [one.name for one in made.list_tools()] == ["read_file", "other"]
    assert [one.name for one in made.filter_by_category("network")] == ["other"]
    made.discard("other")
    assert made.filter_by_category("network") == []


def test_what_was_registered_is_what_is_governed() -> None:
    given = read_file()
    made = registry(given)
    given.allowed_modes.append("ALERT")
    assert made.list_tools(Mode.ALERT) == []


def test_a_registration_that_makes_no_tool_is_refused() -> None:
    made = governance.ToolRegistry()

    @tool
    def free() -> None:
        """Do nothing."""

    wrong: Any = "x"
    for arguments in ((read_file(),), (read_file(), wrong), (wrong,), (free, print)):
        with pytest.raises(DefinitionError):
            made.register(*arguments)


def test_a_mode_manager_tells_of_changes_once() -> None:
    modes = ModeManager()
    heard: list[tuple[Mode, Mode, str]] = []

    def listener(before: Mode, after: Mode, reason: str) -> None:
        heard.append((before, after, reason))

    modes.listen(listener)
    modes.set_mode("alert", "heat")
    modes.set_mode(Mode.ALERT)
    modes.unlisten(listener)
    modes.set_mode(Mode.NORMAL)
    assert heard == [(Mode.NORMAL, Mode.ALERT, "heat")]
    assert f"{modes.get_current_mode()}" == "NORMAL"
    with pytest.raises(UsageError):
        modes.set_mode("SLEEPY")


def test_spans_are_new_and_know_their_parent() -> None:
    trace = TraceContext.new_trace()
    child, span_id = trace.new_span()
    grandchild, other = child.new_span()
    assert (child.trace_id, child.span_id, grandchild.parent_span_id) == (trace.trace_id, span_id, span_id)
    assert span_id != other
    assert (len(trace.trace_id), len(span_id)) == (32, 16)


TEXT = 'tools:\n  read_file:\n    allowed_paths: ["$HOME/free/**"]\n    category: "read_only"\n'


def test_a_governance_file_is_read_from_a_path_a_text_a_mapping_or_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config" / "governance" / "tools.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    mapping = {"tools": {"read_file": {"allowed_paths": ["$HOME/free/**"], "category": "read_only"}}}
    for source in (file, str(file), TEXT, TEXT.encode(), mapping, None, tmp_path):
        loaded = governance.load_governance(source, home=tmp_path)
        assert loaded.tools["read_file"]["allowed_paths"] == [f"{tmp_path}/free/**"]
        assert loaded.tools["read_file"]["category"] == "read_only"
        assert loaded.revision == loaded.policy.revision


def test_a_wrong_governance_file_names_line_and_column() -> None:
    with pytest.raises(PolicyError, match=r":3:\d+: .*allowed_path"):
        governance.load_governance("tools:\n  read_file:\n    allowed_pathes: []\n")


def test_permissions_by_themselves(tmp_path: Path) -> None:
    config = governance.load_governance(TEXT, home=tmp_path, workspace=tmp_path)
    made = registry(read_file(), read_file(name="ask_me", requires_approval=True))

    def may(name: str, mode: Any = Mode.NORMAL, approver: Any = None, path: str = "free/a") -> tuple[bool, str | None]:
        given = {"path": str(tmp_path / path)}
        said = governance.check_permissions(name, given, mode, config, registry=made, approver=approver)
        return said.allowed, said.reason

    assert may("read_file") == (True, None)
    assert may("read_file", "ALERT") == (False, "Tool not allowed in ALERT mode")
    assert may("none") == (False, "Tool none not found")
    assert may("read_file", path="b")[1] == f"Path {tmp_path}/b not in allowed paths"
    assert may("ask_me") == (False, "Approval is needed, and nobody can be asked")
    assert may("ask_me", approver=lambda _tool, _arguments: True) == (True, None)
    assert may("ask_me", approver=lambda _tool, _arguments: "yes") == (False, "Approval denied by user")
    unfit = governance.check_permissions("read_file", {"path": 1}, Mode.NORMAL, config, registry=made)
    assert not unfit.allowed


def test_arguments_by_themselves(tmp_path: Path) -> None:
    config = governance.load_governance(TEXT, home=tmp_path, workspace=tmp_path)
    made = registry()

    def fits(name: str, given: dict[str, Any]) -> governance.ValidationResult:
        return governance.validate_arguments(name, given, config, registry=made)

    assert fits("read_file", {"path": str(tmp_path / "free/a")}).valid
    assert fits("read_file", {"path": str(tmp_path / "b")}).error == f"Path {tmp_path}/b not in allowed paths"
    assert "does" in (fits("read_file", {}).error or "") or not fits("read_file", {}).valid
    assert fits("none", {}).error == "Tool none not found"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["tools: {}", "tools : {}", "{}", "", "tools: {x: {category: read_only}}"])
def test_a_text_of_one_line_is_read_as_text(text: str) -> None:
    assert isinstance(governance.load_governance(text).tools, dict)


def test_a_name_of_a_file_is_read_as_one(tmp_path: Path) -> None:
    file = tmp_path / "rules: of mine.yaml"
    file.write_text("tools: {}")
    assert governance.load_governance(str(file)).tools == {}
    for missing in ("tools.yaml", str(tmp_path / "no: such.yaml")):
        with pytest.raises(PolicyError, match="cannot be read"):
            governance.load_governance(missing)


def test_governance_that_is_neither_a_file_nor_a_text_is_refused() -> None:
    with pytest.raises(UsageError, match="a file, its text or a mapping, not int"):
        governance.load_governance(5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="only what YAML can say"):
        governance.load_governance({"tools": {"a": object()}})
