"""From functions to tools: schemas, descriptions, conversion, injection and refusals."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal, NewType, Optional, Union
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import TypedDict  # Pydantic asks for this one before Python 3.12

import toolgate
from toolgate.errors import DefinitionError
from toolgate.kernel.context import Context
from toolgate.kernel.input import ToolInput
from toolgate.kernel.signature import derive, read_docstring, tool
from toolgate.kernel.tool import Effects, ToolDefinition


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.StrEnum):
    SMALL = "small"


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    number: int = 1


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Exact(BaseModel):
    model_config = ConfigDict(strict=True)

    day: date
    pair: tuple[int, int]


class Options(TypedDict):
    deep: bool


class HostContext(Context):
    """A context of the host's own making."""


UserId = NewType("UserId", int)


def property_of(annotation: Any, *default: Any) -> Any:
    """Return the schema of one parameter with this annotation."""
    schema = derive(function_of(annotation, *default)).schema
    return schema["properties"]["value"]


def function_of(annotation: Any, *default: Any) -> Callable[..., Any]:
    """Return a function of one parameter `value` that gives it back."""

    def function(value: Any) -> Any:
        return value

    function.__annotations__ = {"value": annotation}
    function.__defaults__ = default or None
    return function


def run(definition: ToolDefinition, **payload: Any) -> Any:
    """Call a sync function-style tool through its handler."""
    assert definition.handler is not None
    return definition.handler(ToolInput("c1", definition.name, payload, "host", context=Context(principal="agent:x")))


def doubled(number: int) -> int:
    """Return twice the number."""
    return 2 * number


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (object, {}),
        (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),  # noqa: UP045  # the older spelling
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007  # the older spelling
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
        (Literal["only"], {"const": "only", "type": "string"}),
        (list, {"items": {}, "type": "array"}),
        (list[int], {"items": {"type": "integer"}, "type": "array"}),
        (dict, {"additionalProperties": True, "type": "object"}),
        (dict[str, int], {"additionalProperties": {"type": "integer"}, "type": "object"}),
        (datetime, {"format": "date-time", "type": "string"}),
        (date, {"format": "date", "type": "string"}),
        (UUID, {"format": "uuid", "type": "string"}),
        (UserId, {"type": "integer"}),
        (Annotated[int, Field(ge=1, le=9)], {"minimum": 1, "maximum": 9, "type": "integer"}),
        (Annotated[str, Field(description="who")], {"description": "who", "type": "string"}),
        (Annotated[str, Field(alias="other")], {"type": "string"}),
        (Annotated[str, "a note"], {"type": "string"}),
    ],
)
def test_a_type_becomes_its_schema(annotation: Any, schema: dict[str, Any]) -> None:
    assert property_of(annotation) == schema
    assert tool(name="t")(function_of(annotation)).input_schema["required"] == ["value"]


@pytest.mark.parametrize(
    ("annotation", "definition"),
    [
        (Colour, {"enum": ["red", "blue"], "title": "Colour", "type": "string"}),
        (
            Address,
            {
                "description": "Where somebody lives.",
                "properties": {
                    "street": {"title": "Street", "type": "string"},
                    "number": {"default": 1, "title": "Number", "type": "integer"},
                },
                "required": ["street"],
                "title": "Address",
                "type": "object",
            },
        ),
        (
            Point,
            {
                "additionalProperties": False,
                "properties": {
                    "x": {"title": "X", "type": "integer"},
                    "y": {"default": 0, "title": "Y", "type": "integer"},
                },
                "required": ["x"],
                "title": "Point",
                "type": "object",
            },
        ),
    ],
)
def test_a_class_becomes_a_definition_that_is_referred_to(annotation: Any, definition: dict[str, Any]) -> None:
    schema = derive(function_of(annotation)).schema
    name = annotation.__name__
    assert schema["properties"] == {"value": {"$ref": f"#/$defs/{name}"}}
    assert schema["$defs"] == {name: definition}


