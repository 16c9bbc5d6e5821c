"""A regular expression that is compiled when it is first used, so that importing its file costs nothing.

What a pattern looks for belongs to the file that names it.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

_METHODS: Final = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")


class _LazyPattern:
    """Stands for a compiled pattern; once used, its methods are the compiled pattern's own."""

    __slots__ = ("_flags", "_source", *_METHODS)

    def __init__(self, source: str, flags: re.RegexFlag) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Compile at the first use of a method. Two threads may both do so: either result is as good."""
        if name not in _METHODS:
            raise AttributeError(f"a lazy pattern has no `{name}`")
        compiled = re.compile(self._source, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy_pattern(source: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a pattern to search, match and substitute with; a wrong one is found out at its first use."""
    return cast("re.Pattern[str]", _LazyPattern(source, flags))
