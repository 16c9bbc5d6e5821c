"""Hide secrets because they were registered, in every spelling they are met in.

What is a secret without having been registered is judged in `masking_keys`.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from toolgate.kernel.text.masking.keys import MASK


class Registered:
    """One secret and the spellings it is looked for in."""

    __slots__ = ("_forms", "_spelled", "secret")

    def __init__(self, secret: str) -> None:
        self.secret = secret
        raw = secret.encode("utf-8", "surrogatepass")
        forms = {secret, raw.hex(), raw.hex().upper(), *_base64_forms(raw)}
        self._forms = tuple(sorted(forms, key=len, reverse=True))
        self._spelled = re.compile("".join(map(_spellings, secret)))

    def hide(self, text: str) -> str:
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        if "%" in text or "\\" in text or "+" in text or "&" in text:
            text = self._spelled.sub(MASK, text)
        return text


def _base64_forms(raw: bytes) -> set[str]:
    """Return what stays the same of the secret's base64 wherever it lies in what was encoded."""
    forms = set()
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        first, last = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        core = encoded[first:last]
        if len(core) >= _MIN_BASE64:
            forms |= {core, core.replace("+", "-").replace("/", "_")}
    return forms


def _spellings(char: str) -> str:
    """Return a pattern for one character: as it is, percent-encoded, JSON-escaped or as an HTML entity."""
    ways = [re.escape(char)]
    raw = char.encode("utf-8", "surrogatepass")
    ways.append("".join(f"(?i:%{byte:02x})" for byte in raw))
    units = char.encode("utf-16-be", "surrogatepass")
    ways.append("".join(rf"\\{{1,8}}u(?i:{units[at : at + 2].hex()})" for at in range(0, len(units), 2)))
    ways += [rf"\\{{1,8}}{re.escape(escape)}" for escape in _JSON_ESCAPES.get(char, "")]
    ways += _ENTITIES.get(char, ())
    return f"(?:{'|'.join(ways)})"


_JSON_ESCAPES: Final = {
    '"': '"', "\\": "\\", "/": "/", "\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f", "'": "'",
}  # fmt: skip
_ENTITIES: Final = {
    " ": ("\\+",), "&": ("&amp;",), "<": ("&lt;",), ">": ("&gt;",), '"': ("&quot;", "&#34;"), "'": ("&#x27;", "&#39;"),
}  # fmt: skip
_MIN_BASE64: Final = 6
