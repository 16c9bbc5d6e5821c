from __future__ import annotations

import asyncio

import pytest

from toolgate.adapters.channels.callback import CallbackChannel
from toolgate.kernel.approval import Approval
from toolgate.ports.channel import Channel
from toolgate.testing.conformance import ChannelConformance


class TestPlainCallback(ChannelConformance):
    @pytest.fixture
    def saying_yes(self) -> Channel:
        return CallbackChannel(lambda _approval: True)

    @pytest.fixture
    def saying_no(self) -> Channel:
        return CallbackChannel(lambda _approval: "deny")

    @pytest.fixture
    def saying_nothing(self) -> Channel:
        return CallbackChannel(lambda _approval: None)

    @pytest.fixture
    def never_answering(self) -> Channel:
        async def wait(_approval: Approval) -> None:
            await asyncio.Event().wait()

        return CallbackChannel(wait)


class TestAsyncCallback(TestPlainCallback):
    @pytest.fixture
    def saying_yes(self) -> Channel:
        async def yes(_approval: Approval) -> str:
            return "approve"

        return CallbackChannel(yes)

    @pytest.fixture
    def saying_no(self) -> Channel:
        async def no(_approval: Approval) -> bool:
            return False

        return CallbackChannel(no)
