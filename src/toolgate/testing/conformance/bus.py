"""What every bus must do: carry hints to those who listen, from any thread, until it is closed."""

from __future__ import annotations

import threading

import pytest

from toolgate.kernel.call import Status
from toolgate.ports.bus import Bus, Hint
from toolgate.testing.patience import PATIENCE_S, until_sync

HINT = Hint("default", "c1", Status.APPROVED)


class BusConformance:
    """Subclass it with a fixture `bus` that gives an open bus."""

    def test_every_listener_hears_a_hint(self, bus: Bus) -> None:
        heard: list[tuple[str, Hint]] = []
        bus.subscribe(lambda hint: heard.append(("first", hint)))
        bus.subscribe(lambda hint: heard.append(("second", hint)))
        bus.publish(HINT)
        until_sync(lambda: len(heard) == 2)
        assert sorted(heard) == [("first", HINT), ("second", HINT)]

    def test_one_who_stopped_listening_hears_nothing_more(self, bus: Bus) -> None:
        left: list[Hint] = []
        stayed: list[Hint] = []
        leave = bus.subscribe(left.append)
        bus.subscribe(stayed.append)
        leave()
        leave()
        bus.publish(HINT)
        until_sync(lambda: stayed)
        assert left == []

    def test_hints_from_many_threads_all_arrive(self, bus: Bus) -> None:
        heard: list[Hint] = []
        bus.subscribe(heard.append)
        hints = [HINT._replace(call_id=f"c{number}") for number in range(50)]
        threads = [threading.Thread(target=bus.publish, args=(hint,)) for hint in hints]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until_sync(lambda: len(heard) == 50)
        assert sorted(heard) == sorted(hints)

    @pytest.mark.timeout(2 * PATIENCE_S)
    def test_a_listener_may_leave_while_it_is_told(self, bus: Bus) -> None:
        heard: list[Hint] = []

        def once(hint: Hint) -> None:
            heard.append(hint)
            leave()

        leave = bus.subscribe(once)
        bus.publish(HINT)
        until_sync(lambda: heard)
        bus.publish(HINT)
        bus.subscribe(heard.append)
        bus.publish(HINT._replace(call_id="last"))
        until_sync(lambda: heard[-1].call_id == "last")
        assert len(heard) == 2

    def test_a_closed_bus_tells_nobody_and_does_not_mind(self, bus: Bus) -> None:
        heard: list[Hint] = []
        bus.subscribe(heard.append)
        bus.close()
        bus.publish(HINT)
        bus.close()
        assert heard == []
