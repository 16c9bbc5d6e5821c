"""`deny` and `reject` are the same word, wherever a person says no."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.programs import here
from tests.unit.interfaces.server.house import House, P, open_house

import toolgate
from toolgate.client import Client
from toolgate.errors import UsageError
from toolgate.ports.channel import Decision


@toolgate.tool(risk_level="medium")
async def send(to: str) -> str:
    return to


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    """One question."""
    async with toolgate.open(tmp_path / "a.db", tools=[send]) as gate:
        await gate.call("send", {"to": "bob"}, wait=False)
    return tmp_path / "a.db"


async def test_deny_and_reject_are_one_word(database: Path) -> None:
    assert Decision("reject") is Decision.DENY
    with pytest.raises(ValueError, match="rejekt"):
        Decision("rejekt")
    async with toolgate.open(database, tools=[send]) as gate:
        [asked] = await gate.pending()
        with pytest.raises(UsageError):
            await gate.decide(asked.id, "no", by="ann")
        assert (await gate.decide(asked.id, "reject", by="ann")).status == "REJECTED"


@pytest.mark.parametrize("word", ["deny", "reject"])
def test_both_words_are_commands(database: Path, word: str) -> None:
    asked = here("inbox", database, "--json").json["pending"][0]["approval_id"]
    assert here(word, database, asked, "--by", "ann", "--json").json["status"] == "REJECTED"


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house() as house:
        yield house


async def test_both_words_are_methods_of_the_client(house: House) -> None:
    bot = house.client("bot")
    for word in ("deny", "reject"):
        body = {"tool_name": "pay", "tool_params": {"amount": 1}, "wait": False}
        asked = (await bot.post(f"{P}/tools/execute", json=body)).json()["approval_id"]
        async with Client(house.url, token=house.tokens["bob"], project="demo") as bob:
            assert (await getattr(bob.approvals, word)(asked, "no")).status == "rejected"


@pytest.mark.parametrize("word", ["deny", "reject"])
@pytest.mark.parametrize("body", [{}, {"decision": "rejected"}, {"decision": "denied"}])
async def test_both_words_are_understood_over_http(house: House, word: str, body: dict[str, str]) -> None:
    call = {"tool_name": "pay", "tool_params": {"amount": 1}, "wait": False}
    asked = (await house.client("bot").post(f"{P}/tools/execute", json=call)).json()["approval_id"]
    answer = await house.client("bob").post(f"{P}/approvals/{asked}/{word}", json={**body, "reason": "no"})
    assert (answer.status_code, answer.json()["status"]) == (200, "rejected")