def test_a_schema_is_closed_and_lists_what_is_required() -> None:
    def search(query: str, limit: int = 10, deep: bool | None = None) -> None: ...

    assert tool(search).input_schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "default": 10},
            "deep": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_a_function_without_parameters_takes_an_empty_object_only() -> None:
    def ping() -> str:
        return "pong"

    definition = tool(ping)
    assert definition.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert definition.schema.is_valid({})
    assert not definition.schema.is_valid({"a": 1})
    assert run(definition) == "pong"


def test_keyword_only_parameters_are_parameters() -> None:
    def search(*, query: str, limit: int = 3) -> tuple[str, int]:
        return query, limit

    assert tool(search).input_schema["required"] == ["query"]
    assert run(tool(search), query="x") == ("x", 3)


def test_a_parameter_without_a_hint_takes_anything() -> None:
    definition = tool(lambda_like)
    assert definition.input_schema["properties"] == {"x": {}}
    assert run(definition, x=[1]) == [1]


def lambda_like(x):  # type: ignore[no-untyped-def]  # what is tested
    return x


def test_other_keywords_open_the_schema_and_reach_the_function() -> None:
    def log(message: str, **fields: Any) -> Any:
        return message, fields

    definition = tool(log)
    assert definition.input_schema["additionalProperties"] is True
    assert "fields" not in definition.input_schema["properties"]
    assert run(definition, message="m", a=1, b=2) == ("m", {"a": 1, "b": 2})


def test_names_that_pydantic_reserves_are_ordinary_parameters() -> None:
    def odd(schema: str, copy: int, json: bool, model_config: str, self: int, model_fields: str, p_0: int = 5) -> Any:
        return schema, copy, json, model_config, self, model_fields, p_0

    definition = tool(odd)
    names = ["schema", "copy", "json", "model_config", "self", "model_fields"]
    assert definition.input_schema["required"] == names
    assert list(definition.input_schema["properties"]) == [*names, "p_0"]
    assert definition.input_schema["properties"]["json"] == {"type": "boolean"}
    given = {"schema": "a", "copy": 1, "json": True, "model_config": "b", "self": 2, "model_fields": "c"}
    assert run(definition, **given) == ("a", 1, True, "b", 2, "c", 5)


def test_the_words_come_from_the_docstring() -> None:
    def move(source: str, target: Annotated[str, Field(max_length=9)], *, force: bool = False) -> None:
        """Move a file.

        Nothing is overwritten.

        Args:
            source: where it is.
            target (str): where it goes,
                a path like the other.

        Returns:
            Nothing at all.
        """

    definition = tool(move)
    assert definition.description == "Move a file.\n\nNothing is overwritten."
    assert definition.input_schema["properties"] == {
        "source": {"type": "string", "description": "where it is."},
        "target": {"type": "string", "maxLength": 9, "description": "where it goes, a path like the other."},
        "force": {"type": "boolean", "default": False},
    }


@pytest.mark.parametrize(
    ("text", "summary", "words"),
    [
        ("", "", {}),
        ("Do it.", "Do it.", {}),
        ("Args:\n  x: the x.", "", {"x": "the x."}),
        ("Do.\n\nArgs:\n    x (int): the x.\n    **rest: others.", "Do.", {"x": "the x.", "rest": "others."}),
        ("Do.\n\nParameters:\n    x: the x\n      and more.\n", "Do.", {"x": "the x and more."}),
        ("Do.\n\nArguments:\n    x: a.\n\nRaises:\n    ValueError: if bad.", "Do.", {"x": "a."}),
        ("Do.\n\nArgs:\n    x: a.\n\nReturns:\n    Something\n    else.", "Do.", {"x": "a."}),
        ("Do.\n\nExample:\n    x: not a parameter", "Do.", {}),
        ("Do.\n\n:param x: the x.\n:param int y: the y\n    and more.", "Do.", {"x": "the x.", "y": "the y and more."}),
        ("Do.\n\n:param x: a.\n:returns: what\n    it finds.\n:raises ValueError: if bad.", "Do.", {"x": "a."}),
        ("Do.\n\n:return: what it finds.\n:rtype: str", "Do.", {}),
        ("Do: really.\n  Indented: text.", "Do: really.\n  Indented: text.", {}),
        (":class:`X` is made.", ":class:`X` is made.", {}),
    ],
)
def test_google_and_sphinx_docstrings_are_read(text: str, summary: str, words: dict[str, str]) -> None:
    assert read_docstring(text) == (summary, words)


