"""The inbox over the wire: cards that are safe to show, what a card opens to, the mode, and login links."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.turns import Turns
from tests.unit.interfaces.server.house import SECRET, House, P, execute, open_house

from toolgate.interfaces.server.sessions import login_link

INBOX = f"{P}/inbox"
HOSTILE = "adm\u0456n\u202e<b>"


async def ask(house: House, tool: str, params: dict[str, object], **more: object) -> str:
    answer = (
        await house.client("bot").post(f"{P}/tools/execute", json=execute(tool, params, wait=False, **more))
    ).json()
    approval_id: str = answer["approval_id"]
    return approval_id


async def test_a_stream_tells_open_questions_as_cards_then_every_event(house: House) -> None:
    first = await ask(house, "pay", {"amount": 1, "password": SECRET}, claim=HOSTILE, run_id="adm\u0456n<b>")
    alike = [await ask(house, "drop", {"name": "x"}) for _ in range(2)]
    async with house.listen("ann", INBOX) as heard:
        cards = [await heard.next("inbox.card") for _ in range(3)]
        ready = await heard.ready()
        assert (ready["mode"], ready["project_id"]) == ("NORMAL", "demo")
        assert [card["approval_id"] for card in cards] == [*alike, first]  # the riskiest first
        cards = [cards[2], *cards[:2]]
        assert SECRET not in str(cards)
        assert cards[0]["run_id"] == "adm⟦U+0456⟧n<b>"
        assert len(cards[0]["warnings"]) == 2
        assert cards[1]["group"] == cards[2]["group"] != cards[0]["group"]
        await house.client("bob").post(f"{P}/approvals/{first}/reject", json={"reason": HOSTILE})
        decided = await heard.next("inbox.card")
        assert (decided["status"], decided["decided_by"]) == ("rejected", "bob")
        assert decided["reason"] == "adm⟦U+0456⟧n⟦U+202E⟧<b>"
        event = await heard.next("approval.decided")
        assert event["data"]["request_id"] == first
        seen = event["seq"]
    async with house.listen("ann", INBOX, headers={"Last-Event-ID": str(seen)}) as again:
        assert (await again.next("inbox.mode"))["mode"] == "NORMAL"
        await house.client("root").put(f"{P}/mode", json={"mode": "ALERT", "reason": "look"})
        assert (await again.next("inbox.mode"))["mode"] == "ALERT"
        assert "inbox.card" not in again.names  # what it knew already is not told again


async def test_an_inbox_stream_is_never_offered_calls(house: House) -> None:
    async with house.listen("ann", INBOX) as heard:
        await heard.ready()
        await house.client("ann").post(f"{P}/tools/execute", json=execute("far", wait=False))
        await heard.next("tool.invoked")
        await house.client("ann").post(f"{P}/tools/execute", json=execute("add", {"left": 1, "right": 2}))
        await heard.next("tool.completed")
        assert "tool.execution_signal" not in heard.names


async def test_a_card_opens_to_what_must_be_seen(house: House) -> None:
    text = "\n".join(f"line {number}" for number in range(500)) + HOSTILE
    asked = await ask(house, "drop", {"name": text})
    ann = house.client("ann")
    clipped = (await ann.get(f"{P}/approvals/{asked}/artifact")).json()
    assert clipped["card"]["must_expand"] is True
    assert sum(block["hidden"] for block in clipped["blocks"]) > 0
    whole = (await ann.get(f"{P}/approvals/{asked}/artifact?full=true")).json()
    assert sum(block["hidden"] for block in whole["blocks"]) == 0
    assert "\\u202e" in whole["arguments_text"]
    assert (await house.client("eve").get(f"{P}/approvals/{asked}/artifact")).status_code == 404


async def test_what_was_cut_is_fetched_in_pieces(house: House) -> None:
    asked = await ask(house, "drop", {"name": "line\n" * 9_000 + f"password={SECRET}\n" + "x" * 70_000 + HOSTILE})
    where = f"{P}/approvals/{asked}/artifact"
    ann = house.client("ann")
    whole = (await ann.get(f"{where}?full=true")).json()["arguments_text"]
    piece = (await ann.get(f"{where}/arguments?size=50000")).json()
    text = piece["text"]
    while piece["next"] is not None:
        piece = (await ann.get(f"{where}/arguments?offset={len(text)}&size=50000")).json()
        assert (piece["offset"], piece["characters"]) == (len(text), len(whole))
        text += piece["text"]
    assert text == whole
    assert SECRET not in text
    assert "password=***" in text
    assert "\\u202e" in text
    assert len(piece["warnings"]) == 2
    assert (await house.client("eve").get(f"{where}/arguments")).status_code == 404
    assert (await house.client().get(f"{where}/arguments")).status_code == 401
    assert (await ann.get(f"{where}/nothing")).status_code == 404
    assert (await ann.get(f"{P}/approvals/nobody/artifact/arguments")).status_code == 404
    assert (await ann.get(f"{where}/arguments?size=0")).status_code == 400


async def test_a_card_is_small_however_much_it_is_about(house: House) -> None:
    asked = await ask(house, "drop", {"name": "é" * 100_000}, claim="\u202e" * 900)
    card = (await house.client("ann").get(f"{P}/approvals/{asked}/artifact")).json()["card"]
    assert card["must_expand"] is True
    assert len(str(card)) < 5000


DECEIVING = "a\u0430" * 60_000
"""Two alphabets letter by letter: what takes longest to be shown for what it is."""


@pytest.mark.parametrize(
    "path",
    [
        "/approvals",
        "/approvals/{asked}",
        "/approvals/{asked}/artifact",
        "/approvals/{asked}/artifact/arguments",
        "/approvals/{asked}/difference",
        "/inbox/waiting",
    ],
)
async def test_nobody_else_waits_while_a_question_made_to_be_slow_is_drawn(house: House, path: str) -> None:
    asked = await ask(house, "drop", {"name": DECEIVING})
    where, ann = P + path.format(asked=asked), house.client("ann")
    async with Turns() as turns:
        is_edit = path.endswith("difference")
        answer = await (ann.post(where, json={"tool_params": {"name": DECEIVING}}) if is_edit else ann.get(where))
    assert answer.status_code == 200
    assert turns.were_given


async def test_nobody_else_waits_while_a_stream_begins_with_such_a_question(house: House) -> None:
    async with house.listen("ann", INBOX) as first:
        await first.ready()
        asked = await ask(house, "drop", {"name": DECEIVING})
        async with Turns() as told:
            assert (await first.next("inbox.card"))["approval_id"] == asked
        assert told.were_given
        async with Turns() as opened, house.listen("ann", INBOX) as second:
            assert (await second.next("inbox.card"))["approval_id"] == asked
        assert opened.were_given


async def test_the_difference_of_an_edit_is_told_line_by_line(house: House) -> None:
    asked = await ask(house, "drop", {"name": "one\ntwo\nthree"})
    where = f"{P}/approvals/{asked}/difference"
    found = (await house.client("ann").post(where, json={"tool_params": {"name": "one\nTWO\nthree"}})).json()
    assert (found["additions"], found["deletions"]) == (1, 1)
    assert "-two\\n\n+TWO\\n\n" in found["diff"]
    hostile = (await house.client("ann").post(where, json={"tool_params": {"name": HOSTILE}})).json()
    assert len(hostile["warnings"]) == 2
    assert "\u202e" not in hostile["diff"]
    assert (await house.client("bot").post(where, json={"tool_params": {}})).status_code == 403
    long = (await house.client("ann").post(where, json={"tool_params": {"name": "new\n" * 9000}})).json()
    assert (long["additions"], len(long["diff"]) < 9000) == (9000, True)
    assert long["hidden"] > 9000
    assert "characters hidden …⟧" in long["diff"]
    same = (await house.client("ann").post(where, json={"tool_params": {"name": "one\ntwo\nthree"}})).json()
    assert same["diff"] == ""


async def test_a_login_link_begins_one_session_that_ends_with_its_token() -> None:
    async with open_house() as house:
        link = await login_link(house.directory, "ann", now=datetime.now(UTC), session_s=60)
        browser = house.client()
        signed_in = await browser.post("/login", data={"token": house.url + link, "project": "demo"})
        assert 'content="/?project=demo"' in signed_in.text
        assert "ann" in (await browser.get("/?project=demo")).text
        assert (await house.client().post("/login", data={"token": link})).status_code == 401
        [token] = [one for one in await house.directory.tokens(account="ann") if one.label]
        await house.directory.revoke(token.id, now=datetime.now(UTC))
        assert (await browser.get("/")).headers["location"] == "/login"
