"""The keyboard, and answering several questions together."""

from __future__ import annotations

from playwright.async_api import expect
from tests.console.scene import Scene


async def test_everything_is_done_with_the_keyboard(scene: Scene) -> None:
    drop = await scene.ask("drop_table", {"name": "orders"})
    note = await scene.ask("note", {"text": "hello"})
    page = await scene.page()
    press = page.keyboard.press
    await expect(page.locator(".row.here")).to_contain_text("drop_table")
    await press("?")
    await expect(page.get_by_role("dialog")).to_contain_text("Next question")
    await press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await press("j")
    await expect(page.locator(".row.here")).to_contain_text("note")
    await expect(page.locator(".row.here a")).to_be_focused()
    await press("k")
    await expect(page.locator(".row.here")).to_contain_text("drop_table")
    await expect(page.locator(".curtain")).to_be_visible()

    # `a` does what is missing, step by step, and never the yes itself.
    await press("a")
    await expect(page.locator(".code", has_text="orders")).to_be_visible()
    await press("a")
    await expect(page.get_by_label("Reason")).to_be_focused()
    await page.keyboard.type("jkxade are letters here")
    await press("Enter")
    await expect(page.locator("#approve")).to_be_focused()
    assert (await scene.approval(drop))["status"] == "pending"
    await expect(page.locator("#approve")).to_be_enabled()  # the question has been there for a moment
    await press("Enter")
    await scene.call(drop, until=["completed"])

    await expect(page.locator(".row.here")).to_contain_text("note")
    await expect(page.locator("#reject")).to_be_enabled()
    await press("d")
    await expect(page.locator("#reject")).to_be_focused()
    await press("Enter")
    await scene.call(note, until=["rejected"])
    await press("u")
    await expect(page.locator(".toast", has_text="Nothing to undo")).to_be_visible()


async def test_several_are_answered_together_only_where_that_is_harmless(scene: Scene) -> None:
    await scene.ask("drop_table", {"name": "never_in_bulk"})
    sent = [await scene.ask("notify", {"to": f"team-{number}@example.org", "subject": "Hi"}) for number in range(3)]
    await scene.ask("note", {"text": "another tool"})
    alike = [await scene.ask("note", {"text": "the same"}) for _ in range(3)]
    page = await scene.page()
    await expect(page.locator(".row")).to_have_count(6)
    await expect(page.locator(".row", has_text="drop_table").get_by_role("checkbox")).to_have_count(0)
    await expect(page.locator(".row.here")).to_contain_text("drop_table")
    await page.keyboard.press("x")
    await expect(page.locator(".toast")).to_contain_text("HIGH risk is answered one by one")
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await expect(page.locator(".bulk")).to_contain_text("2 chosen")
    await page.locator(".row", has_text="another tool").get_by_role("checkbox").click()
    await expect(page.locator(".toast", has_text="same tool")).to_be_visible()
    await expect(page.locator(".row", has_text="another tool").get_by_role("checkbox")).not_to_be_checked()
    await page.keyboard.press("a")
    dialog = page.get_by_role("dialog")
    await expect(dialog.locator("li")).to_have_count(2)
    await dialog.get_by_label("Reason").fill("Routine")
    await dialog.get_by_role("button", name="Approve 2").click()
    for approval_id in sent[:2]:
        await scene.call(approval_id, until=["completed"])
    assert (await scene.approval(sent[2]))["status"] == "pending"

    # Questions that look alike share a row, and are answered each by its own id.
    await page.locator(".row", has_text="×3").locator("a").click()
    await page.get_by_label("Answer all 3 identical questions").check()
    await page.locator("#reject").click()
    for approval_id in alike:
        await scene.call(approval_id, until=["rejected"])
