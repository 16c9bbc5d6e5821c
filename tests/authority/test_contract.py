"""Nothing reaches what is kept without asking the authority: a route, message, page or command that does fails here.

What the server's surfaces do with the gate is watched while every case of this folder runs (`spy.py`).
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
from starlette.routing import Route, WebSocketRoute
from tests.authority import test_library, test_requests, test_sockets, test_streams
from tests.authority.accounts import PROJECTS, STATES, WHO
from tests.authority.requests import REQUESTS
from tests.authority.spy import DOES, PARTS
from tests.docs.pages import ROOT, rows, sections
from tests.unit.interfaces.server.house import House

from toolgate.authority import RIGHTS, Verb, Whose
from toolgate.gate import Gate
from toolgate.interfaces.console.plain import Plain
from toolgate.interfaces.server.operations import Endpoint, Operation
from toolgate.interfaces.server.routes import OPERATIONS
from toolgate.interfaces.server.socket import SocketEndpoint
from toolgate.kernel.context import PrincipalKind
from toolgate.ports.directory import ABILITIES

INTERFACES = ROOT / "src" / "toolgate" / "interfaces"
SURFACES = [path for name in ("server", "console") for path in sorted((INTERFACES / name).rglob("*.py"))]
COMMANDS = [path for name in ("cli", "worker") for path in sorted((INTERFACES / name).rglob("*.py"))]
KEEPERS = {"identity.py", "sessions.py", "streams.py"}
"""Where accounts become callers, are told what they may do, and are found to be changed; nothing is allowed here."""
OPEN = {"GET /healthz", "GET /readyz", "GET /metrics"}
"""What nobody need sign in for: it tells how the server is, and nothing of a project."""
OF_NO_PROJECT = {"POST /session", "GET /session", "DELETE /session"}
"""What somebody does with their own session."""
PAGES = {
    *("Pages.shell", "Pages.login", "Pages.sign_in", "Pages.whose", "Assets.serve", "_openapi"),
    *(f"Plain.{name}" for name in ("index", "show", "answer", "brake", "sign_out")),
}
"""What is no operation: pages and files. Those without a script reach the gate, and ask."""
MACHINES_OWN = {
    "audit.py",
    "db.py",
    "db_place.py",
    "policy_change.py",
    "policy_learn.py",
    "session.py",
    "setup.py",
    "token.py",
}
"""Commands that work on the database itself, for who has it: keys, copies, accounts, checks. Nothing is called, decided
or run by them."""
RAW = ("adapters.sqlite", "adapters.postgres", "adapters.memory", "adapters.sql", "adapters.redis")
PAGE = "docs/reference/authority.md"


def escapes(path: Path) -> list[str]:
    """Where a file reaches past what others offer: into their insides, to a store, or to a table."""
    found: list[ast.expr | ast.stmt] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Attribute(value=owner, attr=name) if _is_inside(owner, name) or name == "store":
                found.append(node)
            case ast.Call(func=ast.Name("getattr" | "vars"), args=[owner, *_]) if "gate" in ast.unparse(owner):
                found.append(node)
            case ast.ImportFrom(module=str(module), names=names):
                taken = [f"{module}.{alias.name}" for alias in names]
                is_raw = any(raw in one for raw in RAW for one in taken) or "toolgate.bootstrap.connect" in taken
                found += [node] if is_raw else []
    return [f"line {node.lineno}: {ast.unparse(node)}" for node in found]


def _is_inside(owner: ast.expr, name: str) -> bool:
    is_hidden = name.startswith("_") and not name.startswith("__") and name not in ("_asdict", "_replace")
    return is_hidden and ast.unparse(owner) not in ("self", "cls", "super()")


@pytest.mark.parametrize("path", SURFACES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_surface_judges_abilities_or_reaches_past_the_gate(path: Path) -> None:
    assert escapes(path) == []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            is_judging = node.attr == "abilities_in" and path.name not in KEEPERS
            asks_itself = isinstance(node.value, ast.Name) and node.value.id in ("Ability", "ABILITIES")
            decides = is_judging or asks_itself or node.attr == "can_decide"
            assert not decides, f"line {node.lineno} decides who may: ask the authority"


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_command_or_worker_reaches_past_the_gate(path: Path) -> None:
    if path.name not in MACHINES_OWN:
        assert escapes(path) == []
    source = path.read_text(encoding="utf-8")
    assert re.search(r"\bDirectory\b", source) is None or path.name == "token.py"
    assert ".directory(" not in source or path.name == "token.py"


def test_nobody_but_the_authority_refuses_for_want_of_a_right() -> None:
    besides = {"authority.py", "gate.py", "friction.py", "undoing.py", "delegating.py", "claims.py"}
    for path in sorted((ROOT / "src" / "toolgate").rglob("*.py")):
        if path.name not in besides:
            source = path.read_text(encoding="utf-8")
            assert "NotAllowedError(" not in source, path
            assert ".can_decide" not in source or "testing" in path.parts, path


def test_every_route_is_an_operation_the_socket_or_a_known_page(house: House) -> None:
    pages = set()
    for route in house.app.router.routes:
        assert isinstance(route, Route | WebSocketRoute), route
        if isinstance(route.endpoint, Endpoint):
            assert route.endpoint.operation in OPERATIONS
        elif not isinstance(route.endpoint, SocketEndpoint):
            pages.add(route.endpoint.__qualname__)
    assert pages == PAGES
    assert {name for name in vars(Plain) if f"Plain.{name}" in PAGES} == {
        name for name in vars(Plain) if name[0] != "_"
    }


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: f"{one.method} {one.path}")
def test_every_request_is_a_verb_and_asks_about_the_very_call(operation: Operation) -> None:
    name = f"{operation.method} {operation.path}"
    assert (operation.verb is None) is (name in OPEN)
    assert ("{project_id}" in operation.path) is (name not in OPEN | OF_NO_PROJECT)
    if operation.verb is None or name in OF_NO_PROJECT:
        return
    asked = (Whose.OWN, Whose.OWN_OR_DECIDERS)
    if "{tool_id}" in operation.path and RIGHTS[operation.verb].whose in asked and operation.handler is not None:
        assert "ask.call()" in inspect.getsource(operation.handler), "say `await ask.call()`: it asks whose call it is"


def test_every_verb_of_the_gate_is_watched() -> None:
    """A new method of the gate is no way round: what a surface may do with it is to be written down first."""
    known = {name.partition(".")[0] for name in DOES} | set(PARTS)
    hosts = {"register", "run_here", "wrap", "answer", "sync", "aclose", "close", "set_policy", "follow", "recover"}
    assert {name for name in vars(Gate) if not name.startswith("_")} <= known | hosts


def test_there_are_enough_cases_of_every_kind_and_none_is_left_out() -> None:
    counts = [test_requests.cases(), test_sockets.cases(), test_streams.cases(), len(test_library.cases())]
    assert sum(counts) >= 5000
    assert min(counts) >= 300
    assert {who.kind for who in WHO} == set(PrincipalKind)
    assert len(PROJECTS) == 2
    assert {"member", "viewer", "left", "revoked"} == set(STATES)
    assert set(RIGHTS) == set(Verb)
    by_request = {request.verb for request in REQUESTS}
    elsewhere = {Verb.STREAM, Verb.DISPATCH, Verb.OVERSEE, Verb.CHANGE_POLICY, Verb.MAKE_TOKENS}
    assert by_request | elsewhere == set(Verb)  # streams; whose runs one reads; on the server's machine alone
    assert not {one.verb for one in OPERATIONS} & {Verb.CHANGE_POLICY, Verb.MAKE_TOKENS}


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
