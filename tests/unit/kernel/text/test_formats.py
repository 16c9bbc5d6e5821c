"""Tool calls of every provider are read strictly; what cannot run as sent is unresolved, with a reason."""

from __future__ import annotations

import copy
import dataclasses
import enum
import json
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernel.provider_samples import (
    ANTHROPIC,
    ANTHROPIC_BLOCK,
    BEDROCK,
    GEMINI,
    GEMINI_CALL,
    OPENAI,
    OPENAI_CALL,
    OPENAI_MESSAGE,
    RESPONSES,
    RESPONSES_ITEM,
    TOOLS,
    WAYS,
    Thing,
    things,
)

from toolgate.kernel.text.canonical import Limits
from toolgate.kernel.text.formats import (
    FieldNames,
    FormatLimits,
    Reason,
    ResolvedToolCall,
    UnresolvedToolCall,
    parse_calls,
)

PAYLOADS = [(name, index) for name, ways in WAYS.items() for index in range(len(ways))]


def parse(payload: Any, **options: Any) -> tuple[list[ResolvedToolCall], list[UnresolvedToolCall]]:
    return parse_calls(payload, TOOLS.get, **options)


def only(payload: Any, **options: Any) -> UnresolvedToolCall:
    """Return the one call that was refused; nothing may have been resolved."""
    resolved, unresolved = parse(payload, **options)
    assert (resolved, len(unresolved)) == ([], 1)
    return unresolved[0]


def openai(name: Any = "convert", arguments: Any = '{"amount": 3}', call_id: Any = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(("name", "index"), PAYLOADS)
@pytest.mark.parametrize("make", [copy.deepcopy, things])
def test_a_call_is_read_however_it_is_passed(name: str, index: int, make: Any) -> None:
    resolved, unresolved = parse(make(WAYS[name][index]))
    assert unresolved == []
    assert [(call.format, call.call_id, call.name, call.arguments) for call in resolved] == [
        (name, "c1", "convert", {"amount": 3})
    ]
    assert resolved[0].tool is TOOLS["convert"]
    assert resolved[0].raw is not None


@pytest.mark.parametrize("payload", [None, [], {"role": "assistant", "content": "hi"}, {"choices": []}, iter(())])
def test_an_answer_without_calls_has_none(payload: Any) -> None:
    assert parse(payload) == ([], [])


@pytest.mark.parametrize(
    "payload",
    [
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": [{"type": "text", "text": "hi"}], "tool_calls": None},
        {"candidates": [{"finishReason": "STOP", "content": None}]},
        {"choices": [{"finish_reason": "stop", "message": None}]},
        [{"type": "text", "text": "hi"}, {"text": "hi"}],
        {"status": "completed", "output": []},
    ],
)
def test_content_is_not_a_broken_call(payload: Any) -> None:
    assert parse(payload) == ([], [])
    assert parse(things(payload)) == ([], [])


def test_calls_keep_their_order_and_a_bad_one_does_not_stop_the_others() -> None:
    calls = [openai(call_id="a"), openai("nope", call_id="b"), openai("ping", "", "c"), 7]
    resolved, unresolved = parse(calls)
    assert [call.call_id for call in resolved] == ["a", "c"]
    assert [(call.call_id[:3], call.reason) for call in unresolved] == [("b", "unknown_tool"), ("tg_", "malformed")]
    assert unresolved[0].error == "No tool named 'nope' is registered."
    assert unresolved[0].arguments == {"amount": 3}
    assert unresolved[0].raw is calls[1]


@pytest.mark.parametrize("name", ["Convert", "convert ", "cοnvert", "convert\u200b", "functions.convert"])
def test_names_match_byte_for_byte(name: str) -> None:
    assert only(openai(name)).reason is Reason.UNKNOWN_TOOL


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"amount": 3', "malformed"),
        ('{"amount": 3}}', "malformed"),
        ('{"amount": 3, "amount": 4}', "malformed"),
        ('{"amount": NaN}', "malformed"),
        ('{"to": "\\ud800", "amount": 1}', "malformed"),
        ('"{\\"amount\\": 3}"', "malformed"),
        ("[3]", "malformed"),
        ("null", "malformed"),
        ("3", "malformed"),
        ([["amount", 3]], "malformed"),
        (4, "malformed"),
        ({"amount": {1, 2}}, "malformed"),
        ('{"amount": "3"}', "invalid_arguments"),
        ('{"amount": true}', "invalid_arguments"),
        ('{"amount": 1.5}', "invalid_arguments"),
        ("{}", "invalid_arguments"),
        ("", "invalid_arguments"),
        (" \n", "invalid_arguments"),
        (None, "invalid_arguments"),
    ],
)
def test_bad_arguments_are_never_half_taken(arguments: Any, reason: str) -> None:
    refused = only(openai(arguments=arguments))
    assert refused.reason == reason
    assert refused.call_id == "c1"
    assert refused.name == "convert"
    assert refused.error


