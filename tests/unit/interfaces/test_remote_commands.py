"""The commands for people on a server: the same words, the same keys, another place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.programs import here
from tests.unit.interfaces.at_a_terminal import Person
from tests.unit.interfaces.client.listener import always, listening, problem
from tests.unit.interfaces.server.house import House, open_house

import toolgate
from toolgate.client import Client


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house() as house:
        yield house


async def asked(house: House, tool: str = "pay", **params: Any) -> str:
    async with Client(house.url, token=house.tokens["ann"], project="demo") as ann:
        made = await ann.call(tool, params, wait=False)
        return made.approval_id or made.call_id


async def test_questions_are_listed_shown_and_answered(house: House, tmp_path: Path) -> None:
    bob = Person(house, "bob", tmp_path)
    waiting = await asked(house, amount=5)
    (listed,) = (await bob("inbox", "--json")).json["pending"]
    assert (listed["approval_id"], listed["arguments"]) == (waiting, {"amount": 5})
    shown = (await bob("show", waiting[:30])).out
    assert "Asked by: agent:ann on behalf of ann" in shown
    assert f"Digest: {listed['digest']}" in shown
    done = await bob("approve", waiting, "--digest", listed["digest"], "--remember", 2, "--json")
    assert (done.code, done.json["approved_by"]) == (0, "bob")
    late = await bob("deny", waiting, "--reason", "no")
    assert (late.code, "already approved" in late.err) == (1, True)
    (grant,) = (await bob("grants", "list", "--json")).json["grants"]
    assert (grant["max_uses"], grant["project"]) == (2, "demo")
    assert "is revoked" in (await bob("grants", "revoke", grant["id"][:30])).out
    assert (await bob("grants", "list")).out == "There are no grants that can be used.\n"


async def test_a_vote_is_lent_used_and_taken_back(house: House, tmp_path: Path) -> None:
    await house.add("cid", "person")
    await house.add("dia", "person")
    cid, dia, bob = (Person(house, name, tmp_path) for name in ("cid", "dia", "bob"))
    assert (await dia("delegations", "list")).out == "No vote is lent.\n"
    given = (await cid("delegations", "give", "dia", "--for", "8h", "--tool", "pay", "--json")).json
    assert (given["giver"], given["delegate"], given["tools"], given["is_live"]) == ("cid", "dia", ["pay"], True)
    listed = (await bob("delegations", "list")).out
    assert all(words in listed for words in ("vote of  lent to", "cid      dia", "live"))
    done = await dia("approve", await asked(house, amount=5), "--on-behalf-of", "cid", "--json")
    assert (done.code, done.json["approved_by"]) == (0, "dia for cid")
    assert (await dia("deny", await asked(house, amount=6), "--on-behalf-of", "cid")).code == 0
    refused = await dia("delegations", "end", given["delegation_id"][:30])
    assert (refused.code, "may not end this delegation" in refused.err) == (1, True)
    ended = await cid("delegations", "end", given["delegation_id"][:30])
    assert "dia may not give the vote of cid any more" in ended.out
    assert "ended by cid" in (await bob("delegations", "list", "--all")).out


async def test_arguments_are_edited_and_calls_denied(house: House, tmp_path: Path) -> None:
    bob = Person(house, "bob", tmp_path)
    first, second = await asked(house, amount=5), await asked(house, amount=6)
    assert (await bob("edit", first, "--arguments", '{"amount": 2}')).code == 0
    assert "not a JSON object" in (await bob("edit", second, "--arguments", "[]")).err
    assert "REJECTED" in (await bob("deny", second, "--reason", "no")).out
    calls = (await bob("history", "--json")).json["calls"]
    assert [call["shown"]["amount"] for call in calls] == [6, 2]
    assert "REJECTED" in (await bob("history", "--limit", 1)).out


async def test_what_is_too_long_must_be_looked_at_in_full_first(house: House, tmp_path: Path) -> None:
    bob = Person(house, "bob", tmp_path)
    waiting = await asked(house, "drop", name="y" * 5000)
    assert "too long" in (await bob("approve", waiting)).err
    digest = (await bob("show", waiting, "--full", "--json")).json["digest"]
    assert (await bob("approve", waiting, "--digest", digest, "--reason", "seen")).code == 0


async def test_calls_and_runs_are_undone_and_watched(house: House, tmp_path: Path) -> None:
    bob = Person(house, "bob", tmp_path)
    async with Client(house.url, token=house.tokens["ann"], project="demo") as ann:
        for number in range(3):
            await ann.call("keep", {"value": number}, call_id=f"c{number}", run_id="r1")
    assert "was undone, unchecked: nobody can see" in (await bob("undo", "c0")).out
    again = await bob("undo", "c0")
    assert (again.code, bool(again.out or again.err)) == (1, True)
    preview = (await bob("undo-run", "r1", "--preview", "--json")).json
    assert len(preview["steps"]) == 3
    assert (await bob("undo-run", "r1")).code == 0
    events = (await bob("watch", "--after", 0, "--count", 2, "--json")).out.splitlines()
    assert '"tool.invoked"' in events[0]
    assert "tool.invoked" in (await bob("watch", "--after", 0, "--count", 1)).out


@pytest.mark.parametrize("preview", [[], ["--preview"]])
async def test_a_run_that_there_is_not_is_told_as_on_a_database(
    house: House, tmp_path: Path, preview: list[str]
) -> None:
    bob, file = Person(house, "bob", tmp_path), f"sqlite:///{tmp_path / 'beside.db'}"
    async with Client(house.url, token=house.tokens["ann"], project="demo") as ann, toolgate.open(file) as gate:
        for run in (None, "r1"):
            if run is not None:
                await ann.call("keep", {"value": 1}, run_id=run)
                await gate.call("keep", {"value": 1}, context=toolgate.Context(project="demo", run_id=run))
            there = await bob("undo-run", "r9", *preview)
            beside = await asyncio.to_thread(here, "undo-run", file, "r9", "--project", "demo", *preview)
            known = "it has no runs" if run is None else "its latest runs are: r1"
            assert f"There is no run 'r9' in project `demo`; {known}." in there.err
            assert run is None or (there.code, there.out, there.err) == (beside.code, beside.out, beside.err)
            assert there.code == 1


async def test_wrong_use_is_said_in_one_line(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bob = Person(house, "bob", tmp_path)
    assert "leave --by" in (await bob("approve", "x", "--by", "bob")).err
    assert "leave --by" in (await bob("undo", "x", "--tools", "os")).err
    assert "nothing of this name" in (await bob("show", "x")).err
    assert "terminal" in (await bob("inbox")).err
    monkeypatch.delenv("TOOLGATE_TOKEN", raising=False)
    assert "TOOLGATE_TOKEN" in (await asyncio.to_thread(here, "history", "--server", house.url)).err
    monkeypatch.setenv("TOOLGATE_TOKEN", "tg_wrong")
    assert "token create" in (await asyncio.to_thread(here, "history", f"--server={house.url}")).err
    monkeypatch.setenv("TOOLGATE_TOKEN", "tg_wrong")
    far = await asyncio.to_thread(here, "history", "--server", "http://gate.example.com")
    assert "--plain-http" in far.err
    assert "http://" in (await asyncio.to_thread(here, "history", "--server", "gate.example.com")).err
    open_file = tmp_path / "open.token"
    open_file.write_text("tg_x", encoding="utf-8")
    open_file.chmod(0o644)
    told = await asyncio.to_thread(here, "history", "--server", house.url, "--token-file", open_file)
    assert "chmod 600" in told.err
    told = await asyncio.to_thread(here, "history", "--server", house.url, "--token-file", tmp_path / "none")
    assert "cannot be read" in told.err


async def test_a_server_cannot_steer_the_terminal(tmp_path: Path, house: House) -> None:
    async with listening(always(problem(403, "not_allowed", "\x1b[2Jadmin says yes"))) as server:
        house.url = server.url
        told = await Person(house, "bob", tmp_path)("history")
        assert "\x1b" not in told.out + told.err
        assert told.code == 1


async def test_the_brake_is_pulled_released_and_shown(house: House, tmp_path: Path) -> None:
    bob, root = Person(house, "bob", tmp_path), Person(house, "root", tmp_path)
    pulled = await bob("mode", "LOCKDOWN", "--project", "demo", "--run", "r1", "--reason", "it loops", "--json")
    assert [(one["mode"], one["run"], one["by"]) for one in pulled.json["brakes"]] == [("LOCKDOWN", "r1", "bob")]
    refused = await bob("mode", "NORMAL", "--project", "demo", "--run", "r1")
    assert (refused.code, "not release" in refused.err) == (1, True)
    shown = (await bob("mode", "--project", "demo")).out
    assert "Everybody is in NORMAL." in shown
    assert "run 'r1' in project 'demo'" in shown
    assert "it loops" in shown
    assert (await root("mode", "normal", "--project", "demo", "--run", "r1")).out == "Everybody is in NORMAL.\n"
    assert (await bob("mode", "LOCKDOWN", "--project", "demo")).code == 0
    assert (await bob("mode", "LOCKDOWN", "--everybody")).code == 1  # for admins
    assert "Everybody is in LOCKDOWN." in (await root("mode", "LOCKDOWN", "--everybody")).out


async def test_the_brake_works_on_a_database_as_well(tmp_path: Path) -> None:
    file = str(tmp_path / "t.db")
    async with toolgate.open(f"sqlite:///{file}"):
        pass
    told = await asyncio.to_thread(here, "mode", file, "ALERT", "--by", "ann", "--json")
    assert (told.json["mode"], told.json["brakes"][0]["by"]) == ("ALERT", "ann")
    told = await asyncio.to_thread(here, "mode", file, "LOCKDOWN", "--project", "p", "--agent", "bot")
    assert "agent 'bot' in project 'p'" in told.out
    one_too_many = ["ALERT", "--project", "p", "--run", "r"]
    for wrong in (
        ["LOCKDOWN", "--run", "r"],
        ["PARTY"],
        ["--reason", "why"],
        [*one_too_many, "--everybody"],
        [*one_too_many, "--agent", "a"],
    ):
        assert (await asyncio.to_thread(here, "mode", file, *wrong)).code == 2


async def test_what_nobody_knows_is_listed_and_settled(tmp_path: Path) -> None:
    @toolgate.tool(effects="irreversible", risk_level="low")
    async def lose(to: str) -> None:
        """Lose the answer."""
        raise ConnectionResetError

    async with open_house(tools=[lose]) as house:
        call = await asked(house, "lose", to="cid")
        bob, bot = Person(house, "bob", tmp_path), Person(house, "bot", tmp_path)
        listed = (await bob("recover")).out
        assert all(words in listed for words in (call, "unknown for", "Settle one: toolgate recover CALL"))
        assert "--by" not in listed
        missing = await bob("recover", call, "--happened")
        assert (missing.code, "--reason TEXT" in missing.err, "--by" in missing.err) == (1, True, False)
        unsure = await bob("recover", call, "--not-yet", "--reason", "the bank is shut")
        assert unsure.out == f"{call} is UNKNOWN still.\n"
        assert f"{call}: bob did not know yet: the bank is shut" in (await bob("recover")).out
        (one,) = (await bob("recover", "--json")).json["unknown"]
        assert (one["id"], one["shown"], one["said"][0]["by"]) == (call, {"to": "cid"}, "bob")
        assert (await bot("recover", call, "--happened", "--reason", "trust me")).code == 1
        settled = await bob("recover", call, "--did-not-happen", "--reason", "not on the statement", "--json")
        assert settled.json == {"call_id": call, "status": "FAILED"}
        assert (await bob("recover")).out == "No call has an unknown outcome.\n"
