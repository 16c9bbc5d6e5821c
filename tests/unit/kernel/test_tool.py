"""What a definition accepts, what it derives, and what changes its hash."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import subprocess
import sys
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernel.samples import a_tool, do_nothing

from toolgate.errors import DefinitionError
from toolgate.kernel.context import Mode
from toolgate.kernel.tool import (
    Effects,
    Placement,
    Prepared,
    RiskLevel,
    Thresholds,
    ToolDefinition,
    is_async,
    unwrapped,
)

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def sync_hook(_given: Any) -> None:
    return None


class AsyncObject:
    async def __call__(self, _given: Any) -> None:
        return None


class SyncObject:
    def __call__(self, _given: Any) -> None:
        return None

    async def method(self, _given: Any) -> None:
        return None


def test_the_first_nine_fields_are_positional_in_the_documented_order() -> None:
    tool = ToolDefinition("edit", SCHEMA, do_nothing, ("practice",), True, "Sure?", True, sync_hook, "document")
    assert (tool.name, tool.input_schema, tool.handler) == ("edit", SCHEMA, do_nothing)
    assert (tool.allowed_behaviors, tool.requires_approval, tool.approval_message) == (("practice",), True, "Sure?")
    assert (tool.undoable, tool.undo_handler, tool.artifact_type) == (True, sync_hook, "document")


def test_every_other_field_is_given_by_keyword() -> None:
    kinds = [parameter.kind for parameter in inspect.signature(ToolDefinition).parameters.values()]
    assert kinds[:9] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 9
    assert set(kinds[9:]) == {inspect.Parameter.KEYWORD_ONLY}


def test_what_is_left_out_has_the_documented_default() -> None:
    tool = ToolDefinition("edit", {}, do_nothing)
    assert (tool.allowed_behaviors, tool.requires_approval, tool.approval_message) == ((), False, None)
    assert (tool.undoable, tool.undo_handler, tool.artifact_type) == (False, None, None)
    assert (tool.action_type, tool.description, tool.timeout_seconds) == ("edit", "", 30.0)
    assert (tool.approval_timeout_seconds, tool.rate_limit_per_hour, tool.category) == (None, None, None)
    assert (tool.placement, tool.effects, tool.idempotent, tool.version) == (Placement.INLINE, None, False, None)


def test_the_schema_may_be_left_out_and_then_accepts_any_object() -> None:
    tool = ToolDefinition(name="edit", handler=do_nothing)
    assert tool.input_schema == {}
    assert tool.schema.is_valid({"anything": 1})


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(ToolDefinition)])
def test_a_definition_is_frozen(field: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(a_tool(), field, None)


def test_every_public_field_is_explained_in_the_docstring() -> None:
    internal = {"function", "bind", "inject"}
    for field in dataclasses.fields(ToolDefinition):
        if field.init and field.name not in internal:
            assert f"\n{field.name}: " in (inspect.getdoc(ToolDefinition) or ""), field.name


def test_a_schema_changed_afterwards_changes_nothing() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    result: dict[str, Any] = {"type": "object", "properties": {"b": {}}}
    tool = a_tool(input_schema=schema, output_schema=result)
    before = tool.hash
    schema["properties"]["a"]["type"] = "integer"
    result["properties"]["b"]["type"] = "integer"
    assert tool.input_schema["properties"] == {"a": {"type": "string"}}
    assert tool.output_schema == {"type": "object", "properties": {"b": {}}}
    assert tool.schema.is_valid({"a": "text"})
    assert dataclasses.replace(tool).hash == before


def test_changing_the_copy_a_definition_shows_does_not_change_what_is_checked() -> None:
    tool = a_tool(input_schema={"properties": {"a": {"type": "string"}}})
    tool.input_schema["properties"]["a"]["type"] = "integer"
    assert tool.schema.is_valid({"a": "text"})
    assert tool.schema.source == {"properties": {"a": {"type": "string"}}}


def test_a_schema_may_be_any_mapping() -> None:
    assert a_tool(input_schema=MappingProxyType(SCHEMA)).input_schema == SCHEMA


@pytest.mark.parametrize("name", ["a", "_", "9", "read_file", "fs.read", "a-b", "ns/tool", "a:b", "x" * 128])
def test_ordinary_names_are_accepted(name: str) -> None:
    assert a_tool(name).name == name


@pytest.mark.parametrize(
    "name", ["", " ", "a b", ".a", "-a", "/a", "a\n", "a\x00", "é", "a`b", "x" * 129, None, 5, b"a", "а"]
)
def test_other_names_are_refused(name: Any) -> None:
    with pytest.raises(DefinitionError, match="is refused: use 1 to 128 letters"):
        a_tool(name)


@given(st.text(max_size=140))
def test_a_name_is_accepted_exactly_when_it_has_only_the_named_characters(name: str) -> None:
    allowed = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/:")
    fits = 1 <= len(name) <= 128 and set(name) <= allowed and name[0] not in ".-/:"
    try:
        a_tool(name)
    except DefinitionError:
        assert not fits
    else:
        assert fits


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"handler": None}, "needs a callable handler"),
        ({"handler": "edit"}, "needs a callable handler"),
        ({"input_schema": None}, "input_schema must be a mapping"),
        ({"input_schema": [1]}, "input_schema must be a mapping"),
        ({"input_schema": {"type": "nonsense"}}, "input_schema is refused"),
        ({"input_schema": {"type": "string"}}, "arguments are always an object"),
        ({"input_schema": {"properties": MappingProxyType({})}}, "input_schema is not plain JSON"),
        ({"input_schema": {"default": {1, 2}}}, "input_schema is not plain JSON"),
        ({"output_schema": {"type": "nonsense"}}, "output_schema is refused"),
        ({"allowed_behaviors": "practice"}, "tuples of names, not one string"),
        ({"allowed_behaviors": None}, "tuples of names"),
        ({"allowed_behaviors": (1,)}, "tuples of names"),
        ({"allowed_behaviors": (name for name in ["practice"])}, "tuples of names"),
        ({"allowed_modes": "NORMAL"}, "tuples of names, not one string"),
        ({"allowed_modes": ("PANIC",)}, "allowed_modes 'PANIC' is not one of: NORMAL, ALERT, DEGRADED"),
        ({"risk_level": "extreme"}, "risk_level 'extreme' is not one of: low, medium, high"),
        ({"risk_level": 3}, "risk_level 3 is not one of"),
        ({"effects": "none"}, "effects 'none' is not one of: read, reversible, irreversible"),
        ({"placement": "moon"}, "placement 'moon' is not one of: inline, sandbox, client, worker"),
        ({"placement": None}, "placement None is not one of"),
        ({"timeout_seconds": 0}, "timeout_seconds must be a positive number"),
        ({"timeout_seconds": None}, "timeout_seconds must be a positive number"),
        ({"timeout_seconds": True}, "timeout_seconds must be a positive number"),
        ({"timeout_seconds": float("inf")}, "timeout_seconds must be a positive number"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds must be a positive number"),
        ({"approval_timeout_seconds": -1}, "approval_timeout_seconds must be a positive number"),
        ({"undo_ttl_seconds": "60"}, "undo_ttl_seconds must be a positive number"),
        ({"rate_limit_per_hour": 0}, "rate_limit_per_hour must be a positive number"),
        ({"rate_limit_per_hour": 2**60}, "holds something that is not JSON"),
        ({"thresholds": (85, 60)}, "thresholds must be a Thresholds"),
        ({"undo_handler": 1}, "undo_handler must be callable"),
        ({"prepare": 1}, "prepare must be callable"),
        ({"fingerprint": "x"}, "fingerprint must be callable"),
        ({"reconcile": {}}, "reconcile must be callable"),
        ({"description": b"bytes"}, "holds something that is not JSON"),
        ({"description": "\ud800"}, "holds something that is not JSON"),
    ],
)
def test_a_definition_that_cannot_work_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        a_tool(**options)


def test_closed_sets_are_read_from_text() -> None:
    tool = a_tool(risk_level="HIGH", effects="read", placement="client", allowed_modes=["NORMAL", Mode.ALERT])
    assert (tool.risk_level, tool.effects, tool.placement) == (RiskLevel.HIGH, Effects.READ, Placement.CLIENT)
    assert tool.allowed_modes == (Mode.NORMAL, Mode.ALERT)


@pytest.mark.parametrize("text", ["low", "LOW", "Low"])
def test_a_risk_is_spelled_in_any_case(text: str) -> None:
    assert RiskLevel(text) is RiskLevel.LOW


@pytest.mark.parametrize("value", ["", "lower", None, 1])
def test_what_is_no_risk_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid RiskLevel"):
        RiskLevel(value)


def test_risks_are_ranked() -> None:
    assert sorted(RiskLevel, key=lambda risk: risk.rank) == ["low", "medium", "high"]


@pytest.mark.parametrize(
    ("options", "risk"),
    [
        ({}, "low"),
        ({"effects": "reversible"}, "low"),
        ({"effects": "irreversible"}, "medium"),
        ({"effects": "irreversible", "risk_level": "low"}, "low"),
        ({"risk_level": "high"}, "high"),
    ],
)
def test_an_undeclared_risk_follows_from_the_effects(options: dict[str, Any], risk: str) -> None:
    assert a_tool(**options).risk is RiskLevel(risk)


@pytest.mark.parametrize(
    ("options", "has_effects", "can_retry"),
    [
        ({}, True, False),
        ({"effects": "read"}, False, True),
        ({"effects": "reversible"}, True, False),
        ({"effects": "irreversible"}, True, False),
        ({"effects": "irreversible", "idempotent": True}, True, True),
    ],
)
def test_undeclared_effects_count_and_only_the_harmless_is_retried(
    options: dict[str, Any], has_effects: bool, can_retry: bool
) -> None:
    tool = a_tool(**options)
    assert (tool.has_effects, tool.can_retry) == (has_effects, can_retry)


@pytest.mark.parametrize("placement", Placement)
def test_a_tool_that_requires_a_sandbox_never_runs_inline(placement: Placement) -> None:
    assert a_tool(placement=placement).runs_in is placement
    sandboxed = a_tool(placement=placement, requires_sandbox=True).runs_in
    assert sandboxed is (Placement.SANDBOX if placement is Placement.INLINE else placement)


@pytest.mark.parametrize("mode", Mode)
def test_a_tool_that_lists_no_mode_runs_in_all_but_lockdown(mode: Mode) -> None:
    assert a_tool().allows_mode(mode) is (mode is not Mode.LOCKDOWN)
    assert a_tool(allowed_modes=("LOCKDOWN",)).allows_mode(mode) is (mode is Mode.LOCKDOWN)


def test_behaviors_listed_are_the_only_ones() -> None:
    tool = a_tool(allowed_behaviors=["practice"])
    assert tool.allowed_behaviors == ("practice",)
    assert tool.is_behavior_allowed("practice")
    assert not tool.is_behavior_allowed("chat")
    assert not tool.is_behavior_allowed(None)
    assert a_tool().is_behavior_allowed(None)


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        (do_nothing, True),
        (sync_hook, False),
        (functools.partial(do_nothing), True),
        (functools.partial(functools.partial(sync_hook)), False),
        (AsyncObject(), True),
        (SyncObject(), False),
        (SyncObject().method, True),
        (functools.partial(AsyncObject()), True),
        (lambda given: given, False),
        (len, False),
    ],
)
def test_what_gives_a_coroutine_is_async(hook: Any, expected: bool) -> None:
    assert is_async(hook) is expected
    assert a_tool(handler=hook).is_async is expected


def test_a_partial_is_unwrapped_to_its_function() -> None:
    class Kept(functools.partial[None]):
        """A subclass is not flattened into the partial around it."""

    assert unwrapped(functools.partial(Kept(sync_hook))) is sync_hook
    assert unwrapped(sync_hook) is sync_hook


# Every field an approver relies on, with another value than the sample's.
CHANGES: dict[str, Any] = {
    "name": "other",
    "input_schema": {"type": "object"},
    "handler": sync_hook,
    "allowed_behaviors": ("practice",),
    "requires_approval": True,
    "approval_message": "Sure?",
    "undoable": True,
    "undo_handler": sync_hook,
    "artifact_type": "document",
    "action_type": "EDIT",
    "description": "Edits.",
    "timeout_seconds": 31.0,
    "approval_timeout_seconds": 5,
    "risk_level": "low",
    "category": "files",
    "allowed_modes": ("NORMAL",),
    "rate_limit_per_hour": 3,
    "effects": "read",
    "idempotent": True,
    "nothing_happened": (ValueError,),
    "effect_key": "edit:all",
    "placement": "client",
    "queue": "slow",
    "output_schema": {},
    "prepare": sync_hook,
    "fingerprint": sync_hook,
    "reconcile": sync_hook,
    "undo_ttl_seconds": 60,
    "thresholds": Thresholds(),
    "requires_reason": True,
    "approve_label": "Yes",
    "reject_label": "No",
    "requires_sandbox": True,
    "version": "2",
    "function": sync_hook,
}
FOLLOWS_FROM_THE_FUNCTION = {"bind", "inject"}


def test_every_field_is_known_to_change_the_hash_or_to_follow_from_others() -> None:
    given = {field.name for field in dataclasses.fields(ToolDefinition) if field.init}
    assert set(CHANGES) | FOLLOWS_FROM_THE_FUNCTION == given


@pytest.mark.parametrize("field", CHANGES)
def test_the_hash_changes_with_anything_an_approver_relies_on(field: str) -> None:
    assert a_tool(**{"name": "edit", "action_type": "E", field: CHANGES[field]}).hash != a_tool(action_type="E").hash


@given(st.dictionaries(st.sampled_from(sorted(CHANGES)), st.none(), max_size=6))
def test_definitions_that_say_the_same_have_one_hash(chosen: dict[str, None]) -> None:
    options = {"name": "edit", **{field: CHANGES[field] for field in chosen}}
    assert a_tool(**options).hash == a_tool(**dict(reversed(options.items()))).hash
    assert a_tool(**options) == a_tool(**options)


def test_the_hash_does_not_depend_on_spelling_or_order() -> None:
    one = a_tool(risk_level="HIGH", allowed_behaviors=("a", "b"), allowed_modes=("NORMAL", "ALERT"))
    other = a_tool(risk_level="high", allowed_behaviors=["b", "a"], allowed_modes=("ALERT", "NORMAL"))
    assert one.hash == other.hash
    assert a_tool(input_schema={"a": 1, "b": 2}).hash == a_tool(input_schema={"b": 2, "a": 1}).hash
    assert a_tool(action_type="edit").hash == a_tool().hash


@pytest.mark.parametrize("field", ["auto", "quick"])
def test_the_hash_covers_each_threshold(field: str) -> None:
    changed = dataclasses.replace(Thresholds(), **{field: 70})
    assert a_tool(thresholds=changed).hash != a_tool(thresholds=Thresholds()).hash


def test_code_counts_by_where_it_lives() -> None:
    assert a_tool(handler=functools.partial(do_nothing)).hash == a_tool().hash
    assert a_tool(handler=AsyncObject()).hash == a_tool(handler=AsyncObject()).hash
    assert a_tool(handler=AsyncObject()).hash != a_tool(handler=SyncObject()).hash
    assert a_tool(handler=SyncObject().method).hash != a_tool(handler=SyncObject()).hash


def test_the_hash_is_the_same_in_every_process() -> None:
    code = (
        "from toolgate import ToolDefinition;"
        "print(ToolDefinition('edit', {}, len, {'a', 'b', 'c'}, allowed_modes={'NORMAL', 'ALERT'}).hash)"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True
        ).stdout
        for seed in "1234"
    }
    assert len(printed) == 1


def test_a_replaced_definition_derives_everything_anew() -> None:
    tool = a_tool(effects="irreversible")
    changed = dataclasses.replace(tool, effects="read", handler=sync_hook, input_schema=SCHEMA)
    assert (changed.risk, changed.is_async, changed.schema.is_valid({})) == (RiskLevel.LOW, False, False)
    assert changed.hash != tool.hash


@pytest.mark.parametrize("bounds", [(60, 85), (101, 60), (85, -1), (0, 1)])
def test_thresholds_out_of_order_or_range_are_refused(bounds: tuple[int, int]) -> None:
    with pytest.raises(DefinitionError, match="0 <= quick <= auto <= 100"):
        Thresholds(auto=bounds[0], quick=bounds[1])


@given(st.integers(-5, 105), st.integers(-5, 105))
def test_thresholds_are_accepted_exactly_in_order(auto: int, quick: int) -> None:
    try:
        made = Thresholds(auto=auto, quick=quick)
    except DefinitionError:
        assert not 0 <= quick <= auto <= 100
    else:
        assert (made.auto, made.quick) == (auto, quick)
        assert 0 <= quick <= auto <= 100


def test_thresholds_are_85_and_60_by_default() -> None:
    assert (Thresholds().auto, Thresholds().quick) == (85, 60)


def test_a_preparation_may_find_out_nothing() -> None:
    assert Prepared() == Prepared(preview=None, preconditions=None, undo_data=None)


def test_an_output_schema_is_compiled_where_there_is_one() -> None:
    assert a_tool().result_schema is None
    compiled = a_tool(output_schema={"type": "string"}).result_schema
    assert compiled is not None
    assert compiled.is_valid("text")
    assert not compiled.is_valid(1)


@pytest.mark.parametrize("queue", ["", "Mail", "a b", "x" * 49, 3])
def test_a_queue_is_a_plain_name(queue: Any) -> None:
    with pytest.raises(DefinitionError, match="queue"):
        a_tool(queue=queue)
