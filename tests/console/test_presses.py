"""A press answers the question that was there when it began: never one that came up under it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Page, expect
from tests.console.scene import Scene


async def is_open(scene: Scene, *ids: str) -> list[bool]:
    return [(await scene.approval(id))["status"] == "pending" for id in ids]


async def two_questions(scene: Scene) -> tuple[str, str, Page]:
    first = await scene.ask("notify", {"to": "first@example.org", "subject": "Hi"})
    second = await scene.ask("notify", {"to": "second@example.org", "subject": "Hi"})
    page = await scene.page()
    await expect(page.locator(".row.here")).to_contain_text("first@example.org")
    await expect(page.locator("#approve")).to_be_enabled()
    return first, second, page


async def stop_the_clock(page: Page) -> None:
    """From now on the page's time goes on only where the test says so: a busy machine counts for nothing."""
    await page.clock.install()
    await page.clock.pause_at(datetime.now(UTC) + timedelta(seconds=2))


@pytest.mark.parametrize("name", ["approve", "reject"])
async def test_a_double_click_answers_only_what_was_seen(scene: Scene, name: str) -> None:
    first, second, page = await two_questions(scene)
    await stop_the_clock(page)
    await page.locator(f"#{name}").hover()
    for pause_ms in (0, 1, 300, 400):  # a double click, and slower ones up to 700 ms
        await page.mouse.down()
        await page.mouse.up()
        await scene.call(first, until=["completed", "rejected"])
        await expect(page.locator(".row.here")).to_contain_text("second@example.org")
        await expect(page.locator(".card .effect")).to_be_visible()
        await page.clock.run_for(pause_ms)
    await expect(page.locator(".toast", has_text="just come up").first).to_be_visible()
    assert await is_open(scene, first, second) == [False, True]
    await page.clock.run_for(1000)
    await expect(page.locator(f"#{name}")).to_be_enabled()
    await page.mouse.down()  # it has been there for a moment now
    await page.mouse.up()
    await scene.call(second, until=["completed", "rejected"])


async def test_a_press_that_began_before_the_question_came_up_is_not_for_it(scene: Scene) -> None:
    first, second, page = await two_questions(scene)
    await page.locator("#approve").hover()
    await page.mouse.down()
    await scene.send("bob", "POST", f"approvals/{first}/reject", {})
    await expect(page.locator("#approve")).to_have_count(0)
    await page.evaluate("(hash) => { location.hash = hash }", f"#/inbox/{second}")
    await expect(page.locator("#approve")).to_be_enabled()
    await page.mouse.up()
    await page.keyboard.press("?")  # whatever the press did has been done once this is shown
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await is_open(scene, second) == [True]


async def test_keys_in_a_row_answer_only_what_was_seen(scene: Scene) -> None:
    first, second, page = await two_questions(scene)
    press = page.keyboard.press
    await stop_the_clock(page)
    await press("a")
    await expect(page.locator("#approve")).to_be_focused()
    await press("Enter")
    await expect(page.locator(".row.here")).to_contain_text("second@example.org")
    await expect(page.locator(".card .effect")).to_be_visible()
    await press("a")
    await expect(page.locator("#approve")).to_be_focused()
    await press("Enter")
    await expect(page.locator(".toast", has_text="just come up")).to_be_visible()
    assert await is_open(scene, first, second) == [False, True]
    await page.clock.run_for(1000)
    await expect(page.locator("#approve")).to_be_enabled()
    await press("a")
    await expect(page.locator("#approve")).to_be_focused()
    await press("Enter")
    await scene.call(second, until=["completed"])


async def test_a_double_tap_answers_only_what_was_seen(scene: Scene) -> None:
    first = await scene.ask("notify", {"to": "first@example.org", "subject": "Hi"})
    second = await scene.ask("notify", {"to": "second@example.org", "subject": "Hi"})
    page = await scene.page(view=f"#/inbox/{first}", phone=True, has_touch=True)
    await expect(page.locator("#approve")).to_be_enabled()
    box = await page.locator("#approve").bounding_box()
    assert box is not None
    await stop_the_clock(page)
    where = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    await page.touchscreen.tap(*where)
    await scene.call(first, until=["completed"])
    await expect(page.locator(".card", has_text="second@example.org")).to_be_visible()
    await page.touchscreen.tap(*where)
    await expect(page.locator(".toast", has_text="just come up")).to_be_visible()
    assert await is_open(scene, first, second) == [False, True]


async def test_a_double_click_in_a_dialog_does_not_go_through_it(scene: Scene) -> None:
    ids = [await scene.ask("notify", {"to": f"team-{number}@example.org", "subject": "Hi"}) for number in range(3)]
    page = await scene.page()
    await expect(page.locator(".row.here")).to_contain_text("team-0")
    for name in ("team-1", "team-2"):
        await page.locator(".row", has_text=name).get_by_role("checkbox").check()
    await expect(page.locator("#approve")).to_be_enabled()  # or time from before the clock stops would go on
    await page.get_by_role("button", name="Approve…").click()
    await stop_the_clock(page)
    twice = """() => {
      document.querySelector("dialog button.primary").click();
      const under = document.getElementById("approve");
      under.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
      under.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, detail: 2 }));
    }"""
    await page.evaluate(twice)  # the second press comes before the browser tells that the dialog closed
    await expect(page.locator(".toast", has_text="just come up")).to_be_visible()
    await page.locator("#approve").dispatch_event("pointerdown")  # and a later one after it
    await page.locator("#approve").dispatch_event("click", {"detail": 1})
    for id in ids[1:]:
        await scene.call(id, until=["completed"])
    assert await is_open(scene, ids[0]) == [True]
