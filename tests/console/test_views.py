"""Journeys through the views beside the inbox: watch, look closer, undo, try, revoke, verify."""

from __future__ import annotations

from tests.console import stories
from tests.console.scene import Scene, picture


async def test_pictures(scene: Scene) -> None:
    scene.tolerated = ("404", "501")
    run = stories.run_id()
    ids = await stories.a_days_work(scene, run)
    for dark, phone in ((False, False), (True, True)):
        page = await scene.page("root", view="#/activity", dark=dark, phone=phone)
        tail = "-phone-dark" if phone else ""
        for name, view in {
            "activity": "#/activity",
            "call": f"#/call/{ids['edit']}",
            "call-rejected": f"#/call/{ids['notify']}",
            "runs": "#/run",
            "run": f"#/run/{run}",
            "chat": "#/chat",
            "policy": "#/policy",
            "policy-explain": "#/policy/explain",
            "policy-try": "#/policy/try",
            "grants": "#/grants",
            "audit": "#/audit",
            "audit-record": f"#/audit/{ids['edit']}",
        }.items():
            await page.evaluate(f"location.hash = '{view}'")
            await page.wait_for_timeout(500)
            await picture(page, name + tail)
