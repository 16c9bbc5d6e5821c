"""Every way to answer a question, as a person does it in the browser."""

from __future__ import annotations

import re

from playwright.async_api import Page, Route, expect
from tests.console.scene import Scene
from tests.console.workplace import AFTER


async def choose(page: Page, text: str) -> None:
    await page.locator(".row.pending", has_text=text).locator("a").click()
    await expect(page.locator(".row.here", has_text=text)).to_be_visible()
    await expect(page.locator(".card .effect")).to_be_visible()


async def test_approve_reject_and_undo(scene: Scene) -> None:
    edit = await scene.ask("edit_file", {"path": "src/store.py", "content": AFTER}, claim="It is safe, trust me.")
    drop = await scene.ask("drop_table", {"name": "invoices"})
    keep = await scene.ask("note", {"text": "water the plants"})
    page = await scene.page()
    approve, reject = page.locator("#approve"), page.locator("#reject")

    # The riskiest is on top and looked at; it is neither approved unseen nor without a reason.
    await expect(page.locator(".row.here")).to_contain_text("drop_table")
    await expect(approve).to_be_disabled()
    await expect(page.locator(".code", has_text="invoices")).to_have_count(0)
    await page.get_by_role("button", name="Open it to decide").click()
    await expect(page.locator(".code", has_text="invoices")).to_be_visible()
    await expect(page.get_by_text("Give a reason: the risk is HIGH")).to_be_visible()
    await expect(approve).to_be_disabled()
    await expect(reject).to_be_disabled()  # this tool wants a reason for a no
    await page.get_by_label("Reason").fill("The table is archived")
    await expect(approve).to_be_enabled()
    await approve.click()
    done = await scene.call(drop, until=["completed"])
    assert done["approved_by"] == "ann"
    assert (await scene.approval(drop))["reason"] == "The table is archived"

    # The next question comes up by itself; its claim is fenced off, its change is a diff.
    await expect(page.locator(".row.here")).to_contain_text("edit_file")
    await expect(page.locator(".claim blockquote")).to_have_text("It is safe, trust me.")
    await expect(page.locator(".diff tr.add")).to_have_count(3)
    await expect(page.locator(".diff mark").first).to_have_text("3")
    await expect(page.get_by_text("Can be undone for")).to_be_visible()
    await approve.click()
    await scene.call(edit, until=["completed"])

    # Then a no, with a reason.
    await expect(page.locator(".row.here")).to_contain_text("note")
    await page.get_by_label("Reason").fill("Not now")
    await reject.click()
    assert (await scene.call(keep, until=["rejected"]))["status"] == "rejected"

    # Decided questions stay, say who decided, and can be undone where their effect can.
    await page.locator(".row.approved", has_text="edit_file").locator("a").click()
    await expect(page.locator(".verdict")).to_contain_text("Approved by ann")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator(".toast.good", has_text="Undone, unchecked: edit_file")).to_be_visible()
    await page.get_by_role("button", name="Clear 3 decided").click()
    await expect(page.locator(".row")).to_have_count(0)


async def test_edit_with_a_diff(scene: Scene) -> None:
    asked = await scene.ask(
        "notify", {"to": "all@example.org", "subject": "Hi", "count": 5000, "password": "s3cr3t-w0rd"}
    )
    page = await scene.page()
    await expect(page.locator(".card .effect")).to_be_visible()
    await page.keyboard.press("e")
    count = page.get_by_label("count", exact=True)
    await expect(page.get_by_label("to", exact=True)).to_be_focused()
    assert await page.get_by_label("password", exact=True).input_value() == "***"
    button = page.get_by_role("button", name="Approve with these arguments")
    await expect(page.get_by_text("Nothing is changed yet")).to_be_visible()
    await expect(button).to_be_disabled()
    await count.fill("5,")
    await expect(page.get_by_role("alert")).to_contain_text("not JSON yet")
    await expect(button).to_be_disabled()
    await count.fill("5")
    panel = page.get_by_role("form", name="Approve with other arguments")
    await expect(panel.locator("tr.del")).to_contain_text("5000")
    await expect(panel.locator("tr.add")).to_contain_text("5")
    await expect(page.locator("#approve")).to_be_disabled()  # what was asked is not approved by habit
    await page.get_by_role("button", name="Edit as JSON").click()
    text = page.get_by_role("textbox", name="Arguments")
    await text.fill((await text.input_value()).replace("Hi", "Hello"))
    await expect(panel.locator("tr.add")).to_have_count(2)
    await page.get_by_label("Reason").fill("Five are enough")
    await button.click()
    await expect(page.locator(".toast.good")).to_contain_text("Approved with your changes")
    done = await scene.call(asked, until=["completed"])
    assert (done["tool_params"]["count"], done["tool_params"]["subject"]) == (5, "Hello")
    assert done["result"]["secret"] is True  # what stayed masked is what it was
    await expect(page.locator(".row")).to_contain_text("edited")
    await expect(page.locator(".verdict")).to_contain_text("edited by ann")


