"""The gate in a program of its own: it starts, works in threads and loops, and lets the program end."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from toolgate.testing.patience import PATIENCE_S


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = [
        line for line in done.stderr.splitlines() if not line.startswith("Executing <")
    ]  # a slow machine is no defect
    assert said == []
    return done.stdout


def test_a_program_that_forgets_to_close_its_gate_still_ends() -> None:
    told = run(
        """
        import asyncio, toolgate

        @toolgate.tool
        async def add(a: int, b: int) -> int:
            return a + b

        gate = toolgate.open(tools=[add])
        print(gate.sync.call("add", {"a": 1, "b": 2}).data)
        """
    )
    assert told == "3\n"


def test_a_handler_that_never_returns_does_not_keep_a_program_from_ending() -> None:
    told = run(
        """
        import threading, toolgate

        @toolgate.tool(timeout_seconds=0.5)
        def stuck() -> None:
            threading.Event().wait()

        with toolgate.open(tools=[stuck]) as gate:
            print(gate.sync.call("stuck").status)
        """
    )
    assert told == "UNKNOWN\n"


def test_importing_the_package_loads_no_adapter_and_starts_nothing() -> None:
    told = run(
        """
        import sys, threading, toolgate

        assert not [name for name in sys.modules if name.startswith("toolgate.")], sys.modules
        toolgate.open
        assert "toolgate.adapters.memory.store" not in sys.modules
        print(threading.active_count())
        """
    )
    assert told == "1\n"


def test_asyncio_debug_mode_finds_nothing_to_complain_about() -> None:
    told = run(
        """
        import asyncio, toolgate

        @toolgate.tool(requires_approval=True)
        async def add(a: int, b: int) -> int:
            await asyncio.sleep(0)
            return a + b

        gate = toolgate.open(tools=[add], approver=lambda approval: True)

        async def main() -> None:
            asyncio.get_running_loop().slow_callback_duration = 60  # a slow machine is not a defect
            async with gate:
                results = await asyncio.gather(*(gate.call("add", {"a": n, "b": n}) for n in range(5)))
                print([result.data for result in results])

        asyncio.run(main(), debug=True)
        """
    )
    assert told == "[0, 2, 4, 6, 8]\n"
