"""Accessible to everybody in light and dark, on a phone and on a desk; pictures of it are kept for people."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect
from tests.console.scene import Scene, check_axe, picture
from tests.console.workplace import AFTER


async def fill(scene: Scene) -> None:
    claim = "I make saved files readable and retry more often, as asked."
    await scene.ask("edit_file", {"path": "src/store.py", "content": AFTER}, claim=claim, run_id="nightly")
    await scene.ask("drop_table", {"name": "invoices_2019", "cascade": True}, claim="The table is unused.")
    for number in range(4):
        await scene.ask("notify", {"to": f"group-{number}@example.org", "subject": "Maintenance", "count": 250})
    await scene.ask("notify", {"to": "adm\u0456n@example.org", "subject": "pay\u202egnp.exe"})
    for _ in range(3):
        await scene.ask("note", {"text": "Water the plants"})


async def open_row(page: Page, text: str) -> None:
    if await page.locator(".back").is_visible():
        await page.locator(".back").click()
    await page.locator(".row", has_text=text).first.locator("a").click()
    await expect(page.locator(".card .effect, .card .verdict").first).to_be_visible()


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_every_state_of_the_inbox_is_accessible(scene: Scene, phone: bool, dark: bool) -> None:
    name = f"{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}"
    page = await scene.page("root", phone=phone, dark=dark, bypass_csp=True)
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await check_axe(page)
    await picture(page, f"empty-{name}")
    await fill(scene)
    await expect(page.locator(".row")).to_have_count(8)
    if phone:
        await check_axe(page)
        await picture(page, f"inbox-list-{name}")
    await open_row(page, "edit_file")
    await check_axe(page)
    await picture(page, f"inbox-{name}")
    await page.get_by_role("button", name="Edit").click()
    text = page.get_by_role("textbox", name="Arguments")
    await text.fill((await text.input_value()).replace("RETRIES = 5", "RETRIES = 4"))
    await expect(page.locator(".panel .diff")).to_be_visible()
    await check_axe(page)
    await picture(page, f"inbox-edit-{name}")
    await open_row(page, "drop_table")
    await check_axe(page)
    await picture(page, f"inbox-high-{name}")
    await open_row(page, "hidden characters")
    await page.get_by_role("button", name="Remember").click()
    await expect(page.get_by_text("Would have matched")).to_be_visible()
    await check_axe(page)
    await picture(page, f"inbox-remember-{name}")
    await open_row(page, "note")
    await page.locator("#reject").click()
    await open_row(page, "rejected")
    await check_axe(page)
    await picture(page, f"inbox-decided-{name}")
    await page.get_by_role("button", name="Keyboard help").click()
    await check_axe(page)
    await page.keyboard.press("Escape")
    width = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width == 0  # nothing sticks out sideways
    waiting = (await scene.send("root", "GET", "approvals?status=pending"))["approvals"]
    for path in (f"/approvals/plain?project={scene.project}", f"/approvals/{waiting[0]['approval_id']}/plain"):
        await page.goto(scene.server.url + path)
        await check_axe(page)
