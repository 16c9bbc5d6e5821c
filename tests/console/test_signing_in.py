from __future__ import annotations

from datetime import UTC, datetime

from playwright.async_api import expect
from tests.console.scene import Scene, check_axe, picture

from toolgate import bootstrap
from toolgate.interfaces.server.sessions import login_link


async def test_a_person_signs_in_with_a_token_and_out_again(scene: Scene) -> None:
    page = await scene.page(None, view=f"/?project={scene.project}", bypass_csp=True)
    scene.tolerated = ("401", "404")
    await expect(page).to_have_url(f"{scene.server.url}/login?project={scene.project}")
    await check_axe(page)
    await picture(page, "login")
    await page.get_by_label("Your token").fill("tg_wrong")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("not valid")
    await page.goto(f"{scene.server.url}/login?project={scene.project}#/inbox/some-id")
    await page.get_by_label("Your token").fill(scene.server.tokens["ann"])
    await page.get_by_role("button", name="Sign in").click()
    await expect(page).to_have_url(f"{scene.server.url}/?project={scene.project}#/inbox/some-id")
    await expect(page.get_by_text("Live")).to_be_visible()
    await page.get_by_role("button", name="sign out").click()
    await expect(page).to_have_url(f"{scene.server.url}/login")
    await page.goto(scene.server.url)
    await expect(page.get_by_label("Your token")).to_be_visible()


async def test_a_login_link_signs_in_once(scene: Scene) -> None:
    directory = bootstrap.directory(f"sqlite:///{scene.server.database}")
    link = await login_link(directory, "ann", now=datetime.now(UTC), session_s=600)
    await directory.close()
    assert "?" not in link  # nothing that a server or proxy would log
    page = await scene.page(None, view=link)
    await expect(page.get_by_text("Live")).to_be_visible()
    assert "ticket" not in page.url
    scene.tolerated = ("401",)
    again = await scene.page(None, view=link)
    await expect(again.get_by_role("alert")).to_contain_text("works once")


async def test_a_ticket_for_a_stream_begins_no_session(scene: Scene) -> None:
    ticket = (await scene.send("ann", "POST", "tickets"))["ticket"]
    scene.tolerated = ("401",)
    page = await scene.page(None, view=f"/login#ticket={ticket}")
    await expect(page.get_by_role("alert")).to_contain_text("not valid")
