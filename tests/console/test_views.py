"""Journeys through the views beside the inbox: watch, look closer, undo, try, revoke, verify, talk."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace

import pytest
from playwright.async_api import Page, Route, expect
from tests.console import stories
from tests.console.scene import Scene, check_axe, picture
from tests.console.stories import HOSTILE

from toolgate import bootstrap
from toolgate.testing.patience import PATIENCE_S


async def visit(page: Page, view: str) -> None:
    """Go to another view of the same page."""
    await page.goto(page.url.split("#")[0] + view)


async def test_activity_is_live_and_never_moves_what_somebody_looks_at(scene: Scene) -> None:
    ids = await stories.a_days_work(scene, stories.run_id())
    page = await scene.page("ann", view="#/activity")
    rows = page.get_by_role("list", name="Calls").get_by_role("listitem")
    await expect(rows).to_have_count(6)
    await expect(rows.nth(1)).to_contain_text("drop_table")
    await picture(page, "activity")
    await stories.execute(scene, "look_up", {"key": "first"})
    await expect(rows).to_have_count(7)
    await expect(rows.first).to_contain_text("key=first")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    focused = page.locator(":focus")
    await expect(focused).to_contain_text("look_up")
    await stories.execute(scene, "look_up", {"key": "second"})
    fresh = page.get_by_role("button", name="Show 1 new")
    await expect(fresh).to_be_visible()
    await expect(rows).to_have_count(7)
    await expect(focused).to_contain_text("look_up")
    await fresh.click()
    await expect(rows.first).to_contain_text("key=second")
    await page.keyboard.press("/")
    await page.keyboard.type("friday")
    await expect(rows).to_have_count(1)
    await expect(rows.first).to_contain_text("notify")
    assert "text=friday" in page.url
    await page.get_by_label("Search calls").fill("nothing like it")
    await page.get_by_role("button", name="Clear filters").click()
    await page.get_by_label("Status").select_option("awaiting_approval")
    await expect(rows).to_have_count(1)
    await rows.first.get_by_role("link").click()
    await expect(page.get_by_role("heading", name="drop_table")).to_be_visible()
    await expect(page.get_by_role("link", name="Decide")).to_be_visible()
    await page.get_by_role("link", name="Its run").focus()
    await scene.send("ann", "POST", f"tools/{ids['drop']}/cancel", {"reason": "enough"})
    await expect(page.locator(".timeline")).to_contain_text("Cancelled")
    await expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    await expect(page.locator(":focus")).to_have_text("Its run")


async def test_a_call_tells_each_stage_with_its_time_and_reason(scene: Scene) -> None:
    ids = await stories.a_days_work(scene, stories.run_id())
    page = await scene.page("ann", view=f"#/call/{ids['edit']}")
    steps = page.locator(".timeline .step")
    await expect(steps).to_have_count(7)
    stages = await steps.locator(".stage").all_inner_texts()
    assert stages == ["Validate", "Permit", "Assess", "Approve", "Approve", "Execute", "Record"]
    await expect(steps.nth(4)).to_contain_text("Looks right, tests are green")
    await picture(page, "call")
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Download as JSON").click()
    kept = (await (await downloading.value).path()).read_text(encoding="utf-8")
    assert ids["edit"] in kept
    await page.get_by_role("button", name="Undo").click()
    await page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    await expect(page.locator(".timeline")).to_contain_text("Undone, unchecked")
    await visit(page, f"#/call/{ids['notify']}")
    await expect(page.locator(".timeline")).to_contain_text("Not on a Friday")
    await expect(page.locator("main")).not_to_contain_text("hunter2")
    scene.tolerated = ("404",)
    for view, words in (("call", "no such call"), ("run", "no such run"), ("audit", "no such call")):
        await visit(page, f"#/{view}/nothing")
        await expect(page.get_by_text(words)).to_be_visible()


async def test_a_run_is_undone_after_a_look_at_what_that_does(scene: Scene) -> None:
    run = stories.run_id()
    await stories.a_days_work(scene, run)
    page = await scene.page("ann", view="#/run")
    await page.get_by_role("list", name="Runs").get_by_role("link").click()
    rows = page.get_by_role("list", name="Calls of the run").get_by_role("listitem")
    await expect(rows).to_have_count(6)
    await page.get_by_role("button", name="Undo run").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("cannot be undone")
    await expect(dialog).to_contain_text("it is AWAITING_APPROVAL, not COMPLETED")
    await expect(dialog.get_by_role("button", name="Nothing to undo")).to_be_disabled()
    await dialog.get_by_label("Go on past").check()
    await expect(dialog.get_by_text("will be undone")).to_have_count(2)
    await expect(dialog.get_by_text("unchecked: nobody can see")).to_have_count(2)
    await picture(page, "undo-run")
    await dialog.get_by_role("button", name="Undo 2 calls").click()
    await expect(dialog.get_by_text("What was undone")).to_be_visible()
    await dialog.get_by_role("button", name="Close").click()
    await expect(rows).to_have_count(8)
    await expect(rows.nth(2)).to_contain_text("undo")
    await picture(page, "run")


async def test_a_policy_is_read_explained_and_tried(scene: Scene) -> None:
    ids = await stories.a_days_work(scene, stories.run_id())
    page = await scene.page("ann", view="#/policy")
    row = page.get_by_role("row", name="note")
    await expect(row).to_contain_text("ask")
    await expect(page.locator(".source")).to_contain_text("default: by_risk")
    await picture(page, "policy")
    await visit(page, f"#/call/{ids['edit']}")
    await page.get_by_role("link", name="What would the policy say now?").click()
    await expect(page.locator(".verdict-line:visible")).to_contain_text("ask")
    await page.get_by_label("Arguments (JSON)").fill("{")
    await page.get_by_role("button", name="Explain").click()
    await expect(page.get_by_role("alert").filter(visible=True)).to_contain_text("not JSON")
    await page.get_by_role("link", name="Try a change").click()
    text = page.get_by_label("toolgate.yaml")
    await text.fill("default: by_risk\ntools:\n  keep: {decison: deny}\n")
    tries = page.get_by_role("button", name="Try it on recorded calls")
    await tries.click()
    await expect(page.get_by_text("toolgate.yaml:3")).to_be_visible()
    await text.fill("default: by_risk\ntools:\n  keep: {decision: deny}\n")
    await tries.click()
    await expect(page.locator(".big")).to_have_text(
        "2 of 5 calls would be decided differently"
    )  # one is asked at another level
    await expect(page.locator(".groups")).to_contain_text("stricter")
    await picture(page, "policy-try")
    viewer = await scene.page("bot", view="#/policy")
    await expect(viewer.get_by_text("Only people who decide")).to_be_visible()


async def test_a_grant_of_somebody_who_lost_the_right_says_so(scene: Scene) -> None:
    asked = await scene.ask("notify", {"to": "team@example.com", "subject": "Hello"})
    await scene.send("bob", "POST", f"approvals/{asked}/approve", {"remember": {"uses": 5}})
    await scene.call(asked, until=["completed"])
    directory = bootstrap.directory(f"sqlite:///{scene.server.database}")
    bob = await directory.account("bob")
    assert bob is not None
    await directory.put_account(replace(bob, roles={**bob.roles, scene.project: frozenset({"viewer"})}))
    await directory.close()
    page = await scene.page("ann", view="#/grants")
    grant = page.get_by_role("list", name="Grants").get_by_role("listitem").first
    await expect(grant).to_contain_text("It covers nothing: bob, who gave it, may not decide in this project any more.")
    await expect(grant.get_by_role("button", name="Revoke")).to_be_visible()


async def test_a_grant_is_seen_and_taken_back(scene: Scene) -> None:
    page = await scene.page("ann", view="#/grants")
    await expect(page.get_by_text("No live grants")).to_be_visible()
    asked = await scene.ask("notify", {"to": "team@example.com", "subject": "Hello", "count": 3})
    remember = {"uses": 5, "seconds": 3600, "pattern": {"count": {"at_most": 10}, "subject": "any"}}
    await stories.decide(scene, asked, remember=remember)
    grant = page.get_by_role("list", name="Grants").get_by_role("listitem").first
    await expect(grant).to_contain_text("count from 0 to 10")
    await expect(grant).to_contain_text("0 of 5 uses")
    await stories.execute(scene, "notify", {"to": "team@example.com", "subject": "Again", "count": 2})
    await expect(grant).to_contain_text("1 of 5 uses")
    await picture(page, "grants")
    await grant.get_by_role("button", name="Revoke").click()
    await page.get_by_label("Why?").fill("No longer needed")
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("No live grants")).to_be_visible()
    await page.get_by_role("button", name="Also ended ones").click()
    await expect(grant).to_contain_text("revoked by ann: No longer needed")


async def test_the_chain_is_verified_and_a_change_behind_it_is_found(scene: Scene) -> None:
    ids = await stories.a_days_work(scene, stories.run_id())
    page = await scene.page("ann", view="#/audit")
    await page.get_by_role("button", name="Check now").click()
    await expect(page.get_by_role("heading", name="The chain is whole")).to_be_visible()
    await picture(page, "audit")
    await page.get_by_label("Id of a call").fill(ids["edit"])
    await page.get_by_role("button", name="Show").click()
    await expect(page.get_by_text("hash fits")).to_have_count(5)
    await picture(page, "audit-record")
    connection = sqlite3.connect(scene.server.database, timeout=PATIENCE_S)
    with connection:
        connection.execute(
            "UPDATE events SET frame=CAST(replace(frame, 'ann', 'eve') AS BLOB) WHERE project_id=? AND type=?",
            (scene.project, "approval.decided"),
        )
    connection.close()
    await page.get_by_role("link", name="The chain").click()
    await page.get_by_role("button", name="Check everything again").click()
    await expect(page.get_by_role("heading", name="The chain is broken")).to_be_visible()
    await expect(page.locator(".standing")).to_contain_text("was altered")
    await visit(page, f"#/audit/{ids['edit']}")
    await expect(page.get_by_text("altered")).to_have_count(1)


async def test_people_talk_with_the_agent_and_see_its_calls(scene: Scene) -> None:
    page = await scene.page("ann", view="#/chat")
    await expect(page.get_by_text("Talk to the agent")).to_be_visible()
    words = page.get_by_label("Message to the agent")
    await words.fill('/tool note {"text": "' + HOSTILE.replace('"', "'") + '"}')
    await words.press("Enter")
    call = page.locator(".made")
    await expect(call).to_contain_text("awaiting approval")
    await picture(page, "chat")
    await expect(page.get_by_role("status").filter(has_text="Waits for")).to_be_visible()
    await call.get_by_role("link", name="Decide").click()
    await expect(page.locator(".inbox")).to_be_visible()
    (asked,) = (await scene.send("ann", "GET", "approvals?status=pending"))["approvals"]
    await page.go_back()
    await stories.decide(scene, asked["approval_id"])
    await expect(call).to_contain_text("completed")
    await expect(page.locator(".said.agent")).to_have_count(2)
    await expect(page.locator("main img, main script")).to_have_count(0)
    await page.reload()
    await expect(page.locator(".said.agent")).to_have_count(2)
    await expect(page.get_by_role("navigation", name="Conversations").get_by_role("listitem")).to_have_count(1)
    await picture(page, "chat-done")
    await words.fill('/tool drop_table {"name": "orders"}')
    await words.press("Enter")
    await expect(call).to_have_count(2)
    await page.get_by_role("button", name="Cancel").click()
    await expect(call.nth(1)).to_contain_text("cancelled")
    await expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.get_by_text("Talk to the agent")).to_be_visible()


async def test_what_the_agent_says_while_the_conversation_is_read_stays(scene: Scene) -> None:
    page = await scene.page("ann", view="#/chat")
    words = page.get_by_label("Message to the agent")
    await words.fill('/tool note {"text": "meanwhile"}')
    await words.press("Enter")
    await expect(page.locator(".made")).to_contain_text("awaiting approval")
    (asked,) = (await scene.send("ann", "GET", "approvals?status=pending"))["approvals"]

    async def late(route: Route) -> None:
        answer = await route.fetch()  # as it was before the agent went on
        await stories.decide(scene, asked["approval_id"])
        await expect(page.get_by_role("status").filter(has_text="Waits for")).to_have_count(0)
        await expect(page.locator(".said.agent")).not_to_have_count(0)
        await route.fulfill(response=answer)

    await page.route("**/messages?*", late)
    await page.reload()
    await expect(page.locator(".said.agent")).to_have_count(2)


async def test_hostile_words_stay_words_in_every_view(scene: Scene) -> None:
    run = HOSTILE.replace("/", "").replace("\u202e", "").replace("\u200b", "")  # as hostile as an id can be
    asked = await scene.ask("note", {"text": HOSTILE}, run_id=run, session_id=run, claim=HOSTILE)
    call = await stories.decide(scene, asked, reason=HOSTILE, remember={"uses": 2, "pattern": {"text": "any"}})
    await stories.execute(scene, "look_up", {"key": 7, HOSTILE: HOSTILE}, run_id=run)
    page = await scene.page("ann", view="#/activity")
    await page.evaluate("() => { window.alert = () => { throw new Error('a script ran'); }; }")
    where = {
        "#/activity": "note", f"#/call/{call['tool_id']}": "Completed", "#/run": "note", "#/grants": "0 of 2",
        f"#/audit/{call['tool_id']}": "hash fits", "#/audit": "tool.completed",
    }  # fmt: skip
    for view, words in where.items():
        await visit(page, view)
        await expect(page.locator("main")).to_contain_text(words)
        await expect(page.locator("main img, main script, main iframe")).to_have_count(0)
        assert "\u202e" not in await page.locator("main").inner_text()
    await visit(page, "#/run")
    await page.get_by_role("list", name="Runs").get_by_role("link").first.click()
    await expect(page.get_by_role("list", name="Calls of the run")).to_contain_text("⟦U+202E⟧")
    await visit(page, "#/policy/explain")
    await page.get_by_label("Tool", exact=True).fill(HOSTILE)
    scene.tolerated = ("404",)
    await page.get_by_role("button", name="Explain").click()
    await expect(page.get_by_role("alert").filter(visible=True)).to_contain_text("nothing of this name")


@pytest.mark.parametrize(("dark", "phone"), [(False, False), (True, True)], ids=["desktop, light", "phone, dark"])
async def test_every_view_is_accessible_and_fits(scene: Scene, dark: bool, phone: bool) -> None:
    run = stories.run_id()
    ids = await stories.a_days_work(scene, run)
    views = {
        "#/activity": "drop_table", f"#/call/{ids['edit']}": "What happened", "#/run": "6 calls",
        f"#/run/{run}": "Calls, in order",
        "#/chat": "Talk to the agent", "#/policy": "by_risk", "#/policy/explain": "A test call",
        "#/policy/try": "Changed text", "#/grants": "No live grants", "#/audit": "tool.invoked",
        f"#/audit/{ids['edit']}": "hash fits",
    }  # fmt: skip
    page = await scene.page("root", dark=dark, phone=phone, bypass_csp=True)
    for number, (view, words) in enumerate(views.items()):
        await visit(page, view)
        await expect(page.locator("main").get_by_text(words).filter(visible=True).first).to_be_visible()
        await check_axe(page)
        overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, f"{view} is wider than the page"
        if phone:
            await picture(page, f"phone-dark-{number}-{view.split('/')[1]}")


async def test_a_view_goes_on_after_the_server_was_killed(scene: Scene) -> None:
    scene.tolerated = ("net::ERR_",)  # a killed server breaks off whatever it was sending
    await stories.execute(scene, "look_up", {"key": "before"})
    page = await scene.page("ann", view="#/activity")
    rows = page.get_by_role("list", name="Calls").get_by_role("listitem")
    await expect(rows).to_have_count(1)
    await scene.server.kill()
    await expect(page.get_by_text("Reconnecting")).to_be_visible()
    await scene.server.start()
    await expect(page.get_by_text("Live")).to_be_visible()
    await stories.execute(scene, "look_up", {"key": "after"})
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text("key=after")


async def test_an_unknown_outcome_is_looked_at_and_settled(scene: Scene) -> None:
    body = {"tool_name": "wire_money", "tool_params": {"to": "bob"}}
    call = (await scene.send("bot", "POST", "tools/execute", body))["tool_id"]
    page = await scene.page("ann", view=f"#/call/{call}")
    dialog = page.get_by_role("dialog")
    for button, does, reason in (
        ("I do not know yet", "Say so", "the bank answers tomorrow"),
        ("It took effect", "Settle", "it is on the statement"),
    ):
        await page.get_by_role("button", name=button).click()
        await dialog.get_by_role("textbox").fill(reason)
        await dialog.get_by_role("button", name=does).click()
        await expect(page.locator(".timeline")).to_contain_text(reason)
    await expect(page.locator(".timeline")).to_contain_text("Settled as COMPLETED")
    await expect(page.get_by_text("Outcome settled by").locator("..")).to_contain_text("ann")


async def test_an_unknown_outcome_has_an_age_and_its_repeat_names_it(scene: Scene) -> None:
    body = {"tool_name": "wire_money", "tool_params": {"to": "eve"}, "run_id": "run-7", "wait": False}
    first = (await scene.send("bot", "POST", "tools/execute", body))["tool_id"]
    again = (await scene.send("bot", "POST", "tools/execute", body))["tool_id"]
    joined = await scene.send("bot", "POST", "tools/execute", {**body, "tool_id": "third"})
    assert (joined["tool_id"], joined["joined"]) == (again, True)
    page = await scene.page("ann", view="#/activity")
    rows = page.get_by_role("list", name="Calls").get_by_role("listitem")
    await expect(rows.nth(1)).to_contain_text(re.compile(r"for \d+ s"))
    await picture(page, "activity-unknown")
    await visit(page, f"#/call/{first}")
    await expect(page.get_by_text(re.compile(r"Nobody knows whether this took effect, for \d+ s"))).to_be_visible()
    await picture(page, "call-unknown")
    await visit(page, f"#/call/{again}")
    await expect(page.get_by_text("Effect key").locator("..")).to_contain_text("wire:eve")
    await expect(page.locator(".timeline")).to_contain_text("Made again as third, which joined this one")
    await picture(page, "call-repeat")
    await page.get_by_text("Repeats call").get_by_role("link").click()
    await expect(page.get_by_role("button", name="It did not")).to_be_visible()