@given(st.text(alphabet=" \n:argsxpm*()R", max_size=200))
def test_any_docstring_can_be_read(text: str) -> None:
    summary, words = read_docstring(text)
    assert all(words.values())
    assert summary == summary.strip()


def test_a_bare_decorator_takes_the_functions_name() -> None:
    definition = tool(doubled)
    assert (definition.name, definition.description) == ("doubled", "Return twice the number.")
    assert definition.function is doubled
    assert run(definition, number=4) == 8


def test_options_of_the_definition_can_be_given() -> None:
    @tool(name="twice", effects="read", description="Doubles.", input_schema={}, requires_approval=True)
    def doubling(number: int) -> int:
        return 2 * number

    assert (doubling.name, doubling.description, doubling.input_schema) == ("twice", "Doubles.", {})
    assert (doubling.effects, doubling.requires_approval) == (Effects.READ, True)


def test_a_decorator_can_be_used_on_several_functions() -> None:
    reads = tool(effects="read")

    def one(a: int) -> None:
        """One."""

    def other(b: str) -> None:
        """Other."""

    first, second = reads(one), reads(other)
    assert (first.name, first.description, list(first.input_schema["properties"])) == ("one", "One.", ["a"])
    assert (second.name, second.description, list(second.input_schema["properties"])) == ("other", "Other.", ["b"])


@pytest.mark.parametrize("thing", ["name", 5, {}])
def test_what_cannot_be_called_is_no_tool(thing: Any) -> None:
    with pytest.raises(DefinitionError, match="decorates a function; give options by keyword"):
        tool(thing)


