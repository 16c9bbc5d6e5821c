"""LangChain and LangGraph, with a scripted chat model and checkpoints in memory."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from typing import Annotated, Any
from uuid import uuid4

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import InjectedToolCallId, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command
from tests.real.frameworks.contract import EFFECTS, PAY, Ended, Scene, Tools, Turn, main

from toolgate import Gate
from toolgate.integrations.langchain import Toolgate

SAVER = InMemorySaver()
"""Shared by all drivers of a process, as a database would be."""


class Scripted(BaseChatModel):
    turns: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        made = sum(isinstance(message, AIMessage) for message in messages)
        turn = self.turns[made] if made < len(self.turns) else ()
        calls = [{"id": id, "name": name, "args": args} for id, name, args in turn]
        message = AIMessage(content="" if calls else "done", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


class Driver:
    def __init__(self, gate: Gate, turns: Sequence[Turn], tools: Tools, **options: Any) -> None:
        plain = [StructuredTool.from_function(one) for one in (tools.pay, tools.look, tools.wipe)]
        fail = StructuredTool.from_function(tools.fail, response_format="content")
        delegate = StructuredTool.from_function(
            coroutine=tools.delegate, name="delegate", description="Have another agent do it."
        )
        self._agent = create_agent(
            Scripted(turns=turns),
            tools=[*plain, fail, delegate],
            middleware=[Toolgate(gate, effects=EFFECTS, **options)],
            checkpointer=SAVER,
        )

    async def _ended(self, config: Any) -> Ended:
        state = await self._agent.aget_state({"configurable": {"thread_id": config["configurable"]["thread_id"]}})
        said = "\n".join(str(message.content) for message in state.values["messages"])
        return Ended(bool(state.next), {"configurable": dict(state.config["configurable"])}, said)

    async def run(self, prompt: str) -> Ended:
        config: Any = {"configurable": {"thread_id": str(uuid4())}}
        await self._agent.ainvoke({"messages": [{"role": "user", "content": prompt}]}, config)
        return await self._ended(config)

    async def resume(self, saved: Any, answer: Any = None) -> Ended:
        state = await self._agent.aget_state(saved)
        answers = {one.id: answer or {"type": "approve"} for one in state.interrupts}
        said = await self._agent.ainvoke(Command(resume=answers), saved)
        told = "\n".join(str(message.content) for message in said["messages"])
        return Ended(bool(said.get("__interrupt__")), saved, told)

    async def run_plain(self, prompt: str) -> Ended:
        config: Any = {"configurable": {"thread_id": str(uuid4())}}
        await asyncio.to_thread(self._agent.invoke, {"messages": [{"role": "user", "content": prompt}]}, config)
        return await self._ended(config)

    async def run_streamed(self, prompt: str) -> Ended:
        config: Any = {"configurable": {"thread_id": str(uuid4())}}
        async for _chunk in self._agent.astream({"messages": [{"role": "user", "content": prompt}]}, config):
            pass
        return await self._ended(config)

    def dump(self, saved: Any) -> bytes:
        storage = {
            thread: {ns: dict(by_id) for ns, by_id in spaces.items()} for thread, spaces in SAVER.storage.items()
        }
        return pickle.dumps((saved, storage, dict(SAVER.writes), dict(SAVER.blobs)))

    def load(self, data: bytes) -> Any:
        saved, storage, writes, blobs = pickle.loads(data)  # our own file
        for thread, spaces in storage.items():
            for space, by_id in spaces.items():
                SAVER.storage[thread][space].update(by_id)
        SAVER.writes.update(writes)
        SAVER.blobs.update(blobs)
        return saved


async def without_a_loop_to_the_end(scene: Scene) -> None:
    driver = scene.driver([PAY])
    paused = await driver.run("pay")
    await scene.answer("edit", arguments={"to": "bob", "amount": 3})
    agent: Any = driver
    ended = await asyncio.to_thread(agent._agent.invoke, Command(resume={"type": "approve"}), paused.saved)
    said = str(ended["messages"])
    assert ("paid 3 to bob" in said, "changed the arguments" in said, scene.paid) == (True, True, [("pay", "bob", 3)])


async def decisions_in_its_own_form_count_where_the_host_says_whose_they_are(scene: Scene) -> None:
    for answer, words in (
        ({"type": "approve"}, "paid 10 to bob"),
        ({"type": "edit", "edited_action": {"name": "pay", "args": {"to": "bob", "amount": 2}}}, "paid 2 to bob"),
        ({"type": "reject", "message": "too much"}, "too much"),
        ({"type": "respond", "message": "use the other one"}, "use the other one"),
    ):
        driver = Driver(scene.gate, [[PAY]], scene.tools, by=lambda _request: "ann")
        paused = await driver.run("pay")
        ended = await driver.resume(paused.saved, answer)
        assert (ended.is_paused, words in ended.transcript) == (False, True), ended.transcript
    assert [one[2] for one in scene.paid] == [10, 2]


async def tools_run_by_hand_in_a_node(scene: Scene) -> None:
    gated = Toolgate(scene.gate, effects=EFFECTS, wait=True)
    node = ToolNode(
        [StructuredTool.from_function(scene.tools.look)],
        wrap_tool_call=gated.wrap_tool_call,
        awrap_tool_call=gated.awrap_tool_call,
    )
    graph: Any = StateGraph(MessagesState)
    graph.add_node("tools", node)
    graph.add_edge(START, "tools")
    call = {"id": "c", "name": "look", "args": {"what": "sky"}}
    app = graph.compile()
    said = await app.ainvoke({"messages": [AIMessage(content="", tool_calls=[call])]})
    plain = await asyncio.to_thread(
        app.invoke, {"messages": [AIMessage(content="", tool_calls=[call, {**call, "name": "no"}])]}
    )
    assert ("saw sky" in str(said), "saw sky" in str(plain), "no is not a valid tool" in str(plain)) == (True,) * 3
    assert scene.tools.ran == [("look", "sky")] * 2


async def commands_are_recorded_and_told_again(scene: Scene) -> None:
    @tool
    def move(to: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Move somewhere."""
        scene.tools.ran.append(("move", to))
        return Command(update={"messages": [ToolMessage(f"moved to {to}", tool_call_id=tool_call_id)]})

    def agent() -> Any:
        gated = Toolgate(scene.gate, effects={"move": "irreversible"})
        turns = [[("c", "move", {"to": "b"})]]
        return create_agent(Scripted(turns=turns), tools=[move], middleware=[gated], checkpointer=SAVER)

    config: Any = {"configurable": {"thread_id": str(uuid4())}}
    await agent().ainvoke({"messages": [{"role": "user", "content": "move"}]}, config)
    saved = (await agent().aget_state(config)).config
    await scene.answer("edit", arguments={"to": "c"})
    for _ in range(2):
        said = str(await agent().ainvoke(Command(resume={"type": "approve"}), saved))
        assert ("moved to c" in said, "changed the arguments" in said) == (True, True), said
    assert scene.tools.ran == [("move", "c")]


if __name__ == "__main__":
    main(
        Driver,
        without_a_loop_to_the_end,
        decisions_in_its_own_form_count_where_the_host_says_whose_they_are,
        tools_run_by_hand_in_a_node,
        commands_are_recorded_and_told_again,
        without=["result_that_cannot_be_written"],  # the framework makes text of whatever a tool returns
    )
