"""Find private keys between `BEGIN` and `END`, and what is there of one that was cut off.

Written out rather than as one pattern: Pythons before 3.11.5 match a possessive group with a look-ahead in it wrongly.
"""

from __future__ import annotations

from typing import Final

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.masking.keys import is_placeholder

_PEM: Final = lazy_pattern(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_SPACE: Final = lazy_pattern(r"(?:\s++|\\++[nr])*")
# A key whose end is not there: what may stand before it, and then as much of it as there is.
_PEM_CUT: Final = lazy_pattern(
    r"(?:(?:Proc-Type|DEK-Info|Version|Comment):[^\n]{0,200}\n\s*+)*"
    r"[A-Za-z0-9+/=]{16,}+(?:[A-Za-z0-9+/=\s]++|\\++[nr])*"
)


def key_block_spans(text: str) -> list[tuple[int, int]]:
    """Return where private keys lie, also ones that were cut off; a block without a key in it is none."""
    spans = []
    for head in _PEM.finditer(text):
        begin = _PEM_SPACE.match(text, head.end()).end()  # type: ignore[union-attr]  # it matches nothing, too
        stop = text.find("-----", begin)
        if stop > begin and text.startswith("-----END ", stop):
            body = text[begin:stop]
            if not any(map(str.isalnum, body)) or is_placeholder(body):
                continue
        else:
            cut = _PEM_CUT.match(text, begin)
            if cut is None:
                continue
            stop = cut.end()
        spans.append((begin, stop))
    return spans
