"""Lending a vote in the browser, deciding with it, and ending that."""

from __future__ import annotations

from playwright.async_api import Route, expect
from tests.console.scene import Scene


async def test_a_vote_is_lent_used_and_ended(scene: Scene) -> None:
    bob = await scene.page("bob", view="#/delegations")
    await expect(bob.get_by_text("No vote is lent")).to_be_visible()
    await bob.get_by_label("To", exact=True).fill("ann")
    await bob.get_by_label("Only for these tools").fill("note, publish")
    await bob.get_by_label("Reason").fill("On leave")
    await bob.get_by_role("button", name="Lend it").click()
    lent = bob.get_by_role("list", name="Delegations").get_by_role("listitem").first
    await expect(lent).to_contain_text("ann for bob live")
    await expect(lent).to_contain_text("on note, publish")

    asked = await scene.ask("note", {"text": "water the plants"})
    ann = await scene.page("ann")
    await expect(ann.locator(".row.here")).to_contain_text("note")
    await ann.get_by_label("You decide for").select_option("bob")
    await ann.locator("#approve").click()
    assert (await scene.call(asked, until=["completed"]))["approved_by"] == "ann for bob"
    await expect(ann.locator(".verdict")).to_contain_text("Approved by ann for bob")

    await lent.get_by_role("button", name="End", exact=True).click()
    await bob.get_by_label("Why? It is kept in the audit.").fill("Back")
    await bob.get_by_role("button", name="End it", exact=True).click()
    await expect(bob.get_by_text("No vote is lent")).to_be_visible()
    await bob.get_by_role("button", name="Also ended ones").click()
    await expect(lent).to_contain_text("ended by bob")


async def test_who_has_no_vote_of_their_own_decides_for_its_giver(scene: Scene) -> None:
    await scene.ask("note", {"text": "water the plants"}, who="ann")
    await scene.send("root", "POST", "delegations", {"to": "bob", "seconds": 600})
    page = await scene.page("bob")
    await page.route("**/artifact", _without_own_vote)
    await page.reload()
    await expect(page.get_by_label("You decide for")).to_have_value("root")
    await expect(page.get_by_text("You have no vote of your own on this.")).to_be_visible()
    await page.locator("#reject").click()
    await expect(page.locator(".verdict")).to_contain_text("Rejected by bob for root")


async def _without_own_vote(route: Route) -> None:
    """What the server says where the policy asks for a role that only the giver has."""
    response = await route.fetch()
    await route.fulfill(response=response, json={**(await response.json()), "has_no_own_vote": True})


async def test_a_lent_vote_decides_without_a_script(scene: Scene) -> None:
    await scene.send("root", "POST", "delegations", {"to": "bob", "seconds": 600})
    asked = await scene.ask("note", {"text": "water the plants"})
    page = await scene.page(None, view=f"/login?project={scene.project}", java_script_enabled=False)
    await page.get_by_label("Your token").fill(scene.server.tokens["bob"])
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("link", name="Decide without it").click()
    await page.get_by_role("link", name="note").click()
    await page.get_by_label("You decide for").select_option("root")
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("status")).to_contain_text("Approved by bob for root")
    assert (await scene.call(asked, until=["completed"]))["approved_by"] == "bob for root"
