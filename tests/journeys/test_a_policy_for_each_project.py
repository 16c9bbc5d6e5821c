"""A project may have a policy of its own, which adds to the one of all: followed, recorded, and never mixed up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.journeys.scene import names

import toolgate
from toolgate import Context, Gate, Policy
from toolgate.errors import PolicyError, UsageError
from toolgate.gate import policies
from toolgate.kernel.call import Status

BASE = "tools: {pay: {arguments: [{field: amount, above: 1000, then: deny}]}, wipe: {decision: deny}}"
SHOP = """
tools:
  pay: {arguments: [{field: amount, above: 50, then: ask, approval: {quorum: 2}}]}
  wipe: {decision: allow}
"""


@toolgate.tool
async def pay(amount: float) -> float:
    """Pay."""
    return amount


@toolgate.tool
async def wipe() -> None:
    """Wipe."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(policies, "LOOK_AFTER_S", 0.0)
    (tmp_path / "toolgate.yaml").write_text(BASE)
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects" / "shop.yaml").write_text(SHOP)
    return tmp_path


def open_at(folder: Path, **options: Any) -> Gate:
    given: dict[str, Any] = {"policy": folder / "toolgate.yaml", "project_policies": folder / "projects", **options}
    return toolgate.open("memory://", tools=[pay, wipe], **given)


async def said(gate: Gate, project: str, amount: float = 100, tool: str = "pay") -> Status:
    arguments = {"amount": amount} if tool == "pay" else {}
    return (await gate.call(tool, arguments, context=Context(project=project), wait=False)).status


async def test_each_project_goes_by_its_own_and_all_by_the_policy_of_all(folder: Path) -> None:
    async with open_at(folder) as gate:
        for _ in range(2):  # one's plan is never another's
            assert await said(gate, "shop") is Status.AWAITING_APPROVAL
            assert await said(gate, "blog") is Status.COMPLETED
        for project in ("shop", "blog"):
            assert await said(gate, project, 2000) is Status.DENIED
            assert await said(gate, project, tool="wipe") is Status.DENIED
        (asked, _) = await gate.pending()
        assert (asked.project, asked.terms.quorum) == ("shop", 2)
        row = await gate.calls.get(asked.call_id, project="shop")
        assert row.policy_revision == gate.host.policy("shop").revision != gate.policy.revision
        assert gate.host.policy("blog") is gate.policy


async def test_a_change_is_followed_and_recorded_where_it_counts(folder: Path) -> None:
    async with open_at(folder) as gate:
        before = gate.host.policy("shop").revision
        (folder / "projects" / "shop.yaml").write_text("tools: {pay: {decision: deny}}")
        assert await said(gate, "shop") is Status.DENIED
        assert await said(gate, "blog") is Status.COMPLETED
        (told,) = [event for event in await gate.events(project="shop") if event.type == "policy.changed"]
        assert (told.data["from"], told.data["to"]) == (before, gate.host.policy("shop").revision)
        assert names(await gate.events(project="_system")) == []
        (folder / "projects" / "blog.yaml").write_text("default: deny")
        assert await said(gate, "blog") is Status.DENIED
        assert names(await gate.events(project="blog"))[-3:] == ["policy.changed", "tool.invoked", "tool.denied"]


async def test_a_change_for_all_is_one_for_each_project(folder: Path) -> None:
    async with open_at(folder) as gate:
        (folder / "toolgate.yaml").write_text("tools: {pay: {decision: deny}}")
        assert await said(gate, "shop") is Status.DENIED
        assert names(await gate.events(project="_system")) == ["policy.changed"]
        assert "policy.changed" in names(await gate.events(project="shop"))


async def test_an_approved_call_meets_its_projects_changed_file(folder: Path) -> None:
    async with open_at(folder) as gate:
        assert await said(gate, "shop") is Status.AWAITING_APPROVAL
        (asked,) = await gate.pending()
        (folder / "projects" / "shop.yaml").write_text("tools: {pay: {decision: deny}}")
        for one in ("ann", "bob"):
            await gate.decide(asked.id, "approve", by=one)
        assert (await gate.wait(asked.call_id, project="shop")).status is Status.DENIED


@pytest.mark.parametrize("text", ["tools: 5", None], ids=["broken", "gone"])
async def test_a_file_that_breaks_or_goes_away_changes_nothing(folder: Path, text: str | None) -> None:
    async with open_at(folder) as gate:
        file = folder / "projects" / "shop.yaml"
        file.unlink() if text is None else file.write_text(text)
        assert await said(gate, "shop") is Status.AWAITING_APPROVAL
        assert await said(gate, "shop") is Status.AWAITING_APPROVAL
        assert names(await gate.events(project="_system")) == ["policy.refused"]
        with pytest.raises(PolicyError):
            await gate.host.reload_policy(by="ann")
        file.write_text("default: deny")
        assert await said(gate, "shop", 5) is Status.DENIED


async def test_a_policy_set_by_hand_is_everybodys(folder: Path) -> None:
    async with open_at(folder) as gate:
        await gate.set_policy(Policy(revision="mine"), by="ann")
        assert await said(gate, "shop") is Status.COMPLETED
        assert "policy.changed" in names(await gate.events(project="shop"))


def test_nothing_opens_with_a_wrong_file(folder: Path) -> None:
    (folder / "projects" / "shop.yaml").write_text("tools: {pay: {decision: nope}}")
    (folder / "projects" / "blog.yaml").write_text("nope: 1")
    with pytest.raises(PolicyError) as caught:
        open_at(folder)
    assert [Path(one.file).name for one in caught.value.problems] == ["blog.yaml", "shop.yaml"]
    with pytest.raises(PolicyError, match="Name a folder"):
        open_at(folder, project_policies=folder / "nowhere")


def test_policies_of_projects_go_with_files_and_without_tools_that_know_one_policy(folder: Path) -> None:
    with pytest.raises(UsageError, match="file or folder"):
        open_at(folder, policy=Policy())
    with pytest.raises(UsageError, match="one policy"):
        open_at(folder, built_in_tools=True)
