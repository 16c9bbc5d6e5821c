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


async def a_link(scene: Scene, account: str) -> str:
    directory = bootstrap.directory(f"sqlite:///{scene.server.database}")
    link = await login_link(directory, account, now=datetime.now(UTC), session_s=600)
    await directory.close()
    return link


async def test_a_login_link_asks_and_signs_in_once(scene: Scene) -> None:
    link = await a_link(scene, "ann")
    assert "?" not in link  # nothing that a server or proxy would log
    page = await scene.page(None, view=link, bypass_csp=True)
    await expect(page.get_by_text("This link signs you in as ann.")).to_be_visible()
    assert "ticket" not in page.url
    await expect(page.get_by_label("Your token")).to_be_hidden()
    assert await page.context.cookies() == []  # nobody is signed in before they say so
    await check_axe(page)
    await picture(page, "login-link")
    await page.get_by_role("button", name="Sign in as ann").click()
    await expect(page.get_by_text("Live")).to_be_visible()
    scene.tolerated = ("401",)
    again = await scene.page(None, view=link)
    await expect(again.get_by_role("alert")).to_contain_text("works once")
    await expect(again.get_by_label("Your token")).to_be_visible()


async def test_a_link_replaces_nobody_in_silence(scene: Scene) -> None:
    page = await scene.page(None, view="/login")
    await page.get_by_label("Your token").fill(scene.server.tokens["ann"])
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_text("Live")).to_be_visible()
    await page.goto(scene.server.url + await a_link(scene, "root"))
    await expect(page.get_by_text("ann is signed in here now, and will be signed out.")).to_be_visible()
    await picture(page, "login-link-other")
    await page.goto(scene.server.url)
    await expect(page.get_by_role("button", name="sign out")).to_contain_text("ann")
    await page.goto(f"{scene.server.url}/login")
    scene.tolerated = ("409",)
    await page.get_by_label("Your token").fill(scene.server.tokens["root"])
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("ann is signed in here")
    await page.get_by_label("Your token").fill(scene.server.tokens["root"])
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("button", name="sign out")).to_contain_text("root")


async def test_a_page_goes_on_with_the_key_another_page_was_given(scene: Scene) -> None:
    page = await scene.page(None, view="/login")
    for _ in range(2):
        other = await page.context.new_page() if page.url != f"{scene.server.url}/login" else page
        await other.goto(f"{scene.server.url}/login?project={scene.project}")
        await other.get_by_label("Your token").fill(scene.server.tokens["ann"])
        await other.get_by_role("button", name="Sign in").click()
        await expect(other.get_by_text("Live")).to_be_visible()
    scene.tolerated = ("401",)
    await scene.ask("drop_table", {"name": "orders"})
    await page.reload()
    await expect(page.locator(".row")).to_have_count(1)


async def test_a_page_that_lost_its_key_signs_in_again(scene: Scene) -> None:
    page = await scene.page(None, view="/login")
    await page.get_by_label("Your token").fill(scene.server.tokens["ann"])
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_text("Live")).to_be_visible()
    await page.goto(f"{scene.server.url}/login")  # a page that has nothing open
    await page.evaluate("indexedDB.deleteDatabase('toolgate')")
    scene.tolerated = ("401",)
    await page.goto(scene.server.url)
    await expect(page.get_by_label("Your token")).to_be_visible()


async def test_a_ticket_for_a_stream_begins_no_session(scene: Scene) -> None:
    ticket = (await scene.send("ann", "POST", "tickets"))["ticket"]
    scene.tolerated = ("401",)
    page = await scene.page(None, view=f"/login#ticket={ticket}")
    await expect(page.get_by_role("alert")).to_contain_text("not valid")
