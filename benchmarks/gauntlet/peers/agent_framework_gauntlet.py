"""Microsoft Agent Framework: tools with `approval_mode="always_require"` and approval responses in the messages."""

# mypy: ignore-errors

import asyncio
import json
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from benchmarks.gauntlet.sheet import Cell, absent, fill_in, judge, untried

RAN: list[Any] = []


class Script(FunctionInvocationLayer, BaseChatClient):
    """Calls `pay` once, then says that it is done."""

    def _inner_get_response(self, *, messages: Any, stream: bool = False, options: Any = None, **kwargs: Any) -> Any:
        async def answer() -> ChatResponse:
            kinds = {content.type for message in messages for content in message.contents}
            if "function_result" in kinds:
                return ChatResponse(messages=[Message("assistant", ["done"])])
            call = Content.from_function_call("c1", "pay", arguments='{"to": "bob", "amount": 10}')
            return ChatResponse(messages=[Message("assistant", [call])])

        return answer()


def agent(*, asks: bool = True, factor: int = 1, description: str = "Pay somebody.") -> Agent:
    @tool(name="pay", description=description, approval_mode="always_require" if asks else "never_require")
    def pay(to: str, amount: int) -> str:
        RAN.append((to, amount * factor))
        return "paid"

    return Agent(Script(), tools=[pay])


async def paused(of: Agent) -> tuple[AgentSession, Content]:
    """Return the session of a run that waits, and its question."""
    RAN.clear()
    session = AgentSession()
    result = await of.run("pay bob", session=session)
    (request,) = result.user_input_requests
    return session, request


async def go_on(of: Agent, session: AgentSession, request: Content, approved: bool) -> None:
    await of.run(Message("user", [request.to_function_approval_response(approved)]), session=session)


async def reject_while_relaxed() -> Cell:
    session, request = await paused(agent())
    await go_on(agent(asks=False), session, request, False)
    return judge(not RAN, "the rejected call did not run", f"the rejected call ran: {RAN}")


async def resume_twice() -> Cell:
    of = agent()
    session, request = await paused(of)
    saved = session.to_dict()
    await asyncio.gather(*(go_on(of, session, request, True) for _ in range(2)), return_exceptions=True)
    at_once = len(RAN)
    await go_on(of, session, request, True)
    later = len(RAN) - at_once
    await go_on(of, AgentSession.from_dict(saved), request, True)
    said = (
        f"runs: two answers at once {at_once}, one later {later}, the saved session again {len(RAN) - at_once - later}"
    )
    return judge(len(RAN) == 1, "it ran once", said)


async def changed_arguments() -> Cell:
    of = agent()
    session, request = await paused(of)
    altered = json.dumps(session.to_dict()).replace('\\"amount\\": 10', '\\"amount\\": 10000')
    assert "10000" in altered
    await go_on(of, AgentSession.from_dict(json.loads(altered)), request, True)
    is_kept = not RAN or RAN == [("bob", 10)]
    said = "what was reviewed ran" if RAN else "an answer that does not fit the session ran nothing"
    return judge(is_kept, said, f"the saved session was altered before the yes; it ran: {RAN}")


async def changed_definition() -> Cell:
    session, request = await paused(agent())
    await go_on(agent(factor=2, description="Pay twice the amount."), session, request, True)
    return judge(
        not RAN, "the old approval did not run the new tool", f"the yes for the old tool ran the new one: {RAN}"
    )


async def double_click() -> Cell:
    of = agent()
    session, request = await paused(of)
    await go_on(of, session, request, False)
    await go_on(of, session, request, True)
    return judge(not RAN, "the first decision stayed", "a yes after the no was accepted, and the call ran")


def run(scenario: Any) -> Any:
    return lambda: asyncio.run(scenario())


if __name__ == "__main__":
    fill_in(
        "agent-framework-core",
        {
            "reject_while_relaxed": run(reject_while_relaxed),
            "resume_twice": run(resume_twice),
            "changed_arguments": run(changed_arguments),
            "expired": absent("an approval has no time to end"),
            "hidden_positional": ("holds", "arguments are one JSON object, shown by name"),
            "quorum": absent("one decision decides"),
            "undo": absent("no undo"),
            "changed_definition": run(changed_definition),
            "double_click": run(double_click),
            "crash": untried("the core keeps no durable state; resuming a saved session is the case of resuming twice"),
            "own_approval": absent("a decision carries no person; who may decide is left to the host"),
        },
    )
