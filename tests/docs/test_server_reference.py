"""The build fails where the pages about the server lack something it serves or reads."""

from __future__ import annotations

import re

import pytest
from tests.docs.pages import ROOT, missing_words, quoted, read, rows, sections

from toolgate import agent_tools
from toolgate.agent_tools import ToolExecution, ToolExecutionState
from toolgate.interfaces.server.operations import Operation
from toolgate.interfaces.server.problems import _TITLES
from toolgate.interfaces.server.routes import OPERATIONS
from toolgate.interfaces.server.settings import ServerSettings
from toolgate.interfaces.server.socket import _MESSAGES
from toolgate.ports.directory import ABILITIES, Ability

PAGE = "docs/reference/http.md"
SERVER = ROOT / "src" / "toolgate" / "interfaces" / "server"


def shown(operation: Operation) -> list[str]:
    path = operation.path.replace("/my/projects/{project_id}/", "")
    ability = operation.ability
    return [f"`{operation.method} {path}`", ability, operation.summary]


def test_every_request_is_in_the_table_and_no_other_is() -> None:
    table = rows(sections(PAGE, 2)["Requests"])
    assert sorted(table) == sorted(map(shown, OPERATIONS))


def test_every_kind_of_account_has_its_abilities_told() -> None:
    table = {quoted(row[0])[0]: set(quoted(row[1])) for row in rows(sections(PAGE, 2)["Abilities"])}
    assert set(table) == {kind.value for kind in ABILITIES if ABILITIES[kind]}
    for kind, able in ABILITIES.items():
        told = table.get(kind.value, set())
        assert kind.value == "admin" or told - {Ability.DECIDE.value} == {one.value for one in able} - {"decide"}


def test_every_status_of_a_problem_is_explained() -> None:
    told = {int(number) for row in rows(sections(PAGE, 2)["Problems"]) for number in re.findall(r"\d{3}", row[0])}
    assert told == set(_TITLES) - {405}


def test_every_event_of_a_stream_is_explained() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in SERVER.rglob("*.py"))
    names = set(re.findall(r'"((?:tool|stream|chat|inbox)\.[a-z_]+)"', source))
    signals = {name for name in names if not re.search(rf"### `{re.escape(name)}`", read("docs/reference/events.md"))}
    assert missing_words(signals, sections(PAGE, 2)["Streams"]) == []


def test_every_message_of_the_socket_is_explained() -> None:
    kinds = [schema["properties"]["type"]["const"] for schema in _MESSAGES.json_schema()["$defs"].values()]
    assert missing_words(kinds, sections(PAGE, 2)["WebSocket"]) == []


def test_every_setting_is_explained() -> None:
    table = {quoted(row[0])[0]: row for row in rows(sections("docs/reference/settings.md", 2)["The server"])}
    assert set(table) == {f"TOOLGATE_{name.upper()}" for name in ServerSettings.model_fields}
    for name, field in ServerSettings.model_fields.items():
        assert table[f"TOOLGATE_{name.upper()}"][2] == field.description


@pytest.mark.parametrize("name", agent_tools.__all__)
def test_every_name_of_agent_tools_is_explained(name: str) -> None:
    assert name in [quoted(row[0])[0] for row in rows(read("docs/reference/agent-tools.md")) if quoted(row[0])]


def test_the_row_and_its_states_are_explained() -> None:
    told = sections("docs/reference/agent-tools.md", 2)["ToolExecution"]
    assert missing_words(ToolExecution.__annotations__, told) == []
    assert len(ToolExecutionState) == 8
