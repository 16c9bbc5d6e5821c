"""Read JSON strictly and write it in its one canonical form (RFC 8785).

This file owns what counts as JSON: text or a mapping goes in, plain values and canonical bytes come out.
It knows no schema; `kernel.schema` says what a tool accepts.

What is approved is what runs: the value handed on equals what the canonical bytes parse to. A whole
number written `1.0` or `1e2` is read as `1` or `100`, and a number is refused when its canonical form
would be an integer beyond 2^53-1, which other readers would round. Reading the canonical bytes again
gives the same value and the same bytes. Key order is kept as sent; it is not part of the canonical form.

There are two ways through. The fast one answers only when it is sure; in any doubt the slow one decides,
and only the slow one refuses, so the fast one can never be more lenient.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn

import orjson
import rfc8785

from toolgate.errors import ToolInputError

MAX_DEPTH: Final = 250
"""The deepest nesting any `Limits` may allow; the encoder itself stops at 254."""

_MAX_INT: Final = 2**53 - 1
_OPTIONS: Final = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_BELOW_ASTRAL: Final = bytes(range(0xF0))
_KEYS: Final = frozenset([str])
_FLAT: Final = frozenset([str, int, bool, type(None)])
_CONSTANTS: Final = frozenset([int, bool, type(None)])
_DIGITS: Final = bytes(48 if 48 <= byte <= 57 else byte for byte in range(256))
"""Turns every digit into a zero."""
_EXPONENT: Final = b"0e"
_FEW, _SHORT = 2000, 4096
"""How many entries, and how long texts, are copied without counting what they come to."""
_SHOWN: Final = 100
# Bound once: these run for every call.
_loads: Final = orjson.loads
_dumps: Final = orjson.dumps
_new: Final = tuple.__new__


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large one JSON document may be. The outermost object or array has depth 1.

    12 MiB have room for a text of 10 MiB, the most that the profiles let a tool write, with its escapes.
    """

    max_bytes: int = 12 * 2**20
    max_depth: int = 64

    def __post_init__(self) -> None:
        if self.max_bytes < 1 or not 1 <= self.max_depth <= MAX_DEPTH:
            raise ValueError(f"Limits need max_bytes >= 1 and 1 <= max_depth <= {MAX_DEPTH}.")


DEFAULT_LIMITS: Final = Limits()
_DIGEST_LIMITS: Final = Limits(max_bytes=2**28, max_depth=MAX_DEPTH)


class Arguments(NamedTuple):
    """Arguments nobody else holds a reference to, and the bytes that identify them.

    The bytes are a copy that takes the room it needs: what the JSON encoder returns holds kilobytes of slack.
    """

    value: dict[str, Any]
    canonical: bytes


def read_arguments(raw: str | bytes | Mapping[str, object], *, limits: Limits = DEFAULT_LIMITS) -> Arguments:
    """Return the arguments as plain JSON with their canonical form, or raise `ToolInputError`.

    Text must hold exactly one JSON object. Errors name keys and positions, never values.
    """
    if isinstance(raw, (str, bytes)):
        if len(raw) * 4 > limits.max_bytes:
            pair = _read_text(raw, limits)
        else:
            pair = _read_fast(raw, limits) or _read_value(_parse_slow(raw), limits)
    elif isinstance(raw, Mapping):
        try:
            pair = _read_mapping(raw, limits)
        except RuntimeError:  # a large one is read on another thread, while its owner may go on with it
            _refuse("The arguments were changed while they were read", "send what nobody changes meanwhile")
    else:
        _refuse(f"The arguments are a Python {type(raw).__name__}", "pass JSON text or a mapping")
    value, form = pair
    if type(value) is not dict:
        _refuse("The arguments are not a JSON object", "send one object such as {}")
    return _new(Arguments, (value, b"%b" % form))


def parse_strict(text: str | bytes, *, limits: Limits = DEFAULT_LIMITS) -> Any:
    """Return the one JSON value in `text`, read as strictly as arguments are."""
    return _read_text(text, limits)[0]


def canonical(value: object) -> bytes:
    """Return the RFC 8785 form of any JSON value up to 256 MiB, for digests.

    The value is not handed on, so unlike in arguments a finite float of any size is written.
    """
    return _encode(_copy(value, _DIGEST_LIMITS, exact=False), _DIGEST_LIMITS)


