"""The card of a command that runs on another machine shows what the policy judged: words, program and paths."""

from __future__ import annotations

from playwright.async_api import expect
from tests.console.scene import Scene, check_every_look, picture

LONG = "x" * 160
LINE = f"cat notes.txt | nl 'a\u202eb' {LONG}"


async def test_a_card_shows_the_commands_that_were_judged(scene: Scene) -> None:
    asked = await scene.ask("run_line", {"command": LINE})
    page = await scene.page(view=f"#/inbox/{asked}")
    found = page.locator("section", has=page.get_by_role("heading", name="What the policy found in the arguments"))
    await expect(found).to_contain_text("/cat")
    await expect(found).to_contain_text("notes.txt")
    await expect(found).to_contain_text("at its client, from its workspace, in the sandbox")
    await expect(found).to_contain_text('"workspace": "read-only"')
    await expect(found).to_contain_text('"network": "none"')
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


async def test_the_person_grants_a_network_for_one_call(scene: Scene) -> None:
    asked = await scene.ask("run_line", {"command": "factor 3 | rev"})
    page = await scene.page(view=f"#/inbox/{asked}", bypass_csp=True)
    box = page.get_by_role("checkbox", name="Let it use the network, this once")
    await box.check()
    await check_every_look(page, "network")
    await page.get_by_role("button", name="Remember").click()  # what a panel sends is what it shows
    await expect(box).to_have_count(0)
    await page.get_by_role("button", name="Remember", exact=True).click()
    await expect(box).not_to_be_checked()
    await box.check()
    await expect(page.locator("#approve")).to_be_enabled()
    await page.locator("#approve").dblclick()
    call = await scene.call(asked, until=["approved", "executing"])
    assert call["tool_params"] == {"command": "factor 3 | rev", "network": True}
    assert call["approved_by"] == "ann"


async def test_an_exact_line_is_allowed_from_now_on_after_its_change_was_shown(scene: Scene) -> None:
    asked = await scene.ask("run_line", {"command": "factor 77 'a b'"})
    decider = await scene.page(view=f"#/inbox/{asked}", phone=True)
    await decider.get_by_role("button", name="Always allow").click()
    await expect(decider.get_by_role("form", name="Allow this exact line")).to_contain_text("toolgate policy learn")
    await expect(decider.get_by_role("button", name="Write it into the policy")).to_have_count(0)
    page = await scene.page("root", view=f"#/inbox/{asked}", bypass_csp=True)
    await page.get_by_role("button", name="Always allow").click()
    panel = page.get_by_role("form", name="Allow this exact line from now on")
    await expect(panel).to_contain_text("factor 77 'a b'")
    await expect(panel).to_contain_text("only_lines: true")
    write = page.get_by_role("button", name="Write it into the policy")
    await expect(write).to_be_enabled()
    await panel.scroll_into_view_if_needed()
    await check_every_look(page, "learn")
    await write.dblclick()
    await expect(page.locator(".toast", has_text="knows this line from now on")).to_be_visible()
    text = (scene.server.folder / "toolgate.yaml").read_text(encoding="utf-8")
    assert text.count('["77", "a b"]') == 1
    assert (await scene.approval(asked))["status"] == "pending"
