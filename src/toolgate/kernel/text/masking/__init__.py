"""Hide secrets in any value before it is logged, published, shown or stored in readable form.

This file owns the walk over values. Where in a text a rule might apply is found in `places`; what counts as a secret
beside a key is judged in `keys`, because it was registered in `registered`, by its looks in `shapes`, in URLs in
`urls`, on command lines in `commands`.

Under a key that names a secret the whole value becomes `MASK`; booleans, `None` and empty values stay, because
they are flags. Ordinary data comes out equal to what went in, and masking twice changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from threading import Lock
from typing import Any, Final, cast
from uuid import UUID

from orjson import dumps, loads

from toolgate.errors import UsageError
from toolgate.kernel.text.masking.addresses import is_shown_address, names_address
from toolgate.kernel.text.masking.commands import mask_argv
from toolgate.kernel.text.masking.keys import (
    MASK,
    MAX_KEY,
    Verdict,
    is_harmless,
    is_named_pair,
    judge,
    pair_names,
)
from toolgate.kernel.text.masking.places import find_places, mask_headless, mask_places, names_something
from toolgate.kernel.text.masking.plain import MOST_BOXES, OddError, Survey, boxes_of_plain
from toolgate.kernel.text.masking.registered import SHORTEST, Secrets
from toolgate.kernel.text.masking.urls import mask_urls

__all__ = ["MASK", "TOO_DEEP", "Masker"]

TOO_DEEP: Final = "<too deep>"
"""Stands for whatever is nested deeper than a reader could follow, and for a value that contains itself."""

_MAX_DEPTH: Final = 64
_MAX_PASSES: Final = 7
_QUICK: Final = 15  # letters and digits alone, fewer than this, match no rule
_MAX_KEYS: Final = 4096
_SCALARS: Final = (date, time, timedelta, Decimal, UUID, Enum)
_CONSTANTS: Final[frozenset[type]] = frozenset({int, float, bool, type(None)})
"""Never masked by themselves, unless a registered secret could be a number."""
_NO_TYPES: Final[frozenset[type]] = frozenset()
_BOXES: Final = frozenset({dict, list})

REPEATED = 512
"""How many texts `Masker.repeated` remembers."""
CLEARED = 1024
"""How many texts `Masker.hides` remembers to hold nothing."""


class _Walk:
    """What is known while one value is masked: the boxes met, and what some of its texts came to."""

    __slots__ = ("seen", "texts")

    def __init__(self, texts: Iterable[str] = (), masked: Mapping[str, str] | None = None) -> None:
        self.seen: dict[int, object] = {}
        self.texts = {text: text for text in texts}
        self.texts.update(masked or {})


class Masker:
    """Masks values; safe to share between threads.

    Registered secrets are hidden wherever they appear, in keys and values, also inside base64, percent-encoded,
    JSON-escaped or hexadecimal text. Ones shorter than four characters hide only a value equal to them; empty
    ones are ignored.
    """

    __slots__ = ("_cleared", "_is_told", "_keys", "_lock", "_quick", "_registered", "_repeated", "_short")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = Lock()
        self._registered = Secrets()
        self._is_told = False
        self._short: frozenset[str] = frozenset()
        self._quick = _QUICK
        self._keys: dict[str, Verdict] = {}
        self._repeated: dict[str, str] = {}
        self._cleared: set[str] = set()
        if isinstance(secrets, str | bytes):
            raise UsageError("Secrets are a list of strings, each hidden whole; put the one you have into a list.")
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Hide this value wherever it appears, from the next call on."""
        if not isinstance(secret, str):
            raise UsageError(f"A secret is a string, not of type {type(secret).__name__}; decode it first.")
        with self._lock:
            if 0 < len(secret) < SHORTEST:
                self._short |= {secret}
            elif secret:
                self._registered.add(secret)
            if secret:
                self._quick = min(self._quick, len(secret))
                self._is_told = True
            # Last: whoever sees the new dicts also sees the new secret.
            self._keys = {}
            self._repeated = {}
            self._cleared = set()

    def text(self, text: str) -> str:
        """Return free text, such as the text of an exception, with its secrets masked."""
        return self._text(text, 0)

    def repeated(self, text: str) -> str:
        """Do what `text` does for texts that come again and again, such as a policy's reasons: remembers some."""
        known = self._repeated
        masked = known.get(text)
        if masked is None:
            masked = self._text(text, 0)
            if len(known) < REPEATED:
                known[text] = masked
        return masked

    def hides(self, text: str) -> bool:
        """Whether anything in a text would be hidden. Those that hold nothing, such as the id of a run, come again."""
        known = self._cleared
        if text in known:
            return False
        if self._text(text, 0) != text:
            return True
        if len(known) >= CLEARED:
            known.clear()
        known.add(text)
        return False

    def __call__(self, value: object) -> object:
        """Return a masked copy that shares no dict or list with the value."""
        return self._look(value, 0, MOST_BOXES) if type(value) in _BOXES else self._any(value, 0, _Walk())

    def of(self, value: object, encoded: bytes, *, is_ours: bool = False) -> Any:
        """Do what calling it does with JSON whose bytes are at hand: ordinary data is cleared by those.

        `is_ours`: nobody else holds the value, so it need not be copied.
        """
        boxes = boxes_of_plain(encoded)
        if boxes is None or (self._is_told and self._may_hold(encoded)):
            return self(value)
        if is_ours:
            return value
        if boxes == 1 and type(value) is dict:
            return value.copy()
        return loads(dumps(value))  # in the order of the value, which its bytes may not have

    def _look(self, value: Any, depth: int, boxes: int) -> object:
        """Clear a value in one look, or else look closely at the parts of it that one finds."""
        numbers = self._is_told
        survey = Survey(self._keys, self._judge, quick=self._quick, numbers=numbers, boxes=boxes)
        try:
            plain = survey.copy(value, depth)
        except OddError:
            return self._any(value, depth, _Walk())
        suspects = survey.texts if numbers and self._may_hold("\n".join(survey.texts)) else survey.suspects()
        masked = {text: self._text(text, depth + 1) for text in suspects}
        return plain if survey.is_cleared_by(masked) else self._any(value, depth, _Walk(survey.texts, masked))

    def _may_hold(self, text: str | bytes) -> bool:
        """Whether a registered secret may be in this text, or in a part of it that is one."""
        return bool(self._short) or (bool(self._registered) and self._registered.ready().found_in(text))

    def _judge(self, key: object) -> Verdict:
        """Return the verdict on a key; one that cannot be shown as it is counts as naming a secret."""
        name, verdict = self._new_key(key, {}, {})
        return verdict if name is key else Verdict.SECRET

    def _any(self, value: object, depth: int, walk: _Walk) -> object:
        kind = type(value)
        if kind is str:
            masked = walk.texts.get(cast(str, value))
            return self._text(cast(str, value), depth) if masked is None else masked
        if kind is dict or kind is list:
            return self._once(value, depth, walk) if value else kind()
        if value is None or kind is bool:
            return value
        if kind is int or kind is float:
            return self._number(value)
        return self._rare(value, depth, walk)

    def _rare(self, value: object, depth: int, walk: _Walk) -> object:
        if isinstance(value, (Mapping, list, tuple, set, frozenset)):
            return self._once(value, depth, walk)
        if isinstance(value, str):
            return self._text(str.__str__(value), depth)
        if isinstance(value, (bytes, bytearray)):
            text = bytes(value).decode("utf-8", "backslashreplace")
            masked = self._text(text, depth)
            return bytes(value) if masked == text else masked.encode("utf-8", "surrogatepass")
        text = _describe(value)
        masked = self._text(text, depth)
        return value if masked == text and isinstance(value, _SCALARS) else masked

    def _number(self, value: object) -> object:
        if not self._is_told:
            return value
        text = _describe(value)
        return value if self._text(text, 0) == text else MASK

    def _once(self, value: object, depth: int, walk: _Walk) -> object:
        """Mask a container once, however often it is met, so that cycles and shared parts stay bounded."""
        if depth >= _MAX_DEPTH:
            return TOO_DEEP
        identity = id(value)
        if identity in walk.seen:
            return walk.seen[identity]
        walk.seen[identity] = TOO_DEEP
        masked: object
        if type(value) is list:
            masked = self._sequence(value, depth + 1, walk)
        elif isinstance(value, Mapping):
            masked = self._mapping(value, depth + 1, walk)
        elif isinstance(value, (set, frozenset)):
            masked = self._set(value, depth + 1, walk)
        else:
            masked = self._sequence(cast(Sequence[object], value), depth + 1, walk)
        walk.seen[identity] = masked
        return masked

    def _mapping(self, mapping: Mapping[Any, Any], depth: int, walk: _Walk) -> dict[object, object]:
        keys, quick, texts = self._keys, self._quick, walk.texts
        constants = _NO_TYPES if self._is_told else _CONSTANTS
        masked: dict[object, object] = {}
        counts: dict[str, int] = {}
        for key, item in mapping.items():
            verdict = keys.get(key)
            if verdict is None:
                key, verdict = self._new_key(key, masked, counts)
            kind = type(item)
            if verdict:
                item = self._beside_key(key, verdict, item, mapping, depth, walk)
            elif kind is str:
                if len(item) >= quick or not item.isalnum():
                    shown = texts.get(item)
                    item = self._text(item, depth) if shown is None else shown
            elif kind is list and key in _LISTINGS:
                item = self._sequence(item, depth + 1, walk, pairs=False)
            elif kind not in constants:
                item = self._any(item, depth, walk)
            masked[key] = item
        return masked

    def _new_key(self, key: object, taken: dict[object, object], counts: dict[str, int]) -> tuple[object, Verdict]:
        """Judge and mask a key met for the first time; remember it when it may be shown as it is.

        `counts` says how many were masked alike so far: thousands of them are not counted from one each time.
        """
        keys = self._keys
        if not isinstance(key, str):
            if key is None or isinstance(key, (int, float)):
                return self._number(key), Verdict.CLEAN
            key = _describe(key)
        masked = name = self._text(str.__str__(key), _MAX_DEPTH)
        verdict = max(judge(key), judge(name))
        if masked == key:
            if len(key) <= MAX_KEY:
                if len(keys) >= _MAX_KEYS:
                    keys.clear()
                keys[key] = verdict
            return key, verdict
        count = counts.get(masked, 1)
        while name in taken:
            count += 1
            name = f"{masked}{count}"
        counts[masked] = count
        return name, verdict

    def _beside_key(
        self,
        key: object,
        verdict: Verdict,
        item: object,
        mapping: Mapping[object, object],
        depth: int,
        walk: _Walk,
    ) -> object:
        if verdict is Verdict.VALUE:
            verdict = max(judge(name) for name in (*pair_names(mapping), None))
        if verdict < Verdict.WEAK or is_harmless(verdict, item):
            return self._any(item, depth, walk)
        if type(item) is str and type(key) is str and names_address(key):
            # Once: a text within a text within a text would take twice as long at every step.
            shown = str(self._any(item, depth, walk))
            return shown if is_shown_address(item, shown) else MASK
        return MASK

    def _set(self, items: Iterable[object], depth: int, walk: _Walk) -> object:
        masked = [self._any(item, depth, walk) for item in items]
        try:
            return frozenset(masked) if isinstance(items, frozenset) else set(masked)
        except TypeError:
            return masked

    def _sequence(
        self, items: Sequence[object], depth: int, walk: _Walk, pairs: bool = True
    ) -> list[object] | tuple[object, ...]:
        masked = [self._any(item, depth, walk) for item in items]
        if len(items) > 1 and any(type(item) is str for item in items):
            if pairs and len(items) == 2 and is_named_pair(*items):
                masked[1] = MASK
            for index, value in mask_argv(items).items():
                masked[index] = value
        return tuple(masked) if isinstance(items, tuple) else masked

    def _text(self, text: str, depth: int) -> str:
        if len(text) < self._quick and text.isalnum():
            return text
        for _ in range(_MAX_PASSES):
            text, is_last = self._pass(text, depth)
            if is_last:
                return text
        return MASK

    def _pass(self, text: str, depth: int) -> tuple[str, bool]:
        """Apply every rule once; say whether another pass would change nothing."""
        if self._short and text in self._short:
            return MASK, True
        masked = self._registered.ready().hide(text) if self._is_told else text
        places = find_places(masked) if depth < _MAX_DEPTH and _may_be_document(masked) else None
        if places and names_something(places):
            document = self._document(masked, depth)
            if document is not None:
                return document, True
        hidden = mask_headless(mask_urls(masked))
        if places is None or hidden is not masked:
            places = find_places(hidden)
        if places:
            hidden = mask_places(hidden, places)
        return hidden, hidden == text

    def _document(self, text: str, depth: int) -> str | None:
        """Mask a text that is one JSON document by its structure; `None` when it is not one."""
        try:
            document = json.loads(text, object_pairs_hook=_distinct)
            boxed = type(document) in _BOXES
            masked = self._look(document, depth + 1, len(text)) if boxed else self._any(document, depth + 1, _Walk())
            if masked == document:
                return text
            compact = (",", ":") if ": " not in text and ", " not in text else None
            indent = 2 if "\n" in text.strip() else None
            return json.dumps(masked, ensure_ascii=text.isascii(), separators=compact, indent=indent)
        except (ValueError, RecursionError):
            return None


_LISTINGS: Final = frozenset("required fields columns scopes tags keywords names keys exclude include hidden".split())
_JSON_STARTS: Final = frozenset('{[" \t\r\n')
_JSON_ENDS: Final = frozenset({"{}", "[]", '""'})


def _may_be_document(text: str) -> bool:
    """Whether a text begins and ends as a JSON document does that holds texts."""
    return text[:1] in _JSON_STARTS and text.strip()[:1] + text.rstrip()[-1:] in _JSON_ENDS


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object; a repeated key would hide its first value from the rules, so it is refused."""
    built = dict(pairs)
    if len(built) != len(pairs):
        raise ValueError("repeated key")
    return built


def _describe(value: object) -> str:
    """Return the text of an object that is not data; an object that cannot be shown is named by its type."""
    try:
        if isinstance(value, BaseException):
            return f"{type(value).__name__}: {value}"
        return str(value)
    except Exception:  # noqa: BLE001 - foreign code runs here, and masking must never fail
        return f"<{type(value).__name__}>"
