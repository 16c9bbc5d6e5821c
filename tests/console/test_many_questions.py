"""More questions than the page is told at first: the riskiest are there, the rest is counted and can be had."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect
from tests.console.scene import Scene, picture
from tests.console.workplace import note

import toolgate
from toolgate.kernel.context import Context

MANY = 1100


@pytest.mark.timeout(300)
async def test_high_risk_is_shown_however_many_wait(scene: Scene) -> None:
    async with toolgate.open(f"sqlite:///{scene.server.database}", tools=[note]) as gate:
        bot = Context(principal="bot", project=scene.project)
        for number in range(MANY):
            await gate.call("note", {"text": f"note {number}"}, context=bot, wait=False)
    urgent = await scene.ask("drop_table", {"name": "asked_last"})
    page = await scene.page()
    await expect(page.locator(".row").first).to_contain_text("asked_last", timeout=60_000)
    await expect(page.locator(".row.here")).to_contain_text("asked_last")
    await expect(page.get_by_role("heading", name=re.compile("waiting"))).to_have_text(f"{MANY + 1:,} waiting")
    await expect(page.locator(".rest")).to_contain_text("101 less urgent not shown")
    await picture(page, "many-questions")

    # What is not shown is counted anew when others decide it.
    waiting = (await scene.send("ann", "GET", "inbox/waiting?limit=1000"))["next"]
    rest = (await scene.send("ann", "GET", f"inbox/waiting?limit=1000&after={waiting}"))["cards"]
    assert len(rest) == 101
    await scene.send("bob", "POST", f"approvals/{rest[-1]['approval_id']}/reject", {})
    await expect(page.locator(".rest")).to_contain_text("100 less urgent not shown")
    await page.get_by_role("button", name="Show more").click()
    await expect(page.locator(".rest")).to_be_hidden()
    await expect(page.locator(".row")).to_have_count(MANY, timeout=60_000)
    assert (await scene.approval(urgent))["status"] == "pending"
