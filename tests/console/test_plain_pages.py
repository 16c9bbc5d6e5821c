"""Deciding with JavaScript switched off, and what forms from elsewhere get."""

from __future__ import annotations

import httpx2
from playwright.async_api import expect
from tests.console.scene import Scene
from tests.signed_in import sign_in

from toolgate.testing.patience import PATIENCE_S


async def test_a_person_decides_without_a_script(scene: Scene) -> None:
    drop = await scene.ask("drop_table", {"name": "orders"})
    text = "\n".join(f"line {number}" for number in range(300))
    long = await scene.ask("note", {"text": text})
    page = await scene.page(None, view=f"/login?project={scene.project}", java_script_enabled=False)
    await page.get_by_label("Your token").fill(scene.server.tokens["root"])
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("link", name="Decide without it").click()
    home = page.url.partition("?")[0]
    await expect(page.get_by_role("heading", level=1)).to_have_text("2 waiting")
    await expect(page.locator("li").first).to_contain_text("HIGH")

    await page.get_by_role("link", name="drop_table").click()
    await page.get_by_label("Reason (needed)").fill("It is archived")
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("status")).to_contain_text("Approved by root: It is archived")
    await scene.call(drop, until=["completed"])

    await page.get_by_role("link", name="All questions").click()
    await page.get_by_role("link", name="note").click()
    await expect(page.get_by_role("button", name="Approve")).to_have_count(0)  # a part is hidden
    await page.get_by_role("link", name="Show everything").click()
    await expect(page.locator("pre").nth(2)).to_contain_text("line 299")
    await page.get_by_label("Reason").fill("Why so long?")
    await page.get_by_role("button", name="Comment").click()
    await expect(page.locator("main")).to_contain_text("root: Why so long?")

    await page.get_by_label("Why the mode changes").fill("To be safe")
    await page.get_by_role("button", name="Lock down everything").click()
    await expect(page.locator(".banner")).to_contain_text("LOCKDOWN")
    await page.goto(f"{home}/{long}")
    scene.tolerated = ("409",)
    await page.get_by_role("button", name="Reject").click()
    await expect(page.get_by_role("alert")).to_contain_text("Nothing can be decided in LOCKDOWN")
    await page.get_by_label("Why the mode changes").fill("All is well")
    await page.get_by_role("button", name="Back to normal").click()
    await page.goto(f"{home}/{long}")
    await page.get_by_role("button", name="Reject").click()
    await scene.call(long, until=["rejected"])
    await page.get_by_role("button", name="sign out").click()
    await expect(page).to_have_url(f"{scene.server.url}/login")
    await page.goto(home)
    await expect(page).to_have_url(f"{scene.server.url}/login")


async def test_a_form_that_is_not_ours_changes_nothing(scene: Scene) -> None:
    asked = await scene.ask("drop_table", {"name": "orders"})
    async with httpx2.AsyncClient(base_url=scene.server.url, timeout=PATIENCE_S) as client:
        keys = await sign_in(client, scene.server.tokens["ann"])
        where, brakes = f"{keys.pages}/approvals/{asked}", f"{keys.pages}/brake"
        yes = {"answer": "approve", "reason": "because"}
        for elsewhere in (f"/pages/x/approvals/{asked}", f"/pages/{keys.key}/approvals/{asked}"):
            assert (await client.post(elsewhere, data=yes)).headers["location"] == "/login"
        assert (await client.post("/pages/x/brake", data={"mode": "LOCKDOWN"})).headers["location"] == "/login"
        assert (await client.post(where, data={**yes, "digest": "0" * 64})).status_code == 409
        assert (await client.post(where, data={**yes, "reason": " "})).status_code == 400
        assert (await client.post(where, data={**yes, "answer": "shred"})).status_code == 400
        assert (await client.post(where, data={**yes, "answer": "comment", "reason": ""})).status_code == 400
        assert (await client.post(where, content=b"%%%=;&&")).status_code == 400
        foreign = {"Origin": "https://evil.example"}
        assert (await client.post(where, data=yes, headers=foreign)).status_code == 403
        brake = {"mode": "LOCKDOWN", "project": scene.project}
        assert (await client.post(brakes, data=brake)).status_code == 403  # ann is no admin
        await _check_modes(scene)
        assert (await client.get(f"{keys.pages}/approvals/none")).status_code == 404
        assert (await client.get("/console/other/app.js")).status_code == 404
        assert (await scene.approval(asked))["status"] == "pending"
        shown = await client.get(where)
        assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]
        assert shown.headers["cache-control"] == "no-store"
        await client.request("DELETE", "/session", headers=keys.headers)
        assert (await client.get(where)).status_code == 303  # the session is over
        assert (await client.get("/")).headers["location"] == "/login"


async def test_the_brake_of_a_run_is_pulled_and_released_without_a_script(scene: Scene) -> None:
    form = {"project": scene.project, "reason": "it strays", "over": "run", "name": "stray"}
    async with (
        httpx2.AsyncClient(base_url=scene.server.url, timeout=PATIENCE_S) as ann,
        httpx2.AsyncClient(base_url=scene.server.url, timeout=PATIENCE_S) as root,
    ):
        mine = (await sign_in(ann, scene.server.tokens["ann"])).pages
        theirs = (await sign_in(root, scene.server.tokens["root"])).pages
        assert (await ann.post(f"{mine}/brake", data={**form, "mode": "LOCKDOWN"})).status_code == 303
        page = (await ann.get(f"{mine}/approvals", params={"project": scene.project})).text
        assert "over run stray" in page
        assert "it strays" in page
        assert "Release" not in page
        assert (await ann.post(f"{mine}/brake", data={**form, "mode": "NORMAL"})).status_code == 403
        for wrong in ({"over": "galaxy"}, {"over": "agent", "name": ""}):
            assert (await root.post(f"{theirs}/brake", data={**form, **wrong, "mode": "LOCKDOWN"})).status_code == 400
        assert "Release" in (await root.get(f"{theirs}/approvals", params={"project": scene.project})).text
        assert (await root.post(f"{theirs}/brake", data={**form, "mode": "NORMAL"})).status_code == 303


async def _check_modes(scene: Scene) -> None:
    """A form of an admin that names no mode, or one there is not, does not release the brake."""
    form = {"project": scene.project, "reason": "r"}
    async with httpx2.AsyncClient(base_url=scene.server.url, timeout=PATIENCE_S) as root:
        brakes = f"{(await sign_in(root, scene.server.tokens['root'])).pages}/brake"
        assert (await root.post(brakes, data={**form, "mode": "LOCKDOWN"})).status_code == 303
        try:
            for wrong in ({}, {"mode": "lockdown"}, {"mode": "OFF"}):
                assert (await root.post(brakes, data={**form, **wrong})).status_code == 400
            mode = await scene.client("root").get(f"/my/projects/{scene.project}/mode")
            assert mode.json()["mode"] == "LOCKDOWN"
        finally:
            assert (await root.post(brakes, data={**form, "mode": "NORMAL"})).status_code == 303
