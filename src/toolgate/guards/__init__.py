"""The hard edges: what a path, a command line or a URL really is. Shared by policy, catalog and runners.

Guards look and refuse; they write nothing, wait for nothing, and know nothing of policies or tools.
"""

from __future__ import annotations

from toolgate.errors import ToolDeniedError


class Refused(ToolDeniedError):
    """A guard refused a path, a command line or a URL. `kind` is the short word programs compare."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text, reason=text)
        self.kind = kind
