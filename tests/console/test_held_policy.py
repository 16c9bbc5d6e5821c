"""A policy that a sandboxed run may have written: everybody sees that it waits, and an admin accepts what was shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest_asyncio
from playwright.async_api import expect
from tests.console.scene import Scene, check_every_look, picture

import toolgate
from toolgate.kernel.call import Call
from toolgate.kernel.context import DEFAULT_CONTEXT, SYSTEM_PROJECT

ADDED = "  # written by a build script \u202e\n  note: {decision: allow}\n"


class Held:
    """The policy of the server, and another process on its database in which a run may write it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "toolgate.yaml"
        self.before = self.file.read_text(encoding="utf-8")
        self._open = {"policy": folder, "workspace": folder}
        self._database = folder / "toolgate.db"

    def hold(self, text: str) -> None:
        """Have a run put another text into the policy."""
        call = Call(id="c1", project="default", tool_name="run", context=DEFAULT_CONTEXT, created_at=datetime.now(UTC))
        self.file.write_text(self.before, encoding="utf-8")
        with (
            toolgate.open(self._database, **self._open) as gate,  # type: ignore[arg-type]
            gate.host.policy_window(call, [str(self.file.parent)], ()),
        ):
            self.file.write_text(text, encoding="utf-8")

    def accepted(self) -> list[str]:
        """Return who accepted what, by the record."""
        with toolgate.open(self._database) as gate:
            events = gate.sync.events(project=SYSTEM_PROJECT, limit=5000)
        return [f"{one.data['by']} {one.data['revision']}" for one in events if one.type == "policy.accepted"]

    def changed(self) -> str:
        return self.before.replace("commands:\n  cat", f"{ADDED}commands:\n  cat")


@pytest_asyncio.fixture(loop_scope="session")
async def held(scene: Scene) -> AsyncIterator[Held]:
    held = Held(scene.server.folder)
    yield held
    held.file.write_text(held.before, encoding="utf-8")
    await noticed(scene, False)  # the next test begins under the policy from before


async def noticed(scene: Scene, is_held: bool) -> str | None:
    """Return the revision that waits, once the server has noticed that one does, or that none does."""
    for _ in range(300):
        found: str | None = (await scene.send("bot", "GET", "policy"))["held"]
        if (found is not None) is is_held:
            return found
        await asyncio.sleep(0.1)
    raise AssertionError("the server noticed nothing")


async def test_a_held_policy_is_seen_by_all_and_accepted_once_by_an_admin(scene: Scene, held: Held) -> None:
    scene.tolerated = ("409",)
    root = await scene.page("root", bypass_csp=True)
    ann = await scene.page("ann", view="#/policy", phone=True)
    await expect(root.locator(".live.open")).to_be_visible()
    await asyncio.to_thread(held.hold, held.changed())
    for page in (root, ann):
        await expect(page.locator(".banner", has_text="Policy held")).to_be_visible()
        await page.get_by_role("link", name="Look at it").click()
        await expect(page.locator("main")).to_contain_text("note: {decision: allow}")
        await expect(page.locator("main")).to_contain_text("Look closely")
        assert "\u202e" not in await page.locator("main").inner_text()
    await expect(ann.locator("main")).to_contain_text("Only an admin accepts it")
    await expect(ann.locator("#accept-policy")).to_have_count(0)
    await picture(ann, "held-policy-decider-phone")
    await check_every_look(root, "held-policy")

    shown = await noticed(scene, True)
    await asyncio.to_thread(
        held.hold, held.changed() + "  od: {decision: ask}\n"
    )  # it changes while somebody looks at it
    await expect(root.locator("main")).to_contain_text("od: {decision: ask}")
    late = await scene.client("root").post(scene.path("policy/accept"), json={"revision": shown})
    assert (late.status_code, "look at what changed" in late.json()["detail"]) == (409, True)

    before = await asyncio.to_thread(held.accepted)
    await expect(root.locator("#accept-policy")).to_be_enabled()
    await root.locator("#accept-policy").dblclick()
    for page in (root, ann):
        await expect(page.locator(".banner", has_text="Policy held")).to_be_hidden()
        await expect(page.locator("main")).to_contain_text("No policy waits for a word")
    source = await scene.send("ann", "GET", "policy/source")
    assert "note: {decision: allow}" in source["files"][0]["text"]
    assert await asyncio.to_thread(held.accepted) == [*before, f"root {source['revision']}"]
    again = await scene.client("root").post(scene.path("policy/accept"), json={"revision": source["revision"]})
    assert again.status_code == 200
    assert len(await asyncio.to_thread(held.accepted)) == len(before) + 1


async def test_a_page_without_script_says_so(scene: Scene, held: Held) -> None:
    await asyncio.to_thread(held.hold, held.changed())
    await noticed(scene, True)
    page = await scene.page(java_script_enabled=False)
    home = await scene.without_script(page, "ann")
    await page.goto(f"{home}/approvals?project={scene.project}")
    await expect(page.locator(".banner", has_text="Policy held")).to_contain_text("toolgate policy accept")
