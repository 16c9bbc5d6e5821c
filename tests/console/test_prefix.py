"""The console of a server that is mounted under a prefix, in a real browser."""

from __future__ import annotations

from playwright.async_api import Browser, expect
from tests.unit.interfaces.server.test_mounting import PREFIX, made, mounted, served

from toolgate import Context


async def test_a_person_signs_in_decides_and_signs_out_under_a_prefix(browser: Browser) -> None:
    async with made() as (app, text), served(mounted(app)) as url:
        home = url + PREFIX
        page = await browser.new_page()
        wrong: list[str] = []
        page.on("response", lambda answer: wrong.append(answer.url) if answer.status >= 400 else None)
        try:
            await page.goto(f"{home}/?project=demo")
            await expect(page).to_have_url(f"{home}/login?project=demo")
            await page.get_by_label("Your token").fill(text)
            await page.get_by_role("button", name="Sign in").click()
            await expect(page.get_by_text("Live")).to_be_visible()
            gate = app.state.services.gate
            context = Context(project="demo", principal="agent:a")
            asked = await gate.call("pay", {"amount": 3}, context=context, wait=False)
            await page.get_by_role("button", name="Approve").first.click()
            assert (await gate.wait(asked.call_id, project="demo")).data["paid"] == 3
            await page.get_by_role("button", name="sign out").click()
            await expect(page).to_have_url(f"{home}/login")
            assert wrong == []
        finally:
            await page.close()
