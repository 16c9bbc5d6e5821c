"""The identity of an effect as tools and policies declare it: a template that a call's arguments make a key of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolgate.errors import ToolInputError
from toolgate.kernel.text.masking.keys import Verdict, judge

MOST_BYTES = 256
"""How long a key may be."""
UNDO = "undo:"
"""What the key of an undo begins with; the key of what it undoes follows."""

_PART = re.compile(r"\{([^{}]*)\}|([A-Za-z0-9_.@:/-]+)")
_plain = re.compile(r"[A-Za-z0-9_.@-]+\Z").match
_OTHER = re.compile(r"[^A-Za-z0-9_.@-]")
_SCALARS = frozenset({"string", "integer", "number", "boolean"})


@dataclass(frozen=True, slots=True)
class EffectKey:
    """A template such as `refund:{payment_id}`: plain text, and the names of arguments in between.

    `per_s` is how long a completed call holds its key; None means for good.
    """

    template: str
    parts: tuple[tuple[str, bool], ...]
    per_s: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments a key is made of."""
        return tuple(text for text, is_name in self.parts if is_name)

    def of(self, values: Mapping[str, Any], shown: Any, tool: str) -> str:
        """Return the key of a call with these arguments; `shown` is their masked view. Raises ToolInputError."""
        made, seen = "", shown if type(shown) is dict else {}
        for text, is_name in self.parts:
            if not is_name:
                made += text
            elif type(value := values.get(text)) is str and seen.get(text) == value and _plain(value):
                made += value  # as most of them are
            else:
                made += _value(values, shown, text, tool)
        if made.startswith(UNDO):  # of an argument, since no template does
            raise ToolInputError(
                f"The effect key of `{tool}` would begin with `{UNDO}` with these arguments, as those of undos do; "
                "nothing ran.",
                tool=tool,
            )
        if len(made) > MOST_BYTES:  # what is not ASCII was encoded
            raise ToolInputError(
                f"The effect key of `{tool}` has {len(made)} bytes with these arguments, and {MOST_BYTES} are allowed; "
                "nothing ran.",
                tool=tool,
            )
        return made

    def problem(self, schema: Mapping[str, Any]) -> str | None:
        """Why no key can be made of arguments of this schema, as far as it can be told before there are any."""
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return None
        required = schema.get("required") or ()
        for name in self.names:
            declared = properties.get(name)
            if declared is None:
                return f"the effect key names '{name}', which is no argument of the tool"
            if name not in required:
                return f"the effect key names '{name}', which need not be given; make it a required argument"
            if not _is_plain(declared):
                return f"the effect key names '{name}', which is not a plain text, number or truth value"
        return None


def effect_key(template: str, per_s: float | None = None) -> EffectKey:
    """Read a template; raises ValueError with what is wrong with it."""
    if not isinstance(template, str):
        raise ValueError(f"an effect key is a text such as 'refund:{{payment_id}}', not {type(template).__name__}")
    parts: list[tuple[str, bool]] = []
    end = 0
    for found in _PART.finditer(template):
        if found.start() != end:
            break
        parts.append((found[1], True) if found[1] is not None else (found[2], False))
        end = found.end()
    if not parts or end != len(template) or ("", True) in parts:
        raise ValueError(
            f"{template[:80]!r} is not an effect key: write names of arguments in braces, and between them letters, "
            "digits and `_ . @ : / -`"
        )
    if template.startswith(UNDO):
        raise ValueError(f"an effect key does not begin with `{UNDO}`; those of undos do")
    for between in template.split("}")[1:]:
        text, opened, _ = between.partition("{")
        if opened and not set(text) & {":", "/"}:
            raise ValueError("two arguments in an effect key are kept apart by `:` or `/`, which no value has")
    _check_parts(parts)
    return EffectKey(template, tuple(parts), per_s)


def _check_parts(parts: list[tuple[str, bool]]) -> None:
    least = sum(1 if is_name else len(text) for text, is_name in parts)
    if least > MOST_BYTES:
        raise ValueError(f"the effect key would have at least {least} bytes, and {MOST_BYTES} are allowed")
    for text, is_name in parts:
        if is_name and judge(text) >= Verdict.TOKEN:
            raise ValueError(f"the effect key is made of '{text}', which names a secret")


def _is_plain(declared: Any) -> bool:
    """Whether nothing in the schema of an argument lets it be null, a list or an object, as far as it says so."""
    if not isinstance(declared, Mapping):
        return True
    said = declared.get("type")
    if said is not None and not _SCALARS.issuperset([said] if isinstance(said, str) else said):
        return False
    named = (*declared.get("enum", ()), *((declared["const"],) if "const" in declared else ()))
    if not all(isinstance(value, str | int | float) for value in named):
        return False
    return all(_is_plain(one) for kind in ("anyOf", "oneOf") for one in declared.get(kind, ()))


def _value(values: Mapping[str, Any], shown: Any, name: str, tool: str) -> str:
    value = values.get(name)
    if shown is not values and value is not None and (not isinstance(shown, Mapping) or shown.get(name) != value):
        raise ToolInputError(
            f"The effect key of `{tool}` is made of '{name}', which holds a secret; nothing ran.",
            tool=tool,
            location=f"/{name}",
        )
    if isinstance(value, str) and value:
        return value if _plain(value) else _OTHER.sub(_encoded, value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _OTHER.sub(_encoded, repr(value))
    raise ToolInputError(
        f"The effect key of `{tool}` is made of '{name}', which must be given, as text that is not empty, a number or "
        "a truth value; nothing ran.",
        tool=tool,
        location=f"/{name}",
    )


def _encoded(found: re.Match[str]) -> str:
    return "".join([f"%{byte:02X}" for byte in found[0].encode()])
