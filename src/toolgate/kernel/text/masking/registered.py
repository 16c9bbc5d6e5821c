"""Hide secrets because they were registered, in every spelling they are met in.

This file owns the spellings that are the same everywhere: the secret itself, hexadecimal and base64. What is spelled
character by character is found in `spelled`; what is a secret without having been registered is judged in `keys`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from threading import Lock
from typing import Final

from toolgate.kernel.text.masking.automaton import HEAD, Automaton
from toolgate.kernel.text.masking.keys import MASK, Span
from toolgate.kernel.text.masking.spelled import Spelled

SHORTEST: Final = 4
"""A shorter secret is not looked for inside a text: it would hit words."""

_MIN_BASE64: Final = 6
_COMPARED: Final = 2048  # bytes of long secrets that are compared for each byte of a text


class Registered:
    """All registered secrets together; never changes, so it is safe to share between threads.

    Each is found as it is, in hexadecimal and base64, and with any of its characters percent-encoded, JSON-escaped or
    written as an HTML entity. Where secrets overlap, all of them are hidden. The time is linear in the text: where a
    text was made to look like odd secrets throughout, what was not compared in time is hidden, too.
    """

    __slots__ = ("_automaton", "_long", "_secrets", "_spelled")

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple({secret for secret in secrets if len(secret) >= SHORTEST})
        self._long: dict[bytes, list[bytes]] = {}
        reaches: dict[bytes, Span] = {}
        for secret in self._secrets:
            for form in _forms(secret):
                head = form[:HEAD]
                if len(head) == HEAD:
                    self._long.setdefault(head, []).append(form)
                rest = reaches.get(head, (0, 0))[1]
                reaches[head] = len(head), max(rest, len(form) - len(head))
        for forms in self._long.values():
            forms.sort(key=len, reverse=True)
        self._automaton = Automaton(reaches)
        self._spelled: Spelled | None = None  # made for the first text that has an escape

    def hide(self, text: str) -> str:
        """Replace every secret by `MASK`; the same object comes back when there is none."""
        if not self._secrets:
            return text
        data = text.encode("utf-8", "surrogatepass")
        hidden = _join(self._find(data))
        if _is_escaped(data):
            found = self._spellings().find(data, hidden)
            hidden = _join([*hidden, *found]) if found else hidden
        if not hidden:
            return text
        shown, at = [], 0
        for start, end in hidden:
            shown.append(data[at:start])
            at = end
        shown.append(data[at:])
        return MASK.encode().join(shown).decode("utf-8", "surrogatepass")

    def found_in(self, text: str | bytes) -> bool:
        """Whether `hide` may change the text, or any text inside it when it is JSON. No is certain, yes is not."""
        if not self._secrets:
            return False
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        return self._automaton.is_in(data) or (_is_escaped(data) and self._spellings().may_be_in(data))

    def _spellings(self) -> Spelled:
        if self._spelled is None:
            self._spelled = Spelled(self._secrets)
        return self._spelled

    def _find(self, data: bytes) -> list[Span]:
        """Return where a form of a secret is."""
        reach, strings = self._automaton.reach, self._automaton.strings
        spans: list[Span] = []
        budget = _COMPARED * len(data)
        for index, start, end in self._automaton.find(data):
            if index < 0:
                before, after = reach[~index]
                spans.append((max(0, end - before), end + after))
            elif not self._long or (forms := self._long.get(strings[index])) is None:
                if spans and spans[-1][0] <= start and end - spans[-1][1] < 2 and start < spans[-1][1]:
                    start = spans.pop()[0]  # of a character in a row, the next place is one further each time
                spans.append((start, end))
            else:
                for form in forms:  # the longest first
                    budget -= len(form)
                    if budget < 0 or data.startswith(form, start):
                        spans.append((start, start + len(form)))
                        break
        return spans


class Secrets:
    """Registered secrets that become more; safe to share between threads.

    The first text after a change makes them ready to be looked for, so that many are added for the price of one.
    """

    __slots__ = ("_known", "_lock", "_ready")

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._lock = Lock()
        self._ready: Registered | None = _NONE

    def __len__(self) -> int:
        return len(self._known)

    def add(self, secret: str) -> None:
        """Have this secret found by whoever asks for `ready` from now on."""
        with self._lock:
            if secret not in self._known:
                self._known.add(secret)
                self._ready = None

    def ready(self) -> Registered:
        """Return all secrets that were added until now."""
        ready = self._ready
        if ready is None:
            with self._lock:
                ready = self._ready = self._ready or Registered(self._known)
        return ready


_NONE: Final = Registered(())


def _is_escaped(data: bytes) -> bool:
    return b"%" in data or b"\\" in data or b"&" in data or b"+" in data


def _join(spans: list[Span]) -> list[Span]:
    """Return the spans in order, those that overlap as one."""
    spans.sort()
    joined: list[Span] = []
    last = -1
    for start, end in spans:
        if start >= last:
            joined.append((start, end))
            last = end
        elif end > last:
            joined[-1] = joined[-1][0], end
            last = end
    return joined


def _forms(secret: str) -> set[bytes]:
    """Return the secret, its hexadecimal form, and what of its base64 is the same wherever in a text it was encoded."""
    raw = secret.encode("utf-8", "surrogatepass")
    forms = {raw, raw.hex().encode(), raw.hex().upper().encode()}
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
        core = encoded[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        if len(core) >= _MIN_BASE64:
            forms |= {core, core.replace(b"+", b"-").replace(b"/", b"_")}
    return forms
