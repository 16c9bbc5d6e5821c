"""FastMCP: a server with its own client, in memory. There is no run to pause, so questions are waited for."""

from __future__ import annotations

import asyncio
from typing import Any

from fastmcp import Client, FastMCP
from tests.real.frameworks.contract import EFFECTS, Scene, main, policy

from toolgate.integrations.fastmcp import Toolgate


def server_of(scene: Scene) -> Any:
    server = FastMCP("bank")
    for one in (scene.tools.pay, scene.tools.look, scene.tools.wipe):
        server.tool(one)
    server.add_middleware(Toolgate(scene.gate, effects=EFFECTS))
    return server


async def call(client: Any, name: str, **arguments: Any) -> str:
    said = await client.call_tool(name, arguments, raise_on_error=False)
    return "\n".join(block.text for block in said.content)


PAYING = {"to": "bob", "amount": 10}


async def allowed_and_denied(scene: Scene) -> None:
    async with Client(server_of(scene)) as client:
        assert "saw sky" in await call(client, "look", what="sky")
        assert "wiping is not done here" in await call(client, "wipe", disk="sda")
        assert "no_such" in await call(client, "no_such")
    assert scene.tools.ran == [("look", "sky")], scene.tools.ran


async def asked_and_approved(scene: Scene) -> None:
    async with Client(server_of(scene)) as client:
        calling = asyncio.create_task(call(client, "pay", **PAYING))
        await scene.answer()
        assert "paid 10 to bob" in await calling
    assert scene.paid == [("pay", "bob", 10)], scene.paid


async def asked_and_rejected(scene: Scene) -> None:
    async with Client(server_of(scene)) as client:
        calling = asyncio.create_task(call(client, "pay", **PAYING))
        await scene.answer("deny", reason="the account is closed")
        assert "the account is closed" in await calling
    assert not scene.paid


async def asked_and_edited(scene: Scene) -> None:
    async with Client(server_of(scene)) as client:
        calling = asyncio.create_task(call(client, "pay", **PAYING))
        await scene.answer("edit", arguments={"to": "bob", "amount": 7})
        said = await calling
    assert ("paid 7 to bob" in said, "changed the arguments" in said, scene.paid) == (True, True, [("pay", "bob", 7)])


async def identical_retries_are_one_question_and_one_effect(scene: Scene) -> None:
    gated = Toolgate(scene.gate, effects=EFFECTS)
    gated.bridge.context = gated.bridge.context_of(run="conversation")
    server = FastMCP("bank")
    server.tool(scene.tools.pay)
    server.add_middleware(gated)
    async with Client(server) as client:
        calling = [asyncio.create_task(call(client, "pay", **PAYING)) for _ in range(3)]
        await scene.answer()
        said = await asyncio.gather(*calling)
    assert [("paid 10 to bob" in one) for one in said] == [True] * 3, said
    assert len(scene.paid) == 1, scene.paid


async def a_policy_that_changed_meanwhile_stops_it(scene: Scene) -> None:
    async with Client(server_of(scene)) as client:
        await scene.gate.set_policy(policy(is_strict=True), by="ops")
        assert "wiping is not done here" in await call(client, "pay", **PAYING)
    assert not scene.tools.ran


if __name__ == "__main__":
    from tests.real.frameworks import contract

    contract.SCENARIOS = ()  # they are about runs that pause
    main(
        object,  # type: ignore[arg-type]  # no run of an agent is driven
        allowed_and_denied,
        asked_and_approved,
        asked_and_rejected,
        asked_and_edited,
        identical_retries_are_one_question_and_one_effect,
        a_policy_that_changed_meanwhile_stops_it,
    )
