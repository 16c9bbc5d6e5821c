"""Which parts of which questions each account was given to their end. A server remembers its own, for so many.

Who is forgotten here is only asked to open the question again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Protocol

MOST_QUESTIONS: Final = 2_000
"""How many questions are remembered for one account; the one that was looked at longest ago goes first."""
MOST_ACCOUNTS: Final = 10_000
_ALL: Final = -1

Parts = dict[str, int]


class Served(Protocol):
    """Remembers what was served, for one server or for several."""

    async def note(self, account: str, approval_id: str, parts: Iterable[str]) -> None:
        """These parts were given in full."""
        ...

    async def note_piece(self, account: str, approval_id: str, part: str, *, offset: int, next: int | None) -> None:
        """A part was given from `offset` up to `next`, or to its end; only what leaves no gap adds up."""
        ...

    async def has(self, account: str, approval_id: str, parts: Iterable[str]) -> bool:
        """Whether all of these parts were given to this account in full."""
        ...


class ServedHere:
    """What this server gave."""

    def __init__(self, *, questions: int = MOST_QUESTIONS, accounts: int = MOST_ACCOUNTS) -> None:
        self._most_questions, self._most_accounts = questions, accounts
        self._known: OrderedDict[str, OrderedDict[str, Parts]] = OrderedDict()

    async def note(self, account: str, approval_id: str, parts: Iterable[str]) -> None:
        known = self._parts(account, approval_id)
        for part in parts:
            known[part] = _ALL

    async def note_piece(self, account: str, approval_id: str, part: str, *, offset: int, next: int | None) -> None:
        self.piece(account, approval_id, part, offset=offset, next=next)

    def piece(self, account: str, approval_id: str, part: str, *, offset: int, next: int | None) -> bool:
        """Note a piece; return whether the part is complete with it."""
        known = self._parts(account, approval_id)
        reached = known.get(part, 0)
        if reached != _ALL and offset <= reached:
            known[part] = _ALL if next is None else max(reached, next)
        return known.get(part) == _ALL

    async def has(self, account: str, approval_id: str, parts: Iterable[str]) -> bool:
        questions = self._known.get(account)
        known = {} if questions is None else questions.get(approval_id, {})
        return all(known.get(part) == _ALL for part in parts)

    def _parts(self, account: str, approval_id: str) -> Parts:
        questions = self._known.setdefault(account, OrderedDict())
        self._known.move_to_end(account)
        parts = questions.setdefault(approval_id, {})
        questions.move_to_end(approval_id)
        if len(questions) > self._most_questions:
            questions.popitem(last=False)
        if len(self._known) > self._most_accounts:
            self._known.popitem(last=False)
        return parts
