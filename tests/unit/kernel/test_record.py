"""Cheap creation and change give the same values as the ordinary dataclass constructor."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kernel.samples import NOW, a_call, an_approval

from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import Context
from toolgate.kernel.grant import Grant
from toolgate.kernel.output import Result
from toolgate.kernel.policy import Policy, Stance
from toolgate.kernel.record import build, evolve, slim
from toolgate.kernel.undo import UndoRecord

SAMPLES: list[Any] = [
    Context(),
    a_call(),
    an_approval(),
    Policy(),
    Stance(),
    Result(call_id="c1", tool_name="edit", status=Status.PENDING),
    Grant(
        id="g1",
        project="p",
        tool_name="edit",
        definition_hash="h",
        requester="agent:a",
        pattern={},
        shown={},
        nonce="n",
        approval_id="a1",
        granted_by="ann",
        created_at=NOW,
        expires_at=NOW,
        max_uses=1,
    ),
    UndoRecord(project="p", call_id="c1", tool_name="edit", data=b"{}", created_at=NOW, expires_at=NOW),
]
values = st.one_of(st.none(), st.integers(), st.text(), st.binary(), st.tuples(st.integers()))


def fields_of(record: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(record)]


def as_dict(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in fields_of(record)}


@settings(max_examples=30)
@given(data=st.data())
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_a_record_has_the_fields_it_was_made_with_and_defaults_for_the_rest(sample: Any, data: st.DataObject) -> None:
    kind = type(sample)
    defaults = {
        field.name: field.default for field in dataclasses.fields(sample) if field.default is not dataclasses.MISSING
    }
    required = set(fields_of(sample)) - defaults.keys()
    chosen = data.draw(st.sets(st.sampled_from(fields_of(sample)))) | required
    fields = {name: data.draw(values) for name in sorted(chosen)}
    built = kind(**fields)
    assert as_dict(built) == defaults | fields
    made = build(kind, dict(fields))
    assert made == built
    assert repr(made) == repr(built)


def test_a_misspelt_field_does_not_pass_the_type_check() -> None:
    # The check is the ignores themselves: mypy reports one that ignores nothing.
    call = a_call()
    evolve(call, aproved_by="ann")  # type: ignore[call-arg]
    evolve(call, attempt="one")  # type: ignore[arg-type]
    evolve(an_approval(), desided_by="ann")  # type: ignore[call-arg]
    Change(project="p", at=NOW, evnts=())  # type: ignore[call-arg]


@settings(max_examples=30)
@given(data=st.data())
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_evolve_equals_replace_and_leaves_the_original(sample: Any, data: st.DataObject) -> None:
    before = as_dict(sample)
    chosen = data.draw(st.sets(st.sampled_from(fields_of(sample))))
    changes = {name: data.draw(values) for name in sorted(chosen)}
    evolved = evolve(sample, **changes)
    assert as_dict(evolved) == as_dict(dataclasses.replace(sample, **changes))
    assert type(evolved) is type(sample)
    assert as_dict(sample) == before


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_a_made_or_evolved_record_is_frozen(sample: Any) -> None:
    for record in (type(sample)(**vars(sample)), evolve(sample)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, fields_of(record)[0], "other")
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(record, fields_of(record)[0])


@pytest.mark.parametrize("kind", [type(sample) for sample in SAMPLES], ids=lambda kind: kind.__name__)
def test_every_default_is_a_class_attribute_that_serves_absent_fields(kind: Any) -> None:
    made_by_keyword = {"projects"}  # of a policy, which is made as dataclasses are
    for field in dataclasses.fields(kind):
        assert field.default_factory is dataclasses.MISSING or field.name in made_by_keyword
        if field.default is not dataclasses.MISSING:
            assert getattr(kind, field.name) == field.default


@pytest.mark.parametrize("record", [a_call(undo_of="c0"), an_approval(reason="late")])
def test_copies_and_pickles_of_a_record_equal_it(record: Call | Approval) -> None:
    made = build(type(record), dict(vars(record)))
    assert copy.copy(made) == copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == record


def test_two_records_made_of_the_same_mapping_share_no_state() -> None:
    fields: dict[str, Any] = {"principal": "agent:a"}
    first, second = Context(**fields), Context(**fields)
    fields["principal"] = "agent:b"
    assert vars(first) is not vars(second)
    assert first.principal == second.principal == "agent:a"


def test_a_slim_record_equals_the_one_it_was_made_of() -> None:
    call = evolve(a_call(undo_of="c0"), approved_by=None, artifacts=(), error=None)
    kept = slim(call)
    assert kept == call
    assert "error" in vars(call)
    assert {"error", "approved_by", "artifacts"}.isdisjoint(vars(kept))
    assert vars(kept)["undo_of"] == "c0"
