"""One server of the fleet without the wire: a gate in a process of its own, under load once it is told to go.

`python -m benchmarks.scale.server URL PROJECT TOOL TASKS SECONDS`. Says `ready`, waits for a line, prints one
of JSON.
"""

import asyncio
import json
import sys

from benchmarks.scale.load import drive
from benchmarks.scale.tools import POLICY, TOOLS

import toolgate


async def main(url: str, project: str, tool: str, tasks: int, seconds: float) -> None:
    """Open, say so, and drive the load when told."""
    async with toolgate.open(url, tools=TOOLS, policy=POLICY) as gate:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        load = await drive(gate, tool, tasks=tasks, seconds=seconds, project=project)
        print(json.dumps(load._asdict()), flush=True)
        await asyncio.to_thread(sys.stdin.readline)  # an approved call runs at any server: leave when all are done


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])))
