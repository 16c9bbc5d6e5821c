"""What this process wrote last about calls that wait for somebody, so that reading it again is cheap.

A row is only as good as its version: whoever goes on from one commits against that number, or asks the database for
it first, and what another process wrote meanwhile has another one. Ended calls are not kept, since retention may
change those without a new version.
"""

from __future__ import annotations

import threading
from typing import Any

import orjson

from toolgate.adapters.sql.write_set import is_large
from toolgate.kernel.approval import SHOWN_JSON, Approval
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.record import evolve
from toolgate.ports.store import Question

MOST = 1024
_WAITING = (Status.AWAITING_APPROVAL, Status.APPROVED)


class Recent:
    """The latest calls and approvals written here, the oldest forgotten first. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[tuple[str, str], tuple[Call, Approval | None]] = {}
        self._asked: dict[str, tuple[str, str]] = {}
        self._writing: dict[tuple[str, str], bool] = {}
        """The calls whose changes are being written, and whether nobody was heard to change them meanwhile."""

    def begin(self, change: Change) -> None:
        """Say that a change is about to be written; `note` or `drop` follows."""
        call = change.call
        if call is not None and call.approval_id is not None:
            with self._lock:
                self._writing.setdefault((call.project, call.id), True)

    def drop(self, change: Change) -> None:
        """Forget the call of a change that was not written: somebody else may have changed it."""
        if change.call is not None:
            key = (change.call.project, change.call.id)
            with self._lock:
                self._forget(key)
                self._writing.pop(key, None)

    def forget(self, project: str, call_id: str, version: int | None = None) -> None:
        """Forget a call that is said to have this version now, unless that is the one known here.

        What is being written of it just now is not remembered either.
        """
        key = (project, call_id)
        call, _ = self._calls.get(key, (None, None))
        if call is not None and version is not None and call.version >= version:
            return
        with self._lock:
            self._forget(key)
            if key in self._writing:
                self._writing[key] = False

    def note(self, change: Change) -> None:
        """Remember what a change that was committed says of a waiting call; forget one that goes on."""
        call = change.call
        if call is None or call.approval_id is None:
            return
        key = (call.project, call.id)
        with self._lock:
            before = self._forget(key)
            if not self._writing.pop(key, True) or call.status not in _WAITING or is_large(change):
                return
            if len(self._calls) >= MOST:
                self._forget(next(iter(self._calls)))
            if call.context.host is not None:  # the host's own object is not stored, so nobody reads it back
                call = evolve(call, context=evolve(call.context, host=None))
            approval = next((one for one in (*change.approvals, before) if one and one.id == call.approval_id), None)
            self._calls[key] = (call, approval)
            if approval is not None:
                self._asked[approval.id] = key

    def clear(self) -> None:
        """Forget everything: others may have changed anything."""
        with self._lock:
            self._calls.clear()
            self._asked.clear()
            self._writing = dict.fromkeys(self._writing, False)

    def _forget(self, key: tuple[str, str]) -> Approval | None:
        _, approval = self._calls.pop(key, (None, None))
        if approval is not None:
            self._asked.pop(approval.id, None)
        return approval

    def call(self, project: str, call_id: str) -> Call | None:
        """The call as it was last written here, with copies of what people are shown of it."""
        call, _ = self._calls.get((project, call_id), (None, None))
        if call is None:
            return None
        return evolve(call, shown=_copy(call.shown), preview=_copy(call.preview))

    def question(self, approval_id: str) -> Question | None:
        """An approval with its call, as both were last written here."""
        key = self._asked.get(approval_id, ("", ""))
        known, call = self.asked(approval_id), self.call(*key)
        return None if known is None or call is None or known[1] != call.version else Question(known[0], call)

    def asked(self, approval_id: str) -> tuple[Approval, int] | None:
        """An approval, and the version of its call at which it was so."""
        call, approval = self._calls.get(self._asked.get(approval_id, ("", "")), (None, None))
        if call is None or approval is None:
            return None
        copied = {name: _copy(getattr(approval, name)) for name in SHOWN_JSON}
        return evolve(approval, **copied), call.version


def _copy(value: Any) -> Any:
    return None if value is None else orjson.loads(orjson.dumps(value))