async def test_an_edit_of_high_risk_becomes_a_question_that_shows_its_change(scene: Scene) -> None:
    asked = await scene.ask("migrate", {"rows": 30})
    page = await scene.page()
    await page.get_by_role("button", name="Open it to decide").click()
    await page.get_by_label("Reason").fill("Two are enough")
    await page.get_by_role("button", name="Edit", exact=True).click()
    await page.get_by_role("textbox", name="rows").fill("2")
    await page.get_by_role("button", name="Approve with these arguments").click()
    await expect(page.locator(".toast.good")).to_contain_text("waits as a question of its own")
    await expect(page.locator(".row.here")).to_contain_text("2")
    await expect(page.locator("#approve")).to_be_disabled()
    await page.get_by_role("button", name="Open it to decide").click()
    await expect(page.locator(".card")).to_contain_text("row 1")
    await expect(page.locator(".card")).not_to_contain_text("row 2")
    await page.get_by_label("Reason").fill("Two are enough")
    await page.locator("#approve").click()
    done = await scene.call(asked, until=["completed"])
    assert done["result"] == 2


async def test_respond_remember_and_what_is_hidden(scene: Scene) -> None:
    asked = await scene.ask("note", {"text": "which colour?"})
    page = await scene.page()
    await choose(page, "which colour?")
    await page.get_by_role("button", name="Respond").click()
    await page.get_by_label("What the agent gets").fill("Blue.")
    await page.get_by_role("button", name="Send the answer").click()
    answered = await scene.call(asked, until=["rejected"])
    assert (answered["error_type"], answered["result"]) == ("responded", "Blue.")

    # A yes is remembered for what the person says, and no more.
    first = await scene.ask("notify", {"to": "team@example.org", "subject": "News", "count": 3})
    await choose(page, "team@example.org")
    await page.get_by_role("button", name="Remember").click()
    await page.get_by_label("At most this many times").fill("2")
    await page.get_by_label("subject", exact=True).select_option("like")
    await page.get_by_label("Pattern for subject").fill("N*")
    await expect(page.get_by_label("Highest for count")).to_be_hidden()
    await page.get_by_label("count", exact=True).select_option("between")
    await expect(page.get_by_label("Lowest for count")).to_have_value("0")
    await page.get_by_label("Highest for count").fill("10")
    await expect(page.get_by_text("Would have matched 0 of the last")).to_be_visible()
    await page.get_by_role("button", name="Approve and remember").click()
    await scene.call(first, until=["completed"])
    grant = (await scene.send("ann", "GET", "grants"))["grants"][0]
    assert (grant["max_uses"], grant["granted_by"]) == (2, "ann")
    assert grant["pattern"]["subject"] == {"like": "N*"}
    assert grant["pattern"]["count"] == {"at_least": 0, "at_most": 10}
    params = {"to": "team@example.org", "subject": "Notes", "count": 10}
    again = {"tool_name": "notify", "tool_params": params, "wait": False}
    assert (await scene.send("bot", "POST", "tools/execute", again))["approval_id"] is None

    # What was left out must be shown before a yes is possible.
    text = "\n".join(f"line {number}" for number in range(400)) + "\nthe last word"
    long = await scene.ask("note", {"text": text})
    await choose(page, "line 0")
    await expect(page.locator("#approve")).to_be_disabled()
    await expect(page.get_by_text("Show what is hidden")).to_be_visible()
    await page.get_by_role("button", name="Show everything").click()
    await expect(page.locator(".code").first).to_contain_text("line 399")
    await page.locator("#approve").click()
    await scene.call(long, until=["completed"])


