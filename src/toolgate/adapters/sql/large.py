"""What is too large for the row it belongs to: kept in a table beside it, and written once.

A database writes a whole row anew whenever one column of it changes. A call's row changes with every status, and so
would its megabytes. This file owns what the row says instead of a large view, and how the view is put together again.
"""

from __future__ import annotations

from typing import Any

import orjson

from toolgate.kernel.payload import LARGE, QUOTABLE, summarize

SHORT_BYTES = 16_384
"""How much of a large view its row may say, shortened."""

_dumps, _loads = orjson.dumps, orjson.loads


def is_apart(value: bytes) -> bool:
    """Whether a value is kept beside its row."""
    return len(value) > LARGE


def split_view(shown: Any, arguments: bytes) -> tuple[str | None, str | None]:
    """What the row says of a large view, shortened, and the whole view; None for one that is as its arguments are.

    Whether masking left everything as it was is not believed but compared, byte by byte: only then is the view read
    from the arguments again, and no secret is judged anew by whoever reads.
    """
    short = _dumps(_shortened(shown))
    fits = len(short) <= SHORT_BYTES
    said = short if fits else _dumps(summarize(shown, len(arguments)))
    is_same = fits and _dumps(shown, option=orjson.OPT_SORT_KEYS) == arguments
    return None if shown is None else said.decode(), None if is_same else _dumps(shown).decode()


def join_view(said: Any, whole: str | None, arguments: bytes) -> Any:
    """Return the view that `split_view` took apart; `said` is what the row says of it, read."""
    return _in_order(said, _loads(arguments)) if whole is None else _loads(whole)


def _shortened(value: Any) -> Any:
    if type(value) is dict:
        return {key: _shortened(item) for key, item in value.items()}
    if type(value) is list:
        return [_shortened(item) for item in value]
    if type(value) is str and len(value) > QUOTABLE:
        return f"[{len(value)} characters]"
    return value


def _in_order(said: Any, value: Any) -> Any:
    """Return the value with its keys in the order they were said in; arguments are stored with theirs sorted."""
    if type(value) is dict and type(said) is dict and said.keys() == value.keys():
        return {key: _in_order(item, value[key]) for key, item in said.items()}
    if type(value) is list and type(said) is list and len(said) == len(value):
        return [_in_order(one, item) for one, item in zip(said, value, strict=True)]
    return value
