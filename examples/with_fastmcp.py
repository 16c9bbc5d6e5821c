"""A server of FastMCP whose payments a person approves, and a client that calls it, offline."""

import asyncio

from fastmcp import Client, FastMCP

import toolgate
from toolgate.integrations.fastmcp import Toolgate

server = FastMCP("bank")


@server.tool
def wire(to: str, cents: int) -> str:
    """Send money."""
    return f"sent {cents} to {to}"


async def main() -> None:
    async with toolgate.open("memory://") as gate:
        server.add_middleware(Toolgate(gate, effects={"wire": "irreversible"}))
        async with Client(server) as client:
            calling = asyncio.create_task(client.call_tool("wire", {"to": "ACC-0042", "cents": 1200}))
            while not (questions := await gate.pending()):  # noqa: ASYNC110  # a person takes a while
                await asyncio.sleep(0.01)
            print(f"{questions[0].tool_name} {questions[0].arguments} waits; ann makes it less")
            await gate.approvals.edit(questions[0].id, {"to": "ACC-0042", "cents": 5}, by="ann")
            for block in (await calling).content:
                print(block.text)


if __name__ == "__main__":
    asyncio.run(main())
