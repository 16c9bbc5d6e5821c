"""The context, kinds and outputs of agent stages."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from toolgate import StageContext, StageKind, StageOutput
from toolgate.errors import UsageError
from toolgate.stages import ContextSnapshot, StageStatus
from toolgate.testing.patience import until


def test_kinds_are_text() -> None:
    assert StageKind("agent") is StageKind.AGENT
    assert [kind.value for kind in StageKind] == ["transform", "enrich", "route", "guard", "work", "agent"]


def test_outputs() -> None:
    done = StageOutput.ok(response="hi", count=2)
    assert (done.status, done.data, done.success) == (StageStatus.OK, {"response": "hi", "count": 2}, True)
    assert StageOutput.ok({"a": 1}, b=2).data == {"a": 1, "b": 2}
    assert StageOutput.skip("later", a=1) == StageOutput(StageStatus.SKIP, {"reason": "later", "a": 1})
    assert StageOutput.cancel("enough").data == {"cancel_reason": "enough"}
    failed = StageOutput.fail("broken", a=1)
    assert (failed.success, failed.error, failed.data) == (False, "broken", {"a": 1})
    assert StageOutput.retry("busy").status is StageStatus.RETRY


@pytest.mark.parametrize(
    "context",
    [
        StageContext(input_text="hello", execution_mode="doc"),
        StageContext(ContextSnapshot(input_text="hello", execution_mode="doc")),
        StageContext(snapshot=SimpleNamespace(input_text="hello", execution_mode="doc")),
        StageContext({"input_text": "hello"}, execution_mode="doc"),
        StageContext("hello", execution_mode="doc"),
    ],
)
def test_a_snapshot_is_given_as_an_object_a_mapping_text_or_by_name(context: StageContext) -> None:
    assert context.snapshot.input_text == "hello"
    assert context.execution_mode == context.behavior == "doc"
    assert context.to_dict()["execution_mode"] == "doc"
    assert context.to_dict()["input_text"] == "hello"


def test_a_snapshot_and_names_beside_it_are_refused() -> None:
    with pytest.raises(TypeError, match="also: input_text"):
        StageContext(SimpleNamespace(), input_text="x")


def test_ids_are_told_as_text() -> None:
    run, request = uuid4(), uuid4()
    context = StageContext(pipeline_run_id=run, request_id=request, user_id="ann", stage_name="s")
    told = context.to_dict()
    assert (context.pipeline_run_id, context.request_id) == (run, request)
    assert (told["pipeline_run_id"], told["request_id"], told["user_id"], told["stage_name"]) == (
        str(run),
        str(request),
        "ann",
        "s",
    )


class Sink:
    def __init__(self, *, fails: bool = False) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.fails = fails

    async def emit(self, *, type: str, data: dict[str, Any]) -> None:
        if self.fails:
            raise OSError("down")
        self.told.append((type, data))


async def test_events_reach_the_sink(caplog: pytest.LogCaptureFixture) -> None:
    slow, failing, quick = Sink(), Sink(fails=True), SimpleNamespace(told=[])
    quick.try_emit = lambda *, type, data: quick.told.append((type, data))
    for sink in (slow, failing, quick):
        StageContext(stage_name="s", event_sink=sink, pipeline_run_id="r").emit_event("x.y", {"a": 1})
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    expected = [("x.y", {"a": 1, "stage": "s", "pipeline_run_id": "r"})]
    assert slow.told == quick.told == expected
    assert "event sink failed with OSError" in caplog.text
    with caplog.at_level(logging.INFO):
        StageContext().emit_event("x.z", {})
    assert "x.z" in caplog.text


class Noting:
    """A sink that notes what it hears, at once or in a coroutine, and fails on `bad`."""

    def __init__(self, *, is_async: bool) -> None:
        self.told: list[tuple[str, Any]] = []
        self.emit = self._later if is_async else self._now

    def _now(self, *, type: str, data: Any) -> None:
        if type == "bad":
            raise OSError("the sink is away")
        self.told.append((type, data["a"]))

    async def _later(self, *, type: str, data: Any) -> None:
        await asyncio.sleep(0)
        self._now(type=type, data=data)


@pytest.mark.parametrize("is_async", [False, True])
def test_plain_and_async_sinks_are_told_without_a_loop(is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    sink = Noting(is_async=is_async)
    ctx = StageContext(stage_name="s", event_sink=sink)
    with caplog.at_level(logging.ERROR, "toolgate.stages"):
        for name in ("one", "bad", "two"):
            ctx.emit_event(name, {"a": 1})
    assert sink.told == [("one", 1), ("two", 1)]
    assert [record.getMessage() for record in caplog.records] == ["the event sink failed with OSError on bad"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_plain_and_async_sinks_are_told_in_a_loop(is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    sink = Noting(is_async=is_async)
    ctx = StageContext(stage_name="s", event_sink=sink)
    with caplog.at_level(logging.ERROR, "toolgate.stages"):
        for name in ("one", "bad", "two"):
            ctx.emit_event(name, {"a": 1})
        await until(lambda: len(sink.told) == 2 and len(caplog.records) == 1)
    assert sink.told == [("one", 1), ("two", 1)]


def test_what_is_no_sink_or_no_event_is_refused() -> None:
    with pytest.raises(UsageError, match="An event sink has a method `emit"):
        StageContext(event_sink=print)
    for name, data in ((None, {}), ("x", None), ("x", [1])):
        with pytest.raises(UsageError, match="a name and a mapping"):
            StageContext().emit_event(name, data)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Did you mean `input_text`"):
        StageContext(inpt_text="hello")