def positional_only(x: int, /) -> None: ...
def any_positional(*paths: str) -> None: ...
def unresolvable(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # what is tested
def no_expression(x: "a b") -> None: ...  # type: ignore[valid-type]  # noqa: F722  # what is tested
def no_attribute(x: datetime.nowhere) -> None: ...  # type: ignore[name-defined]  # what is tested
def a_callback(x: Callable[[], int]) -> None: ...
def an_object(x: inspect.Signature) -> None: ...
def a_field_as_default(x: int = Field(5, ge=1)) -> None: ...
def contexts(x: list[Context]) -> None: ...
def a_choice(x: Context | str) -> None: ...
def inputs_by_name(x: dict[str, Annotated[ToolInput, "note"]]) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (positional_only, "Parameter `x` .* cannot be passed by name; tools are called by keyword"),
        (any_positional, "Parameter `paths` .* cannot be passed by name"),
        (unresolvable, "cannot be read: name 'Nowhere' is not defined"),
        (no_expression, "cannot be read: Forward reference must be an expression"),
        (no_attribute, "cannot be read: .* has no attribute 'nowhere'"),
        (max, "cannot be read"),
        (a_callback, "No schema can be derived"),
        (an_object, "No schema can be derived"),
        (function_of(5), "No schema can be derived"),
        (a_field_as_default, r"write `Annotated\[<type>, Field\(...\)\] = <default>`"),
        (contexts, "Parameter `x` has ToolInput or Context inside a larger type"),
        (a_choice, "Parameter `x` has ToolInput or Context inside a larger type"),
        (inputs_by_name, "Parameter `x` has ToolInput or Context inside a larger type"),
        (lambda: None, "Tool name '<lambda>' is refused"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        tool(function)


@pytest.mark.parametrize(
    ("annotation", "sent", "received"),
    [
        (datetime, "2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (datetime | None, None, None),
        (list[date], ["2026-01-02"], [date(2026, 1, 2)]),
        (Colour, "red", Colour.RED),
        (Literal[Size.SMALL], "small", Size.SMALL),
        (Address, {"street": "Main"}, Address(street="Main")),
        (list[Address], [{"street": "Main", "number": 2}], [Address(street="Main", number=2)]),
        (Point, {"x": 1}, Point(1, 0)),
        (Exact, {"day": "2026-01-02", "pair": [1, 2]}, Exact(day=date(2026, 1, 2), pair=(1, 2))),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[int], [1, 2], {1, 2}),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (UUID, "00000000-0000-0000-0000-000000000001", UUID(int=1)),
        (Options, {"deep": True}, {"deep": True}),
        (Annotated[str, AfterValidator(str.upper)], "a", "A"),
        (Annotated[str, Field(alias="other")], "a", "a"),
    ],
)
def test_arguments_arrive_as_the_types_of_the_function(annotation: Any, sent: Any, received: Any) -> None:
    definition = tool(name="t")(function_of(annotation))
    assert definition.schema.is_valid({"value": sent})
    got = run(definition, value=sent)
    assert got == received
    assert type(got) is type(received)


@pytest.mark.parametrize(
    ("annotation", "converted"),
    [
        (str, False),
        (Any, False),
        (list[dict[str, int | None]], False),
        (list[dict[str, Any]] | dict[Any, str] | dict | list, False),
        (Literal["a", 1, True, None], False),
        (Annotated[int, Field(ge=1), "note"], False),
        (Annotated[datetime, Field()], True),
        (list[UUID], True),
        (dict[str, date], True),
        (int | Address, True),
    ],
)
def test_only_what_json_does_not_have_is_converted(annotation: Any, converted: bool) -> None:
    assert (derive(function_of(annotation)).bind is not None) is converted


def test_a_validator_of_the_type_is_not_skipped() -> None:
    def even(number: int) -> int:
        if number % 2:
            raise ValueError("odd")
        return number

    definition = tool(name="t")(function_of(Annotated[int, AfterValidator(even)]))
    assert run(definition, value=4) == 4
    with pytest.raises(ValidationError):
        run(definition, value=3)


def test_defaults_apply_to_what_is_left_out() -> None:
    def book(day: date = date(2026, 1, 2), colour: Colour = Colour.BLUE) -> Any:
        return day, colour

    definition = tool(book)
    assert definition.input_schema["properties"]["day"]["default"] == "2026-01-02"
    assert definition.input_schema["properties"]["colour"]["default"] == "blue"
    assert "required" not in definition.input_schema
    assert run(definition) == (date(2026, 1, 2), Colour.BLUE)
    assert run(definition, colour="red") == (date(2026, 1, 2), Colour.RED)


def takes_input(given: ToolInput, x: int) -> Any:
    return given, x


def takes_context(x: int, ctx: Context) -> Any:
    return ctx, x


def takes_optional_context(x: int, ctx: Context | None = None) -> Any:
    return ctx, x


def takes_marked_context(x: int, ctx: Annotated[Optional[Context], "note"] = None) -> Any:  # noqa: UP045  # older
    return ctx, x


def takes_host_context(x: int, *, ctx: HostContext) -> Any:
    return ctx, x


@pytest.mark.parametrize(
    "function", [takes_input, takes_context, takes_optional_context, takes_marked_context, takes_host_context]
)
def test_what_the_gate_gives_is_no_part_of_the_schema(function: Callable[..., Any]) -> None:
    definition = tool(function)
    assert definition.input_schema["properties"] == {"x": {"type": "integer"}}
    assert definition.input_schema["required"] == ["x"]
    got, x = run(definition, x=3)
    assert x == 3
    assert isinstance(got, ToolInput if function is takes_input else Context)


def test_input_and_context_can_both_be_asked_for() -> None:
    def report(given: ToolInput, context: Context, when: date) -> Any:
        return given.action_id, given.ctx, context.principal, when

    assert run(tool(report), when="2026-01-02") == ("c1", "host", "agent:x", date(2026, 1, 2))


def test_what_the_gate_gives_outranks_an_argument_of_the_same_name() -> None:
    def act(ctx: Context, **rest: Any) -> Any:
        return ctx.principal, rest

    assert run(tool(act), ctx={"principal": "admin"}, a=1) == ("agent:x", {"a": 1})


def test_giving_the_input_leaves_its_payload_as_it_was() -> None:
    def look(given: ToolInput, x: int) -> Any:
        return given.payload, x

    payload, x = run(tool(look), x=3)
    assert (payload, x) == ({"x": 3}, 3)


class Cabinet:
    """A cabinet."""

    def __init__(self, owner: str = "ann") -> None:
        self.owner = owner

    def tidy(self, drawer: int) -> str:
        """Tidy a drawer."""
        return f"{self.owner}:{drawer}"

    @classmethod
    def build(cls, owner: str) -> str:
        return f"{cls.__name__}:{owner}"

    @staticmethod
    def count(cabinets: list[str]) -> int:
        return len(cabinets)

    async def __call__(self, drawer: int) -> str:
        return f"{self.owner} opens {drawer}"


@pytest.mark.parametrize(
    ("function", "name", "properties", "sent", "received"),
    [
        (Cabinet("bob").tidy, "tidy", {"drawer": {"type": "integer"}}, {"drawer": 2}, "bob:2"),
        (Cabinet.build, "build", {"owner": {"type": "string"}}, {"owner": "x"}, "Cabinet:x"),
        (Cabinet.count, "count", {"cabinets": {"items": {"type": "string"}, "type": "array"}}, {"cabinets": ["a"]}, 1),
    ],
)
def test_methods_are_tools(function: Any, name: str, properties: Any, sent: Any, received: Any) -> None:
    definition = tool(function)
    assert (definition.name, definition.input_schema["properties"]) == (name, properties)
    assert run(definition, **sent) == received


async def test_an_object_that_can_be_called_is_a_tool() -> None:
    definition = tool(Cabinet("bob"))
    assert (definition.name, definition.description, definition.is_async) == ("Cabinet", "A cabinet.", True)
    assert definition.input_schema["properties"] == {"drawer": {"type": "integer"}}
    assert await run(definition, drawer=1) == "bob opens 1"


def test_a_class_is_a_tool_that_makes_one() -> None:
    definition = tool(Cabinet)
    assert definition.input_schema["properties"] == {"owner": {"type": "string", "default": "ann"}}
    assert run(definition, owner="bob").owner == "bob"


def send(text: str, sender: str, when: date | None = None) -> Any:
    """Send a text.

    Args:
        text: what to say.
    """
    return text, sender, when


def test_a_partial_is_a_tool_without_what_it_has_bound() -> None:
    definition = tool(functools.partial(send, sender="ann"))
    assert (definition.name, definition.description) == ("send", "Send a text.")
    assert list(definition.input_schema["properties"]) == ["text", "when"]
    assert definition.input_schema["properties"]["text"] == {"type": "string", "description": "what to say."}
    assert not definition.schema.is_valid({"text": "hi", "sender": "bob"})
    assert run(definition, text="hi", when="2026-01-02") == ("hi", "ann", date(2026, 1, 2))


def test_a_partial_may_bind_by_position_and_around_another() -> None:
    definition = tool(functools.partial(functools.partial(send, "hi"), sender="ann"))
    assert list(definition.input_schema["properties"]) == ["when"]
    assert run(definition) == ("hi", "ann", None)


def test_what_a_partial_has_bound_stays_bound_where_other_keywords_are_taken() -> None:
    def log(message: str, **fields: Any) -> Any:
        return message, fields

    definition = tool(functools.partial(log, user="ann"))
    assert definition.schema.is_valid({"message": "m", "other": 1})
    assert not definition.schema.is_valid({"message": "m", "user": "bob"})
    assert run(definition, message="m") == ("m", {"user": "ann"})


async def later(x: int) -> int:
    return x


@pytest.mark.parametrize(
    ("function", "expected"),
    [(later, True), (functools.partial(later, x=1), True), (doubled, False), (functools.partial(doubled), False)],
)
def test_async_functions_are_known_as_such(function: Callable[..., Any], expected: bool) -> None:
    assert tool(function).is_async is expected


async def test_the_handler_of_an_async_function_gives_its_coroutine() -> None:
    assert await run(tool(later), x=5) == 5


def test_a_wrapped_function_has_the_signature_of_the_one_inside() -> None:
    @functools.wraps(doubled)
    def logged(*args: Any, **kwargs: Any) -> Any:
        return doubled(*args, **kwargs)

    definition = tool(logged)
    assert (definition.name, definition.input_schema["required"]) == ("doubled", ["number"])
    assert run(definition, number=2) == 4


def test_the_handler_lives_where_its_function_lives() -> None:
    assert tool(doubled).hash != tool(name="doubled", description="Return twice the number.")(doubled_elsewhere).hash
    assert tool(doubled).hash == tool(doubled).hash
    handler: Any = tool(functools.partial(doubled)).handler
    assert (handler.__module__, handler.__qualname__) == (__name__, "doubled")


def doubled_elsewhere(number: int) -> int:
    return 2 * number


def _no_sunday(day: date) -> date:
    if day.weekday() == 6:
        raise ValueError
    return day


class Node(TypedDict, total=False):
    """A type that holds its own kind, so that its schema has a name."""

    day: Annotated[date, AfterValidator(_no_sunday)]
    inner: list[Node]


async def test_a_refused_value_is_named_by_where_it_stands_in_the_arguments() -> None:
    @toolgate.tool(effects="read")
    async def walk(
        first: Node, second: Node, days: list[Annotated[date, AfterValidator(_no_sunday)]], **more: Any
    ) -> Any:
        return [first["day"].day, second["inner"][0]["day"].day, [day.day for day in days], more]

    async with toolgate.open("memory://", tools=[walk]) as gate:
        given = {"first": {"day": "2026-01-01"}, "second": {"inner": [{"day": "2026-01-02"}]}, "days": ["2026-01-03"]}
        result = await gate.call("walk", {**given, "other": [1, 2.5, None, "\u00e9"]})
        assert result.data == [1, 2, [3], {"other": [1, 2.5, None, "\u00e9"]}]
        for name, value, place in (
            ("days", ["2026-01-01", "2026-01-04"], "/days/1"),
            ("second", {"inner": [{"day": "2026-01-04"}]}, "/second/inner/0/day"),
        ):
            refused = await gate.call("walk", {**given, name: value})
            assert str(refused.error).endswith(f"value_error at {place}.")


@pytest.mark.filterwarnings("ignore:The 'alias' attribute")
async def test_an_alias_or_a_default_within_a_type_changes_no_parameter() -> None:
    @toolgate.tool(effects="read")
    async def when(
        day: Annotated[date, Field(alias="other")],
        until: Annotated[date, Field(default=date(2026, 1, 1))] = date(2026, 1, 2),
    ) -> str:
        return f"{type(day).__name__} {until}"

    async with toolgate.open("memory://", tools=[when]) as gate:
        assert (await gate.call("when", {"day": "2026-01-01"})).data == "date 2026-01-02"
