"""The menu leads to every view, from an inbox with something in it too."""

from __future__ import annotations

import pytest
from playwright.async_api import ViewportSize, expect
from tests.console.scene import Scene

VIEWS = ["Activity", "Runs", "Chat", "Policy", "Grants", "Delegations", "Audit"]


@pytest.mark.parametrize("width", [375, 900, 1400])
async def test_every_entry_of_the_menu_leads_to_its_view(scene: Scene, width: int) -> None:
    await scene.ask("note", {"text": "first"})
    page = await scene.page()
    await page.set_viewport_size(ViewportSize(width=width, height=800))
    menu = page.get_by_role("navigation", name="Views")
    await expect(page.locator(".row")).to_have_count(1)
    for name in VIEWS:
        await menu.get_by_role("link", name=name).click()
        await expect(menu.get_by_role("link", name=name)).to_have_attribute("aria-current", "page")
        await expect(page.get_by_role("main").get_by_role("heading", level=1)).to_have_text(name)
        await expect(page.locator(".inbox")).to_have_count(0)
        await menu.get_by_role("link", name="Inbox").click()
        await expect(page.locator(".row")).to_have_count(1)


@pytest.mark.parametrize("width", [390, 1000, 1280])
async def test_nothing_in_the_head_of_an_admins_page_is_squeezed(scene: Scene, width: int) -> None:
    page = await scene.page("root")
    await page.set_viewport_size(ViewportSize(width=width, height=800))
    for name in ("Lockdown", "Stop project"):
        box = await page.get_by_role("button", name=name).bounding_box()
        assert box is not None
        assert box["height"] < 45, "its words stand on one line"
        assert box["x"] + box["width"] <= width
    menu = page.get_by_role("navigation", name="Views")
    assert width < 760 or await menu.evaluate("menu => menu.scrollWidth <= menu.clientWidth"), "every view is in sight"
