"""The pages without a script: every form, by every kind of account, before and after a demotion."""

from __future__ import annotations

import pytest
from tests.authority.accounts import HOME, STATES, WHO, Who, change, come, expected
from tests.signed_in import sign_in
from tests.unit.interfaces.server.house import House, P, execute

from toolgate.authority import Verb

FORMS: tuple[tuple[Verb, str, str, dict[str, str]], ...] = (
    (Verb.READ, "GET", "approvals?project=demo", {}),
    (Verb.READ, "GET", "approvals/{approval}", {}),
    (Verb.COMMENT, "POST", "approvals/{approval}", {"answer": "comment", "reason": "hm"}),
    (Verb.DECIDE, "POST", "approvals/{approval}", {"answer": "reject", "reason": "no"}),
    (Verb.SET_MODE, "POST", "brake", {"project": "demo", "mode": "NORMAL", "reason": "drill"}),
)


@pytest.mark.parametrize("who", WHO, ids=lambda who: who.name)
async def test_a_page_does_what_its_account_may_do_now(house: House, who: Who) -> None:
    wrong = []
    for state in STATES:
        await come(house, who)
        body = execute("pay", {"amount": 1}, wait=False)
        asked = (await house.client("ann").post(f"{P}/tools/execute", json=body)).json()["approval_id"]
        browser = house.client(Origin=house.url)
        keys = await sign_in(browser, house.tokens[who.name])
        await change(house, who, state)
        for verb, method, path, form in FORMS:
            answer = await browser.request(method, f"{keys.pages}/{path.format(approval=asked)}", data=form)
            is_out = answer.status_code == 303 and answer.headers["location"] == "/login"
            given, refusals = 401 if is_out else answer.status_code, expected(verb, who, state, HOME)
            if given not in refusals if refusals else given not in (200, 303):
                wrong.append((verb, path, state, given, sorted(refusals)))
    assert wrong == []
