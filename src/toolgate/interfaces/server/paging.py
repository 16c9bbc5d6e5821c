"""How many rows are read before others get their turn: more and more of small ones, one at a time of large ones."""

from __future__ import annotations

FEW = 4
"""Where reading begins, when nobody knows yet how large the rows are."""


def first_size(most: int) -> int:
    """How many rows to read first."""
    return min(FEW, most)


def next_size(size: int, most: int, *, were_large: bool) -> int:
    """How many rows to read after so many of them were read."""
    return 1 if were_large else min(2 * size, most)
