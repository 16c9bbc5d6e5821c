"""The build fails where the reference lacks a name the code has."""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
import re
import tomllib
from importlib import import_module

import pytest
from tests.docs.pages import ROOT, missing_words, quoted, read, rows, sections

import toolgate
from toolgate import tools
from toolgate.errors import ToolgateError
from toolgate.gate import Gate, SyncGate
from toolgate.gate.approvals import Approvals
from toolgate.gate.delegations import Delegations
from toolgate.gate.grants import Grants
from toolgate.gate.host import Host
from toolgate.gate.remote import Remote
from toolgate.gate.rows import Calls
from toolgate.kernel.approval import Approval
from toolgate.kernel.assessment import ApprovalLevel
from toolgate.kernel.call import TRANSITIONS, Call, Status
from toolgate.kernel.context import Context, Mode, Principal, PrincipalKind
from toolgate.kernel.event import EVENTS, Event
from toolgate.kernel.output import Result, ToolOutput
from toolgate.kernel.policy import Default, Policy
from toolgate.kernel.text.canonical import Limits
from toolgate.kernel.text.diff import DiffLine, DiffResult, DiffType, diff_json, diff_structured, diff_text
from toolgate.kernel.text.formats import (
    FieldNames,
    Format,
    FormatLimits,
    Reason,
    ResolvedToolCall,
    UnresolvedToolCall,
    parse_calls,
)
from toolgate.kernel.text.formats.results import render_message, render_result
from toolgate.kernel.text.formats.schemas import export_tools
from toolgate.kernel.tool import Effects, Placement, Prepared, RiskLevel, Thresholds, ToolDefinition
from toolgate.kernel.undo import UndoMetadata

GATE = "docs/reference/gate.md"
EVENT_PAGE = "docs/reference/events.md"
ERROR_PAGE = "docs/reference/errors.md"
STATUS_PAGE = "docs/reference/statuses.md"
TOOL_PAGE = "docs/reference/tool-definition.md"
FORMAT_PAGE = "docs/reference/tool-call-formats.md"
DIFF_PAGE = "docs/reference/diffs.md"
MAKE_PAGE = "docs/reference/make.md"
RESULT_METHODS = ["success", "is_final", "is_pending", "unwrap", "to_error"]


def public(owner: type) -> list[str]:
    package = owner.__module__.rpartition(".")[0]
    homes = [kind for kind in owner.__mro__ if kind is owner or kind.__module__.startswith(f"{package}.")]
    return list(dict.fromkeys(name for kind in homes for name in vars(kind) if not name.startswith("_")))


def parameters(function: object) -> list[str]:
    assert callable(function)
    return [name for name in inspect.signature(function).parameters if name != "self"]


def fields(owner: type) -> list[str]:
    if dataclasses.is_dataclass(owner):
        return [field.name for field in dataclasses.fields(owner)]
    return list(owner._fields)  # type: ignore[attr-defined]  # a NamedTuple


def all_errors() -> list[type[ToolgateError]]:
    for module in pkgutil.walk_packages(toolgate.__path__, "toolgate."):
        if module.name.startswith("toolgate.integrations."):
            continue  # each needs its framework, and defines no error
        if ".migrations." not in module.name:  # run by Alembic, on a connection
            import_module(module.name)
    found, todo = [], [ToolgateError]
    for kind in todo:
        found.append(kind)
        todo += [other for other in kind.__subclasses__() if other not in todo]
    return [kind for kind in found if not kind.__name__.startswith("_") and kind.__module__.startswith("toolgate")]


@pytest.mark.parametrize("owner", [Gate, SyncGate])
def test_every_public_method_has_its_entry(owner: type) -> None:
    entries = sections(GATE, 2)[owner.__name__]
    assert missing_words(public(owner), entries) == []


@pytest.mark.parametrize("name", [name for name in public(Gate) if callable(getattr(Gate, name))])
def test_every_method_of_gate_has_a_section_with_its_parameters(name: str) -> None:
    section = sections(GATE, 3)[name]
    assert [word for word in parameters(getattr(Gate, name)) if not re.search(rf"`[^`]*\b{word}\b", section)] == []


PARTS = {
    "approvals": Approvals,
    "grants": Grants,
    "delegations": Delegations,
    "calls": Calls,
    "remote": Remote,
    "host": Host,
}