def test_arguments_against_the_schema_name_the_place_and_not_the_value() -> None:
    refused = only(openai(arguments='{"amount": "hunter2"}'))
    assert refused.location == "/amount"
    assert refused.error == "The arguments of 'convert' do not fit its schema: /amount is not of type integer."
    assert refused.arguments == {"amount": "hunter2"}


def test_no_arguments_are_an_empty_object_where_none_are_required() -> None:
    given: list[Any] = ["", " ", None, {}, "{}"]
    for empty in given:
        resolved, _ = parse(openai("ping", empty))
        assert resolved[0].arguments == {}


def test_defaults_are_not_filled_in() -> None:
    assert parse(openai())[0][0].arguments == {"amount": 3}


@pytest.mark.parametrize("key", ["_hitl_context", "approved", "confidence", "risk_level"])
def test_keys_that_look_like_trust_are_ordinary_arguments(key: str) -> None:
    refused = only(openai(arguments={"amount": 3, key: True}))
    assert refused.reason is Reason.INVALID_ARGUMENTS
    assert f"'{key}'" in refused.error
    assert parse(openai("ping", {key: True}))[0][0].arguments == {key: True}
    beside = {**openai(), key: True}
    assert parse(beside)[0][0].arguments == {"amount": 3}


def test_free_text_of_a_custom_tool_goes_into_its_only_parameter() -> None:
    chat = {"id": "c1", "type": "custom", "custom": {"name": "run_sql", "input": "select 1"}}
    item = {"type": "custom_tool_call", "call_id": "c1", "name": "run_sql", "input": "select 1"}
    for call, name in ((chat, "openai_custom"), (item, "openai_responses_custom")):
        resolved = parse(call)[0][0]
        assert (resolved.format, resolved.arguments) == (name, {"query": "select 1"})
    assert parse({**item, "name": "ping"})[0][0].arguments == {"input": "select 1"}
    assert only({**item, "name": "nope"}).arguments == {"input": "select 1"}


def test_the_older_function_call_of_a_message_is_read() -> None:
    message = {"role": "assistant", "function_call": {"name": "convert", "arguments": '{"amount": 3}'}}
    resolved = parse(message)[0][0]
    assert (resolved.format, resolved.call_id, resolved.arguments) == ("openai_legacy", "", {"amount": 3})


def test_custom_field_names_are_read_and_nothing_else() -> None:
    names = FieldNames("key", "tool", "params", "body")
    call = {"key": 9, "body": {"tool": "convert", "params": '{"amount": 3}'}, "name": "ping", "arguments": {}}
    resolved = parse([call], names=names)[0][0]
    assert (resolved.call_id, resolved.name, resolved.arguments) == ("9", "convert", {"amount": 3})
    flat = {"id": "1", "name": "convert", "input": {"amount": 3}}
    assert parse([flat], names=FieldNames("id", "name", "input", None))[0][0].arguments == {"amount": 3}
    assert only([OPENAI_CALL], names=names).reason is Reason.MALFORMED


@pytest.mark.parametrize(
    ("payload", "word"),
    [
        ({"choices": [{"finish_reason": "length", "message": OPENAI_MESSAGE}]}, "length"),
        ({"choices": [{"finish_reason": "content_filter", "message": OPENAI_MESSAGE}]}, "content_filter"),
        ({**RESPONSES, "status": "incomplete"}, "incomplete"),
        ({**ANTHROPIC, "stop_reason": "max_tokens"}, "max_tokens"),
        ({**ANTHROPIC, "stop_reason": "refusal"}, "refusal"),
        ({**BEDROCK, "stopReason": "malformed_tool_use"}, "malformed_tool_use"),
        ({"candidates": [{**GEMINI["candidates"][0], "finishReason": "MAX_TOKENS"}]}, "max_tokens"),
        ({"candidates": [{**GEMINI["candidates"][0], "finishReason": "SAFETY"}]}, "safety"),
    ],
)
def test_calls_of_an_answer_that_was_cut_off_do_not_run(payload: Any, word: str) -> None:
    refused = only(payload)
    assert refused.reason is Reason.TRUNCATED
    assert f"'{word}'" in refused.error


