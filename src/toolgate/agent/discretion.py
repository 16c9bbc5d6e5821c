"""What may be shown of a conversation: masked, also where an answer repeats what a result or argument hid."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from toolgate.kernel.text.masking import Masker
from toolgate.kernel.text.masking.echo import hidden
from toolgate.ports.threads import Message

PIECE = 24
"""How much more there must be to tell before a piece of an unfinished answer is masked and told."""


class Discretion:
    """Masks what is shown of one conversation."""

    def __init__(self, masker: Masker, messages: Iterable[Message] = ()) -> None:
        self._masker = masker
        self._echo = Masker()
        for message in messages:
            self.learn(message)

    def learn(self, message: Message) -> None:
        """Remember what a message hides, so that it stays hidden when somebody says it again."""
        kept, shown = orjson.loads(message.content), message.shown
        for outcome, view in zip(kept.get("outcomes", ()), shown.get("tool_results", ()), strict=False):
            self._hide(outcome["value"], view["result"])
        for call, view in zip(kept.get("calls", ()), shown.get("tool_calls", ()), strict=False):
            try:
                self._hide(orjson.loads(call["arguments"]), view["tool_params"])
            except orjson.JSONDecodeError:
                continue

    def _hide(self, value: Any, shown: Any) -> None:
        for secret in hidden(value, shown):
            self._echo.add(secret)

    def __call__(self, value: object) -> Any:
        return self._echo(self._masker(value))

    def text(self, text: str) -> str:
        return self._echo.text(self._masker.text(text))


class Pieces:
    """An answer on its way out: told in pieces that end between words, never what the finished answer would hide.

    Where masking more of the answer changes what was told already, nothing more is told: the finished answer is.
    """

    def __init__(self, discretion: Discretion) -> None:
        self._discretion = discretion
        self._text = ""
        self._masked_at = 0
        self._told = ""
        self._is_mute = False

    def add(self, piece: str) -> str:
        """Take a piece of the answer and return what may be told now; often nothing."""
        self._text += piece
        whole = max(self._text.rfind(" "), self._text.rfind("\n")) + 1
        if self._is_mute or whole - self._masked_at < PIECE:
            return ""
        self._masked_at = whole
        return self._next(self._text[:whole])

    def finish(self) -> str:
        """Return what is still to be told of the whole answer."""
        return "" if self._is_mute else self._next(self._text)

    def _next(self, text: str) -> str:
        masked = self._discretion.text(text)
        if not masked.startswith(self._told):
            self._is_mute = True
            return ""
        fresh, self._told = masked[len(self._told) :], masked
        return fresh
