"""What is wrong with a call is said in words where an argument explains it, and left alone where none does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, NewType, Protocol, TypeVar

import pytest
from pydantic import BaseModel, ValidationError

from toolgate.errors import DefinitionError, UnknownKeywordError, UsageError
from toolgate.kernel.misuse import described, explained, explained_class, fits

T = TypeVar("T")


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Speaker(Protocol):
    def speak(self) -> str: ...


class Other:
    """Somebody else's class: it may do anything."""


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("a", str),
        (None, str | None),
        (None, None),
        (3, float),
        (3.5, int | float),
        ([1], tuple[int, ...]),
        ((1,), Sequence[int]),
        ({1}, Iterable[int]),
        ({}, Mapping[str, Any]),
        (print, Callable[..., Any]),
        ("red", Literal["red"]),
        (5, Any),
        (5, T),
        (5, "a name that is not resolved"),
        (Other(), str),
        (Other(), Speaker),
        (Colour.RED, int),
        ("a", Iterable[str]),
        (5, T | None),
        (5, NewType("Number", int)),
    ],
)
def test_what_may_be_meant_fits(value: object, hint: Any) -> None:
    assert fits(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (5, str),
        (None, str),
        (5, None),
        (True, float),
        ("1", float),
        ([], str),
        ([], Mapping[str, Any]),
        ([], Other),
        ("a", Mapping[str, Any]),
        (5, Callable[..., Any]),
        (5, Speaker),
        ("green", Literal["red"]),
        (object(), Other),
    ],
)
def test_what_is_plainly_wrong_does_not(value: object, hint: Any) -> None:
    assert not fits(value, hint)


def test_annotations_are_told_in_words() -> None:
    assert described(str | None) == "text or None"
    assert described(Mapping[str, Any] | dict[str, Any]) == "a mapping"
    assert described(Callable[..., Any] | Other) == "a function or an Other"
    assert described(Literal["a", "b"]) == "'a' or 'b'"
    assert described(Speaker) == "a Speaker"


@explained
def shorten(text: str, colour: Colour | str = Colour.RED, *, most: int = 5) -> str:
    """Shorten."""
    return f"{Colour(colour)}{text[:most]}"


@explained
async def wait_for(text: str) -> str:
    return text.upper()


def test_a_function_names_the_argument_that_is_wrong() -> None:
    assert shorten("hello", most=1) == "redh"
    assert shorten.__doc__ == "Shorten."
    with pytest.raises(UsageError, match="`shorten` takes text as `text`, not None") as raised:
        shorten(None)  # type: ignore[arg-type]
    assert isinstance(raised.value.__cause__, TypeError)
    with pytest.raises(UsageError, match="`shorten` takes a whole number as `most`, not str"):
        shorten("a", most="b")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="knows no `colour` 'green'; it is one of: red, blue"):
        shorten("a", "green")
    with pytest.raises(UnknownKeywordError, match="Did you mean `most`"):
        shorten("a", mst=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required"):
        shorten()  # type: ignore[call-arg]


async def test_an_async_function_does_so_too() -> None:
    assert asyncio.iscoroutinefunction(wait_for)
    assert await wait_for("a") == "A"
    with pytest.raises(UsageError, match="`wait_for` takes text as `text`, not int"):
        await wait_for(5)  # type: ignore[arg-type]
    with pytest.raises(UnknownKeywordError, match="Did you mean `text`"):
        await wait_for(txt="a")  # type: ignore[call-arg]

    @explained
    async def fail(text: str) -> None:
        raise KeyError(text)

    with pytest.raises(KeyError):
        await fail("a")


def test_what_no_argument_explains_is_left_alone() -> None:
    class Model(BaseModel):
        number: int

    @explained
    def work(kind: str, given: int) -> Any:
        if kind == "ours":
            raise DefinitionError("no")
        if kind == "pydantic":
            return Model(number=given)
        raise KeyError(kind)

    with pytest.raises(KeyError):
        work("x", 1)
    with pytest.raises(DefinitionError):
        work("ours", "wrong")  # type: ignore[arg-type]
    with pytest.raises(ValidationError):
        work("pydantic", "wrong")  # type: ignore[arg-type]


def test_names_that_only_a_type_checker_knows_explain_nothing() -> None:
    def work(given: str) -> str:
        return given.upper()

    work.__annotations__ = {"given": "NowhereToBeFound"}
    with pytest.raises(AttributeError):
        explained(work)(5)  # type: ignore[arg-type]


@explained_class
class Box:
    made = 0

    def __init__(self, text: str = "", *, speaker: Speaker | None = None) -> None:
        self.text, self._speaker = text, speaker

    @classmethod
    def open(cls, name: str) -> Box:
        return cls(name.strip())

    def put(self, text: str) -> str:
        return self.text + text

    async def wait(self, text: str) -> str:
        return self.text + text

    async def each(self) -> Any:
        yield self.text

    def _own(self, text: str) -> str:
        return self.text + text


def test_a_class_is_not_made_of_the_wrong_things() -> None:
    assert Box("a", speaker=Other()).put("b") == "ab"  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="`Box` takes text as `text`, not int"):
        Box(5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="`Box` takes a Speaker or None as `speaker`, not str"):
        Box(speaker="loud")  # type: ignore[arg-type]
    with pytest.raises(UnknownKeywordError, match="Did you mean `speaker`"):
        Box(speakr=None)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="`open` takes text as `name`, not None"):
        Box.open(None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="`put` takes text as `text`, not int"):
        Box().put(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="concatenate"):
        Box()._own(5)  # type: ignore[arg-type]
