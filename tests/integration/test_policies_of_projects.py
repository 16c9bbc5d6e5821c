"""Commands and the server go by the policy of the project they are asked about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.programs import here

from toolgate.errors import PolicyError
from toolgate.interfaces.server.serve import build
from toolgate.interfaces.server.settings import ServerSettings

SHOP = """
tools:
  pay:
    arguments: [{field: amount, above: 5, then: ask, approval: {level: full, quorum: 2}}]
    examples: [{arguments: {amount: 9}, expect: ask, quorum: 2}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "toolgate.yaml").write_text("tools: {pay: {decision: allow}}")
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects" / "shop.yaml").write_text(SHOP)
    return tmp_path


def test_check_names_every_project(folder: Path) -> None:
    given = ("policy", "check", folder, "--project-policies", folder / "projects")
    assert "project shop: valid, revision" in here(*given).out
    assert list(json.loads(here(*given, "--json").out)["projects"]) == ["shop"]
    (folder / "projects" / "shop.yaml").write_text("nope: 1")
    assert here(*given).code == 1


def test_explain_and_test_go_by_the_project_of_the_call(folder: Path) -> None:
    call: dict[str, Any] = {"tool": "pay", "arguments": {"amount": 9}}
    for project, said in (("shop", "asked: 2 people"), ("blog", "ALLOW")):
        one = json.dumps({**call, "project": project})
        assert said in here("policy", "explain", folder, "--call", one, "--project-policies", folder / "projects").out
    calls = folder / "calls.jsonl"
    expected: list[dict[str, Any]] = [
        {"project": "shop", "expect": "ask", "quorum": 2},
        {"expect": "allow"},
        {"project": "shop", "expect": "ask", "quorum": 3},
    ]
    calls.write_text("\n".join(json.dumps({**call, **one}) for one in expected))
    ended = here("policy", "test", folder, "--calls", calls, "--project-policies", folder / "projects")
    assert ended.code == 1
    assert "call 3: pay: expected ask, got ask at level full, 2 people" in ended.out
    assert "3 passed, 1 failed" in ended.out


def test_doctor_names_every_project_and_what_is_wrong(folder: Path) -> None:
    given = ("doctor", folder, "--project-policies", folder / "projects", "--json")
    (found,) = [one for one in json.loads(here(*given).out)["findings"] if one["what"] == "policy"]
    assert "; project shop " in found["detail"]
    (folder / "projects" / "notes.txt").write_text("")
    (found,) = [one for one in json.loads(here(*given).out)["findings"] if one["what"] == "policy"]
    assert (found["is_fine"], "is not the policy of a project" in found["detail"]) == (False, True)


async def test_a_server_takes_the_folder_from_its_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGATE_PROJECT_POLICIES", str(folder / "projects"))
    database = f"sqlite:///{folder}/a.db"
    settings = ServerSettings(database=database, policy=folder / "toolgate.yaml", agent=False)
    gate = build(settings).state.services.gate
    assert gate.host.policy("shop").revision != gate.policy.revision
    await gate.aclose()
    (folder / "projects" / "shop.yaml").write_text("tools: 5")
    with pytest.raises(PolicyError):
        build(settings.model_copy(update={"database": f"sqlite:///{folder}/b.db"}))
    assert not (folder / "b.db").exists()