async def test_what_is_very_long_is_shown_piece_by_piece_to_its_end_before_a_yes(scene: Scene) -> None:
    text = "\n".join(f"row {number}" for number in range(12_000)) + "\nthe very last word"
    asked = await scene.ask("note", {"text": text})
    page = await scene.page()
    await choose(page, "row 0")
    await expect(page.get_by_text("characters are not shown")).to_be_visible()
    await page.get_by_role("button", name="Show more").click()
    await expect(page.locator(".code").first).to_contain_text("row 6000")
    await expect(page.locator("#approve")).to_be_disabled()
    await expect(page.get_by_text("Show what is hidden")).to_be_visible()
    while await page.get_by_role("button", name=re.compile("Show (more|everything)")).is_visible():
        left = await page.get_by_text("characters are not shown").inner_text()
        await page.get_by_role("button", name=re.compile("Show (more|everything)")).click()
        await expect(page.get_by_text(left, exact=True)).to_be_hidden()
    await expect(page.locator(".code").first).to_contain_text("the very last word")
    await page.locator("#approve").click()
    await scene.call(asked, until=["completed"])


async def test_a_server_that_does_not_know_what_was_shown_has_it_shown_again(scene: Scene) -> None:
    asked = await scene.ask("migrate", {"rows": 3000})
    early = await scene.client("ann").post(
        f"/my/projects/{scene.project}/approvals/{asked}/approve", json={"reason": "unseen"}
    )
    assert (early.status_code, early.json()["code"]) == (409, "not_shown")
    page = await scene.page()
    scene.tolerated = ("409",)
    forgets = [True]

    async def answer(route: Route) -> None:
        told = {"code": "not_shown", "detail": "This server has not shown it.", "status": 409}
        await (route.fulfill(status=409, json=told) if forgets.pop() else route.continue_())

    await page.route("**/approve", answer)
    for attempt in range(2):
        if attempt == 0:
            await page.get_by_role("button", name="Open it to decide").click()
            await page.get_by_label("Reason").fill("The copy is checked")
        await expect(page.get_by_text("Show what is hidden")).to_be_visible()
        await expect(page.locator("#approve")).to_be_disabled()
        await page.get_by_role("button", name=re.compile("Show (more|everything)")).click()
        await expect(page.locator(".diff")).to_contain_text("row 2999")
        await page.locator("#approve").click()
        if attempt == 0:
            await expect(page.locator(".toast.bad")).to_contain_text("has not shown it")
            forgets.append(False)
    await scene.call(asked, until=["completed"])


async def test_level_full_takes_a_reason_at_medium_risk_too(scene: Scene) -> None:
    asked = await scene.ask("publish", {"name": "front page"})
    page = await scene.page()
    await expect(page.get_by_text("Give a reason: it is asked at level full")).to_be_visible()
    await expect(page.locator("#approve")).to_be_disabled()
    await page.get_by_label("Reason").fill("It was proofread")
    await page.locator("#approve").click()
    await scene.call(asked, until=["completed"])


async def test_escalate_extend_comment_and_who_may_only_look(scene: Scene) -> None:
    asked = await scene.ask("drop_table", {"name": "orders"})
    page = await scene.page()
    before = (await scene.approval(asked))["expires_at"]
    await page.get_by_role("button", name="Comment").click()
    await page.get_by_label("Comment").fill("Who owns this table?")
    await page.get_by_role("form", name="Discuss it").get_by_role("button").click()
    await expect(page.locator(".talk")).to_contain_text("Who owns this table?")
    await page.get_by_role("button", name="Extend").click()
    await page.get_by_label("From now").select_option("86400")
    await page.get_by_role("form", name="Extend the time").get_by_role("button").click()
    await expect(page.locator(".toast.good", has_text="time was extended")).to_be_visible()
    assert (await scene.approval(asked))["expires_at"] > before
    await page.get_by_role("button", name="Escalate").click()
    await page.get_by_role("form", name="Ask others too").get_by_role("button").click()
    await expect(page.locator(".facts")).to_contain_text("finance, lead")

    # An agent can look at questions, and never decide them.
    watcher = await scene.page("bot")
    await expect(watcher.locator(".card .facts")).to_be_visible()
    await expect(watcher.locator("#approve")).to_be_disabled()
    await expect(watcher.locator("#reject")).to_be_disabled()
    await expect(watcher.get_by_text("You may look at this question")).to_be_visible()
