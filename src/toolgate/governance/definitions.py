"""Document 003's words for a tool, its parameters and its result, as Pydantic models, and how they become a tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from toolgate.errors import DefinitionError
from toolgate.kernel.context import Mode
from toolgate.kernel.spelling import check_fields
from toolgate.kernel.tool import Effects, RiskLevel
from toolgate.kernel.tool import ToolDefinition as Tool

ParameterType = Literal["string", "number", "boolean", "object", "array"]
Executor = Callable[..., Any]


class Spelled(BaseModel):
    """A model that names the field that was meant where one is unknown."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: object) -> object:
        if isinstance(given, dict):
            check_fields(cls.__name__, given, cls.model_fields)
        return given


class ToolParameter(Spelled):
    """One argument of a tool. A parameter that has a default need not be given."""

    name: str = Field(min_length=1)
    type: ParameterType
    description: str
    required: bool = True
    default: Any | None = None

    @property
    def must_be_given(self) -> bool:
        return self.required and self.default is None


class ToolDefinition(Spelled):
    """What a model is told about a tool, and what governs it."""

    name: str
    description: str
    category: str
    parameters: list[ToolParameter]
    risk_level: Literal["low", "medium", "high"]
    allowed_modes: list[str]
    requires_approval: bool = False
    requires_sandbox: bool = False
    timeout_seconds: int = Field(default=30, gt=0)
    rate_limit_per_hour: int | None = Field(default=None, gt=0)
    effects: Literal["read", "reversible", "irreversible"] | None = None
    idempotent: bool = False

    @field_validator("risk_level", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("allowed_modes", mode="before")
    @classmethod
    def _known_modes(cls, value: object) -> object:
        if isinstance(value, (list, tuple, set, frozenset)):
            return [Mode(mode).value for mode in value]
        return value

    @field_validator("parameters")
    @classmethod
    def _distinct(cls, value: list[ToolParameter]) -> list[ToolParameter]:
        names = [parameter.name for parameter in value]
        if len(set(names)) != len(names):
            raise ValueError("two parameters have the same name")
        return value

    def input_schema(self) -> dict[str, Any]:
        """Return the parameters as a JSON Schema that takes no others."""
        return {
            "type": "object",
            "properties": {item.name: _schema_of(item) for item in self.parameters},
            "required": [item.name for item in self.parameters if item.must_be_given],
            "additionalProperties": False,
        }

    def with_defaults(self, arguments: Any) -> Any:
        """Return the arguments with what was left out and has a default: all that will run is shown.

        What is no mapping is returned as it is, for the gate to say what is wrong with it.
        """
        if not isinstance(arguments, Mapping):
            return arguments
        missing = {item.name: item.default for item in self.parameters if item.default is not None}
        return {**missing, **arguments}


def _schema_of(parameter: ToolParameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": parameter.type, "description": parameter.description}
    if parameter.default is not None:
        schema["default"] = parameter.default
    return schema


class ToolResult(Spelled):
    """What came of a call. `error` says why where `success` is False; `metadata` has the category and the ids."""

    tool_name: str
    success: bool
    output: Any = Field(default_factory=dict)
    error: str | None = None
    latency_ms: float = 0.0
    metadata: dict[str, Any] = Field(default_factory=dict)


class PermissionResult(Spelled):
    """Whether a call may run, and why not."""

    allowed: bool
    reason: str | None = None


class ValidationResult(Spelled):
    """Whether arguments are within their bounds, and which one is not."""

    valid: bool
    error: str | None = None


def tool_of(definition: ToolDefinition, executor: Executor) -> Tool:
    """Return the tool a definition and its executor make: what the gate runs."""
    if not callable(executor):
        raise DefinitionError(f"Tool `{definition.name}` needs a callable executor.")
    return Tool(
        name=definition.name,
        input_schema=definition.input_schema(),
        handler=executor,
        function=executor,
        description=definition.description,
        category=definition.category,
        risk_level=RiskLevel(definition.risk_level),
        allowed_modes=tuple(definition.allowed_modes),
        requires_approval=definition.requires_approval,
        requires_sandbox=definition.requires_sandbox,
        timeout_seconds=float(definition.timeout_seconds),
        rate_limit_per_hour=definition.rate_limit_per_hour,
        effects=definition.effects,
        idempotent=definition.idempotent,
    )


def definition_of(tool: Tool) -> ToolDefinition:
    """Return what document 003 would call a tool: the other way round."""
    properties = tool.input_schema.get("properties", {})
    required = tool.input_schema.get("required", [])
    return ToolDefinition(
        name=tool.name,
        description=tool.description or inspect.getdoc(tool.function or tool.handler) or "",
        category=tool.category or "uncategorised",
        parameters=[_parameter(name, schema, name in required) for name, schema in properties.items()],
        risk_level=tool.risk.value,
        allowed_modes=[mode for mode in Mode if tool.allows_mode(mode)],
        requires_approval=tool.requires_approval,
        requires_sandbox=tool.requires_sandbox,
        timeout_seconds=max(1, round(tool.timeout_seconds)),
        rate_limit_per_hour=tool.rate_limit_per_hour,
        effects=None if tool.effects is None else Effects(tool.effects).value,
        idempotent=tool.idempotent,
    )


_TYPES: dict[str, ParameterType] = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "array": "array",
}


def _parameter(name: str, schema: object, required: bool) -> ToolParameter:
    told: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    return ToolParameter(
        name=name,
        type=_TYPES.get(str(told.get("type")), "object"),
        description=str(told.get("description", "")),
        required=required,
        default=told.get("default"),
    )