@pytest.mark.parametrize(("part", "name"), [(part, name) for part in PARTS for name in public(PARTS[part])])
def test_every_method_of_a_part_has_a_section_with_its_parameters(part: str, name: str) -> None:
    member = getattr(PARTS[part], name)
    if not callable(member):
        assert f"`{part}.{name}`" in sections(GATE, 2)[f"gate.{part}"]
        return
    section = sections(GATE, 3)[f"{part}.{name}"]
    assert [word for word in parameters(member) if not re.search(rf"`[^`]*\b{word}\b", section)] == []


def test_no_section_of_gate_is_about_a_method_that_is_gone() -> None:
    for told in sections(GATE, 3):
        part, _, name = told.rpartition(".")
        if name.isidentifier():
            assert hasattr(PARTS.get(part, Gate), name), told


@pytest.mark.parametrize(
    ("page", "section", "names"),
    [
        (GATE, "toolgate.open", parameters(toolgate.open)),
        (GATE, "Gate", parameters(Gate)),
        (GATE, "Result", [*fields(Result), *RESULT_METHODS]),
        (GATE, "Approval", fields(Approval)),
        (GATE, "Call", fields(Call)),
        (GATE, "Context", fields(Context)),
        (GATE, "Principal", [*fields(Principal), *PrincipalKind]),
        (GATE, "Mode", list(Mode)),
        (EVENT_PAGE, "Event", [*fields(Event), "data"]),
        (TOOL_PAGE, "Fields", fields(ToolDefinition)),
        (TOOL_PAGE, "ToolOutput", [*fields(ToolOutput), "ok", "fail", "to_dict"]),
        (TOOL_PAGE, "Prepared", fields(Prepared)),
        (TOOL_PAGE, "UndoMetadata", fields(UndoMetadata)),
        (TOOL_PAGE, "Closed sets", [*Effects, *RiskLevel, *Placement]),
        ("docs/reference/arguments-and-schemas.md", "Limits", fields(Limits)),
        (FORMAT_PAGE, "Format", list(Format)),
        (FORMAT_PAGE, "Reason", list(Reason)),
        (FORMAT_PAGE, "ResolvedToolCall", fields(ResolvedToolCall)),
        (FORMAT_PAGE, "UnresolvedToolCall", fields(UnresolvedToolCall)),
        (FORMAT_PAGE, "FormatLimits", fields(FormatLimits)),
        (FORMAT_PAGE, "FieldNames", fields(FieldNames)),
        (FORMAT_PAGE, "parse_calls", parameters(parse_calls)),
        (FORMAT_PAGE, "render_result", parameters(render_result)),
        (FORMAT_PAGE, "render_message", parameters(render_message)),
        (FORMAT_PAGE, "export_tools", parameters(export_tools)),
        (DIFF_PAGE, "DiffResult", [*fields(DiffResult), *public(DiffLine), *DiffType.__members__]),
        (DIFF_PAGE, "diff_text", parameters(diff_text)),
        (DIFF_PAGE, "diff_json", parameters(diff_json)),
        (DIFF_PAGE, "diff_structured", parameters(diff_structured)),
        ("docs/explanation/decisions.md", "The policy", [*fields(Policy), *Default, *fields(Thresholds)]),
    ],
)
def test_every_name_is_in_its_section(page: str, section: str, names: list[str]) -> None:
    assert missing_words(names, sections(page, 2)[section]) == []


def test_every_name_of_the_tools_door_is_documented() -> None:
    assert missing_words(tools.__all__, sections("docs/reference/tools.md", 2)["Names"]) == []


@pytest.mark.parametrize(
    ("section", "owner"),
    [
        ("ToolExecutor", tools.ToolExecutor),
        ("ToolRegistry", tools.ToolRegistry),
        ("ApprovalService", tools.ApprovalService),
        ("UndoStore", tools.UndoStore),
    ],
)
def test_every_method_of_the_tools_door_is_documented(section: str, owner: type) -> None:
    told = sections("docs/reference/tools.md", 2)[section]
    aliases = {"register_tool", "can_execute", "discard", "gate"}
    assert [name for name in public(owner) if name not in aliases and not re.search(rf"`[^`]*\b{name}\b", told)] == []


def test_every_option_of_an_executor_is_documented() -> None:
    told = sections("docs/reference/tools.md", 2)
    assert missing_words(fields(tools.ToolExecutorConfig), told["ToolExecutorConfig"]) == []
    assert missing_words(parameters(tools.ToolExecutor), told["ToolExecutor"]) == []


