from __future__ import annotations

import io
from threading import Event

import pytest

from toolgate.adapters.channels.terminal import TerminalChannel
from toolgate.ports.channel import Channel
from toolgate.testing.conformance import ChannelConformance


class Typed(io.StringIO):
    """A terminal into which everything was typed before."""

    def isatty(self) -> bool:
        return True


class Silent(Typed):
    """A terminal nobody types into while the test lasts."""

    def readline(self, _size: int | None = -1, /) -> str:  # type: ignore[override]  # the base is typed for bytes
        Event().wait(1)
        return ""


class TestTerminal(ChannelConformance):
    @pytest.fixture
    def saying_yes(self) -> Channel:
        return TerminalChannel(by="ann", reader=Typed("a\n" * 20), writer=io.StringIO())

    @pytest.fixture
    def saying_no(self) -> Channel:
        return TerminalChannel(by="ann", reader=Typed("d\nno\n"), writer=io.StringIO())

    @pytest.fixture
    def saying_nothing(self) -> Channel:
        return TerminalChannel(by="ann", reader=Typed("s\n"), writer=io.StringIO())

    @pytest.fixture
    def never_answering(self) -> Channel:
        return TerminalChannel(by="ann", reader=Silent(), writer=io.StringIO())
