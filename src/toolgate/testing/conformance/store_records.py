"""What every store must do for the records that a gate keeps as events of its own: programs and policy windows."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolgate.confines import policy_windows
from toolgate.errors import ConflictError, PolicyHeldError, SandboxError
from toolgate.gate.programs import ProgramPins
from toolgate.gate.windows import revision_of
from toolgate.kernel.pin import FIRST_USE, PinBook, Program
from toolgate.policy.loader import PolicySource
from toolgate.ports.store import Store
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import a_call

OLD = Program("/srv/shop/bin/lint", "/srv/shop/bin/lint", "aa", 3, "2026-01-01T00:00:00+00:00", "/bin/sh", "/bin/sh")
NEW = OLD._replace(sha256="bb", size=4)
CALL = a_call("pinned")


def _pins(store: Store, place: str = "") -> ProgramPins:
    """Return what a process that has just begun knows: nothing yet."""
    return ProgramPins(store, PinBook(), now=lambda: NOON, place=place)


class RecordLaws:
    """Inherited by StoreConformance."""

    async def test_a_program_stays_pinned_for_every_process_of_its_place(self, store: Store) -> None:
        await _pins(store).begin(CALL, [OLD], None)
        later, elsewhere = _pins(store), _pins(store, "other")
        await later.read()
        await elsewhere.read()
        assert later.book.pins[OLD.path].program == OLD
        assert later.book.pins[OLD.path].by == FIRST_USE
        assert not elsewhere.book.pins
        with pytest.raises(SandboxError, match="toolgate programs accept /srv/shop/bin/lint"):
            await later.begin(CALL, [NEW], None)

    async def test_a_persons_word_on_a_program_reaches_every_process(self, store: Store) -> None:
        one, other = _pins(store), _pins(store)
        await one.begin(CALL, [OLD], None)
        await other.read()
        await other.accept([NEW], by="ann")
        await one.read()
        assert one.book.pins[OLD.path][:2] == (NEW, "ann")
        await one.forget([OLD.path], by="ann")
        await other.read()
        assert not other.book.pins

    async def test_a_policy_that_a_run_wrote_is_held_for_every_process(self, store: Store, tmp_path: Path) -> None:
        file = tmp_path / "toolgate.yaml"
        file.write_text("{version: 1, default: deny}")
        source = PolicySource(tmp_path)
        windows = policy_windows("memory://", store, source, mask=str)
        policy = source.load()
        window = await windows.open(CALL, policy, windows.exposed(policy, ["/"], ()))
        file.write_text("{version: 1, default: ask}")
        later, changed = policy_windows("memory://", store, source, mask=str), source.load()
        with pytest.raises(PolicyHeldError):
            await later.admit(changed, None, by="host")
        held = await later.held(changed)
        assert held is not None
        assert "+{version: 1, default: ask}" in held.diff
        with pytest.raises(ConflictError):
            await later.accept(changed, revision_of(policy), by="ann")
        await later.accept(changed, held.revision, by="ann")
        await windows.close(window)
        await policy_windows("memory://", store, source, mask=str).admit(changed, None, by="host")