def _read_text(text: str | bytes, limits: Limits) -> tuple[Any, bytes]:
    if len(text) * 4 > limits.max_bytes:
        size = len(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        _check_size(size, limits)
    return _read_fast(text, limits) or _read_value(_parse_slow(text), limits)


def _read_fast(text: str | bytes, limits: Limits) -> tuple[Any, bytes] | None:
    """Return what the text means, or None where only the slow reader can tell.

    orjson silently keeps the last of duplicate keys, so colons are counted. Unless a colon is escaped
    (`\\u003a`), each colon of the text is a separator or stands for itself in a string. The encoded value
    has one colon per surviving key and one per colon in a surviving string. A dropped duplicate takes at
    least its own separator with it and adds nothing, so the counts agree only if nothing was dropped.
    """
    try:
        value = _loads(text)
        form = _dumps(value, None, _OPTIONS)
        if not _is_settled(form, limits.max_depth):
            if not _settle(value, limits.max_depth):
                return None
            form = _dumps(value, None, _OPTIONS)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    if isinstance(text, str):
        sure = text.count(":") == form.count(b":") and "\\u003" not in text
    else:
        sure = text.count(b":") == form.count(b":") and b"\\u003" not in text
    if sure and len(form) <= limits.max_bytes and (form.isascii() or _sorts_alike(value, form)):
        return value, form
    return None


def _is_settled(form: bytes, max_depth: int) -> bool:
    """Whether orjson's bytes are sure to be as RFC 8785 has them: no whole, tiny or huge float, nothing nested deeply.

    orjson writes a float with `.0` where it is whole or below a tenth, and with an exponent where it is tiny or huge.
    """
    digits = form.translate(_DIGITS, b"{[")  # without these, so that one pass counts them, too
    return b".0" not in form and len(form) - len(digits) <= max_depth and _EXPONENT not in digits


def _settle(value: Any, max_depth: int) -> bool:
    """Turn whole floats into integers in place; False if orjson would not write RFC 8785 numbers.

    Also False for a value nested too deeply. The value must consist of plain JSON types.
    """
    level = [[value]] if type(value) is not dict else [value]
    for _ in range(max_depth + (type(value) is not dict)):
        deeper: list[Any] = []
        for box in level:
            for key, item in box.items() if type(box) is dict else enumerate(box):
                kind = type(item)
                if kind is dict or kind is list:
                    deeper.append(item)
                elif kind is float and not _settle_float(box, key, item):
                    return False
        if not deeper:
            return type(value) is not float
        level = deeper
    return False


def _settle_float(box: Any, key: Any, item: float) -> bool:
    # Between these bounds orjson and ECMAScript both write the shortest digits without an exponent.
    if item != 0 and not 1e-5 <= abs(item) <= _MAX_INT:
        return False
    if item.is_integer():
        box[key] = int(item)
    return True


def _sorts_alike(value: Any, form: bytes) -> bool:
    """True when UTF-8 order, which orjson sorts by, is UTF-16 order, which RFC 8785 asks for.

    They differ only where a key has a character above U+FFFF: in UTF-8 its first byte is at least 0xF0.
    """
    if not form.translate(None, _BELOW_ASTRAL):
        return True
    todo = [value]
    for box in todo:
        if type(box) is dict:
            if not all(map(str.isascii, box)):
                return False
            todo += box.values()
        elif type(box) is list:
            todo += box
    return True


def _parse_slow(text: str | bytes) -> Any:
    """Parse with the standard library, whose hooks see every key and every number as written."""
    try:
        string = text if isinstance(text, str) else text.decode("utf-8")
        return json.loads(string, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_int=_parse_int)
    except UnicodeDecodeError as error:
        _refuse(f"The JSON text is not UTF-8 at byte {error.start}", "encode it as UTF-8")
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        _refuse(f"The text is not exactly one JSON value (line and column: {where})", "correct it")
    except RecursionError:
        _refuse("The JSON text is nested too deeply", "send a flatter value")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built: dict[str, Any] = {}
    for key, item in pairs:
        if key in built:
            _refuse(f"The key '{_short(key)}' stands twice in one object", "send each key once")
        built[key] = item
    return built


def _refuse_constant(name: str) -> NoReturn:
    _refuse(f"The JSON text contains {name}, which is not JSON", "send a finite number or null")


def _parse_int(digits: str) -> int:
    # Twenty characters keep a longer literal out of range without the cost of converting it.
    return int(digits[:20])


def _read_mapping(raw: Mapping[str, object], limits: Limits) -> tuple[Any, bytes]:
    """Copy a mapping of plain JSON types fast, where its keys are ASCII; anything else is looked at piece by piece."""
    if type(raw) is dict:
        try:
            flat = _FLAT.issuperset(map(type, raw.values())) and _KEYS.issuperset(map(type, raw))
            value: dict[str, Any] = raw.copy() if flat else _copy_box(raw, [_FEW], limits.max_depth)
            form = _dumps(value, None, _OPTIONS)
            if form.isascii() and len(form) <= limits.max_bytes:
                return value, form
        except (_OddError, orjson.JSONEncodeError):
            pass  # the slow way says what is wrong, or takes it
    return _read_value(raw if isinstance(raw, dict) else dict(raw.items()), limits)


class _OddError(Exception):
    """What cannot be copied without a closer look."""


def _copy_box(box: Any, room: list[int], depth: int) -> Any:
    """Copy small boxes of exact JSON types. `room` is how many entries there may be: parts may be met many times."""
    kind = type(box)
    if kind is float and (box == 0 or 1e-5 <= abs(box) <= _MAX_INT):  # as in `_settle_float`
        return int(box) if box.is_integer() else box
    if (kind is not dict and kind is not list) or depth == 0:
        raise _OddError
    room[0] -= len(box)
    if room[0] < 0:
        raise _OddError
    deeper = depth - 1
    if kind is list:
        return [
            item if (kind := type(item)) in _CONSTANTS or (kind is str and len(item) <= _SHORT) else
            _copy_box(item, room, deeper)
            for item in box
        ]  # fmt: skip
    for key in box:
        if type(key) is not str or len(key) > _SHORT:
            raise _OddError
    return {
        key: item if (kind := type(item)) in _CONSTANTS or (kind is str and len(item) <= _SHORT) else
        _copy_box(item, room, deeper)
        for key, item in box.items()
    }  # fmt: skip


def _read_value(raw: object, limits: Limits) -> tuple[Any, bytes]:
    value = _copy(raw, limits, exact=True)
    return value, _encode(value, limits)


class _Spot(NamedTuple):
    """One array or object being copied, and how it was reached; the outermost wraps the document."""

    source: Any
    target: Any
    depth: int
    parent: _Spot | None
    key: object

    def pointer(self, key: object) -> str:
        """Return the JSON Pointer of the entry `key`."""
        steps = ""
        spot = self
        while spot.parent is not None:
            steps = "/" + str(key).replace("~", "~0").replace("/", "~1") + steps
            spot, key = spot.parent, spot.key
        return steps


class _Unusable(Exception):
    """What is wrong with one key or value."""


def _copy(raw: object, limits: Limits, *, exact: bool) -> Any:
    """Return a deep copy of `raw` made of plain JSON types only.

    The copy is given up once its canonical form must exceed the limit, so a cyclic or much shared
    structure costs no more than an honest one of that size.
    """
    document: list[Any] = []
    todo = [_Spot([raw], document, 0, None, "")]
    least = 0
    for spot in todo:
        source, target = spot.source, spot.target
        for key, item in source.items() if type(target) is dict else enumerate(source):
            try:
                new = _plain(item, exact)
                least += 2 + (len(new) if type(new) is str else 0)
                if type(target) is dict:
                    key = _plain_key(key)
                    least += len(key)
                    target[key] = new
                else:
                    target.append(new)
                if type(new) is dict or type(new) is list:
                    todo.append(_Spot(item, new, _deeper(spot, limits), spot, key))
            except _Unusable as unusable:
                _refuse_at(spot.pointer(key), str(unusable))
            if least > limits.max_bytes + 1:
                _check_size(least, limits)
    return document[0]


def _deeper(spot: _Spot, limits: Limits) -> int:
    if spot.depth == limits.max_depth:
        raise _Unusable(f"is nested deeper than {limits.max_depth} levels")
    return spot.depth + 1


def _plain_key(key: object) -> str:
    if not isinstance(key, str):
        raise _Unusable(f"has a key of type {type(key).__name__} where JSON has only strings")
    return _plain_str(key)


def _plain(item: object, exact: bool) -> Any:
    """Return a scalar as its plain JSON type, or a new empty container for a container."""
    if isinstance(item, str):
        return _plain_str(item)
    if item is None or isinstance(item, bool):
        return item
    if isinstance(item, int):
        return _plain_int(int.__index__(item))
    if isinstance(item, float):
        return _plain_float(float.__float__(item), exact)
    if isinstance(item, list | tuple):
        return []
    if isinstance(item, dict):
        return {}
    raise _Unusable(f"is a Python {type(item).__name__}, which is not a JSON value")


def _plain_str(item: str) -> str:
    text = str.__str__(item)
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise _Unusable("contains half of a surrogate pair, which is not text") from None
    return text


def _plain_int(number: int) -> int:
    if not -_MAX_INT <= number <= _MAX_INT:
        raise _Unusable("is a whole number beyond 2^53-1, which JSON readers round; a string keeps it")
    return number


def _plain_float(number: float, exact: bool) -> float:
    if not math.isfinite(number):
        raise _Unusable("is not a finite number")
    # From 1e21 on the canonical form has an exponent and is read back as the float it is.
    if number.is_integer() and (abs(number) <= _MAX_INT or (exact and abs(number) < 1e21)):
        return _plain_int(int(number))
    return number


def _encode(value: Any, limits: Limits) -> bytes:
    if _settle(value, limits.max_depth):
        form = _dumps(value, None, _OPTIONS)
        if form.isascii() or _sorts_alike(value, form):
            _check_size(len(form), limits)
            return form
    try:
        form = rfc8785.dumps(value)
    except RecursionError:
        _refuse("The value is nested too deeply for the stack left to encode it", "send a flatter value")
    _check_size(len(form), limits)
    return form


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.max_bytes:
        _refuse(f"The JSON is larger than {limits.max_bytes} bytes", "send less, or raise max_bytes")


def _refuse(what: str, remedy: str) -> NoReturn:
    raise ToolInputError(f"{what}; {remedy}.") from None


def _refuse_at(pointer: str, problem: str) -> NoReturn:
    where = _short(pointer)
    raise ToolInputError(f"The value at '{where}' {problem}; send plain JSON.", location=where) from None


def _short(name: str) -> str:
    """Return a key or pointer that is safe to print and store, cut to a fixed length."""
    printable = name[: _SHOWN + 1].encode("utf-8", "backslashreplace").decode("utf-8")
    return printable if len(printable) <= _SHOWN else printable[: _SHOWN - 1] + "…"
