from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from toolgate.adapters.runners.inline import InlineRunner
from toolgate.ports.runner import Runner
from toolgate.testing.conformance import RunnerConformance


class TestInlineRunner(RunnerConformance):
    @pytest.fixture
    async def runner(self) -> AsyncIterator[Runner]:
        runner = InlineRunner()
        yield runner
        await runner.close()
