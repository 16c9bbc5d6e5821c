"""Accessible to everybody in light and dark, on a phone and on a desk; pictures of it are kept for people."""

from __future__ import annotations

from playwright.async_api import Page, expect
from tests.console.scene import Scene, check_every_look
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
    await page.locator(".row", has_text=text).first.locator("a").click()
    await expect(page.locator(".card .effect, .card .verdict").first).to_be_visible()


async def test_the_inbox_is_accessible_however_it_looks(scene: Scene) -> None:
    page = await scene.page("root", bypass_csp=True)
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await check_every_look(page, "empty")
    await fill(scene)
    await expect(page.locator(".row")).to_have_count(8)
    await open_row(page, "edit_file")
    await check_every_look(page, "inbox")
    await page.get_by_role("button", name="Edit").click()
    text = page.get_by_label("content", exact=True)
    await text.fill((await text.input_value()).replace("RETRIES = 5", "RETRIES = 4"))
    await expect(page.locator(".panel .diff")).to_be_visible()
    await check_every_look(page, "inbox-edit")
    await page.locator("#reject").click()
    await open_row(page, "rejected")
    await check_every_look(page, "inbox-decided")


async def test_what_is_risky_or_suspicious_is_accessible_however_it_looks(scene: Scene) -> None:
    page = await scene.page("root", bypass_csp=True)
    await fill(scene)
    await expect(page.locator(".row")).to_have_count(8)
    await open_row(page, "drop_table")
    await check_every_look(page, "inbox-high")
    await open_row(page, "hidden characters")
    await page.get_by_role("button", name="Remember").click()
    await expect(page.get_by_text("Would have matched")).to_be_visible()
    await check_every_look(page, "inbox-remember")
    await page.get_by_role("button", name="Keyboard help").click()
    await check_every_look(page, "keyboard")
    await page.keyboard.press("Escape")
    asked = (await scene.send("root", "GET", "approvals?status=pending"))["approvals"][0]["approval_id"]
    await page.goto(f"{scene.server.url}/#/inbox")
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(f"{scene.server.url}/?project={scene.project}#/inbox")
    await expect(page.locator(".row")).to_have_count(8)
    await check_every_look(page, "inbox-list")
    home = await scene.without_script(page, "ann")
    for path, name in (("", "plain-list"), (f"/{asked}", "plain-question")):
        await page.goto(f"{home}/approvals{path}?project={scene.project}")
        await check_every_look(page, name)
