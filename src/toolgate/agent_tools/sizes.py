"""Check how long a tool may run and how much it may write. Sizes are bytes."""

from __future__ import annotations

from toolgate.agent_tools.validation import Validation
from toolgate.kernel.misuse import explained_class

MAX_TIMEOUT_S = 300
MAX_WRITE_BYTES = 10 * 1024 * 1024


@explained_class
class SizeLimiter:
    """Checks timeouts and what is written against limits."""

    def __init__(self, *, max_timeout: float = MAX_TIMEOUT_S, max_write_bytes: int = MAX_WRITE_BYTES) -> None:
        self.max_timeout = max_timeout
        self.max_write_bytes = max_write_bytes

    def validate_timeout(self, timeout: float | None) -> Validation:
        """Whether a run may take so many seconds; None leaves it to the tool."""
        if timeout is None:
            return Validation.yes()
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= self.max_timeout:
            return Validation.no(f"A timeout is more than 0 and at most {self.max_timeout:g} seconds.")
        return Validation.yes(timeout)

    def validate_write_size(self, content: str | bytes) -> Validation:
        """Whether so much may be written; text counts by its bytes in UTF-8."""
        if not isinstance(content, str | bytes):
            return Validation.no("What is written is text or bytes.")
        size = len(content) if isinstance(content, bytes) else len(content.encode(errors="surrogatepass"))
        if size > self.max_write_bytes:
            return Validation.no(f"The content is {size} bytes; at most {self.max_write_bytes} are allowed.")
        return Validation.yes(size)
