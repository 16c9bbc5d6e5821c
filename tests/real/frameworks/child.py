"""A process that pauses a run, one that dies in the middle of the tool, and one that resumes after that."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from pathlib import Path

from tests.real.frameworks.contract import PAY, Scene


async def main(name: str, folder: Path, job: str) -> None:
    driver = import_module(f"tests.real.frameworks.{name}").Driver
    async with Scene(driver, f"sqlite:///{folder / 'gate.db'}") as scene:
        scene.tools.effects, scene.tools.is_deadly = str(folder / "effects"), job == "die"
        framework = scene.driver([PAY])
        if job == "start":
            paused = await framework.run("pay")
            assert paused.is_paused
            (folder / "saved").write_bytes(framework.dump(paused.saved))
            return
        ended = await framework.resume(framework.load((folder / "saved").read_bytes()))
        (folder / "transcript").write_text(ended.transcript)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