@pytest.mark.parametrize(
    "call",
    [
        {**RESPONSES_ITEM, "status": "in_progress"},
        {"functionCall": {**GEMINI_CALL, "willContinue": True}},
        {**GEMINI_CALL, "partial_args": [{"json_path": "$.amount"}]},
    ],
)
def test_a_call_that_is_still_being_written_does_not_run(call: Any) -> None:
    assert only([call]).reason is Reason.TRUNCATED


def test_the_reason_may_be_an_enum_of_the_sdk() -> None:
    class Finish(enum.Enum):
        MAX_TOKENS = "MAX_TOKENS"

    candidate = things(GEMINI["candidates"][0])
    candidate.finish_reason = Finish.MAX_TOKENS
    assert only(Thing(candidates=[candidate])).reason is Reason.TRUNCATED


@pytest.mark.parametrize(
    "payload",
    [
        {"choices": OPENAI["choices"] * 2},
        {"candidates": GEMINI["candidates"] * 2},
        OPENAI["choices"] * 2,
        [{"role": "user", "content": "hi"}, OPENAI_MESSAGE],
        [{"role": "user", "content": "hi"}, RESPONSES_ITEM],
        [OPENAI_MESSAGE, ANTHROPIC],
        {**OPENAI_CALL, "custom": {"name": "ping", "input": ""}},
        {**OPENAI_CALL, "name": "ping"},
        {**OPENAI_CALL, "arguments": {}},
        {**OPENAI_CALL, "type": "tool_use"},
        {**OPENAI_CALL, "type": "custom"},
        {**ANTHROPIC_BLOCK, "arguments": {"amount": 4}},
        {**ANTHROPIC_BLOCK, "function": {"name": "ping"}},
        {"functionCall": GEMINI_CALL, "toolUse": {}},
        {"type": "function", "functionCall": GEMINI_CALL},
    ],
)
def test_what_can_be_read_in_two_ways_does_not_run(payload: Any) -> None:
    resolved, unresolved = parse(payload)
    assert resolved == []
    assert {call.reason for call in unresolved} == {Reason.AMBIGUOUS}


def test_a_name_that_is_merely_repeated_is_not_ambiguous() -> None:
    assert len(parse({**OPENAI_CALL, "name": "convert"})[0]) == 1


@pytest.mark.parametrize(
    "payload",
    [
        "{}",
        b"bytes",
        5,
        {},
        object(),
        [None],
        [[OPENAI_CALL]],
        ["convert"],
        {"foo": 1},
        {"type": "function", "name": "convert"},
        {"type": "odd_call", "name": "convert", "arguments": "{}"},
        {"method": "tools/list", "params": {}},
        {**RESPONSES_ITEM, "namespace": "money"},
        {**ANTHROPIC_BLOCK, "toolset_name": "money"},
        {"role": "assistant", "tool_calls": 5},
        openai(name=None),
        openai(name=""),
        openai(name=7),
        openai(name=["convert"]),
        openai(call_id=True),
        openai(call_id=1.5),
        openai(call_id={"id": 1}),
        openai(call_id=10**400),
        {"id": "c1", "function": "convert"},
        {"id": "c1", "function": ["convert"]},
    ],
)
def test_what_is_no_call_is_unresolved(payload: Any) -> None:
    assert only(payload).reason is Reason.MALFORMED


def test_ids_may_be_missing_or_numbers() -> None:
    assert parse({"name": "convert", "arguments": {"amount": 3}})[0][0].call_id == ""
    assert parse(openai(call_id=42))[0][0].call_id == "42"


def test_the_same_call_sent_twice_runs_once() -> None:
    resolved, unresolved = parse([openai(), openai(arguments=' {"amount": 3.0}'), openai(call_id="c2")])
    assert [call.call_id for call in resolved] == ["c1", "c2"]
    assert [(call.call_id, call.reason) for call in unresolved] == [("c1", Reason.DUPLICATE)]


@pytest.mark.parametrize("other", [openai(arguments='{"amount": 4}'), openai("ping", "{}"), openai(arguments="{")])
def test_one_id_with_two_meanings_does_not_run_at_all(other: Any) -> None:
    resolved, unresolved = parse([openai(), other])
    assert resolved == []
    assert unresolved[0].reason is Reason.DUPLICATE
    assert "says something else" in unresolved[0].error


def test_calls_without_an_id_are_not_duplicates() -> None:
    plain = {"name": "convert", "arguments": {"amount": 3}}
    assert len(parse([plain, plain])[0]) == 2


