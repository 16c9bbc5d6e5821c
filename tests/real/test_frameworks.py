"""Every adapter against the newest release of its framework, in an environment of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, blocks
from tests.docs.test_code_blocks import NEED_A_FRAMEWORK
from tests.real.environments import Environment, new_environment

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]
FRAMEWORKS: dict[str, tuple[str, ...]] = {
    "pydantic_ai": ("pydantic-ai-slim>=2.66,<3",),
    "openai_agents": ("openai-agents>=0.24,<0.25",),
    "claude_agent_sdk": ("claude-agent-sdk>=0.2,<0.3",),
    "fastmcp": ("fastmcp>=4.1,<5",),
    "google_adk": ("google-adk>=2.13,<3",),
    "langchain": ("langchain>=1.4,<2", "langgraph"),
}
"""What is installed for each, by the name of its adapter."""


def environment_of(name: str, wheel: Path, folder: Path) -> Environment:
    environment = new_environment(folder / "environment")
    environment.install(str(wheel), *FRAMEWORKS[name], cwd=folder)
    return environment


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_adapter_holds_what_every_adapter_must(name: str, wheel: Path, tmp_path: Path) -> None:
    environment = environment_of(name, wheel, tmp_path)
    said = environment.run(
        environment.python, "-m", f"tests.real.frameworks.with_{name}", cwd=ROOT, PYTHONDONTWRITEBYTECODE="1"
    )
    told: dict[str, str | None] = json.loads(said.splitlines()[-1])
    assert told, "no scenario was played"
    assert not [f"{scenario}: {failure}" for scenario, failure in told.items() if failure]
    for example in sorted((ROOT / "examples").glob(f"with_{name}*.py")):
        environment.run(environment.python, str(example), cwd=tmp_path)
    page = ROOT / "docs" / "how-to" / f"use-with-{name.replace('_', '-')}.md"
    assert page.exists()
    for block in blocks(page):
        if block.language == "python":
            (tmp_path / str(block.file)).write_text(block.code + "\n", encoding="utf-8")
            environment.run(environment.python, str(block.file), cwd=tmp_path)


def test_every_adapter_and_every_page_is_here() -> None:
    adapters = {path.stem for path in (ROOT / "src/toolgate/integrations").glob("[a-z]*.py")}
    assert adapters == set(FRAMEWORKS)
    assert {f"use-with-{name.replace('_', '-')}" for name in FRAMEWORKS} >= set(NEED_A_FRAMEWORK)
