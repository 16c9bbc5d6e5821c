"""Nothing reaches what is kept without asking the authority: a route, message or page that does fails the build."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, rows, sections

from toolgate.authority import RIGHTS, Verb, Whose
from toolgate.interfaces.server.operations import Operation
from toolgate.interfaces.server.routes import OPERATIONS
from toolgate.interfaces.server.socket import Line
from toolgate.ports.directory import ABILITIES

SURFACES = [
    path
    for folder in ("server", "console")
    for path in sorted((ROOT / "src" / "toolgate" / "interfaces" / folder).rglob("*.py"))
]
KEEPERS = {"identity.py", "sessions.py", "streams.py"}
"""Where accounts become callers, are told what they may do, and are found to be changed; nothing is allowed here."""
PAGE = "docs/reference/authority.md"


@pytest.mark.parametrize("path", SURFACES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_surface_judges_abilities_or_reaches_the_store_itself(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("_driver", "store"), f"line {node.lineno} goes round the gate"
            is_judging = node.attr == "abilities_in" and path.name not in KEEPERS
            asks_itself = isinstance(node.value, ast.Name) and node.value.id == "Ability"
            decides = is_judging or asks_itself
            assert not decides, f"line {node.lineno} decides who may: ask the authority"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: f"{one.method} {one.path}")
def test_every_request_is_a_verb_and_asks_about_the_very_call(operation: Operation) -> None:
    if "{project_id}" not in operation.path:
        return
    assert operation.verb is not None
    asked = (Whose.OWN, Whose.OWN_OR_DECIDERS)
    if "{tool_id}" in operation.path and RIGHTS[operation.verb].whose in asked and operation.handler is not None:
        source = inspect.getsource(operation.handler)
        assert "ask.call()" in source or "fence" in source, "say `await ask.call()`: it asks whose call it is"


@pytest.mark.parametrize("name", [name for name, member in vars(Line).items() if inspect.isfunction(member)])
def test_every_message_of_a_socket_that_reaches_the_gate_asks_first(name: str) -> None:
    source = inspect.getsource(getattr(Line, name))
    if "services.gate" in source:
        assert "caller.check(" in source


def test_the_page_says_what_the_table_says() -> None:
    told = [
        [
            f"`{verb}`",
            f"`{right.ability}`",
            ", ".join(f"`{kind}`" for kind, able in ABILITIES.items() if right.ability in able),
            str(right.whose),
            right.condition or "-",
        ]
        for verb, right in ((verb, RIGHTS[verb]) for verb in Verb)
    ]
    assert rows(sections(PAGE, 2)["Verbs"]) == told
