"""What an executor keeps for its undo: a copy in an undo store, and how an undo finds its way back to the gate.

The gate has undo data of its own, written with the result. The undo store decides whether an action can still
be undone; where it cannot be reached, the gate's own data stands in for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any
from uuid import UUID

from toolgate.errors import NotFoundError
from toolgate.gate import Gate
from toolgate.kernel.context import Context
from toolgate.kernel.output import Result
from toolgate.kernel.undo import UndoMetadata
from toolgate.pipeline import eager
from toolgate.tools.undo import AnyUndoStore, UndoStore, get_undo_store

log = logging.getLogger("toolgate.tools.undo")
LONG_S = 365 * 86400.0
"""How long the gate keeps its own data where the undo store is somebody else's and decides by itself."""


class Keeping:
    """One executor's dealings with its undo store. `None` is the process-wide one, as it is at each use."""

    def __init__(self, undo_store: AnyUndoStore | None) -> None:
        self._given = undo_store
        self._missed: set[str] = set()
        """Actions whose data the store would not take: the gate's own data counts for them."""

    @property
    def _undo_store(self) -> AnyUndoStore:
        return get_undo_store() if self._given is None else self._given

    @property
    def ttl_s(self) -> float:
        """How long undo data is kept where nobody else says."""
        undo_store = self._undo_store
        return undo_store.default_ttl_seconds if isinstance(undo_store, UndoStore) else LONG_S

    async def keep(self, gate: Gate, project: str, action_id: UUID | str, ttl_s: float | None) -> None:
        """Give the store its copy. A store that fails costs the copy, not the action."""
        found = await gate.host.undo_data(str(action_id), project=project)
        if found is None:
            return
        metadata = UndoMetadata(action_id, found.tool_name, found.undo_data, found.created_at)
        try:
            await _store(self._undo_store, metadata, ttl_s)
        except Exception as error:  # noqa: BLE001  # whatever it is, the action is done and must not look failed
            self._missed.add(str(action_id))
            log.error(
                "undo data of action %s is in the gate only: the undo store failed with %s",
                action_id,
                error_name(error),
            )
        else:
            log.info("undo data of action %s (%s) is stored", action_id, found.tool_name)

    async def undo(self, gate: Gate, action_id: UUID | str, context: Context, *, force: bool) -> Result | None:
        """Undo through the gate; None where nothing is kept. Goes on if whoever waits goes away."""
        started = eager.start(self._undo(gate, action_id, context, force))
        return await eager.finish(started) if not isinstance(started, Result | None) else started

    async def _undo(self, gate: Gate, action_id: UUID | str, context: Context, force: bool) -> Result | None:
        key = str(action_id)
        kept, reached = await self._fetch(action_id)
        if kept is None and reached and key not in self._missed:
            log.info("nothing is kept to undo action %s", action_id)
            return None
        if kept is not None and not await self._claim(action_id):
            return None
        result = None
        try:
            result = await self._through(gate, kept, key, context, force)
        finally:
            await self._settle(action_id, kept is not None, result is not None and result.success)
        return result

    async def _fetch(self, action_id: UUID | str) -> tuple[UndoMetadata | None, bool]:
        try:
            kept: Any = await self._undo_store.get(action_id)
            if isinstance(kept, Mapping):  # it keeps the bare data; whose it is the gate knows
                kept = UndoMetadata(action_id, "", dict(kept))
            return kept, True
        except Exception as error:  # noqa: BLE001  # a store that is down leaves the gate's own data
            log.error("the undo store failed with %s; the gate's own data is used", error_name(error))
            return None, False

    async def _claim(self, action_id: UUID | str) -> bool:
        undo_store = self._undo_store
        return await undo_store.claim(action_id) if isinstance(undo_store, UndoStore) else True

    @staticmethod
    async def _through(gate: Gate, kept: UndoMetadata | None, key: str, context: Context, force: bool) -> Result | None:
        try:
            await gate.get(key, project=context.project)
        except NotFoundError:
            if kept is None:
                return None
            await gate.host.adopt(kept, context=context)  # it ran elsewhere, or before this process began
        return await gate.undo(key, context=context, force=force)

    async def _settle(self, action_id: UUID | str, was_kept: bool, done: bool) -> None:
        """Let the store forget what is undone, or give back what is not."""
        undo_store = self._undo_store
        try:
            if done:
                self._missed.discard(str(action_id))
                forget = getattr(undo_store, "delete", None) or undo_store.remove  # type: ignore[attr-defined]  # either name
                await forget(action_id)
            elif was_kept and isinstance(undo_store, UndoStore):
                await undo_store.release(action_id)
        except Exception as error:  # noqa: BLE001  # the gate knows what was undone, whatever the store says
            log.error("the undo store failed with %s after the undo of action %s", error_name(error), action_id)


async def _store(undo_store: AnyUndoStore, metadata: UndoMetadata, ttl_s: float | None) -> None:
    """Store in the shape an undo store takes: document 001's one argument, document 000's two, or stageflow's three."""
    if isinstance(undo_store, UndoStore) and ttl_s is not None:
        await undo_store.store(metadata, ttl_seconds=ttl_s)
    elif isinstance(undo_store, UndoStore) or _required(undo_store.store) < 2:
        await undo_store.store(metadata)
    elif _required(undo_store.store) == 2:
        await undo_store.store(metadata.action_id, metadata.undo_data)  # type: ignore[call-arg]  # another shape
    else:
        await undo_store.store(metadata.action_id, metadata.tool_name, metadata.undo_data)  # type: ignore[call-arg]  # as above


def _required(method: Callable[..., Any]) -> int:
    """How many arguments a method cannot do without."""
    places = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    given = signature(method).parameters.values()
    return sum(one.kind in places and one.default is Parameter.empty for one in given)


def error_name(error: BaseException) -> str:
    return type(error).__name__
