"""Whatever an agent or a person writes is text: it adds no element, hides nothing and turns nothing around."""

from __future__ import annotations

from playwright.async_api import Page, expect
from tests.console.scene import Scene

MARKUP = "<img src=x onerror=alert(1)><script>alert(1)</script><b id=injected>bold</b>{{7*7}}"
BIDI = "file\u202egnp.exe\u200b\u2066x"
HOSTILE = f"{MARKUP} {BIDI}"
ID = MARKUP.replace("/", "")[:100]
"""As hostile as an id can be: no part of an address holds a slash."""
INJECTED = "#injected, main img, main script, main iframe, main object, main [onerror], dialog img"


async def check(page: Page) -> None:
    await expect(page.locator(INJECTED)).to_have_count(0)
    text = await page.locator("body").inner_text()
    assert not set(text) & set("\u202e\u200b\u2066")
    assert "49" not in await page.title()


async def test_no_field_can_do_more_than_be_read(scene: Scene) -> None:
    scene.project = "p <b id=injected>"  # even a project's name may be hostile
    more = {"claim": HOSTILE, "run_id": ID, "session_id": ID}
    plain = {"to": HOSTILE, "subject": HOSTILE}
    asked = await scene.ask("notify", plain, **more)
    nested = await scene.ask("edit_file", {"path": HOSTILE, "content": f"{HOSTILE}\n+ {HOSTILE}\n"}, **more)
    page = await scene.page()
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    for name in ("notify", "edit_file"):
        await page.locator(".row", has_text=name).locator("a").click()
        await expect(page.locator(".row.here", has_text=name)).to_be_visible()
        await expect(page.locator(".claim")).to_contain_text("<script>alert(1)</script>")
        await expect(page.locator(".claim")).to_contain_text("⟦U+202E⟧")
        await expect(page.locator(".card .notice.bad").first).to_contain_text("bidirectional")
        await expect(page.locator(".row.here .flag")).to_contain_text("hidden characters")
        await check(page)
    await expect(page.locator(".diff")).to_contain_text("⟦U+202E⟧gnp.exe")

    # People's own words are no better.
    await page.get_by_role("button", name="Comment").click()
    await page.get_by_label("Comment").fill(HOSTILE)
    await page.get_by_role("form", name="Discuss it").get_by_role("button").click()
    await expect(page.locator(".talk")).to_contain_text("<b id=injected>")
    await page.get_by_role("button", name="Edit").click()
    text = page.get_by_role("textbox", name="Arguments")
    assert "\\u202e" in await text.input_value()
    await text.fill((await text.input_value()).replace("file", "other"))
    await expect(page.get_by_role("form", name="Approve with other").locator(".diff")).to_contain_text("\\u202e")
    await check(page)
    await page.get_by_label("Reason").fill(HOSTILE)
    await page.locator("#reject").click()
    await scene.call(nested, until=["rejected"])
    await page.locator(".row.rejected").locator("a").click()
    await expect(page.locator(".verdict")).to_contain_text("<script>alert(1)</script>")
    await check(page)

    home = await scene.without_script(page, "ann")
    await page.goto(f"{home}/approvals/{asked}")
    await expect(page.locator("main")).to_contain_text("<script>alert(1)</script>")
    await check(page)
    await page.goto(f"{home}/approvals?project=%3Cscript%3E")
    await expect(page.locator(INJECTED)).to_have_count(0)
    assert dialogs == []
