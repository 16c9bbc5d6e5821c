"""Whatever a record holds comes back from its row, through a real database, value for value."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql import rows
from toolgate.errors import StoreError
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import Context, Principal
from toolgate.kernel.event import genesis, seal
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoRecord, UndoState
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import a_call, an_approval, an_undo

T = TypeVar("T")
SEALER = Sealer([bytes(32)])
SOME_ID = "0196f1ab-7c3e-7aaa-8bbb-0123456789ab"

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ids = st.one_of(st.uuids().map(str), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
moments = st.datetimes(timezones=st.just(UTC))
moments = moments.map(lambda at: at.replace(fold=0))
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), words)
scalars = scalars.filter(lambda value: value not in (float("inf"), float("-inf")))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=8
)
encoded = values.map(lambda value: json.dumps(value).encode())


def maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.none() | strategy


contexts = st.builds(
    Context,
    principal=ids,
    roles=st.frozensets(words, max_size=3),
    user=maybe(ids),
    session_id=maybe(words),
    run_id=maybe(ids),
    request_id=maybe(words),
    behavior=maybe(words),
    trace_id=maybe(words),
    span_id=maybe(words),
    parent_call_id=maybe(words),
)


@st.composite
def calls(draw: st.DrawFn) -> Call:
    project = draw(words)
    return Call(
        id=draw(ids),
        project=project,
        context=evolve(draw(contexts), project=project),
        tool_name=draw(words),
        created_at=draw(moments),
        arguments=draw(encoded),
        shown=draw(values),
        definition_hash=draw(words),
        status=draw(st.sampled_from(Status)),
        version=draw(st.integers(0, 2**31)),
        undo_of=draw(maybe(ids)),
        forced=draw(st.booleans()),
        has_effects=draw(st.booleans()),
        idempotent=draw(st.booleans()),
        placement=draw(words),
        policy_revision=draw(words),
        reasons=tuple(draw(st.lists(words, max_size=3))),
        risk=draw(st.sampled_from(["low", "medium", "high"])),
        confidence=draw(maybe(st.integers(0, 100))),
        level=draw(words),
        approval_timeout_s=draw(maybe(st.floats(0.001, 1e9))),
        approval_id=draw(maybe(ids)),
        approved_by=draw(maybe(words)),
        approved_at=draw(maybe(moments)),
        preconditions=draw(maybe(encoded)),
        preview=draw(values),
        owner=draw(maybe(words)),
        attempt=draw(st.integers(0, 9)),
        fence=draw(maybe(words)),
        due_at=draw(maybe(moments)),
        started_at=draw(maybe(moments)),
        completed_at=draw(maybe(moments)),
        duration_ms=draw(maybe(st.floats(0, 1e9))),
        result=draw(maybe(encoded)),
        shown_result=draw(values),
        artifacts=(),
        error=draw(maybe(words)),
        error_code=draw(maybe(words)),
    )


@st.composite
def approvals(draw: st.DrawFn) -> Approval:
    return Approval(
        id=draw(ids),
        project=draw(words),
        call_id=draw(ids),
        tool_name=draw(words),
        message=draw(words),
        digest=draw(words),
        nonce=draw(words),
        definition_hash=draw(words),
        requester=draw(words),
        created_at=draw(moments),
        expires_at=draw(moments),
        warn_at=draw(maybe(moments)),
        user=draw(maybe(words)),
        run_id=draw(maybe(ids)),
        session_id=draw(maybe(words)),
        correlation_id=draw(maybe(words)),
        level=draw(words),
        risk=draw(words),
        confidence=draw(maybe(st.integers(0, 100))),
        reasons=tuple(draw(st.lists(words, max_size=3))),
        arguments=draw(values),
        preview=draw(values),
        undoable=draw(st.booleans()),
        requires_reason=draw(st.booleans()),
        status=draw(st.sampled_from(ApprovalStatus)),
        decided_by=draw(maybe(ids)),
        decided_at=draw(maybe(moments)),
        reason=draw(maybe(words)),
    )


undos = st.builds(
    UndoRecord,
    project=words,
    call_id=ids,
    tool_name=words,
    data=encoded,
    created_at=moments,
    expires_at=moments,
    state=st.sampled_from(UndoState),
    fingerprint=maybe(st.binary(max_size=40)),
    claimed_by=maybe(words),
)


def all_fields(record: Any) -> dict[str, Any]:
    """Every field a record has, those left at their default too; the types count, 3 is not 3.0."""
    assert dataclasses.is_dataclass(record)
    return {field.name: _told(getattr(record, field.name)) for field in dataclasses.fields(record)}


def _told(value: object) -> object:
    if isinstance(value, Context):
        return all_fields(value)
    return sorted(value) if isinstance(value, frozenset) else repr(value)


@pytest.fixture(scope="module")
def tables(empty_database: Path) -> Iterator[sqlite3.Connection]:
    """The real tables; whatever is written to them is taken back."""
    connection = sqlite3.connect(empty_database)
    connection.row_factory = sqlite3.Row
    yield connection
    connection.close()


def put(tables: sqlite3.Connection, table: str, columns: tuple[str, ...], row: rows.Row) -> None:
    marks = ",".join("?" * len(columns))
    tables.execute(f"INSERT INTO {table} ({','.join(columns)}) VALUES ({marks})", row)


def taken(tables: sqlite3.Connection, select: str) -> sqlite3.Row:
    """Return the one row there is, and take back whatever was written."""
    found: sqlite3.Row = tables.execute(select).fetchone()
    tables.rollback()
    return found


def through(tables: sqlite3.Connection, table: str, columns: tuple[str, ...], row: rows.Row) -> sqlite3.Row:
    """Write a row to the real table and return what is read back."""
    put(tables, table, columns, row)
    return taken(tables, f"SELECT {','.join(columns)} FROM {table}")


def call_row(call: Call) -> rows.Row:
    return rows.call_row(call, SEALER, rows.params_of(call, SEALER))


def stored(tables: sqlite3.Connection, call: Call) -> sqlite3.Row:
    """A call as it is selected, with what is kept beside it."""
    put(tables, "tool_executions", rows.CALL_COLUMNS, call_row(call))
    *_, beside = rows.params_of(call, SEALER)
    if beside is not None:
        put(tables, "large_params", rows.LARGE_PARAMS_COLUMNS, beside)
    names = [*rows.CALL_COLUMNS, "large_view", "large_sealed"]
    return taken(tables, f"SELECT {', '.join(names)} FROM ({_named(rows.call_columns('t'))} FROM tool_executions AS t)")


def _named(columns: str) -> str:
    """The selected columns, of which the last two have no names of their own, with names."""
    first, view, sealed = columns.rsplit(", (SELECT", 2)
    return f"SELECT {first}, (SELECT{view} AS large_view, (SELECT{sealed} AS large_sealed"


def undo_through(tables: sqlite3.Connection, undo: UndoRecord, *, beside: bool = True) -> UndoRecord:
    put(tables, "undo_records", rows.UNDO_COLUMNS, rows.undo_row(undo, SEALER))
    if beside:
        put(tables, "large_undo", rows.LARGE_UNDO_COLUMNS, rows.large_undo_row(undo, SEALER))
    return rows.undo_of(tuple(taken(tables, rows.UNDO)), SEALER)


def call_through(tables: sqlite3.Connection, call: Call) -> Call:
    return rows.call_of(tuple(stored(tables, call)), SEALER)


def altered(row: sqlite3.Row, **columns: Any) -> tuple[Any, ...]:
    return tuple({**dict(row), **columns}.values())


@given(call=calls())
def test_every_field_of_a_call_comes_back(tables: sqlite3.Connection, call: Call) -> None:
    assert all_fields(call_through(tables, call)) == all_fields(call)


@given(approval=approvals())
def test_every_field_of_an_approval_comes_back(tables: sqlite3.Connection, approval: Approval) -> None:
    row = through(tables, "approval_requests", rows.APPROVAL_COLUMNS, rows.approval_row(approval))
    assert all_fields(rows.approval_of(tuple(row))) == all_fields(approval)


@given(undo=undos)
def test_every_field_of_an_undo_record_comes_back(tables: sqlite3.Connection, undo: UndoRecord) -> None:
    assert all_fields(undo_through(tables, undo, beside=False)) == all_fields(undo)


@given(artifacts=st.lists(values, max_size=3))
def test_artifacts_are_sealed_with_the_result_they_belong_to(tables: sqlite3.Connection, artifacts: list[Any]) -> None:
    call = a_call(result=b"1", artifacts=tuple(artifacts))
    assert call_through(tables, call).artifacts == tuple(artifacts)


def test_a_call_with_every_field_at_its_default_comes_back(tables: sqlite3.Connection) -> None:
    call = Call(id="c1", project="p", tool_name="t", context=Context(project="p"), created_at=NOON)
    assert all_fields(call_through(tables, call)) == all_fields(call)


@pytest.mark.parametrize(
    "result", [3, 3.0, 0.1, -0.0, 10**15, 9007199254740991, "3", "", "null", True, [], {}, None], ids=repr
)
def test_a_bare_result_keeps_its_value_and_type(tables: sqlite3.Connection, result: Any) -> None:
    back = call_through(tables, a_call(result=json.dumps(result).encode(), shown_result=result))
    assert repr(back.shown_result) == repr(result)


def test_nothing_and_a_missing_value_are_told_apart(tables: sqlite3.Connection) -> None:
    nothing = call_through(tables, a_call(result=b"null", preconditions=b"null"))
    missing = call_through(tables, a_call())
    assert (nothing.result, nothing.preconditions) == (b"null", b"null")
    assert (missing.result, missing.preconditions) == (None, None)


def test_the_hosts_own_object_is_not_kept(tables: sqlite3.Connection) -> None:
    call = a_call(context=Context(host=object()))
    assert call_through(tables, call).context.host is None


def test_a_uuid_is_kept_as_itself_and_another_id_as_one_made_of_it() -> None:
    assert rows.uuid_hex(SOME_ID) == UUID(SOME_ID).hex
    for other in ("c1", "", "call_é", SOME_ID.upper(), SOME_ID + "\n", f"urn:uuid:{SOME_ID}"):
        assert rows.uuid_hex(other) == rows.uuid_hex(other)
        assert rows.uuid_hex(other) != UUID(SOME_ID).hex
        assert UUID(rows.uuid_hex(other)).version == 5


def test_principals_are_uuids_with_the_name_beside_them(tables: sqlite3.Connection) -> None:
    approval = an_approval(decided_by="policy:auto", decided_at=NOON, status=ApprovalStatus.APPROVED)
    row = through(tables, "approval_requests", rows.APPROVAL_COLUMNS, rows.approval_row(approval))
    assert UUID(row["decided_by"]) == Principal.of("policy:auto").id
    assert row["decided_by_name"] == "policy:auto"


def test_the_user_of_a_call_is_the_person_it_is_for(tables: sqlite3.Connection) -> None:
    for context, user in (
        (Context(principal="agent:x", user=SOME_ID), SOME_ID),
        (Context(principal="agent:x"), str(Principal.of("agent:x").id)),
    ):
        row = stored(tables, a_call(context=context))
        assert UUID(row["user_id"]) == UUID(user)
        assert row["principal"] == "agent:x"


def test_times_are_utc_with_microseconds_and_sort_as_text() -> None:
    assert rows.moment(NOON) == "2026-01-01 12:00:00.000000"
    assert rows.time_of(rows.moment(NOON)) == NOON
    assert rows.moment(None) is None
    assert rows.time_of(None) is None
    early, late = (rows.moment(NOON + timedelta(microseconds=step)) for step in (1, 10))
    assert early is not None
    assert late is not None
    assert early < late


def test_readable_columns_hold_only_what_may_be_read(tables: sqlite3.Connection) -> None:
    call = a_call(
        arguments=b'{"password":"canary"}',
        shown={"password": "***"},
        preconditions=b'"canary"',
        result=b'"canary"',
        shown_result="***",
        artifacts=("canary",),
    )
    row = call_row(call)
    assert not [value for value in row if "canary" in str(value)]
    assert b"canary" not in b"".join(value for value in row if isinstance(value, bytes))
    named = dict(zip(rows.CALL_COLUMNS, row, strict=True))
    assert (named["tool_params"], named["result"]) == ('{"password":"***"}', '"***"')
    undo = an_undo(data=b'"canary"', fingerprint=b'"canary"')
    assert not [value for value in rows.undo_row(undo, SEALER) if "canary" in str(value)]


@pytest.mark.parametrize("column", ["sealed_params", "sealed_result"])
def test_a_sealed_value_taken_from_another_call_is_refused(tables: sqlite3.Connection, column: str) -> None:
    mine, theirs = (stored(tables, a_call(id, result=b"1")) for id in ("c1", "c2"))
    with pytest.raises(StoreError, match="another row"):
        rows.call_of(altered(mine, **{column: theirs[column]}), SEALER)


def test_arguments_cannot_be_passed_off_as_a_result(tables: sqlite3.Connection) -> None:
    row = stored(tables, a_call(result=b"1"))
    with pytest.raises(StoreError, match="another row"):
        rows.call_of(altered(row, sealed_result=row["sealed_params"]), SEALER)


def test_a_call_whose_arguments_were_forgotten_can_still_be_read(tables: sqlite3.Connection) -> None:
    row = stored(tables, a_call(result=b"1"))
    kept = rows.call_of(altered(row, sealed_params=None, sealed_result=None), SEALER)
    assert (kept.arguments, kept.result) == (b"{}", None)


def test_an_event_comes_back_as_it_was_sealed() -> None:
    event = seal(("tool.progress", "c1", {"x": 1}, {"y": 2}), "p", 1, NOON, genesis("p"))
    assert rows.event_of((*event[:3], rows.moment(event.at), *event[4:])) == event


def test_every_column_of_a_row_has_its_name() -> None:
    assert len(call_row(a_call())) == len(rows.CALL_COLUMNS)
    assert len(rows.approval_row(an_approval())) == len(rows.APPROVAL_COLUMNS)
    assert len(rows.undo_row(an_undo(), SEALER)) == len(rows.UNDO_COLUMNS)


LONG = "words of a long text\n" * 4000
RICH: dict[str, Any] = {
    "z": LONG,
    "a": {"y": 1, "b": [{"q": 2.5, "c": None}, LONG, [], {}]},
    "m": "short",
    "odd": "[80000 characters]",
}
"""Keys in an order that is not theirs when sorted, at every depth."""


def large_call(shown: Any, value: Any = RICH, **fields: Any) -> Call:
    return a_call(arguments=orjson.dumps(value, option=orjson.OPT_SORT_KEYS), shown=shown, **fields)


@pytest.mark.parametrize(
    "shown",
    [
        RICH,
        {**RICH, "m": "***"},
        {**RICH, "z": "***"},
        {"a": LONG},
        {},
        [],
        [LONG],
        None,
        "***",
        LONG,
    ],
    ids=range(10),
)
def test_a_large_call_comes_back_with_the_view_it_was_stored_with(tables: sqlite3.Connection, shown: Any) -> None:
    call = large_call(shown, preconditions=b'{"sha256":"x"}')
    back = call_through(tables, call)
    assert all_fields(back) == all_fields(call)
    assert json.dumps(back.shown) == json.dumps(shown)


@given(value=st.dictionaries(words, values, max_size=4), masked=st.booleans())
def test_any_large_call_comes_back(tables: sqlite3.Connection, value: dict[str, Any], masked: bool) -> None:
    value = {**value, "long": LONG}
    call = large_call({**value, "long": "***"} if masked else value, value)
    assert json.dumps(call_through(tables, call).shown) == json.dumps(call.shown)


def test_the_row_of_a_large_call_is_small_and_says_what_it_is_about(tables: sqlite3.Connection) -> None:
    row = stored(tables, large_call(RICH))
    assert sum(len(value) for value in row[: len(rows.CALL_COLUMNS)] if isinstance(value, str | bytes)) < 2000
    assert json.loads(row["tool_params"])["m"] == "short"
    assert json.loads(row["tool_params"])["z"] == f"[{len(LONG)} characters]"
    assert row["large_view"] is None, "a view that is as its arguments are is not stored twice"


def test_a_view_of_very_many_pieces_is_outlined_in_the_row(tables: sqlite3.Connection) -> None:
    many = {"rows": list(range(40_000))}
    call = large_call(many, many)
    row = stored(tables, call)
    assert json.loads(row["tool_params"]) == {"truncated": True, "bytes": len(call.arguments), "keys": ["rows"]}
    assert rows.call_of(tuple(row), SEALER).shown == many


def test_large_arguments_are_nowhere_in_the_clear(tables: sqlite3.Connection) -> None:
    value = {"a": f"{LONG}canary", "password": "canary"}
    row = stored(tables, large_call({**value, "password": "***", "a": f"{LONG}***"}, value, preconditions=b'"canary"'))
    said = [value if isinstance(value, bytes) else str(value).encode() for value in row]
    assert not [value for value in said if b"canary" in value]
    same = stored(tables, large_call({"a": LONG}, {"a": LONG}))
    assert not [value for value in same if b"words of a long" in str(value).encode()]


@pytest.mark.parametrize("hides", [True, False])
def test_a_view_is_what_was_masked_when_it_was_stored(tables: sqlite3.Connection, hides: bool) -> None:
    """Whatever the call says about it: only a view that is equal to its arguments is read from them."""
    shown = {"a": f"{LONG}***"}
    call = large_call(shown, {"a": f"{LONG}secret"}, hides=hides)
    assert call_through(tables, call).shown == shown


@pytest.mark.parametrize("said", [None, "{}", "[]", '{"z": 1}', '{"z":1,"a":[],"m":2,"odd":{}}'])
def test_a_row_whose_words_were_changed_still_has_the_arguments(tables: sqlite3.Connection, said: str | None) -> None:
    row = stored(tables, large_call(RICH))
    assert rows.call_of(altered(row, tool_params=said), SEALER).shown == RICH


def test_a_large_value_that_is_missing_or_moved_is_refused(tables: sqlite3.Connection) -> None:
    mine, theirs = (stored(tables, evolve(large_call(RICH), id=id)) for id in ("c1", "c2"))
    with pytest.raises(StoreError, match="missing"):
        rows.call_of(altered(mine, large_sealed=None), SEALER)
    with pytest.raises(StoreError, match="another row"):
        rows.call_of(altered(mine, large_sealed=theirs["large_sealed"]), SEALER)
    with pytest.raises(StoreError, match="not where it belongs"):
        rows.call_of(altered(mine, large_sealed=mine["sealed_params"]), SEALER)


def test_a_large_call_whose_arguments_were_forgotten_can_still_be_read(tables: sqlite3.Connection) -> None:
    row = stored(tables, large_call(RICH))
    kept = rows.call_of(altered(row, tool_params=None, sealed_params=None, large_sealed=None), SEALER)
    assert (kept.arguments, kept.shown) == (b"{}", None)


def test_what_is_beside_a_row_that_has_its_arguments_itself_is_not_looked_at(tables: sqlite3.Connection) -> None:
    small = a_call(arguments=b'{"n":1}', shown={"n": 1})
    row = stored(tables, small)
    left = altered(row, large_view='{"n":2}', large_sealed=b"anything")
    assert all_fields(rows.call_of(left, SEALER)) == all_fields(small)


@pytest.mark.parametrize("fingerprint", [None, b"", b"here"])
def test_large_undo_data_comes_back(tables: sqlite3.Connection, fingerprint: bytes | None) -> None:
    undo = an_undo(data=orjson.dumps(LONG), fingerprint=fingerprint)
    assert len(rows.undo_row(undo, SEALER)[5]) < 200
    assert all_fields(undo_through(tables, undo)) == all_fields(undo)


def test_large_undo_data_that_is_missing_is_not_taken_for_none(tables: sqlite3.Connection) -> None:
    with pytest.raises(StoreError, match="missing"):
        undo_through(tables, an_undo(data=orjson.dumps(LONG)), beside=False)
