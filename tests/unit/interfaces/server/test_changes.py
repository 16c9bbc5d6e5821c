"""Changing the policy over HTTP, and a network for one call: by what was shown, once, and by who may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.interfaces.server.house import House, P, execute, open_house

from toolgate.catalog.client import client_tools
from toolgate.errors import StoreError
from toolgate.kernel.call import Call
from toolgate.kernel.context import DEFAULT_CONTEXT, SYSTEM_PROJECT
from toolgate.testing.clock import NOON
from toolgate.testing.patience import until

POLICY = """\
version: 1
default: by_risk
hosts: {allow: [example.org], deny: [bad.example.org]}
commands:
  cat: {positionals: [{name: path, value: path, at_most: any}]}
tools:
  execute_command:
    decision: allow
    commands: {unknown: ask}
"""
LOOSER = POLICY + "  read_file: {decision: allow}\n"
CALL = Call(id="c1", project="default", tool_name="run", context=DEFAULT_CONTEXT, created_at=NOON)
LINE = {"command": "A=1 factor 12"}


@pytest.fixture
async def ruled(tmp_path: Path) -> AsyncIterator[House]:
    (tmp_path / "toolgate.yaml").write_text(POLICY)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "elsewhere.yaml").write_text("default: ask\n")
    async with open_house(
        policy=tmp_path / "toolgate.yaml",
        project_policies=tmp_path / "own",
        tools=client_tools(),
        heartbeat_s=0.2,
    ) as house:
        yield house


async def hold(house: House, folder: Path, **texts: str) -> str:
    """Have a run write policy files; return the revision that then waits."""

    def run() -> None:
        with house.gate.host.policy_window(CALL, [str(folder)], ()):
            for name, text in texts.items():
                (folder / name.replace("__", "/")).with_suffix(".yaml").write_text(text)

    await asyncio.to_thread(run)
    await until(house.gate.host.held_revision)
    held = await house.gate.host.held_revision()
    assert held is not None
    return held


async def send(house: House, who: str, method: str, path: str, body: Any = None, project: str = P) -> Any:
    return await house.client(who).request(method, f"{project}/{path}", json=body)


async def accepted(house: House) -> list[str]:
    events = await house.gate.events(project=SYSTEM_PROJECT)
    return [one.data["by"] for one in events if one.type == "policy.accepted"]


async def test_what_waits_is_shown_and_accepted_as_it_was_shown(ruled: House, tmp_path: Path) -> None:
    assert (await send(ruled, "ann", "GET", "policy/held")).json()["held"] is None
    async with ruled.listen("bot", f"{P}/inbox") as heard:
        assert (await heard.next("inbox.policy"))["held"] is None
        revision = await hold(ruled, tmp_path, toolgate=LOOSER, own__elsewhere="default: deny\n")
        assert (await heard.next("inbox.policy"))["held"] == revision
        seen = (await send(ruled, "ann", "GET", "policy/held")).json()["held"]
        whole = (await send(ruled, "root", "GET", "policy/held")).json()["held"]
        assert [len(each["files"]) for each in (seen, whole)] == [1, 2]
        assert [(each["hidden"], each["may_accept"]) for each in (seen, whole)] == [(1, False), (0, True)]
        assert "+  read_file: {decision: allow}" in seen["files"][0]["diff"]
        assert (await send(ruled, "bot", "GET", "policy")).json()["held"] == revision
        assert "toolgate_policy_held 1.0" in (await ruled.client().get("/metrics")).text

        for who, named, status in (("ann", revision, 403), ("bot", revision, 403), ("root", whole["kept"], 409)):
            refused = await send(ruled, who, "POST", "policy/accept", {"revision": named})
            assert refused.status_code == status, refused.text
        body = {"revision": revision}
        answers = await asyncio.gather(*(send(ruled, "root", "POST", "policy/accept", body) for _ in range(4)))
        assert [answer.status_code for answer in answers] == [200] * 4
        assert await accepted(ruled) == ["root"]
        told = await heard.next("inbox.policy")
        assert (told["held"], told["revision"]) == (None, ruled.gate.policy.revision)
    assert (await send(ruled, "ann", "GET", "policy/held")).json()["held"] is None


async def test_files_that_are_no_policy_cannot_be_accepted(ruled: House, tmp_path: Path) -> None:
    revision = await hold(ruled, tmp_path, toolgate=LOOSER)
    (tmp_path / "toolgate.yaml").write_text("version: [")
    refused = await send(ruled, "root", "POST", "policy/accept", {"revision": revision})
    assert (refused.status_code, "is no policy" in refused.json()["detail"]) == (409, True)
    assert await accepted(ruled) == []


async def test_a_store_that_cannot_be_read_ends_no_stream(ruled: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken() -> str | None:
        raise StoreError("gone")

    async with ruled.listen("ann", f"{P}/inbox") as heard:
        await heard.ready()
        with monkeypatch.context() as patch:
            patch.setattr(ruled.gate.host, "held_revision", broken)
            await ruled.services.hub.tell_policy()
        assert not heard.has_ended


async def ask(house: House, params: dict[str, Any]) -> Any:
    return (await send(house, "bot", "POST", "tools/execute", execute("execute_command", params, wait=False))).json()


async def test_an_unknown_line_is_learned_to_the_letter_and_once(ruled: House, tmp_path: Path) -> None:
    asked = await ask(ruled, LINE)
    path = f"tools/{asked['tool_id']}/learn"
    seen, shown = [(await send(ruled, who, "GET", path)).json() for who in ("ann", "root")]
    assert (seen["may_write"], shown["may_write"], shown["lines"]) == (False, True, ["A=1 factor 12"])
    assert (await send(ruled, "bot", "GET", path)).status_code == 403
    body = {"revised": shown["revised"]}
    assert (await send(ruled, "ann", "POST", path, body)).status_code == 403
    assert (await send(ruled, "root", "POST", path, {"revised": "0" * 32})).status_code == 409
    assert (tmp_path / "toolgate.yaml").read_text() == POLICY
    first, second = [await send(ruled, "root", "POST", path, body) for _ in range(2)]
    assert (first.json()["is_followed"], len(first.json()["files"])) == (True, 1), first.text
    assert (second.json()["is_followed"], second.json()["files"]) == (True, []), second.text
    assert (tmp_path / "toolgate.yaml").read_text().count("factor") == 1
    words = [(await ask(ruled, {"command": one}))["status"] for one in ("A=1 factor 12", "factor 12", "A=2 factor 12")]
    assert words[0] in ("approved", "executing")
    assert words[1:] == ["awaiting_approval"] * 2


async def test_a_line_written_during_a_run_waits_for_a_word(ruled: House, tmp_path: Path) -> None:
    path = f"tools/{(await ask(ruled, LINE))['tool_id']}/learn"
    shown = (await send(ruled, "root", "GET", path)).json()
    window = ruled.gate.host.policy_window(CALL, [str(tmp_path)], ())
    await asyncio.to_thread(window.__enter__)
    written = await send(ruled, "root", "POST", path, {"revised": shown["revised"]})
    await asyncio.to_thread(window.__exit__, None, None, None)
    assert (written.status_code, written.json()["is_followed"]) == (200, False)
    assert await ruled.gate.host.held_revision() is not None


async def test_a_file_that_changed_meanwhile_is_left_alone(ruled: House, tmp_path: Path) -> None:
    path = f"tools/{(await ask(ruled, LINE))['tool_id']}/learn"
    shown = (await send(ruled, "root", "GET", path)).json()
    (tmp_path / "toolgate.yaml").write_text(POLICY + "# mine\n")
    refused = await send(ruled, "root", "POST", path, {"revised": shown["revised"]})
    assert refused.status_code == 409, refused.text
    assert "factor" not in (tmp_path / "toolgate.yaml").read_text()


async def test_what_cannot_be_learned_says_why(ruled: House) -> None:
    path = f"tools/{(await ask(ruled, {'command': 'timeout 5 factor 12'}))['tool_id']}/learn"
    refused = await send(ruled, "root", "GET", path)
    assert (refused.status_code, "runs other programs" in refused.json()["detail"]) == (400, True)


async def test_a_policy_of_no_file_learns_nothing() -> None:
    async with open_house() as house:
        asked = (await send(house, "bot", "POST", "tools/execute", execute("pay", {"amount": 1}, wait=False))).json()
        refused = await send(house, "root", "GET", f"tools/{asked['tool_id']}/learn")
        assert (refused.status_code, "comes from no file" in refused.json()["detail"]) == (400, True)


async def test_who_decides_may_give_one_call_a_network(ruled: House) -> None:
    asked = await ask(ruled, LINE)
    at = f"approvals/{asked['approval_id']}"
    artifact = (await send(ruled, "ann", "GET", f"{at}/artifact")).json()
    assert artifact["card"]["has_unknown_command"] is True
    assert "the machine it runs on" in artifact["network"]
    for more in ({"remember": {"uses": 1, "seconds": 60}}, {"on_behalf_of": "bob"}):
        refused = await send(ruled, "ann", "POST", f"{at}/approve", {"network": True, **more})
        assert (refused.status_code, "neither remembered" in refused.json()["detail"]) == (400, True), refused.text
    assert (await send(ruled, "bot", "POST", f"{at}/approve", {"network": True})).status_code == 403
    late = await send(ruled, "bob", "POST", f"{at}/approve", {"network": True, "digest": "0" * 64})
    assert late.status_code == 409
    given = await send(ruled, "bob", "POST", f"{at}/approve", {"network": True, "digest": artifact["card"]["digest"]})
    assert given.status_code == 200, given.text
    call = (await send(ruled, "bob", "GET", f"tools/{asked['tool_id']}")).json()
    assert (call["tool_params"], call["approved_by"]) == ({**LINE, "network": True}, "bob")
    events = await ruled.gate.events(project="demo")
    edited = next(one.data for one in events if one.type == "approval.edited")
    decided = next(one.data for one in events if one.type == "approval.decided")
    assert (edited["edited_by"], edited["difference"]) == ("bob", {"network": {"after": True}})
    assert (decided["decided_by"], decided["digest"] == artifact["card"]["digest"]) == ("bob", False)
    again = await ask(ruled, LINE)
    assert again["status"] == "awaiting_approval", "a network that was granted once is not remembered"


async def test_a_network_that_is_asked_for_or_cannot_be_is_not_granted(ruled: House) -> None:
    asked = await ask(ruled, {**LINE, "network": True})
    at = f"approvals/{asked['approval_id']}"
    assert (await send(ruled, "ann", "GET", f"{at}/artifact")).json()["network"] is None
    refused = await send(ruled, "ann", "POST", f"{at}/approve", {"network": True, "reason": "yes"})
    assert (refused.status_code, "a plain yes grants it" in refused.json()["detail"]) == (400, True)
    other = execute("write_file", {"path": "x", "content": "y"}, wait=False)
    wrote = (await send(ruled, "bot", "POST", "tools/execute", other)).json()
    at = f"approvals/{wrote['approval_id']}"
    refused = await send(ruled, "bob", "POST", f"{at}/approve", {"network": True, "reason": "yes"})
    assert (refused.status_code, "runs no commands" in refused.json()["detail"]) == (400, True), refused.text


async def test_a_file_the_server_may_not_write_is_not_offered_to_be_written(
    ruled: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"tools/{(await ask(ruled, LINE))['tool_id']}/learn"
    monkeypatch.setattr("toolgate.policy.writing.is_writable", lambda _names: False)
    assert (await send(ruled, "root", "GET", path)).json()["may_write"] is False