def test_every_public_name_of_the_package_is_documented() -> None:
    everything = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    assert [
        name for name in toolgate.__all__ if f"`{name}" not in everything and f"toolgate.{name}" not in everything
    ] == []


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_every_error_says_its_code_and_what_to_do(kind: type[ToolgateError]) -> None:
    section = sections(ERROR_PAGE, 3)[kind.__name__]
    assert f"`{kind.code}`" in section
    assert "**What happened.**" in section
    assert "**Why.**" in section
    assert "**What to do.**" in section


def test_no_error_is_documented_that_does_not_exist() -> None:
    assert set(sections(ERROR_PAGE, 3)) == {kind.__name__ for kind in all_errors()}


def test_the_table_of_result_codes_says_what_unwrap_raises() -> None:
    table = rows(sections(ERROR_PAGE, 2)["Codes of results"])
    told = {(quoted(row[0])[0], Status(quoted(row[1])[0])): quoted(row[2])[0] for row in table}
    raised = {
        (code, status): type(
            Result(call_id="c", tool_name="t", status=status, error="e", error_code=code).to_error()
        ).__name__
        for code, status in told
    }
    assert told == raised


def test_every_code_a_result_may_carry_is_in_the_table() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("pipeline/*.py"))
    written = set(re.findall(r"""\b(?:code|error_code)="(\w+)"|\.code = "(\w+)"|Status\.\w+, "(\w+)"(?!:)""", sources))
    codes = {code for found in written for code in found if code}
    assert codes
    table = {quoted(row[0])[0] for row in rows(sections(ERROR_PAGE, 2)["Codes of results"])}
    assert codes - table == set()


def test_the_tree_on_the_error_page_is_the_tree_of_classes() -> None:
    tree = sections(ERROR_PAGE, 2)["The tree"]
    assert [kind.__name__ for kind in all_errors() if not re.search(rf"\b{kind.__name__}\b", tree)] == []


def test_every_event_has_its_section_and_no_other_has() -> None:
    assert set(sections(EVENT_PAGE, 3)) == set(EVENTS)


def test_the_status_tables_are_the_table_of_transitions() -> None:
    table = rows(sections(STATUS_PAGE, 2)["Transitions"])
    told = {quoted(row[0])[0]: set(quoted(row[1])) for row in table}
    assert told == {status.value: {str(after) for after in following} for status, following in TRANSITIONS.items()}


def test_every_status_is_explained_and_said_to_be_final_or_not() -> None:
    table = rows(sections(STATUS_PAGE, 2)["Statuses"])
    told = {quoted(row[0])[0]: row[2] == "yes" for row in table}
    assert told == {status.value: status.is_final for status in Status}


def test_every_approval_level_is_explained() -> None:
    assert missing_words(list(ApprovalLevel), read("docs/explanation/decisions.md")) == []


def test_every_make_target_is_documented_and_no_other_is() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    told = {quoted(row[0])[0].removeprefix("make ") for row in rows(sections(MAKE_PAGE, 2)["Targets"])}
    assert told == targets


def test_the_stack_page_names_every_base_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [line for group in project["dependency-groups"].values() for line in group if isinstance(line, str)]
    wanted = [*project["project"]["dependencies"], *groups]
    assert missing_words([re.split(r"[\[>=<]", line)[0] for line in wanted], read("docs/explanation/stack.md")) == []


def test_every_built_in_tool_is_documented_with_its_arguments() -> None:
    from toolgate.catalog import built_in_tools
    from toolgate.guards.edges import Edges
    from toolgate.guards.files import Workspace

    page = "docs/reference/built-in-tools.md"
    table = rows(read(page))
    told = {name.strip("`"): text for name, text in sections(page, 2).items()}
    with Workspace(ROOT) as workspace:
        tools = built_in_tools(Edges(workspace=workspace))
    assert {name for name in told if name != "Paths"} == {tool.name for tool in tools}
    for tool in tools:
        assert missing_words(list(tool.input_schema.get("properties", {})), told[tool.name]) == []
        sandbox = "yes" if tool.runs_in is Placement.SANDBOX else "no"
        row = next(row for row in table if row[0] == f"`{tool.name}`")
        assert row[1:] == [tool.category, tool.risk.value, sandbox, str(tool.effects or "undeclared")]


def test_the_how_to_about_tools_names_every_field() -> None:
    table = sections("docs/how-to/create-tools.md", 2)["Every field"]
    told = [name for row in rows(table) for name in quoted(row[0])]
    assert sorted(told) == sorted(field.name for field in dataclasses.fields(ToolDefinition) if field.init)