def test_limits_hold_and_can_be_set() -> None:
    limits = FormatLimits(arguments=Limits(max_bytes=30, max_depth=2), max_calls=2, max_name=7, max_call_id=4)
    assert len(parse([openai(), openai(call_id="c2")], limits=limits)[0]) == 2
    for call in (
        openai(call_id="12345"),
        openai("convert_"),
        openai(arguments='{"amount": 3, "to": "aaaaaaaaaaaaaaaa"}'),
        openai(arguments={"amount": 3, "to": "aaaaaaaaaaaaaaaa"}),
        openai(arguments='{"amount": [[1]]}'),
        openai(arguments={"amount": [[1]]}),
    ):
        assert only(call, limits=limits).reason is Reason.OVERSIZED
    resolved, unresolved = parse([openai(call_id=str(number)) for number in range(3)], limits=limits)
    assert resolved == []
    assert {call.reason for call in unresolved} == {Reason.OVERSIZED}
    assert [call.call_id for call in unresolved] == ["0", "1", "2"]


def test_the_standard_limits_are_those_documented() -> None:
    assert dataclasses.asdict(FormatLimits()) == {
        "arguments": {"max_bytes": 12 * 2**20, "max_depth": 64},
        "max_calls": 128,
        "max_name": 64,
        "max_call_id": 128,
    }
    big = json.dumps({"amount": 3, "to": "a" * 12 * 2**20})
    deep = '{"a":' * 65 + "1" + "}" * 65
    for call in (openai(arguments=big), openai(arguments=deep), openai("n" * 65), openai(call_id="i" * 129)):
        assert only(call).reason is Reason.OVERSIZED
    assert len(parse([openai(call_id=str(number)) for number in range(129)])[1]) == 129
    assert only(openai(call_id="i" * 129)).call_id == "i" * 128


def test_text_that_cannot_be_written_is_shown_escaped() -> None:
    refused = only(openai("\ud800", call_id="c1"))
    refused.error.encode()
    assert (refused.name, refused.call_id) == ("\\ud800", "c1")


class Trap:
    """An object that fails when it is looked at."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("boo")


class TrapMapping(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("boo")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("boo")

    def __len__(self) -> int:
        return 1


class Moody(dict[str, Any]):
    def __contains__(self, key: object) -> bool:
        raise RuntimeError("boo")


def endless() -> Iterator[Any]:
    yield openai()
    raise RuntimeError("boo")


TRAPS: dict[str, Callable[[], Any]] = {
    "object": Trap,
    "object in a list": lambda: [Trap()],
    "mapping": TrapMapping,
    "mapping in a list": lambda: [TrapMapping()],
    "mapping that only tells its values": lambda: Moody(name="convert", arguments={}),
    "iterator": endless,
    "arguments": lambda: openai(arguments=TrapMapping()),
    "choices": lambda: {"choices": endless()},
    "calls of a message": lambda: [{"role": "assistant", "tool_calls": endless()}],
    "arguments that are an object": lambda: {"name": "convert", "args": Trap()},
}


@pytest.mark.parametrize("what", TRAPS)
def test_objects_that_fail_when_read_are_unresolved(what: str) -> None:
    assert only(TRAPS[what]()).reason is Reason.MALFORMED


def test_a_failing_item_does_not_hide_the_others() -> None:
    resolved, unresolved = parse([Trap(), openai()])
    assert (len(resolved), len(unresolved)) == (1, 1)


def test_mappings_and_named_tuples_of_other_kinds_are_read() -> None:
    call = namedtuple("call", ["id", "name", "arguments"])
    assert len(parse(call("c1", "convert", OrderedDict(amount=3)))[0]) == 1


def test_a_message_that_holds_itself_ends() -> None:
    loop: dict[str, Any] = {}
    loop["message"] = loop
    assert only(loop).reason is Reason.MALFORMED


KEYS = """
    id call_id type name function custom arguments input args tool_calls content parts choices message candidates output
    status functionCall function_call toolUse toolUseId role method params finish_reason stop_reason function_calls
    toolCall willContinue text
""".split()
WORDS = [*"convert ping function tool_use function_call custom assistant tools/call c1 {}".split(), ""]
garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)


def check_garbage(payload: Any) -> None:
    for one in (payload, things(payload)):
        resolved, unresolved = parse(one)
        for call in resolved:
            assert TOOLS[call.name].schema.is_valid(call.arguments)
        for refused in unresolved:
            assert refused.error
            refused.error.encode()
        parse(one, names=FieldNames("call_id", "function", "args", "params"))


@given(garbage)
def test_garbage_never_raises(payload: Any) -> None:
    check_garbage(payload)


@given(st.text(st.characters(), max_size=30) | st.binary(max_size=30) | garbage)
def test_arguments_of_any_kind_never_raise(arguments: Any) -> None:
    resolved, unresolved = parse(openai("ping", arguments))
    assert len(resolved) + len(unresolved) == 1
