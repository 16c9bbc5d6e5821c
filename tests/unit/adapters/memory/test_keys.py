from __future__ import annotations

from datetime import datetime

from toolgate.adapters.memory.keys import Keys
from toolgate.errors import EffectHeldError
from toolgate.kernel.holding import Move
from toolgate.testing.clock import NOON


def taking(key: str, holder: str) -> tuple[str, datetime, tuple[Move, ...]]:
    return ("default", NOON, (Move(key, None, holder),))


def holders(keys: Keys, *names: str) -> list[str | None]:
    found: list[str | None] = []
    for name in names:
        try:
            keys.check(*taking(name, "nobody"))
            found.append(None)
        except EffectHeldError as held:
            found.append(held.holder)
    return found


def test_beyond_a_number_the_oldest_key_is_forgotten_whose_call_is() -> None:
    keys = Keys(most=2)
    for name in ("a", "b", "c"):
        keys.move(*taking(name, f"call-{name}"), {("default", "call-a"), ("default", "call-c")}.__contains__)
    assert holders(keys, "a", "b", "c") == ["call-a", None, "call-c"]


def test_keys_of_calls_that_are_remembered_are_never_forgotten() -> None:
    keys = Keys(most=1)
    for name in ("a", "b"):
        keys.move(*taking(name, f"call-{name}"), lambda _key: True)
    assert holders(keys, "a", "b") == ["call-a", "call-b"]
