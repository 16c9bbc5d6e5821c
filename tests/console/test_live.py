"""What happens while somebody looks: others decide, questions arrive, the server dies and comes back."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from playwright.async_api import Browser, Route, expect
from tests.console.scene import ConsoleServer, Scene


async def test_two_approvers_race_and_the_second_is_told_who_was_first(scene: Scene) -> None:
    asked = await scene.ask("notify", {"to": "all@example.org", "subject": "Once"})
    ann, bob = await asyncio.gather(scene.page("ann"), scene.page("bob"))
    for page in (ann, bob):
        await expect(page.locator("#approve")).to_be_enabled()
    scene.tolerated = ("409",)
    both = asyncio.Barrier(2)

    async def together(route: Route) -> None:
        await both.wait()  # neither page hears of the other's answer before its own is on its way
        await route.continue_()

    for page in (ann, bob):
        await page.route(re.compile(r"/(approve|reject)$"), together)
    await asyncio.gather(ann.locator("#approve").click(), bob.locator("#reject").click())
    decided = await scene.call(asked, until=["completed", "rejected"])
    approval = await scene.approval(asked)
    winner = approval["decided_by"]
    loser = bob if winner == "ann" else ann
    await expect(loser.locator(".toast.bad", has_text=f"by {winner}")).to_be_visible()
    await expect(loser.locator(".notice.warn")).to_contain_text("Changed since you looked")
    for page in (ann, bob):  # the card is still there, and says who decided
        await expect(page.locator(".verdict")).to_contain_text(f"by {winner}")
        await expect(page.locator(".row")).to_contain_text(f"by {winner}")
    assert (decided["status"] == "completed") == (winner == "ann")


async def test_what_was_not_shown_cannot_be_approved(scene: Scene) -> None:
    asked = await scene.ask("notify", {"to": "all@example.org", "subject": "Shown"})

    async def tamper(route: Route) -> None:
        await expect(page.locator(".row")).to_have_count(1)  # the stream would put the real digest back
        response = await route.fetch()
        told = await response.json()
        told["card"]["digest"] = "0" * 64
        await route.fulfill(response=response, json=told)

    page = await scene.page(None, view="/login")
    await page.route("**/artifact", tamper)
    await page.get_by_label("Your token").fill(scene.server.tokens["ann"])
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_text("Live")).to_be_visible()
    await page.goto(f"{scene.server.url}/?project={scene.project}#/inbox/{asked}")
    await expect(page.locator("#approve")).to_be_enabled()
    scene.tolerated = ("409",)
    await page.unroute("**/artifact")
    await page.locator("#approve").click()  # what it shows is not what waits: refused, fetched again, and marked
    await expect(page.locator(".toast.bad")).to_contain_text("covers something else than what was shown")
    await expect(page.locator(".notice.warn")).to_contain_text("What would run is not what was shown")
    assert (await scene.approval(asked))["status"] == "pending"
    await page.locator("#approve").click()
    await scene.call(asked, until=["completed"])


async def test_typing_and_focus_survive_what_arrives(scene: Scene) -> None:
    await scene.ask("notify", {"to": "first@example.org", "subject": "First"})
    page = await scene.page()
    reason = page.get_by_label("Reason")
    await reason.fill("Half a sen")
    footer = await page.locator(".answer").bounding_box()
    for number in range(5):
        await scene.ask("drop_table", {"name": f"table_{number}"})
        await scene.ask("note", {"text": f"note {number}"})
    await expect(page.locator(".row")).to_have_count(11)
    await expect(reason).to_be_focused()
    await page.keyboard.type("tence")
    await expect(reason).to_have_value("Half a sentence")
    assert await page.locator(".answer").bounding_box() == footer  # nothing that is aimed at has moved
    await expect(page.locator(".row.here")).to_contain_text("first@example.org")
    await expect(page.locator(".row").first).to_contain_text("drop_table")  # the riskiest first
    await expect(page).to_have_title("(11) Inbox · Toolgate")
    await page.locator(".row", has_text="note 3").locator("a").focus()
    await scene.ask("drop_table", {"name": "one_more"})
    await expect(page.locator(".row")).to_have_count(12)
    await expect(page.locator(".row", has_text="note 3").locator("a")).to_be_focused()


async def test_the_brake_is_told_to_everybody(scene: Scene) -> None:
    asked = await scene.ask("note", {"text": "later"})
    root, ann = await asyncio.gather(scene.page("root"), scene.page("ann"))
    await expect(ann.get_by_role("button", name="Lockdown")).to_have_count(0)
    await expect(ann.locator("#approve")).to_be_enabled()
    await root.get_by_role("button", name="Lockdown").click()
    await root.get_by_label("Why?").fill("Something is wrong")
    await root.get_by_role("button", name="Lock down").click()
    try:
        await expect(ann.locator(".banner:visible")).to_contain_text("LOCKDOWN")
        await expect(ann.locator("#approve")).to_be_disabled()
        await expect(ann.locator(".todo")).to_contain_text("Nothing can be decided in LOCKDOWN")
    finally:
        await root.get_by_role("button", name="Back to normal").click()
        await root.get_by_label("Why?").fill("It was nothing")
        await root.get_by_role("dialog").get_by_role("button", name="Back to normal").click()
    await expect(ann.locator(".banner:visible")).to_have_count(0)
    await ann.locator("#approve").click()
    await scene.call(asked, until=["completed"])


async def test_a_page_outlives_the_server(tmp_path: Path, browser: Browser) -> None:
    server = ConsoleServer(tmp_path)
    await server.prepare()
    await server.start()
    scene = Scene(server, browser)
    try:
        await scene.ask("note", {"text": "asked before"})
        other = await scene.ask("note", {"text": "decided meanwhile"})
        page = await scene.page()
        await expect(page.locator(".row")).to_have_count(2)
        await expect(page.locator("#approve")).to_be_enabled()
        scene.tolerated = ("Failed to load resource", "ERR_INCOMPLETE_CHUNKED_ENCODING", "net::ERR")
        await server.kill()
        await expect(page.get_by_text("Reconnecting")).to_be_visible()
        await page.locator("#approve").click()
        await expect(page.locator(".toast.bad")).to_contain_text("cannot be reached")
        await server.start()
        await scene.send("bob", "POST", f"approvals/{other}/reject", {"reason": "no"})
        await scene.ask("note", {"text": "asked after"})
        await expect(page.get_by_text("Live")).to_be_visible()
        await expect(page.locator(".row")).to_have_count(3)
        await expect(page.locator(".row.rejected")).to_contain_text("by bob")
        await page.locator(".row", has_text="asked after").locator("a").click()
        await expect(page.locator("#approve")).to_be_enabled()
    finally:
        await scene.close()
        await server.stop()


async def test_a_run_is_stopped_where_it_is_shown(scene: Scene) -> None:
    asked = await scene.ask("note", {"text": "stop me"}, run_id="stray")
    other = await scene.ask("note", {"text": "go on"}, who="ann", run_id="calm")
    ann = await scene.page("ann", view="#/run/stray")
    await ann.get_by_role("button", name="Stop run").click()
    await ann.get_by_label("Why?").fill("It strays")
    await ann.get_by_role("dialog").get_by_role("button", name="Stop run").click()
    held = ann.locator(".braked")
    try:
        await expect(held).to_contain_text("LOCKDOWN over run stray")
        await expect(held).to_contain_text(re.compile(r"· ann (just now|\d+ (s|min) ago) · It strays"))
        await expect(held.get_by_role("button", name="Release")).to_have_count(0)  # ann is no admin
        bob = await scene.page("bob", view=f"#/inbox/{asked}")
        await expect(bob.locator(".todo")).to_contain_text("Nothing can be decided in LOCKDOWN")
        await bob.goto(f"{scene.server.url}/?project={scene.project}#/inbox/{other}")
        await expect(bob.locator("#approve")).to_be_enabled()
    finally:
        root = await scene.page("root")
        await root.locator(".braked").get_by_role("button", name="Release").click()
        await root.get_by_label("Why?").fill("Mended")
        await root.get_by_role("dialog").get_by_role("button", name="Release").click()
    await expect(held).to_be_hidden()
