"""The card of a command that runs on another machine shows what the policy judged: words, program and paths."""

from __future__ import annotations

from playwright.async_api import expect
from tests.console.scene import Scene, picture

LONG = "x" * 240
LINE = f"cat notes.txt | nl 'a\u202eb' {LONG}"


async def test_a_card_shows_the_commands_that_were_judged(scene: Scene) -> None:
    asked = await scene.ask("run_line", {"command": LINE})
    page = await scene.page(view=f"#/inbox/{asked}")
    found = page.locator("section", has=page.get_by_role("heading", name="What the policy found in the arguments"))
    await expect(found).to_contain_text("/cat")
    await expect(found).to_contain_text("notes.txt")
    await expect(found).to_contain_text("\\u202e")
    await expect(found).to_contain_text(LONG)
    box = found.locator(".code")
    assert await box.evaluate("box => box.scrollWidth <= box.clientWidth"), "a long word is broken, not cut off"
    assert "\u202e" not in await page.locator("body").inner_text()
    await found.scroll_into_view_if_needed()
    await picture(page, "judged-commands")

    small = await scene.page("bob", view=f"#/inbox/{asked}", phone=True)
    box = small.locator("section", has=small.get_by_role("heading", name="What the policy found in the arguments"))
    assert await box.locator(".code").evaluate("box => box.scrollWidth <= box.clientWidth")
    await box.scroll_into_view_if_needed()
    await picture(small, "judged-commands-phone")


async def test_a_page_without_script_shows_them_too(scene: Scene) -> None:
    asked = await scene.ask("run_line", {"command": LINE})
    page = await scene.page(java_script_enabled=False)  # a running page would use the session that is replaced
    home = await scene.without_script(page, "ann")
    await page.goto(f"{home}/approvals/{asked}")
    await expect(page.locator("main")).to_contain_text("What the policy found in the arguments")
    await expect(page.locator("main")).to_contain_text("\\u202e")
