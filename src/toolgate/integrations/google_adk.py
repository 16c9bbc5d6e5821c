"""Google ADK: a plugin of the runner, which takes every tool call of all its agents through the gate.

A call that waits for a person requests a confirmation, as the framework's own do. The tool call is made again when it
is confirmed, and the gate is asked again: the confirmation itself does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.adk.plugins.base_plugin import BasePlugin

from toolgate.gate import Gate
from toolgate.gate.bridge import Bridge, Outcome, check_version
from toolgate.kernel.context import Context

NAME = "Google ADK"
TESTED = ((2, 13), (3,))


class Toolgate(BasePlugin):
    """`Runner(..., plugins=[Toolgate(gate)])`: every tool of every agent goes through the gate.

    `effects` says what tools do, such as `{"wire": "irreversible"}`; `context` who the agent is. With `wait` a question
    is waited for inside the run, which then never pauses. Tools named in `ungoverned` pass.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        effects: Mapping[str, str] | None = None,
        context: Context | None = None,
        wait: bool = False,
        ungoverned: tuple[str, ...] = ("transfer_to_agent",),
        any_version: bool = False,
    ) -> None:
        super().__init__(name="toolgate")
        if not any_version:
            check_version(NAME, "google-adk", *TESTED)
        self.bridge = Bridge(gate, NAME, effects=effects, context=context, wait=wait)
        self._ungoverned = ungoverned

    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> Any:
        """Run the tool through a claim and return its result, so that the framework does not run it again."""
        if tool.name in self._ungoverned:
            return None
        bridge = self.bridge
        bridge.define(tool.name, _schema(tool), tool.description or "")

        async def run(arguments: dict[str, Any]) -> Any:
            return await tool.run_async(args=arguments, tool_context=tool_context)

        run_id, step = _place(tool_context)
        outcome = await bridge.carry(
            tool.name,
            tool_args,
            run,
            call_id=bridge.id_of(step, tool_context.function_call_id),
            context=bridge.context_of(run=run_id, step=step),
        )
        if outcome.is_paused:
            tool_context.request_confirmation(hint=outcome.text, payload={"toolgate": outcome.question})
            tool_context.actions.skip_summarization = True
            return {"status": "waits", "message": outcome.text}
        return _answer(outcome)


def _schema(tool: Any) -> Any:
    """The JSON Schema of a tool's arguments; None where it declares none."""
    declared = tool._get_declaration()
    if declared is None:
        return None
    if declared.parameters_json_schema is not None:
        return declared.parameters_json_schema
    if declared.parameters is None:
        return {"type": "object", "properties": {}}
    return _lowered(declared.parameters.model_dump(mode="json", exclude_none=True))


def _lowered(schema: Any) -> Any:
    """Gemini's form of a schema as JSON Schema: types are written in capitals there."""
    if isinstance(schema, list):
        return [_lowered(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    lowered = {key: _lowered(value) for key, value in schema.items() if key not in ("title", "nullable")}
    if isinstance(lowered.get("type"), str):
        lowered["type"] = lowered["type"].lower()
    return lowered


def _place(tool_context: Any) -> tuple[str, str]:
    """The session and the event in which the model made the call: both are kept when the run goes on."""
    session = tool_context.session
    for event in reversed(session.events):
        if any(call.id == tool_context.function_call_id for call in event.get_function_calls()):
            return session.id, f"{session.id}:{event.id}"
    return session.id, session.id


def _answer(outcome: Outcome) -> Any:
    if outcome.raised is not None:
        raise outcome.raised
    if not outcome.is_success:
        return {"error": outcome.text}
    value = outcome.value if isinstance(outcome.value, dict) else {"result": outcome.value}
    return value if outcome.note is None else {"note": outcome.note, **value}
