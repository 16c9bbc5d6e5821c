"""What it takes to undo a call."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.kernel.samples import NOW

from toolgate.kernel.undo import UndoMetadata, UndoRecord, UndoState

EXPIRES = NOW + timedelta(seconds=60)


@pytest.mark.parametrize(("early_us", "expired"), [(1, False), (0, True), (-1, True)])
def test_a_record_is_expired_from_its_last_moment_on(early_us: int, expired: bool) -> None:
    record = UndoRecord(project="p", call_id="c1", tool_name="edit", data=b"{}", created_at=NOW, expires_at=EXPIRES)
    assert record.is_expired(EXPIRES - timedelta(microseconds=early_us)) is expired


def test_a_new_record_is_available_to_anybody() -> None:
    record = UndoRecord(project="p", call_id="c1", tool_name="edit", data=b"{}", created_at=NOW, expires_at=EXPIRES)
    assert (record.state, record.claimed_by, record.fingerprint) == (UndoState.AVAILABLE, None, None)


def test_metadata_has_the_documented_fields_and_an_aware_time() -> None:
    before = datetime.now(UTC)
    metadata = UndoMetadata("c1", "edit", {"old": 1})
    assert (metadata.action_id, metadata.tool_name, metadata.undo_data) == ("c1", "edit", {"old": 1})
    assert before <= metadata.created_at <= datetime.now(UTC)
    assert UndoMetadata(action_id="c1", tool_name="edit", undo_data={}, created_at=NOW).created_at is NOW
