from __future__ import annotations

from toolgate.adapters.sql.brakes import Watch
from toolgate.kernel.brake import Brakes
from toolgate.kernel.marks import Marks


def test_a_fault_that_was_made_good_while_it_was_read_is_no_news() -> None:
    watch, fault = Watch(Marks.fresh()), Brakes.distrusted("The stored mode was taken away.")
    newest = watch.newest
    assert watch.is_news(fault, Brakes(), newest=newest)
    watch.note(Brakes(serial=7))
    assert not watch.is_news(fault, Brakes(serial=7), newest=newest)
    assert watch.is_news(fault, Brakes(serial=7), newest=watch.newest)


def test_older_brakes_that_were_read_late_are_no_news() -> None:
    watch = Watch(Marks.fresh())
    assert not watch.is_news(Brakes(serial=3), Brakes(serial=7), newest=0)
    assert watch.is_news(Brakes(serial=7), Brakes(serial=7), newest=0)
