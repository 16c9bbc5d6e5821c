"""How long to wait before the next try: longer each time, and for everybody another time."""

from __future__ import annotations

import random
from collections.abc import Iterator

FIRST_S = 0.1
LONGEST_S = 15.0


def delays(*, first_s: float = FIRST_S, longest_s: float = LONGEST_S) -> Iterator[float]:
    """Yield waits that double up to `longest_s`, each shortened by up to half at random.

    The randomness keeps a crowd that lost the same server from coming back all at once.
    """
    wait_s = min(first_s, longest_s)
    while True:
        yield wait_s * random.uniform(0.5, 1.0)
        wait_s = min(wait_s * 2, longest_s)
