"""The blocking faces of gate and client."""

from __future__ import annotations

import pytest

from toolgate.errors import GateClosedError
from toolgate.pipeline.background import Background
from toolgate.pipeline.blocking import Blocking, waited


class Target:
    async def double(self, number: int) -> int:
        """Return twice as much."""
        return 2 * number


class Face(Blocking):
    double = waited(Target.double)


def test_a_method_is_the_async_one_waited_for() -> None:
    background = Background("test")
    face = Face(Target(), background)
    assert (face.double(2), face.double(number=3), face.double.__doc__) == (4, 6, "Return twice as much.")
    background.close()
    with pytest.raises(GateClosedError, match="closed; open a new one"):
        face.double(1)


def test_one_that_is_closed_at_that_very_moment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    background = Background("test")
    face = Face(Target(), background)

    def closed(coroutine: object) -> None:
        coroutine.close()  # type: ignore[attr-defined]  # as the background does
        raise GateClosedError("closed")

    monkeypatch.setattr(background, "submit", closed)
    with pytest.raises(GateClosedError, match="closed; open a new one"):
        face.double(1)
    background.close()
