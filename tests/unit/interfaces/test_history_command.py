"""`toolgate history` of effects: what is unknown and for how long, what repeats what, who settled it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.integration.programs import here

import toolgate
from toolgate.interfaces.cli.duration import in_words
from toolgate.interfaces.cli.history import _status
from toolgate.interfaces.server import views


@toolgate.tool(effects="irreversible", risk_level="low", effect_key="pay:{bill}")
async def pay(bill: str) -> None:
    """Pay a bill, and lose the answer."""
    raise ConnectionResetError


def test_unknown_outcomes_repeats_and_who_settled_are_told(tmp_path: Path) -> None:
    database = tmp_path / "toolgate.db"
    with toolgate.open(f"sqlite:///{database}", tools=[pay]) as gate:
        gate.sync.call("pay", {"bill": "b1"}, call_id="first")
        gate.sync.call("pay", {"bill": "b1"}, call_id="again", wait=False)
        shown = here("history", "--database", database).out
        assert "UNKNOWN for " in shown
        assert 'pay(bill="b1"), repeats first' in shown
        gate.sync.settle("first", happened=True, by="ann", reason="it is on the statement")
    again, first = here("history", "--database", database, "--json").json["calls"]
    assert (again["repeat_of"], again["effect_key"], first["settled_by"]) == ("first", "pay:b1", "ann")


def test_an_age_is_told_in_a_few_characters() -> None:
    with toolgate.open("memory://", tools=[pay]) as gate:
        call = gate.sync.calls.get(gate.sync.call("pay", {"bill": "b1"}).call_id)
    ended = call.completed_at
    assert ended is not None
    assert _status(views.record(call, is_own=False), ended + timedelta(hours=3, minutes=40)) == "UNKNOWN for 3 h"


@pytest.mark.parametrize(
    ("seconds", "words"), [(-1, "0 s"), (59, "59 s"), (60, "1 min"), (3600, "1 h"), (200_000, "2 d")]
)
def test_durations_are_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
