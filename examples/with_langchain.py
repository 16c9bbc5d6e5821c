"""An agent of LangChain whose payments a person approves. Offline: `python examples/with_langchain.py`."""

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import toolgate
from toolgate.integrations.langchain import Toolgate


class Scripted(GenericFakeChatModel):
    """Says what a model would: pay the bill, then report."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def wire(to: str, cents: int) -> str:
    """Send money."""
    return f"sent {cents} to {to}"


async def main() -> None:
    call: Any = {"id": "call_1", "name": "wire", "args": {"to": "ACC-0042", "cents": 1200}}
    model = Scripted(messages=iter([AIMessage(content="", tool_calls=[call]), AIMessage(content="The bill is paid.")]))
    async with toolgate.open("memory://") as gate:
        agent = create_agent(
            model,
            tools=[wire],
            middleware=[Toolgate(gate, effects={"wire": "irreversible"})],
            checkpointer=InMemorySaver(),
        )
        thread: Any = {"configurable": {"thread_id": "may"}}
        paused = await agent.ainvoke({"messages": [{"role": "user", "content": "Pay the bill of May."}]}, thread)
        question = paused["__interrupt__"][0].value
        print(f"{question['name']} {question['args']} waits; ann makes it less")
        await gate.approvals.edit(question["toolgate"]["approval_id"], {"to": "ACC-0042", "cents": 5}, by="ann")

        ended = await agent.ainvoke(Command(resume={"type": "approve"}), thread)
        for message in ended["messages"][-2:]:
            print(message.content)


if __name__ == "__main__":
    asyncio.run(main())
