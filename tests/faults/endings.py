"""The table of endings: which fault strikes where, in which placement, on which store, for which kind of tool."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from tests.faults.bank import BEGIN, END, PAY, Strike

PLACES = ("async", "thread", "sandbox", "client", "worker", "caller")
STORES = ("sqlite", "postgres")
FAULTS = {
    "exception": "raise",
    "timeout": "hang",
    "cancellation": "hang",
    "reset": "reset",
    "broken pipe": "pipe",
    "full disk": "full",
    "kill": "hang",
}
"""What the bank does for each; whoever hangs is then timed out, cancelled or killed."""
WHERE = {
    "before": (BEGIN, False),
    "at, not carried out": (PAY, False),
    "at, carried out": (PAY, True),
    "after": (END, True),
}
"""The request that is struck, and whether the payment happened by then. The handler has been entered in all of them."""
PERSONS = ("answers", "settles later", "settles first")
"""What ends the doubt: a yes or no to the retries' question, or a settlement, after or before they come."""


@dataclass(frozen=True)
class Ending:
    """One way a call can end without anybody having heard of its effect."""

    fault: str
    where: str
    place: str
    store: str
    keyed: bool

    @property
    def id(self) -> str:
        kind = "keyed" if self.keyed else "declared"
        return "-".join((self.fault, self.where.replace(", ", "-"), self.place, self.store, kind)).replace(" ", "-")

    @property
    def strike(self) -> Strike:
        step, _ = WHERE[self.where]
        return Strike(FAULTS[self.fault], step, carried=self.happened)

    @property
    def happened(self) -> bool:
        return WHERE[self.where][1]


ALL = [
    Ending(fault, where, place, store, keyed)
    for fault, where, place, store, keyed in product(FAULTS, WHERE, PLACES, STORES, (True, False))
]
"""Every combination. None of them is missing: each fault can strike each placement."""


def _quick() -> list[Ending]:
    """For each fault and placement two of the places, and of the sandbox, which takes long to start, one.

    Each has one of the four combinations of store and tool, all as often as the others.
    """
    chosen: list[Ending] = []
    for number, (fault, place) in enumerate(product(FAULTS, PLACES)):
        wheres = list(WHERE)[(number + number // len(PLACES)) % 2 :: 2]
        for where in wheres if place != "sandbox" else wheres[number // len(PLACES) % 2 :][:1]:
            turn = len(chosen) + len(chosen) // 11 * 2  # so that no placement always gets the same
            chosen.append(Ending(fault, where, place, STORES[turn % 2], keyed=turn // 2 % 2 == 0))
    return chosen


QUICK = _quick()
