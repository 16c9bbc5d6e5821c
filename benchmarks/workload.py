"""The tool calls every contender makes: the function and the argument texts a model would send.

The flat call is the smallest there is. The forms are what an agent sends in earnest: ids, a list of objects, a nested
object and a sentence, once in about 300 bytes and once in about 2 KB, for one and the same function. No two calls in a
row send the same form, so nobody answers from what it kept of the last one. Imported inside every peer's own
environment, so nothing but the standard library, pydantic and what it brings.
"""

import itertools
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

NAME = "weather"
ARG = '{"city": "Paris", "days": 3, "units": "metric"}'
EXPECTED: dict[str, Any] = {"city": "Paris", "days": 3, "units": "metric", "temp": 21.5}

Step = Callable[[], Awaitable[str]]
"""One whole call: argument text in, answer text out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One kind of call: the function, and argument texts that are sent in turn, over and over."""

    function: Callable[..., Awaitable[dict[str, Any]]]
    texts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The tool's name, which is the function's."""
        return self.function.__name__

    def sent(self) -> Iterator[str]:
        """Yield the argument text of one call after the other, without end."""
        return itertools.cycle(self.texts)


async def weather(city: str, days: int = 1, units: str = "metric") -> dict[str, Any]:
    """Return a small forecast."""
    return {"city": city, "days": days, "units": units, "temp": 21.5}


@with_config(ConfigDict(extra="forbid"))
class Line(TypedDict):
    """One position of an order."""

    sku: str
    quantity: int
    price: float


@with_config(ConfigDict(extra="forbid"))
class Address(TypedDict):
    """Where an order goes."""

    name: str
    street: str
    city: str


async def check_order(account: str, order: str, lines: list[Line], deliver_to: Address, note: str) -> dict[str, Any]:
    """Return what an order comes to and who is charged for it; nothing is ordered."""
    total = sum(line["quantity"] * line["price"] for line in lines)
    return {"account": account, "order": order, "city": deliver_to["city"], "total": total, "note": len(note)}


def form(number: int, *, lines: int, note: str) -> str:
    """Return the text of one order; ids and the note change with the number, the length does not."""
    positions = [
        {"sku": f"SKU-{(number * 7 + 37 * line) % 10_000:04}", "quantity": 1 + line % 3, "price": 4.25 + 1.5 * line}
        for line in range(lines)
    ]
    return json.dumps(
        {
            "account": f"ACC-{number:04}",
            "order": f"ORD-2026-{number * 3 % 10_000:04}",
            "lines": positions,
            "deliver_to": {"name": "Ada Park", "street": f"{number:04} Mill Lane", "city": "Leeds"},
            "note": f"Please leave parcel {number:04} {note}",
        }
    )


def workload(name: str) -> Workload:
    """Return the workload of this name: `flat`, `form_300` or `form_2k`."""
    if name == "flat":
        return Workload(function=weather, texts=(ARG,))
    lines, note = FORMS[name]
    return Workload(
        function=check_order,
        texts=tuple(form(number, lines=lines, note=note) for number in range(FIRST, FIRST + VARIANTS)),
    )


FIRST, VARIANTS = 42, 4096
FORMS = {
    "form_300": (2, "with my neighbour."),
    "form_2k": (
        31,
        (
            "and all the others with the neighbour at number 14 if nobody opens, and ring twice. The long boxes do not "
            "fit through the side gate, so carry them round by the yard. The last order came without its papers."
        ),
    ),
}
